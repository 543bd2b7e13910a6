/* Tests of ui/: views, ruler, keys, themes and prompts, without a screen. */
#include "test.h"

#include <locale.h>

#include "ui/widgets/cells.h"
#include "ui/input/keys.h"
#include "ui/input/prompt.h"
#include "ui/widgets/ruler.h"
#include "ui/terminal/screen.h"
#include "ui/widgets/theme.h"
#include "ui/core/view.h"
#include "ui_row.h"

static uint64_t seed = 7;

static int64_t dice(int64_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (int64_t)((seed >> 20) % (uint64_t)n);
}

/* ---- View -------------------------------------------------------------------------------------------------------- */

static void check_view(const struct view *v, const struct view_bounds *g)
{
	assert_true(v->step >= 1);
	assert_true(v->t0 >= g->begin && v->t0 <= g->end);
	assert_true(v->cursor >= v->t0 && v->cursor <= view_last(v, g));
	int col = view_column(v, v->cursor);
	assert_true(col >= 0 && col < g->cols);
}

/* After any sequence of moves the cursor is on the screen and within the trace. */
static void test_view_invariants(void **state)
{
	(void)state;
	for (int round = 0; round < 300; round++) {
		int64_t length = INT64_C(1) << dice(50);
		struct view_bounds g = { 1795152647842459259, 1795152647842459259 + length, (int)dice(200) + 1 };
		struct view v = { .a = VIEW_NONE, .b = VIEW_NONE, .range = VIEW_NONE, .cursor = g.begin };
		view_whole(&v, &g);
		check_view(&v, &g);
		for (int i = 0; i < 60; i++) {
			switch (dice(7)) {
			case 0: view_pan(&v, &g, dice(400) - 200); break;
			case 1: view_zoom(&v, &g, 1, 1 + dice(9)); break;
			case 2: view_zoom(&v, &g, 1 + dice(9), 1); break;
			case 3: view_move(&v, &g, dice(100) - 50); break;
			case 4: view_goto(&v, &g, g.begin + dice(length + 1)); break;
			case 5: view_fit(&v, &g, g.begin + length / 3, g.begin + length / 2, 1, 1 + (int)dice(3)); break;
			default: g.cols = (int)dice(200) + 1; view_resize(&v, &g); break;
			}
			check_view(&v, &g);
		}
	}
}

static void test_view_pan_is_whole_columns(void **state)
{
	(void)state;
	struct view_bounds g = { 1000, 1000000, 100 };
	struct view v = { .t0 = 500000, .step = 37, .cursor = 500100 };
	for (int k = -50; k <= 50; k++) {
		struct view w = v;
		view_pan(&w, &g, k);
		assert_int_equal(w.t0 - v.t0, 37 * k);
		assert_int_equal(w.cursor - v.cursor, 37 * k);
		assert_int_equal(w.step, 37);
	}
}

static void test_view_zoom_keeps_cursor(void **state)
{
	(void)state;
	struct view_bounds g = { 0, 1000000000, 100 };
	struct view v = { 0 };
	view_whole(&v, &g);
	view_goto(&v, &g, 654321987);
	for (int i = 0; i < 40; i++) {
		int before = view_column(&v, v.cursor);
		view_zoom(&v, &g, 1, 2);
		assert_int_equal(v.cursor, 654321987);
		assert_in_range(view_column(&v, v.cursor) + 1, before, before + 2);
	}
	assert_int_equal(v.step, 1);
	for (int i = 0; i < 40; i++)
		view_zoom(&v, &g, 2, 1);
	assert_int_equal(v.t0, 0);
	assert_int_equal(view_last(&v, &g), g.end);
}

/* Panes take columns from the time area and return them: the window shows the same time, and exactly the same window
 * when the number of columns is restored. */
static void test_view_refit(void **state)
{
	(void)state;
	struct view_bounds g = { 1000, 100000000, 55 };
	for (int i = 0; i < 1000; i++) {
		struct view v = { .t0 = 1000 + dice(90000000), .step = 1 + dice(100000) };
		g.cols = 1 + (int)dice(120);
		view_goto(&v, &g, v.t0 + dice(v.step * g.cols));
		const struct view was = v;
		const struct view_bounds before = g;
		g.cols = 1 + (int)dice(120);
		view_refit(&v, &g, was.t0, was.step, before.cols);
		check_view(&v, &g);
		assert_true(v.t0 <= was.t0 && view_last(&v, &g) >= view_last(&was, &before));
		assert_true(v.step == 1 || (v.step - 1) * g.cols < was.step * before.cols);
		assert_int_equal(v.cursor, was.cursor);
		view_refit(&v, &before, was.t0, was.step, before.cols);
		assert_memory_equal(&v, &was, sizeof v);
	}
}

