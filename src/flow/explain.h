/* A story that is being told: shared by what was (explain.c) and what to look at next (explain_next.c).  Private to
 * flow/. */
#ifndef STEALSCOPE_FLOW_EXPLAIN_H
#define STEALSCOPE_FLOW_EXPLAIN_H

#include <stdio.h>

#include "flow/flow_private.h"

#define NAME_TEXT 640

struct story {
	const struct topo *topo;
	struct subject subject;
	uint32_t machine;            /* of the subject */
	char name[NAME_TEXT];
	const struct flow *f;
	struct demand demand;        /* of the flow's window */
	struct flow_entry *culprit;  /* of what it lost: most first */
	size_t culprits;
	int64_t unknown;             /* ns */
	FILE *to;
};

/* What holds it back although nobody else needs its CPU; NULL: no limit. */
const char *advice_limit(const struct story *s, const struct flow_entry *e);
/* Was its CPU idle for so long that this is no wakeup? */
bool advice_stayed_idle(const struct flow_entry *e);
/* Tells where to look next. */
void story_advise(struct story *s);

#endif
