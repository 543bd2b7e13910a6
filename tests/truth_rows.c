#include "truth_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "truth_reasons.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define FIRST (10 * MS)  /* time after the beginning of a trace by which each thread has been placed, and queued threads
                          * have run */
/* Limits for the states of vCPUs of untraced guests, which are estimates: wrong time, percent. WRONG_ONE_MAX: of one
 * vCPU in one run (400 ms; the worst of 547 was 3.5). WRONG_ALL_MAX: of all vCPUs in all runs (0.19). */
#define WRONG_ONE_MAX 5
#define WRONG_ALL_MAX 0.7
#define ALL_NS (2000 * MS)  /* minimum time for WRONG_ALL_MAX, ns */
/* Maximum time until an idle CPU reacts to a refill, ns: the quota may seem to last so long. */
#define IDLE_REACTION (20 * US)

static struct { int64_t wrong_ns, ns; } estimates;  /* of all runs */

void run_report(struct truth_run *r, const char *path, int64_t from, int64_t to, const char *found, const char *is)
{
	if (r->wrong++ < RUN_SHOWN)
		printf("%s seed %" PRIu64 ": %s [%" PRId64 ", %" PRId64 "] (+%" PRId64 ", %" PRId64 " ns): found %s, is %s\n",
		       r->test->name, r->seed, path, from, to, from - r->truth.begin, to - from + 1, found, is);
}

