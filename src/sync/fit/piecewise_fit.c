#include "sync/fit/piecewise_fit.h"

#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/int128.h"
#include "base/mem.h"
#include "sync/fit/error_bounds.h"

#define NEIGHBOURS 15       /* pairs of the other side that are asked, before and after */
#define SLACK_PPM 300       /* drift that two neighbours may show */
#define WANDER_PPM 0.1      /* of the piece's length: how far from a line a clock is believed to go that does not bend */
#define PARTS_MAX 128       /* a clock that changes more often is none; what comes after is one part */

struct fit_part {
	size_t from, to;  /* pairs [from, to) share a line */
	int64_t at;       /* guest ns from which on it holds */
};

static int64_t wander(int64_t span)
{
	return (int64_t)((double)span * WANDER_PPM / 1e6);
}

/* Does pair p contradict three quarters of the pairs q[0..n) of the other side? */
static bool against_bulk(const struct pair *p, const struct pair *const *q, size_t n)
{
	size_t agree = 0;
	for (size_t i = 0; i < n && agree <= n / 4; i++) {
		int64_t far = q[i]->x > p->x ? q[i]->x - p->x : p->x - q[i]->x;
		int64_t slack = far / 1000000 * SLACK_PPM + 1000;
		int64_t d = (q[i]->y - p->y) - (q[i]->x - p->x);
		agree += (p->side == HULL_UPPER ? d : -d) <= slack;
	}
	return agree <= n / 4;
}

/* Those that contradict the bulk of the other side both before and after them. */
static void reject_gross(struct pair_list *l)
{
	size_t n[2] = { 0, 0 }, at[2] = { 0, 0 };
	const struct pair **side[2] = { mem_resize(NULL, l->len, sizeof **side), mem_resize(NULL, l->len, sizeof **side) };
	for (size_t i = 0; i < l->len; i++)
		side[l->pair[i].side][n[l->pair[i].side]++] = &l->pair[i];
	for (size_t i = 0; i < l->len; i++) {
		struct pair *p = &l->pair[i];
		int other = p->side == HULL_UPPER ? HULL_LOWER : HULL_UPPER;
		size_t mid = at[other];  /* pairs of the other side before p */
		size_t before = mid < NEIGHBOURS ? mid : NEIGHBOURS;
		size_t after = n[other] - mid < NEIGHBOURS ? n[other] - mid : NEIGHBOURS;
		at[p->side]++;
		if (before < NEIGHBOURS / 3 && after < NEIGHBOURS / 3)
			continue;
		bool bad_before = before < NEIGHBOURS / 3 || against_bulk(p, side[other] + mid - before, before);
		if (bad_before && (after < NEIGHBOURS / 3 || against_bulk(p, side[other] + mid, after)))
			p->rejected = PAIR_GROSS;
	}
	free(side[0]);
	free(side[1]);
}

size_t fit_conflicts(const struct pair_list *l)
{
	const int64_t far = INT64_MAX / 2;  /* nothing bounds the clock there */
	const int64_t slack = l->len == 0 ? 0 : 1000 + 2 * wander(l->pair[l->len - 1].x - l->pair[0].x);
	int64_t most = far, least = -far;  /* what the stretch leaves to host - guest */
	size_t n = 0;
	for (size_t i = 0; i < l->len; i++) {
		const struct pair *p = &l->pair[i];
		const int64_t off = p->y - p->x, drift = i == 0 ? 0 : (p->x - p[-1].x) / (1000000 / DRIFT_LIMIT_PPM) + 1;
		most += drift;
		least -= drift;
		if (p->side == HULL_UPPER && off < most)
			most = off;
		if (p->side == HULL_LOWER && off > least)
			least = off;
		if (most + slack >= least)
			continue;
		n++;
		most = far;
		least = -far;
	}
	return n;
}

static enum hull_effect offer(const struct pair_list *l, const struct pair *p, struct hull *h)
{
	return hull_add(h, p->side, p->x, p->side == HULL_UPPER ? p->y + l->slack : p->y - l->slack);
}

