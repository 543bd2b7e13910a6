/* The property that matters: what the analysis finds is what happened.
 *
 * For each seed the simulator draws a host, guests and workloads, writes their traces, and says what was true; the
 * whole chain (trace, sync, model, history) reads the traces; every interval of every attribute is compared.
 *   perfect clocks, a constant offset:  equal to the ns
 *   clocks that drift, events or no events to synchronize by:  a difference is allowed only within the reported error
 *   band around a moment at which the truth itself changes; and the true clock must lie in the reported corridor
 *   lost events:  where the analysis claims to know, it is right, to the ns
 * Usage: test_truth [FROM TO]  (seeds; without them a quick set) */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "history/history.h"
#include "model/model.h"
#include "sim/simulate.h"
#include "sync/sync.h"
#include "trace/trace.h"
#include "truth_file.h"

#define FIRST (10 * MS)  /* of a trace: the time by which it says who is where, and who was queued has run */
#define COUNT(array) (sizeof(array) / sizeof *(array))
#define SHOWN 6  /* disagreements printed per run */

struct test_case {
	const char *name;
	enum sync_method method;
	void (*options)(struct options *o);
	int64_t slack;       /* ns allowed beside the band; -1 = exact */
	bool true_sync;      /* give the model the true clocks instead of what sync found */
	bool only_long;      /* not in the quick set */
	bool finds_roles;    /* which trace is the host's, sync tells */
	bool may_not_know;   /* UNKNOWN and null of the analysis are no disagreement */
};

struct run {
	const struct test_case *test;
	uint64_t seed;
	struct truth_file truth;
	struct history *h;
	int64_t tolerance;   /* ns; 0 = exact */
	int64_t from, to;    /* what is compared of the attribute: what the traces cover that it depends on */
	int64_t step;        /* when the guests' clocks jumped, or 0 */
	int64_t unknown_ns, known_ns;
	unsigned wrong;
	bool skipped;        /* the clocks could not be found, and that was said */
};

static void complain(struct run *r, const char *path, int64_t from, int64_t to, const char *found, const char *is)
{
	if (r->wrong++ < SHOWN)
		printf("%s seed %" PRIu64 ": %s [%" PRId64 ", %" PRId64 "] (+%" PRId64 ", %" PRId64 " ns): found %s, is %s\n",
		       r->test->name, r->seed, path, from, to, from - r->truth.begin, to - from + 1, found, is);
}

/* Between the last beacon before a clock's step and the first one after it nobody can say when it was. */
static bool near_step(const struct run *r, int64_t from, int64_t to)
{
	return r->step && from > r->step - 150 * MS && to < r->step + 150 * MS;
}

/* Is every moment of [from, to] within the tolerance of a change of the attribute? */
static bool near_changes(const struct run *r, const struct truth_attr *a, int64_t from, int64_t to)
{
	int64_t tol = r->tolerance, at = from;

	if (!tol)
		return false;
	for (size_t i = 0; i < a->n && at <= to; i++)
		for (int k = 0; k < 2; k++) {
			int64_t change = k ? a->iv[i].end + 1 : a->iv[i].start;

			if (change - tol <= at && at <= change + tol)
				at = change + tol + 1;
		}
	return at > to;
}

