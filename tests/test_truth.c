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
#include "truth_doubt.h"
#include "truth_file.h"
#include "truth_reasons.h"
#include "truth_pids.h"

#define FIRST (10 * MS)  /* of a trace: the time by which it says who is where, and who was queued has run */
#define COUNT(array) (sizeof(array) / sizeof *(array))
/* Of the states of the vCPUs of guests without a trace, which are estimates, so much may be wrong, in per cent: of one
 * vCPU in one run (400 ms; the worst of 547 was 3.5), and of all time of all of them (0.19). */
#define MISSED_ONE 5
#define MISSED_ALL 0.7
#define ALL_NS (2000 * MS)  /* from which the latter is a mean of something */
/* A quota may be said to last until the CPU that was left idle has got going again. */
#define GETS_GOING (20 * US)
#define SHOWN 6  /* disagreements printed per run */

struct run {
	const struct test_case *test;
	uint64_t seed;
	struct truth_file truth;
	struct history *h;
	int64_t from, to;    /* what is compared of the attribute: what the traces cover that it depends on */
	const char *path;    /* of the attribute */
	struct truth_doubt doubt;
	struct truth_pids pids;
	int64_t unknown_ns, known_ns;
	int64_t missed_ns;   /* of the attribute: wrong where it is an estimate */
	unsigned wrong;
	size_t compared;     /* attributes */
	char unplaced[16][32];  /* guests of which it says that nobody can tell which VM they are */
	bool skipped;        /* so much was lost that there is nothing to compare */
};

static struct { int64_t missed_ns, ns; } estimates;  /* of all runs */

static void complain(struct run *r, const char *path, int64_t from, int64_t to, const char *found, const char *is)
{
	if (r->wrong++ < SHOWN)
		printf("%s seed %" PRIu64 ": %s [%" PRId64 ", %" PRId64 "] (+%" PRId64 ", %" PRId64 " ns): found %s, is %s\n",
		       r->test->name, r->seed, path, from, to, from - r->truth.begin, to - from + 1, found, is);
}

/* Is every moment of [from, to] within the tolerance of a change of the attribute? */
static bool near_changes(const struct run *r, const struct truth_attr *a, int64_t from, int64_t to, int64_t margin)
{
	for (int64_t at = from, next, until; at <= to; at = next + 1) {
		int64_t tol = doubt_at(&r->doubt, r->path, at, &until) + margin;

		next = tol >= DOUBT_ALL ? (until < to ? until : to) : at - 1;
		for (size_t i = 0; i < a->n && tol && tol < DOUBT_ALL; i++)
			for (int k = 0; k < 2; k++) {
				int64_t change = k ? a->iv[i].end + 1 : a->iv[i].start;

				if (change - tol <= at && at <= change + tol && change + tol > next)
					next = change + tol;
			}
		if (next < at)
			return false;
		next = next < until ? next : until;
	}
	return true;
}

/* Whether at t the history claims to know what the thread or vCPU does, so that its CPU, its name and its process are
 * claimed, too; *until is cut to where that holds. */
static bool claimed(const struct run *r, uint32_t attr, int64_t t, int64_t *until)
{
	struct interval iv;
	uint32_t status = history_child_named(r->h, history_parent(r->h, attr), "Status");

	if (status == HISTORY_NONE || status == attr || history_stab(r->h, status, t, &iv, NULL) < 0)
		return true;
	*until = iv.end < *until ? iv.end : *until;
	return iv.value != HISTORY_NULL && strcmp(history_state_name(r->h, status, (unsigned)iv.value), "UNKNOWN") != 0;
}

/* A guest's CPU on which nothing ever happened: it may have been idle or busy. */
static bool quiet(const struct run *r, const char *path, uint32_t attr)
{
	return strstr(path, "/CPUs/") && strstr(path, "/Status") &&
	       history_child_named(r->h, history_parent(r->h, attr), "Current Thread") == HISTORY_NONE;
}

/* Of a guest without a trace its exits tell when it is idle; the moments when it begins or ends to be are estimates. */
static bool estimated(const struct run *r, const char *path)
{
	return strstr(path, "/CPUs/") && strstr(path, "/Status") && !truth_traced(&r->truth, path);
}

/* An idle vCPU whose thread is queued when the tracing begins: it may have been woken, or be preempted since before. */
static bool queued_idle(const struct run *r, const char *path, int64_t t)
{
	char of[128], thread[128];

	for (size_t i = 0; i < r->truth.vcpus; i++) {
		const struct truth_vcpu *v = &r->truth.vcpu[i];
		bool on_host = !strcmp(v->parent, "host");

		snprintf(of, sizeof of, "/Virtual Machines/%s/CPUs/CPU%u/Status", v->vm, v->number);
		snprintf(thread, sizeof thread, "%s%s/Threads/%d/Status", on_host ? "/Host" : "/Virtual Machines/",
		         on_host ? "" : v->parent, v->host_tid);
		const char *is = strcmp(of, path) ? NULL : truth_value(&r->truth, thread, t);
		if (is)
			return !strcmp(is, "PREEMPTED");
	}
	return false;
}

