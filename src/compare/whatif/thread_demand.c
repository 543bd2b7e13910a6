/* The demand of every thread of the host: its states, without the time that it waited.
 *
 * Time of which nothing is known counts as sleep; it is told as far as the host's CPUs were not seen either, where the
 * thread may have run.  Where a thread that is a vCPU was held back although
 * nobody needed its CPU (a quota, a pause), that is a sleep too, and a quota's is marked. */
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/mem.h"
#include "base/states.h"
#include "base/text.h"
#include "compare/whatif/scheduler_replay.h"

#define READ 256
#define TICK_AT_ONCE 10  /* parts of a tick: a tenth of it */
#define TURN_LEAST 1000000  /* ns: who waited so long did not get the CPU for having woken */
#define TURNS_LEAST 30   /* fewer tell nothing */
#define TICK_TELLS 0.4   /* of the turns: a tenth would end there by chance */
#define TICK_ALIKE 0.9
#define STUCK_LEAST 10   /* waits; a few may end before a scheduler looks */
#define STUCK_LOOKS 1000
#define IDLE_MOSTLY 0.9
#define NICE_LEVELS 41      /* -21, real time, to 19 */
#define NICE_0 21
#define NICE_STEP 1.25      /* the weight of a level, of that of the next one */
#define SHORT_LIFE 500000000  /* ns */
#define HOG_FROM 0.1    /* of the window, up to its end, without a sleep */
#define SEEN_FROM 0.02  /* of its time: who is started on one CPU and pinned to another may not go back */

/* The vCPU that a thread is, for what held it back; a thread that is several in turn is taken as it is. */
static uint32_t reasons_of(const struct topo *topo, const struct topo_thread *th)
{
	if (th->role < 0 || topo->role[th->role].next >= 0)
		return HISTORY_NONE;
	return topo->cpu[topo->role[th->role].vcpu].out_by;
}

/* Was it idle for all of [start, end], but for handlers and the like?  1, 0, -1. */
static int was_idle(const struct wants *w, const struct topo_cpu *c, int64_t start, int64_t end, struct error *err)
{
	int64_t sums[HISTORY_STATES];
	const unsigned n = c->owner == HISTORY_NONE ? 0 : history_state_count(w->topo->h, c->owner);
	if (n == 0)
		return 0;
	if (history_sums(w->topo->h, c->owner, start, end, sums, err))
		return -1;
	for (unsigned k = 0; k < n; k++)
		if (!strcmp(history_state_name(w->topo->h, c->owner, k), pcpu_owner_name[PCPU_IDLE]) &&
		    (double)sums[k] >= IDLE_MOSTLY * (double)(end - start))
			return 1;
	return 0;
}

/* A scheduler does not leave somebody waiting for one CPU while another is idle, if that may be used; nor does somebody who
 * was on that before, and may no longer. */
static int look_for_pin(const struct wants *w, struct replay_task *t, int64_t start, int64_t end, struct error *err)
{
	const struct topo_machine *host = &w->topo->machine[0];
	bool stuck = false;
	if (t->looked >= STUCK_LOOKS)
		return 0;
	t->looked++;
	for (uint32_t i = host->cpu; i < host->cpu + host->cpus; i++) {
		const struct topo_cpu *c = &w->topo->cpu[i];
		struct replay_left *left = &t->was_on[c->number];
		const bool seen = t->seen >> c->number & 1;
		const bool looks = seen ? left->last < start && left->stuck < STUCK_LEAST : !stuck && t->stuck < STUCK_LEAST;
		const int idle = looks ? was_idle(w, c, start, end, err) : 0;
		if (idle < 0)
			return -1;
		left->stuck += seen && idle;
		stuck |= !seen && idle;
	}
	t->stuck += stuck;
	return 0;
}

/* It does not go back to a CPU that it left, and then waited while that was idle. */
static void leave_cpus(const struct wants *w, struct replay_task *t)
{
	for (unsigned i = 0; i < w->cpus; i++)
		if ((t->seen >> i & 1) && (t->seen & (t->seen - 1)) && t->was_on[i].stuck >= STUCK_LEAST) {
			t->seen &= ~(UINT64_C(1) << i);
			t->stuck = STUCK_LEAST;
		}
}

bool task_is_pinned(const struct replay_task *t)
{
	return !(t->seen & (t->seen - 1)) && t->stuck >= STUCK_LEAST;
}

bool task_may_be_pinned(const struct replay_task *t)
{
	return !(t->seen & (t->seen - 1)) && t->stuck < STUCK_LEAST;
}

