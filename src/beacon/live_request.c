/* srbn_read(): the counters of requests in the running service.
 *
 * A request is a sequence of segments, one between each two marks; each belongs to the thread of the first of them. The
 * counters of a segment are the difference of two reads. `flight` sums all segments, `own` those between start or resume
 * and yield or end: these are the upper and the lower bound of latency/attribution.c.
 *
 * The last 8192 requests of the process are kept in a table without locks. The id of a slot serves as its sequence number:
 * ids do not repeat. */
#include "beacon/live_counters.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"

#define SLOTS 8192
#define CHANGING 1  /* id of a slot that changes; no request has it */

enum { REQUEST_RUNNING, REQUEST_YIELDED, REQUEST_ENDED };

struct timeline {
	int state;
	int64_t start, end;        /* end: of the last segment */
	int64_t executing;
	struct mark_thread *thread;  /* of the current segment */
	uint64_t generation;
	struct live_counters at;   /* at the begin of the current segment */
	int64_t own[PUBLISHED_COUNTERS], flight[PUBLISHED_COUNTERS];
	int64_t own_lag, flight_lag, max_lag;
	uint32_t source, flags;
};

static struct {
	_Atomic bool on;
	struct { _Atomic srbn_t id; struct timeline t; } slot[SLOTS];
} live;

bool live_is_on(void)
{
	return atomic_load_explicit(&live.on, memory_order_relaxed);
}

/* ---- Segments ----------------------------------------------------------------------------------------------- */

