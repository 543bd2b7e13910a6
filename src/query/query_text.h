/* Answers as sentences, and the flow as a tree in text (paper, Fig. 14). A part of query/query.h, which includes it. */
#ifndef STEALSCOPE_QUERY_QUERY_TEXT_H
#define STEALSCOPE_QUERY_QUERY_TEXT_H

#include <stdio.h>

#include "query/query.h"
#include "query/query_task.h"

enum actor_style {
	ACTOR_PLAIN,     /* csv and json: "host/2101 burnP6", "hypervisor for Debian/3525 critical_task",
	                  * "host irq/46-iwlwifi", "idle CPU", "quota", "waiting for host/43 qemu-io", "unknown" */
	ACTOR_SHOWN,     /* tables: an actor that is no thread or machine in parentheses: "(idle CPU)", "(throttled)" */
	ACTOR_SENTENCE,  /* a part of a sentence: "a timer interrupt of the host", "its own CPU limit" */
	ACTOR_LABEL,     /* the name without machine and TID: "burnP6", "hypervisor" */
};
/* Writes an actor, escaped. name: raw; NULL: none. self: target of the text, so that its own machine becomes "other
 * threads of Debian"; NULL: none. Returns buf. */
char *actor_text(const struct catalog *catalog, const struct actor *actor, const char *name, enum actor_style style,
                 const struct target *self, char *buf, size_t size);
/* Returns the raw name of an actor without its machine and TID: the name, or "NAME or provider" in buf if it is uncertain
 * which of both it was (FLOW_CURRENT). */
const char *actor_name_text(const struct actor *actor, const char *name, char buf[ACTOR_TEXT]);

/* Returns the raw name of a state of the target; "not alive" for null, "" if it has no name. */
const char *target_state_name(const struct catalog *catalog, const struct target *s, int64_t state);

/* Writes a few plain sentences, one per line, escaped, on a thread or vCPU within [from, to]: its activity, its delays,
 * the culprits, the confidence, and the next steps; on a machine (NULL: on each) its time, its waits, and what the provider
 * took. The caller frees *text. */
int explain_window(const struct catalog *catalog, const struct target *s, int64_t from, int64_t to, char **text,
                   struct error *err);
/* Does the same for the gap or interval that contains t. */
int explain_at(const struct catalog *catalog, const struct target *s, int64_t t, char **text, struct error *err);

/* Writes one line for the viewer, without newline: "Debian/vCPU0 12:03:04.1139 PREEMPTED 5.21 ms by host/2101 burnP6 on
 * CPU3". The time is the start of the interval (or gap) that contains t. */
int explain_status(const struct catalog *catalog, const struct target *s, int64_t t, char *buf, size_t size,
                   struct error *err);

/* The same as queries: a moment in a long gap takes several steps. explain_open() is explain_at(), status_open() is
 * explain_status(). The caller of explain_take() frees the text. */
struct query *explain_open(const struct catalog *catalog, const struct target *s, int64_t t, struct error *err);
struct query *status_open(const struct catalog *catalog, const struct target *s, int64_t t);
char *explain_take(struct query *q);

struct flow_text {
	int width;                  /* width of the text in columns; 0: 80 */
	double threshold;           /* entries with a smaller share are counted but not printed: 0.001 = 0.1 % */
	bool intervals;             /* print also the list of intervals, if the flow contains it */
	const char *const *header;  /* lines to print first (trace, clock error, losses), escaped; NULL: none */
	size_t headers;
};

unsigned flow_text_columns(int width);  /* returns the width of the bar lanes, for flow_options.columns */
/* Writes a tree of machines and threads with durations, shares and a bar lane, and the number of entries below the
 * threshold. */
int flow_write_text(const struct catalog *catalog, const struct flow *f, const struct target *s,
                    const struct flow_text *options, FILE *to, struct error *err);

#endif
