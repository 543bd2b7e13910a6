/* query/: the critical path through interrupts, by their sources. */
#include "test.h"

#include "query_world.h"

/* The I/O thread raised an interrupt while the vCPU was off the CPU, before any thread slept for the interrupt. */
static void test_pending(void **state)
{
	(void)state;
	struct world w;
	world_open(&w);
	world_hog_takes(&w);
	world_other_runs(&w);
	world_has(&w, "host/CPU1", .current = "0 50; 32 41; 36 50");
	world_has(&w, "host/40", .pid = "0 39");
	world_has(&w, "host/41", .status = "0 BLOCKED; 32 RUNNING; 36 BLOCKED", .pid = "0 39");
	world_has(&w, "host/50", .status = "0 RUNNING; 32 PREEMPTED; 36 RUNNING", .pid = "0 39");
	world_has(&w, "A/CPU0", .interrupt = "0 -; 65 irq/9-disk; 72 -");
	world_has(&w, "A/CPU1", .status = "0 RUNNING; 40 IDLE; 70 RUNNING", .current = "0 5; 40 0; 70 5");
	world_has(&w, "A/5", .status = "0 RUNNING; 40 BLOCKED; 70 RUNNING", .woken_by = "70 A/6", .woken_in = "70 irq/9-disk");
	world_close(&w, 0, 99);
	world_path(&w, "A/5", 40, 79,
	           "40-59 preempting A/6 other <host/99 hog> inject ~35; 60-64 running A/6 other inject ~35; "
	                              "65-69 irq A/-1 irq/9-disk inject ~35; 70-79 running A/5 work start");
	world_release(&w);
}

/* The same history, with all times multiplied by 1000. The guest keeps interrupts off for at most 200 us, and exited
 * while it had the CPU before: the interrupt may have been raised since then, or shortly before. */
static void pending(const char *server, const char *other, const char *interrupts, const char *want)
{
	struct world w;
	world_open(&w);
	world_has(&w, "host/CPU0", .current = "0 40; 900000 99; 1600000 40");
	world_has(&w, "host/40", .status = "0 RUNNING; 900000 PREEMPTED; 1600000 RUNNING", .cpu = "0 0", .pid = "0 39");
	world_has(&w, "host/41", .status = server, .pid = "0 39");
	world_has(&w, "host/42", .status = other, .pid = "0 39");
	world_has(&w, "host/99", .status = "0 PREEMPTED; 900000 RUNNING; 1600000 PREEMPTED");
	world_has(&w, "A/CPU0", .host_thread = "0 40", .status = "0 RUNNING; 890000 VMM; 900000 PREEMPTED; 1600000 RUNNING",
	          .current = "0 6", .interrupt = interrupts);
	world_has(&w, "A/5", .status = "0 RUNNING; 500000 BLOCKED; 1655000 RUNNING", .cpu = "0 0", .name = "0 work",
	          .woken_by = "1655000 A/6", .woken_in = "1655000 irq/9-disk");
	world_has(&w, "A/6", .name = "0 other");
	world_close(&w, 0, 1700000);
	world_path(&w, "A/5", 500000, 1654999, want);
	world_release(&w);
}

#define ONCE "0 BLOCKED; 880000 RUNNING; 895000 BLOCKED"
#define HANDLED "0 -; 1650000 irq/9-disk; 1660000 -"

/* Another thread of the VM's process ran while the interrupt may have been raised, or before that. */
static void test_pending_for_two(void **state)
{
	(void)state;
	pending(ONCE, "0 BLOCKED; 1200000 RUNNING; 1300000 BLOCKED", HANDLED,
	        "500000-1299998 unknown A/5 work start; 1299999-1599999 preempting A/6 other <host/99 > inject ~355001; "
	        "1600000-1649999 running A/6 other inject ~355001; 1650000-1654999 irq A/-1 irq/9-disk inject ~355001");
	pending(ONCE, "0 BLOCKED; 600000 RUNNING; 650000 BLOCKED", HANDLED,
	        "500000-879999 unknown host/41  start; 880000-894998 running host/41  inject ~760001; "
	        "894999-899999 hypervisor A/6 other inject ~760001; 900000-1599999 preempting A/6 other <host/99 > "
	        "inject ~760001; "
	        "1600000-1649999 running A/6 other inject ~760001; 1650000-1654999 irq A/-1 irq/9-disk inject ~760001");
}

/* The thread ran twice since then: which of the two runs raised the interrupt is unknown, but it was raised by the
 * second. */
