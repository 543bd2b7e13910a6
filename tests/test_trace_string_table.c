/* Tests of trace/: when the string table is full, the same names are dropped for any number of workers. Built with a
 * small limit that a short trace exceeds. */
#include "test.h"

#include "remove_all.h"
#include "sim/simulate.h"
#include "trace/internal.h"
#include "trace/trace.h"

/* Replaces each occurrence of `name` that fills a field of 16 bytes by a different name. */
static void rename_occurrences(const char *path, const char *name)
{
	char field[16] = { 0 };
	static unsigned number;
	FILE *f = fopen(path, "r+");
	assert_non_null(f);
	snprintf(field, sizeof field, "%s", name);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	const size_t size = (size_t)ftell(f);
	char *all = malloc(size);
	assert_non_null(all);
	rewind(f);
	assert_int_equal(fread(all, 1, size, f), size);
	for (char *at = all; (at = memmem(at, size - (size_t)(at - all), field, sizeof field));)
		snprintf(at, sizeof field, "%s%u", name, number++ % 700);
	rewind(f);
	assert_int_equal(fwrite(all, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
	free(all);
}

static void load(const char *dir, unsigned workers, struct trace **trace, struct notes *notes)
{
	const struct trace_options options = { .workers = workers };
	const struct trace_spec spec = { .dir = dir };
	struct error err = ERROR_INIT;
	*notes = (struct notes){ 0 };
	if (trace_load(&spec, 1, &options, trace, notes, &err))
		fail_msg("%s", err.text);
}

static void same_text(const struct trace *a, int64_t x, const struct trace *b, int64_t y, size_t *dropped)
{
	assert_string_equal(trace_string(a, x), trace_string(b, y));
	*dropped += *trace_string(a, x) == '\0';
}

/* Compares all names in switch events. */
static void same_names(const struct trace *a, const struct trace *b)
{
	struct error err = ERROR_INIT;
	struct trace_cursor *x = trace_cursor_open(a, KIND(EV_SWITCH), -1, &err),
						*y = trace_cursor_open(b, KIND(EV_SWITCH), -1, &err);
	const struct event *ex, *ey;
	size_t dropped = 0, events = 0;
	for (int more = 1; more; events += more > 0) {
		more = trace_cursor_borrow(x, &ex, &err);
		assert_int_equal(trace_cursor_borrow(y, &ey, &err), more);
		assert_true(more >= 0);
		if (more) {
			assert_true(ex->ts == ey->ts);
			same_text(a, ex->sw.prev_comm, b, ey->sw.prev_comm, &dropped);
			same_text(a, ex->sw.next_comm, b, ey->sw.next_comm, &dropped);
		}
	}
	assert_true(dropped > 0 && dropped < 2 * events);
	trace_cursor_close(x);
	trace_cursor_close(y);
}

static void check_workers(const char *dir)
{
	struct trace *one, *several;
	struct notes of_one, of_several;
	load(dir, 1, &one, &of_one);
	for (unsigned workers = 2; workers <= 4; workers++) {
		load(dir, workers, &several, &of_several);
		same_names(one, several);
		assert_int_equal(of_one.len, 1);
		assert_int_equal(of_several.len, 1);
		assert_int_equal(of_several.item[0].code, NOTE_TOO_MANY_NAMES);
		notes_release(&of_several);
		trace_free(several);
	}
	notes_release(&of_one);
	trace_free(one);
}

static void test_too_many(void **state)
{
	(void)state;
	char dir[] = "/tmp/stealscope-names-XXXXXX", path[96];
	struct error err = ERROR_INIT;
	struct sim_result result;
	assert_non_null(mkdtemp(dir));
	const struct options o = {
		.scenario = "churn", .out = dir, .seed = 1, .duration = 1000000000, .pcpus = 2, .no_truth = true
	};
	if (simulate(&o, &result, &err))
		fail_msg("%s", err.text);
	for (int cpu = 0; cpu < 2; cpu++) {
		snprintf(path, sizeof path, "%s/host/kernel/ch_%d", dir, cpu);
		rename_occurrences(path, "cron");
	}
	snprintf(path, sizeof path, "%s/host", dir);
	check_workers(path);
	remove_all(dir);
}

/* The end of a name depends neither on the bytes after it nor on earlier names. */
static void test_cache(void **state)
{
	(void)state;
	struct string_table names;
	struct string_cache c;
	char text[40], whole[40];
	string_table_init(&names);
	string_cache_init(&c, &names);
	for (unsigned round = 0; round < 3; round++)
		for (size_t len = 0; len <= 20; len++)
			for (size_t max_len = 0; max_len <= 24; max_len++) {
				const size_t end = len < max_len ? len : max_len;
				memset(text, 'a' + (int)round, sizeof text);
				for (size_t i = 0; i < len; i++)
					text[i] = (char)(0x80 + i);
				text[len] = '\0';
				memcpy(whole, text, end);
				whole[end] = '\0';
				assert_string_equal(strtab_get(&names.tab, string_cache_put(&c, text, max_len)), whole);
			}
	assert_int_equal(names.tab.len, 21);
	assert_int_equal(string_cache_put(&c, "", 0), 0);
	string_cache_release(&c);
	string_table_release(&names);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_too_many), cmocka_unit_test(test_cache) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
