/* Waits for locks that were spent spinning: nothing names who had the lock.
 *
 * Suspected is a thread on another vCPU of the machine that had no pCPU meanwhile, the more the larger its part of the
 * wait.  What explains it as well is suspected, too, and then nobody is said to be the holder: somebody on another such
 * vCPU, or a thread that wanted a vCPU of its machine, if it is known to spin itself: a kernel does not take the CPU from
 * who holds its own spinning locks, and programs that share one all spin at times.
 *
 * That a vCPU spins its exits tell: PAUSE after PAUSE.  Between two of them it cannot execute for much longer than it
 * usually does; where it did, it had the lock and worked, and then spun once more.  A wait that is cut by an interrupt
 * goes on behind that if the vCPU of whoever is suspected executed nothing meanwhile: nobody can have given the lock away.
 *
 * Cost: the flow of each other vCPU, the statuses of that one, and, once for a machine, a look at how its vCPUs spin. */
#include "query/locks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define SUSPECTED 0.5     /* part of a wait from which on whoever had no CPU in it is named */
#define MOST_SUSPECTS 3   /* that are named together */
#define MOST_LOOKED 65536 /* exits of a vCPU that are looked at to learn how it spins */
#define MOST_RUNS 1024    /* of its runs between these */
#define RUN_SPAN 4        /* a run may be so many times as long as a short one: the CPU's bound may grow */

/* ---- Habits */

bool spin_is_pause(const char *exit)
{
	return strcmp(exit, "PAUSE_INSTRUCTION") == 0 || strcmp(exit, "pause") == 0;
}

/* Whoever had vCPU v at t; tid -1: its guest does not tell, 0: it is idle. */
static int current_at(struct lock_search *c, uint32_t v, int64_t t, struct party *out)
{
	const struct topo *topo = c->q.topo;
	struct interval iv = { .value = HISTORY_NULL };
	if (topo->cpu[v].current != HISTORY_NONE && history_stab(topo->h, topo->cpu[v].current, t, &iv, c->err) < 0)
		return -1;
	int32_t tid = iv.value >= 0 && iv.value <= INT32_MAX ? (int32_t)iv.value : -1;
	return locks_party(c, topo->cpu[v].machine, tid, t, out);
}

static bool spins(const struct spin_habits *habits, int32_t tid)
{
	for (size_t i = 0; i < habits->tids; i++)
		if (habits->tid[i] == tid)
			return true;
	return false;
}

struct runs {
	int64_t ns[MOST_RUNS];
	size_t len;
};

/* What vCPU v executed between exits because of PAUSE. */
static int add_runs(struct lock_search *c, uint32_t v, const struct interval *pause, struct runs *runs)
{
	const uint32_t status = c->q.topo->cpu[v].status;
	struct history_cursor cursor;
	struct interval iv;
	int found = 0;
	if (status == HISTORY_NONE || runs->len == MOST_RUNS)
		return 0;
	if (history_range(&cursor, c->q.topo->h, status, pause->start, pause->end, c->err) < 0)
		return -1;
	while (runs->len < MOST_RUNS && (found = history_range_next(&cursor, &iv, c->err)) > 0)
		if (state_in(c->executing, iv.value) && iv.start > pause->start && iv.end < pause->end)
			runs->ns[runs->len++] = iv.end - iv.start + 1;
	return found < 0 ? -1 : 0;
}

