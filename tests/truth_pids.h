/* Whose process some record tells: those that a thread wrote itself, of its birth, and of a state dump. */
#ifndef STEALSCOPE_TESTS_TRUTH_PIDS_H
#define STEALSCOPE_TESTS_TRUTH_PIDS_H

#include <stdbool.h>

#include "base/error.h"
#include "base/map.h"
#include "trace/trace.h"

struct truth_pids {
	struct map thread[16];  /* of each machine: the TIDs */
	char machine[16][32];
	unsigned machines;
};

int pids_add(struct truth_pids *t, const struct trace *trace, struct error *err);
bool pids_told(const struct truth_pids *t, const char *path);  /* of the thread whose attribute that is */
void pids_release(struct truth_pids *t);

#endif
