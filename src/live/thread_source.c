/* The source of single threads: vCPUs, threads that were asked for. BPF, exact sums for each of them. */
#include "base/base.h"
#include "live/collection.h"
#include "live/shared_cores.h"

static void add_pair(struct live_sample *s, size_t *cap, int32_t victim, int32_t culprit, uint64_t ns)
{
	*ARRAY_PUSH(s->pair, s->pairs, *cap) = (struct live_pair){ victim, culprit, (int64_t)ns };
	s->culprit[culprit].took += (int64_t)ns;
}

static void add_pairs(struct live *l, struct live_sample *s, struct culprit_index *x, const struct bpf_pair *pair, size_t n)
{
	size_t cap = 0;
	for (size_t i = 0; i < n; i++) {
		const int32_t victim = pair[i].key.victim < LIVE_VICTIMS ? l->slot_thread[pair[i].key.victim] : -1;
		if (victim >= 0)
			add_pair(s, &cap, victim, culprit_index_put(x, pair[i].key.culprit, pair[i].value.comm), pair[i].value.ns);
	}
	for (size_t i = 0; i < l->threads.len; i++) {
		struct live_thread *v = &l->threads.thread[i];
		const uint64_t total = v->slot < 0 ? 0 : bpf_source_victim(l->bpf, (unsigned)v->slot)->lost_ns;
		if (total > v->lost_ns)
			add_pair(s, &cap, (int32_t)i, culprit_index_put(x, CULPRIT_UNKNOWN, ""), total - v->lost_ns);
		v->lost_ns = total;
	}
	live_sort_pairs(s);
}

static void add_cpu_use(struct live *l, struct live_sample *s, struct culprit_index *x, unsigned epoch)
{
	for (unsigned cpu = 0; cpu < l->cpus; cpu++) {
		struct live_cpu *c = bpf_source_cpu(l->bpf, cpu);
		for (unsigned i = 0; i < LIVE_RUNS; i++) {
			const struct live_run r = c->run[epoch][i];
			c->run[epoch][i].ns = 0;
			if (!r.ns || !r.culprit)
				continue;
			const int32_t who = culprit_index_put(x, r.culprit, c->run_comm[epoch][i]);
			s->culprit[who].ran = max64(s->culprit[who].ran, 0) + (int64_t)r.ns;
			live_use_cpu(s, cpu, who, (int64_t)r.ns);
		}
		c->run_other[epoch] = 0;
	}
}

/* read: the record of the victim at the period's end. */
static void take_thread(struct live *l, struct live_thread *t, struct live_vcpu *u, struct culprit_index *x,
                     const struct live_victim *read)
{
	struct live_victim *shared = bpf_source_victim(l->bpf, (unsigned)t->slot);
	const struct live_victim v = *read;
	int64_t gained[LIVE_STATES];
	for (int i = 0; i < LIVE_STATES; i++) {
		gained[i] = (int64_t)(v.ns[i] - t->ns[i]);
		t->ns[i] = v.ns[i];
	}
	u->ns = (struct live_times){ gained[LIVE_RUNNING], gained[LIVE_WAITING], gained[LIVE_THROTTLED], gained[LIVE_PAUSED],
		                         gained[LIVE_BLOCKED], gained[LIVE_UNKNOWN] };
	u->cpu = v.cpu == LIVE_SAME_CPU ? -1 : (int32_t)v.cpu;
	u->waits = v.waits - t->waits;
	t->waits = v.waits;
	for (int i = 0; i < LIVE_LENGTHS; i++) {
		u->length[i] = (uint32_t)(v.bin[i] - t->length[i]);
		t->length[i] = v.bin[i];
	}
	shared_cores_take(u, t, &v, bpf_source_has_siblings(l->bpf));
	u->longest = (int64_t)__atomic_exchange_n(&shared->longest, 0, __ATOMIC_RELAXED);
	u->longest_culprit = u->longest ? culprit_index_put(x, v.longest_culprit, "") : -1;
	const uint64_t state = v.mark & (LIVE_STATES - 1);
	if ((state == LIVE_WAITING || state == LIVE_THROTTLED) && (int64_t)v.wait_ns > u->longest) {
		u->longest = (int64_t)v.wait_ns;  /* it goes on */
		u->longest_culprit = u->top;
	}
}

static void take(struct live *l, struct live_sample *s)
{
	struct culprit_index x = live_culprits(l, s);
	size_t pairs = 0;
	/* The records are read at the epoch's end, before the pairs: both then cover the same time. */
	const unsigned epoch = bpf_source_next_epoch(l->bpf);
	const int64_t now = now_ns();
	struct live_victim *read = mem_new(l->threads.len + 1, sizeof *read);
	for (size_t i = 0; i < l->threads.len; i++)
		if (l->threads.thread[i].slot >= 0)
			read[i] = live_victim_read(bpf_source_victim(l->bpf, (unsigned)l->threads.thread[i].slot), now);
	struct bpf_pair *pair = bpf_source_take(l->bpf, epoch, &pairs);
	live_end_period(l, s, now);
	add_pairs(l, s, &x, pair, pairs);
	add_cpu_use(l, s, &x, epoch);
	shared_cores_add(&x, pair, pairs);
	for (size_t i = 0; i < s->vcpus; i++) {
		struct live_thread *t = &l->threads.thread[i];
		struct live_vcpu *u = &s->vcpu[i];
		live_read_thread(l, t, u, &t->ran, &t->delayed);
		if (t->slot >= 0)
			take_thread(l, t, u, &x, &read[i]);
		const struct live_times n = u->ns;
		if (t->is_first)
			u->ns.unknown += max64(s->period - n.ran - n.stolen - n.throttled - n.paused - n.blocked - n.unknown, 0);
		t->is_first = false;
	}
	free(pair);
	free(read);
	map_release(&x.by_key);
}

static void flush(struct live *l)
{
	bpf_source_flush(l->bpf);
}

static bool cost(struct live *l, u64 *ns, u64 *runs)
{
	return bpf_source_cost(l->bpf, ns, runs);
}

static void measure(struct live *l, bool on)
{
	bpf_source_measure(l->bpf, on);
}

const struct live_source_ops thread_source = { "bpf", NULL, take, flush, cost, measure };
