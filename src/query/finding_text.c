/* Writes findings: their sentences, numbers and moments. Each sentence names the base of its share. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/timefmt.h"
#include "query/finding_causes.h"

#define MAIN_SHARE 0.3         /* minimum share of the lost time of a rank for a cause to be named first */

#define AMOUNT_TEXT (ACTOR_TEXT + 80)

double share_of(int64_t ns, int64_t whole)
{
	return whole > 0 ? (double)ns / (double)whole : 0;
}

void finding_add(struct finding *out, const char *format, ...)
{
	const size_t len = strlen(out->text);
	va_list args;
	va_start(args, format);
	vsnprintf(out->text + len, FINDING_TEXT - len, format, args);
	va_end(args);
}

static const char *target_name(const struct catalog *catalog, const struct target *target, char buf[ACTOR_TEXT])
{
	return catalog_target_text(catalog, target, buf, ACTOR_TEXT);
}

/* Writes "2.69 s of Debian (58 % of the time it wanted to run)"; without an owner "2.69 s (58 % of ...)". */
static const char *amount(int64_t ns, const char *owner, int64_t wanted, char buf[AMOUNT_TEXT])
{
	char d[TIME_TEXT];
	const double percent = 100 * share_of(ns, wanted);
	snprintf(buf, AMOUNT_TEXT, "%s%s%s (%.*f %% of the time it wanted to run)", time_duration(d, ns), owner ? " of " : "",
	         owner ? owner : "", percent < 9.95, percent);
	return buf;
}

/* Writes the name of a thread: the one that it had longest; of other actors their machine. */
static const char *thread_name(const struct catalog *catalog, const struct actor *actor, char buf[ACTOR_TEXT])
{
	const int thread = catalog_find_thread(catalog, (uint32_t)actor->machine, actor->tid);
	if (thread >= 0)
		return target_name(catalog, &(struct target){ TARGET_THREAD, (uint32_t)thread }, buf);
	return target_name(catalog, &(struct target){ TARGET_MACHINE, (uint32_t)actor->machine }, buf);
}

/* Returns true for the host of vCPUs without host threads: its only threads stand for the hypervisor. */
static bool is_hypervisor(const struct catalog *catalog, int32_t machine)
{
	return catalog->has_run_states && machine >= 0 && catalog->machine[machine].kind == MACHINE_HOST;
}

/* Writes " (most: 299 grep)": the thread that took most of a cause; "": none. */
static const char *most_text(const struct catalog *catalog, const struct cause *c, char buf[300])
{
	const int thread = c->tid > 0 ? catalog_find_thread(catalog, (uint32_t)c->machine, c->tid) : -1;
	char name[256];
	buf[0] = '\0';
	if (thread >= 0)
		snprintf(buf, 300, " (most: %" PRId32 " %s)", c->tid,
		         text_escape(name, sizeof name, catalog_longest_name(catalog, (uint32_t)thread)));
	return buf;
}

/* Writes a cause as a noun: "host/216 burnP6", "2 burnP6 of host", "other threads of Debian". Returns buf. */
static const char *cause_name(const struct cause_list *l, const struct cause *c, char buf[ACTOR_TEXT])
{
	const struct catalog *catalog = l->catalog;
	char machine[ACTOR_TEXT] = "", name[256] = "", most[300];
	const bool is_own = c->machine == (int32_t)target_machine(catalog, &l->victim);
	const bool alone = catalog_lacks_host_trace(catalog, &l->victim) &&
	                   catalog->machine[target_machine(catalog, &l->victim)].is_virtual;
	const char *provider = alone ? " or the provider" : "";
	if (c->machine >= 0)
		target_name(catalog, &(struct target){ TARGET_MACHINE, (uint32_t)c->machine }, machine);
	if (c->name)
		text_escape(name, sizeof name, c->name);
	switch (c->kind) {
	case CAUSE_THREAD:
		if (is_hypervisor(catalog, c->machine))
			snprintf(buf, ACTOR_TEXT, "the hypervisor itself");
		else if (!c->name)
			snprintf(buf, ACTOR_TEXT, "%u %sthreads of %.250s%.280s%s", c->threads, is_own ? "other " : "", machine,
			         most_text(catalog, c, most), provider);
		else if (c->threads > 1)
			snprintf(buf, ACTOR_TEXT, "%u %.255s of %.300s%s", c->threads, name, machine, provider);
		else if (c->tid < 0)
			snprintf(buf, ACTOR_TEXT, "%s%s%.255s%s", machine, *name ? "/" : "", name, provider);
		else
			snprintf(buf, ACTOR_TEXT, "%.600s%s",
			         thread_name(catalog, &(struct actor){ c->machine, c->tid, 0, 0, 0 }, machine), provider);
		break;
	case CAUSE_MACHINE:
		snprintf(buf, ACTOR_TEXT, "%.300s%.280s%s", machine, most_text(catalog, c, most), provider);
		break;
	case CAUSE_OWN:
		snprintf(buf, ACTOR_TEXT, "other threads of %.300s%s", machine, provider);
		break;
	case CAUSE_IRQ:
		snprintf(buf, ACTOR_TEXT, "interrupts of %.300s (%.255s)", machine, name);
		break;
	case CAUSE_VMM:
		snprintf(buf, ACTOR_TEXT, "VM exits");
		break;
	case CAUSE_LIMIT:
		snprintf(buf, ACTOR_TEXT, "%s", c->reason < OUT_REASON_COUNT ? out_reason_name[c->reason] : "limit");
		break;
	case CAUSE_IDLE_CPU:
		snprintf(buf, ACTOR_TEXT, "wakeup latency%s", provider);
		break;
	case CAUSE_SLEEP:
		snprintf(buf, ACTOR_TEXT, "sleep of its host thread");
		break;
	case CAUSE_UNKNOWN:
		snprintf(buf, ACTOR_TEXT, "unknown");
	}
	return buf;
}

