/* Inside of latency/: who delayed one request. */
#ifndef STEALSCOPE_LATENCY_ATTRIBUTION_H
#define STEALSCOPE_LATENCY_ATTRIBUTION_H

#include "latency/latency.h"

/* Fills executing, low, high, unknown, tid and feature of r, whose machine, attributes, start and end are set. */
int attribute_request(const struct topo *topo, struct request *r, struct error *err);
/* tid and container alone: of the first thread that is known. */
int attribute_server(const struct topo *topo, struct request *r, struct error *err);
/* The container that a thread of the host lives in: index of its machine, or -1.  (It is among the host's threads, too.) */
int request_container(const struct topo *topo, uint32_t machine, int32_t tid);

#endif
