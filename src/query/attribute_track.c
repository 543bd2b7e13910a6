#include "query/resolver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define STEPS_BEFORE_SEEK 192   /* about what a seek costs in decoded intervals */
#define AHEAD_FIRST 4           /* intervals read at once: few of what seldom changes, */
#define AHEAD_MOST 128          /* more and more of what changes often */
#define BEHIND 8                /* that stay when more are read: a path goes back a few */
#define THREADS_KEPT 16384
#define NOT_A_TID (UINT64_C(1) << 63)

void resolver_init(struct resolver *r, const struct topo *topo, int64_t t0, int64_t t1, struct error *err)
{
	*r = (struct resolver){ .topo = topo, .t0 = t0, .t1 = t1, .last_string = HISTORY_NULL, .err = err };
	r->cpu = mem_new(topo->cpus, sizeof(struct cpu_tracks *));
	strtab_init(&r->names);
	r->swapper = strtab_put(&r->names, "swapper");
	r->not_alive = strtab_put(&r->names, "not alive");
	for (int i = 0; i <= OUT_REASON_COUNT; i++)
		r->limit[i] = strtab_put(&r->names, i < OUT_REASON_COUNT ? out_reason_name[i] : "limit");
}

static void forget_threads(struct resolver *r)
{
	for (size_t i = 0; i < r->whos; i++) {
		for (int k = 0; r->who[i]->own && k < OWN_TRACKS; k++)
			free(r->who[i]->own[k].ahead);
		free(r->who[i]->own);
		free(r->who[i]->name.ahead);
		free(r->who[i]);
	}
	r->whos = 0;
	map_release(&r->who_by_tid);
	memset(r->recent, 0, sizeof r->recent);
	for (uint32_t i = 0; i < r->topo->cpus; i++)
		if (r->cpu[i]) {
			r->cpu[i]->host_tid = HISTORY_NULL;
			memset(r->cpu[i]->current, 0, sizeof r->cpu[i]->current);
		}
}

void resolver_release(struct resolver *r)
{
	forget_threads(r);
	for (uint32_t i = 0; i < r->topo->cpus; i++) {
		struct cpu_tracks *c = r->cpu[i];
		if (!c)
			continue;
		free(c->status.ahead);
		free(c->running.ahead);
		free(c->interrupt.ahead);
		free(c->host_thread.ahead);
		free(c->pcpu.ahead);
		free(c->exit.ahead);
		free(c->out_by.ahead);
		free(c);
	}
	free(r->cpu);
	free(r->who);
	strtab_release(&r->names);
	map_release(&r->name_by_string);
	map_release(&r->machine_by_string);
	*r = (struct resolver){ 0 };
}

static void track_init(struct row_track *k, uint32_t attr)
{
	k->attr = attr;
	k->iv = attr == HISTORY_NONE ? (struct interval){ INT64_MIN, INT64_MAX, HISTORY_NULL }
	                             : (struct interval){ INT64_MAX, INT64_MIN, HISTORY_NULL };
}

/* Reads more intervals behind those at hand: how many, 0 = end, -1. */
static int track_read(struct resolver *r, struct row_track *k)
{
	if (k->n == k->room && k->room < AHEAD_MOST) {
		k->room = k->room ? 2 * k->room : AHEAD_FIRST;
		k->ahead = mem_resize(k->ahead, k->room, sizeof *k->ahead);
	}
	const unsigned kept = k->n < BEHIND ? k->n : BEHIND < k->room / 2 ? BEHIND : k->room / 2;
	memmove(k->ahead, k->ahead + k->n - kept, kept * sizeof *k->ahead);
	int n = history_range_read(&k->cursor, k->ahead + kept, k->room - kept, r->err);
	k->at = kept;
	k->n = kept + (n < 0 ? 0 : (unsigned)n);
	return n;
}

/* Goes on to the interval that holds t, if it is not far: 1, 0, -1. */
static int track_forward(struct resolver *r, struct row_track *k, int64_t t)
{
	int more = 1;
	for (int tried = 0; more > 0; tried += more) {
		const struct interval *iv = k->ahead + k->at, *end = k->ahead + k->n;
		while (iv < end && iv->end < t)
			iv++;
		k->at = (unsigned)(iv - k->ahead);
		if (iv < end) {
			k->iv = *iv;
			k->at++;
			return 1;
		}
		more = tried < STEPS_BEFORE_SEEK ? track_read(r, k) : 0;
	}
	return more;
}

