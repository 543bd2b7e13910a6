/* A sample of a guest's sync events is enough to reject a foreign VM, and never rejects the right VM. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "sync/assign/guest_vm_match.h"
#include "sync_sim.h"

#define SECOND 1000000000LL

static void add_event(struct sync_event_set *l, uint64_t key, int64_t ts, enum sync_end end, uint16_t owner)
{
	sync_event_set_add(l, &(struct sync_event){ key, ts, EVENT_ABSENT, -1, (uint16_t)end, owner });
}

static bool has_key(const struct sync_event_set *l, uint64_t key)
{
	for (size_t i = 0; i < l->len; i++)
		if (l->event[i].key == key)
			return true;
	return false;
}

static void release_sets(struct sync_event_set *guest, struct sync_event_set *host, struct sync_event_set *few)
{
	sync_event_set_release(guest);
	sync_event_set_release(host);
	sync_event_set_release(few);
}

/* For its keys the sample yields the same pairs as the whole set, even if keys occur repeatedly; here the key of a pair
 * depends on its time. */
static void test_same_pairs(void **state)
{
	(void)state;
	uint64_t r = 1;
	for (int round = 0; round < 50; round++) {
		struct sync_event_set guest = { 0 }, host = { 0 }, few;
		struct pair_list all = { 0 }, some = { 0 };
		const uint64_t keys = round % 2 ? 4000 : 300;
		for (int64_t i = 0; i < 2000; i++) {
			const uint64_t key = sim_random(&r) % keys;
			if (sim_random(&r) % 8)
				add_event(&guest, key, i * 10000 + (int64_t)key, SYNC_A, 0);
			if (sim_random(&r) % 8)
				add_event(&host, key, i * 10000 + (int64_t)key + 5, SYNC_B, 0);
		}
		sync_event_set_sort(&guest);
		sync_event_set_sort(&host);
		sync_event_set_sample(&guest, 0, 2000 * 10000, 128, &few);
		assert_true(few.len > 0 && (round % 2 == 0 || few.len < guest.len / 4));
		pairs_match(&guest, &host, NULL, &all);
		pairs_match(&few, &host, NULL, &some);
		size_t n = 0;
		for (size_t i = 0; i < all.len; i++) {
			if (!has_key(&few, (uint64_t)all.pair[i].x % 10000))
				continue;
			assert_true(n < some.len);
			assert_int_equal(some.pair[n].x, all.pair[i].x);
			assert_int_equal(some.pair[n++].y, all.pair[i].y);
		}
		assert_int_equal(n, some.len);
		pairs_release(&all);
		pairs_release(&some);
		release_sets(&guest, &host, &few);
	}
}

/* A guest that sends a message every 10 ms, which reaches its VM within 20 us; `wrong` of 100 messages are off by up to
 * 200 ms. Its clock steps `jumps` times. */
struct sender { int wrong, jumps, ends, seed; };

static int64_t clock_of(const struct sender *s, int64_t host, int64_t span)
{
	return host + (s->jumps ? host / (span / (s->jumps + 1) + 1) * 70000000 : 0);
}

static void send_all(const struct sender *s, uint16_t owner, bool own, struct sync_event_set *guest,
                     struct sync_event_set *host)
{
	uint64_t r = 7 + owner + 16 * (uint64_t)s->seed;
	for (int64_t i = 0; i < s->ends; i++) {
		/* another VM's events are as regular */
		const int64_t at = i * 10000000 + (own ? 0 : (int64_t)(sim_random(&r) % 9000000));
		const int64_t late = (int64_t)(sim_random(&r) % 100) < s->wrong ? -(int64_t)(sim_random(&r) % 200000000) :
			(int64_t)(sim_random(&r) % 20000);
		const bool up = i % 2;
		add_event(host, (uint64_t)i, at + (up ? late : -late), up ? SYNC_B : SYNC_C, owner);
		if (own)
			add_event(guest, (uint64_t)i, clock_of(s, at, s->ends * 10000000LL), up ? SYNC_A : SYNC_D, 0);
	}
}

