/* Histories without names, and answer pages. */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/hash.h"
#include "cli/captured_command.h"
#include "cli/cli.h"
#include "cli/mcp_answers.h"
#include "cli/recording_lines.h"

/* Characters of names that are not served: they would need escapes in lists and in JSON. */
#define UNSERVED "\"\\\n\r\t\033"

/* A recording's history. Commands get its path; answers show the name that the agent gave. */
struct history_file {
	char *recording, *name;         /* the recording's path, and its name */
	char *path;                     /* of the history */
	int fd;                         /* the path is that of this descriptor; -1: the recording is a history */
	uint64_t state;                 /* of the recording's files when the history was built */
};
struct long_answer { unsigned number; char *text; size_t length; };

struct mcp_answers {
	const char *directory;
	char *real;                     /* resolved path of the directory */
	int root;                       /* the directory's descriptor; all recordings are opened below it */
	struct history_file *history;   /* one per recording that was used */
	size_t histories;
	struct long_answer kept[MCP_KEPT];
	unsigned number;                /* number of the last long answer; 0: none */
};

struct mcp_answers *mcp_answers_begin(const char *directory, struct error *err)
{
	char *real = realpath(directory, NULL);
	const int root = real ? open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (root < 0) {
		if (errno == ENOTDIR)
			error_set(err, STATUS_INPUT, "name the directory that holds the recordings", "%s: not a directory", directory);
		else
			error_read(err, NULL, "%s", directory);
		free(real);
		return NULL;
	}
	struct mcp_answers *a = mem_new(1, sizeof *a);
	*a = (struct mcp_answers){ .directory = directory, .real = real, .root = root };
	return a;
}

static void drop_last_history(struct mcp_answers *a)
{
	struct history_file *h = &a->history[--a->histories];
	free(h->recording);
	free(h->name);
	free(h->path);
	if (h->fd >= 0)
		close(h->fd);
}

void mcp_answers_end(struct mcp_answers *a)
{
	if (!a)
		return;
	while (a->histories)
		drop_last_history(a);
	for (size_t i = 0; i < MCP_KEPT; i++)
		free(a->kept[i].text);
	free(a->history);
	free(a->real);
	close(a->root);
	free(a);
}

/* ---- histories ---- */

/* Opens a file or directory below the served one: no "..", no absolute path and no link leads out of it. Returns -1 on
 * failure. */
static int open_below(const struct mcp_answers *a, const char *name, uint64_t flags)
{
	const struct open_how how = { .flags = flags | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	return (int)syscall(SYS_openat2, a->root, name, &how, sizeof how);
}

/* Returns true if the name can stand in lists and in JSON as it is. */
static bool is_served_name(const char *name)
{
	uint32_t c;
	size_t n;
	if (name[strcspn(name, UNSERVED)])
		return false;
	while (*name && (n = text_decode(name, &c)) > 0)
		name += n;
	return !*name;
}

/* Resolves a recording's name. Returns its path, allocated, or NULL with *err set: a name that leads out of the
 * served directory is refused. */
static char *recording_path(const struct mcp_answers *a, const char *recording, struct error *err)
{
	const int fd = is_served_name(recording) ? open_below(a, recording, O_PATH) : -1;
	char link[40], *real = NULL;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	if (fd >= 0) {
		real = realpath(link, NULL);
		close(fd);
	}
	if (!real)
		error_set(err, STATUS_INPUT, errno == ENOSYS ? "use Linux 5.6 or newer" : "the tool `recordings` lists them",
		          "%s: no such recording", recording);
	return real;
}

/* Computes a hash of the names, inodes, sizes and times of a recording's files: another one means that it was replaced or
 * changed. Returns -1 with *err set if a link in it leads out of the served directory. */
static int recording_state(const struct mcp_answers *a, char *path, uint64_t *state, struct error *err)
{
	char *roots[] = { path, NULL };
	FTS *fts = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, NULL);
	const size_t n = strlen(a->real);
	int rc = 0;
	*state = 0;
	for (FTSENT *e; fts && rc == 0 && (e = fts_read(fts));) {
		struct stat own;
		if (e->fts_info == FTS_DP || lstat(e->fts_path, &own))
			continue;
		char *real = S_ISLNK(own.st_mode) ? realpath(e->fts_path, NULL) : NULL;
		if (real && n > 1 && (strncmp(real, a->real, n) != 0 || (real[n] && real[n] != '/')))
			rc = error_set(err, STATUS_INPUT, "copy the files into it", "%s: this link leads out of the served directory",
			               e->fts_path);
		free(real);
		const struct stat *st = e->fts_info == FTS_SLNONE || e->fts_info == FTS_NS ? &own : e->fts_statp;
		const uint64_t facts[] = { st->st_dev, st->st_ino, (uint64_t)st->st_size, (uint64_t)st->st_mtim.tv_sec,
			(uint64_t)st->st_mtim.tv_nsec, (uint64_t)st->st_ctim.tv_sec, (uint64_t)st->st_ctim.tv_nsec };
		*state += hash_text(hash_bytes(HASH_BEGIN, facts, sizeof facts), e->fts_path);  /* in any order */
	}
	if (fts)
		fts_close(fts);
	return rc;
}

