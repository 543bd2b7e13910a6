/* Helpers for the tests of model/inference/vcpu_throttling.c: one vCPU, thread 154, on a CPU of the host; times in ms. */
#pragma once

#include "model_events.h"

#define MS 1000000
#define OUT_BY DEBIAN "/CPUs/CPU0/Out By"

/* Switches to a thread of that nice level. */
__attribute__((unused))
static void to(double t, int32_t prev, enum run_state state, int32_t next, int64_t nice)
{
	struct event ev = event((int64_t)(t * MS), EV_SWITCH, 0, prev);
	ev.sw.prev_tid = prev;
	ev.sw.prev_state = state;
	ev.sw.next_tid = next;
	ev.sw.next_prio = nice;
	feed(0, ev);
}

__attribute__((unused))
static void at(double t, int64_t why)
{
	expect(OUT_BY, (int64_t)(t * MS), why);
}

__attribute__((unused))
static void begin(void)
{
	setup_full(true, true, true, false);
	to(1, 0, RUN_RUNNABLE, 154, 0);
}

/* A traced host, and an untraced guest with these vCPUs. */
__attribute__((unused))
static void begin_with(const struct sync_vcpu *vcpu, size_t vcpus)
{
	struct machine_setup setup[] = {
		{ .name = "host", .parent = -1, .traced = true, .has_entries = true, .host_pid = -1, .names = { name_of, NULL } },
		{ .name = "Debian", .parent = 0, .host_pid = 151, .vcpu = vcpu, .vcpus = vcpus, .names = { name_of, NULL } },
	};
	rec_init(&rec);
	model = model_new(setup, COUNT(setup), false, &rec_ops, &rec, NULL);
	assert_int_equal(model_begin(model, 0, 0, NULL, NULL), 0);
}

__attribute__((unused))
static void expire(double t, int32_t current, int64_t timer)
{
	struct event ev = event((int64_t)(t * MS), EV_TIMER_ENTRY, 0, current);
	ev.timer.timer = timer;
	feed(0, ev);
	ev.kind = EV_TIMER_EXIT;
	ev.ts += 1000;
	feed(0, ev);
}
