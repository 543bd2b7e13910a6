/* Findings: ranked sentences on what delayed machines and threads most, each with its evidence. A part of query/query.h,
 * which includes it. The rules are in doc/findings.md. */
#ifndef STEALSCOPE_QUERY_FINDINGS_H
#define STEALSCOPE_QUERY_FINDINGS_H

#include "query/query.h"

#define FINDING_TEXT 1024
#define FINDINGS_MAX 8

/* X(code, name in json) */
#define FINDING_KINDS(X) \
	X(FINDING_HEALTHY, "healthy")              /* no target lost more than FINDING_LIMIT of the time it wanted to run */ \
	X(FINDING_CULPRIT, "culprit")              /* a thread, a VM or an interrupt had the CPU */ \
	X(FINDING_CHAIN, "chain")                  /* the culprit delayed a thread for which the target waited */ \
	X(FINDING_OVERCOMMITTED, "overcommitted")  /* many VMs compete for few CPUs, no single one is the culprit */ \
	X(FINDING_LIMIT_SET, "limit")              /* a quota, pause, migration or page fault: culprit.reason */ \
	X(FINDING_OWN_THREADS, "own-threads")      /* threads of the same machine or process compete for its CPUs */ \
	X(FINDING_VM_EXITS, "vm-exits")            /* the hypervisor worked on behalf of the target */ \
	X(FINDING_LATENCY, "wakeup-latency")       /* the CPU was idle, or the vCPU's thread slept */ \
	X(FINDING_UNKNOWN, "unknown")              /* events are missing, or no source shows stolen time */ \
	X(FINDING_NOTHING, "nothing")              /* the recording does not show who ran: nothing can be said */
#define FINDING_CODE(code, name) code,
enum finding_kind { FINDING_KINDS(FINDING_CODE) FINDING_KIND_COUNT };
#undef FINDING_CODE
extern const char *const finding_kind_name[FINDING_KIND_COUNT];

#define FINDING_LIMIT 0.05  /* a target that loses more than this share of the time it wanted to run is not healthy */

/* The interval that shows a finding best: the longest one in which the culprit kept the target off its CPU. Of a chain
 * the target is the thread that the culprit delayed. */
struct moment {
	struct target target;           /* a vCPU or a thread */
	struct actor culprit;           /* `name` is not set */
	char culprit_text[ACTOR_TEXT];  /* as in the csv of gaps */
	int64_t start, end;             /* ns, closed; end < start: the finding has no moment */
};

struct finding {
	enum finding_kind kind;
	bool has_target;            /* false: no machine lost time */
	struct target target;       /* the victim: a VM, a vCPU or a thread */
	struct actor culprit;       /* machine -1: none; tid -1: several threads, or the machine; `name` is not set */
	char culprit_text[ACTOR_TEXT];  /* culprit, or limit; "" if there is none */
	int64_t ns;                 /* ns that the culprit took; 0: none */
	double share;               /* ns / base */
	const char *base;           /* "wanted": time that the target ran and lost; "life": its lifetime; "": no share */
	uint64_t intervals;         /* number of intervals in which the culprit took ns */
	bool inferred;              /* chain: most waits were inferred from the nearest events */
	double unknown;             /* share of the target's life in unknown states */
	struct moment moment;
	char command[ACTOR_TEXT];   /* arguments of stealscope that show the moment; FILE stands for the history; "": none */
	size_t main_bytes;          /* length of the first clause of `text`: where to cut for a narrow screen */
	char text[FINDING_TEXT];    /* one sentence without the final period; escaped */
};

/* Findings in order of weight; len is at least 1. The verdict is item[0]. */
struct findings {
	struct finding *item;
	size_t len;
};

static inline bool finding_is_healthy(const struct finding *f)
{
	return f->kind == FINDING_HEALTHY;
}

/* Starts the query for the findings on [from, to]; target NULL: on all machines. Cost: the demands of all rows, the gaps
 * of the most delayed targets, and the critical paths of a few delayed threads. */
struct query *findings_open(const struct catalog *catalog, const struct target *target, int64_t from, int64_t to);
void findings_take(struct query *q, struct findings *out);
/* Runs the query until the answer is ready. */
int findings_of(const struct catalog *catalog, const struct target *target, int64_t from, int64_t to, struct findings *out,
                struct error *err);
void findings_release(struct findings *f);
/* Returns true for the host of VMs, and for the control domain of Xen: a victim only if nothing else is one. */
bool findings_take_last(const struct catalog *catalog, uint32_t machine);
/* Does the same for a history without an open catalog, and keeps only the first finding. */
int finding_first(const struct history *h, int64_t begin, int64_t end, struct finding *out, struct error *err);

#endif
