/* Event queue: a binary heap ordered by time, then by arrival. push and pop cost O(log n). */
#include <stdlib.h>

#include "base/mem.h"
#include "sim.h"

static bool is_before(const struct due *a, const struct due *b)
{
	return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

void queue_push(struct queue *q, int64_t at, enum due_kind kind, void *owner, uint32_t gen)
{
	struct due d = { at, q->seq++, owner, gen, (uint8_t)kind };
	size_t i;

	q->item = array_grow(q->item, &q->cap, q->len, sizeof *q->item);
	for (i = q->len++; i && is_before(&d, &q->item[(i - 1) / 2]); i = (i - 1) / 2)
		q->item[i] = q->item[(i - 1) / 2];
	q->item[i] = d;
}

bool queue_pop(struct queue *q, struct due *out)
{
	struct due last;
	size_t i = 0, child;

	if (!q->len)
		return false;
	*out = q->item[0];
	last = q->item[--q->len];
	while ((child = 2 * i + 1) < q->len) {
		if (child + 1 < q->len && is_before(&q->item[child + 1], &q->item[child]))
			child++;
		if (!is_before(&q->item[child], &last))
			break;
		q->item[i] = q->item[child];
		i = child;
	}
	if (q->len)
		q->item[i] = last;
	return true;
}

void queue_release(struct queue *q)
{
	free(q->item);
}
