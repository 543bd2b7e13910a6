/* Tests of trace/: loading of real traces, cursors, records. truth.json contains the expected counts of the recordings. */
#include "test.h"

#include <json-c/json.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "trace/internal.h"
#include "trace/layout/layout.h"
#include "trace/store.h"
#include "trace/tracecmd/tracecmd_offset.h"
#include "trace/trace.h"
#include "trace_loaded.h"
#include "trace_same.h"

static void count_kinds(const struct trace *t, uint64_t count[EVENT_KIND_COUNT])
{
	struct error err = ERROR_INIT;
	struct trace_cursor *c = trace_cursor_open(t, ALL_KINDS, -1, &err);
	struct event ev;
	int64_t last = INT64_MIN;
	int more;
	memset(count, 0, EVENT_KIND_COUNT * sizeof *count);
	while ((more = trace_cursor_next(c, &ev, &err)) > 0) {
		assert_true(ev.ts >= last);
		last = ev.ts;
		count[ev.kind]++;
	}
	assert_int_equal(more, 0);
	trace_cursor_close(c);
}

/* Returns the expected number of events with any of the names, from truth.json. */
static uint64_t truth_count(json_object *counts, const char *const *names)
{
	uint64_t n = 0;
	json_object *v;
	for (; *names; names++)
		if (json_object_object_get_ex(counts, *names, &v))
			n += (uint64_t)json_object_get_int64(v);
	return n;
}

static const struct { enum event_kind kind; const char *names[4]; } kinds[] = {
	{ EV_SWITCH, { "sched_switch" } }, { EV_WAKING, { "sched_waking" } },
	{ EV_WAKEUP, { "sched_wakeup", "sched_wakeup_new" } }, { EV_MIGRATE, { "sched_migrate_task" } },
	{ EV_FORK, { "sched_process_fork" } }, { EV_EXEC, { "sched_process_exec" } }, { EV_EXIT, { "sched_process_exit" } },
	{ EV_PROCESS, { "lttng_statedump_process_state" } }, { EV_PROCESS_NS, { "lttng_statedump_process_pid_ns" } },
	{ EV_PROCESS_CGROUP, { "lttng_statedump_process_cgroup_ns" } },
	{ EV_VCPU_ENTRY, { "kvm_x86_entry" } }, { EV_VCPU_EXIT, { "kvm_x86_exit" } },
	{ EV_IRQ_ENTRY, { "irq_handler_entry" } }, { EV_IRQ_EXIT, { "irq_handler_exit" } },
	{ EV_SOFTIRQ_ENTRY, { "irq_softirq_entry" } }, { EV_SOFTIRQ_EXIT, { "irq_softirq_exit" } },
	{ EV_TIMER_ENTRY, { "timer_hrtimer_expire_entry" } }, { EV_TIMER_EXIT, { "timer_hrtimer_expire_exit" } },
};

/* Compares the number of request marks of each kind with the expected counts. */
static void check_marks(const struct trace *t, json_object *truth)
{
	static const char *const ops[] = { "start", "yield", "resume", "end" };
	struct error err = ERROR_INIT;
	struct trace_cursor *c = trace_cursor_open(t, KIND(EV_MARK), -1, &err);
	struct event ev;
	int64_t count[COUNT(ops)] = { 0 };
	json_object *srbn, *v;
	while (trace_cursor_next(c, &ev, &err) > 0) {
		assert_in_range(ev.mark.op, 0, COUNT(ops) - 1);
		count[ev.mark.op]++;
	}
	trace_cursor_close(c);
	if (!json_object_object_get_ex(truth, "srbn", &srbn) || !srbn)
		srbn = NULL;
	for (size_t i = 0; i < COUNT(ops); i++)
		assert_int_equal(count[i], srbn && json_object_object_get_ex(srbn, ops[i], &v) ?
		                           json_object_get_int64(v) : 0);
}

