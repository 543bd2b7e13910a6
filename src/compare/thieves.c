/* To whom time was lost, slice by slice: the culprits of the gaps of those whose loss changed, and the hypervisor that
 * serves. */
#include <stdlib.h>

#include "compare/ledger.h"

/* Of a VM, which loses what its vCPUs do, or of a thread. */
static int add_row(struct ledger *l, enum diff_kind kind, const char *subject, const struct subject *s, struct error *err)
{
	for (unsigned k = 0; k < DIFF_SLICES; k++) {
		struct gap_list gaps;
		const struct gap_options slice = { .from = l->edge[k], .to = l->edge[k + 1] - 1 };
		if (gap_list_of(l->topo, s, &slice, &gaps, err))
			return -1;
		for (size_t i = 0; i < gaps.culprits; i++) {
			char by[SUBJECT_TEXT];
			const struct party *who = &gaps.culprit[i].who;
			struct series *of = ledger_series(l, kind, subject, DIFF_LOST,
			                                  ledger_party(l->topo, who, gaps.name[who->name], by));
			of->num[k] += (double)gaps.culprit[i].duration;
		}
		gap_list_release(&gaps);
		struct demand d;
		if (demand_of(l->topo, s, slice.from, slice.to, &d, err))
			return -1;
		if (d.served)
			ledger_series(l, kind, subject, DIFF_LOST, "hypervisor")->num[k] += (double)d.served;
	}
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
		if (kind == DIFF_OF_THREAD || l->topo->machine[row->who.index].kind == MACHINE_VM)
			rc = add_row(l, kind, subject, &row->who, err);
	}
	summary_release(&s);
	return rc;
}
