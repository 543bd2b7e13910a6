/* model_run(): reads traces with their clocks, writes a history. */
#include <unistd.h>

#include "base/states.h"
#include "model/state/clock_error_bound.h"
#include "model/loss/coverage.h"
#include "model/merge.h"
#include "model/model.h"
#include "model/sink_async.h"
#include "test.h"

static struct event event(int64_t t, uint16_t kind, uint16_t cpu, int32_t tid)
{
	struct event ev = { .ts = t, .kind = kind, .cpu = cpu, .tid = tid, .pid = -1 };
	for (size_t i = 0; i < COUNT(ev.arg); i++)
		ev.arg[i] = EVENT_ABSENT;
	return ev;
}

static struct event sw(int64_t t, uint16_t cpu, int32_t prev, enum run_state state, int32_t next)
{
	struct event ev = event(t, EV_SWITCH, cpu, prev);
	ev.sw.prev_tid = prev;
	ev.sw.prev_state = state;
	ev.sw.next_tid = next;
	ev.sw.prev_comm = prev ? 1 : EVENT_ABSENT;
	ev.sw.next_comm = next ? 1 : EVENT_ABSENT;
	return ev;
}

static const char *const strings[] = { "", "thread" };

static struct trace *make(const char *name, enum trace_role role, const struct event *ev, size_t n)
{
	struct trace *t = trace_from_events(name, role, ev, n, strings, COUNT(strings));
	assert_non_null(t);
	return t;
}

/* Order of the merge: equal times, a clock whose second segment overlaps the first, a trace without events. */
static void test_merge(void **state)
{
	const struct event h[] = { event(100, EV_EXIT, 0, 1), event(200, EV_VCPU_EXIT, 0, 1), event(300, EV_EXIT, 0, 1) };
	const struct event g[] = { event(1000, EV_EXIT, 0, 2), event(1100, EV_EXIT, 0, 2), event(1200, EV_EXIT, 0, 2) };
	/* guest 1000 -> 200, 1100 -> 300; from 1150 on 60 ns less: 1200 -> 340 */
	struct clock_segment piece[] = {
		{ .from = 0, .line = { 1000, 200, 0 } }, { .from = 1150, .line = { 1000, 140, 0 } },
	};
	struct clock_map clock = { .segment = piece, .segments = COUNT(piece) };
	static const struct { uint32_t machine; enum merge_kind what; int64_t t; } want[] = {
		{ 0, MERGE_BEGIN, 100 }, { 0, MERGE_EVENT, 100 }, { 0, MERGE_EVENT, 200 }, { 1, MERGE_BEGIN, 200 },
		{ 1, MERGE_EVENT, 200 }, { 0, MERGE_EVENT, 300 }, { 1, MERGE_EVENT, 300 }, { 0, MERGE_END, 301 },
		{ 1, MERGE_EVENT, 340 }, { 1, MERGE_END, 341 },
	};
	(void)state;
	struct trace *trace[] = { make("host", ROLE_HOST, h, COUNT(h)), make("guest", ROLE_GUEST, g, COUNT(g)),
	                          make("empty", ROLE_GUEST, NULL, 0) };
	const struct trace *from[] = { trace[0], trace[1], trace[2] };
	const struct clock_map *clocks[] = { NULL, &clock, &clock };
	struct error err = ERROR_INIT;
	for (unsigned round = 0; round < 4; round++) {
		struct merge m;
		const struct merge_step *s = NULL;
		const bool overlap = round > 1;
		if (overlap)  /* now the third event falls before the second event: its time is delayed */
			piece[1].line.ref_host = 60;
		struct ordered_jobs *ordered_jobs = ordered_jobs_begin(1 + round % 2);
		assert_int_equal(merge_open(&m, from, clocks, COUNT(from), ordered_jobs, &err), 0);
		for (size_t i = 0; i < COUNT(want); i++) {
			/* when overlapping, 340 and 341 become 300 and 301, the end of the host's trace comes after the event */
			size_t k = !overlap || i < 7 || i == 9 ? i : i == 7 ? 8 : 7;
			int64_t t = overlap && want[k].t > 301 ? want[k].t - 40 : want[k].t;
			assert_int_equal(merge_next(&m, &s, &err), 1);
			assert_int_equal(s->at.machine, want[k].machine);
			assert_int_equal(s->at.kind, want[k].what);
			assert_int_equal(s->at.t, t);
			if (s->at.kind == MERGE_END)
				assert_int_equal(s->at.others_remain, s->at.machine == 0 && !overlap);
		}
		assert_int_equal(merge_next(&m, &s, &err), 0);
		assert_int_equal(merge_last(&m), overlap ? 300 : 340);
		merge_close(&m);
		ordered_jobs_end(ordered_jobs);
	}
	for (size_t i = 0; i < COUNT(trace); i++)
		trace_free(trace[i]);
}

