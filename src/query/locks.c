/* Waits for locks, and whose loss of a CPU made them long.
 *
 * Who waits for a lock, and when, is told by events (the Lock of a thread).  If it slept, whoever woke it had the lock,
 * and the critical path of its sleep says what kept that one.  What was taken from the waiter itself, once it was woken, is
 * told apart: the lock was free by then, or somebody else's.  What it spun for is guessed (spin_waits.c).
 *
 * Cost: a critical path for each wait that slept.  Memory: the waits. */
#include "query/locks.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "query/culprit.h"
#include "query/wakeup.h"

const struct party locks_nobody = { -1, -1, 0, FLOW_UNKNOWN };

static int raw_name(struct lock_search *c, uint32_t thread, int64_t t, const char **name)
{
	const uint32_t attr = c->q.topo->thread[thread].name;
	struct interval iv = { .value = HISTORY_NULL };
	if (attr != HISTORY_NONE && history_stab(c->q.topo->h, attr, t, &iv, c->err) < 0)
		return -1;
	*name = iv.value == HISTORY_NULL ? "" : history_string(c->q.topo->h, iv.value);
	return 0;
}

int locks_party(struct lock_search *c, uint32_t machine, int32_t tid, int64_t t, struct party *out)
{
	const char *name = "";
	int thread = tid > 0 ? topo_find_thread(c->q.topo, machine, tid) : -1;
	if (thread >= 0 && raw_name(c, (uint32_t)thread, t, &name) < 0)
		return -1;
	*out = (struct party){ (int32_t)machine, tid, strtab_put(&c->names, name), FLOW_RUNNING };
	return 0;
}

static struct lock_wait *add(struct lock_search *c, uint32_t machine, int32_t tid, const char *name, const char *kind,
                             int64_t start, int64_t end)
{
	struct lock_wait *wait = ARRAY_PUSH(c->list.wait, c->list.waits, c->cap);
	*wait = (struct lock_wait){
		.waiter = { (int32_t)machine, tid, strtab_put(&c->names, name), FLOW_RUNNING }, .start = start, .end = end,
		.vcpu = -1, .kind = strtab_put(&c->names, kind), .holder = locks_nobody,
		.thief = locks_nobody,
	};
	return wait;
}

struct party locks_named(struct lock_search *c, const struct party *p, char **name)
{
	return (struct party){ p->system, p->tid, strtab_put(&c->names, name[p->name]), p->kind };
}

/* ---- It slept */

/* A part of a wait in which somebody else had to act: from falling asleep until whoever had the lock gave it away. */
struct held { int64_t start, end; };

/* The thread's sleeps in the wait, up to their wakeups; who ended the last of them had the lock. */
struct sleeps {
	struct held *held;
	size_t len, cap;
};

static int add_sleep(struct lock_search *c, struct resolver *r, const struct topo_thread *th, const struct interval *iv,
                     struct lock_wait *wait, struct sleeps *out)
{
	struct wakeup by = { .at = INT64_MAX };
	const bool ends = iv->end < history_last(c->q.topo->h) && iv->end <= wait->end;
	if (ends && wakeup_of(r, resolver_who(r, th->machine, th->tid), iv->end + 1, &by) < 0)
		return -1;
	const int64_t start = iv->start > wait->start ? iv->start : wait->start;
	const int64_t end = by.at <= wait->end ? by.at - 1 : wait->end;
	if (start <= end)
		*ARRAY_PUSH(out->held, out->len, out->cap) = (struct held){ start, end };
	wait->holder = locks_nobody;
	if (!by.in || strcmp(by.in, "thread") != 0 || by.machine != (int32_t)th->machine || by.tid <= 0)
		return 0;
	return locks_party(c, th->machine, by.tid, by.at, &wait->holder);
}

static int find_sleeps(struct lock_search *c, uint32_t thread, struct lock_wait *wait, struct sleeps *out)
{
	const struct topo_thread *th = &c->q.topo->thread[thread];
	struct history_cursor cursor;
	struct interval iv;
	struct resolver r;
	resolver_init(&r, c->q.topo, wait->start, wait->end, c->err);
	int rc = history_range(&cursor, c->q.topo->h, th->status, wait->start, wait->end, c->err);
	while (rc == 0 && (rc = history_range_next(&cursor, &iv, c->err)) > 0) {
		bool asleep = iv.value >= 0 && iv.value < HISTORY_STATES && c->asleep >> iv.value & 1;
		rc = asleep ? add_sleep(c, &r, th, &iv, wait, out) : 0;
	}
	resolver_release(&r);
	return rc;
}

/* How much of [a, b] lies in them; *next: the first that may reach beyond a. */
static int64_t held_ns(const struct sleeps *sleeps, size_t *next, int64_t a, int64_t b)
{
	int64_t ns = 0;
	while (*next < sleeps->len && sleeps->held[*next].end < a)
		++*next;
	for (size_t i = *next; i < sleeps->len && sleeps->held[i].start <= b; i++) {
		const struct held *h = &sleeps->held[i];
		ns += (h->end < b ? h->end : b) - (h->start > a ? h->start : a) + 1;
	}
	return ns;
}

