/* Demand of every host thread: its sequence of states without the waits for a CPU.
 *
 * Time in an unknown state counts as sleep. It is summed up in `unknown` if a host CPU's owner was unknown at that
 * time, too. If a vCPU thread was off its CPU without competition (quota, pause), that counts as sleep too; throttled
 * intervals are flagged. */
#include "base/base.h"
#include "base/bisect.h"
#include "base/states.h"
#include "compare/whatif/scheduler_replay.h"

#define READ_BATCH 256
#define TICK_WINDOW 10  /* the searched phase window's width, in bins of TICK_PARTS: 1/10 of a tick */
#define SLICE_MIN 1000000  /* ns: a switch after a longer wait is caused by a slice's end, not by a wakeup */
#define SLICES_MIN 30   /* fewest slices for an estimate of the tick */
#define TICK_SHARE_MIN 0.4   /* minimum share of the slices in one phase window; a window has 0.1 by chance */
#define TICK_SIMILARITY_MIN 0.9
#define PIN_EVIDENCE_MIN 10   /* fewest waits next to an idle CPU that show pinning; a few may end before the
                        * scheduler acts */
#define PIN_CHECKS_MAX 1000
#define IDLE_SHARE_MIN 0.9
#define NICE_LEVELS 41      /* -21 (real time) to 19 */
#define NICE_0_INDEX 21
#define NICE_STEP 1.25      /* ratio of the weights of neighbouring nice levels */
#define SHORT_LIFE_NS 500000000  /* ns */
#define HOG_SHARE_MIN 0.1    /* minimum share of the window, at its end, without a sleep: a thread that always computes */
#define USED_SHARE_MIN 0.02  /* minimum share of a thread's run time on a CPU that it may use: a thread that was started on
                         * one CPU and pinned to another may be unable to return */

/* Attribute with the reasons why the thread's vCPU was off its CPU; HISTORY_NONE: the thread is no vCPU, or runs several
 * in turn. */
static uint32_t off_cpu_reasons(const struct catalog *catalog, const struct catalog_thread *th)
{
	if (th->role < 0 || catalog->role[th->role].next >= 0)
		return HISTORY_NONE;
	return catalog->cpu[catalog->role[th->role].vcpu].out_by;
}

/* Returns 1 if the CPU was idle, apart from handlers, in nearly all of [start, end]; otherwise 0, or -1 with *err. */
static int cpu_was_idle(const struct host_demand *d, const struct catalog_cpu *c, int64_t start, int64_t end,
                        struct error *err)
{
	int64_t sums[HISTORY_STATES];
	const unsigned n = c->owner == HISTORY_NONE ? 0 : history_state_count(d->catalog->h, c->owner);
	if (n == 0)
		return 0;
	if (history_sums(d->catalog->h, c->owner, start, end, sums, err))
		return -1;
	for (unsigned k = 0; k < n; k++)
		if (!strcmp(history_state_name(d->catalog->h, c->owner, k), pcpu_owner_name[PCPU_IDLE]) &&
		    (double)sums[k] >= IDLE_SHARE_MIN * (double)(end - start))
			return 1;
	return 0;
}

/* Counts the CPUs that were idle during a wait of the task. A scheduler does not let a task wait while a CPU is idle
 * that it may use; so such a CPU is not allowed, even if the task used it before. */
static int collect_pin_evidence(const struct host_demand *d, struct replay_task *t, int64_t start, int64_t end,
                                struct error *err)
{
	const struct catalog_machine *host = &d->catalog->machine[0];
	bool unused_cpu_idle = false;
	if (t->waits_checked >= PIN_CHECKS_MAX)
		return 0;
	t->waits_checked++;
	for (uint32_t i = host->cpu; i < host->cpu + host->cpus; i++) {
		const struct catalog_cpu *c = &d->catalog->cpu[i];
		struct cpu_use *use = &t->cpu_use[c->number];
		const bool used = t->used_cpus >> c->number & 1;
		const bool check = used ? use->last_use < start && use->idle_waits < PIN_EVIDENCE_MIN
		                        : !unused_cpu_idle && t->pin_evidence < PIN_EVIDENCE_MIN;
		const int idle = check ? cpu_was_idle(d, c, start, end, err) : 0;
		if (idle < 0)
			return -1;
		use->idle_waits += used && idle;
		unused_cpu_idle |= !used && idle;
	}
	t->pin_evidence += unused_cpu_idle;
	return 0;
}

