/* beacon/: the writes and hypercalls of a pulse. The hypercall is a stub of the test. */
#include "test.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/syscall.h>
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_pulses, make_output, drop_output),
		cmocka_unit_test_setup_teardown(test_tracing_off, make_output, drop_output),
		cmocka_unit_test_setup_teardown(test_largest_uid, make_output, drop_output),
		cmocka_unit_test_setup_teardown(test_stop, make_output, drop_output),
		cmocka_unit_test_setup_teardown(test_measure, make_output, drop_output),
		cmocka_unit_test_setup_teardown(test_no_output, make_output, drop_output),
	};
	return cmocka_run_group_tests_name("beacon", tests, NULL, NULL);
}
