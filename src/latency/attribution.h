/* Internals of latency/: attribution of one request. Private to latency/. */
#pragma once

#include "latency/latency.h"

/* Fills executing, low, high, unknown, tid, container and feature of r. Its machine, attributes, start and end must be
 * set. */
int attribute_request(const struct catalog *catalog, struct request *r, struct error *err);
/* Fills tid and container of r only, from the first known thread. */
int attribute_server(const struct catalog *catalog, struct request *r, struct error *err);
/* Fills the same for a request that one thread (index into catalog) serves from start to end. executing: the thread works
 * for no other request. */
int attribute_thread(const struct catalog *catalog, uint32_t thread, bool executing, struct request *r, struct error *err);
/* Calls on_part for each part of [start, end] of one thread, in order of time. */
typedef void request_part_fn(void *arg, enum request_part part, int64_t start, int64_t end);
int attribute_parts(const struct catalog *catalog, uint32_t thread, int64_t start, int64_t end, request_part_fn *on_part,
                    void *arg, struct error *err);
/* Returns true if the options include requests of this interval. */
bool request_in_window(const struct requests_options *o, int64_t start, int64_t end);
/* Adds a note about requests outside the recording, with its window. */
void requests_note_cut(const struct catalog *catalog, size_t cut, struct notes *notes);
/* Index of the container that a host thread belongs to; -1: none. (The host's threads include those of containers.) */
int request_container(const struct catalog *catalog, uint32_t machine, int32_t tid);
