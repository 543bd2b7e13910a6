/* A flow in plain sentences: what it did, what delayed it, how sure that is, where to look next.
 *
 * One sentence per line.  Every number comes from the flow of the window; every name is escaped by
 * party_text() and topo_subject_text(). */
#include "flow/flow_private.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"

#define NAME_TEXT 640
#define WORTH_IT 0.1     /* of what one that mostly sleeps wanted: from here on what it lost gets advice, too */
#define NOTABLE 0.01     /* share of the window from which a kind of delay gets a sentence of its own */

struct story {
	const struct topo *topo;
	struct subject subject;
	const struct flow *f;
	FILE *to;
	int64_t by_kind[FLOW_KIND_COUNT];
	char name[NAME_TEXT];
};

static double share(const struct story *s, int64_t ns)
{
	return (double)ns / ((double)(s->f->end - s->f->start) + 1);
}

static const char *amount(const struct story *s, int64_t ns, char buf[64])
{
	char d[TIME_TEXT];
	snprintf(buf, 64, "%s (%.1f %%)", time_duration(d, ns), 100 * share(s, ns));
	return buf;
}

/* Long enough at a time that it is a limit, not the latency of a wakeup or of a move to another CPU? */
static bool stayed_idle(const struct flow_entry *e)
{
	return e->longest.ns >= IDLE_LIMITED;
}

/* What is said of a limit, and where to look next. */
static const struct limit_text { const char *what, *next; } limits[OUT_REASON_COUNT] = {
	[OUT_QUOTA] = { "a CPU quota (its threads were throttled)",
	                "Look next at the CPU limits of its cgroup (cpu.max, cpu.weight): there was more of the CPU than it "
	                "was given.\n" },
	[OUT_PAUSE] = { "a pause of the machine (its monitor had stopped it)",
	                "Look next at who stops the machine (virsh suspend, a snapshot, a migration): nobody took its CPU.\n" },
	[OUT_MIGRATION] = { "the migration of the machine to another process",
	                    "Look next at what the migration had to copy while the machine stood still (downtime-limit, "
	                    "bandwidth).\n" },
};

static const struct limit_text *limit_of(const struct story *s, const struct flow_entry *e)
{
	for (int i = 0; e->who.kind == FLOW_LIMITED && i < OUT_REASON_COUNT; i++)
		if (strcmp(s->f->name[e->who.name], out_reason_name[i]) == 0)
			return &limits[i];
	return NULL;
}

static const char *party(const struct story *s, const struct flow_entry *e, char buf[NAME_TEXT])
{
	party_text(s->topo, &e->who, s->f->name[e->who.name], buf, NAME_TEXT);
	if (e->who.kind == FLOW_IDLE_CPU && !stayed_idle(e))
		snprintf(buf, NAME_TEXT, "being woken or moved to an idle CPU");
	const struct limit_text *limit = limit_of(s, e);
	if (limit)
		snprintf(buf, NAME_TEXT, "%s", limit->what);
	return buf;
}

/* Kinds that kept the subject from running although it wanted to. */
static bool is_delay(uint8_t kind)
{
	return kind == FLOW_PREEMPTING || kind == FLOW_HYPERVISOR || kind == FLOW_IRQ || kind == FLOW_IDLE_CPU ||
	       kind == FLOW_LIMITED;
}

static int64_t delayed(const struct story *s)
{
	int64_t ns = 0;
	for (uint8_t k = 0; k < FLOW_KIND_COUNT; k++)
		ns += is_delay(k) ? s->by_kind[k] : 0;
	return ns;
}

static const struct flow_entry *first_of(const struct flow *f, bool (*want)(uint8_t kind))
{
	for (size_t i = 0; i < f->entries; i++)
		if (want(f->entry[i].who.kind))
			return &f->entry[i];
	return NULL;
}

static bool is_waiting(uint8_t kind)
{
	return kind == FLOW_WAITING;
}

static void tell_doing(struct story *s)
{
	char at[TIME_TEXT], to[TIME_TEXT], d[TIME_TEXT], a[64], b[64], c[64];
	fprintf(s->to, "%s, %s .. %s (%s): ran %s, was kept from running %s, slept %s.\n", s->name,
	        time_clock(at, s->f->start, 6), time_clock(to, s->f->end, 6),
	        time_duration(d, s->f->end - s->f->start + 1), amount(s, s->by_kind[FLOW_RUNNING], a),
	        amount(s, delayed(s), b), amount(s, s->by_kind[FLOW_WAITING], c));
}

