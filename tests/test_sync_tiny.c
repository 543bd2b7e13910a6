/* Built with tiny limits (windows, activity, sync events: see src/sync/part.mk), so that a long trace exceeds all of
 * them: time slices, sampled keys, streams. */
#include "test.h"

#include <math.h>

#include "base/mem.h"
#include "sync/evidence/activity.h"
#include "sync/evidence/host_timeline.h"
#include "sync/sync.h"
#include "sync_sim.h"

#define SECOND INT64_C(1000000000)
#define EPOCH (INT64_C(1790000000) * SECOND)

struct world {
	struct sync_sim sim;
	struct sim_vm vm;
	struct sim_events guest;
	struct trace *trace[2];
};

static void make_world(struct world *w, double beacon_hz)
{
	memset(w, 0, sizeof *w);
	sim_begin(&w->sim, 5, EPOCH, EPOCH + 1500 * SECOND);
	w->vm = (struct sim_vm){ .pid = 100, .process = "qemu:Guest", .vcpus = 2, .named = true, .busy = 0.3, .chatter = 0.5,
		.preempted = 0.02, .gap_ns = 9000, .latency_ns = 4000, .from = EPOCH + 12 * SECOND, .to = EPOCH + 1490 * SECOND,
		.clock = { EPOCH, EPOCH - 864000 * SECOND, 137.5 }, .beacon_hz = beacon_hz };
	sim_run_vm(&w->sim, &w->vm, &w->guest);
	w->trace[0] = sim_host_trace(&w->sim);
	w->trace[1] = sim_guest_trace("Guest", &w->guest);
}

static void world_release(struct world *w)
{
	trace_free(w->trace[0]);
	trace_free(w->trace[1]);
	free(w->guest.ev);
	sim_end(&w->sim);
}

static void check_windows(double beacon_hz, enum sync_method method)
{
	struct world w;
	struct sync_result r;
	struct notes notes = { NULL, 0, 0 };
	struct error err = ERROR_INIT;
	struct sync_options options = { .method = method };
	make_world(&w, beacon_hz);
	assert_int_equal(sync_run(w.trace, 2, &options, &r, &notes, &err), 0);
	const struct sync_vm *vm = &r.vm[0];
	assert_int_equal(vm->method, method);
	assert_int_equal(vm->host_pid, 100);
	assert_int_equal(vm->clock.segments, 1);
	for (int64_t host = w.vm.from; host < w.vm.to; host += 30 * SECOND) {
		int64_t low, high;
		if (sim_is_unverified_end(&w.vm, &vm->clock, host))
			continue;
		assert_true(clock_map_bounds(&vm->clock, sim_guest_time(&w.vm, host), &low, &high));
		assert_true(low - 2 <= host && host <= high + 2);
		assert_true(high - low < 40000);
	}
	assert_true(method == SYNC_EVENTS ? vm->containment > 0.9 : vm->containment == 1.0);
	sync_result_release(&r);
	notes_release(&notes);
	world_release(&w);
}

static void test_containment(void **state)
{
	(void)state;
	check_windows(0, SYNC_CONTAINMENT);
}

static void test_events(void **state)
{
	(void)state;
	check_windows(10, SYNC_EVENTS);
	check_windows(10, SYNC_AUTO);
}

/* A reader of one thread returns the events of that thread and the events of no thread. */
static void check_chains(const struct host_timeline *v, size_t all)
{
	struct error err = ERROR_INIT;
	struct sync_event m;
	size_t sum = 0, nobodys = 0;
	for (size_t i = 0; i < v->threads; i++) {
		bool *mine = mem_new(v->threads, sizeof *mine);
		mine[i] = true;
		struct event_reader *w = event_reader_open(&v->event_file, mine);
		nobodys = 0;
		for (; event_reader_next(w, &m, &err) > 0; sum += m.origin == (int32_t)i, nobodys += m.origin < 0)
			assert_true(m.origin == (int32_t)i || m.origin < 0);
		event_reader_close(w);
		free(mine);
	}
	assert_int_equal(sum + nobodys, all);
}

/* The file contains every sync event, sorted by time; its events with sampled keys are exactly those in the set. */
static void check_log(const struct host_timeline *v)
{
	struct event_reader *w = event_reader_open(&v->event_file, NULL);
	struct error err = ERROR_INIT;
	struct sync_event m;
	size_t all = 0, kept = 0;
	for (int64_t last = INT64_MIN; event_reader_next(w, &m, &err) > 0; last = m.ts, all++) {
		assert_true(m.ts >= last);
		kept += sync_event_set_keeps(&v->sync_events, m.key);
	}
	event_reader_close(w);
	assert_int_equal(err.status, STATUS_OK);
	assert_true(all > SYNC_EVENTS_MAX);
	assert_int_equal(kept, v->sync_events.len);
	check_chains(v, all);
}

/* The limits were exceeded, and all stored windows and times are right. */
static void test_limits(void **state)
{
	(void)state;
	struct world w;
	struct host_timeline v;
	struct activity a;
	struct error err = ERROR_INIT;
	make_world(&w, 10);
	assert_int_equal(host_timeline_load(&v, w.trace[0], NULL, 1, NULL, &err), 0);
	assert_true(v.slice_bits > 0);
	assert_true(v.windows <= WINDOWS_MAX);
	assert_true(v.sync_events.key_bits > 0);
	assert_true(v.sync_events.len <= SYNC_EVENTS_MAX);
	check_log(&v);
	assert_int_equal(activity_load(&a, w.trace[1], 5000, NULL, &err), 0);
	assert_true(a.slice_bits > 0);
	assert_true(a.len <= ACTIVITY_MAX);
	size_t inside = 0, unknown = 0;
	for (size_t i = 0; i < w.guest.len; i++) {
		int64_t t = sim_host_time(&w.vm, w.guest.ev[i].ts);
		size_t near = 0;
		for (size_t k = 0; k < v.threads; k++) {
			if (v.thread[k].tid != 101 + w.guest.ev[i].cpu)
				continue;
			enum guest_mode mode = vthread_mode(&v.thread[k], t, &near);
			assert_int_not_equal(mode, MODE_OUT);
			inside += mode == MODE_IN;
			unknown += mode == MODE_UNKNOWN;
		}
	}
	assert_true(inside > 1000);
	assert_true(unknown > inside);
	activity_release(&a);
	host_timeline_release(&v);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limits), cmocka_unit_test(test_containment), cmocka_unit_test(test_events),
	};
	return cmocka_run_group_tests_name("sync tiny", tests, NULL, NULL);
}