/* Makes a directory for temporary files. Returns its descriptor, or -1 with *err set. */
static int make_temporary(char dir[PATH_MAX], struct error *err)
{
	const char *base = getenv("TMPDIR");
	const int n = snprintf(dir, PATH_MAX, "%s/stealscope-mcp-XXXXXX", base && *base ? base : "/tmp");
	const int fd = n < PATH_MAX && mkdtemp(dir) ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	return fd < 0 ? error_system(err, "set TMPDIR", "cannot make a temporary directory") : fd;
}

/* Indexes a recording into a file without a name. Returns its descriptor, or -1 with *err set. */
static int index_recording(const struct mcp_answers *a, char *path, struct error *err)
{
	char dir[PATH_MAX], file[PATH_MAX + 16], *text, *notes;
	const int tmp = make_temporary(dir, err);
	if (tmp < 0)
		return -1;
	snprintf(file, sizeof file, "%s/h.steal", dir);
	char *argv[] = { (char[]){ "index" }, path, (char[]){ "-o" }, file, NULL };
	const struct captured_limits limits = { { a->root, tmp }, 2, dir };
	int fd = -1, status = captured_command(cmd_index, 4, argv, MCP_SECONDS, &limits, &text, &notes, err);
	if (status == STATUS_OK)
		fd = open(file, O_RDONLY);  /* inherited by the children that read it */
	if (status == STATUS_OK && fd < 0)
		error_system(err, NULL, "cannot open the history");
	else if (status > 0)
		error_set(err, (enum status)status, NULL, "%.*s", (int)strcspn(notes, "\n"), notes);
	unlink(file);
	rmdir(dir);
	close(tmp);
	free(text);
	free(notes);
	return fd;
}

static bool is_history(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && history_is_history_file(path);
}

/* Sets a recording's history. Returns -1 with *err set. */
static int open_history(const struct mcp_answers *a, struct history_file *h, uint64_t state, struct error *err)
{
	const int fd = is_history(h->recording) ? -1 : index_recording(a, h->recording, err);
	if (fd < 0 && !is_history(h->recording))
		return -1;
	if (h->fd >= 0)
		close(h->fd);
	free(h->path);
	h->path = fd < 0 ? mem_dup(h->recording) : mem_printf("/proc/self/fd/%d", fd);
	h->fd = fd;
	h->state = state;
	return 0;
}

char *mcp_history(void *answers, const char *recording, struct error *err)
{
	struct mcp_answers *a = answers;
	struct history_file new = { .recording = recording_path(a, recording, err), .fd = -1 }, *h = NULL;
	uint64_t state;
	if (!new.recording || recording_state(a, new.recording, &state, err)) {
		free(new.recording);
		return NULL;
	}
	for (size_t i = 0; i < a->histories && !h; i++)
		h = strcmp(a->history[i].recording, new.recording) == 0 ? &a->history[i] : NULL;
	if (h)
		free(new.recording);
	if (h ? h->state != state && open_history(a, h, state, err) : open_history(a, &new, state, err)) {
		free(h ? NULL : new.recording);
		return NULL;
	}
	if (!h) {
		new.name = mem_dup(recording);
		a->history = mem_resize(a->history, a->histories + 1, sizeof *a->history);
		h = &a->history[a->histories++];
		*h = new;
	}
	return mem_dup(h->path);
}

