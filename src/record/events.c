#include "record/events.h"

#define NAME_MAX_LEN 128

enum arch { ANY, X86, ARM };

/* Contains only events that some analysis uses, since on a busy host every recorded event costs the guests CPU time; -e
 * adds others. IPIs are recorded in guests only: they start activity, which synchronization by containment needs. */
static const struct { enum event_side side; enum arch arch; const char *name; } table[] = {
	{ SIDE_BOTH, ANY, "sched/sched_switch" },
	{ SIDE_BOTH, ANY, "sched/sched_waking" },
	{ SIDE_BOTH, ANY, "sched/sched_wakeup" },
	{ SIDE_BOTH, ANY, "sched/sched_wakeup_new" },
	{ SIDE_BOTH, ANY, "sched/sched_migrate_task" },
	{ SIDE_BOTH, ANY, "sched/sched_process_fork" },
	{ SIDE_BOTH, ANY, "sched/sched_process_exec" },
	{ SIDE_BOTH, ANY, "sched/sched_process_exit" },
	{ SIDE_BOTH, ANY, "task/task_rename" },
	{ SIDE_BOTH, ANY, "irq/irq_handler_entry" },
	{ SIDE_BOTH, ANY, "irq/irq_handler_exit" },
	{ SIDE_BOTH, ANY, "irq/softirq_entry" },
	{ SIDE_BOTH, ANY, "irq/softirq_exit" },
	{ SIDE_BOTH, ANY, "timer/hrtimer_expire_entry" },
	{ SIDE_BOTH, ANY, "timer/hrtimer_expire_exit" },
	{ SIDE_GUEST, X86, "irq_vectors/reschedule_entry" },
	{ SIDE_GUEST, X86, "irq_vectors/reschedule_exit" },
	{ SIDE_GUEST, X86, "irq_vectors/call_function_entry" },
	{ SIDE_GUEST, X86, "irq_vectors/call_function_exit" },
	{ SIDE_GUEST, X86, "irq_vectors/call_function_single_entry" },
	{ SIDE_GUEST, X86, "irq_vectors/call_function_single_exit" },
	{ SIDE_GUEST, ARM, "ipi/ipi_raise" },
	{ SIDE_GUEST, ARM, "ipi/ipi_entry" },
	{ SIDE_GUEST, ARM, "ipi/ipi_exit" },
	{ SIDE_BOTH, ANY, "cgroup/cgroup_attach_task" },
	{ SIDE_BOTH, ANY, "lock/contention_begin" },  /* since Linux 5.19 */
	{ SIDE_BOTH, ANY, "lock/contention_end" },
	{ SIDE_HOST, ANY, "power/cpu_frequency" },  /* only some cpufreq drivers */
	{ SIDE_HOST, ANY, "kvm/kvm_entry" },
	{ SIDE_HOST, ANY, "kvm/kvm_exit" },
	{ SIDE_HOST, ANY, "kvm/kvm_userspace_exit" },
	{ SIDE_HOST, ANY, "kvm/kvm_vcpu_wakeup" },
	{ SIDE_HOST, ANY, "kvm/kvm_halt_poll_ns" },
	{ SIDE_HOST, X86, "kvm/kvm_hypercall" },
	{ SIDE_HOST, X86, "kvm/kvm_inj_virq" },
	{ SIDE_HOST, X86, "kvm/kvm_apic_ipi" },
	{ SIDE_HOST, X86, "kvm/kvm_write_tsc_offset" },  /* used by no analysis; shows people that a guest's clock was
	                                                  * changed */
};

static bool has_arch(enum arch arch, const char *machine)
{
	if (arch == ANY || !machine)
		return true;
	return arch == X86 ? strcmp(machine, "x86_64") == 0 || strcmp(machine, "i686") == 0
	                   : strcmp(machine, "aarch64") == 0;
}

char **events_wanted(enum event_side side, const char *machine, const char *const *extra, size_t extras, size_t *n)
{
	char **name = NULL;
	size_t cap = 0;
	*n = 0;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if ((table[i].side & side) && has_arch(table[i].arch, machine))
			*ARRAY_PUSH(name, *n, cap) = mem_dup(table[i].name);
	for (size_t i = 0; i < extras; i++) {
		char *event = mem_dup(extra[i]), *colon = strchr(event, ':');
		if (colon)
			*colon = '/';
		*ARRAY_PUSH(name, *n, cap) = event;
	}
	return name;
}

void events_free(char **name, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(name[i]);
	free(name);
}

bool event_is_name(const char *name)
{
	const size_t len = strlen(name), system = strcspn(name, ":/");
	static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	return len < NAME_MAX_LEN && system > 0 && system == strspn(name, word) && name[system] &&
	       system + 1 + strspn(name + system + 1, word) == len && system + 1 < len;
}

#define STEAL_PROBE_MAX 80  /* a probe's longest name, bytes */

bool event_is_steal_probe(const char *event)
{
	static const char digits[] = "0123456789", group[] = "stealscope_";
	const char *at = event + sizeof group - 1;
	if (strncmp(event, group, sizeof group - 1) != 0 || strlen(event) > STEAL_PROBE_MAX)
		return false;
	at += strspn(at, digits);
	if (*at++ != '_')
		return false;
	at += strspn(at, digits);
	if (strncmp(at, "_c", 2) == 0)
		at += 2 + strspn(at + 2, digits);
	return strcmp(at, "/steal_switch") == 0 || strcmp(at, "/steal_timer") == 0;
}
