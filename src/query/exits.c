/* VM exits: number and reasons of the exits of a vCPU, and the times until the next VM entry.
 *
 * The history contains the reason of the latest exit; the vCPU's status shows the exit's time. While the
 * vCPU's thread is on a CPU, the vCPU is in guest mode unless its status is VMM; off the CPU the mode does not change.
 * So an exit starts with a new reason, or at the end of guest mode, and ends with the start of guest mode. An exit that
 * is followed by another exit or by an unknown time is counted, but has no length; nor has an exit that does not change
 * the status, because VM entries were not recorded.
 *
 * Cost: one walk over the vCPUs' statuses. Memory: 8 bytes per exit, for exact percentiles. */
#include "base/base.h"
#include "query/query_internal.h"

#include "base/rank_select.h"
#include "query/stepped_query.h"
#include "query/culprit.h"

enum mode { MODE_UNKNOWN, MODE_GUEST, MODE_HOST };

struct lengths {
	int64_t *ns;
	size_t len, cap;
};

struct exit_counter {
	struct query q;
	struct exit_options o;
	int32_t tid;                /* TID of the guest thread that is the target; -1: all threads */
	struct exit_list list;
	struct lengths *lengths;    /* by row */
	size_t row_cap, lengths_cap;
	struct actors actors;     /* vCPU, thread, name */
	struct map row_of;          /* (actor << 32 | reason) -> index of the row */
	struct resolver r;
	uint32_t *vcpu;             /* vCPUs in the answer */
	size_t vcpus, vcpu_cap, current; /* current vCPU; the following members are its state */
	int64_t t;                  /* time of the next step, ns */
	enum mode mode;
	bool started;
	int64_t since;              /* the open exit's start, ns; valid only if row is not NO_ROW */
	size_t row;
};
#define NO_ROW SIZE_MAX

/* ---- Rows */

static int exits_grow(void **array, size_t *cap, size_t len, size_t size, struct error *err)
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

static size_t exit_row_for(struct exit_counter *c, const struct actor *actor, uint32_t reason)
{
	bool is_new;
	uint64_t *at = map_put(&c->row_of, (uint64_t)actors_put(&c->actors, actor) << 32 | reason, &is_new);
	if (is_new) {
		size_t len = c->list.rows;
		*at = len;
		*ARRAY_PUSH(c->lengths, len, c->lengths_cap) = (struct lengths){ 0 };
		*ARRAY_PUSH(c->list.row, c->list.rows, c->row_cap) = (struct exit_row){
			.vcpu = (uint32_t)actor->machine, .tid = actor->tid, .name = actor->name, .reason = reason };
	}
	return (size_t)*at;
}

