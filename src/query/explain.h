/* A story that is being told: shared by what was (explain.c) and what to look at next (explain_next.c).  Private to
 * query/. */
#ifndef STEALSCOPE_QUERY_EXPLAIN_H
#define STEALSCOPE_QUERY_EXPLAIN_H

#include <stdio.h>

#include "query/query_internal.h"

#define NAME_TEXT 640

struct story {
	const struct topo *topo;
	struct subject subject;
	uint32_t machine;            /* of the subject */
	bool alone;                  /* topo_is_alone() */
	char name[NAME_TEXT];
	const struct flow *f;
	struct demand demand;        /* of the flow's window */
	struct flow_entry *culprit;  /* of what it lost: most first */
	size_t culprits;
	const struct flow_entry *first;  /* who took most, as struct thief has it: one of them, or ... */
	struct flow_entry whole;     /* ... all of a machine's */
	bool is_whole;
	int64_t unknown;             /* ns, while it was there */
	struct {                     /* of those it slept for, whoever was kept longest from its CPU by one thread */
		struct party who, thief; /* thief.system -1: nobody considerably */
		char *who_name, *thief_name;  /* as a sentence has them */
	} kept;
	bool slept_for;              /* whom it slept for was told already */
	int64_t locked;              /* ns of its waits for locks */
	uint64_t locks;
	FILE *to;
};

/* A party as a sentence has it: "a timer interrupt of the host"; told of `self`, or NULL: "other threads of the host". */
char *explain_party(const struct topo *topo, const struct party *p, const char *name, const struct subject *self, char *buf,
                    size_t size);
/* The same of a limit of that name; NULL: there is none. */
const char *advice_limit(const char *name);
/* Was its CPU idle for so long that this is no wakeup? */
bool advice_stayed_idle(const struct flow_entry *e);
double story_share(const struct story *s, int64_t ns);  /* of the flow's window */
/* "5.21 ms (1.3 %)"; of a share that rounds to nothing nothing is said. */
const char *story_amount(const struct story *s, int64_t ns, char buf[64]);
/* Tells who ended its sleeps; of a vCPU, what it waited for. */
int story_waits(struct story *s, struct error *err);
/* Tells whom it slept for, as far as that was a considerable part, and learns who was kept. */
int story_path(struct story *s, struct error *err);
/* Learns of its waits for locks. */
int story_locks(struct story *s, struct error *err);
/* Tells where to look next. */
void story_advise(struct story *s);

#endif
