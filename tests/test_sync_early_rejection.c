/* sync/: a few of a guest's ends tell that a VM is not its own, and no more than that. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "sync/assign/guest_vm_match.h"
#include "sync_sim.h"

#define SECOND 1000000000LL

static void add(struct mark_list *l, uint64_t key, int64_t ts, enum sync_end end, uint16_t owner)
{
	mark_list_add(l, &(struct sync_mark){ key, ts, EVENT_ABSENT, -1, (uint16_t)end, owner });
}

static bool has_key(const struct mark_list *l, uint64_t key)
{
	for (size_t i = 0; i < l->len; i++)
		if (l->mark[i].key == key)
			return true;
	return false;
}

static void release(struct mark_list *guest, struct mark_list *host, struct mark_list *few)
{
	mark_list_release(guest);
	mark_list_release(host);
	mark_list_release(few);
}

/* The pairs that they make are those that the whole list makes of their keys, whichever of them come again; the key of a
 * pair is in its time here. */
static void test_same_pairs(void **state)
{
	(void)state;
	uint64_t r = 1;
	for (int round = 0; round < 50; round++) {
		struct mark_list guest = { 0 }, host = { 0 }, few;
		struct pair_list all = { 0 }, some = { 0 };
		const uint64_t keys = round % 2 ? 4000 : 300;
		for (int64_t i = 0; i < 2000; i++) {
			const uint64_t key = sim_random(&r) % keys;
			if (sim_random(&r) % 8)
				add(&guest, key, i * 10000 + (int64_t)key, SYNC_A, 0);
			if (sim_random(&r) % 8)
				add(&host, key, i * 10000 + (int64_t)key + 5, SYNC_B, 0);
		}
		mark_list_sort(&guest);
		mark_list_sort(&host);
		mark_list_few(&guest, 0, 2000 * 10000, 128, &few);
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
		release(&guest, &host, &few);
	}
}

/* What a guest sends every 10 ms reaches its VM within 20 us, but `wrong` of 100 lie by up to 200 ms.  Its clock jumps so
 * many times. */
struct sender { int wrong, jumps, ends, seed; };

static int64_t clock_of(const struct sender *s, int64_t host, int64_t span)
{
	return host + (s->jumps ? host / (span / (s->jumps + 1) + 1) * 70000000 : 0);
}

static void send_all(const struct sender *s, uint16_t owner, bool own, struct mark_list *guest, struct mark_list *host)
{
	uint64_t r = 7 + owner + 16 * (uint64_t)s->seed;
	for (int64_t i = 0; i < s->ends; i++) {
		/* Another VM's is as regular, but its own. */
		const int64_t at = i * 10000000 + (own ? 0 : (int64_t)(sim_random(&r) % 9000000));
		const int64_t late = (int64_t)(sim_random(&r) % 100) < s->wrong ? -(int64_t)(sim_random(&r) % 200000000) :
			(int64_t)(sim_random(&r) % 20000);
		const bool up = i % 2;
		add(host, (uint64_t)i, at + (up ? late : -late), up ? SYNC_B : SYNC_C, owner);
		if (own)
			add(guest, (uint64_t)i, clock_of(s, at, s->ends * 10000000LL), up ? SYNC_A : SYNC_D, 0);
	}
}

static void check(const struct sender *s)
{
	struct error err = ERROR_INIT;
	struct host_view host = { .begin = 0, .end = 10000 * SECOND };
	struct guest_view guest = { .begin = 0, .end = 10000000LL * s->ends };
	for (uint16_t owner = 1; owner <= 3; owner++)
		send_all(s, owner, owner == 2, &guest.marks, &host.marks);
	mark_list_sort(&host.marks);
	mark_list_sort(&guest.marks);
	guest_view_thin(&guest, 0);
	for (uint16_t owner = 1; owner <= 3; owner++) {
		struct match m = { 0 };
		const struct vm_view vm = { .owners = { { owner, 0 } } };
		assert_int_equal(match_events(&host, &vm, &guest, &m, &err), 0);
		assert_int_equal(m.postponed, owner != 2);
		assert_true(owner != 2 || m.h.pairs == (uint64_t)s->ends);
		assert_int_equal(match_agrees(&m), owner == 2);
		if (owner != 2) {
			const uint64_t estimate = m.h.used;
			struct pair_list room = m.events;
			match_release(&(struct match){ .view = m.view });
			m = (struct match){ .events = room };
			struct guest_view whole = guest;
			whole.few[0].len = whole.few[1].len = 0;
			assert_int_equal(match_events(&host, &vm, &whole, &m, &err), 0);
			assert_true(m.postponed && llabs((long long)(estimate - m.h.used)) < s->ends / 5);
		}
		match_release(&m);
	}
	mark_list_release(&host.marks);
	guest_view_release(&guest);
}

static void test_tells(void **state)
{
	(void)state;
	static const struct sender sender[] = {
		{ 0, 0, 60, 0 }, { 0, 0, 200, 0 }, { 0, 0, 3000, 0 }, { 3, 0, 3000, 0 }, { 0, 20, 6000, 0 }, { 3, 20, 6000, 0 },
	};
	for (size_t i = 0; i < COUNT(sender); i++)
		check(&sender[i]);
	/* Among a few more may lie than among all. */
	for (int seed = 0; seed < 20; seed++)
		check(&(struct sender){ 8, 0, 3000, seed });
}

/* Of its own VM's keys the host shows few among these, one of which lies, and more of the others. */
static void test_tells_not(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	struct host_view host = { .begin = 0, .end = 10000 * SECOND };
	struct guest_view guest = { .begin = 0, .end = 10000000LL * 3000 };
	struct match m = { 0 };
	const struct vm_view vm = { .owners = { { 1, 0 } } };
	for (int64_t i = 0; i < 3000; i++)
		add(&guest.marks, (uint64_t)i, i * 10000000, i % 2 ? SYNC_A : SYNC_D, 0);
	mark_list_sort(&guest.marks);
	guest_view_thin(&guest, 0);
	for (int64_t i = 0, n = 0, others = 0; i < 3000; i++) {
		const bool is_few = has_key(&guest.few[1], (uint64_t)i);
		if (is_few ? n++ >= 4 : others++ >= 200)
			continue;
		const int64_t late = is_few && n == 3 ? -50000000 : 1000;
		add(&host.marks, (uint64_t)i, i * 10000000 + (i % 2 ? late : -late), i % 2 ? SYNC_B : SYNC_C, 1);
	}
	mark_list_sort(&host.marks);
	assert_int_equal(match_events(&host, &vm, &guest, &m, &err), 0);
	assert_false(m.postponed);
	assert_true(match_agrees(&m));
	assert_int_equal(m.h.pairs, 204);
	match_release(&m);
	mark_list_release(&host.marks);
	guest_view_release(&guest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_pairs), cmocka_unit_test(test_tells), cmocka_unit_test(test_tells_not),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
