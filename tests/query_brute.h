/* Random histories of a host, two VMs and a container, and a resolver of them that knows nothing but arrays: one value
 * per attribute and ns. */
#ifndef STEALSCOPE_TESTS_FLOW_BRUTE_H
#define STEALSCOPE_TESTS_FLOW_BRUTE_H

#include "query_world.h"

#define SPAN 48
#define NUL HISTORY_NULL

enum { HOST, VM_A, VM_B, CONTAINER, MACHINES };
enum { THREADS = 9, VCPUS = 3, PCPUS = 2 };
extern const char *const machine_name[MACHINES];

/* Host threads 1..3 (3 is the container's), the vCPUs A/0 = 10, A/1 = 11, B/0 = 20; guest threads. */
extern const struct who { int machine, tid, vm, vcpu; } threads[THREADS];
extern const struct vcpu { int vm, number, host_tid; } vcpus[VCPUS];

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
void make_model(void);     /* mostly nonsense: threads that wait for themselves, CPUs that nobody had */
void make_history(struct world *w);

int thread_index(int machine, int tid);  /* in threads, -1 none */
int vcpu_index(int vm, int64_t number);
struct brute_answer of_thread(int i, int t);  /* what kept thread i at time t */
struct brute_answer vcpu_out(int v, int t);  /* the same of a vCPU that is scheduled out */

#endif
