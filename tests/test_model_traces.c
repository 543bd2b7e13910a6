/* The model on whole traces: recorded traces conserve time, and on simulated traces with perfect clocks every interval
 * equals the simulator's truth. */
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/strtab.h"
#include "model_conserve.h"
#include "slice.h"
#include "test.h"

static char tmp[200];

static bool exists(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0;
}

static void conserve(const char *dir)
{
	struct indexed x;
	char file[300];
	snprintf(file, sizeof file, "%s/history", tmp);
	index_traces(dir, file, false, 0, &x);
	assert_true(check_conservation(x.h, dir) > 5);
	assert_true(x.events > 100);
	indexed_release(&x);
	unlink(file);
}

static void test_bundled(void **state)
{
	(void)state;
	char dir[500];
	const char *src = getenv("srcdir");
	snprintf(dir, sizeof dir, "%s/tests/data/fibonacci", src ? src : ".");
	if (!exists(dir))
		skip();
	conserve(dir);
}

static void test_recorded(void **state)
{
	(void)state;
	char *dir[MAX_RECORDINGS];
	size_t n = slice_recordings(dir, 2);
	if (!n)
		skip();
	for (size_t i = 0; i < n; i++) {
		if (!strstr(dir[i], "/fibonacci_tracecmd"))  /* trace.dat of trace-cmd is not CTF */
			conserve(dir[i]);
		free(dir[i]);
	}
}

/* ---- the simulator's truth */

struct truth {
	struct strtab paths, values;
	struct truth_row { uint32_t value; int64_t start, end; } **row;
	size_t *len, *cap, paths_cap;
};

static int by_start(const void *a, const void *b)
{
	const struct truth_row *x = a, *y = b;
	return (x->start > y->start) - (x->start < y->start);
}

static void truth_read(struct truth *t, const char *dir)
{
	char file[400], line[1000];
	*t = (struct truth){ .row = NULL };
	strtab_init(&t->paths);
	strtab_init(&t->values);
	snprintf(file, sizeof file, "%s/truth/intervals.csv", dir);
	FILE *f = fopen(file, "r");
	assert_non_null(f);
	t->paths_cap = 100000;
	t->row = mem_new(t->paths_cap, sizeof *t->row);
	t->len = mem_new(t->paths_cap, sizeof *t->len);
	t->cap = mem_new(t->paths_cap, sizeof *t->cap);
	assert_non_null(fgets(line, sizeof line, f));
	while (fgets(line, sizeof line, f)) {
		char *save, *path = strtok_r(line, ",", &save), *start = strtok_r(NULL, ",", &save);
		char *end = strtok_r(NULL, ",", &save), *value = strtok_r(NULL, "\n", &save);
		uint32_t id = strtab_put(&t->paths, path);
		assert_true(id < t->paths_cap);
		*ARRAY_PUSH(t->row[id], t->len[id], t->cap[id]) = (struct truth_row){
			strtab_put(&t->values, value ? value : ""), strtoll(start, NULL, 10), strtoll(end, NULL, 10) };
	}
	fclose(f);
	for (uint32_t i = 0; i < t->paths.len; i++)
		if (t->len[i])
			qsort(t->row[i], t->len[i], sizeof **t->row, by_start);
}

static void truth_release(struct truth *t)
{
	for (size_t i = 0; i < t->paths_cap; i++)
		free(t->row[i]);
	free(t->row);
	free(t->len);
	free(t->cap);
	strtab_release(&t->paths);
	strtab_release(&t->values);
}

static const char *value_text(const struct history *h, uint32_t attr, int64_t value, char *buf, size_t size)
{
	if (value == HISTORY_NULL)
		return "";
	if (history_type(h, attr) == HISTORY_STATE)
		return history_state_name(h, attr, (unsigned)value);
	if (history_type(h, attr) == HISTORY_STRING)
		return history_string(h, value);
	if (history_type(h, attr) == HISTORY_REF) {
		snprintf(buf, size, "%s/%" PRIu32, history_string(h, history_ref_text(value)), history_ref_number(value));
		return buf;
	}
	snprintf(buf, size, "%" PRId64, value);
	return buf;
}

/* Part of an attribute that is compared: the time covered by the machine's trace, and the meaning of times without a
 * value. */
struct compared_part {
	int64_t begin, end;
	bool nulls;     /* compare null with gaps in the truth */
	bool unknown;   /* UNKNOWN and null are always allowed, because events were lost */
};

