/* The central property: the analysis finds what happened.
 *
 * For each seed the simulator draws a host, guests and workloads, and writes their traces and the truth. The whole chain
 * (trace, sync, model, history) reads the traces, and the test compares every interval of every attribute:
 *   - perfect clocks, constant offset: equal to the ns;
 *   - drifting clocks, with or without sync events: a difference is allowed only around a change in the truth, within
 *     the error bound that the clock reports for that time; and the true clock must always lie within the error bounds.
 *     Only attributes of a guest without error bounds are skipped;
 *   - lost events: known states are right, to the ns;
 *   - reasons why a vCPU does not execute: those found are right.
 *
 * In a brief build (slice.h) only a quarter of the pinned seeds is run, but always one with a clock that must be found.
 *
 * Usage: test_truth [FROM TO [SECONDS] | steps 1 | steps 2]: a range of seeds, with a time limit; a half of the pinned seeds
 * with clock steps, which take longest; default: few seeds and the other pinned ones, or 100 seeds by STEALSCOPE_SLICE. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "history/history.h"
#include "model/model.h"
#include "sim/simulate.h"
#include "slice.h"
#include "sync/sync.h"
#include "trace/trace.h"
#include "truth_cases.h"
#include "truth_reasons.h"
#include "truth_rows.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Reports a true clock outside the error bounds. */
static void report_outside(void *arg, const char *machine, int64_t host, int64_t low, int64_t high)
{
	char text[64] = "no error bounds";

	if (low <= high)
		snprintf(text, sizeof text, "clock error bounds %" PRId64 "..%" PRId64, low, high);
	run_report(arg, machine, host, host, text, low <= high ? "0" : "one");
}

static void compare_clocks(struct truth_run *r, const struct sync_result *sync)
{
	bounds_begin(&r->bounds, &r->truth, r->test->slack);
	for (size_t i = 0; i < sync->vms && r->test->slack >= 0; i++) {
		const struct sync_vm *vm = &sync->vm[i];

		if (!vm->guest)
			continue;
		bool sure = vm->clock.segments > 0 && vm->clock.segment[0].quality == SYNC_ACCURATE;
		const bool everywhere = vm->clock.known_from == vm->clock.known_to;
		const int64_t known_from = everywhere ? trace_info(vm->guest)->begin : vm->clock.known_from;
		const bool has_bounds = clock_map_error_width(&vm->clock, known_from) >= 0;

		if (sure || has_bounds)  /* a clock that is not ACCURATE is still right within its error bounds */
			bounds_add(&r->bounds, &r->truth, vm, report_outside, r);
		else
			bounds_add_unknown(&r->bounds, vm);
	}
}

/* Returns true if more than a quarter of some trace was lost: the analysis may then miss threads of a guest, which is
 * not an error. */
static bool is_mostly_lost(struct trace *const *trace, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (trace_info(trace[i])->lost * 4 > trace_info(trace[i])->events)
			return true;
	return false;
}

static bool is_traced(const char *machine, struct trace *const *trace, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(trace_info(trace[i])->machine, machine) == 0)
			return true;
	return false;
}

/* Fills in the vCPU threads of the traced guests from the truth, as a session file does. Returns the number of hints. */
static size_t true_hints(const struct truth_run *r, struct trace *const *trace, size_t traces, struct sync_hint hint[16])
{
	size_t n = 0;

	for (size_t i = 0; i < r->truth.vcpus; i++) {
		const struct truth_vcpu *v = &r->truth.vcpu[i];
		size_t k = 0;

		while (k < n && strcmp(hint[k].guest, v->vm))
			k++;
		if (k == 16 || !is_traced(v->vm, trace, traces))
			continue;
		if (k == n)
			hint[n++] = (struct sync_hint){ .guest = mem_dup(v->vm), .parent = mem_dup(v->parent),
			                                .vcpu = mem_new(r->truth.vcpus, sizeof *hint->vcpu) };
		hint[k].vcpu[hint[k].vcpus++] = (struct sync_hint_vcpu){ v->number, v->host_tid };
	}
	return n;
}

