/* The schema: which attributes the histories of stealscope have, of what type, and below which nodes.
 *
 *   /Host/CPUs/CPU<n>/...                     CPU_ATTRIBUTES
 *   /Host/Threads/<TID>/...                   THREAD_ATTRIBUTES
 *   /Virtual Machines/<VM>/...                MACHINE_ATTRIBUTES, and the same below it as below /Host
 *   /Containers/<name>/Threads/<TID>/...      THREAD_ATTRIBUTES
 *   /Requests/<machine>/<id>/...              REQUEST_ATTRIBUTES
 *
 * The model writes them, everybody who reads a history finds them by the same lists.  A history may lack any of them. */
#ifndef STEALSCOPE_BASE_SCHEMA_H
#define STEALSCOPE_BASE_SCHEMA_H

#include <stdint.h>

#define SCHEMA_HOST "Host"
#define SCHEMA_VMS "Virtual Machines"
#define SCHEMA_CONTAINERS "Containers"
#define SCHEMA_REQUESTS "Requests"
#define SCHEMA_CPUS "CPUs"
#define SCHEMA_CPU "CPU"  /* and the number, without a space */
#define SCHEMA_THREADS "Threads"

/* X(code, field, name, type): type is the end of an enum schema_type.
 * A reference (REF) is a machine's name, "host" or the VM's, and a number of it: a TID, or where said so a CPU. */
#define MACHINE_ATTRIBUTES(X) \
	X(MACHINE_PARENT, parent, "Parent", STRING)  /* the machine that runs it: "host" or a VM */ \
	X(MACHINE_BAND, band, "Clock Band", INT)     /* ns: how far its clock may be off here; null = unknown */ \
	X(MACHINE_ISA, isa, "ISA", STRING)           /* whose names its exits have: "VMX", "SVM", "arm64", "unknown" */

#define CPU_ATTRIBUTES(X) \
	X(CPU_STATUS, status, "Status", STATE)            /* of a vCPU: enum vcpu_state */ \
	X(CPU_OWNER, owner, "Owner", STATE)               /* of a pCPU: "idle", "host", a VM's name, ... */ \
	X(CPU_CURRENT, current, "Current Thread", INT)    /* TID, 0 = idle, null = unknown */ \
	X(CPU_INTERRUPT, interrupt, "Interrupt", STRING)  /* the innermost handler: "irq/27-virtio0", "softirq/7-SCHED" */ \
	X(CPU_HOST_THREAD, host_thread, "Host Thread", INT)  /* of a vCPU: its TID in the parent machine */ \
	X(CPU_PCPU, pcpu, "pCPU", INT)                    /* of a vCPU: the CPU there that it is on, or waits for */ \
	X(CPU_EXIT, exit, "Exit", STRING)                 /* of a vCPU: why it was last left; null = unknown */ \
	X(CPU_OUT_BY, out_by, "Out By", STATE)            /* of a vCPU: enum out_reason; null = no such reason is known */ \
	X(CPU_POLLING, polling, "Polling", STATE)         /* of a vCPU: enum poll_outcome, while it polls halted */ \
	X(CPU_INSIDE, inside, "Preempted At", INT)        /* of a vCPU: the instruction of its guest's kernel, or 0 */

#define THREAD_ATTRIBUTES(X) \
	X(THREAD_STATUS, status, "Status", STATE)         /* enum thread_state; null = not alive */ \
	X(THREAD_NAME, name, "Name", STRING) \
	X(THREAD_CPU, cpu, "CPU", INT)                    /* where it runs, is queued, or ran last */ \
	X(THREAD_PID, pid, "PID", INT) \
	X(THREAD_WOKEN_BY, woken_by, "Woken By", REF)     /* who was current where its last sleep was ended */ \
	X(THREAD_WOKEN_IN, woken_in, "Woken In", STRING)  /* and in what: "thread", or a handler's name */ \
	X(THREAD_LOCK, lock, "Lock", STRING)              /* the kind of lock it waits for, where an event tells */ \
	X(THREAD_VM, vm, "VM", REF)                       /* while it is a vCPU: the VM and the CPU's number */ \
	X(THREAD_NICE, nice, "Nice", INT)                 /* of the host's that were not always of level 0; -21 real time */ \
	X(THREAD_GROUPS, groups, "Groups", STRING)        /* of the host's: "NUMBER:SHARES/...", the outermost first */

#define REQUEST_ATTRIBUTES(X) \
	X(REQUEST_STATE, state, "State", STATE)           /* running, yielded, unknown; null outside of it */ \
	X(REQUEST_THREAD, thread, "Thread", INT)          /* TID that serves it */

#define SCHEMA_CODE(code, field, name, type) code,
enum machine_attr { MACHINE_ATTRIBUTES(SCHEMA_CODE) MACHINE_ATTRS };
enum cpu_attr { CPU_ATTRIBUTES(SCHEMA_CODE) CPU_ATTRS };
enum thread_attr { THREAD_ATTRIBUTES(SCHEMA_CODE) THREAD_ATTRS };
enum request_attr { REQUEST_ATTRIBUTES(SCHEMA_CODE) REQUEST_ATTRS };
#undef SCHEMA_CODE

/* Ids of the attributes of one node, by code and by name: node.id[CPU_STATUS] is node.status. */
#define SCHEMA_FIELD(code, field, name, type) uint32_t field;
#define SCHEMA_IDS(LIST, n) union { uint32_t id[n]; struct { LIST(SCHEMA_FIELD) }; }

enum schema_type { SCHEMA_STATE, SCHEMA_INT, SCHEMA_STRING, SCHEMA_REF };  /* = enum history_type */
struct schema_attr {
	const char *name;
	enum schema_type type;
};
extern const struct schema_attr machine_schema[MACHINE_ATTRS], cpu_schema[CPU_ATTRS], thread_schema[THREAD_ATTRS],
	request_schema[REQUEST_ATTRS];

#endif