static const char *value_text(const struct run *r, uint32_t attr, int64_t value, char buf[32])
{
	if (value == HISTORY_NULL)
		return "null";
	switch (history_type(r->h, attr)) {
	case HISTORY_STATE:
		return history_state_name(r->h, attr, (unsigned)value);
	case HISTORY_STRING:
		return history_string(r->h, value);
	default:
		snprintf(buf, 32, "%" PRId64, value);
		return buf;
	}
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

/* The analysis knows that it does not know; of a VM perhaps nothing but that there is one. */
static bool says_nothing(const char *value)
{
	return !strcmp(value, "UNKNOWN") || !strcmp(value, "unknown") || !strcmp(value, "null") ||
	       !strncmp(value, "VM of TID ", 10);
}

/* A guest's CPU on which nothing ever happened: it may have been idle or busy. */
static bool quiet(const struct run *r, const char *path, uint32_t attr)
{
	return strstr(path, "/CPUs/") && strstr(path, "/Status") &&
	       history_child_named(r->h, history_parent(r->h, attr), "Current Thread") == HISTORY_NONE;
}

/* One interval of the analysis against the truth; *at is the first interval of the truth that may meet it. */
static void compare_interval(struct run *r, const char *path, const struct truth_attr *a, size_t *at, uint32_t attr,
                             const struct interval *iv)
{
	char buf[32];
	const char *found = value_text(r, attr, iv->value, buf);
	/* Names, CPUs and PIDs of dead threads are nobody's business: only Status says whether there is one. */
	bool of_living = strstr(path, "/Threads/") && !strstr(path, "/Status");
	bool of_vcpu = strstr(path, "/pCPU") || strstr(path, "/Host Thread");
	/* A thread whose first record is a migration, when tracing begins, may be queued or on its way to be. */
	bool first = iv->start <= r->from, soon = iv->end < r->from + FIRST;
	bool ignorant = says_nothing(found);
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
		/* An idle vCPU's that is queued then may have been woken, or be preempted since before. */
		bool at_first = first && (soon || !strcmp(is, "WAKING"));
		bool excused = unclaimed || (of_living && !true_iv) ||
			(ignorant && (at_first || r->test->may_not_know || quiet(r, path, attr)));
		if (strcmp(found, is) && !excused && !near_changes(r, a, t, until) && !near_step(r, t, until))
			complain(r, path, t, until, found, is);
		t = until + 1;
	}
}

static bool never_ran(const struct run *r, const char *path)
{
	char status[600];

	snprintf(status, sizeof status, "%.*s/Status", (int)(strrchr(path, '/') - path), path);
	const struct truth_attr *a = truth_find(&r->truth, status);
	return a && a->n == 1 && !strcmp(strtab_get(&r->truth.strings, a->iv[0].value), "BLOCKED");
}

