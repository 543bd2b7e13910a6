/* Reads each trace of EfficiOS' CTF test suite (../shared/cases/ctf-testsuite.tar.xz, not part of this tree), and compares
 * the verdict with the expected one. No trace may take more than a few seconds of CPU time, whatever its bytes are.
 *
 * Its traces are valid (`pass`) or violate the specification (`fail`). Most have no clock, so their events have no time
 * and none becomes part of a trace: such a trace counts as read if its events were decoded. The expected verdicts are in
 * tests/data/ctf_suite.txt. The reader accepts some wrong metadata without a stream (`empty`), and cannot read two valid
 * traces. STEALSCOPE_TEST_VERBOSE=1 prints all rows. */
#include "test.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "remove_all.h"
#include "slice.h"
#include "trace/trace.h"

#define SUITE "../shared/cases/ctf-testsuite.tar.xz"
#define TRACES 181
#define SECONDS_MAX 10  /* CPU time for one trace */

enum verdict { READ /* events, or events without time */, EMPTY /* valid, without an event */, DAMAGED /* in part */, REFUSED };

static const char verdict_name[][10] = { "read", "empty", "damaged", "refused" };

static bool has_note(const struct notes *notes, enum note_code code)
{
	for (size_t i = 0; i < notes->len; i++)
		if (notes->item[i].code == code)
			return true;
	return false;
}

static bool has_damage(const struct notes *notes)
{
	for (size_t i = 0; i < notes->len; i++)
		if (notes->item[i].kind == NOTE_KIND_DAMAGE)
			return true;
	return false;
}

/* Sets *why to the reason why the trace is refused, or to the first note. */
static enum verdict read_trace(const char *dir, struct error *why)
{
	const struct trace_options options = { .workers = 1 };
	struct trace_spec *spec = NULL;
	struct trace *trace = NULL;
	struct notes notes = { 0 };
	size_t n = 0;
	enum verdict v = REFUSED;
	*why = (struct error)ERROR_INIT;
	if (trace_discover(dir, &spec, &n, &notes, why) == 0 && n == 1 &&
	    trace_load(spec, n, &options, &trace, &notes, why) == 0) {
		const bool has_events = trace_info(trace)->events || has_note(&notes, NOTE_UNTIMED_EVENTS);
		v = has_damage(&notes) ? DAMAGED : has_events ? READ : EMPTY;
		if (notes.len)
			snprintf(why->text, sizeof why->text, "%s", notes.item[0].text);
	}
	trace_free(trace);
	trace_specs_free(spec, n);
	notes_release(&notes);
	return v;
}

static char *source_path(const char *name)
{
	const char *srcdir = getenv("srcdir");
	return mem_printf("%s/%s", srcdir ? srcdir : ".", name);
}

/* Unpacks the suite into a new directory. */
static bool unpack(char dir[])
{
	char *archive = source_path(SUITE);
	const pid_t pid = mkdtemp(dir) ? fork() : -1;
	if (pid == 0) {
		execlp("tar", "tar", "-xf", archive, "-C", dir, (char *)NULL);
		_exit(127);
	}
	int status = 1;
	if (pid > 0)
		assert_int_equal(waitpid(pid, &status, 0), pid);
	free(archive);
	return status == 0;
}

/* Returns the CPU time of this process and of its children that have ended, s. */
static double cpu_seconds(void)
{
	double s = 0;
	for (int i = 0; i < 2; i++) {
		struct rusage used;
		getrusage(i ? RUSAGE_CHILDREN : RUSAGE_SELF, &used);
		s += (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec);
		s += (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
	}
	return s;
}

/* Reads one trace of the suite. Returns true if the verdict is the expected one. */
static bool compare_trace(const char *suite, const char *name, const char *expected, size_t count[])
{
	char *dir = mem_printf("%s/ctfsuite/tests/1.8/regression/%s", suite, name);
	struct error why;
	const double from = cpu_seconds();
	const enum verdict v = read_trace(dir, &why);
	const double s = cpu_seconds() - from;
	const bool is_right = strcmp(verdict_name[v], expected) == 0 && s <= timeout_seconds(SECONDS_MAX) * (SANITIZED ? 10 : 1);
	if (!is_right || getenv("STEALSCOPE_TEST_VERBOSE"))
		printf("%-8s %-8s %6.2f s  %s: %s\n", expected, is_right ? "" : verdict_name[v], s, name, why.text);
	count[v]++;
	free(dir);
	return is_right;
}

static void test_suite(void **state)
{
	char dir[] = "/tmp/stealscope-ctf-suite-XXXXXX", name[200], expected[16];
	size_t count[COUNT(verdict_name)] = { 0 }, wrong = 0, n = 0;
	char *list = source_path("tests/data/ctf_suite.txt");
	FILE *in = fopen(list, "re");
	(void)state;
	assert_non_null(in);
	free(list);
	assert_true(unpack(dir));
	while (fscanf(in, "%15s %199s", expected, name) == 2) {
		wrong += !compare_trace(dir, name, expected, count);
		n++;
	}
	fclose(in);
	remove_all(dir);
	for (size_t i = 0; i < COUNT(verdict_name); i++)
		printf("%-8s %3zu of %zu\n", verdict_name[i], count[i], n);
	assert_int_equal(n, TRACES);
	assert_int_equal(wrong, 0);
}

int main(void)
{
	char *archive = source_path(SUITE);
	const bool exists = access(archive, R_OK) == 0;
	if (!exists)
		printf("%s: not there\n", archive);
	free(archive);
	if (!exists)
		return 77;
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_suite) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
