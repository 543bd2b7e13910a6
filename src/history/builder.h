/* The inside of a history builder, shared by builder.c (changes come in) and finish.c (the rest of the file). */
#ifndef STEALSCOPE_HISTORY_BUILDER_H
#define STEALSCOPE_HISTORY_BUILDER_H

#include "history/format.h"
#include "history/history.h"
#include "history/output_file.h"
#include "history/paged_table.h"
#include "history/interval_pool.h"
#include "history/tree.h"

/* A typed attribute.  Its intervals so far, oldest first: in chunks; in `chain`; held back; open.  Where is_hot, all that
 * are in no chunk are one row. */
struct leaf {
	union {
		struct {
			int64_t start, value;            /* of the open interval; before the first change UNSET and null */
			int64_t prev_start, prev_value;  /* where has_prev: of the one before, which a change may reopen */
		};
		struct {
			struct kept *open;               /* where is_hot: the last of its row */
			const struct kept *full;         /* which is there when the row is full */
			struct hot_row *row;
		};
		uint32_t attr;                           /* once closed: its id in the file, if it had chunks before */
	};
	struct chain chain;
	uint32_t node;                   /* of the tree */
	uint8_t type;                    /* enum history_type */
	uint8_t states;                  /* in its set */
	bool has_prev;                   /* prev_* hold an interval; never where is_hot */
	bool is_hot;                     /* it has a row: of what is closed there, the last one is held back */
	uint16_t set;
	uint16_t pending;                /* intervals that wait in the chain */
	uint32_t chunks;
	uint32_t mask;                   /* states in its chunks */
};

#define UNSET INT64_MAX

/* A row of b->hot. */
struct hot_row {
	struct kept *first;              /* which may be the open one */
	uint32_t leaf;                   /* whose it is */
	uint32_t pasts;
	int64_t *past;                   /* where others follow it: the last starts of its intervals that are final; or NULL */
	const struct hot_row *leader;        /* the row whose intervals its own may start with; or NULL */
	bool echoes;                     /* there is a chunk in which they do */
};
#define PAST_KEPT 1024u

/* One chunk, as the scratch file keeps it until the index is written: this, then ns per state of `mask`. */
struct spill {
	uint32_t of, mask;               /* of: the leaf; once leaves are closed, the attribute in the file */
	int64_t start;
	uint64_t place;
};
#define SPILL_MAX (sizeof(struct spill) + HISTORY_STATES * sizeof(int64_t))

struct history_builder {
	struct out out;
	struct pool pool;
	struct kept *hot;                /* rows for leaves that have filled a chunk: that, one held back, one open, its end */
	uint32_t hots, hot_limit;        /* leaves that have done so, and for which there is room */
	struct hot_row *row;                 /* of each of them */
	uint32_t leads, lead_limit;      /* rows that others follow, and for which there is room */
	struct page_pool pager;              /* of what grows with the number of attributes */
	struct tree tree;
	struct paged leaf;               /* of struct leaf */
	size_t leaves;
	struct state_set { uint32_t name, n, state[HISTORY_STATES]; } *set;
	size_t sets, sets_cap;
	struct meta { char *key; void *value; size_t size; } *meta;
	size_t metas, metas_cap;
	size_t memory;                   /* bytes allowed */
	unsigned chunk, wide;            /* intervals per chunk: of states; of other values of an attribute that has a row */
	int64_t now, first;              /* time of the last and of the first change; before that, now is INT64_MAX */
	bool begun;
	uint64_t intervals, chunks;
	int scratch;                     /* file of struct spill */
	uint8_t *spill;                  /* its buffer */
	size_t spill_len;
	bool failed;                     /* nothing can be written any more: see failure */
	struct error failure;
};

#define SPILL_BUFFER 65536u

/* Attributes as the file has them: numbered breadth first, children sorted by name, so that the children of a node are
 * neighbours and a reader needs no table to find one. */
struct placed {
	uint32_t parent, name;           /* parent: NONE of the root */
	uint32_t child, children;        /* child: of the first one, or 0 */
	uint32_t leaf;                   /* or NONE */
};
/* Fills `placed` (of struct placed, released by the caller) and releases the tree's nodes.  Fails as b->failed says. */
void builder_number(struct history_builder *b, struct paged *placed);

static inline unsigned builder_chunk(const struct history_builder *b, const struct leaf *leaf)
{
	return leaf->type == HISTORY_STATE ? b->chunk : b->wide;
}

void echo_find_leader(struct history_builder *b, uint32_t id);  /* of a leaf that is hot now */
/* Before the first n of a row leave it for a chunk. */
void echo_keep(struct hot_row *r, const struct kept *kept, unsigned n);
/* How many of the first n of a row can be a chunk that echoes its leader, and what that has in place of durations. */
unsigned echo_count(const struct hot_row *r, const struct kept *kept, unsigned n, uint64_t *skipped);

int builder_check_place(struct history_builder *b, struct error *err);  /* can what comes next be pointed at? */

/* Writes n intervals as a chunk, the last of which ends before row[n].start; of: as in struct spill.  skipped: what an
 * echo has, or NULL. */
int builder_write_chunk(struct history_builder *b, struct leaf *leaf, uint32_t of, const struct kept *row, unsigned n,
                        const uint64_t *skipped, struct error *err);
void builder_free_hot(struct history_builder *b);  /* once all leaves are closed */
int builder_flush_spill(struct history_builder *b, struct error *err);

/* After the chunks: index, attributes, sets, strings, meta, checksums, header.  Consumes the tree and the leaves. */
int builder_write_tables(struct history_builder *b, int64_t begin, int64_t end, struct error *err);

#endif
