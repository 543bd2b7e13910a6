#include "model/inference/vcpu_throttling.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "model/state/exit_reasons.h"
#include "model/state/state.h"

#define NEVER INT64_MAX
#define IDLE_LEAST 1000000   /* ns: a CPU that its last thread has left to nobody, while that can run */
#define LEFT_LEAST 20000000  /* ns: longer than a wakeup, and than the slice of a light task with a slow tick */
#define LOOK_APART 1000000   /* ns: less than any tick; what comes sooner is of the same interrupt, or waited for its end */
#define PAUSE_LEAST 5000000  /* ns: longer than the monitor needs a vCPU for its own errands */
#define FAR_LESS 10          /* nice levels: a tenth of the weight */
#define PERIOD_MOST 1000000000  /* ns: of a quota, as long as the kernel lets it be */

static int8_t nice_of(const struct event *ev)
{
	int64_t prio = ev->sw.next_prio;
	return prio == EVENT_ABSENT || prio > 19 ? NICE_UNKNOWN : prio < -20 ? NICE_RT : (int8_t)prio;
}

static void tell(struct model *m, struct vcpu *v, int64_t from, int64_t to, enum out_reason why)
{
	if (v->limits.attr == HISTORY_NONE)
		v->limits.attr = cpu_attribute(v->vm, v->number, CPU_OUT_BY);
	sink_set_at(&m->sink, from, v->limits.attr, why);
	if (to != NEVER)
		sink_set_at(&m->sink, to, v->limits.attr, HISTORY_NULL);
	v->limits.told = to != NEVER ? to : from;
}

/* ---- quota */

static void close_piece(struct left *l, int64_t now)
{
	const struct quota_span piece = { l->since, l->level == LEVEL_IDLE ? l->stirred : now, now, l->look[0] };
	const int64_t lasted = piece.to - piece.from;
	if (l->level == LEVEL_NONE)
		return;
	l->levels |= UINT64_C(1) << l->level;
	l->last[l->level] = piece;
	if (l->level == LEVEL_IDLE ? lasted >= IDLE_LEAST : lasted >= LEFT_LEAST && piece.looked != INT64_MIN)
		l->proof[l->level] = piece;
}

/* From now on the CPU is with such a one. */
static void begin_piece(struct left *l, int64_t now, int64_t tid, int8_t level)
{
	const struct left_turn *turn = &l->turn;
	const bool back = tid != 0 && tid == turn->tid && level == turn->level && now - turn->until < LOOK_APART;
	l->stirred = now;
	l->since = back ? turn->since : now;
	l->level = level;
	for (int i = 0; i < LOOKS; i++)
		l->look[i] = back ? turn->look[i] : INT64_MIN;
}

static void close_turn(struct left *l, int64_t now, int64_t tid)
{
	if (tid == 0 || l->level == LEVEL_NONE || now - l->since < LOOK_APART)
		return;
	l->turn = (struct left_turn){ .tid = tid, .level = l->level, .since = l->since, .until = now };
	memcpy(l->turn.look, l->look, sizeof l->look);
	if (now - l->since >= LEFT_LEAST)
		l->long_turn = l->turn;
}

/* Can the scheduler make it leave as soon as an interrupt is over?  Not a thread that stays in the kernel. */
static int8_t level_of(const struct thread *th, int8_t nice)
{
	return th && !th->in_kernel && nice >= -20 && nice <= 19 ? (int8_t)(nice + 20) : LEVEL_NONE;
}

void limits_look(struct cpu *c, int64_t now)
{
	struct left *l = c->left;
	if (!l || now - l->since < LOOK_APART || now < l->look[LOOKS - 1] + LOOK_APART)
		return;
	if (l->level == LEVEL_IDLE && l->silence < LOOK_APART)  /* it may have been held up in another one until now */
		return;
	memmove(l->look, l->look + 1, sizeof l->look - sizeof *l->look);
	l->look[LOOKS - 1] = now;
}

void limits_switch(struct machine *mc, struct cpu *c, struct thread *next, const struct event *ev)
{
	const int8_t nice = nice_of(ev);
	if (mc->parent)
		return;
	if (next)
		thread_nice(mc, next, nice);
	if (!mc->candidate.len)  /* none of its threads is a vCPU */
		return;
	if (!c->left) {
		c->left = mem_new(1, sizeof *c->left);
		c->left->level = LEVEL_NONE;
	}
	close_piece(c->left, mc->model->sink.now);
	close_turn(c->left, mc->model->sink.now, ev->sw.prev_tid);
	begin_piece(c->left, mc->model->sink.now, ev->sw.next_tid, ev->sw.next_tid == 0 ? LEVEL_IDLE : level_of(next, nice));
}

void limits_doubt(struct cpu *c)
{
	if (!c->left)
		return;
	*c->left = (struct left){ .level = LEVEL_NONE };
}

