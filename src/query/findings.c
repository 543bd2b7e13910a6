/* Findings as a query in steps. The rules are in doc/findings.md.
 *
 * 1. All gaps are summed by culprit. All rows' demands select victims, and a few threads that slept. In a short window the
 *    demands come first, and only the likely victims' gaps are summed.
 * 2. The VM with the largest share in VMM time: its VM exits.
 * 3. The victims' culprits are causes, for all victims that can be the worst one, and for a few others.
 * 4. The critical paths for the threads that slept show culprits that delayed a thread for which they waited.
 * 5. Lock waits show culprits that delayed the holders.
 *
 * findings_rank() then sorts the findings. Cost: see findings_open(). */
#include "query/findings_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "query/stepped_query.h"

#define VICTIMS_CONCLUDED 3    /* victims per tier that have findings although they cannot be the worst one ... */
#define VICTIM_SHARE 0.25      /* ... if they lost at least this share of the worst one's loss */
/* In a window with more intervals, the history's blocks contain most sums, which are read for all rows at once. */
#define FEW_INTERVALS 8000000.0
/* In a longer history, the paths cover the window's first part with so many intervals. */
#define PATH_INTERVALS_MAX 4000000.0

const char *const finding_kind_name[FINDING_KIND_COUNT] = {
#define FINDING_NAME(code, name) name,
	FINDING_KINDS(FINDING_NAME)
#undef FINDING_NAME
};

/* Steps this phase's query. Returns 1 at its end, 0 if the budget is spent, -1 on error. */
static int step_sub(struct findings_query *v, const struct budget *budget, struct error *err)
{
	return query_step_until(v->sub, budget->until, err);
}

/* ---- 3. A victim's gaps --------------------------------------------------------------------------------------------- */

/* Adds the time that a row's culprits took to the victim's; loss: by index in v->sums.actor. */
static void add_row(const struct findings_query *v, const struct culprit_sums_row *row, struct actor_loss *loss)
{
	for (size_t i = 0; i < row->culprits; i++) {
		const struct culprit_ns *taken = &row->culprit[i];
		struct actor_loss *l = &loss[taken->culprit];
		l->ns += taken->ns;
		l->intervals += taken->intervals;
		if (taken->longest <= l->longest.end - l->longest.start)
			continue;
		const struct actor *actor = &v->sums.actor[taken->culprit];
		l->longest = (struct cause_interval){ .row = row->target, .actor = *actor, .name = v->sums.name[actor->name],
			.start = taken->longest_start, .end = taken->longest_start + taken->longest - 1 };
	}
}

static void conclude_victim(struct findings_query *v, const struct victim *victim)
{
	struct cause_list causes = { .catalog = v->q.catalog, .victim = victim->target };
	struct actor_loss *loss = mem_new(v->sums.actors, sizeof *loss);
	struct gap_rows rows;
	for (size_t i = 0; i < v->sums.actors; i++)
		loss[i].longest.end = -1;
	gap_rows_list(&rows, v->q.catalog, &victim->target);
	for (size_t i = 0; i < rows.len; i++) {
		const struct culprit_sums_row *row = culprit_sums_row_of(&v->sums, v->q.catalog, &rows.row[i].target);
		if (row)
			add_row(v, row, loss);
	}
	for (size_t i = 0; i < v->sums.actors; i++)
		if (loss[i].ns)
			causes_add(&causes, &loss[i].longest, loss[i].ns, loss[i].intervals);
	causes_sort(&causes);
	findings_conclude(v, victim, &causes);
	causes_release(&causes);
	gap_rows_release(&rows);
	free(loss);
}

/* Returns true if the victim's culprits count: it may be the worst one in its tier, or is worth a finding. */
static bool is_worth_a_finding(const struct findings_query *v, const struct victim *c)
{
	const bool is_enough = v->concluded[c->tier] >= VICTIMS_CONCLUDED;
	const uint32_t machine = target_machine(v->q.catalog, &c->target);
	if ((c->tier == TIER_LAST && v->entries) || (c->tier == TIER_THREADS && is_enough && v->best[TIER_GUESTS]))
		return false;
	const bool is_known = c->target.kind == TARGET_THREAD && v->others[machine] >= 0 && v->others[machine] < c->bound;
	const double bound = (double)(is_known ? v->others[machine] : c->bound), best = (double)v->best[c->tier];
	return bound > best || bound >= (is_enough ? SIMILAR_SHARE : VICTIM_SHARE) * best;
}