static int track_seek(struct resolver *r, struct row_track *k, int64_t t)
{
	const struct history *h = r->topo->h;
	k->at = k->n = 0;
	if (t < history_first(h) || t > history_last(h)) {
		k->iv = t < history_first(h) ? (struct interval){ INT64_MIN, history_first(h) - 1, HISTORY_NULL }
		                             : (struct interval){ history_last(h) + 1, INT64_MAX, HISTORY_NULL };
		return 0;
	}
	if (history_range(&k->cursor, h, k->attr, t, t > r->t1 ? t : r->t1, r->err) < 0)
		return -1;
	int n = track_read(r, k);
	if (n == 0)
		return error_set(r->err, STATUS_INPUT, "index the traces again", "%s: attribute %u has no value at %lld",
		                 history_file(h), (unsigned)k->attr, (long long)t);
	if (n > 0)
		k->iv = k->ahead[k->at++];
	return n < 0 ? -1 : 0;
}

/* Goes back to t in what was read: false where it is older than that. */
static bool track_back(struct row_track *k, int64_t t)
{
	if (!k->n || k->ahead[0].start > t)
		return false;
	while (k->at > 1 && k->ahead[k->at - 1].start > t)
		k->at--;
	k->iv = k->ahead[k->at - 1];
	return k->iv.start <= t && t <= k->iv.end;
}

/* The interval that holds t is not the next one. */
static __attribute__((noinline)) int track_far(struct resolver *r, struct row_track *k, int64_t t)
{
	int there = 0;
	if (k->iv.start > k->iv.end)
		return track_seek(r, k, t);
	if (t < k->iv.start)
		there = track_back(k, t);
	else if (k->n)
		there = track_forward(r, k, t);
	return there < 0 ? -1 : there ? 0 : track_seek(r, k, t);
}

int track_move(struct resolver *r, struct row_track *k, int64_t t)
{
	if (k->at == k->n || t <= k->iv.end || t > k->ahead[k->at].end)
		return track_far(r, k, t);
	k->iv = k->ahead[k->at++];
	return 0;
}

int track_prev(struct resolver *r, struct row_track *k, int64_t t, uint64_t mask, struct interval *iv)
{
	if ((t > k->iv.end || t < k->iv.start) && track_move(r, k, t) < 0)
		return -1;
	for (unsigned i = k->at; i > 1; i--)
		if (state_in(mask, k->ahead[i - 2].value)) {
			*iv = k->ahead[i - 2];
			return 1;
		}
	return history_prev(r->topo->h, k->attr, k->n ? k->ahead[0].start : t, mask, iv, r->err);
}

struct cpu_tracks *resolver_cpu_new(struct resolver *r, uint32_t cpu)
{
	const struct topo_cpu *is = &r->topo->cpu[cpu];
	struct cpu_tracks *c = r->cpu[cpu] = mem_new(1, sizeof *c);
	c->below_number = c->host_tid = HISTORY_NULL;
	c->below = -1;
	track_init(&c->status, is->status);
	track_init(&c->running, is->current);
	track_init(&c->interrupt, is->interrupt);
	track_init(&c->host_thread, is->host_thread);
	track_init(&c->pcpu, is->pcpu);
	track_init(&c->exit, is->exit);
	track_init(&c->out_by, is->out_by);
	char name[16];
	snprintf(name, sizeof name, "%sCPU%u", r->topo->machine[is->machine].kind == MACHINE_VM ? "v" : "",
	         is->number);
	c->name = strtab_put(&r->names, name);
	return c;
}