/* A clock set back at an unknown time: the events in that interval are skipped, and a loss on both CPUs replaces them.
 * Then any event shows the current thread, also events of kinds that change no attribute. */
static void test_set_back(void **state)
{
	const struct event g[] = { event(1000, EV_EXIT, 0, 2), event(1000, EV_EXIT, 1, 2), event(1099, EV_EXIT, 0, 2),
	                           event(1100, EV_EXIT, 0, 2), event(1130, EV_EXIT, 1, 2), event(1159, EV_EXIT, 0, 2),
	                           event(1160, EV_EXIT, 0, 2), event(1160, EV_OTHER, 1, 2) };
	struct clock_segment piece[] = {
		{ .from = 0, .line = { 1000, 200, 0 } },
		{ .from = 1120, .ambiguous_from = 1100, .ambiguous_to = 1160, .repeats = true, .line = { 1000, 300, 0 } },
		{ .ambiguous_from = INT64_MIN, .ambiguous_to = INT64_MAX, .repeats = true },  /* not of this clock */
	};
	struct clock_map clock = { .segment = piece, .segments = COUNT(piece) - 1 };
	static const struct { int64_t ts; enum event_kind kind; uint16_t cpu; } want[] = {
		{ 1000, EV_EXIT, 0 }, { 1000, EV_EXIT, 1 }, { 1099, EV_EXIT, 0 }, { 1100, EV_LOST, 0 }, { 1100, EV_LOST, 1 },
		{ 1160, EV_EXIT, 0 }, { 1160, EV_OTHER, 1 },
	};
	(void)state;
	struct trace *guest = make("guest", ROLE_GUEST, g, COUNT(g));
	const struct trace *from[] = { guest };
	const struct clock_map *clocks[] = { &clock };
	struct error err = ERROR_INIT;
	struct merge m;
	const struct merge_step *s = NULL;
	struct ordered_jobs *ordered_jobs = ordered_jobs_begin(1);
	assert_int_equal(merge_open(&m, from, clocks, 1, ordered_jobs, &err), 0);
	assert_int_equal(merge_next(&m, &s, &err), 1);
	assert_int_equal(s->at.kind, MERGE_BEGIN);
	for (size_t i = 0; i < COUNT(want); i++) {
		assert_int_equal(merge_next(&m, &s, &err), 1);
		assert_int_equal(s->at.kind, MERGE_EVENT);
		assert_int_equal(s->ev.ts, want[i].ts);
		assert_int_equal(s->ev.kind, want[i].kind);
		assert_int_equal(s->ev.cpu, want[i].cpu);
		assert_true(s->ev.kind != EV_LOST || s->ev.lost.end == 1159);
	}
	assert_int_equal(merge_next(&m, &s, &err), 1);
	assert_int_equal(s->at.kind, MERGE_END);
	merge_close(&m);
	ordered_jobs_end(ordered_jobs);
	trace_free(guest);
}

static int64_t as_it_is(const void *of, int64_t t)
{
	(void)of;
	return t;
}

static struct event sent(int64_t t, uint16_t kind, int64_t to)
{
	struct event ev = event(t, kind, 0, 1);
	if (kind == EV_MIGRATE) {
		ev.migrate.tid = 2;
		ev.migrate.dest_cpu = to;
	} else {
		ev.wake.tid = 2;
		ev.wake.target_cpu = to;
	}
	return ev;
}

/* CPUs to which others send threads, but without any event, are lost from beginning to end. The last CPU of a woken
 * thread does not count: it may be offline since; nor does a CPU to which one thread is sent once: the event may be
 * damaged, or the last event before the end. */
