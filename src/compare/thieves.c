/* To whom time was lost, slice by slice: the flows of those whose loss changed. */
#include <stdlib.h>

#include "base/mem.h"
#include "compare/ledger.h"

static bool is_loss(const struct party *p)
{
	return p->kind != FLOW_RUNNING && p->kind != FLOW_WAITING;
}

/* The series of every entry, NULL for what is no loss. */
static struct series **series_of(struct ledger *l, const struct flow *f, enum diff_kind kind, const char *subject)
{
	struct series **out = mem_new(f->entries, sizeof *out);
	for (size_t i = 0; i < f->entries; i++) {
		char by[SUBJECT_TEXT];
		const struct party *who = &f->entry[i].who;
		if (is_loss(who))
			out[i] = ledger_series(l, kind, subject, DIFF_LOST, ledger_party(l->topo, who, f->name[who->name], by));
	}
	return out;
}

/* Of a CPU or a thread that is there in the window.  Cells are parts of the window asked for, and a thread's are cut to
 * its life: then the pieces themselves are booked. */
static int add_row(struct ledger *l, enum diff_kind kind, const char *subject, const struct subject *s, struct error *err)
{
	struct flow f;
	const int64_t from = l->edge[0], to = l->edge[DIFF_SLICES] - 1;
	int64_t start, end;
	int there = topo_life(l->topo, s, &start, &end, err);
	if (there <= 0 || start > to || end < from)
		return there < 0 ? -1 : 0;
	const bool cut = start > from || end < to;
	const struct flow_options o = { .intervals = cut ? SIZE_MAX : 0, .columns = cut ? 0 : DIFF_SLICES };
	if (flow_of(l->topo, s, from, to, &o, &f, err))
		return -1;
	struct series **to_series = series_of(l, &f, kind, subject);
	for (size_t i = 0; i < f.cells; i++)
		if (to_series[f.cell[i].entry])
			to_series[f.cell[i].entry]->num[f.cell[i].column] += (double)f.cell[i].ns;
	for (size_t i = 0; i < f.intervals; i++) {
		const struct flow_interval *iv = &f.interval[i];
		struct series *of = to_series[iv->entry];
		for (unsigned k = ledger_slice(l, iv->start); of && k < DIFF_SLICES && l->edge[k] <= iv->end; k++) {
			int64_t a = iv->start > l->edge[k] ? iv->start : l->edge[k];
			int64_t b = iv->end < l->edge[k + 1] ? iv->end : l->edge[k + 1] - 1;
			of->num[k] += (double)(b - a + 1);
		}
	}
	free(to_series);
	flow_release(&f);
	return 0;
}

/* What a machine loses its vCPUs lose; of the host and of containers the threads tell. */
static int add_machine(struct ledger *l, const char *subject, uint32_t machine, struct error *err)
{
	const struct topo_machine *m = &l->topo->machine[machine];
	for (uint32_t i = m->cpu; m->kind == MACHINE_VM && i < m->cpu + m->cpus; i++)
		if (add_row(l, DIFF_OF_MACHINE, subject, &(struct subject){ SUBJECT_CPU, i }, err))
			return -1;
	return 0;
}

int ledger_add_thieves(struct ledger *l, bool (*wanted)(void *arg, enum diff_kind kind, const char *subject), void *arg,
                       struct error *err)
{
	struct summary s;
	const struct summary_options o = { .from = l->edge[0], .to = l->edge[DIFF_SLICES] - 1 };
	if (summary_of(l->topo, &o, &s, err))
		return -1;
	int rc = 0;
	for (size_t i = 0; i < s.rows && rc == 0; i++) {
		char subject[SUBJECT_TEXT];
		const struct summary_row *row = &s.row[i];
		const enum diff_kind kind = i < s.machines ? DIFF_OF_MACHINE : DIFF_OF_THREAD;
		if (row->demand.lost == 0 || !wanted(arg, kind, ledger_subject(l->topo, &row->who, subject)))
			continue;
		rc = kind == DIFF_OF_MACHINE ? add_machine(l, subject, row->who.index, err)
		                             : add_row(l, kind, subject, &row->who, err);
	}
	summary_release(&s);
	return rc;
}
