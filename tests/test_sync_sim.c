/* Synchronization of simulated VMs with known clocks. STEALSCOPE_LONG_TESTS=1 runs 300 containment cases instead of 8. */
#include "test.h"

#include <math.h>

#include "base/mem.h"
#include "sync/sync.h"
#include "sync_sim.h"

#define SECOND INT64_C(1000000000)
#define EPOCH (INT64_C(1790000000) * SECOND)

struct setup {
	struct sync_sim sim;
	struct sim_vm vm[4];
	struct sim_events guest[4];
	struct trace *trace[5];  /* host, then guests */
	size_t traces;
	struct sync_result r;
	struct notes notes;
};

static void run_sync(struct setup *s, enum sync_method method)
{
	struct sync_options options = { .method = method };
	struct error err = ERROR_INIT;
	assert_int_equal(sync_run(s->trace, s->traces, &options, &s->r, &s->notes, &err), 0);
}

static void setup_release(struct setup *s)
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
	vm.named = sim_below(seed, 3) != 0;
	vm.clock.host0 = vm.from;
	vm.clock.guest0 = vm.from + (sim_below(seed, 20) - 10) * 31557600 * SECOND + sim_below(seed, SECOND);
	vm.clock.ppm = (sim_uniform(seed) - 0.5) * 600;
	return vm;
}

/* A clock is never wrong without a warning, and is found in most cases. */
static void test_containment_cases(void **state)
{
	(void)state;
	int cases = getenv("STEALSCOPE_LONG_TESTS") != NULL ? 300 : 8, n_known = 0, wrong = 0;
	for (int i = 0; i < cases; i++) {
		struct setup s = { 0 };
		uint64_t seed = 1000 + (uint64_t)i;
		int64_t length = SECOND / 4 + sim_below(&seed, 10 * SECOND);
		sim_begin(&s.sim, seed, EPOCH, EPOCH + length);
		s.vm[0] = any_vm(&seed, s.sim.begin, s.sim.end);
		sim_run_vm(&s.sim, &s.vm[0], &s.guest[0]);
		s.trace[0] = sim_host_trace(&s.sim);
		s.trace[1] = sim_guest_trace("Guest", &s.guest[0]);
		s.traces = 2;
		run_sync(&s, SYNC_CONTAINMENT);
		const struct sync_vm *vm = vm_named(&s, "Guest");
		bool sure = vm->method == SYNC_CONTAINMENT;
		const bool is_out = sure && sim_is_outside(&s.vm[0], &vm->clock);
		const bool is_known = sure && sim_is_known(&s.vm[0], &vm->clock);
		n_known += is_known;
		wrong += is_out;
		const int64_t first = sim_guest_time(&s.vm[0], s.vm[0].from);
		if (getenv("STEALSCOPE_TEST_VERBOSE") != NULL)
			print_message("%3d %s vcpus %u busy %.2f chatter %.2f preempted %.3f gap %lld latency %lld ppm %+.1f %.2f s, "
			              "%zu events: error %lld band %lld share %.4f %s\n", i,
			              is_out ? "WRONG" : is_known ? "ok" : sure ? "little" : "silent",
			              s.vm[0].vcpus, s.vm[0].busy, s.vm[0].chatter, s.vm[0].preempted, (long long)s.vm[0].gap_ns,
			              (long long)s.vm[0].latency_ns, s.vm[0].clock.ppm, (double)(s.vm[0].to - s.vm[0].from) / 1e9,
			              s.guest[0].len, (long long)(clock_map_at(&vm->clock, first) - s.vm[0].from),
			              (long long)clock_map_error_width(&vm->clock, first), vm->containment,
			              s.notes.len > 0 ? s.notes.item[0].text : "");
		setup_release(&s);
	}
	print_message("containment: %d cases, %d with a clock, %d of them wrong\n", cases, n_known, wrong);
	assert_int_equal(wrong, 0);
	assert_true(n_known * 4 >= cases * 3);
}

/* A guest that is nearly always in guest mode and has events only at the edges of its windows: the edges determine the
 * offset. */
