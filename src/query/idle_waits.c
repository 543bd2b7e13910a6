/* The vCPUs' wakers: an idle vCPU's sleeps, summed by the actor that ended them.
 *
 * Uses only the vCPU's thread (its waker, and the waker's context), so the guest needs no trace. Cost: one walk
 * over these threads' statuses. Memory: a row per waker. */
#include "base/base.h"
#include "query/query_internal.h"

#include "base/vcpu_name.h"
#include "query/culprit.h"
#include "query/stepped_query.h"
#include "query/wakeup.h"

#define WAIT_NAME(code, name) name,
const char *const wait_kind_name[WAIT_KIND_COUNT] = { WAIT_KINDS(WAIT_NAME) };
#undef WAIT_NAME

#define NO_VCPU UINT32_MAX
#define NO_THREAD UINT32_MAX

struct wait_collector {
	struct query q;
	const struct catalog *catalog;
	struct resolver r;
	struct wait_list list;    /* the answer */
	uint32_t thread;          /* the only target is this thread; UINT32_MAX: vCPUs */
	uint32_t *vcpu;           /* the target's vCPUs */
	size_t vcpus, done;       /* done: number of vCPUs or threads read */
	int64_t next;             /* where the next one's rest starts */
	size_t cap;
	struct actors actors;
	struct map row_of;        /* (vCPU << 35 ^ actor << 3 ^ kind) -> row index */
	int64_t from, to;
	uint64_t stops, inside;   /* out reasons that mean a VM's stop; vCPU states that may be guest mode: bit n =
	                           * the history's state number n */
};

/* ---- The waker's kind */

static int thread_pid(struct wait_collector *c, const struct thread_ref *th, int64_t t, int64_t *pid)
{
	struct interval iv = { .value = HISTORY_NULL };
	uint32_t attr = th->thread < 0 ? HISTORY_NONE : c->catalog->thread[th->thread].pid;
	if (attr != HISTORY_NONE && history_stab(c->catalog->h, attr, t, &iv, c->r.err) < 0)
		return -1;
	*pid = iv.value;
	return 0;
}

