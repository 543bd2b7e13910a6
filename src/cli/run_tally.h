/* How much of a command's CPU time others took, while it runs (stealscope run). */
#pragma once

#include <sys/types.h>

#include "live/live.h"

#define RUN_CULPRITS 256

/* Sums over the threads of the command and its descendants, ns. */
struct run_tally {
	int64_t began, ended;      /* CLOCK_MONOTONIC */
	int64_t ran;
	int64_t others;            /* runnable while tasks that are no descendants had the CPU */
	int64_t own;               /* the same for descendants, and on the way out of idle */
	int64_t throttled;         /* by a CPU quota */
	int64_t unknown;           /* waited, and it is unknown for whom: part of others */
	double host;               /* share of the machine's busy time that its host took; 0: none, or not known */
	int64_t longest, longest_at;  /* longest wait for others or a quota; at: its end, ns since the epoch */
	char longest_culprit[LIVE_NAME];
	struct run_culprit { char name[LIVE_NAME]; int64_t ns; } culprit[RUN_CULPRITS];  /* of others, most first */
	size_t culprits;
	const char *source;        /* "bpf", "schedstat" */
	double seen;               /* share that was seen; below 1, others is a minimum. schedstat: CPU time of the threads
	                            * with known waits, of the command's CPU time; bpf: of its time except sleep */
	double cost;               /* CPU time of this process as a share of the run */
};

struct run_meter;
/* Begins before the process `command` starts its program. without_bpf: use schedstat. */
struct run_meter *run_meter_open(pid_t command, bool without_bpf, struct error *err);
/* Returns the time until the next call of run_meter_poll(), ns. */
int64_t run_meter_pause(const struct run_meter *m);
void run_meter_poll(struct run_meter *m);
/* Fills *t at the command's end, and frees the meter. */
void run_meter_close(struct run_meter *m, struct run_tally *t);

/* Returns a share of the time that the command wanted to run, 0 to 1. */
double run_share(const struct run_tally *t, int64_t ns);
