/* Shared by the files of query/. */
#ifndef STEALSCOPE_QUERY_QUERY_INTERNAL_H
#define STEALSCOPE_QUERY_QUERY_INTERNAL_H

#include "query/query.h"
#include "query/resolver.h"

/* ns that a CPU stays idle although somebody wants it, from which on that is a limit (a quota, a cpuset): to wake a CPU
 * or to move a thread to another one takes less. */
#define IDLE_LIMITED 1000000

/* What the time in a state counts as, of vCPUs and of threads. */
/* SERVED: lost too, while the hypervisor worked for the vCPU. */
enum use { USE_UNKNOWN, USE_RAN, USE_LOST, USE_SERVED, USE_SLEPT };
static inline bool is_lost(enum use use)
{
	return use == USE_LOST || use == USE_SERVED;
}
extern const uint8_t vcpu_use[VCPU_STATE_COUNT], thread_use[THREAD_STATE_COUNT];

/* The sums of a flow of [from, to]; its names stay with the resolver (flow->names is 0). */
int flow_collect(struct resolver *r, const struct subject *s, int64_t from, int64_t to, struct flow *out);

/* Cuts a window to the history, and to a thread's life; refuses one of which nothing is left. */
int flow_cut(const struct topo *topo, const struct subject *s, int64_t *from, int64_t *to, struct error *err);

/* First and last moment at which the attribute is not null: 1, 0 = never, -1 = error. */
int flow_life(const struct topo *topo, uint32_t attr, int64_t *start, int64_t *end, struct error *err);

/* The status attribute of a CPU or thread and the states of it (bits of the file's numbers) that make a gap. */
uint32_t gap_attribute(const struct topo *topo, const struct subject *s, uint64_t *mask);

/* A vCPU thread that waits is its VM's loss, one of a container its container's: not the host's. */
bool gap_is_own_thread(const struct topo *topo, uint32_t thread);

/* Rows that make up what a subject loses: the vCPUs of a VM, the own threads of the host or a container, a CPU or
 * thread itself.  Calls fn for each; stops when it returns other than 0, and returns that. */
int gap_each_row(const struct topo *topo, const struct subject *s, int (*fn)(void *arg, const struct subject *row),
                 void *arg);

/* The same as a list, of a subject or of every machine (NULL), each with the machine whose loss it is. */
struct gap_rows {
	struct gap_row { struct subject subject; uint32_t victim; } *row;
	size_t len, cap;
};
void gap_rows_list(struct gap_rows *rows, const struct topo *topo, const struct subject *s);
void gap_rows_release(struct gap_rows *rows);

/* Walks the gaps of a row within [from, to], cut to it, joined when adjacent. */
struct gap_walk {
	struct history_cursor cursor;
	struct interval read[32];
	int at, n;
	uint64_t mask;
	int64_t from, to;
	struct interval ahead;  /* read but not yet given; start > end: none */
	bool done;
};
/* 1 = ready, 0 = the row has no gaps in the window (one exact sum tells), -1 = error. */
int gap_walk_start(struct gap_walk *w, const struct topo *topo, const struct subject *row, int64_t from, int64_t to,
                   struct error *err);
int gap_walk_next(struct gap_walk *w, struct gap *out, struct error *err);  /* 1, 0 = end, -1 */

/* Instead: one interval of a gap state after the other, cut to the window but not joined. */
int gap_walk_part(struct gap_walk *w, struct interval *iv, struct error *err);

/* Calls fn for every value of a thread's Name within the history, until it returns other than 0; returns that, or -1. */
int topo_each_name(const struct topo *topo, uint32_t thread, int (*fn)(void *, const struct interval *), void *arg,
                   struct error *err);

/* Is this vCPU the subject, or one of it?  NULL and the host: any VM's. */
bool vcpu_is_asked(const struct topo *topo, const struct subject *s, uint32_t vcpu);

const char *explain_state_name(const struct topo *topo, const struct subject *s, int64_t state);


/* The names move from the resolver to whoever keeps the answer. */
void resolver_give_names(struct resolver *r, char ***name, size_t *names);

#endif
