/* The viewer's status line: one sentence about one row at one time.
 *
 * Cost: in a gap the cost of the gap's flow; elsewhere one lookup of the interval and of its waker or actor. */
#include "base/base.h"
#include "query/explain.h"

/* Writes the main culprit of a gap: " by host/2101 burnP6 on CPU3", or ", 60 % by host/2101 burnP6 on CPU3, 2 others" if
 * there are several culprits. */
static void write_gap_culprit(const struct catalog *catalog, const struct target *self, const struct flow *f, char *buf,
                              size_t size)
{
	char actor[NAME_TEXT], cpu[24] = "", part[32] = "";
	const struct flow_entry *e = f->entry;
	struct top_culprit culprit;
	flow_top_culprit(catalog, self, f->entry, f->entries, &culprit);
	while (culprit.actors == 1 && e < f->entry + f->entries - 1 && !actor_same(&e->actor, &culprit.actor))
		e++;
	const double share = (double)culprit.ns / (double)(f->end - f->start + 1);
	const enum flow_kind kind = (enum flow_kind)culprit.actor.kind;
	const bool is_reason = kind == FLOW_LIMITED || (kind == FLOW_CURRENT && culprit.actor.tid == 0);
	if (culprit.actors == 1 && e->longest.pcpu >= 0)
		snprintf(cpu, sizeof cpu, " on CPU%d", e->longest.pcpu);
	const size_t others = f->entries - culprit.actors;
	if (others)
		snprintf(part, sizeof part, ", %.0f %%", 100 * share);
	actor_text(catalog, &culprit.actor, f->name[culprit.actor.name], ACTOR_SENTENCE, self, actor, sizeof actor);
	if (kind == FLOW_IDLE_CPU && !is_idle_limit(e))
		snprintf(buf, size, "%s wakeup or CPU migration%s%s", others ? part : ",", *cpu ? " to" : "",
		         *cpu ? cpu + strlen(" on") : "");
	else if (kind == FLOW_IDLE_CPU)
		snprintf(buf, size, "%s while %s was idle", part, *cpu ? cpu + strlen(" on ") : "its CPU");
	else
		snprintf(buf, size, "%s%s%s%s", part, is_reason ? " due to " : kind != FLOW_WAITING ? " by " :
		         others ? " " : ", ", actor, cpu);
	if (others)
		snprintf(buf + strlen(buf), size - strlen(buf), ", %zu other%s", others, others == 1 ? "" : "s");
}

/* Returns 1 if the actor that has a vCPU at t, valid until `until`, has it for a part of the interval only. */
static int is_part_of_moment(const struct catalog *catalog, const struct gap *moment, int64_t t, int64_t until,
                             struct error *err)
{
	struct interval iv = { .start = moment->start };
	const struct catalog_cpu *cpu = &catalog->cpu[moment->target.index];
	if (moment->target.kind != TARGET_CPU || catalog->machine[cpu->machine].kind != MACHINE_VM)
		return 0;
	if (cpu->current != HISTORY_NONE && history_stab(catalog->h, cpu->current, t, &iv, err) < 0)
		return -1;
	return iv.start > moment->start || until < moment->end;
}

/* Writes for a running target its CPU; for a sleeping one its waker; for a pCPU, or a vCPU that executes, the actor that
 * has it (", now by" if there are others in the interval). */
static int write_activity(const struct catalog *catalog, const struct gap *moment, int64_t t, char *buf, size_t size,
                          struct error *err)
{
	struct resolver r;
	struct resolution p;
	char actor[NAME_TEXT], cpu[24] = "";
	bool is_cpu = moment->target.kind == TARGET_CPU;
	int part = 0;
	resolver_init(&r, catalog, moment->start, moment->end, err);
	r.until = moment->end;
	if (resolve_target(&r, &moment->target, t, &p) < 0 ||
	    (part = is_part_of_moment(catalog, moment, t, r.until, err)) < 0) {
		resolver_release(&r);
		return -1;
	}
	*buf = '\0';
	if (p.pcpu >= 0)
		snprintf(cpu, sizeof cpu, " on CPU%d", p.pcpu);
	const bool is_asleep = p.actor.kind == FLOW_WAITING;
	const bool is_thread_known = is_cpu && p.actor.tid >= 0;  /* the guest's thread */
	if (is_asleep)
		p.actor.kind = p.actor.tid < 0 ? FLOW_IRQ : FLOW_PREEMPTING;
	actor_text(catalog, &p.actor, strtab_get(&r.names, p.actor.name), ACTOR_SENTENCE, &moment->target, actor, sizeof actor);
	if (is_asleep && p.actor.machine >= 0)
		snprintf(buf, size, ", woken by %s", actor);
	else if (is_asleep)
		*buf = '\0';
	else if (p.actor.kind == FLOW_RUNNING)
		snprintf(buf, size, "%s%s%s", !is_thread_known ? "" : part ? ", now by " : " by ", is_thread_known ? actor : "",
		         cpu);
	else if (p.actor.kind == FLOW_HYPERVISOR || p.actor.kind == FLOW_IRQ || flow_is_thread(p.actor.kind))
		snprintf(buf, size, "%s by %s%s", part ? ", now" : "", actor, cpu);
	resolver_release(&r);
	return 0;
}