struct who *resolver_who_find(struct resolver *r, uint32_t machine, int32_t tid)
{
	bool is_new;
	struct who **recent = &r->recent[(uint32_t)tid % CURRENT_KEPT];
	uint64_t *at = map_put(&r->who_by_tid, (uint64_t)machine << 32 | (uint32_t)tid, &is_new);
	if (!is_new)
		return *recent = r->who[*at];
	*at = r->whos;
	struct who *w = *ARRAY_PUSH(r->who, r->whos, r->who_cap) = mem_new(1, sizeof *w);
	w->thread = topo_find_thread(r->topo, machine, tid);
	w->machine = (int32_t)machine;
	w->tid = tid;
	w->cpu_number = HISTORY_NULL;
	w->cpu = -1;
	w->named = w->woken_in = HISTORY_NULL;
	w->name_id = tid == 0 && !r->shallow ? r->swapper : 0;
	track_init(&w->name, tid == 0 || r->shallow || w->thread < 0 ? HISTORY_NONE : r->topo->thread[w->thread].name);
	if (r->topo->machine[machine].kind != MACHINE_HOST)
		return w;
	for (uint32_t m = r->topo->machines; m-- > 0 && r->topo->machine[m].kind == MACHINE_CONTAINER;) {
		struct who *box = topo_find_thread(r->topo, m, tid) < 0 ? NULL : resolver_who(r, m, tid);
		if (box) {
			box->boxed = w->boxed;
			w->boxed = box;
		}
	}
	return w;
}

struct row_track *resolver_own_new(struct resolver *r, struct who *w)
{
	w->own = mem_new(OWN_TRACKS, sizeof *w->own);
	const struct topo_thread *th = w->thread < 0 ? NULL : &r->topo->thread[w->thread];
	track_init(&w->own[OWN_STATUS], th ? th->status : HISTORY_NONE);
	track_init(&w->own[OWN_CPU], th ? th->cpu : HISTORY_NONE);
	track_init(&w->own[OWN_WAKER], th ? th->woken_by : HISTORY_NONE);
	track_init(&w->own[OWN_WOKEN_IN], th ? th->woken_in : HISTORY_NONE);
	return w->own;
}

uint32_t resolver_string(struct resolver *r, int64_t value)
{
	if (value == HISTORY_NULL)
		return 0;
	bool is_new;
	uint64_t *id = map_put(&r->name_by_string, (uint64_t)value, &is_new);
	if (is_new)
		*id = strtab_put(&r->names, history_string(r->topo->h, value));
	return (uint32_t)*id;
}

bool resolver_waker(struct resolver *r, int64_t value, int32_t *machine, int32_t *tid)
{
	if (value == HISTORY_NULL)
		return false;
	uint32_t number = history_ref_number(value);
	if (history_ref_text(value) != r->last_string) {
		bool is_new;
		uint64_t *known = map_put(&r->machine_by_string, (uint64_t)history_ref_text(value), &is_new);
		if (is_new)
			*known = (uint64_t)topo_ref(r->topo, value, &number);
		r->last_string = history_ref_text(value);
		r->last_machine = (int32_t)*known;
	}
	*machine = r->last_machine;
	*tid = (int32_t)number;
	return *machine >= 0 && number <= INT32_MAX;
}

int resolve_lost(struct resolver *r, const struct subject *s, int64_t t, bool *lost)
{
	int64_t status = HISTORY_NULL;
	int rc = 0;
	if (s->kind == SUBJECT_THREAD) {
		const struct topo_thread *th = &r->topo->thread[s->index];
		rc = track_at(r, &resolver_own(r, resolver_who(r, th->machine, th->tid))[OWN_STATUS], t, &status);
	} else if (s->kind == SUBJECT_CPU && r->topo->machine[r->topo->cpu[s->index].machine].kind == MACHINE_VM) {
		rc = track_at(r, &resolver_cpu(r, s->index)->status, t, &status);
	}
	*lost = state_in(s->kind == SUBJECT_CPU ? r->topo->vcpu_lost : r->topo->thread_gap, status);
	return rc;
}

int resolve_walk(struct resolver *r, const struct subject *s, int64_t from, int64_t to,
                 int (*fn)(void *arg, const struct piece *p, int64_t start, int64_t end), void *arg)
{
	for (int64_t t = from;; t = r->until + 1) {
		struct piece p;
		if (r->whos >= THREADS_KEPT)
			forget_threads(r);
		r->until = to;
		if (resolve_subject(r, s, t, &p) < 0)
			return -1;
		int stop = fn(arg, &p, t, r->until);
		if (stop || r->until >= to)
			return stop;
	}
}
