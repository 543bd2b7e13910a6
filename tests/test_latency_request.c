/* latency/: requests of a history, and measured bounds, on hand-made histories. */
#include "latency_world.h"

/* The world of the issue: out while executing is in both bounds, out while the server works on another request only in
 * the upper one, out while the server sleeps in neither. */
static void test_bounds(void **state)
{
	(void)state;
	struct latency_rows r;
	struct latency_world *w = vm_world(&r);
	fill(r.state, 100, 199, 0);
	fill(r.state, 120, 159, 1);
	fill(r.tid, 100, 199, 5);
	/* 110-114 while executing */
	fill(r.vcpu, 110, 114, VCPU_PREEMPTED);
	fill(r.thread, 110, 114, THREAD_VIRT_PREEMPTED);
	/* 130-139 while the server works for somebody else */
	fill(r.vcpu, 130, 139, VCPU_HOST_BLOCKED);
	fill(r.thread, 130, 139, THREAD_VIRT_PREEMPTED);
	/* 145-154 asleep; out for 147-150, idle else */
	fill(r.thread, 145, 154, THREAD_BLOCKED);
	fill(r.vcpu, 145, 154, VCPU_IDLE);
	fill(r.vcpu, 147, 150, VCPU_PREEMPTED);
	/* 170-174 hypervisor, 180-184 waiting in the guest's queue */
	fill(r.vcpu, 170, 174, VCPU_VMM);
	fill(r.thread, 170, 174, THREAD_VIRT_PREEMPTED);
	fill(r.thread, 180, 184, THREAD_PREEMPTED);
	/* and a second life of the id, cut off by the end of the trace */
	fill(r.state, 300, SPAN - 1, 0);
	fill(r.tid, 300, SPAN - 1, 5);
	for (size_t i = 0; i < w->rows; i++) {
		if (strstr(w->row[i].path, "/Host/CPUs/CPU0/Current"))
			fill(w->row[i].v, 110, 114, 99);
	}
	fill(r.host, 110, 114, THREAD_PREEMPTED);
	world_close(w);
	struct requests all = read_all(w);
	assert_int_equal(all.len, 1);
	assert_int_equal(all.cut, 1);
	const struct request *q = &all.row[0];
	assert_string_equal(q->machine, "A");
	assert_string_equal(q->id, "7");
	assert_int_equal(q->tid, 5);
	assert_int_equal(request_latency(q), 100);
	assert_int_equal(q->executing, 60);
	assert_int_equal(q->low, 5);
	assert_int_equal(q->high, 15);
	assert_int_equal(q->unknown, 0);
	assert_int_equal(q->feature.vmm, 5);
	assert_int_equal(q->feature.wait, 5);
	assert_int_equal(q->feature.blocked, 10);
	assert_int_equal(q->feature.switches, 2);
	assert_int_equal(q->feature.exits, 1);
	assert_int_equal(q->feature.wakeups, 1);
	assert_non_null(q->culprit);
	assert_string_equal(q->culprit, "host/99 name99");
	requests_release(&all);
	world_free(w);
}

/* A sleeping server is woken by a vCPU that had to wait for a pCPU first: that wait is in the upper bound; other waits
 * of the vCPU during the sleep are not. */
static void test_late_wakeup(void **state)
{
	(void)state;
	struct latency_rows r;
	struct latency_world *w = vm_world(&r);
	fill(r.state, 100, 199, 0);
	fill(r.tid, 100, 199, 5);
	fill(r.thread, 110, 179, THREAD_BLOCKED);
	fill(r.vcpu, 110, 179, VCPU_IDLE);
	fill(r.host, 110, 179, THREAD_BLOCKED);
	/* a timer tick in between: waking 120-129, runs 130-134, sleeps again */
	fill(r.vcpu, 120, 129, VCPU_WAKING);
	fill(r.host, 120, 129, THREAD_PREEMPTED);
	fill(r.host, 130, 134, THREAD_RUNNING);
	/* the wakeup that matters: waking 150-169, enters, handles the interrupt until 179 */
	fill(r.vcpu, 150, 169, VCPU_WAKING);
	fill(r.host, 150, 169, THREAD_PREEMPTED);
	fill(r.vcpu, 170, 171, VCPU_VMM);
	fill(r.host, 170, 179, THREAD_RUNNING);
	world_close(w);
	struct requests all = read_all(w);
	assert_int_equal(all.len, 1);
	assert_int_equal(all.row[0].low, 0);
	assert_int_equal(all.row[0].high, 20);
	assert_int_equal(all.row[0].feature.out_flight, 0);
	requests_release(&all);
	world_free(w);
}

/* A wait for a pCPU while nothing was known of the request counts as unknown, and not once more as its late wakeup. */
static void test_late_and_unknown(void **state)
{
	(void)state;
	struct latency_rows r;
	struct latency_world *w = vm_world(&r);
	fill(r.state, 100, 199, 0);
	fill(r.tid, 100, 199, 5);
	fill(r.state, 140, 159, 2);
	fill(r.thread, 110, 179, THREAD_BLOCKED);
	fill(r.vcpu, 110, 179, VCPU_IDLE);
	fill(r.host, 110, 179, THREAD_BLOCKED);
	fill(r.vcpu, 150, 169, VCPU_WAKING);
	fill(r.host, 150, 169, THREAD_PREEMPTED);
	fill(r.host, 170, 179, THREAD_RUNNING);
	world_close(w);
	struct requests all = read_all(w);
	assert_int_equal(all.len, 1);
	assert_int_equal(all.row[0].unknown, 20);
	assert_int_equal(all.row[0].high, 20 + 10);
	requests_release(&all);
	world_free(w);
}