/* The heaviest level that is so many nice levels lighter than a thread. */
static int lighter_than(int8_t nice, int by)
{
	int level = nice == NICE_UNKNOWN ? LEVEL_IDLE : nice == NICE_RT ? 0 : nice + 20 + by;
	return level < LEVEL_IDLE ? level : LEVEL_IDLE;
}

/* A bit for each that it was left to, from the heaviest of these on. */
static uint64_t levels_from(const struct left *left, int heaviest)
{
	return left->levels >> heaviest << heaviest;
}

/* Does it prove that a thread which waits since `out` may not run? */
static bool proves(const struct quota_span *piece, int level, const struct limits *l)
{
	const int64_t from = piece->from > l->out ? piece->from : l->out;
	const bool idle = level == LEVEL_IDLE, chosen = idle && piece->from >= l->out;
	if (piece->to - from < (idle && !l->arrives ? IDLE_LEAST : LEFT_LEAST))
		return false;
	return chosen || (piece->looked >= from && !(idle && l->arrives));
}

static bool is_proved(const struct left *left, int heaviest, const struct limits *l)
{
	for (uint64_t left_to = levels_from(left, heaviest); left_to; left_to &= left_to - 1) {
		const int level = __builtin_ctzll(left_to);
		if (proves(&left->proof[level], level, l))
			return true;
	}
	return false;
}

void limits_timer(struct machine *mc, const struct event *ev)
{
	if (mc->refills && ev->timer.timer != EVENT_ABSENT)
		refills_expire(mc->refills, ev->timer.timer, mc->model->sink.now);
}

/* When the timer of its quota expired, or of a sibling's, which is mostly the same, behind which it gets the CPU that was
 * idle while it waited for long enough; NEVER: nothing tells of one. */
static int64_t released_at(const struct model *m, const struct vcpu *v, const struct quota_span *idle)
{
	const struct refills *refills = v->vm->parent->refills;
	const int64_t now = m->sink.now, from = idle->from > v->limits.out ? idle->from : v->limits.out;
	for (uint32_t i = 0; i < v->vm->cpus && refills && idle->over == now; i++) {
		const uint32_t other = v->vm->cpu[i].vcpu;
		const struct refill *f = other == NONE ? NULL : &m->vcpu[other].limits.refill;
		const int64_t expired = f ? refill_at(f, refills, v->limits.out, now) : NEVER;
		if (expired != NEVER && expired - from >= IDLE_LEAST && now - expired <= f->latest)
			return expired;
	}
	return NEVER;
}

static void learn_refill(struct machine *host, struct refill *refill, int64_t out, int64_t now)
{
	if (!host->refills) {
		host->refills = mem_new(1, sizeof *host->refills);
		host->refills->since = now;
	}
	refill_learn(refill, host->refills, out, now);
}

/* Since when it had waited at `end` with nobody of its machine on its CPU. */
static int64_t out_since(const struct model *m, const struct vcpu *v, int64_t end)
{
	int64_t since = v->limits.out;
	for (uint32_t i = 0; i < v->vm->cpus; i++) {
		const struct limits *other = v->vm->cpu[i].vcpu == NONE ? NULL : &m->vcpu[v->vm->cpu[i].vcpu].limits;
		if (other && other->left_cpu == v->thread->cpu && other->came_at < end && other->left_at > since)
			since = other->left_at;
	}
	return since;
}

/* Did one of that level, or a lighter one, have the CPU for long while it waited, whether interrupted or not? */
static bool is_left(const struct left *left, int heaviest, const struct limits *l)
{
	const struct left_turn *turn = &left->long_turn;
	const int64_t from = turn->since > l->out ? turn->since : l->out;
	return turn->tid != 0 && turn->level >= heaviest && turn->until - from >= LEFT_LEAST;
}

/* Was a quota proved to keep a vCPU of its machine from its CPU, within the longest period that there is? */
static bool had_quota(const struct model *m, const struct vcpu *v)
{
	for (uint32_t i = 0; i < v->vm->cpus; i++) {
		const uint32_t other = v->vm->cpu[i].vcpu;
		const int64_t last = other == NONE ? INT64_MIN : m->vcpu[other].limits.limited;
		if (last != INT64_MIN && m->sink.now - last < PERIOD_MOST)
			return true;
	}
	return false;
}

/* A timer may be the one that gives its quota anew: behind it, again and again, it gets the CPU that was left to others.
 * That is so of the waits from which it was learned, too: they are told then. */
