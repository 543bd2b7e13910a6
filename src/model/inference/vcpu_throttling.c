#include "model/inference/vcpu_throttling.h"

#include <errno.h>

#include "model/state/exit_reasons.h"
#include "model/state/state.h"

#define NEVER INT64_MAX
#define IDLE_MIN 1000000   /* minimum time, ns, that a CPU must be idle while a thread waits for it, to be evidence */
#define LIGHT_MIN 20000000  /* minimum time with a light task, ns: longer than a wakeup, and than the slice of a light
                             * task with a slow tick */
#define INTERRUPTS_APART 1000000   /* ns, less than any tick period; closer interrupts count as one: the second had to
                                    * wait for the first */
#define PAUSE_MIN 5000000  /* a pause's minimum length, ns: longer than the VMM needs a vCPU thread for its own work */
#define FAR_LESS 10          /* difference of nice levels that means 1/10 of the weight */
#define PERIOD_MAX 1000000000  /* longest period of a quota that the kernel allows, ns */

static int8_t nice_of(const struct event *ev)
{
	int64_t prio = ev->sw.next_prio;
	return prio == EVENT_ABSENT || prio > 19 ? NICE_UNKNOWN : prio < -20 ? NICE_RT : (int8_t)prio;
}

void throttling_set(struct model *m, struct vcpu *v, int64_t from, int64_t to, enum out_reason why)
{
	if (v->throttling.attr == HISTORY_NONE)
		v->throttling.attr = cpu_attribute(v->vm, v->number, CPU_OUT_BY);
	sink_set_at(&m->sink, from, v->throttling.attr, why);
	if (to != NEVER)
		sink_set_at(&m->sink, to, v->throttling.attr, HISTORY_NULL);
	v->throttling.written_until = to != NEVER ? to : from;
}

void throttling_write(struct model *m, struct vcpu *v, int64_t from, int64_t to, enum out_reason why)
{
	if (v->thread && v->thread->waits)
		group_quota_settle(v->vm->parent, v->thread, from, to);
	throttling_set(m, v, from, to, why);
}

/* ---- CFS quota */

static void close_interval(struct run_levels *l, int64_t now)
{
	const struct vcpu_run_interval interval = {
		l->since, l->level == LEVEL_IDLE ? l->active_since : now, now, l->interrupt[0] };
	const int64_t lasted = interval.to - interval.from;
	if (l->level == LEVEL_NONE)
		return;
	l->seen |= UINT64_C(1) << l->level;
	l->last[l->level] = interval;
	if (l->level == LEVEL_IDLE ? lasted >= IDLE_MIN : lasted >= LIGHT_MIN && interval.interrupted != INT64_MIN)
		l->proof[l->level] = interval;
}

/* Begins the interval of the task that the CPU runs now. */
static void begin_interval(struct run_levels *l, int64_t now, int64_t tid, int8_t level)
{
	const struct run_slice *slice = &l->slice;
	const bool back = tid != 0 && tid == slice->tid && level == slice->level && now - slice->until < INTERRUPTS_APART;
	l->active_since = now;
	l->since = back ? slice->since : now;
	l->level = level;
	for (int i = 0; i < INTERRUPTS_MIN; i++)
		l->interrupt[i] = back ? slice->interrupt[i] : INT64_MIN;
}

static void close_slice(struct run_levels *l, int64_t now, int64_t tid)
{
	if (tid == 0 || l->level == LEVEL_NONE || now - l->since < INTERRUPTS_APART)
		return;
	l->slice = (struct run_slice){ .tid = tid, .level = l->level, .since = l->since, .until = now };
	memcpy(l->slice.interrupt, l->interrupt, sizeof l->interrupt);
	if (now - l->since >= LIGHT_MIN)
		l->long_slice = l->slice;
}

/* Returns the level of a thread that an interrupt can preempt; LEVEL_NONE for kernel threads. */
static int8_t level_of(const struct thread *th, int8_t nice)
{
	return th && !th->in_kernel && nice >= -20 && nice <= 19 ? (int8_t)(nice + 20) : LEVEL_NONE;
}

void throttling_interrupt(struct cpu *c, int64_t now)
{
	struct run_levels *l = c->run_levels;
	if (!l || now - l->since < INTERRUPTS_APART || now < l->interrupt[INTERRUPTS_MIN - 1] + INTERRUPTS_APART)
		return;
	/* the CPU may have been held up in the previous interrupt until now */
	if (l->level == LEVEL_IDLE && l->pause_ns < INTERRUPTS_APART)
		return;
	memmove(l->interrupt, l->interrupt + 1, sizeof l->interrupt - sizeof *l->interrupt);
	l->interrupt[INTERRUPTS_MIN - 1] = now;
}

