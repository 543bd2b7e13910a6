/* Shared by the files of flow/. */
#ifndef STEALSCOPE_FLOW_FLOW_PRIVATE_H
#define STEALSCOPE_FLOW_FLOW_PRIVATE_H

#include "flow/flow.h"
#include "flow/resolve.h"

/* A flow of [from, to] whose names stay with the resolver (flow->names is 0). */
int flow_collect(struct resolver *r, const struct subject *s, int64_t from, int64_t to, struct flow *out);

/* First and last moment at which the attribute is not null: 1, 0 = never, -1 = error. */
int flow_life(const struct topo *topo, uint32_t attr, int64_t *start, int64_t *end, struct error *err);

/* The status attribute of a CPU or thread and the states of it (bits of the file's numbers) that make a gap. */
uint32_t gap_attribute(const struct topo *topo, const struct subject *s, uint64_t *mask);

#endif
