/* Input that is no file to seek in: pipes, standard input, and packed files (archive.h).
 *
 * A private copy in the user's cache directory is read instead, below unpacked/KEY/. The key is a hash of the packed
 * file's identity, or of a pipe's content, so that the next question finds the same copy and its history. Copies that
 * were not used for a week are removed when another one is made. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/base.h"
#include "base/hash.h"
#include "index/archive.h"
#include "index/index.h"

#define KEEP_S (7 * 86400)              /* age of the copies that are removed, s */
#define EXPANSION_MAX 1000              /* maximum ratio of unpacked to packed size */
#define EXPANSION_BASE (64ULL << 20)    /* unpacked size that is always allowed, bytes */
#define DISK_RESERVE (256ULL << 20)     /* disk space that is left free, bytes */
#define NESTING_MAX 3                   /* packed files in packed files */
#define BLOCK 65536
#define REMEDY "set XDG_CACHE_HOME to another directory"

/* ---- directories of copies */

static void remove_tree(const char *root)
{
	char *const roots[] = { (char *)(uintptr_t)root, NULL };
	FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	for (FTSENT *e; fts && (e = fts_read(fts));)
		if (e->fts_info != FTS_D)
			remove(e->fts_accpath);
	if (fts)
		fts_close(fts);
}

static void remove_unused(const char *dir)
{
	DIR *d = opendir(dir);
	const time_t oldest = time(NULL) - KEEP_S;
	for (struct dirent *e; d && (e = readdir(d));) {
		struct stat st;
		char *path = mem_printf("%s/%s", dir, e->d_name);
		if (e->d_name[0] != '.' && lstat(path, &st) == 0 && st.st_mtime < oldest)
			remove_tree(path);
		free(path);
	}
	if (d)
		closedir(d);
}

/* Returns the directory of all copies, malloc'ed; NULL with *err set. */
static char *copies_dir(struct error *err)
{
	char *file = user_file_path("XDG_CACHE_HOME", ".cache", "unpacked/key");
	if (!file) {
		error_set(err, STATUS_USAGE, REMEDY, "no directory found for a private copy of the input");
		return NULL;
	}
	make_parent_dirs(file);
	*strrchr(file, '/') = '\0';
	return file;
}

/* Makes a directory for a new copy in `dir`, which gets its key as its name when it is complete. */
static char *begin_copy(const char *dir, struct error *err)
{
	remove_unused(dir);
	char *path = mem_printf("%s/partial-XXXXXX", dir);
	if (mkdtemp(path))
		return path;
	error_system(err, REMEDY, "cannot make a private copy of the input in %s", dir);
	free(path);
	return NULL;
}

/* Renames a complete copy, unless another process was faster. */
static int end_copy(const char *partial, const char *final, struct error *err)
{
	if (rename(partial, final) == 0)
		return 0;
	const int why = errno;
	remove_tree(partial);
	errno = why;
	return access(final, F_OK) == 0 ? 0 : error_system(err, REMEDY, "%s", final);
}

static uint64_t free_space(const char *dir)
{
	struct statvfs fs;
	if (statvfs(dir, &fs))
		return UINT64_MAX;
	const uint64_t bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	return bytes > DISK_RESERVE ? bytes - DISK_RESERVE : 0;
}

/* ---- pipes */

/* Copies all of a pipe into a file. *key: the content's hash. */
static int copy_pipe(int from, int to, uint64_t max_bytes, uint64_t *key, const char *name, const struct progress *progress,
                     struct error *err)
{
	static const char phase[] = "copying";
	char *buf = mem_new(BLOCK, 1);
	uint64_t size = 0;
	int status = 0;
	*key = HASH_BEGIN;
	for (ssize_t n = 1; n && !status;) {
		struct pollfd p = { .fd = from, .events = POLLIN };
		const bool is_ready = poll(&p, 1, 50) > 0;
		if (progress && progress->tick && progress->tick(progress->arg, phase, size, 0))
			status = error_set(err, STATUS_CANCELLED, NULL, "reading %s: interrupted", name);
		if (!is_ready || status)
			continue;
		n = read(from, buf, BLOCK);
		size += n > 0 ? (uint64_t)n : 0;
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			status = error_read(err, NULL, "%s", name);
		else if (size > max_bytes)
			status = error_set(err, STATUS_SYSTEM, REMEDY, "%s: longer than the free disk space", name);
		else if (n > 0 && write(to, buf, (size_t)n) != n)
			status = error_system(err, REMEDY, "cannot make a private copy of %s", name);
		if (n > 0)
			*key = hash_bytes(*key, buf, (size_t)n);
	}
	free(buf);
	if (!status && !size)
		status = error_set(err, STATUS_INPUT, "check the command that writes it", "%s: empty", name);
	return status;
}

/* Returns true for a pipe without a name, which a process that runs has open: <(...), |. Opening another may never end. */
static bool is_open_pipe(const char *path)
{
	struct statfs fs;
	return statfs(path, &fs) == 0 && (unsigned long)fs.f_type == PIPEFS_MAGIC;
}

static char *copy_of_pipe(int from, const char *name, const struct progress *progress, struct error *err)
{
	char *dir = copies_dir(err), *partial = dir ? begin_copy(dir, err) : NULL, *copy = NULL;
	if (partial) {
		uint64_t key = 0;
		char *file = mem_printf("%s/stdin", partial);
		const int to = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		int status = to < 0 ? error_system(err, REMEDY, "%s", file)
		                    : copy_pipe(from, to, free_space(dir), &key, name, progress, err);
		if (to >= 0)
			close(to);
		char *final = mem_printf("%s/%016" PRIx64, dir, key);
		if (!status)
			status = end_copy(partial, final, err);
		else
			remove_tree(partial);
		copy = status ? NULL : mem_printf("%s/stdin", final);
		if (copy)
			utimensat(AT_FDCWD, final, NULL, 0);
		free(final);
		free(file);
	}
	free(partial);
	free(dir);
	return copy;
}