/* ---- pages ---- */

/* Returns the end of the page that begins at `begin`: after the last line that fits, or inside a longer line, between two
 * characters. */
static size_t page_end(const char *text, size_t begin, size_t length)
{
	if (length - begin <= MCP_PAGE)
		return length;
	size_t end = begin + MCP_PAGE;
	for (size_t i = end; i > begin; i--)
		if (text[i - 1] == '\n')
			return i;
	while (end > begin + 1 && ((unsigned char)text[end] & 0xc0) == 0x80)
		end--;
	return end;
}

static char *page_text(const struct long_answer *l, size_t begin)
{
	size_t end = page_end(l->text, begin, l->length);
	if (end == l->length)
		return mem_dup(l->text + begin);
	return mem_printf("%.*s[%zu of %zu bytes; continue with handle \"%u:%zu\"]\n", (int)(end - begin), l->text + begin, end,
	                  l->length, l->number, end);
}

char *mcp_continue(struct mcp_answers *a, const char *handle, struct error *err)
{
	unsigned number;
	size_t begin;
	char rest;
	if (sscanf(handle, "%u:%zu%c", &number, &begin, &rest) != 2 || !number)
		goto unknown;
	struct long_answer *l = &a->kept[number % MCP_KEPT];
	if (l->number != number || begin >= l->length || ((unsigned char)l->text[begin] & 0xc0) == 0x80)
		goto unknown;
	return page_text(l, begin);
unknown:
	error_set(err, STATUS_USAGE, "call the tool again", "%s: no such handle; the last %d long answers are kept", handle,
	          (int)MCP_KEPT);
	return NULL;
}

/* Writes `text` with the path of a descriptor replaced by the recording's name. In JSON, slashes are escaped. */
static char *replace_path(char *text, const char *path, const char *name)
{
	size_t n = strlen(path), length;
	char *result, *found = strstr(text, path);
	if (!found)
		return text;
	FILE *f = open_memstream(&result, &length);
	if (!f)
		abort();
	char *from = text;
	for (; found; found = strstr(found + n, path))
		if (found[n] < '0' || found[n] > '9') {
			fprintf(f, "%.*s%s", (int)(found - from), from, name);
			from = found + n;
		}
	fputs(from, f);
	fclose(f);
	free(text);
	return result;
}

static char *name_recordings(const struct mcp_answers *a, char *text)
{
	for (size_t i = 0; i < a->histories; i++) {
		const struct history_file *h = &a->history[i];
		char *escaped = mem_new(2 * strlen(h->path) + 1, 1), *to = escaped;
		for (const char *c = h->path; *c; c++) {
			if (*c == '/')
				*to++ = '\\';
			*to++ = *c;
		}
		text = replace_path(replace_path(text, h->path, h->name), escaped, h->name);
		free(escaped);
	}
	return text;
}

/* Returns the first page of an answer, whose text is taken over. */
static char *first_page(struct mcp_answers *a, char *text)
{
	size_t length = strlen(text);
	if (length <= MCP_PAGE)
		return text;
	unsigned number = ++a->number;
	struct long_answer *l = &a->kept[number % MCP_KEPT];
	free(l->text);
	*l = (struct long_answer){ number, text, length };
	return page_text(l, 0);
}

/* Replaces a text by that of a file, if it can be read. */
static void read_picture(const char *file, char **text)
{
	size_t length;
	const int fd = open(file, O_RDONLY | O_CLOEXEC);
	char *picture = fd < 0 ? NULL : captured_file(fd, &length);
	if (fd >= 0)
		close(fd);
	if (!picture)
		return;
	free(*text);
	*text = picture;
}

/* Runs a command on histories: it reads these, and what lies in the served directory. picture: with "-o FILE", whose text
 * becomes the answer. */