/* Adds the findings on the victims. Returns false, and adds none, if a victim's sums are missing. */
static bool conclude_victims(struct findings_query *v)
{
	struct findings_query before = *v;
	before.others = mem_new(v->q.catalog->machines + 1, sizeof *before.others);
	memcpy(before.others, v->others, v->q.catalog->machines * sizeof *before.others);
	size_t i = 0;
	for (; i < v->victims; i++) {
		if (!is_worth_a_finding(v, &v->victim[i]))
			continue;
		if (!v->victim[i].has_sums)
			break;
		conclude_victim(v, &v->victim[i]);
		v->concluded[v->victim[i].tier]++;
	}
	const bool all = i == v->victims;
	if (!all) {
		v->entries = before.entries;
		v->is_spread = before.is_spread;
		memcpy(v->concluded, before.concluded, sizeof v->concluded);
		memcpy(v->best, before.best, sizeof v->best);
		memcpy(v->others, before.others, v->q.catalog->machines * sizeof *v->others);
	}
	free(before.others);
	return all;
}

/* ---- 1. Sums over all gaps ------------------------------------------------------------------------------------------ */

static double window_intervals(const struct findings_query *v)
{
	const struct history *h = v->q.catalog->h;
	const double span = (double)history_end(h) - (double)history_begin(h) + 1;
	return (double)history_intervals(h) * ((double)v->q.to - (double)v->q.from + 1) / span;
}

/* Lists the rows for the victims that are likely to have findings. */
static void list_likely_rows(struct findings_query *v, struct gap_rows *out)
{
	const struct catalog *catalog = v->q.catalog;
	const size_t numbers = catalog->cpus + catalog->threads;
	struct gap_row *by_number = mem_new(numbers, sizeof *by_number);
	bool *listed = mem_new(numbers, sizeof *listed);
	size_t n[TIERS] = { 0 };
	for (size_t i = 0; i < v->victims; i++) {
		struct victim *c = &v->victim[i];
		struct gap_rows rows;
		c->has_sums = c->tier == TIER_GUESTS || (n[c->tier]++ < VICTIMS_CONCLUDED && (c->tier != TIER_LAST || i == 0));
		gap_rows_list(&rows, catalog, &c->target);
		for (size_t k = 0; k < rows.len && c->has_sums; k++) {
			const uint32_t number = gap_row_number(catalog, &rows.row[k].target);
			by_number[number] = rows.row[k];
			listed[number] = true;
		}
		gap_rows_release(&rows);
	}
	for (size_t i = 0; i < numbers; i++)
		if (listed[i])
			*ARRAY_PUSH(out->row, out->len, out->cap) = by_number[i];
	free(by_number);
	free(listed);
}

static int walk_sums(struct findings_query *v, const struct budget *budget, struct error *err)
{
	struct gap_rows rows = { 0 };
	if (!v->sub && v->few)
		list_likely_rows(v, &rows);
	if (!v->sub)
		v->sub = v->few ? culprit_sums_open_rows(v->q.catalog, &rows, v->q.from, v->q.to)
		                : culprit_sums_open(v->q.catalog, v->has_target ? &v->target : NULL, v->q.from, v->q.to);
	const int rc = step_sub(v, budget, err);
	if (rc <= 0)
		return rc;
	culprit_sums_release(&v->sums);
	query_take(v->sub, &v->sums);
	v->has_all_sums = !v->few;
	query_close(v->sub);
	v->sub = NULL;
	return 1;
}

/* ---- 2. VM exits ---------------------------------------------------------------------------------------------------- */

/* Compares a VM exit with the longest one so far. Exits while a guest thread was current come before the idle
 * task's: the thread's gap shows them. */