static struct compared_part scope_of(const struct indexed *x, const char *path)
{
	struct compared_part s = { .begin = x->machine[0].begin, .end = x->machine[0].end };
	const char *leaf = strrchr(path, '/') + 1;
	for (size_t i = 1; i < x->machines; i++) {
		char root[200];
		snprintf(root, sizeof root, "/Virtual Machines/%s/", x->machine[i].name);
		for (size_t m = i; m && !strncmp(path, root, strlen(root)); m = x->machine[m].parent) {
			if (x->machine[m].begin > s.begin)
				s.begin = x->machine[m].begin;
			if (x->machine[m].end < s.end)
				s.end = x->machine[m].end;
		}
	}
	/* the truth of name, CPU and PID ends with the thread, the history's does not */
	s.nulls = !strcmp(leaf, "Status") || !strcmp(leaf, "Interrupt") || !strcmp(leaf, "Current Thread");
	return s;
}

/* Returns the truth at t as text, and the last time for which it holds; "": no value. */
static const char *truth_at(const struct truth *t, uint32_t path, size_t *at, int64_t time, int64_t *until)
{
	const struct truth_row *row = t->row[path];
	while (*at < t->len[path] && row[*at].end < time)
		++*at;
	bool in = *at < t->len[path] && row[*at].start <= time;
	*until = in ? row[*at].end : *at < t->len[path] ? row[*at].start - 1 : INT64_MAX;
	return in ? strtab_get(&t->values, row[*at].value) : "";
}

static bool agree(const char *is, const char *truth, const struct compared_part *s)
{
	if (!strcmp(is, truth) || (!s->nulls && !*truth))
		return true;
	return s->unknown && (!*is || !strcmp(is, "UNKNOWN") || !strcmp(is, "unknown"));
}

/* Compares an attribute in its part; returns the time for which the model has UNKNOWN or null where the truth has a
 * value, ns. */
static int64_t compare(const struct indexed *x, const struct truth *t, uint32_t path_id, const struct compared_part *s,
                       const char *what)
{
	const char *path = strtab_get(&t->paths, path_id);
	uint32_t attr = history_find(x->h, path);
	size_t n, at = 0;
	int64_t unknown = 0;
	if (!strcmp(strrchr(path, '/'), "/Out By"))  /* written only if proven, which test_truth checks */
		return 0;
	if (attr == HISTORY_NONE) {
		if (!s->unknown && s->nulls && t->len[path_id] > 1)  /* a CPU without any event is not in the trace */
			fail_msg("%s: no %s", what, path);
		return 0;
	}
	struct interval *iv = all_intervals(x->h, attr, &n);
	for (size_t i = 0; i < n; i++) {
		int64_t from = iv[i].start > s->begin ? iv[i].start : s->begin, to = iv[i].end < s->end ? iv[i].end : s->end;
		char buf[40];
		const char *is = value_text(x->h, attr, iv[i].value, buf, sizeof buf);
		while (from <= to) {
			int64_t until;
			const char *truth = truth_at(t, path_id, &at, from, &until);
			if (!agree(is, truth, s))
				fail_msg("%s: %s from %" PRId64 " to %" PRId64 " is '%s', in truth '%s'", what, path, from,
				         until < to ? until : to, is, truth);
			if (until > to)
				until = to;
			if (strcmp(is, truth) && *truth)
				unknown += until - from + 1;
			from = until + 1;
		}
	}
	free(iv);
	return unknown;
}

/* Runs the simulator; returns false if it is missing. */
static bool simulate(const char *dir, const char *args)
{
	char cmd[1000];
	const char *build = getenv("builddir");
	snprintf(cmd, sizeof cmd, "%s/stealscope-sim", build ? build : ".");
	if (!exists(cmd))
		return false;
	snprintf(cmd, sizeof cmd, "%s/stealscope-sim %s --perfect-clocks -o %s 2>/dev/null", build ? build : ".", args, dir);
	assert_int_equal(system(cmd), 0);
	return true;
}

