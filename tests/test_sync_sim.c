/* sync/ on simulated VMs whose clocks are known.  STEALSCOPE_LONG_TESTS=1 runs 300 containment cases instead of 16. */
#include "test.h"

#include <math.h>

#include "base/mem.h"
#include "sync/sync.h"
#include "sync_sim.h"

#define SECOND INT64_C(1000000000)
#define EPOCH (INT64_C(1790000000) * SECOND)

struct setup {
	struct sim sim;
	struct sim_vm vm[4];
	struct sim_events guest[4];
	struct trace *trace[5];  /* host, then guests */
	size_t traces;
	struct sync_result r;
	struct notes notes;
};

static void run(struct setup *s, enum sync_method method)
{
	struct sync_options options = { .method = method };
	struct error err = ERROR_INIT;
	assert_int_equal(sync_run(s->trace, s->traces, &options, &s->r, &s->notes, &err), 0);
}

static void end(struct setup *s)
{
	sync_result_release(&s->r);
	notes_release(&s->notes);
	for (size_t i = 0; i < s->traces; i++)
		trace_free(s->trace[i]);
	for (size_t i = 0; i < COUNT(s->guest); i++)
		free(s->guest[i].ev);
	sim_end(&s->sim);
}

static const struct sync_vm *vm_named(const struct setup *s, const char *name)
{
	for (size_t i = 0; i < s->r.vms; i++)
		if (strcmp(s->r.vm[i].name, name) == 0)
			return &s->r.vm[i];
	fail_msg("no VM called %s", name);
	return NULL;
}

static struct sim_vm any_vm(uint64_t *seed, int64_t begin, int64_t finish)
{
	static const unsigned vcpus[] = { 1, 1, 1, 2, 2, 4, 8 };
	struct sim_vm vm = { .pid = 1000, .process = "qemu:Guest", .named = true };
	vm.vcpus = vcpus[sim_below(seed, COUNT(vcpus))];
	vm.busy = sim_uniform(seed);
	vm.chatter = sim_uniform(seed) < 0.5 ? 0.05 : sim_exp(seed, 2);
	vm.preempted = sim_uniform(seed) < 0.5 ? 0 : 0.1 * sim_uniform(seed);
	vm.gap_ns = 1000 + (int64_t)sim_exp(seed, 12000);
	vm.latency_ns = 500 + (int64_t)sim_exp(seed, 8000);
	vm.from = begin + sim_below(seed, (finish - begin) / 3);
	vm.to = finish - sim_below(seed, (finish - begin) / 3);
	vm.clock.host0 = vm.from;
	vm.clock.guest0 = vm.from + (sim_below(seed, 20) - 10) * 31557600 * SECOND + sim_below(seed, SECOND);
	vm.clock.ppm = (sim_uniform(seed) - 0.5) * 600;
	return vm;
}

/* Is the clock right within the band that it states? */
static bool within_band(const struct sync_vm *vm, const struct sim_vm *truth)
{
	for (int k = 0; k <= 10; k++) {
		int64_t host = truth->from + (truth->to - truth->from) / 10 * k, low, high;
		int64_t guest = sim_guest_time(truth, host);
		if (!clock_map_bounds(&vm->clock, guest, &low, &high) || host < low - 2 || host > high + 2)
			return false;
	}
	return true;
}

/* Never confidently wrong; and mostly not silent. */
static void test_containment_cases(void **state)
{
	(void)state;
	int cases = getenv("STEALSCOPE_LONG_TESTS") != NULL ? 300 : 16, told = 0, wrong = 0;
	for (int i = 0; i < cases; i++) {
		struct setup s = { 0 };
		uint64_t seed = 1000 + (uint64_t)i;
		int64_t length = SECOND + sim_below(&seed, 9 * SECOND);
		sim_begin(&s.sim, seed, EPOCH, EPOCH + length);
		s.vm[0] = any_vm(&seed, s.sim.begin, s.sim.end);
		sim_run_vm(&s.sim, &s.vm[0], &s.guest[0]);
		s.trace[0] = sim_host_trace(&s.sim);
		s.trace[1] = sim_guest_trace("Guest", &s.guest[0]);
		s.traces = 2;
		run(&s, SYNC_CONTAINMENT);
		const struct sync_vm *vm = vm_named(&s, "Guest");
		bool sure = vm->method == SYNC_CONTAINMENT;
		told += sure;
		bool right = sure && within_band(vm, &s.vm[0]);
		wrong += sure && !right;
		if (getenv("STEALSCOPE_TEST_VERBOSE") != NULL)
			print_message("%3d %s vcpus %u busy %.2f chatter %.2f preempted %.3f gap %lld latency %lld ppm %+.1f %.2f s, "
			              "%zu events: error %lld band %lld share %.4f %s\n", i, !sure ? "silent" : right ? "ok" : "WRONG",
			              s.vm[0].vcpus, s.vm[0].busy, s.vm[0].chatter, s.vm[0].preempted, (long long)s.vm[0].gap_ns,
			              (long long)s.vm[0].latency_ns, s.vm[0].clock.ppm, (double)(s.vm[0].to - s.vm[0].from) / 1e9,
			              s.guest[0].len, (long long)(clock_map_at(&vm->clock, sim_guest_time(&s.vm[0], s.vm[0].from)) - s.vm[0].from),
			              (long long)clock_map_band(&vm->clock, sim_guest_time(&s.vm[0], s.vm[0].from)), vm->containment,
			              s.notes.len > 0 ? s.notes.line[0] : "");
		end(&s);
	}
	print_message("containment: %d cases, %d told, %d of them wrong\n", cases, told, wrong);
	assert_int_equal(wrong, 0);
	assert_true(told * 4 >= cases * 3);
}