struct loss { int64_t holder, own; };  /* ns */

/* Who took most of it from whoever had to run meanwhile, or if nobody did, from the waiter itself. */
static void find_thief(struct lock_search *c, const struct path *p, const struct sleeps *sleeps, struct lock_wait *wait)
{
	struct parties thieves = { 0 };
	struct loss *loss = mem_new(p->sums + 1, sizeof *loss), most = { 0, 0 };
	size_t next = 0;
	for (size_t i = 0; i < p->pieces; i++) {
		const struct path_piece *piece = &p->piece[i];
		if (piece->thief.system < 0 || piece->thief.kind != FLOW_PREEMPTING)
			continue;
		struct loss *by = &loss[parties_put(&thieves, &piece->thief)];
		const int64_t held = held_ns(sleeps, &next, piece->start, piece->end), ns = piece->end - piece->start + 1;
		by->holder += held;
		by->own += ns - held;
		wait->own_taken += ns - held;
	}
	for (size_t i = 0; i < thieves.len; i++) {
		if (loss[i].holder < most.holder || (loss[i].holder == most.holder && loss[i].own <= most.own))
			continue;
		most = loss[i];
		wait->taken = most.holder;
		wait->thief = locks_named(c, &thieves.party[i], p->name);
	}
	parties_release(&thieves);
	free(loss);
}

/* ---- Waits */

/* Does the thread sleep within [a, b]? */
static int sleeps(struct lock_search *c, uint32_t thread, int64_t a, int64_t b)
{
	int64_t sums[HISTORY_STATES];
	if (history_sums(c->q.topo->h, c->q.topo->thread[thread].status, a, b, sums, c->err) < 0)
		return -1;
	for (unsigned i = 0; i < HISTORY_STATES - 1; i++)
		if (sums[i] && c->asleep >> i & 1)
			return 1;
	return 0;
}

static int cpu_of(struct lock_search *c, uint32_t thread, int64_t t)
{
	const struct topo_thread *th = &c->q.topo->thread[thread];
	struct interval iv;
	if (th->cpu == HISTORY_NONE || history_stab(c->q.topo->h, th->cpu, t, &iv, c->err) < 0 || iv.value < 0 ||
	    iv.value > UINT16_MAX)
		return -1;
	return topo_find_cpu(c->q.topo, th->machine, (unsigned)iv.value);
}

static int wait_of(struct lock_search *c, uint32_t thread, const struct interval *iv)
{
	const struct topo *topo = c->q.topo;
	const struct topo_thread *th = &topo->thread[thread];
	const struct subject self = { SUBJECT_THREAD, thread };
	int64_t a = iv->start > c->q.from ? iv->start : c->q.from, b = iv->end < c->q.to ? iv->end : c->q.to;
	const char *name;
	if (raw_name(c, thread, a, &name) < 0)
		return -1;
	struct lock_wait *wait = add(c, th->machine, th->tid, name, history_string(topo->h, iv->value), a, b);
	int slept = th->status == HISTORY_NONE ? 0 : sleeps(c, thread, a, b);
	if (slept <= 0)
		return slept < 0 ? -1 : spin_suspects(c, &self, cpu_of(c, thread, a), wait, &(int32_t){ -1 });
	struct path p;
	struct sleeps sleeps = { 0 };
	int rc = find_sleeps(c, thread, wait, &sleeps);
	if (rc == 0 && (rc = path_of(topo, &self, a, b, &p, c->err)) == 0) {
		find_thief(c, &p, &sleeps, wait);
		path_release(&p);
	}
	free(sleeps.held);
	return rc;
}

static int longest_first(const void *a, const void *b)
{
	const struct lock_wait *x = a, *y = b;
	int64_t p = x->end - x->start, q = y->end - y->start;
	if (p != q)
		return p < q ? 1 : -1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->waiter.tid > y->waiter.tid) - (x->waiter.tid < y->waiter.tid);
}

/* ---- In steps */

static bool is_asked(const struct lock_search *c, uint32_t machine, enum subject_kind kind, uint32_t index)
{
	const struct subject *s = &c->whose;
	return c->all || (s->kind == SUBJECT_MACHINE ? s->index == machine : s->kind == kind && s->index == index);
}

/* The attribute that tells of waits in the row at work; HISTORY_NONE: none, or nobody asks. */
static uint32_t telling(const struct lock_search *c)
{
	const struct topo *topo = c->q.topo;
	const uint32_t v = c->at - topo->threads;
	if (c->at < topo->threads)
		return is_asked(c, topo->thread[c->at].machine, SUBJECT_THREAD, c->at) ? topo->thread[c->at].lock : HISTORY_NONE;
	const bool may_spin = c->whose.kind == SUBJECT_THREAD && topo->thread[c->whose.index].machine == topo->cpu[v].machine;
	return may_spin || is_asked(c, topo->cpu[v].machine, SUBJECT_CPU, v) ? topo->cpu[v].exit : HISTORY_NONE;
}

