/* Synchronization by containment on traces of many minutes: any offset; clocks that run evenly, wander, change their
 * rate or stop. STEALSCOPE_LONG_TESTS=1 runs 100 cases instead of 4. Also fits pairs of such clocks. */
#include "test.h"

#include <math.h>

#include "base/mem.h"
#include "slice.h"
#include "sync/fit/piecewise_fit.h"
#include "sync/sync.h"
#include "sync_world.h"

#define SECOND INT64_C(1000000000)
#define EPOCH (INT64_C(1790000000) * SECOND)

enum kind { EVEN, WANDERS, BENDS, PAUSES, KINDS };
static const char *const kind_name[] = { "even", "wanders", "bends", "pauses" };

/* Draws a guest that sleeps most of the time, traced for a part of the host's time. */
static struct sim_vm any_vm(uint64_t *seed, int64_t begin, int64_t finish, enum kind kind)
{
	struct sim_vm vm = { .pid = 1000, .process = "qemu:Guest", .named = true, .chatter = 0.3, .preempted = 0.02 };
	vm.vcpus = 1 + (unsigned)sim_below(seed, 2);
	vm.busy = 0.4 * sim_uniform(seed);
	vm.gap_ns = 1000 + (int64_t)sim_exp(seed, 12000);
	vm.latency_ns = 500 + (int64_t)sim_exp(seed, 8000);
	vm.from = begin + sim_below(seed, (finish - begin) * 4 / 5);
	vm.to = vm.from + 10 * SECOND + sim_below(seed, finish - vm.from - 10 * SECOND);
	vm.clock.host0 = vm.from;
	vm.clock.guest0 = vm.from + (sim_below(seed, 20) - 10) * 31557600 * SECOND + sim_below(seed, SECOND);
	vm.clock.ppm = (sim_uniform(seed) - 0.5) * 600;
	int64_t when = vm.from + (vm.to - vm.from) / 100 * (20 + sim_below(seed, 60));
	if (kind == WANDERS) {
		vm.wander_s = 100 + 2000 * sim_uniform(seed);
		vm.wander_ns = vm.wander_s * 48 * sim_uniform(seed);  /* a rate that swings by at most 0.3 ppm */
	} else if (kind == BENDS) {
		vm.bend_at = when;
		vm.bend_ppm = (sim_uniform(seed) - 0.5) * 100;
	} else if (kind == PAUSES) {
		vm.pause_at = when;
		vm.pause_ns = SECOND / 1000 + (int64_t)sim_exp(seed, (double)(vm.to - when) / 5);
	}
	return vm;
}

static bool is_called_accurate(const struct clock_map *clock)
{
	bool is = false;
	for (size_t i = 0; i < clock->segments; i++)
		is = is || clock->segment[i].quality == SYNC_ACCURATE;
	return is;
}

/* Returns true if the true clock is outside the error bounds anywhere except around a pause. A clock that is reported as
 * wrong has no bounds. */
static bool is_out(const struct sim_vm *vm, const struct clock_map *clock)
{
	for (int64_t host = vm->from; host < vm->to; host += (vm->to - vm->from) / 1000) {
		const int64_t guest = sim_guest_time(vm, host);
		int64_t low, high;
		if (vm->pause_at != 0 && host > vm->pause_at - SECOND / 5 && host < vm->pause_at + vm->pause_ns + SECOND / 5)
			continue;
		if (!clock_map_has_bounds(clock, guest))
			continue;
		if (clock_map_bounds(clock, guest, &low, &high) ? host < low - 2 || host > high + 2 : is_called_accurate(clock))
			return true;
	}
	return false;
}

static void solve_case(struct sync_world *w, const struct sim_vm *vm, enum sync_method method)
{
	w->notes = (struct notes){ NULL, 0, 0 };
	sim_run_vm(&w->sim, vm, &w->guest);
	world_sync(w, method);
}

static void test_long(void **state)
{
	(void)state;
	bool all = getenv("STEALSCOPE_LONG_TESTS") != NULL;
	int cases = all ? 100 : KINDS, run = 0, n_known = 0, wrong = 0;
	for (int i = 0; i < cases; i++) {
		if (slice_brief() && !slice_has((size_t)i, KINDS))
			continue;
		run++;
		struct sync_world w;
		uint64_t seed = 77000 + (uint64_t)i;
		const int64_t length = 450 * SECOND + sim_below(&seed, (all ? 3000 : 300) * SECOND);
		sim_begin(&w.sim, seed, EPOCH, EPOCH + length);
		struct sim_vm vm = any_vm(&seed, w.sim.begin, w.sim.end, (enum kind)(i % KINDS));
		solve_case(&w, &vm, SYNC_CONTAINMENT);
		const struct sync_vm *got = &w.r.vm[0];
		const bool sure = got->method == SYNC_CONTAINMENT, out = sure && is_out(&vm, &got->clock);
		const bool known = sure && sim_is_known(&vm, &got->clock);
		n_known += known;
		wrong += out;
		if (getenv("STEALSCOPE_TEST_VERBOSE") != NULL)
			print_message("%3d %s: %s, %.0f s in %.0f s, %zu events; %zu pieces, band %lld ns, contained %.4f %s\n", i,
			              kind_name[i % KINDS], out ? "WRONG" : known ? "right" : "silent", (double)(vm.to - vm.from) / 1e9,
			              (double)(w.sim.end - w.sim.begin) / 1e9, w.guest.len, got->clock.segments,
			              (long long)clock_map_error_width(&got->clock,
			                                               sim_guest_time(&vm, vm.from + (vm.to - vm.from) / 2)),
			              got->containment, w.notes.len > 0 ? w.notes.item[0].text : "");
		world_end(&w);
	}
	print_message("long traces: %d cases, %d with a clock, %d of them wrong\n", run, n_known, wrong);
	assert_int_equal(wrong, 0);
	assert_true(n_known * 10 >= run * 9);
}

