#include "sync/evidence/sync_event_set.h"

#include "base/hash.h"

#ifndef SYNC_EVENTS_MAX
#define SYNC_EVENTS_MAX (1u << 18)
#endif
#define SYNC_EVENTS_MIN (1u << 12)

bool sync_event_set_keeps(const struct sync_event_set *l, uint64_t key)
{
	return (hash_end(hash_number(0, key)) & ((1u << l->key_bits) - 1)) == 0;
}

void sync_event_set_divide_limit(struct sync_event_set *l, size_t lists)
{
	l->limit = SYNC_EVENTS_MAX / (lists ? lists : 1);
	l->limit = l->limit < SYNC_EVENTS_MIN ? SYNC_EVENTS_MIN : l->limit;
}

void sync_event_set_thin(struct sync_event_set *l, unsigned key_bits)
{
	size_t n = 0;
	if (key_bits <= l->key_bits)
		return;
	l->key_bits = key_bits;
	for (size_t i = 0; i < l->len; i++)
		if (sync_event_set_keeps(l, l->event[i].key))
			l->event[n++] = l->event[i];
	l->len = n;
}

void sync_event_set_add(struct sync_event_set *l, const struct sync_event *m)
{
	const size_t limit = l->limit && l->limit < SYNC_EVENTS_MAX ? l->limit : SYNC_EVENTS_MAX;
	if (!sync_event_set_keeps(l, m->key) || l->len >= limit)
		return;
	*ARRAY_PUSH(l->event, l->len, l->cap) = *m;
	while (l->len >= limit && l->key_bits < 24)
		sync_event_set_thin(l, l->key_bits + 1);
}

ORDER_BY(compare_events, struct sync_event, RISING(end) RISING(owner) RISING(key) RISING(ts))

void sync_event_set_sort(struct sync_event_set *l)
{
	ARRAY_SORT(l->event, l->len, compare_events);
}

/* Returns true if ts is in a sampled slice: the first `length` ns of every `every` ns. Unsigned, because the difference
 * of two times of a damaged trace may exceed int64_t. */
static bool is_in_slice(int64_t ts, int64_t begin, uint64_t every, uint64_t length)
{
	return ts >= begin && ((uint64_t)ts - (uint64_t)begin) % every < length;
}

void sync_event_set_sample(const struct sync_event_set *l, int64_t begin, int64_t end, size_t n_events,
                           struct sync_event_set *out)
{
	*out = (struct sync_event_set){ .key_bits = l->key_bits };
	if (l->len < 2 * n_events || begin > end)
		return;
	const uint64_t every = ((uint64_t)end - (uint64_t)begin) / (n_events / EVENTS_PER_SLICE) + 1;
	const uint64_t length = (uint64_t)((double)every * (double)n_events / (double)l->len);
	for (size_t i = 0, next; i < l->len; i = next) {
		bool in_slice = false;
		for (next = i; next < l->len && l->event[next].end == l->event[i].end && l->event[next].key == l->event[i].key;
		     next++)
			in_slice |= is_in_slice(l->event[next].ts, begin, every, length);
		for (; in_slice && i < next; i++)
			*ARRAY_PUSH(out->event, out->len, out->cap) = l->event[i];
	}
}

void sync_event_set_release(struct sync_event_set *l)
{
	free(l->event);
	memset(l, 0, sizeof *l);
}