/* Ends the open exit. length: ns; < 0: unknown. */
static int exit_close(struct exit_counter *c, int64_t ns, struct error *err)
{
	if (c->row == NO_ROW)
		return 0;
	struct exit_row *row = &c->list.row[c->row];
	struct lengths *l = &c->lengths[c->row];
	void *array = l->ns;
	c->row = NO_ROW;
	if (ns < 0)
		return 0;
	if (exits_grow(&array, &l->cap, l->len, sizeof *l->ns, err) < 0)
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

/* Finds the current thread of the guest, if the query is by thread. */
static int exiting_thread(struct exit_counter *c, uint32_t vcpu, int64_t t, struct actor *actor)
{
	int64_t tid = HISTORY_NULL;
	*actor = (struct actor){ .machine = (int32_t)vcpu, .tid = -1 };
	if (!c->o.by_thread && c->tid < 0)
		return 0;
	int64_t until = c->r.until;
	if (track_at(&c->r, &resolver_cpu(&c->r, vcpu)->running, t, &tid) < 0)
		return -1;
	if (tid >= 0 && tid <= INT32_MAX) {
		actor->tid = (int32_t)tid;
		struct thread_ref *w = resolver_thread(&c->r, c->q.catalog->cpu[vcpu].machine, actor->tid);
		if (resolver_thread_name(&c->r, w, t, &actor->name) < 0)
			return -1;
	}
	c->r.until = until;
	return 0;
}

static int exit_open(struct exit_counter *c, uint32_t vcpu, int64_t t, int64_t reason)
{
	struct actor actor;
	if (t < c->q.from || t > c->q.to)
		return 0;
	if (exiting_thread(c, vcpu, t, &actor) < 0)
		return -1;
	if (c->tid >= 0 && actor.tid != c->tid)
		return 0;
	if (c->o.begins) {
		c->o.begins(c->o.arg, vcpu, resolver_name_id(&c->r, reason), t);
		return 0;
	}
	c->row = exit_row_for(c, &actor, resolver_name_id(&c->r, reason));
	c->since = t;
	c->list.row[c->row].count++;
	return 0;
}

/* ---- Walk */

/* Finds the mode of the vCPU at t; the result is valid until r.until. *executes: its status is that of guest mode; false:
 * the mode is the previous one, because the vCPU is off the CPU. */
static int guest_mode_at(struct exit_counter *c, uint32_t vcpu, int64_t t, enum mode *mode, bool *executes,
                         int64_t *reason)
{
	struct resolver *r = &c->r;
	struct cpu_tracks *tracks = resolver_cpu(r, vcpu);
	const struct catalog *catalog = c->q.catalog;
	int64_t value;
	if (track_at(r, &tracks->exit, t, reason) < 0 || track_at(r, &tracks->status, t, &value) < 0)
		return -1;
	int state = value < 0 || value >= HISTORY_STATES ? VCPU_UNKNOWN : catalog->vcpu_state[value];
	struct thread_ref *host;
	if (*reason == HISTORY_NULL || state == VCPU_VMM || state == VCPU_RUNNING) {
		*mode = *reason == HISTORY_NULL ? MODE_UNKNOWN : state == VCPU_VMM ? MODE_HOST : MODE_GUEST;
		*executes = *mode == MODE_GUEST;
		return 0;
	}
	*mode = c->mode;
	*executes = false;
	if (state != VCPU_IDLE && state != VCPU_UNKNOWN)
		return 0;
	if (resolver_vcpu_thread(r, vcpu, t, &host) < 0)
		return -1;
	if (host && track_at(r, &thread_tracks(r, host)[TRACK_STATUS], t, &value) < 0)
		return -1;
	if (host && value >= 0 && value < HISTORY_STATES && catalog->thread_state[value] == THREAD_RUNNING) {
		*mode = MODE_GUEST;
		*executes = true;
	}
	return 0;
}

/* Does one step for the current vCPU. Returns 1 at the end of its window, 0 if there is more, -1 on error. */
static int exit_step(struct exit_counter *c, struct error *err)
{
	uint32_t vcpu = c->vcpu[c->current];
	int64_t t = c->t, reason;
	enum mode mode;
	bool executes;
	c->r.until = history_last(c->q.catalog->h);
	if (guest_mode_at(c, vcpu, t, &mode, &executes, &reason) < 0)
		return -1;
	/* The first reason of a history belongs to an exit before the history. */
	bool is_new = resolver_cpu(&c->r, vcpu)->exit.iv.start == t && t > history_first(c->q.catalog->h);
	bool exited = reason != HISTORY_NULL && (is_new || (mode == MODE_HOST && c->mode == MODE_GUEST));
	if (mode != MODE_HOST || exited)
		if (exit_close(c, mode == MODE_GUEST && !exited ? t - c->since : -1, err) < 0)
			return -1;
	if (exited && exit_open(c, vcpu, t, reason) < 0)
		return -1;
	const bool has_no_entry = exited && executes;
	if (has_no_entry && exit_close(c, -1, err) < 0)
		return -1;
	c->mode = exited && !has_no_entry ? MODE_HOST : mode;
	c->t = c->r.until + 1;
	return c->r.until >= history_last(c->q.catalog->h) || (c->t > c->q.to && c->row == NO_ROW);
}

static int exits_walk(struct query *q, size_t part, struct budget *budget, struct error *err)
{
	struct exit_counter *c = (struct exit_counter *)q;
	if (!c->r.catalog)
		resolver_init(&c->r, q->catalog, q->from, q->to, err);
	c->r.err = err;
	while (c->current < c->vcpus) {
		if (!c->started) {  /* the mode before the window: an exit may start with the window */
			c->t = q->from > history_first(q->catalog->h) ? q->from - 1 : q->from;
			c->mode = MODE_HOST;
			c->row = NO_ROW;
			c->started = true;
		}
		int done = exit_step(c, err);
		if (done < 0)
			return -1;
		if (done) {
			if (exit_close(c, -1, err) < 0)
				return -1;
			c->started = false;
			c->current++;
		}
		q->part[part].done = (double)c->current / (double)c->vcpus;
		if (budget_spent(budget))
			return 0;
	}
	return 1;
}

/* ---- Answer */

ORDER_BY(compare_rows, struct exit_row, RISING(vcpu) FALLING(total) FALLING(count) RISING(max_at))

static int exits_join(struct query *q, struct error *err)
{
	struct exit_counter *c = (struct exit_counter *)q;
	(void)err;
	for (size_t i = 0; i < c->list.rows; i++) {
		struct lengths *l = &c->lengths[i];
		if (!l->len)
			continue;
		c->list.row[i].p99 = rank_select(l->ns, l->len, percentile_index(l->len, 99));
		free(l->ns);
		l->ns = NULL;
	}
	ARRAY_SORT(c->list.row, c->list.rows, compare_rows);
	c->list.vcpus = (unsigned)c->vcpus;
	if (c->r.catalog)
		names_move(&c->r.names, &c->list.name, &c->list.names);
	return 1;
}

static void exits_close(struct query *q)
{
	struct exit_counter *c = (struct exit_counter *)q;
	for (size_t i = 0; i < c->list.rows; i++)
		free(c->lengths[i].ns);
	free(c->lengths);
	free(c->vcpu);
	map_release(&c->row_of);
	actors_release(&c->actors);
	if (c->r.catalog)
		resolver_release(&c->r);
	exits_release(&c->list);
}

static const struct query_kind exits_query = { exits_walk, exits_join, exits_close, ANSWER(struct exit_counter, list) };

/* ---- vCPUs of the target */

static void counter_add_vcpu(struct exit_counter *c, uint32_t vcpu)
{
	*ARRAY_PUSH(c->vcpu, c->vcpus, c->vcpu_cap) = vcpu;
	c->list.silent += c->q.catalog->cpu[vcpu].exit == HISTORY_NONE;
}

static void counter_add_machine(struct exit_counter *c, uint32_t machine)
{
	const struct catalog_machine *m = &c->q.catalog->machine[machine];
	for (uint32_t i = m->cpu; m->kind == MACHINE_VM && i < m->cpu + m->cpus; i++)
		counter_add_vcpu(c, i);
}

static void counter_add_target(struct exit_counter *c, const struct target *target)
{
	const struct catalog *catalog = c->q.catalog;
	uint32_t machine = target ? target_machine(catalog, target) : 0;
	if (!target || (target->kind == TARGET_MACHINE && catalog->machine[machine].kind == MACHINE_HOST)) {
		for (uint32_t m = 0; m < catalog->machines; m++)
			counter_add_machine(c, m);
	} else if (target->kind == TARGET_MACHINE) {
		counter_add_machine(c, machine);
	} else if (target->kind == TARGET_CPU && catalog->machine[machine].kind == MACHINE_VM) {
		counter_add_vcpu(c, target->index);
	} else if (target->kind == TARGET_THREAD && catalog->thread[target->index].role >= 0) {
		for (int32_t i = catalog->thread[target->index].role; i >= 0; i = catalog->role[i].next)
			counter_add_vcpu(c, catalog->role[i].vcpu);
	} else if (target->kind == TARGET_THREAD) {
		counter_add_machine(c, machine);
		c->tid = catalog->thread[target->index].tid;
	}
}

struct query *exits_open(const struct catalog *catalog, const struct exit_options *options, struct error *err)
{
	char name[256];
	struct exit_counter *c = mem_new(1, sizeof *c);
	query_init(&c->q, &exits_query, catalog, options->from, options->to, 1);
	c->o = *options;
	c->tid = -1;
	c->row = NO_ROW;
	counter_add_target(c, options->only);
	if (c->vcpus || !options->only || options->only->kind == TARGET_MACHINE)
		return &c->q;
	query_close(&c->q);
	error_set(err, STATUS_USAGE, "name a VM, a vCPU as Debian/CPU0, or a thread of a guest", "%s: is not of a guest",
	          catalog_target_text(catalog, options->only, name, sizeof name));
	return NULL;
}

void exits_release(struct exit_list *l)
{
	names_free(l->name, l->names);
	free(l->row);
	*l = (struct exit_list){ 0 };
}
