/* Stages of the fit, one by one, on hand-made events. */
#include "test.h"

#include <math.h>

#include "base/mem.h"
#include "sync/search/fft.h"
#include "sync/fit/piecewise_fit.h"
#include "sync/fit/stream_matching.h"
#include "sync/fit/tsc.h"
#include "sync_sim.h"

/* ---- the Fourier transform against its definition */

static void test_fft(void **state)
{
	(void)state;
	enum { N = 64 };
	struct fft f;
	struct fft_value v[N], want[N];
	uint64_t seed = 3;
	fft_init(&f, N);
	for (int i = 0; i < N; i++)
		v[i] = (struct fft_value){ (float)sim_uniform(&seed) - 0.5f, (float)sim_uniform(&seed) };
	for (int k = 0; k < N; k++) {
		want[k] = (struct fft_value){ 0, 0 };
		for (int i = 0; i < N; i++) {
			double angle = -2 * acos(-1) * i * k / N;
			want[k].re += v[i].re * (float)cos(angle) - v[i].im * (float)sin(angle);
			want[k].im += v[i].re * (float)sin(angle) + v[i].im * (float)cos(angle);
		}
	}
	struct fft_value back[N];
	memcpy(back, v, sizeof v);
	fft_forward(&f, back);
	for (int k = 0; k < N; k++) {
		int reversed = 0;
		for (int bit = 1; bit < N; bit *= 2)
			reversed = 2 * reversed + ((k & bit) != 0);
		assert_float_equal(back[reversed].re, want[k].re, 1e-5);
		assert_float_equal(back[reversed].im, want[k].im, 1e-5);
	}
	fft_inverse(&f, back);
	for (int i = 0; i < N; i++) {
		assert_float_equal(back[i].re / N, v[i].re, 1e-6);
		assert_float_equal(back[i].im / N, v[i].im, 1e-6);
	}
	fft_release(&f);
}

/* ---- random pairs */

/* Adds n pairs of alternating sides: y differs from x by `clock` and random noise of up to `noise`. */
static void add_pairs(struct pair_list *l, int n, int64_t clock, int64_t noise, uint64_t *r)
{
	for (int i = 0; i < n; i++) {
		const enum hull_side side = i % 2 == 0 ? HULL_UPPER : HULL_LOWER;
		const int64_t x = (int64_t)l->len * 1000000, delay = side == HULL_UPPER ? 5000 : -5000;
		*ARRAY_PUSH(l->pair, l->len, l->cap) =
			(struct pair){ x, x + clock + delay + (noise > 0 ? sim_below(r, noise) : 0), side, 0, 0, PAIR_GOOD };
	}
}

/* There are no more conflicts than pairs rejected by a fit and starts of segments. */
static void test_conflicts(void **state)
{
	(void)state;
	struct pair_list l = { 0 };
	struct clock_map clock;
	uint64_t r = 1;
	assert_int_equal(fit_conflicts(&l), 0);
	add_pairs(&l, 200, 0, 8000, &r);
	assert_int_equal(fit_conflicts(&l), 0);
	add_pairs(&l, 200, 300000000, 8000, &r);
	add_pairs(&l, 200, 0, 8000, &r);
	assert_int_equal(fit_conflicts(&l), 2);  /* the conflicts are at the step */
	l.pair[100].y -= 300000;
	l.pair[151].y += 300000;
	assert_int_equal(fit_conflicts(&l), 4);
	fit_pairs(&l, 0, &clock);
	assert_int_equal(clock.segments, 3);
	size_t rejected = 0;
	for (size_t i = 0; i < l.len; i++)
		rejected += l.pair[i].rejected != PAIR_GOOD;
	assert_int_equal(rejected, 2);
	clock_map_release(&clock);
	add_pairs(&l, 600, 0, 100000000, &r);
	assert_in_range(fit_conflicts(&l), 4 + 120, 4 + 300);
	pairs_release(&l);
}

/* ---- matching: the stream yields the same pairs as sorting */