/* The name that a thread had before the exec that is the first record of it. */
static bool before_exec(const struct run *r, const char *path, const struct interval *iv, const struct truth_interval *is)
{
	int64_t unused, tolerance = doubt_at(&r->doubt, path, iv->end, &unused);

	return iv->start <= r->from && iv->end < r->to && !strcmp(strrchr(path, '/'), "/Name") &&
	       iv->end >= is->end - tolerance && iv->end <= is->end + tolerance;
}

/* Whose VM it is was not told: that goes by its process. */
static bool is_unplaced(const struct run *r, const char *vm, const char *found)
{
	for (size_t i = 0; i < COUNT(r->unplaced); i++)
		if (!strcmp(r->unplaced[i], vm) && truth_is_process(&r->truth, vm, found))
			return true;
	return false;
}

/* One interval of the analysis against the truth; *at is the first interval of the truth that may meet it. */
static void compare_interval(struct run *r, const char *path, const struct truth_attr *a, size_t *at, uint32_t attr,
                             const struct interval *iv)
{
	char buf[32];
	const char *found = history_text_of(r->h, attr, iv->value, buf);
	/* Names, CPUs and PIDs of dead threads are nobody's business: only Status says whether there is one. */
	bool of_living = strstr(path, "/Threads/") && !strstr(path, "/Status");
	bool of_vcpu = strstr(path, "/pCPU") || strstr(path, "/Host Thread");
	/* A thread whose first record is a migration, when tracing begins, may be queued or on its way to be. */
	bool first = iv->start <= r->from, soon = iv->end < r->from + FIRST, ignorant = truth_untold(found);
	int64_t t = iv->start > r->from ? iv->start : r->from, last = iv->end < r->to ? iv->end : r->to;

	while (t <= last) {
		while (*at < a->n && a->iv[*at].end < t)
			++*at;
		const struct truth_interval *true_iv = *at < a->n && a->iv[*at].start <= t ? &a->iv[*at] : NULL;
		int64_t until = true_iv ? true_iv->end : *at < a->n ? a->iv[*at].start - 1 : last;
		const char *is = true_iv ? strtab_get(&r->truth.strings, true_iv->value) : "null";

		until = until < last ? until : last;
		bool unclaimed = r->test->may_not_know && (of_living || of_vcpu) && !claimed(r, attr, t, &until);
		*(ignorant && true_iv ? &r->unknown_ns : &r->known_ns) += until - t + 1;
		/* Where a thread was that is first told of by the wakeup that ends its sleep, nobody knows. */
		bool moved = of_living && !strcmp(strrchr(path, '/'), "/CPU");
		bool at_first = first && (soon || moved || !strcmp(is, "WAKING") || queued_idle(r, path, t));
		if (is_reason(path) && true_iv && !r->test->may_not_know)
			reasons_count(found, is, until - t + 1);
		bool excused = unclaimed || (true_iv && r->test->may_not_know && is_unplaced(r, is, found)) || (of_living && !true_iv) || (is_reason(path) && ignorant) ||
			(ignorant && (at_first || r->test->may_not_know || quiet(r, path, attr) ||
			              (true_iv && before_exec(r, path, iv, true_iv))));
		bool wrong = strcmp(found, is) && !excused && !near_changes(r, a, t, until, is_reason(path) ? GETS_GOING : 0);
		if (wrong && estimated(r, path))
			r->missed_ns += until - t + 1;
		else if (wrong)
			complain(r, path, t, until, found, is);
		t = until + 1;
	}
}

/* Is the attribute that value for the whole window? */
static bool is_always(const struct run *r, const char *path, const char *value)
{
	const struct truth_attr *a = truth_find(&r->truth, path);
	bool always = a != NULL;

	for (size_t i = 0; always && i < a->n; i++)
		always = a->iv[i].end < r->from || a->iv[i].start > r->to ||
		         !strcmp(strtab_get(&r->truth.strings, a->iv[i].value), value);
	return always;
}

static bool is_ever(const struct run *r, const char *path, const char *value)
{
	const struct truth_attr *a = truth_find(&r->truth, path);
	bool ever = false;

	for (size_t i = 0; a && i < a->n; i++)
		ever = ever || (a->iv[i].end >= r->from && a->iv[i].start < r->to &&
		                !strcmp(strtab_get(&r->truth.strings, a->iv[i].value), value));
	return ever;
}

