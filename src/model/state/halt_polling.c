#include "model/state/halt_polling.h"

#include "model/state/state.h"

#define NEVER INT64_MAX

void halt_polling_exit(struct halt_polling *p, int64_t now)
{
	p->earliest = now;
	p->blocked_at = NEVER;
}

void halt_polling_clear(struct halt_polling *p)
{
	p->limit = p->next_limit = -1;
	p->earliest = NEVER;  /* unknown, because a halt's end may be lost */
	p->blocked_at = NEVER;
}

void halt_polling_block(struct halt_polling *p, int64_t now)
{
	if (p->blocked_at == NEVER)
		p->blocked_at = now;
}

void halt_polling_limit(struct vcpu *v, const struct event *ev)
{
	struct halt_polling *p = &v->polling;
	if (ev->halt_poll.old != EVENT_ABSENT)
		p->limit = ev->halt_poll.old;
	p->next_limit = ev->halt_poll.ns;
}

static void write_outcome(struct model *m, struct vcpu *v, int64_t t, int64_t value)
{
	if (v->polling.attr == HISTORY_NONE)
		v->polling.attr = cpu_attribute(v->vm, v->number, CPU_POLLING);
	sink_set_at(&m->sink, t, v->polling.attr, value);
}

static void write_interval(struct model *m, struct vcpu *v, int64_t from, int64_t to, enum poll_outcome outcome)
{
	if (from >= to)
		return;
	write_outcome(m, v, from, outcome);
	write_outcome(m, v, to, HISTORY_NULL);
}

/* Writes POLL_UNKNOWN from the first halt with an unknown limit to the next halt with a known limit, as one interval
 * instead of thousands. */
static void write_unknown(struct model *m, struct vcpu *v, int64_t from)
{
	const bool unknown = v->polling.limit < 0;
	if (unknown != v->polling.unknown)
		write_outcome(m, v, from, unknown ? POLL_UNKNOWN : HISTORY_NULL);
	v->polling.unknown = unknown;
}

void halt_polling_wakeup(struct model *m, struct vcpu *v, const struct event *ev)
{
	struct halt_polling *p = &v->polling;
	const int64_t now = m->sink.now, ns = ev->wakeup.ns;
	int64_t from = ns >= 0 && now > INT64_MIN + ns ? now - ns : now;
	from = from > p->earliest ? from : p->earliest;
	if (p->earliest == INT64_MIN || p->earliest == NEVER)
		from = now;
	const bool slept = p->blocked_at != NEVER;
	write_unknown(m, v, from);
	if (!ev->wakeup.waited && !slept && p->limit > 0)
		write_interval(m, v, from, now, POLL_SUCCEEDED);
	else if (ev->wakeup.waited && slept && p->limit >= 0 && p->blocked_at > from)
		write_interval(m, v, from, p->limit < p->blocked_at - from ? from + p->limit : p->blocked_at, POLL_FAILED);
	p->limit = p->next_limit;
	p->earliest = now;
	p->blocked_at = NEVER;
}
