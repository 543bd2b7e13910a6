/* Tests of layouts: the shipped ones, errors in layouts, and a user's layout for a trace in which all names differ. */
#include "test.h"

#include <ctype.h>

#include "base/mem.h"
#include "trace/layout/layout.h"
#include "trace/trace.h"
#include "trace_files.h"
#include "trace_same.h"

static struct layout *parse(const char *text, struct error *err)
{
	*err = (struct error)ERROR_INIT;
	return layout_parse("my.yaml", text, strlen(text), err);
}

static void test_label(void **state)
{
	(void)state;
	static const struct { const char *text, *label; } cases[] = {
		{ "select * from t1 where id = 42 and name = 'O''Brien'", "select * from t1 where id = ? and name = ?" },
		{ " \t\nselect\t 1.5e3,0x1f ,\"a\\\"b\" ", "select ?,? ,?" }, { "'cut", "?" }, { "", "" }, { " \1 ", "" }, { "a'b'", "a?" },
		{ "GET /shop/17?id=3", "GET /shop/??id=?" }, { "t1 1t", "t1 ?" }, { "x = 'a' 'b'", "x = ? ?" }, { "'a','b'", "?,?" },
		{ "select $$a 'b$$, $1, $t$x $$ y$t$, $cut$z", "select ?, $1, ?, ?" }, { "a$ $", "a$ $" }, { "$", "$" },
		{ "\xc3\xa4\xc3\xb6 1", "\xc3\xa4\xc3\xb6 ?" },
	};
	char out[LABEL_MAX + 1], text[300];
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const size_t len = layout_label(out, cases[i].text, SIZE_MAX);
		assert_string_equal(out, cases[i].label);
		assert_int_equal(len, strlen(cases[i].label));
	}
	for (size_t n = 0; n < 100; n++) {  /* a character of two bytes at the end is not cut */
		memset(text, 'a', n);
		memcpy(text + n, "\xc3\xa4\xc3\xa4", 5);
		const size_t len = layout_label(out, text, SIZE_MAX), room = n < LABEL_MAX ? (LABEL_MAX - n) / 2 : 0;
		assert_int_equal(len, n >= LABEL_MAX ? LABEL_MAX : n + 2 * (room < 2 ? room : 2));
		assert_int_equal(strlen(out), len);
	}
	assert_int_equal(layout_label(out, "abc", 2), 2);
}

static void test_shipped(void **state)
{
	(void)state;
	static const char *const names[] = { "lttng", "perf", "ftrace" };
	struct error err = ERROR_INIT;
	for (size_t i = 0; i < COUNT(names); i++) {
		assert_string_equal(layout_shipped(i), names[i]);
		struct layout *l = layout_load(names[i], &err);
		if (!l)
			fail_msg("%s", err.text);
		assert_string_equal(l->name, names[i]);
		event_kinds kinds = 0;
		for (size_t k = 0; k < l->rules; k++)
			kinds |= KIND(l->rule[k].kind);
		assert_true(kinds & KIND(EV_SWITCH) && kinds & KIND(EV_VCPU_ENTRY) && kinds & KIND(EV_SYNC));
		/* perf cannot record texts written to trace_marker. */
		assert_int_equal((kinds & KIND(EV_MARK)) != 0, strcmp(names[i], "perf") != 0);
		layout_free(l);
	}
	assert_null(layout_shipped(COUNT(names)));
}