static void test_stream_matching(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct sync_event_set guest = { 0 }, host = { 0 };
		struct stream_matcher p;
		struct pair_list sorted = { 0 };
		uint64_t r = seed;
		stream_matcher_init(&p);
		for (int64_t i = 0; i < 30000; i++) {
			int64_t t = i * 1000000;
			struct sync_event m[6] = {
				{ (uint64_t)(2 * i), t, EVENT_ABSENT, 0, SYNC_A, 0 },
				{ (uint64_t)(2 * i), t + 5000 + sim_below(&r, 90000), EVENT_ABSENT, 0, SYNC_B, 0 },
				{ (uint64_t)(2 * i + 1), t + 100000, EVENT_ABSENT, 0, SYNC_C, 0 },
				{ (uint64_t)(2 * i + 1), t + 110000 + sim_below(&r, 90000), EVENT_ABSENT, 0, SYNC_D, 0 },
				{ (uint64_t)i, t + 200000, EVENT_ABSENT, 0, SYNC_NET_SEND, 0 },
				{ (uint64_t)i, t + 300000 + sim_below(&r, 90000), EVENT_ABSENT, 0, SYNC_NET_RECEIVE, 0 },
			};
			static const bool of_host[6] = { false, true, true, false, false, true };
			for (int k = 0; k < 6; k++) {
				if (sim_uniform(&r) < 0.1)
					continue;  /* a lost event */
				sync_event_set_add(of_host[k] ? &host : &guest, &m[k]);
				stream_matcher_add(&p, of_host[k], &m[k]);
			}
		}
		stream_matcher_finish(&p);
		sync_event_set_sort(&guest);
		sync_event_set_sort(&host);
		pairs_match(&guest, &host, NULL, &sorted);
		assert_int_equal(p.matched, sorted.len);
		assert_true(p.pairs.len < sorted.len / 10);
		struct hull a, b;
		hull_init(&a);
		hull_init(&b);
		for (size_t i = 0; i < sorted.len; i++)
			assert_int_not_equal(hull_add(&a, sorted.pair[i].side, sorted.pair[i].x, sorted.pair[i].y), HULL_CONTRADICTS);
		for (size_t i = 0; i < p.pairs.len; i++)
			hull_add(&b, p.pairs.pair[i].side, p.pairs.pair[i].x, p.pairs.pair[i].y);
		for (int64_t x = -INT64_C(1000000000); x < 31 * INT64_C(1000000000); x += INT64_C(1000000000) / 3) {
			int64_t la, ha, lb, hb;
			assert_true(hull_bounds(&a, x, 0, &la, &ha));
			assert_true(hull_bounds(&b, x, 0, &lb, &hb));
			assert_int_equal(la, lb);
			assert_int_equal(ha, hb);
		}
		hull_release(&a);
		hull_release(&b);
		pairs_release(&sorted);
		stream_matcher_release(&p);
		sync_event_set_release(&guest);
		sync_event_set_release(&host);
	}
}

/* Events without a partner do not accumulate. */
static void test_stream_matching_bounded(void **state)
{
	(void)state;
	struct stream_matcher p;
	stream_matcher_init(&p);
	for (uint64_t i = 0; i < 5 * MATCHER_WAITING_MAX; i++) {
		struct sync_event m = { i, (int64_t)i, EVENT_ABSENT, 0, SYNC_A, 0 };
		stream_matcher_add(&p, false, &m);
	}
	assert_int_equal(p.guest.waiting[PAIR_KIND_AB].len, MATCHER_WAITING_MAX);
	assert_int_equal(p.unmatched, 4 * MATCHER_WAITING_MAX);
	stream_matcher_finish(&p);
	assert_int_equal(p.matched, 0);
	assert_int_equal(p.unmatched, 5 * MATCHER_WAITING_MAX);
	stream_matcher_release(&p);
}

