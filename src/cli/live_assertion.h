/* Assertions about live samples: "web.steal<10%". */
#pragma once

#include "live/live.h"

/* NAME.COLUMN<PERCENT%. NAME: a VM (each of its vCPUs), a control group (the sum of its processes), a process (each of this
 * name), or "*": everything. */
struct live_assertion {
	const char *text;
	char name[LIVE_NAME];
	enum { ASSERT_STEAL, ASSERT_THROTTLED, ASSERT_RUN, ASSERT_LOST } column;
	double limit;              /* share of the period */
};

/* Returns the time that an assertion is about. */
int64_t live_assertion_time(const struct live_assertion *a, const struct live_times *n);
int live_assertion_parse(const char *text, struct live_assertion *a, struct error *err);
/* Returns 0 if it holds in a sample; -1 with *err: it does not, or nothing has this name. */
int live_assertion_check(const struct live_assertion *a, const struct live *l, const struct live_sample *s,
                         struct error *err);
