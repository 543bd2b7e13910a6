/* What is known without an event: at the beginning of a trace, and what is not, and is again, around a loss.
 *
 * A loss on one CPU makes that CPU unknown until an event proves who is current there, and the threads that ran, were
 * queued or slept there, and those that are queued there meanwhile.  Threads elsewhere keep their state, unless their
 * next mention contradicts it: then they changed while events were lost.  When the loss is over, what the next mention
 * tells holds.  A loss costs a look at every live thread of its machine and at those mentioned until the next one. */
#include "model/feed.h"

static void take_over(struct machine *mc, const struct start_thread *s)
{
	struct thread *th = thread_get(mc, s->tid);
	if (!th)
		return;
	thread_pid_ns(mc, th, s->pid_ns);
	thread_cgroup_ns(mc, th, s->cgroup_ns);
	thread_learn(mc, th, s->comm, s->pid);
	thread_place(mc, th, s->cpu);
	th->sched = start_sched(mc->start, s);
	th->woken = WOKEN_PERHAPS;
}

void known_begin(struct machine *mc, const struct start *start)
{
	size_t at, end;
	for (start_epoch(start, 0, &at, &end); at < end; at++)
		take_over(mc, &start->thread[at]);
	for (uint32_t i = 0; i < start->cpus; i++) {
		const struct start_cpu *s = &start->cpu[i];
		if (!s->seen)
			continue;
		cpu_get(mc, i);
		if (s->tid < 0)
			continue;
		struct thread *th = thread_get(mc, s->tid);
		cpu_enter(mc, i, th, s->mode);
		if (th)
			thread_learn(mc, th, s->comm, s->pid);
	}
	uint64_t tid, p;
	for (at = 0; map_each(&mc->thread, &at, &tid, &p); )
		update_thread(mc, (struct thread *)(uintptr_t)p);
}

static void doubt(struct machine *mc, struct thread *th)
{
	if (th->on >= 0 || th->sched == THREAD_UNKNOWN)
		return;
	th->sched = THREAD_UNKNOWN;
	th->waker = -1;
	update_thread(mc, th);
}

/* Threads whose next mention contradicts what they are supposed to be.  That mention is in this epoch, or in the one
 * after the loss. */
static void doubt_contradicted(struct machine *mc)
{
	struct map seen = MAP_INIT;
	for (size_t epoch = mc->epoch; mc->start && epoch <= mc->epoch + 1; epoch++) {
		size_t i, end;
		for (start_epoch(mc->start, epoch, &i, &end); i < end; i++) {
			const struct start_thread *s = &mc->start->thread[i];
			struct thread *th = thread_find(mc, s->tid);
			bool is_new;
			map_put(&seen, (uint64_t)s->tid, &is_new);
			if (is_new && th && start_sched(mc->start, s) != THREAD_UNKNOWN &&
			    start_sched(mc->start, s) != th->sched)
				doubt(mc, th);
		}
	}
	map_release(&seen);
}

void known_lose(struct machine *mc, uint32_t number, const struct event *ev)
{
	int64_t lost_until = ev->lost.end > ev->ts ? ev->lost.end : ev->ts;
	mc->cpu[number].lost_until = lost_until;
	mc->lost_until = lost_until > mc->lost_until || !mc->epoch ? lost_until : mc->lost_until;
	mc->lost_pending = true;
	mc->epoch++;
	irq_clear(mc, &mc->cpu[number]);
	cpu_unknown(mc, number);
	request_unknown(mc);
	uint64_t tid, p;
	for (size_t at = 0; map_each(&mc->thread, &at, &tid, &p); )
		if (((struct thread *)(uintptr_t)p)->cpu == (int32_t)number)
			doubt(mc, (struct thread *)(uintptr_t)p);
	doubt_contradicted(mc);
}

void known_queue(struct machine *mc, struct thread *th, int64_t now)
{
	if (th->cpu >= 0 && (uint32_t)th->cpu < mc->cpus && mc->cpu[th->cpu].lost_until >= now)
		th->sched = THREAD_UNKNOWN;
}

/* Whether a vCPU's thread that waits was woken or had lost its CPU, its next mention does not tell. */
static bool tells(const struct machine *mc, const struct start_thread *s)
{
	int8_t sched = start_sched(mc->start, s);
	return sched == THREAD_BLOCKED ||
	       (sched == THREAD_PREEMPTED && !map_find(&mc->candidate, (uint64_t)s->tid));
}

/* Who waits for a CPU and is never mentioned again has not waited all that time: it ran, or ended, unseen. */
static void doubt_forgotten(struct machine *mc)
{
	uint64_t tid, p;
	for (size_t at = 0; map_each(&mc->thread, &at, &tid, &p); ) {
		struct thread *th = (struct thread *)(uintptr_t)p;
		if (!th->mentioned && th->sched == THREAD_PREEMPTED)
			doubt(mc, th);
		th->mentioned = false;
	}
}

void known_regain(struct machine *mc)
{
	size_t i, end;
	mc->lost_pending = false;
	mc->epoch++;
	if (!mc->start)
		return;
	for (start_epoch(mc->start, mc->epoch, &i, &end); i < end; i++) {
		const struct start_thread *s = &mc->start->thread[i];
		struct thread *th = thread_find(mc, s->tid);
		if (th)
			th->mentioned = true;
		if (!tells(mc, s) || (th && (th->on >= 0 || th->sched == start_sched(mc->start, s))))
			continue;
		take_over(mc, s);
		th = thread_find(mc, s->tid);
		th->mentioned = true;
		update_thread(mc, th);
	}
	doubt_forgotten(mc);
}