/* One key of three VMs, two of which are the same VM before and after a migration, and of an event without a VM. */
static void test_owners(void **state)
{
	(void)state;
	static const struct { struct sync_event_owners vm; int64_t y[3]; size_t pairs; } cases[] = {
		{ { { 1, 0 } }, { 210, 0, 0 }, 1 }, { { { 2, 0 } }, { 220, 0, 0 }, 1 }, { { { 1, 3 } }, { 205, 210, 0 }, 2 },
		{ { { 0, 0 } }, { 0, 0, 0 }, 0 },
	};
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		struct sync_event_set guest = { 0 }, host = { 0 };
		struct pair_list pairs = { 0 };
		static const struct sync_event of_host[] = {
			{ 7, 205, EVENT_ABSENT, 2, SYNC_B, 3 }, { 7, 210, EVENT_ABSENT, 0, SYNC_B, 1 },
				{ 7, 220, EVENT_ABSENT, 1, SYNC_B, 2 },
		};
		for (size_t i = 0; i < sizeof of_host / sizeof *of_host; i++)
			sync_event_set_add(&host, &of_host[i]);
		for (size_t i = 0; i < (cases[c].pairs == 2 ? 2 : 1); i++)
			sync_event_set_add(&guest, &(struct sync_event){ 7, 100 + (int64_t)i, EVENT_ABSENT, 0, SYNC_A, 0 });
		sync_event_set_sort(&guest);
		sync_event_set_sort(&host);
		pairs_match(&guest, &host, &cases[c].vm, &pairs);
		pairs_count_unmatched(&guest, &host, &cases[c].vm, &pairs);
		assert_int_equal(pairs.len, cases[c].pairs);
		assert_int_equal(pairs.unmatched, cases[c].pairs == 0 ? 1 : 0);
		for (size_t i = 0; i < pairs.len; i++)
			assert_int_equal(pairs.pair[i].y, cases[c].y[i]);
		pairs_release(&pairs);
		sync_event_set_release(&guest);
		sync_event_set_release(&host);
	}
}

static void test_uid(void **state)
{
	(void)state;
	struct sync_event_set guest = { 0 }, host = { 0 };
	struct pair_list pairs = { 0 };
	struct sync_event a = { 7, 100, 1111, 0, SYNC_A, 0 }, b = { 7, 200, 2222, -1, SYNC_B, 0 };
	sync_event_set_add(&guest, &a);
	sync_event_set_add(&host, &b);
	sync_event_set_sort(&guest);
	sync_event_set_sort(&host);
	pairs_match(&guest, &host, NULL, &pairs);
	pairs_count_unmatched(&guest, &host, NULL, &pairs);
	assert_int_equal(pairs.len, 0);  /* key of another VM */
	assert_int_equal(pairs.unmatched, 2);
	pairs_release(&pairs);
	host.event[0].uid = 1111;
	pairs_match(&guest, &host, NULL, &pairs);
	assert_int_equal(pairs.len, 1);
	assert_int_equal(pairs.pair[0].x, 100);
	assert_int_equal(pairs.pair[0].y, 200);
	assert_int_equal(pairs.pair[0].side, HULL_UPPER);
	pairs_release(&pairs);
	sync_event_set_release(&guest);
	sync_event_set_release(&host);
}

/* ---- fits */

/* The first pair contradicts the later pairs, but not grossly: with the next few pairs it would make another line. */
static void test_outlier_first(void **state)
{
	(void)state;
	struct pair_list l = { 0 };
	struct clock_map clock;
	int64_t low, high;
	add_pairs(&l, 100, 0, 0, NULL);
	l.pair[0].y -= 12000;
	fit_pairs(&l, 0, &clock);
	assert_int_equal(clock.segments, 1);
	assert_int_equal(clock.segment[0].rejected, 1);
	assert_int_equal(l.pair[0].rejected, PAIR_SUSPECT);
	assert_true(clock_map_bounds(&clock, 0, &low, &high) && low < 0 && high > 0);
	clock_map_release(&clock);
	pairs_release(&l);
}

/* The drift of a clock changes in the middle: two segments, each with right bounds. */
static void test_drift_change(void **state)
{
	(void)state;
	struct pair_list l = { 0 };
	uint64_t r = 8;
	int64_t half = 100000000000;
	for (int64_t x = 0; x < 2 * half; x += 50000000) {
		int64_t y = x < half ? x + x / 20000 : x + half / 20000 - (x - half) / 10000;
		bool up = sim_below(&r, 2) != 0;
		*ARRAY_PUSH(l.pair, l.len, l.cap) =
			(struct pair){ x, up ? y + 2000 + sim_below(&r, 50000) : y - 2000 - sim_below(&r, 50000),
			up ? HULL_UPPER : HULL_LOWER, 0, 0, PAIR_GOOD };
	}
	struct clock_map map;
	fit_pairs(&l, 0, &map);
	assert_int_equal(map.segments, 2);
	assert_true(llabs(map.segment[1].from - half) < half / 10);
	for (int64_t x = 0; x < 2 * half; x += half / 7) {
		int64_t y = x < half ? x + x / 20000 : x + half / 20000 - (x - half) / 10000;
		if (llabs(x - half) > half / 10)
			assert_true(llabs(clock_map_at(&map, x) - y) < 60000);
	}
	clock_map_release(&map);
	pairs_release(&l);
}

