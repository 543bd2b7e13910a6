/* Findings that follow from the victims' causes, and their order: the rules of doc/findings.md. */
#include "query/findings_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/timefmt.h"

#define SECOND_SHARE 0.25      /* minimum time of a victim's second cause, relative to the first one */
#define SMALL_SHARE 0.01       /* minimum share in the time wanted, for a cause with a finding */
#define UNKNOWN_SHARE 0.1      /* minimum share of unknown time that is mentioned */
#define KNOWN_FEW 0.25         /* minimum share of known CPU time for findings that events show nevertheless */
#define KNOWN_MIN 0.5          /* minimum share of known CPU time for "healthy" */
#define SAMPLES 200            /* times at which the CPUs' users are read to estimate the share of known time */

/* ---- Conclusions ---------------------------------------------------------------------------------------------------- */

/* Returns the entry for the same loss kind on a thread's machine; NULL: none. */
static const struct ranked_finding *entry_of_machine(const struct findings_query *v, const struct target *target,
                                                     unsigned rank)
{
	for (size_t i = 0; i < v->entries; i++) {
		const struct finding *f = &v->entry[i].finding;
		if (v->entry[i].rank == rank && f->target.kind != TARGET_THREAD &&
		    target_machine(v->q.catalog, &f->target) == target_machine(v->q.catalog, target))
			return &v->entry[i];
	}
	return NULL;
}

static struct finding *add_entry(struct findings_query *v, const struct victim *victim, unsigned rank)
{
	struct ranked_finding *e = ARRAY_PUSH(v->entry, v->entries, v->entries_cap);
	*e = (struct ranked_finding){ .tier = victim->tier, .rank = rank,
		.finding = { .base = "", .why = NOTE_CODE_COUNT, .culprit = { -1, -1, 0, 0, 0 }, .moment.end = -1 } };
	return &e->finding;
}

/* Adds the finding on a victim's cause, or on all causes with its rank if it is one among many. */
static void add_cause(struct findings_query *v, const struct victim *victim, const struct cause_list *l,
                      const struct cause *c, unsigned rank, bool alone)
{
	const struct demand *d = &victim->demand;
	const bool is_event = cause_is_event(c, demand_wanted(d));
	struct finding *f = add_entry(v, victim, rank);
	if (alone)
		finding_of_rank(f, l, c, demand_wanted(d));
	else
		finding_of_cause(f, l, c, demand_wanted(d));
	f->unknown = share_of(d->alive - d->ran - d->lost - d->slept, d->alive);
	v->is_spread |= f->kind == FINDING_OVERCOMMITTED && victim->tier != TIER_LAST;
	struct ranked_finding *e = &v->entry[v->entries - 1];
	e->is_event = is_event;
	e->weight = alone && rank < LOSS_RANKS ? l->rank_ns[rank] : f->ns;
}

/* Adds a rank's largest other cause, if it is considerable. */
static void add_second(struct findings_query *v, const struct victim *victim, const struct cause_list *l,
                       const struct cause *first)
{
	for (size_t i = 0; i < l->len; i++) {
		const struct cause *c = &l->cause[i];
		if (c == first || c->rank != first->rank || c->kind == CAUSE_UNKNOWN)
			continue;
		if ((double)c->ns >= SECOND_SHARE * (double)first->ns &&
		    share_of(c->ns, demand_wanted(&victim->demand)) >= SMALL_SHARE)
			add_cause(v, victim, l, c, first->rank, false);
		return;
	}
}

/* Adds the only victim's other causes, however small. */
static void add_others(struct findings_query *v, const struct victim *victim, const struct cause_list *l, size_t begin)
{
	for (size_t i = 0; i < l->len && v->entries - begin < FINDINGS_MAX; i++) {
		bool has = false;
		for (size_t k = begin; k < v->entries; k++)
			has |= v->entry[k].finding.ns == l->cause[i].ns;
		if (!has)
			add_cause(v, victim, l, &l->cause[i], LOSS_RANKS, false);
	}
}

int64_t findings_loss(const struct findings_query *v, const struct victim *victim, int64_t part)
{
	const bool has_other = victim->target.kind == v->vmm.target.kind && victim->target.index == v->vmm.target.index;
	return !has_other || 2 * part > victim->demand.lost ? victim->demand.lost : part;
}