/* Was it held back for more than half of the interval?  1 = by a quota, 2 = by something else, 0 = no, -1. */
static int is_held(const struct topo *topo, uint32_t attr, int64_t start, int64_t end, struct error *err)
{
	int64_t sums[HISTORY_STATES], held = 0, quota = 0;
	if (attr == HISTORY_NONE)
		return 0;
	if (history_sums(topo->h, attr, start, end, sums, err))
		return -1;
	for (unsigned i = 0; i < HISTORY_STATES - 1; i++) {
		held += sums[i];
		quota += topo->out_reason[i] == OUT_QUOTA ? sums[i] : 0;
	}
	return 2 * held <= end - start + 1 ? 0 : 2 * quota > held ? 1 : 2;
}

/* Has a quota held it back in the window?  1, 0, -1. */
static int has_quota(const struct wants *w, uint32_t attr, struct error *err)
{
	int64_t sums[HISTORY_STATES], quota = 0;
	if (attr == HISTORY_NONE)
		return 0;
	if (history_sums(w->topo->h, attr, w->from, w->to, sums, err))
		return -1;
	for (unsigned i = 0; i < HISTORY_STATES - 1; i++)
		quota += w->topo->out_reason[i] == OUT_QUOTA ? sums[i] : 0;
	return quota > 0;
}

/* All CPUs that it uses were idle, and it waited: no scheduler does that to who has no quota.  1, 0, -1. */
static int was_let_wait(const struct wants *w, const struct replay_task *t, int64_t start, int64_t end, struct error *err)
{
	const struct topo_machine *host = &w->topo->machine[0];
	int idle = t->seen != 0 && end - start >= TURN_LEAST;
	for (uint32_t i = host->cpu; i < host->cpu + host->cpus && idle > 0; i++)
		if (t->seen >> w->topo->cpu[i].number & 1)
			idle = was_idle(w, &w->topo->cpu[i], start, end, err);
	return idle;
}

static void add_sleep(struct replay_task *t, int64_t *work, int64_t start, int64_t end, bool quota)
{
	struct replay_burst *last = t->bursts ? &t->burst[t->bursts - 1] : NULL;
	if (last && *work == 0 && !quota && !last->quota) {
		last->sleep += end - start + 1;
		last->wake = end + 1;
		return;
	}
	*ARRAY_PUSH(t->burst, t->bursts, t->burst_cap) = (struct replay_burst){ .work = *work, .sleep = end - start + 1,
		.wake = end + 1, .quota = quota };
	*work = 0;
}

static const int64_t ticks[TICKS] = { 1000000, 3333333, 4000000, 10000000 };  /* ns: 1000, 300, 250, 100 Hz */

static void note_turn(struct wants *w, int64_t at)
{
	for (unsigned i = 0; i < TICKS; i++)
		w->turns[i][at % ticks[i] * TICK_PARTS / ticks[i]]++;
}

/* Of all turns the share that ended in the tenth of the tick in which most did; *part: where half of these had. */
static double most_at_once(const uint32_t turns[TICK_PARTS], unsigned *part)
{
	uint64_t all = 0, best = 0, upto = 0;
	unsigned first = 0;
	for (unsigned i = 0; i < TICK_PARTS; i++) {
		uint64_t near = 0;
		for (unsigned k = 0; k < TICK_AT_ONCE; k++)
			near += turns[(i + k) % TICK_PARTS];
		first = near > best ? i : first;
		best = near > best ? near : best;
		all += turns[i];
	}
	for (*part = first; (upto += turns[*part]) * 2 < best;)
		*part = (*part + 1) % TICK_PARTS;
	return all >= TURNS_LEAST ? (double)best / (double)all : 0;
}

/* The longest of the usual ticks that tells about as much as the one that tells most: what happens every 4 ms happens at
 * one time of each ms, too. */
static void find_tick(struct wants *w)
{
	double share[TICKS], most = 0;
	unsigned part[TICKS] = { 0 };
	for (unsigned i = 0; i < TICKS; i++) {
		share[i] = most_at_once(w->turns[i], &part[i]);
		most = share[i] > most ? share[i] : most;
	}
	for (unsigned i = 0; i < TICKS; i++)
		if (most >= TICK_TELLS && share[i] >= TICK_ALIKE * most) {
			w->tick = ticks[i];
			w->phase = (2 * part[i] + 1) * ticks[i] / (2 * TICK_PARTS);
		}
}

