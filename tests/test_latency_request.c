/* latency/: requests of a history, and measured bounds, on hand-made histories. */
#include "latency_world.h"

#include "latency/attribution.h"

/* Time without a pCPU is in both bounds while the request executes, only in the upper one while the server works on
 * another request, and in neither while the server sleeps. */
static void test_bounds(void **state)
{
	(void)state;
	struct latency_rows r;
	struct latency_world *w = vm_world(&r);
	fill_values(r.state, 100, 199, 0);
	fill_values(r.state, 120, 159, 1);
	fill_values(r.tid, 100, 199, 5);
	/* 110-114: the vCPU is preempted while the request executes */
	fill_values(r.vcpu, 110, 114, VCPU_PREEMPTED);
	fill_values(r.thread, 110, 114, THREAD_VIRT_PREEMPTED);
	/* 130-139: the server works on another request */
	fill_values(r.vcpu, 130, 139, VCPU_HOST_BLOCKED);
	fill_values(r.thread, 130, 139, THREAD_VIRT_PREEMPTED);
	/* 145-154: the server sleeps; the vCPU is out for 147-150, else idle */
	fill_values(r.thread, 145, 154, THREAD_BLOCKED);
	fill_values(r.vcpu, 145, 154, VCPU_IDLE);
	fill_values(r.vcpu, 147, 150, VCPU_PREEMPTED);
	/* 170-174: hypervisor; 180-184: runqueue wait in the guest */
	fill_values(r.vcpu, 170, 174, VCPU_VMM);
	fill_values(r.thread, 170, 174, THREAD_VIRT_PREEMPTED);
	fill_values(r.thread, 180, 184, THREAD_PREEMPTED);
	/* a second request with the same id, cut off by the end of the trace */
	fill_values(r.state, 300, WORLD_NS - 1, 0);
	fill_values(r.tid, 300, WORLD_NS - 1, 5);
	for (size_t i = 0; i < w->rows; i++) {
		if (strstr(w->row[i].path, "/Host/CPUs/CPU0/Current"))
			fill_values(w->row[i].v, 110, 114, 99);
	}
	fill_values(r.host, 110, 114, THREAD_PREEMPTED);
	world_open(w);
	struct requests all = read_requests(w);
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

/* A sleeping server is woken on a vCPU that first had to wait for a pCPU: that wait is in the upper bound; other waits
 * of the vCPU during the sleep are not. */
static void test_late_wakeup(void **state)
{
	(void)state;
	struct latency_rows r;
	struct latency_world *w = vm_world(&r);
	fill_values(r.state, 100, 199, 0);
	fill_values(r.tid, 100, 199, 5);
	fill_values(r.thread, 110, 179, THREAD_BLOCKED);
	fill_values(r.vcpu, 110, 179, VCPU_IDLE);
	fill_values(r.host, 110, 179, THREAD_BLOCKED);
	/* a timer tick in between: waking 120-129, runs 130-134, sleeps again */
	fill_values(r.vcpu, 120, 129, VCPU_WAKING);
	fill_values(r.host, 120, 129, THREAD_PREEMPTED);
	fill_values(r.host, 130, 134, THREAD_RUNNING);
	/* the relevant wakeup: waking 150-169, VM entry, handles the interrupt until 179 */
	fill_values(r.vcpu, 150, 169, VCPU_WAKING);
	fill_values(r.host, 150, 169, THREAD_PREEMPTED);
	fill_values(r.vcpu, 170, 171, VCPU_VMM);
	fill_values(r.host, 170, 179, THREAD_RUNNING);
	world_open(w);
	struct requests all = read_requests(w);
	assert_int_equal(all.len, 1);
	assert_int_equal(all.row[0].low, 0);
	assert_int_equal(all.row[0].high, 20);
	assert_int_equal(all.row[0].feature.out_flight, 0);
	requests_release(&all);
	world_free(w);
}

/* A wait for a pCPU while the state of the request is unknown counts as unknown, and not again as a late wakeup. */
static void test_late_and_unknown(void **state)
{
	(void)state;
	struct latency_rows r;
	struct latency_world *w = vm_world(&r);
	fill_values(r.state, 100, 199, 0);
	fill_values(r.tid, 100, 199, 5);
	fill_values(r.state, 140, 159, 2);
	fill_values(r.thread, 110, 179, THREAD_BLOCKED);
	fill_values(r.vcpu, 110, 179, VCPU_IDLE);
	fill_values(r.host, 110, 179, THREAD_BLOCKED);
	fill_values(r.vcpu, 150, 169, VCPU_WAKING);
	fill_values(r.host, 150, 169, THREAD_PREEMPTED);
	fill_values(r.host, 170, 179, THREAD_RUNNING);
	world_open(w);
	struct requests all = read_requests(w);
	assert_int_equal(all.len, 1);
	assert_int_equal(all.row[0].unknown, 20);
	assert_int_equal(all.row[0].high, 20 + 10);
	requests_release(&all);
	world_free(w);
}

/* Unknown time may be stolen: it is in the upper bound, and counted. */
static void test_unknown(void **state)
{
	(void)state;
	struct latency_rows r;
	struct latency_world *w = vm_world(&r);
	fill_values(r.state, 100, 199, 0);
	fill_values(r.tid, 100, 199, 5);
	fill_values(r.vcpu, 110, 119, VCPU_UNKNOWN);
	fill_values(r.thread, 130, 139, THREAD_UNKNOWN);
	fill_values(r.cpu, 150, 154, HISTORY_NULL);
	fill_values(r.tid, 160, 162, 4711);
	fill_values(r.state, 180, 183, 2);
	world_open(w);
	struct requests all = read_requests(w);
	assert_int_equal(all.len, 1);
	assert_int_equal(all.row[0].low, 0);
	assert_int_equal(all.row[0].unknown, 10 + 10 + 5 + 3 + 4);
	assert_int_equal(all.row[0].high, all.row[0].unknown);
	assert_null(all.row[0].culprit);
	requests_release(&all);
	world_free(w);
}

/* Requests that are cut off by the trace: begun before it (the first state is yielded, or a resume), or still open when
 * the trace of the machine ends (and its threads with it). A request that begins at the first event of the trace is
 * complete. */
static void test_cut(void **state)
{
	(void)state;
	struct latency_rows r;
	struct latency_world *w = vm_world(&r);
	int64_t *s = row_add(w, SET_REQUEST, "/Requests/A/8/State"), *t = row_add(w, SET_INT, "/Requests/A/8/Thread");
	fill_values(r.state, 100, 119, 1);
	fill_values(r.state, 120, 149, 0);
	fill_values(r.state, 151, 169, 2);
	fill_values(r.state, 170, 199, 0);
	fill_values(r.tid, 100, 149, 5);
	fill_values(r.tid, 151, 199, 5);
	fill_values(s, 250, 299, 0);
	fill_values(t, 250, 299, 5);
	fill_values(r.thread, 300, WORLD_NS - 1, HISTORY_NULL);
	fill_values(row_add(w, SET_REQUEST, "/Requests/A/9/State"), 0, 49, 0);
	fill_values(row_add(w, SET_REQUEST, "/Requests/A/10/State"), 0, 49, 1);
	fill_values(row_add(w, SET_REQUEST, "/Requests/A/11/State"), 0, 49, 2);
	world_open(w);
	struct requests all = read_requests(w);
	assert_int_equal(all.len, 1);
	assert_string_equal(all.row[0].id, "9");
	assert_int_equal(all.row[0].start, 0);
	assert_int_equal(all.cut, 5);
	requests_release(&all);
	world_free(w);
}

/* The server thread exits before the answer: another thread gave it, and the request is complete. */
static void test_answered_by_another(void **state)
{
	(void)state;
	struct latency_rows r;
	struct latency_world *w = vm_world(&r);
	fill_values(r.state, 100, 199, 0);
	fill_values(r.tid, 100, 199, 5);
	fill_values(r.thread, 150, WORLD_NS - 1, HISTORY_NULL);
	world_open(w);
	struct requests all = read_requests(w);
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
	struct requests r = { row, N, 0, 0, 0 };
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

/* The culprit of a request whose vCPU waits although its CPU of the host is idle, and of one that loses nothing. */
static void test_idle_culprit(void **state)
{
	(void)state;
	for (int idle = 0; idle < 2; idle++) {
		struct latency_rows r;
		struct latency_world *w = vm_world(&r);
		fill_values(r.state, 100, 199, 0);
		fill_values(r.state, 200, 200, HISTORY_NULL);
		fill_values(r.tid, 100, 199, 5);
		if (idle) {
			fill_values(r.vcpu, 110, 139, VCPU_PREEMPTED);
			fill_values(r.thread, 110, 139, THREAD_VIRT_PREEMPTED);
			fill_values(r.host, 110, 139, THREAD_PREEMPTED);
			for (size_t i = 0; i < w->rows; i++)
				if (strstr(w->row[i].path, "/Host/CPUs/CPU0/Current"))
					fill_values(w->row[i].v, 110, 139, 0);
		}
		world_open(w);
		struct requests all = read_requests(w);
		assert_int_equal(all.len, 1);
		assert_int_equal(all.row[0].low, idle ? 30 : 0);
		if (idle)
			assert_string_equal(all.row[0].culprit, "idle CPU");
		else
			assert_true(!all.row[0].culprit || !*all.row[0].culprit);
		requests_release(&all);
		world_free(w);
	}
}

/* Makes the VM a guest without a host trace: removes the rows of the host, and gives vCPU 0 a steal clock or none. */
static void remove_host(struct latency_world *w, bool has_steal_clock)
{
	size_t n = 0;
	for (size_t i = 0; i < w->rows; i++)
		if (!strstr(w->row[i].path, "/Host") && !strstr(w->row[i].path, "Host Thread") && !strstr(w->row[i].path, "pCPU"))
			w->row[n++] = w->row[i];
	w->rows = n;
	if (has_steal_clock)
		fill_values(row_add(w, SET_INT, "/Virtual Machines/A/CPUs/CPU0/Steal Bound"), 110, 114, 3);
}

/* Checks the bounds of a request of 100 ns. Its vCPU was taken for 5 ns while it executed, and for 20 ns of its sleep of
 * 40 ns: until the interrupt of its wakeup. The handler executed for 10 ns. */
static void check_alone(bool has_steal_clock, int64_t low, int64_t high, int64_t unknown)
{
	struct latency_rows r;
	struct latency_world *w = vm_world(&r);
	fill_values(r.state, 100, 199, 0);
	fill_values(r.tid, 100, 199, 5);
	if (has_steal_clock) {
		fill_values(r.vcpu, 110, 114, VCPU_PREEMPTED);
		fill_values(r.thread, 110, 114, THREAD_VIRT_PREEMPTED);
	}
	fill_values(r.thread, 140, 179, THREAD_BLOCKED);
	fill_values(r.vcpu, 140, 179, VCPU_IDLE);
	if (has_steal_clock)
		fill_values(r.vcpu, 150, 169, VCPU_WAKING);
	remove_host(w, has_steal_clock);
	world_open(w);
	struct requests all = read_requests(w);
	assert_int_equal(all.len, 1);
	assert_int_equal(all.row[0].low, low);
	assert_int_equal(all.row[0].high, high);
	assert_int_equal(all.row[0].unknown, unknown);
	requests_release(&all);
	world_free(w);
}

/* With a steal clock both bounds are known; without one, all time in which the thread had work is unknown. */
static void test_guest_alone(void **state)
{
	(void)state;
	check_alone(true, 5, 25, 0);
	check_alone(false, 0, 60, 60);
}

/* Requests are ordered by start, and unknown values of an input are replaced by the median of the known ones. */
static void test_random_requests(void **state)
{
	enum { REQUESTS = 61 };
	static struct request row[REQUESTS];
	static char name[2] = "m", id[REQUESTS][8];
	static const char *const input[] = { "executing", "shared" };
	uint64_t seed = 6301;
	(void)state;
	for (int round = 0; round < 20; round++) {
		struct requests r = { .row = row, .len = REQUESTS };
		size_t n = 0;
		for (int i = 0; i < REQUESTS; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			const int64_t start = (int64_t)(seed >> 33) % 40, end = start + (int64_t)(seed >> 40) % 30;
			snprintf(id[i], sizeof id[i], "%u", (unsigned)(seed >> 50) % 99);
			row[i] = (struct request){ .machine = name, .id = id[i], .start = start, .end = end };
			row[i].core.shared = (seed >> 45) % 3 ? (int64_t)(seed >> 35) % 100 : -1;
		}
		requests_sort(&r, REQUESTS_BY_START);
		for (int i = 1; i < REQUESTS; i++) {
			const struct request *a = &row[i - 1], *b = &row[i];
			assert_true(a->start != b->start ? a->start < b->start : a->end != b->end ? a->end < b->end :
			            strcmp(a->id, b->id) <= 0);
		}
		for (int i = 0; i < REQUESTS; i++)
			if (row[i].core.shared >= 0)
				n++;
		row[0].core.shared = n % 2 ? row[0].core.shared : row[0].core.shared < 0 ? 50 : -1;  /* an odd number is known */
		const char *missing;
		double *x = requests_matrix(&r, input + 1, 1, &missing);
		assert_null(missing);
		for (int i = 0; i < REQUESTS; i++) {
			size_t below = 0, above = 0;
			for (int k = 0; k < REQUESTS; k++) {
				below += row[k].core.shared >= 0 && (double)row[k].core.shared < x[i];
				above += (double)row[k].core.shared > x[i];
			}
			if (row[i].core.shared >= 0)
				assert_true(x[i] == (double)row[i].core.shared);
			else
				assert_true(below <= n / 2 && above <= n / 2);
		}
		free(x);
		x = requests_matrix(&r, input, 1, &missing);
		assert_string_equal(missing, input[0]);
		free(x);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_requests), cmocka_unit_test(test_bounds), cmocka_unit_test(test_late_wakeup), cmocka_unit_test(test_late_and_unknown),
		cmocka_unit_test(test_answered_by_another), cmocka_unit_test(test_unknown), cmocka_unit_test(test_cut),
		cmocka_unit_test(test_predict), cmocka_unit_test(test_idle_culprit),
		cmocka_unit_test(test_guest_alone),
	};
	return cmocka_run_group_tests_name("latency requests", tests, NULL, NULL);
}