static void test_pending_from_either(void **state)
{
	(void)state;
	pending("0 BLOCKED; 1200000 RUNNING; 1210000 BLOCKED; 1300000 RUNNING; 1310000 BLOCKED", "0 BLOCKED", HANDLED,
	        "500000-1309998 unknown A/5 work start; 1309999-1599999 preempting A/6 other <host/99 > inject ~345001; "
	        "1600000-1649999 running A/6 other inject ~345001; 1650000-1654999 irq A/-1 irq/9-disk inject ~345001");
}

/* The vCPU handled no interrupt of a device. */
static void test_no_device(void **state)
{
	(void)state;
	pending(ONCE, "0 BLOCKED", "0 -; 1650000 timer; 1660000 -",
	        "500000-879999 unknown host/41  start; 880000-894998 running host/41  inject ~760001; "
	        "894999-899999 hypervisor A/6 other inject ~760001; 900000-1599999 preempting A/6 other <host/99 > "
	        "inject ~760001; "
	        "1600000-1649999 running A/6 other inject ~760001; 1650000-1654999 irq A/-1 timer inject ~760001");
}

/* The same, but the interrupt of its first run was handled before. */
static void test_served_before(void **state)
{
	(void)state;
	pending("0 BLOCKED; 1200000 RUNNING; 1210000 BLOCKED; 1620000 RUNNING; 1630000 BLOCKED", "0 BLOCKED",
	        "0 -; 1601000 timer; 1602000 irq/9-disk; 1604000 -; 1650000 irq/9-disk; 1660000 -",
	        "500000-1619999 unknown host/41  start; 1620000-1629998 running host/41  inject ~25001; "
	        "1629999-1649999 running A/6 other inject ~25001; 1650000-1654999 irq A/-1 irq/9-disk inject ~25001");
}

/* The thread continues to run, but an interrupt that is handled has been raised. */
static void test_raised_when_handled(void **state)
{
	(void)state;
	pending("0 BLOCKED; 880000 RUNNING; 1652000 BLOCKED", "0 BLOCKED", HANDLED,
	        "500000-879999 unknown host/41  start; 880000-1649999 running host/41  inject ~5000; "
	        "1650000-1654999 irq A/-1 irq/9-disk inject ~5000");
}

/* host/43, known to serve irq/8-net, raised the interrupt until 75, when host/41 had begun to wake the halted vCPU for
 * another device: the rest of the halt is wakeup latency, not time of host/41. */
static void test_woken_for_another(void **state)
{
	(void)state;
	struct world w;
	world_open(&w);
	world_has(&w, "host/CPU0", .current = "0 40; 20 0; 30 40; 60 0; 80 40");
	world_has(&w, "host/40", .status = "0 RUNNING; 20 BLOCKED; 30 RUNNING; 60 BLOCKED; 80 RUNNING", .cpu = "0 0",
	          .pid = "0 39", .woken_by = "30 host/43; 80 host/41", .woken_in = "30 thread");
	world_has(&w, "host/41", .status = "0 BLOCKED; 72 RUNNING; 95 BLOCKED", .pid = "0 39");
	world_has(&w, "host/43", .status = "0 RUNNING; 76 BLOCKED", .pid = "0 39");
	world_has(&w, "A/CPU0", .host_thread = "0 40", .pcpu = "0 0",
	          .status = "0 RUNNING; 20 IDLE; 30 RUNNING; 60 IDLE; 80 RUNNING", .current = "0 6; 20 0; 33 6; 60 0; 85 6",
	          .interrupt = "0 -; 31 irq/8-net; 32 -; 82 irq/9-disk; 84 -; 90 irq/8-net; 93 -");
	world_has(&w, "A/5", .status = "0 RUNNING; 50 BLOCKED; 91 RUNNING", .cpu = "0 0", .name = "0 work",
	          .woken_by = "91 A/6", .woken_in = "91 irq/8-net");
	world_has(&w, "A/6", .name = "0 other");
	world_close(&w, 0, 99);
	world_path(&w, "A/5", 50, 90,
	      "50-74 running host/43  inject ~16; 75-79 unknown A/-1 vCPU0 start; 80-81 idle-cpu A/5 work inject ~16; "
	      "82-83 irq A/-1 irq/9-disk inject ~16; 84-84 idle-cpu A/5 work inject ~16; "
	      "85-89 running A/6 other inject ~16; 90-90 irq A/-1 irq/8-net inject ~16");
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pending), cmocka_unit_test(test_pending_for_two),
		cmocka_unit_test(test_pending_from_either), cmocka_unit_test(test_served_before),
		cmocka_unit_test(test_raised_when_handled), cmocka_unit_test(test_no_device),
		cmocka_unit_test(test_woken_for_another),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
