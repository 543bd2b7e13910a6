/* Findings as a query in steps. The rules are in doc/findings.md.
 *
 * 1. The demands of all rows select victims, and a few threads that slept.
 * 2. The VM exits of the VM with the largest share of VMM time.
 * 3. The gaps of the victims show causes: all that can be the worst one, and a few others.
 * 4. The critical paths of the threads that slept show culprits that delayed a thread for which they waited.
 * 5. Lock waits show culprits that delayed the holders.
 *
 * findings_rank() then sorts the findings. Cost: see findings_open(). */
#include "query/findings_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "query/stepped_query.h"

#define VICTIMS_WALKED 3       /* victims of one tier whose gaps are read although they cannot be the worst one ... */
#define VICTIM_SHARE 0.25      /* ... if they lost at least this share of the worst one's loss */
/* In a longer history, the paths cover the first part of the window with so many intervals. */
#define PATH_INTERVALS_MAX 4000000.0

const char *const finding_kind_name[FINDING_KIND_COUNT] = {
#define FINDING_NAME(code, name) name,
	FINDING_KINDS(FINDING_NAME)
#undef FINDING_NAME
};

/* ---- 3. Gaps of a victim -------------------------------------------------------------------------------------------- */

static int actor_add(void *arg, const struct resolution *p, int64_t start, int64_t end)
{
	struct findings_query *v = arg;
	const uint32_t id = actors_put(&v->actors, &p->actor);
	while (v->taken_len <= id)
		*ARRAY_PUSH(v->taken, v->taken_len, v->taken_cap) = (struct actor_loss){ .longest.end = -1 };
	struct actor_loss *t = &v->taken[id];
	const bool continues = t->intervals && t->run.end + 1 == start && t->run.row.index == v->rows.row[v->row].target.index;
	t->ns += end - start + 1;
	t->intervals += !continues;
	if (!continues)
		t->run = (struct cause_interval){ .row = v->rows.row[v->row].target, .actor = p->actor, .start = start };
	t->run.end = end;
	if (t->run.end - t->run.start > t->longest.end - t->longest.start || t->intervals == 1)
		t->longest = t->run;
	return 0;
}

static void end_victim(struct findings_query *v, const struct victim *victim)
{
	struct cause_list causes = { .catalog = v->q.catalog, .victim = victim->target };
	for (size_t i = 0; i < v->taken_len; i++) {
		v->taken[i].longest.name = strtab_get(&v->r.names, v->taken[i].longest.actor.name);
		causes_add(&causes, &v->taken[i].longest, v->taken[i].ns, v->taken[i].intervals);
	}
	causes_sort(&causes);
	findings_conclude(v, victim, &causes);
	causes_release(&causes);
	actors_release(&v->actors);
	gap_rows_release(&v->rows);
	v->row = v->taken_len = 0;
}

/* Walks the gaps of all rows of a victim. Returns 1 at the end, 0 if the budget is spent, -1 on error. */
static int walk_victim(struct findings_query *v, const struct victim *victim, struct budget *budget, struct error *err)
{
	v->r.err = err;
	if (!v->rows.row)
		gap_rows_list(&v->rows, v->q.catalog, &victim->target);
	while (v->row < v->rows.len) {
		const struct target *row = &v->rows.row[v->row].target;
		struct gap gap = { .target = *row };
		const int rc = v->walking ? gap_walk_next(&v->walk, &gap, err)
		                          : gap_walk_start(&v->walk, v->q.catalog, row, v->q.from, v->q.to, err);
		if (rc < 0 || (rc && v->walking && resolve_walk(&v->r, row, gap.start, gap.end, actor_add, v) < 0))
			return -1;
		v->walking = rc > 0;
		v->row += rc == 0;
		if (budget_spent(budget))
			return 0;
	}
	end_victim(v, victim);
	return 1;
}

/* Returns true if the gaps of the next victim must be read: it may be the worst one of its tier, or is worth a finding. */
static bool is_worth_a_walk(const struct findings_query *v, const struct victim *c)
{
	const bool is_enough = v->walked[c->tier] >= VICTIMS_WALKED;
	const uint32_t machine = target_machine(v->q.catalog, &c->target);
	if ((c->tier == TIER_LAST && v->entries) || (c->tier == TIER_THREADS && is_enough && v->best[TIER_GUESTS]))
		return false;
	const bool is_known = c->target.kind == TARGET_THREAD && v->others[machine] >= 0 && v->others[machine] < c->bound;
	const double bound = (double)(is_known ? v->others[machine] : c->bound), best = (double)v->best[c->tier];
	return bound > best || bound >= (is_enough ? SIMILAR_SHARE : VICTIM_SHARE) * best;
}

static int walk_victims(struct findings_query *v, struct budget *budget, struct error *err)
{
	for (; v->at < v->victims; v->at++) {
		const struct victim *c = &v->victim[v->at];
		if (!v->rows.row && !is_worth_a_walk(v, c))
			continue;
		const int rc = walk_victim(v, c, budget, err);
		if (rc <= 0)
			return rc;
		v->walked[c->tier]++;
	}
	v->at = 0;
	return 1;
}

