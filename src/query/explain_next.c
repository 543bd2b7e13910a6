/* Next steps: commands to copy, for the largest delay first. */
#include "base/base.h"
#include "query/explain.h"

#include "base/vcpu_name.h"

#define ADVISED_SHARE 0.1     /* targets that mostly sleep: minimum share of the runnable time lost for advice */
#define NOTABLE 0.01     /* minimum share of the window lost for advice */

bool is_idle_limit(const struct flow_entry *e)
{
	return e->idle_ns >= e->duration - e->idle_ns;
}

/* Writes a command on a target. FILE stands for the history. */
static void write_command(struct explanation *s, const char *command, const struct target *target)
{
	char text[ACTOR_TEXT];
	char *word = shell_word(catalog_operand_text(s->catalog, target, text, sizeof text));
	fprintf(s->to, " (stealscope %s FILE %s)", command, word);
	free(word);
}

static void write_actor_command(struct explanation *s, const struct actor *actor)
{
	const int thread = actor->tid > 0 ? catalog_find_thread(s->catalog, (uint32_t)actor->machine, actor->tid) : -1;
	const struct target machine = { TARGET_MACHINE, (uint32_t)actor->machine };
	if (thread >= 0)
		write_command(s, "flow", &(struct target){ TARGET_THREAD, (uint32_t)thread });
	else
		write_command(s, "gaps", &machine);
}

#define SEVERAL_VMS (-2)

/* Returns the VM that a host thread works for without being a vCPU: other threads of the monitor, and kernel threads that
 * its name or, with a single VM on the host, its kind assigns; -1: none. */
static int32_t helped_vm(const struct explanation *s, const struct flow_entry *e)
{
	const struct catalog *catalog = s->catalog;
	const char *name = s->f->name[e->actor.name];
	const int64_t worker_of = vm_worker_pid(name);
	int32_t only_vm = -1;
	int thread = e->actor.machine < 0 ? -1 : catalog_find_thread(catalog, (uint32_t)e->actor.machine, e->actor.tid);
	int64_t pid = thread < 0 ? -1 : process_at(catalog, (uint32_t)thread, e->longest.start);
	for (uint32_t i = 0; i < catalog->cpus; i++) {
		int host = catalog->cpu[i].host;
		if (host < 0 || catalog->thread[host].machine != (uint32_t)e->actor.machine)
			continue;
		int64_t monitor = process_at(catalog, (uint32_t)host, e->longest.start);
		if (monitor >= 0 && (pid == monitor || worker_of == monitor))
			return (int32_t)catalog->cpu[i].machine;
		const int32_t vm = (int32_t)catalog->cpu[i].machine;
		only_vm = only_vm == -1 || only_vm == vm ? vm : SEVERAL_VMS;
	}
	return only_vm >= 0 && vm_worker_has_no_pid(name) ? only_vm : -1;
}

/* A thread that works for a VM does not compete with that VM. */
static void advise_helper(struct explanation *s, const char *actor, uint32_t vm)
{
	char own[256];
	if (vm == s->machine)
		fprintf(s->to, "Next: check the load on its devices; %s works for it on the same CPU, give it a CPU of its own",
		        actor);
	else
		fprintf(s->to, "Next: check the load on the devices of %s; %s works for it on the same CPU",
		        text_escape(own, sizeof own, s->catalog->machine[vm].name), actor);
}

/* Returns true if the machine runs the VM, directly or through VMs in between. */
static bool is_ancestor(const struct catalog *catalog, int32_t machine, uint32_t vm)
{
	int32_t up = catalog->machine[vm].parent;
	while (up >= 0 && up != machine)
		up = catalog->machine[up].parent;
	return up >= 0;
}

static void advise_exits(struct explanation *s)
{
	fputs("Next: look at the reasons of its VM exits", s->to);
	write_command(s, "exits", &s->target);
	fputs("; the hypervisor used its CPU.\n", s->to);
}

static void advise_idle(struct explanation *s, const struct flow_entry *e)
{
	if (is_idle_limit(e))
		fputs("Next: check the CPU limits (quota, cpuset) of the VM; it was runnable while its CPU was idle.\n", s->to);
	else
		fprintf(s->to, "Next: look at its wakers, and how often they wake it; wakeups and CPU migrations took %s.\n",
		        e->idle_ns ? "most of that time" : "that time, no limit and no other thread");
}

static void advise_interrupt(struct explanation *s, const struct flow_entry *e)
{
	char own[256];
	if (e->actor.machine >= 0 && s->catalog->machine[e->actor.machine].kind == MACHINE_VM)
		fprintf(s->to, "Next: look inside %s, which handles this interrupt; move it to another vCPU.\n",
		        text_escape(own, sizeof own, s->catalog->machine[e->actor.machine].name));
	else
		fputs("Next: move this interrupt or the vCPU to another CPU.\n", s->to);
}

static void advise_waiting(struct explanation *s)
{
	fputs("Next: find out what the vCPU's thread waited for on the host: its memory, a lock of its monitor, a device, or "
	      "the sibling that holds a spinlock of its guest", s->to);
	write_command(s, "path", &s->target);
	fputs(".\n", s->to);
}

