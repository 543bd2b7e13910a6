/* What an analyst asks next, and no event tells: who may run where, how much, with which priority; what KVM was told. */
#ifndef STEALSCOPE_RECORD_FACTS_H
#define STEALSCOPE_RECORD_FACTS_H

#include "base/yaml_out.h"
#include "record/record.h"

/* Of one VM at one moment: its control groups. */
struct facts;
struct facts *facts_take(const char *root, const struct vm *vm);
void facts_free(struct facts *f);

/* Writes what the VM is and its threads, and its control groups before and after (each may be NULL). */
void facts_put_vm(struct yaml_out *o, int map, const char *root, const struct vm *vm, const struct facts *before,
                  const struct facts *after);
/* Which control groups its vCPUs' threads are in, and the weights of all these groups on the host, as far as they were the
 * same before and after. */
void facts_put_groups(struct yaml_out *o, int map, const struct facts *before, const struct facts *after);
void facts_put_weights(struct yaml_out *o, int map, struct facts *const *before, struct facts *const *after, size_t n);
/* The same of the host: CPU, KVM's parameters, governors. */
void facts_put_host(struct yaml_out *o, int map, const char *root);

#endif
