#include "model/loss/initial_state.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/states.h"
#include "model/loss/coverage.h"

#define INDEX_BITS 40
#define QUIET_CPUS 1024  /* are looked at one by one: a damaged trace may name 65536 of them */

void start_release(struct start *s)
{
	free(s->thread);
	free(s->epoch);
	free(s->cpu);
	asleep_release(&s->asleep);
	handlers_release(&s->handlers);
	halts_release(&s->halts);
	map_release(&s->seen);
	*s = (struct start)START_INIT;
}

int8_t start_sched(const struct start *s, const struct start_thread *th)
{
	/* A dump calls a thread runnable that is current, too; of a CPU without any event nobody can tell which. */
	const bool open = th->dumped && th->sched == THREAD_PREEMPTED && th->cpu >= 0 &&
	                  ((uint32_t)th->cpu >= s->cpus || !s->cpu[th->cpu].seen);
	const bool tells_wakes = s->wakeups || s->wakings, tells_births = s->forks || (s->asked & ASKED_FORKS);
	const bool was_queued = tells_wakes && (th->before || tells_births);
	return open || (th->switched_in && !was_queued) ? THREAD_UNKNOWN : th->sched;
}

bool start_is_nowhere(const struct start *s, int64_t cpu)
{
	return s && cpu >= 0 && cpu < s->cpus && s->cpu[cpu].nowhere;
}

int8_t start_dumped(const struct event *ev)
{
	return ev->process.state == RUN_BLOCKED ? THREAD_BLOCKED
	     : ev->process.state == RUN_RUNNABLE ? THREAD_PREEMPTED : THREAD_UNKNOWN;
}

static void begin_epoch(struct start *s)
{
	*ARRAY_PUSH(s->epoch, s->epochs, s->epoch_cap) = s->threads;
}

void start_epoch(const struct start *s, size_t epoch, size_t *from, size_t *to)
{
	*from = epoch < s->epochs ? s->epoch[epoch] : s->threads;
	*to = epoch + 1 < s->epochs ? s->epoch[epoch + 1] : s->threads;
}

/* Notes that a TID is mentioned: true when that is the first time in this epoch; *before: was it in one before? */
static bool mention(struct start *s, int64_t tid, struct start_thread **th, bool *before)
{
	*th = NULL;
	if (tid <= 0 || tid > INT32_MAX)
		return false;
	uint64_t *slot = map_put(&s->seen, (uint64_t)tid, NULL);
	*before = *slot != 0;
	if (*slot >> INDEX_BITS == s->epochs) {
		uint64_t index = *slot & ((1ULL << INDEX_BITS) - 1);
		*th = index ? &s->thread[index - 1] : NULL;
		return false;
	}
	*slot = (uint64_t)s->epochs << INDEX_BITS;
	return true;
}

static struct start_thread *mentioned(struct start *s, int64_t tid)
{
	uint64_t *slot = tid > 0 ? map_find(&s->seen, (uint64_t)tid) : NULL;
	uint64_t index = slot && *slot >> INDEX_BITS == s->epochs ? *slot & ((1ULL << INDEX_BITS) - 1) : 0;
	return index ? &s->thread[index - 1] : NULL;
}

/* The first mention of a TID: the thread to fill in, or NULL when the TID was mentioned before. */
static struct start_thread *first(struct start *s, int64_t tid, int8_t sched)
{
	struct start_thread *th;
	bool before;
	if (mention(s, tid, &th, &before)) {
		th = ARRAY_PUSH(s->thread, s->threads, s->thread_cap);
		*th = (struct start_thread){ .tid = (int32_t)tid, .pid = -1, .cpu = -1, .before = before };
		*map_find(&s->seen, (uint64_t)tid) |= s->threads;
	} else if (!th || !th->pending) {
		return NULL;
	}
	th->pending = false;
	th->sched = sched;
	th->switched_in = false;
	return th;
}

/* What the first that tells of its CPU says: a migration tells where it was before, and what comes later where it went. */
static void was_on(struct start_thread *th, int64_t cpu)
{
	if (th->cpu < 0 && cpu >= 0 && cpu <= UINT16_MAX)
		th->cpu = (int32_t)cpu;
}

static uint32_t name_id(int64_t comm)
{
	return comm > 0 && comm <= UINT32_MAX ? (uint32_t)comm : 0;
}