static void check_against_truth(const struct trace *t, json_object *truth)
{
	const struct trace_info *info = trace_info(t);
	json_object *v, *counts;
	uint64_t count[EVENT_KIND_COUNT], all = 0;
	count_kinds(t, count);
	assert_true(json_object_object_get_ex(truth, "events", &v));
	assert_int_equal(info->events, json_object_get_int64(v));
	assert_true(json_object_object_get_ex(truth, "bytes", &v));
	assert_int_equal(info->bytes, json_object_get_int64(v));
	assert_true(json_object_object_get_ex(truth, "discarded_events", &v));
	assert_int_equal(info->lost, json_object_get_int64(v));
	assert_int_equal(count[EV_LOST] > 0, info->lost > 0);
	assert_true(json_object_object_get_ex(truth, "counts", &counts));
	for (size_t i = 0; i < COUNT(kinds); i++)
		assert_int_equal(count[kinds[i].kind], truth_count(counts, kinds[i].names));
	/* Hypercalls with the magic number and texts of the beacon become sync events; all other texts become marks. */
	assert_int_equal(count[EV_SYNC] + count[EV_MARK] + count[EV_HYPERCALL],
	                 truth_count(counts, (const char *const[]){ "kvm_x86_hypercall", "lttng_logger", NULL }));
	for (size_t k = 0; k < EVENT_KIND_COUNT; k++)
		all += k == EV_LOST ? 0 : count[k];
	assert_int_equal(all, info->events);
	check_marks(t, truth);
	int64_t offset, first, last;
	json_object_object_get_ex(truth, "clock_offset_ns", &v);
	offset = json_object_get_int64(v);
	json_object_object_get_ex(truth, "first_cycles", &v);
	first = json_object_get_int64(v);
	json_object_object_get_ex(truth, "last_cycles", &v);
	last = json_object_get_int64(v);
	assert_int_equal(info->begin, offset + first);
	assert_int_equal(info->end, offset + last);
}

static void check_scenario(const char *dir)
{
	char path[1100];
	struct loaded_traces l;
	snprintf(path, sizeof path, "%s/truth.json", dir);
	json_object *truth = json_object_from_file(path), *traces;
	struct json_object_iter it;
	assert_non_null(truth);
	load(dir, NULL, &l);
	assert_true(json_object_object_get_ex(truth, "traces", &traces));
	assert_int_equal(l.n, json_object_object_length(traces));
	json_object_object_foreachC(traces, it) {
		bool is_host = strcmp(it.key, "host") == 0;
		const struct trace *t = find(&l, is_host ? "hypervisor" : it.key + strlen("guest-"));
		assert_int_equal(trace_info(t)->role, is_host ? ROLE_HOST : ROLE_GUEST);
		check_against_truth(t, it.val);
	}
	unload(&l);
	json_object_put(truth);
}

static void test_fibonacci(void **state)
{
	(void)state;
	check_scenario(data("fibonacci"));
}

/* Loads all large recordings, if they exist next to the source directory. */
static void test_recordings(void **state)
{
	(void)state;
	static const char *const names[] = { "pulse", "lost", "smp", "boot", "soroban_base", "soroban_contended",
		"grid_h0_g1", "grid_h1_g3", "grid_h2_g6", "big" };
	const char *srcdir = getenv("srcdir");
	size_t seen = 0;
	for (size_t i = 0; i < COUNT(names); i++) {
		char path[1024];
		struct stat st;
		snprintf(path, sizeof path, "%s/../shared/traces/%s", srcdir ? srcdir : ".", names[i]);
		if (stat(path, &st))
			continue;
		check_scenario(path);
		seen++;
	}
	if (!seen)
		skip();
}

static void test_info(void **state)
{
	(void)state;
	struct loaded_traces l;
	load(data("fibonacci"), NULL, &l);
	const struct trace_info *host = trace_info(find(&l, "hypervisor")), *guest = trace_info(find(&l, "Debian"));
	assert_string_equal(host->tracer, "lttng-modules 2.13.9");
	assert_string_equal(host->layout, "lttng");
	assert_string_equal(host->uuid, "0b121695-c780-e041-875c-ddc176ffd4da");
	assert_int_equal(host->cpus, 2);
	assert_true(host->has_guest_mode);
	assert_false(guest->has_guest_mode);
	assert_int_equal(guest->cpus, 1);
	assert_int_equal(l.notes.len, 0);
	unload(&l);
}

