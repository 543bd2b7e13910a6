/* Built instead of pages_child.c where libtraceevent is not: recordings are refused. */
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
	error_set(err, STATUS_SYSTEM, "build stealscope with libtracecmd", "%s: a recording", s->place[0]->path);
	return NULL;
}

int pages_decode(void *entered, const struct stretch *p, struct outlet *out)
{
	(void)entered;
	(void)p;
	(void)out;
	return -1;
}