/* A thread that slept or waited all the time, or whose vCPU never executed; or, of its process, one of which no record tells. */
static bool unseen(const struct run *r, const char *path)
{
	char status[600];

	snprintf(status, sizeof status, "%.*s/Status", (int)(strrchr(path, '/') - path), path);
	return is_always(r, status, "BLOCKED") || is_always(r, status, "VIRT_PREEMPTED") || is_always(r, status, "PREEMPTED") ||
	       (!strcmp(strrchr(path, '/'), "/PID") && !pids_told(&r->pids, path));
}

/* A vCPU that never executed the guest while that was traced: nothing there can have written a record. */
static bool never_ran(const struct run *r, const char *path)
{
	char status[600];

	snprintf(status, sizeof status, "%.*s/Status", (int)(strrchr(path, '/') - path), path);
	return strncmp(path, "/Host/", 6) && strstr(path, "/CPUs/") && truth_find(&r->truth, status) &&
	       !is_ever(r, status, "RUNNING");
}

/* A VM inside a guest that was not entered while that was recorded: in its trace there are but threads that are called like
 * vCPUs. */
static bool never_entered(const struct run *r, const char *path)
{
	const char *tail = strstr(path, "/CPUs/");
	int len = tail ? (int)(tail - path) : 0;

	for (size_t i = 0; i < r->truth.attrs && tail; i++) {
		const char *other = strtab_get(&r->truth.strings, r->truth.attr[i].path);

		if (!strncmp(other, path, (size_t)len) && strstr(other, "/CPUs/") && strstr(other, "/Status") &&
		    is_ever(r, other, "RUNNING"))
			return false;
	}
	return tail && truth_nested(&r->truth, path);
}

static void missing_attr(struct run *r, const char *path, const struct truth_attr *a)
{
	size_t len = strlen(path), tail = strlen("/Current Thread");
	bool current = len > tail && !strcmp(path + len - tail, "/Current Thread"), idle = current;

	for (size_t i = 0; i < a->n; i++)
		idle = idle && (a->iv[i].end < r->from || a->iv[i].start > r->to ||
		                !strcmp(strtab_get(&r->truth.strings, a->iv[i].value), "0"));
	/* A pCPU on which nothing ever happened wrote no record, and nobody can know of it; nor which thread is current
	 * on a vCPU on which nothing ever happened. */
	if (r->test->may_not_know || idle || is_reason(path) || (a->n == 1 && !strncmp(path, "/Host/CPUs/", 11)))
		return;
	/* Nor of a VM that was never traced, its threads at least; nor of a thread that is in no record. */
	if (!truth_traced(&r->truth, path) && (a->n == 1 || strstr(path, "/Threads/")))
		return;
	if ((strstr(path, "/Threads/") && unseen(r, path)) || never_entered(r, path) || (current && never_ran(r, path)))
		return;
	for (size_t i = 0; i < a->n; i++)
		if (a->iv[i].start <= r->to && a->iv[i].end >= r->from) {
			complain(r, path, a->iv[i].start, a->iv[i].end, "no such attribute", "a value");
			return;
		}
}

static int compare_attr(struct run *r, const struct truth_attr *a, struct error *err)
{
	const char *path = strtab_get(&r->truth.strings, a->path);
	uint32_t attr = history_find(r->h, path);
	struct history_cursor c;
	struct interval iv;
	size_t at = 0;
	int got;

	truth_window(&r->truth, path, &r->from, &r->to);
	r->path = path;
	doubt_window(&r->doubt, path, &r->from, &r->to);
	if (!doubt_knows(&r->doubt, path))
		return 0;
	if (attr == HISTORY_NONE) {
		missing_attr(r, path, a);
		return 0;
	}
	if (r->from > r->to)
		return 0;
	r->compared++;
	if (history_range(&c, r->h, attr, r->from, r->to, err) < 0)
		return -1;
	r->missed_ns = 0;
	while ((got = history_range_next(&c, &iv, err)) > 0)
		compare_interval(r, path, a, &at, attr, &iv);
	/* Of the whole run: one estimate must not weigh more because a parent's trace ends early. */
	if (estimated(r, path)) {
		estimates.missed_ns += r->missed_ns;
		estimates.ns += r->to - r->from + 1;
	}
	if (r->missed_ns > (r->truth.end - r->truth.begin) / 100 * MISSED_ONE)
		complain(r, path, r->from, r->from + r->missed_ns, "so much of its states", "others");
	if (r->missed_ns && getenv("TRUTH_VERBOSE"))
		printf("    %s: %.3f %% estimated wrongly\n", path, 100.0 * (double)r->missed_ns / (double)(r->to - r->from));
	return got;
}

