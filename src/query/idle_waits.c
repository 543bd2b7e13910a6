/* What vCPUs wait for: every sleep of an idle one, by what ended it.
 *
 * Goes by the vCPU's thread alone, so it needs no trace of the guest: who woke it, and in what.  Cost: one walk over the
 * statuses of these threads.  Memory: a row per waker. */
#include "query/query_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "query/culprit.h"
#include "query/wakeup.h"

#define WAIT_NAME(code, name) name,
const char *const wait_kind_name[WAIT_KIND_COUNT] = { WAIT_KINDS(WAIT_NAME) };
#undef WAIT_NAME

#define NO_VCPU UINT32_MAX

struct collector {
	const struct topo *topo;
	struct resolver r;
	struct wait_list *out;
	size_t cap;
	struct parties parties;
	struct map row_of;        /* vCPU << 35 ^ party << 3 ^ kind -> row */
	int64_t from, to;
	uint64_t stops, inside;   /* bits of the file's reasons that mean a stop; of its vCPU states that may be guest mode */
};

/* ---- What ended it */

static int pid_of(struct collector *c, const struct who *th, int64_t t, int64_t *pid)
{
	struct interval iv = { .value = HISTORY_NULL };
	uint32_t attr = th->thread < 0 ? HISTORY_NONE : c->topo->thread[th->thread].pid;
	if (attr != HISTORY_NONE && history_stab(c->topo->h, attr, t, &iv, c->r.err) < 0)
		return -1;
	*pid = iv.value;
	return 0;
}

