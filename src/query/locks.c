/* Lock waits, and the lost CPU time that made them long.
 *
 * Events show which thread waits for a lock, and when (attribute Lock of a thread). If the waiter slept, its waker had
 * the lock, and the critical path of the sleep shows the holder's delays. The time that the waiter itself lost
 * after its wakeup is summed separately: the lock was free by then, or had another holder. The holder of a lock for
 * which a thread spun is estimated (spin_waits.c).
 *
 * Cost: a critical path for each wait with sleep. Memory: the waits. */
#include "query/locks.h"

#include "base/base.h"
#include "query/culprit.h"
#include "query/wakeup.h"

const struct actor locks_no_actor = { -1, -1, 0, FLOW_UNKNOWN, 0 };

static int thread_raw_name(struct lock_search *c, uint32_t thread, int64_t t, const char **name)
{
	const uint32_t attr = c->q.catalog->thread[thread].name;
	struct interval iv = { .value = HISTORY_NULL };
	if (attr != HISTORY_NONE && history_stab(c->q.catalog->h, attr, t, &iv, c->err) < 0)
		return -1;
	*name = iv.value == HISTORY_NULL ? "" : history_string(c->q.catalog->h, iv.value);
	return 0;
}

int locks_actor(struct lock_search *c, uint32_t machine, int32_t tid, int64_t t, struct actor *out)
{
	const char *name = "";
	int thread = tid > 0 ? catalog_find_thread(c->q.catalog, machine, tid) : -1;
	if (thread >= 0 && thread_raw_name(c, (uint32_t)thread, t, &name) < 0)
		return -1;
	*out = (struct actor){ (int32_t)machine, tid, strtab_put(&c->names, name), FLOW_RUNNING, 0 };
	return 0;
}

static struct lock_wait *list_add_wait(struct lock_search *c, uint32_t machine, int32_t tid, const char *name,
                                       const char *kind, int64_t start, int64_t end)
{
	struct lock_wait *wait = ARRAY_PUSH(c->list.wait, c->list.waits, c->cap);
	*wait = (struct lock_wait){
		.waiter = { (int32_t)machine, tid, strtab_put(&c->names, name), FLOW_RUNNING, 0 }, .start = start, .end = end,
		.vcpu = -1, .kind = strtab_put(&c->names, kind), .holder = locks_no_actor,
		.culprit = locks_no_actor,
	};
	return wait;
}

struct actor locks_named(struct lock_search *c, const struct actor *p, char **name)
{
	return (struct actor){ p->machine, p->tid, strtab_put(&c->names, name[p->name]), p->kind, p->reason };
}

/* ---- Sleeping waits */

/* Part of a wait in which the waiter depended on the holder: from falling asleep until the holder released the lock. */
struct held_interval { int64_t start, end; };

/* Sleeps of the thread during the wait, up to their wakeups. The waker of the last sleep had the lock. */
struct sleep_list {
	struct held_interval *held;
	size_t len, cap;
};

static int sleep_list_add(struct lock_search *c, struct resolver *r, const struct catalog_thread *th,
                          const struct interval *iv, struct lock_wait *wait, struct sleep_list *out)
{
	struct wakeup by = { .at = INT64_MAX };
	const bool ends = iv->end < history_last(c->q.catalog->h) && iv->end <= wait->end;
	if (ends && wakeup_of(r, resolver_thread(r, th->machine, th->tid), iv->end + 1, &by) < 0)
		return -1;
	const int64_t start = iv->start > wait->start ? iv->start : wait->start;
	const int64_t end = by.at <= wait->end ? by.at - 1 : wait->end;
	if (start <= end)
		*ARRAY_PUSH(out->held, out->len, out->cap) = (struct held_interval){ start, end };
	wait->holder = locks_no_actor;
	if (!by.in || strcmp(by.in, "thread") != 0 || by.machine != (int32_t)th->machine || by.tid <= 0)
		return 0;
	return locks_actor(c, th->machine, by.tid, by.at, &wait->holder);
}

static int sleep_list_find(struct lock_search *c, uint32_t thread, struct lock_wait *wait, struct sleep_list *out)
{
	const struct catalog_thread *th = &c->q.catalog->thread[thread];
	struct history_cursor cursor;
	struct interval iv;
	struct resolver r;
	resolver_init(&r, c->q.catalog, wait->start, wait->end, c->err);
	int rc = history_range(&cursor, c->q.catalog->h, th->status, wait->start, wait->end, c->err);
	while (rc == 0 && (rc = history_range_next(&cursor, &iv, c->err)) > 0) {
		bool asleep = iv.value >= 0 && iv.value < HISTORY_STATES && c->asleep >> iv.value & 1;
		rc = asleep ? sleep_list_add(c, &r, th, &iv, wait, out) : 0;
	}
	resolver_release(&r);
	return rc;
}

