/* What some record tells: whose process a thread is (those that it wrote itself, of its birth, and of a state dump), and that
 * a CPU did anything. */
#ifndef STEALSCOPE_TESTS_TRUTH_RECORDS_H
#define STEALSCOPE_TESTS_TRUTH_RECORDS_H

#include <stdbool.h>

#include "base/error.h"
#include "base/map.h"
#include "trace/trace.h"
#include "truth_file.h"

struct truth_records {
	struct map thread[16];  /* of each machine: the TIDs */
	struct map cpu[16];
	char machine[16][32];
	unsigned machines;
};

int records_add(struct truth_records *t, const struct trace *trace, struct error *err);
bool records_tell_pid(const struct truth_records *t, const char *path);  /* of the thread whose attribute that is */
/* Several threads of a guest could run on a CPU of which there is no record: which of them does, nothing tells.  Of the CPU
 * or thread whose attribute that is. */
bool records_leave_open(const struct truth_records *t, const struct truth_file *truth, const char *path, int64_t when);
void records_release(struct truth_records *t);

#endif