static void test_missing(void **state)
{
	struct event h[] = {
		event(100, EV_EXIT, 0, 1), sent(110, EV_WAKING, 1), sent(115, EV_WAKING, 1), sent(120, EV_WAKEUP, 5),
		sent(125, EV_WAKEUP, 2), sent(130, EV_MIGRATE, 2), sent(135, EV_MIGRATE, 7), sent(140, EV_WAKEUP, 3),
		sent(150, EV_WAKEUP, 0), sent(155, EV_WAKEUP, 9), sent(160, EV_WAKEUP, -1), sent(165, EV_WAKEUP, 5),
		event(170, EV_EXIT, 3, 4),
	};
	static const struct { int64_t ts; enum event_kind kind; uint16_t cpu; int64_t end; } want[] = {
		{ 100, EV_LOST, 2, 170 }, { 100, EV_LOST, 3, 164 }, { 100, EV_LOST, 5, 170 }, { 100, EV_EXIT, 0, 0 },
	};
	(void)state;
	h[COUNT(h) - 2].cpu = 3;  /* another stream contains the second one */
	struct trace *host = make("host", ROLE_HOST, h, COUNT(h));
	struct error err = ERROR_INIT;
	struct notes notes = { 0 };
	struct coverage c;
	const struct event *ev;
	assert_int_equal(coverage_open(&c, host, NULL, ALL_KINDS, &err), 0);
	for (size_t i = 0; i < COUNT(want); i++) {
		assert_int_equal(coverage_next(&c, &ev, &err), 1);
		assert_int_equal(ev->ts, want[i].ts);
		assert_int_equal(ev->kind, want[i].kind);
		assert_int_equal(ev->cpu, want[i].cpu);
		assert_true(ev->kind != EV_LOST || ev->lost.end == want[i].end);
	}
	coverage_close(&c);
	coverage_add_notes(host, as_it_is, NULL, &notes);
	assert_int_equal(notes.item[0].code, NOTE_CPUS_NOT_RECORDED);
	assert_non_null(strstr(notes.item[0].text, " CPU2, CPU5, "));
	notes_release(&notes);
	trace_free(host);
}

static int64_t value(const struct history *h, const char *path, int64_t t)
{
	struct error err = ERROR_INIT;
	struct interval iv;
	uint32_t attr = history_find(h, path);
	if (attr == HISTORY_NONE)
		return HISTORY_NULL;
	if (history_stab(h, attr, t, &iv, &err) < 0)
		fail_msg("%s", err.text);
	return iv.value;
}

/* If one thread is sent once to a CPU without events, only that thread is unknown until its next event; the same applies
 * to a CPU without events until the end. */
static void test_sent_nowhere(void **state)
{
	const struct event h[] = {
		sw(100, 0, 2, RUN_BLOCKED, 1), sw(100, 1, 3, RUN_BLOCKED, 0), sent(200, EV_WAKEUP, 7),
		    sw(300, 0, 1, RUN_RUNNABLE, 2),
		sw(400, 0, 2, RUN_BLOCKED, 1), sent(500, EV_WAKEUP, 6), event(600, EV_TIMER_ENTRY, 0, 1),
		event(600, EV_TIMER_ENTRY, 1, 0),
	};
	static const struct { int tid; int64_t t, value; } want[] = {
		{ 2, 199, THREAD_BLOCKED }, { 2, 200, THREAD_UNKNOWN }, { 2, 299, THREAD_UNKNOWN }, { 2, 300, THREAD_RUNNING },
		{ 2, 400, THREAD_BLOCKED }, { 2, 500, THREAD_UNKNOWN }, { 2, 600, THREAD_UNKNOWN },
		{ 1, 300, THREAD_PREEMPTED }, { 1, 400, THREAD_RUNNING }, { 3, 600, THREAD_BLOCKED },
	};
	char file[] = "/tmp/test_model_run.XXXXXX";
	struct error err = ERROR_INIT;
	struct model_interval span;
	struct notes notes = { NULL, 0, 0 };
	(void)state;
	int fd = mkstemp(file);
	assert_true(fd >= 0);
	close(fd);
	struct trace *host = make("hv", ROLE_HOST, h, COUNT(h));
	struct sync_result sync = { .host = host };
	struct history_builder *b = history_create(file, NULL, &err);
	assert_int_equal(model_run(&sync, NULL, b, &span, &notes, &err), 0);
	assert_int_equal(history_finish(b, span.begin, span.end, &err), 0);
	for (size_t i = 0; i < notes.len; i++)
		assert_int_not_equal(notes.item[i].code, NOTE_CPUS_NOT_RECORDED);
	notes_release(&notes);
	struct history *r = history_open(file, &err);
	assert_non_null(r);
	for (size_t i = 0; i < COUNT(want); i++) {
		char path[64];
		snprintf(path, sizeof path, "/Host/Threads/%d/Status", want[i].tid);
		if (value(r, path, want[i].t) != want[i].value)
			fail_msg("%s at %d is %d", path, (int)want[i].t, (int)value(r, path, want[i].t));
	}
	history_close(r);
	trace_free(host);
	unlink(file);
}