void findings_conclude(struct findings_query *v, const struct victim *victim, const struct cause_list *l)
{
	const int64_t all = demand_wanted(&victim->demand);
	const size_t begin = v->entries;
	const uint32_t machine = target_machine(v->q.catalog, &victim->target);
	int64_t *best = &v->best[victim->tier];
	if (victim->target.kind == TARGET_MACHINE && v->q.catalog->machine[machine].kind == MACHINE_CONTAINER)
		v->others[machine] = l->rank_ns[LOSS_OTHERS];
	*best = l->rank_ns[LOSS_OTHERS] > *best ? l->rank_ns[LOSS_OTHERS] : *best;
	bool known = false;  /* its machine has findings on these losses */
	for (unsigned rank = 0; rank < LOSS_RANKS; rank++) {
		const struct cause *first = causes_first(l, rank, all);
		if (!first || (share_of(l->rank_ns[rank], all) <= FINDING_LIMIT && !cause_is_event(first, all)))
			continue;
		if (victim->target.kind == TARGET_THREAD && entry_of_machine(v, &victim->target, rank)) {
			known = true;
			continue;
		}
		add_cause(v, victim, l, first, rank, true);
		if (rank == LOSS_OTHERS && !v->is_spread && victim->target.kind != TARGET_THREAD && victim->tier != TIER_LAST)
			add_second(v, victim, l, first);
	}
	const struct cause *main = causes_main(l, all);
	if (v->entries == begin && !known && main && share_of(findings_loss(v, victim, l->ns), all) > FINDING_LIMIT)
		add_cause(v, victim, l, main, main->rank, true);
	if (v->has_target)
		add_others(v, victim, l, begin);
}

/* ---- Nothing can be said -------------------------------------------------------------------------------------------- */

/* Reads which thread each CPU ran, at some times. *unrecorded: CPUs whose users are never known. Returns the share of known
 * time, or -1. */
static double known_share(const struct findings_query *v, uint32_t *cpus, uint32_t *unrecorded, struct error *err)
{
	const struct catalog *catalog = v->q.catalog;
	uint64_t known = 0, samples = 0;
	*cpus = *unrecorded = 0;
	for (uint32_t i = 0; i < catalog->cpus; i++) {
		const struct catalog_cpu *cpu = &catalog->cpu[i];
		const uint32_t attr = cpu->status != HISTORY_NONE ? cpu->status : cpu->current;
		uint64_t seen = 0;
		if (catalog->has_run_states && catalog->machine[cpu->machine].kind == MACHINE_HOST)
			continue;
		for (int k = 0; k < SAMPLES && attr != HISTORY_NONE; k++) {
			struct interval iv;
			const int64_t t = v->q.from + (int64_t)((double)(v->q.to - v->q.from) * (k + 0.5) / SAMPLES);
			if (history_stab(catalog->h, attr, t, &iv, err) < 0)
				return -1;
			const bool is_state = attr == cpu->status && iv.value >= 0 && iv.value < HISTORY_STATES;
			seen += iv.value != HISTORY_NULL && (!is_state || catalog->vcpu_state[iv.value] != VCPU_UNKNOWN);
		}
		known += seen;
		samples += SAMPLES;
		++*cpus;
		*unrecorded += seen == 0;
	}
	return samples ? (double)known / (double)samples : 0;
}

/* Returns true if no trace that the question concerns has scheduler events. */
static bool is_dark(const struct findings_query *v)
{
	bool all = v->q.catalog->machines > 0;
	for (uint32_t i = 0; i < v->q.catalog->machines; i++)
		all &= v->dark[i] || !v->q.catalog->machine[i].threads;
	if (!v->has_target)
		return all;
	const uint32_t machine = target_machine(v->q.catalog, &v->target);
	const struct catalog_machine *m = &v->q.catalog->machine[machine];
	/* The host's trace shows what a vCPU waits for. */
	return v->dark[machine] && (v->target.kind != TARGET_CPU || m->kind != MACHINE_VM || m->hides_stolen_time);
}

