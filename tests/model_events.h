/* Hand-made events of a host and one guest, fed to a model that records its changes. */
#pragma once

#include "model_rec.h"

/* Strings of the hand-made events; the id is the index. */
static const char *const names[] = {
	"", "init", "bash", "CPU 0/KVM", "burnP6", "/usr/bin/fibonacci-sum-long", "fibonacci", "virtio0", "nginx",
	    "migration/0",
	"migration/1",
};
enum { NO_NAME, INIT, BASH, VCPU0, BURN, FILE_NAME, FIB, VIRTIO, NGINX, STOPPER, STOPPER1 };

static const char *name_of(const void *of, int64_t id)
{
	(void)of;
	return id >= 0 && id < (int64_t)COUNT(names) ? names[id] : "";
}

#define DEBIAN "/Virtual Machines/Debian"
#define VCPU DEBIAN "/CPUs/CPU0/Status"

static struct rec rec;
static struct model *model;

/* Makes a host and the guest Debian with vCPU 0 run by host thread 154 of process 151. */
__attribute__((unused))
static void setup_full(bool host, bool kvm, bool guest, bool paper)
{
	static const struct sync_vcpu vcpu[] = { { 0, 154, VCPU_BY_NAME, false } };
	struct machine_setup setup[] = {
		{ .name = "host", .parent = -1, .traced = host, .has_entries = kvm, .host_pid = -1, .names = { name_of, NULL } },
		{ .name = "Debian", .parent = 0, .traced = guest, .host_pid = host ? 151 : -1, .vcpu = vcpu,
		  .vcpus = host ? 1 : 0, .names = { name_of, NULL } },
	};
	rec_init(&rec);
	model = model_new(setup, COUNT(setup), paper, &rec_ops, &rec, NULL);
	assert_non_null(model);
	if (host)
		assert_int_equal(model_begin(model, 0, 0, NULL, NULL), 0);
	if (guest)
		assert_int_equal(model_begin(model, 1, 0, NULL, NULL), 0);
}

__attribute__((unused))
static void teardown(void)
{
	model_free(model);
	rec_release(&rec);
}

__attribute__((unused))
static struct event event(int64_t t, uint16_t kind, uint16_t cpu, int32_t tid)
{
	struct event ev = { .ts = t, .kind = kind, .cpu = cpu, .tid = tid, .pid = -1 };
	for (size_t i = 0; i < COUNT(ev.arg); i++)
		ev.arg[i] = EVENT_ABSENT;
	return ev;
}

__attribute__((unused))
static void feed(uint32_t machine, struct event ev)
{
	assert_int_equal(model_feed(model, machine, ev.ts, &ev, NULL), 0);
}

__attribute__((unused))
static void sw(uint32_t machine, int64_t t, uint16_t cpu, int32_t prev, enum run_state state, int32_t next)
{
	struct event ev = event(t, EV_SWITCH, cpu, prev);
	ev.sw.prev_tid = prev;
	ev.sw.prev_state = state;
	ev.sw.next_tid = next;
	feed(machine, ev);
}

__attribute__((unused))
static void wake(uint32_t machine, int64_t t, uint16_t cpu, int32_t by, int32_t tid, int target)
{
	struct event ev = event(t, EV_WAKEUP, cpu, by);
	ev.wake.tid = tid;
	ev.wake.target_cpu = target;
	feed(machine, ev);
}

__attribute__((unused))
static void simple(uint32_t machine, int64_t t, enum event_kind kind, uint16_t cpu, int32_t tid)
{
	feed(machine, event(t, (uint16_t)kind, cpu, tid));
}

__attribute__((unused))
static void expect(const char *path, int64_t t, int64_t value)
{
	int64_t is = rec_at(&rec, t, path);
	if (is != value)
		fail_msg("%s at %" PRId64 " is %" PRId64 ", not %" PRId64, path, t, is, value);
}
