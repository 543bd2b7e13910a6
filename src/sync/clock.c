/* Clock lines and piecewise linear clocks: guest time to host time. */
#include "base/base.h"
#include "sync/sync.h"

#include "base/bisect.h"
#include "base/int128.h"

const char *const sync_quality_name[] = { "ABSENT", "INCOMPLETE", "APPROXIMATE", "ACCURATE" };
const char *const sync_method_name[] = { "auto", "events", "containment", "offset", "none", "tsc" };
const char *const vcpu_evidence_name[] = {
	"session", "trace-cmd", "sync events", "thread name", "containment", "order of thread ids", "kvm vcpu_id",
	"hypervisor",
};

#define REASON_ROW(code, name, text, advice) [SYNC_REASON_##code] = { name, text, advice },
const struct sync_reason_row sync_reason_row[SYNC_REASON_COUNT] = { { "", "", "" }, SYNC_REASONS(REASON_ROW) };

int64_t clock_line_at(const struct clock_line *line, int64_t guest_ns)
{
	int128 dt = (int128)guest_ns - line->ref_guest;
	int128 drifted = (dt * line->drift) >> 60;  /* rounds down, also below zero */
	return saturate64(dt + drifted + line->ref_host);
}

double clock_line_ppm(const struct clock_line *line)
{
	return (double)line->drift / (double)(INT64_C(1) << 60) * 1e6;
}

static const struct clock_segment *segment_at(const struct clock_map *map, int64_t guest_ns)
{
	size_t at;
	BISECT(at, map->segments, map->segment[at].from <= guest_ns);
	return &map->segment[at > 0 ? at - 1 : 0];
}

int64_t clock_map_at(const struct clock_map *map, int64_t guest_ns)
{
	if (map->segments == 0)
		return guest_ns;
	return clock_line_at(&(map->segments == 1 ? map->segment : segment_at(map, guest_ns))->line, guest_ns);
}

void clock_bound_shift(struct clock_bound *edge, int64_t ns)
{
	edge->left.ref_host += ns;
	edge->right.ref_host += ns;
	for (size_t i = 0; i < edge->points; i++)
		edge->point[i].host += ns;
}

/* Interpolates the bound between point[at - 1] and point[at]. */
static int64_t interpolate_bound(const struct clock_bound *e, size_t at, int64_t t)
{
	const struct clock_point a = e->point[at - 1], b = e->point[at];
	int64_t rise, over, up;  /* host and guest distance between the points; 64 bits are usually enough, and a 128-bit
	                          * division is slow */
	if (!__builtin_sub_overflow(b.host, a.host, &rise) && !__builtin_sub_overflow(b.guest, a.guest, &over)
	    && !__builtin_mul_overflow(rise, t - a.guest, &up))
		return a.host + up / over - (up % over < 0);
	int128 far_up = ((int128)b.host - a.host) * ((int128)t - a.guest), far_over = (int128)b.guest - a.guest;
	return saturate64(a.host + far_up / far_over - (far_up % far_over < 0));
}

static int64_t edge_at_hint(const struct clock_bound *e, int64_t t, size_t *hint)
{
	if (t <= e->point[0].guest)
		return clock_line_at(&e->left, t);
	if (t >= e->point[e->points - 1].guest)
		return clock_line_at(&e->right, t);
	size_t at = *hint;
	if (at == 0 || at >= e->points || e->point[at - 1].guest > t || e->point[at].guest <= t)
		BISECT(at, e->points, e->point[at].guest <= t);
	*hint = at;
	return interpolate_bound(e, at, t);
}

int64_t clock_bound_at(const struct clock_bound *e, int64_t t)
{
	size_t hint = 0;
	return edge_at_hint(e, t, &hint);
}

static bool segment_bounds_hint(const struct clock_segment *p, int64_t guest_ns, struct clock_hint *hint, int64_t *low,
                                int64_t *high)
{
	if (p->low.points == 0 || p->high.points == 0)
		return false;
	*low = edge_at_hint(&p->low, guest_ns, &hint->low) - 1;  /* 1 ns more on both sides, because lines are rounded to the
	                                                          * ns */
	*high = edge_at_hint(&p->high, guest_ns, &hint->high) + 1;
	return *low <= *high;
}

bool clock_segment_bounds(const struct clock_segment *p, int64_t guest_ns, int64_t *low, int64_t *high)
{
	return segment_bounds_hint(p, guest_ns, &(struct clock_hint){ 0 }, low, high);
}

/* Returns the segment with a start that is ambiguous at that time; NULL: none. Only the segment that holds and its
 * successor qualify. */
