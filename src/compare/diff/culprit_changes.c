/* To whom time was lost, slice by slice: the culprits of the gaps of those whose loss changed, and the hypervisor that
 * serves. */
#include <stdlib.h>

#include "base/mem.h"
#include "compare/diff/ledger.h"

struct thieves {
	struct ledger *l;
	enum diff_kind kind;
	const char *subject;
	struct map by_party;     /* -> index into `series` */
	struct series **series;
	size_t len, cap;
	unsigned slice;          /* of the last piece */
};

/* What a party is told under hangs on its kind, its system and its name alone. */
static struct series *series_of(struct thieves *t, const struct gap_piece *p)
{
	char by[SUBJECT_TEXT];
	bool is_new;
	const uint64_t key = (uint64_t)p->who.name << 32 | (uint64_t)(p->who.system + 1) << 8 | p->who.kind;
	uint64_t *at = map_put(&t->by_party, key, &is_new);
	if (is_new) {
		*at = t->len;
		*ARRAY_PUSH(t->series, t->len, t->cap) = ledger_series(t->l, t->kind, t->subject, DIFF_LOST,
		                                                       ledger_party(t->l->topo, &p->who, p->name, by));
	}
	return t->series[*at];
}

static int add_piece(void *arg, const struct gap_piece *p)
{
	struct thieves *t = arg;
	if (!p)
		return 0;
	struct series *of = series_of(t, p);
	const int64_t *edge = t->l->edge;
	for (int64_t at = p->start, end; at <= p->end; at = end + 1) {
		if (at < edge[t->slice] || at >= edge[t->slice + 1])
			t->slice = ledger_slice(t->l, at);
		end = edge[t->slice + 1] - 1 < p->end ? edge[t->slice + 1] - 1 : p->end;
		of->num[t->slice] += (double)(end - at + 1);
	}
	return 0;
}

/* Of a VM, which loses what its vCPUs do, or of a thread. */
static int add_row(struct ledger *l, enum diff_kind kind, const char *subject, const struct subject *s, struct error *err)
{
	struct thieves t = { .l = l, .kind = kind, .subject = subject };
	int rc = gap_each_piece_of(l->topo, s, l->edge[0], l->edge[DIFF_SLICES] - 1, add_piece, &t, err);
	for (unsigned k = 0; k < DIFF_SLICES && rc == 0; k++) {
		struct demand d;
		rc = demand_of(l->topo, s, l->edge[k], l->edge[k + 1] - 1, &d, err);
		if (rc == 0 && d.served)
			ledger_series(l, kind, subject, DIFF_LOST, "hypervisor")->num[k] += (double)d.served;
	}
	map_release(&t.by_party);
	free(t.series);
	return rc;
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
		if (kind == DIFF_OF_THREAD || l->topo->machine[row->who.index].kind == MACHINE_VM)
			rc = add_row(l, kind, subject, &row->who, err);
	}
	summary_release(&s);
	return rc;
}