/* How long within [start, end] nobody knows what one of the host's CPUs did. */
static int unseen(const struct wants *w, int64_t start, int64_t end, int64_t *ns, struct error *err)
{
	const struct topo_machine *host = &w->topo->machine[0];
	*ns = 0;
	for (uint32_t i = host->cpu; i < host->cpu + host->cpus; i++) {
		const uint32_t owner = w->topo->cpu[i].owner;
		int64_t sums[HISTORY_STATES] = { [HISTORY_STATES - 1] = end - start + 1 };
		const unsigned n = owner == HISTORY_NONE ? 0 : history_state_count(w->topo->h, owner);
		if (n && history_sums(w->topo->h, owner, start, end, sums, err))
			return -1;
		int64_t unknown = sums[HISTORY_STATES - 1];
		for (unsigned k = 0; k < n; k++)
			if (!strcmp(history_state_name(w->topo->h, owner, k), pcpu_owner_name[PCPU_UNKNOWN]))
				unknown += sums[k];
		*ns = unknown > *ns ? unknown : *ns;
	}
	return 0;
}

static int read_states(struct wants *w, struct replay_task *t, struct error *err)
{
	const struct topo *topo = w->topo;
	const struct topo_thread *th = &topo->thread[t->thread];
	const uint32_t reasons = reasons_of(topo, th);
	struct history_cursor c;
	struct interval iv[READ];
	const int quota = has_quota(w, reasons, err);
	int64_t work = 0, total = 0, slept = w->from;
	int n;
	if (quota < 0)
		return -1;
	if (history_range(&c, topo->h, th->status, w->from, w->to, err))
		return -1;
	while ((n = history_range_read(&c, iv, READ, err)) > 0)
		for (int i = 0; i < n; i++) {
			const int64_t start = iv[i].start < w->from ? w->from : iv[i].start;
			const int64_t end = iv[i].end > w->to ? w->to : iv[i].end;
			const int state = iv[i].value == HISTORY_NULL ? -1 : topo->thread_state[iv[i].value];
			if (state == THREAD_RUNNING) {
				if (t->follow)
					*ARRAY_PUSH(t->ran, t->rans, t->ran_cap) = (struct run_stretch){ start, total };
				work += end - start + 1;
				total += end - start + 1;
				continue;
			}
			int held = state == THREAD_PREEMPTED ? is_held(topo, reasons, start, end, err) : 0;
			if (held == 0 && quota && state == THREAD_PREEMPTED)
				held = was_let_wait(w, t, start, end, err);
			if (held < 0)
				return -1;
			if (state == THREAD_PREEMPTED && !held) {
				t->waited += end - start + 1;
				t->lengths[wait_length(end - start + 1)] += (double)(end - start + 1);
				if (end - start >= TURN_LEAST && end < w->to)
					note_turn(w, end);
				if (end - start >= TURN_LEAST && look_for_pin(w, t, start, end, err))
					return -1;
				if (work == 0 && t->bursts && end - start < DISPATCH_MOST)
					w->dispatches[(end - start) / DISPATCH_STEP]++;
				continue;
			}
			int64_t unknown = 0;
			if (state == THREAD_UNKNOWN && unseen(w, start, end, &unknown, err))
				return -1;
			t->unknown += unknown;
			slept = end + 1;
			add_sleep(t, &work, start, end, held == 1);
		}
	/* Who computes all along does not stop because the window does, or because it got on faster. */
	if ((double)(w->to - slept) >= HOG_FROM * (double)(w->to - w->from))
		work += 2 * (w->to - w->from);
	*ARRAY_PUSH(t->burst, t->bursts, t->burst_cap) = (struct replay_burst){ .work = work, .sleep = INT64_MAX,
		.wake = INT64_MAX };
	if (t->follow)
		*ARRAY_PUSH(t->ran, t->rans, t->ran_cap) = (struct run_stretch){ w->to + 1, total };
	return n;
}

static int read_cpus(const struct wants *w, struct replay_task *t, struct error *err)
{
	const uint32_t attr = w->topo->thread[t->thread].cpu;
	struct history_cursor c;
	struct interval iv;
	int64_t on[64] = { 0 }, all = 0;
	int more = 0;
	if (attr == HISTORY_NONE)
		return 0;
	if (history_range(&c, w->topo->h, attr, w->from, w->to, err))
		return -1;
	while ((more = history_range_next(&c, &iv, err)) > 0)
		if (iv.value >= 0 && iv.value < (int64_t)w->cpus) {
			const int64_t ns = (iv.end > w->to ? w->to : iv.end) - (iv.start < w->from ? w->from : iv.start) + 1;
			t->first = all ? t->first : (unsigned)iv.value;
			on[iv.value] += ns;
			t->was_on[iv.value].last = iv.end;
			all += ns;
		}
	for (unsigned i = 0; i < w->cpus; i++)
		t->seen |= (uint64_t)(on[i] > 0 && (double)on[i] >= SEEN_FROM * (double)all) << i;
	return more;
}

