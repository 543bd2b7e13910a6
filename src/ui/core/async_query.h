/* Answers questions in worker threads, so that long queries do not block the screen.
 *
 * - A new question replaces the previous question of the same kind.
 * - Most kinds are queries (query/query.h) that run in steps of about STEP_NS. Between two steps a question can be
 *   dropped, and the most urgent kind runs next.
 * - A second worker reads events from the traces and computes diffs, in one long step each.
 * - Limits: the answer to a flow with more than ASK_INTERVALS intervals omits the intervals; a steal matrix of more than
 *   ASK_CELLS pairs of threads is summed by machine. */
#ifndef STEALSCOPE_UI_CORE_ASYNC_QUERY_H
#define STEALSCOPE_UI_CORE_ASYNC_QUERY_H

#include <stdbool.h>
#include <stdint.h>

#include "compare/compare.h"
#include "query/query.h"
#include "report/report.h"
#include "ui/ui.h"

#define ASK_INTERVALS 100000
#define ASK_CELLS 100000
#define ASK_LISTED 5000
#define ASK_WAITS_MAX 64

/* Kinds of questions, the most urgent first. */
enum ask_kind { ASK_STATUS, ASK_CAUSE, ASK_EXPLAIN, ASK_FLOW, ASK_STEAL, ASK_SUMMARY, ASK_GAPS, ASK_LOCKS, ASK_EXITS,
	ASK_PATH, ASK_FINDINGS, ASK_WAITS,
           ASK_EVENTS, ASK_DIFF, ASK_KINDS };

/* A target and its top culprit, whose longest wait is searched. */
struct waits_of {
	struct target target;
	struct actor culprit;
	char name[64];           /* raw name of the culprit; a longer one is cut and not found */
};

struct question {
	/* machine, vCPU or thread of the question. STATUS of a machine: its lost time within the window. FLOW: a thread.
	 * PATH: a thread or vCPU. STEAL, SUMMARY, FINDINGS, WAITS and DIFF do not use it. */
	struct target target;
	int64_t t;               /* time of the question, ns; used by EXPLAIN and by STATUS of threads and CPUs */
	int64_t from, to;        /* window, ns; CAUSE: a gap, or an interval within a gap */
	unsigned columns;        /* FLOW: number of cells, one per screen column */
	bool gaps;               /* SUMMARY: include the gap statistics */
	enum thread_grouping grouping;  /* SUMMARY */
	struct waits_of waits[ASK_WAITS_MAX];  /* WAITS: targets and culprits */
	size_t waits_len;
	char other[512];         /* DIFF: file of the history to compare with; "": compare with [other_from, other_to] of the
	                          * history shown */
	int64_t other_from, other_to;
};

struct answer {
	int status;              /* < 0: failed, err has the reason */
	struct error err;
	char text[512];          /* STATUS: sentence for the status line; CAUSE: name of the culprit, not escaped */
	int64_t ns;              /* STATUS of a machine: time lost in the window, ns */
	char *paragraph;         /* EXPLAIN: text. The receiver of the answer owns this member and all members below */
	struct actor culprit;        /* CAUSE: thread or vCPU that had the CPU longest; machine < 0: none */
	double share;            /* CAUSE: part of the interval in which the culprit had the CPU, 0 .. 1 */
	bool took_most;               /* CAUSE: no other actor, such as the hypervisor, had the CPU longer than the culprit */
	struct flow flow;        /* FLOW: flow of the thread */
	struct steal steal;      /* STEAL: steal matrix */
	struct summary summary;  /* SUMMARY: lost time of machines and threads */
	struct gap_list gaps;    /* GAPS: the ASK_LISTED longest gaps */
	struct lock_list locks;  /* LOCKS: lock waits */
	struct exit_list exits;  /* EXITS: VM exits */
	struct path path;        /* PATH: critical path */
	struct culprit_waits *waits;  /* WAITS: one per target of the question */
	struct findings findings;  /* FINDINGS */
	struct diff diff;        /* DIFF: findings */
	struct notes diff_notes;     /* DIFF: notes on quantities that could not be compared */
	struct origin diff_origin;    /* DIFF: provenance of the history on the other side */
	struct event_list events;  /* EVENTS: the first ASK_LISTED events */
	int64_t cost;            /* time that the worker spent on the answer, ns */
};

struct async_queries;

/* Starts the workers. Returns NULL if the threads could not be started. */
struct async_queries *async_open(const struct catalog *catalog, const struct ui_traces *traces);
void async_close(struct async_queries *a);  /* waits for the running steps and stops the workers; NULL is allowed */
void async_ask(struct async_queries *a, enum ask_kind kind, const struct question *q);
void async_drop(struct async_queries *a, enum ask_kind kind);
/* Drops all questions and waits for the running steps. After this call the catalog may be replaced in place. */
void async_drain(struct async_queries *a);
/* Returns true from async_ask() until the answer is taken or the question is dropped. */
bool async_is_pending(struct async_queries *a, enum ask_kind kind);
bool async_is_busy(struct async_queries *a);  /* Returns true if a question of any kind is asked. */
/* Moves the answer to *out. Returns false if there is none. */
bool async_take_answer(struct async_queries *a, enum ask_kind kind, struct answer *out);
unsigned async_progress(struct async_queries *a, enum ask_kind kind);  /* work done, per cent */
/* Waits until the question of that kind is answered, at most ns. */
void async_wait(struct async_queries *a, enum ask_kind kind, int64_t ns);
/* Returns a descriptor that becomes readable after an answer or progress, until async_clear_wakeup() is called. */
int async_fd(const struct async_queries *a);
/* Makes the descriptor readable; any thread may call it. */
void async_wake_viewer(struct async_queries *a);
void async_clear_wakeup(struct async_queries *a);

#endif
