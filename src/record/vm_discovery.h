/* Functions of vm_name.c for vm_discovery.c (private to record/). */
#ifndef STEALSCOPE_RECORD_VM_DISCOVERY_H
#define STEALSCOPE_RECORD_VM_DISCOVERY_H

#include "record/record.h"

/* Fills in name, UUID, agent socket and CID of the VM with the PID vm->pid, from its command line and from files of
 * libvirt and systemd. */
void vm_describe(const char *root, struct vm *vm);
/* Makes names unique by appending the PID, and derives the directory names. */
void vms_make_unique(struct vm *vm, size_t n);

#endif
