/* trace/: what readers tell beside events. */
#include "test.h"

#include <unistd.h>

#include "trace/trace.h"
#include "trace/tracecmd.h"
#include "trace_loaded.h"

static void check_covered(const struct trace *t, bool told)
{
	const struct trace_info *info = trace_info(t);
	assert_true(info->cpus > 0);
	for (unsigned i = 0; i < info->cpus; i++) {
		assert_int_equal(info->cpu[i].told, told);
		assert_true(info->begin <= info->cpu[i].begin && info->cpu[i].begin <= info->cpu[i].end);
		assert_true(info->cpu[i].end <= info->end);
	}
}

/* From when to when each CPU was recorded: as the tracer tells, else by its events. */
static void test_covered(void **state)
{
	(void)state;
	struct loaded_traces l;
	char path[4096];
	load(data("fibonacci"), NULL, &l);
	for (size_t i = 0; i < l.n; i++)
		check_covered(l.trace[i], true);
	unload(&l);
	const struct event ev[] = {
		{ .ts = 10, .kind = EV_OTHER, .cpu = 0 }, { .ts = 50, .kind = EV_OTHER, .cpu = 0 },
		{ .ts = 30, .kind = EV_OTHER, .cpu = 2 }, { .ts = 40, .kind = EV_OTHER, .cpu = 2 },
	};
	struct trace *t = trace_from_events("m", ROLE_GUEST, ev, COUNT(ev), NULL, 0);
	const struct trace_cpu *cpu = trace_info(t)->cpu;
	assert_true(cpu[0].begin == 10 && cpu[0].end == 50 && !cpu[0].told);
	assert_true(cpu[1].begin > cpu[1].end);
	assert_true(cpu[2].begin == 30 && cpu[2].end == 40);
	trace_free(t);
	snprintf(path, sizeof path, "%s/../shared/traces/cpu_ends_early", getenv("srcdir") ? getenv("srcdir") : ".");
	if (access(path, F_OK) != 0 || tracecmd_claims("", (const unsigned char *)"\x17\x08\x44tracing", 10) == CLAIM_NONE)
		return;
	load(path, NULL, &l);
	check_covered(find(&l, "hypervisor"), true);
	t = (struct trace *)find(&l, "Debian");
	check_covered(t, false);
	cpu = trace_info(t)->cpu;
	assert_true(cpu[1].end - cpu[0].end > 3000000000);
	unload(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_covered) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
