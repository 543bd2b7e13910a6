/* Synchronization by containment if other clocks fit as well, or nearly: periodic guests, and windows that look alike.
 * An estimated clock must be right. STEALSCOPE_LONG_TESTS=1 runs 300 cases. */
#include "test.h"

#include "base/mem.h"
#include "slice.h"
#include "sync/search/ambiguity_check.h"
#include "sync/sync.h"
#include "sync_world.h"

#define SECOND INT64_C(1000000000)
#define MS INT64_C(1000000)
#define US INT64_C(1000)
#define EPOCH (INT64_C(1790000000) * SECOND)

/* ---- periodic guests */

static struct sim_vm repeating_vm(uint64_t *seed, int64_t begin, int64_t finish)
{
	static const int64_t period[] = { MS, 4 * MS, 10 * MS, 10 * MS, 100 * MS, 100 * MS, SECOND, SECOND, 3 * SECOND };
	static const double stray[] = { 0, 0, 0.2, 1, 5, 30 };
	static const int64_t jitter[] = { 0, 300, 3000, 20000 };
	struct sim_vm vm = { .pid = 1000, .process = "qemu:Guest", .named = true };
	vm.vcpus = 1 + (unsigned)sim_below(seed, 2);
	vm.period_ns = period[sim_below(seed, COUNT(period))];
	int64_t most = vm.period_ns / MS < 200 ? vm.period_ns / MS : 200;
	/* one draw per statement: within an expression, the order of evaluation depends on the compiler */
	unsigned stays = (unsigned)sim_below(seed, most);
	vm.pattern = 1 + stays / (sim_below(seed, 2) ? 1 : 4);
	vm.busy = sim_below(seed, 3) == 0 ? 1 : sim_uniform(seed);
	vm.jitter_ns = jitter[sim_below(seed, COUNT(jitter))];
	vm.stray_hz = stray[sim_below(seed, COUNT(stray))];
	vm.chatter = sim_uniform(seed) < 0.5 ? 0 : sim_exp(seed, 2);
	vm.gap_ns = 1000 + (int64_t)sim_exp(seed, 12000);
	vm.latency_ns = 500 + (int64_t)sim_exp(seed, 8000);
	vm.from = begin + sim_below(seed, (finish - begin) / 2);
	vm.to = finish - sim_below(seed, (finish - begin) / 3);
	vm.clock.host0 = vm.from;
	int64_t years = sim_below(seed, 20) - 10;
	vm.clock.guest0 = vm.from + years * 31557600 * SECOND + sim_below(seed, SECOND);
	vm.clock.ppm = (sim_uniform(seed) - 0.5) * 600;
	return vm;
}

/* Removes the host's events at the ends: the host was traced for a part of the time only. */
static void cut_host(struct sync_sim *sim, uint64_t *seed)
{
	int64_t from = sim->begin + sim_below(seed, (sim->end - sim->begin) / 2);
	int64_t to = sim->end - sim_below(seed, (sim->end - sim->begin) / 3);
	size_t n = 0;
	for (size_t i = 0; i < sim->host.len; i++) {
		struct event ev = sim->host.ev[i];
		if (ev.kind != EV_PROCESS && (ev.ts < from || ev.ts > to))
			continue;
		ev.ts = ev.ts < from ? from : ev.ts;
		sim->host.ev[n++] = ev;
	}
	sim->host.len = n;
}

enum verdict { SILENT, RIGHT, WRONG };