/* Adds two times. Counters of a publisher that lies may be too large: the sum wraps, and fill_data() limits the results. */
static int64_t add(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* Ends the current segment. *c: the counters of its thread now. */
static void close_segment(struct timeline *t, struct live_counters *c)
{
	const bool same = t->thread && live_thread_generation(t->thread) == t->generation;
	live_thread_read(same ? t->thread : NULL, t->at.source, c);
	const int64_t ns = c->now - t->at.now;
	const bool known = c->source != SRBN_SOURCE_NONE && c->source == t->at.source && c->session == t->at.session &&
	                   c->value[PUBLISHED_STOLEN] >= t->at.value[PUBLISHED_STOLEN];
	for (int k = 0; k < PUBLISHED_COUNTERS; k++) {
		const int64_t gained = known ? c->value[k] - t->at.value[k] : k == PUBLISHED_UNKNOWN ? ns : 0;
		t->flight[k] = add(t->flight[k], gained);
		t->own[k] = add(t->own[k], t->state == REQUEST_RUNNING ? gained : 0);
	}
	if (t->state == REQUEST_RUNNING) {
		t->executing += ns;
		t->own_lag += t->at.lag;
	}
	t->flight_lag += c->lag;
	t->max_lag = max64(t->max_lag, max64(c->lag, t->at.lag));
	t->flags |= t->at.flags | c->flags;
	t->source = t->at.source > t->source ? t->at.source : t->source;
	t->end = c->now;
}

static void open_segment(struct timeline *t, struct mark_thread *thread, const struct live_counters *closed)
{
	const int64_t now = closed ? closed->now : now_ns();
	const uint32_t source = live_thread_source(thread, now);
	if (closed && thread == t->thread && source == closed->source) {
		t->at = *closed;
		t->flight_lag -= closed->lag;
	} else {
		live_thread_read(thread, source, &t->at);
		t->at.now = closed ? now : t->at.now;
	}
	t->thread = thread;
	t->generation = live_thread_generation(thread);
}

void live_request_mark(srbn_t request, enum live_mark mark)
{
	const int saved = errno;
	struct timeline *t = &live.slot[request % SLOTS].t;
	_Atomic srbn_t *id = &live.slot[request % SLOTS].id;
	struct live_counters c;
	if (mark == LIVE_START) {
		atomic_store_explicit(id, CHANGING, memory_order_relaxed);
		atomic_thread_fence(memory_order_release);
		memset(t, 0, sizeof *t);
		open_segment(t, live_thread_self(), NULL);
		t->start = t->at.now;
		atomic_store_explicit(id, request, memory_order_release);
	} else if (atomic_load_explicit(id, memory_order_acquire) == request && t->state != REQUEST_ENDED) {
		close_segment(t, &c);
		t->state = mark == LIVE_RESUME ? REQUEST_RUNNING : mark == LIVE_YIELD ? REQUEST_YIELDED : REQUEST_ENDED;
		if (mark != LIVE_END)
			open_segment(t, live_thread_self(), &c);
	}
	errno = saved;
}

void live_forget_parent(void)
{
	if (!live_is_on())
		return;
	live_thread_forget_parent();
	live_page_forget_parent();
}

/* ---- Answers ------------------------------------------------------------------------------------------------ */

static int64_t limit(int64_t ns, int64_t high)
{
	return ns < 0 ? 0 : min64(ns, high);
}

static void fill_data(const struct timeline *t, struct srbn_data *data)
{
	const int64_t latency = t->end - t->start;
	const bool mixed = t->flags & SRBN_WAITS_MIXED;
	const bool shared = t->source == SRBN_SOURCE_SHARED, guest = shared || t->source == SRBN_SOURCE_GUEST;
	const int64_t unknown = limit(t->flight[PUBLISHED_UNKNOWN], latency);
	const int64_t high = add(add(t->flight[PUBLISHED_STOLEN], t->flight[PUBLISHED_MIXED]), t->flight[PUBLISHED_UNKNOWN]);
	*data = (struct srbn_data){
		.latency_ns = latency,
		.executing_ns = t->executing,
		.stolen_high_ns = limit(add(high, t->flight_lag), latency),
		.throttled_ns = mixed || (guest && !shared) ? -1 : limit(t->flight[PUBLISHED_THROTTLED], latency),
		.wait_ns = mixed ? -1 : limit(t->flight[PUBLISHED_WAIT], latency),
		.blocked_ns = mixed || shared ? -1 : limit(t->flight[PUBLISHED_BLOCKED], latency),
		.unknown_ns = unknown,
		.predicted_ns = -1, .predicted_low_ns = -1, .predicted_high_ns = -1,
		.resolution_ns = t->max_lag,
		.source = t->source,
		.flags = t->flags | (unknown ? SRBN_PARTIAL : 0) | (t->state == REQUEST_ENDED ? 0 : SRBN_OPEN),
	};
	data->stolen_low_ns = limit(add(t->own[PUBLISHED_STOLEN], -t->own_lag), data->stolen_high_ns);
	const double seconds = latency > 0 ? (double)latency / 1e9 : 1;
	const double hidden = mixed || shared || t->source == SRBN_SOURCE_NONE ? NAN : 0;
	const double input[LIVE_INPUTS] = {
		[LIVE_OUT_OWN] = hidden + (double)t->own[PUBLISHED_STOLEN],
		[LIVE_OUT_FLIGHT] = hidden + (double)t->flight[PUBLISHED_STOLEN],
		[LIVE_VMM] = guest ? NAN : hidden,
		[LIVE_WAIT] = hidden + (double)t->flight[PUBLISHED_WAIT],
		[LIVE_BLOCKED] = hidden + (double)t->flight[PUBLISHED_BLOCKED],
		[LIVE_SWITCHES] = guest ? NAN : hidden + (double)t->flight[PUBLISHED_SWITCHES] / seconds,
		[LIVE_EXITS] = guest ? NAN : hidden,
		[LIVE_WAKEUPS] = hidden + (double)t->flight[PUBLISHED_WAKEUPS] / seconds,
	};
	live_model_predict(input, data);
}

int srbn_read(srbn_t request, struct srbn_data *data)
{
	if (!live_is_on()) {
		atomic_store(&live.on, true);
		errno = EAGAIN;
		return -1;
	}
	_Atomic srbn_t *id = &live.slot[request % SLOTS].id;
	if (request > CHANGING && atomic_load_explicit(id, memory_order_acquire) == request) {
		struct timeline t = live.slot[request % SLOTS].t;
		atomic_thread_fence(memory_order_acquire);
		if (atomic_load_explicit(id, memory_order_relaxed) == request) {
			struct live_counters c;
			const int saved = errno;
			if (t.state != REQUEST_ENDED)
				close_segment(&t, &c);
			fill_data(&t, data);
			if (data->stolen_high_ns > 0)
				live_shared_culprit((unsigned)sched_getcpu(), t.end, data->culprit);
			errno = saved;
			return 0;
		}
	}
	errno = ENOENT;
	return -1;
}

int srbn_live(const char *path)
{
	const int saved = errno;
	live_page_set_path(path);
	atomic_store(&live.on, true);
	const uint32_t source = live_thread_wait();
	errno = saved;
	return (int)source;
}