void throttling_switch(struct machine *mc, struct cpu *c, struct thread *next, const struct event *ev)
{
	const int8_t nice = nice_of(ev);
	if (mc->parent)
		return;
	if (next)
		thread_set_nice(mc, next, nice);
	if (!mc->candidate.len)  /* no thread of this machine is a vCPU */
		return;
	if (!c->run_levels) {
		c->run_levels = mem_new(1, sizeof *c->run_levels);
		c->run_levels->level = LEVEL_NONE;
	}
	c->run_levels->preempted = ev->sw.prev_tid > 0 && ev->sw.prev_state == RUN_RUNNABLE;
	close_interval(c->run_levels, mc->model->sink.now);
	close_slice(c->run_levels, mc->model->sink.now, ev->sw.prev_tid);
	begin_interval(c->run_levels, mc->model->sink.now, ev->sw.next_tid,
	               ev->sw.next_tid == 0 ? LEVEL_IDLE : level_of(next, nice));
}

void throttling_clear_cpu(struct cpu *c)
{
	if (!c->run_levels)
		return;
	*c->run_levels = (struct run_levels){ .level = LEVEL_NONE };
}

/* Returns the heaviest level that is `by` nice levels lighter than the thread. */
static int lighter_than(int8_t nice, int by)
{
	int level = nice == NICE_UNKNOWN ? LEVEL_IDLE : nice == NICE_RT ? 0 : nice + 20 + by;
	return level < LEVEL_IDLE ? level : LEVEL_IDLE;
}

/* Returns the bit set of the recorded levels, starting with `heaviest`. */
static uint64_t levels_lighter(const struct run_levels *levels, int heaviest)
{
	return levels->seen >> heaviest << heaviest;
}

/* Returns true if the interval proves that the waiting thread is not allowed to run. */
static bool interval_proves(const struct vcpu_run_interval *interval, int level, const struct throttling *l)
{
	const int64_t from = interval->from > l->waiting_since ? interval->from : l->waiting_since;
	const bool idle = level == LEVEL_IDLE, chosen = idle && interval->from >= l->waiting_since;
	if (interval->to - from < (idle && !l->may_be_moving ? IDLE_MIN : LIGHT_MIN))
		return false;
	return chosen || (interval->interrupted >= from && !(idle && l->may_be_moving));
}

static bool is_quota_proved(const struct run_levels *levels, int heaviest, const struct throttling *l)
{
	for (uint64_t remaining = levels_lighter(levels, heaviest); remaining; remaining &= remaining - 1) {
		const int level = __builtin_ctzll(remaining);
		if (interval_proves(&levels->proof[level], level, l))
			return true;
	}
	return false;
}

void throttling_timer(struct machine *mc, const struct event *ev)
{
	if (mc->timer_expiries && ev->timer.timer != EVENT_ABSENT)
		timer_expiries_add(mc->timer_expiries, ev->timer.timer, mc->model->sink.now);
}

/* Returns the expiry of the refill timer of this vCPU, or of a sibling (usually the same), if the vCPU gets the CPU
 * right after it and the CPU was idle for long enough before it; NEVER: none. */
static int64_t refill_before_run(const struct model *m, const struct vcpu *v, const struct vcpu_run_interval *idle)
{
	const struct timer_expiries *refills = v->vm->parent->timer_expiries;
	const int64_t now = m->sink.now, since = v->throttling.waiting_since, from = idle->from > since ? idle->from : since;
	for (uint32_t i = 0; i < v->vm->cpus && refills && idle->end == now; i++) {
		const uint32_t other = v->vm->cpu[i].vcpu;
		const struct quota_timer *f = other == NONE ? NULL : &m->vcpu[other].throttling.refill_timer;
		const int64_t expired = f ? quota_timer_refill(f, refills, since, now) : NEVER;
		if (expired != NEVER && expired - from >= IDLE_MIN && now - expired <= f->latest)
			return expired;
	}
	return NEVER;
}

/* Returns the recent expiries; records them from the first call on. */
static struct timer_expiries *host_expiries(struct machine *host)
{
	if (!host->timer_expiries) {
		host->timer_expiries = mem_new(1, sizeof *host->timer_expiries);
		host->timer_expiries->since = host->model->sink.now;
	}
	return host->timer_expiries;
}

