/* Rates: run time, loss, gaps, sleeps and exits of machines and threads, by slice.
 *
 * Run time and loss come from the state sums: O(slices log n) per row. Gaps and wakeups are counted in one pass over the
 * states of each thread and vCPU, exits in one pass over the vCPUs. */
#include "base/base.h"
#include "compare/diff/ledger.h"

#define READ_BATCH 256  /* intervals per read */

static int add_demand(struct ledger *l, enum diff_kind kind, const struct target *s, const char *target,
                      struct error *err)
{
	int64_t ran[DIFF_SLICES] = { 0 }, lost[DIFF_SLICES] = { 0 };
	if (demand_cells(l->catalog, s, l->edge, DIFF_SLICES, ran, lost, err))
		return -1;
	struct series *r = ledger_series(l, kind, target, DIFF_RAN, ""), *w = ledger_series(l, kind, target, DIFF_LOST, "");
	const struct catalog_machine *m = kind == DIFF_OF_MACHINE ? &l->catalog->machine[s->index] : NULL;
	const double max = !m ? 1 : m->kind == MACHINE_VM ? m->cpus : 0;
	r->max += max;
	w->max += max;
	for (unsigned i = 0; i < DIFF_SLICES; i++) {
		r->num[i] += (double)ran[i];
		w->num[i] += (double)lost[i];
	}
	return 0;
}

/* ---- Counts */

/* Series that count the state changes of one target, and the masks that classify its states. */
struct state_counter {
	struct series *gaps, *wakes, *lost;
	struct wait_statistics walk;
	uint64_t gap, asleep, awake;  /* bit masks of the history's state numbers */
};

static void waits_add(struct waits *to, const struct waits *more)
{
	to->ns += more->ns;
	to->squares += more->squares;
}

static bool mask_has_state(uint64_t mask, int64_t state)
{
	return state >= 0 && state < HISTORY_STATES && (mask >> state & 1);
}

static int count_state_changes(struct ledger *l, uint32_t attr, struct state_counter *c, struct error *err)
{
	struct history_cursor cursor;
	struct interval iv[READ_BATCH];
	const int64_t from = l->edge[0], to = l->edge[DIFF_SLICES] - 1;
	int64_t before = HISTORY_NULL;
	unsigned slice = 0;
	c->walk = (struct wait_statistics){ 0 };
	if (attr == HISTORY_NONE)
		return 0;
	if (history_range(&cursor, l->catalog->h, attr, from, to, err))
		return -1;
	int n;
	while ((n = history_range_read(&cursor, iv, READ_BATCH, err)) > 0)
		for (int i = 0; i < n; before = iv[i++].value) {
			if (iv[i].start < from)
				continue;
			while (slice + 1 < DIFF_SLICES && iv[i].start >= l->edge[slice + 1])
				slice++;
			const bool waits = mask_has_state(c->gap, iv[i].value),
					   wakes = mask_has_state(c->asleep, before) && mask_has_state(c->awake, iv[i].value);
			c->gaps->num[slice] += waits && !mask_has_state(c->gap, before);
			c->wakes->num[slice] += wakes;
			if (wakes)
				variation_add_wakeup(&c->walk, iv[i].start);
			if (waits)
				variation_add_wait(&c->walk, (iv[i].end < to ? iv[i].end : to) - iv[i].start + 1, wakes);
			else
				variation_end_wait(&c->walk);
		}
	variation_end_wait(&c->walk);
	waits_add(&c->lost->variation.all_waits, &c->walk.all_waits);
	return n;
}

/* If the thread wakes periodically, adds its timer rate to the thread, and to the VM in which it runs: the thread's
 * wakeups may wake the vCPU, too. */
static void add_timer_rate(struct ledger *l, const struct state_counter *c, uint32_t machine)
{
	char name[TARGET_TEXT];
	const double rate = variation_timer_rate(&c->walk);
	const struct series key = { .kind = DIFF_OF_MACHINE, .quantity = DIFF_LOST, .by = (char *)"",
		.target = ledger_target(l->catalog, &(struct target){ TARGET_MACHINE, machine }, name) };
	struct series *series = ledger_find(l, &key);
	if (!(rate > 0))
		return;
	waits_add(&c->lost->variation.timer_waits, &c->walk.all_waits);
	c->lost->variation.squared_rates += rate * rate;
	if (series && l->catalog->machine[machine].kind == MACHINE_VM)
		series->variation.squared_rates += rate * rate;
}

