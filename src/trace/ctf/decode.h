/* Decoder of CTF packets into events. */
#pragma once

#include "trace/ctf/stream_packets.h"

struct ctf_worker;

struct ctf_worker *ctf_worker_new(const struct ctf_classes *c, struct event_mapping *mapping);
void ctf_worker_free(struct ctf_worker *w);

/* Decodes packets [from, to) of a stream. Returns the same values as decode() of struct trace_reader. */
int ctf_decode(struct ctf_worker *w, const struct ctf_data_stream *f, size_t from, size_t to, bool lost_tail,
               struct event_sink *out);
