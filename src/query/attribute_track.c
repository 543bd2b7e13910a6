#include "query/resolver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/mem.h"

#define DECODES_BEFORE_SEEK 192   /* cost of a seek, as a number of decoded intervals */
#define READ_AHEAD_MIN 4           /* intervals that the first read decodes: few, for attributes that change
                                    * seldom */
#define READ_AHEAD_MAX 128          /* maximum for attributes that change often; reached step by step */
#define NEAR 8                       /* intervals that are tried one by one before a search */
#define KEEP_BEHIND 8                /* decoded intervals before the current one that are kept: a critical path goes back
                                      * a few */
#define HELD_MAX (1 << 20)             /* maximum of intervals in tracks that hold a slice: 24 MB */
#define THREAD_CACHE_MAX 16384
#define NOT_A_TID (UINT64_C(1) << 63)

void resolver_init(struct resolver *r, const struct catalog *catalog, int64_t t0, int64_t t1, struct error *err)
{
	*r = (struct resolver){ .catalog = catalog, .t0 = t0, .t1 = t1, .hold_from = 1, .held_max = HELD_MAX,
		.last_waker_string = HISTORY_NULL, .err = err };
	r->cpu = mem_new(catalog->cpus, sizeof(struct cpu_tracks *));
	strtab_init(&r->names);
	r->swapper = strtab_put(&r->names, "swapper");
	r->not_alive = strtab_put(&r->names, "not alive");
	for (int i = 0; i <= OUT_REASON_COUNT; i++)
		r->limit[i] = strtab_put(&r->names, i < OUT_REASON_COUNT ? out_reason_name[i] : "limit");
}

static void threads_release(struct resolver *r)
{
	for (size_t i = 0; i < r->threads_len; i++) {
		for (int k = 0; r->thread[i]->tracks && k < TRACK_COUNT; k++)
			free(r->thread[i]->tracks[k].ahead);
		free(r->thread[i]->tracks);
		free(r->thread[i]->name.ahead);
		free(r->thread[i]);
	}
	r->threads_len = 0;
	map_release(&r->thread_by_tid);
	memset(r->recent, 0, sizeof r->recent);
	for (uint32_t i = 0; i < r->catalog->cpus; i++)
		if (r->cpu[i]) {
			r->cpu[i]->vcpu_tid = HISTORY_NULL;
			memset(r->cpu[i]->current, 0, sizeof r->cpu[i]->current);
		}
}

void resolver_trim(struct resolver *r)
{
	if (r->threads_len >= THREAD_CACHE_MAX)
		threads_release(r);
}

