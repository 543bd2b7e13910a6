/* What an analyst asks next, and no event tells: who may run where, how much, with which priority; what KVM was told. */
#ifndef STEALSCOPE_RECORD_SESSION_FACTS_H
#define STEALSCOPE_RECORD_SESSION_FACTS_H

#include "base/yaml_out.h"
#include "record/cgroups.h"
#include "record/record.h"

/* Writes what the VM is and its threads, and its control groups before and after (each may be NULL). */
void facts_put_vm(struct yaml_out *o, int map, const char *root, const struct vm *vm, const struct cgroups *before,
                  const struct cgroups *after);
/* The same of the host: CPU, KVM's parameters, governors. */
void facts_put_host(struct yaml_out *o, int map, const char *root);

#endif
