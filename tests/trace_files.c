/* Functions that copy the fibonacci recording to a temporary directory and damage it. */
#include "trace_files.h"

#include "test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "remove_all.h"

static char root[] = "/tmp/stealscope-test-XXXXXX";

char *path_of(const char *name)
{
	return mem_printf("%s/%s", root, name);
}

int files_begin(void **state)
{
	(void)state;
	return mkdtemp(root) ? 0 : -1;
}

int files_end(void **state)
{
	(void)state;
	remove_all(root);
	return 0;
}

void write_file(const char *path, const void *data, size_t len)
{
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

char *read_whole(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	struct stat st;
	assert_non_null(f);
	assert_int_equal(fstat(fileno(f), &st), 0);
	char *data = mem_new((size_t)st.st_size + 1, 1);
	*len = fread(data, 1, (size_t)st.st_size, f);
	fclose(f);
	return data;
}

char *copy_trace(const char *name, const char *machine)
{
	static const char *const files[] = { "metadata", "ch_0", "ch_1", "index/ch_0.idx", "index/ch_1.idx" };
	const char *srcdir = getenv("srcdir");
	char *dir = path_of(name), *index = mem_printf("%s/index", dir);
	mkdir(dir, 0755);
	mkdir(index, 0755);
	free(index);
	for (size_t i = 0; i < COUNT(files); i++) {
		char *from = mem_printf("%s/tests/data/fibonacci/%s/kernel/%s", srcdir ? srcdir : ".", machine, files[i]);
		char *to = mem_printf("%s/%s", dir, files[i]);
		if (access(from, R_OK) == 0) {
			size_t len;
			char *data = read_whole(from, &len);
			write_file(to, data, len);
			free(data);
		}
		free(from);
		free(to);
	}
	return dir;
}

void damage(const char *dir, const char *file, long offset, size_t len)
{
	char *path = mem_printf("%s/%s", dir, file), *noise = mem_new(len, 1);
	uint32_t seed = 12345;
	for (size_t i = 0; i < len; i++)
		noise[i] = (char)((seed = seed * 1103515245U + 12345U) >> 24);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, noise, len, offset), (ssize_t)len);
	close(fd);
	free(noise);
	free(path);
}

void cut(const char *dir, const char *file, long len)
{
	char *path = mem_printf("%s/%s", dir, file);
	assert_int_equal(truncate(path, len), 0);
	free(path);
}

void delete(const char *dir, const char *file)
{
	char *path = mem_printf("%s/%s", dir, file);
	remove_all(path);
	free(path);
}
