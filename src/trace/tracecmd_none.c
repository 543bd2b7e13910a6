/* Built instead of the reader of trace-cmd files where libtracecmd is not: trace_discover() then refuses them. */
#include "trace/tracecmd.h"

bool tracecmd_is_built(void)
{
	return false;
}

int tracecmd_decode(struct tracecmd_file *file, size_t n, const struct tracecmd_work *work, struct error *err)
{
	(void)file;
	(void)work;
	return n ? error_set(err, STATUS_INPUT, "build stealscope with libtracecmd", "trace-cmd files cannot be read") : 0;
}
