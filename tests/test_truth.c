/* The property that matters: what the analysis finds is what happened.
 *
 * For each seed the simulator draws a host, guests and workloads, writes their traces, and says what was true; the
 * whole chain (trace, sync, model, history) reads the traces; every interval of every attribute is compared.
 *   perfect clocks, a constant offset:  equal to the ns
 *   clocks that drift, events or no events to synchronize by:  a difference is allowed only within the error band that
 *   the guest's clock reports for that time, around a moment at which the truth itself changes; and the true clock must
 *   lie in the reported corridor, all along.  What belongs to a guest without a corridor is left out, the rest is not
 *   lost events:  where the analysis claims to know, it is right, to the ns
 *   why a vCPU is out:  what is named is so
 * Usage: test_truth [FROM TO [SECONDS]]  (seeds, as far as the time goes; without them a quick set) */
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

/* The true clock of a guest must lie in the corridor that the analysis reports, all along. */
static void tell_outside(void *arg, const char *machine, int64_t host, int64_t low, int64_t high)
{
	char text[64] = "no corridor";

	if (low <= high)
		snprintf(text, sizeof text, "clock corridor %" PRId64 "..%" PRId64, low, high);
	run_complain(arg, machine, host, host, text, low <= high ? "0" : "one");
}

static void compare_clocks(struct run *r, const struct sync_result *sync)
{
	doubt_begin(&r->doubt, &r->truth, r->test->slack);
	for (size_t i = 0; i < sync->vms && r->test->slack >= 0; i++) {
		const struct sync_vm *vm = &sync->vm[i];

		if (!vm->guest)
			continue;
		bool sure = vm->clock.pieces > 0 && vm->clock.piece[0].quality == SYNC_ACCURATE;
		const bool everywhere = vm->clock.known_from == vm->clock.known_to;
		bool banded = clock_map_band(&vm->clock, everywhere ? trace_info(vm->guest)->begin : vm->clock.known_from) >= 0;

		if (sure || banded)  /* a clock that is not sure is right within its band all the same */
			doubt_add(&r->doubt, &r->truth, vm, tell_outside, r);
		else
			doubt_add_unknown(&r->doubt, vm);
	}
}

/* Where very much was lost, what runs inside a guest may not be found there; this is no claim about its threads. */
static bool hardly_traced(struct trace *const *trace, size_t n)
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

/* vCPU threads of the traced guests from the truth, as a session file gives them.  Returns how many hints. */
static size_t true_hints(const struct run *r, struct trace *const *trace, size_t traces, struct sync_hint hint[16])
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

/* Clocks from the truth: what is left to go wrong is the model's. */
static void set_true_sync(const struct run *r, struct sync_vm *vm)
{
	int64_t guest = truth_guest_time(&r->truth, vm->name, r->truth.begin);
	struct clock_line line = { guest, r->truth.begin, 0 };

	if (!vm->guest || vm->clock.pieces == 0)
		return;
	vm->clock.pieces = 1;
	vm->clock.piece[0].line = vm->clock.piece[0].lowest = vm->clock.piece[0].highest = line;
}