/* Returns the ns of [a, b] within these sleeps. *next: index of the first sleep that may end after a. */
static int64_t sleep_list_overlap(const struct sleep_list *sleeps, size_t *next, int64_t a, int64_t b)
{
	int64_t ns = 0;
	while (*next < sleeps->len && sleeps->held[*next].end < a)
		++*next;
	for (size_t i = *next; i < sleeps->len && sleeps->held[i].start <= b; i++) {
		const struct held_interval *h = &sleeps->held[i];
		ns += (h->end < b ? h->end : b) - (h->start > a ? h->start : a) + 1;
	}
	return ns;
}

struct lock_loss { int64_t holder, own; };  /* ns */

/* Finds the culprit that took most from the holder, or from the waiter if no culprit delayed the holder. */
static void find_lock_culprit(struct lock_search *c, const struct path *p, const struct sleep_list *sleeps,
                              struct lock_wait *wait)
{
	struct actors culprits = { 0 };
	struct lock_loss *loss = mem_new(p->sums + 1, sizeof *loss), most = { 0, 0 };
	size_t next = 0;
	for (size_t i = 0; i < p->intervals; i++) {
		const struct path_interval *interval = &p->interval[i];
		const struct actor *actor = &interval->culprit;
		const bool is_thread = flow_is_thread(actor->kind) && (actor->kind == FLOW_PREEMPTING || actor->tid > 0);
		if (!actor_is_known(actor) || !(is_thread || actor->kind == FLOW_LIMITED))
			continue;
		struct lock_loss *by = &loss[actors_put(&culprits, &interval->culprit)];
		const int64_t ns = interval->end - interval->start + 1;
		const int64_t held = sleep_list_overlap(sleeps, &next, interval->start, interval->end);
		by->holder += held;
		by->own += ns - held;
		wait->waiter_lost_ns += ns - held;
	}
	for (size_t i = 0; i < culprits.len; i++) {
		if (loss[i].holder < most.holder || (loss[i].holder == most.holder && loss[i].own <= most.own))
			continue;
		most = loss[i];
		wait->culprit_ns = most.holder;
		wait->culprit = locks_named(c, &culprits.actor[i], p->name);
	}
	actors_release(&culprits);
	free(loss);
}

/* ---- Waits */

/* Returns 1 if the thread sleeps at any time within [a, b]. */
static int sleeps(struct lock_search *c, uint32_t thread, int64_t a, int64_t b)
{
	int64_t sums[HISTORY_STATES];
	if (history_sums(c->q.catalog->h, c->q.catalog->thread[thread].status, a, b, sums, c->err) < 0)
		return -1;
	for (unsigned i = 0; i < HISTORY_STATES - 1; i++)
		if (sums[i] && c->asleep >> i & 1)
			return 1;
	return 0;
}

static int thread_cpu(struct lock_search *c, uint32_t thread, int64_t t)
{
	const struct catalog_thread *th = &c->q.catalog->thread[thread];
	struct interval iv;
	if (th->cpu == HISTORY_NONE || history_stab(c->q.catalog->h, th->cpu, t, &iv, c->err) < 0 || iv.value < 0 ||
	    iv.value > UINT16_MAX)
		return -1;
	return catalog_find_cpu(c->q.catalog, th->machine, (unsigned)iv.value);
}

static int add_thread_wait(struct lock_search *c, uint32_t thread, const struct interval *iv)
{
	const struct catalog *catalog = c->q.catalog;
	const struct catalog_thread *th = &catalog->thread[thread];
	const struct target self = { TARGET_THREAD, thread };
	int64_t a = iv->start > c->q.from ? iv->start : c->q.from, b = iv->end < c->q.to ? iv->end : c->q.to;
	const char *name;
	if (thread_raw_name(c, thread, a, &name) < 0)
		return -1;
	struct lock_wait *wait = list_add_wait(c, th->machine, th->tid, name, history_string(catalog->h, iv->value), a, b);
	int slept = th->status == HISTORY_NONE ? 0 : sleeps(c, thread, a, b);
	if (slept <= 0)
		return slept < 0 ? -1 : spin_suspects(c, &self, thread_cpu(c, thread, a), wait, &(int32_t){ -1 });
	struct path p;
	struct sleep_list sleeps = { 0 };
	int rc = sleep_list_find(c, thread, wait, &sleeps);
	if (rc == 0 && (rc = query_answer(path_open(catalog, &self, a, b, c->err), &p, c->err)) == 0) {
		find_lock_culprit(c, &p, &sleeps, wait);
		path_release(&p);
	}
	free(sleeps.held);
	return rc;
}

static int compare_waits(const void *a, const void *b)
{
	const struct lock_wait *x = a, *y = b;
	int64_t p = x->end - x->start, q = y->end - y->start;
	if (p != q)
		return p < q ? 1 : -1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->waiter.tid > y->waiter.tid) - (x->waiter.tid < y->waiter.tid);
}

/* ---- Query */

static bool is_in_target(const struct lock_search *c, uint32_t machine, enum target_kind kind, uint32_t index)
{
	const struct target *target = &c->target;
	return c->all || (target->kind == TARGET_MACHINE ? target->index == machine
	                  : target->kind == kind && target->index == index);
}

