/* Composition of clocks: the clock of a nested guest is its clock to the outer guest, composed with the outer guest's
 * clock to the host. */
#include "base/mem.h"
#include "sync/sync.h"
#include "test.h"

static uint64_t seed = 1;

static int64_t random_map(int64_t lo, int64_t hi)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return lo + (int64_t)(seed % (uint64_t)(hi - lo + 1));
}

#define EPOCH INT64_C(1795152652000000000)
#define DAY INT64_C(86400000000000)
#define PPM ((INT64_C(1) << 60) / 1000000)

/* Makes a bound `away` ns from a line, with some corners. */
static struct clock_bound make_edge(const struct clock_line *line, int64_t away)
{
	struct clock_bound e = { .left = *line, .right = *line, .points = (size_t)random_map(1, 5) };
	e.point = mem_new(e.points, sizeof *e.point);
	for (size_t i = 0; i < e.points; i++) {
		e.point[i].guest = line->ref_guest + (int64_t)i * DAY / 8 + random_map(0, DAY / 9);
		e.point[i].host = clock_line_at(line, e.point[i].guest) + away + random_map(-900, 900);
	}
	e.left.ref_guest = e.point[0].guest;
	e.left.ref_host = e.point[0].host;
	e.right.ref_guest = e.point[e.points - 1].guest;
	e.right.ref_host = e.point[e.points - 1].host;
	return e;
}

static struct clock_map make_map(int64_t begin, bool bends)
{
	struct clock_map m = { .segment = mem_new(4, sizeof *m.segment), .segments = (size_t)random_map(1, 4) };
	for (size_t i = 0; i < m.segments; i++) {
		struct clock_segment *p = &m.segment[i];
		*p = (struct clock_segment){ .from = begin + (int64_t)i * DAY / 4 + random_map(0, DAY / 5), .pairs_ab = 10 + i,
			.quality = (enum sync_quality)random_map(SYNC_ABSENT, SYNC_ACCURATE) };
		p->line = (struct clock_line){ p->from + random_map(-DAY, DAY), p->from + random_map(-9 * DAY, 9 * DAY),
			bends ? random_map(-300, 300) * PPM + random_map(0, 1000) : 0 };
		/* the host's clock never runs backwards, whatever the guest's clock does */
		if (i > 0)
			p->line.ref_host += clock_line_at(&m.segment[i - 1].line, p->from) - clock_line_at(&p->line, p->from) +
				random_map(0, 20000000);
		p->lowest = p->highest = p->line;
		p->low = make_edge(&p->line, -3000);
		p->high = make_edge(&p->line, 3000);
	}
	return m;
}

static const struct clock_segment *piece_at(const struct clock_map *m, int64_t t)
{
	size_t i = m->segments - 1;
	while (i > 0 && m->segment[i].from > t)
		i--;
	return &m->segment[i];
}

static void check_at(const struct clock_map *both, const struct clock_map *f, const struct clock_map *g, int64_t t,
                     int64_t tolerance)
{
	int64_t middle = clock_map_at(f, t), is = clock_map_at(both, t), want = clock_map_at(g, middle), low, high;
	const struct clock_segment *a = piece_at(f, t), *b = piece_at(g, middle);
	if (is < want - tolerance || is > want + tolerance)
		fail_msg("at %lld: %lld, not %lld", (long long)t, (long long)is, (long long)want);
	assert_int_equal(piece_at(both, t)->quality, a->quality < b->quality ? a->quality : b->quality);
	int64_t want_low = clock_bound_at(&b->low, clock_bound_at(&a->low, t));
	int64_t want_high = clock_bound_at(&b->high, clock_bound_at(&a->high, t));
	assert_true(clock_map_bounds(both, t, &low, &high));
	assert_in_range(want_low - low, 0, 6);
	assert_in_range(high - want_high, 2, 6);  /* two steps are each rounded down */
}

