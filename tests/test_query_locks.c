/* query/: lock waits shown by events, their holders, and the culprits. */
#include "test.h"

#include "query_world.h"
#include "report/report.h"

/* A/5 waits on CPU1: it spins for a spin lock while A/6 has no pCPU for most of that time; then it sleeps, and A/6 wakes
 * it. */
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
	assert_true(locks_have_events(&w.catalog, 1));
	assert_int_equal(query_answer(locks_open(&w.catalog, NULL, 0, 99), &l, &err), 0);
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
		assert_int_equal(got->culprit_ns, want[i].taken);
		assert_string_equal(l.name[got->waiter.name], "work");
		assert_int_equal(got->holder.tid, 6);
		assert_string_equal(l.name[got->holder.name], "other");
		assert_string_equal(got->culprit.machine < 0 ? "" : l.name[got->culprit.name], want[i].taken ? "hog" : "");
	}
	struct lock_list again;
	struct query *q = locks_open(&w.catalog, NULL, 0, 99);
	int steps = 1;
	while (query_step(q, 1, &err) == 0)  /* one wait per step */
		steps++;
	query_take(q, &again);
	query_close(q);
	assert_true(steps > 3 && again.waits == l.waits);
	for (size_t i = 0; i < l.waits; i++)
		assert_true(again.wait[i].start == l.wait[i].start && again.wait[i].culprit_ns == l.wait[i].culprit_ns);
	locks_release(&again);
	locks_release(&l);
	assert_int_equal(query_answer(locks_open(&w.catalog, NULL, 21, 29), &l, &err), 0);
	assert_int_equal(l.waits, 1);  /* the holder ran: no suspect */
	assert_int_equal(l.wait[0].holder.machine, -1);
	locks_release(&l);
	world_release(&w);
}

/* A/5 spins while a vCPU of another machine has the pCPU of A/6's vCPU: that vCPU is the culprit, although its guest is
 * idle. */
static void test_idle_culprit_of_a_spinner(void **state)
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
	assert_int_equal(query_answer(locks_open(&w.catalog, NULL, 0, 99), &l, &err), 0);
	assert_int_equal(l.waits, 1);
	assert_int_equal(l.wait[0].holder.tid, 6);
	assert_int_equal(l.wait[0].culprit_ns, 30);
	assert_string_equal(w.catalog.machine[l.wait[0].culprit.machine].name, "B");
	assert_int_equal(l.wait[0].culprit.tid, -1);
	assert_string_equal(l.name[l.wait[0].culprit.name], "vCPU1");
	locks_release(&l);
	world_release(&w);
}

/* Returns the answer in text with the `top` longest waits; the caller frees it. */
static char *written(const struct world *w, const struct lock_list *l, size_t top)
{
	struct error err = ERROR_INIT;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	assert_int_equal(report_locks(f, REPORT_WHOLE(FORMAT_TEXT), &w->catalog, l, NULL, top, NULL, &err), 0);
	fclose(f);
	return text;
}

/* A/6 sleeps for a mutex until A/5 releases it at 40, while a hog has the CPU of its vCPU. Then A/5 sleeps for a mutex
 * of A/6, whose vCPU is preempted, and is woken after that. */
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
	assert_int_equal(query_answer(locks_open(&w.catalog, NULL, 0, 199), &l, &err), 0);
	assert_int_equal(l.waits, 2);
	static const struct { int start, waiter, holder, taken, own; } want[] = { { 100, 5, 6, 30, 0 }, { 10, 6, 5, 0, 20 } };
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(l.wait[i].start, want[i].start);
		assert_int_equal(l.wait[i].waiter.tid, want[i].waiter);
		assert_int_equal(l.wait[i].holder.tid, want[i].holder);
		assert_int_equal(l.wait[i].culprit_ns, want[i].taken);
		assert_int_equal(l.wait[i].waiter_lost_ns, want[i].own);
		assert_string_equal(l.name[l.wait[i].culprit.name], "hog");
	}
	char *all = written(&w, &l, 0), *one = written(&w, &l, 1);
	assert_non_null(strstr(all, " 20 ns*  "));
	assert_non_null(strstr(all,
	                       "2 lock waits, 121 ns in total, 30 ns taken from holders\n* lost by the waiter "
	                       "itself; its holder"));
	assert_null(strchr(one, '*'));  /* the only row shown has no asterisk */
	free(all);
	free(one);
	locks_release(&l);
	struct target s = world_target(&w, "A/5");
	char *text;
	assert_int_equal(explain_window(&w.catalog, &s, 90, 199, &text, &err), 0);
	assert_non_null(strstr(text, " 1 lock wait, 70 ns in total (stealscope gaps --locks FILE A/5).\n"));
	free(text);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_locks), cmocka_unit_test(test_idle_culprit_of_a_spinner),
		cmocka_unit_test(test_locks_own_loss),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
