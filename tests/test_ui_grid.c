/* Tests of ui/: text in cells, clipping, and the screen as a file. */
#include "test.h"

#include <locale.h>

#include "base/text.h"
#include "ui/terminal/screen_file.h"
#include "ui/terminal/screen.h"
#include "ui_row.h"

/* A number that does not fit completely is not drawn: "14.2 m" instead of "14.2 ms" would be wrong. */
static void test_screen_phrases(void **state)
{
	(void)state;
	struct screen s = { 0 };
	struct style plain = { -1, -1, 0 };
	char text[81];
	static const char *const whole = "max 14.2 ms  p50 1 us  p90 2 ms";
	static const struct { int width; const char *shown; } widths[] = {
		{ 31, "max 14.2 ms  p50 1 us  p90 2 ms" }, { 30, "max 14.2 ms  p50 1 us" }, { 21, "max 14.2 ms  p50 1 us" },
		{ 20, "max 14.2 ms" }, { 11, "max 14.2 ms" }, { 10, "" },
	};
	for (size_t i = 0; i < COUNT(widths); i++) {
		screen_resize(&s, 80, 1);
		screen_fill(&s, 0, 0, 80, ' ', plain);
		assert_int_equal(screen_phrases(&s, 0, 0, widths[i].width, plain, whole), strlen(widths[i].shown));
		row_text(&s, text);
		assert_string_equal(text, widths[i].shown);
	}
	screen_release(&s);
}

/* "Debian/149 reqserver" is not clipped to "Debian/14", which would be another thread. */
static void test_screen_cut_number(void **state)
{
	(void)state;
	struct screen s = { 0 };
	struct style plain = { -1, -1, 0 };
	char text[81];
	static const struct { int width; const char *shown; } widths[] = {
		{ 20, "Debian/149 reqserver" }, { 12, "Debian/149 r" }, { 10, "Debian/149" }, { 9, "Debian/1~" }, { 8, "Debian/~" },
		{ 7, "Debian/" },
	};
	for (size_t i = 0; i < COUNT(widths); i++) {
		screen_resize(&s, 80, 1);
		screen_fill(&s, 0, 0, 80, ' ', plain);
		screen_text(&s, 0, 0, widths[i].width, plain, "Debian/149 reqserver");
		row_text(&s, text);
		assert_string_equal(text, widths[i].shown);
	}
	static const struct { int width; const char *shown; } decimals[] = {
		{ 10, "in 25.0 ms" }, { 9, "in 25.0 m" }, { 7, "in 25.0" }, { 6, "in 25~" }, { 5, "in 2~" }, { 4, "in ~" },
		{ 3, "in" },
	};
	for (size_t i = 0; i < COUNT(decimals); i++) {
		screen_resize(&s, 80, 1);
		screen_text(&s, 0, 0, decimals[i].width, plain, "in 25.0 ms");
		row_text(&s, text);
		assert_string_equal(text, decimals[i].shown);
	}
	screen_release(&s);
}

/* The machine's name is shortened; the rest of the text stays. */
static void test_squeeze(void **state)
{
	(void)state;
	static const struct { const char *text; int w; const char *squeezed; } cases[] = {
		{ "instance-0000002f/151 nginx", 27, "instance-0000002f/151 nginx" },
		{ "instance-0000002f/151 nginx", 26, "ins~2f/151 nginx" }, { "instance-0000002f/151 nginx", 9, "ins~2f/151 nginx" },
		{ "Debian/151 fibonacci", 12, "Debian/151 fibonacci" }, { "host softirq/1-TIMER", 12, "host softirq/1-TIMER" },
		{ "16 gaps of instance-0000002f/151 nginx in 2 s", 40, "16 gaps of ins~2f/151 nginx in 2 s" },
		{ "hypervisor for instance-0000002f/151 nginx", 9, "hypervisor for ins~2f/151 nginx" },
		{ "path of host softirq/1-TIMER", 12, "path of host softirq/1-TIMER" },
		{ "instance-0000002f", 9, "instance-0000002f" }, { "", 0, "" }, { "/7", 0, "/7" },
		{ "\xe4\xb8\xad\xe6\x96\x87\xe4\xb8\xad\xe6\x96\x87/7", 9, "\xe4\xb8\xad~\xe6\x96\x87/7" },
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char text[64];
		snprintf(text, sizeof text, "%s", cases[i].text);
		assert_string_equal(text_shorten_machine(text, cases[i].w), cases[i].squeezed);
	}
	static const struct { uint64_t n, all; const char *says; } parts[] = {
		{ 0, 0, "any vCPU" }, { 1, 1, "the only vCPU" }, { 5, 5, "all 5 vCPUs" }, { 2, 5, "2 of 5 vCPUs" },
		{ 1, 5, "1 of 5 vCPUs" }, { 0, 1, "0 of 1 vCPU" },
	};
	char part[64], share[16];
	for (size_t i = 0; i < COUNT(parts); i++)
		assert_string_equal(text_count_of_all(part, parts[i].n, parts[i].all, "vCPU"), parts[i].says);
	assert_string_equal(text_share(share, 0.000499), "<0.1%");
	assert_string_equal(text_share(share, 0.0005), "0.1%");
}

static char *dump(const struct screen *s)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	screen_dump(s, f);
	fclose(f);
	return text;
}

static char *painted(const struct screen *s, enum paint format)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	paint_screen(s, format, false, "a <b> & \"c\"", f);
	fclose(f);
	return text;
}

