/* Where to look next, with commands that can be pasted: what is largest comes first. */
#include "query/explain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/timefmt.h"

#define WORTH_IT 0.1     /* of what it wanted: from here on what one that mostly sleeps lost gets advice, too */
#define NOTABLE 0.01     /* share of the window from which what it lost gets advice */

bool advice_stayed_idle(const struct flow_entry *e)
{
	return e->idled >= e->duration - e->idled;
}

/* What is said of a limit, and where to look next. */
static const struct limit_text { const char *what, *next; } limits[OUT_REASON_COUNT] = {
	[OUT_QUOTA] = { "a CPU quota (its threads were throttled)",
	                "Look next at the CPU limits of its cgroup (cpu.max, cpu.weight): there was more of the CPU than it "
	                "was given.\n" },
	[OUT_PAUSE] = { "a pause of the machine (it was stopped, by its monitor or with that)",
	                "Look next at who stops the machine (virsh suspend, a snapshot, a migration, SIGSTOP): nobody took "
	                "its CPU.\n" },
	[OUT_MIGRATION] = { "the migration of the machine to another process",
	                    "Look next at what the migration had to copy while the machine stood still (downtime-limit, "
	                    "bandwidth).\n" },
	[OUT_FAULT] = { "page faults (memory of the guest was not there)",
	                "Look next at the host's memory: what it has swapped out of the machine (VmSwap, memory.swap.current), "
	                "or was slow to give.\n" },
	[OUT_STOPPED] = { "a pause of the machine, or its migration to another process (no event tells which)",
	                  "Look next at who stops the machine or moves it (virsh suspend, a migration): nobody took "
	                  "its CPU.\n" },
	[OUT_UNSURE] = { "a CPU quota, or whoever had its CPU meanwhile (no event tells which)",
	                 "Look next at the CPU limits of its cgroup (cpu.max; nr_throttled in cpu.stat), and at who shares its "
	                 "CPU.\n" },
};

static const struct limit_text *limit_of(const char *name)
{
	for (int i = 0; i < OUT_REASON_COUNT; i++)
		if (strcmp(name, out_reason_name[i]) == 0)
			return &limits[i];
	return NULL;
}

const char *advice_limit(const char *name)
{
	const struct limit_text *limit = limit_of(name);
	return limit ? limit->what : NULL;
}

/* A command line names a subject by what topo_parse_subject() takes.  FILE stands for the history. */
static void tell_command(struct story *s, const char *command, uint32_t machine, const char *member)
{
	char system[256], subject[300];
	text_escape(system, sizeof system, s->topo->machine[machine].name);
	snprintf(subject, sizeof subject, "%s%s", system, member);
	char *word = shell_word(subject);
	fprintf(s->to, " (stealscope %s FILE %s)", command, word);
	free(word);
}

static void tell_command_of(struct story *s, const struct party *who)
{
	char member[16] = "";
	const uint32_t machine = (uint32_t)who->system;
	bool thread = who->tid > 0 && topo_find_thread(s->topo, machine, who->tid) >= 0;
	if (thread)
		snprintf(member, sizeof member, "/%" PRId32, who->tid);
	tell_command(s, thread ? "flow" : "gaps", machine, member);
}

