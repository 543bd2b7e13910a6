/* Hulls, lines, error bounds and the order of pairs, compared with a published step table, brute force and wide
 * integers. */
#include "test.h"

#include "sync/fit/piecewise_fit.h"
#include "sync/fit/hull.h"

/* splitmix64 */
static uint64_t random64(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static int64_t below(uint64_t *state, int64_t n)
{
	return (int64_t)(random64(state) % (uint64_t)n);
}

/* ---- step table: 1>2 (a, b) is sent by trace 1 at a and received by trace 2 at b; x is trace 1's time */

struct hull_step { bool from_reference; int64_t a, b; enum sync_quality quality; bool contradicts; };

static void run_steps(const struct hull_step *step, size_t n)
{
	struct hull h;
	hull_init(&h);
	assert_int_equal(hull_quality(&h), SYNC_ABSENT);
	for (size_t i = 0; i < n; i++) {
		const enum hull_effect effect = step[i].from_reference ? hull_add(&h, HULL_UPPER, step[i].a, step[i].b)
		                                                       : hull_add(&h, HULL_LOWER, step[i].b, step[i].a);
		assert_int_equal(effect == HULL_CONTRADICTS, step[i].contradicts);
		assert_int_equal(hull_quality(&h), step[i].quality);
	}
	hull_release(&h);
}

static void test_steps(void **state)
{
	(void)state;
	static const struct hull_step table[] = {
		{ false, 1, 1, SYNC_INCOMPLETE, false }, { true, 1, 3, SYNC_INCOMPLETE, false },
		{ false, 2, 3, SYNC_APPROXIMATE, false }, { true, 3, 5, SYNC_ACCURATE, false },
		{ true, 4, 8, SYNC_ACCURATE, false }, { false, 4, 5, SYNC_ACCURATE, false },
		{ false, 4, 6, SYNC_ACCURATE, false }, { true, 6, 7, SYNC_ACCURATE, false },
		{ true, 7, 4, SYNC_ACCURATE, true }, { false, 7, 3, SYNC_ACCURATE, true },
	};
	static const struct hull_step apart[] = {
		{ true, 1, 3, SYNC_INCOMPLETE, false }, { true, 2, 5, SYNC_INCOMPLETE, false },
		{ true, 3, 5, SYNC_INCOMPLETE, false }, { true, 4, 7, SYNC_INCOMPLETE, false },
		{ false, 7, 6, SYNC_APPROXIMATE, false }, { false, 8, 6, SYNC_APPROXIMATE, false },
		{ false, 10, 8, SYNC_APPROXIMATE, false },
	};
	run_steps(table, COUNT(table));
	run_steps(apart, COUNT(apart));
}

/* ---- wide integers: sign and magnitude, 512 bits, schoolbook */

#define LIMBS 16
struct wide { int sign; uint32_t limb[LIMBS]; };

static struct wide wide_of(int64_t v)
{
	struct wide w = { v < 0 ? -1 : 1, { 0 } };
	uint64_t m = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
	w.limb[0] = (uint32_t)m;
	w.limb[1] = (uint32_t)(m >> 32);
	return w;
}

static struct wide wide_mul(struct wide a, struct wide b)
{
	struct wide w = { a.sign * b.sign, { 0 } };
	for (int i = 0; i < LIMBS; i++) {
		uint64_t carry = 0;
		for (int k = 0; i + k < LIMBS; k++) {
			carry += (uint64_t)a.limb[i] * b.limb[k] + w.limb[i + k];
			w.limb[i + k] = (uint32_t)carry;
			carry >>= 32;
		}
	}
	return w;
}

static int wide_cmp_magnitude(const struct wide *a, const struct wide *b)
{
	for (int i = LIMBS - 1; i >= 0; i--)
		if (a->limb[i] != b->limb[i])
			return a->limb[i] < b->limb[i] ? -1 : 1;
	return 0;
}

static struct wide wide_add(struct wide a, struct wide b)
{
	struct wide w = a;
	int64_t carry = 0;
	if (a.sign != b.sign && wide_cmp_magnitude(&a, &b) < 0)
		return wide_add(b, a);
	for (int i = 0; i < LIMBS; i++) {
		carry += a.limb[i];
		carry += a.sign == b.sign ? (int64_t)b.limb[i] : -(int64_t)b.limb[i];
		w.limb[i] = (uint32_t)carry;
		carry >>= 32;
	}
	return w;
}

static struct wide wide_sub(struct wide a, struct wide b)
{
	b.sign = -b.sign;
	return wide_add(a, b);
}

static int wide_sign(struct wide a)
{
	struct wide zero = wide_of(0);
	return wide_cmp_magnitude(&a, &zero) == 0 ? 0 : a.sign;
}

static void test_wide(void **state)
{
	(void)state;
	uint64_t seed = 1;
	for (int i = 0; i < 1000; i++) {
		int64_t a = below(&seed, 1 << 30) - (1 << 29), b = below(&seed, 1 << 30) - (1 << 29);
		assert_int_equal(wide_sign(wide_sub(wide_mul(wide_of(a), wide_of(b)), wide_of(a * b))), 0);
		assert_int_equal(wide_sign(wide_sub(wide_add(wide_of(a), wide_of(b)), wide_of(a + b))), 0);
		assert_int_equal(wide_sign(wide_sub(wide_of(a), wide_of(b))), a < b ? -1 : a > b);
	}
}

/* ---- three days of pairs with drift and jitter */

struct hull_sample { int64_t x, y; enum hull_side side; };

static int64_t truth_at(int64_t x, int64_t x0, int64_t offset, int64_t ppb)
{
	return x + offset + (x - x0) / 1000000000 * ppb + (x - x0) % 1000000000 * ppb / 1000000000;
}

static size_t make_samples(struct hull_sample *s, size_t n, int64_t span, int64_t ppb, uint64_t *seed)
{
	int64_t x0 = 1700000000000000000, offset = below(seed, 2000000000000000) - 1000000000000000;
	for (size_t i = 0; i < n; i++) {
		int64_t x = x0 + span / (int64_t)n * (int64_t)i + below(seed, span / (int64_t)n);
		int64_t delay = 20000 + below(seed, 2000000);
		s[i].side = below(seed, 2) ? HULL_UPPER : HULL_LOWER;
		s[i].x = x;
		s[i].y = truth_at(x, x0, offset, ppb) + (s[i].side == HULL_UPPER ? delay : -delay);
	}
	return n;
}

/* Returns the sign of slope(a, b) - slope(c, d), a.x < b.x and c.x < d.x. */
static int slope_order(const struct hull_sample *a, const struct hull_sample *b, const struct hull_sample *c,
                       const struct hull_sample *d)
{
	struct wide l = wide_mul(wide_sub(wide_of(b->y), wide_of(a->y)), wide_sub(wide_of(d->x), wide_of(c->x)));
	struct wide r = wide_mul(wide_sub(wide_of(d->y), wide_of(c->y)), wide_sub(wide_of(b->x), wide_of(a->x)));
	return wide_sign(wide_sub(l, r));
}

struct extremes { struct hull_sample a, b, c, d; };  /* the line of smallest slope passes through a and b, of greatest
                                                      * slope through c and d */

static struct extremes brute_force(const struct hull_sample *s, size_t n)
{
	struct extremes e;
	bool least = false, most = false;
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < n; k++) {
			if (s[i].side == s[k].side || s[i].x >= s[k].x)
				continue;
			if (s[i].side == HULL_UPPER && (!least || slope_order(&s[i], &s[k], &e.a, &e.b) > 0)) {
				e.a = s[i];
				e.b = s[k];
				least = true;
			}
			if (s[i].side == HULL_LOWER && (!most || slope_order(&s[i], &s[k], &e.c, &e.d) < 0)) {
				e.c = s[i];
				e.d = s[k];
				most = true;
			}
		}
	}
	assert_true(least && most);
	return e;
}

