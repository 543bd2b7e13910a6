/* history/: if the builder fails or is killed, the file of that name is a complete history or does not exist. */
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/stream_history.h"
#include "history/history.h"
#include "mount_namespace.h"
#include "stream.h"

#define DIR_NAME "test_history_crash.dir"
#define FILE_NAME DIR_NAME "/a.stl"

/* Number of entries in the directory of the test. */
static unsigned count_entries(void)
{
	unsigned n = 0;
	DIR *d = opendir(DIR_NAME);
	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.' || strlen(e->d_name) > 2;
	closedir(d);
	return n;
}

static void empty_dir(void)
{
	DIR *d = opendir(DIR_NAME);
	for (struct dirent *e; d && (e = readdir(d));)
		unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
}

static int setup(void **state)
{
	(void)state;
	empty_dir();
	return mkdir(DIR_NAME, 0777) && errno != EEXIST;
}

static int teardown(void **state)
{
	(void)state;
	empty_dir();
	return rmdir(DIR_NAME);
}

static uint64_t changes_in(const char *path)
{
	struct error err = ERROR_INIT;
	struct history *h = history_open(path, &err);
	assert_non_null(h);
	assert_int_equal(history_verify(h, &err), 0);
	uint64_t n = history_intervals(h) - 100;
	history_close(h);
	return n;
}

static int build_history(uint64_t changes, const struct history_options *options, struct error *err)
{
	return stream_build(FILE_NAME, 100, changes, options, NULL, err);
}

/* Builds in a child with a limited file size. Returns its exit status: 0 built, 1 refused with a clear message, 2
 * otherwise. */
static int build_limited(rlim_t limit, const struct history_options *options)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct error err = ERROR_INIT;
		setrlimit(RLIMIT_FSIZE, &(struct rlimit){ limit, limit });
		int result = build_history(20000, options, &err);
		if (!result)
			_exit(0);
		_exit(err.status == STATUS_SYSTEM && strstr(err.text, FILE_NAME) && strstr(err.remedy, "limit") ? 1 : 2);
	}
	int status;
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void check_full_disk(const struct history_options *options)
{
	struct error err = ERROR_INIT;
	assert_int_equal(build_history(20000, options, &err), 0);
	struct stat st;
	assert_int_equal(stat(FILE_NAME, &st), 0);
	unlink(FILE_NAME);
	unsigned refusals = 0;
	for (rlim_t limit = 0; limit < (rlim_t)st.st_size; limit += (rlim_t)st.st_size / 23) {
		assert_int_equal(build_limited(limit, options), 1);
		assert_int_equal(count_entries(), 0);
		refusals++;
	}
	assert_true(refusals > 20);
	assert_int_equal(build_limited((rlim_t)st.st_size, options), 0);
	assert_int_equal(count_entries(), 1);
	/* A failed build does not touch an older file. */
	assert_int_equal(build_limited((rlim_t)st.st_size / 2, options), 1);
	assert_int_equal(changes_in(FILE_NAME), 20000);
	assert_int_equal(count_entries(), 1);
	unlink(FILE_NAME);
}

/* Fills the disk with attributes alone: so many that the builder spills them to a file. */
static void check_full_table(rlim_t limit)
{
	enum { MANY = 20000 };
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct error err = ERROR_INIT;
		char path[64];
		setrlimit(RLIMIT_FSIZE, &(struct rlimit){ limit, limit });
		struct history_builder *b = history_create(FILE_NAME, &(struct history_options){ .memory = 65536 }, &err);
		int declared = 0;
		for (bool more = b; more && declared < MANY; declared += more) {
			snprintf(path, sizeof path, "/t/%d", declared);
			more = history_attribute(b, path, HISTORY_INT, 0, &err) != HISTORY_NONE;
		}
		/* Every later call fails with the same error. */
		struct error later[4] = { ERROR_INIT, ERROR_INIT, ERROR_INIT, ERROR_INIT };
		bool refused = b && declared > 200 && declared < MANY && err.status == STATUS_SYSTEM &&
		               strstr(err.text, FILE_NAME) && history_set(b, 1, 0, 1, &later[0]) &&
		               history_text(b, "x", &later[1]) < 0 &&
		               history_attribute(b, "/t/more", HISTORY_INT, 0, &later[2]) == HISTORY_NONE;
		refused = b && history_finish(b, 0, MANY, &later[3]) && refused;
		for (int i = 0; refused && i < 4; i++)
			refused = !strcmp(later[i].text, err.text);
		_exit(refused ? 0 : 1);
	}
	int status;
	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(count_entries(), 0);
}

static void test_full_disk(void **state)
{
	(void)state;
	check_full_table(20000);
	check_full_table(500000);
	check_full_disk(NULL);
	check_full_disk(&(struct history_options){ .named = true, .chunk = 8, .block = 256 });
}

/* Builds on a tmpfs of 64 KiB in its own mount namespace. Returns 0, a step that failed, or 9 if the system does not
 * permit mounts. */
static int build_on_small_disk(void)
{
	struct error err = ERROR_INIT;
	if (!mount_namespace_enter() || mount("tmpfs", DIR_NAME, "tmpfs", 0, "size=64k"))
		return 9;
	for (int named = 0; named < 2; named++) {
		if (!build_history(20000, &(struct history_options){ .named = named }, &err))
			return 1;
		if (err.status != STATUS_SYSTEM || !strstr(err.text, "No space left") || !strstr(err.remedy, "space"))
			return 2;
		if (count_entries())
			return 3;
	}
	return build_history(1000, NULL, &err) || count_entries() != 1 ? 4 : 0;
}

