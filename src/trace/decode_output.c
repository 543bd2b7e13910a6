#include "trace/decode_output.h"

#include "base/base.h"

struct decoded *task_add_stream(struct task *t)
{
	struct decoded *d = mem_new(1, sizeof *d);
	stream_init(&d->records);
	*ARRAY_PUSH(t->out, t->outs, t->outs_cap) = d;
	return d;
}

void task_release_results(struct task *t, struct store *store)
{
	for (size_t i = 0; i < t->outs; i++) {
		struct decoded *d = t->out[i];
		for (size_t k = 0; k < d->damages; k++)
			free(d->damage[k].why);
		free(d->damage);
		free(d->coverage);
		stream_release(&d->records, store);
		free(d);
	}
	free(t->out);
	t->out = NULL;
	t->outs = t->outs_cap = 0;
	t->faults = (struct faults){ 0 };
	t->status = 0;
}

static struct recorder *recorder_of(struct event_sink *o)
{
	return (struct recorder *)o;  /* event_sink is the first member of struct recorder */
}

void recorder_open(struct recorder *r, const struct event_sink_ops *ops, struct store *store, struct decoded *out,
                   struct error *err)
{
	*r = (struct recorder){ .event_sink = { .ops = ops, .err = err }, .out = out };
	writer_open(&r->writer, store, &out->records);
}

int recorder_close(struct recorder *r)
{
	r->out->clamped = r->writer.clamped;
	return writer_close(&r->writer, r->event_sink.err);
}

int recorder_put(struct event_sink *o, const struct event *ev)
{
	struct recorder *r = recorder_of(o);
	if (ev->kind == EV_LOST && ev->lost.count != EVENT_ABSENT && ev->lost.count > 0)
		r->out->lost_events += (uint64_t)ev->lost.count;
	r->cpu = ev->cpu;
	return writer_put(&r->writer, ev, o->err);
}

int recorder_add_coverage(struct event_sink *o, uint16_t cpu, int64_t begin, int64_t end)
{
	struct decoded *d = recorder_of(o)->out;
	size_t i = d->coverages;
	while (i && d->coverage[i - 1].cpu != cpu)
		i--;
	if (end < begin)
		return 0;
	if (!i) {
		*ARRAY_PUSH(d->coverage, d->coverages, d->coverages_cap) = (struct decode_coverage){ cpu, begin, end };
		return 0;
	}
	struct decode_coverage *c = &d->coverage[i - 1];
	c->begin = begin < c->begin ? begin : c->begin;
	c->end = end > c->end ? end : c->end;
	return 0;
}

int recorder_put_unknown(struct event_sink *o)
{
	const struct recorder *r = recorder_of(o);
	const int64_t ts = r->writer.ts;
	if (ts == INT64_MIN)
		return 0;
	return recorder_put(o, &(struct event){ .ts = ts, .kind = EV_LOST, .cpu = r->cpu, .tid = -1, .pid = -1,
		.lost = { ts, EVENT_ABSENT } });
}

int recorder_report_damage(struct event_sink *o, const char *why, bool continues)
{
	struct recorder *r = recorder_of(o);
	struct decoded *d = r->out;
	*ARRAY_PUSH(d->damage, d->damages, d->damages_cap) =
		(struct damage){ mem_dup(why), d->records.events, continues };
	return recorder_put_unknown(o);
}
