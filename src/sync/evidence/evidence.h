/* What both sides saw: a guest's activity, and the host's account of a VM whose guest it may be (private to sync/). */
#ifndef STEALSCOPE_SYNC_EVIDENCE_EVIDENCE_H
#define STEALSCOPE_SYNC_EVIDENCE_EVIDENCE_H

#include "sync/evidence/activity.h"
#include "sync/evidence/vm_candidates.h"

struct seen {
	const struct host_view *host;
	const struct vm_view *vm;
	const struct activity *act;
};

#endif
