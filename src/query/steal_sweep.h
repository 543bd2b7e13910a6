/* Time that each row lost to each culprit, summed in one sweep along time. Private to query/.
 *
 * The resolver would decode a pCPU's activity once for each victim that waits for it. The sweep decodes it once: for a time
 * slice, each pCPU gets a lane, which lists the culprits that have it (16 bytes per interval, at most SWEEP_INTERVALS at a
 * time). Then each row walks its gaps along the lane for the pCPU that it awaits. The sweep leaves gaps that depend on
 * several pCPUs (folded states, nested guests), and gaps inside a guest that executes, to the resolver. The resolver alone
 * would give the same result, but take much longer. */
#pragma once

#include "query/culprit.h"
#include "query/gap_sums.h"
#include "query/query_internal.h"

#define SWEEP_INTERVALS (1 << 14)

/* A row's sums, in the order in which the row meets its culprits: indexes into sweep.culprits.actor. */
struct row_sums {
	struct culprit_ns *sum;
	size_t len, cap;
	struct edge_interval first;      /* see struct gap_sum */
	uint32_t culprit;                /* the latest interval's culprit, not counted yet ... */
	int64_t start, end;              /* ... within the block; start > end: none */
};

struct lane_interval {
	int64_t start;         /* ends where the following interval starts */
	int32_t host_thread;   /* thread that has the pCPU: index into catalog->thread; -1: none */
	uint32_t culprit;      /* index into culprits.actor */
};

/* A lane's sums: level k has one block per LANE_BLOCK blocks at level k - 1; level 0 has one per LANE_BLOCK intervals. A
 * block has one sum per culprit and thread, in the order in which they occur first. So a long wait needs few steps. A
 * block in which one culprit follows itself, as another thread, has no sums, because a row sees one interval there. */
struct lane_level {
	struct lane_sum { struct culprit_ns taken; int32_t host_thread; } *sum;
	size_t len, cap;
	uint32_t *first;       /* by block: its first sum's index; one more entry for the end */
	size_t blocks, block_cap;
};

#define LANE_BLOCK 8
#define LANE_LEVELS 3

struct lane {
	struct lane_interval *interval;
	size_t len, cap;
	struct lane_level level[LANE_LEVELS];  /* only if rows lose time */
};

struct sweep {
	const struct catalog *catalog;
	const struct gap_rows *rows;
	int64_t from, to, at;  /* at: when the next slice starts, ns */
	struct actors culprits;  /* names: ids in r.names */
	uint32_t latest[FLOW_KIND_COUNT]; /* the latest culprit by kind */
	struct row_sums *sums_of; /* by index in rows->row */
	size_t sums;             /* number of sums in all rows */
	struct target current; /* row that walks the slice */
	uint32_t current_index;  /* its index in rows->row */
	uint32_t *sum_of;        /* by culprit: index + 1 of its sum for the current row; 0: none */
	size_t sum_of_len, sum_of_cap;
	uint32_t *sum_at;        /* by culprit: index + 1 of its latest sum in a lane's blocks; 0: none */
	size_t sum_at_len, sum_at_cap;
	size_t capacity;         /* all lanes' capacity in intervals: SWEEP_INTERVALS; tests use less, for short slices */
	int64_t length;        /* the next slice's length less 1, ns */
	struct resolver r;
	struct lane *lane;     /* by index in catalog->cpu; only entries for host CPUs are used */
	size_t lane_intervals;
	struct sweep_row **row;  /* rows that have gaps since the block's start, or will have more */
	size_t row_len, row_cap;
	struct waiting_row { int64_t first; uint32_t index; } *waiting;  /* rows with gaps, by their first gap's time ... */
	size_t waiting_at, waiting_len, waiting_cap;  /* ... from waiting_at on not in `row` yet */
	int64_t block;           /* when the current block starts, ns: see sweep_take_block() */
	size_t read;             /* intervals that the block has read */
	uint32_t bucket_count[LENGTH_BUCKETS];  /* zeros */
	struct error *err;
};

/* Opens a sweep; borrows rows and catalog. Returns -1 on error. */
int sweep_open(struct sweep *s, const struct catalog *catalog, const struct gap_rows *rows, int64_t from, int64_t to,
               struct error *err);
/* The same without rows that lose time: the caller walks its own rows along the lanes (core_sweep.c), slice by slice. */
void sweep_init(struct sweep *s, const struct catalog *catalog, const struct gap_rows *rows, int64_t from, int64_t to,
                struct error *err);
/* Starts a slice: fills the lanes (if `fill`) from s->at to *end. Returns -1 on error. */
int sweep_begin_slice(struct sweep *s, bool fill, int64_t *end);
/* Ends the slice. Returns 1 after the last one. */
int sweep_end_slice(struct sweep *s, int64_t end);
/* Returns a culprit's number. */
uint32_t sweep_find_culprit(struct sweep *s, const struct actor *actor);
static inline uint32_t sweep_put_culprit(struct sweep *s, const struct actor *actor)
{
	const uint32_t latest = s->latest[actor->kind];
	const bool known = latest < s->culprits.len && actor_same(&s->culprits.actor[latest], actor);
	return known ? latest : sweep_find_culprit(s, actor);
}
/* Fills the lanes with each pCPU's culprits within [from, to]. Returns 1 = done, 0 = too many intervals, -1 = error. */
int sweep_fill_lanes(struct sweep *s, int64_t from, int64_t to);
/* Computes the sums for a lane's complete blocks. */
void lane_add_levels(struct sweep *s, struct lane *lane);
/* Returns the lane's interval that contains t, likely soon after the hint (SIZE_MAX: none). */
size_t lane_find(const struct lane *lane, size_t hint, int64_t t);
/* Makes a row the current one until sweep_end_row(); index: its index in rows->row. */
void sweep_begin_row(struct sweep *s, const struct target *row, uint32_t index);
/* Adds [start, end] to the current row's sum for the culprit. */
void sweep_add(struct sweep *s, uint32_t culprit, int64_t start, int64_t end);
void sweep_end_row(struct sweep *s);
/* Sweeps one slice. Returns 1 after the last slice, 0 if there are more, -1 on error. */
int sweep_step(struct sweep *s);
/* Moves the sums since the previous block to *out. Culprits are numbers in s->culprits, in no order: see
 * culprits_renumber(). */
void sweep_take_block(struct sweep *s, struct gap_block *out);
void sweep_release(struct sweep *s);
