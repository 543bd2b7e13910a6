/* Packets -> events. */
#ifndef STEALSCOPE_TRACE_CTF_DECODE_H
#define STEALSCOPE_TRACE_CTF_DECODE_H

#include "trace/ctf/files.h"

struct ctf_worker;

struct ctf_worker *ctf_worker_new(const struct ctf_classes *c, struct meaning *meaning);
void ctf_worker_free(struct ctf_worker *w);

/* Packets [from, to) of a stream; as a reader's decode(). */
int ctf_decode(struct ctf_worker *w, const struct ctf_flow *f, size_t from, size_t to, bool lost_tail, struct outlet *out);

#endif