static void tell_culprit(struct story *s, const struct flow_entry *e)
{
	char who[NAME_TEXT], a[64], d[TIME_TEXT], at[TIME_TEXT], cpu[24] = "";
	if (e->longest.pcpu >= 0)
		snprintf(cpu, sizeof cpu, " on CPU%d", e->longest.pcpu);
	fprintf(s->to, "What delayed it most was %s: %s in %" PRIu64 " piece%s, the longest %s at %s%s.\n", party(s, e, who),
	        amount(s, e->duration, a), e->pieces, e->pieces == 1 ? "" : "s", time_duration(d, e->longest.ns),
	        time_clock(at, e->longest.start, 6), cpu);
}

/* Up to three more, and what all the rest makes. */
static void tell_others(struct story *s, const struct flow_entry *main)
{
	size_t told = 0, rest = 0;
	int64_t rest_ns = 0;
	for (size_t i = 0; i < s->f->entries; i++) {
		const struct flow_entry *e = &s->f->entry[i];
		char who[NAME_TEXT], a[64];
		if (e == main || !is_delay(e->who.kind))
			continue;
		if (told < 3 && share(s, e->duration) >= NOTABLE / 10) {
			fprintf(s->to, "%s%s: %s", told ? "; " : "Then ", party(s, e, who), amount(s, e->duration, a));
			told++;
		} else {
			rest++;
			rest_ns += e->duration;
		}
	}
	char a[64];
	if (told && rest)
		fprintf(s->to, "; %zu other%s: %s", rest, rest == 1 ? "" : "s", amount(s, rest_ns, a));
	if (told)
		fputs(".\n", s->to);
}

/* The handler that ended the longest sleep of this entry, which has nothing to do with whom it interrupted; "" if it was
 * none, or that is not known. */
static const char *handler_of(const struct story *s, const struct flow_entry *e, char buf[256])
{
	struct interval iv;
	int64_t woken = e->longest.start + e->longest.ns;
	uint32_t attr = s->subject.kind == SUBJECT_THREAD ? s->topo->thread[s->subject.index].woken_in : HISTORY_NONE;
	*buf = '\0';
	if (attr == HISTORY_NONE || woken > history_end(s->topo->h) || history_stab(s->topo->h, attr, woken, &iv, NULL) < 0 ||
	    iv.value == HISTORY_NULL || strcmp(history_string(s->topo->h, iv.value), "thread") == 0)
		return buf;
	return text_escape(buf, 256, history_string(s->topo->h, iv.value));
}

static void tell_waiting(struct story *s)
{
	const struct flow_entry *e = first_of(s->f, is_waiting);
	char who[NAME_TEXT], a[64], handler[256];
	if (!e || share(s, s->by_kind[FLOW_WAITING]) < NOTABLE || e->who.system < 0)
		return;
	struct party waker = e->who;
	waker.kind = FLOW_PREEMPTING;
	handler_of(s, e, handler);
	if (e->who.tid == 0)  /* nobody's thread: the CPU was idle until an interrupt came */
		snprintf(who, sizeof who, "an interrupt");
	else
		party_text(s->topo, &waker, s->f->name[waker.name], who, sizeof who);
	fprintf(s->to, "It slept longest until woken by %s%s%s%s: %s, %" PRIu64 " time%s.\n", who,
	        *handler ? e->who.tid == 0 ? " (the longest time " : " (the longest time it was interrupted by " : "", handler,
	        *handler ? ")" : "", amount(s, e->duration, a), e->pieces, e->pieces == 1 ? "" : "s");
}

/* The widest error band of the guest's clock within the window, or -1. */
static int64_t clock_band(const struct story *s, uint32_t machine)
{
	char path[600];
	struct history_cursor c;
	struct interval iv;
	int64_t widest = -1;
	history_path(path, sizeof path, SCHEMA_VMS, s->topo->machine[machine].name, machine_schema[MACHINE_BAND].name, NULL);
	uint32_t attr = history_find(s->topo->h, path);
	if (attr == HISTORY_NONE || history_type(s->topo->h, attr) != HISTORY_INT ||
	    history_range(&c, s->topo->h, attr, s->f->start, s->f->end, NULL) < 0)
		return -1;
	while (history_range_next(&c, &iv, NULL) > 0)
		if (iv.value != HISTORY_NULL && iv.value > widest)
			widest = iv.value;
	return widest;
}

