/* Questions that may take long, answered by helper threads: who had the CPU in a gap, and why, a flow, a steal matrix.
 *
 * A question of a kind replaces the one before.  Flows and matrices are inquiries (query/query.h), worked on in steps of
 * about STEP_NS; between steps a question can be dropped, and the most urgent kind goes first.  Events are read from the
 * traces in one go, beside them.  A flow comes without its
 * intervals when there are more than ASK_PIECES, and a matrix with more than ASK_CELLS pairs of threads is given by
 * machine. */
#ifndef STEALSCOPE_UI_CORE_ASYNC_QUERY_H
#define STEALSCOPE_UI_CORE_ASYNC_QUERY_H

#include <stdbool.h>
#include <stdint.h>

#include "compare/compare.h"
#include "query/query.h"
#include "report/report.h"
#include "ui/ui.h"

#define ASK_PIECES 100000
#define ASK_CELLS 100000
#define ASK_LISTED 5000

/* Most urgent first. */
enum ask { ASK_STATUS, ASK_CAUSE, ASK_EXPLAIN, ASK_FLOW, ASK_STEAL, ASK_SUMMARY, ASK_GAPS, ASK_LOCKS, ASK_EXITS, ASK_PATH,
           ASK_EVENTS, ASK_DIFF, ASKS };

struct question {
	struct subject subject;  /* STATUS: a machine is asked for its loss within the window; FLOW: a thread;
	                          * GAPS, LOCKS, EXITS, EVENTS; PATH: a thread or vCPU */
	int64_t t;               /* STATUS of others, EXPLAIN */
	int64_t from, to;        /* window, ns; CAUSE: a gap, or an interval within one */
	unsigned columns;        /* FLOW: of its cells */
	bool gaps;               /* SUMMARY: with what is known of gaps */
	char other[512];         /* DIFF: the history that was before; "": this one, within [other_from, other_to] */
	int64_t other_from, other_to;
};

struct answer {
	int status;              /* < 0: err tells */
	struct error err;
	char text[512];          /* STATUS; CAUSE: the raw name of who had it */
	int64_t ns;              /* STATUS of a machine */
	char *paragraph;         /* EXPLAIN; the receiver frees it */
	struct party who;        /* CAUSE: the thread or vCPU that had the CPU longest; system < 0: none had it */
	double share;            /* CAUSE: of the time; */
	bool most;               /* nothing else, such as the hypervisor, had more */
	struct flow flow;        /* FLOW; the receiver releases it */
	struct steal steal;      /* STEAL; likewise */
	struct summary summary;  /* SUMMARY; likewise */
	struct gap_list gaps;    /* GAPS, the longest ASK_LISTED of them; likewise */
	struct lock_list locks;  /* LOCKS; likewise */
	struct exit_list exits;  /* EXITS; likewise */
	struct path path;        /* PATH; likewise */
	struct diff diff;        /* DIFF; likewise, with: */
	struct notes doubts;     /* what could not be compared */
	struct origin before;    /* of the side before */
	struct event_list events;  /* EVENTS, the first ASK_LISTED; likewise */
	int64_t cost;            /* ns of work */
};

struct asker;

struct asker *asker_open(const struct topo *topo, const struct ui_traces *traces);  /* NULL: there are none */
void asker_close(struct asker *a);  /* waits for the step at work; NULL is allowed */
void asker_ask(struct asker *a, enum ask kind, const struct question *q);
void asker_drop(struct asker *a, enum ask kind);
/* Drops all, and waits for the step at work: then the topology may change in its place. */
void asker_rest(struct asker *a);
bool asker_asked(struct asker *a, enum ask kind);  /* asked, and neither taken nor dropped */
bool asker_busy(struct asker *a);                  /* any kind is */
/* The answer, once: false while there is none. */
bool asker_take(struct asker *a, enum ask kind, struct answer *out);
unsigned asker_progress(struct asker *a, enum ask kind);  /* per cent */
/* Waits until that kind is answered, at most ns. */
void asker_wait(struct asker *a, enum ask kind, int64_t ns);
/* Readable after something was answered or went on visibly; asker_seen() makes it quiet again. */
int asker_fd(const struct asker *a);
void asker_poke(struct asker *a);                  /* from any thread: makes it readable */
void asker_seen(struct asker *a);

#endif
