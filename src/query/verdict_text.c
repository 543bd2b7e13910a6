/* Decides on the findings of a verdict, and writes the sentence: a main clause on the largest delay, and at most two more
 * on other delays. */
#include "query/verdict_causes.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/timefmt.h"

#define SECOND_SHARE 0.25     /* minimum time of a second cause, as a share of the first one */
#define SECOND_LIMIT 0.01     /* minimum time of a second cause, as a share of the victim's time */
#define EVENT_SHARE 0.02      /* a pause or migration is the first cause from this share of the victim's time on ... */
#define EVENT_NS 100000000    /* ... or from this time on, ns */
#define MAIN_SHARE 0.3        /* minimum share of the lost time for a cause to be named first */
#define UNKNOWN_SHARE 0.1     /* minimum share of unknown time that is mentioned */

#define AMOUNT_TEXT (ACTOR_TEXT + 64)

struct sentence {
	const struct findings *f;
	struct verdict *out;
	size_t len;
};

static __attribute__((format(printf, 2, 3))) void add(struct sentence *s, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	const int n = vsnprintf(s->out->text + s->len, VERDICT_TEXT - s->len, format, args);
	va_end(args);
	s->len += n < 0 ? 0 : (size_t)n < VERDICT_TEXT - s->len ? (size_t)n : VERDICT_TEXT - s->len - 1;
}

static const char *target_name(const struct findings *f, const struct target *target, char buf[ACTOR_TEXT])
{
	return catalog_target_text(f->catalog, target, buf, ACTOR_TEXT);
}

static double share_of(int64_t ns, int64_t whole)
{
	return whole > 0 ? (double)ns / (double)whole : 0;
}

/* Writes "2.69 s of Debian (38 % of its time)"; without an owner "2.69 s (38 % of its time)". */
static const char *amount_of(int64_t ns, const char *owner, int64_t alive, char buf[AMOUNT_TEXT])
{
	char d[TIME_TEXT];
	const double percent = 100 * share_of(ns, alive);
	snprintf(buf, AMOUNT_TEXT, "%s%s%s (%.*f %% of its time)", time_duration(d, ns), owner ? " of " : "",
	         owner ? owner : "", percent < 10, percent);
	return buf;
}

static const char *amount(int64_t ns, int64_t alive, char buf[AMOUNT_TEXT])
{
	return amount_of(ns, NULL, alive, buf);
}

/* Writes the name of a thread: the one that it had longest. */
static const char *thread_name(const struct findings *f, const struct actor *actor, char buf[ACTOR_TEXT])
{
	const int thread = catalog_find_thread(f->catalog, (uint32_t)actor->machine, actor->tid);
	if (thread >= 0)
		return target_name(f, &(struct target){ TARGET_THREAD, (uint32_t)thread }, buf);
	return target_name(f, &(struct target){ TARGET_MACHINE, (uint32_t)actor->machine }, buf);
}

/* ---- Causes -------------------------------------------------------------------------------------------------------- */

/* Returns true for the host of vCPUs without host threads: its only threads stand for the hypervisor. */
static bool is_hypervisor(const struct findings *f, int32_t machine)
{
	return f->catalog->has_run_states && machine >= 0 && f->catalog->machine[machine].kind == MACHINE_HOST;
}

