/* How a corridor is narrowed by what a guest did, on windows made by hand: what is no pair, and what is one all the same. */
#include "test.h"

#include <stdlib.h>

#include "base/mem.h"
#include "sync/search/clock_candidate.h"

#define US 1000
#define WINDOWS 60
#define STAY (400 * US)

/* One vCPU, and the guest's clock is the host's. */
struct view {
	struct host_view host;
	struct vthread thread;
	struct view_vcpu vcpu;
	struct vm_view vm;
	struct activity_cpu cpu;
	struct activity act;
	int64_t end;
};

/* An event at the begin of each stay, and at its end. */
static void add_stay(struct view *v, int64_t from)
{
	*ARRAY_PUSH(v->thread.window, v->thread.windows, v->thread.window_cap) = (struct span){ from, from + STAY };
	*ARRAY_PUSH(v->cpu.ts, v->cpu.len, v->cpu.cap) = from + US;
	*ARRAY_PUSH(v->cpu.ts, v->cpu.len, v->cpu.cap) = from + STAY - US;
	v->end = from + STAY;
}

static void begin(struct view *v)
{
	*v = (struct view){ .thread = { .from = INT64_MIN, .to = INT64_MAX, .hint = -1 } };
}

/* Stays with pauses of so many ns between; in the middle third these are others. */
static void make(struct view *v, int64_t pause, int64_t other)
{
	begin(v);
	int64_t at = 1000 * US;
	for (int i = 0; i < WINDOWS; i++) {
		add_stay(v, at);
		at = v->end + (i / 20 == 1 ? other : pause);
	}
}

static struct seen seen_of(struct view *v)
{
	v->host = (struct host_view){ .thread = &v->thread, .threads = 1, .has_kvm = true, .begin = 0, .end = v->end + 1000 * US };
	v->vcpu = (struct view_vcpu){ .thread = 0, .number = 0 };
	v->vm = (struct vm_view){ .pid = 1, .comm = "", .vcpu = &v->vcpu, .vcpus = 1 };
	v->act = (struct activity){ .cpu = &v->cpu, .cpus = 1, .len = v->cpu.len, .begin = v->cpu.ts[0], .end = v->cpu.ts[v->cpu.len - 1] };
	return (struct seen){ &v->host, &v->vm, &v->act };
}

static void release(struct view *v)
{
	free(v->thread.window);
	free(v->thread.blind);
	free(v->cpu.ts);
}

/* Narrows a corridor of 2 us to both sides of a clock that is off by so much: does the one that is found hold the true one,
 * all along, and as one line? */
static bool finds(struct view *v, int64_t off)
{
	const struct seen seen = seen_of(v);
	const struct guess guess = { .at_guest = v->act.begin, .at_host = v->act.begin + off };
	struct hypothesis h, near;
	hypothesis_begin(&h, &guess, (struct segment){ v->act.begin, v->act.end });
	hypothesis_near(&near, &h, &v->act, 0, 2 * US);
	hypothesis_test(&near, &seen);
	bool right = near.clock.pieces == 1;
	for (int64_t t = v->act.begin; t <= v->act.end; t += 100 * US) {
		int64_t low, high;
		right = right && clock_map_bounds(&near.clock, t, &low, &high) && low <= t && t <= high;
	}
	hypothesis_release(&h);
	hypothesis_release(&near);
	return right;
}

/* A clock that is a little off is found all the same: what seems to happen just before a window belongs to it.  But not where
 * the one before is nearly as near. */
static void test_beside(void **state)
{
	(void)state;
	struct view v;
	make(&v, 300 * US, 300 * US);
	assert_true(finds(&v, -12 * US));
	assert_true(finds(&v, 12 * US));
	release(&v);
	make(&v, 300 * US, 20 * US);
	assert_true(finds(&v, -12 * US));
	assert_true(finds(&v, 12 * US));
	release(&v);
}

/* Nobody knows whether the vCPU was in guest mode while the host lost events: what happened then belongs to no window. */
static void test_blind(void **state)
{
	(void)state;
	struct view v;
	int64_t at = 1000 * US;
	begin(&v);
	for (int i = 0; i < WINDOWS; i++) {
		add_stay(&v, at);
		*ARRAY_PUSH(v.thread.blind, v.thread.blinds, v.thread.blind_cap) = (struct span){ v.end + US, v.end + 100 * US };
		*ARRAY_PUSH(v.cpu.ts, v.cpu.len, v.cpu.cap) = v.end + 8 * US;
		at = v.end + 300 * US;
	}
	assert_true(finds(&v, 0));
	release(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_beside), cmocka_unit_test(test_blind) };
	return cmocka_run_group_tests_name("sync narrow", tests, NULL, NULL);
}
