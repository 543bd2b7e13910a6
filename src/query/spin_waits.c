/* Spinning lock waits: no event names the holder, so it is estimated.
 *
 * - Suspect: the thread on another vCPU of the machine that had no pCPU during the wait. Its suspicion is the share of
 *   the wait without a pCPU.
 * - Further suspects explain the wait as well, and make the holder ambiguous: threads on other such vCPUs, and runnable
 *   threads of the machine that are known to spin themselves. (The kernel does not preempt holders of its own spinlocks,
 *   and programs with a common spinlock all spin at times.)
 * - A vCPU spins while it repeatedly exits with PAUSE. Between two such exits it executes for a limited time; if it
 *   executed longer, it had the lock and worked, and then spun again.
 * - An interrupt may interrupt a wait. The wait continues after the interrupt if the suspect's vCPU executed nothing in
 *   between, because then the lock cannot have been released.
 *
 * Cost: the flow of each other vCPU, the vCPU's statuses, and one analysis per machine of the way its vCPUs spin. */
#include "base/base.h"
#include "query/locks.h"

#define SUSPICION_MIN 0.5     /* minimum share of a wait without a pCPU that makes a suspect */
#define SUSPECTS_MAX 3   /* most suspects that are named together */
#define EXITS_MAX 65536 /* exits per vCPU that are read to learn its spin pattern */
#define RUNS_MAX 1024    /* limit of guest-mode runs between these exits that are stored */
#define RUN_FACTOR 4        /* maximum length of a run, as a multiple of short runs: the CPU's PAUSE window may grow */

/* ---- Patterns */

bool spin_is_pause(const char *exit)
{
	return strcmp(exit, "PAUSE_INSTRUCTION") == 0 || strcmp(exit, "pause") == 0;
}

/* Finds the current thread of vCPU v at t; tid -1: unknown, 0: idle. */
static int vcpu_current(struct lock_search *c, uint32_t v, int64_t t, struct actor *out)
{
	const struct catalog *catalog = c->q.catalog;
	struct interval iv = { .value = HISTORY_NULL };
	if (catalog->cpu[v].current != HISTORY_NONE && history_stab(catalog->h, catalog->cpu[v].current, t, &iv, c->err) < 0)
		return -1;
	int32_t tid = iv.value >= 0 && iv.value <= INT32_MAX ? (int32_t)iv.value : -1;
	return locks_actor(c, catalog->cpu[v].machine, tid, t, out);
}

static bool pattern_has_thread(const struct spin_pattern *patterns, int32_t tid)
{
	for (size_t i = 0; i < patterns->tids; i++)
		if (patterns->tid[i] == tid)
			return true;
	return false;
}

struct run_list {
	int64_t ns[RUNS_MAX];
	size_t len;
};

/* Adds the guest-mode runs of vCPU v between PAUSE exits. */
static int run_list_add(struct lock_search *c, uint32_t v, const struct interval *pause, struct run_list *runs)
{
	const uint32_t status = c->q.catalog->cpu[v].status;
	struct history_cursor cursor;
	struct interval iv;
	int found = 0;
	if (status == HISTORY_NONE || runs->len == RUNS_MAX)
		return 0;
	if (history_range(&cursor, c->q.catalog->h, status, pause->start, pause->end, c->err) < 0)
		return -1;
	while (runs->len < RUNS_MAX && (found = history_range_next(&cursor, &iv, c->err)) > 0)
		if (state_is_in(c->executing, iv.value) && iv.start > pause->start && iv.end < pause->end)
			runs->ns[runs->len++] = iv.end - iv.start + 1;
	return found < 0 ? -1 : 0;
}

static int pattern_learn_vcpu(struct lock_search *c, uint32_t v, struct spin_pattern *patterns, struct run_list *runs,
                              int64_t *longest)
{
	const struct history *h = c->q.catalog->h;
	const uint32_t exit = c->q.catalog->cpu[v].exit;
	struct history_cursor cursor;
	struct interval iv;
	struct actor actor;
	int found = 0;
	runs->len = 0;
	*longest = INT64_MAX;
	if (exit == HISTORY_NONE)
		return 0;
	if (history_range(&cursor, h, exit, history_first(h), history_last(h), c->err) < 0)
		return -1;
	for (int i = 0; i < EXITS_MAX && (found = history_range_next(&cursor, &iv, c->err)) > 0; i++) {
		if (iv.value == HISTORY_NULL || !spin_is_pause(history_string(h, iv.value)))
			continue;
		if (vcpu_current(c, v, iv.start, &actor) < 0 || run_list_add(c, v, &iv, runs) < 0)
			return -1;
		if (actor.tid > 0 && !pattern_has_thread(patterns, actor.tid))
			*ARRAY_PUSH(patterns->tid, patterns->tids, patterns->cap) = actor.tid;
	}
	if (found < 0 || !runs->len)
		return found < 0 ? -1 : 0;
	qsort(runs->ns, runs->len, sizeof *runs->ns, order_int64);
	*longest = runs->ns[runs->len / 4] * RUN_FACTOR;
	return 0;
}

