/* VM exits: how often a vCPU was left, why, and how long until it was entered again.
 *
 * The history keeps the reason of the latest exit; when there was an exit is told by the status.  A vCPU whose thread is on
 * a CPU is in guest mode unless its status is VMM, and off the CPU it stays what it was.  So an exit begins with a new
 * reason, or as guest mode ends, and ends with guest mode; one that is followed by another exit, or by a time of which
 * nothing is known, counts but has no length.
 *
 * Cost: one walk over the statuses of the vCPUs.  Memory: 8 bytes per exit for the exact percentiles. */
#include "query/query_internal.h"

#include <stdlib.h>

#include "base/mem.h"
#include "query/stepped_query.h"
#include "query/culprit.h"

enum mode { MODE_UNKNOWN, MODE_GUEST, MODE_HOST };

struct lengths {
	int64_t *ns;
	size_t len, cap;
};

struct counter {
	struct inquiry q;
	struct exit_options o;
	int32_t tid;                /* of the guest's thread that is asked about, -1: all */
	struct exit_list list;
	struct lengths *lengths;    /* by row */
	size_t row_cap, lengths_cap;
	struct parties parties;     /* vCPU, thread, name */
	struct map row_of;          /* party << 32 | reason -> row */
	struct resolver r;
	uint32_t *vcpu;             /* that are asked about */
	size_t vcpus, vcpu_cap, at; /* at hand: */
	int64_t t;                  /* to be looked at next */
	enum mode mode;
	bool begun;
	int64_t since;              /* the open exit, where row is not NO_ROW */
	size_t row;
};
#define NO_ROW SIZE_MAX

/* ---- Rows */

static int room(void **array, size_t *cap, size_t len, size_t size, struct error *err)
{
	if (len < *cap)
		return 0;
	size_t n = *cap ? 2 * *cap : 64;
	void *p = n < SIZE_MAX / size ? realloc(*array, n * size) : NULL;
	if (!p)
		return error_set(err, STATUS_SYSTEM, "ask for a shorter window",
		                 "exits: out of memory after %zu of one reason", len);
	*array = p;
	*cap = n;
	return 0;
}

static size_t row_for(struct counter *c, const struct party *who, uint32_t reason)
{
	bool is_new;
	uint64_t *at = map_put(&c->row_of, (uint64_t)parties_put(&c->parties, who) << 32 | reason, &is_new);
	if (is_new) {
		size_t len = c->list.rows;
		*at = len;
		*ARRAY_PUSH(c->lengths, len, c->lengths_cap) = (struct lengths){ 0 };
		*ARRAY_PUSH(c->list.row, c->list.rows, c->row_cap) = (struct exit_row){
			.vcpu = (uint32_t)who->system, .tid = who->tid, .name = who->name, .reason = reason };
	}
	return (size_t)*at;
}

/* The open exit is over, after ns; less than 0: nobody knows when. */
static int close_exit(struct counter *c, int64_t ns, struct error *err)
{
	if (c->row == NO_ROW)
		return 0;
	struct exit_row *row = &c->list.row[c->row];
	struct lengths *l = &c->lengths[c->row];
	void *array = l->ns;
	c->row = NO_ROW;
	if (ns < 0)
		return 0;
	if (room(&array, &l->cap, l->len, sizeof *l->ns, err) < 0)
		return -1;
	l->ns = array;
	l->ns[l->len++] = ns;
	if (!row->timed++ || ns > row->max) {
		row->max = ns;
		row->max_at = c->since;
	}
	row->min = row->timed == 1 || ns < row->min ? ns : row->min;
	row->total += ns;
	row->bin[length_bin(ns)]++;
	return 0;
}

/* The guest's current thread, where that is asked for. */
static int left_whom(struct counter *c, uint32_t vcpu, int64_t t, struct party *who)
{
	int64_t tid = HISTORY_NULL;
	*who = (struct party){ .system = (int32_t)vcpu, .tid = -1 };
	if (!c->o.by_thread && c->tid < 0)
		return 0;
	int64_t until = c->r.until;
	if (track_at(&c->r, &resolver_cpu(&c->r, vcpu)->running, t, &tid) < 0)
		return -1;
	if (tid >= 0 && tid <= INT32_MAX) {
		who->tid = (int32_t)tid;
		struct who *w = resolver_who(&c->r, c->q.topo->cpu[vcpu].machine, who->tid);
		if (resolver_name(&c->r, w, t, &who->name) < 0)
			return -1;
	}
	c->r.until = until;
	return 0;
}