/* Each error message contains line and column, and the word that is wrong. */
static void test_mistakes(void **state)
{
	(void)state;
	static const struct { const char *text, *want; } cases[] = {
		{ "", "my.yaml:1:1: the layout is empty" },
		{ "layout: x\n", "my.yaml:1:1: the layout has no rules" },
		{ "events:\n  - {kind: sched_exit, names: [a]}\n", "my.yaml:1:1: the layout needs its name" },
		{ "layout: x\nevent: []\n", "my.yaml:2:1: unknown key in a layout: 'event'" },
		{ "layout: [x]\n", "my.yaml:1:9: expected a word" },
		{ "layout: x\nevents:\n  - {kind: sched_swich, names: [a]}\n", "my.yaml:3:12: unknown value: 'sched_swich'" },
		{ "layout: x\nevents:\n  - {kind: lost, names: [a]}\n", "my.yaml:3:12: no rule can have the kind 'lost'" },
		{ "layout: x\nevents:\n  - {names: [a]}\n", "my.yaml:3:5: a rule needs its kind" },
		{ "layout: x\nevents:\n  - {kind: sched_exit}\n", "my.yaml:3:5: a rule needs names" },
		{ "layout: x\nevents:\n  - {kind: sched_exit, names: []}\n", "my.yaml:3:31: an empty list" },
		{ "layout: x\nevents:\n  - {kind: sched_exit, names: a, tud: b}\n",
			"my.yaml:3:34: unknown key for this kind of event: 'tud'" },
		{ "layout: x\nevents:\n  - {kind: sched_switch, names: a, prev_tid: b}\n",
			"my.yaml:3:5: missing key for this kind of event: 'next_tid'" },
		{ "layout: x\nevents:\n  - {kind: sync, names: a, key: b}\n", "my.yaml:3:5: a sync rule needs its end" },
		{ "layout: x\nevents:\n  - {kind: sync, names: a, end: e, key: b}\n", "my.yaml:3:33: unknown value: 'e'" },
		{ "layout: x\nevents:\n  - {kind: sync, names: a, end: a}\n", "my.yaml:3:5: a sync rule needs its key" },
		{ "layout: x\nevents:\n  - {kind: sync, names: a, end: a, text: m}\n", "text and match belong together" },
		{ "layout: x\nevents:\n  - {kind: sched_exit, names: a, tid: packet.}\n", "my.yaml:3:39: not a field" },
		{ "layout: x\nevents:\n  - {kind: sched_exit, names: a, when: {x: y}}\n", "my.yaml:3:44: not a number: 'y'" },
		{ "layout: x\ncontext: {tod: a}\n", "my.yaml:2:11: unknown key in context: 'tod'" },
		{ "layout: x\nlost: often\n", "my.yaml:2:7: unknown value: 'often'" },
		{ "layout: x\nevents: [\n", "my.yaml:3:1: not YAML" },
		{ "layout: \"a\\0b\"\n", "my.yaml:1:9: expected a word" },
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct error err;
		struct layout *l = parse(cases[i].text, &err);
		if (l || !strstr(err.text, cases[i].want))
			fail_msg("case %zu: wanted '%s', got '%s'", i, cases[i].want, l ? "a layout" : err.text);
		assert_int_equal(err.status, STATUS_INPUT);
	}
	struct error err = ERROR_INIT;
	assert_null(layout_load("/nowhere/my.yaml", &err));
	assert_int_equal(err.status, STATUS_INPUT);
}

static void test_match(void **state)
{
	(void)state;
	static const struct { const char *pattern, *text; size_t most; bool match; int64_t key, uid; } cases[] = {
		{ "vmsync a {key}", "vmsync a 17", SIZE_MAX, true, 17, EVENT_ABSENT },
		{ "vmsync a {key}", "vmsync a 17\n", SIZE_MAX, true, 17, EVENT_ABSENT },
		{ "vmsync a {key}", "vmsync d 17", SIZE_MAX, false, 0, 0 },
		{ "vmsync a {key}", "vmsync a ", SIZE_MAX, false, 0, 0 },
		{ "vmsync a {key}", "vmsync a 17 x", SIZE_MAX, false, 0, 0 },
		{ "s a {uid} {key}", "s a 0x10 5", SIZE_MAX, true, 5, 16 },
		{ "srbn start {id}", "srbn start 3", SIZE_MAX, true, 3, EVENT_ABSENT },
		{ "mark", "mark", SIZE_MAX, true, EVENT_ABSENT, EVENT_ABSENT },
		{ "mark", "marks", SIZE_MAX, false, 0, 0 },
		{ "mark", "marks", 4, true, EVENT_ABSENT, EVENT_ABSENT },
		{ "mark", "mark", 3, false, 0, 0 },
		{ "vmsync a {key}", "vmsync a 17\n", 10, true, 1, EVENT_ABSENT },
		{ "vmsync a {key}", "vmsync a 17\n", 9, false, 0, 0 },
	};
	int64_t value[2], other[2];
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(layout_match(cases[i].pattern, cases[i].text, cases[i].most, value), cases[i].match);
		if (!cases[i].match)
			continue;
		assert_int_equal(value[0], cases[i].key);
		assert_int_equal(value[1], cases[i].uid);
	}
	/* Values of words that are not numbers: equal for equal words, never negative. */
	assert_true(layout_match("r {id}", "r order-12", SIZE_MAX, value));
	assert_true(layout_match("r {id}", "r order-12", SIZE_MAX, other));
	assert_int_equal(value[0], other[0]);
	assert_true(value[0] >= 0);
	assert_true(layout_match("r {id}", "r order-13", SIZE_MAX, other));
	assert_int_not_equal(value[0], other[0]);
}

