/* Names that VMMs give to vCPU threads. */
#ifndef STEALSCOPE_BASE_VCPU_NAME_H
#define STEALSCOPE_BASE_VCPU_NAME_H

#define VCPU_NAME_MAX 65535  /* largest accepted vCPU number */

/* Returns the vCPU number in a thread's name, "CPU 3/KVM" (QEMU) or the form of another VMM; -1: not a vCPU thread. */
int vcpu_name_number(const char *comm);

#endif