/* Removes the CPUs to which the task never returned, although they were idle during later waits. */
static void remove_left_cpus(const struct host_demand *d, struct replay_task *t)
{
	for (unsigned i = 0; i < d->cpus; i++)
		if ((t->used_cpus >> i & 1) && (t->used_cpus & (t->used_cpus - 1)) &&
		    t->cpu_use[i].idle_waits >= PIN_EVIDENCE_MIN) {
			t->used_cpus &= ~(UINT64_C(1) << i);
			t->pin_evidence = PIN_EVIDENCE_MIN;
		}
}

bool task_may_be_pinned(const struct replay_task *t)
{
	return !(t->used_cpus & (t->used_cpus - 1)) && t->pin_evidence < PIN_EVIDENCE_MIN;
}

/* Returns the cause if the vCPU was held off its CPU for more than half of the interval: 1 = quota, 2 = another cause, 0
 * = none; -1 with *err. */
static int off_cpu_cause(const struct catalog *catalog, uint32_t attr, int64_t start, int64_t end, struct error *err)
{
	int64_t sums[HISTORY_STATES], throttled = 0, quota = 0;
	if (attr == HISTORY_NONE)
		return 0;
	if (history_sums(catalog->h, attr, start, end, sums, err))
		return -1;
	for (unsigned i = 0; i < HISTORY_STATES - 1; i++) {
		throttled += sums[i];
		quota += catalog->out_reason[i] == OUT_QUOTA ? sums[i] : 0;
	}
	return 2 * throttled <= end - start + 1 ? 0 : 2 * quota > throttled ? 1 : 2;
}

/* Returns 1 if a quota throttled the vCPU within the window, otherwise 0; -1 with *err. */
static int has_quota(const struct host_demand *d, uint32_t attr, struct error *err)
{
	int64_t sums[HISTORY_STATES], quota = 0;
	if (attr == HISTORY_NONE)
		return 0;
	if (history_sums(d->catalog->h, attr, d->from, d->to, sums, err))
		return -1;
	for (unsigned i = 0; i < HISTORY_STATES - 1; i++)
		quota += d->catalog->out_reason[i] == OUT_QUOTA ? sums[i] : 0;
	return quota > 0;
}

/* Returns 1 if all CPUs of the task were idle during a long wait, which happens only with a quota; otherwise 0, or -1
 * with *err. */
static int waited_while_idle(const struct host_demand *d, const struct replay_task *t, int64_t start, int64_t end,
                             struct error *err)
{
	const struct catalog_machine *host = &d->catalog->machine[0];
	int idle = t->used_cpus != 0 && end - start >= SLICE_MIN;
	for (uint32_t i = host->cpu; i < host->cpu + host->cpus && idle > 0; i++)
		if (t->used_cpus >> d->catalog->cpu[i].number & 1)
			idle = cpu_was_idle(d, &d->catalog->cpu[i], start, end, err);
	return idle;
}

static void add_sleep(struct replay_task *t, int64_t *work, int64_t start, int64_t end, bool quota)
{
	struct replay_burst *last = t->bursts ? &t->burst[t->bursts - 1] : NULL;
	if (last && *work == 0 && !quota && !last->throttled) {
		last->sleep += end - start + 1;
		last->wake = end + 1;
		return;
	}
	*ARRAY_PUSH(t->burst, t->bursts, t->burst_cap) = (struct replay_burst){ .work = *work, .sleep = end - start + 1,
		.wake = end + 1, .throttled = quota };
	*work = 0;
}

static const int64_t ticks[TICKS] = { 1000000, 3333333, 4000000, 10000000 };  /* ns; tick rates of 1000, 300, 250, 100 Hz */

static void count_slice_end(struct host_demand *d, int64_t at)
{
	for (unsigned i = 0; i < TICKS; i++)
		d->slice_ends[i][at % ticks[i] * TICK_PARTS / ticks[i]]++;
}

