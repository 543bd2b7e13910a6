#include "sync_sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

uint64_t sim_random(uint64_t *seed)
{
	uint64_t z = *seed += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

double sim_uniform(uint64_t *seed)
{
	return (double)(sim_random(seed) >> 11) / 9007199254740992.0;
}

int64_t sim_below(uint64_t *seed, int64_t n)
{
	return (int64_t)(sim_random(seed) % (uint64_t)n);
}

double sim_exp(uint64_t *seed, double mean)
{
	return -mean * log(1 - sim_uniform(seed));
}

void sim_begin(struct sync_sim *s, uint64_t seed, int64_t begin, int64_t end)
{
	memset(s, 0, sizeof *s);
	s->seed = seed;
	s->begin = begin;
	s->end = end;
	s->string[s->strings++] = "";
}

void sim_end(struct sync_sim *s)
{
	free(s->host.ev);
}

int64_t sim_string(struct sync_sim *s, const char *text)
{
	for (size_t i = 0; i < s->strings; i++)
		if (strcmp(s->string[i], text) == 0)
			return (int64_t)i;
	s->string[s->strings] = text;
	return (int64_t)s->strings++;
}

int64_t sim_guest_time(const struct sim_vm *vm, int64_t host)
{
	if (vm->pause_at != 0 && host > vm->pause_at)
		host = host < vm->pause_at + vm->pause_ns ? vm->pause_at : host - vm->pause_ns;
	int64_t since = host - vm->clock.host0;
	double wander = vm->wander_s > 0 ? vm->wander_ns * sin(2 * acos(-1) * (double)since / 1e9 / vm->wander_s) : 0;
	if (vm->bend_at != 0 && host > vm->bend_at)
		wander -= (double)(host - vm->bend_at) * vm->bend_ppm / 1e6;
	return vm->clock.guest0 + since + (int64_t)floor((double)since * (1 / (1 + vm->clock.ppm / 1e6) - 1) + wander);
}

int64_t sim_host_time(const struct sim_vm *vm, int64_t guest)
{
	int64_t since = guest - vm->clock.guest0;
	return vm->clock.host0 + since + (int64_t)floor((double)since * vm->clock.ppm / 1e6);
}

bool sim_is_outside(const struct sim_vm *vm, const struct clock_map *clock)
{
	for (int k = 0; k < SIM_SAMPLES; k++) {
		const int64_t host = vm->from + (vm->to - vm->from) / (SIM_SAMPLES - 1) * k, guest = sim_guest_time(vm, host);
		int64_t low, high;
		if (clock_map_has_bounds(clock, guest) && (!clock_map_bounds(clock, guest, &low, &high) || host < low - 2 ||
		                                      host > high + 2))
			return true;
	}
	return false;
}

bool sim_is_known(const struct sim_vm *vm, const struct clock_map *clock)
{
	int known = 0;
	for (int k = 0; k < SIM_SAMPLES; k++)
		known += clock_map_has_bounds(clock, sim_guest_time(vm, vm->from + (vm->to - vm->from) / (SIM_SAMPLES - 1) * k));
	return 2 * known > SIM_SAMPLES;
}

bool sim_within_bounds(const struct sim_vm *vm, const struct clock_map *clock)
{
	return sim_is_known(vm, clock) && !sim_is_outside(vm, clock);
}

bool sim_is_unverified_end(const struct sim_vm *vm, const struct clock_map *clock, int64_t host)
{
	const int64_t near = (vm->to - vm->from) / 20;
	return (host < vm->from + near || host > vm->to - near) && !clock_map_has_bounds(clock, sim_guest_time(vm, host));
}

static struct event blank_event(int64_t ts, enum event_kind kind, unsigned cpu)
{
	struct event ev = { .ts = ts, .kind = (uint16_t)kind, .cpu = (uint16_t)cpu, .tid = -1, .pid = -1 };
	for (int i = 0; i < 6; i++)
		ev.arg[i] = EVENT_ABSENT;
	return ev;
}

static struct event *push_event(struct sim_events *e, int64_t ts, enum event_kind kind, unsigned cpu)
{
	struct event *ev = ARRAY_PUSH(e->ev, e->len, e->cap);
	*ev = blank_event(ts, kind, cpu);
	return ev;
}

struct vcpu_run {
	struct sync_sim *sim;
	const struct sim_vm *vm;
	struct sim_events *guest;
	unsigned number, pcpu;
	int64_t comm;
	uint64_t key;       /* next key of the beacon */
	int64_t beacon_at;
};

static struct event *on_host(struct vcpu_run *r, int64_t ts, enum event_kind kind)
{
	struct event *ev = push_event(&r->sim->host, ts, kind, r->pcpu);
	ev->tid = r->vm->pid + 1 + (int)r->number;
	ev->pid = r->vm->pid;
	ev->comm = (uint32_t)r->comm;
	return ev;
}

static struct event *in_guest(struct vcpu_run *r, int64_t host_ts, enum event_kind kind)
{
	static struct event nowhere;
	if (host_ts < r->vm->from || host_ts > r->vm->to)
		return &nowhere;
	return push_event(r->guest, sim_guest_time(r->vm, host_ts), kind, r->number);
}

/* Simulates one window in guest mode, [from, to], with events. */
static void run_window(struct vcpu_run *r, int64_t from, int64_t to)
{
	uint64_t *seed = &r->sim->seed;
	int64_t first = from + r->vm->latency_ns + (int64_t)sim_exp(seed, (double)r->vm->latency_ns);
	int64_t last = to - r->vm->latency_ns / 2 - (int64_t)sim_exp(seed, (double)r->vm->latency_ns);
	on_host(r, from, EV_VCPU_ENTRY);
	if (first < to && sim_uniform(seed) < 0.6)
		in_guest(r, first, EV_OTHER);
	for (double t = (double)first; r->vm->chatter > 0;) {
		t += sim_exp(seed, 1e6 / r->vm->chatter);
		if (t >= (double)last)
			break;
		in_guest(r, (int64_t)t, EV_OTHER);
	}
	if (last > first && sim_uniform(seed) < 0.4)
		in_guest(r, last, EV_OTHER);
	on_host(r, to, EV_VCPU_EXIT);
}

/* Simulates one beacon: guest event a, hypercall b, VM entry c, guest event d. Returns the end of its last window. */
static int64_t run_beacon(struct vcpu_run *r, int64_t from)
{
	uint64_t *seed = &r->sim->seed;
	int64_t a = from + 5000 + (int64_t)sim_exp(seed, 3000), exit = a + 1500 + (int64_t)sim_exp(seed, 2000);
	int64_t b = exit + 500 + sim_below(seed, 1000), entry = b + 800 + (int64_t)sim_exp(seed, 1500);
	int64_t d = entry + 1500 + (int64_t)sim_exp(seed, 2000), to = d + 20000;
	bool traced = a >= r->vm->from && d <= r->vm->to;
	on_host(r, from, EV_VCPU_ENTRY);
	if (traced) {
		struct event *ev = in_guest(r, a, EV_SYNC);
		ev->sync.end = SYNC_A;
		ev->sync.key = (int64_t)r->key;
	}
	on_host(r, exit, EV_VCPU_EXIT);
	struct event *ev = on_host(r, b, EV_SYNC);
	ev->sync.end = SYNC_B;
	ev->sync.key = (int64_t)r->key;
	on_host(r, entry, EV_VCPU_ENTRY);
	if (traced) {
		ev = in_guest(r, d, EV_SYNC);
		ev->sync.end = SYNC_D;
		ev->sync.key = (int64_t)r->key + 1;
	}
	on_host(r, to, EV_VCPU_EXIT);
	r->key += 2;
	r->beacon_at = to + (int64_t)(1e9 / r->vm->beacon_hz * (0.8 + 0.4 * sim_uniform(seed)));
	return to;
}

/* Simulates a periodic guest: the same windows in each period, with jitter, and random windows between them. */
static void run_periodic(struct vcpu_run *r)
{
	enum { STAYS_MAX = 256 };
	uint64_t *seed = &r->sim->seed;
	const struct sim_vm *vm = r->vm;
	struct { int64_t at, length; } stays[STAYS_MAX];
	unsigned n = vm->pattern < STAYS_MAX ? vm->pattern : STAYS_MAX;
	int64_t slot = vm->period_ns / (n > 0 ? n : 1), tolerance = slot - vm->gap_ns - vm->jitter_ns;
	for (unsigned i = 0; i < n; i++) {
		stays[i].length =
			3 * vm->latency_ns + (int64_t)((double)(tolerance - 3 * vm->latency_ns) * vm->busy * sim_uniform(seed));
		stays[i].at = slot * i + sim_below(seed, tolerance - stays[i].length + 1);
	}
	int64_t free_from = r->sim->begin, stray = r->sim->begin;
	for (int64_t base = r->sim->begin + sim_below(seed, 3000000);; base += vm->period_ns) {
		for (unsigned i = 0; i < n; i++) {
			int64_t from = base + stays[i].at + sim_below(seed, vm->jitter_ns + 1), to = from + stays[i].length;
			if (to >= r->sim->end)
				return;
			for (; vm->stray_hz > 0 && stray < from; stray += (int64_t)sim_exp(seed, 1e9 / vm->stray_hz)) {
				int64_t until = stray + 4 * vm->latency_ns;
				if (stray < free_from + vm->gap_ns || until + vm->gap_ns >= from)
					continue;
				run_window(r, stray, until);
				free_from = until;
			}
			run_window(r, from, to);
			free_from = to;
		}
	}
}

static void run_vcpu(struct vcpu_run *r)
{
	if (r->vm->period_ns > 0) {
		run_periodic(r);
		return;
	}
	uint64_t *seed = &r->sim->seed;
	const struct sim_vm *vm = r->vm;
	int64_t t = r->sim->begin + sim_below(seed, 3000000);
	r->beacon_at = vm->beacon_hz > 0 ? t + sim_below(seed, 50000000) : INT64_MAX;
	while (t < r->sim->end) {
		if (vm->pause_at != 0 && t >= vm->pause_at && t < vm->pause_at + vm->pause_ns)
			t = vm->pause_at + vm->pause_ns + sim_below(seed, 100000);
		if (t >= r->beacon_at) {
			t = run_beacon(r, t) + vm->gap_ns;
			continue;
		}
		double mean = vm->busy > 0.5 ? 900000 : 80000;
		int64_t to = t + 3 * vm->latency_ns + (int64_t)sim_exp(seed, mean);
		if (vm->pause_at != 0 && t < vm->pause_at && to > vm->pause_at)
			to = vm->pause_at;
		if (to >= r->sim->end)
			break;
		run_window(r, t, to);
		int64_t gap = vm->gap_ns + (int64_t)sim_exp(seed, (double)vm->gap_ns);
		if (sim_uniform(seed) < vm->preempted)
			gap += 1000000 + sim_below(seed, 15000000);
		if (sim_uniform(seed) > vm->busy)
			gap += (int64_t)sim_exp(seed, 25e6 * (1.02 - vm->busy));
		t = to + gap;
	}
}

void sim_run_vm(struct sync_sim *s, const struct sim_vm *vm, struct sim_events *guest)
{
	static const char *const name[] = {
		"CPU 0/KVM", "CPU 1/KVM", "CPU 2/KVM", "CPU 3/KVM", "CPU 4/KVM", "CPU 5/KVM", "CPU 6/KVM", "CPU 7/KVM",
	};
	memset(guest, 0, sizeof *guest);
	struct event *ev = push_event(&s->host, s->begin, EV_PROCESS, 0);
	ev->process.tid = ev->process.pid = vm->pid;
	ev->process.comm = sim_string(s, vm->process);
	for (unsigned i = 0; i < vm->vcpus; i++) {
		struct vcpu_run r = { .sim = s, .vm = vm, .guest = guest, .number = i, .pcpu = (unsigned)vm->pid % 7 * 8 + i,
			.key = 1 + 1000000 * (uint64_t)i };
		r.comm = sim_string(s, vm->named ? name[i % 8] : vm->process);
		run_vcpu(&r);
	}
}

static int by_ts(const void *pa, const void *pb)
{
	const struct event *a = pa, *b = pb;
	return a->ts < b->ts ? -1 : a->ts > b->ts;
}

struct trace *sim_host_trace(struct sync_sim *s)
{
	qsort(s->host.ev, s->host.len, sizeof *s->host.ev, by_ts);
	return trace_from_events("hypervisor", ROLE_HOST, s->host.ev, s->host.len, s->string, s->strings);
}

struct trace *sim_guest_trace(const char *machine, struct sim_events *e)
{
	if (e->len > 0)
		qsort(e->ev, e->len, sizeof *e->ev, by_ts);
	return trace_from_events(machine, ROLE_GUEST, e->ev, e->len, NULL, 0);
}
