/* Entries and exits of the vCPU of model_events.h, on an SVM host. */
#pragma once

#include "model_events.h"

enum { SVM_INTR = 0x60, SVM_HLT = 0x78, SVM_MSR = 0x7c, SVM_NPF = 0x400 };
#define KERNEL (-1000)       /* an address in the guest kernel */
#define HALT_AT (-5000)      /* address of the halt instruction */
#define USER 0x401234

__attribute__((unused))
static struct event kvm(int64_t t, uint16_t kind, int64_t reason, int64_t ip)
{
	struct event ev = event(t, kind, 0, 154);
	if (kind == EV_INJECT) {
		ev.inject.vector = reason;
	} else if (kind == EV_VCPU_EXIT) {
		ev.vcpu_exit.reason = reason;
		ev.vcpu_exit.isa = ISA_SVM;
		ev.vcpu_exit.ip = reason == SVM_HLT ? HALT_AT : ip;
	}
	return ev;
}

__attribute__((unused))
static void leave(int64_t t, int64_t reason)
{
	feed(0, kvm(t, EV_VCPU_EXIT, reason, KERNEL));
}

__attribute__((unused))
static void enter(int64_t t)
{
	feed(0, kvm(t, EV_VCPU_ENTRY, 0, 0));
}