static uint64_t state_mask(const uint8_t number[HISTORY_STATES], uint64_t ours)
{
	uint64_t mask = 0;
	for (unsigned i = 0; i < HISTORY_STATES - 1; i++)
		mask |= (ours >> number[i] & 1) << i;
	return mask;
}

static int add_counts(struct ledger *l, enum diff_kind kind, const struct target *s, const char *target,
                      struct error *err)
{
	const struct catalog *catalog = l->catalog;
	struct state_counter c = { .gaps = ledger_series(l, kind, target, DIFF_GAPS, ""),
	                      .wakes = ledger_series(l, kind, target, DIFF_WAKES, ""),
	                      .lost = ledger_series(l, kind, target, DIFF_LOST, "") };
	if (s->kind == TARGET_THREAD) {
		c.gap = catalog->thread_gap;
		c.asleep = state_mask(catalog->thread_state, BIT64(THREAD_BLOCKED));
		c.awake = state_mask(catalog->thread_state,
		                    BIT64(THREAD_RUNNING) | BIT64(THREAD_PREEMPTED) | BIT64(THREAD_VIRT_PREEMPTED));
		if (count_state_changes(l, catalog->thread[s->index].status, &c, err))
			return -1;
		add_timer_rate(l, &c, catalog->thread[s->index].machine);
		return 0;
	}
	const struct catalog_machine *m = &catalog->machine[s->index];
	c.gap = catalog->vcpu_gap;
	c.asleep = state_mask(catalog->vcpu_state, BIT64(VCPU_IDLE));
	c.awake = state_mask(catalog->vcpu_state,
	                    BIT64(VCPU_RUNNING) | BIT64(VCPU_VMM) | BIT64(VCPU_PREEMPTED) | BIT64(VCPU_WAKING));
	for (uint32_t i = m->cpu; m->kind == MACHINE_VM && i < m->cpu + m->cpus; i++) {
		if (count_state_changes(l, catalog->cpu[i].status, &c, err))
			return -1;
		waits_add(&c.lost->variation.timer_waits, &c.walk.wakeup_waits);
	}
	return 0;
}

/* ---- Exits */

/* Exits of one VM for one reason, by slice. */
struct exit_count { uint32_t machine, reason; double begin[DIFF_SLICES]; };

struct exit_counts {
	const struct ledger *l;
	struct map by_reason;    /* machine << 32 | reason -> index into `count` */
	struct exit_count *count;
	size_t len, cap;
	unsigned slice;          /* slice of the last exit */
};

static void count_exit(void *arg, uint32_t vcpu, uint32_t reason, int64_t t)
{
	struct exit_counts *c = arg;
	const uint32_t machine = c->l->catalog->cpu[vcpu].machine;
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
		const struct target vm = { TARGET_MACHINE, c->count[i].machine };
		char target[TARGET_TEXT], by[TARGET_TEXT];
		ledger_target(l->catalog, &vm, target);
		text_escape(by, sizeof by, list->name[c->count[i].reason]);
		struct series *all = ledger_series(l, DIFF_OF_MACHINE, target, DIFF_EXITS, "");
		struct series *series = ledger_series(l, DIFF_OF_MACHINE, target, DIFF_EXITS, by);
		for (unsigned k = 0; k < DIFF_SLICES; k++) {
			all->num[k] += c->count[i].begin[k];
			series->num[k] += c->count[i].begin[k];
		}
	}
}

static int add_exits(struct ledger *l, struct error *err)
{
	struct exit_counts c = { .l = l };
	struct exit_list list;
	const struct exit_options o = { .from = l->edge[0], .to = l->edge[DIFF_SLICES] - 1, .begins = count_exit, .arg = &c };
	const int rc = query_answer(exits_open(l->catalog, &o, err), &list, err);
	if (rc == 0)
		add_exit_rows(l, &c, &list);
	exits_release(&list);
	map_release(&c.by_reason);
	free(c.count);
	return rc;
}

int ledger_add_rates(struct ledger *l, struct error *err)
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
		if (row->demand.ran + row->demand.lost == 0)
			continue;
		ledger_target(l->catalog, &row->target, target);
		rc = add_demand(l, kind, &row->target, target, err);
		if (rc == 0)
			rc = add_counts(l, kind, &row->target, target, err);
	}
	summary_release(&s);
	return rc ? rc : add_exits(l, err);
}
