/* Where traces are: every file below a folder is shown to the readers. */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "trace/internal.h"
#include "trace/live/live.h"

#define MEND "give the folder that holds the trace's 'metadata'; record with `lttng create` and `lttng start`, " \
	"or convert with `perf data convert --to-ctf`"
#define MANY 4096  /* files after which only those with usual names are looked at */
#define TOO_MANY 100000  /* files without a trace: this is not the folder that was meant */

/* What no reader reads, but tells why there is no trace. */
#define DAT ".dat"  /* how trace-cmd's files end, each of which is a machine's */

static const struct content {
	const char *name;  /* of the file, or how it ends: ".dat"; NULL: any */
	const char *head;
	size_t len;
	bool is_trace;     /* of some machine */
	const char *why, *mend;
} contents[] = {  /* the first that is found gives the reason */
	{ "metadata", "{", 1, true, "json that is no CTF 2 metadata: its parts are not separated", "record CTF 1.8 or 2" },
	{ "metadata", "[", 1, true, "json that is no CTF 2 metadata: its parts are not separated", "record CTF 1.8 or 2" },
	{ NULL, "PERFILE2", 8, true, "a perf.data file, not a CTF trace", "perf data convert --to-ctf DIR" },
	{ NULL, "\x17\x08\x44tracing", 10, true, "a trace-cmd file; this stealscope was built without libtracecmd",
	  "install libtracecmd-dev and build it again, or record with perf, and perf data convert --to-ctf" },
	{ "header_page", "\tfield: u64 tim", 15, true,
	  "a recording of stealscope; this one was built without libtraceevent", "install libtracecmd-dev and build it again" },
	{ NULL, "\xc1\x1f\xfc\xc1", 4, true, "a CTF stream without the trace's metadata",
	  "copy the whole trace folder, with its file 'metadata'" },
	{ NULL, "\xc1\xfc\x1f\xc1", 4, true, "a CTF stream without the trace's metadata",
	  "copy the whole trace folder, with its file 'metadata'" },
	{ "metadata", "", 0, true, "holds no CTF trace that can be read: it is empty, damaged, or of another version",
	  "copy the whole trace again" },
	{ DAT, "", 0, true, "no trace-cmd file, though it is called like one: it is empty or damaged",
	  "copy the file again, when trace-cmd has ended" },
	{ NULL, "\x89STLH", 5, false, "a history, not a trace", "give that file, or the traces it was made of" },
};
enum { CONTENTS = sizeof contents / sizeof *contents };

struct place_search {
	struct place **list;
	size_t *n, cap;
	struct map seen;         /* device and inode, hashed -> index + 1 of the place */
	size_t files;
	char *unreadable;        /* the first */
	int unreadable_errno;
	struct stray { char *path; const struct content *what; } *stray;  /* the first of each kind in each folder */
	size_t strays, strays_cap;
};

static void find_release(struct place_search *f)
{
	free(f->unreadable);
	for (size_t i = 0; i < f->strays; i++)
		free(f->stray[i].path);
	free(f->stray);
	map_release(&f->seen);
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static uint64_t *seen_at(struct place_search *f, dev_t device, ino_t inode)
{
	return map_put(&f->seen, hash_number(hash_number(0, device), inode), NULL);
}

static void add_place(struct place_search *f, const FTSENT *e, const struct trace_reader *reader, enum claim claim)
{
	const struct stat *st = e->fts_statp;
	uint64_t *seen = seen_at(f, st->st_dev, st->st_ino);
	if (*seen && (*f->list)[*seen - 1].device == st->st_dev && (*f->list)[*seen - 1].inode == st->st_ino)
		return;
	*seen = *f->n + 1;
	*f->list = mem_room(*f->list, &f->cap, *f->n, sizeof **f->list);
	struct place *p = &(*f->list)[(*f->n)++];
	*p = (struct place){ .reader = reader, .path = mem_dup(e->fts_path), .is_file = claim == CLAIM_FILE,
		.device = st->st_dev, .inode = st->st_ino };
	if (claim == CLAIM_FOLDER)
		p->path[strlen(p->path) - e->fts_namelen - 1] = '\0';
}

/* The first; but what the system cannot do comes first. */
static void cannot_read(struct place_search *f, const char *path, int why)
{
	if (f->unreadable && (errno_is_system(f->unreadable_errno) || !errno_is_system(why)))
		return;
	free(f->unreadable);
	f->unreadable = mem_dup(path);
	f->unreadable_errno = why;
}

static size_t folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? (size_t)(slash - path) : 0;
}

static bool same_folder(const char *a, const char *b)
{
	const size_t len = folder_of(a);
	return len == folder_of(b) && memcmp(a, b, len) == 0;
}