static int compare_exit(struct findings_query *v, const struct target *row, const struct interval *exit, struct error *err)
{
	const struct catalog *catalog = v->q.catalog;
	const struct catalog_cpu *cpu = &catalog->cpu[row->index];
	const bool has_thread = v->exit.row.kind == TARGET_THREAD;
	struct interval iv = { .value = HISTORY_NULL };
	if (v->exits++ && has_thread && exit->end - exit->start <= v->exit.end - v->exit.start)
		return 0;
	if (cpu->current != HISTORY_NONE && history_stab(catalog->h, cpu->current, exit->start, &iv, err) < 0)
		return -1;
	const bool is_thread = iv.value > 0 && iv.value <= INT32_MAX;
	const int thread = is_thread ? catalog_find_thread(catalog, cpu->machine, (int32_t)iv.value) : -1;
	if (thread < 0 && (has_thread || exit->end - exit->start <= v->exit.end - v->exit.start))
		return 0;
	v->exit = (struct cause_interval){ .row = *row, .actor = { (int32_t)cpu->machine, -1, 0, FLOW_HYPERVISOR, 0 },
		.name = "", .start = exit->start, .end = exit->end };
	if (thread < 0)
		return 0;
	v->exit.row = (struct target){ TARGET_THREAD, (uint32_t)thread };
	v->exit.actor.tid = (int32_t)iv.value;
	v->exit.name = catalog_longest_name(catalog, (uint32_t)thread);
	return 0;
}

static int walk_exits(struct findings_query *v, struct budget *budget, struct error *err)
{
	const struct catalog *catalog = v->q.catalog;
	const struct victim *vm = &v->vmm;
	const uint64_t exits = catalog->vcpu_lost & ~catalog->vcpu_gap;
	struct interval iv;
	if (share_of(findings_loss(v, vm, vm->demand.vmm_ns), vm->demand.ran + vm->demand.lost) <= FINDING_LIMIT)
		return 1;
	if (!v->rows.row)
		gap_rows_list(&v->rows, catalog, &vm->target);
	for (; v->row < v->rows.len; v->row += !v->walking) {
		const struct target *row = &v->rows.row[v->row].target;
		int rc = v->walking ? 1 : states_walk_start(&v->walk, catalog, row, exits, v->q.from, v->q.to, err);
		v->walking = rc > 0;
		while (rc > 0 && (rc = gap_walk_next_state(&v->walk, &iv, err)) > 0) {
			if (compare_exit(v, row, &iv, err) < 0)
				return -1;
			if (budget_spent(budget))
				return 0;
		}
		v->walking = false;
		if (rc < 0)
			return -1;
	}
	gap_rows_release(&v->rows);
	v->row = 0;
	struct cause_list causes = { .catalog = catalog, .victim = vm->target };
	if (v->exits)
		causes_add(&causes, &v->exit, vm->demand.vmm_ns, v->exits);
	findings_conclude(v, vm, &causes);
	causes_release(&causes);
	return 1;
}

/* ---- 4. Critical paths ---------------------------------------------------------------------------------------------- */

static void sleep_path_free(struct sleep_path *s)
{
	if (s)
		path_release(&s->path);
	free(s);
}

/* Returns the end of the window of the paths. That of a named target is whole: it explains all of its sleep. */
static int64_t path_window_end(const struct findings_query *v)
{
	const double window = (double)v->q.to - (double)v->q.from + 1, intervals = window_intervals(v);
	return v->has_target || intervals <= PATH_INTERVALS_MAX
	       ? v->q.to : v->q.from + (int64_t)(window * (PATH_INTERVALS_MAX / intervals));
}

/* Keeps the largest chain; among chains with similar length the one with the busier target, since a console thread may wait
 * for a shell that waits for the same thread. */
