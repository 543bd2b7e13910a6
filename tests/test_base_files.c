/* base/: files that are read and written. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file_open.h"
#include "base/mem.h"
#include "base/atomic_file.h"

static void check_file(const char *path, const char *text, mode_t mode)
{
	char got[64] = "";
	struct stat st;
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fread(got, 1, sizeof got - 1, f), strlen(text));
	fclose(f);
	assert_string_equal(got, text);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, mode);
}

static bool begins_with_two(const char *path)
{
	return save_begins_with(path, "two", 3);
}

/* A regular file is opened; nothing else is, and nothing is waited for. */
static void test_file(void **state)
{
	(void)state;
	char dir[] = "/tmp/stealscope-file-XXXXXX", path[64], pipe[64];
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/file", dir);
	snprintf(pipe, sizeof pipe, "%s/pipe", dir);
	FILE *f = fopen(path, "w");
	fputs("text", f);
	fclose(f);
	assert_int_equal(mkfifo(pipe, 0600), 0);
	f = file_open(path);
	assert_non_null(f);
	assert_int_equal(fgetc(f), 't');
	fclose(f);
	assert_null(file_open(pipe));
	assert_int_equal(errno, EINVAL);
	assert_null(file_open(dir));
	assert_int_equal(errno, EISDIR);
	unlink(path);
	assert_null(file_open(path));
	assert_int_equal(errno, ENOENT);
	unlink(pipe);
	rmdir(dir);
}

/* A link that leads nowhere stays, and what leads to an open file, like /dev/stdout, is no name to give to another. */
static void test_save_links(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	struct save s;
	struct stat was, st;
	char dir[] = "/tmp/stealscope-save-XXXXXX", path[64], open_file[64], link[64];
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/a", dir);
	snprintf(link, sizeof link, "%s/b", dir);
	assert_int_equal(symlink("nowhere", link), 0);
	assert_int_equal(save_begin(&s, link, &err), -1);
	assert_non_null(strstr(err.text, "/b: is a link that leads nowhere"));
	assert_int_equal(save_spares(link, begins_with_two, "a two", &err), -1);
	unlink(link);
	const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && fstat(fd, &was) == 0);
	snprintf(open_file, sizeof open_file, "/proc/self/fd/%d", fd);
	assert_int_equal(symlink(open_file, link), 0);
	for (int gone = 0; gone < 2; gone++) {
		assert_int_equal(save_begin(&s, link, &err), -1);
		assert_non_null(strstr(err.text, "/b: leads through /proc"));
		assert_int_equal(save_begin(&s, open_file, &err), -1);
		assert_int_equal(lstat(link, &st), 0);
		assert_true(S_ISLNK(st.st_mode));
		assert_int_equal(stat(gone ? link : path, &st), 0);
		assert_true(st.st_ino == was.st_ino);
		unlink(path);
	}
	close(fd);
	unlink(link);
	assert_int_equal(rmdir(dir), 0);
}

/* A file is there when it is whole; what it replaces gives its permissions, and a link to it stays a link. */
static void test_save(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	struct save s;
	struct stat st;
	char dir[] = "/tmp/stealscope-save-XXXXXX", path[64], link[64], fifo[64];
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/a", dir);
	snprintf(link, sizeof link, "%s/b", dir);
	snprintf(fifo, sizeof fifo, "%s/c", dir);
	mode_t mask = umask(027);
	assert_int_equal(save_begin(&s, path, &err), 0);
	fputs("one", s.f);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(save_end(&s, 0, &err), 0);
	check_file(path, "one", 0640);
	assert_int_equal(chmod(path, 0604), 0);
	assert_int_equal(symlink("a", link), 0);
	assert_int_equal(save_begin(&s, link, &err), 0);
	fputs("two", s.f);
	check_file(path, "one", 0604);
	assert_int_equal(save_end(&s, 0, &err), 0);
	check_file(path, "two", 0604);
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(save_begin(&s, path, &err), 0);
	fputs("three", s.f);
	assert_int_equal(save_end(&s, -1, &err), -1);
	check_file(path, "two", 0604);
	assert_string_equal(err.text, "");
	assert_int_equal(save_begin(&s, "/nowhere/at/all", &err), -1);
	assert_string_equal(err.text, "/nowhere/at/all: No such file or directory");
	/* A device or a folder is never replaced. */
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(save_begin(&s, fifo, &err), -1);
	assert_non_null(strstr(err.text, "not a regular file"));
	assert_int_equal(lstat(fifo, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	assert_int_equal(save_begin(&s, dir, &err), -1);
	/* Files of another kind are spared. */
	assert_true(save_begins_with(path, "two", 3) && !save_begins_with(path, "twos", 4) && !save_begins_with(dir, "", 1));
	assert_int_equal(save_spares(path, begins_with_two, "a two", &err), 0);
	assert_int_equal(save_spares("/nowhere/at/all", begins_with_two, "a two", &err), 0);
	check_file(path, "two", 0604);
	assert_int_equal(save_begin(&s, path, &err), 0);
	fputs("one", s.f);
	assert_int_equal(save_end(&s, 0, &err), 0);
	assert_int_equal(save_spares(path, begins_with_two, "a two", &err), -1);
	assert_non_null(strstr(err.text, "/a: exists and is not a two"));
	umask(mask);
	unlink(fifo);
	unlink(path);
	unlink(link);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file), cmocka_unit_test(test_save_links), cmocka_unit_test(test_save),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
