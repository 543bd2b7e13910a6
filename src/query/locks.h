/* The search for waits for locks, shared by locks.c and spin_waits.c.  Private to query/. */
#ifndef STEALSCOPE_QUERY_LOCKS_H
#define STEALSCOPE_QUERY_LOCKS_H

#include "base/strtab.h"
#include "query/query_internal.h"
#include "query/stepped_query.h"

/* What a history has of how the threads of a machine, and its vCPUs, spin. */
struct spin_habits {
	bool learnt;
	int32_t *tid;             /* threads for which a vCPU was left because they spin */
	size_t tids, cap;
	int64_t *longest;         /* of each of its vCPUs: ns that it may execute between two such exits, if it spins */
};

struct lock_search {
	struct inquiry q;
	struct lock_list list;
	size_t cap;
	struct strtab names;
	struct subject whose;
	bool all;         /* whose is not set */
	uint32_t at;      /* the row at work: a thread of topo, or behind these a CPU */
	bool open;        /* the cursor is in it */
	struct history_cursor cursor;
	uint64_t asleep, wants;      /* bits of the file's thread states that mean BLOCKED, and PREEMPTED */
	uint64_t outside, executing; /* of its vCPU states: VMM, and RUNNING */
	struct spin_habits *habits;  /* per machine */
	struct last_spin {           /* of the CPU at work: the last wait of the list, which may go on */
		bool is, joined;
		int32_t suspect;         /* the vCPU that is suspected to have whoever has the lock */
	} last;
	struct error *err;
};

extern const struct party locks_nobody;

int locks_party(struct lock_search *c, uint32_t machine, int32_t tid, int64_t t, struct party *out);
struct party locks_named(struct lock_search *c, const struct party *p, char **name);

/* A wait of the subject, on vCPU `own`, that was spent spinning: who is suspected to have had the lock.  *vcpu: on which
 * of the machine's, or -1 if that is not clear. */
int spin_suspects(struct lock_search *c, const struct subject *s, int own, struct lock_wait *wait, int32_t *vcpu);

/* vCPU v was left because of PAUSE in `pause`: adds the waits of that within the window.  spin_settle() ends a vCPU. */
int spin_of_vcpu(struct lock_search *c, uint32_t v, const struct interval *pause);
int spin_settle(struct lock_search *c, uint32_t v);
bool spin_is_pause(const char *exit);

#endif
