/* Threads that provably sleep, or wait, through a loss of events, found by the prescan.
 *
 * During a loss on one CPU, a thread that sleeps on another CPU may be woken to run on the lossy CPU unrecorded, and
 * sleep again. The next recorded wakeup of the thread decides: sched_waking contains the CPU on which the thread
 * blocked. If no events of that CPU were lost since, and they show that the thread blocked there, or do not name it at
 * all, it slept all the time. Only sleeps that overlap a loss are stored.
 *
 * A hypervisor with run states may record, when a vCPU starts to run, the time since it left its last pCPU
 * (vcpu_state.idle_ns). If that was before the first loss, the vCPU has not run in between: its recorded states hold during
 * all losses. Otherwise it ran, or may have run, on any pCPU with a loss: its state is unknown from the first loss on.
 *
 * Cost: O(1) per event. Memory: 25 to 50 bytes per TID during the prescan, 40 per stored sleep, 8 per loss. */
#pragma once

#include "base/base.h"
#include "trace/trace.h"

struct sleep {
	int64_t from, until; /* asleep since `from` (INT64_MIN: the beginning), woken at `until`; ns, the machine's clock */
	int32_t tid, cpu;    /* cpu: CPU on which it sleeps */
	uint32_t comm;       /* string id; 0: unknown */
	int8_t sched;        /* enum thread_state: BLOCKED, or of a vCPU PREEMPTED (waits); UNKNOWN: may have run unrecorded */
};

struct proved_sleeps {
	struct sleep *sleep; /* sorted by TID and time, after proved_sleeps_finish() */
	size_t sleeps, sleep_cap;
	struct map last;     /* TID -> index in state */
	struct sleep_state { int64_t since; int32_t cpu; } *state;  /* the thread's last event: blocked on that CPU; -1: was
	                                                             * woken */
	size_t states, state_cap;
	int64_t *lost_end;   /* by CPU: end of its last loss, ns; INT64_MIN: none */
	uint32_t cpus;
	int64_t any_lost_end;
	int64_t *loss;       /* starts of all losses, ns, sorted */
	size_t losses, loss_cap;
	uint32_t decision_max;  /* longest time from a decision to switch to its record so far, ns */
	struct map off;      /* TID of a vCPU -> index in vcpu */
	struct vcpu_off_time {
		int64_t since, woken;  /* left its pCPU; was woken (INT64_MIN: no), ns */
		size_t losses;         /* loss count before `since` */
		int32_t cpu;
		int8_t state;          /* enum vcpu_run_state since then; -1: runs, or unknown */
		bool in_loss;          /* a loss of any pCPU was in progress then */
	} *vcpu;
	size_t vcpus, vcpu_cap;
};

#define PROVED_SLEEPS_INIT { .any_lost_end = INT64_MIN }

void proved_sleeps_feed(struct proved_sleeps *a, const struct event *ev);
void proved_sleeps_finish(struct proved_sleeps *a);
void proved_sleeps_release(struct proved_sleeps *a);
/* Returns the proved sleep of the thread at t; NULL: none. */
const struct sleep *proved_sleep_at(const struct proved_sleeps *a, int64_t tid, int64_t t);
