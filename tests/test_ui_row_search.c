/* ui/: finding rows, commands and what is left of a screen that is small: single sentences of screens. */
#include "ui_script.h"

#include <locale.h>

/* What the screen shows at the end of a script, and what it does not (NULL: anything). */
static void check_shows(const char *script, const char *there, const char *not_there)
{
	char *s = screen_of(script, &mono80);
	if (!strstr(s, there) || (not_there && strstr(s, not_there)))
		fail_msg("%s: \"%s\", but not \"%s\", should be on the screen:\n%s", script, there, not_there, s);
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
	/* A filter looks into what is folded, takes the cursor to a thread, and leaves all as it was. */
	check_shows("\\burn<Enter>", "2101 burnP6      29%*", "880 sshd");
	check_shows("\\burn", "host/2101 burnP6 12:03", "> threads");
	check_shows("\\burn<Esc>", "3525 critical_ta 44%*", NULL);
	check_shows("\\burn<Enter><Space>", "nothing to fold", NULL);
	check_shows("\\none such", "filter: none such\n", "threads     ");
	check_shows("\\none such", "  no thread's or machine's name contains \"none such\"", "/cell");
	check_shows("\\none such<Enter>", " no thread's or machine's name contains \"none such\"", NULL);
	check_shows(":filter burn", "2101 burnP6      29%*", NULL);
	/* Idle rows that the first letters of a search brought up are hidden again. */
	check_shows("/syst", "1 systemd", "idle hidden");
	check_shows("/syst<C-u>burn", "2 idle hidden", "systemd");
	check_shows("/syst<Esc>", "2 idle hidden", "systemd");
	check_shows("/burn<Enter>n", "no other row contains \"burn\"", NULL);
	check_shows("/12<Enter>", "\n no row contains \"12\"", NULL);
	/* <Tab> completes commands and what they take, and tells what there is. */
	check_shows("key :se<Tab>", " set search\n", NULL);
	check_shows("key :set<Space>gl<Tab>ascii", "\n:set glyphs=ascii", NULL);
	check_shows("key :set<Space>m<Tab>", " mingap= mouse\n", NULL);
	/* Commands without what they want say so, and a script ends there. */
	check_refused(":goto", "goto wants a time");
	check_refused(":screen", "screen wants the name");
	check_shows(":theme", "legend and themes", NULL);
	check_shows(":theme!", "legend and themes", NULL);
	/* Of a range, what was taken comes first: what follows may have no room. */
	check_shows("key ^ v 20l", "critical_task:  virt-preempt 10.6 ms  blocked", NULL);
	/* From a line of a flow, or of who took from whom, to the row of its thread or machine, and back. */
	check_shows("key > <Enter> <Tab> 5j <Enter>", "host/2101 burnP6 12:03", "Enter flow");
	check_shows("key > <Enter> <Tab> 5j <Enter> ]", "\n Debian/3525 critical_task .1", "Enter go there");
	check_shows("key > <Enter> <Tab> jj <Enter>", "\n Debian/880 sshd ", NULL);
	check_shows("key > <Enter> <Tab> <Enter>", "Debian lost ", NULL);
	check_shows("key B <Tab> j <Enter>", "host/2101 burnP6 12:03", NULL);
	check_shows("key B <Tab> 6j <Enter>", "no row stands for this line", NULL);
	/* What the overview is sorted by is in it, also where there is not room for all. */
	check_shows("key O o o", "lost lost%  longest mostly to", NULL);
	check_shows("key O o o o", "lost lost%      p99 mostly to", "longest most");
	check_shows("key O o o o o", "lost lost%   gaps mostly to", "longest most");
	check_shows("key O o o o o o", "ran     lost lost% mostly to", "longest most");
	check_shows("key O O O", "life     lost lost% mostly to", "longest most");
	check_shows("key O O", "lost lost%  longest mostly to", NULL);
	/* What is no command is a name, also where several have it. */
	check_shows(":burnP6", "2101 burnP6      29%*", NULL);
	check_shows(":2101", "2101 burnP6      29%*", "outside the trace");
	check_shows(":880\n:goto 2101", "2101 burnP6      29%*", NULL);
	check_shows(":+99s", "that is outside the trace: its end is taken", NULL);
	check_shows(":2026-11-20T12:03:14Z", "that is outside the trace: its end is taken", NULL);
	check_shows(":goto 2026-11-20T13:03:04.17+01:00", ".16   v ", "outside the trace");
	check_refused(":77", "77: neither a command, a time");
	check_refused(":goto 25:00", "25:00: not a time (+3ms -3ms 50% 12:03:04)");
	check_refused(":goto nobody", "nobody: no such machine, CPU or thread");
	check_refused(":set glyphs=round", "set glyphs=  blocks, cells or ascii");
	check_refused(":set mingap=5", "set mingap=  > and < pass over gaps shorter than that: 100us; 0 = none");
	check_refused(":set nothing", "set wants one of glyphs= color= time= mingap= [no]idle [no]mouse [no]hostthread");
	check_refused(":set time=relative", "set marker A with ( first");
	check_refused(":key", "key wants keys");
	check_refused(":n", "n: 2 threads have that name");
	check_refused(":nobody", "nobody: neither a command, a time");
	check_refused(":thmee ssh", "nor a row (VM/TID); did you mean :theme?");
	check_refused(":theme papr", "theme papr: no such theme, nor ");
	check_refused(":theme papr", "did you mean paper? shipped are cvd-dark, cvd-light");
	/* A row without values has no heading for them. */
	check_shows("Gx", "Clock", "Values at");
}

