#include "trace/decode_output.h"

#include <stdlib.h>

#include "base/mem.h"

struct decoded *task_add(struct task *t)
{
	struct decoded *d = mem_new(1, sizeof *d);
	stream_init(&d->records);
	*ARRAY_PUSH(t->out, t->outs, t->outs_cap) = d;
	return d;
}

void task_forget(struct task *t, struct store *store)
{
	for (size_t i = 0; i < t->outs; i++) {
		struct decoded *d = t->out[i];
		for (size_t k = 0; k < d->damages; k++)
			free(d->damage[k].why);
		free(d->damage);
		free(d->covered);
		stream_release(&d->records, store);
		free(d);
	}
	free(t->out);
	t->out = NULL;
	t->outs = t->outs_cap = 0;
	t->faults = (struct faults){ 0 };
	t->status = 0;
}

static struct recorder *recorder_of(struct outlet *o)
{
	return (struct recorder *)o;  /* its first member */
}

void recorder_open(struct recorder *r, const struct outlet_ops *ops, struct store *store, struct decoded *out,
                   struct error *err)
{
	*r = (struct recorder){ .outlet = { .ops = ops, .err = err }, .out = out };
	writer_open(&r->writer, store, &out->records);
}

int recorder_close(struct recorder *r)
{
	r->out->clamped = r->writer.clamped;
	return writer_close(&r->writer, r->outlet.err);
}

int recorder_put(struct outlet *o, const struct event *ev)
{
	struct recorder *r = recorder_of(o);
	if (ev->kind == EV_LOST && ev->lost.count != EVENT_ABSENT && ev->lost.count > 0)
		r->out->lost_events += (uint64_t)ev->lost.count;
	r->cpu = ev->cpu;
	return writer_put(&r->writer, ev, o->err);
}

int recorder_covers(struct outlet *o, uint16_t cpu, int64_t begin, int64_t end)
{
	struct decoded *d = recorder_of(o)->out;
	size_t i = d->covers;
	while (i && d->covered[i - 1].cpu != cpu)
		i--;
	if (end < begin)
		return 0;
	if (!i) {
		*ARRAY_PUSH(d->covered, d->covers, d->covers_cap) = (struct coverage){ cpu, begin, end };
		return 0;
	}
	struct coverage *c = &d->covered[i - 1];
	c->begin = begin < c->begin ? begin : c->begin;
	c->end = end > c->end ? end : c->end;
	return 0;
}

int recorder_lose_rest(struct outlet *o)
{
	const struct recorder *r = recorder_of(o);
	const int64_t ts = r->writer.ts;
	if (ts == INT64_MIN)
		return 0;
	return recorder_put(o, &(struct event){ .ts = ts, .kind = EV_LOST, .cpu = r->cpu, .tid = -1, .pid = -1,
		.lost = { ts, EVENT_ABSENT } });
}

int recorder_damaged(struct outlet *o, const char *why, bool goes_on)
{
	struct recorder *r = recorder_of(o);
	struct decoded *d = r->out;
	*ARRAY_PUSH(d->damage, d->damages, d->damages_cap) =
		(struct damage){ mem_dup(why), d->records.events, goes_on };
	return recorder_lose_rest(o);
}
