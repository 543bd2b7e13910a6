/* Functions of vm_name.c for vm_discovery.c (private to record/). */
#pragma once

#include "record/record.h"

/* Fills in name, UUID, agent socket and CID of the VM with the PID vm->pid, from its command line and from files of
 * libvirt and systemd. */
void vm_describe(const char *root, struct vm *vm);
/* Makes names unique by appending the PID, and derives the directory names. */
void vms_make_unique(struct vm *vm, size_t n);

/* Names of orchestrators; NULL: not one of theirs. The caller frees.
 * OpenStack: the display name in libvirt's description of the domain. KubeVirt: "NAMESPACE/VM" from the guest's name
 * "NAMESPACE_VM" of a VMM in a pod. Kata: "NAMESPACE/POD" of the sandbox with this id, as containerd or CRI-O keep it. */
char *vm_openstack_name(const char *root, const char *domain);
char *vm_kubevirt_name(const char *root, int32_t pid, const char *guest);
char *vm_kata_name(const char *root, const char *id);
