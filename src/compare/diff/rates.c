/* What machines and threads ran and lost, and how often they were made to wait, slept and exited, slice by slice.
 *
 * Ran and lost come from the state sums: O(slices log n) a row.  Gaps and wakes are counted in one walk over the statuses,
 * exits in one over those of the vCPUs. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"
#include "compare/diff/ledger.h"

#define READ 256  /* intervals at once */

static int add_demand(struct ledger *l, enum diff_kind kind, const struct subject *s, const char *subject,
                      struct error *err)
{
	int64_t ran[DIFF_SLICES] = { 0 }, lost[DIFF_SLICES] = { 0 };
	if (demand_cells(l->topo, s, l->edge, DIFF_SLICES, ran, lost, err))
		return -1;
	struct series *r = ledger_series(l, kind, subject, DIFF_RAN, ""), *w = ledger_series(l, kind, subject, DIFF_LOST, "");
	const struct topo_machine *m = kind == DIFF_OF_MACHINE ? &l->topo->machine[s->index] : NULL;
	const double most = !m ? 1 : m->kind == MACHINE_VM ? m->cpus : 0;
	r->most += most;
	w->most += most;
	for (unsigned i = 0; i < DIFF_SLICES; i++) {
		r->num[i] += (double)ran[i];
		w->num[i] += (double)lost[i];
	}
	return 0;
}

/* ---- Counts */

/* What a change from one state to the next one is. */
struct counting {
	struct series *gaps, *wakes, *lost;
	struct chance_walk walk;
	uint64_t gap, asleep, awake;  /* states, in the numbers of the file */
};

static void waits_add(struct waits *to, const struct waits *more)
{
	to->ns += more->ns;
	to->squares += more->squares;
}

static bool in(uint64_t mask, int64_t state)
{
	return state >= 0 && state < HISTORY_STATES && (mask >> state & 1);
}

static int count(struct ledger *l, uint32_t attr, struct counting *c, struct error *err)
{
	struct history_cursor cursor;
	struct interval iv[READ];
	const int64_t from = l->edge[0], to = l->edge[DIFF_SLICES] - 1;
	int64_t before = HISTORY_NULL;
	unsigned slice = 0;
	c->walk = (struct chance_walk){ 0 };
	if (attr == HISTORY_NONE)
		return 0;
	if (history_range(&cursor, l->topo->h, attr, from, to, err))
		return -1;
	int n;
	while ((n = history_range_read(&cursor, iv, READ, err)) > 0)
		for (int i = 0; i < n; before = iv[i++].value) {
			if (iv[i].start < from)
				continue;
			while (slice + 1 < DIFF_SLICES && iv[i].start >= l->edge[slice + 1])
				slice++;
			const bool waits = in(c->gap, iv[i].value), wakes = in(c->asleep, before) && in(c->awake, iv[i].value);
			c->gaps->num[slice] += waits && !in(c->gap, before);
			c->wakes->num[slice] += wakes;
			if (wakes)
				chance_wake(&c->walk, iv[i].start);
			if (waits)
				chance_wait(&c->walk, (iv[i].end < to ? iv[i].end : to) - iv[i].start + 1, wakes);
			else
				chance_runs(&c->walk);
		}
	chance_runs(&c->walk);
	waits_add(&c->lost->chance.all, &c->walk.all);
	return n;
}

/* Its wakes may be those of its vCPU, too. */
static void add_clock(struct ledger *l, const struct counting *c, uint32_t machine)
{
	char name[SUBJECT_TEXT];
	const double rate = chance_clock(&c->walk);
	const struct series key = { .kind = DIFF_OF_MACHINE, .quantity = DIFF_LOST, .by = (char *)"",
		.subject = ledger_subject(l->topo, &(struct subject){ SUBJECT_MACHINE, machine }, name) };
	struct series *of = ledger_find(l, &key);
	if (!(rate > 0))
		return;
	waits_add(&c->lost->chance.clocked, &c->walk.all);
	c->lost->chance.rates += rate * rate;
	if (of && l->topo->machine[machine].kind == MACHINE_VM)
		of->chance.rates += rate * rate;
}

static uint64_t states_of(const uint8_t number[HISTORY_STATES], uint64_t ours)
{
	uint64_t mask = 0;
	for (unsigned i = 0; i < HISTORY_STATES - 1; i++)
		mask |= (ours >> number[i] & 1) << i;
	return mask;
}

#define BIT(state) (UINT64_C(1) << (state))