/* Sets the true clocks, so that only the model can be wrong. */
static void use_true_clock(const struct truth_run *r, struct sync_vm *vm)
{
	int64_t guest = truth_guest_time(&r->truth, vm->name, r->truth.begin);
	struct clock_line line = { guest, r->truth.begin, 0 };

	if (!vm->guest || vm->clock.segments == 0)
		return;
	vm->clock.segments = 1;
	vm->clock.segment[0].line = vm->clock.segment[0].lowest = vm->clock.segment[0].highest = line;
}

/* Indexes the traces below dir. */
static int index_run(struct truth_run *r, const char *dir, const char *file, struct error *err)
{
	struct trace_spec *spec = NULL;
	struct trace *trace[16] = { NULL };
	struct trace_options trace_options = { .workers = 1 };
	struct sync_hint hint[16] = { { .guest = NULL } };
	struct sync_options sync_options = { .method = r->test->method, .offset = INT64_C(-7000000321), .hint = hint };
	struct model_options model_options = { .paper_states = false };
	struct sync_result sync = { .host = NULL };
	struct model_interval span = { 0, 0, 0 };
	struct notes notes = { NULL, 0, 0 };
	struct history_builder *b = NULL;
	size_t n = 0;
	int result = -1;

	if (trace_discover(dir, &spec, &n, NULL, err) < 0 || n > 16)
		goto out;
	for (size_t i = 0; i < n && !r->test->finds_roles; i++)  /* without kvm events the host cannot be recognized */
		spec[i].role = strstr(spec[i].dir, "/host") ? ROLE_HOST : ROLE_GUEST;
	if (trace_load(spec, n, &trace_options, trace, &notes, err) < 0)
		goto out;
	for (size_t i = 0; i < n; i++)
		if (records_add(&r->records, trace[i], err) < 0)
			goto out;
	if (r->test->true_sync)
		sync_options.hints = true_hints(r, trace, n, hint);
	if (sync_run(trace, n, &sync_options, &sync, &notes, err) < 0)
		goto out;
	compare_clocks(r, &sync);
	for (size_t i = 0, k = 0; i < sync.vms && k < COUNT(r->unplaced); i++)
		if (sync.vm[i].guest && sync.vm[i].vcpus == 0)
			snprintf(r->unplaced[k++], sizeof *r->unplaced, "%s", sync.vm[i].name);
	for (size_t i = 0; i < sync.vms; i++)
		r->skipped = r->skipped || (sync.vm[i].guest && sync.vm[i].vcpus == 0 && is_mostly_lost(trace, n));
	for (size_t i = 0; i < sync.vms && r->test->true_sync; i++)
		use_true_clock(r, &sync.vm[i]);
	b = history_create(file, NULL, err);
	if (!b || model_run(&sync, &model_options, b, &span, &notes, err) < 0) {
		history_abort(b);
		goto out;
	}
	result = history_finish(b, span.begin, span.end, err);
out:
	sync_result_release(&sync);
	for (size_t i = 0; i < sync_options.hints; i++) {
		free(hint[i].guest);
		free(hint[i].parent);
		free(hint[i].vcpu);
	}
	for (size_t i = 0; i < n && i < 16; i++)
		trace_free(trace[i]);
	trace_specs_free(spec, n);
	notes_release(&notes);
	return result;
}

/* Returns true if all attributes agree. */
static bool run_case(const struct test_case *test, uint64_t seed, const char *tmp)
{
	struct truth_run r = { .test = test, .seed = seed };
	struct options o = { .scenario = "random", .seed = seed, .number = 1, .beacon_hz = 20, .hogs = 1, .burst = 3,
	                     .packet = 65536, .step_at = 500000, .duration = 400 * MS };
	struct error err = ERROR_INIT;
	struct sim_result done;
	char *dir = mem_printf("%s/%s-%" PRIu64, tmp, test->name, seed), *file = mem_printf("%s/h.steal", dir);

	o.out = dir;
	test->options(&o);
	if (simulate(&o, &done, &err) < 0 || !truth_read(&r.truth, dir) || index_run(&r, dir, file, &err) < 0 ||
	    !(r.h = history_open(file, &err)) || (!r.skipped && run_compare(&r, &err) < 0)) {
		printf("%s seed %" PRIu64 ": %s\n", test->name, seed, err.text);
		r.wrong++;
	}
	if (pinned_needs_clock(test->name, seed) && bounds_any_unknown(&r.bounds))
		run_report(&r, "clocks", r.truth.begin, r.truth.end, "one without error bounds", "all known");
	if (r.wrong > RUN_SHOWN)
		printf("%s seed %" PRIu64 ": %u disagreements in all\n", test->name, seed, r.wrong);
	if (getenv("TRUTH_VERBOSE"))
		printf("%-12s %5" PRIu64 " %8" PRIu64 " records, tolerance %" PRId64 " ns, unknown %.4f %%, %zu rows, "
		       "clocks unknown %.2f %%%s%s\n", test->name, seed, done.records, bounds_max(&r.bounds),
		       100.0 * (double)r.unknown_ns / (double)(r.known_ns + r.unknown_ns + 1), r.compared,
		       100 * bounds_unknown_share(&r.bounds), bounds_any_unknown(&r.bounds) ? ", clocks not found" : "",
		       r.wrong ? ", WRONG" : "");
	reasons_end_world();
	history_close(r.h);
	truth_release(&r.truth);
	records_release(&r.records);
	if (!r.wrong || !getenv("TRUTH_KEEP"))
		truth_remove(dir);
	free(file);
	free(dir);
	return !r.wrong;
}