/* Share of slices that end in the busiest phase window, 0 if there are too few slices; *part: the bin that halves the
 * slices of the window. */
static double max_window_share(const uint32_t slices[TICK_PARTS], unsigned *part)
{
	uint64_t all = 0, best = 0, below = 0;
	unsigned first = 0;
	for (unsigned i = 0; i < TICK_PARTS; i++) {
		uint64_t nearby = 0;
		for (unsigned k = 0; k < TICK_WINDOW; k++)
			nearby += slices[(i + k) % TICK_PARTS];
		first = nearby > best ? i : first;
		best = nearby > best ? nearby : best;
		all += slices[i];
	}
	for (*part = first; (below += slices[*part]) * 2 < best;)
		*part = (*part + 1) % TICK_PARTS;
	return all >= SLICES_MIN ? (double)best / (double)all : 0;
}

/* Finds the tick period: the longest one with a score close to the best, because events with a period of 4 ms look
 * periodic at 1 and 2 ms, too. */
static void find_tick(struct host_demand *d)
{
	double share[TICKS], max = 0;
	unsigned part[TICKS] = { 0 };
	for (unsigned i = 0; i < TICKS; i++) {
		share[i] = max_window_share(d->slice_ends[i], &part[i]);
		max = share[i] > max ? share[i] : max;
	}
	for (unsigned i = 0; i < TICKS; i++)
		if (max >= TICK_SHARE_MIN && share[i] >= TICK_SIMILARITY_MIN * max) {
			d->tick = ticks[i];
			d->phase = (2 * part[i] + 1) * ticks[i] / (2 * TICK_PARTS);
		}
}

/* *ns: longest time within [start, end] for which the owner of one host CPU is unknown. */
static int max_unknown_time(const struct host_demand *d, int64_t start, int64_t end, int64_t *ns, struct error *err)
{
	const struct catalog_machine *host = &d->catalog->machine[0];
	*ns = 0;
	for (uint32_t i = host->cpu; i < host->cpu + host->cpus; i++) {
		const uint32_t owner = d->catalog->cpu[i].owner;
		int64_t sums[HISTORY_STATES] = { [HISTORY_STATES - 1] = end - start + 1 };
		const unsigned n = owner == HISTORY_NONE ? 0 : history_state_count(d->catalog->h, owner);
		if (n && history_sums(d->catalog->h, owner, start, end, sums, err))
			return -1;
		int64_t unknown = sums[HISTORY_STATES - 1];
		for (unsigned k = 0; k < n; k++)
			if (!strcmp(history_state_name(d->catalog->h, owner, k), pcpu_owner_name[PCPU_UNKNOWN]))
				unknown += sums[k];
		*ns = unknown > *ns ? unknown : *ns;
	}
	return 0;
}

