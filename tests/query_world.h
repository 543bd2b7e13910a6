/* Small hand-made histories for the tests of query/: one line of text per attribute. */
#ifndef STEALSCOPE_TESTS_FLOW_WORLD_H
#define STEALSCOPE_TESTS_FLOW_WORLD_H

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
	struct topo topo;
};

void world_open(struct world *w);
/* "0 RUNNING; 10 PREEMPTED; 25 -": from 0 on RUNNING, from 10 on PREEMPTED, null from 25 on.  The type of the value
 * follows from the last component of the path. */
void world_row(struct world *w, const char *path, const char *changes);
void world_rowf(struct world *w, const char *changes, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* What "host/40", "A/5", "host/CPU0" or "A/CPU0" is like, as above: a row for each that is told. */
struct world_rows {
	const char *status;
	const char *cpu, *name, *pid, *vm, *woken_by, *woken_in, *lock;        /* of threads */
	const char *current, *interrupt, *host_thread, *pcpu, *exit, *out_by;  /* of CPUs */
};
#define world_has(w, whose, ...) world_rows((w), (whose), &(struct world_rows){ __VA_ARGS__ })
void world_rows(struct world *w, const char *whose, const struct world_rows *rows);
void world_close(struct world *w, int64_t begin, int64_t end);  /* finishes, opens and reads the topology */
void world_release(struct world *w);

/* "0-9 running A/5 alpha @1; 10-19 preempting host/42 burn @1": the intervals of a flow (system '-': none). */
char *world_flow_text(const struct world *w, const struct flow *f, char *buf, size_t size);
void world_check_flow(const struct world *w, const char *subject, int64_t from, int64_t to, const char *expected);
/* "10-29 running A/5 work wake; 30-39 preempting host/42 io <host/99 hog> wake": the pieces of a critical path. */
void world_path(const struct world *w, const char *whose, int64_t from, int64_t to, const char *expected);
void world_check_tiling(const struct flow *f);
/* vCPU 0 of A is the host's thread 40, whose CPU a hog has from 30 to 59; A/5 is what is asked about. */
void world_hog_takes(struct world *w);
/* A/6 runs on that vCPU; A/5 is on CPU1, which is the host's thread 50. */
void world_other_runs(struct world *w);
struct subject world_subject(const struct world *w, const char *text);

#endif
