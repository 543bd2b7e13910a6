/* Clock lines and piecewise clocks: guest time -> host time. */
#include "sync/sync.h"

#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/int128.h"
#include "base/mem.h"

const char *const sync_quality_name[] = { "ABSENT", "INCOMPLETE", "APPROXIMATE", "ACCURATE", "FAIL" };
const char *const sync_method_name[] = { "auto", "events", "containment", "offset", "none", "tsc" };
const char *const vcpu_evidence_name[] = {
	"session", "trace-cmd", "sync events", "thread name", "containment", "order of thread ids", "kvm vcpu_id",
};

static int64_t clamp64(int128 v)
{
	return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (int64_t)v;
}

int64_t clock_line_at(const struct clock_line *line, int64_t guest_ns)
{
	int128 dt = (int128)guest_ns - line->ref_guest;
	int128 bent = (dt * line->drift) >> 60;  /* rounds down, also below zero */
	return clamp64(dt + bent + line->ref_host);
}

double clock_line_ppm(const struct clock_line *line)
{
	return (double)line->drift / (double)(INT64_C(1) << 60) * 1e6;
}

static const struct clock_piece *piece_at(const struct clock_map *map, int64_t guest_ns)
{
	size_t at;
	BISECT(at, map->pieces, map->piece[at].from <= guest_ns);
	return &map->piece[at > 0 ? at - 1 : 0];
}

int64_t clock_map_at(const struct clock_map *map, int64_t guest_ns)
{
	if (map->pieces == 0)
		return guest_ns;
	return clock_line_at(&(map->pieces == 1 ? map->piece : piece_at(map, guest_ns))->line, guest_ns);
}

void clock_edge_shift(struct clock_edge *edge, int64_t ns)
{
	edge->left.ref_host += ns;
	edge->right.ref_host += ns;
	for (size_t i = 0; i < edge->points; i++)
		edge->point[i].host += ns;
}

/* Between two of its points: the one at `at` and the one before. */
static int64_t between(const struct clock_edge *e, size_t at, int64_t t)
{
	const struct clock_point a = e->point[at - 1], b = e->point[at];
	int64_t rise, over, up;  /* mostly they fit; a division of 128 bits is slow */
	if (!__builtin_sub_overflow(b.host, a.host, &rise) && !__builtin_sub_overflow(b.guest, a.guest, &over)
	    && !__builtin_mul_overflow(rise, t - a.guest, &up))
		return a.host + up / over - (up % over < 0);
	int128 far_up = ((int128)b.host - a.host) * ((int128)t - a.guest), far_over = (int128)b.guest - a.guest;
	return clamp64(a.host + far_up / far_over - (far_up % far_over < 0));
}

static int64_t edge_near(const struct clock_edge *e, int64_t t, size_t *near)
{
	if (t <= e->point[0].guest)
		return clock_line_at(&e->left, t);
	if (t >= e->point[e->points - 1].guest)
		return clock_line_at(&e->right, t);
	size_t at = *near;
	if (at == 0 || at >= e->points || e->point[at - 1].guest > t || e->point[at].guest <= t)
		BISECT(at, e->points, e->point[at].guest <= t);
	*near = at;
	return between(e, at, t);
}

int64_t clock_edge_at(const struct clock_edge *e, int64_t t)
{
	size_t near = 0;
	return edge_near(e, t, &near);
}

static bool piece_bounds(const struct clock_piece *p, int64_t guest_ns, struct clock_near *near, int64_t *low,
                         int64_t *high)
{
	if (p->low.points == 0 || p->high.points == 0)
		return false;
	*low = edge_near(&p->low, guest_ns, &near->low) - 1;  /* the lines are rounded to the ns */
	*high = edge_near(&p->high, guest_ns, &near->high) + 1;
	return *low <= *high;
}

bool clock_piece_bounds(const struct clock_piece *p, int64_t guest_ns, int64_t *low, int64_t *high)
{
	return piece_bounds(p, guest_ns, &(struct clock_near){ 0 }, low, high);
}