/* Reasons for an unknown culprit or an empty answer, by precedence: the first one with a note on the target. */
static const struct unknown_reason { enum note_code code; const char *text; } unknown_reason[] = {
	{ NOTE_NO_LAYOUT, "no layout describes the events of this trace; name one with --layout" },
	{ NOTE_NO_SCHEDULER_EVENTS, "no scheduler event was recorded; record sched_switch, sched_waking and sched_wakeup" },
	{ NOTE_CPUS_NOT_RECORDED, "CPUs were not recorded; record all CPUs" },
	{ NOTE_LOST_EVENTS, "events are missing; record with larger buffers" },
	{ NOTE_HIDDEN_THREADS, "the kernel hides the events of a thread" },
	{ NOTE_CODE_COUNT, "no event shows who had the CPU" },
};

/* Returns a code's row. */
static const struct unknown_reason *reason_row(enum note_code code)
{
	size_t i = 0;
	while (unknown_reason[i].code != code)
		i++;
	return &unknown_reason[i];
}

/* Returns the first reason that concerns the target (NULL: any machine). Any note on lost events counts as one. */
static const struct unknown_reason *reason_of(const struct findings_query *v, const struct target *target)
{
	const struct unknown_reason *r = unknown_reason;
	while (r->code != NOTE_CODE_COUNT && !findings_have_note(v, target, r->code, 0) &&
	       (r->code != NOTE_LOST_EVENTS || !findings_have_note(v, target, NOTE_CODE_COUNT, NOTE_KIND_LOSS)))
		r++;
	return r;
}

/* Replaces the findings by why the recording does not show who ran, and what to record. Returns 1; 0: it shows enough; -1:
 * error. */
static int add_nothing(struct findings_query *v, struct error *err)
{
	const struct target *target = v->has_target ? &v->target : NULL;
	uint32_t cpus, unrecorded;
	double known = 1;
	if (is_dark(v) || !v->observed)
		known = 0;
	else if (!v->entries || findings_have_note(v, target, NOTE_CODE_COUNT, NOTE_KIND_LOSS))
		known = known_share(v, &cpus, &unrecorded, err);
	if (known < 0 || known >= (v->entries ? KNOWN_FEW : KNOWN_MIN))
		return known < 0 ? -1 : 0;
	v->entries = 0;
	struct finding *f = add_entry(v, &(struct victim){ .tier = TIER_GUESTS }, 0);
	f->kind = FINDING_NOTHING;
	f->unknown = 1 - known;
	const struct unknown_reason *why = reason_of(v, target);
	if (why->code == NOTE_CODE_COUNT && (known == 0 ? !v->has_target : 2 * unrecorded >= cpus))
		why = reason_row(known == 0 ? NOTE_NO_SCHEDULER_EVENTS : NOTE_CPUS_NOT_RECORDED);
	f->why = why->code;
	finding_add(f, "nothing can be said: ");
	if (known > 0)
		finding_add(f, "who ran is unknown for %.0f %% of the CPU time, because ", 100 * f->unknown);
	finding_add(f, "%s", why->text);
	f->main_bytes = strlen(f->text);
	return 1;
}

/* ---- Order ---------------------------------------------------------------------------------------------------------- */

const struct ranked_finding *findings_first_direct(const struct findings_query *v)
{
	const struct ranked_finding *first = NULL;
	for (size_t i = 0; i < v->entries; i++)
		if (v->entry[i].tier != TIER_LAST && v->entry[i].rank == LOSS_OTHERS && v->entry[i].finding.kind != FINDING_CHAIN &&
		    (!first || v->entry[i].weight > first->weight))
			first = &v->entry[i];
	return first;
}

/* A chain comes first if it is longer than all that others took directly, otherwise after the first direct culprit. */
static void add_chain(struct findings_query *v)
{
	const struct ranked_finding *direct = findings_first_direct(v);
	const int64_t below = direct && v->chain.ns <= v->best[direct->tier] ? direct->weight - 1 : INT64_MAX;
	if (v->chain.ns == 0)
		return;
	finding_of_chain(add_entry(v, &(struct victim){ .tier = TIER_GUESTS }, LOSS_OTHERS), v->q.catalog, &v->chain,
	                 v->chain_demand.alive);
	v->entry[v->entries - 1].weight = v->chain.ns < below ? v->chain.ns : below;
}

/* Makes the finding one on what was recorded, after the text that says what is missing. */
static void qualify(struct finding *f, const char *missing)
{
	char text[FINDING_TEXT];
	snprintf(text, sizeof text, "%s", f->text);
	f->kind = FINDING_UNKNOWN;
	snprintf(f->text, sizeof f->text, "%s", missing);
	f->main_bytes += strlen(f->text);
	finding_add(f, "%s", text);
}

