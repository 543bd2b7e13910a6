#include "model/loss/hidden_threads.h"

static size_t find(const struct hidden_threads *h, int32_t tid)
{
	size_t i = 0;
	while (i < h->len && h->thread[i].tid != tid)
		i++;
	return i;
}

void hidden_threads_add(struct hidden_threads *h, int32_t tid, uint32_t name)
{
	size_t i = find(h, tid);
	if (i == HIDDEN_THREADS_MAX)
		return;
	if (i == h->len)
		h->thread[h->len++] = (struct hidden_thread){ .tid = tid };
	h->thread[i].name = name ? name : h->thread[i].name;
	for (h->thread[i].times++; i > 0 && h->thread[i].times > h->thread[i - 1].times; i--) {
		const struct hidden_thread moved = h->thread[i];
		h->thread[i] = h->thread[i - 1];
		h->thread[i - 1] = moved;
	}
}

void hidden_threads_remove(struct hidden_threads *h, int32_t tid)
{
	size_t i = find(h, tid);
	if (i < h->len)
		for (h->len--; i < h->len; i++)
			h->thread[i] = h->thread[i + 1];
}

uint64_t hidden_threads_times(const struct hidden_threads *h)
{
	uint64_t times = 0;
	for (size_t i = 0; i < h->len; i++)
		times += h->thread[i].times;
	return times;
}