/* ---- 2. VM exits ---------------------------------------------------------------------------------------------------- */

/* Compares a VM exit with the longest one so far. Exits while a thread of the guest was current come before those of the
 * idle task: a gap of the thread shows them. */
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
	if (share_of(vm->demand.vmm_ns, vm->demand.ran + vm->demand.lost) <= FINDING_LIMIT)
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

/* Steps the query of this phase. Returns 1 at its end, 0 if the budget is spent, -1 on error. */
static int step_sub(struct findings_query *v, const struct budget *budget, struct error *err)
{
	return query_step_until(v->sub, budget->until, err);
}

/* Returns the end of the window of the paths. */
static int64_t path_window_end(const struct findings_query *v)
{
	const struct history *h = v->q.catalog->h;
	const double span = (double)history_end(h) - (double)history_begin(h) + 1;
	const double window = (double)v->q.to - (double)v->q.from + 1;
	const double intervals = (double)history_intervals(h) * window / span;
	return intervals <= PATH_INTERVALS_MAX ? v->q.to : v->q.from + (int64_t)(window * (PATH_INTERVALS_MAX / intervals));
}

/* Keeps the largest chain; of chains of similar length the one with the busier target, since a console thread may wait
 * for a shell that waits for the same thread. */
static void end_chain(struct findings_query *v)
{
	const struct victim *c = &v->sleeper[v->at];
	struct path p;
	struct delay_chain chain;
	path_take(v->sub, &p);
	chain_find(v->q.catalog, &c->target, &p, &chain);
	const int64_t wanted = c->demand.ran + c->demand.lost, kept = v->chain_demand.ran + v->chain_demand.lost;
	if (share_of(chain.ns, c->demand.alive) > FINDING_LIMIT &&
	    chain.ns > (wanted > kept ? v->chain.ns / 2 : v->chain.ns * 2)) {
		v->chain = chain;
		v->chain_demand = c->demand;
	}
	path_release(&p);
}

static int walk_chains(struct findings_query *v, struct budget *budget, struct error *err)
{
	const int64_t to = path_window_end(v);
	while (v->at < v->sleepers && !v->is_spread) {
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
	locks_take(v->sub, &l);
	sum_locks(v, &l);
	locks_release(&l);
	query_close(v->sub);
	v->sub = NULL;
	return 1;
}

/* ---- The query ------------------------------------------------------------------------------------------------------ */

static int run_phase(struct findings_query *v, struct budget *budget, struct error *err)
{
	switch (v->phase) {
	case PHASE_CHOOSE:
		return findings_choose(v, err) < 0 ? -1 : 1;
	case PHASE_EXITS:
		return walk_exits(v, budget, err);
	case PHASE_VICTIMS:
		return walk_victims(v, budget, err);
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
	return findings_rank((struct findings_query *)q, err) < 0 ? -1 : 1;
}

static void findings_close(struct query *q)
{
	struct findings_query *v = (struct findings_query *)q;
	query_close(v->sub);
	if (v->open)
		resolver_release(&v->r);
	gap_rows_release(&v->rows);
	actors_release(&v->actors);
	findings_release(&v->answer);
	free(v->victim);
	free(v->entry);
	free(v->taken);
	free(v->others);
	free(v->dark);
}

static const struct query_kind findings_query = { findings_walk, findings_join, findings_close };

struct query *findings_open(const struct catalog *catalog, const struct target *target, int64_t from, int64_t to)
{
	struct findings_query *v = mem_new(1, sizeof *v);
	from = from > history_begin(catalog->h) ? from : history_begin(catalog->h);
	to = to < history_end(catalog->h) ? to : history_end(catalog->h);
	query_init(&v->q, &findings_query, catalog, from, to, 1);
	v->has_target = target != NULL;
	if (target)
		v->target = *target;
	v->exit.end = -1;
	v->lock_culprit = (struct actor){ -1, -1, 0, FLOW_RUNNING, 0 };
	return &v->q;
}

void findings_take(struct query *q, struct findings *out)
{
	struct findings_query *v = (struct findings_query *)q;
	*out = v->answer;
	v->answer = (struct findings){ 0 };
}

int findings_of(const struct catalog *catalog, const struct target *target, int64_t from, int64_t to, struct findings *out,
                struct error *err)
{
	struct query *q = findings_open(catalog, target, from, to);
	const int status = query_run(q, NULL, err);
	*out = (struct findings){ 0 };
	if (status == 0)
		findings_take(q, out);
	query_close(q);
	return status;
}

void findings_release(struct findings *f)
{
	free(f->item);
	*f = (struct findings){ 0 };
}

int finding_first(const struct history *h, int64_t begin, int64_t end, struct finding *out, struct error *err)
{
	struct catalog catalog;
	struct findings all = { 0 };
	int status = catalog_open(&catalog, h, err);
	if (status == 0)
		status = findings_of(&catalog, NULL, begin, end, &all, err);
	if (status == 0)
		*out = all.item[0];
	findings_release(&all);
	catalog_release(&catalog);
	return status;
}
