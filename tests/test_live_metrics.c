/* OpenMetrics of samples: time on a busy core is a counter only where it is known. */
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

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_shared_core) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
