#include "fuzz_replay.h"

#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define LONGEST (1u << 20)

int replay(const char *path)
{
	static uint8_t data[LONGEST];
	FILE *f = fopen(path, "rb");
	if (!f) {
		perror(path);
		return 1;
	}
	size_t n = fread(data, 1, sizeof data, f);
	fclose(f);
	LLVMFuzzerTestOneInput(data, n);
	return 0;
}

int replay_main(int argc, char **argv)
{
	int failed = 0;
	char pattern[256];
	const char *name = strstr(argv[0], "fuzz_");
	for (int i = 1; i < argc; i++)
		failed |= replay(argv[i]);
	snprintf(pattern, sizeof pattern, "tests/fuzz/corpus-%s/*", name ? name + sizeof "fuzz_" - 1 : argv[0]);
	return argc > 1 ? failed : replay_all(pattern, replay);
}

int replay_all(const char *pattern, int (*fn)(const char *path))
{
	const char *srcdir = getenv("srcdir");
	char path[4096];
	int failed = 0;
	glob_t g;
	snprintf(path, sizeof path, "%s/%s", srcdir ? srcdir : ".", pattern);
	if (glob(path, 0, NULL, &g))
		return 1;
	for (size_t i = 0; i < g.gl_pathc; i++)
		failed |= fn(g.gl_pathv[i]);
	globfree(&g);
	return failed;
}

const char *replay_file(const uint8_t *data, size_t size, int *fd)
{
	static char path[64];
	*fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (*fd < 0 || write(*fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", *fd);
	return path;
}

static char *folder;

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st;
	(void)kind;
	(void)where;
	return remove(path);
}

static void remove_folder(void)
{
	nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(folder);
}

static void make_folder(void)
{
	const char *env = getenv("TMPDIR");
	folder = mem_printf("%s/stealscope-fuzz-XXXXXX", env && *env ? env : "/tmp");
	if (!mkdtemp(folder) || atexit(remove_folder))
		abort();
}

static void write_file(const struct replay_file *file)
{
	char *path = mem_printf("%s/%s", folder, file->name), *slash = strrchr(path, '/');
	const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
	int fd = open(path, flags, 0600);
	if (fd < 0) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
		fd = open(path, flags, 0600);
	}
	if (fd < 0 || write(fd, file->data, file->size) != (ssize_t)file->size || close(fd))
		abort();
	free(path);
}

const char *replay_folder(const struct replay_file *file, size_t n)
{
	if (!folder)
		make_folder();
	for (size_t i = 0; i < n; i++)
		write_file(&file[i]);
	return folder;
}