static const char *cause_name(const struct findings *f, const struct cause *c, char buf[ACTOR_TEXT])
{
	char machine[ACTOR_TEXT] = "", name[256] = "";
	if (c->machine >= 0)
		target_name(f, &(struct target){ TARGET_MACHINE, (uint32_t)c->machine }, machine);
	if (c->name)
		text_escape(name, sizeof name, c->name);
	switch (c->kind) {
	case CAUSE_THREAD:
		if (is_hypervisor(f, c->machine))
			snprintf(buf, ACTOR_TEXT, "the hypervisor itself");
		else if (!c->name)
			snprintf(buf, ACTOR_TEXT, "%u threads of %.300s", c->threads, machine);
		else if (c->threads > 1)
			snprintf(buf, ACTOR_TEXT, "%u %.255s of %.300s", c->threads, name, machine);
		else
			return thread_name(f, &(struct actor){ c->machine, c->tid, 0, FLOW_PREEMPTING, 0 }, buf);
		break;
	case CAUSE_VM:
		snprintf(buf, ACTOR_TEXT, "%s", machine);
		break;
	case CAUSE_OWN:
		snprintf(buf, ACTOR_TEXT, "other threads of %.300s%s", machine, f->alone ? " or the provider" : "");
		break;
	case CAUSE_IRQ:
		snprintf(buf, ACTOR_TEXT, "interrupts of %.300s (%.255s)", machine, name);
		break;
	case CAUSE_LIMIT:
		snprintf(buf, ACTOR_TEXT, "%s", name);
		break;
	case CAUSE_IDLE_CPU:
	case CAUSE_SLEEP:
		snprintf(buf, ACTOR_TEXT, "wakeup latency%s", f->alone ? " or the provider" : "");
		break;
	case CAUSE_UNKNOWN:
		snprintf(buf, ACTOR_TEXT, "unknown");
	}
	return buf;
}

/* Sentences on a limit; the arguments are the victim and the time. hypervisor: under Xen; NULL: the same. */
static const struct limit_clause { const char *name, *format, *hypervisor; } limit_clause[] = {
	{ "quota", "a CPU quota (cpu.max) throttled %s for %s", "the cap of its domain throttled %s for %s" },
	{ "quota or others", "a CPU quota or threads of higher priority kept %s off the CPU for %s", NULL },
	{ "pause", "%s was paused for %s", "%s was paused, or not yet started, for %s" },
	{ "migration", "%s was migrated to another process and stood still for %s", NULL },
	{ "pause or migration", "%s was paused or migrated for %s", NULL },
	{ "fault", "page faults on the host stopped %s for %s", NULL },
	{ "move", "moves to other runqueues kept %s off the CPU for %s", NULL },
	{ "pause or quota", "a pause or a cap kept %s off the CPU for %s", NULL },
	{ "provider", "the provider took the CPU of %s for %s", NULL },
	{ "provider: quota", "the provider throttled %s for %s", NULL },
	{ "provider: pause", "the provider paused %s for %s", NULL },
	{ "provider: migration", "the provider migrated %s, which stood still for %s", NULL },
	{ "provider: neighbour", "the provider took the CPU of %s for %s, for a neighbour on the same CPU", NULL },
	{ "vCPU taken", "the provider took the vCPU that %s waited for: %s", NULL },
};

static bool is_event(const struct cause *c)
{
	return c->kind == CAUSE_LIMIT && (!strcmp(c->name, "pause") || !strcmp(c->name, "migration") ||
	                                  !strcmp(c->name, "pause or migration"));
}

static void add_limit(struct sentence *s, const struct cause *c, const char *victim, const char *time)
{
	char name[256];
	for (size_t i = 0; i < sizeof limit_clause / sizeof *limit_clause; i++)
		if (!strcmp(c->name, limit_clause[i].name)) {
			const char *hypervisor = s->f->catalog->has_run_states ? limit_clause[i].hypervisor : NULL;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			add(s, hypervisor ? hypervisor : limit_clause[i].format, victim, time);
#pragma GCC diagnostic pop
			return;
		}
	add(s, "%s kept %s off the CPU for %s", text_escape(name, sizeof name, c->name), victim, time);
}

static void add_cause(struct sentence *s, const struct cause *c, const struct target *target, int64_t alive)
{
	char actor[ACTOR_TEXT], victim[ACTOR_TEXT], time[AMOUNT_TEXT];
	amount(c->ns, alive, time);
	target_name(s->f, target, victim);
	switch (c->kind) {
	case CAUSE_OWN:
		if (target->kind != TARGET_THREAD && s->f->catalog->has_run_states) {
			add(s, "vCPUs of %s took %s from each other",
			    target_name(s->f, &(struct target){ TARGET_MACHINE, (uint32_t)c->machine }, actor), time);
			break;
		}
		__attribute__((fallthrough));
	case CAUSE_THREAD:
	case CAUSE_VM:
	case CAUSE_IRQ:
		add(s, "%s took %s", cause_name(s->f, c, actor), amount_of(c->ns, victim, alive, time));
		break;
	case CAUSE_LIMIT:
		add_limit(s, c, victim, time);
		break;
	case CAUSE_IDLE_CPU:
		add(s, "%s delayed %s for %s: the CPU was idle", cause_name(s->f, c, actor), victim, time);
		break;
	case CAUSE_SLEEP:
		add(s, "the host thread of %s slept for %s while the guest had work", victim, time);
		break;
	case CAUSE_UNKNOWN:
		add(s, "%s lost %s to an unknown culprit (events are missing)", victim, time);
	}
}

