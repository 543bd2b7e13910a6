/* The verdict as a query in steps.
 *
 * 1. The demands of all vCPUs and threads select the VM that lost most to its host, and a few delayed threads.
 * 2. The gaps of that VM (or of one vCPU) show the causes.
 * 3. The critical paths of the delayed threads show culprits that delayed a thread for which they waited.
 * 4. Lock waits show culprits that delayed the holders.
 * 5. If no VM lost time to its host: the gaps of the thread that lost most.
 *
 * verdict_decide() then writes the sentence. Cost: see verdict_open(). */
#include "query/verdict_causes.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "query/culprit.h"
#include "query/stepped_query.h"

#define CANDIDATES 4           /* number of threads with a critical path */
#define CANDIDATE_LIFE 0.1     /* minimum lifetime of such a thread, share of the window */
#define CANDIDATE_SLEEP 0.1    /* minimum share of its life that it slept */
/* In a longer history, the paths cover the first part of the window with so many intervals. */
#define PATH_INTERVALS_MAX 4000000.0

const char *const verdict_kind_name[VERDICT_KIND_COUNT] = {
#define VERDICT_NAME(code, name) name,
	VERDICT_KINDS(VERDICT_NAME)
#undef VERDICT_NAME
};

enum verdict_phase { PHASE_CHOOSE, PHASE_CAUSES, PHASE_CHAINS, PHASE_LOCKS, PHASE_THREAD, PHASE_END };

struct verdict_query {
	struct query q;
	enum verdict_phase phase;
	struct resolver r;
	bool open;
	struct gap_rows rows;
	size_t row;
	bool walking;
	struct gap_walk walk;
	struct actors actors;     /* actors of the current gaps */
	int64_t *ns;              /* by number of the actor */
	size_t ns_len, ns_cap;
	struct delayed_thread { struct target target; struct demand demand; } candidate[CANDIDATES];
	size_t candidates, at;
	struct demand chain_demand;  /* demand of the target of the chain that is kept */
	struct query *sub;        /* running query of this phase; NULL: none */
	struct findings f;
	struct verdict answer;
};

static double share_of(int64_t ns, int64_t whole)
{
	return whole > 0 ? (double)ns / (double)whole : 0;
}

/* ---- 1. Selection -------------------------------------------------------------------------------------------------- */

static int64_t lost_to_host(const struct demand *d)
{
	return d->lost - d->vmm_ns;
}

/* Compares a VM with the victim so far. */
static int choose_vm(struct verdict_query *v, uint32_t machine, struct error *err)
{
	const struct catalog *catalog = v->q.catalog;
	const struct catalog_machine *m = &catalog->machine[machine];
	struct target vm = { TARGET_MACHINE, machine }, worst = vm;
	struct demand all = { 0 }, d, worst_demand = { 0 };
	double worst_share = 0;
	struct findings *f = &v->f;
	for (uint32_t i = m->cpu; i < m->cpu + m->cpus; i++) {
		const struct target vcpu = { TARGET_CPU, i };
		if (demand_of(catalog, &vcpu, v->q.from, v->q.to, &d, err) < 0)
			return -1;
		all.ran += d.ran, all.lost += d.lost, all.vmm_ns += d.vmm_ns, all.slept += d.slept, all.alive += d.alive;
		const double share = share_of(lost_to_host(&d), d.alive);
		if (share > worst_share && share_of(d.alive, v->q.to - v->q.from + 1) > CANDIDATE_LIFE) {
			worst_share = share;
			worst = vcpu;
			worst_demand = d;
		}
	}
	f->vms++;
	f->vcpus += m->cpus;
	f->worst_share = worst_share > f->worst_share ? worst_share : f->worst_share;
	if (share_of(all.vmm_ns, all.alive) > share_of(f->vmm.vmm_ns, f->vmm.alive)) {
		f->vmm_target = vm;
		f->vmm = all;
	}
	const bool over = worst_share > VERDICT_LIMIT;
	const bool as_vcpu = over && share_of(lost_to_host(&all), all.alive) <= VERDICT_LIMIT;
	const struct demand *mine = as_vcpu ? &worst_demand : &all;
	if (over < f->over_limit || (over == f->over_limit && lost_to_host(mine) <= lost_to_host(&f->demand)))
		return 0;
	f->has_victim = true;
	f->over_limit = over;
	f->victim = as_vcpu ? worst : vm;
	f->demand = *mine;
	return 0;
}

/* Inserts a delayed thread, sorted by lost time. */
static void candidate_add(struct verdict_query *v, const struct delayed_thread *c)
{
	size_t i = v->candidates < CANDIDATES ? v->candidates++ : CANDIDATES;
	for (; i > 0 && v->candidate[i - 1].demand.lost < c->demand.lost; i--)
		if (i < CANDIDATES)
			v->candidate[i] = v->candidate[i - 1];
	if (i < CANDIDATES)
		v->candidate[i] = *c;
}