static void test_screen(void **state)
{
	(void)state;
	struct screen s = { 0 };
	struct style plain = { -1, -1, 0 };
	screen_resize(&s, 8, 2);
	assert_int_equal(screen_text(&s, 1, 0, 5, plain, "a\xe4\xb8\xad\xe6\x96\x87z"), 5);
	assert_int_equal(screen_text(&s, 6, 1, 9, plain, "\xe4\xb8\xad\xe6\x96\x87"), 2);
	assert_int_equal(screen_text(&s, 7, 0, 9, plain, "\xe4\xb8\xad"), 0);
	char *text = dump(&s);
	assert_string_equal(text, " a\xe4\xb8\xad\xe6\x96\x87\n      \xe4\xb8\xad\n");
	free(text);
	screen_put(&s, 3, 0, '!', plain);  /* the right half of a wide character disappears with its left half */
	screen_put(&s, -1, 0, '!', plain);
	screen_put(&s, 0, 2, '!', plain);
	screen_text(&s, 0, 1, 8, plain, "\033[2Je\xcc\x81");
	text = dump(&s);
	assert_string_equal(text, " a !\xe6\x96\x87\n?[2Je\xcc\x81 \xe4\xb8\xad\n");
	free(text);
	screen_release(&s);
}

/* Combining characters are stored with their base character: "Ubu\u0308ntu" and "Ubuntu" are two machines. */
static void test_screen_marks(void **state)
{
	(void)state;
	struct screen s = { 0 };
	struct style plain = { -1, -1, 0 };
	screen_resize(&s, 8, 1);
	/* a wide character, which takes two columns, and a combining character */
	assert_int_equal(screen_text(&s, 0, 0, 4, plain, "u\xcc\x88n\xe3\x81\x8b\xe3\x82\x99z"), 4);
	char *text = dump(&s);
	assert_string_equal(text, "u\xcc\x88n\xe3\x81\x8b\xe3\x82\x99\n");
	free(text);
	screen_put(&s, 0, 0, 'o', plain);     /* replacing a character removes its combining characters */
	screen_put(&s, 3, 0, '!', plain);
	screen_text(&s, 5, 0, 3, plain, "\xcc\x81" "e\xcc\x81\xcc\x82\xcc\x83\xcc\x84\xcc\x85\xef\xb8\x8f");
	text = dump(&s);                      /* no more combining characters than a terminal shows, and no variation
	                                       * selectors */
	assert_string_equal(text, "on ! e\xcc\x81\xcc\x82\xcc\x83\xcc\x84\n");
	free(text);
	for (enum paint p = PAINT_HTML; p <= PAINT_SVG; p++) {
		text = painted(&s, p);
		assert_non_null(strstr(text, "e&#769;&#770;&#771;&#772;"));
		free(text);
	}
	screen_release(&s);
	char name[] = "abcde\xcc\x81" "fg/1 x";
	assert_string_equal(text_shorten_machine(name, 9), "abc~fg/1 x");
}

/* Pictures: bars have the right height and visible colours; names from traces are escaped. */
static void test_pictures(void **state)
{
	(void)state;
	struct screen s = { 0 };
	screen_resize(&s, 6, 1);
	screen_put(&s, 0, 0, 0x2582, (struct style){ 16, 231, 0 });               /* two eighths from below, black on white */
	screen_put(&s, 1, 0, 0x258d, (struct style){ 16, 231, ATTR_REVERSE });    /* three eighths from the left, reversed */
	screen_put(&s, 2, 0, ' ', (struct style){ -1, 196, 0 });
	screen_text(&s, 3, 0, 3, (struct style){ -1, -1, ATTR_BOLD }, "<&\"");
	char *svg = painted(&s, PAINT_SVG), *html = painted(&s, PAINT_HTML), *text = painted(&s, PAINT_TEXT);
	static const char *const in_svg[] = { "<title>a &lt;b&gt; &amp; &quot;c&quot;</title>",
		"<rect x=\"0\" y=\"12.75\" width=\"8\" height=\"4.25\" fill=\"#000000\"/>",
		"<rect x=\"8\" y=\"0\" width=\"8\" height=\"17\" fill=\"#000000\"/>",
		"<rect x=\"8\" y=\"0\" width=\"3\" height=\"17\" fill=\"#ffffff\"/>",
		"<rect x=\"16\" y=\"0\" width=\"8\" height=\"17\" fill=\"#ff0000\"/>",
		"font-weight=\"bold\">&lt;&amp;&quot;</text>" };
	for (size_t i = 0; i < COUNT(in_svg); i++)
		if (!strstr(svg, in_svg[i]))
			fail_msg("no %s in\n%s", in_svg[i], svg);
	assert_non_null(strstr(html, "font-weight:bold\">&lt;&amp;&quot;</span>"));
	assert_non_null(strstr(html, "color:#ffffff;background:#000000\">&#9613;</span>"));
	assert_string_equal(text, "\xe2\x96\x82\xe2\x96\x8d <&\"\n");
	assert_int_equal(paint_format_of("a.svg"), PAINT_SVG);
	assert_int_equal(paint_format_of("a.svg.txt"), PAINT_TEXT);
	assert_int_equal(paint_format_of("a.html!"), PAINT_HTML);
	free(svg);
	free(html);
	free(text);
	screen_release(&s);
}

int main(void)
{
	setlocale(LC_ALL, "C.UTF-8");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_screen_phrases),
		cmocka_unit_test(test_screen_cut_number),
		cmocka_unit_test(test_squeeze),
		cmocka_unit_test(test_screen),
		cmocka_unit_test(test_screen_marks),
		cmocka_unit_test(test_pictures),
	};
	return cmocka_run_group_tests_name("ui grid", tests, NULL, NULL);
}