static int64_t contest(struct model *m, struct vcpu *v, int64_t now)
{
	struct machine *host = v->vm->parent;
	struct limits *l = &v->limits;
	l->contest.contested = true;
	learn_refill(host, &l->contest, l->out, now);
	const int64_t at = refill_at(&l->contest, host->refills, l->out, now);
	if (l->contest.learned <= 1)
		l->doubts = 0;
	if (at == NEVER) {
		if (l->contest.learned && l->doubts < REFILLS_CONTESTED) {
			l->doubted[l->doubts].from = l->out;
			l->doubted[l->doubts++].to = refill_last(&l->contest, host->refills);
		}
		return NEVER;
	}
	for (uint8_t i = 0; i < l->doubts; i++)
		if (l->doubted[i].from >= l->told)
			tell(m, v, l->doubted[i].from, l->doubted[i].to, OUT_UNSURE);
	l->doubts = 0;
	l->limited = now;
	return at;
}

/* Nothing proves that a quota has kept it out; may one have done so? */
static void tell_doubt(struct model *m, struct vcpu *v, const struct left *left, int64_t refilled, int64_t now,
                       bool goes_on)
{
	struct limits *l = &v->limits;
	const int8_t nice = v->thread->nice;
	const bool kept = is_left(left, lighter_than(nice, 0), l);
	if (kept && goes_on && refilled == NEVER)
		refilled = contest(m, v, now);
	if ((kept && had_quota(m, v)) ||
	    (is_left(left, lighter_than(nice, FAR_LESS), l) && !(v->vm->parent->tells & HANDLERS_TIMER)))
		tell(m, v, l->out, refilled != NEVER ? refilled : now, OUT_UNSURE);
}

/* To be told of v, which has waited for a CPU up to now, and gets one then, or its trace is over: was that a quota? */
static void tell_quota(struct model *m, struct vcpu *v, int64_t now, bool goes_on)
{
	struct limits *l = &v->limits;
	const struct thread *th = v->thread;
	struct machine *host = v->vm->parent;
	const struct left *left = th && th->cpu >= 0 && (uint32_t)th->cpu < host->cpus ? host->cpu[th->cpu].left : NULL;
	if (!left || l->held != NEVER)
		return;
	const int lighter = lighter_than(th->nice, FAR_LESS);
	int64_t end = l->out;
	for (uint64_t left_to = levels_from(left, lighter); left_to; left_to &= left_to - 1) {
		const struct quota_span *last = &left->last[__builtin_ctzll(left_to)];
		end = last->to > end ? last->to : end;
	}
	l->out = out_since(m, v, end);
	const bool proved = is_proved(left, lighter, l);
	const struct quota_span *idle = &left->last[LEVEL_IDLE];
	const int64_t refilled = host->refills ? refill_at(&l->refill, host->refills, l->out, now) : NEVER;
	if (proved && refilled != NEVER && refilled > end)
		end = refilled;
	if (proved && goes_on && idle->over == now)
		learn_refill(host, &l->refill, l->out, now);
	if (!proved)
		end = goes_on ? released_at(m, v, idle) : NEVER;
	if (end != NEVER) {
		tell(m, v, l->out, end < now ? end : now, OUT_QUOTA);
		l->limited = now;
	}
	const int64_t alone = out_since(m, v, now);  /* none of its machine, whose quota was no other one, ran there since */
	if (proved && refilled == NEVER && idle->over != now && end < now && alone <= end)
		tell(m, v, end, now, OUT_UNSURE);
	l->out = alone;
	if (end == NEVER)
		tell_doubt(m, v, left, refilled, now, goes_on);
}

static bool waits(enum vcpu_place place)
{
	return place == PLACE_RUNNABLE || place == PLACE_WOKEN || place == PLACE_QUEUED;
}

void limits_place(struct model *m, struct vcpu *v, enum vcpu_place place, bool moved)
{
	struct limits *l = &v->limits;
	const bool waited = waits((enum vcpu_place)l->place);
	if (waited && place == PLACE_IN && !moved && l->out != NEVER)
		tell_quota(m, v, m->sink.now, true);
	if (l->place == PLACE_IN && place != PLACE_IN && v->thread) {
		l->came_at = l->in_since;
		l->left_at = m->sink.now;
		l->left_cpu = v->thread->cpu;
	}
	if (place == PLACE_IN && place != l->place)
		l->in_since = m->sink.now;
	if (!waits(place)) {
		l->out = NEVER;
	} else if (!waited || moved) {
		l->out = m->sink.now;
		l->arrives = moved || place == PLACE_QUEUED || (place == PLACE_WOKEN && v->vm->parent->waking_moves);
	}
	if (place == PLACE_BLOCKED && place != l->place) {
		if (l->held == NEVER && l->interrupted)  /* what an interrupt asks for does not make it sleep, its monitor does */
			l->held = m->sink.now;
		l->asleep = l->held != NEVER;
	}
	if (l->fault != NEVER && place != PLACE_BLOCKED) {
		tell(m, v, l->fault, m->sink.now, OUT_FAULT);
		l->fault = NEVER;
	} else if (place == PLACE_BLOCKED && place != l->place && l->memory && l->deep && v->vm->parent->tells_calls) {
		l->fault = m->sink.now;
	}
	l->place = (uint8_t)place;
}

