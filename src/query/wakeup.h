/* What ended a sleep, as far as the history tells.  Private to query/. */
#ifndef STEALSCOPE_QUERY_WAKEUP_H
#define STEALSCOPE_QUERY_WAKEUP_H

#include "query/resolver.h"

struct wakeup {
	int64_t at;               /* ns: its waker acted; it may have slept longer than that */
	int32_t machine, tid;     /* who was current there; -1: nobody knows */
	const char *in;           /* "thread", or a handler's name; NULL: nobody knows */
};

/* Of the sleep that was over at `at`. */
int wakeup_of(struct resolver *r, struct who *sleeper, int64_t at, struct wakeup *out);

/* Kinds of handlers, by name. */
bool wakeup_is_timer(const char *in);
bool wakeup_is_network(const char *in);
bool wakeup_is_device(const char *in);

#endif
