/* Tests of ui/: lists and arrows over the rows: wrapping for the width of the screen, scrolling, picking lines. */
#include "test.h"

#include <locale.h>

#include "ui/panes/pane.h"
#include "ui/widgets/arrows.h"
#include "ui_keys.h"

static void resize(int w, int h)
{
	viewer_resize(&app, w, h);
	screen_resize(&screen, w, h);
	viewer_draw(&app, &screen);
}

/* Keys that close something never end the viewer. If opening something failed, the first q does not quit. */
static void test_closing_ends_nothing(void **state)
{
	(void)state;
	static const char *const opened[] = { "0V", "R", "'", ":diff none<Enter>", "F", "B", "P", "b", "E", "C", "e", "x", "?",
		"?/q<Enter>", "L", ":q", "/q", "\\q", "X", "B<Tab>", "B<Tab>/q<Enter>", "C<Tab>o", "(20l)V", "(20l)V<Tab>" };
	static const char *const pressed[] = { "q", "<Esc>", "<C-c>", "<C-l>" };
	for (size_t i = 0; i < COUNT(opened); i++) {
		for (size_t k = 0; k < COUNT(pressed); k++) {
			free(press(":goto Debian/3525<Enter>"));
			free(press(opened[i]));
			resize(k % 2 ? 120 : 80, k % 2 ? 40 : 24);
			free(press(pressed[k]));
			if (app.quit)
				fail_msg("%s%s ends the viewer", opened[i], pressed[k]);
			free(press("<Esc><Esc><Esc><Esc>"));
			assert_true(!app.prompting && !app.list_over && !pane_is_below(&app) && !app.quit);
		}
	}
	free(press("OV"));
	assert_non_null(app.pane_below);
	assert_shows("q", "no pane was opened; q again quits");
	free(press("q"));
	assert_true(app.quit);
}

/* Q quits from everywhere. Esc in the overview does not quit. */
static void test_quitting(void **state)
{
	(void)state;
	static const char *const places[] = { "", "B", "B<Tab>", "<Esc>", "<Esc>B" };
	for (size_t i = 0; i < COUNT(places); i++) {
		free(press(places[i]));
		free(press("<Esc><Esc><Esc>"));
		assert_true(app.pane_below && app.pane_below->ops->replaces_rows && !app.quit);
		assert_shows("<Esc>", " q quits");
		free(press(places[i]));
		free(press(i % 2 ? "Q" : "<F10>"));
		assert_true(app.quit);
		app.quit = false;
	}
}

/* After the width changed, a list looks as if it had been opened at that width. */
static void test_other_widths(void **state)
{
	(void)state;
	static const char *const opens[] = { ">?", "L", "mjm'", ">?/zoom<Enter>" };
	static const int widths[] = { 200, 40, 59, 80, 40, 120 };
	for (size_t i = 0; i < COUNT(opens); i++) {
		resize(120, 40);
		free(press(opens[i]));
		for (size_t k = 0; k < COUNT(widths); k++) {
			resize(widths[k], 400);
			char *there = press(""), *reopened;
			list_open(&app, app.list_over);
			if (strchr(opens[i], '/'))
				list_search(&app, "zoom");
			viewer_draw(&app, &screen);
			reopened = press("");
			assert_string_equal(there, reopened);
			free(there);
			free(reopened);
		}
		free(press("qq"));
	}
}

/* The top line and the selected line stay when the width changes. */
static void test_scroll_is_kept(void **state)
{
	(void)state;
	resize(120, 20);
	free(press("?23j"));
	resize(40, 20);
	assert_shows("", "closes --\n   A                pan a whole window\n                    to the left\n");
	resize(120, 20);
	assert_shows("", "closes --\n   A                pan a whole window to the left\n");
	assert_shows("99999k", "closes --\n Rows\n");
	free(press("qRj"));
	resize(40, 20);
	assert_int_equal(app.pane_below->at, 1);
	free(press("q"));
}

