/* sync/ on recorded traces whose clocks are known: tests/data/fibonacci, and more where they exist. */
#include "test.h"

#include <dirent.h>
#include <math.h>

#include "base/mem.h"
#include "sync/sync.h"

/* ---- the truth: host_mono = host_at_begin + slope * (guest_mono - guest_begin) */

struct truth {
	long long guest_begin, host_at_begin, guest_offset, host_offset;
	double slope;
	long long min_ab, min_cd;  /* delays of the synchronization events, ns */
	char vm[32];
	long long pid, tid[8];
	unsigned vcpus;
};

static const char *after(const char *text, const char *key)
{
	char *quoted = mem_printf("\"%s\"", key);
	const char *p = text == NULL ? NULL : strstr(text, quoted);
	size_t len = strlen(quoted);
	free(quoted);
	return p == NULL ? NULL : p + len;
}

static long long whole(const char *text, const char *key)
{
	const char *p = after(text, key);
	assert_non_null(p);
	return strtoll(p + strcspn(p, ":") + 1, NULL, 10);
}

static bool read_truth(const char *dir, struct truth *t)
{
	char *path = mem_printf("%s/truth.json", dir), key[64];
	FILE *f = fopen(path, "r");
	free(path);
	if (f == NULL)
		return false;
	size_t size = 1 << 22;
	char *text = mem_new(size, 1);
	text[fread(text, 1, size - 1, f)] = '\0';
	fclose(f);
	const char *vms = after(text, "vms"), *clock = after(vms, "true_clock"), *traces = after(text, "traces");
	assert_true(vms != NULL && clock != NULL && traces != NULL);
	memset(t, 0, sizeof *t);
	const char *name = vms + strcspn(vms, "{") + 1;
	name += strcspn(name, "\"") + 1;
	snprintf(t->vm, sizeof t->vm, "%.*s", (int)strcspn(name, "\""), name);
	t->pid = whole(vms, "qemu_pid");
	const char *vcpu = after(vms, "vcpus");
	const char *end = after(vms, "other_threads");
	for (const char *p = vcpu; (p = strstr(p, "\"tid\"")) != NULL && p < end && t->vcpus < 8; p++)
		t->tid[t->vcpus++] = whole(p, "tid");
	t->guest_begin = whole(clock, "guest_begin");
	t->host_at_begin = whole(clock, "host_at_begin");
	const char *slope = after(clock, "slope");
	t->slope = strtod(slope + strcspn(slope, ":") + 1, NULL);
	t->min_ab = whole(after(vms, "delay_ab_ns"), "min");
	t->min_cd = whole(after(vms, "delay_cd_ns"), "min");
	snprintf(key, sizeof key, "guest-%s", t->vm);
	t->guest_offset = whole(after(traces, key), "clock_offset_ns");
	t->host_offset = whole(after(traces, "host"), "clock_offset_ns");
	free(text);
	return true;
}

static int64_t true_host(const struct truth *t, int64_t guest)
{
	int64_t since = guest - t->guest_offset - t->guest_begin;
	return t->host_offset + t->host_at_begin + since + llroundl((long double)since * ((long double)t->slope - 1));
}

/* ---- every folder there is */

typedef void check_fn(const char *dir, const struct truth *truth, struct trace **trace, size_t n);

static void on_folder(const char *dir, check_fn *check)
{
	struct truth truth;
	struct error err = ERROR_INIT;
	struct notes notes = { NULL, 0, 0 };
	struct trace_spec *spec = NULL;
	size_t n = 0;
	if (!read_truth(dir, &truth) || trace_discover(dir, &spec, &n, &err) != 0)
		return;
	struct trace **trace = mem_new(n, sizeof(*trace));
	struct trace_options options = { .workers = 1 };
	if (n >= 2) {  /* some recordings have parts in other formats */
		assert_int_equal(trace_load(spec, n, &options, trace, &notes, &err), 0);
		check(dir, &truth, trace, n);
		for (size_t i = 0; i < n; i++)
			trace_free(trace[i]);
	}
	free(trace);
	trace_specs_free(spec, n);
	notes_release(&notes);
}

static void on_all(check_fn *check)
{
	const char *src = getenv("srcdir") == NULL ? "." : getenv("srcdir");
	char *own = mem_printf("%s/tests/data/fibonacci", src), *more = mem_printf("%s/../shared/traces", src);
	on_folder(own, check);
	DIR *d = opendir(more);
	for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
		char *dir = mem_printf("%s/%s", more, e->d_name);
		if (e->d_name[0] != '.')
			on_folder(dir, check);
		free(dir);
	}
	if (d != NULL)
		closedir(d);
	free(own);
	free(more);
}