static const struct clock_segment *ambiguous_start_at(const struct clock_map *map, int64_t guest_ns)
{
	const struct clock_segment *p = segment_at(map, guest_ns), *end = map->segment + map->segments;
	for (const struct clock_segment *q = p; q < end && q <= p + 1; q++)
		if (q > map->segment && guest_ns >= q->ambiguous_from && guest_ns < q->ambiguous_to)
			return q;
	return NULL;
}

bool clock_map_has_bounds(const struct clock_map *map, int64_t guest_ns)
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

bool clock_map_is_ambiguous(const struct clock_map *map, int64_t guest_ns)
{
	return map->segments > 1 && ambiguous_start_at(map, guest_ns);
}

bool clock_map_bounds(const struct clock_map *map, int64_t guest_ns, int64_t *low, int64_t *high)
{
	const struct clock_segment *unsure = map->segments > 1 ? ambiguous_start_at(map, guest_ns) : NULL;
	int64_t also_low, also_high;
	if (map->segments == 0 || !clock_map_has_bounds(map, guest_ns))
		return false;
	if (!unsure)
		return clock_segment_bounds(segment_at(map, guest_ns), guest_ns, low, high);
	if (!clock_segment_bounds(unsure - 1, guest_ns, low, high) ||
	    !clock_segment_bounds(unsure, guest_ns, &also_low, &also_high))
		return false;
	*low = also_low < *low ? also_low : *low;
	*high = also_high > *high ? also_high : *high;
	return true;
}

bool clock_map_bounds_hint(const struct clock_map *map, int64_t guest_ns, struct clock_hint *hint, int64_t *low,
                           int64_t *high)
{
	if (map->segments == 1 && clock_map_has_bounds(map, guest_ns))
		return segment_bounds_hint(map->segment, guest_ns, hint, low, high);
	return clock_map_bounds(map, guest_ns, low, high);
}

/* ---- Distances: events that follow each other within one window need no conversion of each time ------------------- */

#define STEADY_BITS 9  /* a steady clock drifts by less than 2^-9 */

static bool is_line_steady(const struct clock_line *line)
{
	const int64_t limit = INT64_C(1) << (60 - STEADY_BITS);
	return line->drift > -limit && line->drift < limit;
}

/* Returns true if a bound never decreases, and rises by at most 2 ns more than a steady line. */
static bool is_bound_steady(const struct clock_bound *e)
{
	if (e->points == 0 || !is_line_steady(&e->left) || !is_line_steady(&e->right))
		return false;
	const struct clock_point first = e->point[0], last = e->point[e->points - 1];
	const int128 before = (int128)first.host - clock_line_at(&e->left, first.guest);
	const int128 after = (int128)clock_line_at(&e->right, last.guest) - last.host;
	bool steady = before >= 0 && before <= 1 && after >= 0 && after <= 1;
	for (size_t i = 1; i < e->points && steady; i++) {
		const int128 over = (int128)e->point[i].guest - e->point[i - 1].guest;
		const int128 rise = (int128)e->point[i].host - e->point[i - 1].host;
		steady = over > 0 && rise >= 0 && rise - over <= over >> STEADY_BITS;
	}
	return steady;
}

bool clock_map_is_steady(const struct clock_map *map)
{
	return map->segments == 1 && is_line_steady(&map->segment->line);
}

bool clock_map_has_steady_bounds(const struct clock_map *map)
{
	return map->segments == 1 && is_bound_steady(&map->segment->low) && is_bound_steady(&map->segment->high);
}

int64_t clock_steady_distance(int64_t host_ns)
{
	return host_ns - (host_ns >> (STEADY_BITS - 1)) - 8;
}

int64_t clock_map_error_width(const struct clock_map *map, int64_t guest_ns)
{
	int64_t low, high;
	return clock_map_bounds(map, guest_ns, &low, &high) ? high - low : -1;
}

void clock_map_shift(struct clock_map *map, int64_t ns)
{
	for (size_t i = 0; i < map->segments; i++) {
		struct clock_segment *p = &map->segment[i];
		struct clock_bound *edge[2] = { &p->low, &p->high };
		p->line.ref_host += ns;
		p->lowest.ref_host += ns;
		p->highest.ref_host += ns;
		for (int k = 0; k < 2; k++)
			clock_bound_shift(edge[k], ns);
	}
}

void clock_map_copy(struct clock_map *to, const struct clock_map *from)
{
	*to = *from;
	to->segment = mem_new(from->segments, sizeof *to->segment);
	for (size_t i = 0; i < from->segments; i++) {
		to->segment[i] = from->segment[i];
		struct clock_bound *edge[2] = { &to->segment[i].low, &to->segment[i].high };
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
	for (size_t i = 0; i < map->segments; i++) {
		free(map->segment[i].low.point);
		free(map->segment[i].high.point);
	}
	free(map->segment);
	*map = (struct clock_map){ .segment = NULL };
}