/* Compares the composed clock with two separate steps. tolerance: ns by which they may differ. */
static void check_maps(bool f_bends, bool g_bends, int64_t tolerance)
{
	int64_t begin = EPOCH + random_map(-DAY, DAY);
	struct clock_map f = make_map(begin, f_bends), g, both;
	uint64_t pairs = 0, of_f = 0;
	g = make_map(clock_map_at(&f, begin) + random_map(-DAY / 3, DAY / 3), g_bends);
	clock_map_copy(&both, &f);
	clock_map_compose(&both, &g);
	assert_in_range(both.segments, f.segments, f.segments + g.segments);
	for (size_t i = 0; i < both.segments; i++) {
		pairs += both.segment[i].pairs_ab;
		if (i > 0)
			assert_true(both.segment[i].from > both.segment[i - 1].from);
		for (int64_t d = -2; i > 0 && d <= 2; d++)
			check_at(&both, &f, &g, both.segment[i].from + d, tolerance);
	}
	for (size_t i = 0; i < f.segments; i++)
		of_f += f.segment[i].pairs_ab;
	assert_int_equal(pairs, of_f);
	for (int i = 0; i < 200; i++)
		check_at(&both, &f, &g, f.segment[0].from + random_map(0, 2 * DAY), tolerance);
	clock_map_release(&f);
	clock_map_release(&g);
	clock_map_release(&both);
}

static void test_compose(void **state)
{
	(void)state;
	for (int i = 0; i < 300; i++) {
		check_maps(true, true, 2);
		check_maps(true, false, 0);
		check_maps(false, true, 0);
		check_maps(false, false, 0);
	}
}

/* Composed bounds exist only where both clocks have them; an outer clock without segments changes nothing. */
static void test_unknown(void **state)
{
	(void)state;
	struct clock_map f = make_map(EPOCH, true), g = make_map(EPOCH, true), same;
	int64_t low, high, t = f.segment[0].from;
	clock_map_copy(&same, &f);
	clock_map_compose(&same, &(struct clock_map){ .segment = NULL });
	assert_int_equal(clock_map_at(&same, t), clock_map_at(&f, t));
	for (size_t i = 0; i < g.segments; i++) {
		free(g.segment[i].low.point);
		g.segment[i].low = (struct clock_bound){ .points = 0 };
		g.segment[i].quality = SYNC_ABSENT;
	}
	clock_map_compose(&f, &g);
	assert_false(clock_map_bounds(&f, t, &low, &high));
	assert_int_equal(f.segment[0].quality, SYNC_ABSENT);
	clock_map_release(&f);
	clock_map_release(&g);
	clock_map_release(&same);
}

/* Makes a clock of one segment with bounds of 3 us. */
static struct clock_map bounded_clock(struct clock_line line)
{
	struct clock_map m = { .segment = mem_new(1, sizeof *m.segment), .segments = 1 };
	m.segment[0] = (struct clock_segment){ .from = line.ref_guest, .line = line };
	m.segment[0].low = make_edge(&line, -3000);
	m.segment[0].high = make_edge(&line, 3000);
	return m;
}

/* While the step of the outer clock is ambiguous, the inner clock may be off by the step; at other times it is not. */
static void test_unsure(void **state)
{
	(void)state;
	const int64_t jump = 20000000, cut = EPOCH + DAY / 2;
	struct clock_map both = bounded_clock((struct clock_line){ EPOCH, EPOCH + 777, 40 * PPM }), inner = { .segment = NULL };
	struct clock_map outer = bounded_clock((struct clock_line){ EPOCH, EPOCH, 0 });
	struct clock_map later = bounded_clock((struct clock_line){ EPOCH, EPOCH - jump, 0 });
	outer.segment = mem_resize(outer.segment, 2, sizeof *outer.segment);
	outer.segment[outer.segments++] = later.segment[0];
	outer.segment[1].from = cut;
	outer.segment[1].ambiguous_from = cut - 30000000;
	outer.segment[1].ambiguous_to = cut + 1000000;
	free(later.segment);
	clock_map_copy(&inner, &both);
	clock_map_compose(&both, &outer);
	for (int i = 0; i < 3000; i++) {
		const int64_t t = cut - 777 - DAY / 2 / 1000000 * 40 + random_map(-40000000, 10000000);
		int64_t in[2], low[2], high[2], least, most;
		assert_true(clock_map_bounds(&inner, t, &in[0], &in[1]) && clock_map_bounds(&both, t, &least, &most));
		for (int k = 0; k < 2; k++)
			assert_true(clock_map_bounds(&outer, in[k], &low[k], &high[k]));
		assert_true(least <= low[0] && least <= low[1] && most >= high[0] && most >= high[1]);
		const bool sure = !clock_map_is_ambiguous(&outer, in[0] - 10000) && !clock_map_is_ambiguous(&outer, in[1] + 10000);
		assert_true(!sure || most - least < 50000);
		assert_true(!clock_map_is_ambiguous(&outer, in[0]) || most - least >= jump);
	}
	clock_map_release(&inner);
	clock_map_release(&outer);
	clock_map_release(&both);
}

