/* Selection of victims: the clauses base, limit, floor and tiers of doc/findings.md. */
#include "query/findings_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"

#define EVENT_BOUND 100000000  /* a VM that lost so much may have been paused: its gaps are read, ns */
#define SLEEPER_LIFE 0.1       /* minimum lifetime of a thread with a critical path, share of the window */

bool findings_have_note(const struct findings_query *v, const struct target *target, enum note_code code,
                        enum note_kind kind)
{
	struct notes notes = { 0 };
	bool found = false;
	warnings_of(v->q.catalog, target, v->q.from, v->q.to, &notes);
	for (size_t i = 0; i < notes.len; i++)
		found |= code == NOTE_CODE_COUNT ? notes.item[i].kind == kind : notes.item[i].code == code;
	notes_release(&notes);
	return found;
}

static double window_ns(const struct findings_query *v)
{
	return (double)(v->q.to - v->q.from + 1);
}

static void demand_join(struct demand *sum, const struct demand *d)
{
	sum->ran += d->ran, sum->lost += d->lost, sum->vmm_ns += d->vmm_ns, sum->slept += d->slept, sum->alive += d->alive;
}

/* Returns true for threads of programs that record: they are never victims. */
static bool is_recorder(const char *name)
{
	static const char *const recorder[] = { "stealscope", "lttng", "trace-cmd", "perf", "xentrace", "traced" };
	for (size_t i = 0; i < sizeof recorder / sizeof *recorder; i++) {
		const size_t n = strlen(recorder[i]);
		if (strncmp(name, recorder[i], n) == 0 && (!name[n] || strchr("-_ ", name[n])))
			return true;
	}
	return false;
}

/* Returns true if the thread, or its process, records. */
static bool thread_is_recorder(const struct catalog *catalog, uint32_t thread)
{
	const struct catalog_thread *t = &catalog->thread[thread];
	struct interval iv;
	if (is_recorder(catalog_longest_name(catalog, thread)))
		return true;
	if (t->pid == HISTORY_NONE || history_stab(catalog->h, t->pid, history_end(catalog->h), &iv, NULL) < 0 ||
	    iv.value <= 0 || iv.value > INT32_MAX || iv.value == t->tid)
		return false;
	const int leader = catalog_find_thread(catalog, t->machine, (int32_t)iv.value);
	return leader >= 0 && is_recorder(catalog_longest_name(catalog, (uint32_t)leader));
}

bool findings_take_last(const struct catalog *catalog, uint32_t machine)
{
	const struct catalog_machine *m = &catalog->machine[machine];
	const bool is_control = catalog->has_run_states && (!strcmp(m->name, "Domain-0") || !strcmp(m->name, "dom 0"));
	bool has_guests = false;
	for (uint32_t i = 0; i < catalog->machines; i++)
		has_guests |= catalog->machine[i].kind == MACHINE_VM;
	return is_control || (m->kind != MACHINE_VM && has_guests && !catalog_is_alone(catalog));
}

/* Returns true if a row waited long enough once. */
static bool had_long_wait(const struct findings_query *v, const struct target *row)
{
	struct gap_walk walk;
	struct gap gap;
	const struct culprit_sums_row *sums = culprit_sums_row_of(&v->sums, v->q.catalog, row);
	if (!v->few)
		return sums && sums->longest >= FINDING_WAIT_MIN;
	bool more = gap_walk_start(&walk, v->q.catalog, row, v->q.from, v->q.to, NULL) > 0;
	while (more && (more = gap_walk_next(&walk, &gap, NULL) > 0))
		if (gap.end - gap.start + 1 >= FINDING_WAIT_MIN)
			return true;
	return false;
}

/* Returns true if the target wanted enough time, or waited long enough once. */
static bool is_above_floor(const struct findings_query *v, const struct target *target, const struct demand *d)
{
	struct gap_rows rows;
	bool is_long = false;
	if ((double)demand_wanted(d) >= FINDING_WANTED_MIN * window_ns(v))
		return true;
	if (d->lost < FINDING_WAIT_MIN)
		return false;
	gap_rows_list(&rows, v->q.catalog, target);
	for (size_t i = 0; i < rows.len && !is_long; i++)
		is_long = had_long_wait(v, &rows.row[i].target);
	gap_rows_release(&rows);
	return is_long;
}

