/* Gaps: maximal intervals in which a vCPU or thread was runnable and did not run.
 *
 * Cost: finding the next gap takes O(log n) at any distance, plus one lookup per change of state inside the gap;
 * steal_time() takes one exact sum per row for any window. */
#include "base/base.h"
#include "query/query_internal.h"

uint32_t gap_attribute(const struct catalog *catalog, const struct target *target, uint64_t *mask)
{
	*mask = target->kind == TARGET_CPU ? catalog->vcpu_gap : catalog->thread_gap;
	if (target->kind == TARGET_CPU)
		return catalog->machine[catalog->cpu[target->index].machine].kind == MACHINE_VM ? catalog->cpu[target->index].status
		                                                                   : HISTORY_NONE;
	return target->kind == TARGET_THREAD ? catalog->thread[target->index].status : HISTORY_NONE;
}

static bool state_in_mask(int64_t value, uint64_t mask)
{
	return value >= 0 && value < HISTORY_STATES && (mask >> value & 1);
}

struct gap_extent {
	const struct history *h;
	uint32_t attr;
	uint64_t mask;
	int64_t sums[HISTORY_STATES];
	struct error *err;
};

/* Extends the gap by the adjacent gap states before (direction < 0) or after it. */
static int gap_extend(struct gap_extent *g, struct gap *gap, int direction)
{
	struct interval iv;
	for (;;) {
		bool at_edge = direction < 0 ? gap->start <= history_begin(g->h) : gap->end >= history_end(g->h);
		if (at_edge)
			return 0;
		if (history_stab(g->h, g->attr, direction < 0 ? gap->start - 1 : gap->end + 1, &iv, g->err) < 0)
			return -1;
		if (!state_in_mask(iv.value, g->mask))
			return 0;
		g->sums[iv.value] += iv.end - iv.start + 1;
		if (direction < 0)
			gap->start = iv.start;
		else
			gap->end = iv.end;
	}
}

static void gap_set_state(const struct gap_extent *g, struct gap *gap)
{
	int longest = 0;
	for (int i = 1; i < HISTORY_STATES; i++)
		if (g->sums[i] > g->sums[longest])
			longest = i;
	gap->state = longest;
}

/* Finds the gap that contains the interval `iv`. */
static int gap_around(struct gap_extent *g, const struct interval *iv, struct gap *out)
{
	for (int i = 0; i < HISTORY_STATES; i++)
		g->sums[i] = 0;
	g->sums[iv->value] = iv->end - iv->start + 1;
	out->start = iv->start;
	out->end = iv->end;
	if (gap_extend(g, out, -1) < 0 || gap_extend(g, out, 1) < 0)
		return -1;
	gap_set_state(g, out);
	return 0;
}

int gap_find(const struct catalog *catalog, const struct target *target, int64_t t, int direction, struct gap *out,
             struct error *err)
{
	struct gap_extent g = { .h = catalog->h, .err = err };
	struct interval iv;
	g.attr = gap_attribute(catalog, target, &g.mask);
	out->target = *target;
	if (g.attr == HISTORY_NONE || g.mask == 0)
		return 0;
	for (;;) {
		int found = direction > 0 ? history_next(catalog->h, g.attr, t, g.mask, &iv, err)
		                          : history_prev(catalog->h, g.attr, t, g.mask, &iv, err);
		if (found <= 0 || iv.start > history_end(catalog->h) || iv.end < history_begin(catalog->h))
			return found < 0 ? -1 : 0;
		if (gap_around(&g, &iv, out) < 0)
			return -1;
		/* the next gap does not contain t */
		if (direction > 0 ? out->start > t : out->end < t)
			return 1;
		if (direction > 0 ? out->end >= history_end(catalog->h) : out->start <= history_begin(catalog->h))
			return 0;
		t = direction > 0 ? out->end : out->start;
	}
}

int gap_at(const struct catalog *catalog, const struct target *target, int64_t t, struct gap *out, struct error *err)
{
	struct gap_extent g = { .h = catalog->h, .err = err };
	struct interval iv;
	g.attr = gap_attribute(catalog, target, &g.mask);
	out->target = *target;
	if (g.attr == HISTORY_NONE || t < history_begin(catalog->h) || t > history_end(catalog->h))
		return 0;
	if (history_stab(catalog->h, g.attr, t, &iv, err) < 0)
		return -1;
	if (!state_in_mask(iv.value, g.mask))
		return 0;
	return gap_around(&g, &iv, out) < 0 ? -1 : 1;
}

/* Adds the time of the states in the mask. */
static int row_time(const struct catalog *catalog, uint32_t attr, uint64_t mask, int64_t t0, int64_t t1, int64_t *ns,
                    struct error *err)
{
	int64_t sums[HISTORY_STATES];
	if (attr == HISTORY_NONE)
		return 0;
	if (history_sums(catalog->h, attr, t0, t1, sums, err) < 0)
		return -1;
	for (int i = 0; i < HISTORY_STATES - 1; i++)
		if (mask >> i & 1)
			*ns += sums[i];
	return 0;
}

bool gap_is_own_thread(const struct catalog *catalog, uint32_t thread)
{
	const struct catalog_thread *th = &catalog->thread[thread];
	return th->role < 0 && !th->in_container;
}