static enum verdict_kind kind_of_cause(const struct cause *c)
{
	static const uint8_t kind[] = { [CAUSE_THREAD] = VERDICT_CULPRIT, [CAUSE_VM] = VERDICT_CULPRIT,
		[CAUSE_IRQ] = VERDICT_CULPRIT, [CAUSE_OWN] = VERDICT_OWN_THREADS, [CAUSE_LIMIT] = VERDICT_LIMIT_SET,
		[CAUSE_IDLE_CPU] = VERDICT_LATENCY, [CAUSE_SLEEP] = VERDICT_LATENCY, [CAUSE_UNKNOWN] = VERDICT_UNKNOWN };
	return (enum verdict_kind)kind[c->kind];
}

/* Selects the first cause: a pause or migration of some length, otherwise the largest one. */
static const struct cause *first_cause(const struct cause_list *l, int64_t alive)
{
	for (size_t i = 0; i < l->len; i++)
		if (is_event(&l->cause[i]) &&
		    (l->cause[i].ns >= EVENT_NS || share_of(l->cause[i].ns, alive) >= EVENT_SHARE))
			return &l->cause[i];
	return l->len ? &l->cause[0] : NULL;
}

/* Adds the largest other cause, if it is considerable. */
static void add_second_cause(struct sentence *s, const struct cause_list *l, const struct cause *first, int64_t alive)
{
	char actor[ACTOR_TEXT], d[TIME_TEXT];
	for (size_t i = 0; i < l->len; i++) {
		const struct cause *c = &l->cause[i];
		if (c == first || c->kind == CAUSE_UNKNOWN)
			continue;
		if ((double)c->ns >= SECOND_SHARE * (double)first->ns && share_of(c->ns, alive) >= SECOND_LIMIT)
			add(s, "; %s: %s", cause_name(s->f, c, actor), time_duration(d, c->ns));
		return;
	}
}

static void set_culprit(struct sentence *s, enum verdict_kind kind, const struct target *target, const struct cause *c,
                        int64_t alive)
{
	struct verdict *out = s->out;
	out->kind = kind;
	out->has_target = true;
	out->target = *target;
	out->ns = c->ns;
	out->share = share_of(c->ns, alive);
	out->culprit = (struct actor){ c->machine, c->threads == 1 ? c->tid : -1, 0, FLOW_PREEMPTING, 0 };
	if (c->kind != CAUSE_UNKNOWN)
		cause_name(s->f, c, out->culprit_text);
}

/* ---- Overcommitted hosts ------------------------------------------------------------------------------------------- */

static void add_spread(struct sentence *s, unsigned vms, int64_t ns)
{
	const struct findings *f = s->f;
	char victim[ACTOR_TEXT], time[AMOUNT_TEXT];
	target_name(f, &f->victim, victim);
	amount(f->demand.lost - f->demand.vmm_ns, f->demand.alive, time);
	if (f->vcpus > f->pcpus)
		add(s, "overcommitted: %u vCPUs of %u VMs on %u CPUs; most delayed: %s lost %s, spread over %u VMs", f->vcpus,
		    f->vms, f->pcpus, victim, time, vms);
	else
		add(s, "%s lost %s, spread over %u VMs", victim, time, vms);
	set_culprit(s, VERDICT_OVERCOMMITTED, &f->victim,
	            &(struct cause){ CAUSE_VM, -1, -1, vms, "", ns }, f->demand.alive);
	snprintf(s->out->culprit_text, sizeof s->out->culprit_text, "%u VMs", vms);
}