/* Returns the time since which the vCPU waits and no sibling ran on its CPU, as of `end`. */
static int64_t alone_since(const struct model *m, const struct vcpu *v, int64_t end)
{
	int64_t since = v->throttling.waiting_since;
	for (uint32_t i = 0; i < v->vm->cpus; i++) {
		const struct throttling *other = v->vm->cpu[i].vcpu == NONE ? NULL : &m->vcpu[v->vm->cpu[i].vcpu].throttling;
		if (other && other->last_cpu == v->thread->cpu && other->last_in < end && other->last_out > since)
			since = other->last_out;
	}
	return since;
}

/* Returns true if a task of that level, or a lighter one, had the CPU for LIGHT_MIN during the wait, interrupted or not. */
static bool ran_light_task(const struct run_levels *levels, int heaviest, const struct throttling *l)
{
	const struct run_slice *slice = &levels->long_slice;
	const int64_t from = slice->since > l->waiting_since ? slice->since : l->waiting_since;
	return slice->tid != 0 && slice->level >= heaviest && slice->until - from >= LIGHT_MIN;
}

/* Returns true if a vCPU of the VM was throttled within the longest possible period. */
static bool was_throttled_lately(const struct model *m, const struct vcpu *v)
{
	for (uint32_t i = 0; i < v->vm->cpus; i++) {
		const uint32_t other = v->vm->cpu[i].vcpu;
		const int64_t last = other == NONE ? INT64_MIN : m->vcpu[other].throttling.throttled_at;
		if (last != INT64_MIN && m->sink.now - last < PERIOD_MAX)
			return true;
	}
	return false;
}

/* Learns from a wait on a contested CPU. Returns the expiry of the timer that may refill the quota; NEVER: unknown. Once
 * the timer is learned, the waits from which it was learned are written. */
static int64_t learn_contested(struct model *m, struct vcpu *v, int64_t now)
{
	struct machine *host = v->vm->parent;
	struct throttling *l = &v->throttling;
	l->contested_timer.contested = true;
	quota_timer_learn(&l->contested_timer, host_expiries(host), l->waiting_since, now);
	const int64_t at = quota_timer_refill(&l->contested_timer, host->timer_expiries, l->waiting_since, now);
	if (l->contested_timer.learned <= 1)
		l->unsure_waits = 0;
	if (at == NEVER) {
		if (l->contested_timer.learned && l->unsure_waits < QUOTA_CONTESTED) {
			l->unsure_wait[l->unsure_waits].from = l->waiting_since;
			l->unsure_wait[l->unsure_waits++].to = quota_timer_last(&l->contested_timer, host->timer_expiries);
		}
		return NEVER;
	}
	for (uint8_t i = 0; i < l->unsure_waits; i++)
		if (l->unsure_wait[i].from >= l->written_until)
			throttling_write(m, v, l->unsure_wait[i].from, l->unsure_wait[i].to, OUT_QUOTA_OR_OTHERS);
	l->unsure_waits = 0;
	l->throttled_at = now;
	return at;
}

/* Handles a wait without proof of a quota: writes OUT_QUOTA_OR_OTHERS if throttling is possible, and returns true. */
static bool write_unsure(struct model *m, struct vcpu *v, const struct run_levels *levels, int64_t refilled, int64_t now,
                       bool runs)
{
	struct throttling *l = &v->throttling;
	const int8_t nice = v->thread->nice;
	if (v->thread->group >= 0) {  /* it has no quota, or group_quota.c decides on waits that ended */
		if (v->thread->in_quota && !runs)
			throttling_write(m, v, v->thread->status_since, now, OUT_QUOTA_OR_OTHERS);
		return v->thread->in_quota;
	}
	const bool light_task = ran_light_task(levels, lighter_than(nice, 0), l);
	if (light_task && runs && refilled == NEVER)
		refilled = learn_contested(m, v, now);
	const bool unsure = (light_task && was_throttled_lately(m, v)) ||
	    (ran_light_task(levels, lighter_than(nice, FAR_LESS), l) && !(v->vm->parent->handler_kinds & HANDLERS_TIMER));
	if (unsure)
		throttling_write(m, v, l->waiting_since, refilled != NEVER ? refilled : now, OUT_QUOTA_OR_OTHERS);
	return unsure;
}

/* Decides whether the vCPU was throttled during a wait that ends now (runs) or is cut off by the end of the trace
 * (!runs). */
