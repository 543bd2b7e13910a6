/* base/: text, time, maps, strings, notes, errors. */
#include "test.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/error.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/notes.h"
#include "base/order.h"
#include "base/rank_select.h"
#include "base/states.h"
#include "base/strtab.h"
#include "base/suggest.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "base/tournament.h"
#include "base/vcpu_name.h"

static void test_suggest(void **state)
{
	(void)state;
	static const struct { const char *a, *b; size_t distance; } cases[] = {
		{ "", "", 0 }, { "gaps", "gaps", 0 }, { "gasp", "gaps", 1 }, { "GAPS", "gaps", 0 }, { "gap", "gaps", 1 },
		{ "kitten", "sitting", 3 }, { "", "abc", 3 }, { "abc", "", 3 }, { "flow", "steal", 5 }, { "ca", "abc", 3 },
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(suggest_distance(cases[i].a, cases[i].b, 9), cases[i].distance);
		assert_int_equal(suggest_distance(cases[i].b, cases[i].a, 9), cases[i].distance);
		assert_int_equal(suggest_distance(cases[i].a, cases[i].b, 2), cases[i].distance > 2 ? 3 : cases[i].distance);
	}
	struct suggestion s = SUGGESTION("stael"), none = SUGGESTION("xyz");
	static const char *const words[] = { "stall", "steal", "still" };
	for (size_t i = 0; i < COUNT(words); i++) {
		suggest(&s, words[i]);
		suggest(&none, words[i]);
	}
	assert_string_equal(s.nearest, "stall");  /* as near as "steal", but offered first */
	assert_null(none.nearest);
}

