/* The same trace once more, whole or cut (private to sync/). */
#ifndef STEALSCOPE_SYNC_EVIDENCE_DUPLICATE_TRACES_H
#define STEALSCOPE_SYNC_EVIDENCE_DUPLICATE_TRACES_H

#include "trace/trace.h"

/* is[i]: what trace i tells another one tells, too, and that one stays: the host's, the longer one, the first one. */
int copies_find(struct trace *const *trace, size_t n, bool *is, struct error *err);

#endif
