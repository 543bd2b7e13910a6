/* Preloaded into a program under test: makes one of its reads below a directory fail.
 *
 *   FAULT_BELOW  the directory
 *   FAULT_AT     number of the read that fails, counted from 1; unset: all succeed
 *   FAULT_LOG    a file to which every read is logged, one line each
 *
 * open, fopen, opendir, read, pread, fread, fgets, getline and mmap fail with EIO. A forked process continues with the
 * count of its parent. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEXT(type, name) ((type)(uintptr_t)dlsym(RTLD_NEXT, name))
#define IO_ERROR 0x20  /* flag of a FILE in glibc */

static atomic_uint attempts;

static bool is_below(const char *path)
{
	const char *dir = getenv("FAULT_BELOW");
	char real[PATH_MAX];
	if (!dir || !path || !realpath(path, real))
		return false;
	return strncmp(real, dir, strlen(dir)) == 0;
}

static bool is_below_fd(int fd)
{
	char link[64], path[PATH_MAX];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	const ssize_t n = readlink(link, path, sizeof path - 1);
	path[n < 0 ? 0 : n] = '\0';
	const char *dir = getenv("FAULT_BELOW");
	return dir && strncmp(path, dir, strlen(dir)) == 0;
}

/* Opens the log only once, before the program forks processes that may not open files for writing. */
static void write_log(const char *log, unsigned number, const char *function, const char *path)
{
	static int fd = -1;
	char line[PATH_MAX + 64];
	const int n = snprintf(line, sizeof line, "%u %s %s\n", number, function, path ? path : "");
	if (fd < 0)
		fd = NEXT(int (*)(const char *, int, ...), "open")(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (write(fd, line, (size_t)n) != n)
		abort();
}

/* Counts and logs a read. Returns true and sets errno if it is the one that must fail. */
static bool read_fails(const char *function, const char *path)
{
	const char *at = getenv("FAULT_AT"), *log = getenv("FAULT_LOG");
	const unsigned number = atomic_fetch_add(&attempts, 1) + 1;
	if (log)
		write_log(log, number, function, path);
	if (!at || number != (unsigned)atoi(at))
		return false;
	errno = EIO;
	return true;
}

#define OPEN(name) \
	int name(const char *path, int flags, ...) \
	{ \
		va_list ap; \
		va_start(ap, flags); \
		const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0; \
		va_end(ap); \
		if (is_below(path) && read_fails(#name, path)) \
			return -1; \
		return NEXT(int (*)(const char *, int, ...), #name)(path, flags, mode); \
	}
OPEN(open)
OPEN(open64)

/* Variants that programs built with _FORTIFY_SOURCE call. */
#define OPEN_2(name, real) \
	int name(const char *path, int flags); \
	int name(const char *path, int flags) \
	{ \
		return real(path, flags); \
	}
OPEN_2(__open_2, open)
OPEN_2(__open64_2, open64)

#define FOPEN(name) \
	FILE *name(const char *path, const char *mode) \
	{ \
		if (is_below(path) && read_fails(#name, path)) \
			return NULL; \
		return NEXT(FILE *(*)(const char *, const char *), #name)(path, mode); \
	}
FOPEN(fopen)
FOPEN(fopen64)

DIR *opendir(const char *path)
{
	if (is_below(path) && read_fails("opendir", path))
		return NULL;
	return NEXT(DIR *(*)(const char *), "opendir")(path);
}

ssize_t read(int fd, void *to, size_t n)
{
	if (is_below_fd(fd) && read_fails("read", NULL))
		return -1;
	return NEXT(ssize_t (*)(int, void *, size_t), "read")(fd, to, n);
}

#define PREAD(name, offset) \
	ssize_t name(int fd, void *to, size_t n, offset at) \
	{ \
		if (is_below_fd(fd) && read_fails(#name, NULL)) \
			return -1; \
		return NEXT(ssize_t (*)(int, void *, size_t, offset), #name)(fd, to, n, at); \
	}
PREAD(pread, off_t)
PREAD(pread64, off64_t)

size_t fread(void *to, size_t size, size_t n, FILE *f)
{
	if (is_below_fd(fileno(f)) && read_fails("fread", NULL)) {
		f->_flags |= IO_ERROR;
		return 0;
	}
	return NEXT(size_t (*)(void *, size_t, size_t, FILE *), "fread")(to, size, n, f);
}

char *fgets(char *to, int n, FILE *f)
{
	if (is_below_fd(fileno(f)) && read_fails("fgets", NULL)) {
		f->_flags |= IO_ERROR;
		return NULL;
	}
	return NEXT(char *(*)(char *, int, FILE *), "fgets")(to, n, f);
}

ssize_t __getdelim(char **line, size_t *size, int end, FILE *f);
ssize_t getline(char **line, size_t *size, FILE *f)
{
	return __getdelim(line, size, '\n', f);
}

/* Optimized programs call this instead of getline(). */
ssize_t __getdelim(char **line, size_t *size, int end, FILE *f)
{
	if (is_below_fd(fileno(f)) && read_fails("getline", NULL)) {
		f->_flags |= IO_ERROR;
		return -1;
	}
	return NEXT(ssize_t (*)(char **, size_t *, int, FILE *), "__getdelim")(line, size, end, f);
}

ssize_t __read_chk(int fd, void *to, size_t n, size_t size);
ssize_t __read_chk(int fd, void *to, size_t n, size_t size)
{
	return n > size ? (abort(), -1) : read(fd, to, n);
}

#define PREAD_CHK(name, real, offset) \
	ssize_t name(int fd, void *to, size_t n, offset at, size_t size); \
	ssize_t name(int fd, void *to, size_t n, offset at, size_t size) \
	{ \
		return n > size ? (abort(), -1) : real(fd, to, n, at); \
	}
PREAD_CHK(__pread_chk, pread, off_t)
PREAD_CHK(__pread64_chk, pread64, off64_t)

size_t __fread_chk(void *to, size_t space, size_t size, size_t n, FILE *f);
size_t __fread_chk(void *to, size_t space, size_t size, size_t n, FILE *f)
{
	return size && n > space / size ? (abort(), 0) : fread(to, size, n, f);
}

char *__fgets_chk(char *to, size_t space, int n, FILE *f);
char *__fgets_chk(char *to, size_t space, int n, FILE *f)
{
	return n > 0 && (size_t)n > space ? (abort(), NULL) : fgets(to, n, f);
}

#define MMAP(name, offset) \
	void *name(void *at, size_t n, int protection, int flags, int fd, offset from) \
	{ \
		if (fd >= 0 && is_below_fd(fd) && read_fails(#name, NULL)) \
			return MAP_FAILED; \
		return NEXT(void *(*)(void *, size_t, int, int, int, offset), #name)(at, n, protection, flags, fd, from); \
	}
MMAP(mmap, off_t)
MMAP(mmap64, off64_t)
