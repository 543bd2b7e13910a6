/* Why a guest was left: what the numbers of the processors mean. */
#ifndef STEALSCOPE_MODEL_EXIT_REASONS_H
#define STEALSCOPE_MODEL_EXIT_REASONS_H

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
enum exit_class exit_class(const struct event *ev);
/* The guest touched memory that its machine does not have, or not yet, or not that way. */
bool exit_is_memory(const struct event *ev);
/* The guest asked its hypervisor for something. */
bool exit_is_call(const struct event *ev);
/* The guest can take the interrupt that waits for it, which it then does. */
bool exit_is_window(const struct event *ev);
const char *isa_name(enum isa isa);
/* The instruction of the guest's kernel that was left; 0: not the kernel's; EVENT_ABSENT: nothing tells. */
int64_t exit_kernel_address(const struct event *ev);

#endif