/* The smallest screens: nothing is cut in its middle, and how to get help is told. */
static void test_small_screens(void **state)
{
	(void)state;
	struct ui_options o = mono80;
	for (o.width = 40; o.width <= 80; o.width++) {
		char *s = screen_of("", &o), *header = s, *end = strchr(s, '\n');
		assert_non_null(strstr(s, "? help"));
		*end = '\0';
		assert_true(!strstr(header, "ms/") || strstr(header, "ms/cell"));
		assert_true(!strstr(header, "idle") || strstr(header, "1 idle hidden"));
		free(s);
	}
	o.width = 50;
	char *gap = screen_of(">", &o);
	assert_non_null(strstr(gap, "PREEMPTED 5.23 ms by host/2101 burnP6"));
	free(gap);
	/* Who took it is told on the smallest screen, too. */
	static const char *const tells[][2] = { { ">", "\n .1070 5.23 ms by host/2101 burnP6\n" },
		{ "O", "\n lost 26.4 ms, 98 % to host/2101 burnP6\n" }, { "Og", "\n lost 26.8 ms, 97 % to host/2101 burnP6\n" }, { "Ojjjj", "\n lost 10.5 ms" },
		{ ":Debian/3525\nP", "\n waited 5.23 ms for host/2101 burnP6\n" } };
	o.width = 40;
	for (size_t i = 0; i < COUNT(tells); i++) {
		char *s = screen_of(tells[i][0], &o);
		if (!strstr(s, tells[i][1]))
			fail_msg("%s does not tell%s:\n%s", tells[i][0], tells[i][1], s);
		free(s);
	}
	/* A message takes the lines that it needs. */
	char *said = screen_of("%%%%", &o);
	assert_non_null(strstr(said, "\n what was lost is shown as a share of\n the time in which it wanted to run\n"));
	free(said);
	o.width = 12;
	char *s = screen_of("", &o);
	assert_memory_equal(s, "at least 40x8\n", 12);
	free(s);
}

/* Machines whose names have no letter left get another one; the legend tells whose it is. */
static void test_owner_letters(void **state)
{
	(void)state;
	static const char *const owners[] = { "idle", "host", "unknown", "other VM", "aa", "aba", "ab", "b" };
	static const char *const letters[] = { "A aa\n", "B aba\n", "C ab\n", "D b\n" };
	struct error err = ERROR_INIT;
	char keep[64];
	memcpy(keep, world, sizeof keep);
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
	assert_non_null(strstr(s, "|.h?+ABCD"));
	free(s);
	unlink(world);
	memcpy(world, keep, sizeof world);
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