static void test_edges(void **state)
{
	(void)state;
	struct setup s = { 0 };
	sim_begin(&s.sim, 2, EPOCH, EPOCH + 2 * SECOND);
	s.vm[0] = (struct sim_vm){ .pid = 1000, .process = "qemu:Guest", .vcpus = 1, .named = true, .busy = 1,
		.gap_ns = 20000, .latency_ns = 2000, .from = EPOCH + 3 * SECOND / 10, .to = EPOCH + 18 * SECOND / 10,
		.clock = { EPOCH, EPOCH - 77 * SECOND, 40 } };
	sim_run_vm(&s.sim, &s.vm[0], &s.guest[0]);
	s.trace[0] = sim_host_trace(&s.sim);
	s.trace[1] = sim_guest_trace("Guest", &s.guest[0]);
	s.traces = 2;
	run_sync(&s, SYNC_CONTAINMENT);
	const struct sync_vm *vm = vm_named(&s, "Guest");
	assert_int_equal(vm->method, SYNC_CONTAINMENT);
	assert_true(sim_within_bounds(&s.vm[0], &vm->clock));
	setup_release(&s);
}

/* A guest of another host gets no clock. */
static void test_foreign_guests(void **state)
{
	(void)state;
	int cases = getenv("STEALSCOPE_LONG_TESTS") != NULL ? 60 : 2;
	for (int i = 0; i < cases; i++) {
		struct setup s = { 0 };
		struct sync_sim elsewhere;
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
		run_sync(&s, SYNC_AUTO);
		const struct sync_vm *vm = vm_named(&s, "Guest");
		assert_int_equal(vm->method, SYNC_NONE);
		assert_int_equal(vm->host_pid, -1);
		assert_int_equal(s.notes.len, 1);
		const enum note_code code = s.notes.item[0].code;
		assert_true(code == NOTE_CLOCK_UNKNOWN || code == NOTE_CLOCK_UNKNOWN_ALIGNED);
		assert_int_not_equal(vm->reason, SYNC_REASON_NONE);
		free(unused.ev);
		sim_end(&elsewhere);
		setup_release(&s);
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

static void check_three(struct setup *s, enum sync_method n_checked, enum sync_method want)
{
	run_sync(s, n_checked);
	assert_int_equal(s->r.vms, 3);
	const struct sync_vm *alpha = vm_named(s, "Alpha"), *beta = vm_named(s, "Beta"), *three = vm_named(s, "Three");
	assert_int_equal(alpha->host_pid, 1900);
	assert_int_equal(beta->host_pid, 2000);
	assert_int_equal(three->host_pid, 1800);
	assert_null(three->guest);
	assert_int_equal(three->clock.segments, 0);
	assert_int_equal(three->vcpus, 2);
	assert_int_equal(alpha->method, want);
	assert_int_equal(beta->method, want);
	assert_true(sim_within_bounds(&s->vm[1], &alpha->clock));
	assert_true(sim_within_bounds(&s->vm[0], &beta->clock));
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(alpha->vcpu[i].host_tid, 1901 + (int)i);
		assert_int_equal(beta->vcpu[i].number, i);
	}
	setup_release(s);
}

/* Assigns three guests to three VMs by containment, and with beacons that use the same keys. */
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

/* Makes one VM with 1 CPU and a beacon, 20 s long. */
static void make_beacon(struct setup *s, uint64_t seed, double hz)
{
	memset(s, 0, sizeof *s);
	sim_begin(&s->sim, seed, EPOCH, EPOCH + 20 * SECOND);
	s->vm[0] = any_vm(&seed, s->sim.begin, s->sim.end);
	s->vm[0].vcpus = 1;
	s->vm[0].busy = 0.6;
	s->vm[0].chatter = 0.5;
	s->vm[0].beacon_hz = hz;
}

static void finish_beacon(struct setup *s)
{
	s->trace[0] = sim_host_trace(&s->sim);
	s->trace[1] = sim_guest_trace("Guest", &s->guest[0]);
	s->traces = 2;
}

static uint64_t count_rejected(const struct sync_vm *vm)
{
	uint64_t n = 0;
	for (size_t i = 0; i < vm->clock.segments; i++)
		n += vm->clock.segment[i].rejected;
	return n;
}

/* A quarter of the pairs has a receipt on the host that is too early: no clock satisfies them, but containment yields a
 * clock. It has no error bounds. */
static void test_contradicting_pairs(void **state)
{
	(void)state;
	struct setup s;
	uint64_t r = 1;
	make_beacon(&s, 1, 40);
	sim_run_vm(&s.sim, &s.vm[0], &s.guest[0]);
	for (size_t i = 0; i < s.sim.host.len; i++)
		if (s.sim.host.ev[i].kind == EV_SYNC && sim_below(&r, 4) == 0)
			s.sim.host.ev[i].ts -= sim_below(&r, 50000000);
	finish_beacon(&s);
	run_sync(&s, SYNC_AUTO);
	const struct sync_vm *vm = vm_named(&s, "Guest");
	assert_int_equal(vm->method, SYNC_CONTAINMENT);
	assert_true(vm->unverified);
	assert_int_equal(vm->clock.segment[0].quality, SYNC_APPROXIMATE);
	assert_int_equal(clock_map_error_width(&vm->clock, s.vm[0].clock.guest0), -1);
	setup_release(&s);
}

/* 5 % of the pairs are wrong by up to 50 ms. */
static void test_outliers(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct setup s;
		uint64_t r = seed;
		unsigned spoilt = 0;
		make_beacon(&s, seed, 40);
		sim_run_vm(&s.sim, &s.vm[0], &s.guest[0]);
		for (size_t i = 0; i < s.guest[0].len; i++) {
			struct event *ev = &s.guest[0].ev[i];
			if (ev->kind != EV_SYNC || sim_uniform(&r) > 0.05)
				continue;
			ev->ts += sim_below(&r, 100000000) - 50000000;
			spoilt++;
		}
		assert_true(spoilt > 5);
		finish_beacon(&s);
		run_sync(&s, SYNC_EVENTS);
		const struct sync_vm *vm = vm_named(&s, "Guest");
		assert_int_equal(vm->method, SYNC_EVENTS);
		assert_int_equal(vm->clock.segments, 1);
		assert_int_equal(vm->clock.segment[0].quality, SYNC_ACCURATE);
		assert_true(count_rejected(vm) > 0 && count_rejected(vm) <= spoilt);
		assert_true(sim_within_bounds(&s.vm[0], &vm->clock));
		assert_true(clock_map_error_width(&vm->clock, s.vm[0].clock.guest0) < 1000000);
		assert_true(s.notes.len > 0);
		setup_release(&s);
	}
}

