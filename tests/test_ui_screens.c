/* Tests of ui/ as a whole: runs keys and commands through ui_run() and compares the screens with tests/ui/ *.screen.
 *
 * After an intended change run UPDATE_SCREENS=1 make check, and review the differences like code. `test_ui_screens
 * --world FILE [THREADS]` writes the history used for the screens. */
#include "test.h"

#include <ctype.h>
#include <locale.h>

#include "ui_script.h"

/* The first minute of a new user: open, >, Enter. */
static void test_first_minute(void **state)
{
	(void)state;
	check_screen("open-80", "", &mono80);
	check_screen("gap-80", ">", &mono80);
	check_screen("flow-80", ">\n<Enter>", &mono80);
	check_screen("flow-120", ">\n}\n<Enter>", &mono120);
}

static void test_tiers_and_sizes(void **state)
{
	(void)state;
	static const char *const tiers[] = { "ascii", "cells", "blocks" };
	static const int sizes[][2] = { { 80, 24 }, { 120, 40 }, { 300, 80 } };
	for (size_t t = 0; t < COUNT(tiers); t++) {
		for (size_t s = 0; s < COUNT(sizes); s++) {
			char name[64];
			struct ui_options o = mono80;
			o.glyphs = tiers[t];
			o.color = "256";
			o.width = sizes[s][0];
			o.height = sizes[s][1];
			snprintf(name, sizeof name, "tier-%s-%d", tiers[t], o.width);
			check_screen(name, ">\nw", &o);
			snprintf(name, sizeof name, "overview-%s-%d", tiers[t], o.width);
			check_screen(name, "O", &o);
		}
	}
}

static void test_panes_and_lists(void **state)
{
	(void)state;
	struct ui_options small = mono80;
	small.width = 40;
	small.height = 16;
	check_screen("flow-40", ":Debian/3525\nF", &small);
	check_screen("gaps-40", ":Debian/3525\nP", &small);
	check_screen("exits-40", ":Debian/CPU0\nE", &small);
	check_screen("path-40", ":Debian/3525\nCoooj", &small);
	check_screen("diff-40", ":+6ms\n(\n:+13ms\n)\nV", &small);
	check_screen("help-40", "?/lost<Enter>", &small);
	check_screen("themes-40", "L", &small);
	check_screen("details-40", ":Debian/3525\n>x", &small);
	check_screen("second-40", ":12:03:04.1\n:zoom 2us\n(", &small);
	check_screen("blame-120", "B", &mono120);
	check_screen("gaps-120", ":Debian\nP<Down>", &mono120);
	check_screen("gaps-80", ":Debian/3525\nPo\n/burn<Enter>", &mono80);
	check_screen("locks-120", ":Debian\nbj", &mono120);
	check_screen("locks-80", ":Debian/880\nbo<Enter>", &mono80);
	check_screen("exits-120", ":Debian\nEj", &mono120);
	check_screen("exits-80", ":Debian/CPU0\nE<Enter>q", &mono80);
	check_screen("path-120", ":Debian/880\nCooo", &mono120);
	check_screen("path-80", ":Debian/880\nCj", &mono80);
	check_screen("path-piece-80", ":Debian/880\nCooo/burn<Enter>jj<Enter>", &mono80);
	check_screen("diff-80", ":+6ms\n(\n:+13ms\n)\nV", &mono80);
	check_screen("diff-120", ":+6ms\n(\n:+13ms\n)\nVj<Enter>", &mono120);
	check_screen("help-80", "?", &mono80);
	check_screen("help-search-80", "?/zoom<Enter>", &mono80);
	check_screen("help-no-match-80", "?/zzz<Enter>", &mono80);
	check_screen("themes-80", "L", &mono80);
	check_screen("bookmarks-80", "m5lmjm'", &mono80);
	check_screen("markers-120", "(\n9l)\nvlll", &mono120);
	check_screen("filter-80", "\\sshd<Enter>", &mono80);
	check_screen("host-120", ":set idle\nG\n<Space>", &mono120);
	check_screen("pin-80", "p5jp", &mono80);
	check_screen("executors-120", ":set hostthread\n:Debian/CPU0\nj", &mono120);
	check_screen("times-80", "(>t", &mono80);
	check_screen("times-from-start-80", ">tw", &mono80);
	check_screen("folded-80", "gg<Space>", &mono80);
	check_screen("requests-80", "R", &mono80);
	check_screen("request-120", "R<Enter>F", &mono120);
	check_screen("request-rows-120", ":Debian\n6j<Enter>jj\n:goto +20ms\n<Enter>", &mono120);
	struct ui_options tiny = mono80;
	tiny.width = 40;
	tiny.height = 12;
	check_screen("open-40", "", &tiny);
	check_screen("overview-40", "O", &tiny);
	check_screen("locks-40", ":Ubuntu\nb", &tiny);
	check_screen("locks-held-40", ":Debian\nbj", &tiny);
	check_screen("requests-40", "R", &tiny);
	check_screen("small", "", &(struct ui_options){ .width = 39, .height = 24, .config = "/dev/null" });
}

