/* Preloaded into a program under test: one of its attempts to read what lies in a folder fails.
 *
 *   FAULT_BELOW  the folder
 *   FAULT_AT     which attempt, counted from 1; none: all succeed
 *   FAULT_LOG    a file to which each attempt is written, a line for each
 *
 * open, fopen, opendir, read, pread, fread, fgets, getline and mmap fail with EIO.  Processes that are forked go on counting
 * from where they were forked. */
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
#define IO_ERROR 0x20  /* glibc: a FILE's flag */

static atomic_uint attempts;

static bool is_below(const char *path)
{
	const char *folder = getenv("FAULT_BELOW");
	char real[PATH_MAX];
	if (!folder || !path || !realpath(path, real))
		return false;
	return strncmp(real, folder, strlen(folder)) == 0;
}

static bool is_below_fd(int fd)
{
	char link[64], path[PATH_MAX];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	const ssize_t n = readlink(link, path, sizeof path - 1);
	path[n < 0 ? 0 : n] = '\0';
	const char *folder = getenv("FAULT_BELOW");
	return folder && strncmp(path, folder, strlen(folder)) == 0;
}

/* Opened once, before processes are forked that may open nothing for writing. */
static void write_log(const char *log, unsigned number, const char *what, const char *path)
{
	static int fd = -1;
	char line[PATH_MAX + 64];
	const int n = snprintf(line, sizeof line, "%u %s %s\n", number, what, path ? path : "");
	if (fd < 0)
		fd = NEXT(int (*)(const char *, int, ...), "open")(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (write(fd, line, (size_t)n) != n)
		abort();
}

/* Is this the attempt that fails? */
static bool fails(const char *what, const char *path)
{
	const char *at = getenv("FAULT_AT"), *log = getenv("FAULT_LOG");
	const unsigned number = atomic_fetch_add(&attempts, 1) + 1;
	if (log)
		write_log(log, number, what, path);
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
		if (is_below(path) && fails(#name, path)) \
			return -1; \
		return NEXT(int (*)(const char *, int, ...), #name)(path, flags, mode); \
	}
OPEN(open)
OPEN(open64)

/* What programs call instead that were built with _FORTIFY_SOURCE. */
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
		if (is_below(path) && fails(#name, path)) \
			return NULL; \
		return NEXT(FILE *(*)(const char *, const char *), #name)(path, mode); \
	}
FOPEN(fopen)
FOPEN(fopen64)

DIR *opendir(const char *path)
{
	if (is_below(path) && fails("opendir", path))
		return NULL;
	return NEXT(DIR *(*)(const char *), "opendir")(path);
}

ssize_t read(int fd, void *to, size_t n)
{
	if (is_below_fd(fd) && fails("read", NULL))
		return -1;
	return NEXT(ssize_t (*)(int, void *, size_t), "read")(fd, to, n);
}

#define PREAD(name, offset) \
	ssize_t name(int fd, void *to, size_t n, offset at) \
	{ \
		if (is_below_fd(fd) && fails(#name, NULL)) \
			return -1; \
		return NEXT(ssize_t (*)(int, void *, size_t, offset), #name)(fd, to, n, at); \
	}
PREAD(pread, off_t)
PREAD(pread64, off64_t)

size_t fread(void *to, size_t size, size_t n, FILE *f)
{
	if (is_below_fd(fileno(f)) && fails("fread", NULL)) {
		f->_flags |= IO_ERROR;
		return 0;
	}
	return NEXT(size_t (*)(void *, size_t, size_t, FILE *), "fread")(to, size, n, f);
}

char *fgets(char *to, int n, FILE *f)
{
	if (is_below_fd(fileno(f)) && fails("fgets", NULL)) {
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

/* What getline() is in an optimized program. */
ssize_t __getdelim(char **line, size_t *size, int end, FILE *f)
{
	if (is_below_fd(fileno(f)) && fails("getline", NULL)) {
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
		if (fd >= 0 && is_below_fd(fd) && fails(#name, NULL)) \
			return MAP_FAILED; \
		return NEXT(void *(*)(void *, size_t, int, int, int, offset), #name)(at, n, protection, flags, fd, from); \
	}
MMAP(mmap, off_t)
MMAP(mmap64, off64_t)
