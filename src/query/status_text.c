/* The viewer's status sentence: one line about one row at one moment.
 *
 * In a gap: cost of the flow of that gap.  Elsewhere: one look at the interval and at who wakes or runs. */
#include "query/explain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/timefmt.h"

/* " by host/2101 burnP6 on CPU3": who took most of a gap; " partly by" where that is not half of it, so that it stays true
 * where the line has no room for the share. */
static void tell_gap(const struct topo *topo, const struct subject *self, const struct flow *f, char *buf, size_t size)
{
	char who[NAME_TEXT], cpu[24] = "", more[64] = "";
	const struct flow_entry *e = f->entry;
	struct thief thief;
	flow_thief(topo, self, f->entry, f->entries, &thief);
	while (thief.parties == 1 && e < f->entry + f->entries - 1 && !party_same(&e->who, &thief.who))
		e++;
	const double share = (double)thief.ns / (double)(f->end - f->start + 1);
	const enum flow_kind kind = (enum flow_kind)thief.who.kind;
	if (thief.parties == 1 && e->longest.pcpu >= 0)
		snprintf(cpu, sizeof cpu, " on CPU%d", e->longest.pcpu);
	if (f->entries > thief.parties)
		snprintf(more, sizeof more, " (%.0f %%) and %zu more", 100 * share, f->entries - thief.parties);
	explain_party(topo, &thief.who, f->name[thief.who.name], self, who, sizeof who);
	if (kind == FLOW_IDLE_CPU && !advice_stayed_idle(e))
		snprintf(buf, size, ", waking up or moving%s%s", *cpu ? " to" : "", *cpu ? cpu + strlen(" on") : "");
	else if (kind == FLOW_IDLE_CPU)
		snprintf(buf, size, " although %s was idle", *cpu ? cpu + strlen(" on ") : "its CPU");
	else
		snprintf(buf, size, "%s%s%s%s", kind == FLOW_WAITING ? "" : share < 0.495 ? " partly" : "",
		         kind == FLOW_LIMITED ? " due to " : kind == FLOW_WAITING ? ", " : " by ", who, cpu);
	snprintf(buf + strlen(buf), size - strlen(buf), "%s", more);
}

/* Does who has a vCPU at t, and until then, have it for a part of the moment alone? */
static int is_part(const struct topo *topo, const struct gap *moment, int64_t t, int64_t until, struct error *err)
{
	struct interval iv = { .start = moment->start };
	const struct topo_cpu *cpu = &topo->cpu[moment->subject.index];
	if (moment->subject.kind != SUBJECT_CPU || topo->machine[cpu->machine].kind != MACHINE_VM)
		return 0;
	if (cpu->current != HISTORY_NONE && history_stab(topo->h, cpu->current, t, &iv, err) < 0)
		return -1;
	return iv.start > moment->start || until < moment->end;
}

/* Running: on which CPU.  Asleep: who will wake it.  A pCPU, or a vCPU that executes: who has it; ", here by" where others
 * have it, too. */
static int tell_piece(const struct topo *topo, const struct gap *moment, int64_t t, char *buf, size_t size,
                      struct error *err)
{
	struct resolver r;
	struct piece p;
	char who[NAME_TEXT], cpu[24] = "";
	bool is_cpu = moment->subject.kind == SUBJECT_CPU;
	int part = 0;
	resolver_init(&r, topo, moment->start, moment->end, err);
	r.until = moment->end;
	if (resolve_subject(&r, &moment->subject, t, &p) < 0 || (part = is_part(topo, moment, t, r.until, err)) < 0) {
		resolver_release(&r);
		return -1;
	}
	*buf = '\0';
	if (p.pcpu >= 0)
		snprintf(cpu, sizeof cpu, " on CPU%d", p.pcpu);
	const bool is_asleep = p.who.kind == FLOW_WAITING, knows = is_cpu && p.who.tid >= 0;  /* which thread of the guest */
	if (is_asleep)
		p.who.kind = p.who.tid < 0 ? FLOW_IRQ : FLOW_PREEMPTING;
	explain_party(topo, &p.who, strtab_get(&r.names, p.who.name), &moment->subject, who, sizeof who);
	if (is_asleep && p.who.system >= 0)
		snprintf(buf, size, ", woken by %s", who);
	else if (is_asleep)
		*buf = '\0';
	else if (p.who.kind == FLOW_RUNNING)
		snprintf(buf, size, "%s%s%s", !knows ? "" : part ? ", here by " : " by ", knows ? who : "", cpu);
	else if (p.who.kind == FLOW_HYPERVISOR || p.who.kind == FLOW_IRQ || p.who.kind == FLOW_PREEMPTING)
		snprintf(buf, size, "%s by %s%s", part ? ", here" : "", who, cpu);
	resolver_release(&r);
	return 0;
}