static enum verdict run_periodic_case(int number)
{
	static const char *const name[] = { "silent", "right", "WRONG" };
	struct sync_world w = { .notes = { NULL, 0, 0 } };
	uint64_t seed = 9000 + (uint64_t)number;
	int64_t length = SECOND / 2 + sim_below(&seed, sim_below(&seed, 3) == 0 ? 40 * SECOND : 10 * SECOND);
	sim_begin(&w.sim, seed, EPOCH, EPOCH + length);
	w.vm = repeating_vm(&seed, w.sim.begin, w.sim.end);
	sim_run_vm(&w.sim, &w.vm, &w.guest);
	if (sim_below(&seed, 3) == 0)
		cut_host(&w.sim, &seed);
	world_sync(&w, SYNC_CONTAINMENT);
	const struct sync_vm *vm = &w.r.vm[0];
	bool sure = vm->method == SYNC_CONTAINMENT;
	enum verdict verdict = sure && sim_is_outside(&w.vm, &vm->clock) ? WRONG : sure &&
		sim_is_known(&w.vm, &vm->clock) ? RIGHT : SILENT;
	if (getenv("STEALSCOPE_TEST_VERBOSE") != NULL)
		print_message("%3d %s: %u vcpus, %u stays per %lld ms, jitter %lld ns, strays %.1f Hz, %zu events; %zu pieces, "
		              "contained %.4f, %s\n", number, name[verdict], w.vm.vcpus, w.vm.pattern,
		              (long long)(w.vm.period_ns / MS), (long long)w.vm.jitter_ns, w.vm.stray_hz, w.guest.len,
		              vm->clock.segments, vm->containment, w.notes.len > 0 ? w.notes.item[0].text : "");
	world_end(&w);
	return verdict;
}

static void test_repeating(void **state)
{
	(void)state;
	int cases = getenv("STEALSCOPE_LONG_TESTS") != NULL ? 300 : 8, count[3] = { 0, 0, 0 };
	for (int i = 0; i < cases; i++)
		if (!slice_brief() || slice_has((size_t)i, 8))
			count[run_periodic_case(i)]++;
	print_message("periodic guests: %d cases, %d with a clock, %d of them wrong\n", cases,
	              count[RIGHT] + count[WRONG], count[WRONG]);
	assert_int_equal(count[WRONG], 0);
	assert_true(slice_brief() || 8 * count[RIGHT] >= (cases > 8 ? 2 : 3) * cases);
}

/* ---- windows that look alike: each is followed by another one without guest events */

static void add_event(struct sim_events *e, int64_t ts, enum event_kind kind, int tid)
{
	struct event *ev = ARRAY_PUSH(e->ev, e->len, e->cap);
	*ev = (struct event){ .ts = ts, .kind = (uint16_t)kind, .tid = tid, .pid = tid < 0 ? -1 : 1000 };
	for (int i = 0; i < 6; i++)
		ev->arg[i] = EVENT_ABSENT;
}

static void make_lookalikes(struct sync_world *w, int64_t from, int64_t pause_ns)
{
	uint64_t seed = 5;
	memset(w, 0, sizeof *w);
	sim_begin(&w->sim, 5, EPOCH, EPOCH + 20 * SECOND);
	w->vm = (struct sim_vm){ .from = w->sim.begin, .to = w->sim.end, .clock = { EPOCH, EPOCH - 77 * SECOND, 40 },
		.pause_at = EPOCH + 9 * SECOND, .pause_ns = pause_ns };
	for (int64_t t = EPOCH; t < w->sim.end; t += 5 * MS + (int64_t)sim_exp(&seed, 20e6)) {
		if (t > w->vm.pause_at - MS && t < w->vm.pause_at + pause_ns)
			continue;
		for (int k = 0; k < (t < EPOCH + from ? 1 : 2); k++) {
			add_event(&w->sim.host, t + 60 * US * k, EV_VCPU_ENTRY, 1001);
			add_event(&w->sim.host, t + 60 * US * k + 50 * US, EV_VCPU_EXIT, 1001);
		}
		add_event(&w->guest, sim_guest_time(&w->vm, t + 8 * US + sim_below(&seed, 5 * US)), EV_OTHER, -1);
		add_event(&w->guest, sim_guest_time(&w->vm, t + 38 * US + sim_below(&seed, 5 * US)), EV_OTHER, -1);
	}
}

static bool has_note(const struct sync_world *w, enum note_code code)
{
	bool has = false;
	for (size_t i = 0; i < w->notes.len; i++)
		has = has || w->notes.item[i].code == code;
	return has;
}

