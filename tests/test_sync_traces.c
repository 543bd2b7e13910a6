/* Synchronization of recorded traces with known clocks: tests/data/fibonacci, and further traces if present.
 * STEALSCOPE_TEST_VERBOSE=1 prints the error of each clock. */
#include "test.h"

#include <json-c/json.h>
#include <math.h>

#include "base/mem.h"
#include "slice.h"
#include "sync/sync.h"

/* ---- the truth */

/* A part of a guest's time with host = guest + offset + rate * (guest - ref), and the offset in [low, high]. */
struct truth_part {
	int64_t from, to;        /* guest ns */
	int64_t ref, low, high;  /* ns */
	long double rate;
	int tid;                /* thread that runs the vCPU in this part; -1: the same thread in all parts */
};

struct truth {
	const char *vm;         /* borrowed */
	int pid, tid[8];
	unsigned vcpus;
	struct truth_part part[8];
	size_t parts;
	bool beacons;           /* the guest sent sync events */
};

static int64_t whole_trace(struct json_object *o, const char *key)
{
	return json_object_get_int64(json_object_object_get(o, key));
}

/* Reads a clock of one line, known to 0.2 us. */
static void read_line(struct truth *t, struct json_object *vm, int64_t guest_offset, int64_t host_offset)
{
	struct json_object *clock = json_object_object_get(vm, "true_clock");
	const int64_t begin = whole_trace(clock, "guest_begin") + guest_offset;
	const int64_t offset = whole_trace(clock, "host_at_begin") + host_offset - begin;
	t->part[t->parts++] = (struct truth_part){ INT64_MIN, INT64_MAX, begin, offset - 200, offset + 200,
		(long double)json_object_get_double(json_object_object_get(clock, "slope")) - 1, -1 };
}

/* Reads a clock with steps: bounds by its sync events at 99.6 ppm. */
static void read_parts(struct truth *t, struct json_object *segments, int64_t guest_offset, int64_t host_offset)
{
	const int64_t ref = whole_trace(json_object_array_get_idx(segments, 0), "guest_from") + guest_offset;
	for (size_t i = 0; i < json_object_array_length(segments); i++) {
		struct json_object *p = json_object_array_get_idx(segments, i);
		assert_true(i < COUNT(t->part));
		t->part[t->parts++] = (struct truth_part){
			whole_trace(p, "guest_from") + guest_offset, whole_trace(p, "guest_to") + guest_offset, ref,
			whole_trace(p, "offset_lo") + host_offset - guest_offset,
				whole_trace(p, "offset_hi") + host_offset - guest_offset,
				99.6e-6L,
			(int)whole_trace(p, "tid") };
	}
}

static int64_t clock_offset(struct json_object *truth, const char *trace)
{
	struct json_object *traces = json_object_object_get(truth, "traces"), *one = NULL;
	return json_object_object_get_ex(traces, trace, &one) ? whole_trace(one, "clock_offset_ns") : 0;
}

static void read_vm(struct truth *t, const char *name, struct json_object *vm, struct json_object *truth,
                    struct json_object *segments)
{
	char trace[64];
	*t = (struct truth){ .vm = name, .pid = (int)whole_trace(vm, "qemu_pid") };
	struct json_object_iter it;
	json_object_object_foreachC(json_object_object_get(vm, "vcpus"), it) {
		assert_true(t->vcpus < COUNT(t->tid));
		assert_int_equal(strtol(it.key, NULL, 10), t->vcpus);
		t->tid[t->vcpus++] = (int)whole_trace(it.val, "tid");
	}
	snprintf(trace, sizeof trace, "guest-%s", name);
	struct json_object *beacons = json_object_object_get(truth, "beacons");
	for (size_t i = 0; i < json_object_array_length(beacons); i++) {
		struct json_object *origin = json_object_object_get(json_object_array_get_idx(beacons, i), "where");
		t->beacons = t->beacons || strcmp(json_object_get_string(origin), trace) == 0;
	}
	if (segments != NULL)
		read_parts(t, segments, clock_offset(truth, trace), clock_offset(truth, "host"));
	else
		read_line(t, vm, clock_offset(truth, trace), clock_offset(truth, "host"));
}

static int64_t true_host(const struct truth_part *p, int64_t guest, int64_t offset)
{
	return guest + offset + llroundl((long double)(guest - p->ref) * p->rate);
}

/* ---- all directories */

struct dir {
	const char *name;
	struct json_object *truth, *segments;  /* segments: clock of its only guest; NULL: one line */
	struct trace **trace;
	size_t traces;
};

static struct json_object *read_json(const char *dir, const char *name)
{
	char *path = mem_printf("%s/%s", dir, name);
	struct json_object *json = json_object_from_file(path);
	free(path);
	return json;
}