/* A machine: what it lost in the whole history. */
static int tell_machine(const struct topo *topo, const struct subject *s, char *buf, size_t size, struct error *err)
{
	int64_t ns;
	char d[TIME_TEXT], name[NAME_TEXT];
	if (steal_time(topo, s, history_begin(topo->h), history_end(topo->h), &ns, err) < 0)
		return -1;
	snprintf(buf, size, "%s was kept from running for %s in all", topo_subject_text(topo, s, name, sizeof name),
	         time_duration(d, ns));
	return 0;
}

/* A pCPU has no status: its current thread tells. */
static const char *state_of(const struct topo *topo, const struct gap *m, char buf[NAME_TEXT])
{
	if (m->subject.kind == SUBJECT_CPU && topo->machine[topo->cpu[m->subject.index].machine].kind != MACHINE_VM)
		return m->state == 0 ? "idle" : m->state == HISTORY_NULL ? "unknown" : "busy";
	return text_escape(buf, NAME_TEXT, explain_state_name(topo, &m->subject, m->state));
}

/* ", left for hlt": why a vCPU that does not execute was left; nothing where that was not recorded. */
static const char *exit_of(const struct topo *topo, const struct gap *m, char buf[NAME_TEXT])
{
	struct interval iv;
	char reason[NAME_TEXT / 2];
	buf[0] = '\0';
	if (m->subject.kind != SUBJECT_CPU || m->state < 0 || m->state >= HISTORY_STATES)
		return buf;
	const struct topo_cpu *cpu = &topo->cpu[m->subject.index];
	enum vcpu_state state = topo->vcpu_state[m->state];
	if (cpu->exit == HISTORY_NONE || state == VCPU_RUNNING || state == VCPU_UNKNOWN ||
	    history_stab(topo->h, cpu->exit, m->start, &iv, NULL) < 0 || iv.value == HISTORY_NULL)
		return buf;
	text_escape(reason, sizeof reason, history_string(topo->h, iv.value));
	snprintf(buf, NAME_TEXT, ", left for %s", reason);
	return buf;
}

static void tell_moment(const struct topo *topo, const struct gap *moment, const char *rest, char *buf, size_t size)
{
	char name[NAME_TEXT], state[NAME_TEXT], left[NAME_TEXT], at[TIME_TEXT], d[TIME_TEXT];
	snprintf(buf, size, "%s %s %s %s%s%s", topo_subject_text(topo, &moment->subject, name, sizeof name),
	         time_clock(at, moment->start, 4), state_of(topo, moment, state),
	         time_duration(d, moment->end - moment->start + 1), rest, exit_of(topo, moment, left));
}

void explain_status_of(const struct topo *topo, const struct gap *gap, const struct flow *f, char *buf, size_t size)
{
	char rest[2 * NAME_TEXT];
	tell_gap(topo, &gap->subject, f, rest, sizeof rest);
	tell_moment(topo, gap, rest, buf, size);
}

int explain_status(const struct topo *topo, const struct subject *s, int64_t t, char *buf, size_t size,
                   struct error *err)
{
	struct gap moment;
	char rest[2 * NAME_TEXT] = "";
	if (size)
		*buf = '\0';
	if (s->kind == SUBJECT_MACHINE)
		return tell_machine(topo, s, buf, size, err);
	int in_gap = explain_moment(topo, s, t, &moment, err);
	if (in_gap > 0) {
		struct flow f;
		if (flow_of(topo, s, moment.start, moment.end, &(struct flow_options){ 0 }, &f, err) < 0)
			return -1;
		explain_status_of(topo, &moment, &f, buf, size);
		flow_release(&f);
		return 0;
	}
	if (in_gap < 0 || (moment.state != HISTORY_NULL && tell_piece(topo, &moment, t, rest, sizeof rest, err) < 0))
		return -1;
	tell_moment(topo, &moment, rest, buf, size);
	return 0;
}