static int open_exit(struct counter *c, uint32_t vcpu, int64_t t, int64_t reason)
{
	struct party who;
	if (t < c->q.from || t > c->q.to)
		return 0;
	if (left_whom(c, vcpu, t, &who) < 0)
		return -1;
	if (c->tid >= 0 && who.tid != c->tid)
		return 0;
	if (c->o.begins) {
		c->o.begins(c->o.arg, vcpu, resolver_string(&c->r, reason), t);
		return 0;
	}
	c->row = row_for(c, &who, resolver_string(&c->r, reason));
	c->since = t;
	c->list.row[c->row].count++;
	return 0;
}

/* ---- Walking */

/* The mode from t on, until r.until. */
static int mode_at(struct counter *c, uint32_t vcpu, int64_t t, enum mode *mode, int64_t *reason)
{
	struct resolver *r = &c->r;
	struct cpu_tracks *tracks = resolver_cpu(r, vcpu);
	const struct topo *topo = c->q.topo;
	int64_t value;
	if (track_at(r, &tracks->exit, t, reason) < 0 || track_at(r, &tracks->status, t, &value) < 0)
		return -1;
	int state = value < 0 || value >= HISTORY_STATES ? VCPU_UNKNOWN : topo->vcpu_state[value];
	struct who *host;
	if (*reason == HISTORY_NULL || state == VCPU_VMM || state == VCPU_RUNNING) {
		*mode = *reason == HISTORY_NULL ? MODE_UNKNOWN : state == VCPU_VMM ? MODE_HOST : MODE_GUEST;
		return 0;
	}
	*mode = c->mode;
	if (state != VCPU_IDLE && state != VCPU_UNKNOWN)
		return 0;
	if (resolver_host(r, vcpu, t, &host) < 0)
		return -1;
	if (host && track_at(r, &resolver_own(r, host)[OWN_STATUS], t, &value) < 0)
		return -1;
	if (host && value >= 0 && value < HISTORY_STATES && topo->thread_state[value] == THREAD_RUNNING)
		*mode = MODE_GUEST;
	return 0;
}

/* One step of the vCPU at hand.  1 = it is done. */
static int step(struct counter *c, struct error *err)
{
	uint32_t vcpu = c->vcpu[c->at];
	int64_t t = c->t, reason;
	enum mode mode;
	c->r.until = history_last(c->q.topo->h);
	if (mode_at(c, vcpu, t, &mode, &reason) < 0)
		return -1;
	/* The reason with which a history begins is that of an exit before it. */
	bool is_new = resolver_cpu(&c->r, vcpu)->exit.iv.start == t && t > history_first(c->q.topo->h);
	bool left = reason != HISTORY_NULL && (is_new || (mode == MODE_HOST && c->mode == MODE_GUEST));
	if (mode != MODE_HOST || left)
		if (close_exit(c, mode == MODE_GUEST && !left ? t - c->since : -1, err) < 0)
			return -1;
	if (left && open_exit(c, vcpu, t, reason) < 0)
		return -1;
	c->mode = left ? MODE_HOST : mode;
	c->t = c->r.until + 1;
	return c->r.until >= history_last(c->q.topo->h) || (c->t > c->q.to && c->row == NO_ROW);
}

static int walk(struct inquiry *q, size_t part, struct budget *budget, struct error *err)
{
	struct counter *c = (struct counter *)q;
	if (!c->r.topo)
		resolver_init(&c->r, q->topo, q->from, q->to, err);
	c->r.err = err;
	while (c->at < c->vcpus) {
		if (!c->begun) {  /* what was before the window tells whether it begins with an exit */
			c->t = q->from > history_first(q->topo->h) ? q->from - 1 : q->from;
			c->mode = MODE_HOST;
			c->row = NO_ROW;
			c->begun = true;
		}
		int done = step(c, err);
		if (done < 0)
			return -1;
		if (done) {
			if (close_exit(c, -1, err) < 0)
				return -1;
			c->begun = false;
			c->at++;
		}
		q->part[part].done = (double)c->at / (double)c->vcpus;
		if (budget_spent(budget))
			return 0;
	}
	return 1;
}

/* ---- Answer */

