/* Built instead of tracecmd_child.c where libtracecmd is not: its files are refused. */
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
	error_set(err, STATUS_SYSTEM, "build stealscope with libtracecmd", "%s: a trace-cmd file", s->place[0]->path);
	return NULL;
}

int tracecmd_decode(void *entered, const struct stretch *p, struct outlet *out)
{
	(void)entered;
	(void)p;
	(void)out;
	return -1;
}
