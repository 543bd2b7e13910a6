#include "live/shared_cores.h"

#include "base/base.h"

#define CORE_CPUS 8  /* limit of the CPUs of a core that are read */

/* Reads a list such as "0,4" or "0-1" into cpu[]. Returns the CPU count, at most CORE_CPUS; 0: not a list. */
static unsigned read_list(const char *text, unsigned cpu[CORE_CPUS])
{
	unsigned n = 0;
	for (const char *at = text; *at >= '0' && *at <= '9';) {
		char *end;
		const unsigned long first = strtoul(at, &end, 10), last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
		for (unsigned long i = first; i <= last && n < CORE_CPUS; i++)
			cpu[n++] = (unsigned)i;
		at = *end == ',' ? end + 1 : end;
	}
	return n;
}

u32 *shared_cores_siblings(const char *root, unsigned cpus)
{
	u32 *sibling = mem_new(cpus, sizeof *sibling);
	bool any = false;
	for (unsigned i = 0; i < cpus; i++) {
		char text[128];
		unsigned cpu[CORE_CPUS];
		if (!live_read(text, sizeof text, root, "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", i) ||
		    read_list(text, cpu) != 2 || cpu[0] >= cpus || cpu[1] >= cpus || cpu[0] == cpu[1] ||
		    (cpu[0] != i && cpu[1] != i))
			continue;
		sibling[i] = 1 + (cpu[0] == i ? cpu[1] : cpu[0]);
		any = true;
	}
	if (any)
		return sibling;
	free(sibling);
	return NULL;
}

void shared_cores_add(struct culprit_index *x, const struct bpf_pair *pair, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const u32 slot = pair[i].key.victim ^ LIVE_SHARED, sharer = pair[i].key.culprit;
		const int32_t victim = slot < LIVE_VICTIMS ? x->slot_thread[slot] : -1;
		if (victim < 0 || sharer == CULPRIT_UNKNOWN || (int64_t)pair[i].value.ns <= x->s->vcpu[victim].sharer_ns)
			continue;
		x->s->vcpu[victim].sharer = culprit_index_put(x, sharer, pair[i].value.comm);
		x->s->vcpu[victim].sharer_ns = (int64_t)pair[i].value.ns;
	}
}

void shared_cores_take(struct live_vcpu *u, struct live_thread *t, const struct live_victim *v, bool has_siblings)
{
	u->shared = has_siblings ? min64((int64_t)(v->shared_ns - t->shared_ns), u->ns.ran) : -1;
	t->shared_ns = v->shared_ns;
}
