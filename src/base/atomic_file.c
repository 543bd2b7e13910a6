#include "base/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

#define NAMES_TRIED 100
#define LINKS_MAX 40  /* same limit as in the kernel */

/* Writes a path of the open file: linkat(2) uses it to name an unnamed file. */
static void fd_path(char name[32], int fd)
{
	snprintf(name, 32, "/proc/self/fd/%d", fd);
}

/* Opens an unnamed file, which vanishes if the process is killed. Returns -1 if the directory's file system cannot do
 * that or /proc is missing. */
static int open_unnamed(const struct save *s)
{
	const char *slash = strrchr(s->path, '/');
	char *dir = slash ? mem_printf("%.*s", (int)(slash - s->path) + 1, s->path) : mem_dup("."), name[32];
	int fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
	free(dir);
	fd_path(name, fd);
	if (fd >= 0 && access(name, F_OK)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Chooses an unused temporary name, s->temp, and links the unnamed file fd to it; fd < 0: creates a file with that name.
 * Returns the descriptor, or -1. */
static int link_temporary_name(struct save *s, int fd)
{
	char name[32];
	int rc = -1;
	fd_path(name, fd);
	for (unsigned n = 0; n < NAMES_TRIED && rc < 0 && (n == 0 || errno == EEXIST); n++) {
		free(s->temp);
		s->temp = mem_printf("%s.%ld-%u.tmp", s->path, (long)getpid(), n);
		rc = fd < 0 ? open(s->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666) :
			linkat(AT_FDCWD, name, AT_FDCWD, s->temp, AT_SYMLINK_FOLLOW) ? -1 : fd;
	}
	if (rc < 0) {  /* no name: s->temp may be the file of another process */
		const int why = errno;
		free(s->temp);
		s->temp = NULL;
		errno = why;
	}
	return rc;
}

/* Opens the new file with the permissions of the user's own file that it replaces, or with the user's default. */
static int open_temporary(struct save *s)
{
	struct stat st;
	int fd = open_unnamed(s);
	if (fd < 0)
		fd = link_temporary_name(s, -1);
	if (fd >= 0 && stat(s->path, &st) == 0 && st.st_uid == geteuid())
		fchmod(fd, st.st_mode & 0777);  /* on failure the file has default permissions */
	return fd;
}

void make_parent_dirs(const char *path)
{
	char *dir = mem_dup(path);
	for (char *slash = strchr(dir + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(dir, 0700);
		*slash = '/';
	}
	free(dir);
}

/* Returns the directory that a variable names; NULL: none, or root would use the directory of another user, which sudo
 * may keep in the environment. */
static const char *user_dir(const char *variable)
{
	const char *dir = getenv(variable);
	struct stat st = { .st_uid = 0 };
	if (!dir || !*dir || geteuid() != 0)
		return dir && *dir ? dir : NULL;
	char *at = mem_dup(dir), *slash;
	while (stat(at, &st) != 0 && (slash = strrchr(at, '/')))  /* it may not exist yet */
		*slash = '\0';
	free(at);
	return st.st_uid == 0 ? dir : NULL;
}

char *user_file_path(const char *variable, const char *beneath_home, const char *name)
{
	const char *xdg = user_dir(variable), *home = user_dir("HOME");
	if (!home && getenv("HOME") && geteuid() == 0)
		home = "/root";
	return xdg ? mem_printf("%s/stealscope/%s", xdg, name) :
	       home ? mem_printf("%s/%s/stealscope/%s", home, beneath_home, name) : NULL;
}

bool file_begins_with(const char *path, const char *magic, size_t n)
{
	char head[64];
	int fd = n <= sizeof head ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	ssize_t got = fd < 0 ? -1 : read(fd, head, n);
	if (fd >= 0)
		close(fd);
	return got == (ssize_t)n && memcmp(head, magic, n) == 0;
}

/* Returns a symbolic link's target, or NULL if path is not a link. dir: the link's directory. The caller frees the
 * text. */
static char *follow_link(const char *path, const char *dir)
{
	char to[PATH_MAX];
	const ssize_t n = readlink(path, to, sizeof to - 1);
	if (n < 0)
		return NULL;
	to[n] = '\0';
	return to[0] == '/' ? mem_dup(to) : mem_printf("%s/%s", dir, to);
}

/* Returns true if the path leads through /proc: to a process's open file, such as /dev/stdout. */
static bool is_open_file(const char *path)
{
	bool found = false;
	char *at = mem_dup(path);
	for (int links = 0; at && !found && links < LINKS_MAX; links++) {
		const char *slash = strrchr(at, '/');
		char *dir = slash ? mem_printf("%.*s", (int)(slash - at) + 1, at) : mem_dup(".");
		char *real = realpath(dir, NULL), *next = follow_link(at, dir);
		found = real && strncmp(real, "/proc/", 6) == 0;
		free(real);
		free(dir);
		free(at);
		at = next;
	}
	free(at);
	return found;
}

static int refuse_special(const char *path, struct error *err)
{
	struct stat st;
	if (!*path)
		return error_set(err, STATUS_USAGE, "name one", "a file without a name cannot be written");
	if (lstat(path, &st) != 0)
		return 0;
	const char *why = stat(path, &st) != 0 ? "is a link that leads nowhere" :
		!S_ISREG(st.st_mode) ? "exists and is not a regular file" :
		is_open_file(path) ? "leads through /proc to an open file of a process" : NULL;
	return why ? error_set(err, STATUS_SYSTEM, "choose another name", "%s: %s", path, why) : 0;
}

int refuse_overwrite(const char *path, bool (*is_replaceable)(const char *path), const char *kind, struct error *err)
{
	struct stat st;
	if (refuse_special(path, err))
		return -1;
	if (stat(path, &st) != 0 || st.st_size == 0 || is_replaceable(path))
		return 0;
	return error_set(err, STATUS_USAGE, "choose another name, or remove it", "%s: exists and is not %s", path, kind);
}

int atomic_file_begin(struct save *s, const char *path, struct error *err)
{
	struct stat st;
	if (refuse_special(path, err))
		return -1;
	const bool is_link = lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
	if (is_link && st.st_uid != geteuid() && st.st_uid != 0)
		return error_set(err, STATUS_SYSTEM, "choose another name", "%s: is a link of another user", path);
	/* Only an own link is followed: another user may put one here at any time, which the rename then replaces. */
	char *real = is_link ? realpath(path, NULL) : NULL;
	*s = (struct save){ .path = real ? real : mem_dup(path) };
	int fd = open_temporary(s);
	s->f = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (s->f)
		return 0;
	error_system(err, "choose another directory", "%s", path);
	if (fd >= 0)
		close(fd);
	if (s->temp)
		unlink(s->temp);
	free(s->path);
	free(s->temp);
	return -1;
}

int atomic_file_end(struct save *s, int status, struct error *err)
{
	bool failed = ferror(s->f) || fflush(s->f) || fsync(fileno(s->f));
	if (status == 0 && !failed && !s->temp)
		failed = link_temporary_name(s, fileno(s->f)) < 0;
	int why = errno;
	if (fclose(s->f) != 0 && !failed) {
		failed = true;
		why = errno;
	}
	if (status == 0 && !failed && rename(s->temp, s->path) != 0) {
		failed = true;
		why = errno;
	}
	if (s->temp && (status != 0 || failed))
		unlink(s->temp);
	if (status == 0 && failed) {
		errno = why;
		status = error_system(err, NULL, "%s", s->path);
	}
	free(s->path);
	free(s->temp);
	return status;
}
