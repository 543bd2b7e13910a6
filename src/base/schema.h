/* The schema: a history's attributes, their types, and their paths.
 *
 *   /Host/CPUs/CPU<n>/...                     CPU_ATTRIBUTES
 *   /Host/Threads/<TID>/...                   THREAD_ATTRIBUTES
 *   /Virtual Machines/<VM>/...                MACHINE_ATTRIBUTES, and below it the same nodes as below /Host
 *   /Containers/<name>/Threads/<TID>/...      THREAD_ATTRIBUTES
 *   /Host/Groups/<number>/...                 GROUP_ATTRIBUTES
 *   /Requests/<machine>/<id>/...              REQUEST_ATTRIBUTES
 *
 * The model writes the attributes, and all readers find them, by these lists. A history may lack any of them. */
#pragma once

#include <stdint.h>

#define SCHEMA_HOST "Host"
#define SCHEMA_VMS "Virtual Machines"
#define SCHEMA_CONTAINERS "Containers"
#define SCHEMA_REQUESTS "Requests"
#define SCHEMA_CPUS "CPUs"
#define SCHEMA_CPU "CPU"  /* followed by the number, without a space */
#define SCHEMA_THREADS "Threads"
#define SCHEMA_GROUPS "Groups"

/* X(code, field, name, type). type: suffix of an enum schema_type. A value of type REF is the name of a machine ("host"
 * or a VM) and a number in this machine: a TID, or a CPU number where noted. */
#define MACHINE_ATTRIBUTES(X) \
	X(MACHINE_PARENT, parent, "Parent", STRING)  /* machine that runs this one: "host" or a VM */ \
	X(MACHINE_CLOCK_ERROR, band, "Clock Band", INT)     /* error bound of the clock at this time, ns; null: unknown */ \
	X(MACHINE_ISA, isa, "ISA", STRING)           /* instruction set that determines the exit reason names: "VMX",
	                                              * "SVM", "arm64", "Xen PV", "unknown" */ \
	X(MACHINE_SMT, smt, "SMT", STRING)           /* host: simultaneous multithreading, as in .../cpu/smt/control */ \
	X(MACHINE_CORE_SCHEDULING, core_scheduling, "Core Scheduling", INT)  /* host: 1: vCPU threads have cookies */ \
	X(MACHINE_MEMORY, memory_node, "Memory Node", INT)  /* VM: NUMA node with most of its memory; null: unknown */ \
	X(MACHINE_VIRTUAL, is_virtual, "Virtual", INT)  /* 1: it is known to be a VM; null: perhaps a physical machine */ \
	X(MACHINE_VM_ID, vm_id, "VM ID", STRING)     /* guest without a host trace: its identity at the provider */

#define CPU_ATTRIBUTES(X) \
	X(CPU_STATUS, status, "Status", STATE)            /* vCPU: enum vcpu_state */ \
	X(CPU_OWNER, owner, "Owner", STATE)               /* pCPU: "idle", "host", a VM's name, ... */ \
	X(CPU_CURRENT, current, "Current Thread", INT)    /* TID; 0: idle task; null: unknown */ \
	X(CPU_INTERRUPT, interrupt, "Interrupt", STRING)  /* innermost handler: "irq/27-virtio0", "softirq/7-SCHED" */ \
	X(CPU_HOST_THREAD, host_thread, "Host Thread", INT)  /* vCPU: TID of the thread that runs it, in the parent machine */ \
	X(CPU_PCPU, pcpu, "pCPU", INT)                    /* vCPU: CPU of the parent machine that it runs on or waits for */ \
	X(CPU_EXIT, exit, "Exit", STRING)                 /* vCPU: reason of the last VM exit; null: unknown */ \
	X(CPU_OUT_BY, out_by, "Out By", STATE)            /* vCPU: enum out_reason; null: no known reason */ \
	X(CPU_POLLING, polling, "Polling", STATE)         /* vCPU: enum poll_outcome while the host polls for its wakeup */ \
	X(CPU_PREEMPTED_AT, inside, "Preempted At", INT)        /* vCPU: instruction pointer of the preempted guest kernel,
	                                                         * or 0 */ \
	X(CPU_STEAL_BOUND, steal_bound, "Steal Bound", INT)     /* vCPU with a steal clock: error bound of the start and end of
	                                                         * the current gap, ns; null: no gap */ \
	X(CPU_CORE, core, "Core", INT)                    /* pCPU: number that the CPUs of its core share */ \
	X(CPU_LLC, llc, "LLC", INT)                       /* pCPU: number that the CPUs of its last-level cache share */ \
	X(CPU_NODE, node, "Node", INT)                    /* pCPU: NUMA node */ \
	X(CPU_BASE_KHZ, base_khz, "Base Frequency", INT)  /* pCPU: kHz */ \
	X(CPU_MAX_KHZ, max_khz, "Maximum Frequency", INT)  /* pCPU: kHz */ \
	X(CPU_KHZ, khz, "Frequency", INT)                 /* pCPU: kHz; null: unknown, until it changes for the first time */ \
	X(CPU_INSTRUCTIONS, instructions, "Instructions", INT)  /* sum of all instructions since the trace began, up to the end
	                                                         * of this interval between two reads; null: unknown */ \
	X(CPU_CYCLES, cycles, "Cycles", INT)              /* the same for cycles */

