#include "record/request_uprobes.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/elf_reader.h"
#include "record/participants.h"
#include "record/probe_definitions.h"
#include "record/proc.h"
#include "record/request_definitions.h"

#define FILES_MAX 64   /* most different programs of one kind */
#define PROBES_MAX 1000

/* The files of a kind's programs, each open once. */
struct program_files {
	struct program_file {
		int fd;
		dev_t dev;
		ino_t ino;
		int32_t pid;  /* a process that runs it; 0: none */
		char *path;
	} file[FILES_MAX];
	size_t n;
	bool has_more;
};

/* ---- programs */

/* Adds a file unless it is present. The descriptor identifies the file from now on, whatever happens to its path. */
static void add_file(struct program_files *files, const char *open_path, const char *path, int32_t pid)
{
	struct stat st;
	const int fd = open(open_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return;
	bool is_new = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	for (size_t i = 0; i < files->n && is_new; i++)
		is_new = files->file[i].dev != st.st_dev || files->file[i].ino != st.st_ino;
	files->has_more |= is_new && files->n == FILES_MAX;
	if (is_new && files->n < FILES_MAX)
		files->file[files->n++] = (struct program_file){ fd, st.st_dev, st.st_ino, pid, mem_dup(path) };
	else
		close(fd);
}

static void close_files(struct program_files *files)
{
	for (size_t i = 0; i < files->n; i++) {
		close(files->file[i].fd);
		free(files->file[i].path);
	}
}

/* Removes the kernel's suffix of a program that was replaced on disk while it runs. */
static void cut_deleted(char *path)
{
	static const char deleted[] = " (deleted)";
	const size_t n = strlen(path), len = sizeof deleted - 1;
	if (n > len && strcmp(path + n - len, deleted) == 0)
		path[n - len] = '\0';
}

/* Adds the programs of running processes: those inside containers, or those outside. */
static void find_running(const struct request_kind *k, const char *root, bool inside, struct program_files *files)
{
	size_t n;
	uint64_t pid;
	if (!k->programs)
		return;
	char **name = proc_names(root, "", &n, "/proc"), *outside = proc_link(root, "/proc/self/ns/pid");
	for (size_t i = 0; i < n; i++) {
		if (!proc_parse_number(name[i], INT32_MAX, &pid))
			continue;
		char *space = proc_link(root, "/proc/%s/ns/pid", name[i]);
		const bool is_inside = space && outside && strcmp(space, outside) != 0;
		char *path = is_inside == inside ? proc_link(root, "/proc/%s/exe", name[i]) : NULL;
		free(space);
		if (path) {
			cut_deleted(path);
			char *open_path = mem_printf("%s/proc/%s/exe", root, name[i]);
			if (request_kind_has_program(k, path))
				add_file(files, open_path, path, (int32_t)pid);
			free(open_path);
		}
		free(path);
	}
	free(outside);
	proc_names_free(name, n);
}

/* Containers come last: they choose the names and the number of their programs. */
static void find_files(const struct request_kind *k, const char *root, struct program_files *files)
{
	find_running(k, root, false, files);
	for (size_t i = 0; i < k->paths; i++) {
		glob_t found;
		char *pattern = k->by_user ? mem_dup(k->path[i]) : mem_printf("%s%s", root, k->path[i]);
		if (k->by_user) {
			add_file(files, pattern, pattern, 0);
		} else if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0) {
			for (size_t j = 0; j < found.gl_pathc; j++)
				add_file(files, found.gl_pathv[j], found.gl_pathv[j], 0);
			globfree(&found);
		}
		free(pattern);
	}
	find_running(k, root, true, files);
}

/* ---- probes */

/* Defines one probe in a file. */
static int define(struct request_uprobes *u, const struct request_definition *d, int fd, struct error *err)
{
	char suffix[32];
	if (u->events >= PROBES_MAX)
		return error_set(err, STATUS_INPUT, NULL, "more than %d probes", PROBES_MAX);
	snprintf(suffix, sizeof suffix, "_r%zu", u->events + 1);
	char *group = probe_group(suffix), *name = mem_printf("%s/%s", group, d->event);
	char *at = mem_printf("/proc/%d/fd/%d:%s", (int)getpid(), fd, d->place);
	char *why = probe_define(u->tracefs, d->type, name, at);
	if (!why)
		*ARRAY_PUSH(u->event, u->events, u->events_cap) = mem_dup(name);
	else
		error_set(err, STATUS_SYSTEM, d->has_counter ? "static probes with a semaphore need Linux 4.20" : NULL, "%s: %s",
		          d->event, why);
	const int rc = why ? -1 : 0;
	char *const all[] = { group, name, at, why };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		free(all[i]);
	return rc;
}