/* Splits the pairs into parts that a line fits; pairs that fit nowhere are rejected.  *last: the hull of the last part. */
static struct fit_part *split(struct pair_list *l, size_t *parts, struct hull *last)
{
	struct fit_part *part = NULL;
	size_t cap = 0, from = 0;
	*parts = 0;
	hull_init(last);
	while (from < l->len) {
		hull_release(last);
		size_t run[2] = { 0, 0 }, first[2] = { 0, 0 }, to = l->len, i;
		for (i = from; i < l->len; i++) {
			struct pair *p = &l->pair[i];
			if (p->rejected)
				continue;
			if (offer(l, p, last) != HULL_CONTRADICTS) {
				run[p->side] = 0;
				continue;
			}
			if (run[p->side]++ == 0)
				first[p->side] = i;
			p->rejected = PAIR_SUSPECT;
			if (run[p->side] == FIT_SUSPECTS && *parts + 1 < PARTS_MAX) {
				to = first[p->side];
				break;
			}
		}
		for (size_t k = to; k <= i && k < l->len && to < l->len; k++)
			if (l->pair[k].rejected == PAIR_SUSPECT)
				l->pair[k].rejected = PAIR_GOOD;  /* another chance, in the next part */
		if (to == from)
			to = from + 1;  /* cannot happen: the first pair of a hull never contradicts */
		*ARRAY_PUSH(part, *parts, cap) = (struct fit_part){ from, to, l->pair[from].x };
		from = to;
	}
	return part;
}

static size_t good(const struct pair_list *l, const struct fit_part *p)
{
	size_t n = 0;
	for (size_t i = p->from; i < p->to; i++)
		n += !l->pair[i].rejected;
	return n;
}

static void add_part(struct hull *h, struct pair_list *l, const struct fit_part *p)
{
	for (size_t i = p->from; i < p->to; i++)
		if (!l->pair[i].rejected && offer(l, &l->pair[i], h) == HULL_CONTRADICTS)
			l->pair[i].rejected = PAIR_SUSPECT;
}

/* Tries one line for both parts, built from the bigger one; the smaller one may lose a few pairs.  On success those
 * are rejected. */
static bool join(struct pair_list *l, const struct fit_part *a, const struct fit_part *b)
{
	size_t na = good(l, a), nb = good(l, b);
	const struct fit_part *big = na >= nb ? a : b, *small = na >= nb ? b : a;
	size_t n = na >= nb ? nb : na, bad = 0, may = n / 16 < 2 ? 2 : n / 16;
	size_t *lost = mem_new(may + 1, sizeof *lost);
	struct hull h;
	hull_init(&h);
	add_part(&h, l, big);
	bool forward = small == b;
	for (size_t k = 0; k < small->to - small->from && bad <= may; k++) {
		size_t i = forward ? small->from + k : small->to - 1 - k;
		struct pair *p = &l->pair[i];
		if (!p->rejected && offer(l, p, &h) == HULL_CONTRADICTS)
			lost[bad++] = i;
	}
	hull_release(&h);
	for (size_t k = 0; k < bad && bad <= may; k++)
		l->pair[lost[k]].rejected = PAIR_SUSPECT;
	free(lost);
	return bad <= may;
}

/* ---- clocks that bend: another rate, but no step */

static void part_piece(struct pair_list *l, const struct fit_part *p, int64_t ref, struct clock_piece *piece)
{
	struct hull h;
	hull_init(&h);
	add_part(&h, l, p);
	hull_piece(&h, ref, DRIFT_LIMIT_PPM, piece);
	hull_release(&h);
}

static void piece_release(struct clock_piece *p)
{
	free(p->low.point);
	free(p->high.point);
}

/* Where two lines meet, within from..to, and how long before and after that they are nearer to each other than `room`. */
static bool meeting(const struct clock_line *a, const struct clock_line *b, int64_t room, int64_t from, int64_t to,
                    int64_t *at, int64_t *guard)
{
	int128 turn = (int128)b->drift - a->drift, one = (int128)1 << 60;
	int128 gap = (int128)clock_line_at(a, from) - clock_line_at(b, from);
	if (turn == 0)
		return false;
	int128 t = gap * one / turn, g = (turn > 0 ? room : -(int128)room) * one / turn;
	if (t < 0 || t > (int128)to - from)
		return false;
	*at = from + (int64_t)t;
	*guard = g > (to - from) / 8 ? (to - from) / 8 : (int64_t)g;
	return true;
}

/* Pairs of both parts that their lines contradict, after another try for those that did so before. */
static size_t contradicted(struct pair_list *l, const struct fit_part *a, const struct fit_part *b)
{
	size_t n = 0;
	for (size_t i = a->from; i < b->to; i++)
		if (l->pair[i].rejected == PAIR_SUSPECT)
			l->pair[i].rejected = PAIR_GOOD;
	const struct fit_part *part[2] = { a, b };
	for (int k = 0; k < 2; k++) {
		struct hull h;
		hull_init(&h);
		add_part(&h, l, part[k]);
		hull_release(&h);
		n += part[k]->to - part[k]->from - good(l, part[k]);
	}
	return n;
}

/* When the clock bent rather than stepped, the lines before and after meet.  Then that is when, and the pairs about
 * it, which may be of either line, count for neither. */