/* A guest that ran somewhere else must not be given a clock. */
static void test_strangers(void **state)
{
	(void)state;
	int cases = getenv("STEALSCOPE_LONG_TESTS") != NULL ? 60 : 4;
	for (int i = 0; i < cases; i++) {
		struct setup s = { 0 };
		struct sim elsewhere;
		struct sim_events unused;
		uint64_t seed = 5000 + (uint64_t)i;
		int64_t length = SECOND + sim_below(&seed, 6 * SECOND);
		sim_begin(&s.sim, seed, EPOCH, EPOCH + length);
		s.vm[0] = any_vm(&seed, s.sim.begin, s.sim.end);
		s.vm[0].vcpus = 1 + (unsigned)i % 2;
		sim_run_vm(&s.sim, &s.vm[0], &unused);
		sim_begin(&elsewhere, seed ^ 77, EPOCH, EPOCH + length);
		sim_run_vm(&elsewhere, &s.vm[0], &s.guest[0]);
		s.trace[0] = sim_host_trace(&s.sim);
		s.trace[1] = sim_guest_trace("Guest", &s.guest[0]);
		s.traces = 2;
		run(&s, SYNC_AUTO);
		const struct sync_vm *vm = vm_named(&s, "Guest");
		assert_int_equal(vm->method, SYNC_NONE);
		assert_int_equal(vm->host_pid, -1);
		assert_int_equal(s.notes.len, 1);
		assert_non_null(strstr(s.notes.line[0], "cannot be told"));
		free(unused.ev);
		sim_end(&elsewhere);
		end(&s);
	}
}

static void make_three(struct setup *s, double beacon_hz)
{
	static const char *const process[] = { "qemu:One", "qemu:Two", "qemu:Three" };
	uint64_t seed = 42;
	memset(s, 0, sizeof *s);
	sim_begin(&s->sim, 9, EPOCH, EPOCH + 6 * SECOND);
	for (int i = 0; i < 3; i++) {
		s->vm[i] = any_vm(&seed, s->sim.begin, s->sim.end);
		s->vm[i].pid = 2000 - 100 * i;
		s->vm[i].process = process[i];
		s->vm[i].vcpus = 2;
		s->vm[i].busy = 0.7;
		s->vm[i].chatter = 1;
		s->vm[i].beacon_hz = beacon_hz;
		sim_run_vm(&s->sim, &s->vm[i], &s->guest[i]);
	}
	s->trace[0] = sim_host_trace(&s->sim);
	s->trace[1] = sim_guest_trace("Alpha", &s->guest[1]);  /* runs in Two */
	s->trace[2] = sim_guest_trace("Beta", &s->guest[0]);   /* runs in One */
	s->traces = 3;
}

static void check_three(struct setup *s, enum sync_method asked, enum sync_method want)
{
	run(s, asked);
	assert_int_equal(s->r.vms, 3);
	const struct sync_vm *alpha = vm_named(s, "Alpha"), *beta = vm_named(s, "Beta"), *three = vm_named(s, "Three");
	assert_int_equal(alpha->host_pid, 1900);
	assert_int_equal(beta->host_pid, 2000);
	assert_int_equal(three->host_pid, 1800);
	assert_null(three->guest);
	assert_int_equal(three->clock.pieces, 0);
	assert_int_equal(three->vcpus, 2);
	assert_int_equal(alpha->method, want);
	assert_int_equal(beta->method, want);
	assert_true(within_band(alpha, &s->vm[1]));
	assert_true(within_band(beta, &s->vm[0]));
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(alpha->vcpu[i].host_tid, 1901 + (int)i);
		assert_int_equal(beta->vcpu[i].number, i);
	}
	end(s);
}

/* Which guest is in which VM, by containment, and with beacons that use the same keys. */
static void test_three_vms(void **state)
{
	(void)state;
	struct setup s;
	make_three(&s, 0);
	check_three(&s, SYNC_AUTO, SYNC_CONTAINMENT);
	make_three(&s, 20);
	check_three(&s, SYNC_EVENTS, SYNC_EVENTS);
	make_three(&s, 20);
	check_three(&s, SYNC_AUTO, SYNC_AUTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_containment_cases), cmocka_unit_test(test_strangers), cmocka_unit_test(test_three_vms),
	};
	return cmocka_run_group_tests_name("sync sim", tests, NULL, NULL);
}