/* Without a source for stolen time it is unknown whether the guest's threads or the provider had the vCPU. A machine that
 * may be physical has no provider, and a note that asks what it is. */
static void add_no_source(const struct findings_query *v, struct finding *f)
{
	const struct catalog *catalog = v->q.catalog;
	bool is_guest = false;
	for (uint32_t i = 0; i < catalog->machines; i++)
		is_guest |= catalog->machine[i].is_virtual;
	for (int code = 0; code < NOTE_CODE_COUNT && f->why == NOTE_CODE_COUNT; code++)
		if (note_code_hides_steal((enum note_code)code) && findings_have_note(v, NULL, (enum note_code)code, 0))
			f->why = (enum note_code)code;
	qualify(f, !is_guest ? "unless this is a VM, whose host would be invisible here, "
	           : "no host trace and no steal clock: time taken by the host is invisible here and counts as running; "
	             "inside the guest, ");
}

/* Without wakeups only preempted threads' waits are visible: too little for "healthy". */
static void add_no_wakeups(struct finding *f)
{
	f->why = NOTE_NO_WAKEUPS;
	qualify(f, "no wakeups were recorded: waits after a sleep are invisible; apart from them, ");
}

static void add_healthy(struct findings_query *v)
{
	char name[ACTOR_TEXT];
	struct finding *f = add_entry(v, &(struct victim){ .tier = TIER_GUESTS }, 0);
	const bool is_partial = v->alone || v->no_wakeups;
	f->kind = FINDING_HEALTHY;
	if (v->has_target && is_partial)
		finding_add(f, "nothing that was recorded delayed %s considerably",
		            catalog_target_text(v->q.catalog, &v->target, name, sizeof name));
	else if (v->has_target)
		finding_add(f, "healthy: %s lost %.1f %% of the time it wanted to run",
		            catalog_target_text(v->q.catalog, &v->target, name, sizeof name), 100 * v->worst_share);
	else
		finding_add(f, "%snothing lost more than %.0f %% of the time it wanted to run", is_partial ? "" : "healthy: ",
		            100 * FINDING_LIMIT);
	f->main_bytes = strlen(f->text);
	if (v->worst_share > 0 && !v->has_target)
		finding_add(f, "; most: %s, %.1f %%", catalog_target_text(v->q.catalog, &v->worst, name, sizeof name),
		            100 * v->worst_share);
	f->has_target = v->worst_share > 0 || v->has_target;
	f->target = v->worst;
	f->share = v->worst_share;
	f->base = "wanted";
}

/* Returns true if a finding's culprit is the thread, or contains it. */
static bool finding_has_culprit(const struct findings_query *v, const struct finding *f, const struct actor *thread)
{
	const struct catalog *catalog = v->q.catalog;
	if (f->kind != FINDING_CULPRIT || f->culprit.machine != thread->machine || thread->machine < 0)
		return false;
	const int i = catalog_find_thread(catalog, (uint32_t)thread->machine, thread->tid);
	const int own = catalog_find_thread(catalog, (uint32_t)thread->machine, f->moment.culprit.tid);
	return catalog->machine[thread->machine].kind == MACHINE_VM || f->culprit.tid == thread->tid ||
	       (f->culprit.tid < 0 && i >= 0 && own >= 0 &&
	        !strcmp(catalog_longest_name(catalog, (uint32_t)i), catalog_longest_name(catalog, (uint32_t)own)));
}

static int compare_entries(const void *a, const void *b)
{
	const struct ranked_finding *x = a, *y = b;
	if ((x->tier == TIER_LAST) != (y->tier == TIER_LAST))
		return x->tier == TIER_LAST ? 1 : -1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->is_event != y->is_event)
		return x->is_event ? -1 : 1;
	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return (x->finding.target.index > y->finding.target.index) - (x->finding.target.index < y->finding.target.index);
}

