/* Writes settings of host and VMs that no event records: affinity, quotas, priorities, KVM parameters. */
#pragma once

#include "base/yaml_out.h"
#include "record/cgroups.h"
#include "record/record.h"

/* Writes description, threads and quotas of a VM. before, after: snapshots of its control groups, or NULL. */
void facts_put_vm(struct yaml_out *o, int map, const char *root, const struct vm *vm, const struct cgroups *before,
                  const struct cgroups *after);
/* Writes CPU model, online CPUs, SMT, governor, clocksource and KVM parameters of the host. */
void facts_put_host(struct yaml_out *o, int map, const char *root);