/* Checks that the error bounds include the clock 60 us later, which fits as well, and that the quality is APPROXIMATE. */
static void check_lookalikes(int64_t pause_ns, size_t pieces)
{
	struct sync_world w;
	make_lookalikes(&w, 0, pause_ns);
	world_sync(&w, SYNC_CONTAINMENT);
	const struct sync_vm *vm = &w.r.vm[0];
	assert_int_equal(vm->method, SYNC_CONTAINMENT);
	assert_int_equal(vm->clock.segments, pieces);
	for (size_t i = 0; i < pieces; i++)
		assert_int_equal(vm->clock.segment[i].quality, SYNC_APPROXIMATE);
	for (int64_t host = w.sim.begin; host < w.sim.end; host += SECOND / 2) {
		int64_t low, high, guest = sim_guest_time(&w.vm, host);
		if (host > w.vm.pause_at - SECOND / 4 && host < w.vm.pause_at + pause_ns + SECOND / 4)
			continue;
		if (sim_is_unverified_end(&w.vm, &vm->clock, host))
			continue;
		assert_true(clock_map_bounds(&vm->clock, guest, &low, &high));
		assert_true(low - 2 <= host && host <= high + 2);
		assert_in_range(high - low, 60 * US, 500 * US);
	}
	assert_true(has_note(&w, NOTE_CLOCK_AMBIGUOUS));
	world_end(&w);
}

static void test_lookalikes(void **state)
{
	(void)state;
	check_lookalikes(0, 1);
	check_lookalikes(3 * SECOND, 2);
}

/* ---- a guest in guest mode for a long time: no evidence for its clock during that time, but before and after */

static void make_long_window(struct sync_world *w, int64_t length, int64_t from, int64_t to)
{
	uint64_t seed = 8;
	memset(w, 0, sizeof *w);
	sim_begin(&w->sim, 8, EPOCH, EPOCH + length);
	w->vm = (struct sim_vm){ .from = EPOCH, .to = EPOCH + length, .clock = { EPOCH, EPOCH - 55 * SECOND, -30 } };
	for (int64_t t = EPOCH + MS; t < EPOCH + length - 2 * SECOND;) {
		const bool is_long = t >= EPOCH + from && t < EPOCH + to;
		const int64_t stay = is_long ? EPOCH + to - t : 50 * US + (int64_t)sim_exp(&seed, 3e5);
		add_event(&w->sim.host, t, EV_VCPU_ENTRY, 1001);
		add_event(&w->sim.host, t + stay, EV_VCPU_EXIT, 1001);
		add_event(&w->guest, sim_guest_time(&w->vm, t + 7 * US), EV_OTHER, -1);
		for (int64_t at = t + 3 * MS; is_long && at < t + stay - 5 * MS; at += 3 * MS + (int64_t)sim_exp(&seed, 3e6))
			add_event(&w->guest, sim_guest_time(&w->vm, at), EV_OTHER, -1);
		add_event(&w->guest, sim_guest_time(&w->vm, t + stay - 7 * US), EV_OTHER, -1);
		t += stay + 5 * MS + (int64_t)sim_exp(&seed, 20e6);
	}
}

/* The search must not start in the middle of the trace. */
static void test_long_window(void **state)
{
	static const int64_t is_long[][3] = { { 60, 20, 45 }, { 300, 60, 170 } };
	(void)state;
	for (size_t i = 0; i < (slice_brief() ? 1 : COUNT(is_long)); i++) {
		struct sync_world w;
		make_long_window(&w, is_long[i][0] * SECOND, is_long[i][1] * SECOND, is_long[i][2] * SECOND);
		world_sync(&w, SYNC_CONTAINMENT);
		assert_int_equal(w.r.vm[0].method, SYNC_CONTAINMENT);
		assert_true(sim_within_bounds(&w.vm, &w.r.vm[0].clock));
		const int64_t last = w.guest.ev[w.guest.len - 1].ts;  /* on its own it may be in guest mode by chance */
		assert_int_equal(clock_map_error_width(&w.r.vm[0].clock, last), -1);
		assert_true(clock_map_error_width(&w.r.vm[0].clock, last - SECOND) > 0);
		world_end(&w);
	}
}