static void tell_trust(struct story *s, uint32_t machine)
{
	char a[64], d[TIME_TEXT];
	if (s->by_kind[FLOW_UNKNOWN])
		fprintf(s->to, "How sure: %s of it is unknown and blamed on nobody, since events were lost or contradict "
		        "each other", amount(s, s->by_kind[FLOW_UNKNOWN], a));
	else
		fputs("How sure: no part of it is unknown", s->to);
	int64_t band = clock_band(s, machine);
	if (s->topo->machine[machine].kind != MACHINE_VM)
		fputs(".\n", s->to);
	else if (band >= 0)
		fprintf(s->to, "; times of the guest are known to %s.\n", time_duration(d, band));
	else
		fputs("; nothing tells how far its clock is off.\n", s->to);
	const struct topo_machine *m = &s->topo->machine[machine];
	bool host = s->topo->machine[0].kind == MACHINE_HOST;
	if (m->kind == MACHINE_VM && (m->cpus == 0 || s->topo->cpu[m->cpu].host < 0))
		fprintf(s->to, "%s: what a host took from its vCPUs is not seen, and counts as running.\n",
		        host ? "No thread of the host is known to be its vCPU" : "Its host was not traced");
}

/* A command line names a subject by what topo_parse_subject() takes, quoted where a shell would see more in it. */
static void tell_command(struct story *s, const struct flow_entry *e)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:@%+,";
	char system[256];
	text_escape(system, sizeof system, s->topo->machine[e->who.system].name);
	const char *quote = system[strspn(system, plain)] ? "'" : "";
	fprintf(s->to, " (stealscope %s FILE %s", e->who.tid > 0 ? "flow" : "gaps", quote);
	for (const char *c = system; *c; c++)
		fputs(*c == '\'' ? "'\\''" : (char[]){ *c, '\0' }, s->to);
	if (e->who.tid > 0)
		fprintf(s->to, "/%" PRId32, e->who.tid);
	fprintf(s->to, "%s)", quote);
}

/* The process of a thread of the host at t, -1 = not known. */
static int64_t process_of(const struct topo *topo, int thread, int64_t t)
{
	struct interval iv;
	uint32_t attr = thread < 0 ? HISTORY_NONE : topo->thread[thread].pid;
	if (attr == HISTORY_NONE || history_stab(topo->h, attr, t, &iv, NULL) < 0 || iv.value == HISTORY_NULL)
		return -1;
	return iv.value;
}

/* The VM that a thread of the host works for, beside its vCPUs: the monitor's other threads, vhost's; -1 = none. */
static int32_t helped_by(const struct story *s, const struct flow_entry *e)
{
	const struct topo *topo = s->topo;
	const char *name = s->f->name[e->who.name], *vhost = strncmp(name, "vhost-", 6) == 0 ? name + 6 : NULL;
	int thread = e->who.system < 0 ? -1 : topo_find_thread(topo, (uint32_t)e->who.system, e->who.tid);
	int64_t pid = process_of(topo, thread, e->longest.start);
	for (uint32_t i = 0; i < topo->cpus; i++) {
		int host = topo->cpu[i].host;
		if (host < 0 || topo->thread[host].machine != (uint32_t)e->who.system)
			continue;
		int64_t monitor = process_of(topo, host, e->longest.start);
		if (monitor >= 0 && (pid == monitor || (vhost && strtoll(vhost, NULL, 10) == monitor)))
			return (int32_t)topo->cpu[i].machine;
	}
	return -1;
}

/* Threads that work for a VM are no rivals. */
static void advise_helper(struct story *s, const char *who, uint32_t vm, uint32_t machine)
{
	char own[256];
	if (vm == machine)
		fprintf(s->to, "Look next at what it asks of its devices: %s works for it, on the same CPU; a CPU of its own helps "
		        "both", who);
	else
		fprintf(s->to, "Look next at what %s asks of its devices: %s works for it, on the same CPU",
		        text_escape(own, sizeof own, s->topo->machine[vm].name), who);
}

/* Does the machine run the VM, or what runs it? */
static bool is_around(const struct topo *topo, int32_t machine, uint32_t vm)
{
	int32_t up = topo->machine[vm].parent;
	while (up >= 0 && up != machine)
		up = topo->machine[up].parent;
	return up >= 0;
}

