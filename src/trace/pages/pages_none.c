/* Replaces pages_child.c in a build without libtraceevent: claims no files. */
#include "trace/pages/pages.h"

enum claim pages_claims(const char *name, const unsigned char *head, size_t len)
{
	(void)name;
	(void)head;
	(void)len;
	return CLAIM_NONE;
}

void *pages_enter(struct source *s, struct error *err)
{
	error_set(err, STATUS_SYSTEM, "build stealscope with libtraceevent", "%s: a recording", s->location[0]->path);
	return NULL;
}

int pages_decode(void *state, const struct stream_part *p, struct event_sink *out)
{
	(void)state;
	(void)p;
	(void)out;
	return -1;
}
