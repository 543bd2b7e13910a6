/* Finds the recordings in a directory by names and a few bytes, without reading traces. See index.h.
 *
 * A recording has a session file, or the traces of several machines. A directory with the trace of one machine is a
 * recording only beside recordings of these kinds, or if LTTng named it by date: otherwise its neighbours are the other
 * machines of one recording. Cost: a few system calls per file down to the third level. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/base.h"
#include "base/hash.h"
#include "index/index.h"
#include "index/session.h"

#define DEPTH 3  /* levels of directories below a machine's directory in which its trace is searched */
#define FILES_MAX 200000  /* files examined in all: a search from a file system's root ends */

struct entry { char *path; mode_t type; };  /* S_IFDIR, S_IFREG, or another type */

struct folder {
	struct entry *entry;
	size_t entries, cap;
};

/* A search; at_least: number of recordings below which none is listed; files: number that may still be examined. */
struct search { struct recordings *out; size_t at_least, files; };

static void folder_release(struct folder *f)
{
	for (size_t i = 0; i < f->entries; i++)
		free(f->entry[i].path);
	free(f->entry);
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->path, ((const struct entry *)b)->path);
}

/* Returns the type of a file; of a link, that of its target; 0: it does not exist. */
static mode_t type_of(int dir, const struct dirent *d)
{
	struct stat st;
	if (d->d_type == DT_DIR || d->d_type == DT_REG)
		return d->d_type == DT_DIR ? S_IFDIR : S_IFREG;
	return fstatat(dir, d->d_name, &st, 0) == 0 ? st.st_mode & S_IFMT : 0;
}

/* Reads the names in a directory, without hidden ones, sorted. Returns 0, or -1 with errno set. */
static int folder_read(struct search *s, struct folder *f, const char *path)
{
	const size_t len = strlen(path);
	DIR *dir = opendir(path);
	*f = (struct folder){ 0 };
	if (!dir)
		return -1;
	for (struct dirent *d; s->files && (d = readdir(dir)); s->files--) {
		const mode_t type = d->d_name[0] == '.' ? 0 : type_of(dirfd(dir), d);
		if (type)
			*ARRAY_PUSH(f->entry, f->entries, f->cap) =
				(struct entry){ mem_printf("%s%s%s", path, len && path[len - 1] == '/' ? "" : "/", d->d_name), type };
	}
	closedir(dir);
	ARRAY_SORT(f->entry, f->entries, compare_paths);
	return 0;
}

static bool has_file(const char *dir, const char *name)
{
	struct stat st;
	char *path = mem_printf("%s/%s", dir, name);
	const bool found = stat(path, &st) == 0;
	free(path);
	return found;
}

static bool has_session_file(const char *dir)
{
	char *session = find_session_file(dir);
	free(session);
	return session != NULL;
}

/* Returns true if the directory is the trace of one machine: CTF, or the parts that LTTng makes of it. */
static bool is_machine(const char *dir)
{
	return has_file(dir, "metadata") || has_file(dir, "kernel/metadata") || has_file(dir, "ust");
}

static bool is_trace_file(const struct entry *e)
{
	return e->type == S_IFREG && !history_is_history_file(e->path) && trace_is_file(e->path);
}

/* Returns true if a trace is in the directory or, down to `depth` levels, below it. */
static bool contains_trace(struct search *s, const char *dir, unsigned depth)
{
	struct folder f;
	if (is_machine(dir))
		return true;
	if (folder_read(s, &f, dir))
		return false;
	bool found = false;
	for (size_t i = 0; i < f.entries && !found; i++)
		found = is_trace_file(&f.entry[i]) ||
		        (depth && f.entry[i].type == S_IFDIR && contains_trace(s, f.entry[i].path, depth - 1));
	folder_release(&f);
	return found;
}

/* Returns true if the name ends in LTTng's -YYYYMMDD-HHMMSS. */
static bool is_named_by_date(const char *name)
{
	static const char form[] = "-00000000-000000";
	const size_t n = strlen(name);
	for (size_t i = 0; i < sizeof form - 1; i++) {
		const char c = n >= sizeof form - 1 ? name[n - (sizeof form - 1) + i] : '\0';
		if (form[i] == '0' ? !isdigit((unsigned char)c) : c != form[i])
			return false;
	}
	return true;
}

enum strength { NO_RECORDING, ONE_MACHINE, RECORDING };

static size_t count_machines(struct search *s, const struct folder *f)
{
	size_t machines = 0;
	for (size_t i = 0; i < f->entries && machines < 2; i++)
		machines += is_trace_file(&f->entry[i]) ||
		            (f->entry[i].type == S_IFDIR && contains_trace(s, f->entry[i].path, DEPTH));
	return machines;
}