/* Returns the greatest distance of the true clock from the error bounds, ns, where they exist; they must exist in the
 * middle. */
static int64_t worst_of(const struct sim_vm *vm, const struct clock_map *clock)
{
	int64_t worst = 0;
	assert_true(clock_map_has_bounds(clock, sim_guest_time(vm, vm->from + (vm->to - vm->from) / 2)));
	for (int i = 0; i <= 1000; i++) {
		const int64_t host = vm->from + (vm->to - vm->from) / 1000 * i;
		int64_t low, high;
		if (!clock_map_bounds(clock, sim_guest_time(vm, host), &low, &high))
			continue;
		worst = low - host > worst ? low - host : host - high > worst ? host - high : worst;
	}
	return worst;
}

#define OFF_NS 10000

/* The rate changes just before the end of the trace. Without a later pair this cannot be detected; one later pair is
 * enough if no further pair marks it as an outlier. */
static void test_late_bends(void **state)
{
	(void)state;
	const int cases = 200;
	int wrong = 0;
	for (int i = 0; i < cases; i++) {
		struct sync_world w;
		uint64_t seed = 88000 + (uint64_t)i;
		sim_begin(&w.sim, seed, EPOCH, EPOCH + 60 * SECOND);
		struct sim_vm vm = any_vm(&seed, w.sim.begin, w.sim.end, EVEN);
		vm.beacon_hz = 3;
		vm.bend_at = vm.from + (int64_t)((double)(vm.to - vm.from) * (0.8 + 0.2 * sim_uniform(&seed)));
		vm.bend_ppm = (sim_uniform(&seed) - 0.5) * 100;
		solve_case(&w, &vm, SYNC_EVENTS);
		assert_int_equal(w.r.vm[0].method, SYNC_EVENTS);
		wrong += worst_of(&vm, &w.r.vm[0].clock) > OFF_NS;
		world_end(&w);
	}
	print_message("clocks that bend late: %d of %d out\n", wrong, cases);
	assert_int_equal(wrong, 0);
}

/* ---- by pairs alone */

/* Returns the host time of a guest that warms up: its rate rises evenly by 12 ppm from 150 s to 400 s. */
static int64_t warming_host_time(int64_t x)
{
	const double s = (double)x / 1e9, rising = fmin(fmax(s - 150, 0), 250), after = fmax(s - 400, 0);
	return x + (int64_t)(12e3 * (rising * rising / 500 + after));
}

/* A curve is fitted by three lines with bounds that include it, each up to the start of the next line. */
static void test_warming(void **state)
{
	(void)state;
	const int64_t length = 550 * SECOND;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct pair_list l = { 0 };
		uint64_t r = seed;
		int64_t low, high;
		double width = 0;
		for (int64_t x = 0; x < length; x += (int64_t)sim_exp(&r, 1e8)) {
			const bool up = sim_below(&r, 2) != 0;
			const int64_t y = warming_host_time(x), delay = 500 + (int64_t)sim_exp(&r, 90000);
			*ARRAY_PUSH(l.pair, l.len, l.cap) =
				(struct pair){ x, up ? y + delay : y - delay, up ? HULL_UPPER : HULL_LOWER, 0, 0, PAIR_GOOD };
		}
		struct clock_map map;
		fit_pairs(&l, 0, &map);
		fit_widen_bounds(&l, &map);
		for (int64_t x = 0; x < length; x += SECOND) {
			const int64_t y = warming_host_time(x);
			assert_true(clock_map_bounds(&map, x, &low, &high));
			assert_true(low - 2 <= y && y <= high + 2);
			width += (double)(high - low) / 550;
		}
		assert_int_equal(map.segments, 3);
		assert_true(width < 90000);
		clock_map_release(&map);
		pairs_release(&l);
	}
}

/* A clock with several gradual changes of the rate; or one that swings and steps once. */
struct ramp { double from, length, ppm; };
struct bending { struct ramp ramp[3]; size_t n; double ppm, swing, period, jump_at, jump; };

