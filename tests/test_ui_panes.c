/* Tests of ui/: panes: cursor and keys, height, and the lines and columns that panes leave to the rows. */
#include "test.h"

#include <locale.h>

#include "ui/panes/pane.h"
#include "ui/terminal/term.h"
#include "ui_keys.h"

static void test_focus_and_cursor(void **state)
{
	(void)state;
	static const char *const opens[] = { ":Debian/3525<Enter>F", "B" };
	for (size_t i = 0; i < COUNT(opens); i++) {
		free(press(opens[i]));
		struct row_id row = app.view.row;
		assert_true(app.pane_below && !app.focused);
		free(press("<Tab>jj"));
		assert_true(app.focused && app.pane_below->at == 2 && row_same(app.view.row, row));
		free(press("k99j"));
		assert_int_equal(app.pane_below->at, app.pane_below->lines - 1);
		free(press("g"));
		assert_int_equal(app.pane_below->at, 0);
		free(press("G"));
		assert_int_equal(app.pane_below->at, app.pane_below->lines - 1);
		free(press("<Tab>k"));
		assert_true(!app.focused && !row_same(app.view.row, row));
		free(press("q"));
		assert_true(!app.pane_below && !app.quit);
	}
	assert_shows("q", "- most delayed in");
	assert_false(app.quit);
	free(press("q"));
	assert_true(app.quit);
}

/* Esc first clears a range, then closes the pane as q does. */
static void test_closing(void **state)
{
	(void)state;
	free(press("B<Tab><Esc>"));
	assert_true(!app.pane_below && !app.focused);
	free(press("B<Esc>"));
	assert_null(app.pane_below);
	free(press("Bv<Esc>"));
	assert_true(app.pane_below && app.view.range == VIEW_NONE);
	free(press("<Esc>"));
	assert_null(app.pane_below);
	assert_shows("<Tab>", "- lengths of");  /* without an open pane, Tab changes the sums below the rows */
	assert_shows("<Tab><Tab><Tab>", "- wakers of");
	assert_shows(":set below=no<Enter><Tab>", "flow of Debian/3525");  /* without these, it opens the flow of the row */
	assert_true(app.focused);
}

/* A filter without matches shows a message. */
static void test_empty_filter(void **state)
{
	(void)state;
	static const char *const opens[] = { "O/none such<Enter>", ":Debian/3525<Enter>P/none such<Enter>",
		":Debian/880<Enter>C/none such<Enter>" };
	for (size_t i = 0; i < COUNT(opens); i++) {
		assert_shows(opens[i], "\n no line contains \"none such\"");
		free(press("<Esc><Esc>"));
	}
}

static void test_height(void **state)
{
	(void)state;
	free(press("B<Tab>"));
	int was = pane_height(&app, 35), z = (int)app.view.step;
	free(press("++"));
	assert_int_equal(pane_height(&app, 35), was + 2);
	free(press("---"));
	assert_int_equal(pane_height(&app, 35), was - 1);
	assert_int_equal(app.view.step, z);  /* + and - zoom outside a pane */
	for (int i = 0; i < 100; i++)
		free(press("-"));
	assert_int_equal(pane_height(&app, 35), 1);
	for (int i = 0; i < 200; i++)
		free(press("+"));
	assert_in_range(pane_height(&app, 35), 30, 34);
}

/* Keys that move through time keep the focus in the pane; keys for gaps return the focus to the rows. */
static void test_time_keys_in_a_pane(void **state)
{
	(void)state;
	free(press("B<Tab>"));
	int64_t step = app.view.step;
	free(press("w"));
	assert_true(app.focused && app.view.step < step);
	free(press(">"));
	assert_false(app.focused);
}

