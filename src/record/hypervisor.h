/* What this machine knows about the hypervisor that runs it: from CPUID, /proc and /sys. */
#pragma once

#include "base/base.h"
#include "base/yaml_out.h"

enum hypervisor_kind { HYPERVISOR_UNKNOWN, HYPERVISOR_KVM, HYPERVISOR_XEN, HYPERVISOR_VMWARE, HYPERVISOR_HYPERV };

enum offered { OFFERED_UNKNOWN, OFFERED_YES, OFFERED_NO };

struct guest_platform {
	bool is_guest;             /* this machine is a guest */
	enum hypervisor_kind kind;
	enum offered steal;        /* the hypervisor keeps a counter of stolen time for the guest */
	const char *why;           /* reason for OFFERED_NO */
	uint64_t tsc_khz;          /* TSC frequency in CPUID; 0: not present */
};

/* root "": this machine, whose CPUID is read; otherwise only files below root are read. */
struct guest_platform hypervisor_detect(const char *root);
const char *hypervisor_name(enum hypervisor_kind kind);

/* Writes the VM's identity, as far as it is readable: DMI, Xen's UUID, cloud-init. */
void hypervisor_put_vm(struct yaml_out *o, int map, const char *root);
