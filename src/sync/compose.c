/* The clock of a guest inside a guest: to the clock of the guest that runs it, and by that one's clock on to the host's.
 *
 * Pieces are cut where either clock has a cut.  A composed line is exact where one of the two is a mere offset; else its
 * rounding and that of the two steps may differ by 2 ns, by which the corridor is wider than the sum of both. */
#include "sync/sync.h"

#include <string.h>

#include "base/bisect.h"
#include "base/int128.h"
#include "base/mem.h"

#define ONE ((int128)1 << 60)

static int64_t clamp64(int128 v)
{
	return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (int64_t)v;
}

/* b(a(t)).  The point of reference is that of the line which bends. */
static struct clock_line line_of(const struct clock_line *a, const struct clock_line *b)
{
	int128 drift = (int128)a->drift + b->drift + (((int128)a->drift * b->drift + ONE / 2) >> 60);
	struct clock_line line = { .ref_guest = a->ref_guest, .ref_host = clock_line_at(b, a->ref_host),
		.drift = clamp64(drift) };
	if (a->drift == 0) {
		line.ref_guest = clamp64((int128)b->ref_guest - a->ref_host + a->ref_guest);
		line.ref_host = b->ref_host;
	}
	return line;
}

/* The least t with line(t) >= y. */
static int64_t line_until(const struct clock_line *line, int64_t y)
{
	int128 up = ((int128)y - line->ref_host) * ONE, over = ONE + line->drift;
	return clamp64(up / over + (up % over > 0) + line->ref_guest);
}

/* The same for an edge. */
static int64_t edge_until(const struct clock_edge *e, int64_t y)
{
	size_t at;
	if (y <= e->point[0].host)
		return line_until(&e->left, y);
	if (y >= e->point[e->points - 1].host)
		return line_until(&e->right, y);
	BISECT(at, e->points, e->point[at].host <= y);
	struct clock_point a = e->point[at - 1], b = e->point[at];
	int128 up = ((int128)b.guest - a.guest) * ((int128)y - a.host), over = (int128)b.host - a.host;
	return clamp64(a.guest + up / over + (up % over > 0));
}

/* Both edges' corners, in order of time. */
static struct clock_edge edge_of(const struct clock_edge *a, const struct clock_edge *b)
{
	struct clock_edge edge = { .points = 0 };
	if (a->points == 0 || b->points == 0)
		return edge;
	edge.left = line_of(&a->left, &b->left);
	edge.right = line_of(&a->right, &b->right);
	edge.point = mem_new(a->points + b->points, sizeof *edge.point);
	for (size_t i = 0, k = 0; i < a->points || k < b->points; edge.points++) {
		if (k == b->points || (i < a->points && a->point[i].host <= b->point[k].guest)) {
			edge.point[edge.points] = (struct clock_point){ a->point[i].guest, clock_edge_at(b, a->point[i].host) };
			i++;
		} else {
			edge.point[edge.points] = (struct clock_point){ edge_until(a, b->point[k].guest), b->point[k].host };
			k++;
		}
	}
	return edge;
}

static enum sync_quality worse(enum sync_quality a, enum sync_quality b)
{
	if (a == SYNC_FAIL || b == SYNC_FAIL)
		return SYNC_FAIL;
	return a < b ? a : b;
}

static struct clock_piece piece_of(const struct clock_piece *a, const struct clock_piece *b)
{
	struct clock_piece p = {
		.line = line_of(&a->line, &b->line), .lowest = line_of(&a->lowest, &b->lowest),
		.highest = line_of(&a->highest, &b->highest), .low = edge_of(&a->low, &b->low),
		.high = edge_of(&a->high, &b->high), .quality = worse(a->quality, b->quality),
	};
	clock_edge_shift(&p.low, -2);
	clock_edge_shift(&p.high, 2);
	return p;
}

static void begin_as(struct clock_piece *c, const struct clock_piece *inner)
{
	c->from = inner->from;
	c->unsure_from = inner->unsure_from;
	c->unsure_to = inner->unsure_to;
	c->placed = inner->placed;
	c->repeats = inner->repeats;
}

/* A piece that begins where the outer clock changes: there the inner guest may have events though the outer has none. */
static void begin_with(struct clock_piece *c, const struct clock_piece *inner, const struct clock_piece *outer,
                       int64_t from)
{
	const bool banded = inner->low.points > 0 && inner->high.points > 0;
	c->from = c->unsure_from = c->unsure_to = from;
	if (outer->unsure_from == outer->unsure_to)
		return;
	c->unsure_from = banded ? edge_until(&inner->high, outer->unsure_from) : line_until(&inner->line, outer->unsure_from);
	c->unsure_to = banded ? edge_until(&inner->low, outer->unsure_to) : line_until(&inner->line, outer->unsure_to);
}

/* The time of *map at which that of the outer guest is reached. */
static int64_t map_until(const struct clock_map *map, int64_t y)
{
	size_t i = map->pieces - 1;
	while (i > 0 && line_until(&map->piece[i].line, y) < map->piece[i].from)
		i--;
	return line_until(&map->piece[i].line, y);
}

/* Known where both are. */
static void know_less(struct clock_map *map, const struct clock_map *outer)
{
	if (outer->known_from == outer->known_to || map->pieces == 0)
		return;
	clock_map_cut(map, map_until(map, outer->known_from), map_until(map, outer->known_to));
}

void clock_map_compose(struct clock_map *map, const struct clock_map *outer)
{
	struct clock_piece *piece = NULL;
	size_t pieces = 0, cap = 0;
	if (outer->pieces == 0)
		return;
	know_less(map, outer);
	for (size_t i = 0; i < map->pieces; i++) {
		const struct clock_piece *p = &map->piece[i];
		bool last = i + 1 == map->pieces;
		size_t first = pieces;
		for (size_t k = 0; k < outer->pieces; k++) {
			/* outer->piece[k] holds from `from` to before `to`. */
			int64_t from = k == 0 ? INT64_MIN : line_until(&p->line, outer->piece[k].from);
			int64_t to = k + 1 == outer->pieces ? INT64_MAX : line_until(&p->line, outer->piece[k + 1].from);
			if (to <= p->from || (!last && from >= map->piece[i + 1].from))
				continue;
			struct clock_piece *c = ARRAY_PUSH(piece, pieces, cap);
			*c = piece_of(p, &outer->piece[k]);
			if (pieces - 1 == first)
				begin_as(c, p);
			else
				begin_with(c, p, &outer->piece[k], from);
		}
		if (pieces > first) {  /* what counts pairs counts them once */
			piece[first].pairs_ab = p->pairs_ab;
			piece[first].pairs_cd = p->pairs_cd;
			piece[first].rejected = p->rejected;
		}
	}
	const int64_t from = map->known_from, to = map->known_to;
	clock_map_release(map);
	*map = (struct clock_map){ .piece = piece, .pieces = pieces, .known_from = from, .known_to = to };
}
