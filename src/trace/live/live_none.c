/* Replaces live_child.c in a program without libbabeltrace2: reads no live session. */
#include "trace/live/live.h"

static int refuse(struct error *err, const char *what)
{
	return error_set(err, STATUS_SYSTEM, "use a stealscope with libbabeltrace2, e.g. of a package",
	                 "%s: this program has no libbabeltrace2", what);
}

void *live_enter(struct source *s, struct error *err)
{
	(void)s;
	refuse(err, "a relay daemon");
	return NULL;
}

int live_decode(void *state, const struct stream_part *p, struct event_sink *out)
{
	(void)state;
	(void)p;
	return refuse(out->err, "a relay daemon");
}

int live_list(void *state, const struct stream_part *p, struct event_sink *out)
{
	return live_decode(state, p, out);
}
