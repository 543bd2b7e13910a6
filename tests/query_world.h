/* Small hand-written histories for the tests of query/: one line of text per attribute. */
#pragma once

#include "query/query.h"

struct world_change { int64_t t; uint32_t row; int64_t order; int64_t number; char *text; };

struct world {
	char path[64];
	struct history_builder *b;
	struct world_change *change;
	size_t len, cap;
	uint32_t *attr;
	int *type;
	size_t rows, attr_cap, type_cap;
	unsigned vcpu_set, thread_set, owner_set, out_set;
	struct history *h;
	struct catalog catalog;
};

void world_open(struct world *w);
/* Adds an attribute: "0 RUNNING; 10 PREEMPTED; 25 -" means RUNNING since 0, PREEMPTED since 10, null since 25. The last
 * component of the path determines the type of the values. */
void world_row(struct world *w, const char *path, const char *changes);
void world_rowf(struct world *w, const char *changes, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Attributes of one row ("host/40", "A/5", "host/CPU0" or "A/CPU0") in that form; NULL: the attribute does not exist. */
struct world_rows {
	const char *status;
	const char *cpu, *name, *pid, *vm, *woken_by, *woken_in, *lock;        /* of threads */
	const char *current, *interrupt, *host_thread, *pcpu, *exit, *out_by;  /* of CPUs */
};
#define world_has(w, whose, ...) world_rows((w), (whose), &(struct world_rows){ __VA_ARGS__ })
void world_rows(struct world *w, const char *whose, const struct world_rows *rows);
void world_close(struct world *w, int64_t begin, int64_t end);  /* finishes and opens the history, and reads the catalog */
void world_release(struct world *w);

/* Intervals of a flow as text: "0-9 running A/5 alpha @1; 10-19 preempting host/42 burn @1" (machine '-': none; @:
 * pCPU). */
char *world_flow_text(const struct world *w, const struct flow *f, char *buf, size_t size);
void world_check_flow(const struct world *w, const char *target, int64_t from, int64_t to, const char *expected);
/* Checks the intervals of a critical path: "10-29 running A/5 work wake; 30-39 preempting host/42 io <host/99 hog> wake"
 * (the culprit is between < and >, the edge is last). */
void world_path(const struct world *w, const char *whose, int64_t from, int64_t to, const char *expected);
void world_check_tiling(const struct flow *f);
/* Creates a history in which the host thread 40 executes vCPU 0 of A, a hog has its CPU from 30 to 59, and A/5 is the
 * target. */
void world_hog_takes(struct world *w);
/* Adds A/6, which runs on vCPU 0; A/5 is on CPU1 of A, which the host thread 50 executes. */
void world_other_runs(struct world *w);
struct target world_target(const struct world *w, const char *text);