static int cancel(void *arg, const char *phase, uint64_t done, uint64_t total)
{
	(void)phase, (void)done, (void)total;
	return ++*(int *)arg > 0;
}

/* A guest traced for a part of the host's time, 5000 ns behind it. */
static void test_run(void **state)
{
	const struct event h[] = {
		event(10000, EV_TIMER_ENTRY, 0, 154), event(10050, EV_VCPU_EXIT, 0, 154),
		event(10100, EV_VCPU_ENTRY, 0, 154), event(10900, EV_VCPU_EXIT, 0, 154),
		sw(11000, 0, 154, RUN_RUNNABLE, 216), sw(12000, 0, 216, RUN_RUNNABLE, 154), event(12100, EV_VCPU_ENTRY, 0, 154),
		event(13000, EV_VCPU_EXIT, 0, 154), sw(13100, 0, 154, RUN_BLOCKED, 0), event(14000, EV_TIMER_ENTRY, 0, 0),
	};
	const struct event g[] = {
		sw(5200, 0, 900, RUN_BLOCKED, 901), sw(7500, 0, 901, RUN_BLOCKED, 0), event(7600, EV_TIMER_ENTRY, 0, 0),
	};
	struct clock_segment piece[] = { { .from = 0, .line = { 0, 5000, 0 } } };
	struct sync_vcpu vcpu[] = { { .number = 0, .host_tid = 154 } };
	char name[] = "Debian/1", file[] = "/tmp/test_model_run.XXXXXX";
	struct error err = ERROR_INIT;
	struct model_options options = { .paper_states = false };
	struct model_interval span;
	struct notes notes = { NULL, 0, 0 };
	(void)state;
	int fd = mkstemp(file);
	assert_true(fd >= 0);
	close(fd);
	struct trace *host = make("hv", ROLE_HOST, h, COUNT(h)), *guest = make("g", ROLE_GUEST, g, COUNT(g));
	struct sync_vm vm = { .name = name, .host_pid = 151, .guest = guest, .vcpu = vcpu, .vcpus = 1,
	                      .clock = { .segment = piece, .segments = 1 } };
	struct sync_result sync = { .host = host, .vm = &vm, .vms = 1 };

	struct history_builder *b = history_create(file, NULL, &err);
	assert_int_equal(model_run(&sync, &options, b, &span, &notes, &err), 0);
	assert_int_equal(span.begin, 10000);
	assert_int_equal(span.end, 14000);
	assert_int_equal(span.events, COUNT(h) + COUNT(g));
	assert_int_equal(notes.len, 0);
	assert_int_equal(history_finish(b, span.begin, span.end, &err), 0);
	struct history *r = history_open(file, &err);
	assert_non_null(r);
#define VM "/Virtual Machines/Debian%2f1"
	static const struct { const char *path; int64_t t, value; } want[] = {
		{ VM "/CPUs/CPU0/Status", 10000, VCPU_RUNNING },          /* the next event is an exit; no guest trace yet */
		{ VM "/Threads/900/Status", 10199, HISTORY_NULL }, { VM "/Threads/900/Status", 10200, THREAD_BLOCKED },
		{ VM "/Threads/901/Status", 10200, THREAD_RUNNING }, { VM "/Threads/901/Status", 10900, THREAD_VIRT_PREEMPTED },
		{ VM "/CPUs/CPU0/Status", 11000, VCPU_PREEMPTED }, { VM "/CPUs/CPU0/Status", 12000, VCPU_VMM },
		{ VM "/CPUs/CPU0/Status", 12100, VCPU_RUNNING }, { VM "/CPUs/CPU0/Status", 12500, VCPU_IDLE },
		{ VM "/Threads/901/Status", 12600, THREAD_BLOCKED }, { VM "/Threads/901/Status", 12601, HISTORY_NULL },
		{ VM "/CPUs/CPU0/Current Thread", 12601, HISTORY_NULL }, { VM "/CPUs/CPU0/Status", 12601, VCPU_RUNNING },
		{ VM "/CPUs/CPU0/Status", 14000, VCPU_IDLE }, { "/Host/Threads/154/Status", 14000, THREAD_BLOCKED },
		{ "/Host/Threads/216/Status", 10000, THREAD_UNKNOWN },    /* no wakeup is recorded here */
		{ "/Host/CPUs/CPU0/Current Thread", 14000, 0 },
	};
	for (size_t i = 0; i < COUNT(want); i++)
		if (value(r, want[i].path, want[i].t) != want[i].value)
			fail_msg("%s at %d is %d", want[i].path, (int)want[i].t, (int)value(r, want[i].path, want[i].t));
	history_close(r);

	/* Cancelled: the status shows it, and the caller still owns the builder. */
	int calls = 0;
	options.progress = (struct progress){ cancel, &calls };
	b = history_create(file, NULL, &err);
	if (model_run(&sync, &options, b, &span, &notes, &err) < 0)
		assert_int_equal(err.status, STATUS_CANCELLED);
	assert_true(calls <= 1);
	history_abort(b);

	/* No traces. */
	struct sync_result empty = { .host = NULL };
	b = history_create(file, NULL, &err);
	assert_int_equal(model_run(&empty, NULL, b, &span, &notes, &err), -1);
	assert_int_equal(err.status, STATUS_INPUT);
	history_abort(b);
	notes_release(&notes);
	trace_free(host);
	trace_free(guest);
	unlink(file);
}