static bool ends_in(const char *name, const char *end)
{
	const size_t len = strlen(name), n = strlen(end);
	return len > n && strcmp(name + len - n, end) == 0;
}

static bool is_called(const char *name, const struct content *c)
{
	return !c->name || strcmp(c->name, name) == 0 || (c->name[0] == '.' && ends_in(name, c->name));
}

static bool is_machine(const struct content *c)
{
	return c->name && c->name[0] == '.';
}

static void remember(struct place_search *f, const FTSENT *e, const unsigned char *head, size_t len)
{
	const struct content *c = contents;
	while (c < contents + CONTENTS && (!is_called(e->fts_name, c) || len < c->len || memcmp(head, c->head, c->len) != 0))
		c++;
	if (c == contents + CONTENTS || (c->name && e->fts_level == 0))
		return;
	for (size_t i = f->strays; !is_machine(c) && i-- && same_folder(f->stray[i].path, e->fts_path);)
		if (f->stray[i].what == c)
			return;
	*ARRAY_PUSH(f->stray, f->strays, f->strays_cap) = (struct stray){ mem_dup(e->fts_path), c };
}

static bool has_usual_name(const char *name)
{
	return strcmp(name, "metadata") == 0 || strcmp(name, "header_page") == 0 || ends_in(name, DAT);
}

