/* Samples: what the counters of a source gained since the last sample. */
#include "live/live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/number.h"
#include "live/culprit_bounds.h"
#include "live/culprits.h"
#include "live/quotas.h"
#include "live/shared_cores.h"
#include "live/source.h"
#include "live/victims.h"

#define MEASURE_EVERY 30       /* periods between two measurements of the collector's own cost */
#define STEAL_TOLERANCE (200 * NS_PER_MS)  /* between the steal clock at the last switch and /proc/stat */

struct live {
	struct live_request request;
	struct bpf_source *bpf;
	struct error limits;
	struct live_threads threads;
	int32_t slot_thread[LIVE_VICTIMS];  /* index into threads; -1: none */
	unsigned cpus, periods;
	int64_t last;
	struct { uint64_t busy, idle, stolen; } *cpu;  /* counters of /proc/stat, ticks */
	struct culprit_bounds *bounds;  /* of a source without culprits */
	struct quotas *quotas;
	int64_t own_time;               /* CPU time of this process, ns */
	uint64_t *heads;                /* switches of each CPU */
	u64 cost, runs;
	double cost_ns;
	int64_t tick;                   /* ns */
};

/* ---- counters of /proc */

static void read_cpus(struct live *l, struct live_sample *s)
{
	static char text[1 << 18];
	if (!live_read(text, sizeof text, l->request.root, "/proc/stat"))
		return;
	for (char *line = strstr(text, "\ncpu"); line; line = strstr(line + 1, "\ncpu")) {
		unsigned long long n[8] = { 0 };
		unsigned cpu;
		if (sscanf(line, "\ncpu%u %llu %llu %llu %llu %llu %llu %llu %llu", &cpu, n, n + 1, n + 2, n + 3, n + 4, n + 5,
		           n + 6, n + 7) < 5 || cpu >= l->cpus)
			continue;
		const uint64_t busy = n[0] + n[1] + n[2] + n[5] + n[6], idle = n[3] + n[4];
		if (s && s->cpu) {
			s->cpu[cpu].idle = (int64_t)(idle - l->cpu[cpu].idle) * l->tick;
			s->cpu[cpu].busy = (int64_t)(busy - l->cpu[cpu].busy) * l->tick;
			s->cpu[cpu].stolen = (int64_t)(n[7] - l->cpu[cpu].stolen) * l->tick;
		}
		l->cpu[cpu].busy = busy;
		l->cpu[cpu].idle = idle;
		l->cpu[cpu].stolen = n[7];
	}
}

/* ---- victims */

static void drop_thread(struct live *l, size_t i)
{
	if (l->threads.thread[i].slot >= 0) {
		l->slot_thread[l->threads.thread[i].slot] = -1;
		bpf_source_victim(l->bpf, (unsigned)l->threads.thread[i].slot)->listed = 0;
		bpf_source_remove(l->bpf, l->threads.thread[i].slot);
	}
	l->threads.thread[i] = l->threads.thread[--l->threads.len];
	if (i < l->threads.len && l->threads.thread[i].slot >= 0)
		l->slot_thread[l->threads.thread[i].slot] = (int32_t)i;
}

/* A thread of the list may have counters already, because they are published. */
static void list_victim(struct live *l, struct live_thread *v, int32_t thread)
{
	struct live_victim *u = bpf_source_victim(l->bpf, (unsigned)v->slot);
	memcpy(v->ns, u->ns, sizeof v->ns);
	memcpy(v->length, u->bin, sizeof v->length);
	v->waits = u->waits;
	v->lost_ns = u->lost_ns;
	v->shared_ns = u->shared_ns;
	l->slot_thread[v->slot] = thread;
	u->listed = 1;
}

