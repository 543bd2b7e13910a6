/* Clock of a nested guest: composes its clock to the outer guest with the outer guest's clock to the host.
 *
 * Segments are cut where either clock has a cut. A composed line is exact if one of the two has no drift; otherwise its
 * rounding and that of the two steps differ by up to 2 ns, and the error bounds are widened by 2 ns. */
#include "base/base.h"
#include "sync/sync.h"

#include "base/bisect.h"
#include "base/int128.h"

#define ONE ((int128)1 << 60)

/* Returns the line b(a(t)), with the reference point of the line that has a drift. */
static struct clock_line compose_lines(const struct clock_line *a, const struct clock_line *b)
{
	int128 drift = (int128)a->drift + b->drift + (((int128)a->drift * b->drift + ONE / 2) >> 60);
	struct clock_line line = { .ref_guest = a->ref_guest, .ref_host = clock_line_at(b, a->ref_host),
		.drift = saturate64(drift) };
	if (a->drift == 0) {
		line.ref_guest = saturate64((int128)b->ref_guest - a->ref_host + a->ref_guest);
		line.ref_host = b->ref_host;
	}
	return line;
}

/* Returns the smallest t with line(t) >= y. */
static int64_t invert_line(const struct clock_line *line, int64_t y)
{
	int128 up = ((int128)y - line->ref_host) * ONE, over = ONE + line->drift;
	return saturate64(up / over + (up % over > 0) + line->ref_guest);
}

/* Returns the smallest t with bound(t) >= y. */
static int64_t invert_edge(const struct clock_bound *e, int64_t y)
{
	size_t at;
	if (y <= e->point[0].host)
		return invert_line(&e->left, y);
	if (y >= e->point[e->points - 1].host)
		return invert_line(&e->right, y);
	BISECT(at, e->points, e->point[at].host <= y);
	struct clock_point a = e->point[at - 1], b = e->point[at];
	int128 up = ((int128)b.guest - a.guest) * ((int128)y - a.host), over = (int128)b.host - a.host;
	return saturate64(a.guest + up / over + (up % over > 0));
}

/* Composes two bounds: a polyline with the corners of both, in order of time. */
static struct clock_bound compose_edges(const struct clock_bound *a, const struct clock_bound *b)
{
	struct clock_bound edge = { .points = 0 };
	if (a->points == 0 || b->points == 0)
		return edge;
	edge.left = compose_lines(&a->left, &b->left);
	edge.right = compose_lines(&a->right, &b->right);
	edge.point = mem_new(a->points + b->points, sizeof *edge.point);
	for (size_t i = 0, k = 0; i < a->points || k < b->points; edge.points++) {
		if (k == b->points || (i < a->points && a->point[i].host <= b->point[k].guest)) {
			edge.point[edge.points] = (struct clock_point){ a->point[i].guest, clock_bound_at(b, a->point[i].host) };
			i++;
		} else {
			edge.point[edge.points] = (struct clock_point){ invert_edge(a, b->point[k].guest), b->point[k].host };
			k++;
		}
	}
	return edge;
}

static enum sync_quality worse_quality(enum sync_quality a, enum sync_quality b)
{
	return a < b ? a : b;
}

static struct clock_segment compose_segments(const struct clock_segment *a, const struct clock_segment *b)
{
	struct clock_segment p = {
		.line = compose_lines(&a->line, &b->line), .lowest = compose_lines(&a->lowest, &b->lowest),
		.highest = compose_lines(&a->highest, &b->highest), .low = compose_edges(&a->low, &b->low),
		.high = compose_edges(&a->high, &b->high), .quality = worse_quality(a->quality, b->quality),
	};
	clock_bound_shift(&p.low, -2);
	clock_bound_shift(&p.high, 2);
	return p;
}

static void set_inner_start(struct clock_segment *c, const struct clock_segment *inner)
{
	c->from = inner->from;
	c->ambiguous_from = inner->ambiguous_from;
	c->ambiguous_to = inner->ambiguous_to;
	c->placed = inner->placed;
	c->repeats = inner->repeats;
}

/* Sets the start of a segment that begins where the outer clock changes. `placed` stays false: the nested guest may have
 * events in the ambiguous interval even if the outer guest has none. */
static void set_outer_start(struct clock_segment *c, const struct clock_segment *inner, const struct clock_segment *outer,
                            int64_t from)
{
	const bool has_bounds = inner->low.points > 0 && inner->high.points > 0;
	c->from = c->ambiguous_from = c->ambiguous_to = from;
	if (outer->ambiguous_from == outer->ambiguous_to)
		return;
	c->ambiguous_from = has_bounds ? invert_edge(&inner->high, outer->ambiguous_from)
	                               : invert_line(&inner->line, outer->ambiguous_from);
	c->ambiguous_to = has_bounds ? invert_edge(&inner->low, outer->ambiguous_to)
	                             : invert_line(&inner->line, outer->ambiguous_to);
}

/* Returns the guest time at which *map reaches the outer time y. */
static int64_t invert_map(const struct clock_map *map, int64_t y)
{
	size_t i = map->segments - 1;
	while (i > 0 && invert_line(&map->segment[i].line, y) < map->segment[i].from)
		i--;
	return invert_line(&map->segment[i].line, y);
}

/* Restricts the error bounds to the times at which both clocks have bounds. */
static void restrict_known(struct clock_map *map, const struct clock_map *outer)
{
	if (outer->known_from == outer->known_to || map->segments == 0)
		return;
	clock_map_cut(map, invert_map(map, outer->known_from), invert_map(map, outer->known_to));
}

void clock_map_compose(struct clock_map *map, const struct clock_map *outer)
{
	struct clock_segment *segment = NULL;
	size_t segments = 0, cap = 0;
	if (outer->segments == 0)
		return;
	restrict_known(map, outer);
	for (size_t i = 0; i < map->segments; i++) {
		const struct clock_segment *p = &map->segment[i];
		bool last = i + 1 == map->segments;
		size_t first = segments;
		for (size_t k = 0; k < outer->segments; k++) {
			/* outer->segment[k] holds in [from, to) */
			int64_t from = k == 0 ? INT64_MIN : invert_line(&p->line, outer->segment[k].from);
			int64_t to = k + 1 == outer->segments ? INT64_MAX : invert_line(&p->line, outer->segment[k + 1].from);
			if (to <= p->from || (!last && from >= map->segment[i + 1].from))
				continue;
			struct clock_segment *c = ARRAY_PUSH(segment, segments, cap);
			*c = compose_segments(p, &outer->segment[k]);
			if (segments - 1 == first)
				set_inner_start(c, p);
			else
				set_outer_start(c, p, &outer->segment[k], from);
		}
		if (segments > first) {  /* the counts go to the first part only, so that each pair is counted once */
			segment[first].pairs_ab = p->pairs_ab;
			segment[first].pairs_cd = p->pairs_cd;
			segment[first].rejected = p->rejected;
		}
	}
	const int64_t from = map->known_from, to = map->known_to;
	clock_map_release(map);
	*map = (struct clock_map){ .segment = segment, .segments = segments, .known_from = from, .known_to = to };
}
