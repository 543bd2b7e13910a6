/* Inside of latency/: who delayed one request. */
#ifndef STEALSCOPE_LATENCY_ATTRIBUTE_H
#define STEALSCOPE_LATENCY_ATTRIBUTE_H

#include "latency/latency.h"

/* Fills executing, low, high, unknown, tid and feature of r, whose machine, attributes, start and end are set. */
int attribute_request(const struct topo *topo, struct request *r, struct error *err);

#endif