/* Runs part 0, 1 or 2 of the pinned seeds: the parts 1 and 2 have clock steps. */
static void run_pinned(size_t part, const char *tmp, unsigned *total, unsigned *failed)
{
	for (size_t i = 0; i < pinneds; i++)
		for (size_t k = 0; k < test_cases; k++)
			if (!strcmp(pinned[i].name, test_case[k].name) && (!slice_brief() || slice_has(i, 4)) &&
			    part == (strstr(pinned[i].name, "step") ? 1 + i / 4 % 2 : 0)) {
				++*total;
				*failed += !run_case(&test_case[k], pinned[i].seed, tmp);
			}
}

/* Minimum time of a reason to judge the share that is named, ns: of the default seeds, whose share is known; of any others. */
#define DEFAULT_ENOUGH_NS INT64_C(500000000)
#define RANGE_ENOUGH_NS INT64_C(20000000000)
#define DAILY_SECONDS 48 /* no further seed begins in `make check-daily` */

int main(int argc, char **argv)
{
	const bool is_daily = argc < 3 && getenv("STEALSCOPE_SLICE"), is_steps = argc == 3 && strcmp(argv[1], "steps") == 0;
	uint64_t from = is_daily ? 100 * (uint64_t)slice_number() : 1, to = is_daily ? from + 99 : slice_brief() ? 1 : 3;
	const char *base = getenv("TMPDIR"), *only = getenv("TRUTH_CASE");
	char *tmp = mem_printf("%s/test_truth.XXXXXX", base && *base ? base : "/tmp");
	unsigned failed = 0, total = 0;

	if (is_steps) {
		to = 0;  /* no seed */
	} else if (argc > 2) {
		from = strtoull(argv[1], NULL, 10);
		to = strtoull(argv[2], NULL, 10);
	}
	if (!mkdtemp(tmp)) {
		perror(tmp);
		return 99;
	}
	const time_t last = argc > 3 ? time(NULL) + strtol(argv[3], NULL, 10) : is_daily ? time(NULL) + DAILY_SECONDS : 0;
	uint64_t seed = from;
	for (; seed <= to && (!last || seed == from || time(NULL) < last); seed++)
		for (size_t i = 0; i < test_cases; i++) {
			if (only ? strcmp(only, test_case[i].name) != 0 : test_case[i].only_named ||
			    (test_case[i].only_long && argc < 3 && !is_daily))
				continue;
			total++;
			failed += !run_case(&test_case[i], seed, tmp);
		}
	if ((argc < 3 && !only && !is_daily) || is_steps)
		run_pinned(is_steps ? strtoul(argv[2], NULL, 10) : 0, tmp, &total, &failed);
	const bool has_good_estimates = estimates_hold();
	const bool has_reasons = reasons_are_named(argc > 2 || is_daily ? RANGE_ENOUGH_NS : DEFAULT_ENOUGH_NS);
	printf("%" PRIu64 " seeds from %" PRIu64 ": %u of %u runs agree with the truth\n", seed - from, from, total - failed, total);
	if (!failed)
		truth_remove(tmp);
	else
		printf("traces of disagreements are kept in %s if TRUTH_KEEP is set\n", tmp);
	free(tmp);
	return failed || !has_good_estimates || !has_reasons;
}