/* What is not known cannot be ruled out: it is in the upper bound, and counted. */
static void test_unknown(void **state)
{
	(void)state;
	struct latency_rows r;
	struct latency_world *w = vm_world(&r);
	fill(r.state, 100, 199, 0);
	fill(r.tid, 100, 199, 5);
	fill(r.vcpu, 110, 119, VCPU_UNKNOWN);
	fill(r.thread, 130, 139, THREAD_UNKNOWN);
	fill(r.cpu, 150, 154, HISTORY_NULL);
	fill(r.tid, 160, 162, 4711);
	fill(r.state, 180, 183, 2);
	world_close(w);
	struct requests all = read_all(w);
	assert_int_equal(all.len, 1);
	assert_int_equal(all.row[0].low, 0);
	assert_int_equal(all.row[0].unknown, 10 + 10 + 5 + 3 + 4);
	assert_int_equal(all.row[0].high, all.row[0].unknown);
	assert_null(all.row[0].culprit);
	requests_release(&all);
	world_free(w);
}

/* Requests that the trace does not hold whole: begun before it (first heard of yielded, or by a resume), or the
 * machine's trace ends with them (its threads end too).  One whose begin is the first thing in the trace is whole. */
static void test_cut(void **state)
{
	(void)state;
	struct latency_rows r;
	struct latency_world *w = vm_world(&r);
	int64_t *s = row_add(w, SET_REQUEST, "/Requests/A/8/State"), *t = row_add(w, SET_INT, "/Requests/A/8/Thread");
	fill(r.state, 100, 119, 1);
	fill(r.state, 120, 149, 0);
	fill(r.state, 151, 169, 2);
	fill(r.state, 170, 199, 0);
	fill(r.tid, 100, 149, 5);
	fill(r.tid, 151, 199, 5);
	fill(s, 250, 299, 0);
	fill(t, 250, 299, 5);
	fill(r.thread, 300, SPAN - 1, HISTORY_NULL);
	fill(row_add(w, SET_REQUEST, "/Requests/A/9/State"), 0, 49, 0);
	fill(row_add(w, SET_REQUEST, "/Requests/A/10/State"), 0, 49, 1);
	fill(row_add(w, SET_REQUEST, "/Requests/A/11/State"), 0, 49, 2);
	world_close(w);
	struct requests all = read_all(w);
	assert_int_equal(all.len, 1);
	assert_string_equal(all.row[0].id, "9");
	assert_int_equal(all.row[0].start, 0);
	assert_int_equal(all.cut, 5);
	requests_release(&all);
	world_free(w);
}

/* One whose server thread was gone before the answer was: somebody else gave it, and it is whole. */
static void test_answered_for(void **state)
{
	(void)state;
	struct latency_rows r;
	struct latency_world *w = vm_world(&r);
	fill(r.state, 100, 199, 0);
	fill(r.tid, 100, 199, 5);
	fill(r.thread, 150, SPAN - 1, HISTORY_NULL);
	world_close(w);
	struct requests all = read_all(w);
	assert_int_equal(all.len, 1);
	assert_int_equal(all.cut, 0);
	requests_release(&all);
	world_free(w);
}

/* ---- Prediction for requests -------------------------------------------------------------------------------- */

static void test_predict(void **state)
{
	(void)state;
	enum { N = 120 };
	struct request row[N];
	memset(row, 0, sizeof row);
	double x[N], y[N];
	for (int i = 0; i < N; i++) {
		row[i].end = 20000000 - 1;
		row[i].feature.out_flight = i * 100000;
		x[i] = i * 1e5;
		y[i] = 0.95 * x[i] + (i % 7) * 1e4;
	}
	struct requests r = { row, N, 0, 0 };
	struct error err = ERROR_INIT;
	struct notes notes = { NULL, 0, 0 };
	const char *good[] = { "out_flight" }, *foreign[] = { "xen_cyc" };
	struct gp *g = gp_train(good, 1, x, y, N, NULL, &err);
	assert_int_equal(requests_predict(&r, g, &notes, &err), 0);
	assert_int_equal(notes.len, 0);
	for (int i = 0; i < N; i++) {
		assert_true(row[i].has_prediction);
		assert_true(row[i].predicted.mean >= 0 && row[i].predicted.mean <= 2e7);
		assert_true(row[i].predicted.low <= y[i] && y[i] <= row[i].predicted.high);
	}
	row[3].feature.out_flight = 19000000;
	assert_int_equal(requests_predict(&r, g, &notes, &err), 0);
	assert_int_equal(notes.len, 1);
	assert_non_null(strstr(notes.item[0].text, "1 of 120"));
	assert_non_null(strstr(notes.item[0].text, "out_flight"));
	notes_release(&notes);
	gp_free(g);
	g = gp_train(foreign, 1, x, y, N, NULL, &err);
	assert_int_equal(requests_predict(&r, g, &notes, &err), -1);
	assert_int_equal(err.status, STATUS_INPUT);
	gp_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bounds), cmocka_unit_test(test_late_wakeup), cmocka_unit_test(test_late_and_unknown),
		cmocka_unit_test(test_answered_for), cmocka_unit_test(test_unknown), cmocka_unit_test(test_cut),
		cmocka_unit_test(test_predict),
	};
	return cmocka_run_group_tests_name("latency requests", tests, NULL, NULL);
}
