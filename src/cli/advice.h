/* Option --advise: appends the best single change (stealscope whatif) to an answer. */
#pragma once

#include "cli/query_context.h"

#define ADVISE_OPTION(dest) \
	{ "advise", 0, OPT_FLAG, NULL, "add the change that would help most (simulated)", (dest), NULL }

/* Prints the advice for the VM of the target (NULL: the VM that lost most time). Prints nothing if no VM lost time. */
int advice_print(struct query_context *s, const struct target *target, struct error *err);