/* Returns v - the mean of the two extreme lines at t, times a positive number, as a wide integer. */
static struct wide against_bisector(const struct extremes *e, int64_t t, int64_t v)
{
	struct wide dx1 = wide_of(e->b.x - e->a.x), dx2 = wide_of(e->d.x - e->c.x);
	struct wide y1 = wide_add(wide_mul(wide_of(e->a.y), dx1), wide_mul(wide_of(t - e->a.x), wide_of(e->b.y - e->a.y)));
	struct wide y2 = wide_add(wide_mul(wide_of(e->c.y), dx2), wide_mul(wide_of(t - e->c.x), wide_of(e->d.y - e->c.y)));
	struct wide want = wide_add(wide_mul(y1, dx2), wide_mul(y2, dx1));
	struct wide have = wide_mul(wide_mul(wide_mul(wide_of(2), wide_of(v)), dx1), dx2);
	return wide_sub(have, want);
}

static void test_three_days(void **state)
{
	(void)state;
	enum { N = 400 };
	static struct hull_sample s[N];
	int64_t span = 3LL * 86400 * 1000000000;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		uint64_t r = seed;
		size_t n = make_samples(s, N, span, seed % 2 ? 50000 : -50000, &r);
		struct hull h;
		hull_init(&h);
		for (size_t i = 0; i < n; i++)
			assert_int_not_equal(hull_add(&h, s[i].side, s[i].x, s[i].y), HULL_CONTRADICTS);
		struct extremes e = brute_force(s, n);
		struct hull_sample got[4];
		const struct hull_point p[4] = { h.min_slope.a, h.min_slope.b, h.max_slope.a, h.max_slope.b };
		for (int i = 0; i < 4; i++)
			got[i] = (struct hull_sample){ p[i].x + h.origin.x, p[i].y + h.origin.y, HULL_UPPER };
		assert_int_equal(slope_order(&got[0], &got[1], &e.a, &e.b), 0);
		assert_int_equal(slope_order(&got[2], &got[3], &e.c, &e.d), 0);
		struct clock_segment piece = { .from = s[0].x };
		hull_make_segment(&h, s[0].x, DRIFT_LIMIT_PPM, &piece);
		assert_int_equal(piece.quality, SYNC_ACCURATE);
		for (int k = 0; k <= 20; k++) {
			int64_t t = s[0].x + span / 20 * k, v = clock_line_at(&piece.line, t);
			assert_true(wide_sign(against_bisector(&e, t, v - 1)) < 0);
			assert_true(wide_sign(against_bisector(&e, t, v + 2)) > 0);
		}
		free(piece.low.point);
		free(piece.high.point);
		hull_release(&h);
	}
}