static void add_victim(struct findings_query *v, const struct target *target, const struct demand *d, enum victim_tier tier)
{
	*ARRAY_PUSH(v->victim, v->victims, v->victims_cap) = (struct victim){ *target, *d, tier, d->lost - d->vmm_ns, !v->few };
}

/* Considers a target with this demand as a victim. */
static void consider(struct findings_query *v, const struct target *target, const struct demand *d, enum victim_tier tier)
{
	const double share = share_of(d->lost, demand_wanted(d));
	const bool may_be_event = target->kind == TARGET_MACHINE && d->lost - d->vmm_ns >= EVENT_BOUND;
	if ((share <= v->worst_share && share <= FINDING_LIMIT && !may_be_event) || !is_above_floor(v, target, d))
		return;
	if (share > v->worst_share && tier != TIER_LAST) {
		v->worst_share = share;
		v->worst = *target;
	}
	if (share > FINDING_LIMIT || may_be_event)
		add_victim(v, target, d, tier);
}

/* A VM is the victim; if it lost little, but one of its vCPUs much, that vCPU. */
static int choose_vm(struct findings_query *v, uint32_t machine, struct error *err)
{
	const struct catalog *catalog = v->q.catalog;
	const struct catalog_machine *m = &catalog->machine[machine];
	const struct target vm = { TARGET_MACHINE, machine };
	struct target worst = vm;
	struct demand all = { 0 }, d, worst_demand = { 0 };
	double worst_share = 0;
	const enum victim_tier tier = findings_take_last(catalog, machine) ? TIER_LAST : TIER_GUESTS;
	for (uint32_t i = m->cpu; i < m->cpu + m->cpus; i++) {
		const struct target vcpu = { TARGET_CPU, i };
		if (demand_of(catalog, &vcpu, v->q.from, v->q.to, &d, err) < 0)
			return -1;
		v->observed |= d.ran > 0;
		demand_join(&all, &d);
		const double share = share_of(d.lost - d.vmm_ns, demand_wanted(&d));
		if (share > worst_share && (double)demand_wanted(&d) >= FINDING_WANTED_MIN * window_ns(v)) {
			worst_share = share;
			worst = vcpu;
			worst_demand = d;
		}
	}
	if (tier == TIER_GUESTS && (double)demand_wanted(&all) >= FINDING_WANTED_MIN * window_ns(v) &&
	    share_of(all.vmm_ns, demand_wanted(&all)) > share_of(v->vmm.demand.vmm_ns, demand_wanted(&v->vmm.demand)))
		v->vmm = (struct victim){ vm, all, tier, 0, false };
	if (worst_share > FINDING_LIMIT && share_of(all.lost - all.vmm_ns, demand_wanted(&all)) <= FINDING_LIMIT)
		consider(v, &worst, &worst_demand, tier);
	else
		consider(v, &vm, &all, tier);
	return 0;
}

/* Inserts a delayed thread that slept, sorted by lost time. */
static void add_sleeper(struct findings_query *v, const struct victim *c)
{
	size_t i = v->sleepers < SLEEPERS ? v->sleepers++ : SLEEPERS;
	for (; i > 0 && v->sleeper[i - 1].demand.lost < c->demand.lost; i--)
		if (i < SLEEPERS)
			v->sleeper[i] = v->sleeper[i - 1];
	if (i < SLEEPERS)
		v->sleeper[i] = *c;
}

static void choose_thread(struct findings_query *v, const struct victim *c)
{
	const struct demand *d = &c->demand;
	if (d->lost == 0 || thread_is_recorder(v->q.catalog, c->target.index))
		return;
	if (c->tier != TIER_LAST && (double)d->alive >= SLEEPER_LIFE * window_ns(v) &&
	    (double)demand_wanted(d) >= FINDING_WANTED_MIN * window_ns(v) && share_of(d->slept, d->alive) > SLEEPER_SHARE)
		add_sleeper(v, c);
	consider(v, &c->target, d, c->tier);
}

