/* What is known without an event: at the beginning of a trace, and what is not, and is again, around a loss.
 *
 * A loss on one CPU hides what that CPU did, and that may concern any thread which is on no CPU: a lost event may have
 * woken it, taken it over from the CPU that it waited for, let it run, and put it to sleep or back into a queue.  So
 * while events are lost, on whichever CPU, it is known who is current on the other CPUs, and that those sleep of
 * which looking ahead proves it; of all other threads nothing is, from the moment on after an event that concerns
 * them.  When all losses are over, what the next mention of a thread tells holds.
 * A loss costs a look at every live thread of its machine and at those mentioned until the next one. */
#include "model/state/feed.h"

static void take_over(struct machine *mc, const struct start_thread *s)
{
	struct thread *th = thread_get(mc, s->tid);
	if (!th)
		return;
	thread_pid_ns(mc, th, s->pid_ns);
	thread_cgroup_ns(mc, th, s->cgroup_ns);
	thread_learn(mc, th, s->comm, s->pid);
	if (s->cpu < 0)
		thread_displace(mc, th);  /* it may have been moved among lost events */
	thread_place(mc, th, s->cpu);
	th->sched = start_sched(mc->start, s);
	th->woken = WOKEN_PERHAPS;
}

/* It sleeps, as is proved; nothing needs to be known of it but that. */
static void take_sleep(struct machine *mc, struct thread *th, const struct sleep *s)
{
	thread_learn(mc, th, s->comm, -1);
	thread_place(mc, th, s->cpu);
	th->sched = THREAD_BLOCKED;
}

/* Those that sleep from the beginning until after the first loss. */
static void begin_asleep(struct machine *mc, const struct asleep *a)
{
	for (size_t i = 0; i < a->sleeps; i++)
		if (a->sleep[i].from == INT64_MIN && !thread_find(mc, a->sleep[i].tid))
			take_sleep(mc, thread_get(mc, a->sleep[i].tid), &a->sleep[i]);
}

void known_begin(struct machine *mc, const struct start *start)
{
	size_t at, end;
	irq_foresee(mc, start);
	for (start_epoch(start, 0, &at, &end); at < end; at++)
		take_over(mc, &start->thread[at]);
	begin_asleep(mc, &start->asleep);
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
		known_resume(mc, i);
	}
	uint64_t tid, p;
	for (at = 0; map_each(&mc->thread, &at, &tid, &p); )
		update_thread(mc, (struct thread *)(uintptr_t)p);
}

void known_told(struct machine *mc, struct thread *th, int64_t t)
{
	const bool is_out_of_sight = th->sched == THREAD_PREEMPTED && start_is_nowhere(mc->start, th->cpu);
	if (!(mc->lost_pending || is_out_of_sight) || th->on >= 0)
		return;
	const struct sleep *s = mc->start ? asleep_at(&mc->start->asleep, th->tid, t) : NULL;
	if (s) {
		take_sleep(mc, th, s);
		return;
	}
	th->sched = THREAD_UNKNOWN;
	th->waker = -1;
	th->doubted = true;
	if (th->vcpu != NONE)
		guest_lose(mc->model, &mc->model->vcpu[th->vcpu]);
}

void known_lose(struct machine *mc, uint32_t number, const struct event *ev)
{
	struct cpu *c = &mc->cpu[number];
	int64_t lost_until = ev->lost.end > ev->ts ? ev->lost.end : ev->ts;
	mc->lost_until = lost_until > mc->lost_until || !mc->epoch ? lost_until : mc->lost_until;
	mc->lost_pending = true;
	mc->epoch++;
	c->gap++;
	c->resumes = true;
	irq_clear(mc, c);
	limits_doubt(c);
	cpu_unknown(mc, number);
	request_unknown(mc);
	uint64_t tid, p;
	for (size_t at = 0; map_each(&mc->thread, &at, &tid, &p); ) {
		struct thread *th = (struct thread *)(uintptr_t)p;
		known_told(mc, th, ev->ts);
		lock_forget(mc, th);
		update_thread(mc, th);
	}
}

void known_resume(struct machine *mc, uint32_t number)
{
	struct event entry[NEST_DEEP];
	struct cpu *c = &mc->cpu[number];
	c->resumes = false;
	c->last = mc->model->sink.now - 1;
	if (!mc->start)
		return;
	size_t n = handlers_of(&mc->start->handlers, number, c->gap, &c->handler, entry);
	for (size_t i = 0; i < n; i++)
		irq_event(mc, c, &entry[i]);
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
		int8_t sched = start_sched(mc->start, s);
		struct thread *th = thread_find(mc, s->tid);
		const bool open = sched == THREAD_UNKNOWN || (s->pending && cpu_is_open(mc, s->cpu));
		if (open || sched == THREAD_RUNNING || (th && (th->on >= 0 || th->sched == sched)))
			continue;
		take_over(mc, s);
		update_thread(mc, thread_find(mc, s->tid));
	}
}