static int shortest_first(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static int learn_vcpu(struct lock_search *c, uint32_t v, struct spin_habits *habits, struct runs *runs, int64_t *longest)
{
	const struct history *h = c->q.topo->h;
	const uint32_t exit = c->q.topo->cpu[v].exit;
	struct history_cursor cursor;
	struct interval iv;
	struct party who;
	int found = 0;
	runs->len = 0;
	*longest = INT64_MAX;
	if (exit == HISTORY_NONE)
		return 0;
	if (history_range(&cursor, h, exit, history_begin(h), history_end(h), c->err) < 0)
		return -1;
	for (int i = 0; i < MOST_LOOKED && (found = history_range_next(&cursor, &iv, c->err)) > 0; i++) {
		if (iv.value == HISTORY_NULL || !spin_is_pause(history_string(h, iv.value)))
			continue;
		if (current_at(c, v, iv.start, &who) < 0 || add_runs(c, v, &iv, runs) < 0)
			return -1;
		if (who.tid > 0 && !spins(habits, who.tid))
			*ARRAY_PUSH(habits->tid, habits->tids, habits->cap) = who.tid;
	}
	if (found < 0 || !runs->len)
		return found < 0 ? -1 : 0;
	qsort(runs->ns, runs->len, sizeof *runs->ns, shortest_first);
	*longest = runs->ns[runs->len / 4] * RUN_SPAN;
	return 0;
}

/* How machine m spins; NULL: error. */
static struct spin_habits *habits_of(struct lock_search *c, uint32_t m)
{
	const struct topo_machine *machine = &c->q.topo->machine[m];
	struct spin_habits *habits = &c->habits[m];
	int rc = 0;
	if (habits->learnt)
		return habits;
	struct runs *runs = mem_new(1, sizeof *runs);
	habits->longest = mem_new(machine->cpus + 1, sizeof *habits->longest);
	for (uint32_t i = 0; i < machine->cpus && rc == 0; i++)
		rc = learn_vcpu(c, machine->cpu + i, habits, runs, &habits->longest[i]);
	free(runs);
	habits->learnt = true;
	return rc < 0 ? NULL : habits;
}

/* ---- Suspects */

struct suspects {
	struct party who[MOST_SUSPECTS];
	unsigned n;
	int32_t vcpu;  /* where all of them are, or -1 */
};

static void add_suspect(struct suspects *list, const struct party *who, int32_t vcpu)
{
	if (list->n < MOST_SUSPECTS)
		list->who[list->n] = *who;
	list->vcpu = list->n++ == 0 || list->vcpu == vcpu ? vcpu : -1;
}

/* For how much of [a, b] vCPU v executes its guest, as far as is known; -1: error. */
static int64_t executed(struct lock_search *c, uint32_t v, int64_t a, int64_t b)
{
	int64_t sums[HISTORY_STATES], ns = 0;
	const uint32_t status = c->q.topo->cpu[v].status;
	if (a > b || status == HISTORY_NONE)
		return a > b ? 0 : b - a + 1;
	if (history_sums(c->q.topo->h, status, a, b, sums, c->err) < 0)
		return -1;
	for (unsigned i = 0; i < HISTORY_STATES - 1; i++)
		ns += c->executing >> i & 1 ? sums[i] : 0;
	return ns;
}

/* How much of the wait vCPU v had no pCPU, and who had that. */
static int suspect_vcpu(struct lock_search *c, uint32_t v, struct lock_wait *wait, struct suspects *list)
{
	const struct subject s = { SUBJECT_CPU, v };
	const struct flow_options sums = { .no_idlers = true };
	struct flow f;
	struct party holder;
	const int64_t all = wait->end - wait->start + 1, ran = executed(c, v, wait->start, wait->end);
	int64_t out = 0;
	if (ran < 0 || (double)(all - ran) < SUSPECTED * (double)all)  /* it cannot have been out for long enough */
		return ran < 0 ? -1 : 0;
	if (flow_of(c->q.topo, &s, wait->start, wait->end, &sums, &f, c->err) < 0)
		return -1;
	const struct flow_entry *most = NULL;
	for (size_t i = 0; i < f.entries; i++) {
		const struct flow_entry *e = &f.entry[i];
		if (e->who.kind != FLOW_PREEMPTING || !e->lost)
			continue;
		out += e->lost;
		most = !most || e->lost > most->lost ? e : most;
	}
	double score = (double)out / (double)all;
	int rc = 0;
	if (most && score >= SUSPECTED && (rc = current_at(c, v, most->longest.start, &holder)) == 0 && holder.tid != 0 &&
	    holder.tid != wait->waiter.tid) {
		if (holder.tid < 0) {
			char name[32];
			snprintf(name, sizeof name, "vCPU%u", c->q.topo->cpu[v].number);
			holder.name = strtab_put(&c->names, name);
		}
		add_suspect(list, &holder, (int32_t)v);
		wait->suspicion = score > wait->suspicion ? score : wait->suspicion;
		wait->thief = locks_named(c, &most->who, f.name);
		wait->taken = most->lost;
	}
	flow_release(&f);
	return rc;
}

/* On which of its machine's vCPUs the thread is at t, or -1. */
static int vcpu_of(struct lock_search *c, const struct topo_thread *th, int64_t t, int32_t *vcpu)
{
	struct interval iv = { .value = HISTORY_NULL };
	if (th->cpu != HISTORY_NONE && history_stab(c->q.topo->h, th->cpu, t, &iv, c->err) < 0)
		return -1;
	*vcpu = iv.value < 0 || iv.value > UINT16_MAX ? -1 : topo_find_cpu(c->q.topo, th->machine, (unsigned)iv.value);
	return 0;
}

/* Did the thread, which is known to spin, want a vCPU of its machine meanwhile? */
static int suspect_thread(struct lock_search *c, uint32_t machine, int32_t tid, const struct lock_wait *wait,
                          struct suspects *list)
{
	const int thread = topo_find_thread(c->q.topo, machine, tid);
	int64_t sums[HISTORY_STATES], ns = 0;
	struct party who;
	int32_t vcpu;
	if (thread < 0 || tid == wait->waiter.tid || c->q.topo->thread[thread].status == HISTORY_NONE)
		return 0;
	const struct topo_thread *th = &c->q.topo->thread[thread];
	if (history_sums(c->q.topo->h, th->status, wait->start, wait->end, sums, c->err) < 0)
		return -1;
	for (unsigned i = 0; i < HISTORY_STATES - 1; i++)
		ns += c->wants >> i & 1 ? sums[i] : 0;
	if ((double)ns < SUSPECTED * (double)(wait->end - wait->start + 1))
		return 0;
	if (locks_party(c, machine, tid, wait->start, &who) < 0 || vcpu_of(c, th, wait->start, &vcpu) < 0)
		return -1;
	add_suspect(list, &who, vcpu);
	return 0;
}

/* "104 or 105" */
static uint32_t names_of(struct lock_search *c, const struct suspects *list)
{
	char text[256] = "";
	for (unsigned i = 0, used = 0; i < list->n && i <= MOST_SUSPECTS && used < sizeof text; i++) {
		const char *before = i == 0 ? "" : i + 1 == list->n || i == MOST_SUSPECTS ? " or " : ", ";
		int n = i == MOST_SUSPECTS ? snprintf(text + used, sizeof text - used, "%sothers", before)
		      : list->who[i].tid < 0
		      ? snprintf(text + used, sizeof text - used, "%s%s", before, strtab_get(&c->names, list->who[i].name))
		      : snprintf(text + used, sizeof text - used, "%s%d", before, list->who[i].tid);
		used += n > 0 ? (unsigned)n : 0;
	}
	return strtab_put(&c->names, text);
}

/* What was taken from the spinning waiter itself. */
static int own_taken(struct lock_search *c, const struct subject *s, struct lock_wait *wait)
{
	const struct flow_options sums = { 0 };
	struct flow f;
	if (flow_of(c->q.topo, s, wait->start, wait->end, &sums, &f, c->err) < 0)
		return -1;
	for (size_t i = 0; i < f.entries; i++)
		wait->own_taken += f.entry[i].who.kind == FLOW_PREEMPTING ? f.entry[i].lost : 0;
	flow_release(&f);
	return 0;
}

int spin_suspects(struct lock_search *c, const struct subject *s, int own, struct lock_wait *wait, int32_t *vcpu)
{
	const uint32_t machine = (uint32_t)wait->waiter.system;
	const struct topo_machine *m = &c->q.topo->machine[machine];
	struct suspects list = { .vcpu = -1 };
	int rc = 0;
	wait->spins = true;
	for (uint32_t v = m->cpu; v < m->cpu + m->cpus && rc == 0 && m->kind == MACHINE_VM; v++)
		rc = (int)v == own ? 0 : suspect_vcpu(c, v, wait, &list);
	*vcpu = -1;
	if (rc == 0 && (list.n || wait->vcpu < 0))
		rc = own_taken(c, s, wait);
	if (rc < 0 || !list.n)
		return rc;
	const struct spin_habits *habits = habits_of(c, machine);
	for (size_t i = 0; habits && i < habits->tids && rc == 0; i++)
		rc = suspect_thread(c, machine, habits->tid[i], wait, &list);
	if (list.n == 1)
		wait->holder = list.who[0];
	else
		wait->suspects = names_of(c, &list);
	if (list.vcpu < 0) {  /* who took what depends on which of them it is */
		wait->thief = locks_nobody;
		wait->taken = 0;
	}
	*vcpu = list.vcpu;
	return habits ? rc : -1;
}

/* ---- Of vCPUs */

/* Who is suspected in a wait of vCPU v: told where somebody is.  1, 0 = nobody, -1. */
static int judge(struct lock_search *c, uint32_t v, struct lock_wait *wait, int32_t *suspect)
{
	int rc = spin_suspects(c, &(struct subject){ SUBJECT_CPU, v }, (int)v, wait, suspect);
	return rc < 0 ? -1 : wait->suspicion > 0;
}

static struct lock_wait wait_by(struct party waiter, uint32_t v, int64_t a, int64_t b, uint32_t kind)
{
	return (struct lock_wait){ .waiter = waiter, .vcpu = (int32_t)v, .start = a, .end = b, .kind = kind,
	                           .holder = locks_nobody, .thief = locks_nobody };
}

/* The last wait, if it was made of several, on the whole. */
static int settle(struct lock_search *c, uint32_t v)
{
	int32_t suspect;
	if (!c->last.joined)
		return 0;
	struct lock_wait *wait = &c->list.wait[c->list.waits - 1];
	*wait = wait_by(wait->waiter, v, wait->start, wait->end, wait->kind);
	int found = judge(c, v, wait, &suspect);
	c->list.waits -= found == 0;
	return found < 0 ? -1 : 0;
}

int spin_settle(struct lock_search *c, uint32_t v)
{
	int rc = settle(c, v);
	c->last = (struct last_spin){ 0 };
	return rc;
}

/* Does the last wait go on in this one?  If it has the same waiter, for the same suspect, who did nothing between. */
static int goes_on(struct lock_search *c, const struct lock_wait *wait, int32_t suspect)
{
	if (!c->last.is || suspect < 0 || c->last.suspect != suspect)
		return 0;
	const struct lock_wait *last = &c->list.wait[c->list.waits - 1];
	if (last->waiter.tid != wait->waiter.tid)
		return 0;
	int64_t ran = executed(c, (uint32_t)suspect, last->end + 1, wait->start - 1);
	return ran < 0 ? -1 : ran == 0;
}

/* A wait of vCPU v, which has been left because of PAUSE at a and, for the last time, until b. */
static int add_spin(struct lock_search *c, uint32_t v, int64_t a, int64_t b)
{
	struct party who;
	int32_t suspect;
	if (b <= a)
		return 0;
	if (current_at(c, v, a, &who) < 0)
		return -1;
	if (c->whose.kind == SUBJECT_THREAD && who.tid != c->q.topo->thread[c->whose.index].tid)
		return 0;
	struct lock_wait wait = wait_by(who, v, a, b, strtab_put(&c->names, "pause"));
	int found = judge(c, v, &wait, &suspect);
	if (found <= 0)
		return found;
	int more = goes_on(c, &wait, suspect);
	if (more > 0) {
		c->list.wait[c->list.waits - 1].end = b;
		c->last.joined = true;
	} else if (more == 0 && settle(c, v) == 0) {
		*ARRAY_PUSH(c->list.wait, c->list.waits, c->cap) = wait;
		c->last = (struct last_spin){ .is = true, .suspect = suspect };
	} else {
		return -1;
	}
	return 0;
}

int spin_of_vcpu(struct lock_search *c, uint32_t v, const struct interval *pause)
{
	const struct topo *topo = c->q.topo;
	const uint32_t machine = topo->cpu[v].machine, status = topo->cpu[v].status;
	const struct spin_habits *habits = habits_of(c, machine);
	struct history_cursor cursor;
	struct interval iv;
	int64_t a = pause->start > c->q.from ? pause->start : c->q.from, b = INT64_MIN;
	const int64_t to = pause->end < c->q.to ? pause->end : c->q.to;
	int found;
	if (!habits || status == HISTORY_NONE)
		return habits ? 0 : -1;
	const int64_t longest = habits->longest[v - topo->machine[machine].cpu];
	if (history_range(&cursor, topo->h, status, a, to, c->err) < 0)
		return -1;
	while ((found = history_range_next(&cursor, &iv, c->err)) > 0) {
		if (state_in(c->outside, iv.value))
			b = iv.end < to ? iv.end : to;
		if (!state_in(c->executing, iv.value) || iv.end - iv.start < longest)
			continue;
		if (add_spin(c, v, a, b) < 0)
			return -1;
		a = iv.end + 1;
	}
	return found < 0 ? -1 : add_spin(c, v, a, b);
}