/* Under Xen a quota is the cap of a domain, and a pause may precede the start of the domain. */
static const char *limit_clause(const struct catalog *catalog, unsigned reason)
{
	if (catalog->has_run_states && reason == OUT_QUOTA)
		return "the cap of its domain throttled %s for %s";
	if (catalog->has_run_states && reason == OUT_PAUSE)
		return "%s was paused, or not yet started, for %s";
	return out_reason_row[reason].clause;
}

/* Writes "the CPU quota on its group /prod/web (cpu.max: 10 ms per 100 ms)": whose limit it is. Returns false if that is
 * unknown. */
static bool limit_owner(const struct cause_list *l, const struct cause *c, char buf[ACTOR_TEXT])
{
	const struct catalog *catalog = l->catalog;
	const struct target *row = &c->longest.row, *victim = &l->victim;
	const int32_t thread = row->kind == TARGET_THREAD ? (int32_t)row->index
	                     : row->kind == TARGET_CPU ? catalog->cpu[row->index].host : -1;
	const bool is_quota = c->reason == OUT_QUOTA || c->reason == OUT_QUOTA_OR_OTHERS;
	const uint32_t attr = thread >= 0 && is_quota ? catalog->thread[thread].group : HISTORY_NONE;
	const int32_t machine = victim->kind == TARGET_MACHINE ? catalog->machine[victim->index].group : -1;
	char a[TIME_TEXT], b[TIME_TEXT], path[512];
	struct interval iv;
	bool is_only;
	if (attr == HISTORY_NONE || history_stab(catalog->h, attr, c->longest.start, &iv, NULL) < 0)
		return false;
	const struct catalog_group *limit = catalog_find_limit(catalog, iv.value, &is_only);
	if (!limit)
		return false;
	const int64_t own = machine >= 0 ? machine : iv.value;
	const char *whose = limit == &catalog->group[own] ? (machine >= 0 ? "" : "its group ")
	                  : catalog_group_contains(catalog, limit, own) ? "its parent group " : "";
	time_duration(a, limit->quota_ns);
	time_duration(b, limit->period_ns);
	snprintf(buf, ACTOR_TEXT, "%s %s%s (cpu.max: %s per %s)", is_only ? "the CPU quota on" : "CPU quotas, mostly that on",
	         whose, text_escape(path, sizeof path, limit->path), a, b);
	return true;
}

