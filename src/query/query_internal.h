/* Functions and types that files in query/ share: time by state and use, a target's rows, iteration over gaps. Private to
 * query/. */
#pragma once

#include "query/query.h"
#include "query/resolver.h"

/* Runnable threads leave a CPU idle at most so long while the CPU is woken or the thread migrates, ns. A longer idle
 * time is attributed to a limit (quota, cpuset). */
#define IDLE_LIMIT_NS 1000000

/* How a state's time is used, by vCPU or thread state. */
/* USE_VMM is lost time, too: the hypervisor works on behalf of the vCPU. */
enum use { USE_UNKNOWN, USE_RAN, USE_LOST, USE_VMM, USE_SLEPT };
static inline bool use_is_lost(enum use time_use)
{
	return time_use == USE_LOST || time_use == USE_VMM;
}
extern const uint8_t vcpu_use[VCPU_STATE_COUNT], thread_use[THREAD_STATE_COUNT];

/* Computes a flow's sums within [from, to]. The names stay in the resolver (flow->names is 0). */
int flow_collect(struct resolver *r, const struct target *target, int64_t from, int64_t to, struct flow *out);

/* Cuts a window to the history and to the target's lifetime. Returns -1 if nothing remains. */
int window_cut_to_target(const struct catalog *catalog, const struct target *target, int64_t *from, int64_t *to,
                         struct error *err);

/* Finds the first and last ns at which the attribute has a value. Returns 1, 0 = it never has a value, -1 = error. */
int attribute_lifetime(const struct catalog *catalog, uint32_t attr, int64_t *start, int64_t *end, struct error *err);

/* Returns a CPU's or thread's status attribute. *mask: states that make a gap; bit n = the history's state number n. */
uint32_t gap_attribute(const struct catalog *catalog, const struct target *target, uint64_t *mask);

/* Reads the host CPUs' cores, caches and nodes. */
int catalog_read_topology(struct catalog *catalog, struct error *err);

/* Reads the control groups, and adds those with threads as containers if there is only one machine. */
int catalog_read_groups(struct catalog *catalog, struct error *err);
bool catalog_group_contains(const struct catalog *catalog, const struct catalog_group *outer, int64_t group);
/* Returns the limit that, by cpu.stat, throttled a group's threads most: its own, or that of a group above. *is_only: it
 * did so alone. NULL: no limit, or unknown which. */
const struct catalog_group *catalog_find_limit(const struct catalog *catalog, int64_t group, bool *is_only);
bool catalog_is_alone(const struct catalog *catalog);  /* returns true if only one machine was recorded: the first one */

/* Returns true if a host thread's lost time counts for the host. The time that a vCPU's thread lost counts for its VM, that
 * of a container's thread for the container. */
bool gap_is_own_thread(const struct catalog *catalog, uint32_t thread);

/* Calls fn for each row whose lost time is summed for a target: a VM's vCPUs, the host's (see gap_is_own_thread()) or a
 * container's threads, or the CPU or thread itself. If fn returns other than 0, stops and returns that. */
int gap_each_row(const struct catalog *catalog, const struct target *target, int (*fn)(void *arg, const struct target *row),
                 void *arg);

/* The rows that gap_each_row() visits for one target, or for all machines (NULL). victim: the
 * machine for which the row counts. */
struct gap_rows {
	struct gap_row { struct target target; uint32_t victim; } *row;
	size_t len, cap;
};
void gap_rows_list(struct gap_rows *rows, const struct catalog *catalog, const struct target *target);
void gap_rows_release(struct gap_rows *rows);
/* culprit_sums_open() for some rows, ascending by number; owned by the query. */
struct query *culprit_sums_open_rows(const struct catalog *catalog, const struct gap_rows *rows, int64_t from, int64_t to);

/* Iterator over a row's gaps within [from, to], cut to this window; adjacent intervals are joined. */
struct gap_walk {
	struct history_cursor cursor;
	struct interval read[48];  /* a chunk from the history */
	int at, n;
	uint64_t mask;
	int64_t from, to;
	struct interval ahead;  /* interval that was read, but not returned yet; start > end: none */
	bool done;
};
/* Finds where the row's first gap within [from, to] starts, cut to that window. Returns 1, 0 = none, -1 = error. */
int gap_first_time(const struct catalog *catalog, const struct target *row, int64_t from, int64_t to, int64_t *first,
                   struct error *err);
/* Returns 1 = ready, 0 = the row has no gaps in the window (checked by an exact sum), -1 = error. */
int gap_walk_start(struct gap_walk *w, const struct catalog *catalog, const struct target *row, int64_t from, int64_t to,
                   struct error *err);
int gap_walk_next(struct gap_walk *w, struct gap *out, struct error *err);  /* 1, 0 = no more gaps, -1 = error */

/* The same for intervals in other states; mask: bit n = the history's state number n. */
int states_walk_start(struct gap_walk *w, const struct catalog *catalog, const struct target *row, uint64_t mask,
                      int64_t from, int64_t to, struct error *err);

/* Alternative to gap_walk_next(): returns the intervals in gap states, cut to the window but not joined. */
int gap_walk_next_state(struct gap_walk *w, struct interval *iv, struct error *err);

/* Calls fn for each value that the thread's attribute Name has. If fn returns other than 0, stops and returns that; -1 on
 * error. */
int catalog_each_name(const struct catalog *catalog, uint32_t thread, int (*fn)(void *, const struct interval *), void *arg,
                      struct error *err);

/* Move, copy names to an answer. */
void names_move(struct strtab *from, char ***name, size_t *names);
void names_copy(const struct strtab *from, char ***name, size_t *names);
void names_free(char **name, size_t names);

/* Returns true if this vCPU is the target or belongs to it. Target NULL or the host: every VM's vCPU. */
bool vcpu_is_in_target(const struct catalog *catalog, const struct target *target, uint32_t vcpu);

/* Adds the cells to lanes: lane[lane_of[entry] * cells + column], with `cells` columns per lane; lane_of UINT32_MAX: the
 * entry is in no lane. Exact if cells == f->columns. */
void flow_paint(const struct flow *f, const uint32_t *lane_of, unsigned cells, int64_t *lane);
