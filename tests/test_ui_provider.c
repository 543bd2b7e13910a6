/* Tests of the provider rows of the viewer: a guest without a host trace, with a steal clock. The screens are in
 * tests/ui/provider-*.screen. */
#include "test.h"

#include <locale.h>

#include "query_world.h"
#include "ui_script.h"

static struct world guest;

/* A guest with two vCPUs. vCPU0 has a steal clock and three gaps with bounds of 0, 4 ms and 1 ms; the second is longer
 * than its bound, the third is a pause. vCPU1 has none. */
static int write_guest(void **state)
{
	(void)state;
	world_open(&guest);
	world_has(&guest, "web/CPU0",
	          .status = "0 RUNNING; 10000000 PREEMPTED; 20000000 RUNNING; 40000000 PREEMPTED; 50000000 RUNNING; "
	                    "60000000 HOST_BLOCKED; 70000000 RUNNING",
	          .current = "0 7",
	          .out_by = "0 -; 10000000 provider; 20000000 -; 40000000 provider: quota; 50000000 -; "
	                    "60000000 provider: pause; 70000000 -");
	world_row(&guest, "/Virtual Machines/web/CPUs/CPU0/Steal Bound",
	          "0 -; 10000000 0; 20000000 -; 40000000 4000000; 50000000 -; 60000000 1000000; 70000000 -");
	world_has(&guest, "web/CPU1", .status = "0 RUNNING", .current = "0 8");
	world_has(&guest, "web/7", .name = "0 nginx", .cpu = "0 0",
	          .status = "0 RUNNING; 10000000 VIRT_PREEMPTED; 20000000 RUNNING; 40000000 VIRT_PREEMPTED; 50000000 RUNNING; "
	                    "60000000 VIRT_PREEMPTED; 70000000 RUNNING");
	world_has(&guest, "web/8", .name = "0 cron", .cpu = "0 1", .status = "0 RUNNING");
	world_close(&guest, 0, 79999999);
	snprintf(world, sizeof world, "%s", guest.path);
	return 0;
}

static int remove_guest(void **state)
{
	(void)state;
	world_release(&guest);
	return 0;
}

static void test_rows(void **state)
{
	(void)state;
	check_screen("provider-80", ":web/CPU0\n>>", &mono80);
	check_screen("provider-row-80", ":web/CPU0\n>>j", &mono80);
	check_screen("provider-thread-80", ":web/7\n>>", &mono80);
	check_screen("provider-legend-80", "L", &mono80);
	char *details = screen_of(":web/CPU0\n>>jx", &mono120);  /* it contains the name of the history */
	static const char *const contains[] = { "Explanation", "10.0 ms", "web clock", "Values at the cursor" };
	for (size_t i = 0; i < COUNT(contains); i++)
		if (!strstr(details, contains[i]))
			fail_msg("%s is missing:\n%s", contains[i], details);
	free(details);
}

/* A vCPU without a steal clock has no such row. */
static void test_only_with_steal_clock(void **state)
{
	(void)state;
	char *screen = screen_of(":web", &mono80);
	const char *first = strstr(screen, " provider ");
	assert_non_null(first);
	assert_null(strstr(first + 1, " provider "));
	free(screen);
}

/* Each pane and list opens on the row. */
static void test_panes(void **state)
{
	(void)state;
	static const char *const keys[] = { "F", "P", "b", "C", "E", "B", "O", "R", "<Enter>", "<Space>", "<Space>j",
		">", "<", "v3l", "p", "m1", "t", "u", "H", "]", "[" };
	for (size_t i = 0; i < COUNT(keys); i++) {
		char script[64];
		snprintf(script, sizeof script, ":web/CPU0\n>j%s", keys[i]);
		char *screen = screen_of(script, &mono80);
		assert_true(strlen(screen) > 100);
		free(screen);
	}
}

int main(void)
{
	setlocale(LC_ALL, "C.UTF-8");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows), cmocka_unit_test(test_only_with_steal_clock), cmocka_unit_test(test_panes),
	};
	return cmocka_run_group_tests_name("ui provider", tests, write_guest, remove_guest);
}
