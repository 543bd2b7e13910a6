/* Which folders hold CTF traces, which files are trace-cmd's, and which of them belong to one machine. */
#include <errno.h>
#include <fts.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "trace/internal.h"
#include "trace/live.h"
#include "trace/tracecmd.h"

#define CTF_MEND "give the folder that holds the trace's 'metadata'; record with `lttng create` and `lttng start`, " \
	"or convert with `perf data convert --to-ctf`"

enum content {
	CONTENT_OTHER, CONTENT_CTF1, CONTENT_CTF2, CONTENT_STREAM, CONTENT_PERF, CONTENT_HISTORY, CONTENT_TRACECMD
};

/* What a file holds, by its first bytes. */
static enum content look(const char *path, bool is_metadata)
{
	unsigned char b[16] = { 0 };
	FILE *f = fopen(path, "rbe");
	if (!f)
		return is_metadata ? CONTENT_CTF1 : CONTENT_OTHER;  /* refused where it is read, with the reason */
	size_t n = fread(b, 1, sizeof b, f);
	fclose(f);
	static const unsigned char packetized_le[] = { 0x57, 0x1d, 0xd1, 0x75 };
	static const unsigned char packetized_be[] = { 0x75, 0xd1, 0x1d, 0x57 };
	static const unsigned char stream_le[] = { 0xc1, 0x1f, 0xfc, 0xc1 }, stream_be[] = { 0xc1, 0xfc, 0x1f, 0xc1 };
	if (is_metadata) {
		if (n && (b[0] == 0x1e || b[0] == '{' || b[0] == '['))
			return CONTENT_CTF2;
		if (!memcmp(b, packetized_le, 4) || !memcmp(b, packetized_be, 4) || !memcmp(b, "/* CTF", 6))
			return CONTENT_CTF1;
		return CONTENT_OTHER;
	}
	if (!memcmp(b, stream_le, 4) || !memcmp(b, stream_be, 4))
		return CONTENT_STREAM;
	if (!memcmp(b, "PERFILE2", 8))
		return CONTENT_PERF;
	if (!memcmp(b, "\x89STLH", 5))
		return CONTENT_HISTORY;
	return !memcmp(b, "\x17\x08\x44tracing", 10) ? CONTENT_TRACECMD : CONTENT_OTHER;
}

struct found {
	size_t files, ctf2;
	char *unreadable, *other[CONTENT_TRACECMD + 1];  /* the first of each */
	int unreadable_errno;
};

