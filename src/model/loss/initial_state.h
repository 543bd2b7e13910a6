/* What is true before anything tells it: when a machine's trace begins, and after each loss of events.
 *
 * A trace tells of changes; the first event that names a thread also tells what it was before: a thread that is
 * switched out ran, one that is woken slept, one that is switched in had waited.  Looking ahead finds that out, so
 * that the history can say it from the first moment on.  A loss begins a new epoch: what was found so far ends there,
 * and first mentions count anew.  So does the end of all losses.  It looks at START_EVENTS events and no more.
 * Memory: the TIDs seen in that many events, 40 to 80 bytes each while looking, and per epoch the threads mentioned in
 * it. */
#ifndef STEALSCOPE_MODEL_LOSS_INITIAL_STATE_H
#define STEALSCOPE_MODEL_LOSS_INITIAL_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "model/loss/sleep_across_loss.h"
#include "model/inference/idle_inference.h"
#include "model/loss/unseen_handlers.h"
#include "model/state/vcpu.h"
#include "trace/trace.h"

#define START_EVENTS 1000000

struct start_thread {
	int32_t tid, pid, cpu;  /* pid, cpu: -1 unknown */
	uint32_t comm;          /* string id, 0 unknown */
	int8_t sched;           /* enum thread_state */
	bool dumped;            /* a dump is the first that mentions it */
	bool pending;           /* moved between CPUs, or dumped as runnable where it may be current: the next mention tells */
	bool before;            /* it was mentioned in an epoch before */
	bool switched_in;       /* that is all that is known: it was queued, or slept or was born where nobody records that */
	bool renamed;           /* what it is called later is not what it was called */
	uint32_t pid_ns, cgroup_ns;  /* 0 unknown */
};

struct start_cpu {
	bool seen;              /* it has events before any of its were lost */
	bool lost;              /* some of its events */
	bool silent;            /* it has no event at all */
	bool nowhere;           /* as struct trace_cpu has it */
	bool mode_known;
	int32_t tid, pid;       /* current, -1 unknown, 0 idle */
	uint32_t comm;
	uint32_t could_run;     /* dumped threads that could run here, if it is silent */
	enum vcpu_mode mode;    /* of that thread, should it be a vCPU */
	int32_t told;           /* whose process its events told last, -1 nobody's, */
	size_t told_in;         /* and in which epoch */
	size_t in;              /* that of its last event */
};

struct start {
	struct start_thread *thread;  /* those of epoch e: thread[epoch[e]] up to those of the next */
	size_t threads, thread_cap;
	size_t *epoch;
	size_t epochs, epoch_cap;     /* epoch 0, the beginning, is there from the first event on */
	struct start_cpu *cpu;        /* at the beginning */
	uint32_t cpus;
	int64_t lost_until;           /* ns, clock of the machine: when the losses so far are over */
	bool lost_pending;            /* they are not yet */
	uint64_t switches, wakeups, wakings, moves, forks;
	unsigned asked;         /* as trace_info has it */
	struct asleep asleep;
	struct handlers handlers;
	struct halts halts;
	struct map seen;        /* TID -> epoch << 40 | index + 1 in thread, or 0 for those that came into being in it */
};

#define START_INIT { .thread = NULL, .asleep = ASLEEP_INIT, .handlers = HANDLERS_INIT, .halts = HALTS_INIT }

void start_release(struct start *s);
void start_feed(struct start *s, const struct event *ev);
void start_silent(struct start *s, uint32_t cpu);  /* there is no event of this CPU */
void start_finish(struct start *s);  /* all events were fed */
/* What the mention of a thread tells of it: enum thread_state. */
int8_t start_sched(const struct start *s, const struct start_thread *th);
/* Is who is queued there out of sight? */
bool start_is_nowhere(const struct start *s, int64_t cpu);
/* What an EV_PROCESS says of a thread that lives: enum thread_state. */
int8_t start_dumped(const struct event *ev);
/* The threads of an epoch: thread[*from .. *to - 1]. */
void start_epoch(const struct start *s, size_t epoch, size_t *from, size_t *to);
/* Reads the beginning of a trace. */
int start_look(struct start *s, const struct trace *trace, const struct clock_map *clock, struct error *err);

#endif
