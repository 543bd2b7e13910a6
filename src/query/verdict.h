/* The verdict on a window: one sentence on what delayed the machines most. A part of query/query.h, which includes it. */
#ifndef STEALSCOPE_QUERY_VERDICT_H
#define STEALSCOPE_QUERY_VERDICT_H

#include "query/query.h"

#define VERDICT_TEXT 1024

/* X(code, name in json) */
#define VERDICT_KINDS(X) \
	X(VERDICT_HEALTHY, "healthy")              /* no target lost more than VERDICT_LIMIT of its time */ \
	X(VERDICT_CULPRIT, "culprit")              /* a thread, a VM or an interrupt had the CPU */ \
	X(VERDICT_CHAIN, "chain")                  /* the culprit delayed a thread for which the target waited */ \
	X(VERDICT_OVERCOMMITTED, "overcommitted")  /* many VMs compete for few CPUs, no single one is the culprit */ \
	X(VERDICT_LIMIT_SET, "limit")              /* a quota, pause, migration or page fault; culprit_text: which */ \
	X(VERDICT_OWN_THREADS, "own-threads")      /* threads of the same machine compete for its CPUs */ \
	X(VERDICT_VM_EXITS, "vm-exits")            /* the hypervisor worked on behalf of the target */ \
	X(VERDICT_LATENCY, "wakeup-latency")       /* the CPU was idle, or the vCPU's thread slept */ \
	X(VERDICT_UNKNOWN, "unknown")              /* events are missing, or no source shows stolen time */
#define VERDICT_CODE(code, name) code,
enum verdict_kind { VERDICT_KINDS(VERDICT_CODE) VERDICT_KIND_COUNT };
#undef VERDICT_CODE
extern const char *const verdict_kind_name[VERDICT_KIND_COUNT];

#define VERDICT_LIMIT 0.05  /* a target that loses more than this share of its time is not healthy */

struct verdict {
	enum verdict_kind kind;
	bool healthy;
	bool has_target;            /* false: no machine lost time */
	struct target target;       /* the victim: a VM, a vCPU or a thread */
	struct actor culprit;       /* machine -1: none; tid -1: several threads, or the machine; `name` is not set */
	char culprit_text[ACTOR_TEXT];  /* culprit, or limit; "" if there is none */
	int64_t ns;                 /* ns that the culprit took */
	double share;               /* ns / lifetime of the target in the window (of a VM: the sum over its vCPUs) */
	size_t main_bytes;          /* length of the first clause of `text`: where to cut for a narrow screen */
	char text[VERDICT_TEXT];    /* one sentence without the final period; escaped */
};

/* Starts the query for the verdict on [from, to]. Its cost: the demands of all rows, the gaps of the most delayed VM, and
 * the critical paths of a few delayed threads. */
struct query *verdict_open(const struct catalog *catalog, int64_t from, int64_t to);
void verdict_take(struct query *q, struct verdict *out);
/* Runs the query until the answer is ready. */
int verdict_of(const struct catalog *catalog, int64_t from, int64_t to, struct verdict *out, struct error *err);
/* Does the same for a history without an open catalog. */
int verdict_find(const struct history *h, int64_t begin, int64_t end, struct verdict *v, struct error *err);

#endif
