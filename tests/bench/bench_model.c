/* Benchmark of the model alone, on one core: replays synthetic events from memory, once into a sink that drops every
 * change and once into a history builder. The mix is that of a recorded host with one busy guest: of 100 events about 38
 * are KVM entries and exits, 36 timers, 6 switches, 5 wakings and wakeups, 9 irqs and softirqs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "model/state/feed.h"

enum { PCPUS = 4, VMS = 4, VCPUS = 2, HOST_THREADS = 40, GUEST_THREADS = 20, EVENTS = 500000, ROUNDS = 8 };

struct model_record {
	uint32_t machine;
	struct event ev;
};

struct guest_cpu {
	int32_t current;  /* 0 = idle */
};

struct event_stream {
	struct model_record *record;
	size_t n;
	int64_t t;
	uint64_t random;
	int32_t current[PCPUS];  /* TID */
	struct guest_cpu guest[VMS][VCPUS];
};

static uint64_t random_below(struct event_stream *s, uint64_t n)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return s->random % n;
}

static struct event *add_event(struct event_stream *s, uint32_t machine, uint16_t cpu, int32_t tid, uint16_t kind)
{
	struct model_record *r = &s->record[s->n < EVENTS + 100 ? s->n++ : s->n];
	s->t += 500 + (int64_t)random_below(s, 3000);
	r->machine = machine;
	r->ev = (struct event){ .ts = s->t, .kind = kind, .cpu = cpu, .tid = tid, .pid = tid, .comm = 1 };
	for (int i = 0; i < 6; i++)
		r->ev.arg[i] = EVENT_ABSENT;
	return &r->ev;
}

static int32_t world_vcpu_tid(uint32_t vm, uint32_t vcpu)
{
	return (int32_t)(1000 + 10 * vm + vcpu);
}

static void add_timer(struct event_stream *s, uint32_t machine, uint16_t cpu, int32_t tid)
{
	add_event(s, machine, cpu, tid, EV_TIMER_ENTRY)->timer.timer = 77;
	add_event(s, machine, cpu, tid, EV_TIMER_EXIT)->timer.timer = 77;
}

static void add_softirq(struct event_stream *s, uint32_t machine, uint16_t cpu, int32_t tid)
{
	int64_t vec = (int64_t)random_below(s, 10);
	add_event(s, machine, cpu, tid, EV_SOFTIRQ_ENTRY)->irq.number = vec;
	add_event(s, machine, cpu, tid, EV_SOFTIRQ_EXIT)->irq.number = vec;
}

static void add_wakeup(struct event_stream *s, uint32_t machine, uint16_t cpu, int32_t tid, int32_t woken)
{
	for (int i = 0; i < 2; i++) {
		struct event *ev = add_event(s, machine, cpu, tid, i ? EV_WAKEUP : EV_WAKING);
		ev->wake.tid = woken;
		ev->wake.comm = 1;
		ev->wake.target_cpu = cpu;
	}
}

static void add_switch(struct event_stream *s, uint32_t machine, uint16_t cpu, int32_t prev, int32_t next)
{
	struct event *ev = add_event(s, machine, cpu, prev, EV_SWITCH);
	ev->sw.prev_tid = prev;
	ev->sw.next_tid = next;
	ev->sw.prev_state = random_below(s, 2) ? RUN_RUNNABLE : RUN_BLOCKED;
	ev->sw.prev_comm = ev->sw.next_comm = 1;
}