static int choose_thread(struct verdict_query *v, uint32_t thread, struct error *err)
{
	const struct catalog *catalog = v->q.catalog;
	struct delayed_thread c = { .target = { TARGET_THREAD, thread } };
	struct findings *f = &v->f;
	if (demand_of(catalog, &c.target, v->q.from, v->q.to, &c.demand, err) < 0)
		return -1;
	if (share_of(c.demand.alive, v->q.to - v->q.from + 1) < CANDIDATE_LIFE)
		return 0;
	if (share_of(c.demand.lost, c.demand.alive) > VERDICT_LIMIT && c.demand.lost > f->thread_demand.lost) {
		f->has_thread = true;
		f->thread = c.target;
		f->thread_demand = c.demand;
	}
	if (share_of(c.demand.slept, c.demand.alive) > CANDIDATE_SLEEP && c.demand.lost > 0)
		candidate_add(v, &c);
	return 0;
}

static int choose(struct verdict_query *v, struct error *err)
{
	const struct catalog *catalog = v->q.catalog;
	bool guests = false;
	for (uint32_t i = 0; i < catalog->machines; i++) {
		const struct target machine = { TARGET_MACHINE, i };
		if (catalog->machine[i].kind == MACHINE_HOST)
			v->f.pcpus += catalog->machine[i].cpus;
		guests |= catalog->machine[i].kind == MACHINE_VM;
		if (catalog->machine[i].kind == MACHINE_VM && catalog_has_host_trace(catalog, &machine) &&
		    choose_vm(v, i, err) < 0)
			return -1;
	}
	v->f.alone = guests && v->f.vms == 0;
	for (uint32_t i = 0; i < catalog->threads; i++) {
		const struct catalog_thread *t = &catalog->thread[i];
		if (t->tid > 0 && gap_is_own_thread(catalog, i) &&
		    (!guests || catalog->machine[t->machine].kind == MACHINE_VM) && choose_thread(v, i, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- 2. and 5. Causes of gaps -------------------------------------------------------------------------------------- */

static int actor_add(void *arg, const struct resolution *p, int64_t start, int64_t end)
{
	struct verdict_query *v = arg;
	const uint32_t id = actors_put(&v->actors, &p->actor);
	while (v->ns_len <= id)
		*ARRAY_PUSH(v->ns, v->ns_len, v->ns_cap) = 0;
	v->ns[id] += end - start + 1;
	return 0;
}

static void causes_from_actors(struct verdict_query *v, const struct target *victim, struct cause_list *out)
{
	const uint32_t machine = target_machine(v->q.catalog, victim);
	for (size_t i = 0; i < v->ns_len; i++)
		causes_add(out, v->q.catalog, machine, &v->actors.actor[i], strtab_get(&v->r.names, v->actors.actor[i].name),
		           v->ns[i]);
	causes_sort(out);
	actors_release(&v->actors);
	gap_rows_release(&v->rows);
	v->row = v->ns_len = 0;
}

/* Walks the gaps of all rows of a victim. Returns 1 at the end, 0 if the budget is spent, -1 on error. */
static int walk_victim(struct verdict_query *v, const struct target *victim, struct cause_list *out, struct budget *budget,
                       struct error *err)
{
	v->r.err = err;
	if (!v->rows.row)
		gap_rows_list(&v->rows, v->q.catalog, victim);
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
	causes_from_actors(v, victim, out);
	return 1;
}

/* ---- 3. Critical paths --------------------------------------------------------------------------------------------- */

/* Steps the query of this phase. Returns 1 at its end, 0 if the budget is spent, -1 on error. */
static int step_sub(struct verdict_query *v, const struct budget *budget, struct error *err)
{
	const int64_t left = budget->until == INT64_MAX ? INT64_MAX : budget->until - now_ns();
	return query_step(v->sub, left > 0 ? left : 0, err);
}

/* Returns the end of the window of the paths. */
static int64_t path_window_end(const struct verdict_query *v)
{
	const struct history *h = v->q.catalog->h;
	const double span = (double)history_end(h) - (double)history_begin(h) + 1;
	const double window = (double)v->q.to - (double)v->q.from + 1;
	const double intervals = (double)history_intervals(h) * window / span;
	return intervals <= PATH_INTERVALS_MAX ? v->q.to : v->q.from + (int64_t)(window * (PATH_INTERVALS_MAX / intervals));
}

/* Keeps the largest chain; of chains of similar length the one with the busier target, since a console thread may wait
 * for a shell that waits for the same thread. */
static void end_chain(struct verdict_query *v)
{
	const struct delayed_thread *c = &v->candidate[v->at];
	struct path p;
	struct delay_chain chain;
	path_take(v->sub, &p);
	chain_find(v->q.catalog, &c->target, &p, &chain);
	const bool busier = c->demand.ran + c->demand.lost > v->chain_demand.ran + v->chain_demand.lost;
	if (share_of(chain.ns, c->demand.alive) > VERDICT_LIMIT &&
	    chain.ns > (busier ? v->f.chain.ns / 2 : v->f.chain.ns * 2)) {
		v->f.chain = chain;
		v->f.chain_alive = c->demand.alive;
		v->chain_demand = c->demand;
	}
	path_release(&p);
}

static int walk_chains(struct verdict_query *v, struct budget *budget, struct error *err)
{
	const int64_t to = path_window_end(v);
	int64_t ns;
	if (v->f.over_limit && causes_spread(&v->f.causes, &ns))
		return 1;
	while (v->at < v->candidates) {
		struct error none = ERROR_INIT;
		if (!v->sub)
			v->sub = path_open(v->q.catalog, &v->candidate[v->at].target, v->q.from, to, &none);
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

/* ---- 4. Lock waits ------------------------------------------------------------------------------------------------- */

static void sum_locks(struct verdict_query *v, const struct lock_list *l)
{
	struct findings *f = &v->f;
	int64_t most = 0;
	for (size_t i = 0; i < l->waits; i++) {
		const struct lock_wait *wait = &l->wait[i];
		if (wait->culprit.machine < 0 || wait->holder.machine < 0 || wait->culprit_ns <= 0 ||
		    wait->culprit.machine == wait->waiter.machine)
			continue;
		f->lock_ns += wait->culprit_ns;
		f->lock_waits++;
		if (wait->culprit_ns > most) {
			most = wait->culprit_ns;
			f->lock_culprit = wait->culprit;
		}
	}
}

static int walk_locks(struct verdict_query *v, const struct budget *budget, struct error *err)
{
	const struct target vm = { TARGET_MACHINE, target_machine(v->q.catalog, &v->f.victim) };
	if (!v->f.has_victim || !locks_have_events(v->q.catalog, vm.index))
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

/* ---- The query ----------------------------------------------------------------------------------------------------- */

static int run_phase(struct verdict_query *v, struct budget *budget, struct error *err)
{
	struct findings *f = &v->f;
	switch (v->phase) {
	case PHASE_CHOOSE:
		return choose(v, err) < 0 ? -1 : 1;
	case PHASE_CAUSES:
		return f->has_victim ? walk_victim(v, &f->victim, &f->causes, budget, err) : 1;
	case PHASE_CHAINS:
		return walk_chains(v, budget, err);
	case PHASE_LOCKS:
		return walk_locks(v, budget, err);
	case PHASE_THREAD:
		return f->has_thread && !f->over_limit ? walk_victim(v, &f->thread, &f->thread_causes, budget, err) : 1;
	case PHASE_END:
		break;
	}
	return 1;
}

static int verdict_walk(struct query *q, size_t i, struct budget *budget, struct error *err)
{
	struct verdict_query *v = (struct verdict_query *)q;
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

static int verdict_join(struct query *q, struct error *err)
{
	struct verdict_query *v = (struct verdict_query *)q;
	(void)err;
	verdict_decide(&v->f, &v->answer);
	return 1;
}

static void verdict_close(struct query *q)
{
	struct verdict_query *v = (struct verdict_query *)q;
	query_close(v->sub);
	if (v->open)
		resolver_release(&v->r);
	gap_rows_release(&v->rows);
	actors_release(&v->actors);
	causes_release(&v->f.causes);
	causes_release(&v->f.thread_causes);
	free(v->ns);
}

static const struct query_kind verdict_query = { verdict_walk, verdict_join, verdict_close };

struct query *verdict_open(const struct catalog *catalog, int64_t from, int64_t to)
{
	struct verdict_query *v = mem_new(1, sizeof *v);
	from = from > history_begin(catalog->h) ? from : history_begin(catalog->h);
	to = to < history_end(catalog->h) ? to : history_end(catalog->h);
	query_init(&v->q, &verdict_query, catalog, from, to, 1);
	v->f = (struct findings){ .catalog = catalog, .from = from, .to = to, .lock_culprit = { -1, -1, 0, FLOW_RUNNING, 0 } };
	return &v->q;
}

void verdict_take(struct query *q, struct verdict *out)
{
	*out = ((struct verdict_query *)q)->answer;
}

int verdict_of(const struct catalog *catalog, int64_t from, int64_t to, struct verdict *out, struct error *err)
{
	struct query *q = verdict_open(catalog, from, to);
	const int status = query_run(q, NULL, err);
	*out = (struct verdict){ .healthy = true };
	if (status == 0)
		verdict_take(q, out);
	query_close(q);
	return status;
}

int verdict_find(const struct history *h, int64_t begin, int64_t end, struct verdict *v, struct error *err)
{
	struct catalog catalog;
	int status = catalog_open(&catalog, h, err);
	if (status == 0)
		status = verdict_of(&catalog, begin, end, v, err);
	catalog_release(&catalog);
	return status;
}