/* Writes "host/216 burnP6 took 2.69 s of Debian (58 % of the time it wanted to run)". */
static void cause_sentence(const struct cause_list *l, const struct cause *c, int64_t wanted, struct finding *out)
{
	char actor[ACTOR_TEXT], victim[ACTOR_TEXT], of[AMOUNT_TEXT], time[AMOUNT_TEXT];
	target_name(l->catalog, &l->victim, victim);
	amount(c->ns, victim, wanted, of);
	amount(c->ns, NULL, wanted, time);
	switch (c->kind) {
	case CAUSE_OWN:
		target_name(l->catalog, &(struct target){ TARGET_MACHINE, (uint32_t)c->machine }, actor);
		if (l->victim.kind == TARGET_CPU)
			finding_add(out, "other vCPUs of %s took %s", actor, of);
		else
			finding_add(out, "%s of %s took %s from each other",
			         l->catalog->machine[c->machine].kind == MACHINE_VM ? "vCPUs" : "threads", victim, time);
		break;
	case CAUSE_THREAD:
	case CAUSE_MACHINE:
	case CAUSE_IRQ:
		finding_add(out, "%s took %s", cause_name(l, c, actor), of);
		break;
	case CAUSE_VMM:
		finding_add(out, "VM exits of %s took %s", victim, time);
		break;
	case CAUSE_LIMIT:
		if (limit_owner(l, c, actor)) {
			finding_add(out, c->reason == OUT_QUOTA ? "%s throttled %s for %s"
			            : "%s or threads of higher priority kept %s off the CPU for %s", actor, victim, time);
			break;
		}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		finding_add(out, limit_clause(l->catalog, c->reason), victim, time);
#pragma GCC diagnostic pop
		break;
	case CAUSE_IDLE_CPU:
		finding_add(out, "%s delayed %s for %s: the CPU was idle", cause_name(l, c, actor), victim, time);
		break;
	case CAUSE_SLEEP:
		finding_add(out, "the host thread of %s slept for %s while the guest had work", victim, time);
		break;
	case CAUSE_UNKNOWN:
		finding_add(out, "%s lost %s to an unknown culprit", victim, time);
	}
}

/* ---- Findings ------------------------------------------------------------------------------------------------------- */

void finding_set_command(struct finding *out, const struct catalog *catalog)
{
	const struct moment *m = &out->moment;
	if (m->end >= m->start)
		catalog_view_command(catalog, &m->target, m->start, out->command, sizeof out->command);
}

static void set_numbers(struct finding *out, const struct cause_list *l, const struct cause *c, int64_t wanted)
{
	const struct cause_interval *longest = &c->longest;
	const struct actor *a = &longest->actor;
	const bool is_one = c->kind == CAUSE_THREAD && c->threads == 1;
	out->has_target = true;
	out->target = l->victim;
	out->ns = c->ns;
	out->share = share_of(c->ns, wanted);
	out->base = "wanted";
	out->intervals = c->intervals;
	out->culprit = (struct actor){ c->machine, is_one ? c->tid : -1, 0, a->kind, a->reason };
	if (c->kind != CAUSE_UNKNOWN)
		cause_name(l, c, out->culprit_text);
	out->moment = (struct moment){ .target = longest->row, .culprit = *a, .start = longest->start, .end = longest->end };
	actor_text(l->catalog, a, longest->name, ACTOR_PLAIN, NULL, out->moment.culprit_text, ACTOR_TEXT);
	finding_set_command(out, l->catalog);
	out->main_bytes = strlen(out->text);
}

static enum finding_kind kind_of_cause(const struct cause *c)
{
	static const uint8_t kind[] = { [CAUSE_THREAD] = FINDING_CULPRIT, [CAUSE_MACHINE] = FINDING_CULPRIT,
		[CAUSE_IRQ] = FINDING_CULPRIT, [CAUSE_OWN] = FINDING_OWN_THREADS, [CAUSE_VMM] = FINDING_VM_EXITS,
		[CAUSE_LIMIT] = FINDING_LIMIT_SET, [CAUSE_IDLE_CPU] = FINDING_LATENCY, [CAUSE_SLEEP] = FINDING_HOST_BLOCKED,
		[CAUSE_UNKNOWN] = FINDING_UNKNOWN };
	return c->rank == LOSS_OWN && c->kind == CAUSE_THREAD ? FINDING_OWN_THREADS : (enum finding_kind)kind[c->kind];
}

void finding_of_cause(struct finding *out, const struct cause_list *l, const struct cause *c, int64_t wanted)
{
	out->kind = kind_of_cause(c);
	cause_sentence(l, c, wanted, out);
	set_numbers(out, l, c, wanted);
}

static void finding_of_many(struct finding *out, const struct cause_list *l, const struct cause *largest, int64_t wanted)
{
	char victim[ACTOR_TEXT], actor[ACTOR_TEXT], time[AMOUNT_TEXT], d[TIME_TEXT];
	out->kind = kind_of_cause(largest);
	finding_add(out, "%s lost %s to many culprits", target_name(l->catalog, &l->victim, victim),
	            amount(l->rank_ns[largest->rank], NULL, wanted, time));
	set_numbers(out, l, largest, wanted);
	finding_add(out, "; largest: %s, %s", cause_name(l, largest, actor), time_duration(d, largest->ns));
}