/* A pane that takes columns from the time area shows the same window; closing the pane restores the window exactly. */
static void test_window_stays(void **state)
{
	(void)state;
	free(press(">}l(9l)"));
	const struct view was = app.view;
	const int cols = app.bounds.cols;
	const int64_t last = view_last(&app.view, &app.bounds);
	static const char *const open[] = { "F", "O", "P" }, *const close[] = { "F", "<BS>", "q" };
	for (size_t i = 0; i < COUNT(open); i++) {
		free(press(open[i]));
		assert_int_equal(app.view.t0, was.t0);
		assert_in_range(view_last(&app.view, &app.bounds), last, last + app.bounds.cols);
		free(press(close[i]));
		assert_int_equal(app.bounds.cols, cols);
		assert_int_equal(app.view.t0, was.t0);
		assert_int_equal(app.view.step, was.step);
		assert_int_equal(app.view.cursor, was.cursor);
	}
	/* Opening a pane is not a change of the view: undo reverts the change before it. Choosing a window while a pane is
	 * open is a change. */
	free(press("u"));
	assert_int_equal(app.view.b, VIEW_NONE);
	assert_int_equal(app.view.t0, was.t0);
	free(press("Fd"));
	const int64_t t0 = app.view.t0, to = view_last(&app.view, &app.bounds);
	assert_true(t0 > was.t0);
	free(press("F"));
	assert_int_equal(app.view.t0, t0);
	assert_in_range(view_last(&app.view, &app.bounds), to, to + cols);
	free(press("u"));
	assert_int_equal(app.view.t0, was.t0);
}

/* Undo restores a window that was chosen with another number of columns. */
static void test_undo_among_other_columns(void **state)
{
	(void)state;
	free(press("O"));
	const int cols = app.bounds.cols;
	const int64_t begin_of_all = app.bounds.begin, end_of_all = app.bounds.end;
	assert_int_equal(app.view.t0, begin_of_all);
	assert_int_equal(view_last(&app.view, &app.bounds), end_of_all);
	free(press("<Enter>"));
	assert_true(app.bounds.cols != cols);
	assert_true(view_last(&app.view, &app.bounds) < end_of_all);
	const struct view gap = app.view;
	free(press("u"));
	assert_int_equal(app.view.t0, begin_of_all);
	assert_int_equal(view_last(&app.view, &app.bounds), end_of_all);
	assert_true(app.view.step * (app.bounds.cols - 1) <= end_of_all - begin_of_all);
	free(press("<C-r>"));
	assert_int_equal(app.view.t0, gap.t0);
	assert_int_equal(app.view.step, gap.step);
	free(press("F"));
	const int64_t last = view_last(&app.view, &app.bounds);
	free(press("wFu"));
	assert_int_equal(app.view.t0, gap.t0);
	assert_in_range(view_last(&app.view, &app.bounds), last, last + gap.step);
}

/* With both markers set, panes answer about A..B; their titles show this until a marker moves. */
static void test_between_markers(void **state)
{
	static const char *const keys[] = { "P", "b", "E", "C" };
	(void)state;
	free(press(":Debian/CPU0<Enter>^(9l)"));
	for (size_t i = 0; i < COUNT(keys); i++) {
		assert_shows(keys[i], " of Debian/vCPU0 in A..B, 8.67 ms");
		free(press("q"));
	}
	assert_shows("P<Tab>^l)", " of Debian/vCPU0 in 8.67 ms");
	/* Panes that follow the window follow the markers; two markers at the same time count as none. */
	free(press("q^9l)"));
	assert_shows("B", " CPU time taken in A..B, 8.67 ms ");
	assert_int_equal(app.pane_below->from, app.view.a);
	assert_int_equal(app.pane_below->to, app.view.b);
	assert_shows("(", " CPU time taken in 80.0 ms ");
	assert_shows(":Debian/3525<Enter>F", " flow of Debian/3525 critical_task from ");
}

static void test_line_to_clipboard(void **state)
{
	(void)state;
	free(press("B<Tab>y"));
	assert_non_null(app.clipboard);
	assert_non_null(strstr(app.clipboard, "host/2101 burnP6"));
	assert_shows("e", "write to (.txt .csv .json): steal-window");
	free(press("<Esc>"));
	assert_true(app.focused);
}

