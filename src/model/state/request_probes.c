/* Requests, from probes in servers (EV_PROBE): functions and static probes that have no number of the request.
 *
 * The name of a probe identifies a kind of requests. An open request is found by the probe's key within the process, or
 * without a key by the thread. Rules:
 *
 * - A request that starts while one with the same key is open replaces it: the open one is dropped, because its end was
 *   not recorded (a failed query, a lost event, an object in memory that is used again).
 * - A thread serves one request of a kind with keys: when it starts or resumes another one, it yields the first.
 * - Recursion: entries and returns of a function contain the stack pointer. An entry below the open one's is a nested
 *   call, and only the outermost call's return ends the request. An entry above it shows that the open call was left
 *   without a return (longjmp): that request is dropped.
 * - A request that was received (MARK_RECEIVE) began when its thread was woken, if the thread has reached no probe of
 *   another request since: the time for which the woken thread waits for a CPU delays the request. Otherwise it begins at
 *   the probe.
 * - An end without an open request is counted; yields, resumes and drops without one are ignored.
 * - A loss of events drops all open requests: their ends may be among the lost events.
 *
 * Requests of a kind share lanes, as many as were open at the same time, so that the attribute count does not grow
 * with the request count. A thread gets the lane of its previous request if that is free.
 *
 *   /Requests/<machine>/<name>-<lane>/State, Thread    as in request_marks.c; dropped: until the next event of a probe
 *
 * Memory: the open requests, the lanes, and one entry per thread that has served requests. */
#include "base/base.h"
#include "base/hash.h"
#include "model/state/state.h"

#define CALLS_MAX 64  /* maximum depth of recursion; deeper calls are taken as one */
#define NO_LANE SIZE_MAX
#define NAME_LEN 100  /* maximum length of a kind's name, bytes */

struct request_lane {
	struct request_attrs attr;
	int64_t freed;           /* time at which it became free, host ns */
	bool busy, listed;       /* listed: contained in kind->free_lane */
};

struct open_request {
	size_t lane;
	bool has_key;            /* false: found by its thread */
	uint64_t key;            /* in kind->by_key */
	int32_t tid;             /* thread that serves it, or did so last */
	bool is_running;
	int64_t call[CALLS_MAX]; /* stack pointers of the function's calls, outermost first */
	size_t calls;            /* 0: the probes have no stack pointer */
};

struct serving_thread {
	struct open_request *current;  /* the request that it serves; NULL: none */
	size_t lane;             /* 1 + the lane of its last request; 0: none */
	int64_t busy_at;         /* last time at which it worked on a request other than `touched`, host ns */
	int64_t touched;         /* key of the request that it resumed last, open or not; EVENT_ABSENT: none since busy_at */
	int64_t touched_at;      /* this resume's time, host ns */
};

struct probe_kind {
	char *name;
	struct map by_key;       /* key and process, see key_of() -> struct open_request * */
	struct map thread;       /* TID -> struct serving_thread * */
	struct request_lane *lane;
	size_t lanes, lanes_cap;
	size_t *free_lane, frees, frees_cap;
	size_t *dropped, drops, drops_cap;  /* lanes in state dropped */
	int64_t dropped_at;      /* time of the last drop, host ns */
	int64_t lost_at;         /* time of the last loss of events, host ns; INT64_MIN: none */
	uint64_t orphans;        /* ends without an open request */
};

struct request_probes {
	struct map kind_of;      /* string id of the name -> struct probe_kind * */
	struct probe_kind **kind;  /* the same, in the order of their first events */
	size_t kinds, cap;
};

static void *as_pointer(const uint64_t *slot)
{
	return slot ? (void *)(uintptr_t)*slot : NULL;
}

/* ---- lanes */

static size_t new_lane(struct machine *mc, struct probe_kind *k)
{
	struct request_lane *l = ARRAY_PUSH(k->lane, k->lanes, k->lanes_cap);
	char *id = mem_printf("%s-%zu", k->name, k->lanes);
	*l = (struct request_lane){ .attr = request_declare(mc, id), .freed = INT64_MIN };
	free(id);
	return k->lanes - 1;
}

static struct serving_thread *get_thread(struct probe_kind *k, int32_t tid)
{
	bool is_new;
	uint64_t *slot = map_put(&k->thread, (uint64_t)tid, &is_new);
	if (is_new) {
		struct serving_thread *th = mem_new(1, sizeof *th);
		th->busy_at = th->touched_at = INT64_MIN;
		th->touched = EVENT_ABSENT;
		*slot = (uint64_t)(uintptr_t)th;
	}
	return as_pointer(slot);
}

