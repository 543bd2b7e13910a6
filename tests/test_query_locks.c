/* query/: waits for locks that events name, who had them, and who took the CPU of whom. */
#include "test.h"

#include "query_world.h"
#include "report/report.h"

/* A/5 waits on CPU1: it spins in a spin lock, while A/6 has no pCPU for most of that; then it sleeps, and A/6 wakes it. */
static void test_locks(void **state)
{
	(void)state;
	struct world w;
	struct lock_list l;
	struct error err = ERROR_INIT;
	world_open(&w);
	world_hog_takes(&w);
	world_other_runs(&w);
	world_has(&w, "host/50", .status = "0 RUNNING");
	world_has(&w, "A/CPU1",
	          .status = "0 RUNNING; 5 VMM; 6 RUNNING; 29 VMM; 30 RUNNING; 48 VMM; 49 RUNNING; 71 IDLE; 80 RUNNING",
	          .current = "0 5; 71 0; 80 5", .exit = "0 hlt; 5 pause; 12 intr; 29 pause; 59 hlt");
	world_has(&w, "A/5", .status = "0 RUNNING; 71 BLOCKED; 80 RUNNING", .woken_by = "80 A/6", .woken_in = "80 thread",
	          .lock = "0 -; 21 spinlock; 61 -; 71 mutex; 80 -");
	world_close(&w, 0, 99);
	assert_true(locks_are_named(&w.topo, 1));
	assert_int_equal(locks_of(&w.topo, NULL, 0, 99, &l, &err), 0);
	assert_int_equal(l.waits, 3);
	static const struct { int start, end; const char *kind; bool spins; double suspicion; int taken; } want[] = {
		{ 21, 60, "spinlock", true, 30.0 / 40, 30 }, { 29, 48, "pause", true, 19.0 / 20, 19 },
		{ 71, 79, "mutex", false, 0, 0 },
	};
	for (size_t i = 0; i < l.waits; i++) {
		const struct lock_wait *got = &l.wait[i];
		assert_int_equal(got->start, want[i].start);
		assert_int_equal(got->end, want[i].end);
		assert_string_equal(l.name[got->kind], want[i].kind);
		assert_int_equal(got->spins, want[i].spins);
		assert_true(got->suspicion > want[i].suspicion - 1e-9 && got->suspicion < want[i].suspicion + 1e-9);
		assert_int_equal(got->taken, want[i].taken);
		assert_string_equal(l.name[got->waiter.name], "work");
		assert_int_equal(got->holder.tid, 6);
		assert_string_equal(l.name[got->holder.name], "other");
		assert_string_equal(got->thief.system < 0 ? "" : l.name[got->thief.name], want[i].taken ? "hog" : "");
	}
	struct lock_list again;
	struct inquiry *q = locks_open(&w.topo, NULL, 0, 99);
	int steps = 1;
	while (inquiry_step(q, 1, &err) == 0)  /* a wait at a time */
		steps++;
	locks_take(q, &again);
	inquiry_close(q);
	assert_true(steps > 3 && again.waits == l.waits);
	for (size_t i = 0; i < l.waits; i++)
		assert_true(again.wait[i].start == l.wait[i].start && again.wait[i].taken == l.wait[i].taken);
	locks_release(&again);
	locks_release(&l);
	assert_int_equal(locks_of(&w.topo, NULL, 21, 29, &l, &err), 0);
	assert_int_equal(l.waits, 1);  /* the holder ran: nobody is suspected */
	assert_int_equal(l.wait[0].holder.system, -1);
	locks_release(&l);
	world_release(&w);
}

/* A/5 spins while another machine's vCPU, whose guest idles, has the pCPU of A/6's: it is that vCPU that took it. */
static void test_idle_thief_of_a_spinner(void **state)
{
	(void)state;
	struct world w;
	struct lock_list l;
	struct error err = ERROR_INIT;
	world_open(&w);
	world_hog_takes(&w);
	world_other_runs(&w);
	world_has(&w, "host/50", .status = "0 RUNNING");
	world_has(&w, "A/CPU1", .status = "0 RUNNING", .current = "0 5");
	world_has(&w, "A/5", .status = "0 RUNNING", .lock = "0 -; 28 spinlock; 61 -");
	world_has(&w, "B/CPU1", .host_thread = "0 99", .pcpu = "0 0", .status = "0 PREEMPTED; 30 IDLE; 60 PREEMPTED",
	          .current = "0 0");
	world_close(&w, 0, 99);
	assert_int_equal(locks_of(&w.topo, NULL, 0, 99, &l, &err), 0);
	assert_int_equal(l.waits, 1);
	assert_int_equal(l.wait[0].holder.tid, 6);
	assert_int_equal(l.wait[0].taken, 30);
	assert_string_equal(w.topo.machine[l.wait[0].thief.system].name, "B");
	assert_int_equal(l.wait[0].thief.tid, -1);
	assert_string_equal(l.name[l.wait[0].thief.name], "vCPU1");
	locks_release(&l);
	world_release(&w);
}

