/* Linked attributes: attributes that change together with another one, the leader. Their chunks (CHUNK_LINKED) store
 * numbers of leader intervals instead of times.
 *
 * The leader is chosen when an attribute gets a row: the state attribute of the same node with most chunks. From then on
 * the leader records the starts of its latest written intervals, and a follower's chunk becomes a CHUNK_LINKED if all its
 * starts are among them. Intervals after the last of these starts wait for the next chunk. Cost: one pass over the
 * leader's starts for each chunk of a follower; 8 KiB per leader. */
#include <assert.h>

#include "base/base.h"
#include "history/builder.h"
#include "history/chunk.h"

#define SIBLINGS 16    /* most siblings considered as leader */
#define RATIO_MAX 8   /* maximum ratio of leader intervals to follower intervals in a chunk: readers must read both */

static_assert(RATIO_MAX * CHUNK_MAX <= CHUNK_SKIP_MAX, "what is written can be read");

void linked_choose_leader(struct history_builder *b, uint32_t id)
{
	const struct leaf *leaf = PAGED_READ(&b->leaf, struct leaf, id);
	struct hot_row *const row = leaf->row, *leader = NULL;
	uint32_t max_chunks = 0;
	if (leaf->type == HISTORY_STATE)
		return;
	uint32_t node = tree_node(&b->tree, tree_node(&b->tree, leaf->node).parent).child;
	for (unsigned i = 0; i < SIBLINGS && node != NONE; i++) {
		const struct node n = tree_node(&b->tree, node);
		node = n.sibling;
		leaf = n.leaf == NONE ? NULL : PAGED_READ(&b->leaf, struct leaf, n.leaf);
		if (!leaf || leaf->type != HISTORY_STATE || !leaf->is_hot || leaf->chunks <= max_chunks)
			continue;
		max_chunks = leaf->chunks;
		leader = leaf->row;
	}
	if (!leader)
		return;
	if (!leader->starts && b->leaders < b->leader_limit) {
		leader->starts = mem_new(STARTS_MAX, sizeof *leader->starts);
		b->leaders++;
	}
	row->leader = leader->starts ? leader : NULL;
}

void leader_record_starts(struct hot_row *r, const struct change *row, unsigned n)
{
	if (!r->starts)
		return;
	if (r->n_starts + n + 1 > STARTS_MAX) {
		memmove(r->starts, r->starts + r->n_starts - STARTS_MAX / 2, STARTS_MAX / 2 * sizeof *r->starts);
		r->n_starts = STARTS_MAX / 2;
	}
	int64_t *to = r->starts + r->n_starts;
	for (size_t i = r->n_starts != 0; i <= n; i++)  /* row[0].start was recorded as the end of the previous chunk */
		*to++ = row[i].start;
	r->n_starts = (uint32_t)(to - r->starts);
}

/* Returns the last recorded start at or before t; NULL: none. */
static const int64_t *start_at(const struct hot_row *r, int64_t t)
{
	size_t low = 0, high = r->n_starts;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (r->starts[middle] <= t)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &r->starts[low - 1] : NULL;
}

unsigned linked_prefix(const struct hot_row *r, const struct change *row, unsigned n, uint64_t *skipped)
{
	if (!r->leader)
		return 0;
	const int64_t *const first = start_at(r->leader, row[0].start), *const end = r->leader->starts + r->leader->n_starts;
	const int64_t *at = first;
	unsigned i = 1;
	for (; at && i < n; i++) {
		const int64_t *next = at + 1;
		while (next < end && *next < row[i].start)
			next++;
		if (next == end)
			break;
		if (*next != row[i].start)
			return 0;
		skipped[i - 1] = (uint64_t)(next - at) - 1;
		at = next;
	}
	return at && i > n / 2 && at - first <= (ptrdiff_t)(RATIO_MAX * i) ? i : 0;
}
