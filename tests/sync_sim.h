/* A small simulator of VMs on a host, for the tests of sync/: vm entries and exits, guest events inside them, two
 * clocks, with the truth at hand. */
#ifndef STEALSCOPE_TESTS_SYNC_SIM_H
#define STEALSCOPE_TESTS_SYNC_SIM_H

#include "sync/sync.h"

struct sim_clock { int64_t host0, guest0; double ppm; };  /* host = host0 + (guest - guest0) * (1 + ppm / 1e6) */

struct sim_vm {
	int pid;                 /* TIDs of the vCPUs are pid + 1, pid + 2, ... */
	const char *process;     /* name of the process */
	unsigned vcpus;
	bool named;              /* threads are called "CPU n/KVM", else as the process */
	double busy;             /* 0 = idle .. 1 = always wants to run */
	double chatter;          /* events per ms of guest mode, beside those at its edges */
	double preempted;        /* chance that an exit ends in a preemption of some ms */
	int64_t gap_ns;          /* a short exit, at least */
	int64_t latency_ns;      /* from an entry to the first event, at least */
	int64_t from, to;        /* host ns: when the guest's trace runs */
	struct sim_clock clock;
	int64_t pause_at, pause_ns; /* at host time pause_at the guest and its clock stand still for pause_ns; 0 = never */
	int64_t bend_at;         /* host time from which on it drifts by bend_ppm more; 0 = never */
	double bend_ppm;
	double wander_ns, wander_s; /* the guest's clock swings by so much about its line, in so many seconds; 0 = not */
	double beacon_hz;        /* synchronization events, 0 = none */
	int64_t period_ns;       /* it does the same again and again, that often; 0 = it does what it likes */
	unsigned pattern;        /* ... so many stays in guest mode per period */
	int64_t jitter_ns;       /* ... each of them late by up to this */
	double stray_hz;         /* ... and others in between, at random */
};

struct sim_events {
	struct event *ev;
	size_t len, cap;
};

struct sync_sim {
	uint64_t seed;
	int64_t begin, end;      /* host ns */
	struct sim_events host;
	const char *string[64];  /* string ids are the indices */
	size_t strings;
};

uint64_t sim_random(uint64_t *seed);
double sim_uniform(uint64_t *seed);                    /* 0..1 */
int64_t sim_below(uint64_t *seed, int64_t n);
double sim_exp(uint64_t *seed, double mean);

void sim_begin(struct sync_sim *s, uint64_t seed, int64_t begin, int64_t end);
/* Runs the VM: adds to the host's events, and gives the guest's. */
void sim_run_vm(struct sync_sim *s, const struct sim_vm *vm, struct sim_events *guest);
int64_t sim_guest_time(const struct sim_vm *vm, int64_t host);  /* the guest's clock at a moment of the host's */
int64_t sim_host_time(const struct sim_vm *vm, int64_t guest);  /* and back (without a pause) */
/* At so many places from the begin of its trace to the end: is the clock out of the band that it states, somewhere where it
 * says that it is known?  Is it known at most of them?  Both: it is, and right. */
#define SIM_PLACES 11
bool sim_is_outside(const struct sim_vm *vm, const struct clock_map *clock);
bool sim_is_known(const struct sim_vm *vm, const struct clock_map *clock);
bool sim_within_band(const struct sim_vm *vm, const struct clock_map *clock);
/* Is that moment so near to an end of the guest's trace that what is left of it may be too little to tell of its clock, and
 * does the clock say so? */
bool sim_untold(const struct sim_vm *vm, const struct clock_map *clock, int64_t host);
int64_t sim_string(struct sync_sim *s, const char *text);
/* Makes traces; events are sorted by time. */
struct trace *sim_host_trace(struct sync_sim *s);
struct trace *sim_guest_trace(const char *machine, struct sim_events *e);
void sim_end(struct sync_sim *s);

#endif