/* Returns the spin pattern of machine m; NULL: error. */
static struct spin_pattern *machine_pattern(struct lock_search *c, uint32_t m)
{
	const struct catalog_machine *machine = &c->q.catalog->machine[m];
	struct spin_pattern *patterns = &c->patterns[m];
	int rc = 0;
	if (patterns->is_known)
		return patterns;
	struct run_list *runs = mem_new(1, sizeof *runs);
	patterns->longest = mem_new(machine->cpus + 1, sizeof *patterns->longest);
	for (uint32_t i = 0; i < machine->cpus && rc == 0; i++)
		rc = pattern_learn_vcpu(c, machine->cpu + i, patterns, runs, &patterns->longest[i]);
	free(runs);
	patterns->is_known = true;
	return rc < 0 ? NULL : patterns;
}

/* ---- Suspects */

struct suspects {
	struct actor actor[SUSPECTS_MAX];
	unsigned n;
	int32_t vcpu;  /* the suspects' vCPU; -1: several */
};

static void suspects_add(struct suspects *list, const struct actor *actor, int32_t vcpu)
{
	if (list->n < SUSPECTS_MAX)
		list->actor[list->n] = *actor;
	list->vcpu = list->n++ == 0 || list->vcpu == vcpu ? vcpu : -1;
}

/* Returns the ns of [a, b] in which vCPU v may execute its guest; -1: error. */
static int64_t executed_ns(struct lock_search *c, uint32_t v, int64_t a, int64_t b)
{
	int64_t sums[HISTORY_STATES], ns = 0;
	const uint32_t status = c->q.catalog->cpu[v].status;
	if (a > b || status == HISTORY_NONE)
		return a > b ? 0 : b - a + 1;
	if (history_sums(c->q.catalog->h, status, a, b, sums, c->err) < 0)
		return -1;
	for (unsigned i = 0; i < HISTORY_STATES - 1; i++)
		ns += c->executing >> i & 1 ? sums[i] : 0;
	return ns;
}

/* Adds the thread on vCPU v as a suspect if the vCPU had no pCPU for most of the wait; finds the culprit that took the
 * pCPU. */
static int suspect_vcpu(struct lock_search *c, uint32_t v, struct lock_wait *wait, struct suspects *list)
{
	const struct target s = { TARGET_CPU, v };
	const struct flow_options sums = { .no_idle_task = true };
	struct flow f;
	struct actor holder;
	const int64_t all = wait->end - wait->start + 1, ran = executed_ns(c, v, wait->start, wait->end);
	int64_t out = 0;
	if (ran < 0 || (double)(all - ran) < SUSPICION_MIN * (double)all)  /* it was off the CPU for less time than required */
		return ran < 0 ? -1 : 0;
	if (query_answer(flow_open(c->q.catalog, &s, wait->start, wait->end, &sums, c->err), &f, c->err) < 0)
		return -1;
	const struct flow_entry *most = NULL;
	for (size_t i = 0; i < f.entries; i++) {
		const struct flow_entry *e = &f.entry[i];
		if (!flow_is_thread(e->actor.kind) || !e->lost)
			continue;
		out += e->lost;
		most = !most || e->lost > most->lost ? e : most;
	}
	double score = (double)out / (double)all;
	int rc = 0;
	if (most && score >= SUSPICION_MIN && (rc = vcpu_current(c, v, most->longest.start, &holder)) == 0 && holder.tid != 0 &&
	    holder.tid != wait->waiter.tid) {
		if (holder.tid < 0) {
			char name[32];
			snprintf(name, sizeof name, "vCPU%u", c->q.catalog->cpu[v].number);
			holder.name = strtab_put(&c->names, name);
		}
		suspects_add(list, &holder, (int32_t)v);
		wait->suspicion = score > wait->suspicion ? score : wait->suspicion;
		wait->culprit = locks_named(c, &most->actor, f.name);
		wait->culprit_ns = most->lost;
	}
	flow_release(&f);
	return rc;
}