static void add_cpus(struct start *s, uint32_t number)
{
	s->cpu = mem_resize(s->cpu, number + 1, sizeof *s->cpu);
	for (uint32_t i = s->cpus; i <= number; i++)
		s->cpu[i] = (struct start_cpu){ .tid = -1, .pid = -1, .mode = MODE_UNKNOWN, .told = -1 };
	s->cpus = number + 1;
}

static inline struct start_cpu *cpu_slot(struct start *s, uint32_t number)
{
	if (number >= s->cpus)
		add_cpus(s, number);
	return &s->cpu[number];
}

/* Events that come when the thread already has its new name. */
static bool renames(const struct event *ev)
{
	return ev->kind == EV_EXEC || ev->kind == EV_RENAME;
}

/* The CPU's first event that tells: whoever was current then has been since the beginning. */
static void current_of_cpu(struct start *s, struct start_cpu *c, uint32_t number, const struct event *ev)
{
	bool is_switch = ev->kind == EV_SWITCH && ev->sw.prev_tid >= 0 && ev->sw.prev_tid <= INT32_MAX;
	int64_t tid = is_switch ? ev->sw.prev_tid : ev->tid;
	if (tid < 0)
		return;
	c->tid = (int32_t)tid;
	c->comm = is_switch ? name_id(ev->sw.prev_comm) : renames(ev) ? 0 : ev->comm;
	c->pid = tid == ev->tid ? ev->pid : -1;
	struct start_thread *th = first(s, tid, THREAD_RUNNING);
	if (th)
		was_on(th, number);
}

/* In what mode the first current thread of a CPU began, should it be a vCPU: to leave the CPU, or to enter the
 * guest, it must have been in the hypervisor. */
static void mode_of_cpu(struct start_cpu *c, const struct event *ev)
{
	c->mode_known = ev->kind == EV_KVM_EXIT || ev->kind == EV_KVM_ENTRY || ev->kind == EV_SWITCH;
	if (c->mode_known)
		c->mode = ev->kind == EV_KVM_EXIT ? MODE_GUEST : MODE_VMM;
}

/* A dump calls a thread runnable that is current, too: since the last loss nothing has told who that is on its CPU. */
static bool may_be_current(const struct start *s, const struct event *ev)
{
	const int64_t cpu = ev->process.cpu;
	return ev->process.state == RUN_RUNNABLE && cpu >= 0 && (cpu >= s->cpus || s->cpu[cpu].in != s->epochs);
}

static void on_process(struct start *s, const struct event *ev)
{
	if (ev->process.state == RUN_DEAD)
		return;
	struct start_thread *th = first(s, ev->process.tid, start_dumped(ev));
	if (th) {
		th->dumped = th->cpu < 0;
		th->pending = s->epochs > 1 && may_be_current(s, ev);
		was_on(th, ev->process.cpu);
	}
	if (!th)
		th = mentioned(s, ev->process.tid);
	if (!th)
		return;
	if (!th->comm && !th->renamed)
		th->comm = name_id(ev->process.comm);
	if (ev->process.pid > 0 && ev->process.pid <= INT32_MAX)
		th->pid = (int32_t)ev->process.pid;
}

/* A dump tells the innermost namespace first. */
static void on_namespace(uint32_t *to, int64_t ns)
{
	if (!*to && ns > 0 && ns <= UINT32_MAX)
		*to = (uint32_t)ns;
}

static void on_switch(struct start *s, const struct event *ev)
{
	s->switches++;
	bool moved = mentioned(s, ev->sw.next_tid);
	struct start_thread *th = first(s, ev->sw.next_tid, THREAD_PREEMPTED);
	if (!th)
		return;
	if (!moved)
		th->cpu = ev->cpu;
	th->switched_in = true;
	th->comm = th->renamed ? 0 : name_id(ev->sw.next_comm);
}

static void on_wake(struct start *s, const struct event *ev)
{
	struct start_thread *th = first(s, ev->wake.tid, THREAD_BLOCKED);
	s->wakeups += ev->kind == EV_WAKEUP;
	s->wakings += ev->kind == EV_WAKING;
	if (!th)
		return;
	th->comm = name_id(ev->wake.comm);
	/* The target of a waking is where the thread ran last; that of a wakeup is where it goes. */
	if (ev->kind == EV_WAKING)
		was_on(th, ev->wake.target_cpu);
}