/* Adds the events of a vCPU thread until its next switch: some rounds of VM entry, guest events, VM exit. */
static void run_vcpu(struct event_stream *s, uint16_t cpu, int32_t tid)
{
	uint32_t vm = (uint32_t)(tid - 1000) / 10, vcpu = (uint32_t)(tid - 1000) % 10;
	struct guest_cpu *g = &s->guest[vm][vcpu];
	for (uint64_t rounds = 1 + random_below(s, 12); rounds > 0; rounds--) {
		add_event(s, 0, cpu, tid, EV_VCPU_ENTRY);
		if (random_below(s, 3) == 0)
			add_timer(s, vm + 1, (uint16_t)vcpu, g->current);
		if (random_below(s, 8) == 0) {
			int32_t next = random_below(s, 4) ? (int32_t)(100 + vcpu * GUEST_THREADS + random_below(s, GUEST_THREADS)) : 0;
			if (next && next != g->current)
				add_wakeup(s, vm + 1, (uint16_t)vcpu, g->current, next);
			if (next != g->current)
				add_switch(s, vm + 1, (uint16_t)vcpu, g->current, next);
			g->current = next;
		}
		add_event(s, 0, cpu, tid, EV_VCPU_EXIT);
		if (random_below(s, 3) != 0)
			add_timer(s, 0, cpu, tid);
		if (random_below(s, 6) == 0)
			add_softirq(s, 0, cpu, tid);
	}
}

static void generate_events(struct event_stream *s)
{
	while (s->n < EVENTS) {
		uint16_t cpu = (uint16_t)random_below(s, PCPUS);
		int32_t now = s->current[cpu], next;
		if (now >= 1000)
			run_vcpu(s, cpu, now);
		else
			add_timer(s, 0, cpu, now);
		/* CPU c runs only the vCPUs of VM c and its own host threads, so that no thread is on two CPUs. */
		next = random_below(s, 3) ? world_vcpu_tid(cpu, (uint32_t)random_below(s, VCPUS)) :
		       random_below(s, 3) ? (int32_t)(200 + (unsigned)cpu * HOST_THREADS + random_below(s, HOST_THREADS)) : 0;
		if (next == now)
			continue;
		if (next)
			add_wakeup(s, 0, cpu, now, next);
		add_switch(s, 0, cpu, now, next);
		s->current[cpu] = next;
	}
}

static const char *constant_name(const void *of, int64_t id)
{
	(void)of, (void)id;
	return "thread";
}

static unsigned drop_state_set(void *to, const char *name, const char *const *state, unsigned n)
{
	(void)to, (void)name, (void)state, (void)n;
	return 0;
}

static uint32_t drop_attribute(void *to, const char *path, enum history_type type, unsigned set, struct error *err)
{
	(void)path, (void)type, (void)set, (void)err;
	return (*(uint32_t *)to)++;
}

static int drop_set(void *to, int64_t t, uint32_t attr, int64_t value, struct error *err)
{
	(void)to, (void)t, (void)attr, (void)value, (void)err;
	return 0;
}

static int64_t drop_text(void *to, const char *text, struct error *err)
{
	(void)to, (void)text, (void)err;
	return 0;
}

static const struct model_sink_ops drop = { drop_state_set, drop_attribute, drop_set, drop_text };

static double cpu_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int replay_events(const struct event_stream *s, const struct model_sink_ops *ops, void *to, int64_t *end,
                         double *elapsed, struct error *err)
{
	struct machine_setup setup[1 + VMS] = { { .name = "host", .parent = -1, .traced = true, .has_entries = true,
	                                          .host_pid = -1, .names = { constant_name, NULL } } };
	struct sync_vcpu vcpu[VMS][VCPUS];
	char name[VMS][16];
	for (uint32_t i = 0; i < VMS; i++) {
		snprintf(name[i], sizeof name[i], "vm%" PRIu32, i);
		for (uint32_t k = 0; k < VCPUS; k++)
			vcpu[i][k] = (struct sync_vcpu){ .number = k, .host_tid = world_vcpu_tid(i, k) };
		setup[1 + i] = (struct machine_setup){ .name = name[i], .parent = 0, .traced = true, .host_pid = -1,
		                                       .vcpu = vcpu[i], .vcpus = VCPUS, .names = { constant_name, NULL } };
	}
	struct model *m = model_new(setup, 1 + VMS, false, ops, to, err);
	int r = m ? 0 : -1;
	for (uint32_t i = 0; i <= VMS && r == 0; i++)
		r = model_begin(m, i, 0, NULL, err);
	double begin = cpu_seconds();
	for (int round = 0; round < ROUNDS && r == 0; round++)
		for (size_t i = 0; i < s->n && r == 0; i++) {
			*end = s->record[i].ev.ts + round * s->t;
			r = model_feed(m, s->record[i].machine, *end, &s->record[i].ev, err);
		}
	*elapsed = cpu_seconds() - begin;
	model_free(m);
	return r;
}

