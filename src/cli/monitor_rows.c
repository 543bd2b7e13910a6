#include "cli/monitor_rows.h"

#include <stdlib.h>

#include "base/mem.h"

/* Drops the rows of samples that are older than ROWS_KEPT_NS. */
static void drop_old(struct monitor_rows *r, int64_t now)
{
	struct export_live *l = &r->live;
	size_t states = 0, steals = 0;
	for (size_t i = 0; i < l->states; i++) {
		if (now - l->state[i].ts <= ROWS_KEPT_NS)
			l->state[states++] = l->state[i];
		else
			free(l->state[i].machine);
	}
	for (size_t i = 0; i < l->steals; i++) {
		if (now - l->steal[i].ts <= ROWS_KEPT_NS) {
			l->steal[steals++] = l->steal[i];
		} else {
			free(l->steal[i].machine);
			free(l->steal[i].culprit);
		}
	}
	r->dropped += l->states - states + l->steals - steals;
	l->states = states;
	l->steals = steals;
}

void monitor_rows_add(struct monitor_rows *r, const struct live_sample *s)
{
	struct export_live *l = &r->live;
	const int64_t ts = s->wall - s->period;
	drop_old(r, s->wall);
	for (size_t i = 0; i < s->vcpus; i++) {
		const struct live_vcpu *v = &s->vcpu[i];
		struct export_live_state *row = ARRAY_PUSH(l->state, l->states, r->state_cap);
		*row = (struct export_live_state){ ts, s->period, mem_dup(v->machine), v->number, v->tid, v->ns.ran, v->ns.stolen,
			v->ns.throttled, v->ns.blocked + v->ns.paused, v->longest };
	}
	for (size_t i = 0; i < s->pairs; i++) {
		const struct live_vcpu *v = &s->vcpu[s->pair[i].vcpu];
		const struct live_culprit *c = &s->culprit[s->pair[i].culprit];
		struct export_live_steal *row = ARRAY_PUSH(l->steal, l->steals, r->steal_cap);
		*row = (struct export_live_steal){ ts, s->period, mem_dup(v->machine), v->number, live_kind_name[c->kind],
			mem_dup(c->name), s->pair[i].ns };
	}
}

static void forget(struct monitor_rows *r)
{
	for (size_t i = 0; i < r->live.states; i++)
		free(r->live.state[i].machine);
	for (size_t i = 0; i < r->live.steals; i++) {
		free(r->live.steal[i].machine);
		free(r->live.steal[i].culprit);
	}
	r->live.states = r->live.steals = 0;
}

int monitor_rows_write(struct monitor_rows *r, const char *target, const char *host, struct error *err)
{
	if (!monitor_rows_waiting(r))
		return 0;
	r->live.host = host;
	if (export_live(&r->live, target, err))
		return -1;
	forget(r);
	return 0;
}

size_t monitor_rows_waiting(const struct monitor_rows *r)
{
	return r->live.states + r->live.steals;
}

void monitor_rows_release(struct monitor_rows *r)
{
	forget(r);
	free(r->live.state);
	free(r->live.steal);
}