static void place_bend(struct pair_list *l, struct fit_part *a, struct fit_part *b)
{
	struct clock_piece before = { 0 }, after = { 0 };
	const struct fit_part old[2] = { *a, *b };
	int64_t first = l->pair[a->from].x, last = l->pair[b->to - 1].x, at, guard;
	size_t to = b->to, bad = contradicted(l, a, b);
	part_piece(l, a, b->at, &before);
	part_piece(l, b, b->at, &after);
	struct clock_map one = { .piece = &before, .pieces = 1 }, two = { .piece = &after, .pieces = 1 };
	int64_t room = (clock_map_band(&one, b->at) + clock_map_band(&two, b->at)) / 2;
	bool meet = room > 0 && meeting(&before.line, &after.line, room, first, last, &at, &guard);
	piece_release(&before);
	piece_release(&after);
	if (!meet)
		return;
	for (a->to = a->from; a->to < to && l->pair[a->to].x < at - guard; a->to++)
		;
	for (b->from = a->to; b->from < to && l->pair[b->from].x <= at + guard; b->from++)
		;
	b->at = at;
	if (a->to > a->from && b->from < to && contradicted(l, a, b) <= bad)
		return;
	*a = old[0];
	*b = old[1];
	(void)contradicted(l, a, b);
}

/* The lines of the parts, and their corridors.  h: the hull of the part, if there is but one, or an empty one; it is used
 * up. */
static void make_pieces(struct pair_list *l, const struct fit_part *part, size_t n, struct hull *h, int64_t ref,
                        struct clock_map *map)
{
	map->piece = mem_new(n, sizeof *map->piece);
	for (size_t i = 0; i < n; i++) {
		struct clock_piece *p = &map->piece[map->pieces];
		if (!h->started)
			add_part(h, l, &part[i]);
		p->from = part[i].at;
		if (hull_quality(h) > SYNC_INCOMPLETE || n == 1) {
			hull_piece(h, map->pieces == 0 ? ref : p->from, DRIFT_LIMIT_PPM, p);
			p->rejected = part[i].to - part[i].from - good(l, &part[i]);
			map->pieces++;
		}
		hull_release(h);
	}
}

/* ---- clocks that jump */

bool fit_jumps(const struct clock_map *clock, size_t i)
{
	int64_t at = clock->piece[i].from, low, high, low_before, high_before;
	return !clock_piece_bounds(&clock->piece[i], at, &low, &high)
	       || !clock_piece_bounds(&clock->piece[i - 1], at - 1, &low_before, &high_before)
	       || low > high_before + JUMP_NS || low_before > high + JUMP_NS;
}

static bool contradicts(const struct pair *p, const struct clock_line *line)
{
	int64_t off = p->y - clock_line_at(line, p->x);
	return !p->rejected && (p->side == HULL_UPPER ? off < 0 : off > 0);
}

static size_t pairs_before(const struct pair_list *l, int64_t x)
{
	size_t at;
	BISECT(at, l->len, l->pair[at].x < x);
	return at;
}

void fit_jump_limits(const struct pair_list *l, struct clock_map *clock, size_t i, int64_t begin, int64_t end)
{
	struct clock_piece *p = &clock->piece[i];
	p->unsure_from = (i == 1 ? begin : p[-1].from) + 1;
	p->unsure_to = i + 1 == clock->pieces ? end : p[1].from;
	for (size_t k = pairs_before(l, p->unsure_from); k < l->len; k++) {
		int64_t x = l->pair[k].x;
		if (x >= p->from && x >= p->unsure_to)
			break;
		if (x >= p->unsure_from && x < p->from && contradicts(&l->pair[k], &p->line))
			p->unsure_from = x + 1;
		if (x < p->unsure_to && x >= p->from && contradicts(&l->pair[k], &p[-1].line))
			p->unsure_to = x;
	}
	p->placed = p->repeats = false;
}

static void fit_once(struct pair_list *l, int64_t ref, struct clock_map *map)
{
	memset(map, 0, sizeof *map);
	for (size_t i = 0; i < l->len; i++)
		if (l->pair[i].rejected == PAIR_SUSPECT)
			l->pair[i].rejected = PAIR_GOOD;
	size_t parts = 0, n = 0;
	struct hull hull;
	struct fit_part *part = split(l, &parts, &hull);
	if (parts > 1)
		hull_release(&hull);
	for (size_t i = 0; i < parts; i++) {
		if (n > 0 && join(l, &part[n - 1], &part[i]))
			part[n - 1].to = part[i].to;
		else
			part[n++] = part[i];
	}
	for (size_t i = 1; i < n; i++)
		place_bend(l, &part[i - 1], &part[i]);
	make_pieces(l, part, n, &hull, ref, map);
	for (size_t i = 1; i < map->pieces; i++)
		if (fit_jumps(map, i))
			fit_jump_limits(l, map, i, l->pair[0].x, l->pair[l->len - 1].x);
	free(part);
}