/* Returns true for the host's kernel threads that act for any process, so that the reason for their wakeups is unknown. */
static bool serves_all_processes(const char *name)
{
	static const char *const begins[] = { "ksoftirqd/", "kworker/", "migration/", "rcu_", "rcuc/", "irq_work/" };
	for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
		if (strncmp(name, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

/* Returns the kind of wait for a waker that is no vCPU. own: the woken vCPU's process; null: unknown. A thread wakes a
 * halted vCPU only by raising an interrupt for it, so the waker's process need not be known. */
static enum wait_kind backend_kind(int64_t vcpu_pid, int64_t other_pid, const char *name)
{
	const int64_t worker_of = vm_worker_pid(name);
	if (worker_of >= 0 && (vcpu_pid == HISTORY_NULL || vcpu_pid == worker_of))
		return strncmp(name, "vhost-", 6) == 0 ? WAIT_NET : WAIT_TIMER;
	if (vcpu_pid != HISTORY_NULL && other_pid != HISTORY_NULL)
		return vcpu_pid == other_pid ? WAIT_DEVICE : WAIT_TASK;
	return serves_all_processes(name) ? WAIT_UNKNOWN : WAIT_DEVICE;
}

/* Finds the kind of wait for a waker that is a thread. vcpu: the woken row is a vCPU, and the waker a thread of the
 * host. */
static int thread_waker_kind(struct wait_collector *c, uint32_t vcpu, const struct thread_ref *self, struct thread_ref *by,
                             int64_t t, enum wait_kind *kind)
{
	int64_t vcpu_pid, other_pid;
	int v;
	if (resolver_vcpu(&c->r, by, t, &v) < 0 || thread_pid(c, self, t, &vcpu_pid) < 0 ||
	    thread_pid(c, by, t, &other_pid) < 0)
		return -1;
	if (vcpu == NO_VCPU)
		*kind = vcpu_pid != HISTORY_NULL && vcpu_pid == other_pid ? WAIT_DEVICE : WAIT_TASK;
	else if (v >= 0)
		*kind = c->catalog->cpu[v].machine == c->catalog->cpu[vcpu].machine ? WAIT_IPI : WAIT_TASK;
	else
		*kind = backend_kind(vcpu_pid, other_pid,
		                     by->thread < 0 ? "" : catalog_longest_name(c->catalog, (uint32_t)by->thread));
	return 0;
}

static int is_asleep(struct wait_collector *c, struct thread_ref *self, int64_t t)
{
	int64_t status;
	if (track_at(&c->r, &thread_tracks(&c->r, self)[TRACK_STATUS], t, &status) < 0)
		return -1;
	return status >= 0 && status < HISTORY_STATES && c->catalog->thread_state[status] == THREAD_BLOCKED;
}

/* Returns 1 if the vCPU, which slept since `since` and was woken at `woken`, slept again before it entered its guest, or
 * had not entered its guest since its previous sleep. An interrupt would make it enter, and only the guest halts: so the
 * vCPU was kicked out, or resumed. */
static int is_kicked_out(struct wait_collector *c, uint32_t vcpu, struct thread_ref *self, int64_t since, int64_t woken)
{
	const uint32_t status = c->catalog->cpu[vcpu].status;
	struct interval in;
	int rc = history_next(c->catalog->h, status, woken, c->inside, &in, c->r.err);
	if (rc > 0)
		rc = is_asleep(c, self, in.start);
	if (rc != 0)
		return rc;
	rc = history_prev(c->catalog->h, status, since, c->inside, &in, c->r.err);
	return rc > 0 ? is_asleep(c, self, in.end) : rc;
}

/* Returns 1 if a thread in its VMM woke the vCPU while the VM was stopped, or right before a stop. */
static int is_vm_stop(struct wait_collector *c, uint32_t vcpu, int64_t woken)
{
	const struct history *h = c->catalog->h;
	const uint32_t out_by = c->catalog->cpu[vcpu].out_by;
	struct interval stop, in;
	if (out_by == HISTORY_NONE || history_stab(h, out_by, woken, &stop, c->r.err) < 0)
		return out_by == HISTORY_NONE ? 0 : -1;
	if (state_is_in(c->stops, stop.value))
		return 1;
	int rc = history_next(h, out_by, woken, c->stops, &stop, c->r.err);
	if (rc <= 0)
		return rc;
	rc = history_next(h, c->catalog->cpu[vcpu].status, woken, c->inside, &in, c->r.err);
	return rc < 0 ? -1 : rc == 0 || stop.start < in.start;
}

static int classify_wakeup(struct wait_collector *c, uint32_t vcpu, struct thread_ref *self, const struct interval *sleep,
                           enum wait_kind *kind, struct actor *by)
{
	const int64_t woken = sleep->end < history_last(c->catalog->h) ? sleep->end + 1 : INT64_MAX;
	struct wakeup w;
	*by = (struct actor){ .machine = -1, .tid = -1 };
	*kind = WAIT_UNKNOWN;
	if (wakeup_of(&c->r, self, woken, &w) < 0)
		return -1;
	if (!w.in)
		return 0;
	by->machine = w.machine;
	if (strcmp(w.in, "thread") != 0) {
		*kind = wakeup_is_timer(w.in) ? WAIT_TIMER : wakeup_is_network(w.in) ? WAIT_NET
		      : wakeup_is_device(w.in) ? WAIT_DEVICE : WAIT_UNKNOWN;
		by->name = strtab_put(&c->r.names, w.in);
		return 0;
	}
	struct thread_ref *th = resolver_thread(&c->r, (uint32_t)w.machine, w.tid);
	by->tid = w.tid;
	if (resolver_thread_name(&c->r, th, w.at, &by->name) < 0 || thread_waker_kind(c, vcpu, self, th, w.at, kind) < 0)
		return -1;
	if (vcpu == NO_VCPU || *kind != WAIT_DEVICE)
		return 0;
	const int stops = is_vm_stop(c, vcpu, woken), out = stops ? 0 : is_kicked_out(c, vcpu, self, sleep->start, woken);
	if (stops > 0)
		*kind = WAIT_STOPPED;
	else if (out > 0)
		*kind = WAIT_UNKNOWN;
	return stops < 0 || out < 0 ? -1 : 0;
}

/* ---- Rows */

static void collector_add(struct wait_collector *c, uint32_t vcpu, enum wait_kind kind, const struct actor *by, int64_t ns)
{
	bool is_new;
	uint64_t key = (uint64_t)vcpu << 35 ^ (uint64_t)actors_put(&c->actors, by) << 3 ^ kind;
	uint64_t *at = map_put(&c->row_of, key, &is_new);
	if (is_new) {
		*at = c->list.rows;
		*ARRAY_PUSH(c->list.row, c->list.rows, c->cap) = (struct wait_row){ .vcpu = vcpu, .kind = kind, .by = *by };
	}
	c->list.row[*at].count++;
	c->list.row[*at].total += ns;
}

/* Adds a thread's sleeps (no vCPU's) within the window. Like collect_vcpu(), returns 1 at its end, 0 if the budget is
 * spent, -1 on error. */
static int collect_thread(struct wait_collector *c, uint32_t thread, struct budget *budget)
{
	const struct catalog *catalog = c->catalog;
	struct thread_ref *self = resolver_thread(&c->r, catalog->thread[thread].machine, catalog->thread[thread].tid);
	for (int64_t t = c->next, end; t <= c->to; t = end + 1) {
		int64_t status;
		enum wait_kind kind;
		struct actor by;
		c->r.until = c->to;
		if (track_at(&c->r, &thread_tracks(&c->r, self)[TRACK_STATUS], t, &status) < 0)
			return -1;
		end = c->r.until;
		const struct interval sleep = thread_tracks(&c->r, self)[TRACK_STATUS].iv;
		if (status >= 0 && status < HISTORY_STATES && catalog->thread_state[status] == THREAD_BLOCKED) {
			if (classify_wakeup(c, NO_VCPU, self, &sleep, &kind, &by) < 0)
				return -1;
			collector_add(c, NO_VCPU, kind, &by, end - t + 1);
		}
		if (end >= c->to)
			break;
		c->next = end + 1;
		if (budget_spent(budget))
			return 0;
	}
	return 1;
}

/* Adds a vCPU's sleeps within the window. */
static int collect_vcpu(struct wait_collector *c, uint32_t vcpu, struct budget *budget)
{
	const struct catalog *catalog = c->catalog;
	for (int64_t t = c->next, end; t <= c->to; t = end + 1) {
		struct thread_ref *self;
		int64_t status, state;
		c->next = t;
		if (budget_spent(budget))
			return 0;
		c->r.until = c->to;
		if (resolver_vcpu_thread(&c->r, vcpu, t, &self) < 0)
			return -1;
		if (!self)
			return 1;
		if (track_at(&c->r, &thread_tracks(&c->r, self)[TRACK_STATUS], t, &status) < 0)
			return -1;
		end = c->r.until;
		if (status < 0 || status >= HISTORY_STATES || catalog->thread_state[status] != THREAD_BLOCKED)
			continue;
		const struct interval sleep = thread_tracks(&c->r, self)[TRACK_STATUS].iv;
		if (track_at(&c->r, &resolver_cpu(&c->r, vcpu)->status, t, &state) < 0)
			return -1;
		if (state < 0 || state >= HISTORY_STATES || catalog->vcpu_state[state] != VCPU_IDLE)
			continue;
		enum wait_kind kind;
		struct actor by;
		if (classify_wakeup(c, vcpu, self, &sleep, &kind, &by) < 0)
			return -1;
		collector_add(c, vcpu, kind, &by, end - t + 1);
		if (end >= c->to)
			break;
	}
	return 1;
}

ORDER_BY(compare_rows, struct wait_row, RISING(vcpu) FALLING(total) RISING(by.tid))

static void list_finish(struct wait_list *l)
{
	ARRAY_SORT(l->row, l->rows, compare_rows);
	for (size_t i = 0, n; i < l->rows; i = n) {
		double all = 0;
		for (n = i; n < l->rows && l->row[n].vcpu == l->row[i].vcpu; n++)
			all += (double)l->row[n].total;
		for (size_t k = i; k < n; k++)
			l->row[k].share = (double)l->row[k].total / all;
	}
}

/* ---- Answer */

static int waits_walk(struct query *q, size_t i, struct budget *budget, struct error *err)
{
	struct wait_collector *c = (struct wait_collector *)q;
	const size_t rows = c->thread == NO_THREAD ? c->vcpus : 1;
	(void)i;
	c->r.err = err;
	while (c->done < rows) {
		const int rc = c->thread == NO_THREAD ? collect_vcpu(c, c->vcpu[c->done], budget)
		                                      : collect_thread(c, c->thread, budget);
		q->part[0].done = ((double)c->done + (double)(c->next - c->from) / ((double)(c->to - c->from) + 1)) / (double)rows;
		if (rc <= 0)
			return rc;
		c->done++;
		c->next = c->from;
	}
	return 1;
}

static int waits_join(struct query *q, struct error *err)
{
	struct wait_collector *c = (struct wait_collector *)q;
	(void)err;
	list_finish(&c->list);
	names_move(&c->r.names, &c->list.name, &c->list.names);
	return 1;
}

static void waits_close(struct query *q)
{
	struct wait_collector *c = (struct wait_collector *)q;
	resolver_release(&c->r);
	actors_release(&c->actors);
	map_release(&c->row_of);
	waits_release(&c->list);
	free(c->vcpu);
}

/* Returns true if the vCPU is the target, or belongs to its machine or host; target NULL: any vCPU. */
static bool is_vcpu_of(const struct catalog *catalog, uint32_t cpu, const struct target *target)
{
	const uint32_t machine = catalog->cpu[cpu].machine;
	if (catalog->machine[machine].kind != MACHINE_VM)
		return false;
	if (!target || target->kind == TARGET_CPU)
		return !target || target->index == cpu;
	return target->kind == TARGET_MACHINE &&
	       (target->index == machine || catalog->machine[target->index].kind == MACHINE_HOST);
}

struct query *waits_open(const struct catalog *catalog, const struct target *target, int64_t from, int64_t to)
{
	static const struct query_kind kind = { waits_walk, waits_join, waits_close, ANSWER(struct wait_collector, list) };
	struct wait_collector *c = mem_new(1, sizeof *c);
	query_init(&c->q, &kind, catalog, from, to, 1);
	c->catalog = catalog;
	c->from = c->next = c->q.from;
	c->to = c->q.to;
	resolver_init(&c->r, catalog, c->from, c->to, NULL);
	for (unsigned i = 0; i < HISTORY_STATES; i++) {
		c->stops |= (uint64_t)(catalog->out_reason[i] == OUT_PAUSE || catalog->out_reason[i] == OUT_MIGRATION) << i;
		c->inside |= (uint64_t)(catalog->vcpu_state[i] == VCPU_RUNNING || catalog->vcpu_state[i] == VCPU_IDLE) << i;
	}
	c->thread = target && target->kind == TARGET_THREAD ? target->index : NO_THREAD;
	c->vcpu = mem_new(catalog->cpus, sizeof *c->vcpu);
	for (uint32_t i = 0; i < catalog->cpus; i++)
		if (is_vcpu_of(catalog, i, target))
			c->vcpu[c->vcpus++] = i;
	return &c->q;
}

void waits_release(struct wait_list *l)
{
	names_free(l->name, l->names);
	free(l->row);
	*l = (struct wait_list){ 0 };
}
