/* Loss by culprit and slice: the selected targets' gaps, and their VMM time. */
#include "base/base.h"
#include "compare/diff/ledger.h"

struct culprits {
	struct ledger *l;
	enum diff_kind kind;
	const char *target;
	struct map by_actor;     /* key of the actor -> index into `series` */
	struct series **series;
	size_t len, cap;
	unsigned slice;          /* slice of an interval's last end */
};

/* Series of the gap's culprit. The key has the parts of an actor that determine its name in reports: kind, machine and
 * name. */
static struct series *culprit_series(struct culprits *t, const struct gap_interval *p)
{
	char by[TARGET_TEXT];
	bool is_new;
	const uint64_t key = (uint64_t)p->actor.name << 32 | (uint64_t)(p->actor.machine + 1) << 8 | p->actor.kind;
	uint64_t *at = map_put(&t->by_actor, key, &is_new);
	if (is_new) {
		*at = t->len;
		*ARRAY_PUSH(t->series, t->len, t->cap) = ledger_series(t->l, t->kind, t->target, DIFF_LOST,
		                                                       ledger_actor(t->l->catalog, &p->actor, p->name, by));
	}
	return t->series[*at];
}

static int add_gap_interval(void *arg, const struct gap_interval *p)
{
	struct culprits *t = arg;
	if (!p)
		return 0;
	struct series *series = culprit_series(t, p);
	const int64_t *edge = t->l->edge;
	for (int64_t at = p->start, end; at <= p->end; at = end + 1) {
		if (at < edge[t->slice] || at >= edge[t->slice + 1])
			t->slice = ledger_slice(t->l, at);
		end = edge[t->slice + 1] - 1 < p->end ? edge[t->slice + 1] - 1 : p->end;
		series->num[t->slice] += (double)(end - at + 1);
	}
	return 0;
}

/* Splits the loss of a VM or thread by culprit. A VM loses the time that its vCPUs lose. */
static int add_row(struct ledger *l, enum diff_kind kind, const char *target, const struct target *s, struct error *err)
{
	struct culprits t = { .l = l, .kind = kind, .target = target };
	int rc = gap_each_interval_of(l->catalog, s, l->edge[0], l->edge[DIFF_SLICES] - 1, add_gap_interval, &t, err);
	for (unsigned k = 0; k < DIFF_SLICES && rc == 0; k++) {
		struct demand d;
		rc = demand_of(l->catalog, s, l->edge[k], l->edge[k + 1] - 1, &d, err);
		if (rc == 0 && d.vmm_ns)
			ledger_series(l, kind, target, DIFF_LOST, "hypervisor")->num[k] += (double)d.vmm_ns;
	}
	map_release(&t.by_actor);
	free(t.series);
	return rc;
}

int ledger_add_culprits(struct ledger *l, bool (*wanted)(void *arg, enum diff_kind kind, const char *target), void *arg,
                       struct error *err)
{
	struct summary s;
	const struct summary_options o = { .from = l->edge[0], .to = l->edge[DIFF_SLICES] - 1 };
	if (query_answer(summary_open(l->catalog, &o), &s, err))
		return -1;
	int rc = 0;
	for (size_t i = 0; i < s.rows && rc == 0; i++) {
		char target[TARGET_TEXT];
		const struct summary_row *row = &s.row[i];
		const enum diff_kind kind = i < s.machines ? DIFF_OF_MACHINE : DIFF_OF_THREAD;
		if (row->demand.lost == 0 || !wanted(arg, kind, ledger_target(l->catalog, &row->target, target)))
			continue;
		if (kind == DIFF_OF_THREAD || l->catalog->machine[row->target.index].kind == MACHINE_VM)
			rc = add_row(l, kind, target, &row->target, err);
	}
	summary_release(&s);
	return rc;
}
