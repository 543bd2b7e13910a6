/* Which control groups of the host threads are in, and what these weigh, before a recording and after it.
 *
 * Reading costs some 20 us per thread.  Bounds: CGROUPS_THREADS threads of the host, CGROUPS_GROUPS groups; what is beyond
 * is not told. */
#ifndef STEALSCOPE_RECORD_CGROUPS_H
#define STEALSCOPE_RECORD_CGROUPS_H

#include "base/yaml_out.h"
#include "record/record.h"

#define CGROUPS_THREADS 16384
#define CGROUPS_GROUPS 256

/* At one moment. */
struct cgroups;
struct cgroups *cgroups_take(const char *root, const struct vm *vm);                  /* of its vCPUs' threads */
struct cgroups *cgroups_take_host(const char *root, const struct vm *vm, size_t vms);  /* of all that are no vCPUs' */
void cgroups_free(struct cgroups *c);

/* Each of these takes what was before and after; either may be NULL.  Threads whose groups, or these groups' weights, are
 * not known to have stayed the same are left out; so are threads of the host that never ran meanwhile. */
void cgroups_put_threads(struct yaml_out *o, int map, const struct cgroups *before, const struct cgroups *after);
/* Of all groups that those threads are in. */
void cgroups_put_weights(struct yaml_out *o, int map, struct cgroups *const *before, struct cgroups *const *after,
                         size_t n);
/* Their quotas, and how they were used. */
void cgroups_put_quotas(struct yaml_out *o, int map, const struct cgroups *before, const struct cgroups *after);

#endif
