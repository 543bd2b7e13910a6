#include "sync/seen/mark_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/hash.h"
#include "base/mem.h"
#include "trace/trace.h"

#ifndef MARKS_MAX
#define MARKS_MAX (1u << 18)
#endif

struct mark_tally { uint32_t of[SYNC_NET_RECEIVE + 1]; };

bool mark_list_kept(const struct mark_list *l, uint64_t key)
{
	return (hash_end(hash_number(0, key)) & ((1u << l->sparse) - 1)) == 0;
}

void mark_list_add(struct mark_list *l, const struct sync_mark *m)
{
	if (!mark_list_kept(l, m->key) || l->len >= MARKS_MAX)
		return;
	*ARRAY_PUSH(l->mark, l->len, l->cap) = *m;
	while (l->len >= MARKS_MAX && l->sparse < 24) {
		l->sparse++;
		size_t n = 0;
		for (size_t i = 0; i < l->len; i++)
			if (mark_list_kept(l, l->mark[i].key))
				l->mark[n++] = l->mark[i];
		l->len = n;
	}
}

static int by_kind(const void *pa, const void *pb)
{
	const struct sync_mark *a = pa, *b = pb;
	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->ts < b->ts ? -1 : a->ts > b->ts;
}

void mark_list_sort(struct mark_list *l)
{
	if (l->len > 0)
		qsort(l->mark, l->len, sizeof *l->mark, by_kind);
	free(l->tally);
	l->tallies = 1;
	for (size_t i = 0; i < l->len; i++)
		if ((size_t)(l->mark[i].where + 1) >= l->tallies)
			l->tallies = (size_t)(l->mark[i].where + 1) + 1;
	l->tally = mem_new(l->tallies, sizeof *l->tally);
	for (size_t i = 0; i < l->len; i++)
		if (l->mark[i].end <= SYNC_NET_RECEIVE)
			l->tally[l->mark[i].where + 1].of[l->mark[i].end]++;
}

size_t mark_list_count(const struct mark_list *l, unsigned end, const bool *mine)
{
	size_t n = 0;
	for (size_t i = 0; i < l->tallies; i++)
		n += i == 0 || !mine || mine[i - 1] ? l->tally[i].of[end] : 0;
	return n;
}

void mark_list_release(struct mark_list *l)
{
	free(l->mark);
	free(l->tally);
	memset(l, 0, sizeof *l);
}
