#include "sync/fit.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define NEIGHBOURS 15       /* pairs of the other side that are asked, before and after */
#define NEIGHBOURS_MIN 5
#define SLACK_PPM 300       /* drift that two neighbours may show */

struct part { size_t from, to; };  /* pairs [from, to) share a line */

/* Does pair p contradict three quarters of the pairs q[0..n) of the other side? */
static bool against_bulk(const struct pair *p, const struct pair *const *q, size_t n)
{
	size_t agree = 0;
	for (size_t i = 0; i < n; i++) {
		int64_t far = q[i]->x > p->x ? q[i]->x - p->x : p->x - q[i]->x;
		int64_t slack = far / 1000000 * SLACK_PPM + 1000;
		int64_t d = (q[i]->y - p->y) - (q[i]->x - p->x);
		agree += (p->side == HULL_UPPER ? d : -d) <= slack;
	}
	return agree <= n / 4;
}

/* Marks the pairs that contradict the bulk of the other side both before and after them. */
static void drop_gross(struct pair_list *l)
{
	size_t n[2] = { 0, 0 }, at[2] = { 0, 0 };
	const struct pair **side[2] = { mem_new(l->len, sizeof **side), mem_new(l->len, sizeof **side) };
	for (size_t i = 0; i < l->len; i++)
		side[l->pair[i].side][n[l->pair[i].side]++] = &l->pair[i];
	for (size_t i = 0; i < l->len; i++) {
		struct pair *p = &l->pair[i];
		int other = p->side == HULL_UPPER ? HULL_LOWER : HULL_UPPER;
		size_t mid = at[other];  /* pairs of the other side before p */
		size_t before = mid < NEIGHBOURS ? mid : NEIGHBOURS;
		size_t after = n[other] - mid < NEIGHBOURS ? n[other] - mid : NEIGHBOURS;
		at[p->side]++;
		if (before < NEIGHBOURS_MIN && after < NEIGHBOURS_MIN)
			continue;
		bool bad_before = before < NEIGHBOURS_MIN || against_bulk(p, side[other] + mid - before, before);
		if (bad_before && (after < NEIGHBOURS_MIN || against_bulk(p, side[other] + mid, after)))
			p->rejected = PAIR_GROSS;
	}
	free(side[0]);
	free(side[1]);
}

/* Splits the pairs into parts that a line fits; pairs that fit nowhere are rejected. */
static struct part *split(struct pair_list *l, size_t *parts)
{
	struct part *part = NULL;
	size_t cap = 0, from = 0;
	*parts = 0;
	while (from < l->len) {
		struct hull h;
		hull_init(&h);
		size_t run[2] = { 0, 0 }, first[2] = { 0, 0 }, to = l->len, i;
		for (i = from; i < l->len; i++) {
			struct pair *p = &l->pair[i];
			if (p->rejected)
				continue;
			if (hull_add(&h, p->side, p->x, p->y) != HULL_CONTRADICTS) {
				run[p->side] = 0;
				continue;
			}
			if (run[p->side]++ == 0)
				first[p->side] = i;
			p->rejected = PAIR_SUSPECT;
			if (run[p->side] == FIT_SUSPECTS) {
				to = first[p->side];
				break;
			}
		}
		for (size_t k = to; k <= i && k < l->len && to < l->len; k++)
			if (l->pair[k].rejected == PAIR_SUSPECT)
				l->pair[k].rejected = PAIR_GOOD;  /* another chance, in the next part */
		hull_release(&h);
		if (to == from)
			to = from + 1;  /* cannot happen: the first pair of a hull never contradicts */
		*ARRAY_PUSH(part, *parts, cap) = (struct part){ from, to };
		from = to;
	}
	return part;
}

static size_t good(const struct pair_list *l, const struct part *p)
{
	size_t n = 0;
	for (size_t i = p->from; i < p->to; i++)
		n += !l->pair[i].rejected;
	return n;
}

static void add_part(struct hull *h, struct pair_list *l, const struct part *p)
{
	for (size_t i = p->from; i < p->to; i++)
		if (!l->pair[i].rejected && hull_add(h, l->pair[i].side, l->pair[i].x, l->pair[i].y) == HULL_CONTRADICTS)
			l->pair[i].rejected = PAIR_SUSPECT;
}

/* Tries one line for both parts, built from the bigger one; the smaller one may lose a few pairs.  On success those
 * are rejected. */
static bool join(struct pair_list *l, const struct part *a, const struct part *b)
{
	size_t na = good(l, a), nb = good(l, b);
	const struct part *big = na >= nb ? a : b, *small = na >= nb ? b : a;
	size_t n = na >= nb ? nb : na, bad = 0, may = n / 16 < 2 ? 2 : n / 16;
	size_t *lost = mem_new(may + 1, sizeof *lost);
	struct hull h;
	hull_init(&h);
	add_part(&h, l, big);
	bool forward = small == b;
	for (size_t k = 0; k < small->to - small->from && bad <= may; k++) {
		size_t i = forward ? small->from + k : small->to - 1 - k;
		struct pair *p = &l->pair[i];
		if (!p->rejected && hull_add(&h, p->side, p->x, p->y) == HULL_CONTRADICTS)
			lost[bad++] = i;
	}
	hull_release(&h);
	for (size_t k = 0; k < bad && bad <= may; k++)
		l->pair[lost[k]].rejected = PAIR_SUSPECT;
	free(lost);
	return bad <= may;
}

