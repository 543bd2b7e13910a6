/* Replaces perf_child.c in a build without libtraceevent: claims no files. */
#include "trace/perf/perf.h"

enum claim perf_claims(const char *name, const unsigned char *head, size_t len)
{
	(void)name;
	(void)head;
	(void)len;
	return CLAIM_NONE;
}

void *perf_enter(struct source *s, struct error *err)
{
	error_set(err, STATUS_SYSTEM, "build stealscope with libtraceevent", "%s: a perf.data file", s->location[0]->path);
	return NULL;
}

int perf_decode(void *state, const struct stream_part *p, struct event_sink *out)
{
	(void)state;
	(void)p;
	(void)out;
	return -1;
}