static void check_sender(const struct sender *s)
{
	struct error err = ERROR_INIT;
	struct host_timeline host = { .begin = 0, .end = 10000 * SECOND };
	struct guest_view guest = { .begin = 0, .end = 10000000LL * s->ends };
	for (uint16_t owner = 1; owner <= 3; owner++)
		send_all(s, owner, owner == 2, &guest.sync_events, &host.sync_events);
	sync_event_set_sort(&host.sync_events);
	sync_event_set_sort(&guest.sync_events);
	guest_view_thin(&guest, 0);
	for (uint16_t owner = 1; owner <= 3; owner++) {
		struct match m = { 0 };
		const struct vm_candidate vm = { .owners = { { owner, 0 } } };
		assert_int_equal(match_events(&host, &vm, &guest, &m, &err), 0);
		assert_int_equal(m.postponed, owner != 2);
		assert_true(owner != 2 || m.candidate.pairs == (uint64_t)s->ends);
		assert_int_equal(match_agrees(&m), owner == 2);
		if (owner != 2) {
			const uint64_t estimate = m.candidate.inliers;
			struct pair_list tolerance = m.events;
			match_release(&(struct match){ .view = m.view });
			m = (struct match){ .events = tolerance };
			struct guest_view whole = guest;
			whole.sample[0].len = whole.sample[1].len = 0;
			assert_int_equal(match_events(&host, &vm, &whole, &m, &err), 0);
			assert_true(m.postponed && llabs((long long)(estimate - m.candidate.inliers)) < s->ends / 5);
		}
		match_release(&m);
	}
	sync_event_set_release(&host.sync_events);
	guest_view_release(&guest);
}

static void test_tells(void **state)
{
	(void)state;
	static const struct sender sender[] = {
		{ 0, 0, 60, 0 }, { 0, 0, 200, 0 }, { 0, 0, 3000, 0 }, { 3, 0, 3000, 0 }, { 0, 20, 6000, 0 }, { 3, 20, 6000, 0 },
	};
	for (size_t i = 0; i < COUNT(sender); i++)
		check_sender(&sender[i]);
	/* a sample of few pairs may have a greater share of wrong pairs than the whole set */
	for (int seed = 0; seed < 20; seed++)
		check_sender(&(struct sender){ 8, 0, 3000, seed });
}

/* The host contains few of the sampled keys, one of them wrong, and more of the other keys. */
static void test_inconclusive(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	struct host_timeline host = { .begin = 0, .end = 10000 * SECOND };
	struct guest_view guest = { .begin = 0, .end = 10000000LL * 3000 };
	struct match m = { 0 };
	const struct vm_candidate vm = { .owners = { { 1, 0 } } };
	for (int64_t i = 0; i < 3000; i++)
		add_event(&guest.sync_events, (uint64_t)i, i * 10000000, i % 2 ? SYNC_A : SYNC_D, 0);
	sync_event_set_sort(&guest.sync_events);
	guest_view_thin(&guest, 0);
	for (int64_t i = 0, n = 0, others = 0; i < 3000; i++) {
		const bool is_few = has_key(&guest.sample[1], (uint64_t)i);
		if (is_few ? n++ >= 4 : others++ >= 200)
			continue;
		const int64_t late = is_few && n == 3 ? -50000000 : 1000;
		add_event(&host.sync_events, (uint64_t)i, i * 10000000 + (i % 2 ? late : -late), i % 2 ? SYNC_B : SYNC_C, 1);
	}
	sync_event_set_sort(&host.sync_events);
	assert_int_equal(match_events(&host, &vm, &guest, &m, &err), 0);
	assert_false(m.postponed);
	assert_true(match_agrees(&m));
	assert_int_equal(m.candidate.pairs, 204);
	match_release(&m);
	sync_event_set_release(&host.sync_events);
	guest_view_release(&guest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_pairs), cmocka_unit_test(test_tells), cmocka_unit_test(test_inconclusive),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