static void decide_quota(struct model *m, struct vcpu *v, int64_t now, bool runs)
{
	struct throttling *l = &v->throttling;
	const struct thread *th = v->thread;
	struct machine *host = v->vm->parent;
	const struct run_levels *levels = th && th->cpu >= 0 && (uint32_t)th->cpu < host->cpus ? host->cpu[th->cpu].run_levels
	                                  : NULL;
	if (!levels || l->vmm_since != NEVER || host->has_throttled)
		return;
	const int lighter = lighter_than(th->nice, FAR_LESS);
	const int64_t waited_since = l->waiting_since;
	int64_t end = l->waiting_since;
	for (uint64_t remaining = levels_lighter(levels, lighter); remaining; remaining &= remaining - 1) {
		const struct vcpu_run_interval *last = &levels->last[__builtin_ctzll(remaining)];
		end = last->to > end ? last->to : end;
	}
	l->waiting_since = alone_since(m, v, end);
	const bool proved = is_quota_proved(levels, lighter, l);
	const struct vcpu_run_interval *idle = &levels->last[LEVEL_IDLE];
	const int64_t refilled = host->timer_expiries
	                         ? quota_timer_refill(&l->refill_timer, host->timer_expiries, l->waiting_since, now) : NEVER;
	if (proved && refilled != NEVER && refilled > end)
		end = refilled;
	if (proved && runs && idle->end == now)
		quota_timer_learn(&l->refill_timer, host_expiries(host), l->waiting_since, now);
	if (!proved)
		end = runs ? refill_before_run(m, v, idle) : NEVER;
	if (end != NEVER) {
		throttling_write(m, v, l->waiting_since, end < now ? end : now, OUT_QUOTA);
		l->throttled_at = now;
	}
	const int64_t alone = alone_since(m, v, now);  /* no sibling, which has the same quota, ran there since */
	if (proved && refilled == NEVER && idle->end != now && end < now && alone <= end)
		throttling_write(m, v, end, now, OUT_QUOTA_OR_OTHERS);
	l->waiting_since = alone;
	if (end == NEVER && !write_unsure(m, v, levels, refilled, now, runs) && v->thread->group < 0)
		quota_pattern_learn(&l->pattern, &host_expiries(host)->periodic, waited_since, now, levels->preempted);
}

static bool is_waiting_for_cpu(enum vcpu_host_state place)
{
	return place == HOST_RUNNABLE || place == HOST_WOKEN || place == HOST_QUEUED;
}

void throttling_set_host_state(struct model *m, struct vcpu *v, enum vcpu_host_state place, bool moved)
{
	struct throttling *l = &v->throttling;
	const bool waited = is_waiting_for_cpu((enum vcpu_host_state)l->host_state);
	if (waited && place == HOST_IN && !moved && l->waiting_since != NEVER)
		decide_quota(m, v, m->sink.now, true);
	if (l->host_state == HOST_IN && place != HOST_IN && v->thread) {
		l->last_in = l->in_since;
		l->last_out = m->sink.now;
		l->last_cpu = v->thread->cpu;
	}
	if (place == HOST_IN && place != l->host_state)
		l->in_since = m->sink.now;
	if (!is_waiting_for_cpu(place)) {
		l->waiting_since = NEVER;
	} else if (!waited || moved) {
		l->waiting_since = m->sink.now;
		l->may_be_moving = moved || place == HOST_QUEUED || (place == HOST_WOKEN && v->vm->parent->waking_is_wakeup);
	}
	if (place == HOST_BLOCKED && place != l->host_state) {
		if (l->vmm_since == NEVER && l->interrupted)  /* an interrupt alone does not put the thread to sleep: the VMM
		                                               * does */
			l->vmm_since = m->sink.now;
		l->asleep = l->vmm_since != NEVER;
	}
	if (l->fault_since != NEVER && place != HOST_BLOCKED) {
		throttling_write(m, v, l->fault_since, m->sink.now, OUT_PAGE_FAULT);
		l->fault_since = NEVER;
	} else if (place == HOST_BLOCKED && place != l->host_state && l->memory_exit && l->uninterruptible &&
	           v->vm->parent->has_userspace_exits) {
		l->fault_since = m->sink.now;
	}
	l->host_state = (uint8_t)place;
}

void throttling_block(struct vcpu *v, const struct event *ev)
{
	v->throttling.uninterruptible = ev->sw.prev_state == RUN_UNINTERRUPTIBLE;
}

/* ---- pause */

void throttling_userspace_exit(struct model *m, struct vcpu *v, const struct event *ev)
{
	struct throttling *l = &v->throttling;
	v->vm->parent->has_userspace_exits = true;
	l->memory_exit = false;
	if (ev->userspace.error != -EINTR) {  /* a request of the guest */
		l->vmm_since = NEVER;
		l->interrupted = l->asleep = false;
	} else if (l->vmm_since == NEVER) {
		l->vmm_since = m->sink.now;
		l->asleep = false;
	}
}