static int read_states(struct host_demand *d, struct replay_task *t, struct error *err)
{
	const struct catalog *catalog = d->catalog;
	const struct catalog_thread *th = &catalog->thread[t->thread];
	const uint32_t reasons = off_cpu_reasons(catalog, th);
	struct history_cursor c;
	struct interval iv[READ_BATCH];
	const int quota = has_quota(d, reasons, err);
	int64_t work = 0, total = 0, last_sleep_end = d->from;
	int n;
	if (quota < 0)
		return -1;
	if (history_range(&c, catalog->h, th->status, d->from, d->to, err))
		return -1;
	while ((n = history_range_read(&c, iv, READ_BATCH, err)) > 0)
		for (int i = 0; i < n; i++) {
			const int64_t start = iv[i].start < d->from ? d->from : iv[i].start;
			const int64_t end = iv[i].end > d->to ? d->to : iv[i].end;
			const int state = iv[i].value == HISTORY_NULL ? -1 : catalog->thread_state[iv[i].value];
			if (state == THREAD_RUNNING) {
				if (t->is_vcpu)
					*ARRAY_PUSH(t->ran, t->n_ran, t->ran_cap) = (struct run_interval){ start, total };
				work += end - start + 1;
				total += end - start + 1;
				continue;
			}
			int throttled = state == THREAD_PREEMPTED ? off_cpu_cause(catalog, reasons, start, end, err) : 0;
			if (throttled == 0 && quota && state == THREAD_PREEMPTED)
				throttled = waited_while_idle(d, t, start, end, err);
			if (throttled < 0)
				return -1;
			if (state == THREAD_PREEMPTED && !throttled) {
				t->waited += end - start + 1;
				t->wait_by_length[wait_length(end - start + 1)] += (double)(end - start + 1);
				if (end - start >= SLICE_MIN && end < d->to)
					count_slice_end(d, end);
				if (end - start >= SLICE_MIN && collect_pin_evidence(d, t, start, end, err))
					return -1;
				if (work == 0 && t->bursts && end - start < DISPATCH_MAX)
					d->dispatch_histogram[(end - start) / DISPATCH_STEP]++;
				continue;
			}
			int64_t unknown = 0;
			if (state == THREAD_UNKNOWN && max_unknown_time(d, start, end, &unknown, err))
				return -1;
			t->unknown += unknown;
			last_sleep_end = end + 1;
			add_sleep(t, &work, start, end, throttled == 1);
		}
	/* A thread that computes all the time does not stop at the window's end, and not earlier if the replay lets it run
	 * more. */
	if ((double)(d->to - last_sleep_end) >= HOG_SHARE_MIN * (double)(d->to - d->from))
		work += 2 * (d->to - d->from);
	*ARRAY_PUSH(t->burst, t->bursts, t->burst_cap) = (struct replay_burst){ .work = work, .sleep = INT64_MAX,
		.wake = INT64_MAX };
	if (t->is_vcpu)
		*ARRAY_PUSH(t->ran, t->n_ran, t->ran_cap) = (struct run_interval){ d->to + 1, total };
	return n;
}

static int read_cpus(const struct host_demand *d, struct replay_task *t, struct error *err)
{
	const uint32_t attr = d->catalog->thread[t->thread].cpu;
	struct history_cursor c;
	struct interval iv;
	int64_t on[64] = { 0 }, all = 0;
	int more = 0;
	if (attr == HISTORY_NONE)
		return 0;
	if (history_range(&c, d->catalog->h, attr, d->from, d->to, err))
		return -1;
	while ((more = history_range_next(&c, &iv, err)) > 0)
		if (iv.value >= 0 && iv.value < (int64_t)d->cpus) {
			const int64_t ns = (iv.end > d->to ? d->to : iv.end) - (iv.start < d->from ? d->from : iv.start) + 1;
			t->first_cpu = all ? t->first_cpu : (unsigned)iv.value;
			on[iv.value] += ns;
			t->cpu_use[iv.value].last_use = iv.end;
			all += ns;
		}
	for (unsigned i = 0; i < d->cpus; i++)
		t->used_cpus |= (uint64_t)(on[i] > 0 && (double)on[i] >= USED_SHARE_MIN * (double)all) << i;
	return more;
}

static double nice_weight(int level)
{
	double weight = 1;
	for (; level > 0; level--)
		weight /= NICE_STEP;
	for (; level < 0; level++)
		weight *= NICE_STEP;
	return weight;
}

/* *ns: time that the thread ran within [start, end]. */
static int ran_within(const struct host_demand *d, const struct catalog_thread *th, int64_t start, int64_t end, int64_t *ns,
                      struct error *err)
{
	int64_t sums[HISTORY_STATES];
	*ns = 0;
	if (history_sums(d->catalog->h, th->status, start, end, sums, err))
		return -1;
	for (unsigned i = 0; i < HISTORY_STATES - 1; i++)
		*ns += d->catalog->thread_state[i] == THREAD_RUNNING ? sums[i] : 0;
	return 0;
}

