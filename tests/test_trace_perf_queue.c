/* The order that the queue of perf's events restores, with rounds and without, below and above its limit. */
#include "trace/perf/perf_queue.h"

#include "test.h"

enum { CPUS = 4, EVENTS = 5000 };

struct checking_sink {
	struct event_sink sink;
	int64_t last[CPUS];      /* time of the last event of each stream */
	uint64_t events, lost, unordered;
	uint32_t current, streams;
	int64_t lost_begin, lost_end;
};

static int put(struct event_sink *o, const struct event *ev)
{
	struct checking_sink *s = (struct checking_sink *)o;
	s->unordered += ev->ts < s->last[s->current];
	s->last[s->current] = ev->ts > s->last[s->current] ? ev->ts : s->last[s->current];
	*(ev->kind == EV_LOST ? &s->lost : &s->events) += 1;
	if (ev->kind == EV_LOST) {
		s->lost_begin = ev->ts;
		s->lost_end = ev->lost.end;
	}
	return 0;
}

static int select_stream(struct event_sink *o, uint32_t number, uint64_t order)
{
	struct checking_sink *s = (struct checking_sink *)o;
	assert_true(number <= s->streams && number < CPUS && order < CPUS);
	s->streams += number == s->streams;
	s->current = number;
	return 0;
}

static const struct event_sink_ops ops = { put, select_stream, NULL, NULL, NULL };

static struct event at(int64_t ts, unsigned cpu)
{
	return (struct event){ .ts = ts, .kind = EV_OTHER, .cpu = (uint16_t)cpu };
}

/* In each round, every CPU adds events of the same interval of time, in a random order. */
static void test_rounds(void **state)
{
	(void)state;
	for (unsigned seed = 0; seed < 20; seed++) {
		struct checking_sink s = { .sink = { .ops = &ops } };
		struct perf_queue q;
		srand(seed);
		perf_queue_open(&q, &s.sink);
		for (int64_t n = 0, begin = 1; n < EVENTS; begin += 1000) {
			for (unsigned cpu = 0; cpu < CPUS; cpu++)
				for (int i = rand() % 50; i > 0; i--, n++) {
					const struct event ev = at(begin + rand() % 1000, cpu);
					assert_int_equal(perf_queue_put(&q, &ev), 0);
				}
			assert_int_equal(perf_queue_end_round(&q), 0);
			assert_true(q.len < 2 * 50 * CPUS);
		}
		const uint64_t queued = q.order;
		assert_int_equal(perf_queue_close(&q), 0);
		assert_int_equal(s.events, queued);
		assert_int_equal(s.unordered, 0);
	}
}

/* Without rounds, newest first: sorted up to the limit of the queue; beyond it, no event is dropped. */
static void test_reversed(void **state)
{
	(void)state;
	for (int64_t n = PERF_QUEUE_MAX; n <= 3 * PERF_QUEUE_MAX; n += PERF_QUEUE_MAX) {
		struct checking_sink s = { .sink = { .ops = &ops } };
		struct perf_queue q;
		perf_queue_open(&q, &s.sink);
		for (int64_t i = n; i > 0; i--) {
			const struct event ev = at(i, (unsigned)(i % CPUS));
			assert_int_equal(perf_queue_put(&q, &ev), 0);
			assert_true(q.len <= PERF_QUEUE_MAX);
		}
		assert_int_equal(perf_queue_close(&q), 0);
		assert_int_equal(s.events, n);
		assert_true((s.unordered == 0) == (n == PERF_QUEUE_MAX));
	}
}

/* A loss begins after the last event that was stored before it, and ends at its record or at an earlier next event. */
static void test_losses(void **state)
{
	(void)state;
	static const struct { int64_t record, next, begin, end; } cases[] = {
		{ 50, 60, 11, 50 }, { 50, 40, 11, 40 }, { INT64_MIN, 40, 11, 40 }, { 50, 5, 5, 5 },
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct checking_sink s = { .sink = { .ops = &ops } };
		struct perf_queue q;
		const struct event first = at(10, 0), next = at(cases[i].next, 0);
		perf_queue_open(&q, &s.sink);
		assert_int_equal(perf_queue_put(&q, &first), 0);
		perf_queue_lose(&q, 0, cases[i].record, 3);
		assert_int_equal(perf_queue_put(&q, &next), 0);
		assert_int_equal(perf_queue_close(&q), 0);
		assert_int_equal(s.lost, 1);
		assert_int_equal(s.lost_begin, cases[i].begin);
		assert_int_equal(s.lost_end, cases[i].end);
	}
}

/* Events that perf records for threads are passed on after the first sample of their CPU only. */
static void test_sideband(void **state)
{
	(void)state;
	struct checking_sink s = { .sink = { .ops = &ops } };
	struct perf_queue q;
	const struct event early = at(5, 0), sample = at(10, 0), late = at(15, 0), other = at(12, 1);
	perf_queue_open(&q, &s.sink);
	assert_int_equal(perf_queue_put_sideband(&q, &late), 0);
	assert_int_equal(perf_queue_put_sideband(&q, &early), 0);
	assert_int_equal(perf_queue_put_sideband(&q, &other), 0);
	assert_int_equal(perf_queue_put(&q, &sample), 0);
	assert_int_equal(perf_queue_close(&q), 0);
	assert_int_equal(s.events, 2);
	assert_int_equal(s.last[0], 15);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rounds),
		cmocka_unit_test(test_reversed),
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_sideband),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