/* Returns true if a request can use the lane from time t on: there is an interval after the lane's last request. */
static bool is_free(const struct request_lane *l, int64_t t)
{
	return !l->busy && l->freed < t;
}

static size_t get_lane(struct machine *mc, struct probe_kind *k, struct serving_thread *th, int64_t t)
{
	size_t at = th->lane && is_free(&k->lane[th->lane - 1], t) ? th->lane - 1 : NO_LANE;
	while (at == NO_LANE && k->frees) {
		struct request_lane *l = &k->lane[k->free_lane[k->frees - 1]];
		if (!l->busy && !is_free(l, t))
			break;
		l->listed = false;
		at = l->busy ? NO_LANE : k->free_lane[k->frees - 1];
		k->frees--;
	}
	if (at == NO_LANE)
		at = new_lane(mc, k);
	k->lane[at].busy = true;
	th->lane = at + 1;
	return at;
}

static void free_lane(struct machine *mc, struct probe_kind *k, size_t at)
{
	struct request_lane *l = &k->lane[at];
	sink_set(&mc->model->sink, l->attr.attr_state, HISTORY_NULL);
	sink_set(&mc->model->sink, l->attr.attr_thread, HISTORY_NULL);
	sink_set(&mc->model->sink, l->attr.attr_label, HISTORY_NULL);
	l->busy = false;
	l->freed = mc->model->sink.now;
	if (!l->listed)
		*ARRAY_PUSH(k->free_lane, k->frees, k->frees_cap) = at;
	l->listed = true;
}

/* Frees the lanes of dropped requests, after state dropped has lasted for at least 1 ns. */
static void free_dropped(struct machine *mc, struct probe_kind *k)
{
	if (!k->drops || k->dropped_at == mc->model->sink.now)
		return;
	while (k->drops)
		free_lane(mc, k, k->dropped[--k->drops]);
}

/* ---- open requests */

/* Writes that a thread serves the request since time t. */
static void set_running(struct machine *mc, struct probe_kind *k, struct open_request *r, int32_t tid, int64_t t)
{
	const struct request_lane *l = &k->lane[r->lane];
	r->is_running = true;
	r->tid = tid;
	sink_set_at(&mc->model->sink, t, l->attr.attr_state, REQUEST_RUNNING);
	sink_set_at(&mc->model->sink, t, l->attr.attr_thread, tid);
	get_thread(k, tid)->current = r;
}

/* Removes a request from the thread that serves it. */
static void leave_thread(struct probe_kind *k, const struct open_request *r)
{
	struct serving_thread *th = get_thread(k, r->tid);
	if (th->current == r)
		th->current = NULL;
}

/* A request without a key stays with its thread. */
static void yield_request(struct machine *mc, struct probe_kind *k, struct open_request *r)
{
	if (!r->is_running)
		return;
	r->is_running = false;
	sink_set(&mc->model->sink, k->lane[r->lane].attr.attr_state, REQUEST_YIELDED);
	if (r->has_key)
		leave_thread(k, r);
}

static void remove_request(struct probe_kind *k, struct open_request *r)
{
	leave_thread(k, r);
	if (r->has_key)
		map_remove(&k->by_key, r->key);
	free(r);
}

static void end_request(struct machine *mc, struct probe_kind *k, struct open_request *r)
{
	free_lane(mc, k, r->lane);
	remove_request(k, r);
}

static void drop_request(struct machine *mc, struct probe_kind *k, struct open_request *r)
{
	sink_set(&mc->model->sink, k->lane[r->lane].attr.attr_state, REQUEST_DROPPED);
	*ARRAY_PUSH(k->dropped, k->drops, k->drops_cap) = r->lane;
	k->dropped_at = mc->model->sink.now;
	remove_request(k, r);
}

/* ---- events */

/* Returns the key of a request in kind->by_key. Processes that were forked from one have their objects at the same
 * addresses, so the key contains the process, if it is known. */
static uint64_t key_of(const struct machine *mc, const struct event *ev, int32_t tid)
{
	const struct thread *th = thread_find(mc, tid);
	const int64_t process = ev->pid > 0 ? ev->pid : th && th->pid > 0 ? th->pid : 0;
	const int64_t both[2] = { process, ev->probe.key };
	return hash_bytes(HASH_BEGIN, both, sizeof both);
}

static struct open_request *find_request(const struct machine *mc, struct probe_kind *k, const struct event *ev,
                                         int32_t tid)
{
	if (ev->probe.key == EVENT_ABSENT)
		return get_thread(k, tid)->current;
	return as_pointer(map_find(&k->by_key, key_of(mc, ev, tid)));
}

