/* Tests of ui/: replacing the history shown (:offset), with stubs for the callbacks of cli/. */
#include "test.h"

#include <locale.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/mem.h"
#include "ui/core/follow_cause.h"
#include "ui/core/clock_offset.h"
#include "ui/panes/pane.h"
#include "ui/core/viewer.h"
#include "ui_world.h"

static char world[64] = "/tmp/stealscope-offset-XXXXXX";
static char other[64] = "/tmp/stealscope-offset-XXXXXX";  /* history with more threads of the same machines, so that
                                                           * indices differ */

/* Behaviour of the stub, and the arguments of its last call. */
struct stage {
	bool fails, waits, goes_back;
	struct history *first;
	char guest[64];
	int64_t ns;
	const struct history *shown;
	struct ui_clocks clocks;
	atomic_char first_letter;  /* first letter of guest[]; 0 until guest[] is complete */
};

static struct history *make_offset_by_hand(void *arg, const struct history *shown, const char *guest, int64_t ns,
                                   struct progress progress, char *said, size_t size, struct error *err)
{
	struct stage *stage = arg;
	snprintf(stage->guest, sizeof stage->guest, "%s", guest);
	stage->ns = ns;
	stage->shown = shown;
	atomic_store(&stage->first_letter, guest[0]);
	snprintf(said, size, "it is done");
	while (progress.tick(progress.arg, "waiting", 1, 4) == 0 && stage->waits)
		usleep(1000);
	if (stage->fails)
		error_set(err, STATUS_INPUT, "find them", "the traces are gone");
	return stage->fails ? NULL : stage->goes_back ? stage->first : history_open(other, err);
}

static void list_manual_offsets(void *arg, const struct history *shown, char *buf, size_t size)
{
	const struct stage *stage = arg;
	snprintf(buf, size, "%s", shown == stage->first ? "" : "Debian +3 us");
}

static void begin(struct app *app, struct stage *stage, const char *file)
{
	struct ui_options options = { .width = 120, .height = 110, .color = "never", .glyphs = "ascii", .config = "/dev/null",
		.clocks = &stage->clocks };
	struct error err = ERROR_INIT;
	stage->clocks = (struct ui_clocks){ .arg = stage, .manual_offset = make_offset_by_hand, .list = list_manual_offsets };
	stage->first = history_open(file, &err);
	assert_non_null(stage->first);
	assert_int_equal(viewer_init(app, stage->first, &options, &err), 0);
	bool changed;
	while (viewer_work(app, 1000000000, &changed))
		;
}

static void end(struct app *app, struct stage *stage)
{
	viewer_release(app);
	history_close(stage->first);
}

/* Runs background work and draws, until no question or job is pending. */
static char *settle(struct app *app)
{
	struct screen s = { 0 };
	char *text = NULL;
	size_t size;
	bool changed;
	screen_resize(&s, app->w, app->h_cells);
	bool more = true;
	while (more || async_is_busy(app->queries) || (manual_offset_busy(app) && app_rows_have_keys(app))) {
		usleep(1000);
		more = viewer_work(app, 1000000, &changed);
		viewer_draw(app, &s);
		bool found;
		more |= viewer_work(app, 1000000, &found) || found;  /* names that the frame lacked */
	}
	FILE *f = open_memstream(&text, &size);
	screen_dump(&s, f);
	fclose(f);
	screen_release(&s);
	return text;
}

/* Presses keys, then does the same. */
static char *press(struct app *app, const char *keys)
{
	while (*keys) {
		free(settle(app));
		viewer_key(app, key_parse(&keys));
	}
	return settle(app);
}

/* Cuts the first and last line of a screen, which show the offset. */
static char *middle(char *screen)
{
	char *from = strchr(screen, '\n') + 1, *last;
	screen[strlen(screen) - 1] = '\0';
	last = strrchr(from, '\n');
	*last = '\0';
	return from;
}

