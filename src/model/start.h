/* What was already true when a machine's trace began.
 *
 * A trace tells of changes; the first event that names a thread also tells what it was before: a thread that is
 * switched out ran, one that is woken slept, one that is switched in had waited.  Looking ahead finds that out, so
 * that the history can say it from the first moment on.  It looks at no more than START_EVENTS events and stops
 * where events were lost, because from there on a first mention proves nothing about the beginning.
 * Memory: the TIDs seen in that many events, 17 to 34 bytes each, and the threads that live at the beginning. */
#ifndef STEALSCOPE_MODEL_START_H
#define STEALSCOPE_MODEL_START_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "model/vcpu.h"
#include "trace/trace.h"

#define START_EVENTS 1000000

struct start_thread {
	int32_t tid, pid, cpu;  /* pid, cpu: -1 unknown */
	uint32_t comm;          /* string id, 0 unknown */
	int8_t sched;           /* enum thread_state */
	bool pending;           /* it was moved between CPUs; what it was before, the next mention tells */
	int64_t ns;             /* pid namespace, 0 unknown */
};

struct start_cpu {
	bool seen;              /* it has events */
	bool mode_known;
	int32_t tid, pid;       /* current, -1 unknown, 0 idle */
	uint32_t comm;
	enum vcpu_mode mode;    /* of that thread, should it be a vCPU */
};

struct start {
	struct start_thread *thread;
	size_t threads, thread_cap;
	struct start_cpu *cpu;
	uint32_t cpus;
	uint64_t wakeups, wakings;
	struct map seen;        /* TID -> index + 1 in thread, 0 for those that came later */
	bool over;              /* events were lost: nothing after this counts */
};

#define START_INIT { .thread = NULL }

void start_release(struct start *s);
void start_feed(struct start *s, const struct event *ev);
/* Reads the beginning of a trace. */
int start_look(struct start *s, const struct trace *trace, struct error *err);

#endif