static int run_limited(const struct mcp_answers *a, int (*run)(int, char **, struct error *), int argc, char **argv,
                       bool picture, char **text, char **notes, struct error *err)
{
	char dir[PATH_MAX], file[PATH_MAX + 16], output[] = "-o";
	const int tmp = make_temporary(dir, err);
	if (tmp < 0)
		return -1;
	snprintf(file, sizeof file, "%s/picture.txt", dir);
	char **all = mem_new((size_t)argc + 3, sizeof *all);
	memcpy(all, argv, (size_t)argc * sizeof *all);
	struct captured_limits limits = { { a->root, tmp }, 2, dir };
	for (size_t i = 0; i < a->histories; i++)
		for (int k = 1; k < argc && limits.n < sizeof limits.fd / sizeof *limits.fd; k++)
			if (a->history[i].fd >= 0 && strcmp(argv[k], a->history[i].path) == 0)
				limits.fd[limits.n++] = a->history[i].fd;
	if (picture) {
		all[argc++] = output;
		all[argc++] = file;
	}
	const int status = captured_command(run, argc, all, MCP_SECONDS, &limits, text, notes, err);
	if (picture && status == STATUS_OK)
		read_picture(file, text);
	unlink(file);
	rmdir(dir);
	close(tmp);
	free(all);
	return status;
}

char *mcp_run(struct mcp_answers *a, int (*run)(int, char **, struct error *), int argc, char **argv, bool picture,
              bool *failed, struct error *err)
{
	char *text, *notes;
	int status = run_limited(a, run, argc, argv, picture, &text, &notes, err);
	if (status < 0)
		return NULL;
	*failed = status != STATUS_OK;
	char *answer = mem_printf("%s%s%s", text, *text && *notes ? "\n" : "", notes);
	free(text);
	free(notes);
	return first_page(a, name_recordings(a, answer));
}

/* ---- list of recordings ---- */

/* Finds the recordings to serve; the directory itself, ".", is one unless it holds several. */
static void find_recordings(const struct mcp_answers *a, struct recordings *found)
{
	size_t n = 0;
	uint64_t state;
	recordings_find(found, a->real, 1, NULL);
	for (size_t i = 0; i < found->len; i++) {
		const int fd = is_served_name(found->item[i].name) ? open_below(a, found->item[i].name, O_PATH) : -1;
		if (fd < 0) {
			free(found->item[i].path);
			continue;
		}
		close(fd);
		found->item[n++] = found->item[i];
	}
	found->len = n;
	if (n < 2 && recording_state(a, a->real, &state, NULL) == 0 && recording_is_here(a->real))
		*ARRAY_PUSH(found->item, found->len, found->cap) =
			(struct recording_entry){ .path = mem_dup(a->real), .name = ".", .fingerprint = state };
}

/* Reads one recording for its line. Keeps no history that the agent did not ask for. */
static void read_line(struct mcp_answers *a, struct recording_lines *lines, size_t i)
{
	struct error err = ERROR_INIT;
	const size_t before = a->histories;
	char *text = NULL, *notes = NULL, *path = mcp_history(a, lines->line[i].recording->name, &err);
	char *argv[] = { "summary", path, "--format", "json", "--top", "1", NULL };
	if (path && run_limited(a, cmd_summary, 6, argv, false, &text, &notes, &err) > 0)
		error_set(&err, STATUS_INPUT, NULL, "%s", notes);
	recording_lines_take(lines, i, err.text[0] ? err.text : text);
	if (a->histories > before)
		drop_last_history(a);
	free(path);
	free(text);
	free(notes);
}

char *mcp_recordings(struct mcp_answers *a)
{
	struct recordings found = { 0 };
	struct recording_lines lines;
	char *text;
	size_t length;
	FILE *f = open_memstream(&text, &length);
	if (!f)
		abort();
	find_recordings(a, &found);
	recording_lines_begin(&lines, a->real, &found);
	const int64_t end = now_ns() + MCP_LIST_SECONDS * INT64_C(1000000000);
	for (size_t i = 0; i < lines.lines && now_ns() < end; i++)
		if (!lines.line[i].shown.read)
			read_line(a, &lines, i);
	recording_lines_print(&lines, f);
	if (lines.unread)
		fprintf(f, "%zu recordings were not read yet; call `recordings` again\n", lines.unread);
	fclose(f);
	recording_lines_end(&lines);
	recordings_release(&found);
	return first_page(a, text);
}
