/* sync/ on recorded traces whose clocks are known: tests/data/fibonacci, and more where they exist.
 * STEALSCOPE_TEST_VERBOSE=1 prints how far off each clock is. */
#include "test.h"

#include <json-c/json.h>
#include <math.h>

#include "base/mem.h"
#include "slice.h"
#include "sync/sync.h"

/* ---- the truth */

/* host = guest + offset + rate * (guest - ref), the offset somewhere within low..high, for a part of a guest's time. */
struct truth_part {
	int64_t from, to;       /* guest ns */
	int64_t ref, low, high; /* ns */
	long double rate;
	int tid;                /* its vCPU's thread then, -1 = all the same */
};

struct truth {
	const char *vm;         /* borrowed */
	int pid, tid[8];
	unsigned vcpus;
	struct truth_part part[8];
	size_t parts;
	bool beacons;           /* it sent synchronization events */
};

static int64_t whole(struct json_object *o, const char *key)
{
	return json_object_get_int64(json_object_object_get(o, key));
}

/* Of a clock that is one line: good to 0.2 us. */
static void read_line(struct truth *t, struct json_object *vm, int64_t guest_offset, int64_t host_offset)
{
	struct json_object *clock = json_object_object_get(vm, "true_clock");
	const int64_t begin = whole(clock, "guest_begin") + guest_offset;
	const int64_t offset = whole(clock, "host_at_begin") + host_offset - begin;
	t->part[t->parts++] = (struct truth_part){ INT64_MIN, INT64_MAX, begin, offset - 200, offset + 200,
		(long double)json_object_get_double(json_object_object_get(clock, "slope")) - 1, -1 };
}

/* Of one that steps: what its synchronization events leave open at 99.6 ppm. */
static void read_parts(struct truth *t, struct json_object *pieces, int64_t guest_offset, int64_t host_offset)
{
	const int64_t ref = whole(json_object_array_get_idx(pieces, 0), "guest_from") + guest_offset;
	for (size_t i = 0; i < json_object_array_length(pieces); i++) {
		struct json_object *p = json_object_array_get_idx(pieces, i);
		assert_true(i < COUNT(t->part));
		t->part[t->parts++] = (struct truth_part){
			whole(p, "guest_from") + guest_offset, whole(p, "guest_to") + guest_offset, ref,
			whole(p, "offset_lo") + host_offset - guest_offset, whole(p, "offset_hi") + host_offset - guest_offset, 99.6e-6L,
			(int)whole(p, "tid") };
	}
}

static int64_t clock_offset(struct json_object *truth, const char *trace)
{
	struct json_object *traces = json_object_object_get(truth, "traces"), *one = NULL;
	return json_object_object_get_ex(traces, trace, &one) ? whole(one, "clock_offset_ns") : 0;
}

static void read_vm(struct truth *t, const char *name, struct json_object *vm, struct json_object *truth,
                    struct json_object *pieces)
{
	char trace[64];
	*t = (struct truth){ .vm = name, .pid = (int)whole(vm, "qemu_pid") };
	struct json_object_iter it;
	json_object_object_foreachC(json_object_object_get(vm, "vcpus"), it) {
		assert_true(t->vcpus < COUNT(t->tid));
		assert_int_equal(strtol(it.key, NULL, 10), t->vcpus);
		t->tid[t->vcpus++] = (int)whole(it.val, "tid");
	}
	snprintf(trace, sizeof trace, "guest-%s", name);
	struct json_object *beacons = json_object_object_get(truth, "beacons");
	for (size_t i = 0; i < json_object_array_length(beacons); i++) {
		struct json_object *where = json_object_object_get(json_object_array_get_idx(beacons, i), "where");
		t->beacons = t->beacons || strcmp(json_object_get_string(where), trace) == 0;
	}
	if (pieces != NULL)
		read_parts(t, pieces, clock_offset(truth, trace), clock_offset(truth, "host"));
	else
		read_line(t, vm, clock_offset(truth, trace), clock_offset(truth, "host"));
}

static int64_t true_host(const struct truth_part *p, int64_t guest, int64_t offset)
{
	return guest + offset + llroundl((long double)(guest - p->ref) * p->rate);
}

