/* Tests of ui/: files that the viewer writes (exports, screens, bookmarks, saved views), and changes of its files by
 * other programs. */
#include "test.h"

#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/atomic_file.h"
#include "ui/core/viewer.h"
#include "ui_script.h"

static char dir[64];

static int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof dir, "/tmp/stealscope-files-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int drop_dir(void **state)
{
	char command[100];
	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", dir);
	return system(command);
}

static void put(const char *file, const char *text)
{
	FILE *f = fopen(file, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void assert_holds(const char *file, const char *text)
{
	char *is = slurp(file);
	assert_non_null(is);
	assert_string_equal(is, text);
	free(is);
}

/* Bookmarks are restored in the next run, on a screen of another size; deleted bookmarks are not. */
static void test_bookmarks_are_kept(void **state)
{
	(void)state;
	char file[100];
	struct ui_options o = mono80;
	snprintf(file, sizeof file, "%s/a/b/c.bookmarks", dir);
	o.bookmarks = file;
	char *one = screen_of(":Debian/3525\n>wwm\n:web/4000\n0(5l)m\n:Debian\nm'", &o), *two = screen_of("'", &o);
	char *text = slurp(file);
	assert_non_null(text);
	assert_non_null(strstr(text, " - - thread Debian/3525\n"));
	assert_non_null(strstr(text, " thread web/4000\n"));
	assert_string_equal(one, two);
	free(one);
	free(two);
	free(text);
	o.width = 100;
	two = screen_of("'<Enter>", &o);
	assert_non_null(strstr(two, "Debian/3525 critical_task"));
	free(two);
	two = screen_of("'jd", &o);
	assert_non_null(strstr(two, "deleted: "));
	free(two);
	two = screen_of("'", &o);
	assert_null(strstr(two, "web/4000 node"));
	assert_non_null(strstr(two, "Debian/3525"));
	free(two);
	/* Lines of the file that are not bookmarks are ignored. */
	FILE *f = fopen(file, "w");
	fputs("# nothing\n\n1 2 3\n99999999999999999999 1 1 - - machine Debian\n5 5 5 - - machine Debian\n"
	      "1795176184107000000 1795176184100000000 0 - - machine Debian\n"
	      "1795176184107000000 1795176184100000000 7000 - x machine Debian\n"
	      "1795176184107000000 1795176184100000000 7000x0x - - machine Debian\n"
	      "1795176184107000000 1795176184100000000 7000x99999999 - - machine Debian\n"
	      "1795176184107000000 1795176184100000000 7000 - - machine nowhere\n"
	      "1795176184107000000 -9223372036854775807 9223372036854775807 - - machine Debian\n", f);
	fclose(f);
	two = screen_of("'", &o);
	assert_null(strstr(strstr(two, "  Debian\n") + 1, "  Debian\n"));
	free(two);
	two = screen_of("'<Enter>", &o);
	assert_non_null(strstr(two, "Debian lost"));
	free(two);
	two = screen_of("'dmd'", &o);
	assert_non_null(strstr(two, "bookmark"));
	free(two);
	assert_int_equal(unlink(file), 0);
	snprintf(file, sizeof file, "%s/a/b", dir);
	assert_int_equal(rmdir(file), 0);
	snprintf(file, sizeof file, "%s/a", dir);
	assert_int_equal(rmdir(file), 0);
	/* If the file cannot be written, a message shows the reason. */
	assert_int_equal(chmod(dir, 0700), 0);
	o.bookmarks = "/proc/nowhere/c.bookmarks";
	two = screen_of("m", &o);
	assert_non_null(strstr(two, "not saved: /proc/nowhere"));
	free(two);
}

/* The saved view restores window, cursor, markers, folding, pins, filter, sort order and pane. */
static void test_view_is_kept(void **state)
{
	(void)state;
	char file[100];
	struct ui_options o = mono120;
	snprintf(file, sizeof file, "%s/x.view", dir);
	o.view = file;
	static const char *const ways[] = {
		":Debian/3525\n>ww(5l)p\n:host\np\n:Ubuntu\n<Space>\n:Debian/3525\noo\nF", "O", ":filter ssh\nB",
		"Hooo\n:web/4000\nG<Space>",
		":set hostthread\n:Debian/CPU0\nj", "PO",
	};
	for (size_t i = 0; i < COUNT(ways); i++) {
		char *left = screen_of(ways[i], &o), *opened = screen_of("<C-l>", &o);
		/* compares the screens without status line and message */
		*strchr(strrchr(left, '|'), '\n') = *strchr(strrchr(opened, '|'), '\n') = '\0';
		assert_string_equal(left, opened);
		free(left);
		free(opened);
		unlink(file);
	}
	/* On a screen of another size the same window is shown, in fewer cells. */
	char *wide = screen_of(":Debian/3525\n>ww", &o);
	o.width = 61;
	char *narrow = screen_of("<C-l>", &o);
	assert_non_null(strstr(wide, "12:03:04.1051 .. .1251 +0000   20.0 ms"));
	assert_non_null(strstr(narrow, "12:03:04.1051 .. .1251   20.0 ms"));
	free(wide);
	free(narrow);
	unlink(file);
	o.width = 120;
	/* Invalid lines are ignored; if the view is missing, nothing is restored. */
	put(file, "sort name\nview 1 2 3\npane PANE_FLOW\n");
	char *plain = screen_of("<C-l>", &mono120), *left = screen_of("<C-l>", &o);
	assert_non_null(strstr(left, "v Debian"));
	assert_null(strstr(left, "flow of"));
	free(left);
	put(file, "# x\n\nsort none\nopen\nfold group\nfold thread Debian/3525\npin nobody\npane LIST_HELP\npane x\nview\n");
	left = screen_of("<C-l>", &o);
	assert_string_equal(plain, left);
	free(plain);
	free(left);
	unlink(file);
	/* A file that cannot be written is no error. */
	o.view = "/proc/nowhere/x.view";
	free(screen_of("j", &o));
}

static void test_export(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	char script[512], file[128];
	snprintf(script, sizeof script, ">\n<Enter>\nX<C-u>%s/a.txt<Enter>\n:export %s/a.csv\n:export %s/a.json\nB\n"
	         ":export %s/b.csv\n:export %s/b.txt\nP\n:export %s/g.txt\n", dir, dir, dir, dir, dir, dir);
	if (run(script, &mono80, &err) < 0)
		fail_msg("%s", err.text);
	static const struct { const char *name, *contains; } files[] = {
		{ "a.txt", "burnP6" }, { "a.csv", "machine,tid,name,kind,duration_ns,share\n" },
		{ "a.csv", ",2101,burnP6,preempting," },
		{ "a.json", "\"name\":" }, { "b.csv", "victim,culprit,ns,share\n" },
		{ "b.txt", "victim " }, { "g.txt", "\nlength: p50 " },
	};
	for (size_t i = 0; i < COUNT(files); i++) {
		snprintf(file, sizeof file, "%s/%s", dir, files[i].name);
		char *text = slurp(file);
		assert_non_null(text);
		if (!strstr(text, files[i].contains))
			fail_msg("%s lacks %s:\n%s", file, files[i].contains, text);
		free(text);
	}
	/* An existing file is not replaced. Failing to write into a directory leaves no file behind and is reported. */
	snprintf(script, sizeof script, ">\n<Enter>\n:export %s/a.txt", dir);
	assert_int_equal(run(script, &mono120, &err), -1);
	assert_non_null(strstr(err.text, "file exists (\""));
	assert_int_equal(run(">\n<Enter>\n:export /nowhere/at/all.txt", &mono80, &err), -1);
	assert_non_null(strstr(err.text, "/nowhere/at/all.txt"));
	/* An invalid command stops the script. */
	static const char *const wrong[] = { ":zoom 3", ":goto", ":set glyphs=big", ":screen" };
	for (size_t i = 0; i < COUNT(wrong); i++)
		assert_int_equal(run(wrong[i], &mono80, &err), -1);
	assert_int_equal(run(":zoom 3ms", &mono80, &err), 0);
	for (size_t i = 0; i < COUNT(files); i++) {
		snprintf(file, sizeof file, "%s/%s", dir, files[i].name);
		unlink(file);
	}
}

static char *draw(struct app *app, struct screen *s)
{
	char *text = NULL;
	size_t size;
	bool changed;
	while (viewer_work(app, 1000000000, &changed))
		;
	viewer_draw(app, s);
	FILE *f = open_memstream(&text, &size);
	screen_dump(s, f);
	fclose(f);
	return text;
}

static void press(struct app *app, const char *keys)
{
	uint32_t key;
	while (*keys && (key = key_parse(&keys)) != 0)
		viewer_key(app, key);
}

static void start(struct app *app, struct history **h, const struct ui_options *o)
{
	struct error err = ERROR_INIT;
	*h = history_open(world, &err);
	assert_non_null(*h);
	assert_int_equal(viewer_init(app, *h, o, &err), 0);
	appearance_set_depth(app, DEPTH_MONO);
	app->waits_for_answers = true;
}

/* Two viewers that share a file show each other's bookmarks, deletions and notes. */
static void test_bookmarks_of_two_viewers(void **state)
{
	(void)state;
	char file[100];
	struct ui_options o = mono120;
	struct app app[2];
	struct history *h[2];
	struct screen s = { 0 };
	snprintf(file, sizeof file, "%s/two.bookmarks", dir);
	o.bookmarks = file;
	screen_resize(&s, 120, 40);
	for (int i = 0; i < 2; i++)
		start(&app[i], &h[i], &o);
	press(&app[0], ":Debian/3525<Enter>>m");
	press(&app[1], ":web/4000<Enter>:mark slow there<Enter>");
	press(&app[0], ":Ubuntu/700<Enter>m'");
	press(&app[1], "'");
	for (int i = 0; i < 2; i++) {
		char *list = draw(&app[i], &s);
		assert_non_null(strstr(list, "Debian/3525 critical_task\n"));
		assert_non_null(strstr(list, "web/4000 node  slow there\n"));
		assert_non_null(strstr(list, "Ubuntu/700 nginx\n"));
		free(list);
	}
	press(&app[0], "d");         /* deletes the bookmark of Debian */
	press(&app[1], "je and<C-u>why?<Enter>");
	press(&app[0], "q'");
	for (int i = 0; i < 2; i++) {
		char *list = draw(&app[i], &s);
		assert_null(strstr(list, "Debian/3525"));
		assert_non_null(strstr(list, "web/4000 node  why?\n"));
		assert_non_null(strstr(list, "Ubuntu/700 nginx\n"));
		free(list);
		viewer_release(&app[i]);
		history_close(h[i]);
	}
	screen_release(&s);
}

/* No command of a script replaces a file, follows a link, or replaces the history; each attempt is an error. */
static void test_nothing_is_written_over(void **state)
{
	(void)state;
	static const char *const commands[] = { ">\n<Enter>\n:export %s", ":screen %s" };
	char file[100], link[110], script[256];
	snprintf(file, sizeof file, "%s/kept", dir);
	for (size_t i = 0; i < COUNT(commands); i++) {
		struct error err = ERROR_INIT;
		snprintf(link, sizeof link, "%s/link", dir);
		put(file, "mine\n");
		assert_int_equal(symlink("kept", link), 0);
		snprintf(script, sizeof script, commands[i], file);
		assert_int_equal(run(script, &mono80, &err), -1);
		assert_non_null(strstr(err.text, "kept: file exists (\""));
		assert_holds(file, "mine\n");
		snprintf(script, sizeof script, commands[i], dir);  /* the message does not offer a replacement where it is
		                                                     * impossible */
		assert_int_equal(run(script, &mono80, &err), -1);
		assert_non_null(strstr(err.text, "is not a regular file"));
		snprintf(script, sizeof script, commands[i], link);
		assert_int_equal(run(script, &mono80, &err), -1);
		assert_holds(file, "mine\n");
		assert_int_equal(unlink(file), 0);  /* a dangling link is not followed either */
		assert_int_equal(run(script, &mono80, &err), -1);
		assert_int_equal(access(file, F_OK), -1);
		assert_int_equal(unlink(link), 0);
		for (int force = 0; force < 2; force++) {
			char name[100];
			snprintf(name, sizeof name, "%s%s", world, force ? "!" : "");
			snprintf(script, sizeof script, commands[i], name);
			assert_int_equal(run(script, &mono80, &err), -1);
			assert_non_null(strstr(err.text, "this history is open"));
		}
		put(file, "mine\n");
		snprintf(link, sizeof link, "%s!", file);
		snprintf(script, sizeof script, commands[i], link);
		if (run(script, &mono80, &err) < 0)
			fail_msg("%s", err.text);
		char *is = slurp(file);
		assert_string_not_equal(is, "mine\n");
		free(is);
		assert_int_equal(unlink(file), 0);
	}
}

static void copy(const char *from, const char *to)
{
	char command[256];
	snprintf(command, sizeof command, "cp %s %s", from, to);
	assert_int_equal(system(command), 0);
}

/* Compares the screens without the status line and the lines below it, which may contain long messages. */
static void assert_same_body(const char *a, const char *b)
{
	for (int line = 0; line < 38; line++) {
		size_t n = strcspn(a, "\n") + 1, m = strcspn(b, "\n") + 1;
		if (n != m || memcmp(a, b, n) != 0)
			fail_msg("line %d was\n%.*sand is\n%.*s", line, (int)n, a, (int)m, b);
		a += n;
		b += m;
	}
}

enum harm { CUT, EMPTIED, WRITTEN, REPLACED, HARMS };

static void do_harm(enum harm harm, const char *file, const char *other)
{
	struct stat st;
	assert_int_equal(stat(file, &st), 0);
	if (harm == CUT || harm == EMPTIED) {
		assert_int_equal(truncate(file, harm == CUT ? st.st_size / 3 : 0), 0);
	} else if (harm == WRITTEN) {
		FILE *f = fopen(file, "r+");
		for (long i = 0; i < st.st_size; i++)
			putc(0xa5, f);
		fclose(f);
	} else {
		assert_int_equal(rename(other, file), 0);
	}
}

/* A history file that changes while it is open neither kills the viewer nor shows garbage: the last frame stays, and
 * :reload shows the new file with the same view. */
static void test_history_changes_while_open(void **state)
{
	(void)state;
	for (int harm = 0; harm < HARMS; harm++) {
		char file[100], other[100];
		struct app app;
		struct screen s = { 0 };
		struct error err = ERROR_INIT;
		snprintf(file, sizeof file, "%s/open.steal", dir);
		snprintf(other, sizeof other, "%s/other.steal", dir);
		copy(world, file);
		ui_world_write(other, 3000);
		struct history *h = history_open(file, &err);
		assert_non_null(h);
		assert_int_equal(viewer_init(&app, h, &mono120, &err), 0);
		app.waits_for_answers = true;
		screen_resize(&s, 120, 40);
		press(&app, ":Debian/3525<Enter>>wwm");
		char *before = draw(&app, &s);
		do_harm((enum harm)harm, file, other);
		char *after = draw(&app, &s);
		if (harm == REPLACED)
			assert_non_null(strstr(after, "was replaced"));
		else
			assert_same_body(before, after);
		free(after);
		press(&app, "djjsG<Enter>BL");
		after = draw(&app, &s);
		if (harm == REPLACED) {
			assert_non_null(strstr(after, "legend and themes"));
			press(&app, "q");
			free(after);
			after = draw(&app, &s);
			assert_non_null(strstr(after, "file replaced: :reload"));
		} else {
			assert_same_body(before, after);
			assert_non_null(strstr(after, ":reload"));
			free(after);
			press(&app, ":reload<Enter>");
			after = draw(&app, &s);
			if (harm != WRITTEN)
				assert_same_body(before, after);
			copy(world, file);
		}
		free(after);
		press(&app, ":reload<Enter>");
		after = draw(&app, &s);
		assert_non_null(strstr(after, "reloaded"));
		assert_non_null(strstr(after, "3525 critical_task"));
		assert_non_null(strstr(after, harm == REPLACED ? "worker-" : "burnP6"));
		free(after);
		free(before);
		screen_release(&s);
		viewer_release(&app);
		history_close(h);
	}
}

/* :reload keeps the selected row, although threads have rows only after the scan. */
static void test_reload_keeps_row(void **state)
{
	(void)state;
	struct app app;
	struct screen s = { 0 };
	struct error err = ERROR_INIT;
	struct history *h = history_open(world, &err);
	assert_non_null(h);
	assert_int_equal(viewer_init(&app, h, &mono120, &err), 0);
	screen_resize(&s, 120, 40);
	press(&app, ":Debian/3525<Enter>");
	free(draw(&app, &s));
	struct row_id row = app.view.row;
	press(&app, ":reload<Enter>");
	viewer_draw(&app, &s);
	free(draw(&app, &s));
	assert_true(row_same(app.view.row, row));
	screen_release(&s);
	viewer_release(&app);
	history_close(h);
}

/* A process killed while writing leaves no file behind, if the file system supports O_TMPFILE. */
static void test_killed(void **state)
{
	(void)state;
	struct save s;
	struct error err;
	char file[80];
	int status;
	const int fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0)
		skip();
	close(fd);
	snprintf(file, sizeof file, "%s/a", dir);
	const pid_t child = fork();
	if (child == 0) {
		if (atomic_file_begin(&s, file, &err))
			_exit(1);
		fputs("half", s.f);
		fflush(s.f);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(mkdir(dir, 0700), 0);
}

int main(void)
{
	setlocale(LC_ALL, "C.UTF-8");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_bookmarks_are_kept, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(test_bookmarks_of_two_viewers, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(test_view_is_kept, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(test_export, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(test_nothing_is_written_over, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(test_history_changes_while_open, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(test_killed, make_dir, drop_dir),
		cmocka_unit_test(test_reload_keeps_row),
	};
	return cmocka_run_group_tests_name("ui files", tests, write_world, remove_world);
}