/* Returns the attribute that shows waits of the current row; HISTORY_NONE: none, or the row does not belong to the
 * target. */
static uint32_t wait_attribute(const struct lock_search *c)
{
	const struct catalog *catalog = c->q.catalog;
	const uint32_t v = c->at - catalog->threads;
	if (c->at < catalog->threads)
		return is_in_target(c, catalog->thread[c->at].machine, TARGET_THREAD, c->at)
		       ? catalog->thread[c->at].lock : HISTORY_NONE;
	const bool may_spin = c->target.kind == TARGET_THREAD &&
	                      catalog->thread[c->target.index].machine == catalog->cpu[v].machine;
	return may_spin || is_in_target(c, catalog->cpu[v].machine, TARGET_CPU, v) ? catalog->cpu[v].exit : HISTORY_NONE;
}

static int add_wait(struct lock_search *c, const struct interval *iv)
{
	const struct query *q = &c->q;
	if (iv->value == HISTORY_NULL)
		return 0;
	if (c->at < q->catalog->threads)
		return add_thread_wait(c, c->at, iv);
	return spin_is_pause(history_string(q->catalog->h, iv->value)) ? spin_of_vcpu(c, c->at - q->catalog->threads, iv) : 0;
}

/* Adds the waits of the current row. Returns 1 at the row's end, 0 if the budget is spent, -1 on error. */
static int add_waits_of_row(struct lock_search *c, const struct budget *budget)
{
	const struct history *h = c->q.catalog->h;
	const uint32_t attr = wait_attribute(c);
	struct interval iv;
	int found;
	if (attr == HISTORY_NONE)
		return 1;
	if (!c->is_open && history_range(&c->cursor, h, attr, c->q.from, c->q.to, c->err) < 0)
		return -1;
	c->is_open = true;
	while ((found = history_range_next(&c->cursor, &iv, c->err)) > 0) {
		int rc = add_wait(c, &iv);
		if (rc < 0 || budget_over(budget))
			return rc < 0 ? -1 : 0;
	}
	if (found == 0 && c->at >= c->q.catalog->threads && spin_end_vcpu(c, c->at - c->q.catalog->threads) < 0)
		return -1;
	return found < 0 ? -1 : 1;
}

static int locks_walk(struct query *q, size_t i, struct budget *budget, struct error *err)
{
	struct lock_search *c = (struct lock_search *)q;
	const uint32_t rows = q->catalog->threads + q->catalog->cpus;
	c->err = err;
	for (; c->at < rows; c->at++, c->is_open = false) {
		int done = add_waits_of_row(c, budget);
		q->part[i].done = (double)c->at / rows;
		if (done <= 0)
			return done;
	}
	return 1;
}

static int locks_join(struct query *q, struct error *err)
{
	struct lock_search *c = (struct lock_search *)q;
	struct lock_list *l = &c->list;
	(void)err;
	names_move(&c->names, &l->name, &l->names);
	ARRAY_SORT(l->wait, l->waits, compare_waits);
	return 1;
}

static void locks_close(struct query *q)
{
	struct lock_search *c = (struct lock_search *)q;
	for (uint32_t i = 0; i < q->catalog->machines; i++) {
		free(c->patterns[i].tid);
		free(c->patterns[i].longest);
	}
	free(c->patterns);
	locks_release(&c->list);
	strtab_release(&c->names);
}

struct query *locks_open(const struct catalog *catalog, const struct target *target, int64_t from, int64_t to)
{
	static const struct query_kind kind = { locks_walk, locks_join, locks_close, ANSWER(struct lock_search, list) };
	struct lock_search *c = mem_new(1, sizeof *c);
	query_init(&c->q, &kind, catalog, from, to, 1);
	strtab_init(&c->names);
	c->all = !target;
	c->target = target ? *target : (struct target){ TARGET_MACHINE, 0 };
	for (unsigned i = 0; i < HISTORY_STATES; i++) {
		c->asleep |= (uint64_t)(catalog->thread_state[i] == THREAD_BLOCKED) << i;
		c->runnable |= (uint64_t)(catalog->thread_state[i] == THREAD_PREEMPTED) << i;
		c->in_vmm |= (uint64_t)(catalog->vcpu_state[i] == VCPU_VMM) << i;
		c->executing |= (uint64_t)(catalog->vcpu_state[i] == VCPU_RUNNING) << i;
	}
	c->patterns = mem_new(catalog->machines, sizeof *c->patterns);
	return &c->q;
}

bool locks_have_events(const struct catalog *catalog, uint32_t machine)
{
	const struct catalog_machine *m = &catalog->machine[machine];
	for (uint32_t i = m->thread; i < m->thread + m->threads; i++)
		if (catalog->thread[i].lock != HISTORY_NONE)
			return true;
	return false;
}

void locks_release(struct lock_list *l)
{
	names_free(l->name, l->names);
	free(l->wait);
	*l = (struct lock_list){ 0 };
}
