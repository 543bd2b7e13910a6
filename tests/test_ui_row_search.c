/* Tests of ui/: finding rows, commands, and small screens, by phrases on the screen. */
#include "ui_script.h"

#include <locale.h>

/* Checks that the screen after a script contains `there` and does not contain `not_there` (NULL: not checked). */
static void check_shows(const char *script, const char *expected, const char *unexpected)
{
	char *s = screen_of(script, &mono80);
	if (!strstr(s, expected) || (unexpected && strstr(s, unexpected)))
		fail_msg("%s: \"%s\", but not \"%s\", should be on the screen:\n%s", script, expected, unexpected, s);
	free(s);
}

static void check_refused(const char *script, const char *why)
{
	struct error err = ERROR_INIT;
	assert_int_equal(run(script, &mono80, &err), -1);
	assert_non_null(strstr(err.text, why));
}

static void test_finding(void **state)
{
	(void)state;
	/* A filter finds rows in folded machines and selects a matching thread; Esc clears the filter. */
	check_shows("\\burn<Enter>", "2101 burnP6      29%*", "880 sshd");
	check_shows("\\burn", "host/2101 burnP6 12:03", "> threads");
	check_shows("\\burn<Esc>", "3525 critical_ta 44%*", NULL);
	check_shows("\\burn<Enter><Space>", "nothing to fold", NULL);
	check_shows("\\none such", "filter: none such\n", "threads     ");
	check_shows("\\none such", "  no thread or machine name contains \"none such\"", "/cell");
	check_shows("\\none such<Enter>", " no thread or machine name contains \"none such\"", NULL);
	check_shows(":filter burn", "2101 burnP6      29%*", NULL);
	/* Idle rows that became visible during the search are hidden again when the text no longer matches them. */
	check_shows("/syst", "1 systemd", "hidden (H)");
	check_shows("/syst<C-u>burn", "2 hidden (H)", "systemd");
	check_shows("/syst<Esc>", "2 hidden (H)", "systemd");
	check_shows("/burn<Enter>n", "no other row contains \"burn\"", NULL);
	check_shows("/12<Enter>", "\n no row contains \"12\"", NULL);
	/* <Tab> completes commands and their arguments, and lists the candidates. */
	check_shows("key :se<Tab>", " set search\n", NULL);
	check_shows("key :set<Space>gl<Tab>ascii", "\n:set glyphs=ascii", NULL);
	check_shows("key :set<Space>m<Tab>", " mingap= mouse\n", NULL);
	/* Commands without a required argument fail, and the script stops. */
	check_refused(":goto", "goto: missing time");
	check_refused(":screen", "screen: missing file name");
	check_shows(":theme", "legend and themes", NULL);
	check_shows(":theme!", "legend and themes", NULL);
	/* Statistics of a range list the waits first, because the other states may not fit. */
	check_shows("key ^ v 9l 9l l l", "critical_task:  virt-preempt 10.6 ms  blocked", NULL);
	/* Enter on a line of the flow or the steal matrix selects the row of its thread or machine; ] returns. */
	check_shows("key > <Enter> <Tab> 4j <Enter>", "host/2101 burnP6 12:03", "Enter flow");
	check_shows("key > <Enter> <Tab> 4j <Enter> ]", "\n Debian/3525 critical_task .1", "Enter go there");
	check_shows("key > <Enter> <Tab> 6j <Enter>", "\n Debian/880 sshd ", NULL);
	check_shows("key > <Enter> <Tab> <Enter>", "Debian lost ", NULL);
	check_shows("key B <Tab> <Enter>", "host/2101 burnP6 12:03", NULL);
	check_shows("key B <Tab> jjj <Enter>", "no row for this line", NULL);
	/* The overview always shows the column that it is sorted by, even if not all columns fit. */
	check_shows("key O o o", " max wait", NULL);
	check_shows("key O o o o", " p99", NULL);
	check_shows("key O o o o o", " gaps", NULL);
	check_shows("key O o o o o o", "ran    lost lost% top culprit", NULL);
	check_shows("key O O O", "life    lost lost% top culprit", NULL);
	check_shows("key O O", "lost lost% top culprit", NULL);
	/* A word that is not a command is looked up as a name, even if several objects have this name. */
	check_shows(":burnP6", "2101 burnP6      29%*", NULL);
	check_shows(":2101", "2101 burnP6      29%*", "outside the trace");
	check_shows(":880\n:goto 2101", "2101 burnP6      29%*", NULL);
	check_shows(":+99s", "outside the trace: moved to its end", NULL);
	check_shows(":2026-11-20T12:03:14Z", "outside the trace: moved to its end", NULL);
	check_shows(":goto 2026-11-20T13:03:04.17+01:00", ".16   v ", "outside the trace");
	check_refused(":77", "unknown command, time or row: 77");
	check_refused(":goto 25:00", "25:00: not a time (+3ms -3ms 50% 12:03:04)");
	check_refused(":goto nobody", "nobody: ");
	check_refused(":set glyphs=round", "set glyphs=  blocks, cells or ascii");
	check_refused(":set mingap=5", "set mingap=  > and < skip gaps shorter than this: 100us; 0 = none");
	check_refused(":set nothing", "choose from glyphs=");
	check_refused(":set below=maybe", "choose from glyphs=");
	check_refused(":set time=relative", "set marker A with ( first");
	check_refused(":key", "key: missing keys");
	check_refused(":n", "n: 2 threads have that name");
	check_refused(":nobody", "unknown command, time or row: nobody");
	check_refused(":thmee ssh", "thmee ssh; did you mean :theme?");
	check_refused(":theme papr", "theme papr: not a shipped theme");
	check_refused(":theme papr", "did you mean paper? shipped themes: cvd-dark, cvd-light");
	/* The details of a row without values omit their heading. */
	check_shows("Gx", "Clock", "Values at");
}

