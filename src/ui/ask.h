/* Questions that may take long, answered by one helper thread: who had the CPU in a gap, and why, a flow, a steal matrix.
 *
 * A question of a kind replaces the one before.  Flows and matrices are put together from slices of their window, each
 * about SLICE_NS of work; between slices a question can be dropped, and the most urgent kind goes first.  What slices
 * add up to is exact: flows join where they were cut, losses add.  An answer is bounded: a flow ends (`cut`) after
 * ASK_PIECES pieces, and a matrix with more than ASK_CELLS pairs of threads is given by machine. */
#ifndef STEALSCOPE_UI_ASK_H
#define STEALSCOPE_UI_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strtab.h"
#include "flow/flow.h"

#define ASK_PIECES 500000
#define ASK_CELLS 100000

/* Most urgent first. */
enum ask { ASK_STATUS, ASK_CAUSE, ASK_EXPLAIN, ASK_FLOW, ASK_STEAL, ASKS };

struct question {
	struct subject subject;  /* STATUS: a machine is asked for its loss within the window; FLOW: a thread */
	int64_t t;               /* STATUS of others, EXPLAIN */
	int64_t from, to;        /* window, ns; CAUSE: a gap, or an interval within one */
};

struct answer {
	int status;              /* < 0: err tells */
	struct error err;
	char text[512];          /* STATUS */
	int64_t ns;              /* STATUS of a machine */
	char *paragraph;         /* EXPLAIN; the receiver frees it */
	int32_t system, tid;     /* CAUSE: the thread that had the CPU longest; tid < 0: none had it */
	struct flow flow;        /* FLOW; the receiver releases it */
	struct steal steal;      /* STEAL; likewise */
	bool cut, by_machine;
	int64_t cost;            /* ns of work */
};

struct asker;

struct asker *asker_open(const struct topo *topo);
void asker_close(struct asker *a);  /* waits for the slice at work; NULL is allowed */
void asker_ask(struct asker *a, enum ask kind, const struct question *q);
void asker_drop(struct asker *a, enum ask kind);
/* Drops all, and waits for the slice at work: then the topology may change in its place. */
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

/* ---- Inner: windows walked in slices (ask_flow.c, ask_steal.c) ------------------------------------------------ */

struct slices {
	int64_t from, to, at, len;  /* the next slice begins at `at`; done when at > to */
};

struct flow_slices {
	struct slices s;
	struct subject subject;
	struct flow flow;
	size_t interval_cap;
	struct strtab names;
};

struct steal_slices {
	struct slices s;
	struct steal steal;
	size_t cell_cap;
	struct map by_key;
	struct strtab names;
	bool by_machine;
};

void slices_begin(struct slices *s, int64_t from, int64_t to);
int64_t slices_end(const struct slices *s);          /* last ns of the next slice */
void slices_next(struct slices *s, int64_t cost);    /* goes on; the next slice is longer or shorter */

/* begin: 0 or -1.  step: 1 = done, 0 = more, -1 = error.  finish moves what was gathered into *out. */
int flow_slices_begin(struct flow_slices *f, const struct topo *topo, const struct subject *s, int64_t from, int64_t to,
                      struct error *err);
int flow_slices_step(struct flow_slices *f, const struct topo *topo, struct error *err);
void flow_slices_finish(struct flow_slices *f, struct flow *out, bool *cut);
void flow_slices_release(struct flow_slices *f);

void steal_slices_begin(struct steal_slices *m, const struct topo *topo, int64_t from, int64_t to);
int steal_slices_step(struct steal_slices *m, const struct topo *topo, struct error *err);
void steal_slices_finish(struct steal_slices *m, struct steal *out);
void steal_slices_release(struct steal_slices *m);

#endif