static int add_counts(struct ledger *l, enum diff_kind kind, const struct subject *s, const char *subject,
                      struct error *err)
{
	const struct topo *topo = l->topo;
	struct counting c = { .gaps = ledger_series(l, kind, subject, DIFF_GAPS, ""),
	                      .wakes = ledger_series(l, kind, subject, DIFF_WAKES, ""),
	                      .lost = ledger_series(l, kind, subject, DIFF_LOST, "") };
	if (s->kind == SUBJECT_THREAD) {
		c.gap = topo->thread_gap;
		c.asleep = states_of(topo->thread_state, BIT(THREAD_BLOCKED));
		c.awake = states_of(topo->thread_state, BIT(THREAD_RUNNING) | BIT(THREAD_PREEMPTED) | BIT(THREAD_VIRT_PREEMPTED));
		if (count(l, topo->thread[s->index].status, &c, err))
			return -1;
		add_clock(l, &c, topo->thread[s->index].machine);
		return 0;
	}
	const struct topo_machine *m = &topo->machine[s->index];
	c.gap = topo->vcpu_gap;
	c.asleep = states_of(topo->vcpu_state, BIT(VCPU_IDLE));
	c.awake = states_of(topo->vcpu_state, BIT(VCPU_RUNNING) | BIT(VCPU_VMM) | BIT(VCPU_PREEMPTED) | BIT(VCPU_WAKING));
	for (uint32_t i = m->cpu; m->kind == MACHINE_VM && i < m->cpu + m->cpus; i++) {
		if (count(l, topo->cpu[i].status, &c, err))
			return -1;
		waits_add(&c.lost->chance.clocked, &c.walk.woken);
	}
	return 0;
}

/* ---- Exits */

/* Of one machine for one reason: how many begin in each slice. */
struct exit_count { uint32_t machine, reason; double begin[DIFF_SLICES]; };

struct exit_counts {
	const struct ledger *l;
	struct map by_reason;    /* machine << 32 | reason -> index into `count` */
	struct exit_count *count;
	size_t len, cap;
	unsigned slice;          /* of the last one */
};

static void count_exit(void *arg, uint32_t vcpu, uint32_t reason, int64_t t)
{
	struct exit_counts *c = arg;
	const uint32_t machine = c->l->topo->cpu[vcpu].machine;
	const int64_t *edge = c->l->edge;
	bool is_new;
	uint64_t *at = map_put(&c->by_reason, (uint64_t)machine << 32 | reason, &is_new);
	if (is_new) {
		*at = c->len;
		*ARRAY_PUSH(c->count, c->len, c->cap) = (struct exit_count){ .machine = machine, .reason = reason };
	}
	if (t < edge[c->slice] || t >= edge[c->slice + 1])
		c->slice = ledger_slice(c->l, t);
	c->count[*at].begin[c->slice]++;
}

static void add_exit_rows(struct ledger *l, const struct exit_counts *c, const struct exit_list *list)
{
	for (size_t i = 0; i < c->len; i++) {
		const struct subject vm = { SUBJECT_MACHINE, c->count[i].machine };
		char subject[SUBJECT_TEXT], by[SUBJECT_TEXT];
		ledger_subject(l->topo, &vm, subject);
		text_escape(by, sizeof by, list->name[c->count[i].reason]);
		struct series *all = ledger_series(l, DIFF_OF_MACHINE, subject, DIFF_EXITS, "");
		struct series *of = ledger_series(l, DIFF_OF_MACHINE, subject, DIFF_EXITS, by);
		for (unsigned k = 0; k < DIFF_SLICES; k++) {
			all->num[k] += c->count[i].begin[k];
			of->num[k] += c->count[i].begin[k];
		}
	}
}

static int add_exits(struct ledger *l, struct error *err)
{
	struct exit_counts c = { .l = l };
	struct exit_list list = { 0 };
	const struct exit_options o = { .from = l->edge[0], .to = l->edge[DIFF_SLICES] - 1, .begins = count_exit, .arg = &c };
	struct inquiry *q = exits_open(l->topo, &o, err);
	int rc = q ? inquiry_run(q, NULL, err) : -1;
	if (rc == 0) {
		exits_take(q, &list);
		add_exit_rows(l, &c, &list);
	}
	inquiry_close(q);
	exits_release(&list);
	map_release(&c.by_reason);
	free(c.count);
	return rc;
}

int ledger_add_rates(struct ledger *l, struct error *err)
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
		if (row->demand.ran + row->demand.lost == 0)
			continue;
		ledger_subject(l->topo, &row->who, subject);
		rc = add_demand(l, kind, &row->who, subject, err);
		if (rc == 0)
			rc = add_counts(l, kind, &row->who, subject, err);
	}
	summary_release(&s);
	return rc ? rc : add_exits(l, err);
}
