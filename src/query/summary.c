/* Who suffers: machines, then threads, by what was taken from them.
 *
 * Cost: two exact sums per row and nothing else, unless gaps are wanted.  Then each row is walked as for a steal matrix by
 * thread: its gaps, and within them who had the CPU.  The rows are shared out among the processors; what comes out does
 * not depend on how.  Memory: 8 bytes per gap of the row at hand, for the exact percentiles. */
#include "query/query_internal.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "query/stepped_query.h"
#include "query/culprit.h"
#include "query/top_culprit.h"

#define NO_ROW SIZE_MAX

struct summary_part {
	struct resolver r;
	bool open;
	size_t row;               /* at hand, or NO_ROW */
	struct gap_rows rows;     /* whose gaps are its gaps */
	size_t sub;               /* the one at hand */
	bool walking;
	struct gap_walk walk;
	int64_t *length;          /* of its gaps, ns */
	size_t lengths, length_cap;
	struct parties thieves;
	int64_t *taken;           /* by each of them, ns */
	size_t takens, taken_cap;
};

struct summary_inquiry {
	struct inquiry q;
	struct subject only;
	bool is_only, listed, gaps;
	atomic_size_t next;       /* row that nobody looks at yet */
	atomic_size_t done;
	uint8_t *by;              /* part that looked at a row: its names are meant */
	struct summary_part part[PARTS_MAX];
	struct summary answer;
	size_t cap;
};

/* ---- The rows and their demands ---------------------------------------------------------------------------------- */

static int add_row(struct summary_inquiry *s, const struct subject *who, struct error *err)
{
	const struct topo *topo = s->q.topo;
	struct summary_row row = { .who = *who, .thief = { -1, -1, 0, FLOW_RUNNING } };
	if (demand_of(topo, who, s->q.from, s->q.to, &row.demand, err) < 0)
		return -1;
	if (row.demand.alive == 0)
		return 0;
	if (topo_life(topo, who, &row.start, &row.end, err) < 0)
		return -1;
	row.start = row.start < s->q.from ? s->q.from : row.start;
	row.end = row.end > s->q.to ? s->q.to : row.end;
	*ARRAY_PUSH(s->answer.row, s->answer.rows, s->cap) = row;
	return 0;
}

static bool wanted(const struct summary_inquiry *s, const struct subject *who)
{
	return !s->is_only || subject_machine(s->q.topo, who) == subject_machine(s->q.topo, &s->only);
}

static int list_rows(struct summary_inquiry *s, struct error *err)
{
	const struct topo *topo = s->q.topo;
	struct summary *out = &s->answer;
	for (uint32_t i = 0; i < topo->machines; i++) {
		struct subject who = { SUBJECT_MACHINE, i };
		if (wanted(s, &who) && add_row(s, &who, err) < 0)
			return -1;
	}
	out->machines = out->rows;
	for (uint32_t i = 0; i < topo->threads; i++) {
		struct subject who = { SUBJECT_THREAD, i };
		if (topo->thread[i].tid != 0 && wanted(s, &who) && gap_is_own_thread(topo, i) && add_row(s, &who, err) < 0)
			return -1;
	}
	summary_sort(out, topo, SUMMARY_BY_LOST);
	s->by = mem_new(out->rows, sizeof *s->by);
	s->listed = true;
	return 0;
}

/* ---- The gaps of a row -------------------------------------------------------------------------------------------- */

static int add_piece(void *arg, const struct piece *p, int64_t start, int64_t end)
{
	struct summary_part *part = arg;
	uint32_t id = parties_put(&part->thieves, &p->who);
	while (part->takens <= id)
		*ARRAY_PUSH(part->taken, part->takens, part->taken_cap) = 0;
	part->taken[id] += end - start + 1;
	return 0;
}

/* Memory that grows with the trace: an error, not the end of the program. */
static int add_length(struct summary_part *part, int64_t ns, struct error *err)
{
	if (part->lengths == part->length_cap) {
		size_t n = part->length_cap ? 2 * part->length_cap : 256;
		int64_t *length = realloc(part->length, n * sizeof *length);
		if (!length)
			return error_set(err, STATUS_SYSTEM, "ask for a shorter window", "out of memory after %zu gaps", part->lengths);
		part->length = length;
		part->length_cap = n;
	}
	part->length[part->lengths++] = ns;
	return 0;
}

static int add_gap(struct summary_part *part, struct summary_row *row, const struct gap *gap, struct error *err)
{
	int64_t ns = gap->end - gap->start + 1;
	int64_t longest = row->gaps ? row->longest.end - row->longest.start + 1 : 0;
	if (ns > longest || (ns == longest && gap->start < row->longest.start))
		row->longest = *gap;
	row->gaps++;
	if (add_length(part, ns, err) < 0)
		return -1;
	return resolve_walk(&part->r, &gap->subject, gap->start, gap->end, add_piece, part);
}

