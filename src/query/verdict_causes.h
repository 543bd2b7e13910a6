/* Causes of a verdict. Private to query/. */
#ifndef STEALSCOPE_QUERY_VERDICT_CAUSES_H
#define STEALSCOPE_QUERY_VERDICT_CAUSES_H

#include "query/query_internal.h"

/* What kept a victim from running. Threads of one machine with the same name are one cause, the threads of another VM
 * are one cause. */
enum cause_kind { CAUSE_THREAD, CAUSE_VM, CAUSE_IRQ, CAUSE_OWN, CAUSE_LIMIT, CAUSE_IDLE_CPU, CAUSE_SLEEP, CAUSE_UNKNOWN };

struct cause {
	enum cause_kind kind;
	int32_t machine, tid;    /* of CAUSE_THREAD: the thread that took most; -1: none */
	unsigned threads;        /* number of threads, or of causes merged into this one */
	const char *name;        /* raw name of thread, handler or limit; borrowed; NULL: all threads of the machine */
	int64_t ns;              /* ns that it took */
};

struct cause_list {
	struct cause *cause;     /* largest first, after causes_sort() */
	size_t len, cap;
	int64_t ns;              /* sum, ns */
};

/* Adds the time that an actor took from a victim (a machine); name: raw name of the actor, must outlive the list. */
void causes_add(struct cause_list *l, const struct catalog *catalog, uint32_t victim, const struct actor *actor,
                const char *name, int64_t ns);
/* Joins threads with equal names; joins all threads of the host to one cause without a name if no name took most of their
 * time; sorts. */
void causes_sort(struct cause_list *l);
/* Returns the number of other VMs that took most of the time together, if none of them took most of that; otherwise 0.
 * *ns: their time. */
unsigned causes_spread(const struct cause_list *l, int64_t *ns);
void causes_release(struct cause_list *l);

/* A delay through another thread: the target waited for the helper, which a culprit kept off its CPU. */
struct delay_chain {
	struct target target;
	struct actor helper, culprit;   /* their `name` is not set */
	int64_t ns;                     /* ns on the critical path of the target; 0: there is no such delay */
	bool inferred;                  /* most of the waits were inferred from the nearest events */
};
/* Finds the culprit that delayed most of the helpers on a path. */
void chain_find(const struct catalog *catalog, const struct target *target, const struct path *p,
                struct delay_chain *out);

/* All that a verdict is decided on. */
struct findings {
	const struct catalog *catalog;
	int64_t from, to;
	bool has_victim;         /* a VM with a known host lost time */
	struct target victim;    /* the VM, or its vCPU, that lost most to its host */
	struct demand demand;    /* of the victim */
	bool over_limit;         /* the victim lost more than VERDICT_LIMIT to its host */
	double worst_share;      /* largest share of its time that a vCPU lost to its host */
	struct cause_list causes;       /* of the victim's gaps */
	unsigned vms, vcpus, pcpus;     /* VMs with a known host, their vCPUs; CPUs of the host */
	struct target vmm_target;       /* VM with the largest share of VMM time */
	struct demand vmm;
	struct delay_chain chain;       /* the largest one */
	int64_t chain_alive;            /* lifetime of its target, ns */
	int64_t lock_ns, lock_waits;    /* waits for locks while a culprit kept the holder off its CPU: ns of these, waits */
	struct actor lock_culprit;      /* culprit that took most of them; machine -1: none */
	bool has_thread;                /* a thread lost more than VERDICT_LIMIT of its time */
	struct target thread;           /* the one that lost most */
	struct demand thread_demand;
	struct cause_list thread_causes;
	bool alone;                     /* there are VMs, and none has a host trace */
};

/* Decides on the findings and writes the sentence. */
void verdict_decide(const struct findings *f, struct verdict *out);

#endif
