/* Runs the queries of the viewer in worker threads, so that long ones do not block the screen.
 *
 * - Each part of the viewer that asks has a struct question, opens its own query (query/query.h), and takes it back when it
 *   is answered. A new query of the same question replaces the previous one.
 * - The queries run in steps of about STEP_NS. Between two steps a question can be dropped, and the most urgent one runs
 *   next, of equal ones the one that was asked first.
 * - A worker of its own runs ASK_LONG: reading traces and computing diffs take one long step each. */
#pragma once

#include "base/base.h"
#include "query/query.h"

#define ASK_INTERVALS 100000  /* a flow with more intervals omits them */
#define ASK_CELLS 100000      /* a steal matrix with more pairs of threads is summed by machine */
#define ASK_LISTED 5000       /* longest gaps, first events */

/* The most urgent first: sentence of the status line and cause that a key asked for; pane; sums and findings. */
enum urgency { ASK_SENTENCE, ASK_PANE, ASK_BACKGROUND, ASK_LONG, URGENCIES };

/* A question of one part of the viewer. All zero initially; private to async_query.c. */
struct question {
	enum { NOT_ASKED, PENDING, ANSWERED, FAILED } phase;
	enum urgency urgency;
	struct query *query;     /* owned */
	struct error err;
	unsigned progress;       /* per cent */
	int64_t cost;            /* time that the worker spent, ns */
	struct question *next;   /* asked after this one */
};

struct async_queries;

/* Starts the workers. Returns NULL if the threads could not be started. */
struct async_queries *async_open(void);
/* Drops all questions, waits for the running steps and stops the workers; NULL is allowed. */
void async_close(struct async_queries *a);
/* Takes ownership of the query. If it is NULL, because it could not be opened, the question has failed with *err. */
void async_ask(struct async_queries *a, struct question *q, enum urgency urgency, struct query *query,
               const struct error *err);
void async_drop(struct async_queries *a, struct question *q);
/* Drops all questions and waits for the running steps. After this call the catalog may be replaced in place. */
void async_drain(struct async_queries *a);
/* Returns true from async_ask() until the answer is taken or the question is dropped. */
bool async_is_pending(struct async_queries *a, const struct question *q);
bool async_is_busy(struct async_queries *a);  /* returns true if any question is asked */
/* Moves the answered query to *query; the caller takes its answer and closes it. Returns 1, 0 if there is no answer yet, or
 * -1 if the query failed. *cost (may be NULL): time that the worker spent, ns. */
int async_take(struct async_queries *a, struct question *q, struct query **query, int64_t *cost, struct error *err);
unsigned async_progress(struct async_queries *a, const struct question *q);  /* work done, per cent */
/* Waits until the question is answered, at most ns. */
void async_wait(struct async_queries *a, const struct question *q, int64_t ns);
/* For a long step of a query: stores its progress, per cent. Returns true if its question was dropped. */
bool async_report(struct async_queries *a, unsigned progress);
/* Returns a descriptor that becomes readable after an answer or progress, until async_clear_wakeup() is called. */
int async_fd(const struct async_queries *a);
/* Makes the descriptor readable; any thread may call it. */
void async_wake_viewer(struct async_queries *a);
void async_clear_wakeup(struct async_queries *a);