/* Different ways to the same view result in the same screen. */
static void test_ways_to_the_same_place(void **state)
{
	(void)state;
	static const struct { const char *one, *other; } pairs[] = {
		{ "wwdu", "ww" }, { "wwdu<C-r>", "wwd" }, { "ww0", "0" }, { ">w", "key > w" }, { "5>", ">>>>>" },
		{ "lllhhh", "lh" }, { "key :t<Tab>ss<Tab><Enter>", ":theme ssh" }, { "key :go<Tab>50%<Enter>", ":50%" },
		{ ":50%\nwwwad", ":50%\nwww" }, { ":+40ms", ":goto +40ms" }, { ":host", ":goto host" },
		{ "/sshd<Enter>", ":Debian/880" }, { "v<Esc>", "" }, { "<Esc>", "O" }, { "q", "O" },
		{ "kkkkkkkkkkjk", "kkkkkkkkkk" }, { "wsws", "ws" }, { "HH", "" },
		{ "k<Space><Space>", "k" }, { ">..,,", ">" },
		{ "?/zzz<Enter><Esc><Esc>", "" }, { "?/zzz<Esc>q", "" }, { "x/zzz<Enter>q", "" }, { "?/zzz<Enter><Esc>", "?" },
		{ ":set mingap=1ms\n3>", ":set mingap=0\n3>" }, { "FF", "" }, { "BB", "" },
	};
	for (size_t i = 0; i < COUNT(pairs); i++) {
		char *a = screen_of(pairs[i].one, &mono80), *b = screen_of(pairs[i].other, &mono80);
		/* all lines except the last, which may show a message */
		char *fa = strrchr((a[strlen(a) - 1] = '\0', a), '\n'), *fb = strrchr((b[strlen(b) - 1] = '\0', b), '\n');
		*fa = *fb = '\0';
		if (strcmp(a, b) != 0)
			fail_msg("%s and %s differ:\n%s\n%s", pairs[i].one, pairs[i].other, a, b);
		free(a);
		free(b);
	}
}

/* Gaps shorter than mingap are skipped, unless the row has no others. */
static void test_short_gaps(void **state)
{
	(void)state;
	char *s = screen_of(":set mingap=10ms\n>", &mono120);
	assert_non_null(strstr(s, "no gap of 10.0 ms or more in this row: including shorter ones"));
	assert_non_null(strstr(s, "VIRT_PREEMPTED 5.23 ms"));
	free(s);
	s = screen_of(":set mingap=1ms\n9>", &mono120);
	assert_non_null(strstr(s, "no later gap of 1.00 ms or more in this row"));
	free(s);
}

/* Without struct ui_clocks, :offset is refused. */
static void test_offset_alone(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	assert_int_equal(run(":offset Debian +3us", &mono120, &err), -1);
	assert_non_null(strstr(err.text, "clocks can be shifted only in the history opened first"));
}

/* Removes spaces and line breaks after the first line of a text. */
static char *without_spaces(char *text)
{
	char *to = text;
	for (char *c = strchr(text, '\n'); *c; c++)
		if (*c > ' ' || *c < 0)
			*to++ = *c;
	*to = '\0';
	return text;
}

/* On the smallest screen no word of the help and the legend is missing. */
static void test_help_wraps(void **state)
{
	(void)state;
	static const char *const keys[] = { "?", "L" };
	struct ui_options small = mono80, wide = mono80;
	small.height = wide.height = 400;
	small.width = 40;
	for (size_t i = 0; i < COUNT(keys); i++) {
		char *a = screen_of(keys[i], &small), *b = screen_of(keys[i], &wide);
		*strrchr(a, '#') = *strrchr(b, '#') = '\0';  /* rest of the legend, below the first screen */
		assert_string_equal(without_spaces(a), without_spaces(b));
		free(a);
		free(b);
	}
}

