/* Replaces dat_child.c in a build without libtraceevent: claims no files. */
#include "trace/tracecmd/tracecmd.h"

enum claim tracecmd_claims(const char *name, const unsigned char *head, size_t len)
{
	(void)name;
	(void)head;
	(void)len;
	return CLAIM_NONE;
}

void *tracecmd_enter(struct source *s, struct error *err)
{
	error_set(err, STATUS_SYSTEM, "build stealscope with libtraceevent", "%s: a trace-cmd file", s->location[0]->path);
	return NULL;
}

int tracecmd_decode(void *state, const struct stream_part *p, struct event_sink *out)
{
	(void)state;
	(void)p;
	(void)out;
	return -1;
}
