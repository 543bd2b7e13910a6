/* Internals of the builder, shared by builder.c (changes), attribute_order.c, linked_attributes.c and finish.c (the
 * tables after the chunks). */
#pragma once

#include "history/format.h"
#include "history/history.h"
#include "history/output_file.h"
#include "history/paged_table.h"
#include "history/interval_pool.h"
#include "history/tree.h"

/* A leaf: an attribute with a type. Its intervals, oldest first, are in chunks, in `chain`, held back, and open. If
 * is_hot, all intervals that are not in chunks are in a row instead. */
struct leaf {
	union {
		struct {
			int64_t start, value;    /* open interval; UNSET and null before the first change */
			int64_t prev_start, prev_value;  /* held-back interval if has_prev: a change may reopen it */
		};
		struct {
			struct change *open;     /* is_hot: last used entry of the row, the open interval */
			const struct change *full;  /* last entry of the row that may be used */
			struct hot_row *row;
		};
		uint32_t attr;           /* after closing, if chunks were written before: id of the attribute in the file */
	};
	struct chain chain;
	uint32_t node;           /* the tree's node */
	uint8_t type;                    /* enum history_type */
	uint8_t states;          /* number of states in its set */
	bool has_prev;                   /* prev_* hold an interval; false if is_hot */
	bool is_hot;             /* the leaf has a row */
	uint16_t set;
	uint16_t pending;        /* intervals in the chain */
	uint32_t chunks;
	uint32_t mask;                   /* states that occur in its chunks, one bit each */
};

#define UNSET INT64_MAX

/* Row of a hot leaf: its intervals that are not in chunks; the last closed one is held back. */
struct hot_row {
	struct change *first;    /* first entry; may be the open interval */
	uint32_t leaf;           /* the leaf's index */
	uint32_t n_starts;
	int64_t *starts;         /* leader: starts of its latest intervals that were written; NULL: it is no leader */
	const struct hot_row *leader;  /* follower: row of its leader; NULL: no leader */
	bool has_linked_chunk;   /* a chunk of the leaf is a CHUNK_LINKED */
};
#define STARTS_MAX 1024u

/* Head of a chunk in the scratch file, followed by the ns in each state of `mask`. Read when the index is written. */
struct spilled_row {
	uint32_t attr, mask;     /* attr: the leaf's index, or, after closing, the attribute's id in the file */
	int64_t start;
	uint64_t location;       /* offset and size, as in an index row */
};
#define SPILL_MAX (sizeof(struct spilled_row) + HISTORY_STATES * sizeof(int64_t))

struct history_builder {
	struct out out;
	struct pool pool;
	struct change *hot;      /* entries of all rows; each row has space for a chunk, a held-back interval, an open one,
	                          * and the end */
	uint32_t hot_rows, hot_limit;  /* used row count, and its maximum */
	struct hot_row *row;     /* hot leave rows */
	uint32_t leaders, leader_limit;  /* leaders with followers, and its maximum */
	struct page_pool pager;              /* tables that grow with the attribute count */
	struct tree tree;
	struct paged leaf;       /* table of struct leaf */
	size_t leaves;
	struct state_set { uint32_t name, n, state[HISTORY_STATES]; } *set;
	size_t sets, sets_cap;
	struct meta { char *key; void *value; size_t size; } *meta;
	size_t metas, metas_cap;
	size_t memory;           /* memory limit, bytes */
	unsigned chunk, long_chunk;  /* intervals per chunk: of attributes with states or without a row; of other attributes
	                              * with a row */
	int64_t now, first;      /* time of the last and of the first change, ns; now: INT64_MAX before the first change */
	bool begun;
	uint64_t intervals, chunks;
	int scratch;             /* descriptor of the scratch file with the chunk heads */
	uint8_t *spill;          /* the scratch file's buffer */
	size_t spill_len;
	history_derive_fn *derive;  /* see history_derive() */
	void *derive_arg;
	bool failed;             /* a write failed, with the error in `failure` */
	struct error failure;
};

#define SPILL_BUFFER 65536u

/* Attributes in file order: numbered breadth first, children sorted by name. So a node's children have consecutive
 * ids, and readers need no table. */
struct ordered_attr {
	uint32_t parent, name;   /* the parent's id, NONE: the root; name in the strings */
	uint32_t child, children;  /* id of the first child, 0: none; number of children */
	uint32_t leaf;           /* the leaf's index; NONE: inner node */
};
/* Fills `ordered` (table of struct ordered_attr, which the caller releases) and releases the tree's nodes. Sets
 * b->failed on failure. */
void builder_number(struct history_builder *b, struct paged *ordered);

static inline unsigned builder_chunk(const struct history_builder *b, const struct leaf *leaf)
{
	return leaf->type == HISTORY_STATE ? b->chunk : b->long_chunk;
}

void linked_choose_leader(struct history_builder *b, uint32_t id);  /* Chooses the leader for the row of a leaf that becomes
                                                                 * hot. */
/* Appends the starts of the first n entries, before they are written as a chunk, to a leader's starts. */
void leader_record_starts(struct hot_row *r, const struct change *row, unsigned n);
/* Returns how many of the first n entries can be written as a CHUNK_LINKED, 0: none. skipped: numbers of leader intervals
 * between their starts. */
unsigned linked_prefix(const struct hot_row *r, const struct change *row, unsigned n, uint64_t *skipped);

/* Fails if the file is longer than the 48-bit offsets of the format can express. */
int builder_check_offset(struct history_builder *b, struct error *err);

/* Writes n intervals as a chunk; the last one ends before row[n].start. attr: as in struct spilled_row. skipped: numbers
 * of leader intervals for a CHUNK_LINKED; NULL: an ordinary chunk. */
int builder_write_chunk(struct history_builder *b, struct leaf *leaf, uint32_t attr, const struct change *row, unsigned n,
                        const uint64_t *skipped, struct error *err);
void builder_free_hot(struct history_builder *b);  /* call it after all leaves were closed */
int builder_flush_spill(struct history_builder *b, struct error *err);

/* Writes the parts of the file after the chunks: index, attributes, sets, strings, meta, checksums, header. Consumes the
 * tree and the leaves. */
int builder_write_tables(struct history_builder *b, int64_t begin, int64_t end, struct error *err);
