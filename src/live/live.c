/* Samples: what the counters of a source gained since the last sample. */
#include "live/live.h"

#include <unistd.h>

#include "live/collection.h"
#include "live/culprit_bounds.h"
#include "live/machine_names.h"
#include "live/machine_source.h"
#include "live/quotas.h"
#include "live/shared_cores.h"

#define MEASURE_EVERY 30       /* periods between two measurements of the collector's own cost */
#define STEAL_TOLERANCE (200 * NS_PER_MS)  /* between the steal clock at the last switch and /proc/stat */

/* ---- counters of /proc */

static void read_cpus(struct live *l, struct live_sample *s)
{
	static char text[1 << 18];
	if (!live_read(text, sizeof text, l->request.root, "/proc/stat"))
		return;
	const char *switches = strstr(text, "\nctxt ");
	const uint64_t total = switches ? strtoull(switches + 6, NULL, 10) : 0;
	if (s)
		s->switches = total - l->switches;
	l->switches = total;
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

/* Returns the time in which a task waited since the last call, ns; -1: the kernel does not count it. */
static double read_pressure(struct live *l)
{
	char text[256];
	const char *at = live_read(text, sizeof text, l->request.root, "/proc/pressure/cpu") ? strstr(text, "total=") : NULL;
	if (!at)
		return -1;
	const uint64_t before = l->pressure;
	l->pressure = strtoull(at + 6, NULL, 10) * 1000;
	return before ? (double)(l->pressure - before) : 0;
}

/* ---- victims */

/* Finds the group of a victim that is a thread: its VM, or its control group. */
static void name_group(struct live *l, struct live_sample *s, struct live_vcpu *v)
{
	if (v->number >= 0)
		v->group = live_group_put(s, v->machine, LIVE_VM);
	else
		v->group = live_group_put(s, machine_names_of_process(l->names, v->pid), LIVE_CONTROL_GROUP);
}

static void drop_thread(struct live *l, size_t i)
{
	if (l->machine)
		machine_source_remove(l->machine, (u32)l->threads.thread[i].tid);
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

/* ---- sources */

static bool open_bpf(struct live *l)
{
	l->bpf = bpf_source_open(l->cpus, l->request.steal_clock, l->sibling, &l->limits);
	return l->bpf != NULL;
}

/* Returns the source for the victims that were found. What it needs is loaded. */
static const struct live_source_ops *choose_source(struct live *l)
{
	/* Only the single thread records can be shared, and have the time beside a busy CPU of the core. */
	const bool single = l->request.pids || l->request.comms || l->request.shares || (l->sibling && !l->threads.is_guest);
	if (single && l->machine) {  /* a VM was started */
		machine_source_close(l->machine);
		l->machine = NULL;
	}
	if (!l->has_limits && (single || l->request.publishes) && !l->bpf && !open_bpf(l))
		l->has_limits = true;
	if (!l->has_limits && !single && !l->machine &&
	    !(l->machine = machine_source_open(l->cpus, (u32)l->request.command, &l->limits)))
		l->has_limits = true;
	if (l->has_limits)
		return &schedstat_source;
	return l->machine ? &machine_ops : &thread_source;
}

static void begin_thread(struct live *l, struct live_thread *v, int32_t i)
{
	struct live_stat stat;
	if (live_read_stat(l->request.root, v->pid, v->tid, &stat) && l->source == &thread_source)
		v->slot = bpf_source_add(l->bpf, (u32)v->tid, stat.state == 'S' || stat.state == 'D');
	if (v->slot >= 0)
		list_victim(l, v, i);
	if (l->source == &machine_ops)
		machine_source_add(l->machine, (u32)v->tid);
	live_read_schedstat(l->request.root, v->pid, v->tid, &v->ran, &v->delayed);
	v->user = stat.user;
	v->system = stat.system;
	v->guest = stat.guest;
	v->is_first = true;
	v->is_new = false;
}

/* Drops threads that ended, and begins to count new ones. */
static void refresh_threads(struct live *l)
{
	live_threads_find(&l->threads, &l->request, l->has_limits);
	const struct live_source_ops *source = choose_source(l);
	if (l->has_limits && l->source != source)
		live_threads_find(&l->threads, &l->request, true);
	for (size_t i = l->threads.len; i-- > 0;)
		if (!l->threads.thread[i].seen)
			drop_thread(l, i);
	const bool is_new = l->source != source;
	l->source = source;
	for (size_t i = 0; is_new && i < l->threads.len; i++)
		l->threads.thread[i].is_new = true;
	for (size_t i = 0; i < l->threads.len; i++)
		if (l->threads.thread[i].is_new)
			begin_thread(l, &l->threads.thread[i], (int32_t)i);
	if (is_new && source->begin)
		source->begin(l);
	if (is_new && source->measure)
		source->measure(l, true);
	live_flush(l);  /* finds the new threads that run */
}

/* ---- for the sources */

struct culprit_index live_culprits(const struct live *l, struct live_sample *s)
{
	return (struct culprit_index){ .threads = &l->threads, .slot_thread = l->slot_thread, .root = l->request.root, .s = s,
		                           .by_key = MAP_INIT };
}

void live_end_period(struct live *l, struct live_sample *s, int64_t now)
{
	s->period = now - l->last;
	s->wall = clock_ns(CLOCK_REALTIME) - (now_ns() - now);
	l->last = now;
	read_cpus(l, s);
	if (l->source == &machine_ops)
		return;
	s->vcpus = l->threads.len;
	s->vcpu = mem_new(s->vcpus + 1, sizeof *s->vcpu);
	for (size_t i = 0; i < s->vcpus; i++)
		s->vcpu[i] = (struct live_vcpu){ .top = -1, .sharer = -1, .period = s->period };
}

int32_t live_group_put(struct live_sample *s, const char *name, enum live_group_kind kind)
{
	size_t i = 0;
	while (i < s->groups && (s->group[i].kind != kind || strcmp(s->group[i].name, name) != 0))
		i++;
	if (i == s->groups) {
		s->group = mem_resize(s->group, s->groups + 1, sizeof *s->group);
		s->group[s->groups] = (struct live_group){ .kind = kind };
		snprintf(s->group[s->groups++].name, LIVE_NAME, "%s", name);
	}
	return (int32_t)i;
}

void live_use_cpu(struct live_sample *s, unsigned cpu, int32_t culprit, int64_t ns)
{
	struct live_cpu_use *u = &s->cpu[cpu];
	for (int k = 0; k < 3; k++) {
		if (ns > u->top_ns[k]) {
			const int64_t other_ns = u->top_ns[k];
			const int32_t other = u->top[k];
			u->top_ns[k] = ns;
			u->top[k] = culprit;
			ns = other_ns;
			culprit = other;
		}
	}
}

ORDER_BY(by_time, struct live_pair, FALLING(ns))

void live_sort_pairs(struct live_sample *s)
{
	ARRAY_SORT(s->pair, s->pairs, by_time);
	for (size_t i = s->pairs; i-- > 0;) {
		s->vcpu[s->pair[i].vcpu].top = s->pair[i].culprit;
		s->vcpu[s->pair[i].vcpu].top_ns = s->pair[i].ns;
	}
}

static int64_t vmm_time(struct live *l, struct live_thread *t, const struct live_stat *now)
{
	const uint64_t ticks = now->user + now->system - t->user - t->system, inside = now->guest - t->guest;
	t->user = now->user;
	t->system = now->system;
	t->guest = now->guest;
	return now->guest > 0 && ticks > 0 ? (int64_t)(ticks > inside ? ticks - inside : 0) * l->tick : -1;
}

int64_t live_vmm_time(struct live *l, struct live_thread *t, int64_t ran)
{
	struct live_stat stat;
	return live_read_stat(l->request.root, t->pid, t->tid, &stat) ? min64(vmm_time(l, t, &stat), ran) : -1;
}

int64_t live_own_period(struct live_thread *t, int64_t to, int64_t other)
{
	const int64_t from = t->counted_to;
	t->counted_to = to;
	return from && to > from ? to - from : other;
}

void live_read_thread(struct live *l, struct live_thread *t, struct live_vcpu *u, uint64_t *ran, uint64_t *delayed)
{
	struct live_stat stat;
	const int32_t top = u->top, sharer = u->sharer;
	const int64_t top_ns = u->top_ns, sharer_ns = u->sharer_ns, period = u->period;
	*u = (struct live_vcpu){ .number = t->number, .tid = t->tid, .pid = t->pid, .cpu = -1, .period = period, .vmm = -1,
		                     .longest_culprit = -1, .top = top, .top_ns = top_ns, .shared = -1, .sharer = sharer,
		                     .sharer_ns = sharer_ns };
	memcpy(u->machine, t->machine, sizeof u->machine);
	if (!live_read_stat(l->request.root, t->pid, t->tid, &stat) || stat.start != t->start)
		return;  /* it has ended, and another thread may have its TID */
	u->cpu = stat.cpu;
	u->vmm = vmm_time(l, t, &stat);
	live_read_schedstat(l->request.root, t->pid, t->tid, ran, delayed);
}

/* ---- interface */

struct live *live_open(const struct live_request *request, struct error *err)
{
	struct live *l = mem_new(1, sizeof *l);
	const long cpus = sysconf(_SC_NPROCESSORS_CONF), hz = sysconf(_SC_CLK_TCK);
	l->request = *request;
	l->limits = (struct error)ERROR_INIT;
	l->cpus = cpus > 0 ? (unsigned)cpus : 1;
	l->tick = NS_PER_S / (hz > 0 ? hz : 100);
	l->cpu = mem_new(l->cpus, sizeof *l->cpu);
	l->sibling = shared_cores_siblings(request->root, l->cpus);
	l->bounds = culprit_bounds_new();
	l->quotas = quotas_new();
	l->names = machine_names_new(request->root);
	for (size_t i = 0; i < LIVE_VICTIMS; i++)
		l->slot_thread[i] = -1;
	if (request->without_bpf)
		error_set(&l->limits, STATUS_SYSTEM, NULL, "--no-bpf");
	l->has_limits = request->without_bpf;
	l->last = now_ns();  /* the sources count the threads from now on */
	refresh_threads(l);
	if (l->threads.len == 0 && (request->pids || request->comms)) {
		error_set(err, STATUS_INPUT, "see ps -eL", "no thread has the %s %s%s", request->comms ? "name" : "PID",
		          request->comms ? request->comm[0] : request->pid[0],
		          request->comms + request->pids > 1 ? ", nor another one given" : "");
		live_close(l);
		return NULL;
	}
	l->last = now_ns();
	read_cpus(l, NULL);
	read_pressure(l);
	l->own_time = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	return l;
}

const struct error *live_limits(const struct live *l)
{
	return l->has_limits ? &l->limits : NULL;
}

bool live_has_siblings(const struct live *l)
{
	return l->source == &thread_source && bpf_source_has_siblings(l->bpf);
}

struct known_name { const char *root, *name; bool found; };

static void compare_process(void *arg, int32_t pid)
{
	struct known_name *n = arg;
	struct live_stat stat;
	n->found = n->found || (live_read_stat(n->root, pid, pid, &stat) && strcmp(stat.comm, n->name) == 0);
}

bool live_knows(const struct live *l, const char *name)
{
	struct known_name n = { l->request.root, name, machine_names_has(l->names, name) };
	if (!n.found)
		live_each_number(l->request.root, "/proc", compare_process, &n);
	return n.found;
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
	return live_victim_read(bpf_source_victim(l->bpf, (unsigned)slot), now);
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
	if (l->source->flush)
		l->source->flush(l);
	if (l->bpf && l->source != &thread_source)
		bpf_source_flush(l->bpf);  /* published counters */
}

static void measure_cost(struct live *l, struct live_sample *s)
{
	u64 ns, runs;
	if (!l->source->cost)
		return;
	if (l->source->cost(l, &ns, &runs) && runs > l->runs + 100 && ns > l->cost) {
		l->cost_ns = (double)(ns - l->cost) / (double)(runs - l->runs);
		l->cost = ns;
		l->runs = runs;
	}
	l->source->measure(l, l->periods % MEASURE_EVERY == MEASURE_EVERY - 1);
	s->cost_ns = l->cost_ns;
}

void live_take(struct live *l, struct live_sample *s)
{
	char text[128];
	*s = (struct live_sample){ .cpus = l->cpus, .has_bpf = !l->has_limits, .source = l->source->name,
	                           .is_guest = l->threads.is_guest };
	s->cpu = mem_new(l->cpus, sizeof *s->cpu);
	for (size_t i = 0; i < s->cpus; i++)
		for (int k = 0; k < 3; k++)
			s->cpu[i].top[k] = -1;
	l->source->take(l, s);
	for (size_t i = 0; i < s->vcpus && l->source != &machine_ops; i++)
		name_group(l, s, &s->vcpu[i]);
	measure_cost(l, s);
	l->periods++;
	s->has_siblings = live_has_siblings(l);
	s->hidden = l->threads.hidden;
	const double waited = read_pressure(l);
	s->pressure = waited < 0 ? -1 : waited / (double)max64(s->period, 1);
	const int64_t own_time = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	s->own_share = s->period > 0 ? (double)(own_time - l->own_time) / (double)s->period : 0;
	l->own_time = own_time;
	s->load = live_read(text, sizeof text, l->request.root, "/proc/loadavg") ? atof(text) : 0;
	refresh_threads(l);
}

void live_sample_release(struct live_sample *s)
{
	free(s->vcpu);
	free(s->group);
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
	machine_source_close(l->machine);
	machine_names_free(l->names);
	culprit_bounds_free(l->bounds);
	quotas_free(l->quotas);
	free(l->threads.thread);
	free(l->sibling);
	free(l->cpu);
	free(l);
}
