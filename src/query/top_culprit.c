/* Selection of the main culprit, for one line of text: a thread, unless naming one thread would mislead. */
#include "query/top_culprit.h"

#include "base/base.h"

unsigned culprit_group(const struct catalog *catalog, const struct target *self, const struct actor *p)
{
	if (p->machine < 0 || p->kind == FLOW_WAITING || (p->kind == FLOW_CURRENT && p->tid == 0))
		return CULPRIT_NOBODY;
	const bool is_own = p->kind == FLOW_HYPERVISOR && self && p->machine == (int32_t)target_machine(catalog, self) &&
	                 (self->kind != TARGET_THREAD || catalog->thread[self->index].tid == p->tid);
	return is_own ? CULPRIT_SERVICE : CULPRIT_MACHINES + (unsigned)p->machine;
}

static struct actor group_actor(const struct catalog *catalog, const struct target *self, unsigned group)
{
	if (group == CULPRIT_SERVICE)
		return (struct actor){ (int32_t)target_machine(catalog, self), -1, 0, FLOW_HYPERVISOR, 0 };
	const uint32_t machine = group - CULPRIT_MACHINES;
	const struct catalog_machine *m = &catalog->machine[machine];
	return (struct actor){ (int32_t)machine, -1, 0,
	                       m->hides_stolen_time && m->is_virtual ? FLOW_CURRENT : FLOW_PREEMPTING, 0 };
}

/* Returns true if an actor took more than another one; of equal ones, the first in the order of machines and threads did,
 * so that the answer does not depend on their order. */
static bool took_more(const struct actor *a, int64_t a_ns, const struct actor *b, int64_t b_ns)
{
	if (a_ns != b_ns || a->machine != b->machine)
		return a_ns != b_ns ? a_ns > b_ns : a->machine < b->machine;
	return a->tid != b->tid ? a->tid < b->tid : a->kind < b->kind;
}

void culprit_find(const struct catalog *catalog, const struct target *self, const struct actor *actor, const int64_t *ns,
                  size_t n, struct top_culprit *out)
{
	const unsigned groups = CULPRIT_MACHINES + catalog->machines;
	int64_t *group_ns = mem_new(groups, sizeof *group_ns);
	size_t first = 0, largest = 0;
	*out = (struct top_culprit){ .actor = { -1, -1, 0, FLOW_RUNNING, 0 } };
	for (size_t i = 0; i < n; i++) {
		const unsigned g = culprit_group(catalog, self, &actor[i]);
		group_ns[g] = g != CULPRIT_NOBODY ? group_ns[g] + ns[i] : ns[i] > group_ns[g] ? ns[i] : group_ns[g];
		first = took_more(&actor[i], ns[i], &actor[first], ns[first]) ? i : first;
	}
	unsigned largest_group = n ? culprit_group(catalog, self, &actor[first]) : CULPRIT_NOBODY;
	for (unsigned g = 0; g < groups; g++)
		largest_group = group_ns[g] > group_ns[largest_group] ? g : largest_group;
	for (size_t i = n; i-- > 0; )
		if (culprit_group(catalog, self, &actor[i]) == largest_group && ns[i] > 0) {
			largest = out->actors && took_more(&actor[largest], ns[largest], &actor[i], ns[i]) ? largest : i;
			out->actors++;
		}
	/* An actor with more than half of the largest group may still have taken less than an actor of another group. */
	if (out->actors && (largest_group == CULPRIT_NOBODY ||
	                    (ns[largest] > group_ns[largest_group] / 2 && ns[largest] == ns[first])))
		*out = (struct top_culprit){ actor[largest], ns[largest], 1 };
	else if (out->actors)
		*out = (struct top_culprit){ group_actor(catalog, self, largest_group), group_ns[largest_group], out->actors };
	free(group_ns);
}

void flow_top_culprit(const struct catalog *catalog, const struct target *self, const struct flow_entry *entry, size_t n,
                  struct top_culprit *out)
{
	struct actor *actor = mem_new(n, sizeof *actor);
	int64_t *lost = mem_new(n, sizeof *lost);
	for (size_t i = 0; i < n; i++) {
		actor[i] = entry[i].actor;
		lost[i] = entry[i].lost;
	}
	culprit_find(catalog, self, actor, lost, n, out);
	free(actor);
	free(lost);
}

bool culprit_is_own(const struct catalog *catalog, const struct target *self, const struct actor *culprit)
{
	return flow_is_thread(culprit->kind) && culprit->tid < 0 && culprit->name == 0 &&
	       culprit->machine == (int32_t)target_machine(catalog, self);
}
