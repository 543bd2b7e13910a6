/* Error bounds of the gaps in a provider row's lane.
 *
 * A gap [start, end] with bound b may begin and end earlier by up to b. So the vCPU was certainly taken within
 * [start, end - b], and possibly within [start - b, start - 1] and [end - b + 1, end]. */
#include "ui/widgets/provider_lane.h"

#include "base/base.h"

#define BOUND_MAX 1000000000  /* larger bounds are cut, ns */
#define GAPS_MAX 65536       /* more gaps in a window: their bounds are smaller than a cell */

/* Adds the time of [from, to] to the window's columns. */
static void add_columns(const struct view *v, int64_t from, int64_t to, int64_t *ns, int n)
{
	const int64_t first = from > v->t0 ? (from - v->t0) / v->step : 0;
	for (int64_t i = first; i < n; i++) {
		const int64_t begin = v->t0 + i * v->step, end = begin + v->step - 1;
		if (begin > to)
			break;
		if (max64(from, begin) <= min64(to, end))
			ns[i] += min64(to, end) - max64(from, begin) + 1;
	}
}

void provider_lane_mark_bounds(const struct app *app, uint32_t cpu, struct cell *cell, int n)
{
	const struct view *v = &app->view;
	struct history_cursor c;
	struct interval iv;
	int64_t *ns = mem_new((size_t)n + 1, sizeof *ns);
	const int64_t last = clamp64((int128)v->t0 + (int128)v->step * n + BOUND_MAX, INT64_MIN, INT64_MAX);
	unsigned gaps = 0;
	if (history_range(&c, app->h, app->catalog.cpu[cpu].steal_bound, v->t0, last, NULL) == 0)
		while (gaps < GAPS_MAX && history_range_next(&c, &iv, NULL) > 0) {
			if (iv.value <= 0)
				continue;
			const int64_t bound = min64(iv.value, BOUND_MAX);
			gaps++;
			add_columns(v, clamp64((int128)iv.start - bound, INT64_MIN, INT64_MAX), iv.start - 1, ns, n);
			add_columns(v, max64(iv.start, iv.end - bound), iv.end, ns, n);
		}
	for (int i = 0; i < n && gaps < GAPS_MAX; i++)
		if (ns[i] > v->step / 2)
			cell[i] = (struct cell){ CELL_PURE, VIS_UNKNOWN, VIS_UNKNOWN, 0 };
	free(ns);
}
