/* sync/: the clock of a guest inside a guest is its clock to the outer one, then that one's to the host. */
#include "base/mem.h"
#include "sync/sync.h"
#include "test.h"

static uint64_t seed = 1;

static int64_t draw(int64_t lo, int64_t hi)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return lo + (int64_t)(seed % (uint64_t)(hi - lo + 1));
}

#define EPOCH INT64_C(1795152652000000000)
#define DAY INT64_C(86400000000000)
#define PPM ((INT64_C(1) << 60) / 1000000)

/* An edge `away` ns from a line, bent at some points. */
static struct clock_edge make_edge(const struct clock_line *line, int64_t away)
{
	struct clock_edge e = { .left = *line, .right = *line, .points = (size_t)draw(1, 5) };
	e.point = mem_new(e.points, sizeof *e.point);
	for (size_t i = 0; i < e.points; i++) {
		e.point[i].guest = line->ref_guest + (int64_t)i * DAY / 8 + draw(0, DAY / 9);
		e.point[i].host = clock_line_at(line, e.point[i].guest) + away + draw(-900, 900);
	}
	e.left.ref_guest = e.point[0].guest;
	e.left.ref_host = e.point[0].host;
	e.right.ref_guest = e.point[e.points - 1].guest;
	e.right.ref_host = e.point[e.points - 1].host;
	return e;
}

static struct clock_map make_map(int64_t begin, bool bends)
{
	struct clock_map m = { .piece = mem_new(4, sizeof *m.piece), .pieces = (size_t)draw(1, 4) };
	for (size_t i = 0; i < m.pieces; i++) {
		struct clock_piece *p = &m.piece[i];
		*p = (struct clock_piece){ .from = begin + (int64_t)i * DAY / 4 + draw(0, DAY / 5), .pairs_ab = 10 + i,
			.quality = (enum sync_quality)draw(SYNC_ABSENT, SYNC_ACCURATE) };
		p->line = (struct clock_line){ p->from + draw(-DAY, DAY), p->from + draw(-9 * DAY, 9 * DAY),
			bends ? draw(-300, 300) * PPM + draw(0, 1000) : 0 };
		/* A clock of the host never runs backwards, whatever the guest's does. */
		if (i > 0)
			p->line.ref_host += clock_line_at(&m.piece[i - 1].line, p->from) - clock_line_at(&p->line, p->from) +
				draw(0, 20000000);
		p->lowest = p->highest = p->line;
		p->low = make_edge(&p->line, -3000);
		p->high = make_edge(&p->line, 3000);
	}
	return m;
}

static const struct clock_piece *piece_at(const struct clock_map *m, int64_t t)
{
	size_t i = m->pieces - 1;
	while (i > 0 && m->piece[i].from > t)
		i--;
	return &m->piece[i];
}

static void check_at(const struct clock_map *both, const struct clock_map *f, const struct clock_map *g, int64_t t,
                     int64_t slack)
{
	int64_t middle = clock_map_at(f, t), is = clock_map_at(both, t), want = clock_map_at(g, middle), low, high;
	const struct clock_piece *a = piece_at(f, t), *b = piece_at(g, middle);
	if (is < want - slack || is > want + slack)
		fail_msg("at %lld: %lld, not %lld", (long long)t, (long long)is, (long long)want);
	assert_int_equal(piece_at(both, t)->quality, a->quality < b->quality ? a->quality : b->quality);
	int64_t want_low = clock_edge_at(&b->low, clock_edge_at(&a->low, t));
	int64_t want_high = clock_edge_at(&b->high, clock_edge_at(&a->high, t));
	assert_true(clock_map_bounds(both, t, &low, &high));
	assert_in_range(want_low - low, 0, 6);
	assert_in_range(high - want_high, 2, 6);  /* two steps, each rounded down */
}