/* Returns true if every time in [from, to] is within the error bound (plus margin) of a change of the attribute. */
static bool is_near_change(const struct truth_run *r, const struct truth_attr *a, int64_t from, int64_t to, int64_t margin)
{
	for (int64_t at = from, next, until; at <= to; at = next + 1) {
		int64_t tol = bounds_at(&r->bounds, r->path, at, &until) + margin;

		next = tol >= BOUND_NONE ? (until < to ? until : to) : at - 1;
		for (size_t i = 0; i < a->n && tol && tol < BOUND_NONE; i++)
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

/* Returns true if the history contains a known state of the thread or vCPU at t, which means that its CPU, name and
 * process must be right as well; *until is reduced to the end of that state. */
static bool is_claimed(const struct truth_run *r, uint32_t attr, int64_t t, int64_t *until)
{
	struct interval iv;
	uint32_t status = history_child_named(r->h, history_parent(r->h, attr), "Status");

	if (status == HISTORY_NONE || status == attr || history_stab(r->h, status, t, &iv, NULL) < 0)
		return true;
	*until = iv.end < *until ? iv.end : *until;
	return iv.value != HISTORY_NULL && strcmp(history_state_name(r->h, status, (unsigned)iv.value), "UNKNOWN") != 0;
}

/* Returns true for a guest's CPU without any event, which may have been idle or busy, with any thread. */
static bool has_no_events(const struct truth_run *r, const char *path, uint32_t attr)
{
	return (strstr(path, "/CPUs/") && strstr(path, "/Status") &&
	        history_child_named(r->h, history_parent(r->h, attr), "Current Thread") == HISTORY_NONE) ||
	       records_ambiguous(&r->records, &r->truth, path, r->from);
}

/* Returns true for the state of an untraced guest's vCPU: it is inferred from exits, and the times at which it becomes
 * idle or busy are estimates. */
static bool is_estimate(const struct truth_run *r, const char *path)
{
	return strstr(path, "/CPUs/") && strstr(path, "/Status") && !truth_traced(&r->truth, path);
}

/* Returns true for an idle vCPU with a thread that is queued at the beginning: the thread may have been woken, or
 * preempted earlier. */
static bool is_queued_idle(const struct truth_run *r, const char *path, int64_t t)
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

/* Returns true for the name that a thread had before an exec that is its first record. */
static bool is_old_name(const struct truth_run *r, const char *path, const struct interval *iv, const struct truth_interval *is)
{
	int64_t unused, tolerance = bounds_at(&r->bounds, path, iv->end, &unused);

	return iv->start <= r->from && iv->end < r->to && !strcmp(strrchr(path, '/'), "/Name") &&
	       iv->end >= is->end - tolerance && iv->end <= is->end + tolerance;
}

/* Returns true if the VM was not matched and is named by its process. */
static bool is_unplaced(const struct truth_run *r, const char *vm, const char *found)
{
	for (size_t i = 0; i < COUNT(r->unplaced); i++)
		if (!strcmp(r->unplaced[i], vm) && truth_is_process(&r->truth, vm, found))
			return true;
	return false;
}

/* Compares one interval of the analysis with the truth. *at: first interval of the truth that may overlap it. */
static void compare_interval(struct truth_run *r, const char *path, const struct truth_attr *a, size_t *at, uint32_t attr,
                             const struct interval *iv)
{
	char buf[32];
	const char *found = history_text_of(r->h, attr, iv->value, buf);
	/* Names, CPUs and PIDs of dead threads do not matter: only Status shows whether the thread exists. */
	bool of_living = strstr(path, "/Threads/") && !strstr(path, "/Status");
	bool of_vcpu = strstr(path, "/pCPU") || strstr(path, "/Host Thread");
	/* A thread with a migration as first record may have been queued at the beginning, or not yet. */
	bool first = iv->start <= r->from, soon = iv->end < r->from + FIRST, ignorant = truth_is_unknown(found);
	int64_t t = iv->start > r->from ? iv->start : r->from, last = iv->end < r->to ? iv->end : r->to;

	while (t <= last) {
		while (*at < a->n && a->iv[*at].end < t)
			++*at;
		const struct truth_interval *true_iv = *at < a->n && a->iv[*at].start <= t ? &a->iv[*at] : NULL;
		int64_t until = true_iv ? true_iv->end : *at < a->n ? a->iv[*at].start - 1 : last;
		const char *is = true_iv ? strtab_get(&r->truth.strings, true_iv->value) : "null";

		until = until < last ? until : last;
		bool unclaimed = r->test->may_not_know && (of_living || of_vcpu) && !is_claimed(r, attr, t, &until);
		*(ignorant && true_iv ? &r->unknown_ns : &r->known_ns) += until - t + 1;
		/* The CPU of a thread is unknown before the wakeup that is its first record. */
		bool moved = of_living && !strcmp(strrchr(path, '/'), "/CPU");
		bool at_first = first && (soon || moved || !strcmp(is, "WAKING") || is_queued_idle(r, path, t));
		if (is_reason(path) && true_iv && !r->test->may_not_know)
			reasons_count(found, is, until - t + 1);
		bool excused = unclaimed || (true_iv && r->test->may_not_know && is_unplaced(r, is, found)) ||
		               (of_living && !true_iv) || (is_reason(path) && ignorant) ||
			(ignorant && (at_first || r->test->may_not_know || has_no_events(r, path, attr) ||
			              (true_iv && is_old_name(r, path, iv, true_iv))));
		bool wrong = strcmp(found, is) && !excused && !is_near_change(r, a, t, until, is_reason(path) ? IDLE_REACTION : 0);
		if (wrong && is_estimate(r, path))
			r->wrong_ns += until - t + 1;
		else if (wrong)
			run_report(r, path, t, until, found, is);
		t = until + 1;
	}
}

/* Returns true if the attribute has that value during the whole window. */
static bool is_always(const struct truth_run *r, const char *path, const char *value)
{
	const struct truth_attr *a = truth_find(&r->truth, path);
	bool always = a != NULL;

	for (size_t i = 0; always && i < a->n; i++)
		always = a->iv[i].end < r->from || a->iv[i].start > r->to ||
		         !strcmp(strtab_get(&r->truth.strings, a->iv[i].value), value);
	return always;
}

static bool is_ever(const struct truth_run *r, const char *path, const char *value)
{
	const struct truth_attr *a = truth_find(&r->truth, path);
	bool ever = false;

	for (size_t i = 0; a && i < a->n; i++)
		ever = ever || (a->iv[i].end >= r->from && a->iv[i].start < r->to &&
		                !strcmp(strtab_get(&r->truth.strings, a->iv[i].value), value));
	return ever;
}

/* Returns true for a thread that slept or waited all the time, or was on a vCPU that never executed. For a PID: also if
 * no record contains it. */
static bool is_unseen(const struct truth_run *r, const char *path)
{
	char status[600];

	snprintf(status, sizeof status, "%.*s/Status", (int)(strrchr(path, '/') - path), path);
	return is_always(r, status, "BLOCKED") || is_always(r, status, "VIRT_PREEMPTED") || is_always(r, status, "PREEMPTED") ||
	       (!strcmp(strrchr(path, '/'), "/PID") && !records_have_pid(&r->records, path));
}

/* Returns true for a vCPU that never executed while its guest was traced: it wrote no record. */
static bool has_never_run(const struct truth_run *r, const char *path)
{
	char status[600];

	snprintf(status, sizeof status, "%.*s/Status", (int)(strrchr(path, '/') - path), path);
	return strncmp(path, "/Host/", 6) && strstr(path, "/CPUs/") && truth_find(&r->truth, status) &&
	       !is_ever(r, status, "RUNNING");
}

/* Returns true for a VM inside a guest that was not entered while the guest was traced: the trace contains only threads
 * with names of vCPUs. */
static bool was_never_entered(const struct truth_run *r, const char *path)
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

/* Returns true for a VM inside a guest without records: its vCPUs are not visible. */
static bool is_hosted_unseen(const struct truth_run *r, const char *path)
{
	char of[128], parent[128];

	for (size_t i = 0; i < r->truth.vcpus; i++) {
		const struct truth_vcpu *v = &r->truth.vcpu[i];

		snprintf(of, sizeof of, "/Virtual Machines/%s/CPUs/CPU%u/", v->vm, v->number);
		snprintf(parent, sizeof parent, "/Virtual Machines/%s/", v->parent);
		if (!strncmp(path, of, strlen(of)) && strcmp(v->parent, "host") && !truth_traced(&r->truth, parent))
			return true;
	}
	return false;
}

static void missing_attr(struct truth_run *r, const char *path, const struct truth_attr *a)
{
	size_t len = strlen(path), tail = strlen("/Current Thread");
	bool current = len > tail && !strcmp(path + len - tail, "/Current Thread"), idle = current;

	for (size_t i = 0; i < a->n; i++)
		idle = idle && (a->iv[i].end < r->from || a->iv[i].start > r->to ||
		                !strcmp(strtab_get(&r->truth.strings, a->iv[i].value), "0"));
	/* Not visible: a pCPU without records; the current thread of a vCPU without events. */
	if (r->test->may_not_know || idle || is_reason(path) || (a->n == 1 && !strncmp(path, "/Host/CPUs/", 11)))
		return;
	/* Not visible either: events of a VM that was never traced, and threads without a record. */
	if (!truth_traced(&r->truth, path) && (a->n == 1 || current || strstr(path, "/Threads/") || strstr(path, "/Interrupt")))
		return;
	if (is_hosted_unseen(r, path) || (strstr(path, "/Threads/") && is_unseen(r, path)) || was_never_entered(r, path) ||
	    (current && has_never_run(r, path)))
		return;
	for (size_t i = 0; i < a->n; i++)
		if (a->iv[i].start <= r->to && a->iv[i].end >= r->from) {
			run_report(r, path, a->iv[i].start, a->iv[i].end, "no such attribute", "a value");
			return;
		}
}

static int compare_attr(struct truth_run *r, const struct truth_attr *a, struct error *err)
{
	const char *path = strtab_get(&r->truth.strings, a->path);
	uint32_t attr = history_find(r->h, path);
	struct history_cursor c;
	struct interval iv;
	size_t at = 0;
	int got;

	truth_window(&r->truth, path, &r->from, &r->to);
	r->path = path;
	bounds_window(&r->bounds, path, &r->from, &r->to);
	if (!bounds_known(&r->bounds, path))
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
	r->wrong_ns = 0;
	while ((got = history_range_next(&c, &iv, err)) > 0)
		compare_interval(r, path, a, &at, attr, &iv);
	/* The limit refers to the whole run: an estimate must not weigh more because a parent's trace ends early. */
	if (is_estimate(r, path)) {
		estimates.wrong_ns += r->wrong_ns;
		estimates.ns += r->to - r->from + 1;
	}
	if (r->wrong_ns > (r->truth.end - r->truth.begin) / 100 * WRONG_ONE_MAX)
		run_report(r, path, r->from, r->from + r->wrong_ns, "so much of its states", "others");
	if (r->wrong_ns && getenv("TRUTH_VERBOSE"))
		printf("    %s: %.3f %% estimated wrongly\n", path, 100.0 * (double)r->wrong_ns / (double)(r->to - r->from));
	return got;
}

/* Reports a thread that does not exist in the truth. */
static int no_such_thread(void *arg, uint32_t attr)
{
	struct truth_run *r = arg;
	char path[600], vm[256];
	uint32_t thread = history_parent(r->h, attr), threads = history_parent(r->h, thread);
	uint32_t machine = history_parent(r->h, threads);

	history_path(vm, sizeof vm, history_name(r->h, machine), NULL);
	snprintf(path, sizeof path, "%s%s/Threads/%s/Status", history_parent(r->h, machine) == history_find(r->h, "/") ? "/"
	         : "/Virtual Machines/", vm[0] == '/' ? vm + 1 : vm, history_name(r->h, thread));
	if (!truth_find(&r->truth, path))
		run_report(r, path, r->truth.begin, r->truth.end, "a thread", "none");
	return 0;
}

/* Reports a vCPU with a reason if no vCPU of its VM has one in the truth. */
static int no_such_reason(void *arg, uint32_t attr)
{
	struct truth_run *r = arg;
	uint32_t cpu = history_parent(r->h, attr), machine = history_parent(r->h, history_parent(r->h, cpu));
	const char *vm = history_name(r->h, machine), *name = history_name(r->h, cpu);
	char path[600], status[600];

	history_path(path, sizeof path, "Virtual Machines", vm, "CPUs", name, "Out By", NULL);
	history_path(status, sizeof status, "Virtual Machines", vm, "CPUs", name, "Status", NULL);
	if (truth_find(&r->truth, status) && !truth_find(&r->truth, path))
		run_report(r, path, r->truth.begin, r->truth.end, "a reason", "none");
	return 0;
}

int run_compare(struct truth_run *r, struct error *err)
{
	for (size_t i = 0; i < r->truth.attrs; i++)
		if (compare_attr(r, &r->truth.attr[i], err) < 0)
			return -1;
	history_match(r->h, "/Host/Threads/*/Status", no_such_thread, r);
	history_match(r->h, "/Virtual Machines/*/Threads/*/Status", no_such_thread, r);
	history_match(r->h, "/Virtual Machines/*/CPUs/*/Out By", no_such_reason, r);
	return 0;
}

bool estimates_hold(void)
{
	const double missed = estimates.ns < ALL_NS ? 0 : 100.0 * (double)estimates.wrong_ns / (double)estimates.ns;
	if (missed > WRONG_ALL_MAX)
		printf("%.3f %% of the states of guests without a trace are estimated wrongly\n", missed);
	return missed <= WRONG_ALL_MAX;
}