static void end_chain(struct findings_query *v)
{
	const struct victim *c = &v->sleeper[v->at];
	struct sleep_path *s = mem_new(1, sizeof *s);
	query_take(v->sub, &s->path);
	chain_find(v->q.catalog, &c->target, &s->path, &s->chain);
	const int64_t wanted = c->demand.ran + c->demand.lost, kept = v->chain_demand.ran + v->chain_demand.lost;
	if (!v->is_spread && share_of(c->demand.slept, c->demand.alive) > SLEEPER_SHARE &&
	    share_of(s->chain.ns, c->demand.alive) > FINDING_LIMIT &&
	    s->chain.ns > (wanted > kept ? v->chain.ns / 2 : v->chain.ns * 2)) {
		v->chain = s->chain;
		v->chain_demand = c->demand;
	}
	if (v->has_target)
		v->answer.sleep = s;
	else
		sleep_path_free(s);
}

static int walk_chains(struct findings_query *v, struct budget *budget, struct error *err)
{
	const int64_t to = path_window_end(v);
	while (v->at < v->sleepers && (v->has_target || !v->is_spread)) {
		struct error none = ERROR_INIT;
		if (!v->sub)
			v->sub = path_open(v->q.catalog, &v->sleeper[v->at].target, v->q.from, to, &none);
		const int rc = v->sub ? step_sub(v, budget, err) : 1;  /* not alive in this part of the window */
		if (rc <= 0)
			return rc;
		if (v->sub)
			end_chain(v);
		query_close(v->sub);
		v->sub = NULL;
		v->at++;
	}
	return 1;
}

/* ---- 5. Lock waits -------------------------------------------------------------------------------------------------- */

static void sum_locks(struct findings_query *v, const struct lock_list *l)
{
	int64_t most = 0;
	for (size_t i = 0; i < l->waits; i++) {
		const struct lock_wait *wait = &l->wait[i];
		if (wait->culprit.machine < 0 || wait->holder.machine < 0 || wait->culprit_ns <= 0 ||
		    wait->culprit.machine == wait->waiter.machine)
			continue;
		v->lock_ns += wait->culprit_ns;
		v->lock_waits++;
		if (wait->culprit_ns > most) {
			most = wait->culprit_ns;
			v->lock_culprit = wait->culprit;
		}
	}
}

static int walk_locks(struct findings_query *v, const struct budget *budget, struct error *err)
{
	const struct ranked_finding *first = findings_first_direct(v);
	if (!first)
		return 1;
	const struct target vm = { TARGET_MACHINE, target_machine(v->q.catalog, &first->finding.target) };
	if (!locks_have_events(v->q.catalog, vm.index))
		return 1;
	if (!v->sub)
		v->sub = locks_open(v->q.catalog, &vm, v->q.from, v->q.to);
	const int rc = step_sub(v, budget, err);
	if (rc <= 0)
		return rc;
	struct lock_list l;
	query_take(v->sub, &l);
	sum_locks(v, &l);
	locks_release(&l);
	query_close(v->sub);
	v->sub = NULL;
	return 1;
}

/* ---- Moments -------------------------------------------------------------------------------------------------------- */

/* Searches a culprit's longest interval near the place that the sums give. */
struct interval_search {
	const struct findings_query *v;
	struct moment *moment;
	const char *name;        /* the culprit's raw name */
	struct resolution last;
	int64_t start;           /* when the current interval with `last` started ... */
	int64_t end;             /* ... and its end so far; < start: none */
};

static int compare_interval(void *arg, const struct resolution *p, int64_t start, int64_t end)
{
	struct interval_search *s = arg;
	struct moment *m = s->moment;
	if (s->end + 1 != start || !actor_same(&s->last.actor, &p->actor))
		s->start = start;
	s->last = *p;
	s->end = end;
	const struct actor *a = &p->actor, *b = &m->culprit;
	if (end - s->start != m->end - m->start || a->kind != b->kind || a->machine != b->machine || a->tid != b->tid ||
	    a->reason != b->reason || strcmp(strtab_get(&s->v->r.names, a->name), s->name) != 0)
		return 0;
	m->end = end;
	m->start = s->start;
	return 1;
}