/* Drops threads that ended, and adds new ones to the BPF source. */
static void refresh_threads(struct live *l)
{
	live_threads_find(&l->threads, &l->request);
	for (size_t i = l->threads.len; i-- > 0;)
		if (!l->threads.thread[i].seen)
			drop_thread(l, i);
	for (size_t i = 0; i < l->threads.len; i++) {
		struct live_thread *v = &l->threads.thread[i];
		struct live_stat stat;
		if (!v->is_new)
			continue;
		if (live_read_stat(l->request.root, v->pid, v->tid, &stat) && l->bpf && !l->threads.is_guest)
			v->slot = bpf_source_add(l->bpf, (u32)v->tid, stat.state == 'S' || stat.state == 'D');
		if (v->slot >= 0)
			list_victim(l, v, (int32_t)i);
		live_read_schedstat(l->request.root, v->pid, v->tid, &v->ran, &v->delayed);
		v->user = stat.user;
		v->system = stat.system;
		v->guest = stat.guest;
		v->is_first = true;
		v->is_new = false;
	}
	live_flush(l);  /* finds the new threads that run */
}

/* ---- culprits */

static int by_time(const void *a, const void *b)
{
	const struct live_pair *x = a, *y = b;
	return (x->ns < y->ns) - (x->ns > y->ns);
}

static void add_pairs(struct live *l, struct live_sample *s, struct culprit_index *x, const struct bpf_pair *pair, size_t n)
{
	size_t cap = 0;
	for (size_t i = 0; i < n; i++) {
		const int32_t victim = pair[i].key.victim < LIVE_VICTIMS ? l->slot_thread[pair[i].key.victim] : -1;
		if (victim < 0)
			continue;
		const int32_t culprit = culprit_index_put(x, pair[i].key.culprit, pair[i].value.comm);
		*ARRAY_PUSH(s->pair, s->pairs, cap) = (struct live_pair){ victim, culprit, (int64_t)pair[i].value.ns };
		s->culprit[culprit].took += (int64_t)pair[i].value.ns;
	}
	for (size_t i = 0; i < l->threads.len; i++) {
		struct live_thread *v = &l->threads.thread[i];
		const uint64_t total = v->slot < 0 ? 0 : bpf_source_victim(l->bpf, (unsigned)v->slot)->lost_ns;
		const uint64_t lost = total - v->lost_ns;
		if (!lost)
			continue;
		v->lost_ns = total;
		const int32_t culprit = culprit_index_put(x, CULPRIT_UNKNOWN, "");
		*ARRAY_PUSH(s->pair, s->pairs, cap) = (struct live_pair){ (int32_t)i, culprit, (int64_t)lost };
		s->culprit[culprit].took += (int64_t)lost;
	}
	if (s->pairs)
		qsort(s->pair, s->pairs, sizeof *s->pair, by_time);
	for (size_t i = s->pairs; i-- > 0;) {
		s->vcpu[s->pair[i].vcpu].top = s->pair[i].culprit;
		s->vcpu[s->pair[i].vcpu].top_ns = s->pair[i].ns;
	}
}

static void add_cpu_use(struct live *l, struct live_sample *s, struct culprit_index *x, unsigned epoch)
{
	for (unsigned cpu = 0; cpu < l->cpus; cpu++) {
		struct live_cpu *c = bpf_source_cpu(l->bpf, cpu);
		struct live_cpu_use *u = &s->cpu[cpu];
		for (unsigned i = 0; i < LIVE_RUNS; i++) {
			struct live_run r = c->run[epoch][i];
			c->run[epoch][i].ns = 0;
			if (!r.ns || !r.culprit)
				continue;
			const int32_t who = culprit_index_put(x, r.culprit, c->run_comm[epoch][i]);
			int64_t ns = (int64_t)r.ns;
			s->culprit[who].ran = max64(s->culprit[who].ran, 0) + ns;
			int32_t at = who;
			for (int k = 0; k < 3; k++) {
				if (ns > u->top_ns[k]) {
					const int64_t other_ns = u->top_ns[k];
					const int32_t other = u->top[k];
					u->top_ns[k] = ns;
					u->top[k] = at;
					ns = other_ns;
					at = other;
				}
			}
		}
		c->run_other[epoch] = 0;
		s->switches += c->head - l->heads[cpu];
		l->heads[cpu] = c->head;
	}
}

