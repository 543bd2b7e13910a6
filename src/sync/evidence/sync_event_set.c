#include "sync/evidence/sync_event_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

#ifndef MARKS_MAX
#define MARKS_MAX (1u << 18)
#endif
#define MARKS_ENOUGH (1u << 12)

bool mark_list_kept(const struct mark_list *l, uint64_t key)
{
	return (hash_end(hash_number(0, key)) & ((1u << l->sparse) - 1)) == 0;
}

void mark_list_share(struct mark_list *l, size_t lists)
{
	l->most = MARKS_MAX / (lists ? lists : 1);
	l->most = l->most < MARKS_ENOUGH ? MARKS_ENOUGH : l->most;
}

void mark_list_thin(struct mark_list *l, unsigned sparse)
{
	size_t n = 0;
	if (sparse <= l->sparse)
		return;
	l->sparse = sparse;
	for (size_t i = 0; i < l->len; i++)
		if (mark_list_kept(l, l->mark[i].key))
			l->mark[n++] = l->mark[i];
	l->len = n;
}

void mark_list_add(struct mark_list *l, const struct sync_mark *m)
{
	const size_t most = l->most && l->most < MARKS_MAX ? l->most : MARKS_MAX;
	if (!mark_list_kept(l, m->key) || l->len >= most)
		return;
	*ARRAY_PUSH(l->mark, l->len, l->cap) = *m;
	while (l->len >= most && l->sparse < 24)
		mark_list_thin(l, l->sparse + 1);
}

static int by_kind(const void *pa, const void *pb)
{
	const struct sync_mark *a = pa, *b = pb;
	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	if (a->owner != b->owner)
		return a->owner < b->owner ? -1 : 1;
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->ts < b->ts ? -1 : a->ts > b->ts;
}

void mark_list_sort(struct mark_list *l)
{
	if (l->len > 0)
		qsort(l->mark, l->len, sizeof *l->mark, by_kind);
}

/* Damaged traces have times of all sizes: what lies between two of them need not be an int64_t. */
static bool is_in_stretch(int64_t ts, int64_t begin, uint64_t every, uint64_t length)
{
	return ts >= begin && ((uint64_t)ts - (uint64_t)begin) % every < length;
}

void mark_list_few(const struct mark_list *l, int64_t begin, int64_t end, size_t marks, struct mark_list *out)
{
	*out = (struct mark_list){ .sparse = l->sparse };
	if (l->len < 2 * marks || begin > end)
		return;
	const uint64_t every = ((uint64_t)end - (uint64_t)begin) / (marks / MARKS_OF_STRETCH) + 1;
	const uint64_t length = (uint64_t)((double)every * (double)marks / (double)l->len);
	for (size_t i = 0, next; i < l->len; i = next) {
		bool is_in = false;
		for (next = i; next < l->len && l->mark[next].end == l->mark[i].end && l->mark[next].key == l->mark[i].key; next++)
			is_in |= is_in_stretch(l->mark[next].ts, begin, every, length);
		for (; is_in && i < next; i++)
			*ARRAY_PUSH(out->mark, out->len, out->cap) = l->mark[i];
	}
}

void mark_list_release(struct mark_list *l)
{
	free(l->mark);
	memset(l, 0, sizeof *l);
}