static void check_equal(const struct trace *a, const struct trace *b)
{
	assert_int_equal(assert_same_events(a, b, ALL_KINDS), trace_info(a)->events);
}

static void test_options_do_not_matter(void **state)
{
	(void)state;
	static const struct trace_options options[] = {
		{ .workers = 1 }, { .workers = 2 }, { .workers = 5 }, { .workers = 2, .memory = 1 },
		{ .workers = 2, .memory = 40000 },
	};
	struct loaded_traces want, got;
	load(data("fibonacci"), &options[0], &want);
	for (size_t i = 1; i < COUNT(options); i++) {
		load(data("fibonacci"), &options[i], &got);
		check_equal(find(&want, "hypervisor"), find(&got, "hypervisor"));
		check_equal(find(&want, "Debian"), find(&got, "Debian"));
		unload(&got);
	}
	unload(&want);
}

/* A cursor for some kinds and one CPU returns exactly the matching events of a cursor for all events. */
static void test_filters(void **state)
{
	(void)state;
	struct loaded_traces l;
	struct error err = ERROR_INIT;
	load(data("fibonacci"), NULL, &l);
	const struct trace *t = find(&l, "hypervisor");
	const event_kinds mask = KIND(EV_SWITCH) | KIND(EV_VCPU_EXIT);
	struct trace_cursor *all = trace_cursor_open(t, ALL_KINDS, -1, &err), *some = trace_cursor_open(t, mask, 1, &err);
	struct event p, q;
	size_t n = 0;
	while (trace_cursor_next(all, &p, &err) > 0) {
		if (p.cpu != 1 || !(mask >> p.kind & 1))
			continue;
		assert_int_equal(trace_cursor_next(some, &q, &err), 1);
		assert_memory_equal(&p, &q, sizeof p);
		n++;
	}
	assert_int_equal(trace_cursor_next(some, &q, &err), 0);
	assert_true(n > 4000);
	trace_cursor_close(all);
	trace_cursor_close(some);
	unload(&l);
}

/* The events of the parts, one part after the other, are equal to the events of one cursor. */
static void test_parts(void **state)
{
	(void)state;
	static const struct trace_options options[] = { { .workers = 1 }, { .workers = 2, .memory = 1 } };
	for (size_t o = 0; o < COUNT(options); o++) {
		struct loaded_traces l;
		struct error err = ERROR_INIT;
		load(data("fibonacci"), &options[o], &l);
		const struct trace *t = find(&l, "hypervisor");
		for (size_t parts = 1; parts < 6; parts += 2) {
			struct trace_cursor *all = trace_cursor_open(t, ALL_KINDS, 1, &err);
			struct event p, q;
			size_t n = 0;
			for (size_t i = 0; i < parts; i++) {
				struct trace_cursor *part = trace_cursor_open_times(t, ALL_KINDS, 1, i, parts, &err);
				const size_t before = n;
				while (trace_cursor_next(part, &q, &err) > 0) {
					assert_int_equal(trace_cursor_next(all, &p, &err), 1);
					assert_memory_equal(&p, &q, offsetof(struct event, arg));
					n++;
				}
				assert_true(n > before);
				trace_cursor_close(part);
			}
			assert_int_equal(trace_cursor_next(all, &p, &err), 0);
			assert_true(n > 4000);
			trace_cursor_close(all);
		}
		unload(&l);
	}
}

/* If the second of two separately decoded parts of a stream steps back in time, the times of its events are raised, for
 * any start of reading. */
