/* What both sides saw: a guest's activity, and the host's account of a VM whose guest it may be (private to sync/). */
#ifndef STEALSCOPE_SYNC_SEEN_H
#define STEALSCOPE_SYNC_SEEN_H

#include "sync/seen/activity.h"
#include "sync/seen/vm_view.h"

struct seen {
	const struct host_view *host;
	const struct vm_view *vm;
	const struct activity *act;
};

#endif
