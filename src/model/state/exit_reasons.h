/* Exit reasons: the numbers used by VMX, SVM, arm64 and Xen for paravirtualized guests, their names and classes. */
#pragma once

#include "model/model.h"
#include "trace/trace.h"

/* All but ISA_ARM64 as in struct event. */
enum isa { ISA_UNKNOWN, ISA_VMX, ISA_SVM, ISA_ARM64, ISA_XEN_PV = EXIT_ISA_XEN_PV };

enum exit_class {
	EXIT_OTHER,     /* action of guest code outside the idle loop: a thread ran */
	EXIT_HALT,      /* HLT, WFI: the guest has nothing to run */
	EXIT_TIMER,     /* write to the interrupt controller or timer; both threads and the idle thread do that */
	EXIT_INTERRUPT, /* not caused by the guest */
};

/* Returns the instruction set extension of a VM exit. */
static inline enum isa exit_isa(const struct event *ev)
{
	const int64_t isa = ev->vcpu_exit.isa;
	return isa == ISA_VMX || isa == ISA_SVM || isa == ISA_XEN_PV ? (enum isa)isa
	     : ev->vcpu_exit.ret != EVENT_ABSENT ? ISA_ARM64 : ISA_UNKNOWN;
}

/* Returns true for a hypercall that a VM with VM exits made to Xen; its number is in vcpu_exit.ret. */
static inline bool exit_is_xen_call(const struct event *ev)
{
	const int64_t isa = ev->vcpu_exit.isa;
	return (isa == ISA_VMX || isa == ISA_SVM) && ev->vcpu_exit.ret != EVENT_ABSENT;
}

/* Returns true if the vCPU made the hypercall event_channel_op, which may send an event to another vCPU. */
static inline bool exit_may_send_event(const struct event *ev)
{
	enum { EVENT_CHANNEL_OP = 32 };
	return exit_is_xen_call(ev) ? ev->vcpu_exit.ret == EVENT_CHANNEL_OP
	     : ev->vcpu_exit.isa == EXIT_ISA_XEN_PV && ev->vcpu_exit.reason == XEN_PV_HYPERCALL + EVENT_CHANNEL_OP;
}

/* Flags in addition to the class. */
enum {
	EXIT_CLASS = 3,  /* the class's mask */
	EXIT_CALL = 4,   /* hypercall */
	EXIT_WINDOW = 8, /* interrupt window: the guest can take the pending interrupt, and does so after the next VM entry */
	EXIT_MEMORY = 16 /* access to memory that is unmapped or protected */
};

extern const struct exit_traits { const uint8_t *of; int64_t n; } exit_traits[];  /* flags by exit reason, for each ISA */
enum { ARM_TRAP = 2 };  /* arm64: exit for the trapped reason in ESR_EL2 (the kernel's ARM_EXCEPTION_TRAP) */

static inline unsigned exit_flags(const struct event *ev)
{
	const enum isa isa = exit_isa(ev);
	const int64_t r = ev->vcpu_exit.reason > 0 ? ev->vcpu_exit.reason : 0;
	if (isa == ISA_ARM64 && ev->vcpu_exit.ret != ARM_TRAP)
		return EXIT_INTERRUPT;
	return r < exit_traits[isa].n ? exit_traits[isa].of[r] : EXIT_OTHER;
}

static inline enum exit_class exit_class(const struct event *ev)
{
	return (enum exit_class)(exit_flags(ev) & EXIT_CLASS);
}
const char *isa_name(enum isa isa);
/* Returns the guest kernel's instruction pointer at the exit; 0: not in the kernel; EVENT_ABSENT: unknown. */
int64_t exit_kernel_address(const struct event *ev);