static void test_help_fits(void **state)
{
	(void)state;
	static const char *const keys[] = { "?", "L" };
	struct ui_options narrow = mono80, wide = mono80;
	narrow.height = wide.height = 160;
	wide.width = 200;
	for (size_t i = 0; i < COUNT(keys); i++) {
		char *a = screen_of(keys[i], &narrow), *b = screen_of(keys[i], &wide);
		*strrchr(a, '#') = *strrchr(b, '#') = '\0';  /* rest of the legend, below the first screen */
		assert_string_equal(strchr(a, '\n'), strchr(b, '\n'));
		free(a);
		free(b);
	}
}

/* The last line shows the colours of the selected row: in each theme the owners of a host CPU, and for a vCPU its own
 * wait if the theme has a separate colour for it. */
static void test_legend_of_the_row(void **state)
{
	(void)state;
	for (unsigned i = 0; theme_shipped_name(i); i++) {
		struct ui_options o = mono120;
		o.theme = theme_shipped_name(i);
		o.color = "256";
		char *host = screen_of(":host/CPU1", &o), *guest = screen_of(":Debian", &o);
		assert_non_null(strstr(host, "\n. idle h host D Debian U Ubuntu "));
		assert_null(strstr(host, "other VM"));
		assert_int_equal(strstr(guest, "! vCPU preempt ") != NULL, strncmp(o.theme, "paper", 5) == 0);
		free(host);
		free(guest);
	}
}

/* A narrow header shows the markers and their distance. */
static void test_markers_fit(void **state)
{
	(void)state;
	char *s = screen_of(":set color=never\n>w(9l)", &mono80);
	*strchr(s, '\n') = '\0';
	assert_non_null(strstr(s, "   A .1"));
	assert_non_null(strstr(s, " B .1"));
	assert_string_equal(strstr(s, " B-A "), " B-A 6.55 ms");
	free(s);
}

static void test_details(void **state)
{
	(void)state;
	static const char *const contains[] = { "VIRT_PREEMPTED", "Explanation", "burnP6", "Values at the cursor",
		"Name           critical_task", "1795176184107000000 ns", "virt-preempt 74 %" };
	char *s = screen_of(">\nx", &mono120);
	for (size_t i = 0; i < COUNT(contains); i++)
		if (!strstr(s, contains[i]))
			fail_msg("%s is missing:\n%s", contains[i], s);
	free(s);
}

static void test_cause(void **state)
{
	(void)state;
	char *s = screen_of(">[", &mono120);
	assert_non_null(strstr(s, "host/2101 burnP6"));
	free(s);
	char *back = screen_of(">[]", &mono120), *direct = screen_of(">", &mono120);
	assert_non_null(strstr(back, "Debian/3525 critical_task"));
	assert_non_null(strstr(direct, "Debian/3525 critical_task"));
	free(back);
	free(direct);
}

/* No name from a trace puts a control character on the screen, into the clipboard, or into the name of a file that X writes. */
static void test_hostile_names(void **state)
{
	(void)state;
	static const struct { const char *keys, *shown; } shown[] = {
		{ "", "evil\\e[2J" }, { "y", "evil" }, { "F<Tab>y", "copied" }, { "C<Tab>y", "copied" }, { "D<Tab>y", "copied" },
		{ "FX", "json): flow-" }, { "CX", "json): path-" }, { "bX", "json): locks-" }, { "PX", "json): gaps-" }, { "EX", "json): exits-" },
	};
	for (size_t i = 0; i < COUNT(shown); i++) {
		char keys[64];
		snprintf(keys, sizeof keys, "/evil<Enter>%s", shown[i].keys);
		char *s = screen_of(keys, &mono120), *file = strstr(s, shown[i].shown);
		assert_non_null(file);
		for (const char *c = s; *c; c++)
			assert_true(*c == '\n' || (unsigned char)*c >= ' ');
		assert_null(strstr(s, "\xe2\x80\xae"));
		file = shown[i].shown[0] == 'j' ? strchr(file, ' ') + 1 : "";
		while (isalnum((unsigned char)*file) || strchr("-._", *file ? *file : ' '))
			file++;
		assert_true(*file == '\0' || *file == ' ' || *file == '\n');
		free(s);
	}
}

