/* Tests the field classes that only CTF 2 has, and invalid CTF 2 metadata. */
#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "trace/trace.h"
#include "trace_files.h"

#define U(bits, more) "{\"type\":\"fixed-length-unsigned-integer\",\"length\":" #bits \
	",\"alignment\":8,\"byte-order\":\"little-endian\"" more "}"
#define FIELD(name, class) "{\"name\":\"" name "\",\"field-class\":" class "}"
#define ROLE(role) ",\"roles\":[\"" role "\"]"
#define STRUCTURE(members) "{\"type\":\"structure\",\"member-classes\":[" members "]}"
#define WHERE(way) "\"" way "-field-location\":"
#define PREAMBLE "\x1e{\"type\":\"preamble\",\"version\":2}\n"
#define CLOCK_AT(seconds) "\x1e{\"type\":\"clock-class\",\"id\":\"c\",\"frequency\":1000000000,\"offset-from-origin\":" \
	"{\"seconds\":" #seconds ",\"cycles\":5}}\n"
#define CLOCK CLOCK_AT(10)
#define CONTEXT \
	FIELD("all", U(64, ROLE("packet-total-length"))) "," FIELD("used", U(64, ROLE("packet-content-length"))) "," \
	FIELD("from", U(64, ROLE("default-clock-timestamp"))) "," \
	FIELD("to", U(64, ROLE("packet-end-default-clock-timestamp"))) "," FIELD("packet_size", U(8, "")) "," \
	FIELD("cpu_id", U(32, ""))
#define STREAM "\x1e{\"type\":\"data-stream-class\",\"default-clock-class-id\":\"c\",\"packet-context-field-class\":" \
	STRUCTURE(CONTEXT) ",\"event-record-header-field-class\":" \
	STRUCTURE(FIELD("id", U(8, "")) "," FIELD("what", U(8, ROLE("event-record-class-id"))) "," \
	          FIELD("when", U(32, ROLE("default-clock-timestamp")))) "}\n"
#define EVENT(number, name, members) "\x1e{\"type\":\"event-record-class\",\"id\":" #number ",\"name\":\"" name \
	"\",\"payload-field-class\":" STRUCTURE(members) "}\n"
#define OPTIONS "{\"type\":\"variant\"," WHERE("selector") "{\"origin\":\"event-record-payload\",\"path\":[\"kind\"]}," \
	"\"options\":[{\"field-class\":" U(16, "") ",\"selector-field-ranges\":[[-5,-3],[7,7]]}," \
	"{\"name\":\"text\",\"field-class\":{\"type\":\"null-terminated-string\"},\"selector-field-ranges\":[[0,2]]}]}"

/* Metadata of a sched_waking event with fields after others of dynamic size, and of a sched_process_exit event of fixed
 * size. */
static const char metadata[] = PREAMBLE CLOCK
	"\x1e{\"type\":\"field-class-alias\",\"name\":\"leb\",\"field-class\":{\"type\":\"variable-length-signed-integer\"}}\n"
	STREAM
	EVENT(0, "sched_waking",
		FIELD("kind", "\"leb\"") "," FIELD("either", OPTIONS) ","
		FIELD("there", "{\"type\":\"fixed-length-boolean\",\"length\":8,\"alignment\":8,\"byte-order\":\"big-endian\"}") ","
		FIELD("perhaps", "{\"type\":\"optional\"," WHERE("selector") "{\"path\":[\"there\"]},\"field-class\":" U(24, "") "}") ","
		FIELD("in", STRUCTURE(FIELD("n", U(8, "")) ","
			FIELD("blob", "{\"type\":\"dynamic-length-blob\"," WHERE("length") "{\"path\":[\"n\"]}}") ","
			FIELD("again", "{\"type\":\"dynamic-length-blob\"," WHERE("length")
			      "{\"origin\":\"event-record-payload\",\"path\":[\"in\",\"n\"]}}"))) ","
		FIELD("comm", "{\"type\":\"dynamic-length-string\"," WHERE("length") "{\"path\":[\"in\",\"n\"]}}") ","
		FIELD("tid", "\"leb\"") "," FIELD("target_cpu", "{\"type\":\"variable-length-unsigned-integer\"}"))
	EVENT(3, "sched_process_exit", FIELD("tid", U(32, "")));

#define HEAD_BYTES 37
#define BEGIN 0x100000000U

static void put_le(unsigned char *p, uint64_t v, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		p[i] = (unsigned char)(v >> 8 * i);
}

