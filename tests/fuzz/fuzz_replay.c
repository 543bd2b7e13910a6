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

#define MAX_INPUT (1u << 20)

int replay(const char *path)
{
	static uint8_t data[MAX_INPUT];
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
	static const char prefix[] = "fuzz_";
	const char *slash = strrchr(argv[0], '/'), *program = slash ? slash + 1 : argv[0], *name = strstr(program, prefix);
	for (int i = 1; i < argc; i++)
		failed |= replay(argv[i]);
	snprintf(pattern, sizeof pattern, "tests/fuzz/corpus-%s/*", name ? name + sizeof prefix - 1 : program);
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

static char *temp_dir;

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void remove_temp_dir(void)
{
	nftw(temp_dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
	free(temp_dir);
}

static void make_temp_dir(void)
{
	const char *env = getenv("TMPDIR");
	temp_dir = mem_printf("%s/stealscope-fuzz-XXXXXX", env && *env ? env : "/tmp");
	if (!mkdtemp(temp_dir) || atexit(remove_temp_dir))
		abort();
}

static void write_file(const struct replay_file *file)
{
	char *path = mem_printf("%s/%s", temp_dir, file->name), *slash = strrchr(path, '/');
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

const char *replay_dir(const struct replay_file *file, size_t n)
{
	if (!temp_dir)
		make_temp_dir();
	for (size_t i = 0; i < n; i++)
		write_file(&file[i]);
	return temp_dir;
}