void throttling_exit(struct vcpu *v, unsigned flags)
{
	v->throttling.vmm_since = NEVER;
	v->throttling.asleep = v->throttling.paused = false;
	v->throttling.interrupted = (flags & EXIT_CLASS) == EXIT_INTERRUPT;
	v->throttling.memory_exit = flags & EXIT_MEMORY;
}

/* Returns the time since which all vCPUs of the VM that ever ran are in the VMM, asleep; NEVER: some are not. */
static int64_t all_in_vmm_since(const struct model *m, const struct machine *vm)
{
	int64_t since = INT64_MIN;
	for (uint32_t i = 0; i < vm->cpus; i++) {
		const struct throttling *l = vm->cpu[i].vcpu == NONE ? NULL : &m->vcpu[vm->cpu[i].vcpu].throttling;
		if (!l || !l->entered)
			continue;
		if (l->vmm_since == NEVER || !l->asleep)
			return NEVER;
		since = l->vmm_since > since ? l->vmm_since : since;
	}
	return since == INT64_MIN ? NEVER : since;
}

/* Marks a pause when the first vCPU of the VM continues. */
static void mark_pause(struct model *m, const struct machine *vm, int64_t now)
{
	int64_t since = all_in_vmm_since(m, vm);
	if (since == NEVER || now - since < PAUSE_MIN)
		return;
	for (uint32_t i = 0; i < vm->cpus; i++)
		if (vm->cpu[i].vcpu != NONE)
			m->vcpu[vm->cpu[i].vcpu].throttling.paused = m->vcpu[vm->cpu[i].vcpu].throttling.vmm_since != NEVER;
}

static bool is_paused(struct model *m, struct vcpu *v)
{
	if (v->throttling.vmm_since != NEVER && !v->throttling.paused)
		mark_pause(m, v->vm, m->sink.now);
	return v->throttling.vmm_since != NEVER && v->throttling.paused;
}

/* Writes the pause of a vCPU that never continued before the trace's end; after v->life_end it may have continued
 * in another process. */
static void write_final_stop(struct model *m, struct vcpu *v, int64_t to)
{
	const bool moves = v->life_end > v->throttling.vmm_since && v->life_end < m->sink.now;
	if (!is_paused(m, v))
		return;
	throttling_write(m, v, v->throttling.vmm_since, moves ? v->life_end : to, moves ? OUT_PAUSE_OR_MIGRATION : OUT_PAUSE);
	if (moves)
		sink_set_at(&m->sink, v->life_end > v->status_since ? v->life_end : v->status_since, v->attr_status, VCPU_UNKNOWN);
}

void throttling_entry(struct model *m, struct vcpu *v)
{
	struct throttling *l = &v->throttling;
	if (is_paused(m, v))
		throttling_write(m, v, l->vmm_since, m->sink.now, OUT_PAUSE);
	l->vmm_since = NEVER;
	l->asleep = l->paused = l->interrupted = l->memory_exit = false;
	l->entered = true;
}

/* Writes OUT_MIGRATION: the old thread returned to the VMM for good, and the VM continues in another process. */
void throttling_migrated(struct model *m, struct vcpu *v)
{
	if (v->throttling.vmm_since != NEVER)
		throttling_write(m, v, v->throttling.vmm_since, m->sink.now, OUT_MIGRATION);
}

/* ---- all */

void throttling_clear(struct vcpu *v)
{
	struct throttling *l = &v->throttling;
	l->waiting_since = l->vmm_since = l->fault_since = NEVER;
	l->asleep = l->paused = l->interrupted = l->memory_exit = false;
}

void throttling_end(struct machine *host, bool close)
{
	struct model *m = host->model;
	vcpu_states_end(host);
	throttled_end_all(host, close);
	for (uint32_t i = 0; i < host->cpus; i++)
		if (host->cpu[i].run_levels) {
			throttling_event(&host->cpu[i], m->sink.now);
			close_interval(host->cpu[i].run_levels, m->sink.now);
			host->cpu[i].run_levels->since = m->sink.now;
		}
	for (uint32_t i = 0; i < m->vcpus; i++) {
		struct vcpu *v = &m->vcpu[i];
		if (v->vm->parent != host)
			continue;
		write_final_stop(m, v, close ? m->sink.now : NEVER);
		if (v->throttling.waiting_since != NEVER)
			decide_quota(m, v, m->sink.now, false);
		if (v->throttling.fault_since != NEVER)
			throttling_write(m, v, v->throttling.fault_since, close ? m->sink.now : NEVER, OUT_PAGE_FAULT);
	}
}