/* What of it people read, the `top` longest; the caller frees. */
static char *written(const struct world *w, const struct lock_list *l, size_t top)
{
	struct error err = ERROR_INIT;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	assert_int_equal(report_locks(f, REPORT_WHOLE(FORMAT_TEXT), &w->topo, l, top, NULL, &err), 0);
	fclose(f);
	return text;
}

/* A/6 sleeps in a mutex until A/5 gives it away at 40, while a hog has its vCPU's CPU; then A/5 sleeps in one that A/6 has,
 * whose vCPU is kept from running, and is woken when that is over. */
static void test_locks_own_loss(void **state)
{
	(void)state;
	struct world w;
	struct lock_list l;
	struct error err = ERROR_INIT;
	world_open(&w);
	world_has(&w, "host/CPU0", .current = "0 40; 30 99; 60 40; 130 99; 160 40");
	world_has(&w, "host/40", .status = "0 RUNNING; 30 PREEMPTED; 60 RUNNING; 130 PREEMPTED; 160 RUNNING", .cpu = "0 0");
	world_has(&w, "host/99", .name = "0 hog");
	world_has(&w, "host/50", .status = "0 RUNNING");
	world_has(&w, "A/CPU0", .host_thread = "0 40", .pcpu = "0 0",
	          .status = "0 RUNNING; 30 PREEMPTED; 60 RUNNING; 130 PREEMPTED; 160 RUNNING", .current = "0 6; 10 7; 60 6");
	world_has(&w, "A/CPU1", .host_thread = "0 50", .status = "0 RUNNING", .current = "0 5; 100 7; 166 5");
	world_has(&w, "A/5", .status = "0 RUNNING; 100 BLOCKED; 166 RUNNING", .cpu = "0 1", .woken_by = "165 A/6",
	          .woken_in = "165 thread", .lock = "0 -; 100 futex; 170 -");
	world_has(&w, "A/6", .status = "0 RUNNING; 10 BLOCKED; 60 RUNNING; 130 VIRT_PREEMPTED; 160 RUNNING", .cpu = "0 0",
	          .woken_by = "40 A/5", .woken_in = "40 thread", .lock = "0 -; 10 futex; 61 -");
	world_close(&w, 0, 199);
	assert_int_equal(locks_of(&w.topo, NULL, 0, 199, &l, &err), 0);
	assert_int_equal(l.waits, 2);
	static const struct { int start, waiter, holder, taken, own; } want[] = { { 100, 5, 6, 30, 0 }, { 10, 6, 5, 0, 20 } };
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(l.wait[i].start, want[i].start);
		assert_int_equal(l.wait[i].waiter.tid, want[i].waiter);
		assert_int_equal(l.wait[i].holder.tid, want[i].holder);
		assert_int_equal(l.wait[i].taken, want[i].taken);
		assert_int_equal(l.wait[i].own_taken, want[i].own);
		assert_string_equal(l.name[l.wait[i].thief.name], "hog");
	}
	char *all = written(&w, &l, 0), *one = written(&w, &l, 1);
	assert_non_null(strstr(all, " 20 ns*  "));
	assert_non_null(strstr(all, "2 lock waits, 121 ns in all, 30 ns taken from holders\n* from who waited, where its holder"));
	assert_null(strchr(one, '*'));  /* whose row has none */
	free(all);
	free(one);
	locks_release(&l);
	struct subject s = world_subject(&w, "A/5");
	char *text;
	assert_int_equal(explain_window(&w.topo, &s, 90, 199, &text, &err), 0);
	assert_non_null(strstr(text, "Look next at its 1 wait for locks, 70 ns in all (stealscope gaps --locks FILE A/5).\n"));
	free(text);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_locks), cmocka_unit_test(test_idle_thief_of_a_spinner),
		cmocka_unit_test(test_locks_own_loss),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