/* ---- Chains and locks ---------------------------------------------------------------------------------------------- */

static void add_chain(struct sentence *s)
{
	const struct delay_chain *c = &s->f->chain;
	char culprit[ACTOR_TEXT], helper[ACTOR_TEXT], victim[ACTOR_TEXT], time[AMOUNT_TEXT];
	add(s, "%s delayed %s, for which %s waited%s: %s", thread_name(s->f, &c->culprit, culprit),
	    thread_name(s->f, &c->helper, helper), target_name(s->f, &c->target, victim), c->inferred ? " (inferred)" : "",
	    amount(c->ns, s->f->chain_alive, time));
	set_culprit(s, VERDICT_CHAIN, &c->target,
	            &(struct cause){ CAUSE_THREAD, c->culprit.machine, c->culprit.tid, 1, NULL, c->ns }, s->f->chain_alive);
	snprintf(s->out->culprit_text, sizeof s->out->culprit_text, "%s", culprit);
}

/* Returns true if a cause is the thread, or contains it. */
static bool cause_has(const struct findings *f, const struct cause *c, const struct actor *thread)
{
	const int i = thread->machine >= 0 ? catalog_find_thread(f->catalog, (uint32_t)thread->machine, thread->tid) : -1;
	if (c->kind == CAUSE_VM)
		return c->machine == thread->machine;
	return c->kind == CAUSE_THREAD && c->machine == thread->machine && c->name && i >= 0 &&
	       !strcmp(c->name, catalog_longest_name(f->catalog, (uint32_t)i));
}

/* Adds the indirect delays by the culprit of the main clause. Returns true if there are any. */
static bool add_indirect(struct sentence *s, const struct cause *first)
{
	const struct findings *f = s->f;
	char victim[ACTOR_TEXT], helper[ACTOR_TEXT], d[TIME_TEXT];
	const size_t len = s->len;
	if (f->lock_ns && cause_has(f, first, &f->lock_culprit))
		add(s, "; it delayed holders of locks: %" PRId64 " lock wait%s took %s longer", f->lock_waits,
		    f->lock_waits == 1 ? "" : "s", time_duration(d, f->lock_ns));
	else if (f->chain.ns && cause_has(f, first, &f->chain.culprit))
		add(s, "; %s waited %s longer for %s", target_name(f, &f->chain.target, victim), time_duration(d, f->chain.ns),
		    thread_name(f, &f->chain.helper, helper));
	return s->len > len;
}

/* ---- Decision ------------------------------------------------------------------------------------------------------ */

/* The most delayed VM lost time to its host. */
static void write_direct(struct sentence *s)
{
	const struct findings *f = s->f;
	int64_t spread_ns;
	const unsigned vms = causes_spread(&f->causes, &spread_ns);
	const struct cause *first = first_cause(&f->causes, f->demand.alive);
	char victim[ACTOR_TEXT], time[AMOUNT_TEXT], actor[ACTOR_TEXT], d[TIME_TEXT];
	if (vms && !is_event(first)) {
		add_spread(s, vms, spread_ns);
		s->out->main_bytes = s->len;
		return;
	}
	if (!is_event(first) && share_of(first->ns, f->causes.ns) < MAIN_SHARE) {
		add(s, "%s lost %s to many culprits", target_name(f, &f->victim, victim),
		    amount(f->causes.ns, f->demand.alive, time));
		set_culprit(s, kind_of_cause(first), &f->victim, first, f->demand.alive);
		s->out->main_bytes = s->len;
		add(s, "; largest: %s, %s", cause_name(f, first, actor), time_duration(d, first->ns));
		return;
	}
	add_cause(s, first, &f->victim, f->demand.alive);
	set_culprit(s, kind_of_cause(first), &f->victim, first, f->demand.alive);
	s->out->main_bytes = s->len;
	if (!add_indirect(s, first))
		add_second_cause(s, &f->causes, first, f->demand.alive);
}