/* A machine's threads, and the machine if it is a group. A group that lost most time in its recorders is no victim. */
static int choose_threads(struct findings_query *v, uint32_t machine, struct error *err)
{
	const struct catalog *catalog = v->q.catalog;
	const struct catalog_machine *m = &catalog->machine[machine];
	const bool is_last = findings_take_last(catalog, machine);
	struct victim *thread = mem_new(m->threads + 1, sizeof *thread);
	struct demand all = { 0 };
	int64_t recorders = 0;
	size_t n = 0;
	int rc = 0;
	for (uint32_t i = m->thread; i < m->thread + m->threads && rc == 0; i++) {
		struct victim *c = &thread[n];
		if (catalog->thread[i].tid <= 0 || !gap_is_own_thread(catalog, i))
			continue;
		*c = (struct victim){ .target = { TARGET_THREAD, i }, .tier = is_last ? TIER_LAST : TIER_THREADS };
		rc = demand_of(catalog, &c->target, v->q.from, v->q.to, &c->demand, err);
		demand_join(&all, &c->demand);
		v->observed |= c->demand.ran > 0;
		recorders += m->kind == MACHINE_CONTAINER && thread_is_recorder(catalog, i) ? c->demand.lost : 0;
		n++;
	}
	if (rc == 0 && m->kind == MACHINE_CONTAINER && !is_last && recorders <= all.lost / 2)
		consider(v, &(struct target){ TARGET_MACHINE, machine }, &all, TIER_THREADS);
	for (size_t i = 0; i < n && rc == 0; i++)
		choose_thread(v, &thread[i]);
	free(thread);
	return rc;
}

ORDER_BY(compare_victims, struct victim, RISING(tier) FALLING(bound) RISING(target.index))

static int choose_target(struct findings_query *v, struct error *err)
{
	struct victim c = { .target = v->target };
	if (demand_of(v->q.catalog, &v->target, v->q.from, v->q.to, &c.demand, err) < 0)
		return -1;
	v->observed = demand_wanted(&c.demand) + c.demand.slept > 0;
	add_victim(v, &v->target, &c.demand, TIER_GUESTS);
	v->worst = v->target;
	v->worst_share = share_of(c.demand.lost, demand_wanted(&c.demand));
	if (v->target.kind != TARGET_THREAD)
		v->vmm = c;
	else if (share_of(c.demand.slept, c.demand.alive) > SLEEPER_SHARE ||
	         share_of(c.demand.slept, v->q.to - v->q.from + 1) >= EXPLAINED_SLEEP)
		add_sleeper(v, &c);
	return 0;
}

int findings_choose(struct findings_query *v, struct error *err)
{
	const struct catalog *catalog = v->q.catalog;
	bool known = false;
	for (uint32_t i = 0; i < catalog->machines; i++) {
		v->guests |= catalog->machine[i].kind == MACHINE_VM;
		known |= catalog->machine[i].kind == MACHINE_VM && !catalog->machine[i].hides_stolen_time;
	}
	v->alone = v->guests && !known;
	v->others = mem_new(catalog->machines + 1, sizeof *v->others);
	v->dark = mem_new(catalog->machines + 1, sizeof *v->dark);
	const bool has_dark = findings_have_note(v, NULL, NOTE_NO_SCHEDULER_EVENTS, 0);
	for (uint32_t i = 0; i < catalog->machines; i++) {
		v->others[i] = -1;
		v->dark[i] = has_dark && findings_have_note(v, &(struct target){ TARGET_MACHINE, i }, NOTE_NO_SCHEDULER_EVENTS, 0);
	}
	if (v->has_target)
		return choose_target(v, err);
	for (uint32_t i = 0; i < catalog->machines; i++)
		if (catalog->machine[i].kind == MACHINE_VM && !catalog->machine[i].hides_stolen_time && !v->dark[i] &&
		    choose_vm(v, i, err) < 0)
			return -1;
	for (uint32_t i = 0; i < catalog->machines; i++)
		if (!v->dark[i] && choose_threads(v, i, err) < 0)
			return -1;
	ARRAY_SORT(v->victim, v->victims, compare_victims);
	return 0;
}