/* Sets the weight of the nice level at which the thread ran longest; level 0 if unknown. */
static int read_weight(const struct host_demand *d, struct replay_task *t, struct error *err)
{
	const struct catalog_thread *th = &d->catalog->thread[t->thread];
	int64_t ran[NICE_LEVELS] = { 0 }, ns;
	struct history_cursor c;
	struct interval iv;
	int more, max = NICE_0_INDEX;
	t->weight = 1;
	if (th->nice == HISTORY_NONE)
		return 0;
	if (history_range(&c, d->catalog->h, th->nice, d->from, d->to, err))
		return -1;
	while ((more = history_range_next(&c, &iv, err)) > 0) {
		const int64_t level = iv.value == HISTORY_NULL ? 0 : iv.value;
		if (ran_within(d, th, iv.start < d->from ? d->from : iv.start, iv.end > d->to ? d->to : iv.end, &ns, err))
			return -1;
		if (level >= -NICE_0_INDEX && level < NICE_LEVELS - NICE_0_INDEX)
			ran[level + NICE_0_INDEX] += ns;
	}
	for (int i = 0; i < NICE_LEVELS; i++)
		max = ran[i] > ran[max] ? i : max;
	t->weight = nice_weight(max - NICE_0_INDEX);
	return more;
}

/* Sets the cgroup of the task at the window's end. */
static int read_groups(struct host_demand *d, struct replay_task *t, struct error *err)
{
	const uint32_t attr = d->catalog->thread[t->thread].groups;
	struct history_cursor c;
	struct interval iv;
	int more;
	t->group = -1;
	if (attr == HISTORY_NONE)
		return 0;
	if (history_range(&c, d->catalog->h, attr, d->from, d->to, err))
		return -1;
	while ((more = history_range_next(&c, &iv, err)) > 0) {
		const char *text = iv.value == HISTORY_NULL ? NULL : history_string(d->catalog->h, iv.value);
		t->group = text ? parse_groups(d, text) : t->group;
	}
	d->grouped += t->group >= 0;
	return more;
}

/* Returns the CPUs that the task may use: those that it used. Short-lived threads use few CPUs for lack of time: they
 * may use all CPUs, unless they waited while unused CPUs were idle. */
static uint64_t derive_allowed_cpus(const struct host_demand *d, const struct replay_task *t)
{
	const struct catalog_machine *host = &d->catalog->machine[0];
	int64_t start = 0, end = INT64_MAX;
	uint64_t all = 0;
	for (uint32_t i = host->cpu; i < host->cpu + host->cpus; i++)
		all |= UINT64_C(1) << d->catalog->cpu[i].number;
	if (t->is_vcpu || t->pin_evidence >= PIN_EVIDENCE_MIN ||
	    catalog_lifetime(d->catalog, &(struct target){ TARGET_THREAD, t->thread }, &start, &end, NULL) <= 0)
		return t->used_cpus;
	return end - start < SHORT_LIFE_NS ? all : t->used_cpus;
}

static int add_task(struct host_demand *d, uint32_t thread, struct error *err)
{
	const struct catalog_thread *th = &d->catalog->thread[thread];
	int64_t busy;
	if (th->status == HISTORY_NONE || th->tid == 0)
		return 0;
	if (ran_within(d, th, d->from, d->to, &busy, err))
		return -1;
	if (busy == 0)
		return 0;
	d->task_index[thread] = (uint32_t)d->tasks;
	struct replay_task *t = ARRAY_PUSH(d->task, d->tasks, d->cap);
	struct cpu_use cpu_use[WHATIF_CPUS] = { 0 };
	*t = (struct replay_task){ .thread = thread, .is_vcpu = th->role >= 0, .cpu_use = cpu_use };
	const int rc = read_cpus(d, t, err) || read_weight(d, t, err) || read_groups(d, t, err) || read_states(d, t, err);
	remove_left_cpus(d, t);
	t->cpu_use = NULL;
	if (rc)
		return -1;
	if (!t->used_cpus)
		t->used_cpus = 1;
	t->allowed_cpus = derive_allowed_cpus(d, t);
	return 0;
}

void task_name(const struct host_demand *d, const struct replay_task *t, char out[TARGET_TEXT])
{
	const struct catalog *catalog = d->catalog;
	const int32_t role = catalog->thread[t->thread].role;
	if (role < 0)
		ledger_target(catalog, &(struct target){ TARGET_THREAD, t->thread }, out);
	else
		text_escape(out, TARGET_TEXT, catalog->machine[catalog->cpu[catalog->role[role].vcpu].machine].name);
}

struct task_label { char name[TARGET_TEXT]; struct replay_task *task; };

ORDER_BY(compare_names, struct task_label, RISING_TEXT(name))