/* The overview replaces the rows. Enter on a line shows its longest gap; Backspace restores the overview. */
static void test_overview(void **state)
{
	(void)state;
	struct gap_list gaps, of_vm;
	struct target victim = { TARGET_THREAD, app.view.row.index };
	const struct gap_options options = { .from = INT64_MIN, .to = INT64_MAX, .top = 1 };
	assert_int_equal(query_answer(gap_list_open(&app.catalog, &victim, &options), &gaps, NULL), 0);
	assert_shows("O", "- most delayed in 80.0 ms, by time lost: 4 machines, 5 threads");
	assert_true(app.focused && pane_height(&app, 35) == 35 && app.view.row.kind == ROW_MACHINE);  /* the verdict's target */
	victim = (struct target){ TARGET_MACHINE, app.view.row.index };
	assert_int_equal(query_answer(gap_list_open(&app.catalog, &victim, &options), &of_vm, NULL), 0);
	assert_int_equal(app.view.cursor, of_vm.item[0].gap.start);  /* the user has not moved the cursor */
	gap_list_release(&of_vm);
	assert_shows("", "Debian lost 26.8 ms of 89.0 ms runnable time, 97 %");
	assert_shows("", "by host/2101 burnP6; longest wait 5.21 ms");

	free(press("gj"));
	assert_true(app.pane_below->at == 1 && app.view.row.kind == ROW_MACHINE);
	free(press("<Tab>"));
	assert_true(app.pane_below->at == 4 && app.view.row.kind == ROW_THREAD);
	struct view before = app.view;
	assert_shows("<Enter>", "Debian/3525 critical_task");
	assert_true(!app.pane_below && !app.focused && row_same(app.view.row, before.row));
	assert_int_equal(app.view.cursor, gaps.item[0].gap.start);
	assert_true(app.view.step < before.step / 5);
	assert_shows("ww<BS>", "- most delayed in 80.0 ms");
	assert_true(app.focused && app.view.step == before.step && app.view.t0 == before.t0 && app.pane_below->at == 4);
	free(press("<BS>"));
	assert_null(app.pane_below);

	/* Enter on a machine shows the vCPU with the longest gap. */
	free(press("Og<Enter>"));
	assert_true(app.view.row.kind == ROW_CPU && !app.pane_below);
	gap_list_release(&gaps);
}

static void test_overview_order(void **state)
{
	(void)state;
	free(press("Oo"));
	assert_shows("", ", by share");
	assert_shows("oO", ", by share");
	assert_shows("\\web<Enter>", "/web");
	assert_true(app.pane_below->lines > 1 && app.pane_below->lines < 5);
	assert_shows("<Esc>", "Ubuntu");
	assert_shows(":zoom 20ms<Enter>", "- most delayed in 20.0 ms");
	assert_shows("e<C-u>/nowhere/summary.csv<Enter>", "/nowhere");
}

/* T groups the threads by name, process and control group, and then no more; Enter goes to a wait of the group. */
static void test_overview_groups(void **state)
{
	(void)state;
	assert_shows("O", "4 machines, 5 threads");
	assert_shows("T", " thread name");
	const size_t names = app.pane_below->lines;
	assert_shows("T", "4 machines, ");
	assert_shows("", " process");
	assert_shows("T", "unknown cgroup (");
	assert_true(app.pane_below->lines < names);
	assert_shows("", "lost ");
	free(press("g<Tab><Enter>"));
	assert_true(!app.pane_below && app.view.row.kind == ROW_THREAD);
	assert_shows("OT", "4 machines, 5 threads");
	assert_shows("qBT", "no groups of threads");
}