/* ---- clocks that may have stepped: the events of one third of the trace fit other clocks as well */

/* In the last third windows look alike: the bounds include the possible clocks there, and only there. */
static void test_late_lookalikes(void **state)
{
	(void)state;
	struct sync_world w;
	make_lookalikes(&w, 12 * SECOND, 0);
	world_sync(&w, SYNC_CONTAINMENT);
	const struct sync_vm *vm = &w.r.vm[0];
	assert_int_equal(vm->method, SYNC_CONTAINMENT);
	assert_int_equal(vm->clock.segments, 1);
	assert_int_equal(vm->clock.segment[0].quality, SYNC_APPROXIMATE);
	assert_true(sim_within_bounds(&w.vm, &vm->clock));
	assert_in_range(clock_map_error_width(&vm->clock, sim_guest_time(&w.vm, EPOCH + 3 * SECOND)), 1, 40 * US);
	for (int64_t host = EPOCH + 13 * SECOND; host < EPOCH + 20 * SECOND; host += SECOND) {
		int64_t low, high;
		if (sim_is_unverified_end(&w.vm, &vm->clock, host))
			continue;
		assert_true(clock_map_bounds(&vm->clock, sim_guest_time(&w.vm, host), &low, &high));
		assert_true(low <= host - 50 * US || high >= host + 50 * US);
	}
	world_end(&w);
}

/* In the last third the guest never leaves guest mode. */
static void test_long_window_at_end(void **state)
{
	(void)state;
	struct sync_world w;
	make_long_window(&w, 60 * SECOND, 38 * SECOND, 58 * SECOND);
	world_sync(&w, SYNC_CONTAINMENT);
	const struct sync_vm *vm = &w.r.vm[0];
	assert_int_equal(vm->method, SYNC_CONTAINMENT);
	assert_int_equal(vm->clock.segment[0].quality, SYNC_APPROXIMATE);
	assert_in_range(clock_map_error_width(&vm->clock, sim_guest_time(&w.vm, EPOCH + SECOND)), 1, 40 * US);
	assert_int_equal(clock_map_error_width(&vm->clock, sim_guest_time(&w.vm, EPOCH + 45 * SECOND)), -1);
	assert_true(has_note(&w, NOTE_STEP_NOT_EXCLUDED_AFTER));
	world_end(&w);
}

/* ---- an offset that no correlation finds, because others correlate better */

#define ERAS 64
#define ERA (1200 * MS)
#define BURSTS 120

/* Makes a guest with long windows and events in the middle of them. At another host time, short windows match most of
 * these events, and at many other times windows match about as many. */
static void make_false_peaks(struct sync_world *w)
{
	uint64_t seed = 11;
	int64_t burst[BURSTS], at = 10 * MS;
	memset(w, 0, sizeof *w);
	sim_begin(&w->sim, 11, EPOCH, EPOCH + (ERAS + 1) * ERA);
	w->vm = (struct sim_vm){ .from = EPOCH + ERAS / 2 * ERA, .to = EPOCH + (ERAS / 2 + 1) * ERA,
		.clock = { EPOCH, EPOCH - 77 * SECOND, 40 } };
	for (int k = 0; k < BURSTS; k++) {
		burst[k] = at;
		at += 6 * MS + sim_below(&seed, 5 * MS);
		add_event(&w->guest, sim_guest_time(&w->vm, w->vm.from + burst[k]), EV_OTHER, -1);
		add_event(&w->guest, sim_guest_time(&w->vm, w->vm.from + burst[k] + 20 * US), EV_OTHER, -1);
	}
	for (int era = 0; era < ERAS; era++)
		for (int k = 0; k < BURSTS; k++) {
			const int64_t t = EPOCH + era * ERA + burst[k];
			const bool real = era == ERAS / 2, missed = era != 1 && sim_below(&seed, 8) == 0;
			const int64_t before = real ? MS + sim_below(&seed, MS) : missed ? 500 * US : 10 * US;
			const int64_t after = real ? MS + sim_below(&seed, MS) : missed ? -400 * US : 30 * US;
			add_event(&w->sim.host, t - before, EV_VCPU_ENTRY, 1001);
			add_event(&w->sim.host, t + after, EV_VCPU_EXIT, 1001);
			const int64_t between = t + MS + sim_below(&seed, 3 * MS);
			if (real)
				continue;
			add_event(&w->sim.host, between, EV_VCPU_ENTRY, 1001);
			add_event(&w->sim.host, between + MS, EV_VCPU_EXIT, 1001);
		}
}