static void on_migrate(struct start *s, const struct event *ev)
{
	struct start_thread *th = first(s, ev->migrate.tid, THREAD_UNKNOWN);
	s->moves++;
	if (!th)
		return;
	th->pending = true;
	was_on(th, ev->migrate.orig_cpu);
}

/* Whose process a thread is may be said later than that it exists. */
static void on_context(struct start *s, struct start_cpu *c, const struct event *ev)
{
	if ((c->told == ev->tid && c->told_in == s->epochs) || ev->pid <= 0 || ev->tid <= 0)
		return;
	c->told = ev->tid;
	c->told_in = s->epochs;
	struct start_thread *th = mentioned(s, ev->tid);
	if (th && th->pid < 0)
		th->pid = ev->pid;
}

/* What comes under this TID from now on is another thread. */
static void end_life(struct start *s, int64_t tid)
{
	uint64_t *slot = tid > 0 && tid <= INT32_MAX ? map_put(&s->seen, (uint64_t)tid, NULL) : NULL;
	if (slot)
		*slot = (uint64_t)s->epochs << INDEX_BITS;
}

/* Which other parts want to know of such an event. */
enum { ASLEEP = 1, HANDLERS = 2, HALTS = 4 };
static const uint8_t wants[EVENT_KIND_COUNT] = {
	[EV_LOST] = ASLEEP | HANDLERS | HALTS, [EV_SWITCH] = ASLEEP | HANDLERS | HALTS,
	[EV_WAKING] = ASLEEP | HALTS, [EV_FORK] = ASLEEP,
	[EV_IRQ_ENTRY] = HANDLERS, [EV_SOFTIRQ_ENTRY] = HANDLERS, [EV_TIMER_ENTRY] = HANDLERS,
	[EV_IRQ_EXIT] = HANDLERS, [EV_SOFTIRQ_EXIT] = HANDLERS, [EV_TIMER_EXIT] = HANDLERS,
	[EV_KVM_ENTRY] = HALTS, [EV_KVM_EXIT] = HALTS, [EV_INJECT] = HALTS, [EV_IPI] = HALTS,
};

static void feed_parts(struct start *s, const struct event *ev, unsigned who)
{
	if (who & ASLEEP)
		asleep_feed(&s->asleep, ev);
	if (who & HANDLERS)
		handlers_feed(&s->handlers, ev);
	if (who & HALTS)
		halts_feed(&s->halts, ev, ev->kind == EV_WAKING && handlers_inside(&s->handlers, ev->cpu));
}

void start_feed(struct start *s, const struct event *ev)
{
	struct start_thread *th;
	feed_parts(s, ev, wants[ev->kind]);
	if (!s->epochs)
		begin_epoch(s);
	if (s->lost_pending && ev->ts > s->lost_until) {
		begin_epoch(s);
		s->lost_pending = false;
	}
	if (ev->kind == EV_LOST) {
		int64_t end = ev->lost.end > ev->ts ? ev->lost.end : ev->ts;
		s->lost_until = end > s->lost_until || s->epochs == 1 ? end : s->lost_until;
		s->lost_pending = true;
		cpu_slot(s, ev->cpu)->lost = true;
		begin_epoch(s);
		return;
	}
	struct start_cpu *c = cpu_slot(s, ev->cpu);
	c->in = s->epochs;
	if (!c->lost) {
		c->seen = true;
		if (c->tid < 0)
			current_of_cpu(s, c, ev->cpu, ev);
		if (!c->mode_known)
			mode_of_cpu(c, ev);
	}
	if (s->epochs > 1) {  /* who runs is no news here, but it is a mention */
		first(s, ev->tid, THREAD_RUNNING);
		if (ev->kind == EV_SWITCH)
			first(s, ev->sw.prev_tid, THREAD_RUNNING);
	}
	on_context(s, c, ev);
	switch (ev->kind) {
	case EV_SWITCH:
		on_switch(s, ev);
		break;
	case EV_WAKING:
	case EV_WAKEUP:
		on_wake(s, ev);
		break;
	case EV_MIGRATE:
		on_migrate(s, ev);
		break;
	case EV_FORK:
		s->forks++;
		end_life(s, ev->fork.child_tid);
		break;
	case EV_EXIT:
		end_life(s, ev->exit.tid == EVENT_ABSENT ? ev->tid : ev->exit.tid);
		break;
	case EV_EXEC:
	case EV_RENAME:
		th = mentioned(s, ev->kind == EV_EXEC ? ev->exec.tid > 0 ? ev->exec.tid : ev->tid : ev->rename.tid);
		if (th)
			th->renamed = true;
		break;
	case EV_PROCESS:
		on_process(s, ev);
		break;
	case EV_PROCESS_NS:
	case EV_PROCESS_CGROUP:
		th = mentioned(s, ev->process_ns.tid);
		if (th)
			on_namespace(ev->kind == EV_PROCESS_NS ? &th->pid_ns : &th->cgroup_ns, ev->process_ns.ns);
		break;
	default:
		break;
	}
}