static void test_part_after_a_step_back(void **state)
{
	(void)state;
	enum { N = 8 };
	struct error err = ERROR_INIT;
	struct store *store = store_new(SIZE_MAX, NULL, &err);
	struct stream s;
	stream_init(&s);
	for (int64_t i = 0; i < N; i++) {  /* one block per event, with the times 0, 100, 200, 300, then 250, 260 ... */
		struct stream one;
		struct writer w;
		stream_init(&one);
		writer_open(&w, store, &one);
		const struct event ev = { .ts = i < 4 ? 100 * i : 210 + 10 * i, .kind = EV_OTHER };
		assert_int_equal(writer_put(&w, &ev, &err), 0);
		assert_int_equal(writer_close(&w, &err), 0);
		*ARRAY_PUSH(s.block, s.len, s.cap) = one.block[0];
		free(one.block);
		cpu_set_release(&one.cpus);
	}
	for (size_t parts = 1; parts <= N; parts++) {
		int64_t n = 0;
		for (size_t i = 0; i < parts; i++) {
			struct reader r;
			const struct event *ev;
			reader_open(&r, store, &s, i, parts);
			for (; reader_next(&r, &ev, &err) == 1; n++)
				assert_int_equal(ev->ts, n < 4 ? 100 * n : 300);
			reader_close(&r);
		}
		assert_int_equal(n, N);
	}
	stream_release(&s, store);
	store_unref(store);
}

static uint64_t next_random(uint64_t *seed)
{
	*seed += 0x9E3779B97F4A7C15ULL;
	uint64_t z = *seed;
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ULL;
	z = (z ^ z >> 27) * 0x94D049BB133111EBULL;
	return z ^ z >> 31;
}

/* Random events with extreme values are read back unchanged, sorted by time, then by CPU. */
static void test_round_trip(void **state)
{
	(void)state;
	enum { N = 20000 };
	static const int64_t extremes[] = { INT64_MAX, INT64_MIN + 1, 0, -1, 1, EVENT_ABSENT };
	struct event *ev = mem_new(N, sizeof *ev), got;
	int64_t ts[3] = { -1000, 0, INT64_MAX - (int64_t)N * 1000 };
	uint64_t seed = 7;
	for (size_t i = 0; i < N; i++) {
		uint64_t r = next_random(&seed);
		unsigned cpu = (unsigned)(r % 3);
		ts[cpu] += (int64_t)(r >> 8 & 511);
		ev[i] = (struct event){ .ts = ts[cpu], .cpu = (uint16_t)cpu, .kind = (uint16_t)((r >> 20) % EVENT_KIND_COUNT) };
		ev[i].tid = r >> 40 & 7 ? 42 : (int32_t)r;
		ev[i].pid = -1;
		for (size_t k = 0; k < EVENT_ARGS; k++) {
			r = next_random(&seed);
			ev[i].arg[k] = r & 3 ? (int64_t)(r >> 50) : r & 4 ? extremes[(r >> 8) % COUNT(extremes)] : (int64_t)r;
		}
	}
	struct trace *t = trace_from_events("m", ROLE_UNKNOWN, ev, N, NULL, 0);
	struct error err = ERROR_INIT;
	struct trace_cursor *c = trace_cursor_open(t, ALL_KINDS, -1, &err);
	size_t at[3] = { 0 }, n = 0;
	for (struct event last = { .ts = INT64_MIN }; trace_cursor_next(c, &got, &err) > 0; n++, last = got) {
		assert_true(got.ts > last.ts || (got.ts == last.ts && got.cpu >= last.cpu));
		size_t *i = &at[got.cpu];
		while (ev[*i].cpu != got.cpu)
			++*i;
		const struct event *want = &ev[(*i)++];
		assert_int_equal(got.ts, want->ts);
		assert_int_equal(got.kind, want->kind);
		assert_int_equal(got.tid, want->tid);
		for (size_t k = 0; k < EVENT_ARGS; k++)
			assert_int_equal(got.arg[k], k < event_args[got.kind] ? want->arg[k] : EVENT_ABSENT);
	}
	assert_int_equal(n, N);
	trace_cursor_close(c);
	trace_free(t);
	free(ev);
}