/* Finds the vCPU of its machine on which the thread is at t; -1: none. */
static int thread_vcpu(struct lock_search *c, const struct catalog_thread *th, int64_t t, int32_t *vcpu)
{
	struct interval iv = { .value = HISTORY_NULL };
	if (th->cpu != HISTORY_NONE && history_stab(c->q.catalog->h, th->cpu, t, &iv, c->err) < 0)
		return -1;
	*vcpu = iv.value < 0 || iv.value > UINT16_MAX ? -1 : catalog_find_cpu(c->q.catalog, th->machine, (unsigned)iv.value);
	return 0;
}

/* Adds the thread, known to spin, as a suspect if it was runnable for most of the wait. */
static int suspect_thread(struct lock_search *c, uint32_t machine, int32_t tid, const struct lock_wait *wait,
                          struct suspects *list)
{
	const int thread = catalog_find_thread(c->q.catalog, machine, tid);
	int64_t sums[HISTORY_STATES], ns = 0;
	struct actor actor;
	int32_t vcpu;
	if (thread < 0 || tid == wait->waiter.tid || c->q.catalog->thread[thread].status == HISTORY_NONE)
		return 0;
	const struct catalog_thread *th = &c->q.catalog->thread[thread];
	if (history_sums(c->q.catalog->h, th->status, wait->start, wait->end, sums, c->err) < 0)
		return -1;
	for (unsigned i = 0; i < HISTORY_STATES - 1; i++)
		ns += c->runnable >> i & 1 ? sums[i] : 0;
	if ((double)ns < SUSPICION_MIN * (double)(wait->end - wait->start + 1))
		return 0;
	if (locks_actor(c, machine, tid, wait->start, &actor) < 0 || thread_vcpu(c, th, wait->start, &vcpu) < 0)
		return -1;
	suspects_add(list, &actor, vcpu);
	return 0;
}

/* Returns the suspects' names: "104 or 105". */
static uint32_t suspects_name(struct lock_search *c, const struct suspects *list)
{
	char text[256] = "";
	for (unsigned i = 0, used = 0; i < list->n && i <= SUSPECTS_MAX && used < sizeof text; i++) {
		const char *before = i == 0 ? "" : i + 1 == list->n || i == SUSPECTS_MAX ? " or " : ", ";
		int n = i == SUSPECTS_MAX ? snprintf(text + used, sizeof text - used, "%sothers", before)
		      : list->actor[i].tid < 0
		      ? snprintf(text + used, sizeof text - used, "%s%s", before, strtab_get(&c->names, list->actor[i].name))
		      : snprintf(text + used, sizeof text - used, "%s%d", before, list->actor[i].tid);
		used += n > 0 ? (unsigned)n : 0;
	}
	return strtab_put(&c->names, text);
}

/* Sums the ns that the spinning waiter itself lost. */
static int add_waiter_loss(struct lock_search *c, const struct target *target, struct lock_wait *wait)
{
	const struct flow_options sums = { 0 };
	struct flow f;
	if (query_answer(flow_open(c->q.catalog, target, wait->start, wait->end, &sums, c->err), &f, c->err) < 0)
		return -1;
	for (size_t i = 0; i < f.entries; i++)
		wait->waiter_lost_ns += flow_is_thread(f.entry[i].actor.kind) ? f.entry[i].lost : 0;
	flow_release(&f);
	return 0;
}

int spin_suspects(struct lock_search *c, const struct target *target, int own, struct lock_wait *wait, int32_t *vcpu)
{
	const uint32_t machine = (uint32_t)wait->waiter.machine;
	const struct catalog_machine *m = &c->q.catalog->machine[machine];
	struct suspects list = { .vcpu = -1 };
	int rc = 0;
	wait->spins = true;
	for (uint32_t v = m->cpu; v < m->cpu + m->cpus && rc == 0 && m->kind == MACHINE_VM; v++)
		rc = (int)v == own ? 0 : suspect_vcpu(c, v, wait, &list);
	*vcpu = -1;
	if (rc == 0 && (list.n || wait->vcpu < 0))
		rc = add_waiter_loss(c, target, wait);
	if (rc < 0 || !list.n)
		return rc;
	const struct spin_pattern *patterns = machine_pattern(c, machine);
	for (size_t i = 0; patterns && i < patterns->tids && rc == 0; i++)
		rc = suspect_thread(c, machine, patterns->tid[i], wait, &list);
	if (list.n == 1)
		wait->holder = list.actor[0];
	else
		wait->suspects = suspects_name(c, &list);
	if (list.vcpu < 0) {  /* the culprit depends on the holder */
		wait->culprit = locks_no_actor;
		wait->culprit_ns = 0;
	}
	*vcpu = list.vcpu;
	return patterns ? rc : -1;
}