void start_silent(struct start *s, uint32_t cpu)
{
	cpu_slot(s, cpu)->silent = true;
}

/* A CPU on which nothing ever happens runs one thread all the time: if only one is dumped as one that could run there,
 * that one. */
static void current_of_silent_cpus(struct start *s)
{
	size_t at, end;
	for (start_epoch(s, 0, &at, &end); at < end; at++) {
		struct start_thread *th = &s->thread[at];
		if (!th->dumped || th->sched != THREAD_PREEMPTED || th->cpu < 0 || (uint32_t)th->cpu >= s->cpus)
			continue;
		struct start_cpu *c = &s->cpu[th->cpu];
		if (!c->silent)
			continue;
		c->could_run++;
		c->tid = c->could_run > 1 ? -1 : th->tid;
		c->comm = th->comm;
		c->pid = th->pid;
		th->sched = THREAD_UNKNOWN;
	}
	for (uint32_t i = 0; i < s->cpus; i++)
		s->cpu[i].seen |= s->cpu[i].could_run > 0;
}

void start_finish(struct start *s)
{
	if (s->switches)
		current_of_silent_cpus(s);
	asleep_finish(&s->asleep);
	halts_finish(&s->halts);
	map_release(&s->seen);
}

/* CPUs on which nothing happened that the model would use: any event proves who is current there. */
static int look_at_quiet_cpus(struct start *s, const struct trace *trace, struct error *err)
{
	uint32_t looked = 0;
	for (uint32_t i = 0; i < trace_info(trace)->cpus && looked < QUIET_CPUS; i++) {
		struct event ev;
		int got = 0;
		if (i < s->cpus && (s->cpu[i].tid >= 0 || s->cpu[i].lost))
			continue;
		struct trace_cursor *c = trace_cursor_open(trace, ALL_KINDS, (int)i, err);
		if (!c)
			return -1;
		for (int n = 0; n < 1000 && (got = trace_cursor_next(c, &ev, err)) > 0 && ev.kind != EV_LOST; n++) {
			struct start_cpu *cpu = cpu_slot(s, i);
			cpu->seen = true;
			current_of_cpu(s, cpu, i, &ev);
			if (cpu->tid >= 0)
				break;
		}
		trace_cursor_close(c);
		if (got < 0)
			return -1;
		looked += got > 0;
		if (got == 0)
			start_silent(s, i);
	}
	const struct trace_info *info = trace_info(trace);
	for (uint32_t i = 0; i < info->cpus_told; i++)
		if (info->cpu[i].nowhere)
			cpu_slot(s, i)->nowhere = true;
	for (uint32_t i = info->cpus; i < info->cpus_told; i++)
		if (info->cpu[i].told && info->cpu[i].begin <= info->cpu[i].end)
			start_silent(s, i);
	return 0;
}

int start_look(struct start *s, const struct trace *trace, const struct clock_map *clock, struct error *err)
{
	const event_kinds kinds = ALL_KINDS & ~(KIND(EV_OTHER) | KIND(EV_SYNC) | KIND(EV_HYPERCALL));
	const struct event *ev;
	struct cover c;
	s->asked = trace_info(trace)->asked;
	int got = cover_open(&c, trace, clock, kinds, err);
	for (long n = 0; n < START_EVENTS && got >= 0 && (got = cover_next(&c, &ev, err)) > 0; n++)
		start_feed(s, ev);
	cover_close(&c);
	if (got >= 0)
		got = look_at_quiet_cpus(s, trace, err);
	start_finish(s);
	return got;
}
