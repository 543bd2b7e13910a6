/* Built instead of the reader of trace-cmd files where libtracecmd is not: trace_discover() then refuses them. */
#include "trace/tracecmd.h"

bool tracecmd_is_built(void)
{
	return false;
}

const struct told_kind tracecmd_kind = { .mend = "build stealscope with libtracecmd" };