void fit_pairs(struct pair_list *l, int64_t ref, struct clock_map *map)
{
	memset(map, 0, sizeof *map);
	size_t parts = 0, n = 0;
	drop_gross(l);
	struct part *part = split(l, &parts);
	for (size_t i = 0; i < parts; i++) {
		if (n > 0 && join(l, &part[n - 1], &part[i]))
			part[n - 1].to = part[i].to;
		else
			part[n++] = part[i];
	}
	map->piece = mem_new(n, sizeof *map->piece);
	for (size_t i = 0; i < n; i++) {
		struct clock_piece *p = &map->piece[map->pieces];
		struct hull h;
		hull_init(&h);
		add_part(&h, l, &part[i]);
		p->from = l->pair[part[i].from].x;
		if (hull_quality(&h) > SYNC_INCOMPLETE || n == 1) {
			hull_piece(&h, map->pieces == 0 ? ref : p->from, DRIFT_LIMIT_PPM, p);
			p->rejected = part[i].to - part[i].from - good(l, &part[i]);
			map->pieces++;
		}
		hull_release(&h);
	}
	free(part);
}

/* ---- clocks that wander */

#define LOCAL_PARTS 32
#define WANDER_PPM 20  /* by which a rate may swing about its mean: it leaves the line by a quarter of that at most */

/* How far from the piece's line the pairs of each part of its time let the clock be. */
struct local { int64_t low[LOCAL_PARTS], high[LOCAL_PARTS]; };

static void find_local(const struct pair_list *l, size_t from, size_t to, const struct clock_line *line, struct local *o)
{
	int64_t begin = l->pair[from].x, span = l->pair[to - 1].x - begin + 1;
	for (int k = 0; k < LOCAL_PARTS; k++) {
		o->low[k] = INT64_MIN;
		o->high[k] = INT64_MAX;
	}
	for (size_t i = from; i < to; i++) {
		const struct pair *p = &l->pair[i];
		int k = (int)((double)(p->x - begin) / (double)span * LOCAL_PARTS);
		int64_t off = p->y - clock_line_at(line, p->x);
		if (p->rejected || k < 0 || k >= LOCAL_PARTS)
			continue;
		if (p->side == HULL_UPPER && off < o->high[k])
			o->high[k] = off;
		if (p->side == HULL_LOWER && off > o->low[k])
			o->low[k] = off;
	}
}

static int by_value(const void *pa, const void *pb)
{
	int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;
	return a < b ? -1 : a > b;
}

static void widen_piece(const struct pair_list *l, size_t from, size_t to, struct clock_piece *p)
{
	struct local local;
	struct clock_map one = { p, 1 };
	int64_t width[LOCAL_PARTS], low = 0, high = 0;
	size_t n = 0;
	int64_t band = clock_map_band(&one, l->pair[from].x + (l->pair[to - 1].x - l->pair[from].x) / 2);
	find_local(l, from, to, &p->line, &local);
	for (int k = 0; k < LOCAL_PARTS; k++) {
		if (local.low[k] == INT64_MIN || local.high[k] == INT64_MAX)
			continue;
		width[n++] = local.high[k] - local.low[k];
		low = local.low[k] < low ? local.low[k] : low;
		high = local.high[k] > high ? local.high[k] : high;
	}
	if (n < LOCAL_PARTS / 2 || band < 0)
		return;
	qsort(width, n, sizeof *width, by_value);
	if (width[n / 2] <= 2 * band)
		return;
	int64_t may = (int64_t)((double)(l->pair[to - 1].x - l->pair[from].x) * WANDER_PPM / 4e6);
	/* The hull's own edges keep their shape: where no pair bounds them, at the ends above all, they say how far the
	 * line may turn, and that is no less true of a clock that wanders besides. */
	clock_edge_shift(&p->low, low < -may ? -may : low);
	clock_edge_shift(&p->high, high > may ? may : high);
}

void fit_widen(const struct pair_list *l, struct clock_map *map)
{
	size_t from = 0;
	for (size_t i = 0; i < map->pieces; i++) {
		size_t to = from;
		while (to < l->len && (i + 1 == map->pieces || l->pair[to].x < map->piece[i + 1].from))
			to++;
		if (to - from >= 8 * LOCAL_PARTS)
			widen_piece(l, from, to, &map->piece[i]);
		from = to;
	}
}

/* ---- thinning */

static bool is_vertex(const struct hull *h, const struct pair *p)
{
	const struct hull_chain *c = &h->side[p->side];
	struct hull_point q = { p->x - h->origin.x, p->y - h->origin.y };
	size_t lo = 0, hi = c->len;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (c->point[mid].x < q.x)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < c->len && c->point[lo].x == q.x && c->point[lo].y == q.y;
}

void pairs_thin(struct pair_list *l, size_t from, size_t block)
{
	bool *odd = mem_new(block, sizeof *odd);
	size_t n = from;
	for (; from < l->len; from += block) {
		size_t to = from + block < l->len ? from + block : l->len;
		struct hull h;
		hull_init(&h);
		for (size_t i = from; i < to; i++) {
			struct pair *p = &l->pair[i];
			odd[i - from] = p->rejected || hull_add(&h, p->side, p->x, p->y) == HULL_CONTRADICTS;
		}
		for (size_t i = from; i < to; i++)
			if (odd[i - from] || is_vertex(&h, &l->pair[i]))
				l->pair[n++] = l->pair[i];
		hull_release(&h);
	}
	l->len = n;
	free(odd);
}
