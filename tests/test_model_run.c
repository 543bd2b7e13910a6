/* model_run(): traces with their clocks in, a history out. */
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

/* Who comes when: equal times, a clock whose second piece overlaps the first, a trace without events. */
static void test_merge(void **state)
{
	const struct event h[] = { event(100, EV_EXIT, 0, 1), event(200, EV_KVM_EXIT, 0, 1), event(300, EV_EXIT, 0, 1) };
	const struct event g[] = { event(1000, EV_EXIT, 0, 2), event(1100, EV_EXIT, 0, 2), event(1200, EV_EXIT, 0, 2) };
	/* guest 1000 -> 200, 1100 -> 300; from 1150 on 60 ns less: 1200 -> 340 */
	struct clock_piece piece[] = {
		{ .from = 0, .line = { 1000, 200, 0 } }, { .from = 1150, .line = { 1000, 140, 0 } },
	};
	struct clock_map clock = { .piece = piece, .pieces = COUNT(piece) };
	static const struct { uint32_t machine; enum merge_what what; int64_t t; } want[] = {
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
		if (overlap)  /* now the third event falls before the second: it waits for it */
			piece[1].line.ref_host = 60;
		struct chores *chores = chores_begin(1 + round % 2);
		assert_int_equal(merge_open(&m, from, clocks, COUNT(from), chores, &err), 0);
		for (size_t i = 0; i < COUNT(want); i++) {
			/* when overlapping, 340 and 341 become 300 and 301, the end of the host's trace comes after the event */
			size_t k = !overlap || i < 7 || i == 9 ? i : i == 7 ? 8 : 7;
			int64_t t = overlap && want[k].t > 301 ? want[k].t - 40 : want[k].t;
			assert_int_equal(merge_next(&m, &s, &err), 1);
			assert_int_equal(s->at.machine, want[k].machine);
			assert_int_equal(s->at.what, want[k].what);
			assert_int_equal(s->at.t, t);
			if (s->at.what == MERGE_END)
				assert_int_equal(s->at.others, s->at.machine == 0 && !overlap);
		}
		assert_int_equal(merge_next(&m, &s, &err), 0);
		assert_int_equal(merge_last(&m), overlap ? 300 : 340);
		merge_close(&m);
		chores_end(chores);
	}
	for (size_t i = 0; i < COUNT(trace); i++)
		trace_free(trace[i]);
}

/* Where the clock was set back, and nothing tells when: the events from the first such time on and before the last are left
 * out, and a loss on both CPUs stands for them.  Then any event tells who is there, those too that no row is of. */
