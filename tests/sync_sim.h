/* A small simulator of VMs on a host for the tests of sync/: VM entries and exits, guest events between them, and two
 * clocks with a known relation. */
#pragma once

#include "sync/sync.h"

struct sim_clock { int64_t host0, guest0; double ppm; };  /* host = host0 + (guest - guest0) * (1 + ppm / 1e6) */

struct sim_vm {
	int pid;                 /* TIDs of the vCPUs are pid + 1, pid + 2, ... */
	const char *process;     /* name of the process */
	unsigned vcpus;
	bool named;              /* threads are called "CPU n/KVM"; false: like the process */
	double busy;             /* 0: idle .. 1: always wants to run */
	double chatter;          /* events per ms of guest mode, in addition to those at the edges of windows */
	double preempted;        /* probability that the thread is preempted for some ms after a VM exit */
	int64_t gap_ns;          /* shortest gap between windows */
	int64_t latency_ns;      /* shortest delay from a VM entry to the first event */
	int64_t from, to;        /* start and end of the guest's trace, host ns */
	struct sim_clock clock;
	int64_t pause_at, pause_ns;  /* host time at which the guest and its clock stop, and for how long, ns; 0: never */
	int64_t bend_at;             /* host time after which the clock drifts by bend_ppm more; 0: never */
	double bend_ppm;
	double wander_ns, wander_s;  /* amplitude (ns) and period (s) by which the guest's clock swings around its line; 0:
	                              * no swing */
	double beacon_hz;            /* sync events; 0: none */
	int64_t period_ns;           /* the guest repeats its activity with this period; 0: random activity */
	unsigned pattern;            /* windows per period */
	int64_t jitter_ns;           /* maximum random delay of each window, ns */
	double stray_hz;             /* random windows between the periodic ones, Hz */
};

struct sim_events {
	struct event *ev;
	size_t len, cap;
};

struct sync_sim {
	uint64_t seed;
	int64_t begin, end;      /* host ns */
	struct sim_events host;
	const char *string[64];  /* indexed by string id */
	size_t strings;
};

uint64_t sim_random(uint64_t *seed);
double sim_uniform(uint64_t *seed);                    /* 0..1 */
int64_t sim_below(uint64_t *seed, int64_t n);
double sim_exp(uint64_t *seed, double mean);

void sim_begin(struct sync_sim *s, uint64_t seed, int64_t begin, int64_t end);
/* Runs the VM: appends to the host's events and returns the guest's. */
void sim_run_vm(struct sync_sim *s, const struct sim_vm *vm, struct sim_events *guest);
int64_t sim_guest_time(const struct sim_vm *vm, int64_t host);  /* Returns the guest time at a host time. */
int64_t sim_host_time(const struct sim_vm *vm, int64_t guest);  /* Returns the host time at a guest time, without pauses. */
/* Check an estimated clock at SIM_SAMPLES equally spaced times. sim_is_outside(): the true clock is outside the error
 * bounds somewhere. sim_is_known(): bounds exist at most of these times. sim_within_bounds(): bounds exist at most of
 * these times and are right. */
#define SIM_SAMPLES 11
bool sim_is_outside(const struct sim_vm *vm, const struct clock_map *clock);
bool sim_is_known(const struct sim_vm *vm, const struct clock_map *clock);
bool sim_within_bounds(const struct sim_vm *vm, const struct clock_map *clock);
/* Returns true if the time is so close to an end of the guest's trace that too few events remain, and the clock has
 * no error bounds there. */
bool sim_is_unverified_end(const struct sim_vm *vm, const struct clock_map *clock, int64_t host);
int64_t sim_string(struct sync_sim *s, const char *text);
/* Make traces from the simulated events, which are sorted by time. */
struct trace *sim_host_trace(struct sync_sim *s);
struct trace *sim_guest_trace(const char *machine, struct sim_events *e);
void sim_end(struct sync_sim *s);
