/* Answers in words, and the flow as text (paper, Fig. 14).  A part of query/query.h, which includes it. */
#ifndef STEALSCOPE_QUERY_QUERY_TEXT_H
#define STEALSCOPE_QUERY_QUERY_TEXT_H

#include <stdio.h>

#include "query/query.h"

/* "host/2101 burnP6", "Debian/3525 critical_task", "hypervisor for Debian/3525 critical_task", "host irq/46-iwlwifi",
 * "idle CPU", "waiting for host/43 qemu-io", "waiting", "unknown".  Escaped.  `name`: raw, or NULL. */
char *party_text(const struct topo *topo, const struct party *who, const char *name, char *buf, size_t size);
/* The same for people: what is nobody in parentheses. */
char *party_shown(const struct topo *topo, const struct party *who, const char *name, char *buf, size_t size);

/* A summary with its gaps, sorted by what was lost, in plain sentences, one per line, escaped: the machines, and the
 * threads that lost most.  The caller frees *text. */
int explain_summary(const struct topo *topo, const struct summary *s, char **text, struct error *err);

/* A few plain sentences, one per line, escaped: what a thread or vCPU did within [from, to], what delayed it, how
 * much, by whom, how sure that is, and what to look at next.  The caller frees *text. */
int explain_window(const struct topo *topo, const struct subject *s, int64_t from, int64_t to, char **text,
                   struct error *err);
/* The same for the gap or interval that t stands in. */
int explain_at(const struct topo *topo, const struct subject *s, int64_t t, char **text, struct error *err);

/* One line for the viewer, without newline: "Debian/vCPU0 12:03:04.1139 PREEMPTED 5.21 ms by host/2101 burnP6 on
 * CPU3".  The moment is the start of the interval (of the gap, when t is in one) that holds t. */
int explain_status(const struct topo *topo, const struct subject *s, int64_t t, char *buf, size_t size,
                   struct error *err);

/* Both in steps, where a moment may hold millions of pieces.  The gap that t stands in: 1, else the interval of the
 * subject's status (a pCPU: of its current thread): 0; -1 = error. */
int explain_moment(const struct topo *topo, const struct subject *s, int64_t t, struct gap *out, struct error *err);
/* What explain_at() says of a moment, and explain_status() of a gap, given its flow, or that of its beginning. */
int explain_at_of(const struct topo *topo, const struct gap *moment, const struct flow *f, char **text,
                  struct error *err);
void explain_status_of(const struct topo *topo, const struct gap *gap, const struct flow *f, char *buf, size_t size);

struct flow_text {
	int width;                  /* columns; 0 = 80 */
	double threshold;           /* entries with a smaller share are not printed, but counted: 0.001 = 0.1 % */
	bool intervals;             /* also the ordered list, if the flow has it */
	const char *const *header;  /* lines to print first (trace, error band, losses), escaped; may be NULL */
	size_t headers;
};

unsigned flow_text_columns(int width);  /* of the bar lanes: what the flow should have */
/* The tree system > thread with durations, shares and a bar lane, then what the threshold left out. */
int flow_write_text(const struct topo *topo, const struct flow *f, const struct subject *s,
                    const struct flow_text *options, FILE *to, struct error *err);

#endif