static int one_wait(struct lock_search *c, const struct interval *iv)
{
	const struct inquiry *q = &c->q;
	if (iv->value == HISTORY_NULL)
		return 0;
	if (c->at < q->topo->threads)
		return wait_of(c, c->at, iv);
	return spin_is_pause(history_string(q->topo->h, iv->value)) ? spin_of_vcpu(c, c->at - q->topo->threads, iv) : 0;
}

/* The waits of the row at work: 1 = all of them, 0 = the budget is spent. */
static int waits_of_row(struct lock_search *c, const struct budget *budget)
{
	const struct history *h = c->q.topo->h;
	const uint32_t attr = telling(c);
	struct interval iv;
	int found;
	if (attr == HISTORY_NONE)
		return 1;
	if (!c->open && history_range(&c->cursor, h, attr, c->q.from, c->q.to, c->err) < 0)
		return -1;
	c->open = true;
	while ((found = history_range_next(&c->cursor, &iv, c->err)) > 0) {
		int rc = one_wait(c, &iv);
		if (rc < 0 || budget_over(budget))
			return rc < 0 ? -1 : 0;
	}
	if (found == 0 && c->at >= c->q.topo->threads && spin_settle(c, c->at - c->q.topo->threads) < 0)
		return -1;
	return found < 0 ? -1 : 1;
}

static int search(struct inquiry *q, size_t i, struct budget *budget, struct error *err)
{
	struct lock_search *c = (struct lock_search *)q;
	const uint32_t rows = q->topo->threads + q->topo->cpus;
	c->err = err;
	for (; c->at < rows; c->at++, c->open = false) {
		int done = waits_of_row(c, budget);
		q->part[i].done = (double)c->at / rows;
		if (done <= 0)
			return done;
	}
	return 1;
}

static int join(struct inquiry *q, struct error *err)
{
	struct lock_list *l = &((struct lock_search *)q)->list;
	(void)err;
	if (l->waits)
		qsort(l->wait, l->waits, sizeof *l->wait, longest_first);
	return 1;
}

static void close_search(struct inquiry *q)
{
	struct lock_search *c = (struct lock_search *)q;
	for (uint32_t i = 0; i < q->topo->machines; i++) {
		free(c->habits[i].tid);
		free(c->habits[i].longest);
	}
	free(c->habits);
	locks_release(&c->list);
	strtab_release(&c->names);
}

struct inquiry *locks_open(const struct topo *topo, const struct subject *s, int64_t from, int64_t to)
{
	static const struct inquiry_kind kind = { search, join, close_search };
	struct lock_search *c = mem_new(1, sizeof *c);
	from = from > history_begin(topo->h) ? from : history_begin(topo->h);
	to = to < history_end(topo->h) ? to : history_end(topo->h);
	inquiry_init(&c->q, &kind, topo, from, to, 1);
	strtab_init(&c->names);
	c->all = !s;
	c->whose = s ? *s : (struct subject){ SUBJECT_MACHINE, 0 };
	for (unsigned i = 0; i < HISTORY_STATES; i++) {
		c->asleep |= (uint64_t)(topo->thread_state[i] == THREAD_BLOCKED) << i;
		c->wants |= (uint64_t)(topo->thread_state[i] == THREAD_PREEMPTED) << i;
		c->outside |= (uint64_t)(topo->vcpu_state[i] == VCPU_VMM) << i;
		c->executing |= (uint64_t)(topo->vcpu_state[i] == VCPU_RUNNING) << i;
	}
	c->habits = mem_new(topo->machines, sizeof *c->habits);
	return &c->q;
}

void locks_take(struct inquiry *q, struct lock_list *out)
{
	struct lock_search *c = (struct lock_search *)q;
	*out = c->list;
	out->name = c->names.str;
	out->names = c->names.len;
	c->names.str = NULL;
	c->names.len = c->names.cap = 0;
	c->list = (struct lock_list){ 0 };
}

int locks_of(const struct topo *topo, const struct subject *s, int64_t from, int64_t to, struct lock_list *out,
             struct error *err)
{
	struct inquiry *q = locks_open(topo, s, from, to);
	int status = inquiry_run(q, NULL, err);
	*out = (struct lock_list){ 0 };
	if (status == 0)
		locks_take(q, out);
	inquiry_close(q);
	return status;
}

bool locks_are_named(const struct topo *topo, uint32_t machine)
{
	const struct topo_machine *m = &topo->machine[machine];
	for (uint32_t i = m->thread; i < m->thread + m->threads; i++)
		if (topo->thread[i].lock != HISTORY_NONE)
			return true;
	return false;
}

void locks_release(struct lock_list *l)
{
	for (size_t i = 0; i < l->names; i++)
		free(l->name[i]);
	free(l->name);
	free(l->wait);
	*l = (struct lock_list){ 0 };
}
