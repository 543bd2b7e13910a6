/* Internals of latency/: attribution of one request. Private to latency/. */
#ifndef STEALSCOPE_LATENCY_ATTRIBUTION_H
#define STEALSCOPE_LATENCY_ATTRIBUTION_H

#include "latency/latency.h"

/* Fills executing, low, high, unknown, tid, container and feature of r. Its machine, attributes, start and end must be
 * set. */
int attribute_request(const struct catalog *catalog, struct request *r, struct error *err);
/* Fills tid and container of r only, from the first known thread. */
int attribute_server(const struct catalog *catalog, struct request *r, struct error *err);
/* Index of the container that a host thread belongs to; -1: none. (The host's threads include those of containers.) */
int request_container(const struct catalog *catalog, uint32_t machine, int32_t tid);

#endif
