/* Snapshots of the control groups of host threads, with weights and quotas, taken before and after a recording.
 *
 * Reading costs about 20 us per thread. Threads beyond CGROUPS_THREADS and groups beyond CGROUPS_GROUPS are skipped. */
#pragma once

#include "base/yaml_out.h"
#include "record/record.h"

#define CGROUPS_THREADS 16384
#define CGROUPS_GROUPS 2048

/* One snapshot. The caller frees it. */
struct cgroups;
struct cgroups *cgroups_read_vm(const char *root, const struct vm *vm);                  /* the VM's vCPU threads */
struct cgroups *cgroups_read_host(const char *root, const struct vm *vm, size_t vms);  /* all threads that are no vCPU */
void cgroups_free(struct cgroups *c);

/* Writes the group of each thread to session.yaml. before and after may be NULL. Threads with a group or weight that may
 * have changed during the recording are omitted, and threads of the host that did not run during it. */
void cgroups_put_threads(struct yaml_out *o, int map, const struct cgroups *before, const struct cgroups *after);
/* Writes the weights of the groups of these threads, from n pairs of snapshots; each group once. */
void cgroups_put_weights(struct yaml_out *o, int map, struct cgroups *const *before, struct cgroups *const *after,
                         size_t n);
/* Writes the list of base/control_groups.h. A thread that moved is in its earlier group. has_events: as there. */
void cgroups_put_list(struct yaml_out *o, int map, const struct cgroups *before, const struct cgroups *after,
                      bool has_events);

/* Returns the name of the cpu.stat of the first group with a quota from *number on, and sets *number to its number in that
 * list. NULL: none. The caller frees it. */
char *cgroups_quota_file(const struct cgroups *c, const char *root, size_t *number);