/* Returns true if libtraceevent is needed for the directory, or for a part of it. */
static bool needs_tracecmd(const struct error *err, const struct notes *notes)
{
	bool needs = strstr(err->remedy, "libtraceevent") != NULL;
	for (size_t i = 0; i < notes->len; i++)
		needs = needs || strstr(notes->item[i].text, "without libtraceevent") != NULL;
	return needs;
}

static const struct sync_vm *vm_named(const struct sync_result *r, const char *name)
{
	for (size_t i = 0; i < r->vms; i++)
		if (strcmp(r->vm[i].name, name) == 0)
			return &r->vm[i];
	fail_msg("no VM called %s", name);
	return NULL;
}

static bool has_thread(const struct sync_vm *vm, int tid)
{
	for (size_t i = 0; i < vm->vcpus; i++)
		if (vm->vcpu[i].host_tid == tid)
			return true;
	return tid < 0;
}

static void check_identity(const struct dir *f, const struct truth *truth, const struct sync_result *r,
                           const struct sync_vm *vm)
{
	const bool has_pids = strcmp(trace_info(r->host)->layout, "ftrace") != 0;  /* ftrace records threads only */
	assert_int_equal(vm->host_pid, has_pids ? truth->pid : -1);
	assert_true(vm->migrated_pid < 0 || strcmp(f->name, "migrate") == 0);
	/* A migrated VM has as many threads again, in the destination process, which the truth does not list. */
	assert_int_equal(vm->vcpus, truth->vcpus * (vm->migrated_pid >= 0 ? 2 : 1));
	for (size_t i = 0; i < vm->vcpus; i++) {
		assert_int_equal(vm->vcpu[i].number, i % truth->vcpus);
		assert_true(i >= truth->vcpus || vm->vcpu[i].host_tid == truth->tid[i]);
	}
}

/* Checks the clock in one part of the truth: within `off` ns, or a quarter of the width of its error bounds, which must
 * include the truth. Returns the error. */
static int64_t check_part(const struct truth_part *p, const struct sync_vm *vm, int64_t off)
{
	const struct trace_info *info = trace_info(vm->guest);
	/* the first event after a step may fit the clock before it as well */
	const int64_t open = vm->method == SYNC_EVENTS && p->from > info->begin ? 1000000 : 0;
	int64_t from = p->from > info->begin ? p->from + open : info->begin, to = p->to < info->end ? p->to : info->end;
	int64_t worst = 0;
	/* The clock may be unverified near the ends of the trace; some guests were traced before their host was. */
	if (vm->clock.known_from < vm->clock.known_to) {
		assert_true(vm->clock.known_to - vm->clock.known_from > (info->end - info->begin) / 10 * 7);
		from = from > vm->clock.known_from ? from : vm->clock.known_from;
		to = to < vm->clock.known_to ? to : vm->clock.known_to;
	}
	for (int i = 0; i <= 2; i++) {
		const int64_t at = from + (to - from) / 2 * i, clock = clock_map_at(&vm->clock, at);
		const int64_t first = true_host(p, at, p->low), last = true_host(p, at, p->high);
		int64_t low, high, by = clock < first ? first - clock : clock > last ? clock - last : 0;
		assert_true(clock_map_bounds(&vm->clock, at, &low, &high));
		assert_true(low <= last && first <= high);
		assert_int_equal(clock_map_error_width(&vm->clock, at), high - low);
		assert_true(by <= off || by <= (high - low) / 4);
		worst = by > worst ? by : worst;
	}
	return worst;
}

static void check_clock(const struct dir *f, const struct truth *truth, const struct sync_vm *vm, int64_t off)
{
	int64_t worst = 0;
	size_t known = 0;
	for (size_t i = 0; i < truth->parts; i++)
		if (has_thread(vm, truth->part[i].tid)) {
			int64_t by = check_part(&truth->part[i], vm, off);
			worst = by > worst ? by : worst;
			known++;
		}
	assert_int_equal(vm->clock.segments, known);
	if (getenv("STEALSCOPE_TEST_VERBOSE") != NULL)
		print_message("%-18s %-8s %-12s off %6lld ns, band %6lld, contained %.4f\n", f->name, vm->name,
		              sync_method_name[vm->method], (long long)worst, (long long)clock_map_error_width(&vm->clock,
		              trace_info(vm->guest)->begin + (trace_info(vm->guest)->end - trace_info(vm->guest)->begin) / 2),
		              vm->containment);
	const bool all = known == truth->parts;
	for (size_t i = 0; i < vm->clock.segments; i++)
		assert_int_equal(vm->clock.segment[i].quality, all ? SYNC_ACCURATE : SYNC_APPROXIMATE);
	/* the pairs around a pause leave some 40 ms open, in which events alone cannot decide */
	assert_true(vm->containment == 1.0 || !all || (vm->method == SYNC_EVENTS && vm->clock.segments > 1));
	assert_true(vm->worst_violation == 0 || vm->containment < 1);
}