static void test_undo(void **state)
{
	(void)state;
	static struct undo u;
	struct view v = { .t0 = 0 };
	memset(&u, 0, sizeof u);
	assert_false(undo_back(&u, &v));
	for (int i = 1; i <= UNDO_MAX + 50; i++) {
		undo_push(&u, &v);
		v.t0 = i;
	}
	for (int i = UNDO_MAX + 49; i >= 50; i--) {
		assert_true(undo_back(&u, &v));
		assert_int_equal(v.t0, i);
	}
	assert_false(undo_back(&u, &v));
	for (int i = 51; i <= 60; i++) {
		assert_true(undo_forward(&u, &v));
		assert_int_equal(v.t0, i);
	}
	undo_push(&u, &v);
	v.t0 = -1;
	assert_false(undo_forward(&u, &v));
	assert_true(undo_back(&u, &v));
	assert_int_equal(v.t0, 60);
}

/* ---- Ruler ----------------------------------------------------------------------------------------------------- */

static void test_ruler_tick(void **state)
{
	(void)state;
	assert_int_equal(ruler_tick(1, 10), 10);
	assert_int_equal(ruler_tick(1200000, 10), 20000000);
	assert_int_equal(ruler_tick(1000000000, 10), 10000000000);
	for (int i = 0; i < 62; i++) {
		int64_t step = INT64_C(1) << i, tick = ruler_tick(step, 10);
		assert_true(tick / 10 >= step || tick > INT64_MAX / 4);
	}
	assert_int_equal(ruler_digits(1), 9);
	assert_int_equal(ruler_digits(1200000), 3);
	assert_int_equal(ruler_digits(INT64_C(5000000000)), 0);
}

static const struct ruler_marks no_marks;

/* Each tick is in the column of the time in its label. */
static void test_ruler_labels(void **state)
{
	(void)state;
	struct screen s = { 0 };
	struct time_axis axis = { TIME_TRACE, 1000000000000 };
	struct style plain = { -1, -1, 0 };
	screen_resize(&s, 140, 1);
	ruler_draw(&s, 0, 20, 0, 120, &axis, 1000000000000 + 12345678, 1000000, &no_marks, plain);
	int ticks = 0;
	for (int x = 20; x < 130; x++) {
		if (screen_at(&s, x, 0)->ch != '|')
			continue;
		char label[16] = "";
		for (int i = 0; i < 6; i++)
			label[i] = (char)screen_at(&s, x + 1 + i, 0)->ch;
		double seconds = strtod(label, NULL);
		int64_t t = 1000000000000 + (int64_t)(seconds * 1e9 + 0.5);
		int64_t from = 1000000000000 + 12345678 + (x - 20) * INT64_C(1000000);
		assert_true(from <= t && t < from + 1000000);
		ticks++;
	}
	assert_true(ticks >= 10);
	screen_release(&s);
}

/* In a window of several days a tick shows the date if it changed since the previous tick, otherwise the time of day. */
static void test_ruler_days(void **state)
{
	(void)state;
	struct screen s = { 0 };
	struct time_axis axis = { TIME_WALL, 0 };
	struct style plain = { -1, -1, 0 };
	char text[81];
	int64_t hour = INT64_C(3600000000000), noon = INT64_C(1795176000000000000);  /* 2026-11-20 12:00:00 */
	screen_resize(&s, 80, 1);
	ruler_draw(&s, 0, 10, 0, 60, &axis, noon, hour, &no_marks, plain);
	row_text(&s, text);
	assert_string_equal(text + 10, "|12:00      |11-21      |12:00      |11-22      |12:00");
	screen_resize(&s, 80, 1);
	screen_fill(&s, 0, 0, 80, ' ', plain);
	ruler_draw(&s, 0, 10, 0, 60, &axis, noon, 12 * hour, &no_marks, plain);
	row_text(&s, text);
	assert_null(strstr(text, "00:00"));
	assert_non_null(strstr(text, "|12-"));
	screen_release(&s);
}

