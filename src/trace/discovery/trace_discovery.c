/* Search for traces: passes every file below a directory to the readers, and collects the locations that they claim. */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/base.h"
#include "base/hash.h"
#include "trace/ctf/ctf.h"
#include "trace/internal.h"
#include "trace/live/live.h"
#include "trace/perf/perf.h"
#include "trace/text/text_reader.h"

#define REMEDY "name the directory that contains the trace's 'metadata'; record with `lttng create` and `lttng start`, " \
	"or with `perf record -a`"
#define EXAMINE_ALL_MAX 4096  /* Files that are examined whatever their names; after these, only files with
                              * typical names are examined. */
#define FILES_MAX 100000  /* files without a trace after which the search fails: the directory is probably the
                           * wrong one */

/* Known kinds of files that no reader can read; they explain why no trace was found. */
#define TRACECMD_EXTENSION ".dat"  /* extension of trace-cmd's files, each of which belongs to one machine */
#define PERF_NAME "perf.data"
#define PERF_EXTENSION ".data"
#define PACKED "unpack it, or name this file itself"
#define OLD_EXTENSION ".old"  /* added by perf to the name of the previous recording, which is read only if named */

static const struct known_kind {
	const char *name;  /* file name, or extension (".dat"); NULL: any */
	const char *head;
	size_t len;
	bool is_trace;     /* the file belongs to a machine's trace */
	const char *why, *remedy;
} known_kinds[] = {  /* in order of priority: the first match determines the error message */
	{ "metadata", "{", 1, true, "JSON, but not CTF 2 metadata: its fragments have no separators", "record CTF 1.8 or 2" },
	{ "metadata", "[", 1, true, "JSON, but not CTF 2 metadata: its fragments have no separators", "record CTF 1.8 or 2" },
	{ PERF_NAME, "", 0, true, "named like a file of perf, but empty, damaged, or not a regular file",
	  "copy the file again after perf has finished" },
	{ PERF_NAME OLD_EXTENSION, "PERFILE2", 8, true, "the previous recording, which perf keeps under this name",
	  "rename it if it is the one to read" },
	{ NULL, "PERFILE2", 8, true, "a perf.data file, but this stealscope was built without libtraceevent",
	  "install libtraceevent-dev and rebuild, or use perf data convert --to-ctf DIR" },
	{ NULL, "2ELIFREP", 8, true, "a perf.data file, but this stealscope was built without libtraceevent",
	  "install libtraceevent-dev and rebuild" },
	{ NULL, "\x17\x08\x44tracing", 10, true, "a trace-cmd file, but this stealscope was built without libtraceevent",
	  "install libtraceevent-dev and rebuild, or record with perf and use perf data convert --to-ctf" },
	{ "header_page", "\tfield: u64 tim", 15, true,
	  "a recording of stealscope, but this stealscope was built without libtraceevent",
	  "install libtraceevent-dev and rebuild" },
	{ NULL, "\xc1\x1f\xfc\xc1", 4, true, "a CTF stream without the trace's metadata",
	  "copy the whole directory of the trace, including the file 'metadata'" },
	{ NULL, "\xc1\xfc\x1f\xc1", 4, true, "a CTF stream without the trace's metadata",
	  "copy the whole directory of the trace, including the file 'metadata'" },
	{ "metadata", "", 0, true,
	  "not the metadata of a CTF trace: empty, damaged, not a regular file, or of an unsupported version",
	  "copy the whole trace again" },
	{ TRACECMD_EXTENSION, "", 0, true, "named like a trace-cmd file, but empty, damaged, or not a regular file",
	  "copy the file again after trace-cmd has finished" },
	{ NULL, "\x1f\x8b", 2, true, "compressed with gzip", PACKED },
	{ NULL, "\x28\xb5\x2f\xfd", 4, true, "compressed with zstd", PACKED },
	{ NULL, "\xfd" "7zXZ", 5, true, "compressed with xz", PACKED },
	{ NULL, "PK\x03\x04", 4, true, "a zip archive", PACKED },
	{ NULL, "{\"traceEvents\"", 14, true, "slices for Chrome's viewer of traces, without events of the kernel",
	  "record with Perfetto and its data source linux.ftrace, or with perf record -a -e sched:sched_switch ..." },
	{ NULL, "{\"resourceSpans\"", 16, true, "spans of distributed tracing, not a trace of a kernel",
	  "use it with a recording: stealscope latency requests --spans FILE RECORDING" },
	{ NULL, "<!DOCTYPE html", 14, true, "a page without events of the kernel", "save the trace itself" },
	{ NULL, "\x89STLH", 5, false, "a history, not a trace", "open that file, or the traces it was built from" },
};
enum { KNOWN_KINDS = sizeof known_kinds / sizeof *known_kinds };