/* Keys that occur twice, hypercalls that no guest sent, keys that only the guest has. */
static void test_odd_keys(void **state)
{
	(void)state;
	struct setup s;
	make_beacon(&s, 3, 40);
	sim_run_vm(&s.sim, &s.vm[0], &s.guest[0]);
	size_t n = s.guest[0].len, h = s.sim.host.len;
	uint64_t r = 5;
	for (size_t i = 0; i < n; i++) {
		struct event ev = s.guest[0].ev[i];
		if (ev.kind != EV_SYNC || sim_uniform(&r) > 0.1)
			continue;
		ev.ts += sim_below(&r, SECOND);
		*ARRAY_PUSH(s.guest[0].ev, s.guest[0].len, s.guest[0].cap) = ev;
		ev.sync.key = 500000000 + (int64_t)i;
		*ARRAY_PUSH(s.guest[0].ev, s.guest[0].len, s.guest[0].cap) = ev;
	}
	for (size_t i = 0; i < h; i += 50) {
		struct event ev = s.sim.host.ev[i];
		ev.ts += sim_below(&r, 1000);
		ev.kind = EV_SYNC;
		ev.sync.end = SYNC_B;
		ev.sync.uid = EVENT_ABSENT;
		ev.sync.key = (int64_t)(i % 3 == 0 ? i : 900000000 + i);
		*ARRAY_PUSH(s.sim.host.ev, s.sim.host.len, s.sim.host.cap) = ev;
	}
	finish_beacon(&s);
	run_sync(&s, SYNC_EVENTS);
	const struct sync_vm *vm = vm_named(&s, "Guest");
	assert_int_equal(vm->method, SYNC_EVENTS);
	assert_int_equal(vm->clock.segments, 1);
	assert_true(vm->unmatched > 10);
	assert_true(sim_within_bounds(&s.vm[0], &vm->clock));
	setup_release(&s);
}

/* Checks a VM that is stopped for 3 s: two segments, each right, by every method, and a note. */
static void check_pause(enum sync_method method, double hz)
{
	struct setup s;
	make_beacon(&s, 11, hz);
	s.vm[0].pause_at = EPOCH + 10 * SECOND;
	s.vm[0].pause_ns = 3 * SECOND;
	sim_run_vm(&s.sim, &s.vm[0], &s.guest[0]);
	finish_beacon(&s);
	run_sync(&s, method);
	const struct sync_vm *vm = vm_named(&s, "Guest");
	assert_int_equal(vm->method, method);
	assert_int_equal(vm->clock.segments, 2);
	for (int64_t host = s.vm[0].from; host < s.vm[0].to; host += SECOND / 4) {
		int64_t low, high, guest = sim_guest_time(&s.vm[0], host);
		if (host > s.vm[0].pause_at - SECOND / 5 && host < s.vm[0].pause_at + s.vm[0].pause_ns + SECOND / 5)
			continue;
		if (sim_is_unverified_end(&s.vm[0], &vm->clock, host))
			continue;
		assert_true(clock_map_bounds(&vm->clock, guest, &low, &high));
		assert_true(low - 2 <= host && host <= high + 2);
		assert_true(high - low < 1000000);
	}
	bool noted = false;
	for (size_t i = 0; i < s.notes.len; i++)
		noted = noted || s.notes.item[i].code == NOTE_CLOCK_CHANGE;
	assert_true(noted);
	setup_release(&s);
}