static double weight_of(int level)
{
	double weight = 1;
	for (; level > 0; level--)
		weight /= NICE_STEP;
	for (; level < 0; level++)
		weight *= NICE_STEP;
	return weight;
}

/* ns that it ran within [start, end]. */
static int ran_within(const struct wants *w, const struct topo_thread *th, int64_t start, int64_t end, int64_t *ns,
                      struct error *err)
{
	int64_t sums[HISTORY_STATES];
	*ns = 0;
	if (history_sums(w->topo->h, th->status, start, end, sums, err))
		return -1;
	for (unsigned i = 0; i < HISTORY_STATES - 1; i++)
		*ns += w->topo->thread_state[i] == THREAD_RUNNING ? sums[i] : 0;
	return 0;
}

/* The weight of the level at which it ran longest; level 0 where none is told. */
static int read_weight(const struct wants *w, struct replay_task *t, struct error *err)
{
	const struct topo_thread *th = &w->topo->thread[t->thread];
	int64_t ran[NICE_LEVELS] = { 0 }, ns;
	struct history_cursor c;
	struct interval iv;
	int more, most = NICE_0;
	t->weight = 1;
	if (th->nice == HISTORY_NONE)
		return 0;
	if (history_range(&c, w->topo->h, th->nice, w->from, w->to, err))
		return -1;
	while ((more = history_range_next(&c, &iv, err)) > 0) {
		const int64_t level = iv.value == HISTORY_NULL ? 0 : iv.value;
		if (ran_within(w, th, iv.start < w->from ? w->from : iv.start, iv.end > w->to ? w->to : iv.end, &ns, err))
			return -1;
		if (level >= -NICE_0 && level < NICE_LEVELS - NICE_0)
			ran[level + NICE_0] += ns;
	}
	for (int i = 0; i < NICE_LEVELS; i++)
		most = ran[i] > ran[most] ? i : most;
	t->weight = weight_of(most - NICE_0);
	return more;
}

/* The groups that it is in where the window ends. */
static int read_groups(struct wants *w, struct replay_task *t, struct error *err)
{
	const uint32_t attr = w->topo->thread[t->thread].groups;
	struct history_cursor c;
	struct interval iv;
	int more;
	t->group = -1;
	if (attr == HISTORY_NONE)
		return 0;
	if (history_range(&c, w->topo->h, attr, w->from, w->to, err))
		return -1;
	while ((more = history_range_next(&c, &iv, err)) > 0) {
		const char *text = iv.value == HISTORY_NULL ? NULL : history_string(w->topo->h, iv.value);
		t->group = text ? groups_of(w, text) : t->group;
	}
	w->grouped += t->group >= 0;
	return more;
}

/* Who lives shortly was seen on few CPUs for want of time: it may use all, unless it waited while others were idle. */
static uint64_t may_use(const struct wants *w, const struct replay_task *t)
{
	const struct topo_machine *host = &w->topo->machine[0];
	int64_t start = 0, end = INT64_MAX;
	uint64_t all = 0;
	for (uint32_t i = host->cpu; i < host->cpu + host->cpus; i++)
		all |= UINT64_C(1) << w->topo->cpu[i].number;
	if (t->follow || t->stuck >= STUCK_LEAST ||
	    topo_life(w->topo, &(struct subject){ SUBJECT_THREAD, t->thread }, &start, &end, NULL) <= 0)
		return t->seen;
	return end - start < SHORT_LIFE ? all : t->seen;
}

static int add_task(struct wants *w, uint32_t thread, struct error *err)
{
	const struct topo_thread *th = &w->topo->thread[thread];
	int64_t busy;
	if (th->status == HISTORY_NONE || th->tid == 0)
		return 0;
	if (ran_within(w, th, w->from, w->to, &busy, err))
		return -1;
	if (busy == 0)
		return 0;
	w->task_of[thread] = (uint32_t)w->tasks;
	struct replay_task *t = ARRAY_PUSH(w->task, w->tasks, w->cap);
	struct replay_left was_on[WHATIF_CPUS] = { 0 };
	*t = (struct replay_task){ .thread = thread, .follow = th->role >= 0, .was_on = was_on };
	const int rc = read_cpus(w, t, err) || read_weight(w, t, err) || read_groups(w, t, err) || read_states(w, t, err);
	leave_cpus(w, t);
	t->was_on = NULL;
	if (rc)
		return -1;
	if (!t->seen)
		t->seen = 1;
	t->may = may_use(w, t);
	return 0;
}