static char *make_trace(const char *name, const char *text, const unsigned char *events, size_t len)
{
	unsigned char packet[512] = { 0 };
	char *dir = path_of(name), *file = mem_printf("%s/metadata", dir), *stream = mem_printf("%s/stream_0", dir);
	mkdir(dir, 0755);
	write_file(file, text, strlen(text));
	put_le(packet, 8 * (HEAD_BYTES + len), 8);
	put_le(packet + 8, 8 * (HEAD_BYTES + len), 8);
	put_le(packet + 16, BEGIN, 8);
	put_le(packet + 24, BEGIN + 1000, 8);
	put_le(packet + 33, 6, 4);
	memcpy(packet + HEAD_BYTES, events, len);
	write_file(stream, packet, HEAD_BYTES + len);
	free(file);
	free(stream);
	return dir;
}

static int load_trace(const char *dir, struct trace **t, struct error *err)
{
	const struct trace_spec spec = { .dir = dir };
	struct notes notes = { 0 };
	const int status = trace_load(&spec, 1, NULL, t, &notes, err);
	notes_release(&notes);
	return status;
}

static void test_classes(void **state)
{
	(void)state;
	static const unsigned char events[] = {
		9, 0, 10, 0, 0, 0, /* kind */ 0x7c, /* either */ 1, 2, /* there */ 1, 3, 3, 3,
		/* n */ 2, 'x', 'x', 'y', 'y', 'a', 'b',
		/* tid */ 0xac, 0x02, /* cpu */ 0x81, 0x01,
		9, 0, 20, 0, 0, 0, /* kind */ 1, 'l', 'o', 'n', 'g', 0, /* there */ 0,
		/* n */ 1, 0, 0, 'c', /* tid */ 0x7f, /* cpu */ 0x7f,
		9, 3, 30, 0, 0, 0, 77, 0, 0, 0,
	};
	struct trace *t;
	struct event ev;
	struct error err = ERROR_INIT;
	char *dir = make_trace("classes", metadata, events, sizeof events);
	if (load_trace(dir, &t, &err))
		fail_msg("%s", err.text);
	assert_string_equal(trace_info(t)->reader, "native");
	struct trace_cursor *c = trace_cursor_open(t, ALL_KINDS, -1, &err);
	const int64_t begin = 10000000005 + (int64_t)BEGIN;
	assert_int_equal(trace_cursor_next(c, &ev, &err), 1);
	assert_true(ev.kind == EV_WAKING && ev.ts == begin + 10 && ev.cpu == 6);
	assert_true(ev.wake.tid == 300 && ev.wake.target_cpu == 129);
	assert_string_equal(trace_string(t, ev.wake.comm), "ab");
	assert_int_equal(trace_cursor_next(c, &ev, &err), 1);
	assert_true(ev.kind == EV_WAKING && ev.ts == begin + 20 && ev.wake.tid == -1 && ev.wake.target_cpu == 127);
	assert_string_equal(trace_string(t, ev.wake.comm), "c");
	assert_int_equal(trace_cursor_next(c, &ev, &err), 1);
	assert_true(ev.kind == EV_EXIT && ev.ts == begin + 30 && ev.exit.tid == 77);
	assert_int_equal(trace_cursor_next(c, &ev, &err), 0);
	trace_cursor_close(c);
	trace_free(t);
	free(dir);
}

/* Events in the metadata count as enabled even if none was recorded. */
static void test_enabled_events(void **state)
{
	(void)state;
	static const char text[] = PREAMBLE CLOCK STREAM
		EVENT(0, "irq_handler_entry", FIELD("irq", U(32, "")))
		EVENT(1, "timer_hrtimer_expire_entry", FIELD("hrtimer", U(64, "")))
		EVENT(2, "irq_softirq_exit", FIELD("vec", U(32, ""))) EVENT(3, "sched_process_exit", FIELD("tid", U(32, "")))
		EVENT(4, "sched_process_fork", FIELD("parent_tid", U(32, "")) "," FIELD("child_tid", U(32, "")));
	static const unsigned char events[] = { 9, 3, 10, 0, 0, 0, 7, 0, 0, 0 };
	static const struct { const char *text; unsigned enabled_events; } want[] = {
		{ text, HANDLERS_IRQ | HANDLERS_TIMER | ENABLED_EXITS * HANDLERS_SOFTIRQ | ENABLED_FORKS }, { metadata, 0 },
	};
	for (size_t i = 0; i < COUNT(want); i++) {
		struct trace *t;
		struct error err = ERROR_INIT;
		char *dir = make_trace(i ? "unasked" : "asked", want[i].text, events, sizeof events);
		if (load_trace(dir, &t, &err))
			fail_msg("%s", err.text);
		assert_int_equal(trace_info(t)->asked, want[i].enabled_events);
		trace_free(t);
		free(dir);
	}
}

