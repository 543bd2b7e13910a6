/* Input of a search by containment: the guest's activity, and the guest-mode windows of one VM (private to sync/). */
#pragma once

#include "sync/evidence/activity.h"
#include "sync/evidence/window_cursor.h"

struct evidence {
	const struct host_timeline *host;
	const struct vm_candidate *vm;
	const struct activity *activity;
};
