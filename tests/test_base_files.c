/* base/: opening, reading and replacing files. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/event_text.h"
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
	return file_begins_with(path, "two", 3);
}

/* file_open() opens a regular file; refuses anything else, without blocking. */
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
	assert_int_equal(errno, FILE_NOT_REGULAR);
	assert_null(file_open("/dev/zero"));
	assert_int_equal(errno, FILE_NOT_REGULAR);
	f = file_open("/dev/null");
	assert_int_equal(fgetc(f), EOF);
	fclose(f);
	assert_null(file_open(dir));
	assert_int_equal(errno, EISDIR);
	unlink(path);
	assert_null(file_open(path));
	assert_int_equal(errno, ENOENT);
	unlink(pipe);
	rmdir(dir);
}

/* Saving refuses a dangling link, and a link through /proc to an open file (like /dev/stdout): neither is replaced. */
static void test_save_links(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	struct save s;
	struct stat before, st;
	char dir[] = "/tmp/stealscope-save-XXXXXX", path[64], open_file[64], link[64];
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/a", dir);
	snprintf(link, sizeof link, "%s/b", dir);
	assert_int_equal(symlink("nowhere", link), 0);
	assert_int_equal(atomic_file_begin(&s, link, &err), -1);
	assert_non_null(strstr(err.text, "/b: is a link"));
	assert_int_equal(refuse_overwrite(link, begins_with_two, "a two", &err), -1);
	unlink(link);
	const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && fstat(fd, &before) == 0);
	snprintf(open_file, sizeof open_file, "/proc/self/fd/%d", fd);
	assert_int_equal(symlink(open_file, link), 0);
	for (int unlinked = 0; unlinked < 2; unlinked++) {
		assert_int_equal(atomic_file_begin(&s, link, &err), -1);
		assert_non_null(strstr(err.text, "/proc"));
		assert_int_equal(atomic_file_begin(&s, open_file, &err), -1);
		assert_int_equal(lstat(link, &st), 0);
		assert_true(S_ISLNK(st.st_mode));
		assert_int_equal(stat(unlinked ? link : path, &st), 0);
		assert_true(st.st_ino == before.st_ino);
		unlink(path);
	}
	close(fd);
	unlink(link);
	assert_int_equal(rmdir(dir), 0);
}

/* A saved file appears only when complete; it keeps the permissions of the file that it replaces, and a link to it stays
 * a link. */
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
	assert_int_equal(atomic_file_begin(&s, path, &err), 0);
	fputs("one", s.f);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(atomic_file_end(&s, 0, &err), 0);
	check_file(path, "one", 0640);
	assert_int_equal(chmod(path, 0604), 0);
	assert_int_equal(symlink("a", link), 0);
	assert_int_equal(atomic_file_begin(&s, link, &err), 0);
	fputs("two", s.f);
	check_file(path, "one", 0604);
	assert_int_equal(atomic_file_end(&s, 0, &err), 0);
	check_file(path, "two", 0604);
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(atomic_file_begin(&s, path, &err), 0);
	fputs("three", s.f);
	assert_int_equal(atomic_file_end(&s, -1, &err), -1);
	check_file(path, "two", 0604);
	assert_string_equal(err.text, "");
	assert_int_equal(atomic_file_begin(&s, "/nowhere/at/all", &err), -1);
	assert_string_equal(err.text, "/nowhere/at/all: No such file or directory");
	/* A device or a directory is never replaced. */
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(atomic_file_begin(&s, fifo, &err), -1);
	assert_non_null(strstr(err.text, "not a regular file"));
	assert_int_equal(lstat(fifo, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	assert_int_equal(atomic_file_begin(&s, dir, &err), -1);
	/* Files of another kind are not overwritten. */
	assert_true(file_begins_with(path, "two", 3) && !file_begins_with(path, "twos", 4) && !file_begins_with(dir, "", 1));
	assert_int_equal(refuse_overwrite(path, begins_with_two, "a two", &err), 0);
	assert_int_equal(refuse_overwrite("/nowhere/at/all", begins_with_two, "a two", &err), 0);
	check_file(path, "two", 0604);
	assert_int_equal(atomic_file_begin(&s, path, &err), 0);
	fputs("one", s.f);
	assert_int_equal(atomic_file_end(&s, 0, &err), 0);
	assert_int_equal(refuse_overwrite(path, begins_with_two, "a two", &err), -1);
	assert_non_null(strstr(err.text, "a two"));
	umask(mask);
	unlink(fifo);
	unlink(path);
	unlink(link);
	assert_int_equal(rmdir(dir), 0);
}

/* Each range of characters that are not shown: its ends are escaped, its neighbours are not. */
static void test_escaped_ranges(void **state)
{
	(void)state;
	static const struct { const char *inside[2], *outside[2]; } range[] = {
		{ { "\x01", "\x1f" }, { " ", "!" } },
		{ { "\x7f", "\xc2\x9f" }, { "~", "\xc2\xa0" } },
		{ { "\xc2\xad", "\xd8\x9c" }, { "\xc2\xac", "\xd8\x9d" } },
		{ { "\xe2\x80\x8b", "\xe2\x80\x8f" }, { "\xe2\x80\x8a", "\xe2\x80\x90" } },
		{ { "\xe2\x80\xa8", "\xe2\x80\xae" }, { "\xe2\x80\xa7", "\xe2\x80\xaf" } },
		{ { "\xe2\x81\xa0", "\xe2\x81\xaf" }, { "\xe2\x81\x9f", "\xe2\x81\xb0" } },
		{ { "\xef\xbb\xbf", "\xef\xbb\xbf" }, { "\xef\xbb\xbe", "\xef\xbc\x80" } },
		{ { "\xf3\xa0\x80\x80", "\xf3\xa0\x81\xbf" }, { "\xf3\x9f\xbf\xbf", "\xf3\xa0\x82\x80" } },
	};
	char escaped[32];
	for (size_t i = 0; i < sizeof range / sizeof *range; i++) {
		for (size_t k = 0; k < 2; k++) {
			assert_int_equal(text_escape(escaped, sizeof escaped, range[i].inside[k])[0], '\\');
			assert_string_equal(text_escape(escaped, sizeof escaped, range[i].outside[k]), range[i].outside[k]);
		}
	}
}

/* A list of events keeps its texts when those of its source are gone. */
static void test_event_texts(void **state)
{
	(void)state;
	char text[4][8] = { "machine", "comm", "event", "fields" };
	struct event_list list = { 0 };
	const struct event_text one = { .machine = text[0], .comm = text[1], .event = text[2], .fields = text[3] };
	event_list_add(&list, &one);
	memset(text, 'x', sizeof text);
	assert_string_equal(list.event[0].machine, "machine");
	assert_string_equal(list.event[0].comm, "comm");
	assert_string_equal(list.event[0].event, "event");
	assert_string_equal(list.event[0].fields, "fields");
	event_list_release(&list);
	assert_null(list.event);
	assert_int_equal(list.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_escaped_ranges), cmocka_unit_test(test_event_texts),
		cmocka_unit_test(test_file), cmocka_unit_test(test_save_links), cmocka_unit_test(test_save),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
