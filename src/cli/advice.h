/* What would help most, behind an answer. */
#ifndef STEALSCOPE_CLI_ADVICE_H
#define STEALSCOPE_CLI_ADVICE_H

#include "cli/query_context.h"

#define ADVISE_OPTION(dest) \
	{ "advise", 0, OPT_FLAG, NULL, "end with the change that would help most, by replay", (dest), NULL }

/* Prints it, of the VM that it is or is of; NULL: of the one that lost most. */
int advice_print(const struct scene *s, const struct subject *who, struct error *err);

#endif