/* A thread that the analysis made up. */
static int no_such_thread(void *arg, uint32_t attr)
{
	struct run *r = arg;
	char path[600], vm[256];
	uint32_t thread = history_parent(r->h, attr), threads = history_parent(r->h, thread);
	uint32_t machine = history_parent(r->h, threads);

	history_path(vm, sizeof vm, history_name(r->h, machine), NULL);
	snprintf(path, sizeof path, "%s%s/Threads/%s/Status", history_parent(r->h, machine) == history_find(r->h, "/") ? "/"
	         : "/Virtual Machines/", vm[0] == '/' ? vm + 1 : vm, history_name(r->h, thread));
	if (!truth_find(&r->truth, path))
		complain(r, path, r->truth.begin, r->truth.end, "a thread", "none");
	return 0;
}

/* A vCPU that was held back, though none of its machine's was. */
static int no_such_reason(void *arg, uint32_t attr)
{
	struct run *r = arg;
	uint32_t cpu = history_parent(r->h, attr), machine = history_parent(r->h, history_parent(r->h, cpu));
	const char *vm = history_name(r->h, machine), *name = history_name(r->h, cpu);
	char path[600], status[600];

	history_path(path, sizeof path, "Virtual Machines", vm, "CPUs", name, "Out By", NULL);
	history_path(status, sizeof status, "Virtual Machines", vm, "CPUs", name, "Status", NULL);
	if (truth_find(&r->truth, status) && !truth_find(&r->truth, path))
		complain(r, path, r->truth.begin, r->truth.end, "a reason", "none");
	return 0;
}

/* The true clock of a guest must lie in the corridor that the analysis reports, all along. */
static void tell_outside(void *arg, const char *machine, int64_t host, int64_t low, int64_t high)
{
	char text[64] = "no corridor";

	if (low <= high)
		snprintf(text, sizeof text, "clock corridor %" PRId64 "..%" PRId64, low, high);
	complain(arg, machine, host, host, text, low <= high ? "0" : "one");
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

static int compare(struct run *r, struct error *err)
{
	for (size_t i = 0; i < r->truth.attrs; i++)
		if (compare_attr(r, &r->truth.attr[i], err) < 0)
			return -1;
	history_match(r->h, "/Host/Threads/*/Status", no_such_thread, r);
	history_match(r->h, "/Virtual Machines/*/Threads/*/Status", no_such_thread, r);
	history_match(r->h, "/Virtual Machines/*/CPUs/*/Out By", no_such_reason, r);
	return 0;
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
		if (pids_add(&r->pids, trace[i], err) < 0)
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
	    !(r.h = history_open(file, &err)) || (!r.skipped && compare(&r, &err) < 0)) {
		printf("%s seed %" PRIu64 ": %s\n", test->name, seed, err.text);
		r.wrong++;
	}
	if (pinned_told(test->name, seed) && doubt_unknown(&r.doubt))
		complain(&r, "clocks", r.truth.begin, r.truth.end, "one without a corridor", "all known");
	if (r.wrong > SHOWN)
		printf("%s seed %" PRIu64 ": %u disagreements in all\n", test->name, seed, r.wrong);
	if (getenv("TRUTH_VERBOSE"))
		printf("%-12s %5" PRIu64 " %8" PRIu64 " records, tolerance %" PRId64 " ns, unknown %.4f %%, %zu rows, clocks unknown %.2f %%%s%s\n",
		       test->name, seed,
		       done.records, doubt_most(&r.doubt), 100.0 * (double)r.unknown_ns / (double)(r.known_ns + r.unknown_ns + 1),
		       r.compared, 100 * doubt_share(&r.doubt), doubt_unknown(&r.doubt) ? ", clocks not found" : "", r.wrong ? ", WRONG" : "");
	history_close(r.h);
	truth_release(&r.truth);
	pids_release(&r.pids);
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
	double missed = estimates.ns < ALL_NS ? 0 : 100.0 * (double)estimates.missed_ns / (double)estimates.ns;
	if (missed > MISSED_ALL)
		printf("%.3f %% of the states of guests without a trace are estimated wrongly\n", missed);
	bool told = reasons_told();
	printf("seeds %" PRIu64 " to %" PRIu64 ": %u of %u runs agree with the truth\n", from, seed - 1, total - failed, total);
	if (!failed)
		truth_remove(tmp);
	else
		printf("traces of disagreements are kept in %s if TRUTH_KEEP is set\n", tmp);
	free(tmp);
	return failed || missed > MISSED_ALL || !told;
}
