/* beacon/: the writes and hypercalls of a pulse. The hypercall is a stub of the test. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "beacon/beacon.h"

struct call { uint32_t nr; uint64_t a0, a1; };
static struct call calls[100000];
static size_t ncalls;

/* Imitates trace_marker: while tracing is off, a write fails with EBADF. */
static bool tracing_off;

ssize_t write(int fd, const void *data, size_t n)
{
	if (tracing_off) {
		errno = EBADF;
		return -1;
	}
	return syscall(SYS_write, fd, data, n);
}

/* Imitates /proc/stat: each time it is opened, the guest has worked for some more jiffies. */
static uint64_t worked[3], more[3];
static unsigned stat_reads;
static bool has_stat;

FILE *fopen(const char *path, const char *mode)
{
	if (!has_stat || strcmp(path, "/proc/stat") != 0)
		return fdopen(open(path, O_RDONLY | O_CLOEXEC), mode);
	const int fd = memfd_create("stat", 0);
	for (int i = 0; i < 3; i++)
		worked[i] += more[i];
	stat_reads++;
	assert_true(dprintf(fd, "cpu  %" PRIu64 " %" PRIu64 " %" PRIu64 " 9 9 9\n", worked[0], worked[1], worked[2]) > 0);
	lseek(fd, 0, SEEK_SET);
	return fdopen(fd, "r");
}

static void record_call(uint32_t nr, uint64_t a0, uint64_t a1)
{
	if (ncalls < COUNT(calls))
		calls[ncalls++] = (struct call){ nr, a0, a1 };
}

static char output[] = "/tmp/stealscope-beacon-XXXXXX";

static int make_output(void **state)
{
	(void)state;
	ncalls = 0;
	tracing_off = false;
	memcpy(output + sizeof output - 7, "XXXXXX", 6);
	int fd = mkstemp(output);
	return fd < 0 ? -1 : close(fd);
}

static int drop_output(void **state)
{
	(void)state;
	return unlink(output);
}

/* Every pulse writes a X, calls hypercall X, writes d X + 1, all with the guest's uid. No key repeats, and keys of other
 * uids differ. */
static void test_pulses(void **state)
{
	(void)state;
	const struct beacon_options o = { .rate = 2000, .duration = 30000000, .output = output, .uid = 77,
	                                  .keep_idle = true, .hypercall = record_call };
	volatile int stop = 0;
	struct beacon_counts counts;
	struct error err = ERROR_INIT;
	assert_int_equal(beacon_run(&o, &stop, &counts, &err), 0);
	assert_true(counts.pulses > 0);
	assert_int_equal(counts.uid, 77);
	assert_int_equal(ncalls, counts.pulses);

	FILE *f = fopen(output, "r");
	assert_non_null(f);
	for (size_t i = 0; i < ncalls; i++) {
		uint32_t uid;
		uint64_t a, d;
		assert_int_equal(fscanf(f, "stealscope-sync a %" SCNu32 " %" SCNu64, &uid, &a), 2);
		assert_int_equal(uid, 77);
		assert_int_equal(fscanf(f, "stealscope-sync d %" SCNu32 " %" SCNu64, &uid, &d), 2);
		assert_int_equal(uid, 77);
		assert_int_equal(d, a + 1);
		assert_int_equal(a, (77ULL << 32) + 1 + 2 * i);
		assert_int_equal(calls[i].nr, 0x56534e43);
		assert_int_equal(calls[i].a0, a);
		assert_int_equal(calls[i].a1, 77);
	}
	assert_int_equal(fgetc(f), EOF);
	fclose(f);
}

static volatile int enough_calls;

static void begin_recording(uint32_t nr, uint64_t a0, uint64_t a1)
{
	record_call(nr, a0, a1);
	tracing_off = ncalls < 4;
	enough_calls = ncalls >= 12;
}

/* The recording may start after the beacon; if it never starts, that is an error. */
static void test_tracing_off(void **state)
{
	(void)state;
	struct beacon_options o = { .rate = 2000, .output = output, .uid = 77, .keep_idle = true,
	                            .hypercall = begin_recording };
	volatile int stop = 0;
	struct beacon_counts counts;
	struct error err = ERROR_INIT;
	tracing_off = true;
	assert_int_equal(beacon_run(&o, &enough_calls, &counts, &err), 0);
	assert_int_equal(counts.not_traced, 4);
	assert_int_equal(counts.pulses, ncalls - 4);

	tracing_off = true;
	o.duration = 30000000;
	o.hypercall = record_call;
	assert_int_equal(beacon_run(&o, &stop, &counts, &err), -1);
	assert_int_equal(err.status, STATUS_INPUT);
	assert_non_null(strstr(err.text, "no pulse"));

	struct beacon_cost cost;
	ncalls = 0;
	assert_int_equal(beacon_measure(&o, 10, &cost, &err), 0);
	assert_int_equal(ncalls, 20);
}

/* Keys fit into the range that a layout accepts, for any uid. */
static void test_largest_uid(void **state)
{
	(void)state;
	const struct beacon_options o = { .rate = 2000, .duration = 1000000, .output = output, .uid = UINT32_MAX,
	                                  .keep_idle = true, .hypercall = record_call };
	volatile int stop = 0;
	struct beacon_counts counts;
	assert_int_equal(beacon_run(&o, &stop, &counts, NULL), 0);
	assert_true(ncalls > 0);
	assert_true(calls[0].a0 > INT64_MAX / 2 && calls[0].a0 < INT64_MAX);
}