#define THREAD_ATTRIBUTES(X) \
	X(THREAD_STATUS, status, "Status", STATE)         /* enum thread_state; null: does not exist */ \
	X(THREAD_NAME, name, "Name", STRING) \
	X(THREAD_CPU, cpu, "CPU", INT)                    /* CPU on which it runs, is queued, or ran last */ \
	X(THREAD_PID, pid, "PID", INT) \
	X(THREAD_WOKEN_BY, woken_by, "Woken By", REF)     /* waker: thread current where the last sleep was ended */ \
	X(THREAD_WOKEN_IN, woken_in, "Woken In", STRING)  /* context of that wakeup: "thread", or a handler's name */ \
	X(THREAD_LOCK, lock, "Lock", STRING)              /* kind of the lock that it waits for; only with lock events */ \
	X(THREAD_VM, vm, "VM", REF)                       /* VM and CPU number while the thread runs a vCPU */ \
	X(THREAD_NICE, nice, "Nice", INT)                 /* host threads with other levels than 0; -21: real time */ \
	X(THREAD_GROUPS, groups, "Groups", STRING)        /* host threads: cgroups as "NUMBER:SHARES/...", outermost first */ \
	X(THREAD_GROUP, group, "Group", INT)              /* number of its control group */ \
	X(THREAD_OUT_BY, out_by, "Out By", STATE)         /* enum out_reason; null: no known reason */

/* Control groups. Numbers and texts are those of the whole recording. */
#define GROUP_ATTRIBUTES(X) \
	X(GROUP_PATH, path, "Path", STRING) \
	X(GROUP_NAME, name, "Name", STRING)               /* for people; not unique */ \
	X(GROUP_CPU_SET, cpus, "CPU Set", STRING) \
	X(GROUP_QUOTA, quota, "Quota", INT)               /* CPU time per period, ns; null: no limit */ \
	X(GROUP_PERIOD, period, "Period", INT)            /* ns */ \
	X(GROUP_PERIODS, periods, "Periods", INT)         /* period count, by cpu.stat */ \
	X(GROUP_THROTTLED, throttled, "Throttled Periods", INT)  /* number of them in which the group was throttled */ \
	X(GROUP_THROTTLED_NS, throttled_ns, "Throttled Time", INT)  /* ns, by cpu.stat: the sum over all CPUs */

#define REQUEST_ATTRIBUTES(X) \
	X(REQUEST_STATE, state, "State", STATE)           /* running, yielded, unknown, dropped; null: outside the request */ \
	X(REQUEST_THREAD, thread, "Thread", INT)          /* TID of the server thread */ \
	X(REQUEST_LABEL, label, "Label", STRING)          /* its text without values, if it was recorded */

#define SCHEMA_CODE(code, field, name, type) code,
enum machine_attr { MACHINE_ATTRIBUTES(SCHEMA_CODE) MACHINE_ATTRS };
enum cpu_attr { CPU_ATTRIBUTES(SCHEMA_CODE) CPU_ATTRS };
enum thread_attr { THREAD_ATTRIBUTES(SCHEMA_CODE) THREAD_ATTRS };
enum group_attr { GROUP_ATTRIBUTES(SCHEMA_CODE) GROUP_ATTRS };
enum request_attr { REQUEST_ATTRIBUTES(SCHEMA_CODE) REQUEST_ATTRS };
#undef SCHEMA_CODE

/* Ids of the attributes of one node, by code and by name: node.id[CPU_STATUS] is node.status. */
#define SCHEMA_FIELD(code, field, name, type) uint32_t field;
#define SCHEMA_IDS(LIST, n) union { uint32_t id[n]; struct { LIST(SCHEMA_FIELD) }; }

enum schema_type { SCHEMA_STATE, SCHEMA_INT, SCHEMA_STRING, SCHEMA_REF };  /* same values as enum history_type */
struct schema_attr {
	const char *name;
	enum schema_type type;
};
extern const struct schema_attr machine_schema[MACHINE_ATTRS], cpu_schema[CPU_ATTRS], thread_schema[THREAD_ATTRS],
	request_schema[REQUEST_ATTRS], group_schema[GROUP_ATTRS];
