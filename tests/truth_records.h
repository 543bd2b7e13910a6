/* Facts contained in the records: whether the PID of a thread is recorded (in its own records, its fork, a state dump),
 * and whether a CPU recorded anything. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/map.h"
#include "trace/trace.h"
#include "truth_file.h"

struct truth_records {
	struct map thread[16];  /* TIDs of each machine */
	struct map cpu[16];
	char machine[16][32];
	unsigned machines;
};

int records_add(struct truth_records *t, const struct trace *trace, struct error *err);
/* Returns true if a record contains the PID of the attribute's thread. */
bool records_have_pid(const struct truth_records *t, const char *path);
/* Returns true if several threads of a guest could run on a CPU without records, so that its current thread is unknown.
 * path: attribute of that CPU, or of a thread. */
bool records_ambiguous(const struct truth_records *t, const struct truth_file *truth, const char *path, int64_t when);
void records_release(struct truth_records *t);
