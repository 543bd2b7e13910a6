#include "model/state/halt_polling.h"

#include "model/state/state.h"

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

void polling_sleeps(struct polling *p, int64_t now)
{
	if (p->out == NEVER)
		p->out = now;
}

void polling_window(struct vcpu *v, const struct event *ev)
{
	struct polling *p = &v->polling;
	if (ev->halt_poll.old != EVENT_ABSENT)
		p->window = ev->halt_poll.old;
	p->next = ev->halt_poll.ns;
}

static void set(struct model *m, struct vcpu *v, int64_t t, int64_t value)
{
	if (v->polling.attr == HISTORY_NONE)
		v->polling.attr = cpu_attribute(v->vm, v->number, CPU_POLLING);
	sink_set_at(&m->sink, t, v->polling.attr, value);
}

static void tell(struct model *m, struct vcpu *v, int64_t from, int64_t to, enum poll_outcome outcome)
{
	if (from >= to)
		return;
	set(m, v, from, outcome);
	set(m, v, to, HISTORY_NULL);
}

/* From the first halt on of which that is so, until one of which it is not: thousands of intervals would tell no more. */
static void tell_untold(struct model *m, struct vcpu *v, int64_t from)
{
	const bool untold = v->polling.window < 0;
	if (untold != v->polling.untold)
		set(m, v, from, untold ? POLL_UNTOLD : HISTORY_NULL);
	v->polling.untold = untold;
}

void polling_over(struct model *m, struct vcpu *v, const struct event *ev)
{
	struct polling *p = &v->polling;
	const int64_t now = m->sink.now, ns = ev->wakeup.ns;
	int64_t from = ns >= 0 && now > INT64_MIN + ns ? now - ns : now;
	from = from > p->since ? from : p->since;
	if (p->since == INT64_MIN || p->since == NEVER)
		from = now;
	const bool slept = p->out != NEVER;
	tell_untold(m, v, from);
	if (!ev->wakeup.waited && !slept && p->window > 0)
		tell(m, v, from, now, POLL_WON);
	else if (ev->wakeup.waited && slept && p->window >= 0 && p->out > from)
		tell(m, v, from, p->window < p->out - from ? from + p->window : p->out, POLL_LOST);
	p->window = p->next;
	p->since = now;
	p->out = NEVER;
}
