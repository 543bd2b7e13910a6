/* record/: flights, which keep what was before something happened. */
#include "record_runs.h"

#include <pthread.h>

static char kept_in[512];
static size_t kept;

static void keep(void *arg, const char *folder, const struct record_result *r)
{
	(void)arg;
	assert_true(r->machine[0].recorded && r->machine[1].recorded);
	snprintf(kept_in, sizeof kept_in, "%s", folder + strlen(tree.root) + 1);
	kept++;
}

/* What a vCPU's thread has waited for a CPU, by and by. */
static void *make_wait(void *arg)
{
	const long long ms = *(const int *)arg;
	for (int i = 0; i < 6000 && !kept; i++) {
		char text[64];
		snprintf(text, sizeof text, "1 %lld 1\n", ms * MS * i);
		tree_text(&tree, "proc/300/task/311/schedstat", text);
		usleep(100000);
	}
	stop = !kept;  /* it never fires */
	return NULL;
}

static void check_flight(const char *trigger, int wait_ms, volatile int *fire)
{
	struct record_result r;
	struct error err;
	pthread_t waits;
	char *web = way_into("g1", "sh"), path[600];
	kept = 0;
	pthread_create(&waits, NULL, make_wait, &wait_ms);
	const struct record_options o = { .hold = 2000LL * MS, .trigger = &trigger, .triggers = trigger != NULL, .most = 1,
		.kept = keep, .fire = fire };
	const int rc = record("r", web, "none", o, &r, &err);
	if (rc)
		printf("%s\n", err.text);
	assert_int_equal(rc, 0);
	pthread_join(waits, NULL);
	assert_int_equal(kept, 1);
	snprintf(path, sizeof path, "%s/session.yaml", kept_in);
	assert_true(holds(path, "dir: guest-web"));
	snprintf(path, sizeof path, "%s/guest-web/about.yaml", kept_in);
	assert_true(holds(path, "kept: 2000000000"));
	snprintf(path, sizeof path, "%s/host/pages/cpu1", kept_in);
	check_pages(path, 'B');
	record_release(&r);
	free(web);
	assert_clean();
}

static void test_flights(void **state)
{
	(void)state;
	volatile int fire = 1;
	check_flight("gap(web/CPU1)>20ms", 50, NULL);
	end(NULL);
	begin(NULL);
	check_flight("steal(any)>10% for 500ms", 60, NULL);
	end(NULL);
	begin(NULL);
	check_flight("exit(sleep 0.3)", 0, NULL);
	end(NULL);
	begin(NULL);
	tree_text(&tree, "proc/loadavg", "9.50 1 1 1/1 1\n");
	check_flight("load>9", 0, NULL);
	end(NULL);
	begin(NULL);
	check_flight(NULL, 0, &fire);
	assert_int_equal(fire, 0);
}

/* Nothing fires: nothing is kept. */
static void test_quiet_flight(void **state)
{
	(void)state;
	static const char *const trigger[] = { "gap(web)>20ms", "steal(web)>90%", "load>100", "signal" };
	struct record_result r;
	struct error err;
	pthread_t thread;
	kept = 0;
	tree_text(&tree, "proc/loadavg", "0.50 1 1 1/1 1\n");
	tree_text(&tree, "proc/300/task/310/schedstat", "1 5000000000 1\n");
	pthread_create(&thread, NULL, stop_later, NULL);
	const struct record_options o = { .hold = 2000LL * MS, .trigger = trigger, .triggers = 4, .kept = keep };
	assert_int_equal(record("r", "none", "none", o, &r, &err), 0);
	pthread_join(thread, NULL);
	record_release(&r);
	char *folder = output("r");
	assert_int_equal(kept, 0);
	assert_int_not_equal(access(folder, F_OK), 0);
	free(folder);
	assert_clean();
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
		check_error(&o, STATUS_USAGE, "is none");
	}
	static const char *const nobody[] = { "gap(wbe)>20ms", "steal(web/CPU7)>30%" };
	for (size_t i = 0; i < COUNT(nobody); i++) {
		const struct record_options o = { .hold = 1000LL * MS, .trigger = &nobody[i], .triggers = 1, .host_only = true };
		check_error(&o, STATUS_INPUT, "no vCPU is '");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_flights), TEST(test_quiet_flight), TEST(test_triggers_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