/* ---- one victim in a period */

/* Copies the record of a victim at one point in time. Waits are accounted up to the last flush only. */
static struct live_victim read_victim(const struct live_victim *from, int64_t now)
{
	struct live_victim v;
	uint64_t mark;
	int tries = 0;
	do {
		mark = __atomic_load_n(&from->mark, __ATOMIC_ACQUIRE);
		memcpy(&v, from, sizeof v);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (__atomic_load_n(&from->mark, __ATOMIC_RELAXED) != mark && ++tries < 8);
	const uint64_t since = mark >> LIVE_MARK_BITS, state = mark & (LIVE_STATES - 1);
	if (state != LIVE_WAITING && (uint64_t)now > since)
		v.ns[state] += (uint64_t)now - since;
	return v;
}

/* read: the record of the victim at the end of the period. */
static void take_bpf(struct live *l, struct live_thread *t, struct live_vcpu *u, struct culprit_index *x,
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
		u->length[i] = v.bin[i] - t->length[i];
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

static void take_victim(struct live *l, struct live_thread *t, struct live_vcpu *u, struct culprit_index *x, int64_t period,
                        const struct live_victim *read)
{
	struct live_stat stat;
	uint64_t ran = t->ran, delayed = t->delayed;
	const int32_t top = u->top;
	const int64_t top_ns = u->top_ns, sharer_ns = u->sharer_ns;
	const int32_t sharer = u->sharer;
	*u = (struct live_vcpu){ .number = t->number, .tid = t->tid, .pid = t->pid, .cpu = -1, .vmm = -1, .longest_culprit = -1,
		                     .top = top, .top_ns = top_ns, .shared = -1, .sharer = sharer, .sharer_ns = sharer_ns };
	memcpy(u->machine, t->machine, sizeof u->machine);
	if (live_read_stat(l->request.root, t->pid, t->tid, &stat)) {
		const uint64_t ticks = stat.user + stat.system - t->user - t->system, inside = stat.guest - t->guest;
		u->cpu = stat.cpu;
		if (stat.guest > 0 && ticks > 0)
			u->vmm = (int64_t)(ticks > inside ? ticks - inside : 0) * l->tick;
		t->user = stat.user;
		t->system = stat.system;
		t->guest = stat.guest;
	}
	live_read_schedstat(l->request.root, t->pid, t->tid, &ran, &delayed);
	if (t->slot >= 0) {
		take_bpf(l, t, u, x, read);
		const struct live_times n = u->ns;
		const int64_t known = n.ran + n.stolen + n.throttled + n.paused + n.blocked + n.unknown;
		if (t->is_first)
			u->ns.unknown += max64(period - known, 0);
		t->is_first = false;
	} else {
		u->ns.ran = min64((int64_t)(ran - t->ran), period);
		u->ns.stolen = min64((int64_t)(delayed - t->delayed), period - u->ns.ran);
		u->ns.blocked = period - u->ns.ran - u->ns.stolen;
		/* The kernel counts a delay when it ends: time that exceeds this period counts in the next ones. */
		ran = t->ran + (uint64_t)u->ns.ran;
		delayed = t->delayed + (uint64_t)u->ns.stolen;
	}
	if (u->vmm > u->ns.ran)
		u->vmm = u->ns.ran;
	t->ran = ran;
	t->delayed = delayed;
}

/* ---- without BPF */

static bool uses_bounds(const struct live *l)
{
	return !l->bpf || l->threads.is_guest;
}

static void read_counters(struct live *l, int64_t began)
{
	quotas_read(l->quotas, l->request.root, &l->threads);
	culprit_bounds_scan(l->bounds, l->request.root, began);
}

/* Divides the run delays of schedstat into throttled and stolen, and finds lower bounds of the culprits. */
static void add_bounds(struct live *l, struct live_sample *s, struct culprit_index *x, int64_t began)
{
	size_t n;
	read_counters(l, began);
	quotas_divide(l->quotas, s->vcpu, s->vcpus);
	struct bpf_pair *pair = culprit_bounds_pairs(l->bounds, &l->threads, s, l->tick, &n);
	for (size_t i = 0; i < LIVE_VICTIMS; i++)
		l->slot_thread[i] = i < l->threads.len ? (int32_t)i : -1;
	add_pairs(l, s, x, pair, n);
	for (size_t i = 0; i < LIVE_VICTIMS; i++)
		l->slot_thread[i] = -1;
	for (size_t i = 0; i < s->culprits; i++)
		s->culprit[i].inferred = s->culprit[i].kind != LIVE_NOBODY;
	free(pair);
}

/* ---- interface */

static struct bpf_source *open_bpf(struct live *l)
{
	u32 *sibling = shared_cores_siblings(l->request.root, l->cpus);
	struct bpf_source *b = bpf_source_open(l->cpus, l->request.steal_clock, sibling, &l->limits);
	free(sibling);
	return b;
}

struct live *live_open(const struct live_request *request, struct error *err)
{
	struct live *l = mem_new(1, sizeof *l);
	const long cpus = sysconf(_SC_NPROCESSORS_CONF), hz = sysconf(_SC_CLK_TCK);
	l->request = *request;
	l->limits = (struct error)ERROR_INIT;
	l->cpus = cpus > 0 ? (unsigned)cpus : 1;
	l->tick = NS_PER_S / (hz > 0 ? hz : 100);
	l->cpu = mem_new(l->cpus, sizeof *l->cpu);
	l->heads = mem_new(l->cpus, sizeof *l->heads);
	for (size_t i = 0; i < LIVE_VICTIMS; i++)
		l->slot_thread[i] = -1;
	if (request->without_bpf)
		error_set(&l->limits, STATUS_SYSTEM, NULL, "--no-bpf");
	else
		l->bpf = open_bpf(l);
	l->last = now_ns();  /* the sources count the threads from now on */
	refresh_threads(l);
	if (l->threads.len == 0 && (request->pids || request->comms)) {
		error_set(err, STATUS_INPUT, "see ps -eL", "no thread has this PID or name");
		live_close(l);
		return NULL;
	}
	if (l->bpf)
		bpf_source_measure(l->bpf, true);
	l->bounds = culprit_bounds_new();
	l->quotas = quotas_new();
	if (uses_bounds(l))
		read_counters(l, l->last);
	read_cpus(l, NULL);
	l->own_time = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	return l;
}

const struct error *live_limits(const struct live *l)
{
	return l->bpf ? NULL : &l->limits;
}

bool live_has_siblings(const struct live *l)
{
	return bpf_source_has_siblings(l->bpf);
}

bool live_steal_clock_is_right(const struct live *l)
{
	static char text[1 << 18];
	bool right = live_read(text, sizeof text, l->request.root, "/proc/stat");
	for (char *line = strstr(text, "\ncpu"); line && right; line = strstr(line + 1, "\ncpu")) {
		unsigned long long ticks;
		unsigned cpu;
		if (sscanf(line, "\ncpu%u %*u %*u %*u %*u %*u %*u %*u %llu", &cpu, &ticks) != 2 || cpu >= l->cpus)
			continue;
		const struct live_cpu *c = bpf_source_cpu(l->bpf, cpu);
		const int64_t difference = (int64_t)c->steal - (int64_t)ticks * l->tick;
		right = !c->steal_address || (difference < STEAL_TOLERANCE && difference > -STEAL_TOLERANCE);
	}
	return right;
}

const struct live_threads *live_threads_of(const struct live *l)
{
	return &l->threads;
}

struct live_victim live_victim_at(struct live *l, int slot, int64_t now)
{
	return read_victim(bpf_source_victim(l->bpf, (unsigned)slot), now);
}

bool live_reads_steal_clock(const struct live *l)
{
	return l->request.steal_clock;
}

struct bpf_source *live_bpf(struct live *l)
{
	return l->bpf;
}

void live_flush(struct live *l)
{
	if (l->bpf)
		bpf_source_flush(l->bpf);
}

static void measure_cost(struct live *l, struct live_sample *s)
{
	u64 ns, runs;
	if (bpf_source_cost(l->bpf, &ns, &runs) && runs > l->runs + 100) {
		l->cost_ns = (double)(ns - l->cost) / (double)(runs - l->runs);
		l->cost = ns;
		l->runs = runs;
	}
	bpf_source_measure(l->bpf, l->periods % MEASURE_EVERY == MEASURE_EVERY - 1);
	s->cost_ns = l->cost_ns;
}

void live_take(struct live *l, struct live_sample *s)
{
	struct culprit_index x = { .threads = &l->threads, .slot_thread = l->slot_thread, .root = l->request.root, .s = s,
	                           .by_key = MAP_INIT };
	size_t pairs = 0;
	char text[128];
	*s = (struct live_sample){ .cpus = l->cpus, .has_bpf = l->bpf != NULL, .source = l->bpf ? "bpf" : "schedstat" };
	s->cpu = mem_new(l->cpus, sizeof *s->cpu);
	for (size_t i = 0; i < s->cpus; i++)
		for (int k = 0; k < 3; k++)
			s->cpu[i].top[k] = -1;
	/* The records are read at the end of the epoch, before the pairs: both then cover the same time. */
	const unsigned epoch = l->bpf ? bpf_source_next_epoch(l->bpf) : 0;
	const int64_t now = now_ns();
	struct live_victim *read = mem_new(l->threads.len + 1, sizeof *read);
	for (size_t i = 0; i < l->threads.len; i++)
		if (l->threads.thread[i].slot >= 0)
			read[i] = read_victim(bpf_source_victim(l->bpf, (unsigned)l->threads.thread[i].slot), now);
	struct bpf_pair *pair = l->bpf ? bpf_source_take(l->bpf, epoch, &pairs) : NULL;
	s->period = now - l->last;
	s->wall = clock_ns(CLOCK_REALTIME);
	l->last = now;
	s->vcpus = l->threads.len;
	s->vcpu = mem_new(s->vcpus + 1, sizeof *s->vcpu);
	for (size_t i = 0; i < s->vcpus; i++)
		s->vcpu[i].top = s->vcpu[i].sharer = -1;
	if (l->bpf) {
		add_pairs(l, s, &x, pair, pairs);
		add_cpu_use(l, s, &x, epoch);
		shared_cores_add(&x, pair, pairs);
	}
	for (size_t i = 0; i < s->vcpus; i++)
		take_victim(l, &l->threads.thread[i], &s->vcpu[i], &x, s->period, &read[i]);
	read_cpus(l, s);
	if (uses_bounds(l))
		add_bounds(l, s, &x, now);
	if (l->bpf)
		measure_cost(l, s);
	l->periods++;
	s->has_siblings = bpf_source_has_siblings(l->bpf);
	s->is_guest = l->threads.is_guest;
	s->hidden = l->threads.hidden;
	if (s->is_guest)
		s->source = "schedstat";
	const int64_t own_time = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	s->own_share = s->period > 0 ? (double)(own_time - l->own_time) / (double)s->period : 0;
	l->own_time = own_time;
	s->load = live_read(text, sizeof text, l->request.root, "/proc/loadavg") ? atof(text) : 0;
	free(pair);
	free(read);
	map_release(&x.by_key);
	refresh_threads(l);
}

void live_sample_release(struct live_sample *s)
{
	free(s->vcpu);
	free(s->culprit);
	free(s->pair);
	free(s->cpu);
	*s = (struct live_sample){ 0 };
}

void live_close(struct live *l)
{
	if (!l)
		return;
	bpf_source_close(l->bpf);
	culprit_bounds_free(l->bounds);
	quotas_free(l->quotas);
	free(l->threads.thread);
	free(l->cpu);
	free(l->heads);
	free(l);
}
