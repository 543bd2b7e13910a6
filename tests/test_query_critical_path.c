/* query/: the critical path through wakers, vCPUs and machines. */
#include "test.h"

#include "query_world.h"

/* A vCPU (host thread 40), its VM's I/O thread 41, and a hog that shares CPU1 with it. */
static void make(struct world *w, const char *woken_in, const char *on_cpu0)
{
	world_open(w);
	world_has(w, "host/CPU0", .current = on_cpu0);
	world_has(w, "host/CPU1", .current = "0 41; 10 0; 28 99; 50 41; 70 99");
	world_has(w, "host/40", .status = "0 RUNNING; 30 BLOCKED; 70 PREEMPTED; 75 RUNNING", .cpu = "0 0", .name = "0 kvm",
	          .pid = "0 39", .woken_by = "70 host/41", .woken_in = "70 thread");
	world_has(w, "host/41", .status = "0 RUNNING; 10 BLOCKED; 28 PREEMPTED; 50 RUNNING; 70 BLOCKED", .cpu = "0 1",
	          .name = "0 io", .pid = "0 39", .woken_by = "25 host/40", .woken_in = "28 thread");
	world_has(w, "host/99", .status = "0 PREEMPTED; 28 RUNNING; 50 PREEMPTED; 70 RUNNING", .cpu = "0 1", .name = "0 hog");
	world_has(w, "A/CPU0", .host_thread = "0 40", .pcpu = "0 0",
	          .status = "0 RUNNING; 30 IDLE; 70 WAKING; 75 IDLE; 85 RUNNING", .current = "0 5; 20 6; 27 0; 85 5",
	          .interrupt = "0 -; 80 irq/9-disk; 82 -");
	world_has(w, "A/5", .status = "0 RUNNING; 20 BLOCKED; 81 PREEMPTED; 85 RUNNING", .cpu = "0 0", .name = "0 work",
	          .woken_by = "81 A/0", .woken_in = woken_in);
	world_has(w, "A/6", .status = "0 BLOCKED; 15 PREEMPTED; 20 RUNNING; 27 BLOCKED", .cpu = "0 0", .name = "0 flush",
	          .woken_by = "15 A/5", .woken_in = "15 thread");
	world_close(w, 0, 99);
}

/* A thread sleeps for a disk: another thread of its guest makes the request; the I/O thread waits for the hog, serves
 * the request, and raises the interrupt that wakes the idle vCPU. */
static void test_disk(void **state)
{
	(void)state;
	struct world w;
	make(&w, "81 irq/9-disk", "0 40; 30 0; 75 40");
	world_path(&w, "A/5", 0, 99,
	      "0-19 running A/5 work start; 20-24 running A/6 flush request; 25-27 idle-cpu host/41 io ipi; "
	      "28-49 preempting host/41 io <host/99 hog> inject ~11; 50-69 running host/41 io inject ~11; "
	      "70-80 idle-cpu A/5 work inject ~11; "
	      "81-84 idle-cpu A/5 work start; 85-99 running A/5 work start");
	world_release(&w);
}

/* The thread is woken at 25 on CPU1, which reacts at 28: until then the culprit is the hog or a handler on that CPU, if
 * known. */
static void test_on_its_way(void **state)
{
	(void)state;
	for (int placed = 0; placed < 2; placed++) {
		struct world w;
		world_open(&w);
		world_has(&w, "host/CPU0", .current = "0 40; 60 0");
		world_has(&w, "host/CPU1", .current = "0 41; 10 99; 50 41", .interrupt = "0 -; 26 timer; 27 -");
		world_has(&w, "host/40", .status = "0 RUNNING; 60 BLOCKED", .name = "0 kvm");
		world_has(&w, "host/41", .status = "0 RUNNING; 10 BLOCKED; 28 PREEMPTED; 50 RUNNING",
		          .cpu = placed ? "0 1" : "0 -; 28 -; 50 1", .name = "0 io", .woken_by = "25 host/40",
		          .woken_in = "28 thread");
		world_has(&w, "host/99", .name = "0 hog");
		world_close(&w, 0, 99);
		world_path(&w, "host/41", 10, 60,
		      placed ? "10-24 running host/40 kvm wake; 25-25 preempting host/41 io <host/99 hog> ipi; "
		               "26-26 irq host/41 io <host/-1 timer> ipi; 27-27 preempting host/41 io <host/99 hog> ipi; "
		               "28-49 preempting host/41 io <host/99 hog> start; 50-60 running host/41 io start"
		             : "10-24 running host/40 kvm wake; 25-27 unknown host/41 io ipi; 28-49 unknown host/41 io start; "
		               "50-60 running host/41 io start");
		world_release(&w);
	}
}