static void test_run_state(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	struct layout *l = layout_load("lttng", &err);
	const struct rule *r = l->rule;
	while (r->kind != EV_SWITCH)
		r++;
	static const struct { int64_t value; enum run_state want;
	} cases[] = {
		{ 0, RUN_RUNNABLE },          { 256, RUN_RUNNABLE }, { 1024, RUN_RUNNABLE },
		{ 2048, RUN_RUNNABLE },       { 1, RUN_BLOCKED },    { 2, RUN_UNINTERRUPTIBLE },
		{ 258, RUN_UNINTERRUPTIBLE }, { 4, RUN_BLOCKED },    { 128, RUN_BLOCKED },
		{ 130, RUN_BLOCKED },         { 16, RUN_DEAD },      { 32, RUN_DEAD },
		{ 64, RUN_BLOCKED },
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(layout_run_state(&r->states, cases[i].value), cases[i].want);
	layout_free(l);
}

/* ---- a trace with other names of events and fields */

/* Returns the text of a packetized metadata file. CTF 1.8 packets have a header of 37 bytes, with the content and packet
 * size in bits at bytes 24 and 28. */
static char *metadata_text(const char *file)
{
	size_t len, out = 0;
	char *raw = read_whole(file, &len);
	char *text = mem_new(len + 1, 1);
	for (size_t at = 0; at < len;) {
		uint32_t content, packet;
		memcpy(&content, raw + at + 24, 4);
		memcpy(&packet, raw + at + 28, 4);
		memcpy(text + out, raw + at + 37, content / 8 - 37);
		out += content / 8 - 37;
		at += packet / 8;
	}
	free(raw);
	return text;
}

struct renaming { const char *from, *to; };

static const struct renaming renamed[] = {
	{ "sched_switch", "dispatch" }, { "sched_wakeup", "ready" }, { "sched_waking", "make_ready" },
	{ "sched_wakeup_new", "ready_new" }, { "sched_process_fork", "clone" }, { "sched_process_exit", "gone" },
	{ "lttng_logger", "say" }, { "lttng_statedump_process_state", "alive" }, { "irq_handler_entry", "int_begin" },
	{ "irq_handler_exit", "int_end" }, { "_prev_tid", "_old" }, { "_next_tid", "_new" }, { "_prev_comm", "_old_name" },
	{ "_next_comm", "_new_name" }, { "_prev_state", "_why" }, { "_tid", "_thread" }, { "_pid", "_process" },
	{ "_procname", "_program" }, { "_comm", "_called" }, { "_msg", "_words" }, { "cpu_id", "core" },
	{ "_child_tid", "_child" }, { "_parent_tid", "_mother" }, { "_irq", "_line" }, { "_name", "_label" },
};

static const char user_layout[] =
	"layout: mine\n"
	"context: {cpu: packet.core, tid: context.thread, pid: context.process, comm: [context.nothing, context.program]}\n"
	"lost: tail\n"
	"events:\n"
	"  - kind: sched_switch\n"
	"    names: dispatch\n"
	"    prev_tid: old\n"
	"    next_tid: new\n"
	"    prev_comm: old_name\n"
	"    next_comm: new_name\n"
	"    prev_state: why\n"
	"    next_prio: next_prio\n"
	"    nice_0: 20\n"
	"    states: {mask: 0xff, runnable: 0, uninterruptible: 2, dead: 0x30}\n"
	"  - {kind: sched_waking, names: make_ready, tid: thread, comm: called, target_cpu: target_cpu}\n"
	"  - {kind: sched_wakeup, names: [ready, ready_new], tid: thread, comm: called, target_cpu: target_cpu}\n"
	"  - {kind: sched_fork, names: clone, parent_tid: mother, child_tid: child}\n"
	"  - {kind: sched_exit, names: gone, tid: thread}\n"
	"  - {kind: process_state, names: alive, tid: thread, pid: process, comm: label, cpu: cpu, type: type, state: status,\n"
	"     states: {1: runnable, 2: runnable, 3: dead, 4: dead, 5: blocked, 7: dead}}\n"
	"  - {kind: irq_entry, names: int_begin, number: line, name: label}\n"
	"  - {kind: irq_exit, names: int_end, number: line}\n"
	"  - {kind: sync, end: a, names: say, text: words, match: 'vmsync a {key}'}\n"
	"  - {kind: sync, end: d, names: say, text: words, match: 'vmsync d {key}'}\n";

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Renames whole words of the metadata. */
static void rename_all(const char *dir, const struct renaming *names, size_t n)
{
	char *file = mem_printf("%s/metadata", dir), *text = metadata_text(file);
	FILE *out = fopen(file, "w");
	assert_non_null(out);
	fputs("/* CTF 1.8 */\n", out);
	for (const char *p = text; *p;) {
		size_t len = 0;
		while (is_word(p[len]))
			len++;
		if (!len) {
			fputc(*p++, out);
			continue;
		}
		size_t i = 0;
		while (i < n && (strlen(names[i].from) != len || strncmp(names[i].from, p, len) != 0))
			i++;
		if (i < n)
			fputs(names[i].to, out);
		else
			fwrite(p, 1, len, out);
		p += len;
	}
	assert_int_equal(fclose(out), 0);
	free(file);
	free(text);
}

static struct trace *load(const char *dir, const char *layout, struct notes *notes)
{
	struct trace_spec spec = { .dir = dir, .layout = layout };
	struct error err = ERROR_INIT;
	struct trace *t;
	if (trace_load(&spec, 1, NULL, &t, notes, &err))
		fail_msg("%s", err.text);
	return t;
}

static void test_users_layout(void **state)
{
	(void)state;
	char *plain = copy_trace("plain", "guest-Debian"), *other = copy_trace("renamed", "guest-Debian");
	char *file = path_of("mine.yaml");
	write_file(file, user_layout, sizeof user_layout - 1);
	rename_all(other, renamed, COUNT(renamed));
	struct trace *want = load(plain, NULL, NULL), *got = load(other, file, NULL);
	assert_string_equal(trace_info(want)->layout, "lttng");
	assert_string_equal(trace_info(got)->layout, "mine");
	assert_int_equal(trace_info(want)->events, trace_info(got)->events);
	const event_kinds kinds = KIND(EV_SWITCH) | KIND(EV_WAKING) | KIND(EV_WAKEUP) | KIND(EV_EXIT) |
		KIND(EV_PROCESS) | KIND(EV_IRQ_ENTRY) | KIND(EV_IRQ_EXIT) | KIND(EV_SYNC);
	assert_true(assert_same_events(want, got, kinds) > 1000);
	trace_free(want);
	trace_free(got);
	free(plain);
	free(other);
	free(file);
}

/* The shipped layout that matches the events is selected automatically. */
static void test_choice(void **state)
{
	(void)state;
	static const struct renaming perf[] = {
		{ "sched_switch", "sched:sched_switch" }, { "sched_wakeup", "sched:sched_wakeup" },
		{ "sched_wakeup_new", "sched:sched_wakeup_new" }, { "sched_waking", "sched:sched_waking" },
		{ "_prev_tid", "_prev_pid" }, { "_next_tid", "_next_pid" }, { "_tid", "_pid" }, { "_pid", "_perf_pid" },
	};
	static const struct renaming ftrace[] = {
		{ "_prev_tid", "_prev_pid" }, { "_next_tid", "_next_pid" }, { "_tid", "_pid" }, { "_pid", "_common_pid" },
		{ "lttng_logger", "print" }, { "_msg", "_buf" }, { "irq_softirq_entry", "softirq_entry" },
		{ "irq_softirq_exit", "softirq_exit" }, { "timer_hrtimer_expire_entry", "hrtimer_expire_entry" },
		{ "timer_hrtimer_expire_exit", "hrtimer_expire_exit" },
	};
	static const struct { const char *layout; const struct renaming *names; size_t n; } cases[] = {
		{ "perf", perf, COUNT(perf) }, { "ftrace", ftrace, COUNT(ftrace) },
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char *dir = copy_trace(cases[i].layout, "guest-Debian");
		rename_all(dir, cases[i].names, cases[i].n);
		struct trace *t = load(dir, NULL, NULL);
		assert_string_equal(trace_info(t)->layout, cases[i].layout);
		struct error err = ERROR_INIT;
		struct trace_cursor *c = trace_cursor_open(t, KIND(EV_SWITCH), -1, &err);
		struct event ev;
		size_t n = 0;
		for (int64_t last = EVENT_ABSENT; trace_cursor_next(c, &ev, &err) > 0; n++) {
			assert_true(n == 0 || ev.sw.prev_tid == last);
			last = ev.sw.next_tid;
		}
		assert_int_equal(n, 464);
		trace_cursor_close(c);
		trace_free(t);
		free(dir);
	}
}

static size_t count_events(const struct trace *t, enum event_kind kind, int64_t arg0)
{
	struct error err = ERROR_INIT;
	struct trace_cursor *c = trace_cursor_open(t, KIND(kind), -1, &err);
	struct event ev;
	size_t n = 0;
	assert_non_null(c);
	while (trace_cursor_next(c, &ev, &err) > 0)
		n += ev.arg[0] == arg0;
	trace_cursor_close(c);
	return n;
}

/* The user space tracer may also record the texts of the beacon and the request marks. */
static void test_user_space_texts(void **state)
{
	(void)state;
	static const struct renaming tracef[] = { { "lttng_logger", "lttng_ust_tracef:event" } };
	char *plain = copy_trace("kernel-texts", "guest-Debian"), *other = copy_trace("user-texts", "guest-Debian");
	rename_all(other, tracef, COUNT(tracef));
	struct trace *want = load(plain, NULL, NULL), *got = load(other, NULL, NULL);
	assert_string_equal(trace_info(got)->layout, "lttng");
	assert_true(count_events(want, EV_SYNC, SYNC_A) > 0);
	assert_int_equal(count_events(got, EV_SYNC, SYNC_A), count_events(want, EV_SYNC, SYNC_A));
	assert_int_equal(count_events(got, EV_SYNC, SYNC_D), count_events(want, EV_SYNC, SYNC_D));
	trace_free(want);
	trace_free(got);
	free(plain);
	free(other);
	struct error err = ERROR_INIT;
	struct layout *l = layout_load("lttng", &err);
	unsigned ops = 0;
	for (size_t k = 0; k < l->rules; k++) {
		const struct rule *r = &l->rule[k];
		for (size_t i = 0; i < r->names; i++)
			if (r->kind == EV_MARK && strcmp(r->name[i], "lttng_ust_tracef:event") == 0)
				ops |= 1u << r->fixed;
	}
	assert_int_equal(ops, 1u << MARK_START | 1u << MARK_YIELD | 1u << MARK_RESUME | 1u << MARK_END);
	layout_free(l);
}

/* No shipped layout has the names: there is a note, and each event still counts as activity. */
static void test_no_layout_fits(void **state)
{
	(void)state;
	char *dir = copy_trace("unknown", "guest-Debian");
	struct notes notes = { 0 };
	rename_all(dir, renamed, COUNT(renamed));
	struct trace *t = load(dir, "perf", &notes);
	assert_int_equal(trace_info(t)->events, 4804);
	bool has_note = false;
	for (size_t i = 0; i < notes.len; i++)
		has_note |= notes.item[i].code == NOTE_NO_LAYOUT;
	assert_true(has_note);
	trace_free(t);
	notes_release(&notes);
	free(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_label),
		cmocka_unit_test(test_shipped),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_match),
		cmocka_unit_test(test_run_state),
		cmocka_unit_test(test_users_layout),
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_user_space_texts),
		cmocka_unit_test(test_no_layout_fits),
	};
	return cmocka_run_group_tests_name("trace: layouts", tests, files_begin, files_end);
}