/* Keys for rows apply to the row of the selected line, even with a filter or another sort order. */
static void test_overview_marks(void **state)
{
	(void)state;
	assert_shows("O/Ubuntu<Enter>", "/Ubuntu");
	assert_true(app.view.row.kind == ROW_MACHINE);
	assert_string_equal(app.catalog.machine[app.view.row.index].name, "Ubuntu");
	assert_shows("P", "gaps of Ubuntu in");
	free(press("q<Esc>Og<Tab>"));
	assert_true(app.view.row.kind == ROW_THREAD);
	free(press("o"));
	assert_true(app.pane_below->at == 0 && app.view.row.kind == ROW_MACHINE);
}

/* Keys that search gaps, open panes or go to a row leave the overview. No other key does by accident. */
static void test_keys_that_leave_overview(void **state)
{
	(void)state;
	static const char *const keys[] = { ">", "}", "F", "B", ":Ubuntu<Enter>", "<BS>" };
	static const char *const others[] = { "H", "n", ".", ",", "[", "]", "f", "M", "p", "<Space>", "<Esc>", "<C-f>", "<F5>" };
	for (size_t i = 0; i < COUNT(others); i++) {
		free(press("O"));
		free(press(others[i]));
		if (!app.pane_below || !app.pane_below->ops->replaces_rows)
			fail_msg("%s leaves the overview", others[i]);
	}
	assert_shows("p", "p works in the timeline (<BS>)");
	for (size_t i = 0; i < COUNT(keys); i++) {
		free(press("<Esc><Esc>"));
		if (!app.pane_below)
			free(press("O"));
		free(press("g<Tab>"));
		assert_true(app.pane_below && app.pane_below->ops->replaces_rows);
		free(press(keys[i]));
		if (app.pane_below && app.pane_below->ops->replaces_rows)
			fail_msg("%s leaves the overview open", keys[i]);
	}
	free(press("<BS>w"));
	assert_true(app.pane_below && !app.quit);
	free(press("q"));
	assert_true(app.quit);
}

/* Gaps pane: the window of the answer stays while the user steps from gap to gap; filter and sort orders. */
static void test_gaps(void **state)
{
	(void)state;
	struct gap_list gaps;
	struct target victim = { TARGET_THREAD, app.view.row.index };
	int64_t first = INT64_MAX;
	assert_int_equal(query_answer(gap_list_open(&app.catalog, &victim, &(struct gap_options){ .from = INT64_MIN, .to = INT64_MAX }),
	                             &gaps, NULL), 0);
	for (size_t i = 0; i < gaps.items; i++)
		first = gaps.item[i].gap.start < first ? gaps.item[i].gap.start : first;
	assert_shows("P", "gaps of Debian/3525 critical_task in 80.0 ms: 26.4 ms");
	assert_shows("", ", by length ");
	assert_true(app.focused && app.pane_below->lines == gaps.items);
	assert_shows("", "max 5.23 ms");
	assert_shows("", "critical_task waited 5.23 ms, 100 % of it for host/2101 burnP6");
	int64_t step = app.view.step;
	free(press("j<Enter>"));
	assert_true(app.focused && app.view.step < step && app.pane_below->at == 1);
	assert_int_equal(app.view.cursor, gaps.item[1].gap.start);
	assert_shows("", "in 80.0 ms: 26.4 ms");
	assert_shows("o", ", by time");
	free(press("g<Enter>"));
	assert_int_equal(app.view.cursor, first);
	assert_shows("o", ", by culprit");
	assert_shows("o/nobody<Enter>", " 0 gaps of Debian/3525 critical_task");
	assert_shows("<Esc>/burnP6<Enter>", " 5 gaps of Debian/3525 critical_task in 80.0 ms: 26.1 ms");
	assert_shows("<Esc>e<C-u>/nowhere/gaps.csv<Enter>", "/nowhere");
	free(press("q"));
	assert_null(app.pane_below);
	assert_shows(":host<Enter>j", "host/CPU");
	assert_shows("P", "select a machine, a vCPU or a thread");
	assert_null(app.pane_below);
	gap_list_release(&gaps);
}