struct location_search {
	struct trace_location **list;
	size_t *n, cap;
	struct map seen;         /* hash of device and inode -> index + 1 of the location */
	size_t files;
	char *unreadable;        /* path of the first unreadable file or directory; NULL: none */
	int unreadable_errno;
	/* files of a known kind that no reader can read, the first of each kind per directory */
	struct unread { char *path; const struct known_kind *known_kind; } *unread;
	size_t unreads, unread_cap;
};

static void search_release(struct location_search *f)
{
	free(f->unreadable);
	for (size_t i = 0; i < f->unreads; i++)
		free(f->unread[i].path);
	free(f->unread);
	map_release(&f->seen);
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static uint64_t *seen_slot(struct location_search *f, dev_t device, ino_t inode)
{
	return map_put(&f->seen, hash_number(hash_number(0, device), inode), NULL);
}

static void add_location(struct location_search *f, const FTSENT *e, const struct trace_reader *reader, enum claim claim)
{
	const struct stat *st = e->fts_statp;
	uint64_t *seen = seen_slot(f, st->st_dev, st->st_ino);
	if (*seen && (*f->list)[*seen - 1].device == st->st_dev && (*f->list)[*seen - 1].inode == st->st_ino)
		return;
	*seen = *f->n + 1;
	*f->list = array_grow(*f->list, &f->cap, *f->n, sizeof **f->list);
	struct trace_location *p = &(*f->list)[(*f->n)++];
	*p = (struct trace_location){ .reader = reader, .path = mem_dup(e->fts_path), .is_file = claim == CLAIM_FILE,
		.device = st->st_dev, .inode = st->st_ino };
	if (claim == CLAIM_DIR)
		p->path[strlen(p->path) - e->fts_namelen - 1] = '\0';
}

/* Stores the first unreadable file; a failure of the system takes precedence over missing permissions. */
static void record_unreadable(struct location_search *f, const char *path, int why)
{
	if (f->unreadable && (errno_is_system(f->unreadable_errno) || !errno_is_system(why)))
		return;
	free(f->unreadable);
	f->unreadable = mem_dup(path);
	f->unreadable_errno = why;
}

static size_t dir_length(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? (size_t)(slash - path) : 0;
}

static bool same_dir(const char *a, const char *b)
{
	const size_t len = dir_length(a);
	return len == dir_length(b) && memcmp(a, b, len) == 0;
}

static bool has_extension(const char *name, const char *end)
{
	const size_t len = strlen(name), n = strlen(end);
	return len > n && strcmp(name + len - n, end) == 0;
}

static bool matches_name(const char *name, const struct known_kind *c)
{
	return !c->name || strcmp(c->name, name) == 0 || (c->name[0] == '.' && has_extension(name, c->name));
}

static bool is_machine_file(const struct known_kind *c)
{
	return c->name && c->name[0] == '.';
}

static void add_known_file(struct location_search *f, const FTSENT *e, const unsigned char *head, size_t len)
{
	const struct known_kind *c = known_kinds;
	while (c < known_kinds + KNOWN_KINDS &&
	       (!matches_name(e->fts_name, c) || len < c->len || memcmp(head, c->head, c->len) != 0))
		c++;
	if (c == known_kinds + KNOWN_KINDS || (c->name && e->fts_level == 0))
		return;
	for (size_t i = f->unreads; !is_machine_file(c) && i-- && same_dir(f->unread[i].path, e->fts_path);)
		if (f->unread[i].known_kind == c)
			return;
	*ARRAY_PUSH(f->unread, f->unreads, f->unread_cap) = (struct unread){ mem_dup(e->fts_path), c };
}

static bool has_typical_name(const char *name)
{
	return strcmp(name, "metadata") == 0 || strcmp(name, "header_page") == 0 || has_extension(name, TRACECMD_EXTENSION) ||
	       has_extension(name, PERF_EXTENSION);
}

static bool is_previous(const FTSENT *e)
{
	return e->fts_level > 0 && has_extension(e->fts_name, PERF_EXTENSION OLD_EXTENSION);
}

static void examine_file(struct location_search *f, const FTSENT *e)
{
	unsigned char head[CLAIM_HEAD] = { 0 };
	const int fd = open(e->fts_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const ssize_t got = fd < 0 ? -1 : pread(fd, head, sizeof head, 0);
	if (got < 0 && (has_typical_name(e->fts_name) || errno_is_system(errno)))
		record_unreadable(f, e->fts_path, errno);
	if (fd >= 0)
		close(fd);
	if (got < 0)
		return;
	const size_t len = (size_t)got;
	for (const struct trace_reader *const *r = readers; *r && !is_previous(e); r++) {
		const enum claim claim = (*r)->claims(e->fts_name, head, len);
		if (claim == CLAIM_NONE || (claim == CLAIM_DIR && e->fts_level == 0))
			continue;
		add_location(f, e, *r, claim);
		return;
	}
	if (e->fts_level == 0 && text_reader_finds_event(e->fts_accpath))
		add_location(f, e, &text_reader, CLAIM_FILE);
	else
		add_known_file(f, e, head, len);
}

/* Returns true for a virtual file system of the kernel: reading there may consume data, and the directory of each
 * process leads to the whole disk. */
static bool is_kernel_fs(const FTSENT *e)
{
	static const unsigned long magics[] = { PROC_SUPER_MAGIC, SYSFS_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC, SECURITYFS_MAGIC,
		CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, PSTOREFS_MAGIC, BPF_FS_MAGIC };
	const bool is_same = e->fts_level > 0 && e->fts_statp->st_dev == e->fts_parent->fts_statp->st_dev;
	struct statfs fs;
	if (is_same || statfs(e->fts_accpath, &fs))
		return false;
	for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
		if ((unsigned long)fs.f_type == magics[i])
			return true;
	return false;
}

static bool has_location_below(const struct location_search *f, const char *dir)
{
	const size_t len = strlen(dir);
	for (size_t i = 0; i < *f->n; i++)
		if (strncmp((*f->list)[i].path, dir, len) == 0)
			return true;
	return false;
}

/* Records a pipe, socket, device or directory that has a trace file's name: the trace of that machine is missing. */
static void note_special_file(struct location_search *f, const FTSENT *e)
{
	if (e->fts_level > 0 && has_typical_name(e->fts_name))
		add_known_file(f, e, (const unsigned char *)"", 0);
}

static void visit_entry(struct location_search *f, const FTSENT *e)
{
	if (e->fts_info == FTS_DNR || e->fts_info == FTS_ERR || e->fts_info == FTS_NS)
		record_unreadable(f, e->fts_path, e->fts_errno);
	if (e->fts_info == FTS_SLNONE && has_typical_name(e->fts_name))
		record_unreadable(f, e->fts_path, ENOENT);
	if (e->fts_info == FTS_DEFAULT || (e->fts_info == FTS_DP && !has_location_below(f, e->fts_path)) ||
	    e->fts_info == FTS_DC)
		note_special_file(f, e);
	if (e->fts_info != FTS_F)
		return;
	f->files++;
	if (f->files <= EXAMINE_ALL_MAX || has_typical_name(e->fts_name))
		examine_file(f, e);
}

static int fail_no_trace(const char *root, const struct location_search *f, struct error *err)
{
	if (f->unreadable) {
		errno = f->unreadable_errno;
		return error_read(err, "check the path, or make it readable for you", "%s", f->unreadable);
	}
	const struct unread *first = NULL;
	for (size_t i = 0; i < f->unreads; i++)
		if (!first || f->unread[i].known_kind < first->known_kind)
			first = &f->unread[i];
	if (first)
		return error_set(err, STATUS_INPUT, first->known_kind->remedy, "%s: %s", first->path, first->known_kind->why);
	return error_set(err, STATUS_INPUT, REMEDY, "%s: %s", root,
	                 f->files ? "contains no trace" : "empty directory, no trace");
}

static int walk_tree(const char *root, struct location_search *f, struct error *err)
{
	char *const paths[] = { (char *)root, NULL };
	FTS *fts = fts_open(paths, FTS_LOGICAL | FTS_NOCHDIR, by_name);
	if (!fts)
		return error_system(err, NULL, "%s", root);
	const size_t first = *f->n;
	errno = 0;
	for (FTSENT *e; (e = fts_read(fts)) && (f->files < FILES_MAX || *f->n > first); errno = 0) {
		if (!is_kernel_fs(e)) {
			visit_entry(f, e);
			continue;
		}
		f->files++;  /* counted, although not examined */
		fts_set(fts, e, FTS_SKIP);
	}
	const bool gave_up = f->files >= FILES_MAX && *f->n == first;
	if (errno && !gave_up)
		record_unreadable(f, root, errno);
	fts_close(fts);
	return !gave_up ? 0 : error_set(err, STATUS_INPUT, "name the directory that contains the traces",
		"%s: no trace among the first %d files", root, FILES_MAX);
}

/* Returns true if the file should be reported: the directory contains no trace that is read instead, and no other report
 * explains the file. */
static bool is_reportable(const struct location_search *f, const struct unread *s, size_t first)
{
	const size_t len = dir_length(s->path);
	if (!s->known_kind->is_trace || is_machine_file(s->known_kind))
		return s->known_kind->is_trace;
	for (size_t k = first; k < *f->n; k++) {
		const char *path = (*f->list)[k].path;
		if (strncmp(path, s->path, len) == 0 && (path[len] == '/' || !path[len]))
			return false;
	}
	for (const struct unread *other = f->unread; other < f->unread + f->unreads && !s->known_kind->name; other++)
		if (other->known_kind->name && same_dir(other->path, s->path))
			return false;
	return true;
}

/* Adds a note for each file that looks like a machine's trace but cannot be read. */
static void note_known_files(const struct location_search *f, size_t first, struct notes *notes)
{
	for (const struct unread *s = f->unread; s < f->unread + f->unreads; s++)
		if (is_reportable(f, s, first))
			note_add(notes, FILE_SKIPPED, NULL, s->path, s->known_kind->why, s->known_kind->remedy);
}

void location_release(struct trace_location *p)
{
	if (p->reader->forget)
		p->reader->forget(p);
	free(p->saved_names);
	free(p->path);
}

/* Calls describe() for the locations from index `first` on. If there are several, those that cannot be read are removed
 * with a note. Fails if none is left, unless skip_all is set. */
static int describe_locations(struct location_search *f, size_t first, bool skip_all, struct notes *notes,
                              struct error *err)
{
	struct trace_location *next = *f->list + first, *p = next, *const end = *f->list + *f->n;
	struct error why = ERROR_INIT;
	for (; p < end; p++) {
		if (p->reader->describe(p, &why) == 0) {
			*next++ = *p;
			continue;
		}
		const bool is_last = end - p == 1 + (*f->list + first - next);
		if (why.status != STATUS_INPUT || (is_last && !skip_all))
			break;
		note_add(notes, TRACE_SKIPPED, NULL, why.text, why.remedy);
		why = (struct error)ERROR_INIT;
		location_release(p);
	}
	const bool failed = p < end;
	if (failed && err)
		*err = why;
	while (p < end)
		*next++ = *p++;
	*f->n = (size_t)(next - *f->list);
	return failed ? -1 : 0;
}

/* Returns true if the directory `ctf` is a conversion of the file: perf's CTF in the file's directory, or in a
 * directory beside it that is a guest's not. */
static bool is_conversion(const struct trace_location *ctf, const char *file)
{
	static const char tracer[] = "perf", guest[] = "guest-";
	const size_t dir = dir_length(file), above = dir_length(ctf->path);
	const bool is_beside = above == dir && memcmp(ctf->path, file, dir) == 0 &&
		strncmp(ctf->path + above + 1, guest, sizeof guest - 1) != 0;
	return ctf->reader == &ctf_reader && strncmp(ctf->meta.tracer, tracer, sizeof tracer - 1) == 0 &&
	       (is_beside || (strlen(ctf->path) == dir && memcmp(ctf->path, file, dir) == 0));
}

/* Removes each file of perf, from index `first` on, if its conversion to CTF was found as well. */
static void skip_converted(struct trace_location *list, size_t first, size_t *n, struct notes *notes)
{
	size_t kept = first;
	for (size_t i = first; i < *n; i++) {
		struct trace_location p = list[i];
		bool is_converted = false;
		for (size_t k = first; k < *n && p.reader == &perf_reader && !is_converted; k++)
			is_converted = (k < kept || k > i) && is_conversion(&list[k], p.path);
		if (!is_converted) {
			list[kept++] = p;
			continue;
		}
		if (notes)
			note_add(notes, PERF_CONVERTED, NULL, p.path);
		location_release(&p);
	}
	*n = kept;
}

int find_locations(const char *root, struct trace_location **list, size_t *n, bool skip_all, struct notes *notes,
                   struct error *err)
{
	struct stat st;
	const size_t first = *n, len = trace_is_live(root) ? strlen(root) : trace_path_length(root);
	if (root[len]) {
		char *file = mem_printf("%.*s", (int)len, root);
		const int status = find_locations(file, list, n, skip_all, notes, err);
		free(file);
		return status ? status : select_machine(*list, n, first, root, err);
	}
	if (trace_is_live(root)) {
		*list = mem_resize(*list, first + 1, sizeof **list);
		(*list)[(*n)++] = (struct trace_location){ .reader = &live_reader, .path = mem_dup(root) };
		return live_reader.describe(&(*list)[first], err);
	}
	if (stat(root, &st))
		return error_read(err, "check the path", "%s", root);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return error_set(err, STATUS_INPUT, REMEDY, "%s: neither a directory nor a file", root);
	struct location_search f = { .list = list, .n = n, .cap = *n };
	for (size_t i = 0; i < *n; i++)
		*seen_slot(&f, (*list)[i].device, (*list)[i].inode) = i + 1;
	int status = walk_tree(root, &f, err);
	if (!status && (*n == first || f.unreadable))  /* An analysis without some of the machines would be wrong. */
		status = fail_no_trace(root, &f, err);
	if (!status && notes)
		note_known_files(&f, first, notes);
	if (!status)
		status = describe_locations(&f, first, skip_all, notes, err);
	if (!status) {
		skip_converted(*list, first, n, notes);
		split_locations(list, n, first);
	}
	search_release(&f);
	return status;
}

void locations_free(struct trace_location *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		location_release(&list[i]);
	free(list);
}

bool trace_is_file(const char *path)
{
	struct trace_location *list = NULL;
	size_t n = 0;
	struct stat st;
	struct location_search f = { .list = &list, .n = &n };
	bool is_trace = stat(path, &st) == 0 && S_ISREG(st.st_mode) && walk_tree(path, &f, NULL) == 0 && n > 0;
	for (size_t i = 0; i < f.unreads; i++)
		is_trace = is_trace || f.unread[i].known_kind->is_trace;
	search_release(&f);
	locations_free(list, n);
	return is_trace;
}

static int read_file(const char *path, struct error *err)
{
	static const size_t size = 1 << 20;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char *buf = mem_new(1, size);
	ssize_t n = fd < 0 ? -1 : 1;
	for (off_t at = 0; n > 0; at += n)
		n = pread(fd, buf, size, at);
	const int status = n < 0 ? error_read(err, NULL, "%s", path) : 0;
	if (fd >= 0)
		close(fd);
	free(buf);
	return status;
}

int location_check_readable(const struct trace_location *p, struct error *err)
{
	char *path = mem_printf("%.*s", (int)trace_path_length(p->path), p->path), *const paths[] = { path, NULL };
	FTS *fts = fts_open(paths, FTS_LOGICAL | FTS_NOCHDIR, NULL);
	int status = fts ? 0 : error_system(err, NULL, "%s", path);
	for (FTSENT *e; !status && (e = fts_read(fts));)
		if (e->fts_info == FTS_F)
			status = read_file(e->fts_path, err);
	if (fts)
		fts_close(fts);
	free(path);
	return status;
}

bool location_same_machine(const struct trace_location *a, const struct trace_location *b)
{
	return !a->reader->is_whole_machine && !b->reader->is_whole_machine && metadata_same_machine(&a->meta, &b->meta);
}