/* slack: ns by which both ways may differ. */
static void check_maps(bool f_bends, bool g_bends, int64_t slack)
{
	int64_t begin = EPOCH + draw(-DAY, DAY);
	struct clock_map f = make_map(begin, f_bends), g, both;
	uint64_t pairs = 0, of_f = 0;
	g = make_map(clock_map_at(&f, begin) + draw(-DAY / 3, DAY / 3), g_bends);
	clock_map_copy(&both, &f);
	clock_map_compose(&both, &g);
	assert_in_range(both.pieces, f.pieces, f.pieces + g.pieces);
	for (size_t i = 0; i < both.pieces; i++) {
		pairs += both.piece[i].pairs_ab;
		if (i > 0)
			assert_true(both.piece[i].from > both.piece[i - 1].from);
		for (int64_t d = -2; i > 0 && d <= 2; d++)
			check_at(&both, &f, &g, both.piece[i].from + d, slack);
	}
	for (size_t i = 0; i < f.pieces; i++)
		of_f += f.piece[i].pairs_ab;
	assert_int_equal(pairs, of_f);
	for (int i = 0; i < 200; i++)
		check_at(&both, &f, &g, f.piece[0].from + draw(0, 2 * DAY), slack);
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

/* What is not known of one clock is not known of both; an outer clock that is nobody's changes nothing. */
static void test_unknown(void **state)
{
	(void)state;
	struct clock_map f = make_map(EPOCH, true), g = make_map(EPOCH, true), same;
	int64_t low, high, t = f.piece[0].from;
	clock_map_copy(&same, &f);
	clock_map_compose(&same, &(struct clock_map){ .piece = NULL });
	assert_int_equal(clock_map_at(&same, t), clock_map_at(&f, t));
	for (size_t i = 0; i < g.pieces; i++) {
		free(g.piece[i].low.point);
		g.piece[i].low = (struct clock_edge){ .points = 0 };
		g.piece[i].quality = SYNC_FAIL;
	}
	clock_map_compose(&f, &g);
	assert_false(clock_map_bounds(&f, t, &low, &high));
	assert_int_equal(f.piece[0].quality, SYNC_FAIL);
	clock_map_release(&f);
	clock_map_release(&g);
	clock_map_release(&same);
}

/* A clock of one piece, right to 3 us. */
static struct clock_map banded(struct clock_line line)
{
	struct clock_map m = { .piece = mem_new(1, sizeof *m.piece), .pieces = 1 };
	m.piece[0] = (struct clock_piece){ .from = line.ref_guest, .line = line };
	m.piece[0].low = make_edge(&line, -3000);
	m.piece[0].high = make_edge(&line, 3000);
	return m;
}

/* Where the outer clock may have jumped already, or not yet, the inner one may be off by the jump; elsewhere it is not. */
static void test_unsure(void **state)
{
	(void)state;
	const int64_t jump = 20000000, cut = EPOCH + DAY / 2;
	struct clock_map both = banded((struct clock_line){ EPOCH, EPOCH + 777, 40 * PPM }), inner = { .piece = NULL };
	struct clock_map outer = banded((struct clock_line){ EPOCH, EPOCH, 0 });
	struct clock_map later = banded((struct clock_line){ EPOCH, EPOCH - jump, 0 });
	outer.piece = mem_resize(outer.piece, 2, sizeof *outer.piece);
	outer.piece[outer.pieces++] = later.piece[0];
	outer.piece[1].from = cut;
	outer.piece[1].unsure_from = cut - 30000000;
	outer.piece[1].unsure_to = cut + 1000000;
	free(later.piece);
	clock_map_copy(&inner, &both);
	clock_map_compose(&both, &outer);
	for (int i = 0; i < 3000; i++) {
		const int64_t t = cut - 777 - DAY / 2 / 1000000 * 40 + draw(-40000000, 10000000);
		int64_t in[2], low[2], high[2], least, most;
		assert_true(clock_map_bounds(&inner, t, &in[0], &in[1]) && clock_map_bounds(&both, t, &least, &most));
		for (int k = 0; k < 2; k++)
			assert_true(clock_map_bounds(&outer, in[k], &low[k], &high[k]));
		assert_true(least <= low[0] && least <= low[1] && most >= high[0] && most >= high[1]);
		const bool sure = !clock_map_unsure(&outer, in[0] - 10000) && !clock_map_unsure(&outer, in[1] + 10000);
		assert_true(!sure || most - least < 50000);
		assert_true(!clock_map_unsure(&outer, in[0]) || most - least >= jump);
	}
	clock_map_release(&inner);
	clock_map_release(&outer);
	clock_map_release(&both);
}

/* Known is what both clocks know, and what neither does has no corridor. */
static void test_known(void **state)
{
	(void)state;
	const int64_t off = 777, hour = DAY / 24;
	struct clock_map both = banded((struct clock_line){ EPOCH, EPOCH + off, 0 });
	struct clock_map outer = banded((struct clock_line){ EPOCH, EPOCH, 0 });
	struct clock_near near = { 0 };
	int64_t low, high;
	assert_true(clock_map_knows(&both, EPOCH) && clock_map_band(&both, EPOCH) > 0);
	both.known_from = EPOCH + hour;
	both.known_to = EPOCH + 6 * hour;
	outer.known_from = EPOCH + 2 * hour;
	outer.known_to = EPOCH + 8 * hour;
	clock_map_compose(&both, &outer);
	assert_int_equal(both.known_from, EPOCH + 2 * hour - off);
	assert_int_equal(both.known_to, EPOCH + 6 * hour);
	const int64_t out[2] = { both.known_from - 1, both.known_to + 1 }, in[2] = { both.known_from, both.known_to };
	for (int i = 0; i < 2; i++) {
		assert_false(clock_map_knows(&both, out[i]));
		assert_int_equal(clock_map_band(&both, out[i]), -1);
		assert_false(clock_map_bounds_near(&both, out[i], &near, &low, &high));
		assert_true(clock_map_knows(&both, in[i]));
		assert_true(clock_map_bounds_near(&both, in[i], &near, &low, &high));
		assert_in_range(clock_map_band(&both, in[i]), 1, 20000);
	}
	struct clock_map copy;
	clock_map_copy(&copy, &both);
	assert_false(clock_map_knows(&copy, out[0]));
	clock_map_release(&copy);
	clock_map_release(&outer);
	clock_map_release(&both);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compose),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_unsure),
		cmocka_unit_test(test_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