/* ---- vCPUs */

/* Finds the suspect of a wait of vCPU v. Returns 1, 0 = none, -1 = error. */
static int spin_estimate(struct lock_search *c, uint32_t v, struct lock_wait *wait, int32_t *suspect)
{
	int rc = spin_suspects(c, &(struct target){ TARGET_CPU, v }, (int)v, wait, suspect);
	return rc < 0 ? -1 : wait->suspicion > 0;
}

static struct lock_wait wait_by(struct actor waiter, uint32_t v, int64_t a, int64_t b, uint32_t kind)
{
	return (struct lock_wait){ .waiter = waiter, .vcpu = (int32_t)v, .start = a, .end = b, .kind = kind,
	                           .holder = locks_no_actor, .culprit = locks_no_actor };
}

/* Estimates the holder of the last wait again, for the whole wait, if it was joined from several parts. */
static int last_wait_estimate(struct lock_search *c, uint32_t v)
{
	int32_t suspect;
	if (!c->last.joined)
		return 0;
	struct lock_wait *wait = &c->list.wait[c->list.waits - 1];
	*wait = wait_by(wait->waiter, v, wait->start, wait->end, wait->kind);
	int found = spin_estimate(c, v, wait, &suspect);
	c->list.waits -= found == 0;
	return found < 0 ? -1 : 0;
}

int spin_end_vcpu(struct lock_search *c, uint32_t v)
{
	int rc = last_wait_estimate(c, v);
	c->last = (struct last_spin){ 0 };
	return rc;
}

/* Returns 1 if the wait continues the last wait: same waiter, same suspect, and the suspect executed nothing in between. */
static int is_continued(struct lock_search *c, const struct lock_wait *wait, int32_t suspect)
{
	if (!c->last.is || suspect < 0 || c->last.suspect != suspect)
		return 0;
	const struct lock_wait *last = &c->list.wait[c->list.waits - 1];
	if (last->waiter.tid != wait->waiter.tid)
		return 0;
	int64_t ran = executed_ns(c, (uint32_t)suspect, last->end + 1, wait->start - 1);
	return ran < 0 ? -1 : ran == 0;
}

/* Adds a wait of vCPU v, which exited with PAUSE at a, and for the last time at b. */
static int add_spin_wait(struct lock_search *c, uint32_t v, int64_t a, int64_t b)
{
	struct actor actor;
	int32_t suspect;
	if (b <= a)
		return 0;
	if (vcpu_current(c, v, a, &actor) < 0)
		return -1;
	if (c->target.kind == TARGET_THREAD && actor.tid != c->q.catalog->thread[c->target.index].tid)
		return 0;
	struct lock_wait wait = wait_by(actor, v, a, b, strtab_put(&c->names, "pause"));
	int found = spin_estimate(c, v, &wait, &suspect);
	if (found <= 0)
		return found;
	int more = is_continued(c, &wait, suspect);
	if (more > 0) {
		c->list.wait[c->list.waits - 1].end = b;
		c->last.joined = true;
	} else if (more == 0 && last_wait_estimate(c, v) == 0) {
		*ARRAY_PUSH(c->list.wait, c->list.waits, c->cap) = wait;
		c->last = (struct last_spin){ .is = true, .suspect = suspect };
	} else {
		return -1;
	}
	return 0;
}

int spin_of_vcpu(struct lock_search *c, uint32_t v, const struct interval *pause)
{
	const struct catalog *catalog = c->q.catalog;
	const uint32_t machine = catalog->cpu[v].machine, status = catalog->cpu[v].status;
	const struct spin_pattern *patterns = machine_pattern(c, machine);
	struct history_cursor cursor;
	struct interval iv;
	int64_t a = pause->start > c->q.from ? pause->start : c->q.from, b = INT64_MIN;
	const int64_t to = pause->end < c->q.to ? pause->end : c->q.to;
	int found;
	if (!patterns || status == HISTORY_NONE)
		return patterns ? 0 : -1;
	const int64_t longest = patterns->longest[v - catalog->machine[machine].cpu];
	if (history_range(&cursor, catalog->h, status, a, to, c->err) < 0)
		return -1;
	while ((found = history_range_next(&cursor, &iv, c->err)) > 0) {
		if (state_is_in(c->in_vmm, iv.value))
			b = iv.end < to ? iv.end : to;
		if (!state_is_in(c->executing, iv.value) || iv.end - iv.start < longest)
			continue;
		if (add_spin_wait(c, v, a, b) < 0)
			return -1;
		a = iv.end + 1;
	}
	return found < 0 ? -1 : add_spin_wait(c, v, a, b);
}