static void tell_command_of_subject(struct story *s, const char *command)
{
	char member[24];
	if (s->subject.kind == SUBJECT_CPU)
		snprintf(member, sizeof member, "/CPU%u", s->topo->cpu[s->subject.index].number);
	else
		snprintf(member, sizeof member, "/%" PRId32, s->topo->thread[s->subject.index].tid);
	tell_command(s, command, s->machine, member);
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
static void advise_helper(struct story *s, const char *who, uint32_t vm)
{
	char own[256];
	if (vm == s->machine)
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

static void advise_exits(struct story *s)
{
	fputs("Look next at the reasons of the VM exits", s->to);
	tell_command_of_subject(s, "exits");
	fputs(": the hypervisor worked for it.\n", s->to);
}

static void advise_idle(struct story *s, const struct flow_entry *e)
{
	if (advice_stayed_idle(e))
		fputs("Look next at CPU limits (quota, cpuset) of the VM: it could run, yet its CPU was idle.\n", s->to);
	else
		fprintf(s->to, "Look next at who wakes it, and how often: being woken, or moved to another CPU, took %s.\n",
		        e->idled ? "most of that time" : "that time, no limit and nobody else");
}

static void advise_interrupt(struct story *s, const struct flow_entry *e)
{
	char own[256];
	if (e->who.system >= 0 && s->topo->machine[e->who.system].kind == MACHINE_VM)
		fprintf(s->to, "Look next inside %s, where this interrupt is served: move it to another vCPU.\n",
		        text_escape(own, sizeof own, s->topo->machine[e->who.system].name));
	else
		fputs("Look next at where this interrupt is served: move it or the vCPU to another CPU.\n", s->to);
}

static void advise_waiting(struct story *s)
{
	fputs("Look next at what the vCPU's thread waited for on the host: its memory, a lock of its monitor, a device, or the "
	      "sibling that holds a spinning lock of its guest", s->to);
	tell_command_of_subject(s, "path");
	fputs(".\n", s->to);
}

/* Several of a machine had its CPU, none of them most of it. */
static void advise_rivals(struct story *s)
{
	const struct topo *topo = s->topo;
	const uint32_t machine = (uint32_t)s->first->who.system;
	char name[256], own[256], largest[NAME_TEXT];
	const struct flow_entry *e = s->culprit;
	while (e->who.system != s->first->who.system)
		e++;
	text_escape(name, sizeof name, topo->machine[machine].name);
	party_text(topo, &e->who, s->f->name[e->who.name], largest, sizeof largest);
	text_escape(own, sizeof own, topo->machine[s->machine].name);
	if (machine == s->machine)
		fprintf(s->to, "Look next inside %s: its other threads compete there for the same CPU", own);
	else if (topo->machine[machine].kind == MACHINE_VM && is_around(topo, s->first->who.system, s->machine))
		fprintf(s->to, "Look next inside %s, which runs %s: its threads compete there for the same CPU", name, own);
	else
		fprintf(s->to, "Look next at the threads of %s that share the CPU, first %s: move or limit them", name, largest);
	tell_command_of(s, &s->first->who);
	fputs(".\n", s->to);
}

/* Another thread, of whatever machine, had its CPU. */
static void advise_rival(struct story *s, const struct flow_entry *e)
{
	const struct topo *topo = s->topo;
	char who[NAME_TEXT], own[256], around[256];
	const enum machine_kind kind = topo->machine[e->who.system].kind;
	const bool is_vm = topo->machine[s->machine].kind == MACHINE_VM;
	const bool inside = e->who.system == (int32_t)s->machine && kind == MACHINE_VM;
	party_text(topo, &e->who, s->f->name[e->who.name], who, sizeof who);
	text_escape(own, sizeof own, topo->machine[s->machine].name);
	int32_t helped = kind == MACHINE_VM ? -1 : helped_by(s, e);
	if (helped >= 0) {
		advise_helper(s, who, (uint32_t)helped);
	} else if (inside) {
		fprintf(s->to, "Look next inside %s: %s competes there for the same vCPU", own, who);
	} else if (kind == MACHINE_VM && e->who.tid > 0 && is_around(topo, e->who.system, s->machine)) {
		fprintf(s->to, "Look next inside %s, which runs %s: %s competes there for the same CPU",
		        text_escape(around, sizeof around, topo->machine[e->who.system].name), own, who);
	} else if (kind == MACHINE_VM && e->who.tid == 0) {
		fputs("Look next for a timer that keeps waking that idle guest (stealscope gaps FILE --periodic).\n", s->to);
		return;
	} else if (kind == MACHINE_VM && e->who.tid < 0) {
		fprintf(s->to, "Look next inside %s, which shares the CPU: trace that guest to learn which thread it was", who);
	} else if (kind == MACHINE_VM) {
		fprintf(s->to, "Look next at %s, a thread of %s VM on the same CPU", who, is_vm ? "another" : "a");
	} else {
		fprintf(s->to, "Look next at %s, which shares the CPU: move or limit it%s", who, is_vm ? ", or pin the vCPU" : "");
	}
	tell_command_of(s, &e->who);
	fputs(".\n", s->to);
}

static void advise_culprit(struct story *s, const struct flow_entry *e)
{
	const struct limit_text *limit;
	switch ((enum flow_kind)e->who.kind) {
	case FLOW_LIMITED:
		limit = limit_of(s->f->name[e->who.name]);
		fputs(limit ? limit->next : "Look next at what limits its CPU time.\n", s->to);
		break;
	case FLOW_IDLE_CPU:
		advise_idle(s, e);
		break;
	case FLOW_HYPERVISOR:
		advise_exits(s);
		break;
	case FLOW_IRQ:
		advise_interrupt(s, e);
		break;
	case FLOW_WAITING:
		advise_waiting(s);
		break;
	case FLOW_UNKNOWN:
		fputs("Look next at what was recorded (stealscope info FILE): it does not tell who had its CPU.\n", s->to);
		break;
	case FLOW_RUNNING:
	case FLOW_PREEMPTING:
	case FLOW_KIND_COUNT:
		if (s->is_whole)
			advise_rivals(s);
		else
			advise_rival(s, e);
	}
}

/* Who kept the one for whom it slept. */
static void advise_keeper(struct story *s)
{
	fprintf(s->to, "Look next at %s: it had the CPU of %s, which was waited for; keep the two apart", s->kept.thief_name,
	        s->kept.who_name);
	tell_command_of(s, &s->kept.thief);
	fputs(".\n", s->to);
}

static void advise_locks(struct story *s)
{
	char d[TIME_TEXT];
	fprintf(s->to, "Look next at its %" PRIu64 " wait%s for locks, %s in all", s->locks, s->locks == 1 ? "" : "s",
	        time_duration(d, s->locked));
	tell_command_of_subject(s, "gaps --locks");
	fputs(".\n", s->to);
}

void story_advise(struct story *s)
{
	const struct demand *is = &s->demand;
	const int64_t window = s->f->end - s->f->start + 1, wanted = is->ran + is->lost;
	const bool slept = is->slept >= window - is->slept;
	const bool lost = s->culprits && (double)is->lost >= NOTABLE * (double)window &&
	                  (!slept || (double)is->lost >= WORTH_IT * (double)wanted);
	const bool served = is->served > is->lost - is->served && (double)is->served >= WORTH_IT * (double)wanted;
	const bool locked = s->locks && (double)s->locked >= WORTH_IT * (double)(is->slept + is->lost);
	if (slept && s->kept.thief.system >= 0)
		advise_keeper(s);
	if (locked)
		advise_locks(s);
	const bool told = slept && !(s->subject.kind == SUBJECT_CPU && s->alone);  /* that takes the host's trace */
	if (told) {
		fputs("Look next at who wakes it", s->to);
		tell_command_of_subject(s, s->subject.kind == SUBJECT_CPU ? "waits" : "path");
		fputs(": it slept most of the time.\n", s->to);
	}
	if (served)
		advise_exits(s);
	if (lost && !(served && s->first->who.kind == FLOW_HYPERVISOR))
		advise_culprit(s, s->first);
	if (told || served || lost || locked)
		return;
	if (s->unknown >= window - s->unknown)
		fputs("Look next at the size of the trace buffers: most of this was lost.\n", s->to);
	else if (s->alone)
		fputs("Look next at its host: record both at the same moment.\n", s->to);
	else
		fputs("Look next at its own work: hardly anything kept it from its CPU.\n", s->to);
}