int status_of_machine(const struct catalog *catalog, const struct target *target, char **text, struct error *err)
{
	int64_t ns;
	char d[TIME_TEXT], name[NAME_TEXT];
	if (steal_time(catalog, target, history_begin(catalog->h), history_end(catalog->h), &ns, err) < 0)
		return -1;
	*text = mem_printf("%s lost %s in total", catalog_target_text(catalog, target, name, sizeof name),
	                   time_duration(d, ns));
	return 0;
}

/* A pCPU has no status attribute: its current thread shows if it is busy. */
static const char *state_text(const struct catalog *catalog, const struct gap *m, char buf[NAME_TEXT])
{
	if (m->target.kind == TARGET_CPU && catalog->machine[catalog->cpu[m->target.index].machine].kind != MACHINE_VM)
		return m->state == 0 ? "idle" : m->state == HISTORY_NULL ? "unknown" : "busy";
	return text_escape(buf, NAME_TEXT, target_state_name(catalog, &m->target, m->state));
}

/* Writes ", exit reason hlt": the last exit of a vCPU that does not execute; "" if no exit was recorded. */
static const char *exit_text(const struct catalog *catalog, const struct gap *m, char buf[NAME_TEXT])
{
	struct interval iv;
	char reason[NAME_TEXT / 2];
	buf[0] = '\0';
	if (m->target.kind != TARGET_CPU || m->state < 0 || m->state >= HISTORY_STATES)
		return buf;
	const struct catalog_cpu *cpu = &catalog->cpu[m->target.index];
	enum vcpu_state state = catalog->vcpu_state[m->state];
	if (cpu->exit == HISTORY_NONE || state == VCPU_RUNNING || state == VCPU_UNKNOWN ||
	    history_stab(catalog->h, cpu->exit, m->start, &iv, NULL) < 0 || iv.value == HISTORY_NULL)
		return buf;
	text_escape(reason, sizeof reason, history_string(catalog->h, iv.value));
	snprintf(buf, NAME_TEXT, ", exit reason %s", reason);
	return buf;
}

/* Returns the vCPU that the provider took in a gap: the target, or the one on which a thread is current; -1: none. */
static int taken_vcpu(const struct catalog *catalog, const struct gap *gap)
{
	struct interval iv;
	if (gap->target.kind != TARGET_THREAD)
		return gap->target.kind == TARGET_CPU ? (int)gap->target.index : -1;
	const struct catalog_thread *th = &catalog->thread[gap->target.index];
	const bool is_current = gap->state >= 0 && gap->state < HISTORY_STATES &&
	                        catalog->thread_state[gap->state] == THREAD_VIRT_PREEMPTED;
	if (!is_current || th->cpu == HISTORY_NONE || history_stab(catalog->h, th->cpu, gap->start, &iv, NULL) < 0 ||
	    iv.value < 0 || iv.value > UINT32_MAX)
		return -1;
	return catalog_find_cpu(catalog, th->machine, (unsigned)iv.value);
}

const char *gap_bound_text(const struct catalog *catalog, const struct gap *gap, char buf[64])
{
	struct interval iv;
	char d[TIME_TEXT];
	const int cpu = taken_vcpu(catalog, gap);
	const uint32_t attr = cpu < 0 ? HISTORY_NONE : catalog->cpu[cpu].steal_bound;
	buf[0] = '\0';
	if (attr != HISTORY_NONE && history_stab(catalog->h, attr, gap->start, &iv, NULL) == 0 && iv.value >= 0)
		snprintf(buf, 64, " +-%s", time_duration(d, iv.value));
	return buf;
}

static char *moment_text(const struct catalog *catalog, const struct gap *moment, const char *rest)
{
	char name[NAME_TEXT], state[NAME_TEXT], exit[NAME_TEXT], at[TIME_TEXT], d[TIME_TEXT], bound[64];
	return mem_printf("%s %s%s %s %s%s%s", catalog_target_text(catalog, &moment->target, name, sizeof name),
	                  time_clock(at, moment->start, 4), gap_bound_text(catalog, moment, bound),
	                  state_text(catalog, moment, state), time_duration(d, moment->end - moment->start + 1), rest,
	                  exit_text(catalog, moment, exit));
}

void status_of_gap(const struct catalog *catalog, const struct gap *gap, const struct flow *f, char **text)
{
	char rest[2 * NAME_TEXT];
	write_gap_culprit(catalog, &gap->target, f, rest, sizeof rest);
	*text = moment_text(catalog, gap, rest);
}

int status_of_interval(const struct catalog *catalog, const struct gap *moment, int64_t t, char **text, struct error *err)
{
	char rest[2 * NAME_TEXT] = "";
	if (moment->state != HISTORY_NULL && write_activity(catalog, moment, t, rest, sizeof rest, err) < 0)
		return -1;
	*text = moment_text(catalog, moment, rest);
	return 0;
}