/* The range with bounds is the intersection of both ranges. */
static void test_known(void **state)
{
	(void)state;
	const int64_t off = 777, hour = DAY / 24;
	struct clock_map both = bounded_clock((struct clock_line){ EPOCH, EPOCH + off, 0 });
	struct clock_map outer = bounded_clock((struct clock_line){ EPOCH, EPOCH, 0 });
	struct clock_hint near = { 0 };
	int64_t low, high;
	assert_true(clock_map_has_bounds(&both, EPOCH) && clock_map_error_width(&both, EPOCH) > 0);
	both.known_from = EPOCH + hour;
	both.known_to = EPOCH + 6 * hour;
	outer.known_from = EPOCH + 2 * hour;
	outer.known_to = EPOCH + 8 * hour;
	clock_map_compose(&both, &outer);
	assert_int_equal(both.known_from, EPOCH + 2 * hour - off);
	assert_int_equal(both.known_to, EPOCH + 6 * hour);
	const int64_t out[2] = { both.known_from - 1, both.known_to + 1 }, in[2] = { both.known_from, both.known_to };
	for (int i = 0; i < 2; i++) {
		assert_false(clock_map_has_bounds(&both, out[i]));
		assert_int_equal(clock_map_error_width(&both, out[i]), -1);
		assert_false(clock_map_bounds_hint(&both, out[i], &near, &low, &high));
		assert_true(clock_map_has_bounds(&both, in[i]));
		assert_true(clock_map_bounds_hint(&both, in[i], &near, &low, &high));
		assert_in_range(clock_map_error_width(&both, in[i]), 1, 20000);
	}
	struct clock_map copy;
	clock_map_copy(&copy, &both);
	assert_false(clock_map_has_bounds(&copy, out[0]));
	clock_map_release(&copy);
	clock_map_release(&outer);
	clock_map_release(&both);
}

/* In a steady distance no bound rises by more than the distance, and none falls. Steps and steep parts are not steady. */
static void test_steady(void **state)
{
	(void)state;
	static const int64_t rise[] = { 1000000, 1001900, 998000, 0, 1002100, -1 };
	static const int64_t step[] = { 0, 1, -1, 2 };
	for (size_t i = 0; i < COUNT(rise); i++) {
		for (size_t k = 0; k < COUNT(step); k++) {
			struct clock_point point[2][2] = { { { 0, 0 }, { 1000000, rise[i] } }, { { 0, 50 }, { 1000000, 50 + rise[i] } } };
			struct clock_segment piece = { .low.point = point[0], .high.point = point[1], .low.points = 2, .high.points = 2 };
			piece.low.left.ref_host = -step[k];
			piece.low.right = (struct clock_line){ 1000000, rise[i], 0 };
			piece.high.left.ref_host = 50;
			piece.high.right = (struct clock_line){ 1000000, 50 + rise[i], 0 };
			const struct clock_map map = { .segment = &piece, .segments = 1 };
			const bool steady = rise[i] >= 0 && rise[i] < 1001953 && (step[k] == 0 || step[k] == 1);
			assert_int_equal(clock_map_has_steady_bounds(&map), steady);
			for (int64_t t = -5000, low, high, low2, high2; steady && t < 1010000; t += 4999) {
				assert_true(clock_map_bounds(&map, t, &low, &high));
				for (int64_t ns = 20; ns < 2000000; ns *= 3) {
					assert_true(clock_map_bounds(&map, t + clock_steady_distance(ns), &low2, &high2));
					assert_true(low2 >= low && high2 >= high && low2 - low <= ns && high2 - high <= ns);
				}
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steady),
		cmocka_unit_test(test_compose),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_unsure),
		cmocka_unit_test(test_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
