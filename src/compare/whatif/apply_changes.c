/* Applies hypothetical changes to the demand of the host's threads. */
#include "compare/whatif/apply_changes.h"

bool apply_sets_cpus(const struct replay_task *t, const struct whatif_change *change, size_t changes)
{
	for (size_t i = 0; i < changes; i++)
		for (size_t n = 0; n < change[i].threads; n++)
			if ((change[i].kind == WHATIF_PIN || change[i].kind == WHATIF_FREE) && change[i].thread[n] == t->thread)
				return true;
	return false;
}

bool apply_unpin(struct host_demand *d, const struct whatif_change *change, size_t changes)
{
	bool any = false, adds = false;
	for (size_t i = 0; i < changes; i++)
		adds |= change[i].kind == WHATIF_ADD_CPU;
	for (size_t k = 0; k < d->tasks && adds; k++) {
		struct replay_task *t = &d->task[k];
		if (task_may_be_pinned(t) && !apply_sets_cpus(t, change, changes)) {
			t->allowed_cpus |= UINT64_C(1) << (d->cpus - 1);
			any = true;
		}
	}
	return any;
}

static void add_cpu(struct host_demand *d)
{
	for (size_t k = 0; k < d->tasks; k++)
		if (d->task[k].allowed_cpus & (d->task[k].allowed_cpus - 1))
			d->task[k].allowed_cpus |= UINT64_C(1) << d->cpus;
	d->cpus++;
}

void apply_changes(struct host_demand *d, const struct whatif_change *change, size_t changes)
{
	for (size_t i = 0; i < changes; i++)
		if (change[i].kind == WHATIF_ADD_CPU)
			add_cpu(d);
	for (size_t i = 0; i < changes; i++) {
		const struct whatif_change *c = &change[i];
		for (size_t k = 0; k < c->threads; k++) {
			struct replay_task *t = demand_task(d, c->thread[k]);
			if (!t)
				continue;
			t->removed |= c->kind == WHATIF_WITHOUT;
			t->quota_lifted |= c->kind == WHATIF_NO_QUOTA;
			t->allowed_cpus = c->kind == WHATIF_PIN ? UINT64_C(1) << c->cpu
			       : c->kind == WHATIF_FREE ? (UINT64_C(1) << d->cpus) - 1 : t->allowed_cpus;
		}
		if (c->kind == WHATIF_WEIGHT)
			groups_set_weight(d, c->thread, c->threads, c->weight);
	}
}

int apply_check_quotas(const struct host_demand *d, const struct whatif_change *change, size_t changes, struct error *err)
{
	for (size_t i = 0; i < changes; i++) {
		bool seen = change[i].kind != WHATIF_NO_QUOTA;
		for (size_t k = 0; k < change[i].threads && !seen; k++) {
			const struct replay_task *t = demand_task(d, change[i].thread[k]);
			for (size_t b = 0; t && b < t->bursts && !seen; b++)
				seen = t->burst[b].throttled;
		}
		if (!seen)
			return error_set(err, STATUS_INPUT, "stealscope gaps shows the throttling of a vCPU",
			                 "%s: no quota held it back in this window", history_file(d->catalog->h));
	}
	return 0;
}

bool apply_lifts_quota(const struct whatif_change *change, size_t changes)
{
	for (size_t i = 0; i < changes; i++)
		if (change[i].kind == WHATIF_NO_QUOTA)
			return true;
	return false;
}
