/* Who took most, for whom one line is room: a thread, unless that misleads. */
#include "query/top_culprit.h"

#include <stdlib.h>

#include "base/mem.h"

unsigned thief_group(const struct topo *topo, const struct subject *self, const struct party *p)
{
	if (p->system < 0 || p->kind == FLOW_WAITING)
		return THIEF_NOBODY;
	const bool own = p->kind == FLOW_HYPERVISOR && self && p->system == (int32_t)subject_machine(topo, self) &&
	                 (self->kind != SUBJECT_THREAD || topo->thread[self->index].tid == p->tid);
	return own ? THIEF_SERVICE : THIEF_MACHINES + (unsigned)p->system;
}

static struct party whole_of(const struct topo *topo, const struct subject *self, unsigned group)
{
	if (group == THIEF_SERVICE)
		return (struct party){ (int32_t)subject_machine(topo, self), -1, 0, FLOW_HYPERVISOR };
	return (struct party){ (int32_t)(group - THIEF_MACHINES), -1, 0, FLOW_PREEMPTING };
}

void thief_find(const struct topo *topo, const struct subject *self, const struct party *party, const int64_t *ns,
                size_t n, struct thief *out)
{
	const unsigned groups = THIEF_MACHINES + topo->machines;
	int64_t *whole = mem_new(groups, sizeof *whole);
	size_t first = 0, of_most = 0;
	*out = (struct thief){ .who = { -1, -1, 0, FLOW_RUNNING } };
	for (size_t i = 0; i < n; i++) {
		const unsigned g = thief_group(topo, self, &party[i]);
		whole[g] = g != THIEF_NOBODY ? whole[g] + ns[i] : ns[i] > whole[g] ? ns[i] : whole[g];
		first = ns[i] > ns[first] ? i : first;
	}
	unsigned most = n ? thief_group(topo, self, &party[first]) : THIEF_NOBODY;
	for (unsigned g = 0; g < groups; g++)
		most = whole[g] > whole[most] ? g : most;
	for (size_t i = n; i-- > 0; )
		if (thief_group(topo, self, &party[i]) == most && ns[i] > 0) {
			of_most = out->parties && ns[of_most] > ns[i] ? of_most : i;
			out->parties++;
		}
	/* Most of the largest part may be less than what somebody else took alone. */
	if (out->parties && (most == THIEF_NOBODY || (ns[of_most] > whole[most] / 2 && ns[of_most] == ns[first])))
		*out = (struct thief){ party[of_most], ns[of_most], 1 };
	else if (out->parties)
		*out = (struct thief){ whole_of(topo, self, most), whole[most], out->parties };
	free(whole);
}

void flow_thief(const struct topo *topo, const struct subject *self, const struct flow_entry *entry, size_t n,
                struct thief *out)
{
	struct party *party = mem_new(n, sizeof *party);
	int64_t *lost = mem_new(n, sizeof *lost);
	for (size_t i = 0; i < n; i++) {
		party[i] = entry[i].who;
		lost[i] = entry[i].lost;
	}
	thief_find(topo, self, party, lost, n, out);
	free(party);
	free(lost);
}

const char *thief_own(const struct topo *topo, const struct subject *self, const struct party *thief)
{
	const bool own = thief->kind == FLOW_PREEMPTING && thief->tid < 0 && thief->name == 0 &&
	                 thief->system == (int32_t)subject_machine(topo, self);
	return !own ? "" : self->kind == SUBJECT_MACHINE ? "threads of " : "others in ";
}