/* A history without machines, and one of a single thread that never runs. */
static void test_tiny_histories(void **state)
{
	(void)state;
	static const char *const paths[] = { "/Other/Thing", "/Virtual Machines/V/Threads/7/Status" };
	for (size_t i = 0; i < COUNT(paths); i++) {
		char path[64] = "/tmp/stealscope-empty-XXXXXX", saved_world[64];
		struct error err = ERROR_INIT;
		close(mkstemp(path));
		struct history_builder *b = history_create(path, NULL, &err);
		assert_non_null(b);
		static const char *const states[] = { "UNKNOWN", "RUNNING", "BLOCKED" };
		unsigned set = history_state_set(b, "thread", states, COUNT(states));
		uint32_t attr = history_attribute(b, paths[i], HISTORY_STATE, set, &err);
		assert_int_equal(history_set(b, 5, attr, 2, &err), 0);
		assert_int_equal(history_finish(b, 5, 5, &err), 0);
		memcpy(saved_world, world, sizeof saved_world);
		memcpy(world, path, sizeof world);
		/* A filter that matches no row shows a message, and the viewer still works. */
		int status = run(">}<Enter>[]B<Esc>xqjkwsWS0^$.,ff()z\nR\nHop\nLq?q'\nG<Space><Space>y\n\\none<Enter>j\n"
		                 ">}<Enter>[]B<Esc>xqjkwsWS0.,ff()zvmopHFy\n\\none<Enter>G/7<Esc>n/7<Enter>\n:V/7", &mono80, &err);
		memcpy(world, saved_world, sizeof world);
		unlink(path);
		assert_int_equal(status, i == 0 ? -1 : 0);
	}
}

/* A thread that ran for 10 us, lost 10 us, and is unknown for 40 us: 50 % is lost, and "?" marks the share as uncertain. */
static void test_uncertain_figures(void **state)
{
	(void)state;
	char path[64] = "/tmp/stealscope-doubt-XXXXXX", saved_world[64];
	struct error err = ERROR_INIT;
	close(mkstemp(path));
	struct history_builder *b = history_create(path, NULL, &err);
	assert_non_null(b);
	static const char *const states[] = { "UNKNOWN", "RUNNING", "PREEMPTED" };
	unsigned set = history_state_set(b, "thread", states, COUNT(states));
	uint32_t attr = history_attribute(b, "/Host/Threads/7/Status", HISTORY_STATE, set, &err);
	static const struct { int64_t at, value; } change[] = { { 0, 1 }, { 10000, 2 }, { 20000, 0 } };
	for (size_t i = 0; i < COUNT(change); i++)
		assert_int_equal(history_set(b, change[i].at, attr, change[i].value, &err), 0);
	assert_int_equal(history_finish(b, 0, 59999, &err), 0);
	memcpy(saved_world, world, sizeof saved_world);
	memcpy(world, path, sizeof world);
	char *all = screen_of(":host/7\n0", &mono80), *known = screen_of(":host/7\n0^WW", &mono80),
	     *list = screen_of("O", &mono80);
	memcpy(world, saved_world, sizeof world);
	unlink(path);
	assert_non_null(strstr(all, " 50?"));
	assert_non_null(strstr(known, " 0%"));
	assert_non_null(strstr(list, " 50.0?"));
	free(all);
	free(known);
	free(list);
}

/* Random keys never crash the viewer or change the size of the screen. */
static void test_random_keys(void **state)
{
	(void)state;
	static const char keys[] = "jkhladADwsWS0^$><}{.,[]f()zvm'FRBxoHptT~Luqn/:\\?<>gG 5+-\x1b\x0d\x12\x15\x04";
	uint64_t seed = 5;
	for (int round = 0; round < 60; round++) {
		char script[400];
		struct error err = ERROR_INIT;
		size_t n = 0;
		while (n + 12 < sizeof script) {
			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			char c = keys[(seed >> 33) % (sizeof keys - 1)];
			script[n++] = c == 'q' || c == 'X' || c == ':' ? 'j' : c;
			if (seed >> 60 == 0)
				script[n++] = '\n';
		}
		script[n] = '\0';
		struct ui_options o = mono80;
		o.width = 40 + (int)(seed >> 40) % 100;
		o.height = 8 + (int)(seed >> 50) % 40;
		o.color = round % 2 ? "256" : "never";
		o.glyphs = round % 3 ? "blocks" : "ascii";
		run(script, &o, &err);
	}
}

