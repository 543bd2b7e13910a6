/* Finds the recordings in a directory by names and a few bytes, without reading traces. See index.h.
 *
 * A recording has a session file, or the traces of several machines. A directory with the trace of one machine is a
 * recording only beside recordings of these kinds, or if LTTng named it by date: otherwise its neighbours are the other
 * machines of one recording. Cost: a few system calls per file down to the third level. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "index/index.h"
#include "index/session.h"

#define DEPTH 3  /* levels of directories below a machine's directory in which its trace is searched */
#define FILES_MAX 200000  /* files examined in all: a search from the root of a file system ends */

struct entry { char *path; struct stat st; };

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

/* Reads the names in a directory, without hidden ones, sorted. Returns 0, or -1 with errno set. */
static int folder_read(struct search *s, struct folder *f, const char *path)
{
	const size_t len = strlen(path);
	DIR *dir = opendir(path);
	*f = (struct folder){ 0 };
	if (!dir)
		return -1;
	for (struct dirent *d; s->files && (d = readdir(dir)); s->files--) {
		struct stat st;
		if (d->d_name[0] != '.' && fstatat(dirfd(dir), d->d_name, &st, 0) == 0)
			*ARRAY_PUSH(f->entry, f->entries, f->cap) =
				(struct entry){ mem_printf("%s%s%s", path, len && path[len - 1] == '/' ? "" : "/", d->d_name), st };
	}
	closedir(dir);
	if (f->entries)
		qsort(f->entry, f->entries, sizeof *f->entry, compare_paths);
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
	return S_ISREG(e->st.st_mode) && !history_is_history_file(e->path) && trace_is_file(e->path);
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
		        (depth && S_ISDIR(f.entry[i].st.st_mode) && contains_trace(s, f.entry[i].path, depth - 1));
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

static enum strength classify_dir(struct search *s, const char *path)
{
	struct folder f;
	const char *slash = strrchr(path, '/');
	unsigned machines = 0;
	if (has_session_file(path))
		return RECORDING;
	if (is_machine(path) || folder_read(s, &f, path))
		return !is_machine(path) ? NO_RECORDING : is_named_by_date(slash ? slash + 1 : path) ? RECORDING : ONE_MACHINE;
	for (size_t i = 0; i < f.entries && machines < 2; i++)
		machines += is_trace_file(&f.entry[i]) ||
		            (S_ISDIR(f.entry[i].st.st_mode) && contains_trace(s, f.entry[i].path, DEPTH));
	folder_release(&f);
	return machines > 1 || (machines && is_named_by_date(slash ? slash + 1 : path)) ? RECORDING
	       : machines ? ONE_MACHINE : NO_RECORDING;
}

static enum strength classify(struct search *s, const struct entry *e)
{
	if (S_ISDIR(e->st.st_mode))
		return classify_dir(s, e->path);
	if (!S_ISREG(e->st.st_mode))
		return NO_RECORDING;
	return history_is_history_file(e->path) ? RECORDING : trace_is_file(e->path) ? ONE_MACHINE : NO_RECORDING;
}

/* Adds what changes with a file. A cached history beside the traces does not count: reading a recording may write it. */
static void add_file(struct recording_entry *r, const struct entry *e)
{
	const char *name = strrchr(e->path, '/') + 1;
	const struct timespec t = e->st.st_mtim;
	const int64_t modified = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
	if (strcmp(name, CACHE_NAME) == 0 || !S_ISREG(e->st.st_mode))
		return;
	r->modified = modified > r->modified ? modified : r->modified;
	r->fingerprint = hash_text(r->fingerprint, e->path);
	r->fingerprint = hash_number(hash_number(r->fingerprint, (uint64_t)modified), (uint64_t)e->st.st_size);
}

static void add_files(struct search *s, struct recording_entry *r, const struct entry *e, unsigned depth)
{
	struct folder f;
	if (!S_ISDIR(e->st.st_mode)) {
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
 * certain ones. */
static size_t add_recordings(struct search *s, const struct folder *f, unsigned depth)
{
	struct recordings *out = s->out;
	const size_t before = out->len;
	size_t certain = 0;
	for (size_t i = 0; i < f->entries; i++) {
		const struct entry *e = &f->entry[i];
		struct folder below = { 0 };
		size_t more = 0;
		if (strcmp(strrchr(e->path, '/') + 1, CACHE_NAME) == 0)
			continue;
		const bool holds_several = depth && S_ISDIR(e->st.st_mode) && !has_session_file(e->path) && !is_machine(e->path);
		if (holds_several && folder_read(s, &below, e->path) == 0)
			more = add_recordings(s, &below, depth - 1);
		folder_release(&below);
		const enum strength strength = more ? NO_RECORDING : classify(s, e);
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
	add_recordings(&search, &f, 1);
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
	return classify_dir(&search, dir) != NO_RECORDING;
}

void recordings_release(struct recordings *r)
{
	for (size_t i = 0; i < r->len; i++)
		free(r->item[i].path);
	free(r->item);
	*r = (struct recordings){ 0 };
}