/* Labels are complete or absent: marks move them, and they need space before the next tick or the end of the window.
 * Labels of fine times are longer and need more space. */
static void test_ruler_whole_labels(void **state)
{
	(void)state;
	struct time_axis axis = { TIME_WALL, 0 };
	struct style plain = { -1, -1, 0 };
	int64_t s_ns = INT64_C(1000000000), noon = INT64_C(1795176000000000000);     /* 2026-11-20 12:00:00 */
	static const struct {
		struct ruler_marks marks;
		const char *expected;
	} cases[] = {
		{ { 0 }, "|:00      |:10      |:20" },
		{ { 1, { 0 } }, "|:00      |:10      |:20" },
		{ { 1, { 3 } }, "|   :00   |:10      |:20" },
		{ { 2, { 3, 1 } }, "|   :00   |:10      |:20" },
		{ { 3, { 2, -1, 13 } }, "|  :00    |   :10   |:20" },
		{ { 2, { 23, 25 } }, "|:00      |:10      |" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct screen s = { 0 };
		char text[81];
		screen_resize(&s, 80, 1);
		ruler_draw(&s, 0, 10, 0, 28, &axis, noon, s_ns, &cases[i].marks, plain);
		row_text(&s, text);
		assert_string_equal(text + 10, cases[i].expected);
		screen_release(&s);
	}
	struct screen s = { 0 };
	char text[81];
	screen_resize(&s, 80, 1);
	ruler_draw(&s, 0, 10, 0, 60, &axis, noon + 123456780, 1, &no_marks, plain);
	row_text(&s, text);
	assert_non_null(strstr(text, "|.12345680 "));
	screen_release(&s);
}

/* ---- Keys ------------------------------------------------------------------------------------------------------ */

static void test_key_names_round_trip(void **state)
{
	(void)state;
	static const uint32_t keys[] = { 'j', 'G', '>', '<', '\\', KEY_CODE_UP, KEY_CODE_BACKTAB, KEY_CODE_ENTER,
		KEY_CODE_SPACE, 4, 18, KEY_CODE_F1, KEY_CODE_F1 + 11, KEY_CODE_ESC };
	for (size_t i = 0; i < COUNT(keys); i++) {
		char buf[32];
		const char *at = key_text(keys[i], buf, sizeof buf);
		assert_int_equal(key_parse(&at), keys[i]);
		assert_int_equal(*at, '\0');
	}
	const char *at = "<C-d>x<nope>";
	assert_int_equal(key_parse(&at), 4);
	assert_int_equal(key_parse(&at), 'x');
	assert_int_equal(key_parse(&at), '<');
}

/* No key has two actions; each action has a key, a help text and a unique name. */
static void test_key_table(void **state)
{
	(void)state;
	struct keymap m;
	keymap_init(&m);
	size_t keys = 0;
	for (int a = ACT_NONE + 1; a < ACT_COUNT; a++) {
		const char *at = action_info[a].keys;
		char text[128];
		assert_true(*at && action_info[a].help[0] && action_info[a].section[0]);
		assert_int_equal(action_of_name(action_info[a].name), a);
		while (*at) {
			uint32_t key = key_parse(&at);
			assert_int_not_equal(key, 0);
			assert_int_equal((a >= ACT_IN_PANE_GO ? keymap_find_in_pane : keymap_find)(&m, key), a);
			assert_int_not_equal(key, 'z' & 31);
			assert_int_not_equal(key, 's' & 31);
			assert_int_not_equal(key, 'q' & 31);
			assert_int_not_equal(key, '\\' & 31);
			at += *at == ' ';
			keys++;
		}
		assert_true(keymap_text(&m, (enum action)a, text, sizeof text)[0]);
	}
	assert_int_equal(keys, m.len);
	assert_int_equal(keymap_find(&m, 'Z'), ACT_NONE);
	keymap_release(&m);
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void test_config(void **state)
{
	(void)state;
	static const char path[] = "test_ui_config.yaml";
	struct config c;
	struct keymap m;
	struct error err = ERROR_INIT;
	keymap_init(&m);
	write_file(path, "theme: ssh\nmouse: true\nkeys:\n  zoom-in: 'i <F5>'\n");
	assert_int_equal(config_load(&c, &m, path, &err), 0);
	assert_string_equal(c.theme, "ssh");
	assert_true(c.mouse);
	assert_int_equal(keymap_find(&m, 'i'), ACT_ZOOM_IN);
	assert_int_equal(keymap_find(&m, KEY_CODE_F1 + 4), ACT_ZOOM_IN);
	assert_int_equal(keymap_find(&m, 'w'), ACT_NONE);
	config_release(&c);
	static const struct { const char *text, *why; } bad[] = {
		{ "keys: {zoom-in: <C-z>}", "reserved for the terminal" }, { "keys: {fly: x}", ":1:8: unknown action: 'fly'" },
		{ "keys: {zom-in: x}", "unknown action: 'zom-in', did you mean zoom-in?" },
		{ "keys: {zoom-in: [a]}", "expected keys" },
		{ "keys: [w]", ":1:7: expected a mapping" }, { "a: [", "not YAML" },
		{ "colour: 8", "'colour', did you mean color?" },
		{ "mouse: yes", "mouse: choose from true, false" }, { "time: utc", "time: choose from wall, relative, trace" },
		{ "glyphs: [ascii]", "glyphs: choose from ascii, cells, blocks" },
		{ "color: 17", "choose from auto, never, 8, 16, 256" },
		{ "- color", ":1:1: expected a mapping" }, { "glyphs", ":1:1: expected a mapping" },
	};
	for (size_t i = 0; i < COUNT(bad); i++) {
		write_file(path, bad[i].text);
		err = (struct error)ERROR_INIT;
		assert_int_equal(config_load(&c, &m, path, &err), -1);
		if (!strstr(err.text, path) || !strstr(err.text, bad[i].why))
			fail_msg("%s: %s, not %s", bad[i].text, err.text, bad[i].why);
		config_release(&c);
	}
	remove(path);
	keymap_release(&m);
}

/* ---- Themes -------------------------------------------------------------------------------------------------------- */

static void test_shipped_themes(void **state)
{
	(void)state;
	assert_string_equal(theme_shipped_name(0), "cvd-dark");
	for (unsigned i = 0; theme_shipped_name(i); i++) {
		struct theme t;
		struct error err = ERROR_INIT;
		if (theme_load(&t, theme_shipped_name(i), &err) < 0)
			fail_msg("%s", err.text);
		assert_string_equal(t.name, theme_shipped_name(i));
		assert_true(t.about[0]);
		for (int v = VIS_UNKNOWN; v < VIS_COUNT; v++) {
			assert_true(t.state[v].letter > ' ' && t.state[v].label[0]);
			for (int d = DEPTH_8; d < DEPTH_COUNT; d++)  /* a wait needs a background colour to fill cells */
				assert_true(t.state[v].severity < WAIT_SEVERITY || t.state[v].colour[d].bg >= 0);
			for (int u = VIS_UNKNOWN; u < v; u++) {
				bool same = u == VIS_PREEMPTED && v == VIS_VCPU_PREEMPTED;
				assert_true(same || t.state[u].letter != t.state[v].letter);
				assert_true(same || t.state[u].glyph != t.state[v].glyph);
				assert_true(same || t.state[u].severity != t.state[v].severity);
				for (int d = DEPTH_16; d < DEPTH_COUNT; d++) {  /* unknown is recognized by its letter */
					int bg = t.state[u].colour[d].bg;
					assert_true(same || u == VIS_UNKNOWN || bg < 0 || bg != t.state[v].colour[d].bg);
				}
			}
		}
	}
}

static void test_theme_severity_order(void **state)
{
	(void)state;
	static const enum vis order[] = { VIS_PREEMPTED, VIS_VIRT_PREEMPTED, VIS_HOST_BLOCKED, VIS_WAKING, VIS_VMM, VIS_RUNNING,
		VIS_BLOCKED, VIS_IDLE };
	struct theme t;
	struct error err = ERROR_INIT;
	assert_int_equal(theme_load(&t, NULL, &err), 0);
	for (size_t i = 1; i < COUNT(order); i++)
		assert_true(t.state[order[i - 1]].severity > t.state[order[i]].severity);
	struct palette p;
	assert_true(t.state[VIS_WAKING].severity >= WAIT_SEVERITY && t.state[VIS_VMM].severity < WAIT_SEVERITY);
	theme_palette(&t, DEPTH_256, &p);
	static const int16_t dark[] = { 28, -1, 227, 214, 57, -1 };
	static const enum vis which[] = { VIS_RUNNING, VIS_BLOCKED, VIS_PREEMPTED, VIS_VIRT_PREEMPTED, VIS_VMM, VIS_IDLE };
	for (size_t i = 0; i < COUNT(dark); i++)
		assert_int_equal(p.state[which[i]].bg, dark[i]);
	theme_palette(&t, DEPTH_MONO, &p);
	for (int v = 0; v < VIS_COUNT; v++)
		assert_true(p.state[v].fg == -1 && p.state[v].bg == -1);
}

static void test_theme_refusals(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"states: {running: {256: [1]}}", "states: {running: {256: [1, 256]}}", "states: {running: {8: [1, 8]}}",
		"states: {flying: {}}", "states: {running: {letter: ab}}", "states: {running: {letter: \"\\x01\"}}",
		"states: {running: {severity: 16}}", "parts: {normal: {attr: blink}}", "owners: {256: []}",
		"owners: {256: [1,2,3,4,5,6,7,8,9,10,11,12,13]}", "base: nothing", "[]", "", "states: []", "{",
		"states: {running: {glyph: \"\\u4e2d\"}}", "states: {running: {glyph: \"\"}}",
	};
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct theme t;
		struct error err = ERROR_INIT;
		assert_int_equal(theme_load(&t, NULL, &err), 0);
		if (theme_parse(&t, bad[i], "x.yaml", &err) == 0)
			fail_msg("accepted: %s", bad[i]);
		assert_non_null(strstr(err.text, "x.yaml"));
	}
	struct theme t;
	struct error err = ERROR_INIT;
	assert_int_equal(theme_load(&t, "/nowhere/at/all.yaml", &err), -1);
}