static void print_rate(const char *label, const struct event_stream *s, double elapsed)
{
	double n = (double)s->n * ROUNDS;
	printf("model: %.1f M events %s: %.2f s, %.1f M events/s, one core (target: 5)\n", n / 1e6, label, elapsed,
	       n / elapsed / 1e6);
}

/* Runs in its own process: a million threads are forked, run and exit, some dozens at a time. Prints the peak memory. */
static int run_short_threads(void)
{
	enum { CHURN = 1000000, LIVE = 50 };
	struct machine_setup setup = { .name = "host", .parent = -1, .traced = true, .host_pid = -1,
	                               .names = { constant_name, NULL } };
	struct error err = ERROR_INIT;
	struct history_builder *b = history_create("bench_model.tmp", NULL, &err);
	struct model *m = b ? model_new(&setup, 1, false, &sink_history, b, &err) : NULL;
	struct event_stream s = { .record = mem_new(EVENTS + 102, sizeof *s.record), .t = 1000 };
	int64_t began = s.t;
	int r = m ? model_begin(m, 0, s.t, NULL, &err) : -1;
	double start = cpu_seconds();
	s.n = EVENTS + 100;  /* add_event() overwrites one record after the end of the stream, for one event at a time */
	for (int32_t i = 0; i < CHURN && r == 0; i++) {
		int32_t tid = 1000 + i, old = tid - LIVE;
		struct event *ev = add_event(&s, 0, 0, 1, EV_FORK);
		ev->fork.child_tid = ev->fork.child_pid = tid;
		ev->fork.child_comm = 1;
		r = model_feed(m, 0, ev->ts, ev, &err);
		ev = add_event(&s, 0, 0, 1, EV_WAKEUP);
		ev->wake.tid = tid;
		ev->wake.target_cpu = 0;
		r = r ? r : model_feed(m, 0, ev->ts, ev, &err);
		for (int out = 0; out < 2 && i >= LIVE && r == 0; out++) {
			ev = add_event(&s, 0, 0, out ? old : 1, EV_SWITCH);
			ev->sw.prev_tid = out ? old : 1;
			ev->sw.next_tid = out ? 1 : old;
			ev->sw.prev_state = out ? RUN_DEAD : RUN_RUNNABLE;
			r = model_feed(m, 0, ev->ts, ev, &err);
		}
	}
	model_free(m);
	if (r == 0)
		r = history_finish(b, began, s.t, &err);
	remove("bench_model.tmp");
	free(s.record);
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	if (r)
		fprintf(stderr, "bench_model: %s\n", err.text);
	else
		printf("model: a history of %d threads, %d at a time: peak %ld MiB (target: 192), %.1f s\n", CHURN, LIVE,
		       usage.ru_maxrss / 1024, cpu_seconds() - start);
	fflush(stdout);
	return r;
}

int main(void)
{
	struct error err = ERROR_INIT;
	pid_t child = fork();
	if (child == 0)
		_exit(run_short_threads() < 0);
	if (child > 0)
		waitpid(child, NULL, 0);
	struct event_stream s = { .record = mem_new(EVENTS + 200, sizeof *s.record), .random = 42 };
	uint32_t attributes = 0;
	int64_t end;
	double elapsed;
	generate_events(&s);
	if (replay_events(&s, &drop, &attributes, &end, &elapsed, &err) < 0)
		goto failed;
	print_rate("to a sink that drops them", &s, elapsed);
	struct history_builder *b = history_create("bench_model.tmp", NULL, &err);
	if (!b || replay_events(&s, &sink_history, b, &end, &elapsed, &err) < 0)
		goto failed;
	print_rate("to a history builder", &s, elapsed);
	history_abort(b);
	free(s.record);
	return 0;
failed:
	fprintf(stderr, "bench_model: %s\n", err.text);
	return 1;
}