/* Sets a moment's exact time. */
static int place_moment(struct findings_query *v, struct finding *f, struct error *err)
{
	const int64_t last = f->moment.end + v->sums.precision;
	struct interval_search s = { .v = v, .moment = &f->moment, .start = 0, .end = INT64_MIN };
	struct gap_walk walk;
	struct gap gap;
	if (f->kind == FINDING_CHAIN || f->moment.end < f->moment.start || v->sums.precision == 0)
		return 0;
	s.name = f->moment.culprit.name < v->sums.names ? v->sums.name[f->moment.culprit.name] : "";
	int rc = gap_walk_start(&walk, v->q.catalog, &f->moment.target, f->moment.start, min64(last, v->q.to), err);
	while (rc > 0 && (rc = gap_walk_next(&walk, &gap, err)) > 0) {
		const int found = resolve_walk(&v->r, &f->moment.target, gap.start, gap.end, compare_interval, &s);
		if (found) {
			rc = found < 0 ? -1 : 0;
			break;
		}
	}
	finding_set_command(f, v->q.catalog);
	return rc;
}

/* ---- The query ------------------------------------------------------------------------------------------------------ */

static int run_phase(struct findings_query *v, struct budget *budget, struct error *err)
{
	switch (v->phase) {
	case PHASE_SUMS:
		v->few = !v->has_target && window_intervals(v) <= FEW_INTERVALS;
		return v->few ? 1 : walk_sums(v, budget, err);
	case PHASE_CHOOSE:
		return findings_choose(v, err) < 0 ? -1 : 1;
	case PHASE_EXITS:
		return walk_exits(v, budget, err);
	case PHASE_FEW_SUMS:
		return v->has_all_sums ? 1 : walk_sums(v, budget, err);
	case PHASE_VICTIMS:
		if (conclude_victims(v))
			return 1;
		v->few = false;
		for (size_t i = 0; i < v->victims; i++)
			v->victim[i].has_sums = true;
		v->phase = PHASE_EXITS;
		return 1;
	case PHASE_CHAINS:
		return walk_chains(v, budget, err);
	case PHASE_LOCKS:
		return walk_locks(v, budget, err);
	case PHASE_END:
		break;
	}
	return 1;
}

static int findings_walk(struct query *q, size_t i, struct budget *budget, struct error *err)
{
	struct findings_query *v = (struct findings_query *)q;
	if (!v->open)
		resolver_init(&v->r, q->catalog, q->from, q->to, err);
	v->open = true;
	for (; v->phase != PHASE_END; v->phase++) {
		const int rc = run_phase(v, budget, err);
		q->part[i].done = (double)v->phase / PHASE_END;
		if (rc <= 0)
			return rc;
	}
	return 1;
}

static int findings_join(struct query *q, struct error *err)
{
	struct findings_query *v = (struct findings_query *)q;
	if (findings_rank(v, err) < 0)
		return -1;
	for (size_t i = 0; i < v->answer.len; i++)
		if (place_moment(v, &v->answer.item[i], err) < 0)
			return -1;
	return 1;
}

static void findings_close(struct query *q)
{
	struct findings_query *v = (struct findings_query *)q;
	query_close(v->sub);
	if (v->open)
		resolver_release(&v->r);
	gap_rows_release(&v->rows);
	culprit_sums_release(&v->sums);
	findings_release(&v->answer);
	free(v->victim);
	free(v->entry);
	free(v->others);
	free(v->dark);
}

static const struct query_kind findings_query = {
	findings_walk, findings_join, findings_close, ANSWER(struct findings_query, answer)
};

struct query *findings_open(const struct catalog *catalog, const struct target *target, int64_t from, int64_t to)
{
	struct findings_query *v = mem_new(1, sizeof *v);
	query_init(&v->q, &findings_query, catalog, from, to, 1);
	v->has_target = target != NULL;
	if (target)
		v->target = *target;
	v->exit.end = -1;
	v->lock_culprit = (struct actor){ -1, -1, 0, FLOW_RUNNING, 0 };
	return &v->q;
}

void findings_release(struct findings *f)
{
	sleep_path_free(f->sleep);
	free(f->item);
	*f = (struct findings){ 0 };
}