/* ---- error bounds: for small integers, every feasible line through two points lies within both bounds, and some line
 * reaches each bound */

static bool feasible(const struct hull_sample *s, size_t n, const struct hull_sample *a, const struct hull_sample *b)
{
	for (size_t i = 0; i < n; i++) {
		int64_t d = (b->x - a->x) * (s[i].y - a->y) - (b->y - a->y) * (s[i].x - a->x);
		if (s[i].side == HULL_UPPER ? d < 0 : d > 0)
			return false;
	}
	return true;
}

static int64_t floor_at(const struct hull_sample *a, const struct hull_sample *b, int64_t x)
{
	int64_t up = (b->y - a->y) * (x - a->x), over = b->x - a->x, q = up / over;
	return a->y + q - (up % over < 0);
}

static int64_t ceil_at(const struct hull_sample *a, const struct hull_sample *b, int64_t x)
{
	int64_t up = (b->y - a->y) * (x - a->x), over = b->x - a->x, q = up / over;
	return a->y + q + (up % over > 0);
}

static void check_bounds(struct hull *h, const struct hull_sample *s, size_t n)
{
	for (int64_t x = -20; x <= 120; x += 7) {
		int64_t low, high, want_low = INT64_MAX, want_high = INT64_MIN;
		bool bounded = hull_bounds(h, x, 0, &low, &high);
		/* A bound at x is reached by a line through two of the points, or through a point at x itself. */
		for (size_t i = 0; i < n; i++)
			for (size_t k = 0; k < n; k++) {
				if (s[i].x >= s[k].x || !feasible(s, n, &s[i], &s[k]))
					continue;
				int64_t f = floor_at(&s[i], &s[k], x), c = ceil_at(&s[i], &s[k], x);
				want_low = f < want_low ? f : want_low;
				want_high = c > want_high ? c : want_high;
			}
		if (!bounded || want_low > want_high)
			continue;
		assert_int_equal(low, want_low);
		assert_int_equal(high, want_high);
	}
}