static void missing_attr(struct run *r, const char *path, const struct truth_attr *a)
{
	size_t len = strlen(path), tail = strlen("/Current Thread");
	bool idle = len > tail && !strcmp(path + len - tail, "/Current Thread");

	for (size_t i = 0; i < a->n; i++)
		idle = idle && (a->iv[i].end < r->from || a->iv[i].start > r->to ||
		                !strcmp(strtab_get(&r->truth.strings, a->iv[i].value), "0"));
	/* A pCPU on which nothing ever happened wrote no record, and nobody can know of it; nor which thread is current
	 * on a vCPU on which nothing ever happened. */
	if (r->test->may_not_know || idle || (a->n == 1 && !strncmp(path, "/Host/CPUs/", 11)))
		return;
	/* Nor of a VM that was never traced, its threads at least; nor of a thread that slept all the time. */
	if (!truth_traced(&r->truth, path) && (a->n == 1 || strstr(path, "/Threads/")))
		return;
	if (strstr(path, "/Threads/") && never_ran(r, path))
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
	r->from += r->tolerance;
	r->to -= r->tolerance;
	if (attr == HISTORY_NONE) {
		missing_attr(r, path, a);
		return 0;
	}
	if (r->from > r->to)
		return 0;
	if (history_range(&c, r->h, attr, r->from, r->to, err) < 0)
		return -1;
	while ((got = history_range_next(&c, &iv, err)) > 0)
		compare_interval(r, path, a, &at, attr, &iv);
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

/* The true clock of a guest must lie in the corridor that the analysis reports, all along. */
static void compare_clock(struct run *r, const struct sync_vm *vm)
{
	for (int i = 0; i <= 16; i++) {
		int64_t host = r->truth.begin + (r->truth.end - r->truth.begin) / 16 * i, low, high;
		int64_t guest = truth_guest_time(&r->truth, vm->name, host);

		if (!clock_map_bounds(&vm->clock, guest, &low, &high)) {
			complain(r, vm->name, host, host, "no corridor", "one");
			return;
		}
		if (high - low + r->test->slack > r->tolerance)
			r->tolerance = high - low + r->test->slack;
		if ((host < low - r->test->slack || host > high + r->test->slack) && !near_step(r, host, host)) {
			char text[64];

			snprintf(text, sizeof text, "clock corridor %" PRId64 "..%" PRId64, low - host, high - host);
			complain(r, vm->name, host, host, text, "0");
		}
	}
}

static void compare_clocks(struct run *r, const struct sync_result *sync)
{
	for (size_t i = 1; i < r->truth.clocks; i++)
		if (!strcmp(r->truth.clock[i].machine, r->truth.clock[i - 1].machine))
			r->step = r->truth.clock[i].from;
	r->tolerance = r->test->slack < 0 ? 0 : r->test->slack;
	for (size_t i = 0; i < sync->vms && r->test->slack >= 0; i++) {
		const struct sync_vm *vm = &sync->vm[i];

		if (!vm->guest)
			continue;
		bool sure = vm->clock.pieces > 0 && vm->clock.piece[0].quality == SYNC_ACCURATE;
		bool banded = clock_map_band(&vm->clock, trace_info(vm->guest)->begin) >= 0;

		r->skipped = r->skipped || !sure;
		if (sure || banded)  /* a clock that is not sure is right within its band all the same */
			compare_clock(r, vm);
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

	if (trace_discover(dir, &spec, &n, err) < 0 || n > 16)
		goto out;
	for (size_t i = 0; i < n && !r->test->finds_roles; i++)  /* without kvm events nobody can tell */
		spec[i].role = strstr(spec[i].dir, "/host") ? ROLE_HOST : ROLE_GUEST;
	if (trace_load(spec, n, &trace_options, trace, &notes, err) < 0)
		goto out;
	if (r->test->true_sync)
		sync_options.hints = true_hints(r, trace, n, hint);
	if (sync_run(trace, n, &sync_options, &sync, &notes, err) < 0)
		goto out;
	compare_clocks(r, &sync);
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

static void remove_tree(const char *dir)
{
	char *command = mem_printf("rm -rf '%s'", dir);

	if (system(command) != 0)
		fprintf(stderr, "%s: not removed\n", dir);
	free(command);
}

/* True when all is well. */
static bool run_case(const struct test_case *test, uint64_t seed, const char *tmp)
{
	struct run r = { .test = test, .seed = seed };
	struct options o = { .scenario = "random", .seed = seed, .number = 1, .beacon_hz = 20, .hogs = 1, .burst = 3,
	                     .packet = 65536, .step_at = 500000, .duration = 400 * MS };
	struct error err = ERROR_INIT;
	struct result done;
	char *dir = mem_printf("%s/%s-%" PRIu64, tmp, test->name, seed), *file = mem_printf("%s/h.steal", dir);

	o.out = dir;
	test->options(&o);
	if (simulate(&o, &done, &err) < 0 || !truth_read(&r.truth, dir) || analyse(&r, dir, file, &err) < 0 ||
	    !(r.h = history_open(file, &err)) || (!r.skipped && compare(&r, &err) < 0)) {
		printf("%s seed %" PRIu64 ": %s\n", test->name, seed, err.text);
		r.wrong++;
	}
	if (r.wrong > SHOWN)
		printf("%s seed %" PRIu64 ": %u disagreements in all\n", test->name, seed, r.wrong);
	if (getenv("TRUTH_VERBOSE"))
		printf("%-12s %5" PRIu64 " %8" PRIu64 " records, tolerance %" PRId64 " ns, unknown %.4f %%%s%s\n",
		       test->name, seed,
		       done.records, r.tolerance, 100.0 * (double)r.unknown_ns / (double)(r.known_ns + r.unknown_ns + 1),
		       r.skipped ? ", clocks not found" : "", r.wrong ? ", WRONG" : "");
	history_close(r.h);
	truth_release(&r.truth);
	if (!r.wrong || !getenv("TRUTH_KEEP"))
		remove_tree(dir);
	free(file);
	free(dir);
	return !r.wrong;
}

static void perfect(struct options *o)
{
	o->have_offset = o->have_drift = true;
	o->nested = o->seed % 2;
}

static void offset(struct options *o)
{
	o->containers = true;
	o->have_offset = o->have_drift = true;
	o->offset = INT64_C(7000000321);
	o->plain_names = o->bad_vcpu_id = o->seed % 2;
	o->late = o->seed % 3 == 0;
}

static void drift(struct options *o)
{
	o->beacon_hz = 50;
	o->duration = 800 * MS;
	o->late = o->seed % 3 == 1;
}

/* VMs and their CPUs come and go; which thread is which CPU, and when, the analysis finds. */
static void hotplug(struct options *o)
{
	perfect(o);
	o->hotplug = true;
}

static void changing(struct options *o)
{
	drift(o);
	o->hotplug = true;
}

static void nested(struct options *o)
{
	drift(o);
	o->nested = true;
	if (o->seed % 4 == 0)
		o->scenario = "nested";
}

static void silent(struct options *o)
{
	o->beacon_hz = 0;
	o->duration = 800 * MS;
}

/* Sync events that are late, doubled or lie. */
static void faulty(struct options *o)
{
	drift(o);
	o->sync_jitter = 200 * US;
	o->sync_dup = 100000;
	o->sync_bogus = 30000;
}

static void stepped(struct options *o)
{
	o->beacon_hz = 100;
	o->duration = 1200 * MS;
	o->step = 20 * MS;
}

static void lossy(struct options *o)
{
	perfect(o);
	o->lost = 100000;
	o->packet = 4096;
}

/* ... while records are lost: of a vCPU's thread perhaps those that tell when it began or ended, or what it was. */
static void lossy_hotplug(struct options *o)
{
	lossy(o);
	o->hotplug = true;
}

static void blind(struct options *o)
{
	perfect(o);
	o->no_kvm = true;
}

static void absent(struct options *o)
{
	static const char *const name[] = { "Debian", "Ubuntu", "Fedora" };

	perfect(o);
	o->missing[o->missings++] = name[o->seed % 3];
}

/* The scenarios that have a name, one after the other. */
static void named(struct options *o)
{
	static const char *const name[] = { "pulse", "fibonacci", "critical_task", "residual_timer", "overcommit", "churn",
	                                    "requests", "nested" };

	perfect(o);
	o->scenario = name[o->seed % COUNT(name)];
	o->number = 5;
	o->duration = o->seed % COUNT(name) == 4 ? 150 * MS : 900 * MS;
}

static const struct test_case test_case[] = {
	{ "perfect", SYNC_NONE, perfect, .slack = -1, .true_sync = true },
	{ "named", SYNC_NONE, named, .slack = -1, .true_sync = true },
	{ "offset", SYNC_OFFSET, offset, .slack = -1, .true_sync = true },
	{ "hotplug", SYNC_NONE, hotplug, .slack = -1 },
	{ "no-kvm", SYNC_NONE, blind, .slack = -1, .true_sync = true },
	{ "no-guest", SYNC_NONE, absent, .slack = -1, .true_sync = true, .may_not_know = true },
	{ "drift", SYNC_AUTO, drift, .slack = 2 },
	{ "changing", SYNC_AUTO, changing, .slack = 2 },
	{ "nested", SYNC_AUTO, nested, .slack = 6, .finds_roles = true },  /* each level rounds */
	{ "no-sync", SYNC_AUTO, silent, .slack = 2, .only_long = true },
	{ "faulty-sync", SYNC_AUTO, faulty, .slack = 2 },
	{ "clock-step", SYNC_AUTO, stepped, .slack = 2 },
	{ "lost", SYNC_NONE, lossy, .slack = -1, .true_sync = true, .may_not_know = true },
	{ "lost-hotplug", SYNC_NONE, lossy_hotplug, .slack = -1, .may_not_know = true },
};

/* Seeds whose clocks were once confidently wrong: other windows contain all events of a guest as well. */
static const struct pinned { const char *name; uint64_t seed; } pinned[] = {
	{ "no-sync", 11 }, { "no-sync", 28 }, { "no-sync", 34 }, { "faulty-sync", 40 },
};

static void run_pinned(const char *tmp, unsigned *total, unsigned *failed)
{
	for (size_t i = 0; i < COUNT(pinned); i++)
		for (size_t k = 0; k < COUNT(test_case); k++)
			if (!strcmp(pinned[i].name, test_case[k].name)) {
				++*total;
				*failed += !run_case(&test_case[k], pinned[i].seed, tmp);
			}
}

int main(int argc, char **argv)
{
	uint64_t from = 1, to = 3;
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
	for (uint64_t seed = from; seed <= to; seed++)
		for (size_t i = 0; i < COUNT(test_case); i++) {
			if (only ? strcmp(only, test_case[i].name) != 0 : test_case[i].only_long && argc < 3)
				continue;
			total++;
			failed += !run_case(&test_case[i], seed, tmp);
		}
	if (argc < 3 && !only)
		run_pinned(tmp, &total, &failed);
	printf("%u of %u runs agree with the truth\n", total - failed, total);
	if (!failed)
		remove_tree(tmp);
	else
		printf("traces of disagreements are kept in %s if TRUTH_KEEP is set\n", tmp);
	free(tmp);
	return failed != 0;
}