/* Reads the traces below dir into a history. */
static int analyse(struct run *r, const char *dir, const char *file, struct error *err)
{
	struct trace_spec *spec = NULL;
	struct trace *trace[16] = { NULL };
	struct trace_options trace_options = { .workers = 1 };
	struct sync_hint hint[16] = { { .guest = NULL } };
	struct sync_options sync_options = { .method = r->test->method, .offset = INT64_C(-7000000321), .hint = hint };
	struct model_options model_options = { .paper_states = false };
	struct sync_result sync = { .host = NULL };
	struct model_span span = { 0, 0, 0 };
	struct notes notes = { NULL, 0, 0 };
	struct history_builder *b = NULL;
	size_t n = 0;
	int result = -1;

	if (trace_discover(dir, &spec, &n, NULL, err) < 0 || n > 16)
		goto out;
	for (size_t i = 0; i < n && !r->test->finds_roles; i++)  /* without kvm events nobody can tell */
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
		r->skipped = r->skipped || (sync.vm[i].guest && sync.vm[i].vcpus == 0 && hardly_traced(trace, n));
	for (size_t i = 0; i < sync.vms && r->test->true_sync; i++)
		set_true_sync(r, &sync.vm[i]);
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

/* True when all is well. */
static bool run_case(const struct test_case *test, uint64_t seed, const char *tmp)
{
	struct run r = { .test = test, .seed = seed };
	struct options o = { .scenario = "random", .seed = seed, .number = 1, .beacon_hz = 20, .hogs = 1, .burst = 3,
	                     .packet = 65536, .step_at = 500000, .duration = 400 * MS };
	struct error err = ERROR_INIT;
	struct sim_result done;
	char *dir = mem_printf("%s/%s-%" PRIu64, tmp, test->name, seed), *file = mem_printf("%s/h.steal", dir);

	o.out = dir;
	test->options(&o);
	if (simulate(&o, &done, &err) < 0 || !truth_read(&r.truth, dir) || analyse(&r, dir, file, &err) < 0 ||
	    !(r.h = history_open(file, &err)) || (!r.skipped && run_compare(&r, &err) < 0)) {
		printf("%s seed %" PRIu64 ": %s\n", test->name, seed, err.text);
		r.wrong++;
	}
	if (pinned_told(test->name, seed) && doubt_unknown(&r.doubt))
		run_complain(&r, "clocks", r.truth.begin, r.truth.end, "one without a corridor", "all known");
	if (r.wrong > RUN_SHOWN)
		printf("%s seed %" PRIu64 ": %u disagreements in all\n", test->name, seed, r.wrong);
	if (getenv("TRUTH_VERBOSE"))
		printf("%-12s %5" PRIu64 " %8" PRIu64 " records, tolerance %" PRId64 " ns, unknown %.4f %%, %zu rows, clocks unknown %.2f %%%s%s\n",
		       test->name, seed,
		       done.records, doubt_most(&r.doubt), 100.0 * (double)r.unknown_ns / (double)(r.known_ns + r.unknown_ns + 1),
		       r.compared, 100 * doubt_share(&r.doubt), doubt_unknown(&r.doubt) ? ", clocks not found" : "", r.wrong ? ", WRONG" : "");
	history_close(r.h);
	truth_release(&r.truth);
	records_release(&r.records);
	if (!r.wrong || !getenv("TRUTH_KEEP"))
		truth_remove(dir);
	free(file);
	free(dir);
	return !r.wrong;
}

static void run_pinned(const char *tmp, unsigned *total, unsigned *failed)
{
	for (size_t i = 0; i < pinneds; i++)
		for (size_t k = 0; k < test_cases; k++)
			if (!strcmp(pinned[i].name, test_case[k].name) && (!slice_brief() || slice_has(i, 4))) {
				++*total;
				*failed += !run_case(&test_case[k], pinned[i].seed, tmp);
			}
}

int main(int argc, char **argv)
{
	uint64_t from = 1, to = slice_brief() ? 1 : 3;
	const char *base = getenv("TMPDIR"), *only = getenv("TRUTH_CASE");
	char *tmp = mem_printf("%s/test_truth.XXXXXX", base && *base ? base : "/tmp");
	unsigned failed = 0, total = 0;

	if (argc > 2) {
		from = strtoull(argv[1], NULL, 10);
		to = strtoull(argv[2], NULL, 10);
	}
	if (!mkdtemp(tmp)) {
		perror(tmp);
		return 99;
	}
	const time_t last = argc > 3 ? time(NULL) + strtol(argv[3], NULL, 10) : 0;
	uint64_t seed = from;
	for (; seed <= to && (!last || seed == from || time(NULL) < last); seed++)
		for (size_t i = 0; i < test_cases; i++) {
			if (only ? strcmp(only, test_case[i].name) != 0 : test_case[i].only_named || (test_case[i].only_long && argc < 3))
				continue;
			total++;
			failed += !run_case(&test_case[i], seed, tmp);
		}
	if (argc < 3 && !only)
		run_pinned(tmp, &total, &failed);
	const bool estimated = estimates_hold(), told = reasons_told();
	printf("seeds %" PRIu64 " to %" PRIu64 ": %u of %u runs agree with the truth\n", from, seed - 1, total - failed, total);
	if (!failed)
		truth_remove(tmp);
	else
		printf("traces of disagreements are kept in %s if TRUTH_KEEP is set\n", tmp);
	free(tmp);
	return failed || !estimated || !told;
}
