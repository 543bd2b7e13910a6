#include "model/polling.h"

#include "model/state.h"

#define NEVER INT64_MAX

void polling_exit(struct polling *p, int64_t now)
{
	p->since = now;
	p->out = NEVER;
}

void polling_forget(struct polling *p)
{
	p->window = p->next = -1;
	p->since = NEVER;  /* what was lost may be the end of a halt */
	p->out = NEVER;
}

void polling_place(struct model *m, struct vcpu *v, enum vcpu_place place)
{
	if (place == PLACE_BLOCKED && v->polling.out == NEVER)
		v->polling.out = m->sink.now;
}

void polling_window(struct vcpu *v, const struct event *ev)
{
	struct polling *p = &v->polling;
	if (ev->halt_poll.old != EVENT_ABSENT)
		p->window = ev->halt_poll.old;
	p->next = ev->halt_poll.ns;
}

static void tell(struct model *m, struct vcpu *v, int64_t from, int64_t to, enum poll_outcome outcome)
{
	if (from >= to)
		return;
	if (v->polling.attr == HISTORY_NONE)
		v->polling.attr = cpu_attribute(v->vm, v->number, CPU_POLLING);
	sink_set_at(&m->sink, from, v->polling.attr, outcome);
	sink_set_at(&m->sink, to, v->polling.attr, HISTORY_NULL);
}

void polling_over(struct model *m, struct vcpu *v, const struct event *ev)
{
	struct polling *p = &v->polling;
	const int64_t now = m->sink.now, ns = ev->wakeup.ns;
	int64_t from = ns >= 0 && ns < now ? now - ns : now;
	from = from > p->since ? from : p->since;
	if (p->since == INT64_MIN || p->since == NEVER)
		from = now;
	const bool slept = p->out != NEVER;
	if (p->window < 0 && slept == (ev->wakeup.waited != 0))
		tell(m, v, from, slept ? p->out : now, POLL_UNTOLD);
	else if (!ev->wakeup.waited && !slept && p->window > 0)
		tell(m, v, from, now, POLL_WON);
	else if (ev->wakeup.waited && slept && p->out > from)
		tell(m, v, from, p->window < p->out - from ? from + p->window : p->out, POLL_LOST);
	p->window = p->next;
	p->since = now;
	p->out = NEVER;
}