/* A thread lost time to threads of its own machine, or on its own machine. */
static void write_thread(struct sentence *s)
{
	const struct findings *f = s->f;
	const struct cause *first = first_cause(&f->thread_causes, f->thread_demand.alive);
	add_cause(s, first, &f->thread, f->thread_demand.alive);
	set_culprit(s, kind_of_cause(first), &f->thread, first, f->thread_demand.alive);
	s->out->main_bytes = s->len;
	add_second_cause(s, &f->thread_causes, first, f->thread_demand.alive);
}

static void add_vmm(struct sentence *s)
{
	char victim[ACTOR_TEXT], time[AMOUNT_TEXT];
	add(s, "VM exits of %s took %s", target_name(s->f, &s->f->vmm_target, victim),
	    amount(s->f->vmm.vmm_ns, s->f->vmm.alive, time));
}

static bool has_vmm(const struct findings *f)
{
	return share_of(f->vmm.vmm_ns, f->vmm.alive) > VERDICT_LIMIT;
}

static void write_vmm(struct sentence *s)
{
	const struct findings *f = s->f;
	add_vmm(s);
	set_culprit(s, VERDICT_VM_EXITS, &f->vmm_target,
	            &(struct cause){ CAUSE_LIMIT, -1, -1, 1, "VM exits", f->vmm.vmm_ns }, f->vmm.alive);
	s->out->main_bytes = s->len;
}

static void write_healthy(struct sentence *s)
{
	const struct findings *f = s->f;
	char victim[ACTOR_TEXT];
	s->out->healthy = true;
	s->out->kind = VERDICT_HEALTHY;
	add(s, "healthy: nothing lost more than %.0f %% of its time", 100 * VERDICT_LIMIT);
	s->out->main_bytes = s->len;
	if (!f->has_victim || f->demand.lost == 0)
		return;
	s->out->has_target = true;
	s->out->target = f->victim;
	s->out->ns = f->demand.lost;
	s->out->share = share_of(f->demand.lost, f->demand.alive);
	add(s, "; most: %s, %.1f %%", target_name(f, &f->victim, victim), 100 * s->out->share);
}

/* Adds the share of the victim's time that is unknown. */
static void add_unknown(struct sentence *s)
{
	const struct demand *d = &s->f->demand;
	const double share = share_of(d->alive - d->ran - d->lost - d->slept, d->alive);
	char victim[ACTOR_TEXT];
	if (s->f->has_victim && share >= UNKNOWN_SHARE)
		add(s, "; %.0f %% of the time of %s is unknown", 100 * share, target_name(s->f, &s->f->victim, victim));
}

/* Without a source of stolen time, the answer covers only delays inside the guest. Whether its threads or the provider
 * had the vCPU is unknown. */
static void write_alone(struct sentence *s)
{
	static const char no_source[] =
		"no host trace and no steal clock: time taken by the host is invisible here and counts as running";
	if (s->f->has_thread && s->f->thread_causes.len) {
		add(s, "%s; inside the guest, ", no_source);
		write_thread(s);
		s->out->kind = VERDICT_UNKNOWN;
		return;
	}
	s->out->kind = VERDICT_UNKNOWN;
	add(s, "%s", no_source);
	s->out->main_bytes = s->len;
	add(s, "; inside the guest nothing lost more than %.0f %% of its time", 100 * VERDICT_LIMIT);
}

void verdict_decide(const struct findings *f, struct verdict *out)
{
	struct sentence s = { .f = f, .out = out };
	*out = (struct verdict){ .culprit = { -1, -1, 0, FLOW_RUNNING, 0 } };
	if (f->alone) {
		write_alone(&s);
		return;
	}
	const struct cause *first = first_cause(&f->causes, f->demand.alive);
	const bool direct = first && (f->over_limit || (is_event(first) && first->ns >= EVENT_NS));
	if (direct && !(f->chain.ns > f->causes.ns)) {
		write_direct(&s);
	} else if (f->chain.ns) {
		add_chain(&s);
		out->main_bytes = s.len;
		if (has_vmm(f)) {
			add(&s, "; ");
			add_vmm(&s);
		}
	} else if (f->has_thread && f->thread_causes.len) {
		write_thread(&s);
	} else if (has_vmm(f)) {
		write_vmm(&s);
	} else {
		write_healthy(&s);
	}
	add_unknown(&s);
}