static int64_t changing_host_time(const struct bending *c, int64_t x)
{
	const double s = (double)x / 1e9;
	double off = c->ppm * s * 1e3;
	for (size_t i = 0; i < c->n; i++) {
		const struct ramp *r = &c->ramp[i];
		const double rising = fmin(fmax(s - r->from, 0), r->length), after = fmax(s - r->from - r->length, 0);
		off += r->ppm * 1e3 * (rising * rising / 2 / r->length + after);
	}
	if (c->jump > 0)
		off += c->swing * sin(s * 2 * M_PI / c->period) + (s > c->jump_at ? c->jump : 0);
	return x + (int64_t)off;
}

/* Draws changes by up to 40 ppm, within a second or minutes; none at the very end, where no pair could show it. */
static struct bending any_bending(uint64_t *seed, int64_t length)
{
	struct bending c = { .n = 1 + (size_t)sim_below(seed, 3), .ppm = (sim_uniform(seed) - 0.5) * 200 };
	for (size_t i = 0; i < c.n; i++)
		c.ramp[i] = (struct ramp){ sim_uniform(seed) * 0.8 * (double)length / 1e9, 1 + sim_uniform(seed) * 300,
			(sim_uniform(seed) - 0.5) * 80 };
	return c;
}

/* Draws a swing of up to 20 us, and one step of 0.1 to 1.1 ms. */
static struct bending any_swinging(uint64_t *seed, int64_t length)
{
	const double all = (double)length / 1e9;
	return (struct bending){ .ppm = (sim_uniform(seed) - 0.5) * 200, .swing = sim_uniform(seed) * 20000,
		.period = 50 + sim_uniform(seed) * all, .jump_at = (0.2 + 0.6 * sim_uniform(seed)) * all,
		.jump = 1e6 * (0.1 + sim_uniform(seed)) };
}

/* Returns true if the clock is within the bounds except at steps. Adds the mean width of the bounds to the sum, in units
 * of the delay. */
static bool bounds_hold(const struct bending *c, uint64_t *r, int64_t length, double *wide)
{
	struct pair_list l = { 0 };
	struct clock_map map;
	bool right = true;
	const double gap = 1e7 * pow(10, 1.7 * sim_uniform(r)), delay = 2000 * pow(10, 1.7 * sim_uniform(r));
	for (int64_t x = 0; x < length; x += 1 + (int64_t)sim_exp(r, gap)) {
		const bool up = sim_below(r, 2) != 0;
		const int64_t y = changing_host_time(c, x), by = 500 + (int64_t)sim_exp(r, delay);
		*ARRAY_PUSH(l.pair, l.len, l.cap) = (struct pair){ x, up ? y + by : y - by, up ? HULL_UPPER : HULL_LOWER, 0, 0,
			PAIR_GOOD };
	}
	fit_pairs(&l, 0, &map);
	fit_widen_bounds(&l, &map);
	for (int i = 0; i < 2000; i++) {
		const int64_t x = length / 2000 * i, y = changing_host_time(c, x);
		int64_t low, high;
		if (c->jump > 0 && fabs((double)x / 1e9 - c->jump_at) < (double)length / 50e9)
			continue;
		assert_true(clock_map_bounds(&map, x, &low, &high));
		right = right && low - 2 <= y && y <= high + 2;
		*wide += (double)(high - low) / delay / 2000;
	}
	clock_map_release(&map);
	pairs_release(&l);
	return right;
}

/* For any change of the rate and any number of pairs, the bounds include the clock and are a few delays wide. 1 of 100
 * clocks may be outside, usually because the rate began to change at the end of the trace. */
static void test_bending(void **state)
{
	(void)state;
	const unsigned cases = getenv("STEALSCOPE_LONG_TESTS") != NULL ? 1000 : 60;
	unsigned wrong = 0;
	double wide = 0;
	for (unsigned seed = 1; seed <= cases; seed++) {
		uint64_t r = seed;
		const int64_t length = 60 * SECOND + sim_below(&r, 1000 * SECOND);
		const struct bending c = any_bending(&r, length);
		wrong += !bounds_hold(&c, &r, length, &wide);
	}
	print_message("clocks that bend: %u of %u out, corridors of %.2f delays\n", wrong, cases, wide / cases);
	assert_true(wrong * 50 <= cases);
	assert_true(wide / cases < 3.5);
}

/* A swing has more changes of the rate than lines: bounds must be widened beyond the segment with the change, and across
 * an apparent step; otherwise these 600 clocks are outside. */
static void test_swinging(void **state)
{
	static const uint64_t seeds[] = { 18, 37, 349, 416 };
	(void)state;
	for (size_t i = 0; i < COUNT(seeds); i++) {
		uint64_t r = seeds[i];
		double wide = 0;
		const int64_t length = 60 * SECOND + sim_below(&r, 1000 * SECOND);
		const struct bending c = any_swinging(&r, length);
		assert_true(bounds_hold(&c, &r, length, &wide));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_long), cmocka_unit_test(test_late_bends),
		cmocka_unit_test(test_warming),
		cmocka_unit_test(test_bending), cmocka_unit_test(test_swinging) };
	return cmocka_run_group_tests_name("sync long", tests, NULL, NULL);
}
