/* query/: demand of targets, against a walk over their intervals by the names of their states. */
#include "test.h"

#include <unistd.h>

#include "query/query.h"
#include "ui_world.h"

static uint64_t seed = 5;

static int64_t dice(int64_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (int64_t)((seed >> 20) % (uint64_t)n);
}

static bool is_one(const char *name, const char *const *of)
{
	for (; *of; of++)
		if (strcmp(name, *of) == 0)
			return true;
	return false;
}

static struct demand walk(const struct history *h, uint32_t attr, int64_t from, int64_t to)
{
	static const char *const lost[] = { "PREEMPTED", "VIRT_PREEMPTED", "HOST_BLOCKED", "WAKING", "VMM", NULL };
	static const char *const ran[] = { "RUNNING", NULL };
	struct demand d = { 0 };
	struct history_cursor c;
	struct interval iv;
	assert_int_equal(history_range(&c, h, attr, from, to, NULL), 0);
	while (history_range_next(&c, &iv, NULL) > 0) {
		int64_t ns = (iv.end < to ? iv.end : to) - (iv.start > from ? iv.start : from) + 1;
		const char *state = iv.value == HISTORY_NULL ? "" : history_state_name(h, attr, (unsigned)iv.value);
		d.ran += is_one(state, ran) ? ns : 0;
		d.lost += is_one(state, lost) ? ns : 0;
		d.vmm_ns += strcmp(state, "VMM") == 0 ? ns : 0;
		d.slept += strcmp(state, "IDLE") == 0 || strcmp(state, "BLOCKED") == 0 ? ns : 0;
		d.alive += *state ? ns : 0;
	}
	return d;
}

static void check(const struct catalog *catalog, struct target s, int64_t from, int64_t to, struct demand want)
{
	struct demand is;
	struct error err = ERROR_INIT;
	assert_int_equal(demand_of(catalog, &s, from, to, &is, &err), 0);
	assert_int_equal(is.ran, want.ran);
	assert_int_equal(is.lost, want.lost);
	assert_int_equal(is.vmm_ns, want.vmm_ns);
	assert_int_equal(is.slept, want.slept);
	assert_int_equal(is.alive, want.alive);
}

static void test_demand(void **state)
{
	(void)state;
	char path[64] = "/tmp/stealscope-demand-XXXXXX";
	struct catalog catalog;
	struct error err = ERROR_INIT;
	close(mkstemp(path));
	ui_world_write(path, 30);
	struct history *h = history_open(path, &err);
	assert_non_null(h);
	assert_int_equal(catalog_open(&catalog, h, &err), 0);
	int64_t some = 0;
	for (int round = 0; round < 200; round++) {
		int64_t from = UI_WORLD_BEGIN + dice(UI_WORLD_SPAN), to = from + dice(UI_WORLD_BEGIN + UI_WORLD_SPAN - from);
		for (uint32_t t = 0; t < catalog.threads; t++)
			check(&catalog, (struct target){ TARGET_THREAD, t }, from, to, walk(h, catalog.thread[t].status, from, to));
		for (uint32_t m = 0; m < catalog.machines; m++) {
			struct demand all = { 0 };
			for (uint32_t c = catalog.machine[m].cpu; c < catalog.machine[m].cpu + catalog.machine[m].cpus; c++) {
				if (catalog.machine[m].kind != MACHINE_VM)
					continue;
				struct demand d = walk(h, catalog.cpu[c].status, from, to);
				check(&catalog, (struct target){ TARGET_CPU, c }, from, to, d);
				all.ran += d.ran;
				all.lost += d.lost;
				all.vmm_ns += d.vmm_ns;
				all.slept += d.slept;
				all.alive += d.alive;
			}
			if (catalog.machine[m].kind == MACHINE_VM)
				check(&catalog, (struct target){ TARGET_MACHINE, m }, from, to, all);
			some += all.lost;
		}
	}
	assert_true(some > 0);
	catalog_release(&catalog);
	history_close(h);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_demand) };
	return cmocka_run_group_tests_name("flow demand", tests, NULL, NULL);
}