static void undefine_from(struct request_uprobes *u, size_t first)
{
	while (u->events > first) {
		probe_undefine(u->tracefs, u->event[--u->events]);
		free(u->event[u->events]);
	}
}

/* Defines all probes of a kind in one program, or none. */
static int define_program(struct request_uprobes *u, const struct record_options *o, const struct request_kind *k,
                          const struct program_file *f, struct error *err)
{
	struct elf_places places;
	struct request_definitions d = { 0 };
	const size_t first = u->events;
	char shown[300];
	const struct elf_source source = { .path = text_escape(shown, sizeof shown, f->path), .fd = f->fd,
		.filter = { request_definitions_want, k } };
	int rc = elf_places_read(&places, &source, o->stop, err);
	if (rc == 0 && (rc = request_definitions_add(&d, k, &places, o->request_labels, err)) != 0)
		error_wrap(err, "%s", shown);
	for (size_t i = 0; i < d.n && rc == 0; i++)
		if ((rc = define(u, &d.item[i], f->fd, err)) != 0)
			error_wrap(err, "%s", shown);
	request_definitions_release(&d);
	elf_places_release(&places);
	if (rc) {
		undefine_from(u, first);
		return error_wrap(err, "requests %s", k->name);
	}
	*ARRAY_PUSH(u->program, u->programs, u->cap) = (struct probed_program){ mem_dup(k->name), mem_dup(f->path), f->pid,
	                                                                        u->events - first };
	return 0;
}

static int refuse_absent(const struct request_kind *k, const char *spec, struct error *err)
{
	char shown[300];
	if (k->by_user)
		return error_read(err, NULL, "--requests: cannot read %s", text_escape(shown, sizeof shown, k->path[0]));
	return error_set(err, STATUS_INPUT, "start the server, or name its program: PATH:FUNCTION",
	                 "--requests %s: no program %s runs or is installed", text_escape(shown, sizeof shown, spec),
	                 k->programs ? k->program[0] : k->path[0]);
}

/* Defines the probes of one specification. A table may fit only some of the programs. */
static int open_kind(struct request_uprobes *u, const struct record_options *o, const char *spec, struct error *err)
{
	struct request_kind *k = request_kind_parse(spec, err);
	if (!k)
		return -1;
	struct program_files files = { .n = 0 };
	struct error why = ERROR_INIT;
	const size_t before = u->programs;
	errno = 0;
	find_files(k, o->root, &files);
	int rc = files.n ? 0 : refuse_absent(k, spec, err);
	for (size_t i = 0; i < files.n && !(o->stop && *o->stop); i++) {
		if (define_program(u, o, k, &files.file[i], &why) == 0)
			report_progress(o, "requests %s: %zu probe%s in %s%s", k->name, u->program[u->programs - 1].probes,
			                u->program[u->programs - 1].probes == 1 ? "" : "s", files.file[i].path,
			                files.file[i].pid ? "" : " (does not run)");
		else if (i + 1 < files.n || u->programs > before)
			report_progress(o, "%s", why.text);
	}
	if (files.has_more)
		report_progress(o, "requests %s: more than %d programs, the others are not recorded", k->name, FILES_MAX);
	if (rc == 0 && u->programs == before) {
		rc = -1;
		*err = why;
	}
	close_files(&files);
	request_kind_free(k);
	return rc;
}

int request_uprobes_open(struct request_uprobes *u, const struct record_options *o, const char *tracefs, struct error *err)
{
	*u = (struct request_uprobes){ .tracefs = mem_dup(tracefs) };
	for (size_t i = 0; i < o->request_specs; i++)
		if (open_kind(u, o, o->request_spec[i], err))
			return -1;
	return 0;
}

void request_uprobes_close(struct request_uprobes *u)
{
	undefine_from(u, 0);
	for (size_t i = 0; i < u->programs; i++) {
		free(u->program[i].kind);
		free(u->program[i].path);
	}
	free(u->program);
	free(u->event);
	free(u->tracefs);
	*u = (struct request_uprobes){ 0 };
}

void request_uprobes_put(const struct request_uprobes *u, struct yaml_out *o)
{
	const int list = u->programs ? yaml_out_list(o, YAML_OUT_ROOT, "requests") : 0;
	for (size_t i = 0; i < u->programs; i++) {
		const int map = yaml_out_map(o, list, NULL);
		yaml_out_text(o, map, "kind", u->program[i].kind);
		yaml_out_escaped(o, map, "path", u->program[i].path);
		yaml_out_number(o, map, "probes", (int64_t)u->program[i].probes);
	}
}
