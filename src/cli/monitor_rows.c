#include "cli/monitor_rows.h"

#include "base/base.h"

/* Drops the rows of samples that are older than ROWS_KEPT_NS. */
static void drop_old(struct monitor_rows *r, int64_t now)
{
	struct export_live *l = &r->live;
	size_t states = 0, steals = 0;
	for (size_t i = 0; i < l->states; i++) {
		if (now - l->state[i].taken <= ROWS_KEPT_NS)
			l->state[states++] = l->state[i];
		else
			free(l->state[i].machine);
	}
	for (size_t i = 0; i < l->steals; i++) {
		if (now - l->steal[i].taken <= ROWS_KEPT_NS) {
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

/* Returns the name of a victim for people: VM, or group and process, never a PID. */
static char *name_victim(const struct live_sample *s, const struct live_vcpu *v)
{
	const char *group = s->group[v->group].name;
	if (v->number >= 0 || strcmp(group, "/") == 0 || strcmp(group, v->machine) == 0)
		return mem_dup(v->machine);
	return mem_printf("%s/%s", group, v->machine);
}

/* Returns the name of a culprit without its PID. */
static char *name_culprit(const struct live_culprit *c)
{
	const char *space = strncmp(c->name, "host/", 5) == 0 ? strchr(c->name, ' ') : NULL;
	return mem_dup(space ? space + 1 : c->name);
}

static void add_state(struct monitor_rows *r, const struct live_sample *s, const struct live_vcpu *v, size_t from)
{
	struct export_live *l = &r->live;
	char *name = name_victim(s, v);
	/* Processes of one name are one row. */
	for (size_t i = from; i < l->states && v->number < 0; i++) {
		struct export_live_state *row = &l->state[i];
		if (row->cpu >= 0 || strcmp(row->machine, name) != 0)
			continue;
		row->ran += v->ns.ran;
		row->stolen += v->ns.stolen;
		row->throttled += v->ns.throttled;
		row->longest = v->longest > row->longest ? v->longest : row->longest;
		free(name);
		return;
	}
	*ARRAY_PUSH(l->state, l->states, r->state_cap) = (struct export_live_state){ s->wall - s->period, v->period, now_ns(),
		name, v->number, v->number < 0 ? 0 : v->tid, v->ns.ran, v->ns.stolen, v->ns.throttled, v->ns.blocked + v->ns.paused,
		v->longest };
}

static void add_steal(struct monitor_rows *r, const struct live_sample *s, const struct live_pair *p, size_t from)
{
	struct export_live *l = &r->live;
	const struct live_vcpu *v = &s->vcpu[p->vcpu];
	const struct live_culprit *c = &s->culprit[p->culprit];
	char *victim = name_victim(s, v), *culprit = name_culprit(c);
	for (size_t i = from; i < l->steals && v->number < 0; i++) {
		struct export_live_steal *row = &l->steal[i];
		if (row->cpu >= 0 || strcmp(row->machine, victim) != 0 || strcmp(row->culprit, culprit) != 0)
			continue;
		row->ns += p->ns;
		free(victim);
		free(culprit);
		return;
	}
	*ARRAY_PUSH(l->steal, l->steals, r->steal_cap) = (struct export_live_steal){ s->wall - s->period, v->period, now_ns(),
		victim, v->number, live_kind_name[c->kind], culprit, p->ns };
}

void monitor_rows_add(struct monitor_rows *r, const struct live_sample *s)
{
	drop_old(r, now_ns());
	const size_t states = r->live.states, steals = r->live.steals;
	for (size_t i = 0; i < s->vcpus; i++)
		add_state(r, s, &s->vcpu[i], states);
	for (size_t i = 0; i < s->pairs; i++)
		add_steal(r, s, &s->pair[i], steals);
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