/* After an invalid value, the rest of its packet is skipped. */
static void test_wrong_values(void **state)
{
	(void)state;
	static const unsigned char events[][18] = {
		{ 9, 3, 10, 0, 0, 0, 7, 0, 0, 0, 9, 0, 11, 0, 0, 0, /* selects no option */ 0x64, 0 },
		{ 9, 3, 10, 0, 0, 0, 7, 0, 0, 0, 9, 0, 11, 0, 0, 0, /* number too long */ 0xff, 0xff },
		{ 9, 3, 10, 0, 0, 0, 7, 0, 0, 0, 9, 2, 11, 0, 0, 0, /* unknown class */ 0, 0 },
	};
	for (size_t i = 0; i < COUNT(events); i++) {
		struct trace *t;
		struct error err = ERROR_INIT;
		char *dir = make_trace("wrong", metadata, events[i], sizeof events[i]);
		if (load_trace(dir, &t, &err))
			fail_msg("%s", err.text);
		assert_int_equal(trace_info(t)->events, 1);
		trace_free(t);
		free(dir);
	}
}

static void test_refused(void **state)
{
	(void)state;
	static const struct { const char *text, *reason; } bad[] = {
		{ PREAMBLE "\x1e{\"type\":", "not valid JSON" },
		{ PREAMBLE "\x1e[1]", "not valid JSON" },
		{ PREAMBLE "\x1e{} {}", "not valid JSON" },
		{ CLOCK PREAMBLE, "fragment" },
		{ "\x1e{\"type\":\"preamble\",\"version\":3}", "version" },
		{ PREAMBLE "\x1e{\"type\":\"trace-class\",\"extensions\":{\"x\":{}}}", "unsupported CTF extension" },
		{ PREAMBLE "\x1e{\"type\":\"data-stream-class\",\"packet-context-field-class\":" STRUCTURE(CONTEXT) "}",
		  "timestamp without a clock" },
		{ PREAMBLE CLOCK STREAM EVENT(0, "e", FIELD("a", "\"b\"")), "undeclared type" },
		{ PREAMBLE CLOCK STREAM EVENT(0, "e", FIELD("a", "{\"type\":\"x\"}")), "unsupported field class" },
		{ PREAMBLE CLOCK STREAM EVENT(0, "e", FIELD("a", U(65, ""))), "more than 64 bits" },
		{ PREAMBLE CLOCK STREAM EVENT(0, "e", FIELD("a", U(8, "")) "," FIELD("a", U(8, ""))), "duplicate field name" },
		{ PREAMBLE CLOCK STREAM EVENT(0, "e", FIELD("a", "{\"type\":\"dynamic-length-blob\"," WHERE("length")
			"{\"path\":[\"a\"]}}")), "selector not found" },
		{ PREAMBLE CLOCK STREAM EVENT(0, "e", FIELD("a", "{\"type\":\"dynamic-length-blob\"," WHERE("length")
			"{\"path\":[null,null]}}")), "selector not found" },
		{ PREAMBLE CLOCK STREAM EVENT(0, "e", FIELD("a", "{\"type\":\"static-length-blob\",\"length\":-1}")),
		  "invalid number" },
		{ PREAMBLE CLOCK STREAM EVENT(0, "e", FIELD("a", "{\"type\":\"null-terminated-string\",\"encoding\":\"utf-16le\"}")),
		  "UTF-8" },
		{ PREAMBLE CLOCK STREAM "\x1e{\"type\":\"event-record-class\",\"data-stream-class-id\":7}",
		  "without a stream class" },
		{ PREAMBLE CLOCK_AT(9300000000) STREAM, "292 years" },
		{ PREAMBLE STREAM, "a clock is not described" },
		{ PREAMBLE "\x1e{\"type\":\"field-class-alias\",\"name\":\"a\",\"field-class\":\"a\"}\n"
		  CLOCK STREAM EVENT(0, "e", FIELD("a", "\"a\"")), "types nested too deeply" },
	};
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct trace *t = NULL;
		struct error err = ERROR_INIT;
		char *dir = make_trace("refused", bad[i].text, (const unsigned char *)"", 0);
		assert_int_equal(load_trace(dir, &t, &err), -1);
		assert_int_equal(err.status, STATUS_INPUT);
		if (!strstr(err.text, "the metadata cannot be read") || !strstr(err.text, bad[i].reason))
			fail_msg("'%s' is not in '%s'", bad[i].reason, err.text);
		free(dir);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_classes), cmocka_unit_test(test_enabled_events), cmocka_unit_test(test_wrong_values),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, files_begin, files_end);
}