/* Selections made in one history are mapped to the other, as if they had been made there. */
static void test_the_place_is_kept(void **state)
{
	(void)state;
	static const char *const ways[] = {
		":Debian/3525<Enter>>", ":web/4000<Enter>pkp", ":Debian/CPU1<Enter>ww<Space>", ":Debian/3525<Enter>><Enter>",
		":Ubuntu<Enter>B", ":host/2101<Enter>(9l)", ":web/4000<Enter>wwwlll", ":Debian<Enter><Space>G<Space>",
		":set hostthread<Enter>:Debian/CPU0<Enter>j", ":Debian/3525<Enter>>[", "\\e<Enter>G", "HG",
	};
	for (size_t i = 0; i < COUNT(ways); i++) {
		struct stage one = { 0 }, two = { 0 };
		struct app a, b;
		begin(&a, &one, world);
		begin(&b, &two, other);
		free(press(&a, ways[i]));
		char *moved = press(&a, ":offset Debian +3us<Enter>"), *direct = press(&b, ways[i]);
		assert_non_null(strstr(moved, "it is done (:offset save keeps it, :offset Debian 0 reverts it)"));
		assert_string_equal(one.guest, "Debian");
		assert_true(one.ns == 3000 && one.shown == one.first && a.h != one.first);
		char *x = middle(moved), *y = middle(direct);
		if (strcmp(x, y) != 0)
			fail_msg("after %s it shows\n%s\ninstead of\n%s", ways[i], x, y);
		free(moved);
		free(direct);
		end(&a, &one);
		end(&b, &two);
	}
}

/* Bookmarks, undo, and the row before following a cause are mapped. */
static void test_places_to_go_are_kept(void **state)
{
	(void)state;
	static const struct { const char *before, *after; } ways[] = {
		{ ":web/4000<Enter>wwm:Debian<Enter>0", "'<Enter>" }, { ":web/4000<Enter>ww:Debian<Enter>0", "uu" },
		{ ":Debian/3525<Enter>>[", "]" }, { "/node<Enter>:Debian<Enter>", "n" },
	};
	for (size_t i = 0; i < COUNT(ways); i++) {
		struct stage one = { 0 }, two = { 0 };
		struct app a, b;
		begin(&a, &one, world);
		begin(&b, &two, other);
		free(press(&a, ways[i].before));
		free(press(&a, ":offset Debian +3us<Enter>"));
		char *moved = press(&a, ways[i].after);
		free(press(&b, ways[i].before));
		char *direct = press(&b, ways[i].after);
		char *x = middle(moved), *y = middle(direct);
		if (strcmp(x, y) != 0)
			fail_msg("after %s, %s it shows\n%s\ninstead of\n%s", ways[i].before, ways[i].after, x, y);
		free(moved);
		free(direct);
		end(&a, &one);
		end(&b, &two);
	}
}

/* The selected row stays on its screen line, even if there are more rows above it; rows recorded for follow_back() are
 * mapped. */
static void test_scroll_is_kept(void **state)
{
	(void)state;
	struct stage stage = { 0 };
	struct app app;
	char key[ROW_KEY];
	begin(&app, &stage, world);
	viewer_resize(&app, 120, 14);
	free(press(&app, ":web/4000<Enter>"));
	follow_push(&app, app.view.row);
	free(press(&app, "jjj"));
	size_t line = rows_find(&app.rows, app.view.row) - app.top, rows = app.rows.len;
	assert_true(app.top > 0 && line > 6);
	free(press(&app, ":offset Debian +3us<Enter>"));
	assert_true(app.rows.len >= rows + 50);
	assert_int_equal(rows_find(&app.rows, app.view.row) - app.top, line);
	free(press(&app, "]"));
	assert_string_equal(row_key(&app.rows, app.view.row, key), "thread web/4000");
	end(&app, &stage);
}