/* Commands in messages can be pasted: FILE is replaced by the name of the file, quoted where a shell needs it. */
static void test_commands(void **state)
{
	(void)state;
	static const struct { const char *text, *file, *expected; } cases[] = {
		{ "Look at it (stealscope gaps FILE Debian).\nor (stealscope info FILE): x", "a.steal",
		  "Look at it (stealscope gaps a.steal Debian).\nor (stealscope info a.steal): x" },
		{ "(stealscope flow FILE 'my VM)/1')", "it's FILE", "(stealscope flow 'it'\\''s FILE' 'my VM)/1')" },
		{ "no FILE (stealscope exits)", "x", "no FILE (stealscope exits)" },
		{ "(stealscope gaps FILE)", NULL, "(stealscope gaps FILE)" },
		{ "", "x", "" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *result = text_insert_file_name(cases[i].text, cases[i].file);
		assert_string_equal(result, cases[i].expected);
		free(result);
	}
}

static void test_duration(void **state)
{
	(void)state;
	static const struct { int64_t ns; const char *want; } cases[] = {
		{ 0, "0 ns" }, { 1, "1 ns" }, { 999, "999 ns" }, { 1000, "1.00 us" }, { 5210000, "5.21 ms" },
		{ 29300000, "29.3 ms" }, { 999999999, "1.00 s" }, { 999400000, "999 ms" }, { -1500, "-1.50 us" },
		{ 86400000000000, "86400 s" }, { INT64_MIN, "-9223372037 s" },
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char buf[TIME_TEXT];
		assert_string_equal(time_duration(buf, cases[i].ns), cases[i].want);
	}
}

static void test_parse_time(void **state)
{
	(void)state;
	const int64_t begin = 1795152647842459259, end = begin + 7000000000;
	static const struct { const char *text; int64_t from_begin; } good[] = {
		{ "+3ms", 3000000 }, { "12.5s", 12500000000 }, { "50%", 3500000000 }, { "0%", 0 }, { "100%", 7000000000 },
		{ "2026-11-20 05:30:48 +0000", 157540741 }, { "2026-11-20 06:30:48.5 +0100", 657540741 },
		{ "2026-11-21 00:00 +0000", 66552157540741 }, { "2026-11-19 20:30:48 -0900", 157540741 },
		{ "2026-11-20T05:30:48Z", 157540741 }, { "2026-11-20T05:30:48.5Z", 657540741 },
		{ "2026-11-20 05:30:48 Z", 157540741 }, { "2026-11-20T06:30:48+01:00", 157540741 },
		{ "2026-11-19T20:30:48.157540742-0900", 315081483 }, { "2026-11-21T00:00Z", 66552157540741 },
		{ "-1us", 7000000000 - 1000 }, { "1795152647842459260", 1 }, { "-7s", 0 }, { "1795152647000000000", -842459259 },
		{ "+0.000000001s", 1 }, { "1.5 ms", 1500000 },
	};
	for (size_t i = 0; i < COUNT(good); i++) {
		int64_t t;
		assert_true(time_parse(good[i].text, begin, end, &t));
		assert_int_equal(t - begin, good[i].from_begin);
	}
	static const char *const bad[] = { "", "x", "3parsec", "5%%", "1e3", "25:00", "12:60", "12:00:00x",
		"99999999999999999999", "99999999999999s", "-", "+3", "-3", "1.5", "50", "1795152647", "1795152647842",
		"2026-11-20", "2026-02-30 12:03", "2026-13-01 12:03", "26-11-20 12:03", "2026-11-20 25:00", "12:03 +01",
		"12:03 0100", "12:03 +0100x", "12:03:04 ", "9999-12-31 12:03", "2026-11-20T", "2026-11-20T12", "2026-11-20TT12:03",
		"2026-11-20T12:03ZZ", "2026-11-20T12:03Z+01:00", "2026-11-20T12:03+1:00", "2026-11-20T12:03+01",
		"2026-11-20T12:03+01:000", "2026-11-20T12:03+24:00", "2026-11-20T12:03+00:60", "2026-02-30T12:03" };
	for (size_t i = 0; i < COUNT(bad); i++) {
		int64_t t;
		assert_false(time_parse(bad[i], begin, end, &t));
	}
}

/* time_parse_duration() refuses numbers without a unit (except 0); for offsets of clocks they are ns. */
static void test_units(void **state)
{
	(void)state;
	int64_t ns;
	static const char *const bare[] = { "3", "-3", "+3", "3.5", "3 " };
	for (size_t i = 0; i < COUNT(bare); i++) {
		assert_false(time_parse_duration(bare[i], &ns));
		assert_true(time_parse_offset(bare[i], &ns));
	}
	assert_true(time_parse_duration("0", &ns) && ns == 0);
	assert_true(time_parse_duration("3 ns", &ns) && ns == 3);
	assert_true(time_parse_duration("-2.5us", &ns) && ns == -2500);
}

static void test_time_precision(void **state)
{
	(void)state;
	static const struct { const char *text; int64_t ns; } cases[] = {
		{ "12:03", 60000000000 }, { "12:03:04", 1000000000 }, { "12:03:04.5", 100000000 },
		{ "2026-11-20 12:03:04.5 +0100", 100000000 }, { "12:03:04.1139", 100000 },
		{ "2026-11-20T12:03:04.5Z", 100000000 }, { "2026-11-20T12:03+01:00", 60000000000 },
		{ "12:03:04-01:00", 1000000000 }, { "12:03:04.123456789", 1 }, { "12:03:04.1234567891", 1 },
		{ "1795152647842459260", 1 }, { "+3.5ms", 1 }, { "50%", 1 },
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(time_precision(cases[i].text), cases[i].ns);
}

static void test_time_of_day_round_trip(void **state)
{
	(void)state;
	const int64_t begin = 1795152647842459259;
	for (int64_t off = 0; off < 20; off++) {
		char buf[TIME_TEXT];
		int64_t t;
		time_clock(buf, begin + off * 123456789, 9);
		assert_true(time_parse(buf, begin, begin, &t));
		assert_int_equal(t, begin + off * 123456789);
		time_date(buf, begin + off * 99999 * INT64_C(123456789), 9);
		assert_true(time_parse(buf, begin, begin, &t));
		assert_int_equal(t, begin + off * 99999 * INT64_C(123456789));
	}
}

/* Compares a map with a plain array, through growth and removal. */
static void test_map(void **state)
{
	(void)state;
	enum { N = 4096 };
	struct map m = MAP_INIT;
	uint64_t want[N] = { 0 }, seed = 1;
	for (int step = 0; step < 60000; step++) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		uint64_t key = seed >> 52;
		if (seed >> 20 & 1) {
			want[key] = (uint64_t)step + 1;
			*map_put(&m, key << 32, NULL) = want[key];
		} else {
			assert_int_equal(map_remove(&m, key << 32), want[key] != 0);
			want[key] = 0;
		}
	}
	size_t present = 0;
	for (uint64_t key = 0; key < N; key++) {
		uint64_t *v = map_find(&m, key << 32);
		assert_int_equal(v ? *v : 0, want[key]);
		present += v != NULL;
	}
	assert_int_equal(m.len, present);
	size_t at = 0, walked = 0;
	uint64_t key, value;
	while (map_each(&m, &at, &key, &value)) {
		assert_int_equal(value, want[key >> 32]);
		walked++;
	}
	assert_int_equal(walked, present);
	map_release(&m);
}

static void test_strtab(void **state)
{
	(void)state;
	struct strtab t;
	strtab_init(&t);
	assert_int_equal(strtab_put(&t, ""), 0);
	assert_int_equal(strtab_put(&t, NULL), 0);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 1000; i++) {
			char name[16];
			snprintf(name, sizeof name, "n%d", i);
			assert_int_equal(strtab_put(&t, name), i + 1);
			assert_string_equal(strtab_get(&t, (uint32_t)i + 1), name);
		}
	}
	assert_string_equal(strtab_get(&t, 99999), "");
	char longer[1000];
	memset(longer, 'x', sizeof longer - 1);
	longer[sizeof longer - 1] = '\0';
	assert_int_equal(strlen(strtab_get(&t, strtab_put(&t, longer))), STRTAB_MAX);
	strtab_release(&t);
}