int gap_each_row(const struct catalog *catalog, const struct target *target, int (*fn)(void *arg, const struct target *row),
                 void *arg)
{
	if (target->kind != TARGET_MACHINE)
		return fn(arg, target);
	const struct catalog_machine *m = &catalog->machine[target->index];
	struct target row = { m->kind == MACHINE_VM ? TARGET_CPU : TARGET_THREAD, 0 };
	uint32_t first = m->kind == MACHINE_VM ? m->cpu : m->thread, n = m->kind == MACHINE_VM ? m->cpus : m->threads;
	for (row.index = first; row.index < first + n; row.index++) {
		if (row.kind == TARGET_THREAD && !gap_is_own_thread(catalog, row.index))
			continue;
		int r = fn(arg, &row);
		if (r)
			return r;
	}
	return 0;
}

uint32_t target_machine(const struct catalog *catalog, const struct target *target)
{
	return target->kind == TARGET_MACHINE ? target->index : target->kind == TARGET_CPU ? catalog->cpu[target->index].machine
	                                                                      : catalog->thread[target->index].machine;
}

struct row_lister { struct gap_rows *rows; uint32_t victim; };

static int row_lister_add(void *arg, const struct target *row)
{
	struct row_lister *l = arg;
	*ARRAY_PUSH(l->rows->row, l->rows->len, l->rows->cap) = (struct gap_row){ *row, l->victim };
	return 0;
}

void gap_rows_list(struct gap_rows *rows, const struct catalog *catalog, const struct target *target)
{
	*rows = (struct gap_rows){ 0 };
	for (uint32_t i = 0; i < (target ? 1 : catalog->machines); i++) {
		struct target machine = { TARGET_MACHINE, i };
		gap_each_row(catalog, target ? target : &machine, row_lister_add,
		             &(struct row_lister){ rows, target ? target_machine(catalog, target) : i });
	}
}

void gap_rows_release(struct gap_rows *rows)
{
	free(rows->row);
	*rows = (struct gap_rows){ 0 };
}

int steal_time(const struct catalog *catalog, const struct target *target, int64_t t0, int64_t t1, int64_t *ns,
               struct error *err)
{
	struct demand d;
	int status = demand_of(catalog, target, t0, t1, &d, err);
	*ns = d.lost;
	return status;
}

int gap_walk_start(struct gap_walk *w, const struct catalog *catalog, const struct target *row, int64_t from, int64_t to,
                   struct error *err)
{
	uint64_t mask;
	(void)gap_attribute(catalog, row, &mask);
	return states_walk_start(w, catalog, row, mask, from, to, err);
}

int gap_first_time(const struct catalog *catalog, const struct target *row, int64_t from, int64_t to, int64_t *first,
                   struct error *err)
{
	uint64_t mask;
	struct interval iv;
	const uint32_t attr = gap_attribute(catalog, row, &mask);
	if (attr == HISTORY_NONE || mask == 0 || from > to)
		return 0;
	if (history_stab(catalog->h, attr, from, &iv, err) < 0)
		return -1;
	*first = from;
	if (state_in_mask(iv.value, mask))
		return 1;
	const int found = history_next(catalog->h, attr, from, mask, &iv, err);
	if (found > 0)
		*first = iv.start;
	return found > 0 ? iv.start <= to : found;
}

int states_walk_start(struct gap_walk *w, const struct catalog *catalog, const struct target *row, uint64_t mask,
                      int64_t from, int64_t to, struct error *err)
{
	int64_t ns = 0;
	uint64_t gaps;
	const uint32_t attr = gap_attribute(catalog, row, &gaps);
	w->mask = mask;
	if (from > to || from > history_end(catalog->h) || to < history_begin(catalog->h))
		return 0;
	w->from = from < history_begin(catalog->h) ? history_begin(catalog->h) : from;
	w->to = to > history_end(catalog->h) ? history_end(catalog->h) : to;
	w->ahead = (struct interval){ 1, 0, 0 };
	w->done = false;
	w->at = w->n = 0;
	if (row_time(catalog, attr, mask, w->from, w->to, &ns, err) < 0)
		return -1;
	if (ns == 0)
		return 0;
	return history_range(&w->cursor, catalog->h, attr, w->from, w->to, err) < 0 ? -1 : 1;
}

int gap_walk_next_state(struct gap_walk *w, struct interval *iv, struct error *err)
{
	if (w->ahead.start <= w->ahead.end) {
		*iv = w->ahead;
		w->ahead = (struct interval){ 1, 0, 0 };
		return 1;
	}
	while (!w->done) {
		for (; w->at < w->n; w->at++) {
			if (!state_in_mask(w->read[w->at].value, w->mask))
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
	int64_t sums[HISTORY_STATES], longest = 0;
	uint64_t states = 0;  /* states with a sum */
	int r = gap_walk_next_state(w, &iv, err);
	if (r <= 0)
		return r;
	out->start = iv.start;
	for (;;) {
		sums[iv.value] = (states >> iv.value & 1 ? sums[iv.value] : 0) + iv.end - iv.start + 1;
		states |= UINT64_C(1) << iv.value;
		out->end = iv.end;
		r = gap_walk_next_state(w, &iv, err);
		if (r < 0)
			return -1;
		if (r == 0 || iv.start != out->end + 1)
			break;
	}
	if (r > 0)
		w->ahead = iv;
	for (; states; states &= states - 1) {  /* chooses the first of equal sums, as gap_set_state() does */
		const int state = __builtin_ctzll(states);
		if (sums[state] > longest) {
			longest = sums[state];
			out->state = state;
		}
	}
	return 1;
}
