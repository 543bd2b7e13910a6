/* Private to record/: what vm_discovery.c and vm_name.c share. */
#ifndef STEALSCOPE_RECORD_VM_DISCOVERY_H
#define STEALSCOPE_RECORD_VM_DISCOVERY_H

#include "record/record.h"

/* Fills in what its command line and the daemons' files say of the VM with that PID: name, UUID, agent, CID. */
void vm_describe(const char *root, struct vm *vm);
/* Names that are taken get the PID behind them; folders are made of the names. */
void vms_make_unique(struct vm *vm, size_t n);

#endif