/* Equal notes of several machines become one text. */
static void test_notes_together(void **state)
{
	(void)state;
	char text[NOTE_TEXT], name[8];
	struct notes n = { 0 };
	notes_add_at(&n, NOTE_KIND_LIMIT, "host", INT64_MIN, INT64_MAX, "it has no wakeups");
	notes_add_at(&n, NOTE_KIND_LIMIT, "Debian", INT64_MIN, INT64_MAX, "it has no forks");
	notes_add_at(&n, NOTE_KIND_LIMIT, "De\nbian", INT64_MIN, INT64_MAX, "it has no wakeups");
	notes_add_at(&n, NOTE_KIND_LIMIT, "host", INT64_MIN, INT64_MAX, "it has no wakeups");
	notes_add_at(&n, NOTE_KIND_LIMIT, NULL, INT64_MIN, INT64_MAX, "it has no wakeups");
	assert_string_equal(notes_text(&n, 0, text), "host, De\\nbian (each): it has no wakeups");
	assert_string_equal(notes_text(&n, 1, text), "Debian: it has no forks");
	assert_null(notes_text(&n, 2, text));
	assert_null(notes_text(&n, 3, text));
	assert_string_equal(notes_text(&n, 4, text), "it has no wakeups");
	for (int i = 0; i < 64; i++) {
		snprintf(name, sizeof name, "vm%02d", i);
		notes_add_at(&n, NOTE_KIND_LIMIT, name, INT64_MIN, INT64_MAX, "it has no forks");
		assert_null(notes_text(&n, n.len - 1, text));
	}
	assert_string_equal(notes_text(&n, 1, text), "Debian, vm00, vm01, vm02 and 61 more (each): it has no forks");
	notes_add_at(&n, NOTE_KIND_LIMIT, "Debian", 1, 2, "it has no wakeups");  /* a note on a part of the machine's time */
	assert_string_equal(notes_text(&n, n.len - 1, text), "Debian: it has no wakeups");
	notes_release(&n);
}