/* host/42 wakes 41, which is about to sleep, and sleeps itself since 25, before 41 does at 30: the end of its own sleep
 * is not the cause of that wakeup. */
static void test_woken_as_it_falls_asleep(void **state)
{
	(void)state;
	struct world w;
	world_open(&w);
	world_has(&w, "host/CPU0", .current = "0 41; 30 0; 40 41; 60 40");
	world_has(&w, "host/CPU1", .current = "0 42; 25 99; 80 42");
	world_has(&w, "host/40", .status = "0 RUNNING; 10 BLOCKED; 50 PREEMPTED; 60 RUNNING", .cpu = "0 0",
	          .woken_by = "50 host/41", .woken_in = "0 thread");
	world_has(&w, "host/41", .status = "0 RUNNING; 30 BLOCKED; 40 RUNNING; 60 BLOCKED", .cpu = "0 0", .name = "0 server",
	          .woken_by = "30 host/42", .woken_in = "0 thread");
	world_has(&w, "host/42", .status = "0 RUNNING; 25 BLOCKED; 80 RUNNING", .cpu = "0 1", .name = "0 disk",
	          .woken_by = "80 host/99", .woken_in = "0 thread");
	world_has(&w, "host/99", .status = "0 PREEMPTED; 25 RUNNING; 80 BLOCKED", .name = "0 other");
	world_close(&w, 0, 99);
	world_path(&w, "host/40", 10, 49,
	           "10-24 running host/42 disk wake; 25-29 running host/41 server ipi; 30-39 idle-cpu host/41 server ipi; "
	           "40-49 running host/41 server wake");
	world_release(&w);
}

/* At 25 a vCPU requests the disk, but the trace of its guest has ended: the current thread before that is unknown. If
 * the guest has no trace at all, the whole time is the vCPU's. */
static void test_no_longer_traced(void **state)
{
	(void)state;
	for (int once = 0; once < 2; once++) {
		struct world w;
		world_open(&w);
		world_has(&w, "host/CPU0", .current = "0 40");
		world_has(&w, "host/40", .status = "0 RUNNING", .cpu = "0 0");
		world_has(&w, "host/41", .status = "0 BLOCKED; 25 RUNNING", .name = "0 io", .woken_by = "25 host/40",
		          .woken_in = "25 thread");
		world_has(&w, "A/CPU0", .host_thread = "0 40", .pcpu = "0 0", .status = "0 RUNNING",
		          .current = once ? "0 5; 20 -" : NULL);
		world_has(&w, "A/5", .status = once ? "0 RUNNING; 20 -" : NULL);
		world_close(&w, 0, 99);
		world_path(&w, "host/41", 0, 29, once ? "0-19 unknown A/-1 vCPU0 start; 20-24 running A/-1 vCPU0 request; "
		                                        "25-29 running host/41 io start"
		                                      : "0-24 running A/-1 vCPU0 request; 25-29 running host/41 io start");
		world_release(&w);
	}
}