static void test_set_back(void **state)
{
	const struct event g[] = { event(1000, EV_EXIT, 0, 2), event(1000, EV_EXIT, 1, 2), event(1099, EV_EXIT, 0, 2),
	                           event(1100, EV_EXIT, 0, 2), event(1130, EV_EXIT, 1, 2), event(1159, EV_EXIT, 0, 2),
	                           event(1160, EV_EXIT, 0, 2), event(1160, EV_OTHER, 1, 2) };
	struct clock_piece piece[] = {
		{ .from = 0, .line = { 1000, 200, 0 } },
		{ .from = 1120, .unsure_from = 1100, .unsure_to = 1160, .repeats = true, .line = { 1000, 300, 0 } },
	};
	struct clock_map clock = { .piece = piece, .pieces = COUNT(piece) };
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
	struct chores *chores = chores_begin(1);
	assert_int_equal(merge_open(&m, from, clocks, 1, chores, &err), 0);
	assert_int_equal(merge_next(&m, &s, &err), 1);
	assert_int_equal(s->at.what, MERGE_BEGIN);
	for (size_t i = 0; i < COUNT(want); i++) {
		assert_int_equal(merge_next(&m, &s, &err), 1);
		assert_int_equal(s->at.what, MERGE_EVENT);
		assert_int_equal(s->ev.ts, want[i].ts);
		assert_int_equal(s->ev.kind, want[i].kind);
		assert_int_equal(s->ev.cpu, want[i].cpu);
		assert_true(s->ev.kind != EV_LOST || s->ev.lost.end == 1159);
	}
	assert_int_equal(merge_next(&m, &s, &err), 1);
	assert_int_equal(s->at.what, MERGE_END);
	merge_close(&m);
	chores_end(chores);
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

/* Of CPUs to which others send threads, and which tell nothing themselves, all is lost from beginning to end.  Where who is
 * woken ran last is no such CPU: that may be offline since; nor is one to which one thread is sent once: the event may be
 * damaged, or the last one before the trace ends. */
static void test_missing(void **state)
{
	struct event h[] = { event(100, EV_EXIT, 0, 1), sent(110, EV_WAKING, 1), sent(115, EV_WAKING, 1), sent(120, EV_WAKEUP, 5),
	                     sent(125, EV_WAKEUP, 2), sent(130, EV_MIGRATE, 2), sent(135, EV_MIGRATE, 7), sent(140, EV_WAKEUP, 3),
	                     sent(150, EV_WAKEUP, 0), sent(155, EV_WAKEUP, 9), sent(160, EV_WAKEUP, -1), sent(165, EV_WAKEUP, 5),
	                     event(170, EV_EXIT, 3, 4) };
	static const struct { int64_t ts; enum event_kind kind; uint16_t cpu; int64_t end; } want[] = {
		{ 100, EV_LOST, 2, 170 }, { 100, EV_LOST, 3, 164 }, { 100, EV_LOST, 5, 170 }, { 100, EV_EXIT, 0, 0 },
	};
	(void)state;
	h[COUNT(h) - 2].cpu = 3;  /* another stream tells of the second one */
	struct trace *host = make("host", ROLE_HOST, h, COUNT(h));
	struct error err = ERROR_INIT;
	struct notes notes = { 0 };
	struct cover c;
	const struct event *ev;
	assert_int_equal(cover_open(&c, host, NULL, ALL_KINDS, &err), 0);
	for (size_t i = 0; i < COUNT(want); i++) {
		assert_int_equal(cover_next(&c, &ev, &err), 1);
		assert_int_equal(ev->ts, want[i].ts);
		assert_int_equal(ev->kind, want[i].kind);
		assert_int_equal(ev->cpu, want[i].cpu);
		assert_true(ev->kind != EV_LOST || ev->lost.end == want[i].end);
	}
	cover_close(&c);
	cover_notes(host, as_it_is, NULL, &notes);
	assert_non_null(strstr(notes.item[0].text, "nothing was recorded on CPU2, CPU5, "));
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

/* Where one thread alone is sent to a CPU of which there is nothing, it is unknown what that does until it is seen again, and
 * nothing else is in doubt; to one that tells nothing before the trace ends, too. */
static void test_sent_nowhere(void **state)
{
	const struct event h[] = {
		sw(100, 0, 2, RUN_BLOCKED, 1), sw(100, 1, 3, RUN_BLOCKED, 0), sent(200, EV_WAKEUP, 7), sw(300, 0, 1, RUN_RUNNABLE, 2),
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
	struct model_span span;
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
		assert_null(strstr(notes.item[i].text, "nothing was recorded"));
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

/* A guest that was traced for a part of the host's time, 5000 ns behind it. */
static void test_run(void **state)
{
	const struct event h[] = {
		event(10000, EV_TIMER_ENTRY, 0, 154), event(10050, EV_KVM_EXIT, 0, 154),
		event(10100, EV_KVM_ENTRY, 0, 154), event(10900, EV_KVM_EXIT, 0, 154),
		sw(11000, 0, 154, RUN_RUNNABLE, 216), sw(12000, 0, 216, RUN_RUNNABLE, 154), event(12100, EV_KVM_ENTRY, 0, 154),
		event(13000, EV_KVM_EXIT, 0, 154), sw(13100, 0, 154, RUN_BLOCKED, 0), event(14000, EV_TIMER_ENTRY, 0, 0),
	};
	const struct event g[] = {
		sw(5200, 0, 900, RUN_BLOCKED, 901), sw(7500, 0, 901, RUN_BLOCKED, 0), event(7600, EV_TIMER_ENTRY, 0, 0),
	};
	struct clock_piece piece[] = { { .from = 0, .line = { 0, 5000, 0 } } };
	struct sync_vcpu vcpu[] = { { .number = 0, .host_tid = 154 } };
	char name[] = "Debian/1", file[] = "/tmp/test_model_run.XXXXXX";
	struct error err = ERROR_INIT;
	struct model_options options = { .paper_states = false };
	struct model_span span;
	struct notes notes = { NULL, 0, 0 };
	(void)state;
	int fd = mkstemp(file);
	assert_true(fd >= 0);
	close(fd);
	struct trace *host = make("hv", ROLE_HOST, h, COUNT(h)), *guest = make("g", ROLE_GUEST, g, COUNT(g));
	struct sync_vm vm = { .name = name, .host_pid = 151, .guest = guest, .vcpu = vcpu, .vcpus = 1,
	                      .clock = { .piece = piece, .pieces = 1 } };
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
		{ VM "/CPUs/CPU0/Status", 10000, VCPU_RUNNING },          /* an exit is what comes; no guest trace yet */
		{ VM "/Threads/900/Status", 10199, HISTORY_NULL }, { VM "/Threads/900/Status", 10200, THREAD_BLOCKED },
		{ VM "/Threads/901/Status", 10200, THREAD_RUNNING }, { VM "/Threads/901/Status", 10900, THREAD_VIRT_PREEMPTED },
		{ VM "/CPUs/CPU0/Status", 11000, VCPU_PREEMPTED }, { VM "/CPUs/CPU0/Status", 12000, VCPU_VMM },
		{ VM "/CPUs/CPU0/Status", 12100, VCPU_RUNNING }, { VM "/CPUs/CPU0/Status", 12500, VCPU_IDLE },
		{ VM "/Threads/901/Status", 12600, THREAD_BLOCKED }, { VM "/Threads/901/Status", 12601, HISTORY_NULL },
		{ VM "/CPUs/CPU0/Current Thread", 12601, HISTORY_NULL }, { VM "/CPUs/CPU0/Status", 12601, VCPU_RUNNING },
		{ VM "/CPUs/CPU0/Status", 14000, VCPU_IDLE }, { "/Host/Threads/154/Status", 14000, THREAD_BLOCKED },
		{ "/Host/Threads/216/Status", 10000, THREAD_UNKNOWN },    /* no wakeup is ever recorded here */
		{ "/Host/CPUs/CPU0/Current Thread", 14000, 0 },
	};
	for (size_t i = 0; i < COUNT(want); i++)
		if (value(r, want[i].path, want[i].t) != want[i].value)
			fail_msg("%s at %d is %d", want[i].path, (int)want[i].t, (int)value(r, want[i].path, want[i].t));
	history_close(r);

	/* Cancelled: the status says so, and the builder is still the caller's. */
	int calls = 0;
	options.progress = (struct progress){ cancel, &calls };
	b = history_create(file, NULL, &err);
	if (model_run(&sync, &options, b, &span, &notes, &err) < 0)
		assert_int_equal(err.status, STATUS_CANCELLED);
	assert_true(calls <= 1);
	history_abort(b);

	/* Nothing at all. */
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

static struct clock_edge level(struct clock_point *point, int64_t host)
{
	*point = (struct clock_point){ 0, host };
	return (struct clock_edge){ .left = { 0, host, 0 }, .right = { 0, host, 0 }, .point = point, .points = 1 };
}

/* A thread that came into being during the trace, and wakes from a sleep into which nobody saw it fall, was not there
 * before; whether some events were lost on another CPU, or none; and whoever looked ahead. */
static void test_born(void **state)
{
	char file[] = "/tmp/test_model_run.XXXXXX";
	struct event h[] = {
		event(10000, EV_TIMER_ENTRY, 0, 216), event(10000, EV_TIMER_ENTRY, 1, 0), event(10100, EV_TIMER_ENTRY, 1, 0),
		event(10300, EV_TIMER_ENTRY, 1, 0), event(11000, EV_FORK, 0, 216), event(11100, EV_WAKING, 0, 216),
		event(11200, EV_TIMER_ENTRY, 1, 0),
	};
	struct error err = ERROR_INIT;
	struct model_span span;
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
		struct model_options options = { .look = early ? model_look_begin(host) : NULL };
		assert_int_equal(options.look != NULL, early);
		if (i >= 4)
			model_look_run(options.look);
		struct sync_result sync = { .host = host };
		struct history_builder *b = history_create(file, NULL, &err);
		assert_int_equal(model_run(&sync, &options, b, &span, &notes, &err), 0);
		model_look_end(options.look);
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

/* The band of a step that cannot be placed holds as long as it may be meant, to the ns: guest times 40 to 59, of which the
 * host's are 40 to 59 before the step and 1040 to 1059 after it, give or take 2 ns. */
static void test_band(void **state)
{
	(void)state;
	struct clock_point point[4];
	struct clock_piece piece[2] = {
		{ .from = 0, .low = level(&point[0], -1), .high = level(&point[1], 1) },
		{ .from = 50, .unsure_from = 40, .unsure_to = 60, .line = { 0, 1000, 0 }, .low = level(&point[2], 999),
		  .high = level(&point[3], 1001) },
	};
	const struct clock_map clock = { .piece = piece, .pieces = 2 };
	const struct model_sink_ops ops = { .set = keep };
	int64_t band = 0;
	struct model_sink sink = { .ops = &ops, .to = &band };
	const struct band first = { .clock = &clock, .next = INT64_MIN, .edge = INT64_MAX, .every = 1000000 };
	struct band b = first;
	for (sink.now = 0; sink.now < 1200; sink.now++) {
		const int64_t want = sink.now >= 38 && sink.now <= 1061 ? 1004 : 4;
		struct band begins = first;
		band_sample(&b, &sink, 10);
		assert_int_equal(band, want);
		band_sample(&begins, &sink, 10);
		assert_int_equal(band, want);
	}
}

/* The history of changes at these times, set through the queue or at once; the caller frees. */
static char *history_of(const int64_t *t, size_t n, bool beside, size_t *size)
{
	const char *const file = "far.steal";
	struct error err = ERROR_INIT;
	struct history_builder *b = history_create(file, NULL, &err);
	assert_non_null(b);
	struct chores *chores = chores_begin(2);
	struct sink_beside *s = beside ? sink_beside_begin(b, chores) : NULL;
	const struct model_sink_ops *ops = beside ? &sink_beside : &sink_history;
	void *const to = beside ? (void *)s : b;
	const uint32_t attr[] = { ops->attribute(to, "/a", HISTORY_INT, 0, &err), ops->attribute(to, "/b", HISTORY_INT, 0, &err) };
	for (size_t i = 0; i < n; i++)
		assert_int_equal(ops->set(to, t[i], attr[i % 2], (int64_t)i, &err), 0);
	assert_int_equal(sink_beside_end(s, &err), 0);
	chores_end(chores);
	assert_int_equal(history_finish(b, -(INT64_C(1) << 61), INT64_C(1) << 61, &err), 0);
	FILE *f = fopen(file, "rb");
	assert_non_null(f);
	char *const bytes = malloc(1 << 20);
	*size = fread(bytes, 1, 1 << 20, f);
	fclose(f);
	unlink(file);
	return bytes;
}

/* Changes wait for the history with as many bits of their times as suffice for most: those that are farther apart, or go
 * back, are set at their times, too. */
static void test_far(void **state)
{
	static const int64_t t[] = { -(INT64_C(1) << 61), -(INT64_C(1) << 60), -10, 0, 5, 3, 4294967296, 4294967290, 6442450943,
		6442450944, 8589934591, 8589934592, 12884901888, INT64_C(1) << 60, (INT64_C(1) << 60) - 2147483648, INT64_C(1) << 61 };
	size_t size[2];
	(void)state;
	char *const at_once = history_of(t, COUNT(t), false, &size[0]), *const queued = history_of(t, COUNT(t), true, &size[1]);
	assert_int_equal(size[0], size[1]);
	assert_memory_equal(at_once, queued, size[0]);
	free(at_once);
	free(queued);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_merge), cmocka_unit_test(test_set_back),
	                                    cmocka_unit_test(test_missing), cmocka_unit_test(test_sent_nowhere),
	                                    cmocka_unit_test(test_run), cmocka_unit_test(test_born), cmocka_unit_test(test_band), cmocka_unit_test(test_far) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
