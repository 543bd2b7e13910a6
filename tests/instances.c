/* Preloaded into a program under test, imitates instances of tracefs: below INSTANCES, mkdir() fills the new directory
 * with a copy of INSTANCES/.made, and rmdir() removes a directory with its contents. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_below(const char *path)
{
	const char *instances = getenv("INSTANCES");
	return instances && strncmp(path, instances, strlen(instances)) == 0 && path[strlen(instances)] == '/';
}

static int make_dir(const char *path, mode_t mode)
{
	return mkdirat(AT_FDCWD, path, mode);
}

static char to[4096];
static size_t from_len, to_len;

static void copy_file(const char *path)
{
	char buf[65536];
	const int in = open(path, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	for (ssize_t n; in >= 0 && out >= 0 && (n = read(in, buf, sizeof buf)) > 0;)
		if (write(out, buf, (size_t)n) != n)
			abort();
	close(in);
	close(out);
}

static int copy_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)ftw;
	(void)st;
	snprintf(to + to_len, sizeof to - to_len, "%s", path + from_len);
	if (type == FTW_D)
		make_dir(to, 0700);
	else
		copy_file(path);
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return unlinkat(AT_FDCWD, path, type == FTW_DP ? AT_REMOVEDIR : 0);
}

int mkdir(const char *path, mode_t mode)
{
	const int rc = make_dir(path, mode);
	if (rc == 0 && is_below(path)) {
		char from[4096];
		snprintf(from, sizeof from, "%s/.made", getenv("INSTANCES"));
		snprintf(to, sizeof to, "%s", path);
		from_len = strlen(from);
		to_len = strlen(to);
		nftw(from, copy_one, 16, FTW_PHYS);
	}
	return rc;
}

int rmdir(const char *path)
{
	return is_below(path) ? nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) : unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}
