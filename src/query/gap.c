/* Gaps: maximal intervals in which a vCPU or thread wanted to run and could not.
 *
 * Finding the next one costs O(log n) however far it is, plus one stab per change of state inside the gap.
 * steal_time() is one exact sum per row, whatever the window. */
#include "query/query_internal.h"

#include <stdlib.h>

#include "base/mem.h"

uint32_t gap_attribute(const struct topo *topo, const struct subject *s, uint64_t *mask)
{
	*mask = s->kind == SUBJECT_CPU ? topo->vcpu_gap : topo->thread_gap;
	if (s->kind == SUBJECT_CPU)
		return topo->machine[topo->cpu[s->index].machine].kind == MACHINE_VM ? topo->cpu[s->index].status
		                                                                   : HISTORY_NONE;
	return s->kind == SUBJECT_THREAD ? topo->thread[s->index].status : HISTORY_NONE;
}

static bool in_mask(int64_t value, uint64_t mask)
{
	return value >= 0 && value < HISTORY_STATES && (mask >> value & 1);
}

struct grow {
	const struct history *h;
	uint32_t attr;
	uint64_t mask;
	int64_t sums[HISTORY_STATES];
	struct error *err;
};

/* Joins to the gap what stands before (direction < 0) or behind it and is a gap too. */
static int grow_gap(struct grow *g, struct gap *gap, int direction)
{
	struct interval iv;
	for (;;) {
		bool at_edge = direction < 0 ? gap->start <= history_begin(g->h) : gap->end >= history_end(g->h);
		if (at_edge)
			return 0;
		if (history_stab(g->h, g->attr, direction < 0 ? gap->start - 1 : gap->end + 1, &iv, g->err) < 0)
			return -1;
		if (!in_mask(iv.value, g->mask))
			return 0;
		g->sums[iv.value] += iv.end - iv.start + 1;
		if (direction < 0)
			gap->start = iv.start;
		else
			gap->end = iv.end;
	}
}

static void name_state(const struct grow *g, struct gap *gap)
{
	int longest = 0;
	for (int i = 1; i < HISTORY_STATES; i++)
		if (g->sums[i] > g->sums[longest])
			longest = i;
	gap->state = longest;
}

/* The whole gap that contains interval `iv`. */
static int gap_around(struct grow *g, const struct interval *iv, struct gap *out)
{
	for (int i = 0; i < HISTORY_STATES; i++)
		g->sums[i] = 0;
	g->sums[iv->value] = iv->end - iv->start + 1;
	out->start = iv->start;
	out->end = iv->end;
	if (grow_gap(g, out, -1) < 0 || grow_gap(g, out, 1) < 0)
		return -1;
	name_state(g, out);
	return 0;
}

int gap_find(const struct topo *topo, const struct subject *s, int64_t t, int direction, struct gap *out,
             struct error *err)
{
	struct grow g = { .h = topo->h, .err = err };
	struct interval iv;
	g.attr = gap_attribute(topo, s, &g.mask);
	out->subject = *s;
	if (g.attr == HISTORY_NONE || g.mask == 0)
		return 0;
	for (;;) {
		int found = direction > 0 ? history_next(topo->h, g.attr, t, g.mask, &iv, err)
		                          : history_prev(topo->h, g.attr, t, g.mask, &iv, err);
		if (found <= 0 || iv.start > history_end(topo->h) || iv.end < history_begin(topo->h))
			return found < 0 ? -1 : 0;
		if (gap_around(&g, &iv, out) < 0)
			return -1;
		/* The rest of the gap that t stands in is not the next one. */
		if (direction > 0 ? out->start > t : out->end < t)
			return 1;
		if (direction > 0 ? out->end >= history_end(topo->h) : out->start <= history_begin(topo->h))
			return 0;
		t = direction > 0 ? out->end : out->start;
	}
}

int gap_at(const struct topo *topo, const struct subject *s, int64_t t, struct gap *out, struct error *err)
{
	struct grow g = { .h = topo->h, .err = err };
	struct interval iv;
	g.attr = gap_attribute(topo, s, &g.mask);
	out->subject = *s;
	if (g.attr == HISTORY_NONE || t < history_begin(topo->h) || t > history_end(topo->h))
		return 0;
	if (history_stab(topo->h, g.attr, t, &iv, err) < 0)
		return -1;
	if (!in_mask(iv.value, g.mask))
		return 0;
	return gap_around(&g, &iv, out) < 0 ? -1 : 1;
}

static int row_time(const struct topo *topo, const struct subject *s, int64_t t0, int64_t t1, int64_t *ns,
                    struct error *err)
{
	int64_t sums[HISTORY_STATES];
	uint64_t mask;
	uint32_t attr = gap_attribute(topo, s, &mask);
	if (attr == HISTORY_NONE)
		return 0;
	if (history_sums(topo->h, attr, t0, t1, sums, err) < 0)
		return -1;
	for (int i = 0; i < HISTORY_STATES - 1; i++)
		if (mask >> i & 1)
			*ns += sums[i];
	return 0;
}