/* Advises if another thread, of any machine, had the target's CPU; or several threads of one, and none most of the time. */
static void advise_competitor(struct explanation *s, const struct flow_entry *e)
{
	const struct catalog *catalog = s->catalog;
	const struct actor *a = &e->actor;
	const bool is_own = a->machine == (int32_t)s->machine;
	const bool is_vm = catalog->machine[s->machine].kind == MACHINE_VM;
	const bool by_vm = catalog->machine[a->machine].kind == MACHINE_VM;
	const bool several = s->main->culprit.tid < 0 && a->tid > 0 && (is_own || !by_vm);
	const int32_t helped = by_vm || several ? -1 : helped_vm(s, e);
	char actor[NAME_TEXT], own[256], machine[256];
	actor_text(catalog, a, s->f->name[a->name], ACTOR_PLAIN, NULL, actor, sizeof actor);
	text_escape(own, sizeof own, catalog->machine[s->machine].name);
	text_escape(machine, sizeof machine, catalog->machine[a->machine].name);
	char who[NAME_TEXT + 16];
	snprintf(who, sizeof who, "%s %s", several ? "its threads" : actor, several ? "compete" : "competes");
	if (helped >= 0) {
		advise_helper(s, actor, (uint32_t)helped);
	} else if (is_own && (by_vm || several)) {
		fprintf(s->to, "Next: look inside %s; %s there for the same %sCPU", own, who, by_vm ? "v" : "");
	} else if (by_vm && (several || a->tid > 0) && is_ancestor(catalog, a->machine, s->machine)) {
		fprintf(s->to, "Next: look inside %s, which runs %s; %s there for the same CPU", machine, own, who);
	} else if (several) {
		fprintf(s->to, "Next: the threads of %s share this CPU, first %s; move or limit them", machine, actor);
	} else if (by_vm && a->tid == 0) {
		fputs("Next: find the timer that keeps waking that idle guest (stealscope gaps FILE --periodic).\n", s->to);
		return;
	} else if (by_vm && a->tid < 0) {
		fprintf(s->to, "Next: %s shares this CPU; trace that guest to see which thread it was", actor);
	} else if (by_vm) {
		fprintf(s->to, "Next: %s, a thread of %s VM, shares this CPU", actor, is_vm ? "another" : "a");
	} else {
		fprintf(s->to, "Next: %s shares this CPU; move or limit it%s", actor, is_vm ? ", or pin the vCPU" : "");
	}
	write_actor_command(s, a);
	fputs(".\n", s->to);
}

static void advise_culprit(struct explanation *s, const struct flow_entry *e)
{
	switch ((enum flow_kind)e->actor.kind) {
	case FLOW_LIMITED:
		fprintf(s->to, "Next: %s.\n", out_reason_row[e->actor.reason].advice);
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
		fputs("Next: check what was recorded (stealscope info FILE); the trace does not show which thread had its CPU.\n",
		      s->to);
		break;
	case FLOW_CURRENT:
		fputs(s->catalog->machine[0].kind == MACHINE_HOST
		      ? "Next: see why none of the host's threads is known to execute its vCPUs (stealscope sync FILE).\n"
		      : "Next: record the host as well, or record in the guest with stealscope record --guest-only: this "
		        "recording does not show when the provider took the vCPU.\n", s->to);
		break;
	case FLOW_RUNNING:
	case FLOW_PREEMPTING:
	case FLOW_KIND_COUNT:
		advise_competitor(s, e);
	}
}

/* Advises on the culprit that delayed the thread for which the target slept. */
static void advise_waker_culprit(struct explanation *s)
{
	char culprit[NAME_TEXT], helper[NAME_TEXT];
	fprintf(s->to, "Next: %s had the CPU of %s, which it waited for; keep the two apart",
	        explanation_path_actor(s, s->delay->culprit, culprit), explanation_path_actor(s, s->delay->helper, helper));
	write_actor_command(s, &s->delay->culprit);
	fputs(".\n", s->to);
}

static void advise_locks(struct explanation *s)
{
	char d[TIME_TEXT];
	fprintf(s->to, "Next: look at its %" PRIu64 " lock wait%s, %s in total", s->locks, s->locks == 1 ? "" : "s",
	        time_duration(d, s->locked));
	write_command(s, "gaps --locks", &s->target);
	fputs(".\n", s->to);
}

void explain_next_steps(struct explanation *s)
{
	const struct demand *demand = &s->demand;
	const int64_t window = s->f->end - s->f->start + 1, runnable = demand->ran + demand->lost;
	const bool slept = demand->slept >= window - demand->slept;
	const bool lost = s->main_entry && (double)demand->lost >= NOTABLE * (double)window &&
	                  (!slept || (double)demand->lost >= ADVISED_SHARE * (double)runnable);
	const bool vmm_time = demand->vmm_ns > demand->lost - demand->vmm_ns &&
	                      (double)demand->vmm_ns >= ADVISED_SHARE * (double)runnable;
	const bool locks_matter = s->locks && (double)s->locked >= ADVISED_SHARE * (double)(demand->slept + demand->lost);
	if (slept && s->delay)
		advise_waker_culprit(s);
	if (locks_matter)
		advise_locks(s);
	const bool wakers_advised = slept && !(s->target.kind == TARGET_CPU && s->alone);  /* the command waits needs the
	                                                                                    * host's trace */
	if (wakers_advised) {
		fputs("Next: look at its wakers", s->to);
		write_command(s, s->target.kind == TARGET_CPU ? "waits" : "path", &s->target);
		fputs("; it slept most of the time.\n", s->to);
	}
	if (vmm_time)
		advise_exits(s);
	if (lost && !(vmm_time && s->main_entry->actor.kind == FLOW_HYPERVISOR))
		advise_culprit(s, s->main_entry);
	if (wakers_advised || vmm_time || lost || locks_matter)
		return;
	if (s->unknown >= window - s->unknown)
		fputs("Next: record with larger trace buffers; most of this was lost.\n", s->to);
	else if (s->alone)
		fputs("Next: record its host as well, at the same time.\n", s->to);
	else if (s->findings->item[0].why == NOTE_NO_WAKEUPS)
		fputs("Next: record sched_waking and sched_wakeup.\n", s->to);
	else
		fputs("Next: look at its own work; hardly anything delayed it.\n", s->to);
}
