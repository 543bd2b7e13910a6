/* Tests of flight recordings, which save the time before a trigger. */
#include "record_runs.h"

#include <pthread.h>
#include <stdatomic.h>

static char snapshot_dir[512];
static atomic_size_t n_snapshots;

static void count_snapshot(void *arg, const char *dir, const struct record_result *r)
{
	(void)arg;
	assert_true(r->machine[0].recorded && r->machine[1].recorded);
	snprintf(snapshot_dir, sizeof snapshot_dir, "%s", dir + strlen(tree.root) + 1);
	n_snapshots++;
}

/* Increases the runqueue wait in the schedstat of a vCPU thread step by step. */
static void *grow_wait(void *arg)
{
	const long long ms = *(const int *)arg;
	for (int i = 0; i < 6000 && !n_snapshots; i++) {
		char text[64];
		snprintf(text, sizeof text, "1 %lld 1\n", ms * MS * i);
		tree_text(&tree, "proc/300/task/311/schedstat", text);
		usleep(100000);
	}
	stop = !n_snapshots;  /* no trigger fired in 10 min */
	return NULL;
}

static void check_flight(const char *trigger, int wait_ms, volatile int *fire)
{
	struct record_result r;
	struct error err;
	pthread_t waits;
	char *web = transport_into("g1", "sh"), path[600];
	n_snapshots = 0;
	pthread_create(&waits, NULL, grow_wait, &wait_ms);
	const struct record_options o = { .hold = 2000LL * MS, .trigger = &trigger, .triggers = trigger != NULL,
		.max_snapshots = 1,
		.on_snapshot = count_snapshot, .fire = fire };
	const int rc = run_recording("r", web, "none", o, &r, &err);
	if (rc)
		printf("%s\n", err.text);
	assert_int_equal(rc, 0);
	pthread_join(waits, NULL);
	assert_int_equal(n_snapshots, 1);
	snprintf(path, sizeof path, "%s/session.yaml", snapshot_dir);
	assert_true(file_contains(path, "dir: guest-web"));
	snprintf(path, sizeof path, "%s/guest-web/about.yaml", snapshot_dir);
	assert_true(file_contains(path, "kept: 2000000000"));
	snprintf(path, sizeof path, "%s/host/pages/cpu1", snapshot_dir);
	check_pages(path, 'B');
	record_release(&r);
	free(web);
	assert_no_remains();
}

static void test_flights(void **state)
{
	(void)state;
	volatile int fire = 1;
	check_flight("gap(web/CPU1)>20ms", 50, NULL);
	tear_down(NULL);
	set_up(NULL);
	check_flight("steal(any)>10% for 500ms", 60, NULL);
	tear_down(NULL);
	set_up(NULL);
	check_flight("exit(sleep 0.3)", 0, NULL);
	tear_down(NULL);
	set_up(NULL);
	tree_text(&tree, "proc/loadavg", "9.50 1 1 1/1 1\n");
	check_flight("load>9", 0, NULL);
	tear_down(NULL);
	set_up(NULL);
	check_flight(NULL, 0, &fire);
	assert_int_equal(fire, 0);
}

/* No trigger fires: no snapshot is saved. */
static void test_no_trigger_fires(void **state)
{
	(void)state;
	static const char *const trigger[] = { "gap(web)>20ms", "steal(web)>90%", "load>100", "signal" };
	struct record_result r;
	struct error err;
	pthread_t thread;
	n_snapshots = 0;
	tree_text(&tree, "proc/loadavg", "0.50 1 1 1/1 1\n");
	tree_text(&tree, "proc/300/task/310/schedstat", "1 5000000000 1\n");
	pthread_create(&thread, NULL, stop_when_recording, NULL);
	const struct record_options o = { .hold = 2000LL * MS, .trigger = trigger, .triggers = 4,
		.on_snapshot = count_snapshot };
	assert_int_equal(run_recording("r", "none", "none", o, &r, &err), 0);
	pthread_join(thread, NULL);
	record_release(&r);
	char *dir = output_path("r");
	assert_int_equal(n_snapshots, 0);
	assert_int_not_equal(access(dir, F_OK), 0);
	free(dir);
	assert_no_remains();
}

static void test_triggers_refused(void **state)
{
	(void)state;
	static const char *const wrong[] = {
		"", "gap", "gap(web)", "gap()>1ms", "gap(web)>", "gap(web)>20", "gap(web)>-1ms", "gap(web)>2h", "steal(web)>30",
		"steal(web)>0%", "steal(web)>100%", "steal(web)>30% for", "steal(web)>30% for 1", "load>", "load>x", "load>-1",
		"exit()", "exit(true)x", "signals", "steal(web)>nan%",
	};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		const struct record_options o = { .hold = 1000LL * MS, .trigger = &wrong[i], .triggers = 1, .host_only = true };
		check_record_error(&o, STATUS_USAGE, "--trigger: ");
	}
	static const char *const no_such_vcpu[] = { "gap(wbe)>20ms", "steal(web/CPU7)>30%" };
	for (size_t i = 0; i < COUNT(no_such_vcpu); i++) {
		const struct record_options o = { .hold = 1000LL * MS, .trigger = &no_such_vcpu[i], .triggers = 1,
			.host_only = true };
		check_record_error(&o, STATUS_INPUT, "vCPU");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_flights), TEST(test_no_trigger_fires), TEST(test_triggers_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