void task_name(const struct wants *w, const struct replay_task *t, char out[SUBJECT_TEXT])
{
	const struct topo *topo = w->topo;
	const int32_t role = topo->thread[t->thread].role;
	if (role < 0)
		ledger_subject(topo, &(struct subject){ SUBJECT_THREAD, t->thread }, out);
	else
		text_escape(out, SUBJECT_TEXT, topo->machine[topo->cpu[topo->role[role].vcpu].machine].name);
}

struct kin_name { char name[SUBJECT_TEXT]; struct replay_task *task; };

static int by_name(const void *pa, const void *pb)
{
	const struct kin_name *a = pa, *b = pb;
	return strcmp(a->name, b->name);
}

static void number_kins(struct wants *w)
{
	struct kin_name *a = mem_new(w->tasks, sizeof *a);
	for (size_t i = 0; i < w->tasks; i++) {
		a[i].task = &w->task[i];
		task_name(w, a[i].task, a[i].name);
	}
	if (w->tasks)
		qsort(a, w->tasks, sizeof *a, by_name);
	for (size_t i = 0; i < w->tasks; i++) {
		w->kins += i == 0 || by_name(&a[i - 1], &a[i]);
		a[i].task->kin = w->kins - 1;
	}
	free(a);
}

static int64_t median_dispatch(const struct wants *w)
{
	uint64_t all = 0, upto = 0;
	size_t i = 0;
	const size_t n = sizeof w->dispatches / sizeof *w->dispatches;
	for (size_t k = 0; k < n; k++)
		all += w->dispatches[k];
	while (i < n && (upto += w->dispatches[i]) < (all + 1) / 2)
		i++;
	return all ? (int64_t)i * DISPATCH_STEP + DISPATCH_STEP / 2 : 0;
}

int wants_read(struct wants *w, const struct topo *topo, int64_t from, int64_t to, struct error *err)
{
	*w = (struct wants){ .topo = topo, .from = from, .to = to };
	const struct topo_machine *host = &topo->machine[0];
	w->cpus = topo->cpu[host->cpu + host->cpus - 1].number + 1;
	w->task_of = mem_new(topo->threads, sizeof *w->task_of);
	for (uint32_t i = 0; i < topo->threads; i++)
		w->task_of[i] = UINT32_MAX;
	for (uint32_t i = host->thread; i < host->thread + host->threads; i++)
		if (add_task(w, i, err))
			return -1;
	number_kins(w);
	w->dispatch = median_dispatch(w);
	find_tick(w);
	return 0;
}

void wants_release(struct wants *w)
{
	for (size_t i = 0; i < w->tasks; i++) {
		free(w->task[i].burst);
		free(w->task[i].ran);
		free(w->task[i].again);
	}
	free(w->task);
	free(w->task_of);
	free(w->group);
	*w = (struct wants){ 0 };
}

struct replay_task *wants_task(const struct wants *w, uint32_t thread)
{
	return w->task_of[thread] == UINT32_MAX ? NULL : &w->task[w->task_of[thread]];
}

/* The last stretch that begins at or before `key`, by time or by work; n > 0. */
static size_t stretch_at(const struct run_stretch *s, size_t n, int64_t key, bool by_work)
{
	size_t at;
	BISECT(at, n, (by_work ? s[at].work : s[at].time) <= key);
	return at > 0 ? at - 1 : 0;
}

int64_t task_work_at(const struct replay_task *t, int64_t at)
{
	if (t->rans < 2 || at <= t->ran[0].time)
		return 0;
	const size_t i = stretch_at(t->ran, t->rans, at, false);
	if (i + 1 == t->rans)
		return t->ran[i].work;
	const int64_t length = t->ran[i + 1].work - t->ran[i].work, into = at - t->ran[i].time;
	return t->ran[i].work + (into < length ? into : length);
}

int64_t task_time_of(const struct replay_task *t, int64_t work, bool begins)
{
	if (t->agains == 0)
		return INT64_MIN;
	const size_t i = stretch_at(t->again, t->agains, begins || work == 0 ? work : work - 1, true);
	const int64_t time = t->again[i].time + (work - t->again[i].work);
	return i + 1 == t->agains && work > t->done ? INT64_MIN : time;
}

int64_t task_runs_from(const struct replay_task *t, int64_t at)
{
	if (t->agains == 0)
		return INT64_MIN;
	const size_t i = stretch_at(t->again, t->agains, at, false);
	const bool last = i + 1 == t->agains;
	const int64_t ran = (last ? t->done : t->again[i + 1].work) - t->again[i].work;
	if (at < t->again[i].time + ran)
		return at > t->again[i].time ? at : t->again[i].time;
	return last ? INT64_MIN : t->again[i + 1].time;
}