/* The piece whose beginning is unsure at that time, of the one that holds and the one after it; or NULL. */
static const struct clock_piece *unsure_at(const struct clock_map *map, int64_t guest_ns)
{
	const struct clock_piece *p = piece_at(map, guest_ns), *end = map->piece + map->pieces;
	for (const struct clock_piece *q = p; q < end && q <= p + 1; q++)
		if (q > map->piece && guest_ns >= q->unsure_from && guest_ns < q->unsure_to)
			return q;
	return NULL;
}

bool clock_map_knows(const struct clock_map *map, int64_t guest_ns)
{
	return map->known_from == map->known_to || (guest_ns >= map->known_from && guest_ns <= map->known_to);
}

bool clock_map_cut(struct clock_map *map, int64_t from, int64_t to)
{
	const bool everywhere = map->known_from == map->known_to;
	map->known_from = everywhere || from > map->known_from ? from : map->known_from;
	map->known_to = everywhere || to < map->known_to ? to : map->known_to;
	return map->known_from < map->known_to;
}

bool clock_map_unsure(const struct clock_map *map, int64_t guest_ns)
{
	return map->pieces > 1 && unsure_at(map, guest_ns);
}

bool clock_map_bounds(const struct clock_map *map, int64_t guest_ns, int64_t *low, int64_t *high)
{
	const struct clock_piece *unsure = map->pieces > 1 ? unsure_at(map, guest_ns) : NULL;
	int64_t also_low, also_high;
	if (map->pieces == 0 || !clock_map_knows(map, guest_ns))
		return false;
	if (!unsure)
		return clock_piece_bounds(piece_at(map, guest_ns), guest_ns, low, high);
	if (!clock_piece_bounds(unsure - 1, guest_ns, low, high) ||
	    !clock_piece_bounds(unsure, guest_ns, &also_low, &also_high))
		return false;
	*low = also_low < *low ? also_low : *low;
	*high = also_high > *high ? also_high : *high;
	return true;
}

bool clock_map_bounds_near(const struct clock_map *map, int64_t guest_ns, struct clock_near *near, int64_t *low,
                           int64_t *high)
{
	if (map->pieces == 1 && clock_map_knows(map, guest_ns))
		return piece_bounds(map->piece, guest_ns, near, low, high);
	return clock_map_bounds(map, guest_ns, low, high);
}

int64_t clock_map_band(const struct clock_map *map, int64_t guest_ns)
{
	int64_t low, high;
	return clock_map_bounds(map, guest_ns, &low, &high) ? high - low : -1;
}

void clock_map_shift(struct clock_map *map, int64_t ns)
{
	for (size_t i = 0; i < map->pieces; i++) {
		struct clock_piece *p = &map->piece[i];
		struct clock_edge *edge[2] = { &p->low, &p->high };
		p->line.ref_host += ns;
		p->lowest.ref_host += ns;
		p->highest.ref_host += ns;
		for (int k = 0; k < 2; k++)
			clock_edge_shift(edge[k], ns);
	}
}

void clock_map_copy(struct clock_map *to, const struct clock_map *from)
{
	*to = *from;
	to->piece = mem_new(from->pieces, sizeof *to->piece);
	for (size_t i = 0; i < from->pieces; i++) {
		to->piece[i] = from->piece[i];
		struct clock_edge *edge[2] = { &to->piece[i].low, &to->piece[i].high };
		for (int k = 0; k < 2; k++) {
			struct clock_point *point = edge[k]->point;
			edge[k]->point = mem_new(edge[k]->points, sizeof *point);
			if (edge[k]->points > 0)
				memcpy(edge[k]->point, point, edge[k]->points * sizeof *point);
		}
	}
}

void clock_map_release(struct clock_map *map)
{
	for (size_t i = 0; i < map->pieces; i++) {
		free(map->piece[i].low.point);
		free(map->piece[i].high.point);
	}
	free(map->piece);
	*map = (struct clock_map){ .piece = NULL };
}
