/* Why a guest was left: what the numbers of the processors mean. */
#ifndef STEALSCOPE_MODEL_STATE_EXIT_REASONS_H
#define STEALSCOPE_MODEL_STATE_EXIT_REASONS_H

#include "model/model.h"
#include "trace/trace.h"

enum isa { ISA_UNKNOWN, ISA_VMX, ISA_SVM, ISA_ARM64 };  /* VMX and SVM as in struct event */

enum exit_class {
	EXIT_OTHER,      /* the guest's own doing, which only a thread of it does */
	EXIT_HALT,       /* it has nothing to do (HLT, WFI) */
	EXIT_TIMER,      /* it programs its interrupt controller or timer, as its idle thread does, too */
	EXIT_INTERRUPT,  /* nothing that it did */
};

/* Of an EV_KVM_EXIT. */
static inline enum isa exit_isa(const struct event *ev)
{
	return ev->kvm.isa == ISA_VMX || ev->kvm.isa == ISA_SVM ? (enum isa)ev->kvm.isa
	     : ev->kvm.ret != EVENT_ABSENT ? ISA_ARM64 : ISA_UNKNOWN;
}

/* What else an exit is, beside its class. */
enum {
	EXIT_CLASS = 3,  /* the bits of that */
	EXIT_CALL = 4,   /* the guest asked its hypervisor for something */
	EXIT_WINDOW = 8, /* the guest can take the interrupt that waits for it, which it then does */
	EXIT_MEMORY = 16 /* the guest touched memory that its machine does not have, or not yet, or not that way */
};

extern const struct exit_traits { const uint8_t *of; int64_t n; } exit_traits[];  /* by ISA, and in it by reason */
enum { ARM_TRAP = 2 };  /* arm64: the guest was left for its reason, not for another (the kernel's ARM_EXCEPTION_TRAP) */

static inline unsigned exit_is(const struct event *ev)
{
	const enum isa isa = exit_isa(ev);
	const int64_t r = ev->kvm.reason > 0 ? ev->kvm.reason : 0;
	if (isa == ISA_ARM64 && ev->kvm.ret != ARM_TRAP)
		return EXIT_INTERRUPT;
	return r < exit_traits[isa].n ? exit_traits[isa].of[r] : EXIT_OTHER;
}

static inline enum exit_class exit_class(const struct event *ev)
{
	return (enum exit_class)(exit_is(ev) & EXIT_CLASS);
}
const char *isa_name(enum isa isa);
/* The instruction of the guest's kernel that was left; 0: not the kernel's; EVENT_ABSENT: nothing tells. */
int64_t exit_kernel_address(const struct event *ev);

#endif