static void test_pause(void **state)
{
	(void)state;
	check_pause(SYNC_EVENTS, 30);
	check_pause(SYNC_AUTO, 30);
	check_pause(SYNC_CONTAINMENT, 0);
}

/* More pairs than memory allows: the clock is estimated from a sample, then all pairs are matched as a stream. */
static void test_many_pairs(void **state)
{
	(void)state;
	enum { N = 150000 };
	struct setup s = { 0 };
	uint64_t r = 1;
	sim_begin(&s.sim, 1, EPOCH, EPOCH + (N + 2) * SECOND / 1000);
	s.vm[0] = (struct sim_vm){ .from = s.sim.begin, .to = s.sim.end, .clock = { EPOCH, EPOCH - 864000 * SECOND, 50 } };
	for (int64_t i = 0; i < N; i++) {
		int64_t a = EPOCH + (i + 1) * SECOND / 1000, b = a + 5000 + sim_below(&r, 100000), c = b + 1000;
		int64_t d = c + 3000 + sim_below(&r, 50000);
		struct event ev[4];
		memset(ev, 0, sizeof ev);
		const int64_t ts[4] = { sim_guest_time(&s.vm[0], a), b, c, sim_guest_time(&s.vm[0], d) };
		for (int k = 0; k < 4; k++) {
			for (int j = 0; j < 6; j++)
				ev[k].arg[j] = EVENT_ABSENT;
			ev[k].ts = ts[k];
			ev[k].kind = EV_SYNC;
			ev[k].tid = ev[k].pid = k == 1 || k == 2 ? 77 : 5;
			ev[k].sync.end = k;
			ev[k].sync.key = 2 * i + (k >= 2);
			struct sim_events *to = k == 1 || k == 2 ? &s.sim.host : &s.guest[0];
			*ARRAY_PUSH(to->ev, to->len, to->cap) = ev[k];
		}
	}
	finish_beacon(&s);
	run_sync(&s, SYNC_AUTO);
	const struct sync_vm *vm = vm_named(&s, "Guest");
	assert_int_equal(vm->method, SYNC_EVENTS);
	assert_int_equal(vm->pairs, 2 * N);
	assert_int_equal(vm->unmatched, 0);
	assert_int_equal(vm->clock.segments, 1);
	assert_true(sim_within_bounds(&s.vm[0], &vm->clock));
	assert_true(clock_map_error_width(&vm->clock, s.vm[0].clock.guest0 + 75 * SECOND) < 9500);
	setup_release(&s);
}

/* A clock that swings around its line by more than its events show: the error bounds include it. */
static void test_wander(void **state)
{
	(void)state;
	struct setup s = { 0 };
	sim_begin(&s.sim, 12, EPOCH, EPOCH + 40 * SECOND);
	s.vm[0] = (struct sim_vm){ .pid = 1000, .process = "qemu:Guest", .vcpus = 1, .named = true, .busy = 0.5,
		.chatter = 0.5, .gap_ns = 9000, .latency_ns = 4000, .from = EPOCH + SECOND, .to = EPOCH + 39 * SECOND,
		.clock = { EPOCH + SECOND, EPOCH - 77 * SECOND, 20 }, .wander_ns = 2500, .wander_s = 20 };
	sim_run_vm(&s.sim, &s.vm[0], &s.guest[0]);
	finish_beacon(&s);
	run_sync(&s, SYNC_CONTAINMENT);
	const struct sync_vm *vm = vm_named(&s, "Guest");
	assert_int_equal(vm->method, SYNC_CONTAINMENT);
	for (int64_t host = s.vm[0].from; host < s.vm[0].to; host += SECOND / 10) {
		int64_t low, high;
		if (sim_is_unverified_end(&s.vm[0], &vm->clock, host))
			continue;
		assert_true(clock_map_bounds(&vm->clock, sim_guest_time(&s.vm[0], host), &low, &high));
		assert_true(low - 2 <= host && host <= high + 2);
		assert_true(high - low < 40000);
	}
	setup_release(&s);
}