static void look(struct place_search *f, const FTSENT *e)
{
	unsigned char head[CLAIM_HEAD] = { 0 };
	const int fd = open(e->fts_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const ssize_t got = fd < 0 ? -1 : pread(fd, head, sizeof head, 0);
	if (got < 0 && (has_usual_name(e->fts_name) || errno_is_system(errno)))
		cannot_read(f, e->fts_path, errno);
	if (fd >= 0)
		close(fd);
	if (got < 0)
		return;
	const size_t len = (size_t)got;
	for (const struct trace_reader *const *r = readers; *r; r++) {
		const enum claim claim = (*r)->claims(e->fts_name, head, len);
		if (claim == CLAIM_NONE || (claim == CLAIM_FOLDER && e->fts_level == 0))
			continue;
		add_place(f, e, *r, claim);
		return;
	}
	remember(f, e, head, len);
}

/* Of the kernel's own file systems: reading may take away what is read, and each process there leads to all of the disk. */
static bool is_kernels(const FTSENT *e)
{
	static const unsigned long kernels[] = { PROC_SUPER_MAGIC, SYSFS_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC, SECURITYFS_MAGIC,
		CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, PSTOREFS_MAGIC, BPF_FS_MAGIC };
	const bool is_same = e->fts_level > 0 && e->fts_statp->st_dev == e->fts_parent->fts_statp->st_dev;
	struct statfs of;
	if (is_same || statfs(e->fts_accpath, &of))
		return false;
	for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
		if ((unsigned long)of.f_type == kernels[i])
			return true;
	return false;
}

static void visit(struct place_search *f, const FTSENT *e)
{
	if (e->fts_info == FTS_DNR || e->fts_info == FTS_ERR || e->fts_info == FTS_NS)
		cannot_read(f, e->fts_path, e->fts_errno);
	if (e->fts_info == FTS_SLNONE && has_usual_name(e->fts_name))
		cannot_read(f, e->fts_path, ENOENT);
	if (e->fts_info != FTS_F)
		return;
	f->files++;
	if (f->files <= MANY || has_usual_name(e->fts_name))
		look(f, e);
}

static int refuse_root(const char *root, const struct place_search *f, struct error *err)
{
	if (f->unreadable) {
		errno = f->unreadable_errno;
		return error_read(err, "check the path, or make it readable for you", "%s", f->unreadable);
	}
	const struct stray *first = NULL;
	for (size_t i = 0; i < f->strays; i++)
		if (!first || f->stray[i].what < first->what)
			first = &f->stray[i];
	if (first)
		return error_set(err, STATUS_INPUT, first->what->mend, "%s: %s", first->path, first->what->why);
	return error_set(err, STATUS_INPUT, MEND, "%s: %s", root,
	                 f->files ? "holds no CTF trace" : "an empty folder, no trace");
}

static int walk(const char *root, struct place_search *f, struct error *err)
{
	char *const paths[] = { (char *)root, NULL };
	FTS *fts = fts_open(paths, FTS_LOGICAL | FTS_NOCHDIR, by_name);
	if (!fts)
		return error_system(err, NULL, "%s", root);
	const size_t first = *f->n;
	errno = 0;
	for (FTSENT *e; (e = fts_read(fts)) && (f->files < TOO_MANY || *f->n > first); errno = 0) {
		if (!is_kernels(e)) {
			visit(f, e);
			continue;
		}
		f->files++;  /* not looked at, but not nothing */
		fts_set(fts, e, FTS_SKIP);
	}
	const bool gave_up = f->files >= TOO_MANY && *f->n == first;
	if (errno && !gave_up)
		cannot_read(f, root, errno);
	fts_close(fts);
	return !gave_up ? 0 : error_set(err, STATUS_INPUT, "give the folder that holds the traces",
		"%s: %d files, and no trace among them so far", root, TOO_MANY);
}

/* Is it another form of what is read, or told already? */
static bool is_news(const struct place_search *f, const struct stray *s, size_t first)
{
	const size_t len = folder_of(s->path);
	if (!s->what->is_trace || is_machine(s->what))
		return s->what->is_trace;
	for (size_t k = first; k < *f->n; k++) {
		const char *path = (*f->list)[k].path;
		if (strncmp(path, s->path, len) == 0 && (path[len] == '/' || !path[len]))
			return false;
	}
	for (const struct stray *other = f->stray; other < f->stray + f->strays && !s->what->name; other++)
		if (other->what->name && same_folder(other->path, s->path))
			return false;
	return true;
}

/* Nothing that looks like a machine's trace is passed over in silence. */
static void note_strays(const struct place_search *f, size_t first, struct notes *notes)
{
	for (const struct stray *s = f->stray; s < f->stray + f->strays; s++)
		if (is_news(f, s, first))
			notes_add(notes, NOTE_DAMAGE, NULL, "%s: %s; left out (%s)", s->path, s->what->why, s->what->mend);
}

static void forget(struct place *p)
{
	if (p->reader->forget)
		p->reader->forget(p);
	free(p->saved_names);
	free(p->path);
}

/* Of several, one that cannot be read is left out. */
static int describe_all(struct place_search *f, size_t first, struct notes *notes, struct error *err)
{
	struct place *kept = *f->list + first, *p = kept, *const end = *f->list + *f->n;
	struct error why = ERROR_INIT;
	for (; p < end; p++) {
		if (p->reader->describe(p, &why) == 0) {
			*kept++ = *p;
			continue;
		}
		if (why.status != STATUS_INPUT || end - p == 1 + (*f->list + first - kept))
			break;
		notes_add(notes, NOTE_DAMAGE, NULL, "%s; left out (%s)", why.text, why.mend);
		why = (struct error)ERROR_INIT;
		forget(p);
	}
	const bool failed = p < end;
	if (failed && err)
		*err = why;
	while (p < end)
		*kept++ = *p++;
	*f->n = (size_t)(kept - *f->list);
	return failed ? -1 : 0;
}

int places_find(const char *root, struct place **list, size_t *n, struct notes *notes, struct error *err)
{
	struct stat st;
	const size_t first = *n;
	if (trace_is_live(root)) {
		*list = mem_resize(*list, first + 1, sizeof **list);
		(*list)[(*n)++] = (struct place){ .reader = &live_reader, .path = mem_dup(root) };
		return live_reader.describe(&(*list)[first], err);
	}
	if (stat(root, &st))
		return error_read(err, "check the path", "%s", root);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return error_set(err, STATUS_INPUT, MEND, "%s: neither a folder nor a file", root);
	struct place_search f = { .list = list, .n = n, .cap = *n };
	for (size_t i = 0; i < *n; i++)
		*seen_at(&f, (*list)[i].device, (*list)[i].inode) = i + 1;
	int status = walk(root, &f, err);
	if (!status && (*n == first || f.unreadable))  /* half of the machines would be a wrong answer */
		status = refuse_root(root, &f, err);
	if (!status && notes)
		note_strays(&f, first, notes);
	if (!status)
		status = describe_all(&f, first, notes, err);
	find_release(&f);
	return status;
}

void places_free(struct place *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		forget(&list[i]);
	free(list);
}

bool trace_is_file(const char *path)
{
	struct place *list = NULL;
	size_t n = 0;
	struct stat st;
	struct place_search f = { .list = &list, .n = &n };
	bool is = stat(path, &st) == 0 && S_ISREG(st.st_mode) && walk(path, &f, NULL) == 0 && n > 0;
	for (size_t i = 0; i < f.strays; i++)
		is = is || f.stray[i].what->is_trace;
	find_release(&f);
	places_free(list, n);
	return is;
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

int place_read(const struct place *p, struct error *err)
{
	char *const paths[] = { p->path, NULL };
	FTS *fts = fts_open(paths, FTS_LOGICAL | FTS_NOCHDIR, NULL);
	int status = fts ? 0 : error_system(err, NULL, "%s", p->path);
	for (FTSENT *e; !status && (e = fts_read(fts));)
		if (e->fts_info == FTS_F)
			status = read_file(e->fts_path, err);
	if (fts)
		fts_close(fts);
	return status;
}

bool place_same_machine(const struct place *a, const struct place *b)
{
	return !a->reader->alone && !b->reader->alone && metadata_same_machine(&a->meta, &b->meta);
}