static void test_stop(void **state)
{
	(void)state;
	const struct beacon_options o = { .rate = 10, .output = output, .keep_idle = true, .hypercall = record_call };
	volatile int stop = 1;
	struct beacon_counts counts;
	assert_int_equal(beacon_run(&o, &stop, &counts, NULL), 0);
	assert_int_equal(counts.pulses, 0);
	assert_true(counts.uid != 0);
}

/* Takes 2 ms in the middle fifth of a measurement of 101 rounds, in which a round has two calls. */
static void slow_in_the_middle(uint32_t nr, uint64_t a0, uint64_t a1)
{
	record_call(nr, a0, a1);
	if (ncalls > 80 && ncalls < 120)
		nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
}

/* The costs are medians: some slow rounds do not matter, wherever they are. */
static void test_median(void **state)
{
	(void)state;
	const struct beacon_options o = { .rate = 10, .output = output, .hypercall = slow_in_the_middle };
	struct beacon_cost cost;
	struct error err = ERROR_INIT;
	assert_int_equal(beacon_measure(&o, 101, &cost, &err), 0);
	assert_true(cost.hypercall_ns < 2000000 && cost.pulse_ns < 2000000);
}

static void test_measure(void **state)
{
	(void)state;
	const struct beacon_options o = { .rate = 10, .output = output, .hypercall = record_call };
	struct beacon_cost cost;
	struct error err = ERROR_INIT;
	assert_int_equal(beacon_measure(&o, 101, &cost, &err), 0);
	assert_int_equal(ncalls, 202);
	assert_true(cost.write_ns > 0 && cost.pulse_ns >= cost.write_ns);
	assert_int_equal(beacon_measure(&o, 0, &cost, &err), -1);
	assert_int_equal(err.status, STATUS_USAGE);
}

static void test_no_output(void **state)
{
	(void)state;
	const struct beacon_options o = { .rate = 10, .output = "/nonexistent/marker", .hypercall = record_call };
	volatile int stop = 0;
	struct beacon_counts counts;
	struct error err = ERROR_INIT;
	assert_int_equal(beacon_run(&o, &stop, &counts, &err), -1);
	assert_int_equal(err.status, STATUS_SYSTEM);
	assert_non_null(strstr(err.text, "/nonexistent/marker"));
	assert_int_equal(ncalls, 0);
}

/* The beacon finds its output by itself; a user who may write none of the places gets the reason. */
static void test_no_permission(void **state)
{
	int status;
	(void)state;
	const pid_t pid = fork();
	if (pid == 0) {
		const struct beacon_options o = { .rate = 10, .hypercall = record_call };
		volatile int stop = 0;
		struct beacon_counts counts;
		struct error err = ERROR_INIT;
		if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
			_exit(0);  /* a user namespace without other users */
		_exit(beacon_run(&o, &stop, &counts, &err) == -1 && err.status == STATUS_SYSTEM && *err.text ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* A guest that worked for more than the beacon's own jiffy gets pulses, whatever kind of work it was; an idle one does not. */
static void test_busy(void **state)
{
	(void)state;
	const struct beacon_options o = { .rate = 2000, .duration = 80000000, .output = output, .uid = 77, .hypercall = record_call };
	const volatile int stop = 0;
	has_stat = true;
	for (int part = 0; part < 3; part++) {
		for (uint64_t step = 0; step < 3; step++) {
			struct beacon_counts counts;
			struct error err = ERROR_INIT;
			const int free_fd = dup(0);
			close(free_fd);
			stat_reads = 0;
			memset(worked, 0, sizeof worked);
			memset(more, 0, sizeof more);
			worked[1] = 100;
			more[part] = step;
			assert_int_equal(beacon_run(&o, &stop, &counts, &err), 0);
			assert_int_equal(counts.pulses + counts.skipped, stat_reads);
			assert_true(stat_reads > 1);
			assert_int_equal(step < 2 ? counts.pulses : counts.skipped, step < 2);
			const int next_fd = fcntl(0, F_DUPFD, free_fd + 1);  /* no file is left open */
			assert_int_equal(next_fd, free_fd + 1);
			close(next_fd);
		}
	}
	has_stat = false;
}

static void slow_call(uint32_t nr, uint64_t a0, uint64_t a1)
{
	const struct timespec t = { 0, 3000000 };
	record_call(nr, a0, a1);
	nanosleep(&t, NULL);
}

/* The costs are those of a write, of the hypercall and of a pulse, which contains both. */
static void test_costs(void **state)
{
	(void)state;
	const struct beacon_options o = { .rate = 2000, .output = output, .uid = 77, .keep_idle = true, .hypercall = slow_call };
	struct beacon_cost cost;
	struct error err = ERROR_INIT;
	assert_int_equal(beacon_measure(&o, 21, &cost, &err), 0);
	assert_in_range(cost.write_ns, 1, 2900000);
	assert_true(cost.hypercall_ns >= 3000000 && cost.pulse_ns >= 3000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_pulses, make_output, drop_output),
		cmocka_unit_test_setup_teardown(test_tracing_off, make_output, drop_output),
		cmocka_unit_test_setup_teardown(test_largest_uid, make_output, drop_output),
		cmocka_unit_test_setup_teardown(test_stop, make_output, drop_output),
		cmocka_unit_test_setup_teardown(test_measure, make_output, drop_output),
		cmocka_unit_test_setup_teardown(test_median, make_output, drop_output),
		cmocka_unit_test_setup_teardown(test_no_output, make_output, drop_output), cmocka_unit_test(test_no_permission),
		cmocka_unit_test_setup_teardown(test_busy, make_output, drop_output),
		cmocka_unit_test_setup_teardown(test_costs, make_output, drop_output),
	};
	return cmocka_run_group_tests_name("beacon", tests, NULL, NULL);
}