static void test_small_disk(void **state)
{
	(void)state;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(build_on_small_disk());
	int status;
	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 9)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(count_entries(), 0);
}

static void test_kill(void **state)
{
	(void)state;
	uint64_t s = 3;
	unsigned complete = 0;
	for (int i = 0; i < 40; i++) {
		bool named = i % 2;
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (!pid) {
			struct error err = ERROR_INIT;
			_exit(build_history(30000, &(struct history_options){ .named = named }, &err) != 0);
		}
		nanosleep(&(struct timespec){ 0, (long)(stream_random(&s) % 10000000) }, NULL);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		if (!access(FILE_NAME, F_OK)) {
			assert_int_equal(changes_in(FILE_NAME), 30000);
			complete++;
		} else if (!named) {
			assert_int_equal(count_entries(), 0);
		}
		empty_dir();
	}
	(void)complete;  /* the number of complete builds depends on timing */
}

static void test_abort_leaves_nothing(void **state)
{
	(void)state;
	for (int named = 0; named < 2; named++) {
		struct error err = ERROR_INIT;
		struct history_builder *b = history_create(FILE_NAME, &(struct history_options){ .named = named }, &err);
		assert_non_null(b);
		assert_int_equal(count_entries(), named);
		uint32_t a = history_attribute(b, "/a", HISTORY_INT, 0, &err);
		assert_int_equal(history_set(b, 1, a, 1, &err), 0);
		history_abort(b);
		assert_int_equal(count_entries(), 0);
	}
	history_abort(NULL);
}

/* Two builders of the same file: both finish, the later file remains; a reader keeps the one that it opened. */
static void test_two_builders(void **state)
{
	(void)state;
	for (int named = 0; named < 2; named++) {
		struct history_options options = { .named = named };
		struct error err = ERROR_INIT;
		struct history_builder *b[2];
		for (int i = 0; i < 2; i++) {
			b[i] = history_create(FILE_NAME, &options, &err);
			assert_non_null(b[i]);
		}
		for (int i = 0; i < 2; i++) {
			uint32_t a = history_attribute(b[i], "/a", HISTORY_INT, 0, &err);
			for (int64_t t = 0; t < 50; t++)
				assert_int_equal(history_set(b[i], t, a, 2 * t + i, &err), 0);
		}
		assert_int_equal(history_finish(b[1], 0, 100, &err), 0);
		struct history *first = history_open(FILE_NAME, &err);
		assert_non_null(first);
		assert_int_equal(history_finish(b[0], 0, 100, &err), 0);
		struct history *second = history_open(FILE_NAME, &err);
		assert_non_null(second);
		struct interval iv;
		assert_int_equal(history_stab(first, 1, 7, &iv, &err), 0);
		assert_int_equal(iv.value, 15);
		assert_int_equal(history_stab(second, 1, 7, &iv, &err), 0);
		assert_int_equal(iv.value, 14);
		history_close(first);
		history_close(second);
		assert_int_equal(count_entries(), 1);
	}
}

/* Builders race; every reader finds a complete file. */
static void test_race(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	assert_int_equal(build_history(100, NULL, &err), 0);
	pid_t pid[2];
	for (int i = 0; i < 2; i++)
		if (!(pid[i] = fork())) {
			for (int k = 0; k < 10; k++)
				if (build_history(100 + (uint64_t)(1 + i) * 1000, &(struct history_options){ .named = i }, &err))
					_exit(1);
			_exit(0);
		}
	for (int done = 0; done < 2;) {
		uint64_t n = changes_in(FILE_NAME);
		assert_true(n == 100 || n == 1100 || n == 2100);
		int status;
		if (waitpid(-1, &status, WNOHANG) > 0) {
			assert_int_equal(status, 0);
			done++;
		}
	}
	assert_int_equal(count_entries(), 1);
}

static void test_read_only(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	assert_int_equal(chmod(DIR_NAME, 0555), 0);
	pid_t pid = fork();
	if (!pid) {
		if (!geteuid() && setuid(65534))
			_exit(9);
		struct history_builder *b = history_create(FILE_NAME, NULL, &err);
		_exit(b ? 1 : !(err.status == STATUS_SYSTEM && strstr(err.text, FILE_NAME) && err.remedy[0]));
	}
	int status;
	waitpid(pid, &status, 0);
	assert_int_equal(chmod(DIR_NAME, 0777), 0);
	assert_int_equal(status, 0);
	assert_int_equal(count_entries(), 0);

	assert_null(history_create(DIR_NAME "/none/a.stl", NULL, &err));
	assert_non_null(strstr(err.text, "No such file"));
	assert_null(history_create(DIR_NAME, NULL, &err));
	assert_non_null(strstr(err.text, "not a regular file"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_full_disk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_small_disk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kill, setup, teardown),
		cmocka_unit_test_setup_teardown(test_abort_leaves_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_builders, setup, teardown),
		cmocka_unit_test_setup_teardown(test_race, setup, teardown),
		cmocka_unit_test_setup_teardown(test_read_only, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