static void found_release(struct found *f)
{
	free(f->unreadable);
	for (size_t i = 0; i < sizeof f->other / sizeof *f->other; i++)
		free(f->other[i]);
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* e is the metadata of a CTF trace, or a trace-cmd file. */
static void add_trace(struct ctf_dir **list, size_t *n, size_t *cap, const FTSENT *e, bool is_ctf)
{
	const struct stat *st = e->fts_statp;
	for (size_t i = 0; i < *n; i++)
		if ((*list)[i].device == st->st_dev && (*list)[i].inode == st->st_ino)
			return;
	*list = mem_room(*list, cap, *n, sizeof **list);
	struct ctf_dir *d = &(*list)[(*n)++];
	*d = (struct ctf_dir){ .path = mem_dup(e->fts_path), .device = st->st_dev, .inode = st->st_ino };
	d->is_file = !is_ctf;
	if (is_ctf)
		d->path[strlen(d->path) - strlen("/metadata")] = '\0';
}

static bool is_named_dat(const char *name)
{
	size_t len = strlen(name);
	return len > 4 && strcmp(name + len - 4, ".dat") == 0;
}

static void visit(const FTSENT *e, struct ctf_dir **list, size_t *n, size_t *cap, struct found *found)
{
	if (e->fts_info == FTS_DNR || e->fts_info == FTS_ERR || e->fts_info == FTS_NS) {
		if (!found->unreadable) {
			found->unreadable = mem_dup(e->fts_path);
			found->unreadable_errno = e->fts_errno;
		}
		return;
	}
	if (e->fts_info != FTS_F)
		return;
	found->files++;
	bool is_metadata = strcmp(e->fts_name, "metadata") == 0 && e->fts_level > 0;
	if (!is_metadata && found->files > 4096 && !is_named_dat(e->fts_name))
		return;  /* the others are looked at for a better refusal */
	enum content c = look(e->fts_path, is_metadata);
	if (c == CONTENT_CTF1 || (c == CONTENT_TRACECMD && tracecmd_is_built()))
		add_trace(list, n, cap, e, c == CONTENT_CTF1);
	else if (!found->other[c])
		found->other[c] = mem_dup(e->fts_path);
}

static int refuse_root(const char *root, const struct found *f, struct error *err)
{
	if (f->unreadable) {
		errno = f->unreadable_errno;
		error_system(err, "check the path, or make it readable for you", "%s", f->unreadable);
		err->status = STATUS_INPUT;
		return -1;
	}
	if (f->other[CONTENT_CTF2])
		return error_set(err, STATUS_INPUT, "record CTF 1.8, or convert it with babeltrace2 2.1 or later",
		                 "%s: CTF 2 metadata: libbabeltrace2 2.0 cannot read it", f->other[CONTENT_CTF2]);
	if (f->other[CONTENT_PERF])
		return error_set(err, STATUS_INPUT, "perf data convert --to-ctf DIR",
		                 "%s: a perf.data file, not a CTF trace", f->other[CONTENT_PERF]);
	if (f->other[CONTENT_TRACECMD])
		return error_set(err, STATUS_INPUT, "build it with libtracecmd, or record with LTTng",
		                 "%s: a trace-cmd file; this stealscope was built without libtracecmd", f->other[CONTENT_TRACECMD]);
	if (f->other[CONTENT_STREAM])
		return error_set(err, STATUS_INPUT, "copy the whole trace folder, with its file 'metadata'",
		                 "%s: a CTF stream without the trace's metadata", f->other[CONTENT_STREAM]);
	if (f->other[CONTENT_HISTORY])
		return error_set(err, STATUS_INPUT, "give that file, or the traces it was made of", "%s: a history, not a trace",
		                 f->other[CONTENT_HISTORY]);
	return error_set(err, STATUS_INPUT, CTF_MEND, "%s: %s", root,
	                 f->files ? "holds no CTF trace" : "an empty folder, no trace");
}

static uint64_t folder_bytes(const char *path)
{
	char *const paths[] = { (char *)path, NULL };
	uint64_t bytes = 0;
	FTS *fts = fts_open(paths, FTS_LOGICAL | FTS_NOCHDIR, NULL);
	for (FTSENT *e; fts && (e = fts_read(fts));)
		if (e->fts_info == FTS_F)
			bytes += (uint64_t)e->fts_statp->st_size;
	if (fts)
		fts_close(fts);
	return bytes;
}

void ctf_dirs_free(struct ctf_dir *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		dat_free(list[i].dat);
		free(list[i].path);
	}
	free(list);
}

static int describe_file(struct ctf_dir *d, struct error *err)
{
	d->dat = dat_read(d->path, err);
	if (!d->dat)
		return -1;
	d->bytes = d->dat->bytes;
	snprintf(d->meta.hostname, sizeof d->meta.hostname, "%s", d->dat->hostname);
	snprintf(d->meta.tracer, sizeof d->meta.tracer, "%s", d->dat->tracer);
	if (d->dat->id)
		snprintf(d->meta.uuid, sizeof d->meta.uuid, "%016" PRIx64, d->dat->id);
	return 0;
}

static int describe(struct ctf_dir *d, struct error *err)
{
	if (d->is_file)
		return describe_file(d, err);
	d->bytes = folder_bytes(d->path);
	return metadata_read(d->path, &d->meta, err);
}