/* The smallest screens: no text is cut in its middle, and the help key is shown. */
static void test_small_screens(void **state)
{
	(void)state;
	struct ui_options o = mono80;
	for (o.width = 40; o.width <= 80; o.width++) {
		char *s = screen_of("", &o), *header = s, *end = strchr(s, '\n');
		assert_non_null(strstr(s, "? help"));
		*end = '\0';
		assert_true(!strstr(header, "ms/") || strstr(header, "ms/cell"));
		assert_true(!strstr(header, "hidden") || strstr(header, "1 hidden (H)"));
		free(s);
	}
	o.width = 50;
	char *gap = screen_of(">", &o);
	assert_non_null(strstr(gap, "PREEMPTED 5.23 ms by host/2101 burnP6"));
	free(gap);
	/* Even the smallest screen shows the culprit. */
	static const char *const shows[][2] = { { ">", "\n .1070 5.23 ms by host/2101 burnP6\n" },
		{ "O", "\n lost 26.8 ms, 97 % by host/2101 burnP6\n" }, { "Og", "\n lost 26.8 ms, 97 % by host/2101 burnP6\n" },
		{ "Ojjjjjjjj", "\n lost 10.5 ms" },
		{ ":Debian/3525\nP", "\n waited 5.23 ms for host/2101 burnP6\n" } };
	o.width = 40;
	for (size_t i = 0; i < COUNT(shows); i++) {
		char *s = screen_of(shows[i][0], &o);
		if (!strstr(s, shows[i][1]))
			fail_msg("%s does not show%s:\n%s", shows[i][0], shows[i][1], s);
		free(s);
	}
	/* A long message takes several lines. */
	char *message = screen_of("HH", &o);
	char *first = strstr(message, "\n threads hidden: ");
	assert_true(first && strchr(first + 1, '\n') && strstr(first, " here)\n") > strchr(first + 1, '\n'));
	free(message);
	o.width = 12;
	char *s = screen_of("", &o);
	assert_memory_equal(s, "needs 40x8\n", 11);
	free(s);
}

/* If no letter of a machine's name is left, the machine gets another letter; the legend shows it. */
static void test_owner_letters(void **state)
{
	(void)state;
	static const char *const owners[] = { "idle", "host", "unknown", "other VM", "aa", "aba", "ab", "b" };
	static const char *const letters[] = { "A aa\n", "B aba\n", "C ab\n", "D b\n" };
	struct error err = ERROR_INIT;
	char saved[64];
	memcpy(saved, world, sizeof saved);
	memcpy(world, "/tmp/stealscope-owner-XXXXXX", 29);
	close(mkstemp(world));
	struct history_builder *b = history_create(world, NULL, &err);
	assert_non_null(b);
	uint32_t attr = history_attribute(b, "/Host/CPUs/CPU0/Owner", HISTORY_STATE,
	                                  history_state_set(b, "owner", owners, COUNT(owners)), &err);
	for (int64_t t = 0; t < (int64_t)COUNT(owners); t++)
		assert_int_equal(history_set(b, t, attr, t, &err), 0);
	assert_int_equal(history_finish(b, 0, COUNT(owners) - 1, &err), 0);
	char *s = screen_of("L", &mono120);
	for (size_t i = 0; i < COUNT(letters); i++)
		if (!strstr(s, letters[i]))
			fail_msg("%s is not in the legend:\n%s", letters[i], s);
	assert_null(strstr(s, "other VM"));
	free(s);
	s = screen_of("0", &mono120);
	assert_non_null(strstr(s, "||h?+ABCD"));
	free(s);
	unlink(world);
	memcpy(world, saved, sizeof world);
}

int main(void)
{
	setlocale(LC_ALL, "C.UTF-8");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finding),
		cmocka_unit_test(test_small_screens),
		cmocka_unit_test(test_owner_letters),
	};
	return cmocka_run_group_tests_name("ui finding", tests, write_world, remove_world);
}
