/* The source without BPF: run delays of schedstat, cpu.stat, and lower bounds of the culprits. */
#include "base/base.h"
#include "live/collection.h"
#include "live/culprit_bounds.h"
#include "live/quotas.h"

static void read_counters(struct live *l, int64_t began)
{
	quotas_read(l->quotas, l->request.root, &l->threads);
	culprit_bounds_scan(l->bounds, l->request.root, began);
}

static void take_thread(struct live *l, struct live_thread *t, struct live_vcpu *u, int64_t period)
{
	uint64_t ran = t->ran, delayed = t->delayed;
	live_read_thread(l, t, u, &ran, &delayed);
	u->ns.ran = min64((int64_t)(ran - t->ran), period);
	u->ns.stolen = min64((int64_t)(delayed - t->delayed), period - u->ns.ran);
	u->ns.blocked = period - u->ns.ran - u->ns.stolen;
	/* The kernel counts a delay when it ends: time that exceeds this period counts in the next ones. */
	t->ran += (uint64_t)u->ns.ran;
	t->delayed += (uint64_t)u->ns.stolen;
	t->is_first = false;
}

/* Divides the run delays into throttled and stolen, and finds lower bounds of the culprits. */
static void add_bounds(struct live *l, struct live_sample *s)
{
	struct culprit_index x = live_culprits(l, s);
	size_t n, cap = 0;
	quotas_divide(l->quotas, s->vcpu, s->vcpus);
	struct bpf_pair *pair = culprit_bounds_pairs(l->bounds, &l->threads, s, l->tick, &n);
	for (size_t i = 0; i < LIVE_VICTIMS; i++)
		l->slot_thread[i] = i < l->threads.len ? (int32_t)i : -1;
	for (size_t i = 0; i < n; i++) {
		const int32_t culprit = culprit_index_put(&x, pair[i].key.culprit, pair[i].value.comm);
		const struct live_pair one = { (int32_t)pair[i].key.victim, culprit, (int64_t)pair[i].value.ns };
		*ARRAY_PUSH(s->pair, s->pairs, cap) = one;
		s->culprit[culprit].took += (int64_t)pair[i].value.ns;
	}
	for (size_t i = 0; i < LIVE_VICTIMS; i++)
		l->slot_thread[i] = -1;
	for (size_t i = 0; i < s->culprits; i++)
		s->culprit[i].inferred = s->culprit[i].kind != LIVE_NOBODY;
	live_sort_pairs(s);
	free(pair);
	map_release(&x.by_key);
}

/* Joins each process's threads, in a sample whose victims are processes. */
static void join_processes(struct live_sample *s)
{
	struct map by_pid = MAP_INIT;
	int32_t *to = mem_new(s->vcpus + 1, sizeof *to);
	size_t n = 0;
	for (size_t i = 0; i < s->vcpus; i++) {
		const struct live_vcpu v = s->vcpu[i];
		bool is_new;
		uint64_t *at = map_put(&by_pid, (uint64_t)v.pid, &is_new);
		if (is_new) {
			*at = n;
			s->vcpu[n] = v;
			s->vcpu[n++].tid = v.pid;
		} else {
			struct live_vcpu *u = &s->vcpu[*at];
			u->ns.ran += v.ns.ran;
			u->ns.stolen += v.ns.stolen;
			u->ns.throttled += v.ns.throttled;
		}
		to[i] = (int32_t)*at;
	}
	s->vcpus = n;
	for (size_t i = 0; i < s->pairs; i++)
		s->pair[i].vcpu = to[s->pair[i].vcpu];
	for (size_t i = 0; i < n; i++) {
		struct live_vcpu *u = &s->vcpu[i];
		u->ns.blocked = max64(s->period - u->ns.ran - u->ns.stolen - u->ns.throttled, 0);
		u->top = -1;
	}
	live_sort_pairs(s);
	map_release(&by_pid);
	free(to);
}

static void begin(struct live *l)
{
	read_counters(l, l->last);
}

static void take(struct live *l, struct live_sample *s)
{
	const int64_t now = now_ns();
	live_end_period(l, s, now);
	for (size_t i = 0; i < s->vcpus; i++)
		take_thread(l, &l->threads.thread[i], &s->vcpu[i], s->period);
	read_counters(l, now);
	add_bounds(l, s);
	s->by_process = s->is_guest;
	if (s->by_process)
		join_processes(s);
}

const struct live_source_ops schedstat_source = { "schedstat", begin, take, NULL, NULL, NULL };