int ctf_find(const char *root, struct ctf_dir **list, size_t *n, struct error *err)
{
	struct stat st;
	if (stat(root, &st)) {
		error_system(err, "check the path", "%s", root);
		err->status = STATUS_INPUT;
		return -1;
	}
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return error_set(err, STATUS_INPUT, CTF_MEND, "%s: neither a folder nor a file", root);
	char *const paths[] = { (char *)root, NULL };
	FTS *fts = fts_open(paths, FTS_LOGICAL | FTS_NOCHDIR, by_name);
	if (!fts)
		return error_system(err, NULL, "%s", root);
	struct found found = { 0 };
	size_t first = *n, cap = *n;
	for (FTSENT *e; (e = fts_read(fts));)
		visit(e, list, n, &cap, &found);
	fts_close(fts);
	int status = 0;
	if (*n == first || found.unreadable)  /* half of the machines would be a wrong answer */
		status = refuse_root(root, &found, err);
	for (size_t i = first; i < *n && !status; i++)
		status = describe(&(*list)[i], err);
	found_release(&found);
	return status;
}

bool ctf_same_machine(const struct ctf_dir *a, const struct ctf_dir *b)
{
	return !a->is_file && !b->is_file && metadata_same_machine(&a->meta, &b->meta);
}

/* The deepest folder that holds both paths, as the length of the prefix of a. */
static size_t common_folder(const char *a, const char *b)
{
	size_t slash = 0, i = 0;
	for (; a[i] && a[i] == b[i]; i++)
		if (a[i] == '/')
			slash = i;
	if ((!a[i] && (!b[i] || b[i] == '/')) || (!b[i] && a[i] == '/'))
		return i;
	return slash;
}

static bool is_below(const char *path, const char *dir, size_t len)
{
	return strncmp(path, dir, len) == 0 && (path[len] == '/' || !path[len]);
}

/* May machine of dir[i] be given as the folder dir[i].path[0..len)?  Only if no other machine's trace lies there. */
static bool folder_is_own(const struct ctf_dir *dir, size_t n, size_t i, size_t len)
{
	for (size_t j = 0; j < n; j++)
		if (!ctf_same_machine(&dir[i], &dir[j]) && is_below(dir[j].path, dir[i].path, len))
			return false;
	return len > 0;
}

int trace_discover(const char *root, struct trace_spec **spec, size_t *n, struct error *err)
{
	struct ctf_dir *dir = NULL;
	size_t dirs = 0, cap = *n;
	if (trace_is_live(root))
		return live_discover(root, spec, n, err);
	if (ctf_find(root, &dir, &dirs, err)) {
		ctf_dirs_free(dir, dirs);
		return -1;
	}
	bool *taken = mem_new(dirs, sizeof *taken);
	for (size_t i = 0; i < dirs; i++) {
		if (taken[i])
			continue;
		size_t len = strlen(dir[i].path);
		for (size_t j = i + 1; j < dirs; j++) {
			if (taken[j] || !ctf_same_machine(&dir[i], &dir[j]))
				continue;
			size_t both = common_folder(dir[i].path, dir[j].path);
			both = both < len ? both : len;
			if (!folder_is_own(dir, dirs, i, both))
				continue;
			len = both;
			taken[j] = true;
		}
		for (size_t j = i + 1; j < dirs; j++)
			taken[j] |= is_below(dir[j].path, dir[i].path, len);
		*spec = mem_room(*spec, &cap, *n, sizeof **spec);
		(*spec)[(*n)++] = (struct trace_spec){ .dir = mem_printf("%.*s", (int)len, dir[i].path) };
	}
	free(taken);
	ctf_dirs_free(dir, dirs);
	return 0;
}

void trace_specs_free(struct trace_spec *spec, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free((char *)spec[i].dir);
	free(spec);
}
