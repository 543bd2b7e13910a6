/* All gaps with whoever had the CPU meanwhile, streamed.
 *
 * Cost: as the steal matrix by thread.  Memory: the resolver's. */
#include "query/query_internal.h"

#include <stdlib.h>

struct each {
	const struct topo *topo;
	struct resolver r;
	int (*fn)(void *arg, const struct gap_piece *p);
	void *arg;
	struct gap_piece piece;   /* at hand, not yet told */
	struct piece last;        /* the same, as the resolver has it */
	bool open;
};

static int tell(struct each *e)
{
	if (!e->open)
		return 0;
	e->open = false;
	e->piece.who = e->last.who;
	e->piece.name = strtab_get(&e->r.names, e->last.who.name);
	e->piece.pcpu = e->last.pcpu;
	return e->fn(e->arg, &e->piece);
}

/* Pieces of the same party are one. */
static int add_piece(void *arg, const struct piece *p, int64_t start, int64_t end)
{
	struct each *e = arg;
	int stop = 0;
	if (!e->open || !piece_same(&e->last, p)) {
		stop = tell(e);
		e->last = *p;
		e->piece.start = start;
		e->open = true;
	}
	e->piece.end = end;
	return stop;
}

static int each_gap(struct each *e, const struct gap_row *row, int64_t from, int64_t to, struct error *err)
{
	struct gap_walk walk;
	struct gap gap = { .subject = row->subject };
	int r = gap_walk_start(&walk, e->topo, &row->subject, from, to, err);
	if (r <= 0)
		return r;
	bool thread = row->subject.kind == SUBJECT_THREAD;
	e->piece = (struct gap_piece){ .gap = &gap, .victim = thread ? topo_longest_name(e->topo, row->subject.index) : NULL,
		.of_machine = !thread || e->topo->machine[row->victim].kind != MACHINE_VM };
	while ((r = gap_walk_next(&walk, &gap, err)) > 0) {
		r = resolve_walk(&e->r, &row->subject, gap.start, gap.end, add_piece, e);
		if (r == 0)
			r = tell(e);
		if (r)
			return r;
	}
	return r;
}

/* What gap_each_row() leaves out of VMs. */
static int each_guest_thread(struct each *e, int64_t from, int64_t to, const struct progress *progress, uint64_t done,
                             uint64_t total, struct error *err)
{
	const struct topo *topo = e->topo;
	int r = 0;
	for (uint32_t i = 0; i < topo->threads && r == 0; i++) {
		const struct gap_row row = { { SUBJECT_THREAD, i }, topo->thread[i].machine };
		if (topo->machine[row.victim].kind != MACHINE_VM || !gap_is_own_thread(topo, i))
			continue;
		if (progress->tick && progress->tick(progress->arg, "gaps", done + i, total))
			return error_set(err, STATUS_CANCELLED, NULL, "cancelled");
		r = each_gap(e, &row, from, to, err);
	}
	return r;
}

int gap_each_piece(const struct topo *topo, int64_t from, int64_t to, int (*fn)(void *arg, const struct gap_piece *p),
                   void *arg, const struct progress *progress, struct error *err)
{
	struct each e = { .topo = topo, .fn = fn, .arg = arg };
	struct gap_rows rows;
	int r = 0;
	gap_rows_list(&rows, topo, NULL);
	resolver_init(&e.r, topo, from, to, err);
	uint64_t total = rows.len + topo->threads;
	for (size_t i = 0; i < rows.len && r == 0; i++) {
		if (progress->tick && progress->tick(progress->arg, "gaps", i, total))
			r = error_set(err, STATUS_CANCELLED, NULL, "cancelled");
		else
			r = each_gap(&e, &rows.row[i], from, to, err);
	}
	if (r == 0)
		r = each_guest_thread(&e, from, to, progress, rows.len, total, err);
	if (r == 0)
		r = fn(arg, NULL);
	resolver_release(&e.r);
	gap_rows_release(&rows);
	return r;
}

int gap_each_piece_of(const struct topo *topo, const struct subject *s, int64_t from, int64_t to,
                      int (*fn)(void *arg, const struct gap_piece *p), void *arg, struct error *err)
{
	struct each e = { .topo = topo, .fn = fn, .arg = arg };
	struct gap_rows rows;
	int r = 0;
	gap_rows_list(&rows, topo, s);
	resolver_init(&e.r, topo, from, to, err);
	for (size_t i = 0; i < rows.len && r == 0; i++)
		r = each_gap(&e, &rows.row[i], from, to, err);
	if (r == 0)
		r = fn(arg, NULL);
	resolver_release(&e.r);
	gap_rows_release(&rows);
	return r;
}