/* Classifies a directory without a session file that holds the traces of so many machines. */
static enum strength classify_dir(const char *path, size_t machines)
{
	const char *slash = strrchr(path, '/');
	return machines > 1 || (machines && is_named_by_date(slash ? slash + 1 : path)) ? RECORDING
	       : machines ? ONE_MACHINE : NO_RECORDING;
}

static enum strength classify_file(const struct entry *e)
{
	if (e->type != S_IFREG)
		return NO_RECORDING;
	return history_is_history_file(e->path) ? RECORDING : trace_is_file(e->path) ? ONE_MACHINE : NO_RECORDING;
}

/* Adds what changes with a file. A cached history beside the traces does not count: reading a recording may write it. */
static void add_file(struct recording_entry *r, const struct entry *e)
{
	struct stat st;
	if (strcmp(strrchr(e->path, '/') + 1, CACHE_NAME) == 0 || e->type != S_IFREG || stat(e->path, &st))
		return;
	const int64_t modified = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	r->modified = modified > r->modified ? modified : r->modified;
	r->fingerprint = hash_text(r->fingerprint, e->path);
	r->fingerprint = hash_number(hash_number(r->fingerprint, (uint64_t)modified), (uint64_t)st.st_size);
}

static void add_files(struct search *s, struct recording_entry *r, const struct entry *e, unsigned depth)
{
	struct folder f;
	if (e->type != S_IFDIR) {
		add_file(r, e);
		return;
	}
	if (!depth || folder_read(s, &f, e->path))
		return;
	for (size_t i = 0; i < f.entries; i++)
		add_files(s, r, &f.entry[i], depth - 1);
	folder_release(&f);
}

static void add_recording(struct search *s, const struct entry *e)
{
	struct recording_entry *r = ARRAY_PUSH(s->out->item, s->out->len, s->out->cap);
	*r = (struct recording_entry){ .path = mem_dup(e->path), .fingerprint = HASH_BEGIN };
	add_files(s, r, e, DEPTH);
}

/* Adds the recordings in a directory, and down to `depth` levels in directories that hold several. Returns the number of
 * certain ones. Adds the number of entries that hold traces to *machines. */
static size_t add_recordings(struct search *s, const struct folder *f, unsigned depth, size_t *machines)
{
	struct recordings *out = s->out;
	const size_t before = out->len;
	size_t certain = 0;
	for (size_t i = 0; i < f->entries; i++) {
		const struct entry *e = &f->entry[i];
		struct folder below = { 0 };
		if (strcmp(strrchr(e->path, '/') + 1, CACHE_NAME) == 0)
			continue;
		const bool is_dir = e->type == S_IFDIR, has_session = is_dir && has_session_file(e->path);
		const bool is_trace = is_dir && !has_session && is_machine(e->path);
		const bool is_read = is_dir && !has_session && !is_trace && folder_read(s, &below, e->path) == 0;
		size_t traces = is_trace || (!depth && is_read) ? is_trace + count_machines(s, &below) : 0;
		const size_t more = depth && is_read ? add_recordings(s, &below, depth - 1, &traces) : 0;
		const enum strength strength = more ? NO_RECORDING : has_session ? RECORDING
			: is_dir ? classify_dir(e->path, traces) : classify_file(e);
		folder_release(&below);
		*machines += strength != NO_RECORDING;
		certain += more + (strength == RECORDING);
		if (strength != NO_RECORDING)
			add_recording(s, e);
	}
	if (certain < (depth ? s->at_least : 2)) {
		while (out->len > before)
			free(out->item[--out->len].path);
		return 0;
	}
	return certain;
}

int recordings_find(struct recordings *out, const char *dir, size_t at_least, struct error *err)
{
	const size_t len = strlen(dir);
	struct folder f;
	struct search search = { out, at_least, FILES_MAX };
	*out = (struct recordings){ 0 };
	if (trace_is_live(dir) || has_session_file(dir) || is_machine(dir))
		return 0;
	if (folder_read(&search, &f, dir))
		return errno == ENOTDIR ? 0 : error_read(err, NULL, "%s", dir);
	size_t machines = 0;
	add_recordings(&search, &f, 1, &machines);
	folder_release(&f);
	for (size_t i = 0; i < out->len; i++)
		out->item[i].name = out->item[i].path + len + (dir[len - 1] != '/');
	if (!out->len)
		recordings_release(out);
	return 0;
}

bool recording_is_here(const char *dir)
{
	struct search search = { NULL, 0, FILES_MAX };
	struct folder f = { 0 };
	const bool is_trace = is_machine(dir);
	if (has_session_file(dir))
		return true;
	if (!is_trace && folder_read(&search, &f, dir))
		return false;
	const size_t machines = is_trace ? 1 : count_machines(&search, &f);
	folder_release(&f);
	return machines > 0;
}

void recordings_release(struct recordings *r)
{
	for (size_t i = 0; i < r->len; i++)
		free(r->item[i].path);
	free(r->item);
	*r = (struct recordings){ 0 };
}
