/* State of an explanation, shared by the explain*.c files. Private to query/. */
#pragma once

#include <stdio.h>

#include "query/finding_causes.h"

#define NAME_TEXT 640

struct explanation {
	const struct catalog *catalog;
	struct target target;
	uint32_t machine;            /* machine of the target */
	bool alone;                  /* catalog_lacks_host_trace() of the target */
	char name[NAME_TEXT];
	const struct flow *f;
	struct demand demand;        /* demand in the window of the flow */
	const struct findings *findings;      /* on the target in this window */
	const struct finding *main;           /* the first one whose culprit took time from the target; NULL: none ... */
	const struct flow_entry *main_entry;  /* ... and that culprit */
	int64_t unknown;             /* ns with unknown activity during the lifetime of the target */
	const struct delay_chain *delay;  /* largest delay of an actor for which the target slept; NULL: not considerable */
	bool slept_for;              /* the text already names the actor for which the target slept */
	int64_t locked;              /* sum of its lock waits, ns */
	uint64_t locks;
	FILE *to;
};

/* Returns true if the CPU was idle for so long that wakeup latency cannot explain it. */
bool is_idle_limit(const struct flow_entry *e);
double explanation_share(const struct explanation *s, int64_t ns);  /* returns ns / length of the flow's window */
/* Writes "5.21 ms (1.3 %)"; omits a share that rounds to 0. */
const char *explanation_amount(const struct explanation *s, int64_t ns, char buf[64]);
/* Writes the wakers that ended the target's sleeps; for a vCPU, the kinds of its waits. */
int explain_waits(struct explanation *s, struct error *err);
/* Writes the actors for which a thread slept, and sets `delay`. */
void explain_path(struct explanation *s);
/* Writes the name of an actor on the path of the target. Returns buf. */
char *explanation_path_actor(const struct explanation *s, struct actor actor, char buf[NAME_TEXT]);
/* Writes what the provider took from a machine with a steal clock, its pattern, its exactness, and a request to the
 * provider; nothing for other machines. Returns 0 or -1. */
int explain_provider(FILE *to, const struct catalog *catalog, uint32_t machine, int64_t from, int64_t until,
                     struct error *err);
/* Writes " +-2.71 ms": the error bound of the start of a gap by the guest's steal clock; "" for other gaps. */
const char *gap_bound_text(const struct catalog *catalog, const struct gap *gap, char buf[64]);
/* Writes the time on a busy core, on a slow CPU and far from the memory, if it is considerable. */
int explain_cores(struct explanation *s, struct error *err);
/* Writes whose quota it is, if a quota took a considerable part of the lost time. */
int explain_quota(struct explanation *s, struct error *err);
/* Sums the lock waits of the target in `locked` and `locks`. */
int explain_locks(struct explanation *s, struct error *err);
/* explain_window() of a machine, or of all machines. */
int explain_machines(const struct catalog *catalog, const struct target *machine, int64_t from, int64_t to, char **text,
                     struct error *err);
/* Writes advice: commands to run next, and events to record. */
void explain_next_steps(struct explanation *s);


/* ---- Parts of explain_query.c */

/* Refuses targets that have no flow. */
int explain_check_target(const struct catalog *catalog, const struct target *target, struct error *err);
/* Finds the gap that contains t (returns 1), or the interval of the target's status (for a pCPU: of its current thread)
 * if there is no gap (returns 0); -1 = error. */
int explain_moment(const struct catalog *catalog, const struct target *target, int64_t t, struct gap *out,
                   struct error *err);
/* Writes the paragraph, given the flow of the gap or interval, and the findings on the target in it. */
int explain_moment_text(const struct catalog *catalog, const struct gap *moment, const struct flow *f,
                        const struct findings *l, char **text, struct error *err);
/* Write the sentence: on a machine in the whole history; on an interval without a gap; on a gap, given its flow. */
int status_of_machine(const struct catalog *catalog, const struct target *target, char **text, struct error *err);
int status_of_interval(const struct catalog *catalog, const struct gap *moment, int64_t t, char **text, struct error *err);
void status_of_gap(const struct catalog *catalog, const struct gap *gap, const struct flow *f, char **text);