static void test_false_peaks(void **state)
{
	(void)state;
	struct sync_world w;
	make_false_peaks(&w);
	world_sync(&w, SYNC_CONTAINMENT);
	assert_int_equal(w.r.vm[0].method, SYNC_NONE);
	assert_true(has_note(&w, NOTE_CLOCK_UNKNOWN_ALIGNED));  /* the traces do not overlap */
	assert_int_equal(w.r.vm[0].reason, SYNC_REASON_SEVERAL_OFFSETS);
	world_end(&w);
}

/* ---- elimination: finds all other offsets at which a clock contains as many events, and no others */

/* Finds the alternatives to the true clock of a guest that runs 60 times in each 3 s, always at the same times, and at
 * random times in between. It was traced for 12 of the host's 30 s. */
static void find_alternatives(double stray_hz, struct alternatives *out)
{
	struct sync_world w = { .notes = { NULL, 0, 0 } };
	struct error err = ERROR_INIT;
	struct host_timeline host = { 0 };
	struct vm_list vms = { 0 };
	struct activity activity = { 0 };
	sim_begin(&w.sim, 3, EPOCH, EPOCH + 30 * SECOND);
	w.vm = (struct sim_vm){ .pid = 1000, .process = "qemu:Guest", .named = true, .vcpus = 1, .busy = 0.5,
		.period_ns = 3 * SECOND, .pattern = 60, .gap_ns = 5000, .latency_ns = 2000, .stray_hz = stray_hz,
		.from = EPOCH + 9 * SECOND, .to = EPOCH + 21 * SECOND, .clock = { EPOCH, EPOCH - 500 * SECOND, 70 } };
	sim_run_vm(&w.sim, &w.vm, &w.guest);
	w.trace[0] = sim_host_trace(&w.sim);
	w.trace[1] = sim_guest_trace("Guest", &w.guest);
	assert_int_equal(host_timeline_load(&host, w.trace[0], NULL, 1, NULL, &err), 0);
	assert_int_equal(activity_load(&activity, w.trace[1], 1000, NULL, &err), 0);
	vm_list_make(&host, &vms);
	assert_int_equal(vms.len, 1);

	const struct evidence evidence = { &host, &vms.vm[0], &activity };
	const struct offset_estimate truth = { .at_guest = activity.begin, .at_host = sim_host_time(&w.vm, activity.begin),
		.ppm = 70, .tolerance = 3000 };
	struct clock_candidate h;
	clock_candidate_init(&h, &truth, (struct ns_interval){ activity.begin, activity.end });
	clock_candidate_test(&h, &evidence);
	assert_true(clock_candidate_inside_share(&h) > 0.999 && h.nats > EVIDENCE_MIN_NATS);
	alternatives_find(&evidence, &h, out);

	clock_candidate_release(&h);
	activity_release(&activity);
	vm_list_release(&vms);
	host_timeline_release(&host);
	world_end(&w);
}