void resolver_release(struct resolver *r)
{
	threads_release(r);
	for (uint32_t i = 0; i < r->catalog->cpus; i++) {
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
		free(c->khz.ahead);
		free(c);
	}
	free(r->cpu);
	free(r->thread);
	free(r->holder);
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

/* Decodes more intervals after those in `ahead`, and drops early ones. Returns their number, 0 at the history's end,
 * -1 on error. */
static int track_read_ahead(struct resolver *r, struct row_track *k)
{
	if (k->ahead_len == k->ahead_cap && k->ahead_cap < READ_AHEAD_MAX) {
		k->ahead_cap = k->ahead_cap ? 2 * k->ahead_cap : READ_AHEAD_MIN;
		k->ahead = mem_resize(k->ahead, k->ahead_cap, sizeof *k->ahead);
	}
	const unsigned half = k->ahead_cap / 2;
	const unsigned n_kept = k->ahead_len < KEEP_BEHIND ? k->ahead_len : KEEP_BEHIND < half ? KEEP_BEHIND : half;
	memmove(k->ahead, k->ahead + k->ahead_len - n_kept, n_kept * sizeof *k->ahead);
	int n = history_range_read(&k->cursor, k->ahead + n_kept, k->ahead_cap - n_kept, r->err);
	k->ahead_pos = n_kept;
	k->ahead_len = n_kept + (n < 0 ? 0 : (unsigned)n);
	return n;
}

/* Moves to the interval that contains t if it is near. Returns 1, 0 if it is far, -1 on error. */
static int track_forward(struct resolver *r, struct row_track *k, int64_t t)
{
	int more = 1;
	for (int decoded = 0; more > 0; decoded += more) {
		const struct interval *iv = k->ahead + k->ahead_pos, *end = k->ahead + k->ahead_len;
		while (iv < end && iv->end < t)
			iv++;
		k->ahead_pos = (unsigned)(iv - k->ahead);
		if (iv < end) {
			k->iv = *iv;
			k->ahead_pos++;
			return 1;
		}
		more = decoded < DECODES_BEFORE_SEEK ? track_read_ahead(r, k) : 0;
	}
	return more;
}

static int track_seek(struct resolver *r, struct row_track *k, int64_t t)
{
	const struct history *h = r->catalog->h;
	k->ahead_pos = k->ahead_len = 0;
	if (t < history_first(h) || t > history_last(h)) {
		k->iv = t < history_first(h) ? (struct interval){ INT64_MIN, history_first(h) - 1, HISTORY_NULL }
		                             : (struct interval){ history_last(h) + 1, INT64_MAX, HISTORY_NULL };
		return 0;
	}
	if (t < r->t0 || t > r->t1)
		return history_stab(h, k->attr, t, &k->iv, r->err);
	if (history_range(&k->cursor, h, k->attr, t, r->t1, r->err) < 0)
		return -1;
	int n = track_read_ahead(r, k);
	if (n == 0)
		return error_set(r->err, STATUS_INPUT, "index the traces again", "%s: attribute %u has no value at %lld",
		                 history_file(h), (unsigned)k->attr, (long long)t);
	if (n > 0)
		k->iv = k->ahead[k->ahead_pos++];
	return n < 0 ? -1 : 0;
}

/* Moves back to t among the decoded intervals. Returns false if t is before them. */
static bool track_back(struct row_track *k, int64_t t)
{
	if (!k->ahead_len || k->ahead[0].start > t)
		return false;
	while (k->ahead_pos > 1 && k->ahead[k->ahead_pos - 1].start > t)
		k->ahead_pos--;
	k->iv = k->ahead[k->ahead_pos - 1];
	return k->iv.start <= t && t <= k->iv.end;
}

/* ---- Tracks that hold a slice ---------------------------------------------------------------------------------- --- */

/* Frees the intervals of a track that holds a slice. */
static void track_drop(struct resolver *r, struct row_track *k)
{
	r->held -= k->ahead_len;
	free(k->ahead);
	k->ahead = NULL;
	k->ahead_pos = k->ahead_len = k->ahead_cap = 0;
	k->iv = (struct interval){ INT64_MAX, INT64_MIN, HISTORY_NULL };
	k->holds = false;
}

void resolver_hold(struct resolver *r, int64_t from, int64_t to)
{
	size_t n = 0;
	r->hold_from = from;
	r->hold_to = to;
	for (size_t i = 0; i < r->holders; i++) {
		struct row_track *k = r->holder[i];
		if (k->holds && k->ahead[k->ahead_len - 1].end < from)
			track_drop(r, k);
		if (k->holds)
			r->holder[n++] = k;
	}
	r->holders = n;
}

static bool track_has(const struct row_track *k, int64_t t)
{
	return k->ahead_len && k->ahead[0].start <= t && t <= k->ahead[k->ahead_len - 1].end;
}

/* Moves to t among the intervals that a track has. */
static void track_search(struct row_track *k, int64_t t)
{
	size_t at = k->ahead_pos;
	if (at >= k->ahead_len || k->ahead[at].start > t)
		at = 0;
	const size_t hint = at;
	BISECT_FROM(at, hint, k->ahead_len, k->ahead[at].start <= t);
	k->iv = k->ahead[at - 1];
	k->ahead_pos = (unsigned)at;
}

/* Drops the intervals before the slice. Returns true if the cursor can read on in the slice. */
static bool track_keep_slice(struct resolver *r, struct row_track *k)
{
	size_t first = 0;
	if (!track_has(k, r->hold_from))
		return false;
	BISECT(first, k->ahead_len, k->ahead[first].end < r->hold_from);
	k->ahead_len -= (unsigned)first;
	memmove(k->ahead, k->ahead + first, k->ahead_len * sizeof *k->ahead);
	return true;
}

/* Decodes all intervals of a track in the slice. If they are too many, no track is held any more in this slice. */
static int track_hold(struct resolver *r, struct row_track *k)
{
	int n = 1;
	if (k->holds)
		r->held -= k->ahead_len;
	else
		*ARRAY_PUSH(r->holder, r->holders, r->holder_cap) = k;
	k->holds = true;
	if (!track_keep_slice(r, k)) {
		k->ahead_len = 0;
		n = history_range(&k->cursor, r->catalog->h, k->attr, r->hold_from, r->t1, r->err) < 0 ? -1 : 1;
	}
	k->ahead_pos = 0;
	while (n > 0 && (!k->ahead_len || k->ahead[k->ahead_len - 1].end < r->hold_to)) {
		if (k->ahead_len == k->ahead_cap) {
			k->ahead_cap = k->ahead_cap ? 2 * k->ahead_cap : READ_AHEAD_MIN;
			k->ahead = mem_resize(k->ahead, k->ahead_cap, sizeof *k->ahead);
		}
		n = history_range_read(&k->cursor, k->ahead + k->ahead_len, k->ahead_cap - k->ahead_len, r->err);
		k->ahead_len += n > 0 ? (unsigned)n : 0;
		n = r->held + k->ahead_len > r->held_max ? 0 : n;
	}
	r->held += k->ahead_len;
	if (r->held > r->held_max)
		r->hold_to = INT64_MIN;
	return n < 0 ? -1 : 0;
}

/* Moves to the interval that contains t if the track holds the slice, or can. Returns 1, 0 if not, -1 on error. */
static int track_move_held(struct resolver *r, struct row_track *k, int64_t t)
{
	if (!track_has(k, t) && t >= r->hold_from && t <= r->hold_to && track_hold(r, k) < 0)
		return -1;
	if (track_has(k, t)) {
		track_search(k, t);
		return 1;
	}
	if (k->holds)
		track_drop(r, k);
	return 0;
}

/* Moves to the interval that contains t, by reading on or by a seek, if that is not the next interval. */
static __attribute__((noinline)) int track_move_far(struct resolver *r, struct row_track *k, int64_t t)
{
	int there = 0;
	if (k->holds || (k->can_hold && t >= r->hold_from && t <= r->hold_to)) {
		there = track_move_held(r, k, t);
		if (there != 0)
			return there < 0 ? -1 : 0;
	}
	if (k->iv.start > k->iv.end)
		return track_seek(r, k, t);
	if (t < k->iv.start)
		there = track_back(k, t);
	else if (k->ahead_len)
		there = track_forward(r, k, t);
	return there < 0 ? -1 : there ? 0 : track_seek(r, k, t);
}

int track_move(struct resolver *r, struct row_track *k, int64_t t)
{
	const struct interval *iv = k->ahead + k->ahead_pos, *const end = k->ahead + k->ahead_len;
	for (int n = 0; n < NEAR && iv < end && t > k->iv.end; n++, iv++)
		if (t <= iv->end) {
			k->iv = *iv;
			k->ahead_pos = (unsigned)(iv + 1 - k->ahead);
			return 0;
		}
	return track_move_far(r, k, t);
}

int track_prev(struct resolver *r, struct row_track *k, int64_t t, uint64_t mask, struct interval *iv)
{
	if ((t > k->iv.end || t < k->iv.start) && track_move(r, k, t) < 0)
		return -1;
	for (unsigned i = k->ahead_pos; i > 1; i--)
		if (state_is_in(mask, k->ahead[i - 2].value)) {
			*iv = k->ahead[i - 2];
			return 1;
		}
	return history_prev(r->catalog->h, k->attr, k->ahead_len ? k->ahead[0].start : t, mask, iv, r->err);
}

struct cpu_tracks *resolver_cpu_new(struct resolver *r, uint32_t cpu)
{
	const struct catalog_cpu *attrs = &r->catalog->cpu[cpu];
	struct cpu_tracks *c = r->cpu[cpu] = mem_new(1, sizeof *c);
	c->lower_number = c->vcpu_tid = HISTORY_NULL;
	c->lower_cpu = -1;
	track_init(&c->status, attrs->status);
	track_init(&c->running, attrs->current);
	track_init(&c->interrupt, attrs->interrupt);
	track_init(&c->host_thread, attrs->host_thread);
	track_init(&c->pcpu, attrs->pcpu);
	track_init(&c->exit, attrs->exit);
	track_init(&c->out_by, attrs->out_by);
	track_init(&c->khz, attrs->khz);
	c->status.can_hold = c->running.can_hold = c->interrupt.can_hold = c->host_thread.can_hold = c->pcpu.can_hold =
		c->out_by.can_hold = true;
	char name[16];
	snprintf(name, sizeof name, "%sCPU%u", r->catalog->machine[attrs->machine].kind == MACHINE_VM ? "v" : "",
	         attrs->number);
	c->name = strtab_put(&r->names, name);
	return c;
}

struct thread_ref *resolver_thread_find(struct resolver *r, uint32_t machine, int32_t tid)
{
	bool is_new;
	struct thread_ref **recent = &r->recent[(uint32_t)tid % RECENT_THREADS];
	uint64_t *at = map_put(&r->thread_by_tid, (uint64_t)machine << 32 | (uint32_t)tid, &is_new);
	if (!is_new)
		return *recent = r->thread[*at];
	*at = r->threads_len;
	struct thread_ref *w = *ARRAY_PUSH(r->thread, r->threads_len, r->threads_cap) = mem_new(1, sizeof *w);
	w->thread = catalog_find_thread(r->catalog, machine, tid);
	w->machine = (int32_t)machine;
	w->tid = tid;
	w->cpu_number = HISTORY_NULL;
	w->cpu = -1;
	w->name_value = w->woken_in = HISTORY_NULL;
	w->name_id = tid == 0 && !r->shallow ? r->swapper : 0;
	track_init(&w->name, tid == 0 || r->shallow || w->thread < 0 ? HISTORY_NONE : r->catalog->thread[w->thread].name);
	if (r->catalog->machine[machine].kind == MACHINE_CONTAINER)
		return w;
	for (uint32_t m = r->catalog->machines; m-- > 0 && r->catalog->machine[m].kind == MACHINE_CONTAINER;) {
		const bool has = r->catalog->machine[m].whole == (int32_t)machine && catalog_find_thread(r->catalog, m, tid) >= 0;
		struct thread_ref *container = has ? resolver_thread(r, m, tid) : NULL;
		if (container) {
			container->in_container = w->in_container;
			w->in_container = container;
		}
	}
	return w;
}

struct row_track *thread_tracks_new(struct resolver *r, struct thread_ref *w)
{
	w->tracks = mem_new(TRACK_COUNT, sizeof *w->tracks);
	const struct catalog_thread *th = w->thread < 0 ? NULL : &r->catalog->thread[w->thread];
	track_init(&w->tracks[TRACK_STATUS], th ? th->status : HISTORY_NONE);
	track_init(&w->tracks[TRACK_CPU], th ? th->cpu : HISTORY_NONE);
	track_init(&w->tracks[TRACK_WAKER], th ? th->woken_by : HISTORY_NONE);
	track_init(&w->tracks[TRACK_WOKEN_IN], th ? th->woken_in : HISTORY_NONE);
	track_init(&w->tracks[TRACK_OUT_BY], th ? th->out_by : HISTORY_NONE);
	return w->tracks;
}

uint32_t resolver_name_id(struct resolver *r, int64_t value)
{
	if (value == HISTORY_NULL)
		return 0;
	bool is_new;
	uint64_t *id = map_put(&r->name_by_string, (uint64_t)value, &is_new);
	if (is_new)
		*id = strtab_put(&r->names, history_string(r->catalog->h, value));
	return (uint32_t)*id;
}

bool resolver_waker(struct resolver *r, int64_t value, int32_t *machine, int32_t *tid)
{
	if (value == HISTORY_NULL)
		return false;
	uint32_t number = history_ref_number(value);
	if (history_ref_text(value) != r->last_waker_string) {
		bool is_new;
		uint64_t *known = map_put(&r->machine_by_string, (uint64_t)history_ref_text(value), &is_new);
		if (is_new)
			*known = (uint64_t)catalog_ref(r->catalog, value, &number);
		r->last_waker_string = history_ref_text(value);
		r->last_waker_machine = (int32_t)*known;
	}
	*machine = r->last_waker_machine;
	*tid = (int32_t)number;
	return *machine >= 0 && number <= INT32_MAX;
}

int resolve_lost(struct resolver *r, const struct target *target, int64_t t, bool *lost)
{
	int64_t status = HISTORY_NULL;
	int rc = 0;
	if (target->kind == TARGET_THREAD) {
		const struct catalog_thread *th = &r->catalog->thread[target->index];
		rc = track_at(r, &thread_tracks(r, resolver_thread(r, th->machine, th->tid))[TRACK_STATUS], t, &status);
	} else if (target->kind == TARGET_CPU &&
	           r->catalog->machine[r->catalog->cpu[target->index].machine].kind == MACHINE_VM) {
		rc = track_at(r, &resolver_cpu(r, target->index)->status, t, &status);
	}
	*lost = state_is_in(target->kind == TARGET_CPU ? r->catalog->vcpu_lost : r->catalog->thread_gap, status);
	return rc;
}

int resolve_walk(struct resolver *r, const struct target *target, int64_t from, int64_t to,
                 int (*fn)(void *arg, const struct resolution *p, int64_t start, int64_t end), void *arg)
{
	for (int64_t t = from;; t = r->until + 1) {
		struct resolution p;
		resolver_trim(r);
		r->until = to;
		if (resolve_target(r, target, t, &p) < 0)
			return -1;
		int stop = fn(arg, &p, t, r->until);
		if (stop || r->until >= to)
			return stop;
	}
}
