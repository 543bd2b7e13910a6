/* The coarse search: the guest CPUs that it uses, and its estimates. */
#include "test.h"

#include "base/mem.h"
#include "sync/search/cross_correlation.h"
#include "sync_world.h"

#define SECOND INT64_C(1000000000)
#define EPOCH (INT64_C(1790000000) * SECOND)
#define INACTIVE 5  /* of eight CPUs */

/* Returns the middle of the vCPU's longest window while the guest is traced. */
static int64_t longest_stay(const struct sync_world *w, unsigned cpu)
{
	int64_t entry = 0, longest = 0, middle = 0;
	for (size_t i = 0; i < w->sim.host.len; i++) {
		const struct event *ev = &w->sim.host.ev[i];
		if (ev->tid != w->vm.pid + 1 + (int)cpu || ev->ts < w->vm.from || ev->ts > w->vm.to)
			continue;
		if (ev->kind == EV_VCPU_EXIT && entry > 0 && ev->ts - entry > longest) {
			longest = ev->ts - entry;
			middle = entry + longest / 2;
		}
		entry = ev->kind == EV_VCPU_ENTRY ? ev->ts : 0;
	}
	return middle;
}

/* Makes a world in which the first CPUs have a single event each, in a long window. */
static void make_world(struct sync_world *w)
{
	size_t n = 0;
	*w = (struct sync_world){ .notes = { NULL, 0, 0 } };
	sim_begin(&w->sim, 4, EPOCH, EPOCH + 8 * SECOND);
	w->vm = (struct sim_vm){ .pid = 1000, .process = "qemu:Guest", .vcpus = 8, .named = true, .busy = 0.8, .chatter = 0.3,
		.gap_ns = 9000, .latency_ns = 3000, .from = EPOCH + 2 * SECOND, .to = EPOCH + 6 * SECOND,
		.clock = { EPOCH, EPOCH - 77 * SECOND, 40 } };
	sim_run_vm(&w->sim, &w->vm, &w->guest);
	w->trace[0] = sim_host_trace(&w->sim);
	for (size_t i = 0; i < w->guest.len; i++)
		if (w->guest.ev[i].cpu >= INACTIVE)
			w->guest.ev[n++] = w->guest.ev[i];
	w->guest.len = n;
	for (unsigned cpu = 0; cpu < INACTIVE; cpu++) {
		struct event ev = w->guest.ev[0];
		ev.cpu = (uint16_t)cpu;
		ev.ts = sim_guest_time(&w->vm, longest_stay(w, cpu));
		*ARRAY_PUSH(w->guest.ev, w->guest.len, w->guest.cap) = ev;
	}
	w->trace[1] = sim_guest_trace("Guest", &w->guest);
}

/* Four CPUs are used, and they must be those with activity; the estimates do not all belong to one peak. */
static void test_estimates(void **state)
{
	(void)state;
	struct sync_world w;
	struct error err = ERROR_INIT;
	struct host_timeline host = { 0 };
	struct vm_list vms = { 0 };
	struct activity activity = { 0 };
	struct offset_list l = { .n = 0 };
	size_t same = 0;
	make_world(&w);
	assert_int_equal(host_timeline_load(&host, w.trace[0], NULL, 1, NULL, &err), 0);
	assert_int_equal(activity_load(&activity, w.trace[1], host.min_gap_ns, NULL, &err), 0);
	vm_list_make(&host, &vms);

	const struct evidence evidence = { &host, &vms.vm[0], &activity };
	cross_correlate(&evidence, (struct ns_interval){ activity.begin, activity.end },
	                (struct ns_interval){ host.begin, host.end }, BIN_NS, &l);
	assert_true(l.n > 1);
	const int64_t is = sim_host_time(&w.vm, l.estimate[0].at_guest);
	assert_in_range(l.estimate[0].at_host, is - 2 * BIN_NS, is + 2 * BIN_NS);
	for (size_t i = 0; i < l.n; i++)
		same += llabs(l.estimate[i].at_host - is) <= 3 * BIN_NS;
	assert_true(same <= 2);

	activity_release(&activity);
	vm_list_release(&vms);
	host_timeline_release(&host);
	world_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_estimates) };
	return cmocka_run_group_tests_name("sync coarse", tests, NULL, NULL);
}
