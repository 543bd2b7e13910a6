/* beacon/: the marking library, with plain files in place of trace_marker. */
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "beacon/stealscope-mark.h"

static char marker[] = "test-mark-XXXXXX";

static int setup(void **state)
{
	(void)state;
	memcpy(marker, "test-mark-XXXXXX", sizeof marker);
	int fd = mkstemp(marker);
	if (fd < 0)
		return -1;
	close(fd);
	srbn_set_marker(marker);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	srbn_set_marker(NULL);
	unlink(marker);
	return 0;
}

static char *read_marker(void)
{
	struct stat st;
	int fd = open(marker, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	char *s = test_calloc(1, (size_t)st.st_size + 1);
	assert_int_equal(read(fd, s, (size_t)st.st_size), st.st_size);
	close(fd);
	return s;
}

static void test_text(void **state)
{
	(void)state;
	errno = 77;
	srbn_t a = srbn_start(), b = srbn_start();
	assert_true(a && b && a != b);
	srbn_yield(a);
	srbn_resume(b);
	srbn_end(b);
	srbn_end(a);
	assert_int_equal(errno, 77);
	assert_int_equal(srbn_listening(), 1);
	char want[512], *got = read_marker();
	unsigned long long x = a, y = b;
	snprintf(want, sizeof want, "srbn start %llu\nsrbn start %llu\nsrbn yield %llu\nsrbn resume %llu\nsrbn end %llu\n"
	         "srbn end %llu\n", x, y, x, y, y, x);
	assert_string_equal(got, want);
	test_free(got);
	/* 0 is not a valid request: it is ignored. */
	srbn_end(0);
	got = read_marker();
	assert_string_equal(got, want);
	test_free(got);
}

#define THREADS 8
#define EACH 500

static void *mark_many(void *arg)
{
	srbn_t *id = arg;
	for (int i = 0; i < EACH; i++) {
		id[i] = srbn_start();
		srbn_yield(id[i]);
		srbn_resume(id[i]);
		srbn_end(id[i]);
	}
	return NULL;
}

static int by_id(const void *a, const void *b)
{
	const srbn_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* Every mark arrives complete, once, and in the order of its request; ids never repeat. */
static void test_threads(void **state)
{
	(void)state;
	static srbn_t id[THREADS][EACH];
	pthread_t thread[THREADS];
	for (int t = 0; t < THREADS; t++)
		assert_int_equal(pthread_create(&thread[t], NULL, mark_many, id[t]), 0);
	for (int t = 0; t < THREADS; t++)
		pthread_join(thread[t], NULL);
	srbn_t *all = &id[0][0];
	qsort(all, THREADS * EACH, sizeof *all, by_id);
	static unsigned char step[THREADS * EACH];
	memset(step, 0, sizeof step);
	char *text = read_marker(), *rest = text;
	size_t lines = 0;
	while (*rest) {
		static const char *const order[] = { "start", "yield", "resume", "end" };
		char word[16], *line = rest;
		unsigned long long n;
		int used = -1;
		rest = strchr(line, '\n');
		assert_non_null(rest);
		*rest++ = '\0';
		assert_int_equal(sscanf(line, "srbn %15s %llu%n", word, &n, &used), 2);
		assert_int_equal(line[used], '\0');
		srbn_t want = n, *at = bsearch(&want, all, THREADS * EACH, sizeof *all, by_id);
		assert_non_null(at);
		assert_true(step[at - all] < 4);
		assert_string_equal(word, order[step[at - all]]);
		step[at - all]++;
		lines++;
	}
	assert_int_equal(lines, 4 * THREADS * EACH);
	for (size_t i = 1; i < THREADS * EACH; i++)
		assert_true(all[i] != all[i - 1]);
	test_free(text);
}

static void test_fork(void **state)
{
	(void)state;
	srbn_t parent = srbn_start();
	int pipes[2];
	assert_int_equal(pipe(pipes), 0);
	pid_t pid = fork();
	if (pid == 0) {
		srbn_t child[2] = { srbn_start(), srbn_start() };
		_exit(write(pipes[1], child, sizeof child) == (ssize_t)sizeof child ? 0 : 1);
	}
	srbn_t child[2], next = srbn_start();
	assert_int_equal(read(pipes[0], child, sizeof child), sizeof child);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(child[0] != parent && child[0] != next && child[1] != next && child[0] != child[1]);
	assert_int_equal(child[0] >> 32, pid);
	close(pipes[0]);
	close(pipes[1]);
}

/* Without a tracer nothing is written and errno is unchanged; a tracer that starts later is found. */
static void test_silence(void **state)
{
	(void)state;
	unlink(marker);
	errno = 78;
	srbn_t a = srbn_start();
	srbn_end(a);
	assert_int_equal(errno, 78);
	assert_int_equal(srbn_listening(), 0);
	assert_int_not_equal(access(marker, F_OK), 0);
	/* A file that refuses the text, like trace_marker while tracing is off. */
	srbn_set_marker("/dev/full");
	srbn_end(srbn_start());
	assert_int_equal(srbn_listening(), 0);
	/* The library searches again, but not at once. */
	srbn_set_marker(marker);
	srbn_start();
	int fd = open(marker, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
	srbn_t b = srbn_start();
	srbn_yield(b);
	char *got = read_marker();
	assert_string_equal(got, "");
	test_free(got);
	usleep(1100000);
	srbn_resume(b);  /* its start was not recorded: no mark */
	srbn_t c = srbn_start();
	char want[64];
	snprintf(want, sizeof want, "srbn start %llu\n", (unsigned long long)c);
	got = read_marker();
	assert_string_equal(got, want);
	test_free(got);
}

/* Replaces the program by a script: writes its arguments to the marker file and one row of csv to stdout. */
static void test_read(void **state)
{
	(void)state;
	char script[] = "test-mark-read-XXXXXX", path[4096], text[512];
	int fd = mkstemp(script);
	assert_true(fd >= 0);
	snprintf(text, sizeof text, "#!/bin/sh\necho \"$@\" > %s\n"
	         "echo 'request,machine,start,end,latency_ns,provider_low_ns,provider_high_ns,predicted_ns,ci_low_ns,"
	         "ci_high_ns,culprit'\necho '42,Debian,5,104,100,20,50,,,,\"host/7 a,b\"'\n", marker);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, 0700), 0);
	close(fd);
	assert_non_null(getcwd(path, sizeof path - sizeof script - 1));
	snprintf(path + strlen(path), sizeof script + 1, "/%s", script);
	setenv("STEALSCOPE", path, 1);
	struct srbn_history_data data;
	assert_int_equal(srbn_read_history("a b.history", NULL, 42, &data), 0);
	assert_int_equal(data.latency_ns, 100);
	assert_int_equal(data.cloud_latency_low_ns, 20);
	assert_int_equal(data.cloud_latency_high_ns, 50);
	assert_int_equal(data.cloud_latency_ns, -1);
	assert_string_equal(data.culprit, "host/7 a,b");
	char *got = read_marker();
	assert_string_equal(got, "latency requests --format csv --request 42 -- a b.history\n");
	test_free(got);
	errno = 0;
	assert_int_equal(srbn_read_history("a", "m", 43, &data), -1);
	assert_int_equal(errno, ENOENT);
	got = read_marker();
	assert_string_equal(got, "latency requests --format csv --request 43 --model m -- a\n");
	test_free(got);
	setenv("STEALSCOPE", "false", 1);
	assert_int_equal(srbn_read_history("a", NULL, 42, &data), -1);
	assert_int_equal(errno, ECHILD);
	setenv("STEALSCOPE", "./no-such-program", 1);
	assert_int_equal(srbn_read_history("a", NULL, 42, &data), -1);
	assert_true(errno == ENOENT || errno == ECHILD);  /* valgrind's vfork() does not pass the errno of the child */
	unsetenv("STEALSCOPE");
	unlink(script);
}

enum { MANY = 3000 };
static pthread_barrier_t all_read;
static _Atomic int sources[8];

static void *read_once(void *arg)
{
	struct srbn_data d = { 0 };
	const srbn_t r = srbn_start();
	(void)arg;
	srbn_end(r);
	sources[srbn_read(r, &d) ? 7 : d.source]++;
	pthread_barrier_wait(&all_read);
	return NULL;
}

/* Each of many threads at once has a source, and the library keeps few files open for them. */
static void test_many_threads(void **state)
{
	(void)state;
	if (access("/proc/thread-self/schedstat", F_OK))
		skip();
	static pthread_t thread[MANY];
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 131072);
	pthread_barrier_init(&all_read, NULL, MANY + 1);
	srbn_live("/nonexistent");
	int n = 0;
	while (n < MANY && pthread_create(&thread[n], &small, read_once, NULL) == 0)
		n++;
	if (n < MANY)
		fail_msg("only %d threads", n);
	pthread_barrier_wait(&all_read);
	const int fd = dup(0);  /* the lowest descriptor that is not in use */
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(sources[SRBN_SOURCE_SCHEDSTAT], MANY);
	assert_in_range(fd, 3, 300);
	close(fd);
	pthread_attr_destroy(&small);
}