/* A request exists from its start to its end, with the thread that started it. */
static size_t compare_requests(const struct history *h, const char *dir, const char *what)
{
	char file[400], line[500], machine[64], path[300];
	int64_t id, start, end, tid;
	size_t compared = 0;
	snprintf(file, sizeof file, "%s/truth/requests.csv", dir);
	FILE *f = fopen(file, "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof line, f));
	while (fgets(line, sizeof line, f)) {
		struct error err = ERROR_INIT;
		struct interval before, at_start, at_end, after, thread;
		if (sscanf(line, "%" SCNd64 ",%63[^,],%" SCNd64 ",%" SCNd64 ",%" SCNd64, &id, machine, &tid, &start, &end) != 5)
			fail_msg("%s: %s", what, line);
		snprintf(path, sizeof path, "/Requests/%s/%" PRId64, machine, id);
		uint32_t node = history_find(h, path), state = below(h, node, "State", NULL);
		if (node == HISTORY_NONE || history_stab(h, state, start - 1, &before, &err) < 0 ||
		    history_stab(h, state, start, &at_start, &err) < 0 || history_stab(h, state, end - 1, &at_end, &err) < 0 ||
		    history_stab(h, state, end, &after, &err) < 0 ||
		    history_stab(h, below(h, node, "Thread", NULL), start, &thread, &err) < 0)
			fail_msg("%s: %s: %s", what, path, err.text);
		if (before.value != HISTORY_NULL || at_start.value == HISTORY_NULL || at_end.value == HISTORY_NULL ||
		    after.value != HISTORY_NULL || thread.value != tid)
			fail_msg("%s: %s is not from %" PRId64 " to %" PRId64 " of thread %" PRId64, what, path, start, end, tid);
		compared++;
	}
	fclose(f);
	return compared;
}

/* Returns false for attributes that may be outdated after losses without a sign in the trace: names, and the CPU of a
 * queued thread. */
static bool compared_with_losses(const char *path)
{
	const char *leaf = strrchr(path, '/') + 1;
	return !strcmp(leaf, "Status") || !strcmp(leaf, "Current Thread") || !strcmp(leaf, "Owner");
}

static void check_truth(const char *args, uint64_t lossy)
{
	struct indexed x;
	struct truth t;
	char dir[300], file[300], cmd[400];
	int64_t unknown = 0, total = 0;
	snprintf(dir, sizeof dir, "%s/sim", tmp);
	snprintf(file, sizeof file, "%s/history", tmp);
	if (!simulate(dir, args))
		skip();
	index_traces(dir, file, true, lossy, &x);
	truth_read(&t, dir);
	for (uint32_t i = 1; i < t.paths.len; i++) {
		struct compared_part s = scope_of(&x, strtab_get(&t.paths, i));
		s.unknown = lossy;
		if (lossy && !compared_with_losses(strtab_get(&t.paths, i)))
			continue;
		unknown += compare(&x, &t, i, &s, args);
		total += s.end - s.begin + 1;
	}
	assert_true(check_conservation(x.h, args) > 3);
	if (!lossy && compare_requests(x.h, dir, args) == 0)
		assert_null(strstr(args, "requests"));
	if (lossy)
		assert_true(x.lost && (unknown || lossy == NO_CONTEXT));
	else
		assert_int_equal(unknown, 0);
	if (lossy)
		print_message("%s: %" PRIu64 " events %s, %.2f %% not known\n", args, x.lost, lossy == NO_CONTEXT ? "bare" : "lost",
		              100 * (double)unknown / (double)total);
	truth_release(&t);
	indexed_release(&x);
	unlink(file);
	snprintf(cmd, sizeof cmd, "rm -rf '%s'", dir);
	assert_int_equal(system(cmd), 0);
}

static void test_scenarios(void **state)
{
	static const char *const run[] = {
		"pulse --duration 1s", "fibonacci --duration 1s", "critical_task --duration 2s", "residual_timer --duration 1s",
		"overcommit 3 --duration 300ms", "churn --duration 300ms", "requests --duration 500ms",
		"fibonacci --duration 500ms --no-kvm", "overcommit 2 --duration 200ms --missing Debian", "nested --duration 300ms",
	};
	(void)state;
	for (size_t i = 0; i < COUNT(run); i++)
		check_truth(run[i], 0);
}

static void test_random_scenarios(void **state)
{
	(void)state;
	for (int seed = 1; seed <= 30; seed++) {
		char args[100];
		snprintf(args, sizeof args, "random --seed %d --duration 150ms%s%s", seed, seed % 5 ? "" : " --no-kvm",
		         seed % 2 ? " --nested" : "");
		check_truth(args, 0);
	}
}

/* With lost events the model may have unknown states, but no wrong ones. */
static void test_lost(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 15; seed++) {
		char args[100];
		snprintf(args, sizeof args, "%s --seed %u", seed % 3 == 1 ? "random --duration 300ms" :
		         seed % 3 ? "random --nested --duration 300ms" : "fibonacci --duration 1s --pcpus 1", seed);
		check_truth(args, seed * 77777);
	}
}

/* Without contexts, as many tracers are configured, only switches show the current thread. */
static void test_no_context(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 6; seed++) {
		char args[100];
		snprintf(args, sizeof args, "random --duration 150ms --seed %u", seed);
		check_truth(args, NO_CONTEXT);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bundled),
		cmocka_unit_test(test_recorded),
		cmocka_unit_test(test_scenarios),
		cmocka_unit_test(test_random_scenarios),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_no_context),
	};
	const char *base = getenv("TMPDIR");
	int failed = 0;
	snprintf(tmp, sizeof tmp, "%s/test_model.XXXXXX", base ? base : "/tmp");
	if (!mkdtemp(tmp))
		return 99;
	if (argc > 2)  /* `test_model_traces ARGS LOSS-SEED|0`: one simulation, for debugging */
		check_truth(argv[1], strtoull(argv[2], NULL, 10));
	else
		failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(tmp);
	return failed;
}
