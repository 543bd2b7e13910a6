/* The lines above a report that say what it rests on: the history, its clocks, what was lost. */
#ifndef STEALSCOPE_CLI_HEADER_H
#define STEALSCOPE_CLI_HEADER_H

#include <stddef.h>

#include "flow/flow.h"

struct header {
	char **line;  /* escaped */
	size_t len, cap;
};

/* For a report about one subject. */
void header_make(struct header *out, const struct topo *topo, const struct subject *s);
void header_release(struct header *h);

#endif