/* Returns the output of ui_print_keys_mdoc(); the caller frees it. */
static char *keys_mdoc(void)
{
	char path[64] = "/tmp/stealscope-keys-XXXXXX";
	int fd = mkstemp(path);
	fflush(stdout);
	int was = dup(STDOUT_FILENO);
	dup2(fd, STDOUT_FILENO);
	ui_print_keys_mdoc();
	fflush(stdout);
	dup2(was, STDOUT_FILENO);
	close(was);
	close(fd);
	char *text = slurp(path);
	unlink(path);
	return text;
}

/* stealscope-view(1) contains the key table between two comments. */
static void test_man_page_has_the_keys(void **state)
{
	(void)state;
	static const char begin[] = ".\\\" keys begin\n", end[] = ".\\\" keys end\n";
	char file[512], *keys = keys_mdoc();
	const char *srcdir = getenv("srcdir");
	snprintf(file, sizeof file, "%s/man/stealscope-view.1", srcdir ? srcdir : ".");
	char *page = slurp(file), *from = page ? strstr(page, begin) : NULL, *to = page ? strstr(page, end) : NULL;
	assert_true(from && to && from < to);
	from += strlen(begin);
	if (getenv("UPDATE_SCREENS")) {
		FILE *f = fopen(file, "w");
		assert_non_null(f);
		fprintf(f, "%.*s%s%s", (int)(from - page), page, keys, to);
		fclose(f);
	} else {
		assert_int_equal((size_t)(to - from), strlen(keys));
		assert_memory_equal(from, keys, strlen(keys));
	}
	free(page);
	free(keys);
}

/* The configuration sets the options that the command line does not set. */
static void test_config_of_a_run(void **state)
{
	(void)state;
	static const char path[] = "test_ui_screens.yaml";
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs("glyphs: ascii\ncolor: never\ntime: trace\nkeys: {next-gap: e}\n", f);
	fclose(f);
	struct ui_options plain = { .config = path }, loud = { .config = path, .glyphs = "blocks", .color = "256" };
	char *s = screen_of("e", &plain);
	assert_non_null(strstr(s, "trace, s"));
	assert_non_null(strstr(s, "burnP6"));
	assert_non_null(strstr(s, "e gap"));
	for (const char *c = s; *c; c++)
		assert_true((unsigned char)*c < 0x80);
	free(s);
	s = screen_of("e", &loud);
	assert_non_null(strstr(s, "\xe2\x96\x8f"));
	free(s);
	remove(path);
}

static void test_script_errors(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	assert_int_equal(run("j\n:theme nowhere\n", &mono80, &err), -1);
	assert_non_null(strstr(err.text, ":2: "));
	err = (struct error)ERROR_INIT;
	assert_int_equal(run(":screen /nowhere/at/all\n", &mono80, &err), -1);
	assert_non_null(strstr(err.text, "/nowhere/at/all: No such file"));
	struct ui_options o = mono80;
	o.color = "17";
	assert_int_equal(run("", &o, &err), -1);
	assert_int_equal(err.status, STATUS_USAGE);
	o = mono80;
	o.glyphs = "runes";
	assert_int_equal(run("", &o, &err), -1);
	assert_int_equal(run("Q\n:theme nowhere\n", &mono80, &err), 0);
	static const char *const fail[] = { ":search nowhere", ":search", ":zoom 1ms\n:diff", "0\n:diff" };
	for (size_t i = 0; i < COUNT(fail); i++)
		assert_int_equal(run(fail[i], &mono80, &err), -1);
}

int main(int argc, char **argv)
{
	setlocale(LC_ALL, "C.UTF-8");
	if (argc > 2 && strcmp(argv[1], "--world") == 0) {
		ui_world_write(argv[2], argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 0);
		return 0;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_minute),
		cmocka_unit_test(test_tiers_and_sizes),
		cmocka_unit_test(test_panes_and_lists),
		cmocka_unit_test(test_ways_to_the_same_place),
		cmocka_unit_test(test_short_gaps), cmocka_unit_test(test_offset_alone),
		cmocka_unit_test(test_help_fits), cmocka_unit_test(test_help_wraps), cmocka_unit_test(test_legend_of_the_row),
		cmocka_unit_test(test_markers_fit),
		cmocka_unit_test(test_details),
		cmocka_unit_test(test_cause),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_tiny_histories), cmocka_unit_test(test_uncertain_figures),
		cmocka_unit_test(test_random_keys),
		cmocka_unit_test(test_man_page_has_the_keys),
		cmocka_unit_test(test_config_of_a_run),
		cmocka_unit_test(test_script_errors),
	};
	return cmocka_run_group_tests_name("ui screens", tests, write_world, remove_world);
}
