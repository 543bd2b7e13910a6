/* OpenMetrics of samples: time on a busy core is a counter only where it is known; processes, contention, bounds. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "live/live.h"

static char *text_of(int64_t shared, int samples)
{
	struct live_vcpu vcpu = { .machine = "web", .number = 1, .tid = 7, .ns = { .ran = 2000000000 }, .shared = shared };
	const struct live_sample sample = { .period = 2000000000, .vcpu = &vcpu, .vcpus = 1, .has_bpf = true };
	struct live_metrics *m = live_metrics_new();
	size_t len;
	for (int i = 0; i < samples; i++)
		live_metrics_add(m, &sample);
	char *text = live_metrics_text(m, &len);
	live_metrics_free(m);
	assert_int_equal(strlen(text), len);
	return text;
}

static void test_shared_core(void **state)
{
	(void)state;
	char *text = text_of(1500000000, 2);
	assert_non_null(strstr(text, "\n# TYPE stealscope_shared_core_seconds counter\n"));
	assert_non_null(strstr(text, "\nstealscope_shared_core_seconds_total{machine=\"web\",vcpu=\"1\"} 3.000000000\n"));
	assert_non_null(strstr(text, "stealscope_vcpu_seconds_total{machine=\"web\",vcpu=\"1\",state=\"ran\"} 4.000000000\n"));
	free(text);
	text = text_of(-1, 1);  /* no core has two CPUs */
	assert_null(strstr(text, "stealscope_shared_core_seconds_total"));
	free(text);
}

/* A process `name` of group 0 that lost `lost` ns to a process of another group, in a period that ends at a time. The wall
 * clock is set forward and back by up to half a day. */
static void add_process(struct live_metrics *m, const char *name, int64_t lost, int64_t end)
{
	static int64_t last;
	struct live_group group[] = { { .name = "web.service", .kind = LIVE_CONTROL_GROUP },
		                          { .name = "batch.slice", .kind = LIVE_CONTROL_GROUP } };
	struct live_vcpu vcpu = { .number = -1, .pid = 4711, .tid = 4711, .longest = lost, .ns = { .ran = 1000, .stolen = lost } };
	struct live_culprit culprit[] = { { .kind = LIVE_PROCESS, .pid = 4712, .name = "batch.slice/hog", .group = 1 },
		                              { .kind = LIVE_OWN, .name = "its own threads", .group = -1 } };
	struct live_pair pair[] = { { 0, 0, lost }, { 0, 1, 5 } };
	const struct live_sample sample = { .period = end - last, .wall = end + end * 7919 % (43200 * INT64_C(1000000000)),
		                                .vcpu = &vcpu, .vcpus = 1, .group = group, .groups = 2,
		                                .culprit = culprit, .culprits = 2, .pair = pair, .pairs = 2 };
	snprintf(vcpu.machine, sizeof vcpu.machine, "%s", name);
	live_metrics_add(m, &sample);
	last = end;
}

static void test_processes(void **state)
{
	(void)state;
	struct live_metrics *m = live_metrics_new();
	const int64_t s = 1000000000, begin = 1000 * s;
	size_t len;
	add_process(m, "nginx", 300000000, begin);
	add_process(m, "nginx", 200000000, begin + s);
	char *text = live_metrics_text(m, &len);
	assert_non_null(strstr(text, "\nstealscope_process_seconds_total{group=\"web.service\",process=\"nginx\",state=\"stolen\"} 0.500000000\n"));
	assert_non_null(strstr(text, "\nstealscope_process_longest_wait_seconds{group=\"web.service\",process=\"nginx\"} 0.300000000\n"));
	/* what its own threads took is no contention */
	assert_non_null(strstr(text, "\nstealscope_contention_seconds_total{group=\"web.service\"} 0.500000000\n"));
	assert_null(strstr(text, "471"));  /* no PID */
	free(text);
	/* 5,000 names: the number of series is bounded, and the sum is kept */
	for (int i = 0; i < 5000; i++) {
		char name[32];
		snprintf(name, sizeof name, "short%d", i);
		add_process(m, name, 1000000, begin + 2 * s);
	}
	text = live_metrics_text(m, &len);
	size_t lines = 0;
	double sum = 0;
	for (const char *at = strstr(text, "\nstealscope_"); at; at = strstr(at + 1, "\nstealscope_")) {
		lines++;
		const char *stolen = strstr(at, "state=\"stolen\"} ");
		if (strncmp(at + 1, "stealscope_process_seconds_total", 32) == 0 && stolen && stolen < strchr(at + 1, '\n'))
			sum += strtod(stolen + 16, NULL);
	}
	assert_in_range(lines, 4096, 4150);
	assert_in_range((uintmax_t)(sum * 1000 + 0.5), 5500, 5500);
	free(text);
	/* what has ended is dropped; what goes on keeps its counter */
	for (int i = 0; i < 40; i++)
		add_process(m, "nginx", 1000000, begin + (10 + 10 * i) * s);
	text = live_metrics_text(m, &len);
	assert_null(strstr(text, "short1"));
	assert_null(strstr(text, "=\"other\""));
	assert_non_null(strstr(text, "\nstealscope_process_seconds_total{group=\"web.service\",process=\"nginx\",state=\"stolen\"} 0.540000000\n"));
	assert_non_null(strstr(text, "\nstealscope_process_longest_wait_seconds{group=\"web.service\",process=\"nginx\"} 0.001000000\n"));
	free(text);
	live_metrics_free(m);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_shared_core), cmocka_unit_test(test_processes) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