static int by_ns(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static int by_vcpu(const void *a, const void *b)
{
	const struct exit_row *x = a, *y = b;
	if (x->vcpu != y->vcpu)
		return x->vcpu < y->vcpu ? -1 : 1;
	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return (x->max_at > y->max_at) - (x->max_at < y->max_at);
}

static int join(struct inquiry *q, struct error *err)
{
	struct counter *c = (struct counter *)q;
	(void)err;
	for (size_t i = 0; i < c->list.rows; i++) {
		struct lengths *l = &c->lengths[i];
		if (!l->len)
			continue;
		qsort(l->ns, l->len, sizeof *l->ns, by_ns);
		c->list.row[i].p99 = l->ns[(l->len * 99 + 99) / 100 - 1];
	}
	if (c->list.rows)
		qsort(c->list.row, c->list.rows, sizeof *c->list.row, by_vcpu);
	c->list.vcpus = (unsigned)c->vcpus;
	if (c->r.topo)
		resolver_give_names(&c->r, &c->list.name, &c->list.names);
	return 1;
}

static void close_counter(struct inquiry *q)
{
	struct counter *c = (struct counter *)q;
	for (size_t i = 0; i < c->list.rows; i++)
		free(c->lengths[i].ns);
	free(c->lengths);
	free(c->vcpu);
	map_release(&c->row_of);
	parties_release(&c->parties);
	if (c->r.topo)
		resolver_release(&c->r);
	exits_release(&c->list);
}

static const struct inquiry_kind exits_inquiry = { walk, join, close_counter };

/* ---- Whose */

static void add_vcpu(struct counter *c, uint32_t vcpu)
{
	*ARRAY_PUSH(c->vcpu, c->vcpus, c->vcpu_cap) = vcpu;
	c->list.silent += c->q.topo->cpu[vcpu].exit == HISTORY_NONE;
}

static void add_machine(struct counter *c, uint32_t machine)
{
	const struct topo_machine *m = &c->q.topo->machine[machine];
	for (uint32_t i = m->cpu; m->kind == MACHINE_VM && i < m->cpu + m->cpus; i++)
		add_vcpu(c, i);
}

static void add_subject(struct counter *c, const struct subject *s)
{
	const struct topo *topo = c->q.topo;
	uint32_t machine = s ? subject_machine(topo, s) : 0;
	if (!s || (s->kind == SUBJECT_MACHINE && topo->machine[machine].kind == MACHINE_HOST)) {
		for (uint32_t m = 0; m < topo->machines; m++)
			add_machine(c, m);
	} else if (s->kind == SUBJECT_MACHINE) {
		add_machine(c, machine);
	} else if (s->kind == SUBJECT_CPU && topo->machine[machine].kind == MACHINE_VM) {
		add_vcpu(c, s->index);
	} else if (s->kind == SUBJECT_THREAD && topo->thread[s->index].role >= 0) {
		for (int32_t i = topo->thread[s->index].role; i >= 0; i = topo->role[i].next)
			add_vcpu(c, topo->role[i].vcpu);
	} else if (s->kind == SUBJECT_THREAD) {
		add_machine(c, machine);
		c->tid = topo->thread[s->index].tid;
	}
}

struct inquiry *exits_open(const struct topo *topo, const struct exit_options *options, struct error *err)
{
	char name[256];
	struct counter *c = mem_new(1, sizeof *c);
	int64_t from = options->from > history_begin(topo->h) ? options->from : history_begin(topo->h);
	int64_t to = options->to < history_end(topo->h) ? options->to : history_end(topo->h);
	inquiry_init(&c->q, &exits_inquiry, topo, from, to, 1);
	c->o = *options;
	c->tid = -1;
	c->row = NO_ROW;
	add_subject(c, options->only);
	if (c->vcpus || !options->only || options->only->kind == SUBJECT_MACHINE)
		return &c->q;
	inquiry_close(&c->q);
	error_set(err, STATUS_USAGE, "name a VM, a vCPU as Debian/CPU0, or a thread of a guest", "%s: is not of a guest",
	          topo_subject_text(topo, options->only, name, sizeof name));
	return NULL;
}

void exits_take(struct inquiry *q, struct exit_list *out)
{
	struct counter *c = (struct counter *)q;
	for (size_t i = 0; i < c->list.rows; i++)
		free(c->lengths[i].ns);
	*out = c->list;
	c->list = (struct exit_list){ 0 };
}

void exits_release(struct exit_list *l)
{
	for (size_t i = 0; i < l->names; i++)
		free(l->name[i]);
	free(l->name);
	free(l->row);
	*l = (struct exit_list){ 0 };
}