/* Checks clocks that change their rate and swing: the bounds include them everywhere and are not much wider than the
 * delays. */
static void check_changing(uint64_t seed, bool bends)
{
	enum { PLACES = 500 };
	struct pair_list l = { 0 };
	uint64_t r = seed;
	struct sim_vm vm = { .to = INT64_C(1000000000) * (20 + sim_below(&r, 200)), .clock = { 0, 0, 100 } };
	int64_t least = 1000 + sim_below(&r, 20000), low, high;
	double width = 0;
	if (bends) {
		vm.bend_at = vm.to / 100 * (20 + sim_below(&r, 60));
		vm.bend_ppm = (sim_uniform(&r) - 0.5) * 100;
	} else {
		vm.wander_s = 100 + 1000 * sim_uniform(&r);
		vm.wander_ns = vm.wander_s * 48 * sim_uniform(&r);
	}
	for (int64_t host = 0; host < vm.to; host += (int64_t)sim_exp(&r, 3e7)) {
		bool up = sim_below(&r, 2) != 0;
		int64_t delay = least + (int64_t)sim_exp(&r, (double)least);
		*ARRAY_PUSH(l.pair, l.len, l.cap) = (struct pair){ sim_guest_time(&vm, host), up ? host + delay : host - delay,
			up ? HULL_UPPER : HULL_LOWER, 0, 0, PAIR_GOOD };
	}
	struct clock_map map;
	fit_pairs(&l, 0, &map);
	fit_widen_bounds(&l, &map);
	for (int64_t host = 0; host < vm.to; host += vm.to / PLACES) {
		assert_true(clock_map_bounds(&map, sim_guest_time(&vm, host), &low, &high));
		if (low - 2 > host || host > high + 2)
			fail_msg("seed %d: %lld at %.3f", (int)seed, (long long)(host < low ? low - host : host - high),
			         (double)host / (double)vm.to);
		width += (double)(high - low) / PLACES;
	}
	assert_true(width < 10 * (double)least);
	clock_map_release(&map);
	pairs_release(&l);
}

static void test_changing(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++)
		check_changing(seed, seed % 2 == 0);
}

/* ---- TSC */

/* Gets the host's time 1 s after the start of both traces, ns. Both count the same TSC, the guest with an offset, at the
 * given rates in mHz. */
static bool second_of(uint64_t ours, uint64_t theirs, int64_t *ns)
{
	const struct sync_hint hint = { .has_tsc = true, .tsc_offset = -5000, .tsc_ratio = 1 };
	const struct trace_info host = { .scale = { 1000000, 7000, ours, true } };
	const struct trace_info guest = { .scale = { 1000000 - 5000, 3000, theirs, true } };
	struct clock_line line;
	const bool known = tsc_line(&host, &guest, &hint, &line);
	*ns = known ? clock_line_at(&line, 3000 + INT64_C(1000000000)) - 7000 : 0;
	return known;
}

/* The rates may differ by at most 1/100. */
static void test_tsc(void **state)
{
	(void)state;
	const uint64_t mhz = UINT64_C(2400000000000);
	int64_t ns;
	assert_true(second_of(mhz, mhz, &ns));
	assert_int_equal(ns, 1000000000);
	assert_true(second_of(mhz, mhz / 1000 * 1009, &ns));
	assert_in_range(ns, 1008999999, 1009000001);
	assert_false(second_of(mhz, mhz / 1000 * 1011, &ns));
	assert_false(second_of(mhz, mhz / 1000 * 989, &ns));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fft), cmocka_unit_test(test_stream_matching), cmocka_unit_test(test_stream_matching_bounded),
		cmocka_unit_test(test_uid), cmocka_unit_test(test_owners), cmocka_unit_test(test_conflicts),
		cmocka_unit_test(test_outlier_first), cmocka_unit_test(test_drift_change), cmocka_unit_test(test_changing),
		cmocka_unit_test(test_tsc),
	};
	return cmocka_run_group_tests_name("sync parts", tests, NULL, NULL);
}