/* ---- clocks that wander
 *
 * The pairs of a short time leave the clock a width that does not depend on whether it runs evenly.  One that swings by
 * s about its line leaves all pairs together a corridor that is narrower by 2 s: so narrow a corridor is no virtue.
 * When it is less than half as wide, the pairs are given slack until it is not; then the clock is within the slack of a
 * line that all pairs bear. */

/* Widens the corridors of the pieces; returns the slack that the pairs should have had. */
static int64_t widen(const struct pair_list *l, struct clock_map *map)
{
	int64_t slack = l->slack;
	for (size_t i = 0, from = 0, to; i < map->pieces; i++, from = to) {
		struct clock_piece *p = &map->piece[i];
		int64_t by = l->slack;
		for (to = from; to < l->len && (i + 1 == map->pieces || l->pair[to].x < map->piece[i + 1].from); to++)
			;
		if (from == to)
			continue;
		const int64_t span = l->pair[to - 1].x - l->pair[from].x;
		const int64_t band = clock_map_band(&(struct clock_map){ .piece = p, .pieces = 1 }, l->pair[from].x + span / 2);
		const int64_t local = corridor_width(l->pair + from, to - from, p);
		if (local < 0 || band < 0)
			continue;
		const int64_t most = wander(span);
		/* By the time it is obvious that the clock swings, a quarter more than the width shows is cheap. */
		int64_t lacks = l->slack == 0 ? (2 * band < local ? local - band : 0) : local + local / 4 - band;
		int64_t want = l->slack + lacks / 2 < most ? l->slack + lacks / 2 : most;
		slack = want > slack ? want : slack;
		if (local > band)
			by += local - band < most ? local - band : most;
		clock_edge_shift(&p->low, -by);
		clock_edge_shift(&p->high, by);
	}
	return slack;
}

void fit_pairs(struct pair_list *l, int64_t ref, struct clock_map *map)
{
	reject_gross(l);
	l->slack = 0;
	fit_once(l, ref, map);
	for (int64_t slack; (slack = widen(l, map)) > l->slack;) {
		l->slack = slack;
		clock_map_release(map);
		fit_once(l, ref, map);
	}
}

/* By how much the rates of two pieces beside each other differ; one that suits both is no difference where it jumps. */
static int64_t turn_of(const struct clock_piece *a, const struct clock_piece *b, bool jumps)
{
	const bool apart = a->lowest.drift > b->highest.drift || b->lowest.drift > a->highest.drift;
	return apart || !jumps ? llabs(a->line.drift - b->line.drift) : 0;
}

/* How the clock bends at the ends of piece i. */
static struct corridor_bend bend_of(const struct pair_list *l, const struct clock_map *map, size_t i)
{
	struct corridor_bend b = { .bends = map->pieces > 1 };
	const bool before = i > 0 && !fit_jumps(map, i), after = i + 1 < map->pieces && !fit_jumps(map, i + 1);
	const size_t from = before ? i - 1 : i, to = after ? i + 1 : i;
	const int64_t earlier = i > 0 ? turn_of(&map->piece[i - 1], &map->piece[i], !before) : 0;
	const int64_t later = i + 1 < map->pieces ? turn_of(&map->piece[i], &map->piece[i + 1], !after) : 0;
	b.turn = earlier > later ? earlier : later;
	const size_t first = from == 0 ? 0 : pairs_before(l, map->piece[from].from);
	const size_t end = to + 1 == map->pieces ? l->len : pairs_before(l, map->piece[to + 1].from);
	b.pair = l->pair + first;
	b.n = end - first;
	return b;
}

void fit_open(const struct pair_list *l, struct clock_map *map)
{
	struct corridor_bend *bend = mem_new(map->pieces, sizeof *bend);
	for (size_t i = 0; i < map->pieces; i++)
		bend[i] = bend_of(l, map, i);
	for (size_t i = 0, from = 0, to = 0; i < map->pieces; i++, from = to) {
		for (; to < l->len && (i + 1 == map->pieces || l->pair[to].x < map->piece[i + 1].from); to++)
			;
		const int64_t last = i + 1 == map->pieces ? INT64_MIN : map->piece[i + 1].from - 1;
		corridor_open(l->pair + from, to - from, &bend[i], last, &map->piece[i]);
	}
	free(bend);
}

/* ---- thinning */

static bool is_vertex(const struct hull *h, const struct pair *p)
{
	const struct hull_chain *c = &h->side[p->side];
	struct hull_point q = { p->x - h->origin.x, p->y - h->origin.y };
	size_t at;
	BISECT(at, c->len, c->point[at].x < q.x);
	return at < c->len && c->point[at].x == q.x && c->point[at].y == q.y;
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
