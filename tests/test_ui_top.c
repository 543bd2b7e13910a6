/* The sentence of `stealscope top`: the victim, the share and its base are those of the rules for findings. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "ui/top/top.h"

#define MS 1000000

/* A period of 1 s with two vCPUs; the times in ms. */
static bool sentence(struct live_times a, int64_t longest, struct live_times b, char *buf, size_t size)
{
	struct live_culprit culprit = { .kind = LIVE_PROCESS, .name = "host/7 hog" };
	struct live_group group = { "web", LIVE_VM };
	struct live_vcpu vcpu[2] = {
		{ .machine = "web", .number = 0, .ns = a, .vmm = -1, .longest = longest * MS, .longest_culprit = 0 },
		{ .machine = "web", .number = 1, .ns = b, .vmm = -1, .longest = 2 * MS, .longest_culprit = 0 },
	};
	struct live_sample s = { .period = 1000 * MS, .vcpu = vcpu, .vcpus = 2, .group = &group, .groups = 1, .culprit = &culprit,
		                     .culprits = 1, .has_bpf = true, .pressure = -1 };
	for (int i = 0; i < 2; i++) {
		struct live_times *t = &vcpu[i].ns;
		t->ran *= MS, t->stolen *= MS, t->throttled *= MS, t->unknown *= MS;
		vcpu[i].top_ns = t->stolen / 2;
		vcpu[i].period = s.period;
	}
	return top_sentence(&s, buf, size);
}

static void test_victim(void **state)
{
	char text[300];
	(void)state;
	/* It sleeps 90 % of the time, and waits for half of the rest. */
	assert_true(sentence((struct live_times){ .ran = 50, .stolen = 50 }, 3, (struct live_times){ .ran = 900 }, text, sizeof text));
	assert_non_null(strstr(text, "web/vCPU0"));
	assert_non_null(strstr(text, " 50 %"));
	assert_non_null(strstr(text, "hog"));
	/* The larger loss, not the larger share. */
	assert_true(sentence((struct live_times){ .ran = 50, .stolen = 50 }, 3, (struct live_times){ .ran = 700, .stolen = 300 }, text,
	                     sizeof text));
	assert_non_null(strstr(text, "web/vCPU1"));
	assert_non_null(strstr(text, " 30 %"));
	/* Much of the time, but less than 5 % of the time that it wanted. */
	assert_false(sentence((struct live_times){ .ran = 960, .stolen = 40 }, 3, (struct live_times){ .ran = 0 }, text, sizeof text));
	/* It wanted less than 1 % of the time: a victim only with a long wait. */
	assert_false(sentence((struct live_times){ .ran = 1, .stolen = 8 }, 8, (struct live_times){ .ran = 9 }, text, sizeof text));
	assert_true(sentence((struct live_times){ .ran = 1, .stolen = 8 }, 12, (struct live_times){ .ran = 9 }, text, sizeof text));
	/* Its own limit. */
	assert_true(sentence((struct live_times){ .ran = 100, .stolen = 50, .throttled = 250 }, 3, (struct live_times){ .ran = 9 },
	                     text, sizeof text));
	assert_non_null(strstr(text, " 62 %"));
	assert_null(strstr(text, "hog"));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_victim) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