static void check_vm(const struct dir *f, const struct truth *truth, const struct sync_result *r,
                     enum sync_method requested)
{
	const struct sync_vm *vm = vm_named(r, truth->vm);
	const bool has_loss = strstr(f->name, "lost") != NULL, is_known = vm->method != SYNC_NONE;
	if (!vm->guest)
		return;  /* an untraced VM */
	const int64_t middle = trace_info(vm->guest)->begin + (trace_info(vm->guest)->end - trace_info(vm->guest)->begin) / 2;
	/* without sync events, or if a clock with steps leaves too few events between the steps, the clock may be unknown */
	assert_true(is_known || (requested == SYNC_EVENTS && !truth->beacons) ||
	            (requested == SYNC_CONTAINMENT && truth->parts > 1));
	if (!is_known) {
		assert_int_equal(vm->clock.segment[0].quality, SYNC_ABSENT);
		return;
	}
	assert_int_equal(vm->method, requested == SYNC_AUTO && !truth->beacons ? SYNC_CONTAINMENT : requested);
	check_identity(f, truth, r, vm);
	check_clock(f, truth, vm, requested == SYNC_EVENTS ? 8500 : has_loss ? 50000 : 5000);
	if (vm->method == SYNC_AUTO) {
		assert_in_range(vm->error_width_events, 1, 1000000);
		assert_in_range(vm->error_width_containment, 1, 1000000);
		assert_true(clock_map_error_width(&vm->clock, middle) <= vm->error_width_events);
		assert_true(clock_map_error_width(&vm->clock, middle) <= vm->error_width_containment);
	}
}

static void check_method(const struct dir *f, enum sync_method method)
{
	struct sync_options options = { .method = method, .bands = true };
	struct sync_result r;
	struct notes notes = { NULL, 0, 0 };
	struct error err = ERROR_INIT;
	assert_int_equal(sync_run(f->trace, f->traces, &options, &r, &notes, &err), 0);
	struct json_object_iter it;
	json_object_object_foreachC(json_object_object_get(f->truth, "vms"), it) {
		struct truth truth;
		read_vm(&truth, it.key, it.val, f->truth, f->segments);
		check_vm(f, &truth, &r, method);
	}
	sync_result_release(&r);
	notes_release(&notes);
}

/* Checks the clocks from events alone, without any event, and from both. */
static void check_dir(const char *dir)
{
	struct error err = ERROR_INIT;
	struct notes notes = { NULL, 0, 0 };
	struct trace_spec *spec = NULL;
	struct dir f = { .name = strrchr(dir, '/') + 1, .truth = read_json(dir, "truth.json") };
	struct json_object *clock = read_json(dir, "expected_clock.json");
	/* recordings of guests alone and of Xen hosts have another kind of truth */
	if (f.truth != NULL && json_object_object_get_ex(f.truth, "vms", NULL)) {
		struct trace_options options = { .workers = 1 };
		f.segments = json_object_object_get(clock, "pieces");
		bool failed = trace_discover(dir, &spec, &f.traces, &notes, &err);
		f.trace = mem_new(f.traces, sizeof(*f.trace));
		failed = failed || trace_load(spec, f.traces, &options, f.trace, &notes, &err);
		if (needs_tracecmd(&err, &notes)) {
			print_message("not in this build: %s\n", dir);
		} else {
			assert_false(failed);
			check_method(&f, SYNC_EVENTS);
			check_method(&f, SYNC_CONTAINMENT);
			check_method(&f, SYNC_AUTO);
		}
	}
	for (size_t i = 0; i < f.traces; i++)
		trace_free(f.trace[i]);
	free(f.trace);
	trace_specs_free(spec, f.traces);
	notes_release(&notes);
	json_object_put(f.truth);
	json_object_put(clock);
}

static void test_shipped(void **state)
{
	(void)state;
	const char *src = getenv("srcdir") == NULL ? "." : getenv("srcdir");
	char *own = mem_printf("%s/tests/data/fibonacci", src);
	check_dir(own);
	free(own);
}

static void test_recorded(void **state)
{
	(void)state;
	char *dir[MAX_RECORDINGS];
	size_t n = slice_recordings(dir, 6);
	if (!n)
		skip();
	for (size_t i = 0; i < n; i++) {
		check_dir(dir[i]);
		free(dir[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_shipped), cmocka_unit_test(test_recorded) };
	return cmocka_run_group_tests_name("sync traces", tests, NULL, NULL);
}
