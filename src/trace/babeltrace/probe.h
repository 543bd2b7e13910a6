/* Attempts at opening: what libbabeltrace2 makes of a trace, asked in a child process: it may abort, or never answer. */
#ifndef STEALSCOPE_TRACE_BABELTRACE_PROBE_H
#define STEALSCOPE_TRACE_BABELTRACE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/reader.h"

struct attempt {
	bool opens;
	char **port;       /* the names of its ports, when it opens */
	size_t ports, ports_cap;
	struct error err;  /* why not, else; about dir[0] */
};

/* Opens the trace of the folders dir[n], about so many bytes long.  It forks: no thread may be at work. */
void attempt_run(struct attempt *t, struct meaning *meaning, char *const *dir, size_t n, uint64_t bytes);
void attempt_release(struct attempt *t);

#endif