static void test_error_bounds(void **state)
{
	(void)state;
	int checked = 0;
	for (uint64_t seed = 1; seed < 400; seed++) {
		struct hull_sample s[12];
		uint64_t r = seed;
		size_t n = 0;
		struct hull h;
		hull_init(&h);
		int64_t rise = below(&r, 5) - 2;
		while (n < COUNT(s)) {
			struct hull_sample p = { below(&r, 100), 0, below(&r, 2) ? HULL_UPPER : HULL_LOWER };
			p.y = rise * p.x / 2 + (p.side == HULL_UPPER ? below(&r, 60) : -below(&r, 60));
			if (hull_add(&h, p.side, p.x, p.y) != HULL_CONTRADICTS)
				s[n++] = p;
		}
		if (hull_quality(&h) == SYNC_ACCURATE) {
			check_bounds(&h, s, n);
			checked++;
		}
		hull_release(&h);
	}
	assert_true(checked > 200);
}

/* A point contradicts the others exactly if no feasible line remains, among the lines through two points or close to
 * them. */
static void test_contradiction(void **state)
{
	(void)state;
	uint64_t r = 7;
	for (int round = 0; round < 300; round++) {
		struct hull h;
		hull_init(&h);
		for (int i = 0; i < 30; i++) {
			int64_t x = below(&r, 1000000), low, high;
			enum hull_side side = below(&r, 2) ? HULL_UPPER : HULL_LOWER;
			int64_t y = x + below(&r, 2000) - 1000;
			hull_bounds(&h, x, 0, &low, &high);
			bool had = h.started;
			enum hull_effect e = hull_add(&h, side, x, y);
			if (!had)
				continue;
			/* bounds are rounded outwards by less than 1 */
			if (side == HULL_UPPER && (low == INT64_MIN || y > low))
				assert_int_not_equal(e, HULL_CONTRADICTS);
			if (side == HULL_UPPER && low != INT64_MIN && y < low)
				assert_int_equal(e, HULL_CONTRADICTS);
			if (side == HULL_LOWER && (high == INT64_MAX || y < high))
				assert_int_not_equal(e, HULL_CONTRADICTS);
			if (side == HULL_LOWER && high != INT64_MAX && y > high)
				assert_int_equal(e, HULL_CONTRADICTS);
		}
		hull_release(&h);
	}
}

static void test_far(void **state)
{
	(void)state;
	struct hull h;
	hull_init(&h);
	assert_int_equal(hull_add(&h, HULL_UPPER, INT64_MIN, INT64_MAX), HULL_TIGHTER);
	assert_int_equal(hull_add(&h, HULL_LOWER, INT64_MAX, INT64_MIN), HULL_CONTRADICTS);
	assert_int_equal(hull_add(&h, HULL_LOWER, INT64_MIN + (INT64_C(1) << 60), INT64_MAX - (INT64_C(1) << 60)),
	                 HULL_TIGHTER);
	struct clock_segment piece = { 0 };
	hull_make_segment(&h, INT64_MIN, DRIFT_LIMIT_PPM, &piece);
	free(piece.low.point);
	free(piece.high.point);
	hull_release(&h);
}

/* ---- the line for few points, which allow more slopes than clocks can have, or none of these */