void limits_sleeps(struct vcpu *v, const struct event *ev)
{
	v->limits.deep = ev->sw.prev_state == RUN_UNINTERRUPTIBLE;
}

/* ---- pause */

void limits_called(struct model *m, struct vcpu *v, const struct event *ev)
{
	struct limits *l = &v->limits;
	v->vm->parent->tells_calls = true;
	l->memory = false;
	if (ev->userspace.error != -EINTR) {  /* the guest asked for something */
		l->held = NEVER;
		l->interrupted = l->asleep = false;
	} else if (l->held == NEVER) {
		l->held = m->sink.now;
		l->asleep = false;
	}
}

void limits_exit(struct vcpu *v, unsigned is)
{
	v->limits.held = NEVER;
	v->limits.asleep = v->limits.paused = false;
	v->limits.interrupted = (is & EXIT_CLASS) == EXIT_INTERRUPT;
	v->limits.memory = is & EXIT_MEMORY;
}

/* Since when all vCPUs of the machine that ever ran are held; NEVER: they are not. */
static int64_t all_held(const struct model *m, const struct machine *vm)
{
	int64_t since = INT64_MIN;
	for (uint32_t i = 0; i < vm->cpus; i++) {
		const struct limits *l = vm->cpu[i].vcpu == NONE ? NULL : &m->vcpu[vm->cpu[i].vcpu].limits;
		if (!l || !l->entered)
			continue;
		if (l->held == NEVER || !l->asleep)
			return NEVER;
		since = l->held > since ? l->held : since;
	}
	return since == INT64_MIN ? NEVER : since;
}

/* The first of its machine's vCPUs goes on: was it a pause? */
static void look_for_pause(struct model *m, const struct machine *vm, int64_t now)
{
	int64_t since = all_held(m, vm);
	if (since == NEVER || now - since < PAUSE_LEAST)
		return;
	for (uint32_t i = 0; i < vm->cpus; i++)
		if (vm->cpu[i].vcpu != NONE)
			m->vcpu[vm->cpu[i].vcpu].limits.paused = m->vcpu[vm->cpu[i].vcpu].limits.held != NEVER;
}

static bool is_paused(struct model *m, struct vcpu *v)
{
	if (v->limits.held != NEVER && !v->limits.paused)
		look_for_pause(m, v->vm, m->sink.now);
	return v->limits.held != NEVER && v->limits.paused;
}

/* Its trace is over, and it never went on; since v->until it may have done so in another process. */
static void tell_stop(struct model *m, struct vcpu *v, int64_t to)
{
	const bool moves = v->until > v->limits.held && v->until < m->sink.now;
	if (!is_paused(m, v))
		return;
	tell(m, v, v->limits.held, moves ? v->until : to, moves ? OUT_STOPPED : OUT_PAUSE);
	if (moves)
		sink_set_at(&m->sink, v->until > v->status_since ? v->until : v->status_since, v->attr_status, VCPU_UNKNOWN);
}

void limits_enter(struct model *m, struct vcpu *v)
{
	struct limits *l = &v->limits;
	if (is_paused(m, v))
		tell(m, v, l->held, m->sink.now, OUT_PAUSE);
	l->held = NEVER;
	l->asleep = l->paused = l->interrupted = l->memory = false;
	l->entered = true;
}

/* Its thread was called back for good, and the machine goes on elsewhere. */
void limits_moved(struct model *m, struct vcpu *v)
{
	if (v->limits.held != NEVER)
		tell(m, v, v->limits.held, m->sink.now, OUT_MIGRATION);
}

/* ---- both */

void limits_forget(struct vcpu *v)
{
	struct limits *l = &v->limits;
	l->out = l->held = l->fault = NEVER;
	l->asleep = l->paused = l->interrupted = l->memory = false;
}

void limits_end(struct machine *host, bool close)
{
	struct model *m = host->model;
	for (uint32_t i = 0; i < host->cpus; i++)
		if (host->cpu[i].left) {
			limits_stir(&host->cpu[i], m->sink.now);
			close_piece(host->cpu[i].left, m->sink.now);
			host->cpu[i].left->since = m->sink.now;
		}
	for (uint32_t i = 0; i < m->vcpus; i++) {
		struct vcpu *v = &m->vcpu[i];
		if (v->vm->parent != host)
			continue;
		tell_stop(m, v, close ? m->sink.now : NEVER);
		if (v->limits.out != NEVER)
			tell_quota(m, v, m->sink.now, false);
		if (v->limits.fault != NEVER)
			tell(m, v, v->limits.fault, close ? m->sink.now : NEVER, OUT_FAULT);
	}
}