static pthread_barrier_t marked, ended;

static void *mark_and_wait(void *arg)
{
	srbn_end(srbn_start());
	pthread_barrier_wait(&marked);
	pthread_barrier_wait(&ended);
	return arg;
}

/* Returns the number of descriptors of files named schedstat. */
static int schedstat_files(void)
{
	int n = 0;
	DIR *d = opendir("/proc/self/fd");
	for (const struct dirent *e; d && (e = readdir(d));) {
		char name[300], target[128] = "";
		snprintf(name, sizeof name, "/proc/self/fd/%s", e->d_name);
		const ssize_t len = readlink(name, target, sizeof target - 1);
		n += len > 9 && strcmp(target + len - 9, "schedstat") == 0;
	}
	if (d)
		closedir(d);
	return n;
}

/* Each thread that reads schedstat has a descriptor: a thread that ended has none, nor has the child of a fork for threads of
 * its parent. */
static void test_descriptors(void **state)
{
	enum { FEW = 20 };
	pthread_t thread[FEW];
	int status;
	(void)state;
	srbn_live("/nonexistent");
	const int before = schedstat_files();
	pthread_barrier_init(&marked, NULL, FEW + 1);
	pthread_barrier_init(&ended, NULL, FEW + 1);
	for (int i = 0; i < FEW; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, mark_and_wait, NULL), 0);
	pthread_barrier_wait(&marked);
	if (before > 0)
		assert_int_equal(schedstat_files(), before + FEW);
	const pid_t pid = fork();
	if (pid == 0) {
		srbn_end(srbn_start());
		_exit(schedstat_files());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
	pthread_barrier_wait(&ended);
	for (int i = 0; i < FEW; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(schedstat_files(), before);
	pthread_barrier_destroy(&marked);
	pthread_barrier_destroy(&ended);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_text, setup, teardown),
		cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fork, setup, teardown),
		cmocka_unit_test_setup_teardown(test_silence, setup, teardown),
		cmocka_unit_test_setup_teardown(test_read, setup, teardown),
		cmocka_unit_test(test_many_threads), cmocka_unit_test(test_descriptors),
	};
	return cmocka_run_group_tests_name("mark", tests, NULL, NULL);
}
