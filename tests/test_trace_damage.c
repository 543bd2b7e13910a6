/* Tests of trace/ with damaged or incomplete input, and input that is no trace. Each case is a copy of the fibonacci
 * recording, or a directory made here, with one fault. */
#include "test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "trace/trace.h"
#include "trace_files.h"

/* ---- loading, with nothing on stderr */

struct result {
	struct trace *trace;
	struct notes notes;
	struct error err;
	uint64_t count[EVENT_KIND_COUNT];
	int64_t last;
};

static void load(const char *dir, struct result *r)
{
	int saved = dup(2);
	char *quiet = path_of("stderr");
	int fd = open(quiet, O_RDWR | O_CREAT | O_TRUNC, 0600);
	dup2(fd, 2);
	struct trace_spec *spec = NULL;
	struct trace *out[4] = { NULL };
	size_t n = 0;
	*r = (struct result){ 0 };
	if (trace_discover(dir, &spec, &n, NULL, &r->err) == 0) {
		assert_int_equal(n, 1);
		if (trace_load(spec, n, &(struct trace_options){ .workers = 2 }, out, &r->notes, &r->err) == 0)
			r->trace = out[0];
	}
	trace_specs_free(spec, n);
	dup2(saved, 2);
	close(saved);
	assert_int_equal(lseek(fd, 0, SEEK_END), 0);
	close(fd);
	free(quiet);
	if (!r->trace)
		return;
	struct trace_cursor *c = trace_cursor_open(r->trace, ALL_KINDS, -1, &r->err);
	struct event ev;
	while (trace_cursor_next(c, &ev, &r->err) > 0) {
		r->count[ev.kind]++;
		r->last = ev.ts;
	}
	trace_cursor_close(c);
}

static void result_release(struct result *r)
{
	trace_free(r->trace);
	notes_release(&r->notes);
}

static bool has_note(const struct result *r, enum note_code code, const char *part)
{
	char text[NOTE_TEXT];
	for (size_t i = 0; i < r->notes.len; i++)
		if (r->notes.item[i].code == code && strstr(note_text(&r->notes.item[i], text), part))
			return true;
	return false;
}

static bool has_text(const struct result *r, const char *part)
{
	char text[NOTE_TEXT];
	for (size_t i = 0; i < r->notes.len; i++)
		if (strstr(note_text(&r->notes.item[i], text), part))
			return true;
	return false;
}

static void refuse(const char *dir, const char *part)
{
	struct result r;
	load(dir, &r);
	assert_null(r.trace);
	assert_int_equal(r.err.status, STATUS_INPUT);
	if (!strstr(r.err.text, part))
		fail_msg("'%s' is not in '%s'", part, r.err.text);
	assert_null(strchr(r.err.text, '\n'));
	assert_true(*r.err.remedy);
	result_release(&r);
}

/* ---- input that is rejected */

static void test_missing_dir(void **state)
{
	(void)state;
	char *dir = path_of("nowhere");
	refuse(dir, "nowhere: No such file");
	free(dir);
}

static void test_no_trace(void **state)
{
	(void)state;
	char *dir = path_of("empty"), *file = path_of("empty/readme");
	mkdir(dir, 0755);
	refuse(dir, "empty directory");
	write_file(file, "hello", 5);
	refuse(dir, "no trace");
	free(file);
	file = path_of("empty/metadata");
	write_file(file, "hello", 5);
	refuse(dir, "empty/metadata: not the metadata");
	free(file);
	free(dir);
}

static void test_ctf2(void **state)
{
	(void)state;
	static const char text[] = "\x1e{\"type\":\"preamble\",\"version\":2}\n";
	char *dir = path_of("ctf2"), *file = path_of("ctf2/metadata");
	mkdir(dir, 0755);
	write_file(file, text, sizeof text - 1);
	refuse(dir, "no stream class");
	write_file(file, text + 1, sizeof text - 2);
	refuse(dir, "no separators");
	free(file);
	free(dir);
}

static void test_other_tracers(void **state)
{
	(void)state;
	char *dir = path_of("other"), *file = path_of("other/data");
	mkdir(dir, 0755);
	write_file(file, "PERFILE2xxxxxxxxxxxx", 20);
	refuse(dir, "perf.data");
	free(file);
	free(dir);
}

static void test_metadata(void **state)
{
	(void)state;
	char *dir = copy_trace("metadata", "host"), *file = path_of("metadata/metadata");
	cut(dir, "metadata", 9000);
	refuse(dir, "metadata: truncated");
	write_file(file, "/* CTF 1.8 */ trace { major = 1;", 32);
	refuse(dir, "metadata");
	delete(dir, "metadata");
	refuse(dir, "without the trace's metadata");
	free(file);
	free(dir);
}

static void test_unreadable(void **state)
{
	(void)state;
	if (geteuid() == 0)
		skip();
	char *dir = copy_trace("secret", "host");
	chmod(dir, 0);
	refuse(dir, "Permission denied");
	chmod(dir, 0755);
	free(dir);
}

static void test_two_machines(void **state)
{
	(void)state;
	char *parent = path_of("both"), *a, *b;
	mkdir(parent, 0755);
	a = copy_trace("both/a", "host");
	b = copy_trace("both/b", "guest-Debian");
	struct trace_spec spec = { .dir = parent };
	struct trace *out[1] = { NULL };
	struct error err = ERROR_INIT;
	assert_int_equal(trace_load(&spec, 1, NULL, out, NULL, &err), -1);
	assert_int_equal(err.status, STATUS_INPUT);
	assert_non_null(strstr(err.text, "different machines"));
	assert_null(out[0]);
	free(parent);
	free(a);
	free(b);
}