/* Threads of the host's kernel that act for anybody: what they did it for is not known. */
static bool acts_for_anybody(const char *name)
{
	static const char *const begins[] = { "ksoftirqd/", "kworker/", "migration/", "rcu_", "rcuc/", "irq_work/" };
	for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
		if (strncmp(name, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

/* Another thread, that is no vCPU, woke a vCPU of process `own` (null: no event told that).  A vCPU that has halted is
 * woken out of a thread by an interrupt that this raises for it: so it need not be known whose process the thread is. */
static enum wait_kind kind_of_backend(int64_t own, int64_t other, const char *name)
{
	char vhost[32];
	snprintf(vhost, sizeof vhost, "vhost-%" PRId64, own);
	if (own == HISTORY_NULL ? strncmp(name, "vhost-", 6) == 0 : strcmp(name, vhost) == 0)
		return WAIT_NET;
	if (own != HISTORY_NULL && other != HISTORY_NULL)
		return own == other ? WAIT_DEVICE : WAIT_TASK;
	return acts_for_anybody(name) ? WAIT_UNKNOWN : WAIT_DEVICE;
}

/* Another thread did, of the host when vcpu is a vCPU. */
static int kind_of_thread(struct collector *c, uint32_t vcpu, const struct who *self, struct who *by, int64_t t,
                          enum wait_kind *kind)
{
	int64_t own, other;
	int v;
	if (resolver_vcpu(&c->r, by, t, &v) < 0 || pid_of(c, self, t, &own) < 0 || pid_of(c, by, t, &other) < 0)
		return -1;
	if (vcpu == NO_VCPU)
		*kind = own != HISTORY_NULL && own == other ? WAIT_DEVICE : WAIT_TASK;
	else if (v >= 0)
		*kind = c->topo->cpu[v].machine == c->topo->cpu[vcpu].machine ? WAIT_IPI : WAIT_TASK;
	else
		*kind = kind_of_backend(own, other, by->thread < 0 ? "" : topo_longest_name(c->topo, (uint32_t)by->thread));
	return 0;
}

static int is_asleep(struct collector *c, struct who *self, int64_t t)
{
	int64_t status;
	if (track_at(&c->r, &resolver_own(&c->r, self)[OWN_STATUS], t, &status) < 0)
		return -1;
	return status >= 0 && status < HISTORY_STATES && c->topo->thread_state[status] == THREAD_BLOCKED;
}

/* Did the vCPU, which slept since then and was woken, sleep again before it entered its guest, or had it not entered that
 * since it slept before?  An interrupt makes it enter, and a halt is the guest's: it was called back, or let go on. */
static int is_out_between(struct collector *c, uint32_t vcpu, struct who *self, int64_t since, int64_t woken)
{
	const uint32_t status = c->topo->cpu[vcpu].status;
	struct interval in;
	int rc = history_next(c->topo->h, status, woken, c->inside, &in, c->r.err);
	if (rc > 0)
		rc = is_asleep(c, self, in.start);
	if (rc != 0)
		return rc;
	rc = history_prev(c->topo->h, status, since, c->inside, &in, c->r.err);
	return rc > 0 ? is_asleep(c, self, in.end) : rc;
}

/* Did a thread of its monitor wake the vCPU for a stop of the machine: in the middle of one, or on the way there? */
static int is_for_stop(struct collector *c, uint32_t vcpu, int64_t woken)
{
	const struct history *h = c->topo->h;
	const uint32_t out_by = c->topo->cpu[vcpu].out_by;
	struct interval stop, in;
	if (out_by == HISTORY_NONE || history_stab(h, out_by, woken, &stop, c->r.err) < 0)
		return out_by == HISTORY_NONE ? 0 : -1;
	if (state_in(c->stops, stop.value))
		return 1;
	int rc = history_next(h, out_by, woken, c->stops, &stop, c->r.err);
	if (rc <= 0)
		return rc;
	rc = history_next(h, c->topo->cpu[vcpu].status, woken, c->inside, &in, c->r.err);
	return rc < 0 ? -1 : rc == 0 || stop.start < in.start;
}

static int classify(struct collector *c, uint32_t vcpu, struct who *self, const struct interval *sleep,
                    enum wait_kind *kind, struct party *by)
{
	const int64_t woken = sleep->end < history_last(c->topo->h) ? sleep->end + 1 : INT64_MAX;
	struct wakeup w;
	*by = (struct party){ .system = -1, .tid = -1 };
	*kind = WAIT_UNKNOWN;
	if (wakeup_of(&c->r, self, woken, &w) < 0)
		return -1;
	if (!w.in)
		return 0;
	by->system = w.machine;
	if (strcmp(w.in, "thread") != 0) {
		*kind = wakeup_is_timer(w.in) ? WAIT_TIMER : wakeup_is_network(w.in) ? WAIT_NET
		      : wakeup_is_device(w.in) ? WAIT_DEVICE : WAIT_UNKNOWN;
		by->name = strtab_put(&c->r.names, w.in);
		return 0;
	}
	struct who *th = resolver_who(&c->r, (uint32_t)w.machine, w.tid);
	by->tid = w.tid;
	if (resolver_name(&c->r, th, w.at, &by->name) < 0 || kind_of_thread(c, vcpu, self, th, w.at, kind) < 0)
		return -1;
	if (vcpu == NO_VCPU || *kind != WAIT_DEVICE)
		return 0;
	const int stops = is_for_stop(c, vcpu, woken), out = stops ? 0 : is_out_between(c, vcpu, self, sleep->start, woken);
	if (stops > 0)
		*kind = WAIT_STOPPED;
	else if (out > 0)
		*kind = WAIT_UNKNOWN;
	return stops < 0 || out < 0 ? -1 : 0;
}

/* ---- Rows */

static void add(struct collector *c, uint32_t vcpu, enum wait_kind kind, const struct party *by, int64_t ns)
{
	bool is_new;
	uint64_t key = (uint64_t)vcpu << 35 ^ (uint64_t)parties_put(&c->parties, by) << 3 ^ kind;
	uint64_t *at = map_put(&c->row_of, key, &is_new);
	if (is_new) {
		*at = c->out->rows;
		*ARRAY_PUSH(c->out->row, c->out->rows, c->cap) = (struct wait_row){ .vcpu = vcpu, .kind = kind, .by = *by };
	}
	c->out->row[*at].count++;
	c->out->row[*at].total += ns;
}

/* One thread's sleeps within the window, whatever it is. */
static int walk_thread(struct collector *c, uint32_t thread)
{
	const struct topo *topo = c->topo;
	struct who *self = resolver_who(&c->r, topo->thread[thread].machine, topo->thread[thread].tid);
	for (int64_t t = c->from, end; t <= c->to; t = end + 1) {
		int64_t status;
		enum wait_kind kind;
		struct party by;
		c->r.until = c->to;
		if (track_at(&c->r, &resolver_own(&c->r, self)[OWN_STATUS], t, &status) < 0)
			return -1;
		end = c->r.until;
		const struct interval sleep = resolver_own(&c->r, self)[OWN_STATUS].iv;
		if (status >= 0 && status < HISTORY_STATES && topo->thread_state[status] == THREAD_BLOCKED) {
			if (classify(c, NO_VCPU, self, &sleep, &kind, &by) < 0)
				return -1;
			add(c, NO_VCPU, kind, &by, end - t + 1);
		}
		if (end >= c->to)
			break;
	}
	return 0;
}

/* One vCPU's sleeps within the window. */
static int walk(struct collector *c, uint32_t vcpu)
{
	const struct topo *topo = c->topo;
	for (int64_t t = c->from, end; t <= c->to; t = end + 1) {
		struct who *self;
		int64_t status, state;
		c->r.until = c->to;
		if (resolver_host(&c->r, vcpu, t, &self) < 0)
			return -1;
		if (!self)
			return 0;
		if (track_at(&c->r, &resolver_own(&c->r, self)[OWN_STATUS], t, &status) < 0)
			return -1;
		end = c->r.until;
		if (status < 0 || status >= HISTORY_STATES || topo->thread_state[status] != THREAD_BLOCKED)
			continue;
		const struct interval sleep = resolver_own(&c->r, self)[OWN_STATUS].iv;
		if (track_at(&c->r, &resolver_cpu(&c->r, vcpu)->status, t, &state) < 0)
			return -1;
		if (state < 0 || state >= HISTORY_STATES || topo->vcpu_state[state] != VCPU_IDLE)
			continue;
		enum wait_kind kind;
		struct party by;
		if (classify(c, vcpu, self, &sleep, &kind, &by) < 0)
			return -1;
		add(c, vcpu, kind, &by, end - t + 1);
		if (end >= c->to)
			break;
	}
	return 0;
}

static int by_vcpu(const void *a, const void *b)
{
	const struct wait_row *x = a, *y = b;
	if (x->vcpu != y->vcpu)
		return x->vcpu < y->vcpu ? -1 : 1;
	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return (x->by.tid > y->by.tid) - (x->by.tid < y->by.tid);
}

static void finish(struct wait_list *l)
{
	if (l->rows)
		qsort(l->row, l->rows, sizeof *l->row, by_vcpu);
	for (size_t i = 0, n; i < l->rows; i = n) {
		double all = 0;
		for (n = i; n < l->rows && l->row[n].vcpu == l->row[i].vcpu; n++)
			all += (double)l->row[n].total;
		for (size_t k = i; k < n; k++)
			l->row[k].share = (double)l->row[k].total / all;
	}
}

/* ---- Answer */

int waits_of(const struct topo *topo, const struct subject *s, int64_t from, int64_t to, struct wait_list *out,
             struct error *err)
{
	*out = (struct wait_list){ 0 };
	struct collector c = { .topo = topo, .out = out };
	c.from = from > history_begin(topo->h) ? from : history_begin(topo->h);
	c.to = to < history_end(topo->h) ? to : history_end(topo->h);
	resolver_init(&c.r, topo, c.from, c.to, err);
	for (unsigned i = 0; i < HISTORY_STATES; i++) {
		c.stops |= (uint64_t)(topo->out_reason[i] == OUT_PAUSE || topo->out_reason[i] == OUT_MIGRATION) << i;
		c.inside |= (uint64_t)(topo->vcpu_state[i] == VCPU_RUNNING || topo->vcpu_state[i] == VCPU_IDLE) << i;
	}
	const bool thread = s && s->kind == SUBJECT_THREAD;
	int rc = thread ? walk_thread(&c, s->index) : 0;
	for (uint32_t i = 0; i < topo->cpus && rc == 0 && !thread; i++) {
		const struct topo_machine *m = &topo->machine[topo->cpu[i].machine];
		bool asked = !s || (s->kind == SUBJECT_CPU ? s->index == i : s->index == topo->cpu[i].machine ||
		                                                            topo->machine[s->index].kind == MACHINE_HOST);
		if (m->kind == MACHINE_VM && asked)
			rc = walk(&c, i);
	}
	finish(out);
	resolver_give_names(&c.r, &out->name, &out->names);
	resolver_release(&c.r);
	parties_release(&c.parties);
	map_release(&c.row_of);
	if (rc < 0)
		waits_release(out);
	return rc;
}

void waits_release(struct wait_list *l)
{
	for (size_t i = 0; i < l->names; i++)
		free(l->name[i]);
	free(l->name);
	free(l->row);
	*l = (struct wait_list){ 0 };
}