static void advise(struct story *s, const struct flow_entry *e, uint32_t machine)
{
	char who[NAME_TEXT], own[256], around[256];
	enum machine_kind kind = e->who.system >= 0 ? s->topo->machine[e->who.system].kind : MACHINE_HOST;
	switch (e->who.kind) {
	case FLOW_LIMITED:
		fputs(limit_of(s, e) ? limit_of(s, e)->next : "Look next at what limits its CPU time.\n", s->to);
		return;
	case FLOW_IDLE_CPU:
		if (stayed_idle(e))
			fputs("Look next at CPU limits (quota, cpuset) of the VM: it could run, yet its CPU was idle.\n", s->to);
		else
			fputs("Look next at who wakes it, and how often: being woken, or moved to another CPU, took that time, no "
			      "limit and nobody else.\n", s->to);
		return;
	case FLOW_HYPERVISOR:
		fputs("Look next at the reasons of the VM exits: the hypervisor worked for it.\n", s->to);
		return;
	case FLOW_IRQ:
		if (kind == MACHINE_VM)
			fprintf(s->to, "Look next inside %s, where this interrupt is served: move it to another vCPU.\n",
			        text_escape(own, sizeof own, s->topo->machine[e->who.system].name));
		else
			fputs("Look next at where this interrupt is served: move it or the vCPU to another CPU.\n", s->to);
		return;
	default:
		break;
	}
	party(s, e, who);
	int32_t helped = kind == MACHINE_VM ? -1 : helped_by(s, e);
	if (helped >= 0)
		advise_helper(s, who, (uint32_t)helped, machine);
	else if (e->who.system == (int32_t)machine && kind == MACHINE_VM)
		fprintf(s->to, "Look next inside %s: %s competes there for the same vCPU",
		        text_escape(own, sizeof own, s->topo->machine[machine].name), who);
	else if (kind == MACHINE_VM && e->who.tid > 0 && is_around(s->topo, e->who.system, machine))
		fprintf(s->to, "Look next inside %s, which runs %s: %s competes there for the same CPU",
		        text_escape(around, sizeof around, s->topo->machine[e->who.system].name),
		        text_escape(own, sizeof own, s->topo->machine[machine].name), who);
	else if (kind == MACHINE_VM && e->who.tid == 0)
		fputs("Look next for a timer that keeps waking that idle guest (stealscope gaps FILE --periodic).\n", s->to);
	else if (kind == MACHINE_VM && e->who.tid < 0)
		fprintf(s->to, "Look next inside %s, which shares the CPU: trace that guest to learn which thread it was", who);
	else if (kind == MACHINE_VM)
		fprintf(s->to, "Look next at %s, a thread of another VM on the same CPU", who);
	else
		fprintf(s->to, "Look next at %s, which shares the CPU: move or limit it, or pin the vCPU", who);
	if (!(kind == MACHINE_VM && e->who.tid == 0 && e->who.system != (int32_t)machine)) {
		tell_command(s, e);
		fputs(".\n", s->to);
	}
}

static uint32_t machine_of(const struct topo *topo, const struct subject *s)
{
	return s->kind == SUBJECT_CPU ? topo->cpu[s->index].machine : topo->thread[s->index].machine;
}

static void tell_next(struct story *s, const struct flow_entry *culprit, uint32_t machine)
{
	const int64_t lost = delayed(s), wanted = lost + s->by_kind[FLOW_RUNNING];
	const bool slept = share(s, s->by_kind[FLOW_WAITING]) >= 0.5;
	if (slept)
		fputs("Look next at who wakes it: it slept most of the time.\n", s->to);
	if (culprit && share(s, lost) >= NOTABLE && (!slept || (double)lost >= WORTH_IT * (double)wanted))
		advise(s, culprit, machine);
	else if (slept)
		return;
	else if (share(s, s->by_kind[FLOW_UNKNOWN]) >= 0.5)
		fputs("Look next at the size of the trace buffers: most of this was lost.\n", s->to);
	else
		fputs("Look next at its own work: hardly anything kept it from its CPU.\n", s->to);
}

static int tell(const struct topo *topo, const struct subject *subject, const struct flow *f, const char *opening,
                char **text, struct error *err)
{
	struct story s = { .topo = topo, .subject = *subject, .f = f };
	size_t size = 0;
	uint32_t machine = machine_of(topo, subject);
	s.to = open_memstream(text, &size);
	if (!s.to)
		return error_system(err, NULL, "explain");
	for (size_t i = 0; i < f->entries; i++)
		s.by_kind[f->entry[i].who.kind] += f->entry[i].duration;
	topo_subject_text(topo, subject, s.name, sizeof s.name);
	if (opening)
		fputs(opening, s.to);
	else
		tell_doing(&s);
	const struct flow_entry *culprit = first_of(f, is_delay);
	const bool sleeper = s.by_kind[FLOW_WAITING] > delayed(&s);  /* the largest comes first */
	if (sleeper)
		tell_waiting(&s);
	if (culprit) {
		tell_culprit(&s, culprit);
		tell_others(&s, culprit);
	} else {
		fputs("Nothing kept it from running while it wanted to.\n", s.to);
	}
	if (!sleeper)
		tell_waiting(&s);
	tell_trust(&s, machine);
	tell_next(&s, culprit, machine);
	if (fclose(s.to) != 0) {
		free(*text);
		*text = NULL;
		return error_system(err, NULL, "explain");
	}
	return 0;
}