/* Counts the VMs with the same parent as the victim's VM, and their vCPUs. Returns the number of the parent's CPUs. */
static uint32_t count_neighbours(const struct catalog *catalog, uint32_t machine, uint32_t *vms, uint32_t *vcpus)
{
	const int32_t parent = catalog->machine[machine].parent;
	*vms = *vcpus = 0;
	for (uint32_t i = 0; i < catalog->machines && parent >= 0; i++) {
		const struct catalog_machine *m = &catalog->machine[i];
		*vms += m->kind == MACHINE_VM && m->parent == parent;
		*vcpus += m->kind == MACHINE_VM && m->parent == parent ? m->cpus : 0;
	}
	return parent < 0 ? 0 : catalog->machine[parent].cpus;
}

static void finding_of_spread(struct finding *out, const struct cause_list *l, int64_t wanted, unsigned machines,
                              int64_t ns)
{
	char victim[ACTOR_TEXT], time[AMOUNT_TEXT], spread[40];
	uint32_t vms, vcpus;
	const uint32_t pcpus = count_neighbours(l->catalog, target_machine(l->catalog, &l->victim), &vms, &vcpus);
	const struct cause *largest = l->cause;
	while (largest->kind != CAUSE_MACHINE)
		largest++;
	const bool are_vms = l->catalog->machine[largest->machine].kind == MACHINE_VM;
	snprintf(spread, sizeof spread, "%u %s", machines, are_vms ? "VMs" : "groups");
	out->kind = FINDING_OVERCOMMITTED;
	if (vcpus > pcpus)
		finding_add(out, "overcommitted: %" PRIu32 " vCPUs of %" PRIu32 " VMs on %" PRIu32 " CPUs; ", vcpus, vms, pcpus);
	target_name(l->catalog, &l->victim, victim);
	finding_add(out, "%s lost %s, spread over %s", victim, amount(ns, NULL, wanted, time), spread);
	set_numbers(out, l, largest, wanted);
	out->ns = ns;
	out->share = share_of(ns, wanted);
	out->culprit = (struct actor){ -1, -1, 0, FLOW_PREEMPTING, 0 };
	snprintf(out->culprit_text, sizeof out->culprit_text, "%s", spread);
}

void finding_of_rank(struct finding *out, const struct cause_list *l, const struct cause *c, int64_t wanted)
{
	int64_t spread_ns;
	const bool is_event = cause_is_event(c, wanted);
	const unsigned vms = c->rank == LOSS_OTHERS && !is_event ? causes_spread(l, &spread_ns) : 0;
	if (vms)
		finding_of_spread(out, l, wanted, vms, spread_ns);
	else if (!is_event && share_of(c->ns, l->rank_ns[c->rank]) < MAIN_SHARE)
		finding_of_many(out, l, c, wanted);
	else
		finding_of_cause(out, l, c, wanted);
}

void finding_of_chain(struct finding *out, const struct catalog *catalog, const struct delay_chain *c, int64_t life)
{
	char culprit[ACTOR_TEXT], helper[ACTOR_TEXT], victim[ACTOR_TEXT], d[TIME_TEXT];
	const double percent = 100 * share_of(c->ns, life);
	const int at = c->at.machine < 0 ? -1 : catalog_find_thread(catalog, (uint32_t)c->at.machine, c->at.tid);
	thread_name(catalog, &c->culprit, culprit);
	out->kind = FINDING_CHAIN;
	finding_add(out, "%s delayed %s, for which %s waited%s: %s (%.*f %% of its life)", culprit,
	            thread_name(catalog, &c->helper, helper), target_name(catalog, &c->target, victim),
	            c->inferred ? " (inferred)" : "", time_duration(d, c->ns), percent < 9.95, percent);
	out->has_target = true;
	out->target = c->target;
	out->culprit = c->culprit;
	snprintf(out->culprit_text, sizeof out->culprit_text, "%s", culprit);
	out->ns = c->ns;
	out->share = share_of(c->ns, life);
	out->base = "life";
	out->intervals = c->intervals;
	out->inferred = c->inferred;
	if (at >= 0)
		out->moment = (struct moment){ .target = { TARGET_THREAD, (uint32_t)at }, .culprit = c->culprit, .start = c->start,
			.end = c->end };
	snprintf(out->moment.culprit_text, ACTOR_TEXT, "%s", culprit);
	finding_set_command(out, catalog);
	out->main_bytes = strlen(out->text);
}

void finding_of_locks(struct finding *out, int64_t ns, int64_t waits)
{
	char d[TIME_TEXT];
	finding_add(out, "; it delayed holders of locks: %" PRId64 " lock wait%s took %s longer", waits, waits == 1 ? "" : "s",
	            time_duration(d, ns));
}
