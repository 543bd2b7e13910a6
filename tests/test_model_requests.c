/* The model on hand-made events: requests, and containers. */
#include "model_events.h"

/* ---- requests */

static void test_requests(void **state)
{
	(void)state;
	setup_full(true, true, true, false);
	static const struct { int64_t t, id; enum mark op; int32_t tid; } e[] = {
		{ 10, 1, MARK_START, 900 }, { 20, 1, MARK_YIELD, 900 }, { 20, 2, MARK_START, 900 }, { 30, 2, MARK_END, 900 },
		{ 40, 1, MARK_RESUME, 901 }, { 50, 1, MARK_END, 901 }, { 60, 3, MARK_END, 901 }, { 70, 4, MARK_START, 901 },
	};
	for (size_t i = 0; i < COUNT(e); i++) {
		struct event ev = event(e[i].t, EV_MARK, 0, e[i].tid);
		ev.mark.op = e[i].op;
		ev.mark.id = e[i].id;
		feed(1, ev);
	}
	expect("/Requests/Debian/1/State", 9, HISTORY_NULL);
	expect("/Requests/Debian/1/State", 10, 0);
	expect("/Requests/Debian/1/State", 20, 1);
	expect("/Requests/Debian/2/State", 20, 0);
	expect("/Requests/Debian/2/State", 30, HISTORY_NULL);
	expect("/Requests/Debian/1/State", 40, 0);
	expect("/Requests/Debian/1/Thread", 39, 900);
	expect("/Requests/Debian/1/Thread", 40, 901);
	expect("/Requests/Debian/1/State", 50, HISTORY_NULL);
	expect("/Requests/Debian/1/Thread", 50, HISTORY_NULL);
	assert_null(rec_find(&rec, "/Requests/Debian/3/State"));
	assert_int_equal(model->machine[1]->request.len, 1);
	assert_int_equal(model_end(model, 1, 100, NULL), 0);
	expect("/Requests/Debian/4/State", 99, 0);
	expect("/Requests/Debian/4/State", 100, HISTORY_NULL);
	teardown();
}

/* A request without a recorded start is unknown until its first mark that is not a resume. */
static void test_request_without_start(void **state)
{
	(void)state;
	setup_full(true, true, true, false);
	static const struct { int64_t t, id; enum mark op; } e[] = {
		{ 10, 1, MARK_RESUME }, { 15, 2, MARK_YIELD }, { 20, 1, MARK_YIELD }, { 25, 2, MARK_RESUME },
		{ 30, 1, MARK_RESUME }, { 40, 1, MARK_END }, { 50, 1, MARK_START }, { 60, 3, MARK_RESUME }, { 70, 3, MARK_RESUME },
		{ 80, 3, MARK_END },
	};
	for (size_t i = 0; i < COUNT(e); i++) {
		struct event ev = event(e[i].t, EV_MARK, 0, 900);
		ev.mark.op = e[i].op;
		ev.mark.id = e[i].id;
		feed(1, ev);
	}
	expect("/Requests/Debian/1/State", 9, HISTORY_NULL);
	expect("/Requests/Debian/1/State", 10, 2);
	expect("/Requests/Debian/1/Thread", 10, 900);
	expect("/Requests/Debian/1/State", 20, 1);
	expect("/Requests/Debian/1/State", 30, 0);
	expect("/Requests/Debian/1/State", 40, HISTORY_NULL);
	expect("/Requests/Debian/1/State", 50, 0);
	expect("/Requests/Debian/2/State", 15, 1);
	expect("/Requests/Debian/2/State", 25, 0);
	expect("/Requests/Debian/3/State", 60, 2);
	expect("/Requests/Debian/3/State", 70, 0);
	teardown();
}

/* ---- containers */

static void test_containers(void **state)
{
	(void)state;
	setup_full(true, true, true, false);
	struct event ev = event(10, EV_FORK, 0, 1);
	ev.fork.child_tid = 700;
	ev.fork.child_pid = 700;
	ev.fork.child_comm = NGINX;
	ev.fork.child_ns = 4026532281;
	feed(0, ev);
	wake(0, 15, 0, 1, 700, 1);
	sw(0, 20, 1, 0, RUN_RUNNABLE, 700);
	ev = event(25, EV_PROCESS, 0, 1);
	ev.process.tid = 701;
	ev.process.pid = 700;
	ev.process.comm = BASH;
	ev.process.state = RUN_BLOCKED;
	ev.process.cpu = 0;
	feed(0, ev);
	ev = event(25, EV_PROCESS_NS, 0, 1);
	ev.process_ns.tid = 701;
	ev.process_ns.ns = 4026532281;
	feed(0, ev);
	ev.process_ns.ns = 4026531836;  /* the dump continues with the outer namespaces */
	feed(0, ev);
	ev.process_ns.tid = 1;
	feed(0, ev);
	sw(0, 30, 1, 700, RUN_DEAD, 0);
#define BOX "/Containers/pidns-4026532281/Threads/"
	expect(BOX "700/Status", 10, THREAD_BLOCKED);
	expect(BOX "700/Status", 15, THREAD_PREEMPTED);
	expect(BOX "700/Status", 20, THREAD_RUNNING);
	expect(BOX "700/CPU", 20, 1);
	expect(BOX "700/Status", 30, HISTORY_NULL);
	expect("/Host/Threads/700/Status", 20, THREAD_RUNNING);
	assert_string_equal(rec_text(&rec, 20, BOX "700/Name"), "nginx");
	expect(BOX "701/Status", 25, THREAD_BLOCKED);
	expect(BOX "701/PID", 25, 700);
	assert_string_equal(rec_text(&rec, 25, BOX "701/Name"), "bash");
	assert_null(rec_find(&rec, "/Containers/pidns-4026531836/Threads/1/Status"));
	teardown();
}

