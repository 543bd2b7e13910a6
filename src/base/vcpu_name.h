/* Names that VMMs give to vCPU threads, and the kernel to its threads that work for a VM. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define VCPU_NAME_MAX 65535  /* largest accepted vCPU number */

/* Returns the vCPU number in a thread's name, "CPU 3/KVM" (QEMU) or the form of another VMM; -1: not a vCPU thread. */
int vcpu_name_number(const char *comm);

/* Returns the PID of the VM's process in the name of a kernel thread that works for the VM: "vhost-PID" (network),
 * "kvm-pit/PID" (timer); -1: another thread. */
int64_t vm_worker_pid(const char *comm);
/* Returns true for the kernel thread that recovers huge pages of a VM ("kvm-nx-lpage-recovery"): its name has no PID. */
bool vm_worker_has_no_pid(const char *comm);