/* A thread that mostly slept for other threads: explain names them and their culprit. A timer has no culprit. */
static void test_explained(void **state)
{
	(void)state;
	struct world w;
	struct error err = ERROR_INIT;
	char *text;
	make(&w, "81 irq/9-disk", "0 40; 30 0; 75 40");
	struct target s = world_target(&w, "A/5");
	assert_int_equal(explain_window(&w.catalog, &s, 0, 99, &text, &err), 0);
	assert_non_null(strstr(text, "It mostly waited for host/41 io: 45 ns, while host/99 hog had its CPU for 22 ns; "
	                             "A/6 flush: 5 ns; of the 50 ns of this chain 42 ns are inferred"));
	assert_non_null(strstr(text, "\nNext: host/99 hog had the CPU of host/41 io"));
	assert_non_null(strstr(text, " (stealscope flow FILE host/99).\n"));
	assert_non_null(strstr(text, "\nMain delay: host/99 hog delayed host/41 io, for which A/5 work waited (inferred): 22 ns"));
	assert_non_null(strstr(text, "\nFurther delays: wakeup"));
	assert_null(strstr(text, "lock wait"));
	free(text);
	world_release(&w);
	make(&w, "81 irq/9-disk", "0 40; 30 0; 70 99; 75 40");  /* the hog also has the vCPU's CPU when the vCPU is woken */
	s = world_target(&w, "A/5");
	assert_int_equal(explain_window(&w.catalog, &s, 0, 99, &text, &err), 0);
	assert_non_null(strstr(text,
	                       "host/99 hog had its CPU for 22 ns; A/6 flush: 5 ns; of the 50 ns of this chain 42 "
	                       "ns are inferred"));
	assert_non_null(strstr(text,
	                       "\nWakeup latency: 11 ns of its sleep; for 5 ns of that host/99 hog had its vCPU's CPU.\n"));
	free(text);
	world_release(&w);
	make(&w, "81 timer", "0 40; 30 0; 75 40");
	s = world_target(&w, "A/5");
	assert_int_equal(explain_window(&w.catalog, &s, 0, 99, &text, &err), 0);
	assert_null(strstr(text, "waited for"));
	assert_non_null(strstr(text, "\nMain delay: wakeup"));
	free(text);
	world_release(&w);
}

/* 10 of 80 ns of sleep were for another thread, the rest for a timer. */
static void test_explained_in_part(void **state)
{
	(void)state;
	struct world w;
	struct error err = ERROR_INIT;
	char *text;
	world_open(&w);
	world_has(&w, "host/CPU0", .current = "0 40; 84 99; 90 40");
	world_has(&w, "host/CPU1", .current = "0 41; 10 0; 80 41; 82 0; 92 41");
	world_has(&w, "host/40", .status = "0 RUNNING; 84 PREEMPTED; 90 RUNNING", .cpu = "0 0", .name = "0 server");
	world_has(&w, "host/41", .status = "0 RUNNING; 10 BLOCKED; 80 RUNNING; 82 BLOCKED; 92 RUNNING", .cpu = "0 1",
	          .name = "0 client", .woken_by = "80 host/0; 92 host/40", .woken_in = "80 timer; 92 thread");
	world_has(&w, "host/99", .name = "0 hog");
	world_close(&w, 0, 99);
	struct target s = world_target(&w, "host/41");
	assert_int_equal(explain_window(&w.catalog, &s, 0, 99, &text, &err), 0);
	assert_non_null(strstr(text,
	                       "It partly waited for host/40 server: 10 ns, while host/99 hog had its CPU for 6 ns (from"));
	free(text);
	world_release(&w);
}

/* A timer has no culprit, even if another thread woke the vCPU. Causes without events are unknown. */
static void test_ends(void **state)
{
	(void)state;
	struct world w;
	make(&w, "81 timer", "0 40; 30 0; 75 40");
	world_path(&w, "A/5", 30, 79, "30-79 wait A/-1 timer irq");
	world_release(&w);
	make(&w, "81 softirq/9-RCU", "0 40; 30 0; 75 40");
	world_path(&w, "A/5", 60, 69, "60-69 unknown A/5 work start");
	world_release(&w);
	make(&w, "0 -", "0 40; 30 0; 75 40");
	world_path(&w, "A/5", 60, 69, "60-69 unknown A/5 work start");
	world_release(&w);
	make(&w, "81 thread", "0 40; 30 0; 75 40");  /* the idle task woke the thread */
	world_path(&w, "A/5", 60, 69, "60-69 unknown A/5 work start");
	world_release(&w);
}