/* Removes the calls that have ended when the stack pointer is `stack`: stacks grow to lower addresses. */
static void pop_calls(struct open_request *r, int64_t stack)
{
	while (r->calls && (uint64_t)r->call[r->calls - 1] <= (uint64_t)stack)
		r->calls--;
}

static void push_call(struct open_request *r, int64_t stack)
{
	if (stack != EVENT_ABSENT && r->calls < CALLS_MAX)
		r->call[r->calls++] = stack;
}

/* Returns the time at which a received request arrived: the last wakeup of its thread, or now. */
static int64_t arrival(const struct machine *mc, const struct probe_kind *k, const struct serving_thread *th,
                       int32_t tid, int64_t key)
{
	const struct thread *woken = thread_find(mc, tid);
	const int64_t t = woken ? woken->arrived_at : INT64_MIN;
	const bool served_other = th->touched != EVENT_ABSENT && th->touched != key && th->touched_at >= t;
	return t > th->busy_at && t > k->lost_at && t > mc->begin && !served_other ? t : mc->model->sink.now;
}

static void start_request(struct machine *mc, struct probe_kind *k, int32_t tid, const struct event *ev)
{
	const int64_t key = ev->probe.key, stack = ev->probe.stack;
	struct serving_thread *th = get_thread(k, tid);
	struct open_request *same = find_request(mc, k, ev, tid);
	if (same && same->calls && stack != EVENT_ABSENT) {
		pop_calls(same, stack);
		if (same->calls) {
			push_call(same, stack);
			return;
		}
	}
	const int64_t t = ev->probe.op == MARK_RECEIVE && !same ? arrival(mc, k, th, tid, key) : mc->model->sink.now;
	if (th->current && th->current != same && th->current->has_key)
		yield_request(mc, k, th->current);
	if (same)
		drop_request(mc, k, same);
	struct open_request *r = mem_new(1, sizeof *r);
	r->lane = get_lane(mc, k, th, t);
	r->has_key = key != EVENT_ABSENT;
	push_call(r, stack);
	if (r->has_key) {
		r->key = key_of(mc, ev, tid);
		*map_put(&k->by_key, r->key, NULL) = (uint64_t)(uintptr_t)r;
	}
	set_running(mc, k, r, tid, t);
	if (ev->probe.label != EVENT_ABSENT || k->lane[r->lane].attr.attr_label != HISTORY_NONE) {
		char *id = mem_printf("%s-%zu", k->name, r->lane + 1);
		request_set_label(mc, id, &k->lane[r->lane].attr, t, ev->probe.label);
		free(id);
	}
}

/* Handles an end. A nested call's return ends no request, nor does a return without a recorded entry. */
static void end_call(struct machine *mc, struct probe_kind *k, struct open_request *r, int64_t stack)
{
	const size_t before = r->calls;
	if (before && stack != EVENT_ABSENT) {
		pop_calls(r, stack);
		k->orphans += r->calls == before;
		if (r->calls)
			return;
	}
	end_request(mc, k, r);
}

static void resume_request(struct machine *mc, struct probe_kind *k, struct open_request *r, int32_t tid)
{
	struct open_request *current = get_thread(k, tid)->current;
	if (current && current != r && current->has_key)
		yield_request(mc, k, current);
	if (r->is_running && r->tid == tid)
		return;
	leave_thread(k, r);
	set_running(mc, k, r, tid, mc->model->sink.now);
}

/* Records that the thread has worked on a request, for arrival(). */
static void record_work(const struct machine *mc, struct serving_thread *th, enum mark op, int64_t key)
{
	const int64_t now = mc->model->sink.now;
	if (op != MARK_RESUME || key == EVENT_ABSENT) {
		th->busy_at = now;
		th->touched = EVENT_ABSENT;
		return;
	}
	if (th->touched != EVENT_ABSENT && th->touched != key)
		th->busy_at = th->touched_at;
	th->touched = key;
	th->touched_at = now;
}

/* Returns the kind with this name, which it takes over. */
static struct probe_kind *find_kind(struct request_probes *all, char *name)
{
	for (size_t i = 0; i < all->kinds; i++) {
		if (strcmp(all->kind[i]->name, name) == 0) {
			free(name);
			return all->kind[i];
		}
	}
	struct probe_kind *k = mem_new(1, sizeof *k);
	k->name = name;
	k->lost_at = INT64_MIN;
	*ARRAY_PUSH(all->kind, all->kinds, all->cap) = k;
	return k;
}