static int by_length(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static void find_thief(const struct topo *topo, const struct summary_part *part, struct summary_row *row)
{
	struct thief thief;
	thief_find(topo, &row->who, part->thieves.party, part->taken, part->takens, &thief);
	row->thief = thief.who;
	row->thief_ns = thief.ns;
}

static void end_row(const struct topo *topo, struct summary_part *part, struct summary_row *row)
{
	size_t n = part->lengths;
	if (n) {
		qsort(part->length, n, sizeof *part->length, by_length);
		row->p50 = part->length[(n * 50 + 99) / 100 - 1];
		row->p90 = part->length[(n * 90 + 99) / 100 - 1];
		row->p99 = part->length[(n * 99 + 99) / 100 - 1];
		find_thief(topo, part, row);
	}
	if (row->who.kind == SUBJECT_MACHINE && row->demand.served > row->thief_ns) {
		row->thief = (struct party){ (int32_t)row->who.index, -1, 0, FLOW_HYPERVISOR };
		row->thief_ns = row->demand.served;
	}
	gap_rows_release(&part->rows);
	parties_release(&part->thieves);
	part->thieves = (struct parties){ 0 };
	part->takens = part->lengths = part->sub = 0;
	part->row = NO_ROW;
}

/* One gap, or the beginning of a row. */
static int go_on(struct summary_inquiry *s, struct summary_part *part, struct error *err)
{
	struct summary_row *row = &s->answer.row[part->row];
	if (part->sub == part->rows.len) {
		end_row(s->q.topo, part, row);
		atomic_fetch_add(&s->done, 1);
		return 0;
	}
	const struct subject *sub = &part->rows.row[part->sub].subject;
	struct gap gap = { .subject = *sub };
	int r = part->walking ? gap_walk_next(&part->walk, &gap, err)
	                      : gap_walk_start(&part->walk, s->q.topo, sub, s->q.from, s->q.to, err);
	if (r < 0 || (r && part->walking && add_gap(part, row, &gap, err) < 0))
		return -1;
	part->walking = r > 0;
	part->sub += r == 0;
	return 0;
}

static bool next_row(struct summary_inquiry *s, size_t i)
{
	struct summary_part *part = &s->part[i];
	size_t row = atomic_fetch_add(&s->next, 1);
	if (row >= s->answer.rows)
		return false;
	part->row = row;
	s->by[row] = (uint8_t)i;
	gap_rows_list(&part->rows, s->q.topo, &s->answer.row[row].who);
	return true;
}

static int walk(struct inquiry *q, size_t i, struct budget *budget, struct error *err)
{
	struct summary_inquiry *s = (struct summary_inquiry *)q;
	struct summary_part *part = &s->part[i];
	if (!s->listed)  /* the first time there is one part */
		return list_rows(s, err) < 0 ? -1 : 1;
	if (!part->open)
		resolver_init(&part->r, q->topo, q->from, q->to, err);
	part->open = true;
	while (!budget_spent(budget)) {
		if (part->row == NO_ROW && !next_row(s, i))
			return 1;
		if (go_on(s, part, err) < 0)
			return -1;
	}
	q->part[i].done = (double)atomic_load(&s->done) / (double)(s->answer.rows + 1);
	return 0;
}

/* ---- The answer --------------------------------------------------------------------------------------------------- */

/* The names of all parts, in those of the first. */
static void join_names(struct summary_inquiry *s)
{
	struct resolver *first = &s->part[0].r;
	for (size_t i = 0; i < s->answer.rows; i++) {
		struct party *thief = &s->answer.row[i].thief;
		if (s->by[i] != 0)
			thief->name = strtab_put(&first->names, strtab_get(&s->part[s->by[i]].r.names, thief->name));
	}
	resolver_give_names(first, &s->answer.name, &s->answer.names);
}

static int join(struct inquiry *q, struct error *err)
{
	struct summary_inquiry *s = (struct summary_inquiry *)q;
	(void)err;
	if (q->from > q->to || !s->gaps)
		return 1;
	if (s->part[0].open) {
		join_names(s);
		return 1;
	}
	/* The rows are there: their gaps now, side by side. */
	size_t workers = inquiry_parts(q);
	q->parts = workers < s->answer.rows ? workers : 1;
	for (size_t i = 0; i < q->parts; i++)
		s->part[i].row = NO_ROW;
	inquiry_restart(q);
	return 0;
}

static void close_summary(struct inquiry *q)
{
	struct summary_inquiry *s = (struct summary_inquiry *)q;
	for (size_t i = 0; i < PARTS_MAX; i++) {
		struct summary_part *part = &s->part[i];
		if (part->open)
			resolver_release(&part->r);
		gap_rows_release(&part->rows);
		parties_release(&part->thieves);
		free(part->length);
		free(part->taken);
	}
	free(s->by);
	summary_release(&s->answer);
}

static const struct inquiry_kind summary_inquiry = { walk, join, close_summary };

struct inquiry *summary_open(const struct topo *topo, const struct summary_options *o)
{
	struct summary_inquiry *s = mem_new(1, sizeof *s);
	int64_t from = o->from > history_begin(topo->h) ? o->from : history_begin(topo->h);
	int64_t to = o->to < history_end(topo->h) ? o->to : history_end(topo->h);
	inquiry_init(&s->q, &summary_inquiry, topo, from, to, 1);
	s->gaps = o->gaps;
	s->is_only = o->only != NULL;
	if (o->only)
		s->only = *o->only;
	s->answer = (struct summary){ .start = from, .end = to };
	return &s->q;
}

void summary_take(struct inquiry *q, struct summary *out)
{
	struct summary_inquiry *s = (struct summary_inquiry *)q;
	*out = s->answer;
	out->gaps = s->gaps;
	s->answer = (struct summary){ 0 };
}

int summary_of(const struct topo *topo, const struct summary_options *options, struct summary *out, struct error *err)
{
	struct inquiry *q = summary_open(topo, options);
	int status = inquiry_run(q, NULL, err);
	*out = (struct summary){ 0 };
	if (status == 0)
		summary_take(q, out);
	inquiry_close(q);
	return status;
}

void summary_release(struct summary *s)
{
	for (size_t i = 0; i < s->names; i++)
		free(s->name[i]);
	free(s->name);
	free(s->row);
	*s = (struct summary){ 0 };
}
