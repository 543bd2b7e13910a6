/* Servers of spans: machine, process and thread. Private to latency/. */
#pragma once

#include "latency/latency.h"

#define NO_MACHINE (-1)

/* A span's server: a thread, a process's threads, or a machine. */
struct span_place {
	uint32_t machine;
	uint32_t *thread;        /* indices into the catalog */
	size_t threads, cap;     /* 0: the machine as a whole */
	size_t members;          /* threads that belong to the process; the others, of unknown processes, may belong to it */
	bool is_known_thread;    /* thread[0] is the thread of the span itself */
	bool interleaved;        /* and works for other spans meanwhile */
};

struct span_places;
/* Finds the machines of all sources, and the threads that work for several spans in turns. The arguments are borrowed. */
struct span_places *span_places_open(const struct catalog *catalog, const struct spans *spans,
                                     const struct span_clocks *clocks);
void span_places_close(struct span_places *p);
/* Index of the machine of a span, or NO_MACHINE. */
int32_t span_machine(const struct span_places *p, const struct span *s);
/* Determines the server of span i, which begins at start and ends at end on the host's clock, each +-error ns. Reuses the
 * memory of *out; the caller frees out->thread. Returns -1 with *err. */
int span_place_find(struct span_places *p, size_t i, int64_t start, int64_t end, int64_t error, struct span_place *out,
                    struct error *err);