static void test_elimination(void **state)
{
	(void)state;
	struct alternatives r;
	bool seen[2] = { false, false };
	find_alternatives(0, &r);
	assert_true(r.n >= 2);
	for (size_t i = 0; i < r.n; i++) {
		int64_t turns = (r.alternative[i].shift + (r.alternative[i].shift < 0 ? -3 : 3) * SECOND / 2) / (3 * SECOND);
		assert_int_not_equal(turns, 0);
		assert_true(llabs(r.alternative[i].shift - turns * 3 * SECOND) <= r.alternative[i].tolerance);
		seen[0] = seen[0] || turns == -1;
		seen[1] = seen[1] || turns == 1;
	}
	assert_true(seen[0] && seen[1]);
	assert_true(r.complete);

	find_alternatives(4, &r);
	assert_int_equal(r.n, 0);
	assert_true(r.complete);
}

/* ---- precheck: does any clock fit? */

struct busy { struct sync_world w; struct host_timeline host; struct vm_list vms; struct activity activity; };

/* Makes a VM that wants to run half of the time and often waits for others; the host was traced for a part of the time. */
static void begin_busy(struct busy *b, uint64_t seed)
{
	struct error err = ERROR_INIT;
	*b = (struct busy){ .w.notes = { NULL, 0, 0 } };
	struct sync_world *w = &b->w;
	sim_begin(&w->sim, seed, EPOCH, EPOCH + 10 * SECOND);
	w->vm = (struct sim_vm){ .pid = 1000, .process = "qemu:Guest", .named = true, .vcpus = 1 + (unsigned)seed % 2,
		.busy = 0.5, .chatter = 1, .preempted = 0.3, .gap_ns = 2000, .latency_ns = 1000, .from = EPOCH,
		.to = EPOCH + 10 * SECOND, .clock = { EPOCH, EPOCH - 500 * SECOND, (double)seed * 75 - 300 } };
	sim_run_vm(&w->sim, &w->vm, &w->guest);
	cut_host(&w->sim, &seed);
	w->trace[0] = sim_host_trace(&w->sim);
	w->trace[1] = sim_guest_trace("Guest", &w->guest);
	assert_int_equal(host_timeline_load(&b->host, w->trace[0], NULL, 1, NULL, &err), 0);
	assert_int_equal(activity_load(&b->activity, w->trace[1], 1000, NULL, &err), 0);
	vm_list_make(&b->host, &b->vms);
	assert_int_equal(b->vms.len, 1);
}

static void end_busy(struct busy *b)
{
	activity_release(&b->activity);
	vm_list_release(&b->vms);
	host_timeline_release(&b->host);
	world_end(&b->w);
}

/* The precheck never rejects the right guest if the middle of the interval is within the host's trace; it nearly
 * always rejects a guest of another host. */
static void test_precheck(void **state)
{
	unsigned n_rejected = 0, n_checked = 0;
	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct busy own, other;
		begin_busy(&own, seed);
		begin_busy(&other, seed + 100);
		const struct evidence right = { &own.host, &own.vms.vm[0], &own.activity };
		const struct evidence wrong = { &own.host, &own.vms.vm[0], &other.activity };
		for (int64_t at = SECOND; at < 9 * SECOND; at += SECOND / 20) {
			const int64_t middle = own.activity.begin + at, host = sim_host_time(&own.w.vm, middle);
			const struct ns_interval interval = { middle - SECOND, middle + SECOND };
			if (host >= own.host.begin && host <= own.host.end)
				assert_false(offset_precheck_rejects(&right, interval));
			n_rejected += offset_precheck_rejects(&wrong, (struct ns_interval){ other.activity.begin + at - SECOND,
			                                      other.activity.begin + at + SECOND });
			n_checked++;
		}
		end_busy(&own);
		end_busy(&other);
	}
	if (10 * n_rejected < 9 * n_checked)
		fail_msg("of %u segments of other hosts' guests only %u were is_rejected", n_checked, n_rejected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_repeating), cmocka_unit_test(test_lookalikes), cmocka_unit_test(test_long_window),
		cmocka_unit_test(test_late_lookalikes), cmocka_unit_test(test_long_window_at_end),
			cmocka_unit_test(test_false_peaks),
		cmocka_unit_test(test_elimination), cmocka_unit_test(test_precheck),
	};
	return cmocka_run_group_tests_name("sync ambiguity", tests, NULL, NULL);
}