/* Only who wants to run can be delayed. */
static int check_subject(const struct topo *topo, const struct subject *s, struct error *err)
{
	char name[NAME_TEXT];
	bool is_pcpu = s->kind == SUBJECT_CPU && topo->machine[topo->cpu[s->index].machine].kind != MACHINE_VM;
	if (s->kind != SUBJECT_MACHINE && !is_pcpu)
		return 0;
	return error_set(err, STATUS_INPUT, "name a vCPU or a thread", "%s: %s cannot be explained",
	                 topo_subject_text(topo, s, name, sizeof name), is_pcpu ? "a physical CPU" : "a whole machine");
}

int explain_window(const struct topo *topo, const struct subject *s, int64_t from, int64_t to, char **text,
                   struct error *err)
{
	struct flow f;
	*text = NULL;
	if (check_subject(topo, s, err) < 0)
		return -1;
	if (flow_of(topo, s, from, to, &(struct flow_options){ 0 }, &f, err) < 0)
		return -1;
	int status = tell(topo, s, &f, NULL, text, err);
	flow_release(&f);
	return status;
}

static uint32_t status_attribute(const struct topo *topo, const struct subject *s)
{
	if (s->kind == SUBJECT_THREAD)
		return topo->thread[s->index].status;
	const struct topo_cpu *cpu = &topo->cpu[s->index];
	return topo->machine[cpu->machine].kind == MACHINE_VM ? cpu->status : cpu->current;
}

int explain_moment(const struct topo *topo, const struct subject *s, int64_t t, struct gap *out, struct error *err)
{
	struct interval iv;
	uint32_t attr = status_attribute(topo, s);
	int in_gap = gap_at(topo, s, t, out, err);
	if (in_gap != 0)
		return in_gap;
	if (attr == HISTORY_NONE) {
		char name[NAME_TEXT];
		return error_set(err, STATUS_INPUT, NULL, "%s: nothing is known of its states",
		                 topo_subject_text(topo, s, name, sizeof name));
	}
	if (history_stab(topo->h, attr, t, &iv, err) < 0)
		return -1;
	*out = (struct gap){ .subject = *s, .start = iv.start, .end = iv.end, .state = iv.value };
	return 0;
}

const char *explain_state_name(const struct topo *topo, const struct subject *s, int64_t state)
{
	uint32_t attr = status_attribute(topo, s);
	if (state == HISTORY_NULL)
		return "not alive";
	if (attr == HISTORY_NONE || history_type(topo->h, attr) != HISTORY_STATE || state < 0 ||
	    state >= (int64_t)history_state_count(topo->h, attr))
		return "";
	return history_state_name(topo->h, attr, (unsigned)state);
}

int explain_at_of(const struct topo *topo, const struct gap *moment, const struct flow *f, char **text,
                  struct error *err)
{
	const struct subject *s = &moment->subject;
	char name[NAME_TEXT], state[64], at[TIME_TEXT], d[TIME_TEXT];
	*text = NULL;
	if (check_subject(topo, s, err) < 0)
		return -1;
	text_escape(state, sizeof state, explain_state_name(topo, s, moment->state));
	char *opening = mem_printf("%s was %s for %s from %s.\n", topo_subject_text(topo, s, name, sizeof name),
	                           *state ? state : "in use", time_duration(d, moment->end - moment->start + 1),
	                           time_clock(at, moment->start, 6));
	int status = tell(topo, s, f, opening, text, err);
	free(opening);
	return status;
}

int explain_at(const struct topo *topo, const struct subject *s, int64_t t, char **text, struct error *err)
{
	struct gap moment;
	struct flow f;
	*text = NULL;
	if (check_subject(topo, s, err) < 0)
		return -1;
	if (explain_moment(topo, s, t, &moment, err) < 0 ||
	    flow_of(topo, s, moment.start, moment.end, &(struct flow_options){ 0 }, &f, err) < 0)
		return -1;
	int status = explain_at_of(topo, &moment, &f, text, err);
	flow_release(&f);
	return status;
}