/* ---- Prompt, screen ---------------------------------------------------------------------------------------------- */

static void type(struct prompt *p, const char *keys)
{
	while (*keys)
		prompt_key(p, key_parse(&keys));
}

static void test_prompt(void **state)
{
	(void)state;
	static struct prompt p;
	memset(&p, 0, sizeof p);
	prompt_open(&p, PROMPT_COMMAND, "");
	type(&p, "ab\xc3\xa9" "d<Left><BS>");
	assert_string_equal(p.text, "abd");
	type(&p, "\xe4\xb8\xad<Home>x<End>y");
	assert_string_equal(p.text, "xab\xe4\xb8\xad" "dy");
	type(&p, "<C-w>");
	assert_string_equal(p.text, "");
	type(&p, "one");
	assert_int_equal(prompt_key(&p, KEY_CODE_ENTER), PROMPT_DONE);
	prompt_open(&p, PROMPT_COMMAND, "");
	type(&p, "two");
	assert_int_equal(prompt_key(&p, KEY_CODE_ENTER), PROMPT_DONE);
	prompt_open(&p, PROMPT_COMMAND, "");
	type(&p, "<Up>");
	assert_string_equal(p.text, "two");
	type(&p, "<Up><Up>");
	assert_string_equal(p.text, "one");
	type(&p, "<Down><Down>");
	assert_string_equal(p.text, "");
	assert_int_equal(prompt_key(&p, KEY_CODE_BACKSPACE), PROMPT_CANCELLED);
	for (int i = 0; i < 2 * PROMPT_MAX_BYTES; i++)
		prompt_key(&p, 0x1f427);
	assert_true(strlen(p.text) < PROMPT_MAX_BYTES);
	prompt_release(&p);
}

int main(void)
{
	setlocale(LC_ALL, "C.UTF-8");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_view_invariants),
		cmocka_unit_test(test_view_pan_is_whole_columns),
		cmocka_unit_test(test_view_zoom_keeps_cursor),
		cmocka_unit_test(test_view_refit),
		cmocka_unit_test(test_undo),
		cmocka_unit_test(test_ruler_tick),
		cmocka_unit_test(test_ruler_labels),
		cmocka_unit_test(test_ruler_days),
		cmocka_unit_test(test_ruler_whole_labels),
		cmocka_unit_test(test_key_names_round_trip),
		cmocka_unit_test(test_key_table),
		cmocka_unit_test(test_config),
		cmocka_unit_test(test_shipped_themes),
		cmocka_unit_test(test_theme_severity_order),
		cmocka_unit_test(test_theme_refusals),
		cmocka_unit_test(test_prompt),
	};
	return cmocka_run_group_tests_name("ui", tests, NULL, NULL);
}