static void check_middle(const struct hull_sample *s, size_t n, int64_t x, int64_t y)
{
	struct hull h;
	struct clock_segment piece = { 0 };
	hull_init(&h);
	for (size_t i = 0; i < n; i++)
		assert_int_not_equal(hull_add(&h, s[i].side, s[i].x, s[i].y), HULL_CONTRADICTS);
	hull_make_segment(&h, 0, DRIFT_LIMIT_PPM, &piece);
	assert_in_range(clock_line_at(&piece.line, x), y - 1, y + 1);
	if (piece.low.points > 0)
		assert_true(clock_bound_at(&piece.low, x) < y && y < clock_bound_at(&piece.high, x));
	free(piece.low.point);
	free(piece.high.point);
	hull_release(&h);
}

static void test_middle(void **state)
{
	(void)state;
	static const struct hull_sample few[] = {
		{ 0, 100, HULL_UPPER }, { 0, -100, HULL_LOWER }, { 1000, 1100, HULL_UPPER }, { 1000, 900, HULL_LOWER },
		{ 500, 600, HULL_UPPER }, { 500, 400, HULL_LOWER },
	};
	static const struct hull_sample steep[] = {
		{ 0, 100, HULL_UPPER }, { 0, -100, HULL_LOWER }, { 1000000, 1010100, HULL_UPPER }, { 1000000, 1009900, HULL_LOWER },
	};
	static const struct hull_sample half[] = { { 0, 100, HULL_UPPER }, { 1000000, 1010100, HULL_LOWER } };
	check_middle(few, 4, 500, 500);
	check_middle(few, 6, 500, 500);
	check_middle(steep, COUNT(steep), 500000, 505000);
	check_middle(half, COUNT(half), 500000, 505100);
}

/* ---- clocks */

static void test_line(void **state)
{
	(void)state;
	struct clock_line line = { 1000, 5000, (INT64_C(1) << 60) / 1000 };  /* + 1000 ppm */
	assert_int_equal(clock_line_at(&line, 1000), 5000);
	assert_int_equal(clock_line_at(&line, 1001), 5001);
	assert_int_equal(clock_line_at(&line, 3001), 7003);  /* 2.001 of drift, rounded down */
	assert_int_equal(clock_line_at(&line, -1), 3997);    /* -1.001, rounded down */
	assert_float_equal(clock_line_ppm(&line), 1000, 1e-9);
	assert_int_equal(clock_line_at(&line, INT64_MAX), INT64_MAX);
	struct clock_map none = { .segment = NULL };
	assert_int_equal(clock_map_at(&none, 42), 42);
	assert_int_equal(clock_map_error_width(&none, 42), -1);
}

/* ---- sorted by x, stable */

static void test_sort(void **state)
{
	(void)state;
	uint64_t r = 5;
	for (int round = 0; round < 300; round++) {
		struct pair pair[64];
		const int64_t n = below(&r, 65), descents = below(&r, 6);
		uint64_t seen = 0;
		for (int64_t i = 0, x = 0; i < n; i++) {
			x = descents > 0 && below(&r, n) < descents ? below(&r, 20) : x + below(&r, 2);
			pair[i] = (struct pair){ .x = x, .y = i };
		}
		pairs_sort(pair, (size_t)n);
		for (int64_t i = 0; i < n; i++) {
			assert_true(i == 0 || pair[i].x > pair[i - 1].x || (pair[i].x == pair[i - 1].x && pair[i].y > pair[i - 1].y));
			seen |= UINT64_C(1) << pair[i].y;
		}
		assert_true(seen == (n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps), cmocka_unit_test(test_wide), cmocka_unit_test(test_three_days),
		cmocka_unit_test(test_error_bounds), cmocka_unit_test(test_contradiction), cmocka_unit_test(test_far),
		cmocka_unit_test(test_middle), cmocka_unit_test(test_line), cmocka_unit_test(test_sort),
	};
	return cmocka_run_group_tests_name("sync hull", tests, NULL, NULL);
}