/* Notes survive packing and unpacking, hostile names included; truncated bytes give only complete notes. */
static void test_notes(void **state)
{
	(void)state;
	char text[NOTE_TEXT];
	struct notes n = { 0 }, back = { 0 };
	notes_add_at(NULL, NOTE_KIND_LOSS, "nobody", INT64_MIN, INT64_MAX, "listens");
	notes_add_at(&n, NOTE_KIND_LOSS, "De\nbian\t", INT64_MIN, INT64_MAX, "lost %d events", 3);
	notes_add_at(&n, NOTE_KIND_CLOCK, NULL, -5, 7, "stepped");
	notes_add_at(&n, NOTE_KIND_INFO, "host", 1, 2, "is %s", "\033[2J");
	size_t size;
	char *bytes = notes_pack(&n, &size);
	assert_true(notes_unpack(&back, bytes, size));
	assert_int_equal(back.len, n.len);
	for (size_t i = 0; i < n.len; i++) {
		assert_int_equal(back.item[i].kind, n.item[i].kind);
		assert_true(back.item[i].from == n.item[i].from && back.item[i].to == n.item[i].to);
		assert_string_equal(back.item[i].text, n.item[i].text);
		assert_true((back.item[i].machine == NULL) == (n.item[i].machine == NULL));
	}
	assert_string_equal(back.item[0].machine, "De\nbian\t");
	assert_string_equal(note_text(&n.item[0], text), "De\\nbian\\t: lost 3 events");
	assert_string_equal(note_text(&n.item[1], text), "stepped");
	assert_string_equal(note_text(&n.item[2], text), "host: is \\e[2J");
	assert_true(note_is_warning(&n.item[0], 0, 0) && !note_is_warning(&n.item[2], 1, 2));
	assert_true(note_is_warning(&n.item[1], 7, 9) && note_is_warning(&n.item[1], -9, -5));
	assert_true(!note_is_warning(&n.item[1], 8, 9) && !note_is_warning(&n.item[1], -9, -6));
	notes_rename(&n, "host", "hv01");
	assert_string_equal(n.item[2].machine, "hv01");
	notes_release(&back);
	for (size_t cut = 0; cut < size; cut++) {
		char *part = malloc(cut + 1);
		memcpy(part, bytes, cut);
		bool whole = notes_unpack(&back, part, cut);
		assert_true(back.len < n.len && (whole ? back.len == 0 || bytes[cut - 1] == '\0' : true));
		notes_release(&back);
		free(part);
	}
	free(bytes);
	notes_release(&n);
}