/* Rows do not move while a pane waits for the answer about the new history. */
static void test_panes_keep_their_room(void **state)
{
	(void)state;
	static const char *const opens[] = { "<Enter>", "B", "P", "C", "E", "x" };
	for (size_t i = 0; i < COUNT(opens); i++) {
		struct stage stage = { 0 };
		struct app app;
		bool changed;
		begin(&app, &stage, world);
		free(press(&app, opens[i]));
		const int height = pane_height(&app, 100);
		assert_true(app.pane_below->valid && height > 1);
		manual_offset_start(&app, "Debian", 3000);
		while (app.h == stage.first)
			viewer_work(&app, 1000, &changed);
		assert_false(app.pane_below->valid);
		assert_int_equal(pane_height(&app, 100), height);
		end(&app, &stage);
	}
}

static void test_keys_and_rows(void **state)
{
	(void)state;
	struct stage stage = { 0 };
	struct app app;
	begin(&app, &stage, world);
	const uint32_t count[ROW_KINDS] = { [ROW_MACHINE] = app.catalog.machines, [ROW_GROUP] = app.catalog.machines,
		[ROW_REQUESTS] = app.catalog.machines, [ROW_CPU] = app.catalog.cpus, [ROW_EXECUTOR] = app.catalog.cpus,
		[ROW_THREAD] = app.catalog.threads, [ROW_REQUEST] = (uint32_t)app.rows.requests,
		[ROW_SLEEPERS] = app.catalog.cpus + app.catalog.machines };
	for (unsigned kind = 0; kind < ROW_KINDS; kind++) {
		assert_true(count[kind] > 0 || kind == ROW_PROVIDER);  /* no vCPU has a steal clock */
		for (uint32_t i = 0; i < count[kind]; i++) {
			struct row_id id = { (uint8_t)kind, i }, found;
			char key[ROW_KEY];
			if (kind == ROW_EXECUTOR && app.catalog.cpu[i].host < 0)
				continue;
			assert_true(row_of_key(&app.rows, row_key(&app.rows, id, key), &found));
			assert_true(row_same(id, found));
		}
	}
	static const char *const wrong[] = { "", "thread", "thread ", "thread Debian", "thread Debian/", "thread Debian/x",
		"thread Debian/-1", "thread Debian/99999999999", "thread Debia/3525", "cpu Debian/7", "row Debian", "machine ",
		"machine Debian/1", "thread Debian/3525 ", "request Debian/none", "executor host/0", "provider Debian/0" };
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct row_id found;
		if (row_of_key(&app.rows, wrong[i], &found))
			fail_msg("\"%s\" names a row", wrong[i]);
	}
	end(&app, &stage);
}

static void test_failure_changes_nothing(void **state)
{
	(void)state;
	struct stage stage = { .fails = true };
	struct app app;
	begin(&app, &stage, world);
	char *before = press(&app, ":Debian/3525<Enter>><Enter>"), *after = press(&app, ":offset Debian -1ms<Enter>");
	assert_non_null(strstr(after, "the traces are gone (find them)"));
	assert_true(app.h == stage.first && app.message_is_error && stage.ns == -1000000);
	assert_string_equal(middle(before), middle(after));
	free(before);
	free(after);
	end(&app, &stage);
}