/* A stream has the exact set of its CPUs, so that cursors for other CPUs skip it. */
static void test_cpus_of_a_stream(void **state)
{
	static const uint16_t cpus[][5] = {
		{ 3, 3, 3, 3, 3 }, { 0, 65535, 0, 70, 70 }, { 65535, 65535, 65535, 65535, 65535 }, { 63, 64, 127, 128, 0 },
	};
	(void)state;
	struct error err = ERROR_INIT;
	struct store *store = store_new(SIZE_MAX, NULL, &err);
	struct cpu_set all = NO_CPUS;
	static bool seen[65536];
	assert_false(cpu_set_has(&all, 0));
	for (size_t i = 0; i < COUNT(cpus); i++) {
		struct stream s;
		struct writer w;
		stream_init(&s);
		writer_open(&w, store, &s);
		for (int k = 0; k < 5; k++) {
			struct event ev = { .ts = k, .kind = EV_OTHER, .cpu = cpus[i][k], .tid = -1, .pid = -1 };
			assert_int_equal(writer_put(&w, &ev, &err), 0);
			seen[cpus[i][k]] = true;
		}
		assert_int_equal(writer_close(&w, &err), 0);
		for (int cpu = 0; cpu < 65536; cpu++) {
			bool want = false;
			for (int k = 0; k < 5; k++)
				want |= cpus[i][k] == cpu;
			assert_int_equal(cpu_set_has(&s.cpus, cpu), want);
		}
		cpu_set_add(&all, &s.cpus);
		stream_release(&s, store);
		for (int cpu = 0; cpu < 65536; cpu++)
			assert_int_equal(cpu_set_has(&all, cpu), seen[cpu]);
	}
	cpu_set_release(&all);
	store_unref(store);
}

static void test_from_events(void **state)
{
	(void)state;
	static const char *const strings[] = { "", "burnP6", "fibonacci" };
	static const struct event ev[] = {
		{ .ts = 20,
		  .kind = EV_SWITCH,
		  .cpu = 1,
		  .tid = 0,
		  .sw = { .next_tid = 7, .prev_state = RUN_RUNNABLE, .next_comm = 1 } },
		{ .ts = 10, .kind = EV_VCPU_ENTRY, .cpu = 0, .tid = 5, .comm = 2, .vcpu_exit = { .vcpu = 0, .reason = EVENT_ABSENT } },
		{ .ts = 30, .kind = EV_LOST, .cpu = 0, .lost = { 40, 12 } },
	};
	struct trace *t = trace_from_events("host", ROLE_UNKNOWN, ev, COUNT(ev), strings, COUNT(strings));
	const struct trace_info *info = trace_info(t);
	assert_int_equal(info->begin, 10);
	assert_int_equal(info->end, 20);
	assert_int_equal(info->events, 2);
	assert_int_equal(info->lost, 12);
	assert_int_equal(info->role, ROLE_HOST);
	assert_int_equal(info->cpus, 2);
	struct error err = ERROR_INIT;
	struct trace_cursor *c = trace_cursor_open(t, ALL_KINDS, -1, &err);
	struct event got;
	assert_int_equal(trace_cursor_next(c, &got, &err), 1);
	assert_string_equal(trace_string(t, got.comm), "fibonacci");
	assert_int_equal(trace_cursor_next(c, &got, &err), 1);
	assert_string_equal(trace_string(t, got.sw.next_comm), "burnP6");
	assert_string_equal(trace_string(t, EVENT_ABSENT), "");
	assert_int_equal(trace_cursor_next(c, &got, &err), 1);
	assert_int_equal(got.lost.end, 40);
	assert_int_equal(trace_cursor_next(c, &got, &err), 0);
	trace_cursor_close(c);
	trace_free(t);
}

static int cancel_at_once(void *arg, const char *phase, uint64_t done, uint64_t total)
{
	(void)phase;
	(void)done;
	(void)total;
	++*(int *)arg;
	return 1;
}

