/* Random histories of a host, two VMs and a container, and a brute-force resolver: one array per attribute, one value
 * per ns. */
#pragma once

#include "query_world.h"

#define SPAN 48
#define NUL HISTORY_NULL

enum { HOST, VM_A, VM_B, CONTAINER, MACHINES };
enum { THREADS = 9, VCPUS = 3, PCPUS = 2 };
extern const char *const machine_name[MACHINES];

/* Host threads: 1, 2, 3 (3 belongs to the container); 10 and 11 execute the vCPUs of A, 20 that of B. Others are guest
 * threads. */
extern const struct thread_ref { int machine, tid, vm, vcpu; } threads[THREADS];
extern const struct vcpu { int vm, number, vcpu_tid; } vcpus[VCPUS];

struct brute_row { int64_t v[SPAN]; };

extern struct brute_model {
	struct brute_row status[THREADS], cpu[THREADS], waker[THREADS], woken_in[THREADS], name[THREADS];
	struct brute_row vstatus[VCPUS], vcurrent[VCPUS], virq[VCPUS], vpcpu[VCPUS];
	struct brute_row pcurrent[PCPUS], pirq[PCPUS];
	bool b_traced, folded;
} model;

struct brute_answer { int kind, machine, tid, pcpu; const char *name; };

void seed_set(uint64_t value);
uint32_t rnd(uint32_t n);  /* 0..n - 1 */
void make_model(void);     /* fills the model at random, mostly with contradictions: threads that wake themselves, CPUs
                            * without a thread */
void make_history(struct world *w);

int thread_index(int machine, int tid);  /* returns the index in `threads`; -1: none */
int vcpu_index(int vm, int64_t number);
struct brute_answer of_thread(int i, int t);  /* returns the actor that thread i waits for at t */
struct brute_answer vcpu_out(int v, int t);  /* returns the actor that keeps vCPU v, which is off the CPU, from running
                                              * at t */