static int keep(void *to, int64_t t, uint32_t attr, int64_t value, struct error *err)
{
	(void)t, (void)attr, (void)err;
	*(int64_t *)to = value;
	return 0;
}

static struct clock_bound level(struct clock_point *point, int64_t host)
{
	*point = (struct clock_point){ 0, host };
	return (struct clock_bound){ .left = { 0, host, 0 }, .right = { 0, host, 0 }, .point = point, .points = 1 };
}

/* A thread that was created during the trace, and wakes from a sleep with an unrecorded start, did not exist before;
 * with or without a loss on another CPU, and with any prescan. */
static void test_born(void **state)
{
	char file[] = "/tmp/test_model_run.XXXXXX";
	struct event h[] = {
		event(10000, EV_TIMER_ENTRY, 0, 216), event(10000, EV_TIMER_ENTRY, 1, 0), event(10100, EV_TIMER_ENTRY, 1, 0),
		event(10300, EV_TIMER_ENTRY, 1, 0), event(11000, EV_FORK, 0, 216), event(11100, EV_WAKING, 0, 216),
		event(11200, EV_TIMER_ENTRY, 1, 0),
	};
	struct error err = ERROR_INIT;
	struct model_interval span;
	struct notes notes = { NULL, 0, 0 };
	(void)state;
	h[4].fork.child_tid = h[4].fork.child_pid = h[5].wake.tid = 300;
	h[5].wake.target_cpu = 0;
	for (int i = 0; i < 6; i++) {
		const bool lost = i % 2, early = i >= 2;
		int fd = mkstemp(file);
		assert_true(fd >= 0);
		close(fd);
		h[2] = event(10100, lost ? EV_LOST : EV_TIMER_ENTRY, 1, lost ? -1 : 0);
		if (lost)
			h[2].lost.end = 10200;
		struct trace *host = make("hv", ROLE_HOST, h, COUNT(h));
		struct model_options options = { .look = early ? host_prescan_begin(host) : NULL };
		assert_int_equal(options.look != NULL, early);
		if (i >= 4)
			host_prescan_run(options.look);
		struct sync_result sync = { .host = host };
		struct history_builder *b = history_create(file, NULL, &err);
		assert_int_equal(model_run(&sync, &options, b, &span, &notes, &err), 0);
		host_prescan_end(options.look);
		assert_int_equal(history_finish(b, span.begin, span.end, &err), 0);
		struct history *r = history_open(file, &err);
		assert_non_null(r);
		assert_int_equal(value(r, "/Host/Threads/300/Status", 10999), HISTORY_NULL);
		assert_int_equal(value(r, "/Host/Threads/300/Status", 11000), THREAD_BLOCKED);
		history_close(r);
		trace_free(host);
		unlink(file);
		memcpy(strrchr(file, '.') + 1, "XXXXXX", 6);
	}
	notes_release(&notes);
}