/* A container with the host's PIDs has its own cgroup namespace; children of its threads belong to it. */
static void test_cgroup_containers(void **state)
{
	enum { HOST_PIDS = 4, PIDS = 281, HOST_CGROUPS = 3, CGROUPS = 290 };
	const int64_t base = 4026531832;
	const struct { int32_t tid; int64_t pid_ns, cgroup_ns; } dump[] = {
		{ 1, base + HOST_PIDS, base + HOST_CGROUPS }, { 800, base + HOST_PIDS, base + CGROUPS },
		{ 801, base + PIDS, base + CGROUPS }, { 802, base + HOST_PIDS, EVENT_ABSENT }, { 803, base + HOST_PIDS, 1LL << 32 },
	};
	(void)state;
	setup_full(true, true, true, false);
	struct prescan start = PRESCAN_INIT;
	for (int round = 0; round < 2; round++) {  /* the prescan finds the same state as the events */
		if (round) {
			teardown();
			setup_full(true, true, true, false);
			assert_int_equal(model_begin(model, 0, 0, &start, NULL), 0);
			expect("/Containers/cgroupns-4026532122/Threads/800/Status", 0, THREAD_BLOCKED);
		}
		for (size_t i = 0; i < COUNT(dump); i++) {
			struct event e[3] = { event(10, EV_PROCESS, 0, 900), event(11, EV_PROCESS_NS, 0, 900),
			                      event(12, EV_PROCESS_CGROUP, 0, 900) };
			e[0].process.tid = dump[i].tid;
			e[0].process.pid = dump[i].tid;
			e[0].process.comm = NGINX;
			e[0].process.state = RUN_BLOCKED;
			e[1].process_ns.tid = e[2].process_ns.tid = dump[i].tid;
			e[1].process_ns.ns = dump[i].pid_ns;
			e[2].process_ns.ns = dump[i].cgroup_ns;
			for (int k = 0; k < 3; k++) {
				e[k].ts = 10 + 3 * (int64_t)i + k;
				feed(0, e[k]);
				if (!round)
					prescan_feed(&start, &e[k]);
			}
		}
		for (int32_t parent = 1; parent <= 801; parent = parent == 1 ? 800 : parent + 1) {
			struct event ev = event(40, EV_FORK, 1, parent);
			ev.fork.parent_tid = parent;
			ev.fork.child_tid = ev.fork.child_pid = parent + 50;
			ev.fork.child_comm = BASH;
			ev.fork.child_ns = parent == 801 ? base + PIDS : base + HOST_PIDS;
			feed(0, ev);
		}
		expect("/Containers/cgroupns-4026532122/Threads/800/Status", 30, THREAD_BLOCKED);
		expect("/Containers/cgroupns-4026532122/Threads/800/PID", 30, 800);
		assert_string_equal(rec_text(&rec, 30, "/Containers/cgroupns-4026532122/Threads/800/Name"), "nginx");
		expect("/Containers/cgroupns-4026532122/Threads/850/Status", 40, THREAD_BLOCKED);
		expect("/Containers/pidns-4026532113/Threads/801/Status", 30, THREAD_BLOCKED);
		expect("/Containers/pidns-4026532113/Threads/851/Status", 40, THREAD_BLOCKED);
		assert_null(rec_find(&rec, "/Containers/cgroupns-4026532122/Threads/801/Status"));
		assert_null(rec_find(&rec, "/Containers/cgroupns-4026532122/Threads/51/Status"));
		assert_null(rec_find(&rec, "/Containers/cgroupns-4026531835/Threads/1/Status"));
		assert_null(rec_find(&rec, "/Containers/cgroupns-4294967296/Threads/803/Status"));
		assert_null(rec_find(&rec, "/Containers/cgroupns-0/Threads/803/Status"));
	}
	prescan_release(&start);
	teardown();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests), cmocka_unit_test(test_request_without_start), cmocka_unit_test(test_containers),
		cmocka_unit_test(test_cgroup_containers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