static void test_cancel(void **state)
{
	(void)state;
	int calls = 0;
	struct trace_options options = { .progress = { cancel_at_once, &calls } };
	struct trace_spec *spec = NULL;
	size_t n = 0;
	struct error err = ERROR_INIT;
	struct trace *out[2];
	assert_int_equal(trace_discover(data("fibonacci"), &spec, &n, NULL, &err), 0);
	assert_int_equal(trace_load(spec, n, &options, out, NULL, &err), -1);
	assert_int_equal(err.status, STATUS_CANCELLED);
	assert_true(calls > 0);
	trace_specs_free(spec, n);
}

/* Applies the correction of trace-cmd: at the points, between and outside them; the order is kept. */
static void test_shift(void **state)
{
	(void)state;
	struct time_shift_point p[] = { { 1000, 500000 }, { 101000, 500100 }, { 201000, 499900 }, { 301000, 499950 } };
	const struct time_shift s = { p, COUNT(p) }, one = { p, 1 };
	assert_true(time_shift_is_valid(&s));
	assert_int_equal(time_shift_apply(&one, 777), 777 + 500000);
	for (size_t i = 0; i < COUNT(p); i++)
		assert_int_equal(time_shift_apply(&s, p[i].time), p[i].time + p[i].offset);
	int64_t before = INT64_MIN;
	for (int64_t t = -50000; t < 400000; t++) {
		const size_t i = t < 101000 ? 0 : t < 201000 ? 1 : 2;
		const double slope = (double)(p[i + 1].offset - p[i].offset) / (double)(p[i + 1].time - p[i].time);
		const int64_t got = time_shift_apply(&s, t);
		const double error = (double)(got - t - p[i].offset) - slope * (double)(t - p[i].time);
		if (error < -1 || error > 1 || got < before)
			fail_msg("%" PRId64 " became %" PRId64, t, got);
		before = got;
	}
	/* Rejects invalid points, and points so large that the correction would overflow. */
	p[2].time = p[1].time;
	assert_false(time_shift_is_valid(&s));
	p[2] = (struct time_shift_point){ p[1].time + 10, p[1].offset - 10 };
	assert_false(time_shift_is_valid(&s));
	p[2] = (struct time_shift_point){ INT64_MAX / 2, 0 };
	assert_false(time_shift_is_valid(&s));
	assert_false(time_shift_is_valid(&(struct time_shift){ NULL, 0 }));
	struct time_shift_point wide[] = { { -INT64_MAX / 5, 0 },
		                               { -INT64_MAX / 5 + 1, 0 },
		                               { INT64_MAX / 5, -INT64_MAX / 6 } };
	const struct time_shift w = { wide, COUNT(wide) };
	assert_true(time_shift_is_valid(&w));
	(void)time_shift_apply(&w, INT64_MAX / 4);
	(void)time_shift_apply(&w, INT64_MIN / 4);
}

static void test_naming(void **state)
{
	(void)state;
	static const char *const name[][2] = {
		{ "/t/guest-web", "web" }, { "/t/guest-web/ctf", "web" }, { "/t/guest-web/ctf/", "web" }, { "guest-web", "web" },
		{ "/t/guest-", "guest-" }, { "/t/host", "host" }, { "/guest-web/a/b", "b" }, { "/t/guest-a/guest-b", "b" },
	};
	for (size_t i = 0; i < COUNT(name); i++) {
		char *got = machine_name_of_dir(name[i][0]);
		assert_string_equal(got, name[i][1]);
		free(got);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shift),
		cmocka_unit_test(test_naming),
		cmocka_unit_test(test_fibonacci),
		cmocka_unit_test(test_recordings),
		cmocka_unit_test(test_info),
		cmocka_unit_test(test_options_do_not_matter),
		cmocka_unit_test(test_filters),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_part_after_a_step_back),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_cpus_of_a_stream),
		cmocka_unit_test(test_from_events),
		cmocka_unit_test(test_cancel),
	};
	return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}
