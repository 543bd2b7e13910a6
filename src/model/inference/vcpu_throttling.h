/* What keeps a vCPU from its CPU although nobody else needs that: a quota, a pause of the machine, memory that has to be
 * fetched.
 *
 * Quota: the vCPU's thread can run, and yet the scheduler leaves its CPU to nobody, or again and again to a task of far
 * less weight. It does that only to a thread that it may not choose. That it had a choice must be seen: a CPU that was
 * idle already, when the thread was woken, may itself be held up by whatever runs this host, unless interrupts came in
 * meanwhile, behind each of which it looks whom to run; a thread that was moved there, or of which only sched_waking
 * tells, may not be there yet; and a task without an interrupt, or in the kernel, is not asked to leave. Nothing that
 * happens while the thread is out can begin a quota, since only running uses one up; so it holds from the moment at
 * which the thread came to be out to the last one at which its CPU was left to such, and did nothing that may have been
 * the end of it: interrupts that came right behind each other until somebody went on; where another vCPU of its machine,
 * which may have the same quota, came to run there meanwhile, from when that left. Where it is known by then which timer
 * gives the quota anew (cfs_quota_period.h), it holds until that expires, whoever has the CPU; and a thread that has
 * waited for its idle CPU, if but for IDLE_LEAST, and gets it behind that expiry, or that of a sibling's timer, was kept
 * from it by a quota. Unsure: a quota was proved, no timer tells when it came back, and others had the CPU from then on;
 * or one was proved of the vCPU's machine within PERIOD_MOST, its thread waits, and one of no more weight by its nice
 * level keeps the CPU for LEFT_LEAST: that may have a heavier cgroup, or the other one may not run; or it does so again
 * and again until a timer has expired that may give a quota anew (cfs_quota_period.h), all those times, unless something
 * was told of it in between; or it is far lighter, and no interrupts are recorded that could prove it. Nobody is named
 * then. Pause: the monitor has called all threads of the machine's vCPUs back out of the guest, and they sleep there,
 * for PAUSE_LEAST together. Fault: it has left guest mode for memory that was not there, and before it went back to the
 * guest or to its monitor its thread slept uninterruptibly: that is KVM fetching the page. Where returns to the monitor
 * are not recorded (or none was, up to then), such a sleep may be the monitor's own, and nothing is said.
 *
 * All are known when they are over, and are told then. O(1) per event; when a vCPU comes back, LEVELS, or the number of
 * its machine's vCPUs. Memory: 1.4 KiB per CPU of a host, and cfs_quota_period.h. Nothing is said of vCPUs of nested
 * machines' quotas: that a CPU which is a vCPU itself was left to nobody proves nothing. */
#ifndef STEALSCOPE_MODEL_INFERENCE_VCPU_THROTTLING_H
#define STEALSCOPE_MODEL_INFERENCE_VCPU_THROTTLING_H

#include <stdbool.h>
#include <stdint.h>

#include "model/inference/cfs_quota_period.h"

#define NICE_RT (-21)
#define NICE_UNKNOWN INT8_MAX

#define GETS_GOING 20000  /* ns: an idle CPU that shall run somebody does something sooner than that, and again */

/* Whom a CPU is with: nice level + 20, or nobody; all others, and those of whom nothing is known, need no level. */
enum { LEVEL_IDLE = 40, LEVELS, LEVEL_NONE = -1 };

/* How often a task must have been interrupted, at the least, while it went on: whoever shall leave does at the first of the
 * scheduler's ticks, or at the next, if that came early. */
enum { LOOKS = 3 };

/* ns host time; to: from then on a CPU that was left to nobody may have been on its way to who came next, at `over`, with
 * whom it was left to light tasks it is the same; looked: from here to there it was interrupted LOOKS times. */
struct quota_span { int64_t from, to, over, looked; };

struct left {
	int8_t level;           /* now */
	int64_t since;
	int64_t look[LOOKS];    /* its last interrupts since then, the earliest first; INT64_MIN: there were not so many */
	int64_t stirred;        /* since then, at the latest, it has done one thing behind the other, */
	int64_t last_event;     /* the last one at this time, */
	int64_t silence;        /* ns behind the one before */
	uint64_t levels;        /* a bit for each that `last` tells of, which are few */
	/* When it was left to each level most recently, and when most recently for long enough to prove something. */
	struct quota_span last[LEVELS];
	struct quota_span proof[LEVELS];
	/* The last ones of threads; who comes back within LOOK_APART was chosen again, and goes on with it. */
	struct left_turn { int64_t tid, since, until, look[LOOKS]; int8_t level; } turn, long_turn;
};

struct limits {
	int64_t out;            /* its thread waits for a CPU since then, INT64_MAX: it does not */
	int64_t in_since;       /* it has a CPU since then */
	int64_t came_at, left_at;  /* when it had one last, */
	int32_t left_cpu;       /* this one, -1 never */
	int64_t held;           /* its thread is out of the guest for its monitor since then, INT64_MAX: it is not */
	bool arrives;           /* at `out` it may have been on its way, which takes time also when nobody is there */
	bool asleep;            /* held, and has slept there */
	bool paused;            /* its machine was, until it is entered */
	bool entered;           /* ever */
	bool interrupted;       /* left by an interrupt, nothing that the guest did */
	bool memory;            /* left for memory that was not there, and not called back to its monitor since */
	bool deep;              /* its thread sleeps so that no signal wakes it */
	int64_t fault;          /* it sleeps so for memory since then, INT64_MAX: it does not */
	struct refill refill;   /* what gives it its quota anew */
	struct refill contest;  /* what may do so */
	struct { int64_t from, to; } doubted[REFILLS_CONTESTED];  /* waits that it learned from, told once it has learned; */
	uint8_t doubts;         /* of these so many */
	int64_t told;           /* nothing before that can be told any more */
	int64_t limited;        /* it was out by a quota, or may have been (`contest`), last at this time; INT64_MIN never */
	uint8_t place;          /* enum vcpu_place */
	uint32_t attr;          /* CPU_OUT_BY, or HISTORY_NONE */
};

#define LIMITS_INIT { .out = INT64_MAX, .left_cpu = -1, .held = INT64_MAX, .fault = INT64_MAX, \
	.limited = INT64_MIN, .told = INT64_MIN, .attr = HISTORY_NONE }

#endif