/* Different string ids may have one name, because it is shortened. */
static struct probe_kind *get_kind(struct machine *mc, int64_t name)
{
	if (!mc->probes)
		mc->probes = mem_new(1, sizeof *mc->probes);
	bool is_new;
	uint64_t *slot = map_put(&mc->probes->kind_of, (uint64_t)name, &is_new);
	if (is_new)
		*slot = (uint64_t)(uintptr_t)find_kind(mc->probes, mem_printf("%.*s", NAME_LEN, mc->names.get(mc->names.of, name)));
	return as_pointer(slot);
}

/* Handles an event other than a start. */
static void continue_request(struct machine *mc, struct probe_kind *k, int32_t tid, const struct event *ev)
{
	struct open_request *r = find_request(mc, k, ev, tid);
	if (!r)
		k->orphans += ev->probe.op == MARK_END;
	else if (ev->probe.op == MARK_YIELD)
		yield_request(mc, k, r);
	else if (ev->probe.op == MARK_RESUME)
		resume_request(mc, k, r, tid);
	else if (ev->probe.op == MARK_END)
		end_call(mc, k, r, ev->probe.stack);
	else
		drop_request(mc, k, r);
}

void request_probe_event(struct machine *mc, const struct event *ev, int64_t tid)
{
	if (tid < 0 || tid > INT32_MAX)
		return;
	struct probe_kind *k = get_kind(mc, ev->probe.name);
	free_dropped(mc, k);
	if (ev->probe.op == MARK_START || ev->probe.op == MARK_RECEIVE)
		start_request(mc, k, (int32_t)tid, ev);
	else
		continue_request(mc, k, (int32_t)tid, ev);
	record_work(mc, get_thread(k, (int32_t)tid), (enum mark)ev->probe.op, ev->probe.key);
}

/* ---- losses and the trace's end */

/* Calls one() for all open requests of a kind, in their lanes' order, so that the history does not depend on the
 * order of a map. */
static void each_open(struct machine *mc, struct probe_kind *k,
                      void (*one)(struct machine *mc, struct probe_kind *k, struct open_request *r))
{
	struct open_request **of_lane = mem_new(k->lanes, sizeof *of_lane);
	uint64_t key, p;
	for (size_t at = 0; map_each(&k->by_key, &at, &key, &p);) {
		struct open_request *r = (struct open_request *)(uintptr_t)p;
		of_lane[r->lane] = r;
	}
	for (size_t at = 0; map_each(&k->thread, &at, &key, &p);) {
		struct open_request *r = ((struct serving_thread *)(uintptr_t)p)->current;
		if (r)
			of_lane[r->lane] = r;
	}
	for (size_t i = 0; i < k->lanes; i++)
		if (of_lane[i])
			one(mc, k, of_lane[i]);
	free(of_lane);
}

static void each_kind(struct machine *mc, void (*one)(struct machine *mc, struct probe_kind *k))
{
	for (size_t i = 0; mc->probes && i < mc->probes->kinds; i++)
		one(mc, mc->probes->kind[i]);
}

static void drop_all(struct machine *mc, struct probe_kind *k)
{
	free_dropped(mc, k);
	each_open(mc, k, drop_request);
	k->lost_at = mc->model->sink.now;
}

static void close_kind(struct machine *mc, struct probe_kind *k)
{
	while (k->drops)
		free_lane(mc, k, k->dropped[--k->drops]);
	each_open(mc, k, end_request);
}

static void forget(struct machine *mc, struct probe_kind *k, struct open_request *r)
{
	(void)mc;
	remove_request(k, r);
}

static void kind_free(struct machine *mc, struct probe_kind *k)
{
	uint64_t tid, p;
	each_open(mc, k, forget);
	for (size_t at = 0; map_each(&k->thread, &at, &tid, &p);)
		free((struct serving_thread *)(uintptr_t)p);
	map_release(&k->by_key);
	map_release(&k->thread);
	free(k->lane);
	free(k->free_lane);
	free(k->dropped);
	free(k->name);
	free(k);
}

void request_probes_lost(struct machine *mc)
{
	each_kind(mc, drop_all);
}

void request_probes_close(struct machine *mc)
{
	each_kind(mc, close_kind);
}

void request_probes_release(struct machine *mc)
{
	each_kind(mc, kind_free);
	if (mc->probes) {
		map_release(&mc->probes->kind_of);
		free(mc->probes->kind);
	}
	free(mc->probes);
	mc->probes = NULL;
}

uint64_t request_probes_orphans(const struct machine *mc)
{
	uint64_t n = 0;
	for (size_t i = 0; mc->probes && i < mc->probes->kinds; i++)
		n += mc->probes->kind[i]->orphans;
	return n;
}