/* The error bound of a step at an unknown time holds for the whole interval, to the ns: guest times 40 to 59 are host
 * times 40 to 59 before the step and 1040 to 1059 after it, +- 2 ns. */
static void test_band(void **state)
{
	(void)state;
	struct clock_point point[4];
	struct clock_segment piece[2] = {
		{ .from = 0, .low = level(&point[0], -1), .high = level(&point[1], 1) },
		{ .from = 50, .ambiguous_from = 40, .ambiguous_to = 60, .line = { 0, 1000, 0 }, .low = level(&point[2], 999),
		  .high = level(&point[3], 1001) },
	};
	const struct clock_map clock = { .segment = piece, .segments = 2 };
	const struct model_sink_ops ops = { .set = keep };
	int64_t band = 0;
	struct model_sink sink = { .ops = &ops, .to = &band };
	const struct clock_error_attr first = { .clock = &clock, .next = INT64_MIN, .edge = INT64_MAX, .every = 1000000 };
	struct clock_error_attr b = first;
	for (sink.now = 0; sink.now < 1200; sink.now++) {
		const int64_t want = sink.now >= 38 && sink.now <= 1061 ? 1004 : 4;
		struct clock_error_attr begins = first;
		clock_error_attr_sample(&b, &sink, 10);
		assert_int_equal(band, want);
		clock_error_attr_sample(&begins, &sink, 10);
		assert_int_equal(band, want);
	}
}

/* Returns the bytes of a history with changes at these times, written through the queue or directly; to be freed. */
static char *history_of(const int64_t *t, size_t n, bool beside, size_t *size)
{
	const char *const file = "far.steal";
	struct error err = ERROR_INIT;
	struct history_builder *b = history_create(file, NULL, &err);
	assert_non_null(b);
	struct ordered_jobs *ordered_jobs = ordered_jobs_begin(2);
	struct sink_async *s = beside ? sink_async_begin(b, ordered_jobs) : NULL;
	const struct model_sink_ops *ops = beside ? &sink_async : &sink_history;
	void *const to = beside ? (void *)s : b;
	const uint32_t attr[] = { ops->attribute(to, "/a", HISTORY_INT, 0, &err),
	                          ops->attribute(to, "/b", HISTORY_INT, 0, &err) };
	for (size_t i = 0; i < n; i++)
		assert_int_equal(ops->set(to, t[i], attr[i % 2], (int64_t)i, &err), 0);
	assert_int_equal(sink_async_end(s, &err), 0);
	ordered_jobs_end(ordered_jobs);
	assert_int_equal(history_finish(b, -(INT64_C(1) << 61), INT64_C(1) << 61, &err), 0);
	FILE *f = fopen(file, "rb");
	assert_non_null(f);
	char *const bytes = malloc(1 << 20);
	*size = fread(bytes, 1, 1 << 20, f);
	fclose(f);
	unlink(file);
	return bytes;
}

static void check_queued(const int64_t *t, size_t n)
{
	size_t size[2];
	char *const at_once = history_of(t, n, false, &size[0]), *const queued = history_of(t, n, true, &size[1]);
	assert_int_equal(size[0], size[1]);
	assert_memory_equal(at_once, queued, size[0]);
	free(at_once);
	free(queued);
}

/* Changes are queued with as many bits of their times as most need: times that are farther apart, or decrease, are also
 * kept. No batch is filled again before it is written, however many there are. */
static void test_far(void **state)
{
	static const int64_t t[] = { -(INT64_C(1) << 61), -(INT64_C(1) << 60), -10, 0, 5, 3, 4294967296, 4294967290, 6442450943,
		6442450944, 8589934591, 8589934592, 12884901888, INT64_C(1) << 60, (INT64_C(1) << 60) - 2147483648,
		    INT64_C(1) << 61 };
	enum { MANY = 20000 };
	int64_t *many = calloc(MANY, sizeof *many);
	(void)state;
	check_queued(t, COUNT(t));
	for (size_t i = 0; i < MANY; i++)
		many[i] = (int64_t)i << 33;
	check_queued(many, MANY);
	free(many);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_merge), cmocka_unit_test(test_set_back),
	                                    cmocka_unit_test(test_missing), cmocka_unit_test(test_sent_nowhere),
	                                    cmocka_unit_test(test_run), cmocka_unit_test(test_born),
	                                    cmocka_unit_test(test_band), cmocka_unit_test(test_far) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