/* The history is built in the background. Esc cancels the build, and so does the end of the program. */
static void test_cancel(void **state)
{
	(void)state;
	struct stage stage = { .waits = true };
	struct app app;
	char text[200];
	bool changed;
	begin(&app, &stage, world);
	free(press(&app, ":Debian/3525<Enter>"));
	for (const char *keys = ":offset Debian +3us<Enter>", *at = keys; *at;)
		viewer_key(&app, key_parse(&at));
	do
		usleep(1000);
	while (!manual_offset_text(&app, text, sizeof text) || strstr(text, "waiting") == NULL);
	assert_string_equal(text, "shifting the clock of Debian by +3 us: waiting 25 % (Esc cancels)");
	viewer_key(&app, 'j');
	viewer_key(&app, 'F');
	viewer_key(&app, 'F');
	assert_true(manual_offset_text(&app, text, sizeof text) && app.message[0] == '\0');
	manual_offset_start(&app, "Ubuntu", 1);
	assert_string_equal(stage.guest, "Debian");
	assert_non_null(strstr(app.message, "another clock is being shifted"));
	viewer_key(&app, KEY_CODE_ESC);
	assert_string_equal(app.message, "cancelled");
	assert_false(manual_offset_text(&app, text, sizeof text));
	while (manual_offset_busy(&app)) {
		viewer_work(&app, 1000, &changed);
		usleep(1000);
	}
	assert_true(app.h == stage.first);
	assert_string_equal(app.message, "cancelled");
	/* A new request during the cancellation is accepted, and can be cancelled as well. */
	for (int second = 0; second < 2; second++) {
		manual_offset_start(&app, "Debian", 3000);
		assert_true(manual_offset_cancel(&app));
		manual_offset_start(&app, "Ubuntu", 5);
		assert_true(manual_offset_text(&app, text, sizeof text));
		assert_string_equal(text, "shifting the clock of Ubuntu by +5 ns: cancelling the previous one (Esc cancels)");
		if (second)
			assert_true(manual_offset_cancel(&app));
		while (manual_offset_busy(&app) && (second || atomic_load(&stage.first_letter) != 'U')) {
			viewer_work(&app, 1000, &changed);
			usleep(1000);
		}
		assert_string_equal(stage.guest, second ? "Debian" : "Ubuntu");
		assert_true(manual_offset_cancel(&app) == !second);
		while (manual_offset_busy(&app)) {
			viewer_work(&app, 1000, &changed);
			usleep(1000);
		}
	}
	manual_offset_start(&app, "Debian", 3000);
	end(&app, &stage);
}

/* The switch waits until the user has closed lists, which refer to the old history. */
static void test_lists_are_waited_for(void **state)
{
	(void)state;
	struct stage stage = { 0 };
	struct app app;
	begin(&app, &stage, world);
	free(press(&app, ":Debian/3525<Enter>"));
	manual_offset_start(&app, "Debian", 3000);
	for (const char *keys = "L"; *keys;)
		viewer_key(&app, key_parse(&keys));
	for (int i = 0; i < 50; i++)
		free(settle(&app));
	assert_true(app.h == stage.first && manual_offset_busy(&app));
	viewer_key(&app, 'q');
	free(settle(&app));
	assert_true(app.h != stage.first && !manual_offset_busy(&app));
	end(&app, &stage);
}

/* Offset 0 returns to the first history, which is neither rebuilt nor closed. */
static void test_back(void **state)
{
	(void)state;
	struct stage stage = { 0 };
	struct app app;
	begin(&app, &stage, world);
	char *before = press(&app, ":Debian/3525<Enter>>");
	free(press(&app, ":offset Debian +3us<Enter>"));
	assert_string_equal(manual_offset_list(&app), "Debian +3 us");
	stage.goes_back = true;
	for (int i = 0; i < 2; i++) {
		char *after = press(&app, ":offset Debian 0<Enter>");
		assert_true(app.h == stage.first && !manual_offset_list(&app)[0]);
		assert_non_null(strstr(after, " it is done\n"));
		if (i == 1)
			assert_string_equal(middle(after), middle(before));
		free(after);
	}
	free(before);
	end(&app, &stage);
}

int main(void)
{
	setlocale(LC_ALL, "C.UTF-8");
	close(mkstemp(world));
	close(mkstemp(other));
	ui_world_write(world, 0);
	ui_world_write(other, 50);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_place_is_kept),
		cmocka_unit_test(test_places_to_go_are_kept),
		cmocka_unit_test(test_scroll_is_kept),
		cmocka_unit_test(test_panes_keep_their_room),
		cmocka_unit_test(test_keys_and_rows),
		cmocka_unit_test(test_failure_changes_nothing),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_lists_are_waited_for),
		cmocka_unit_test(test_back),
	};
	int failed = cmocka_run_group_tests_name("ui clock offset", tests, NULL, NULL);
	unlink(world);
	unlink(other);
	return failed;
}
