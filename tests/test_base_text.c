/* base/text: escapes, widths, lines, shortened names. */
#include "test.h"

#include <locale.h>

#include "base/mem.h"
#include "base/text.h"

/* Long names are cut at a character, and stay different. */
static void test_cut_names(void **state)
{
	(void)state;
	static const char *const unit[] = { "a", "\xc3\xa4", "\xe4\xb8\xad", "\xf0\x9f\x98\x80" };
	char text[600], cut[64], other[64];
	for (size_t u = 0; u < sizeof unit / sizeof *unit; u++) {
		for (size_t head = 0; head < 5; head++) {
			memset(text, 'x', head);
			text[head] = '\0';
			while (strlen(text) < 200) {
				assert_ptr_equal(text_cut(cut, sizeof cut, text), cut);
				assert_true(strlen(cut) < sizeof cut);
				assert_int_equal(strcmp(cut, text) == 0, strlen(text) < sizeof cut);
				for (size_t i = 0, n; cut[i]; i += n) {
					uint32_t c;
					n = text_decode(cut + i, &c);
					assert_true(n > 0);
				}
				memcpy(text + strlen(text), unit[u], strlen(unit[u]) + 1);
				assert_string_not_equal(text_cut(other, sizeof other, text), cut);
			}
		}
	}
}

static void test_escape(void **state)
{
	(void)state;
	static const struct { const char *raw, *want; } cases[] = {
		{ "", "" },
		{ "burnP6", "burnP6" },
		{ "a\nb\tc\rd", "a\\nb\\tc\\rd" },
		{ "\033[2Jx", "\\e[2Jx" },
		{ "\x01\x7f", "\\x01\\x7f" },
		{ "\xc2\x9b" "31m", "\\u{9b}31m" },              /* C1 CSI */
		{ "\xe2\x80\xae" "evil", "\\u{202e}evil" },       /* right-to-left override */
		{ "\xff\xfe", "\\xff\\xfe" },
		{ "\\e[2J", "\\\\e[2J" },                        /* must differ from an escaped ESC */
		{ "\xc0\xaf", "\\xc0\\xaf" },                     /* overlong '/' */
		{ "\xed\xa0\x80", "\\xed\\xa0\\x80" },            /* surrogate */
		{ "d\xc3\xa9j\xc3\xa0", "d\xc3\xa9j\xc3\xa0" },
		{ "\xf0\x9f\x90\xa7", "\xf0\x9f\x90\xa7" },
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char escaped[64];
		assert_string_equal(text_escape(escaped, sizeof escaped, cases[i].raw), cases[i].want);
	}
	char small[5];
	assert_string_equal(text_escape(small, sizeof small, "ab\033\033"), "ab\\e");
	assert_string_equal(text_escape(small, sizeof small, "ab\xe4\xb8\xad"), "ab");
	char once[64], twice[64];
	assert_string_equal(text_sanitize(once, sizeof once, "\033a\\b\xff"), "\\ea\\b\\xff");
	assert_string_equal(text_sanitize(twice, sizeof twice, once), once);
}

static void test_width(void **state)
{
	(void)state;
	assert_int_equal(text_width("abc"), 3);
	assert_int_equal(text_width("\xe4\xb8\xad\xe6\x96\x87"), 4);
	assert_int_equal(text_fit("\xe4\xb8\xad\xe6\x96\x87", 3), 3);
	assert_int_equal(text_fit("abc", 2), 2);
}

/* Lines break at spaces, but not between a number and its unit. */
static void test_line(void **state)
{
	(void)state;
	static const struct { const char *text; int cells; size_t line; } cases[] = {
		{ "one two", 7, 7 }, { "one two", 6, 3 }, { "one two", 3, 3 }, { "onetwo", 4, 4 }, { "", 4, 0 },
		{ "it: 5.35 ms (83.3 %)", 20, 20 }, { "it: 5.35 ms (83.3 %)", 19, 11 }, { "it: 5.35 ms (83.3 %)", 10, 3 },
		{ "12 ms", 4, 4 }, { "x 12 msec", 5, 4 }, { "x v12 ms", 6, 5 },
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(text_line_bytes(cases[i].text, cases[i].cells), cases[i].line);
}

/* text_shorten() never returns more cells than asked for nor more bytes than before, does not change text that fits, and
 * shows each cut by a '~'. */
static void test_cut(void **state)
{
	(void)state;
	static const char *const names[] = { "", "a", "burnP6", "Debian/151 fibonacci", "hypervisor for Debian/102 beacon",
		"production-database.example.com/vCPU12", "/sys/fs/cgroup/machine.slice/unit12345",
		"\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e/151 x", "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e-\xe6\x97\xa5\xe6\x9c\xac",
		"1234567890" };
	for (size_t i = 0; i < COUNT(names); i++)
		for (int w = -3; w < 50; w++) {
			char *text = mem_dup(names[i]);
			assert_ptr_equal(text_shorten(text, w), text);
			assert_in_range(text_width(text), 0, w > 0 ? w : 0);
			assert_true(strlen(text) <= strlen(names[i]));
			if (w >= text_width(names[i]))
				assert_string_equal(text, names[i]);
			else if (w > 0)
				assert_non_null(strchr(text, '~'));
			free(text);
		}
	char vcpu[] = "production-database.example.com/vCPU12";
	assert_string_equal(text_shorten(vcpu, 12), "pro~/vCPU12");
}

/* The vCPU of a machine keeps its number. If its name is cut before it, name and '~' fill the rest of the cells; one cell is
 * left over at the one width at which the name would end with two of them. */
static void test_cut_vcpus(void **state)
{
	int filled = 0;
	(void)state;
	for (size_t len = 1; len < 40; len++)
		for (int number = 0; number < 200; number += 33) {
			int shorter = 0;
			for (int w = 9; w < 50; w++) {
				char vcpu[16], text[64];
				snprintf(vcpu, sizeof vcpu, "/vCPU%d", number);
				memset(text, 'm', len);
				snprintf(text + len, sizeof text - len, "%s", vcpu);
				const char *at = strstr(text_shorten(text, w), vcpu);
				assert_non_null(at);
				assert_string_equal(at, vcpu);
				if (at > text && at[-1] == '~') {
					assert_in_range(text_width(text), w - 1, w);
					shorter += text_width(text) < w;
					filled++;
				}
			}
			assert_in_range(shorter, 0, 1);
		}
	assert_true(filled > 100);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut_names), cmocka_unit_test(test_escape), cmocka_unit_test(test_width), cmocka_unit_test(test_line),
		cmocka_unit_test(test_cut), cmocka_unit_test(test_cut_vcpus),
	};
	setlocale(LC_ALL, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
