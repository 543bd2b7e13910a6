#include "trace/perf/perf_queue.h"

#include "base/base.h"

#define CPU_NUMBERS 65536

void perf_queue_open(struct perf_queue *q, struct event_sink *out)
{
	*q = (struct perf_queue){ .out = out, .newest = INT64_MIN, .limit = INT64_MIN };
	q->index = mem_new(CPU_NUMBERS, sizeof *q->index);
}

void perf_queue_release(struct perf_queue *q)
{
	for (size_t i = 0; i < q->cpus; i++)
		free(q->cpu[i].queued);
	free(q->cpu);
	free(q->index);
	*q = (struct perf_queue){ 0 };
}

struct perf_cpu *perf_queue_cpu(struct perf_queue *q, uint16_t number)
{
	uint32_t *index = &q->index[number];
	if (*index)
		return &q->cpu[*index - 1];
	struct perf_cpu *c = ARRAY_PUSH(q->cpu, q->cpus, q->cpus_cap);
	*c = (struct perf_cpu){ .number = number, .newest = INT64_MIN };
	*index = (uint32_t)q->cpus;
	return c;
}

/* ---- passing on */

ORDER_BY(by_time, struct queued_event, RISING(event.ts) RISING(order))

static void sort_queued(struct perf_cpu *c)
{
	if (c->is_unsorted)
		qsort(c->queued, c->len, sizeof *c->queued, by_time);
	c->is_unsorted = false;
}

/* Passes the first n events of the CPU on. */
static int pass_on(struct perf_queue *q, struct perf_cpu *c, size_t n)
{
	if (!n)
		return 0;
	if (!c->stream)
		c->stream = ++q->streams;
	if (event_sink_select_stream(q->out, c->stream - 1, c->number))
		return -1;
	for (size_t i = 0; i < n; i++) {
		c->has_sample |= c->queued[i].is_sample;
		if (c->has_sample && event_sink_put(q->out, &c->queued[i].event))
			return -1;
	}
	memmove(c->queued, c->queued + n, (c->len - n) * sizeof *c->queued);
	c->len -= n;
	q->len -= n;
	return 0;
}

/* Passes the events up to the time `limit` on. */
static int pass_until(struct perf_queue *q, int64_t limit)
{
	for (size_t i = 0; i < q->cpus; i++) {
		struct perf_cpu *c = &q->cpu[i];
		size_t n = 0;
		sort_queued(c);
		while (n < c->len && c->queued[n].event.ts <= limit)
			n++;
		if (pass_on(q, c, n))
			return -1;
	}
	return 0;
}

static int pass_older_half(struct perf_queue *q)
{
	for (size_t i = 0; i < q->cpus; i++) {
		sort_queued(&q->cpu[i]);
		if (pass_on(q, &q->cpu[i], (q->cpu[i].len + 1) / 2))
			return -1;
	}
	return 0;
}

int perf_queue_end_round(struct perf_queue *q)
{
	const int64_t limit = q->limit;
	q->limit = q->newest;
	return pass_until(q, limit);
}

/* ---- adding */

static int push(struct perf_queue *q, struct perf_cpu *c, const struct event *ev, bool is_sample)
{
	c->is_unsorted |= c->len && ev->ts < c->queued[c->len - 1].event.ts;
	*ARRAY_PUSH(c->queued, c->len, c->cap) = (struct queued_event){ *ev, q->order++, is_sample };
	q->len++;
	return q->len > PERF_QUEUE_MAX ? pass_older_half(q) : 0;
}

/* Adds the loss before the next event, which has the time `next`. */
static int push_lost(struct perf_queue *q, struct perf_cpu *c, int64_t next)
{
	struct event lost = c->lost;
	if (!c->has_lost)
		return 0;
	c->has_lost = false;
	if (lost.ts == INT64_MIN)
		lost.ts = lost.lost.end == INT64_MIN || lost.lost.end > next ? next : lost.lost.end;
	if (lost.lost.end == INT64_MIN || lost.lost.end > next)
		lost.lost.end = next;
	lost.ts = lost.ts < lost.lost.end ? lost.ts : lost.lost.end;
	q->out->faults.uncounted += lost.lost.count == EVENT_ABSENT;
	return push(q, c, &lost, true);
}

int perf_queue_put(struct perf_queue *q, const struct event *ev)
{
	struct perf_cpu *c = perf_queue_cpu(q, ev->cpu);
	if (push_lost(q, c, ev->ts) || push(q, c, ev, true))
		return -1;
	c->newest = ev->ts > c->newest ? ev->ts : c->newest;
	q->newest = ev->ts > q->newest ? ev->ts : q->newest;
	return 0;
}

int perf_queue_put_sideband(struct perf_queue *q, const struct event *ev)
{
	return push(q, perf_queue_cpu(q, ev->cpu), ev, false);
}

void perf_queue_lose(struct perf_queue *q, uint16_t cpu, int64_t at, int64_t count)
{
	struct perf_cpu *c = perf_queue_cpu(q, cpu);
	if (!c->has_lost)
		c->lost = (struct event){ .kind = EV_LOST, .cpu = cpu, .tid = -1, .pid = -1, .lost = { INT64_MIN, count },
			.ts = c->newest == INT64_MIN ? INT64_MIN : c->newest + 1 };
	else if (count == EVENT_ABSENT || c->lost.lost.count == EVENT_ABSENT ||
	         __builtin_add_overflow(c->lost.lost.count, count, &c->lost.lost.count))
		c->lost.lost.count = EVENT_ABSENT;
	c->has_lost = true;
	c->lost.lost.end = at;
}

void perf_queue_lose_all(struct perf_queue *q)
{
	for (size_t i = 0; i < q->cpus; i++)
		perf_queue_lose(q, q->cpu[i].number, INT64_MIN, EVENT_ABSENT);
}

/* ---- the end */

int perf_queue_close(struct perf_queue *q)
{
	int status = 0;
	for (size_t i = 0; i < q->cpus && !status; i++) {
		struct perf_cpu *c = &q->cpu[i];
		if (c->lost_total > c->lost_counted && c->lost_total <= INT64_MAX)
			perf_queue_lose(q, c->number, INT64_MIN, (int64_t)(c->lost_total - c->lost_counted));
		status = q->newest == INT64_MIN ? 0 : push_lost(q, c, q->newest);
	}
	if (!status)
		status = pass_until(q, INT64_MAX);
	perf_queue_release(q);
	return status;
}
