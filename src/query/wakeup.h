/* The wakeup that ended a sleep. Private to query/. */
#pragma once

#include "query/resolver.h"

struct wakeup {
	int64_t at;               /* time at which the waker acted, ns; the sleep may end later */
	int32_t machine, tid;     /* current thread of the waker's CPU; tid -1: unknown */
	const char *in;           /* the waker's context: "thread", or a handler's name; NULL: unknown */
};

/* Finds the wakeup that ended the sleep before `at`. */
int wakeup_of(struct resolver *r, struct thread_ref *sleeper, int64_t at, struct wakeup *out);

/* Return true if the handler of that name belongs to this kind. */
bool wakeup_is_timer(const char *in);
bool wakeup_is_network(const char *in);
bool wakeup_is_device(const char *in);