/* ---- every folder there is */

struct folder {
	const char *name;
	struct json_object *truth, *pieces;  /* pieces: of its only guest's clock, or NULL */
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

/* Some folders are, in whole or in part, for builds with libtracecmd alone. */
static bool needs_tracecmd(const struct error *err, const struct notes *notes)
{
	bool needs = strstr(err->mend, "libtracecmd") != NULL;
	for (size_t i = 0; i < notes->len; i++)
		needs = needs || strstr(notes->item[i].text, "without libtracecmd") != NULL;
	return needs;
}

static void on_folder(const char *dir, void (*check)(const struct folder *f))
{
	struct error err = ERROR_INIT;
	struct notes notes = { NULL, 0, 0 };
	struct trace_spec *spec = NULL;
	struct folder f = { .name = strrchr(dir, '/') + 1, .truth = read_json(dir, "truth.json") };
	struct json_object *clock = read_json(dir, "expected_clock.json");
	if (f.truth != NULL) {
		struct trace_options options = { .workers = 1 };
		f.pieces = json_object_object_get(clock, "pieces");
		int failed = trace_discover(dir, &spec, &f.traces, &notes, &err);
		f.trace = mem_new(f.traces, sizeof(*f.trace));
		failed = failed || trace_load(spec, f.traces, &options, f.trace, &notes, &err);
		if (needs_tracecmd(&err, &notes)) {
			print_message("not in this build: %s\n", dir);
		} else {
			assert_false(failed);
			check(&f);
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

static void on_all(void (*check)(const struct folder *f))
{
	const char *src = getenv("srcdir") == NULL ? "." : getenv("srcdir");
	char *own = mem_printf("%s/tests/data/fibonacci", src), *more[RECORDINGS_MOST];
	on_folder(own, check);
	size_t n = slice_recordings(more, 16);
	for (size_t i = 0; i < n; i++) {
		on_folder(more[i], check);
		free(more[i]);
	}
	free(own);
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

static void check_identity(const struct folder *f, const struct truth *truth, const struct sync_result *r,
                           const struct sync_vm *vm)
{
	const bool has_pids = strcmp(trace_info(r->host)->layout, "ftrace") != 0;  /* ftrace tells threads only */
	assert_int_equal(vm->host_pid, has_pids ? truth->pid : -1);
	assert_true(vm->moved_pid < 0 || strcmp(f->name, "migrate") == 0);
	/* A machine that moved has as many threads again, of the process that took it over, which the truth does not list. */
	assert_int_equal(vm->vcpus, truth->vcpus * (vm->moved_pid >= 0 ? 2 : 1));
	for (size_t i = 0; i < vm->vcpus; i++) {
		assert_int_equal(vm->vcpu[i].number, i % truth->vcpus);
		assert_true(i >= truth->vcpus || vm->vcpu[i].host_tid == truth->tid[i]);
	}
}

/* The clock over one part of the truth: within `off` ns of it, or a quarter of the band, and the corridor holds it.  Returns
 * how far off it is. */
static int64_t check_part(const struct truth_part *p, const struct sync_vm *vm, int64_t off)
{
	const struct trace_info *info = trace_info(vm->guest);
	/* The first event after a step may fit the clock before it as well. */
	const int64_t open = vm->method == SYNC_EVENTS && p->from > info->begin ? 1000000 : 0;
	int64_t from = p->from > info->begin ? p->from + open : info->begin, to = p->to < info->end ? p->to : info->end;
	int64_t worst = 0;
	/* What is near an end may be too little to tell, and is said to be; some guests were traced before their host was. */
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
		assert_int_equal(clock_map_band(&vm->clock, at), high - low);
		assert_true(by <= off || by <= (high - low) / 4);
		worst = by > worst ? by : worst;
	}
	return worst;
}

static void check_clock(const struct folder *f, const struct truth *truth, const struct sync_vm *vm, int64_t off)
{
	int64_t worst = 0;
	size_t known = 0;
	for (size_t i = 0; i < truth->parts; i++)
		if (has_thread(vm, truth->part[i].tid)) {
			int64_t by = check_part(&truth->part[i], vm, off);
			worst = by > worst ? by : worst;
			known++;
		}
	assert_int_equal(vm->clock.pieces, known);
	if (getenv("STEALSCOPE_TEST_VERBOSE") != NULL)
		print_message("%-18s %-8s %-12s off %6lld ns, band %6lld, contained %.4f\n", f->name, vm->name,
		              sync_method_name[vm->method], (long long)worst, (long long)clock_map_band(&vm->clock,
		              trace_info(vm->guest)->begin + (trace_info(vm->guest)->end - trace_info(vm->guest)->begin) / 2),
		              vm->containment);
	const bool all = known == truth->parts;
	for (size_t i = 0; i < vm->clock.pieces; i++)
		assert_int_equal(vm->clock.piece[i].quality, all ? SYNC_ACCURATE : SYNC_APPROXIMATE);
	/* What the pairs of a pause leave open is some 40 ms, in which events alone cannot tell. */
	assert_true(vm->containment == 1.0 || !all || (vm->method == SYNC_EVENTS && vm->clock.pieces > 1));
	assert_true(vm->worst_violation == 0 || vm->containment < 1);
}

static void check_vm(const struct folder *f, const struct truth *truth, const struct sync_result *r,
                     enum sync_method asked)
{
	const struct sync_vm *vm = vm_named(r, truth->vm);
	const bool lossy = strstr(f->name, "lost") != NULL, told = vm->method != SYNC_NONE;
	if (!vm->guest)
		return;  /* a VM that nobody traced */
	const int64_t middle = trace_info(vm->guest)->begin + (trace_info(vm->guest)->end - trace_info(vm->guest)->begin) / 2;
	/* Silence is an answer where there are no events, or where a clock that steps leaves too little between. */
	assert_true(told || (asked == SYNC_EVENTS && !truth->beacons) || (asked == SYNC_CONTAINMENT && truth->parts > 1));
	if (!told) {
		assert_int_equal(vm->clock.piece[0].quality, SYNC_ABSENT);
		return;
	}
	assert_int_equal(vm->method, asked == SYNC_AUTO && !truth->beacons ? SYNC_CONTAINMENT : asked);
	check_identity(f, truth, r, vm);
	check_clock(f, truth, vm, asked == SYNC_EVENTS ? 8500 : lossy ? 50000 : 5000);
	if (vm->method == SYNC_AUTO) {
		assert_in_range(vm->band_events, 1, 1000000);
		assert_in_range(vm->band_containment, 1, 1000000);
		assert_true(clock_map_band(&vm->clock, middle) <= vm->band_events);
		assert_true(clock_map_band(&vm->clock, middle) <= vm->band_containment);
	}
}

static void check_method(const struct folder *f, enum sync_method method)
{
	struct sync_options options = { .method = method, .bands = true };
	struct sync_result r;
	struct notes notes = { NULL, 0, 0 };
	struct error err = ERROR_INIT;
	assert_int_equal(sync_run(f->trace, f->traces, &options, &r, &notes, &err), 0);
	struct json_object_iter it;
	json_object_object_foreachC(json_object_object_get(f->truth, "vms"), it) {
		struct truth truth;
		read_vm(&truth, it.key, it.val, f->truth, f->pieces);
		check_vm(f, &truth, &r, method);
	}
	sync_result_release(&r);
	notes_release(&notes);
}

static void check_events(const struct folder *f)
{
	check_method(f, SYNC_EVENTS);
}

/* Without looking at a single synchronization event. */
static void check_containment(const struct folder *f)
{
	check_method(f, SYNC_CONTAINMENT);
}

static void check_auto(const struct folder *f)
{
	check_method(f, SYNC_AUTO);
}

static void test_events(void **state)
{
	(void)state;
	on_all(check_events);
}

static void test_containment(void **state)
{
	(void)state;
	on_all(check_containment);
}

static void test_auto(void **state)
{
	(void)state;
	on_all(check_auto);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events), cmocka_unit_test(test_containment), cmocka_unit_test(test_auto),
	};
	return cmocka_run_group_tests_name("sync traces", tests, NULL, NULL);
}