/* ---- packed files */

/* Returns the length of a file name without the extensions of packed files. */
static size_t stem_length(const char *name)
{
	static const char *const extensions[] = { ".gz", ".tgz", ".zst", ".xz", ".txz", ".bz2", ".lz4", ".zip", ".7z", ".tar" };
	size_t n = strlen(name);
	for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++) {
		const size_t len = strlen(extensions[i]);
		if (n <= len || memcmp(name + n - len, extensions[i], len) != 0)
			continue;
		n -= len;
		i = (size_t)-1;  /* .tar.gz: from the start again */
	}
	return n;
}

/* Returns the only entry of a directory, or the directory, malloc'ed. */
static char *only_entry(const char *dir)
{
	DIR *d = opendir(dir);
	char *only = NULL;
	size_t n = 0;
	for (struct dirent *e; d && (e = readdir(d));) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		free(only);
		only = mem_printf("%s/%s", dir, e->d_name);
		n++;
	}
	if (d)
		closedir(d);
	if (n == 1)
		return only;
	free(only);
	return mem_dup(dir);
}

static int unpack_new(int fd, const char *path, const struct stat *st, const char *dir, const char *stem, const char *final,
                      const struct progress *progress, struct error *err)
{
	char *partial = begin_copy(dir, err);
	if (!partial)
		return -1;
	char *into = mem_printf("%s/%s", partial, stem);
	uint64_t left_out = 0, most = EXPANSION_BASE + EXPANSION_MAX * (uint64_t)st->st_size;
	most = free_space(dir) < most ? free_space(dir) : most;
	int status = mkdir(into, 0700) ? error_system(err, REMEDY, "%s", into)
	                               : archive_unpack(fd, path, into, stem, most, &left_out, progress, err);
	char *only = only_entry(into);
	if (!status && strcmp(only, into) == 0 && rmdir(into) == 0)
		status = error_set(err, STATUS_INPUT, "check the command that wrote it", "%s: a packed file with nothing in it",
		                   path);
	if (!status)
		status = end_copy(partial, final, err);
	else
		remove_tree(partial);
	if (!status && left_out)
		fprintf(stderr, "stealscope: %s: %" PRIu64 " links, special files or files with unsafe names were left out\n", path,
		        left_out);
	free(only);
	free(into);
	free(partial);
	return status;
}

static char *copy_of_packed(int fd, const char *path, const struct stat *st, const struct progress *progress,
                            struct error *err)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char *dir = copies_dir(err), *stem = mem_printf("%.*s", (int)stem_length(name), name), *copy = NULL;
	if (dir) {
		uint64_t key = hash_number(hash_number(0, (uint64_t)st->st_dev), (uint64_t)st->st_ino);
		key = hash_number(hash_number(key, (uint64_t)st->st_size), (uint64_t)st->st_mtim.tv_sec);
		key = hash_end(hash_number(hash_number(key, (uint64_t)st->st_mtim.tv_nsec), hash_text(HASH_BEGIN, stem)));
		char *final = mem_printf("%s/%016" PRIx64, dir, key), *into = mem_printf("%s/%s", final, stem);
		if (access(into, F_OK) == 0 || unpack_new(fd, path, st, dir, stem, final, progress, err) == 0) {
			utimensat(AT_FDCWD, final, NULL, 0);
			copy = only_entry(into);
		}
		free(into);
		free(final);
	}
	free(stem);
	free(dir);
	return copy;
}

/* Replaces *path by the copy if the file is packed. Returns 1: replaced; 0: not packed; -1. */
static int unpack(char **path, const struct progress *progress, struct error *err)
{
	unsigned char head[ARCHIVE_HEAD];
	struct stat st;
	const int fd = open(*path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const ssize_t n = fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) ? 0 : pread(fd, head, sizeof head, 0);
	char *copy = NULL;
	const bool is_packed = n > 0 && archive_kind(head, (size_t)n);
	if (is_packed)
		copy = copy_of_packed(fd, *path, &st, progress, err);
	if (fd >= 0)
		close(fd);
	if (!is_packed)
		return 0;
	free(*path);
	*path = copy;
	return copy ? 1 : -1;
}

char *packed_input_path(const char *named, const struct progress *progress, struct error *err)
{
	const bool is_stdin = strcmp(named, "-") == 0;
	const char *name = is_stdin ? "standard input" : named;
	struct stat st;
	char *path = is_stdin ? realpath("/proc/self/fd/0", NULL) : mem_dup(named);
	if (is_stdin ? fstat(0, &st) : stat(named, &st))
		return path ? path : mem_dup(named);  /* the caller reports the error */
	if (is_stdin && isatty(0)) {
		free(path);
		error_set(err, STATUS_USAGE, "pipe a file into it: zcat trace.gz | stealscope summary -", "%s is a terminal", name);
		return NULL;
	}
	if (S_ISFIFO(st.st_mode) && (is_stdin || is_open_pipe(named))) {
		const int fd = is_stdin ? 0 : open(named, O_RDONLY | O_CLOEXEC);
		free(path);
		path = fd < 0 ? NULL : copy_of_pipe(fd, name, progress, err);
		if (fd < 0)
			error_read(err, NULL, "%s", named);
		if (fd > 0)
			close(fd);
	}
	int status = path != NULL;
	for (unsigned i = 0; i < NESTING_MAX && status == 1; i++)
		status = unpack(&path, progress, err);
	return path;
}