static void test_error_chain(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	assert_int_equal(error_set(&err, STATUS_INPUT, "give a folder", "%s: not a trace", "a\033b"), -1);
	assert_string_equal(err.text, "a\\eb: not a trace");
	error_wrap(&err, "guest %s", "Debian");
	assert_string_equal(err.text, "guest Debian: a\\eb: not a trace");
	assert_string_equal(err.remedy, "give a folder");
	assert_int_equal(err.status, STATUS_INPUT);
	/* Text that does not fit is cut off the innermost cause. */
	for (int i = 0; i < 300; i++)
		error_wrap(&err, "part %d", i);
	assert_ptr_equal(strstr(err.text, "part 299: part 298: "), err.text);
	assert_int_equal(strlen(err.text), sizeof err.text - 1);
	error_wrap(&err, "%02000d", 7);
	assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

static void test_states_have_names(void **state)
{
	(void)state;
	for (int i = 0; i < VCPU_STATE_COUNT; i++)
		assert_non_null(vcpu_state_name[i]);
	assert_string_equal(vcpu_state_name[VCPU_HOST_BLOCKED], "HOST_BLOCKED");
	assert_string_equal(thread_state_name[THREAD_VIRT_PREEMPTED], "VIRT_PREEMPTED");
}

/* time_exact() loses no digit: the text parses to the same time. */
static void test_time_exact(void **state)
{
	(void)state;
	static const struct { int64_t ns; const char *text; } cases[] = {
		{ 0, "0" }, { 1, "+1 ns" }, { -1500, "-1500 ns" }, { 3000, "+3 us" }, { -2000000, "-2 ms" },
		{ 90000000000, "+90 s" }, { 3600000000000, "+1 h" }, { 1000000001, "+1000000001 ns" },
		{ INT64_MIN + 1, "-9223372036854775807 ns" },
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char text[TIME_TEXT];
		int64_t ns;
		assert_string_equal(time_exact(text, cases[i].ns), cases[i].text);
		assert_true(time_parse_duration(text, &ns));
		assert_int_equal(ns, cases[i].ns);
	}
}

/* Merges streams of random lengths with few distinct times: the tournament always returns the earliest element, the
 * first stream among equals. */
static void test_tournament(void **state)
{
	(void)state;
	enum { STREAMS = 9, STEPS = 20 };
	srand(7);
	for (size_t n = 0; n <= STREAMS; n++) {
		for (int round = 0; round < 50; round++) {
			struct contender next[STREAMS];
			int remaining[STREAMS], steps = 0;
			for (size_t i = 0; i < n; i++) {
				remaining[i] = rand() % STEPS;
				steps += remaining[i];
				next[i] = remaining[i] ? (struct contender){ rand() % 8, i } :
				                         (struct contender){ INT64_MAX, i | TOURNAMENT_ENDED };
			}
			struct tournament m;
			tournament_open(&m, next, n);
			for (; m.len; steps--) {
				size_t first = n;
				for (size_t i = 0; i < n; i++)
					if (remaining[i] && (first == n || next[i].t < next[first].t))
						first = i;
				assert_int_equal(m.first.stream, first);
				assert_true(m.first.t == next[first].t);
				next[first].t = rand() % 16 && next[first].t < INT64_MAX ? next[first].t + rand() % 4 : INT64_MAX;
				if (--remaining[first])
					tournament_next(&m, next[first].t);
				else
					tournament_leave(&m);
			}
			assert_int_equal(steps, 0);
			tournament_close(&m);
		}
	}
}

static int compare_int64(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* Every rank of arrays with equal, ascending, descending and random values, as in the sorted array; the values on both
 * sides of the rank are on the right side. */
static void test_rank_select(void **state)
{
	enum { N = 300 };
	int64_t value[N], sorted[N];
	uint64_t seed = 1;
	(void)state;
	for (int kind = 0; kind < 5; kind++)
		for (size_t n = 1; n <= N; n += n < 40 ? 1 : 37)
			for (size_t rank = 0; rank < n; rank += n < 40 ? 1 : 7) {
				for (size_t i = 0; i < n; i++) {
					seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
					const int64_t random = (int64_t)(seed >> 33);
					value[i] = kind == 0 ? 7 : kind == 1 ? (int64_t)i : kind == 2 ? -(int64_t)i : kind == 3 ? random % 4 : random;
				}
				memcpy(sorted, value, sizeof sorted);
				qsort(sorted, n, sizeof *sorted, compare_int64);
				assert_int_equal(rank_select(value, n, rank), sorted[rank]);
				for (size_t i = 0; i < n; i++)
					assert_true(i < rank ? value[i] <= sorted[rank] : value[i] >= sorted[rank]);
				qsort(value, n, sizeof *value, compare_int64);
				assert_memory_equal(value, sorted, n * sizeof *value);
			}
}

/* The search from each hint finds the same as the search without. */
static void test_bisect_from(void **state)
{
	size_t at = 0;
	(void)state;
	for (size_t n = 0; n < 40; n++)
		for (size_t answer = 0; answer <= n; answer++)
			for (size_t hint = 0; hint <= answer; hint++) {
				BISECT_FROM(at, hint, n, at < answer);
				assert_int_equal(at, answer);
			}
}

/* One name of each VMM, near misses, and numbers beyond the maximum. */
static void test_vcpu_names(void **state)
{
	(void)state;
	static const struct { const char *comm; int number; } cases[] = {
		{ "CPU 0/KVM", 0 }, { "CPU 3/KVM", 3 }, { "CPU 12/KVM", 12 }, { "vcpu0", 0 }, { "fc_vcpu 1", 1 },
		{ "crosvm_vcpu2", 2 }, { "kvm-vcpu-4", 4 }, { "db_vcpu5", 5 }, { "vcpu-6", 6 }, { "EMT-7", 7 },
		{ "CPU 65535/KVM", VCPU_NAME_MAX },
		{ "", -1 }, { "CPU", -1 }, { "CPU /KVM", -1 }, { "CPU 3", -1 }, { "CPU 3/KV", -1 }, { "CPU 3/KVM ", -1 },
		{ "CPU 3/TCG", -1 }, { "CPU -3/KVM", -1 }, { "CPU +3/KVM", -1 }, { "CPU  3/KVM", -1 }, { "cpu 3/KVM", -1 },
		{ " CPU 3/KVM", -1 }, { "CPU x/KVM", -1 }, { "vcpu", -1 }, { "vcpu 0", -1 }, { "vcpu0x", -1 }, { "vcpu-", -1 },
		{ "fc_vcpu", -1 }, { "fc_vcpu1", -1 }, { "kvm-vcpu4", -1 }, { "EMT-", -1 }, { "EMT-7 ", -1 }, { "vhost-3", -1 },
		{ "CPU 65536/KVM", -1 }, { "vcpu4294967296", -1 }, { "vcpu99999999999999999999", -1 },
		{ "CPU 18446744073709551616/KVM", -1 },
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		if (vcpu_name_number(cases[i].comm) != cases[i].number)
			fail_msg("'%s': %d, not %d", cases[i].comm, vcpu_name_number(cases[i].comm), cases[i].number);
}

struct ordered { unsigned big; const char *name; double least; };
ORDER_BY(compare_ordered, struct ordered, FALLING(big) RISING_TEXT(name) RISING(least))

static void test_order(void **state)
{
	(void)state;
	struct ordered rows[] = { { 1, "b", 0 }, { 2, "b", 0.5 }, { 2, "b", 0.25 }, { 3000000000, "z", 9 }, { 2, "a", 7 } };
	const double sorted[] = { 9, 7, 0.25, 0.5, 0 };
	ARRAY_SORT(rows, COUNT(rows), compare_ordered);
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_true(rows[i].least == sorted[i]);
	assert_int_equal(compare_ordered(&rows[1], &rows[1]), 0);
	int64_t numbers[] = { INT64_MAX, -1, INT64_MIN }, *none = NULL;
	ARRAY_SORT(numbers, COUNT(numbers), order_int64);
	assert_true(numbers[0] == INT64_MIN && numbers[2] == INT64_MAX);
	ARRAY_SORT(none, 0, order_int64);
}

int main(void)
{
	setlocale(LC_ALL, "C.UTF-8");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_suggest), cmocka_unit_test(test_commands), cmocka_unit_test(test_duration), cmocka_unit_test(test_parse_time), cmocka_unit_test(test_units),
		cmocka_unit_test(test_time_precision), cmocka_unit_test(test_time_of_day_round_trip), cmocka_unit_test(test_map),
		cmocka_unit_test(test_strtab), cmocka_unit_test(test_notes), cmocka_unit_test(test_notes_together),
		cmocka_unit_test(test_error_chain), cmocka_unit_test(test_states_have_names),
		cmocka_unit_test(test_time_exact), cmocka_unit_test(test_tournament), cmocka_unit_test(test_vcpu_names),
		cmocka_unit_test(test_rank_select), cmocka_unit_test(test_bisect_from), cmocka_unit_test(test_order),
	};
	return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