/* Among findings with similar losses, the one with the largest share in the time wanted comes first. */
static void order_entries(struct findings_query *v)
{
	qsort(v->entry, v->entries, sizeof *v->entry, compare_entries);
	for (size_t i = 0; i < v->entries; i++) {
		const struct ranked_finding *first = &v->entry[i];
		size_t best = i;
		for (size_t k = i + 1; k < v->entries && first->finding.kind != FINDING_CHAIN; k++) {
			const struct ranked_finding *e = &v->entry[k];
			const bool similar = (e->tier == TIER_LAST) == (first->tier == TIER_LAST) && e->rank == first->rank &&
			                     e->is_event == first->is_event &&
			                     (double)e->weight >= SIMILAR_SHARE * (double)first->weight;
			const bool doubtful = e->finding.unknown >= UNKNOWN_SHARE && first->finding.unknown < UNKNOWN_SHARE;
			if (similar && !doubtful && e->finding.kind != FINDING_CHAIN && e->finding.share > v->entry[best].finding.share)
				best = k;
		}
		const struct ranked_finding chosen = v->entry[best];
		memmove(&v->entry[i + 1], &v->entry[i], (best - i) * sizeof *v->entry);
		v->entry[i] = chosen;
	}
}

/* Adds the same loss's next culprit to the verdict. */
static void add_second_clause(const struct findings_query *v, struct finding *out)
{
	char d[TIME_TEXT];
	const struct ranked_finding *first = &v->entry[0];
	for (size_t i = 1; i < v->entries && first->finding.kind != FINDING_CHAIN; i++) {
		const struct finding *f = &v->entry[i].finding;
		const bool is_provider = f->kind == FINDING_LIMIT_SET && f->culprit.reason == OUT_PROVIDER;
		const bool unknown = is_provider || f->kind == FINDING_UNKNOWN;
		if ((v->entry[i].rank == first->rank || v->entry[i].rank == LOSS_UNKNOWN) && f->kind != FINDING_CHAIN &&
		    f->target.kind == first->finding.target.kind && f->target.index == first->finding.target.index &&
		    (unknown || *f->culprit_text)) {
			finding_add(out, "; %s: %s", unknown ? "for an unknown reason" : f->culprit_text, time_duration(d, f->ns));
			return;
		}
	}
}

/* Returns true if some finding is above the limit: not only the only victim's smaller causes. */
static bool has_findings(const struct findings_query *v)
{
	bool found = false;
	for (size_t i = 0; i < v->entries; i++)
		found |= v->entry[i].rank < LOSS_RANKS;
	return found;
}

int findings_rank(struct findings_query *v, struct error *err)
{
	char name[ACTOR_TEXT];
	v->no_wakeups = findings_have_note(v, v->has_target ? &v->target : NULL, NOTE_NO_WAKEUPS, 0);
	add_chain(v);
	const int nothing = add_nothing(v, err);
	if (nothing < 0)
		return -1;
	if (!nothing && !has_findings(v))
		add_healthy(v);
	order_entries(v);
	v->answer.len = v->entries < FINDINGS_MAX ? v->entries : FINDINGS_MAX;
	v->answer.item = mem_new(v->answer.len, sizeof *v->answer.item);
	for (size_t i = 0; i < v->answer.len; i++) {
		struct finding *f = &v->answer.item[i];
		*f = v->entry[i].finding;
		if (v->lock_ns && finding_has_culprit(v, f, &v->lock_culprit)) {
			finding_of_locks(f, v->lock_ns, v->lock_waits);
			v->lock_ns = 0;
		}
		if (f->kind == FINDING_UNKNOWN) {
			const struct unknown_reason *why = reason_of(v, f->has_target ? &f->target : NULL);
			f->why = why->code;
			finding_add(f, ", because %s", why->text);
			f->main_bytes = strlen(f->text);
		}
		if (i == 0)
			add_second_clause(v, f);
		if (i == 0 && v->alone && !nothing)
			add_no_source(v, f);
		else if (f->kind == FINDING_HEALTHY && v->no_wakeups)
			add_no_wakeups(f);
		if (f->kind == FINDING_CULPRIT && findings_have_note(v, &f->target, NOTE_QUOTA_POSSIBLE, 0))
			finding_add(f, "; part of it may be its own CPU limit's");
		if (f->unknown >= UNKNOWN_SHARE && f->has_target)
			finding_add(f, "; %.0f %% of the time of %s is unknown", 100 * f->unknown,
			            catalog_target_text(v->q.catalog, &f->target, name, sizeof name));
	}
	return 0;
}