/* The wakeup latency of an idle guest's vCPU is attributed to the woken thread; for the vCPU as target, to the vCPU. */
static void test_no_idle_task(void **state)
{
	(void)state;
	struct world w;
	make(&w, "81 irq/9-disk", "0 40; 30 0; 70 99; 75 40");
	world_path(&w, "A/5", 70, 84, "70-74 preempting A/5 work <host/99 hog> inject ~11; 75-80 idle-cpu A/5 work inject ~11; "
	                              "81-84 idle-cpu A/5 work start");
	world_release(&w);
	world_open(&w);
	world_hog_takes(&w);
	world_has(&w, "A/CPU0", .status = "0 RUNNING; 30 PREEMPTED; 60 RUNNING", .current = "0 5");
	world_has(&w, "A/5", .status = "0 RUNNING; 30 VIRT_PREEMPTED; 60 RUNNING", .cpu = "0 0");
	world_has(&w, "B/CPU1", .host_thread = "0 99", .pcpu = "0 0",
	          .status = "0 PREEMPTED; 30 RUNNING; 40 IDLE; 60 PREEMPTED", .current = "0 7; 40 0");
	world_has(&w, "B/7", .name = "0 cc");
	world_close(&w, 0, 99);
	world_path(&w, "A/5", 20, 79, "20-29 running A/5 work start; 30-39 preempting A/5 work <B/7 cc> start; "
	                              "40-59 preempting A/5 work <B/-1 vCPU1> start; 60-79 running A/5 work start");
	world_release(&w);
}

/* A timer interrupts A/6 at 28. Its handler loses the CPU to the hog and wakes A/5 at 65: the delay is attributed to
 * A/5. */
static void test_handler_held_up(void **state)
{
	(void)state;
	for (int held = 0; held < 2; held++) {
		struct world w;
		world_open(&w);
		world_hog_takes(&w);
		world_has(&w, "A/CPU0", .status = held ? "0 RUNNING; 30 PREEMPTED; 60 RUNNING" : "0 RUNNING", .current = "0 6",
		          .interrupt = "0 -; 28 timer; 67 -");
		world_has(&w, "A/CPU1", .host_thread = "0 50");
		world_has(&w, "A/5", .status = "0 RUNNING; 10 BLOCKED; 65 RUNNING", .cpu = "0 1", .woken_by = "65 A/6",
		          .woken_in = "65 timer");
		world_has(&w, "A/6", .name = "0 other");
		world_close(&w, 0, 99);
		world_path(&w, "A/5", 10, 69, held ? "10-27 wait A/-1 timer irq; 28-29 irq A/-1 timer inject; "
		                                     "30-59 preempting A/5 work <host/99 hog> inject; 60-64 irq A/-1 timer inject; "
		                                     "65-69 running A/5 work start"
		                                   : "10-64 wait A/-1 timer irq; 65-69 running A/5 work start");
		world_release(&w);
	}
}

/* The host took CPU0 from the vCPU's thread when its guest went idle. Then a thread of the guest was woken. */
static void test_idle_and_out(void **state)
{
	(void)state;
	struct world w;
	world_open(&w);
	world_hog_takes(&w);
	world_has(&w, "A/CPU0", .status = "0 RUNNING; 20 IDLE; 70 RUNNING", .current = "0 5; 20 0; 70 5");
	world_has(&w, "A/5", .status = "0 RUNNING; 20 BLOCKED; 25 PREEMPTED; 70 RUNNING", .cpu = "0 0");
	world_close(&w, 0, 99);
	world_path(&w, "A/5", 25, 99, "25-29 idle-cpu A/5 work start; 30-59 preempting A/5 work <host/99 hog> start; "
	                              "60-69 idle-cpu A/5 work start; 70-99 running A/5 work start");
	world_path(&w, "A/CPU0", 25, 69, "25-29 running A/-1 vCPU0 start; 30-59 preempting A/-1 vCPU0 <host/99 hog> start; "
	                                 "60-69 running A/-1 vCPU0 start");
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_disk), cmocka_unit_test(test_on_its_way), cmocka_unit_test(test_woken_as_it_falls_asleep),
		cmocka_unit_test(test_no_longer_traced), cmocka_unit_test(test_explained),
		cmocka_unit_test(test_explained_in_part), cmocka_unit_test(test_ends),
		cmocka_unit_test(test_no_idle_task), cmocka_unit_test(test_handler_held_up),
		cmocka_unit_test(test_idle_and_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