/* A directory that is reached by two paths is read once. */
static void test_link(void **state)
{
	(void)state;
	char *parent = path_of("linked"), *dir, *link = path_of("linked/again");
	mkdir(parent, 0755);
	dir = copy_trace("linked/trace", "host");
	assert_int_equal(symlink(dir, link), 0);
	struct result r;
	load(parent, &r);
	assert_non_null(r.trace);
	assert_int_equal(trace_info(r.trace)->events, 18213);
	result_release(&r);
	unlink(link);
	free(parent);
	free(dir);
	free(link);
}

/* A copy of a trace is skipped with a note. */
static void test_copy(void **state)
{
	(void)state;
	char *parent = path_of("copied"), *a, *b;
	mkdir(parent, 0755);
	a = copy_trace("copied/a", "host");
	b = copy_trace("copied/b", "host");
	struct result r;
	load(parent, &r);
	assert_non_null(r.trace);
	assert_int_equal(trace_info(r.trace)->events, 18213);
	assert_true(has_text(&r, "a copy of"));
	result_release(&r);
	free(parent);
	free(a);
	free(b);
}

/* ---- damage of a part of the trace */

static void test_empty_trace(void **state)
{
	(void)state;
	char *dir = copy_trace("none", "host");
	delete(dir, "ch_0");
	delete(dir, "ch_1");
	struct result r;
	load(dir, &r);
	assert_non_null(r.trace);
	assert_int_equal(trace_info(r.trace)->events, 0);
	assert_true(trace_info(r.trace)->begin > trace_info(r.trace)->end);
	assert_true(has_note(&r, NOTE_TRACE_EMPTY, ""));
	assert_string_equal(trace_info(r.trace)->machine, "hypervisor");
	result_release(&r);
	free(dir);
}

/* The stream of CPU 1 (one packet) is truncated. CPU 0 is complete; CPU 1 has the events before the truncation, then a
 * loss. */
static void check_cut(const char *name, bool with_index)
{
	char *dir = copy_trace(name, "host");
	struct result whole, r;
	load(dir, &whole);
	cut(dir, "ch_1", 400000);
	if (!with_index)
		delete(dir, "index");
	load(dir, &r);
	assert_non_null(r.trace);
	assert_true(r.notes.len > 0);
	struct error err = ERROR_INIT;
	struct event ev, want;
	for (int cpu = 0; cpu < 2; cpu++) {
		struct trace_cursor *c = trace_cursor_open(r.trace, ALL_KINDS, cpu, &err);
		struct trace_cursor *d = trace_cursor_open(whole.trace, ALL_KINDS, cpu, &err);
		size_t n = 0;
		int64_t last = 0;
		for (; trace_cursor_next(c, &ev, &err) > 0 && ev.kind != EV_LOST; n++) {
			assert_int_equal(trace_cursor_next(d, &want, &err), 1);
			assert_int_equal(ev.ts, want.ts);
			assert_int_equal(ev.kind, want.kind);
			last = ev.ts;
		}
		if (cpu == 0) {
			assert_int_equal(trace_cursor_next(d, &want, &err), 0);
		} else {
			assert_int_equal(ev.kind, EV_LOST);
			assert_int_equal(ev.ts, last);
			assert_true(n > 5000);
			assert_int_equal(trace_cursor_next(c, &ev, &err), 0);
		}
		trace_cursor_close(c);
		trace_cursor_close(d);
	}
	result_release(&whole);
	result_release(&r);
	free(dir);
}

static void test_cut_stream(void **state)
{
	(void)state;
	check_cut("cut", true);
	check_cut("cut-plain", false);
}

static void test_noise(void **state)
{
	(void)state;
	char *dir = copy_trace("noise", "host");
	damage(dir, "ch_1", 300000, 200);
	struct result r;
	load(dir, &r);
	assert_non_null(r.trace);
	assert_true(has_note(&r, NOTE_STREAM_DAMAGED, "ch_1"));
	assert_true(r.count[EV_LOST] > 0);
	assert_true(trace_info(r.trace)->events > 5000 && trace_info(r.trace)->events < 18213);
	result_release(&r);
	free(dir);
}

/* One stream is noise; the other stream is read. */
static void test_no_stream(void **state)
{
	(void)state;
	char *dir = copy_trace("no-stream", "host");
	damage(dir, "ch_1", 0, 100000);
	struct result r;
	load(dir, &r);
	assert_non_null(r.trace);
	assert_true(r.notes.len > 0);
	assert_int_equal(trace_info(r.trace)->events, 18213 - 16632);
	result_release(&r);
	free(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_missing_dir),
		cmocka_unit_test(test_no_trace),
		cmocka_unit_test(test_ctf2),
		cmocka_unit_test(test_other_tracers),
		cmocka_unit_test(test_metadata),
		cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_two_machines),
		cmocka_unit_test(test_link),
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_empty_trace),
		cmocka_unit_test(test_cut_stream),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_no_stream),
	};
	alarm(timeout_seconds(120));  /* ends the test if a reader hangs */
	return cmocka_run_group_tests_name("trace: bad input", tests, files_begin, files_end);
}