/* Lock waits of a machine and of a thread equal the answer of the command; Enter selects the waiter. */
static void test_locks(void **state)
{
	(void)state;
	struct lock_list l;
	struct target machine = { TARGET_MACHINE, 0 };
	char command[300], line[400] = "", file[200];
	while (strcmp(app.catalog.machine[machine.index].name, "Debian") != 0)
		machine.index++;
	assert_int_equal(query_answer(locks_open(&app.catalog, &machine, INT64_MIN, INT64_MAX), &l, NULL), 0);
	assert_int_equal(l.waits, 5);
	assert_shows(":Debian<Enter>P", "5 gaps of Debian in 80.0 ms: 26.1 ms; b: lock waits, by length ");
	assert_shows("b", "5 lock waits of Debian in 80.0 ms: 60.0 ms, 26.1 ms taken from holders");
	assert_true(app.focused && app.pane_below->lines == l.waits);
	assert_shows("", "880 sshd  futex  3525 critical_task  5.21 ms  host/2101 burnP6");
	free(press("j<Enter>"));
	assert_int_equal(app.view.cursor, l.wait[1].start);
	assert_true(app.view.row.kind == ROW_THREAD && app.catalog.thread[app.view.row.index].tid == 880);
	assert_true(app.focused && app.pane_below->at == 1);
	assert_shows("", "5 lock waits of Debian in 80.0 ms");
	assert_shows("/nobody<Enter>", " no lock waits of Debian in 80.0 ms /nobody");
	assert_shows("<Esc>/critical<Enter>", "5 lock waits of Debian");
	snprintf(file, sizeof file, "%s.csv", world);
	snprintf(command, sizeof command, "<Esc>e<C-u>%s<Enter>", file);
	free(press(command));
	FILE *f = fopen(file, "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof line, f));
	assert_non_null(fgets(line, sizeof line, f));
	assert_non_null(strstr(line, ",Debian,880,sshd,futex,slept,3525,critical_task,,5210000,host,2101,burnP6,0,\n"));
	fclose(f);
	unlink(file);
	assert_shows("q:Debian/3525<Enter>b", " no lock waits of Debian/3525 critical_task in ");
	assert_shows("", " None in the recorded events. ");
	assert_shows("q:Debian/CPU0<Enter>b", "No VM exit shows spinning. ");
	assert_shows("q:Ubuntu<Enter>b", "record lock:contention_begin and _end, or");
	assert_shows("P", "gaps of Ubuntu in");
	locks_release(&l);
}

static int line_of(const char *text)
{
	char *s = press(""), *at = strstr(s, text);
	int y = 0;
	if (!at)
		fail_msg("no \"%s\" in\n%s", text, s);
	for (char *c = s; c < at; c++)
		y += *c == '\n';
	free(s);
	return y;
}

static void click(int x, int y)
{
	viewer_mouse(&app, x, y, MOUSE_PRESS);
	viewer_mouse(&app, x, y, MOUSE_RELEASE);
	viewer_draw(&app, &screen);
}

/* The mouse selects lines of a pane, and the second click follows a line; it selects rows, ranges, and windows on the
 * map. */
static void test_mouse(void **state)
{
	(void)state;
	free(press("O"));
	int y = line_of(" web/4000 node");
	click(5, y);
	assert_true(app.focused && app.pane_below && app.view.row.kind == ROW_THREAD);
	assert_shows("", "web/4000 node lost");
	click(5, y);
	assert_null(app.pane_below);
	assert_shows("", "4000 node");
	assert_true(app.view.step < UI_WORLD_SPAN / 83 / 2);
	click(5, 0);
	click(5, 39);
	free(press("0P<Tab>"));
	assert_false(app.focused);
	y = line_of("  culprit  ") + 1;
	click(5, y + 1);
	assert_true(app.focused && app.pane_below->at == 1);
	struct row_id row = app.view.row;
	click(60, 4);
	assert_true(!app.focused && !row_same(app.view.row, row));
	assert_int_equal(view_column(&app.view, app.view.cursor), 60 - app.label_w - 1);
	const int64_t pressed = (row = app.view.row, app.view.cursor);
	click(70, 3);  /* the ruler is no row */
	assert_true(row_same(app.view.row, row) && app.view.cursor == pressed);
	viewer_mouse(&app, 60, 4, MOUSE_PRESS);
	viewer_mouse(&app, 65, 4, MOUSE_DRAG);
	assert_true(app.view.range == pressed && app.view.cursor > pressed);
	viewer_mouse(&app, 70, 4, MOUSE_RELEASE);
	assert_true(app.view.range == pressed);
	free(press("<Esc>q:zoom 8ms<Enter>"));
	for (int third = 1; third < 3; third++) {
		int64_t expected = UI_WORLD_BEGIN + UI_WORLD_SPAN * third / 3;
		click(app.label_w + 1 + app.bounds.cols * third / 3, 2);  /* the map, below the verdict */
		int64_t middle = app.view.t0 + app.bounds.cols * app.view.step / 2;
		assert_in_range(middle, expected - UI_WORLD_SPAN / 50, expected + UI_WORLD_SPAN / 50);
	}
	int64_t t0 = app.view.t0;
	free(press("?"));
	click(50, 1);
	assert_int_equal(app.view.t0, t0);  /* a list covers the map */
}

/* Exits pane: Enter shows the longest exit. Without recorded exits the pane shows which events to record. */
static void test_exits(void **state)
{
	(void)state;
	assert_shows(":Debian/CPU0<Enter>:zoom 80ms<Enter>E", "VM exits of Debian/vCPU0 in 80.0 ms: 26.4 ms outside the guest");
	assert_shows("", "interrupt      5  26.1 ms");
	assert_shows("", "5.23 ms  12:03:04.1070");
	assert_shows("", "interrupt: duration 4.19 ms ! 8.39 ms");
	int64_t step = app.view.step;
	assert_shows("<Enter>", "interrupt      5  ");
	assert_true(app.view.step < step && app.view.cursor == UI_WORLD_BEGIN + 7000000);
	assert_shows("<Tab>", "by host/2101 burnP6 on CPU3, ");
	assert_shows("<Tab>/msr<Enter>", "0  msr ");
	assert_shows("<Esc>o", "share");
	assert_shows("q:+9ms<Enter>:zoom 8ms<Enter>E", "interrupt      1  ");
	assert_shows("q:+30ms<Enter>:zoom 10us<Enter>E", "- no VM exits of Debian/vCPU0 in 10.0 us -");
	assert_shows("q:Ubuntu<Enter>E", "kvm_entry and kvm_exit");
	assert_shows("q:host/2101<Enter>E", "is not of a guest");
	assert_null(app.pane_below);
}

/* Path pane: a thread is woken by another thread; arrows are drawn while the pane is open. */
static void test_path(void **state)
{
	(void)state;
	char *shut = press(":Debian/880<Enter>:zoom 80ms<Enter>"), *again;
	assert_shows("C", "path of Debian/880 sshd in 80.0 ms, 15.8 ms unknown, sums");
	assert_shows("", "33.5 ms  41.9%  Debian/3525 critical_task  running ");
	assert_shows("o", "intervals, by time");
	assert_shows("", "880 sshd                    0%*|--------------v---------------v---");
	assert_shows("j", "Debian/3525 critical_task  running                       wake   proven");
	assert_shows("o<Down>", "Debian/3525 critical_task  preempting  host/2101 burnP6  wake ");
	assert_shows("oo/burn<Enter><Enter>", "Debian/3525 critical_task  preempting  host/2101 burnP6 ");
	assert_true(app.view.cursor == UI_WORLD_BEGIN + 7000000 && app.view.row.kind == ROW_THREAD);
	assert_int_equal(app.catalog.thread[app.view.row.index].tid, 3525);
	free(press("q:Debian/880<Enter>"));
	again = press("0^:zoom 80ms<Enter>");
	char *lane = strstr(shut, "880 sshd");
	assert_non_null(strstr(again, "880 sshd"));
	assert_memory_equal(strstr(again, "880 sshd"), lane, strcspn(lane, "\n"));
	free(shut);
	free(again);
	assert_shows(":Debian<Enter>C", "select a vCPU or a thread");
	assert_shows(":host/CPU1<Enter>C", "select a vCPU or a thread");
	assert_null(app.pane_below);
}

/* The diff pane compares the window with the rest of the history, or with another history; Enter selects the target of a
 * line. */
static void test_diff(void **state)
{
	(void)state;
	char command[300];
	assert_shows(":zoom 1ms<Enter>V", "window too short to compare (at least 6.4 ms)");
	assert_null(app.pane_below);
	assert_shows("0V", "outside this window");
	assert_null(app.pane_below);
	assert_shows(":+20ms<Enter>(:+60ms<Enter>)V", "changes since the 20.0 ms before, in 40.0 ms: 0 findings, 2 notes");
	assert_true(app.focused && app.pane_below->valid);
	assert_shows("V", "");
	assert_null(app.pane_below);
	snprintf(command, sizeof command, ":diff %s<Enter>", world);
	assert_shows(command, "in 40.0 ms: 0 findings");
	assert_shows("q:diff /nowhere.steal<Enter>", "No such file");
	assert_null(app.pane_below);
	free(press("V"));
	assert_true(app.pane_below && app.pane_below->valid);
	/* Asked again: the pane is drawn, and filtered, while its answer is not there. */
	for (int height = 8; height < 40; height += 8) {
		struct pane *p = app.pane_below;
		p->ops->drop_answer(p);
		p->lines = 0;
		p->pending = true;
		p->valid = false;
		screen_resize(&screen, 100, height);
		pane_draw(&app, &screen, 0, height);
		p->ops->arrange(&app, p);
		pane_draw(&app, &screen, 0, height);
		p->pending = false;
	}
	assert_shows("qV", "findings");
}

int main(void)
{
	setlocale(LC_ALL, "C.UTF-8");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_overview, begin, end),
		cmocka_unit_test_setup_teardown(test_overview_order, begin, end),
		cmocka_unit_test_setup_teardown(test_overview_groups, begin, end),
		cmocka_unit_test_setup_teardown(test_overview_marks, begin, end),
		cmocka_unit_test_setup_teardown(test_keys_that_leave_overview, begin, end),
		cmocka_unit_test_setup_teardown(test_gaps, begin, end),
		cmocka_unit_test_setup_teardown(test_locks, begin, end),
		cmocka_unit_test_setup_teardown(test_exits, begin, end),
		cmocka_unit_test_setup_teardown(test_path, begin, end),
		cmocka_unit_test_setup_teardown(test_diff, begin, end),
		cmocka_unit_test_setup_teardown(test_mouse, begin, end),
		cmocka_unit_test_setup_teardown(test_focus_and_cursor, begin, end),
		cmocka_unit_test_setup_teardown(test_closing, begin, end),
		cmocka_unit_test_setup_teardown(test_empty_filter, begin, end),
		cmocka_unit_test_setup_teardown(test_height, begin, end),
		cmocka_unit_test_setup_teardown(test_time_keys_in_a_pane, begin, end),
		cmocka_unit_test_setup_teardown(test_window_stays, begin, end),
		cmocka_unit_test_setup_teardown(test_undo_among_other_columns, begin, end),
		cmocka_unit_test_setup_teardown(test_between_markers, begin, end),
		cmocka_unit_test_setup_teardown(test_line_to_clipboard, begin, end),
	};
	return cmocka_run_group_tests_name("ui panes", tests, write_world, remove_world);
}
