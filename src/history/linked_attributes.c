/* Attributes that change when another one does: their chunks count its intervals instead of times.
 *
 * Which one leads is found when an attribute gets a row: the busiest state attribute beside it.  From then on a leader
 * keeps the last starts that nothing can take back, those of what is in its chunks, and a chunk is an echo if its starts
 * are among them.  What is behind the last of them waits for the next chunk.
 * Cost: a leader's starts are walked through once for each chunk that follows them; 8 KiB for each leader. */
#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "history/builder.h"
#include "history/chunk.h"

#define SIBLINGS 16    /* that are looked at for a leader */
#define RATIO_MOST 8   /* intervals of the leader for one, in a chunk: who reads them reads those */

static_assert(RATIO_MOST * CHUNK_MAX <= CHUNK_SKIP_MAX, "what is written can be read");

void echo_find_leader(struct history_builder *b, uint32_t id)
{
	const struct leaf *leaf = PAGED_READ(&b->leaf, struct leaf, id);
	struct hot_row *const own = leaf->row, *leader = NULL;
	uint32_t most = 0;
	if (leaf->type == HISTORY_STATE)
		return;
	uint32_t node = tree_node(&b->tree, tree_node(&b->tree, leaf->node).parent).child;
	for (unsigned i = 0; i < SIBLINGS && node != NONE; i++) {
		const struct node n = tree_node(&b->tree, node);
		node = n.sibling;
		leaf = n.leaf == NONE ? NULL : PAGED_READ(&b->leaf, struct leaf, n.leaf);
		if (!leaf || leaf->type != HISTORY_STATE || !leaf->is_hot || leaf->chunks <= most)
			continue;
		most = leaf->chunks;
		leader = leaf->row;
	}
	if (!leader)
		return;
	if (!leader->past && b->leads < b->lead_limit) {
		leader->past = mem_new(PAST_KEPT, sizeof *leader->past);
		b->leads++;
	}
	own->leader = leader->past ? leader : NULL;
}

void echo_keep(struct hot_row *r, const struct kept *kept, unsigned n)
{
	if (!r->past)
		return;
	if (r->pasts + n + 1 > PAST_KEPT) {
		memmove(r->past, r->past + r->pasts - PAST_KEPT / 2, PAST_KEPT / 2 * sizeof *r->past);
		r->pasts = PAST_KEPT / 2;
	}
	int64_t *to = r->past + r->pasts;
	for (size_t i = r->pasts != 0; i <= n; i++)  /* the first one was the last one's end */
		*to++ = kept[i].start;
	r->pasts = (uint32_t)(to - r->past);
}

/* The last of the starts that is not behind t; NULL: there is none. */
static const int64_t *past_at(const struct hot_row *r, int64_t t)
{
	size_t low = 0, high = r->pasts;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (r->past[middle] <= t)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &r->past[low - 1] : NULL;
}

unsigned echo_count(const struct hot_row *r, const struct kept *kept, unsigned n, uint64_t *skipped)
{
	if (!r->leader)
		return 0;
	const int64_t *const first = past_at(r->leader, kept[0].start), *const end = r->leader->past + r->leader->pasts;
	const int64_t *at = first;
	unsigned i = 1;
	for (; at && i < n; i++) {
		const int64_t *next = at + 1;
		while (next < end && *next < kept[i].start)
			next++;
		if (next == end)
			break;
		if (*next != kept[i].start)
			return 0;
		skipped[i - 1] = (uint64_t)(next - at) - 1;
		at = next;
	}
	return at && i > n / 2 && at - first <= (ptrdiff_t)(RATIO_MOST * i) ? i : 0;
}