/* The legend shows the colours of the selected theme. */
static void test_legend_follows(void **state)
{
	(void)state;
	appearance_set_depth(&app, DEPTH_256);
	free(press("LG"));
	assert_string_equal(app.appearance.theme.name, "ssh");
	assert_shows("gG", "Themes (now: ssh)");
	const struct pager *p = &((struct list *)app.list_over)->pager;
	struct glyph was[32];
	size_t n = 0;
	for (size_t i = 0; i < p->len && n < COUNT(was); i++)
		if (p->line[i].sample.ch)
			was[n++] = p->line[i].sample;
	assert_true(n > 8);
	list_open(&app, app.list_over);
	for (size_t i = 0, k = 0; i < p->len && k < n; i++)
		if (p->line[i].sample.ch) {
			const struct glyph *is = &p->line[i].sample;  /* memcmp() would compare padding */
			assert_int_equal(is->ch, was[k].ch);
			assert_memory_equal(&is->style, &was[k].style, sizeof is->style);
			assert_memory_equal(is->combining, was[k++].combining, sizeof is->combining);
		}
}

/* A bookmark restores its window from any pane and on a screen of any size. */
static void test_bookmark_restores_window(void **state)
{
	(void)state;
	static const char *const from[] = { "O", "F", "B", "" };
	free(press(">wwm"));
	const int64_t t0 = app.view.t0, last = view_last(&app.view, &app.bounds), cursor = app.view.cursor;
	for (int narrow = 0; narrow < 2; narrow++) {
		resize(narrow ? 60 : 120, 40);
		for (size_t i = 0; i < COUNT(from); i++) {
			free(press("0"));
			free(press(from[i]));
			free(press("'<Enter>"));
			assert_int_equal(app.view.t0, t0);
			assert_in_range(view_last(&app.view, &app.bounds), last, last + app.bounds.cols);
			assert_int_equal(app.view.cursor, cursor);
			free(press("u"));
			assert_int_equal(app.view.t0, app.bounds.begin);
			assert_int_equal(view_last(&app.view, &app.bounds), app.bounds.end);
			free(press(app.pane_below ? "q" : ""));
		}
	}
	resize(120, 40);
	free(press("'<Enter>"));
	assert_int_equal(app.view.t0, t0);
	assert_int_equal(view_last(&app.view, &app.bounds), last);
}

/* Only the heaviest arrows are drawn, and only between different lines, so that rows stay visible. */
static void test_arrows_apart(void **state)
{
	(void)state;
	enum { COLUMNS = 60, AT = 30 };
	struct arrow all[2 * COLUMNS], *arrow = all;
	free(press(":Debian/880<Enter>:zoom 80ms<Enter>"));
	const struct row_id from = app.view.row;
	free(press("j"));
	const struct row_id to = app.view.row;
	assert_true(!row_same(from, to) && app.bounds.cols > COLUMNS);
	for (int i = 0; i < COLUMNS; i++) {
		*arrow++ = (struct arrow){ from, to, app.view.t0 + i * app.view.step, i == AT ? 1000 : i };
		*arrow++ = (struct arrow){ from, from, app.view.t0 + i * app.view.step, 2000 };
	}
	const struct arrows arrows = { .arrow = all, .arrows = 2 * COLUMNS };
	screen_clear(&screen, (struct style){ -1, -1, 0 });
	arrows_draw(&arrows, &app, &screen);
	int drawn = 0, heaviest = 0;
	for (int x = 0; x < screen.w; x++) {
		bool crossed = false;
		for (int y = 0; y < screen.h; y++)
			crossed = crossed || screen_at(&screen, x, y)->ch == 'v' || screen_at(&screen, x, y)->ch == 0x25bc;
		drawn += crossed;
		heaviest += crossed && (x == app.label_w + 1 + AT || x == app.label_w + COLUMNS);
	}
	assert_true(heaviest == 2 && drawn > 5 && drawn <= app.bounds.cols / 6 + 1);
}

int main(void)
{
	setlocale(LC_ALL, "C.UTF-8");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_closing_ends_nothing, begin, end),
		cmocka_unit_test_setup_teardown(test_quitting, begin, end),
		cmocka_unit_test_setup_teardown(test_other_widths, begin, end),
		cmocka_unit_test_setup_teardown(test_scroll_is_kept, begin, end),
		cmocka_unit_test_setup_teardown(test_legend_follows, begin, end),
		cmocka_unit_test_setup_teardown(test_bookmark_restores_window, begin, end),
		cmocka_unit_test_setup_teardown(test_arrows_apart, begin, end),
	};
	return cmocka_run_group_tests_name("ui lists", tests, write_world, remove_world);
}