static const struct sync_vm *only_guest(const struct sync_result *r)
{
	const struct sync_vm *guest = NULL;
	for (size_t i = 0; i < r->vms; i++)
		if (r->vm[i].guest != NULL)
			guest = &r->vm[i];
	assert_non_null(guest);
	return guest;
}

static void check_identity(const struct truth *truth, const struct sync_vm *vm)
{
	assert_string_equal(vm->name, truth->vm);
	const bool has_pids = strcmp(trace_info(vm->guest)->layout, "ftrace") != 0;  /* ftrace tells threads only */
	assert_int_equal(vm->host_pid, has_pids ? truth->pid : -1);
	assert_int_equal(vm->vcpus, truth->vcpus);
	for (size_t i = 0; i < vm->vcpus; i++) {
		assert_int_equal(vm->vcpu[i].number, i);
		assert_int_equal(vm->vcpu[i].host_tid, truth->tid[i]);
	}
}

static void check_events(const char *dir, const struct truth *truth, struct trace **trace, size_t n)
{
	struct sync_options options = { .method = SYNC_EVENTS };
	struct sync_result r;
	struct notes notes = { NULL, 0, 0 };
	struct error err = ERROR_INIT;
	assert_int_equal(sync_run(trace, n, &options, &r, &notes, &err), 0);
	const struct sync_vm *vm = only_guest(&r);
	const struct trace_info *info = trace_info(vm->guest);
	check_identity(truth, vm);
	assert_int_equal(vm->method, SYNC_EVENTS);
	assert_int_equal(vm->clock.pieces, 1);
	assert_int_equal(vm->clock.piece[0].quality, SYNC_ACCURATE);
	double ppm = clock_line_ppm(&vm->clock.piece[0].line), want = (truth->slope - 1) * 1e6;
	assert_true(fabs(ppm - want) <= 2);
	const int64_t at[3] = { info->begin, info->begin + (info->end - info->begin) / 2, info->end };
	for (int i = 0; i < 3; i++) {
		int64_t low, high, host = true_host(truth, at[i]);
		assert_true(llabs(clock_map_at(&vm->clock, at[i]) - host) <= (truth->min_ab + truth->min_cd) / 2);
		assert_true(clock_map_bounds(&vm->clock, at[i], &low, &high));
		assert_true(low <= host && host <= high);
		assert_int_equal(clock_map_band(&vm->clock, at[i]), high - low);
	}
	assert_true(vm->containment == 1.0);
	assert_int_equal(vm->worst_violation, 0);
	(void)dir;
	sync_result_release(&r);
	notes_release(&notes);
}

static void test_events(void **state)
{
	(void)state;
	on_all(check_events);
}

/* Without looking at a single synchronization event (containment), and with both kinds of pairs (auto). */
static void check_contained(const char *dir, const struct truth *truth, struct trace **trace, size_t n,
                            enum sync_method method)
{
	struct sync_options options = { .method = method };
	struct sync_result r;
	struct notes notes = { NULL, 0, 0 };
	struct error err = ERROR_INIT;
	bool lossy = strstr(dir, "lost") != NULL;
	assert_int_equal(sync_run(trace, n, &options, &r, &notes, &err), 0);
	const struct sync_vm *vm = only_guest(&r);
	const struct trace_info *info = trace_info(vm->guest);
	check_identity(truth, vm);
	assert_int_equal(vm->method, method);
	assert_int_equal(vm->clock.pieces, 1);
	assert_int_equal(vm->clock.piece[0].quality, SYNC_ACCURATE);
	assert_true(fabs(clock_line_ppm(&vm->clock.piece[0].line) - (truth->slope - 1) * 1e6) <= 6);
	const int64_t at[2] = { info->begin, info->end };
	for (int i = 0; i < 2; i++) {
		int64_t low, high, host = true_host(truth, at[i]);
		assert_true(llabs(clock_map_at(&vm->clock, at[i]) - host) <= (lossy ? 50000 : 5000));
		assert_true(clock_map_bounds(&vm->clock, at[i], &low, &high));
		assert_true(low <= host && host <= high);
	}
	assert_true(vm->containment == 1.0);
	if (method == SYNC_AUTO) {
		int64_t middle = info->begin + (info->end - info->begin) / 2;
		assert_in_range(vm->band_events, 1, 1000000);
		assert_in_range(vm->band_containment, 1, 1000000);
		assert_true(clock_map_band(&vm->clock, middle) <= vm->band_events);
		assert_true(clock_map_band(&vm->clock, middle) <= vm->band_containment);
	}
	sync_result_release(&r);
	notes_release(&notes);
}

static void check_containment(const char *dir, const struct truth *truth, struct trace **trace, size_t n)
{
	check_contained(dir, truth, trace, n, SYNC_CONTAINMENT);
}

static void check_auto(const char *dir, const struct truth *truth, struct trace **trace, size_t n)
{
	check_contained(dir, truth, trace, n, SYNC_AUTO);
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