/* A given clock, or none, is used unchanged. */
static void test_offset(void **state)
{
	(void)state;
	struct setup s;
	make_beacon(&s, 4, 20);
	s.vm[0].clock.ppm = 0;
	sim_run_vm(&s.sim, &s.vm[0], &s.guest[0]);
	finish_beacon(&s);
	struct sync_options options = { .method = SYNC_OFFSET, .offset = s.vm[0].clock.host0 - s.vm[0].clock.guest0 };
	struct error err = ERROR_INIT;
	assert_int_equal(sync_run(s.trace, 2, &options, &s.r, &s.notes, &err), 0);
	const struct sync_vm *vm = vm_named(&s, "Guest");
	assert_int_equal(vm->method, SYNC_OFFSET);
	assert_int_equal(vm->host_pid, 1000);
	assert_true(vm->containment == 1.0);
	assert_int_equal(clock_map_at(&vm->clock, s.vm[0].clock.guest0 + 5), s.vm[0].clock.host0 + 5);
	sync_result_release(&s.r);
	run_sync(&s, SYNC_NONE);
	vm = vm_named(&s, "Guest");
	assert_int_equal(vm->method, SYNC_NONE);
	assert_int_equal(clock_map_at(&vm->clock, 12345), 12345);
	setup_release(&s);
}

/* Extreme times: no crash, no clock. */
static void test_extreme_times(void **state)
{
	(void)state;
	static const int64_t absurd[] = { INT64_MIN + 1, INT64_MAX, -(INT64_C(1) << 61), INT64_C(1) << 62 };
	for (size_t i = 0; i < COUNT(absurd) * 2; i++) {
		struct setup s;
		make_beacon(&s, 4, 20);
		s.sim.end = s.sim.begin + 2 * SECOND;
		sim_run_vm(&s.sim, &s.vm[0], &s.guest[0]);
		struct sim_events *e = i % 2 == 0 ? &s.sim.host : &s.guest[0];
		e->ev[e->len / 2].ts = absurd[i / 2];
		if (i == 3)
			e->ev[0].ts = absurd[0];
		finish_beacon(&s);
		run_sync(&s, SYNC_AUTO);
		assert_int_equal(vm_named(&s, "Guest")->method, SYNC_NONE);
		assert_true(s.notes.len >= 1);
		setup_release(&s);
	}
}

/* No host, two hosts, a host without guests. */
static void test_roles(void **state)
{
	(void)state;
	struct setup s;
	struct error err = ERROR_INIT;
	struct sync_options options = { .method = SYNC_AUTO };
	make_beacon(&s, 4, 20);
	sim_run_vm(&s.sim, &s.vm[0], &s.guest[0]);
	finish_beacon(&s);
	assert_int_equal(sync_run(s.trace + 1, 1, &options, &s.r, &s.notes, &err), 0);
	assert_int_equal(s.r.vms, 1);
	assert_null(s.r.host);
	assert_int_equal(s.r.vm[0].method, SYNC_NONE);
	assert_int_equal(s.r.vm[0].clock.segments, 1);
	assert_int_equal(s.r.vm[0].clock.segment[0].quality, SYNC_ABSENT);
	assert_int_equal(s.r.vm[0].reason, SYNC_REASON_NO_HOST_TRACE);
	assert_int_equal(s.notes.len, 0);  /* alone, it has no clock to be synchronized with */
	sync_result_release(&s.r);
	assert_int_equal(sync_run(s.trace, 1, &options, &s.r, &s.notes, &err), 0);
	assert_int_equal(s.r.vms, 1);
	assert_string_equal(s.r.vm[0].name, "Guest");
	assert_null(s.r.vm[0].guest);
	sync_result_release(&s.r);
	struct trace *two[2] = { s.trace[0], s.trace[0] };
	assert_int_equal(sync_run(two, 2, &options, &s.r, &s.notes, &err), -1);
	assert_int_equal(err.status, STATUS_INPUT);
	setup_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_containment_cases), cmocka_unit_test(test_edges), cmocka_unit_test(test_foreign_guests),
		cmocka_unit_test(test_three_vms), cmocka_unit_test(test_outliers), cmocka_unit_test(test_contradicting_pairs),
		cmocka_unit_test(test_odd_keys), cmocka_unit_test(test_pause), cmocka_unit_test(test_many_pairs),
		cmocka_unit_test(test_wander), cmocka_unit_test(test_offset), cmocka_unit_test(test_extreme_times),
		cmocka_unit_test(test_roles),
	};
	return cmocka_run_group_tests_name("sync sim", tests, NULL, NULL);
}