bool gap_is_own_thread(const struct topo *topo, uint32_t thread)
{
	const struct topo_thread *th = &topo->thread[thread];
	if (th->role >= 0)
		return false;
	if (topo->machine[th->machine].kind == MACHINE_HOST)
		for (uint32_t m = topo->machines; m-- > 0 && topo->machine[m].kind == MACHINE_CONTAINER;)
			if (topo_find_thread(topo, m, th->tid) >= 0)
				return false;
	return true;
}

int gap_each_row(const struct topo *topo, const struct subject *s, int (*fn)(void *arg, const struct subject *row),
                 void *arg)
{
	if (s->kind != SUBJECT_MACHINE)
		return fn(arg, s);
	const struct topo_machine *m = &topo->machine[s->index];
	struct subject row = { m->kind == MACHINE_VM ? SUBJECT_CPU : SUBJECT_THREAD, 0 };
	uint32_t first = m->kind == MACHINE_VM ? m->cpu : m->thread, n = m->kind == MACHINE_VM ? m->cpus : m->threads;
	for (row.index = first; row.index < first + n; row.index++) {
		if (row.kind == SUBJECT_THREAD && !gap_is_own_thread(topo, row.index))
			continue;
		int r = fn(arg, &row);
		if (r)
			return r;
	}
	return 0;
}

uint32_t subject_machine(const struct topo *topo, const struct subject *s)
{
	return s->kind == SUBJECT_MACHINE ? s->index : s->kind == SUBJECT_CPU ? topo->cpu[s->index].machine
	                                                                      : topo->thread[s->index].machine;
}

struct row_lister { struct gap_rows *rows; uint32_t victim; };

static int list_row(void *arg, const struct subject *row)
{
	struct row_lister *l = arg;
	*ARRAY_PUSH(l->rows->row, l->rows->len, l->rows->cap) = (struct gap_row){ *row, l->victim };
	return 0;
}

void gap_rows_list(struct gap_rows *rows, const struct topo *topo, const struct subject *s)
{
	*rows = (struct gap_rows){ 0 };
	for (uint32_t i = 0; i < (s ? 1 : topo->machines); i++) {
		struct subject machine = { SUBJECT_MACHINE, i };
		gap_each_row(topo, s ? s : &machine, list_row, &(struct row_lister){ rows, s ? subject_machine(topo, s) : i });
	}
}

void gap_rows_release(struct gap_rows *rows)
{
	free(rows->row);
	*rows = (struct gap_rows){ 0 };
}

int steal_time(const struct topo *topo, const struct subject *s, int64_t t0, int64_t t1, int64_t *ns,
               struct error *err)
{
	struct demand d;
	int status = demand_of(topo, s, t0, t1, &d, err);
	*ns = d.lost;
	return status;
}

int gap_walk_start(struct gap_walk *w, const struct topo *topo, const struct subject *row, int64_t from, int64_t to,
                   struct error *err)
{
	int64_t ns = 0;
	uint32_t attr = gap_attribute(topo, row, &w->mask);
	if (from > to || from > history_end(topo->h) || to < history_begin(topo->h))
		return 0;
	w->from = from < history_begin(topo->h) ? history_begin(topo->h) : from;
	w->to = to > history_end(topo->h) ? history_end(topo->h) : to;
	w->ahead = (struct interval){ 1, 0, 0 };
	w->done = false;
	w->at = w->n = 0;
	if (row_time(topo, row, w->from, w->to, &ns, err) < 0)
		return -1;
	if (ns == 0)
		return 0;
	return history_range(&w->cursor, topo->h, attr, w->from, w->to, err) < 0 ? -1 : 1;
}

int gap_walk_part(struct gap_walk *w, struct interval *iv, struct error *err)
{
	if (w->ahead.start <= w->ahead.end) {
		*iv = w->ahead;
		w->ahead = (struct interval){ 1, 0, 0 };
		return 1;
	}
	while (!w->done) {
		for (; w->at < w->n; w->at++) {
			if (!in_mask(w->read[w->at].value, w->mask))
				continue;
			*iv = w->read[w->at++];
			iv->start = iv->start < w->from ? w->from : iv->start;
			iv->end = iv->end > w->to ? w->to : iv->end;
			return 1;
		}
		w->at = 0;
		w->n = history_range_read(&w->cursor, w->read, sizeof w->read / sizeof *w->read, err);
		if (w->n < 0)
			return -1;
		w->done = w->n == 0;
	}
	return 0;
}

int gap_walk_next(struct gap_walk *w, struct gap *out, struct error *err)
{
	struct interval iv;
	struct grow g = { .mask = w->mask };
	int r = gap_walk_part(w, &iv, err);
	if (r <= 0)
		return r;
	out->start = iv.start;
	for (;;) {
		g.sums[iv.value] += iv.end - iv.start + 1;
		out->end = iv.end;
		r = gap_walk_part(w, &iv, err);
		if (r < 0)
			return -1;
		if (r == 0 || iv.start != out->end + 1)
			break;
	}
	if (r > 0)
		w->ahead = iv;
	name_state(&g, out);
	return 1;
}