static void number_name_groups(struct host_demand *d)
{
	struct task_label *a = mem_new(d->tasks, sizeof *a);
	for (size_t i = 0; i < d->tasks; i++) {
		a[i].task = &d->task[i];
		task_name(d, a[i].task, a[i].name);
	}
	ARRAY_SORT(a, d->tasks, compare_names);
	for (size_t i = 0; i < d->tasks; i++) {
		d->name_groups += i == 0 || compare_names(&a[i - 1], &a[i]);
		a[i].task->name_group = d->name_groups - 1;
	}
	free(a);
}

static int64_t median_dispatch_latency(const struct host_demand *d)
{
	uint64_t all = 0, below = 0;
	size_t i = 0;
	const size_t n = sizeof d->dispatch_histogram / sizeof *d->dispatch_histogram;
	for (size_t k = 0; k < n; k++)
		all += d->dispatch_histogram[k];
	while (i < n && (below += d->dispatch_histogram[i]) < (all + 1) / 2)
		i++;
	return all ? (int64_t)i * DISPATCH_STEP + DISPATCH_STEP / 2 : 0;
}

int demand_read(struct host_demand *d, const struct catalog *catalog, int64_t from, int64_t to, struct error *err)
{
	*d = (struct host_demand){ .catalog = catalog, .from = from, .to = to };
	const struct catalog_machine *host = &catalog->machine[0];
	d->cpus = catalog->cpu[host->cpu + host->cpus - 1].number + 1;
	d->task_index = mem_new(catalog->threads, sizeof *d->task_index);
	for (uint32_t i = 0; i < catalog->threads; i++)
		d->task_index[i] = UINT32_MAX;
	for (uint32_t i = host->thread; i < host->thread + host->threads; i++)
		if (add_task(d, i, err))
			return -1;
	number_name_groups(d);
	d->dispatch = median_dispatch_latency(d);
	find_tick(d);
	return 0;
}

void demand_release(struct host_demand *d)
{
	for (size_t i = 0; i < d->tasks; i++) {
		free(d->task[i].burst);
		free(d->task[i].ran);
		free(d->task[i].replayed);
	}
	free(d->task);
	free(d->task_index);
	free(d->group);
	*d = (struct host_demand){ 0 };
}

struct replay_task *demand_task(const struct host_demand *d, uint32_t thread)
{
	return d->task_index[thread] == UINT32_MAX ? NULL : &d->task[d->task_index[thread]];
}

/* Index of the last interval that begins at or before `key`, in time or in work; n > 0. */
static size_t find_interval(const struct run_interval *s, size_t n, int64_t key, bool by_work)
{
	size_t at;
	BISECT(at, n, (by_work ? s[at].work : s[at].time) <= key);
	return at > 0 ? at - 1 : 0;
}

int64_t task_work_at(const struct replay_task *t, int64_t at)
{
	if (t->n_ran < 2 || at <= t->ran[0].time)
		return 0;
	const size_t i = find_interval(t->ran, t->n_ran, at, false);
	if (i + 1 == t->n_ran)
		return t->ran[i].work;
	const int64_t length = t->ran[i + 1].work - t->ran[i].work, into = at - t->ran[i].time;
	return t->ran[i].work + (into < length ? into : length);
}

int64_t task_time_at_work(const struct replay_task *t, int64_t work, bool begins)
{
	if (t->n_replayed == 0)
		return INT64_MIN;
	const size_t i = find_interval(t->replayed, t->n_replayed, begins || work == 0 ? work : work - 1, true);
	const int64_t time = t->replayed[i].time + (work - t->replayed[i].work);
	return i + 1 == t->n_replayed && work > t->work_done ? INT64_MIN : time;
}

int64_t task_next_run(const struct replay_task *t, int64_t at)
{
	if (t->n_replayed == 0)
		return INT64_MIN;
	const size_t i = find_interval(t->replayed, t->n_replayed, at, false);
	const bool last = i + 1 == t->n_replayed;
	const int64_t ran = (last ? t->work_done : t->replayed[i + 1].work) - t->replayed[i].work;
	if (at < t->replayed[i].time + ran)
		return at > t->replayed[i].time ? at : t->replayed[i].time;
	return last ? INT64_MIN : t->replayed[i + 1].time;
}
