/* trace/ctf: the words of CTF 1.8 metadata, and integers that are described again and again. */
#include "test.h"

#include "base/mem.h"
#include "trace/ctf/types.h"

/* The members of an event's payload; what cannot be is said in m->why. */
static const struct ctf_member *parse(struct ctf_metadata *m, const char *fields)
{
	char *text = mem_printf("trace { major = 1; minor = 8; byte_order = be; };\n"
		"event { name = \"e\"; id = 0; fields := struct { %s }; };\n", fields);
	ctf_metadata_parse(m, text, strlen(text));
	free(text);
	return m->event && m->event->payload ? m->event->payload->member : NULL;
}

static void refused(const char *fields, const char *why)
{
	struct ctf_metadata m;
	parse(&m, fields);
	assert_non_null(m.why);
	assert_string_equal(m.why, why);
	ctf_metadata_release(&m);
}

static void test_numbers(void **state)
{
	(void)state;
	static const struct { const char *text; uint64_t value; } good[] = {
		{ "0", 0 }, { "7", 7 }, { "+7", 7 }, { "-1", UINT64_MAX }, { "017", 15 }, { "0x1f", 31 }, { "0X1F", 31 },
		{ "40u", 40 }, { "40l", 40 }, { "40ULL", 40 }, { "0xfUL", 15 }, { "00000000000000000000000000000012", 0 },
		{ "0000000000000000000000000000012", 10 }, { "18446744073709551615", UINT64_MAX },
		{ "0xffffffffffffffff", UINT64_MAX },
	};
	static const char *const bad[] = { "08", "0x", "0xu", "1x2", "0xg", "1_", "18446744073709551616", "1e3", "\"1\"", "a", "-",
		"- -1" };
	for (size_t i = 0; i < COUNT(good); i++) {
		struct ctf_metadata m;
		char *fields = mem_printf("enum : integer { size = 8; } { A = %s } a;", good[i].text);
		const struct ctf_member *a = parse(&m, fields);
		if (strlen(good[i].text) > 31)
			assert_string_equal(m.why, "a number that is not understood");
		else
			assert_true(!m.why && a->type->label->lower == good[i].value);
		free(fields);
		ctf_metadata_release(&m);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		char *fields = mem_printf("enum : integer { size = 8; } { A = %s } a;", bad[i]);
		refused(fields, "a number that is not understood");
		free(fields);
	}
}

static void test_names(void **state)
{
	(void)state;
	struct ctf_metadata m;
	const struct ctf_member *a = parse(&m, "enum : integer { size = 8; } { A, \"B \\\"}\\\\\", /* C */ D } a, _a0; // b\n"
		"integer { size = 8; } b[ stream . packet\t. context. n ];");
	assert_null(m.why);
	const struct ctf_label *l = a->type->label;
	assert_string_equal(l->name, "A");
	assert_string_equal(l->next->name, "B \"}\\");
	assert_true(l->next->next->lower == 2 && !l->next->next->next);
	assert_string_equal(l->next->next->name, "D");
	assert_string_equal(a->next->name, "_a0");
	assert_string_equal(a->next->next->type->where, "stream.packet.context.n");
	ctf_metadata_release(&m);
	refused("integer { size = 8; } a; integer { size = 8; } a;", "too many fields, or two of the same name");
	refused("string { encoding 8 UTF8; } a;", "a syntax that is not understood");
	refused("string { encoding = UTF8 } a;", "a syntax that is not understood");
	refused("integer { size = 8; } a b;", "a syntax that is not understood");
	refused("integer { size = 8; } \xe9;", "a sign that is not understood");
	refused("integer { size = 8; } a.b;", "a syntax that is not understood");
	refused("integer { size = 8; }, a;", "a field that is not understood");
}

/* Values that are of no use are looked at all the same: libbabeltrace2 reads no metadata in which they are damaged. */
static void test_values(void **state)
{
	(void)state;
	static const char *const good[] = { "foo = a.b;", "foo = -3;", "foo = \"a b\";", "foo = struct;", "encoding = none; base = x;",
		"signed = false; byte_order = network;" };
	static const char *const bad[] = { "foo = a b;", "foo = 3 4;", "foo = \"a\" \"b\";", "foo = a b.c;", "foo = ;", "foo = 3 + 4;",
		"foo = a = b;", "foo = a, b;", "signed = true x;", "align = 8 8;", "base = 10 x;", "base = dec x;",
		"encoding = none x;", "byte_order = le be;", "foo = a" };
	for (size_t i = 0; i < COUNT(good) + COUNT(bad); i++) {
		struct ctf_metadata m;
		const bool is_good = i < COUNT(good);
		const char *value = is_good ? good[i] : bad[i - COUNT(good)];
		char *integer = mem_printf("integer { size = 8; %s } a;", value);
		parse(&m, integer);
		assert_int_equal(!m.why, is_good);
		ctf_metadata_release(&m);
		free(integer);
	}
}

/* Each field has a type of its own, though the text is that of another. */
static void test_again(void **state)
{
	(void)state;
	struct ctf_metadata m;
	const struct ctf_member *a = parse(&m, "enum : integer { size = 8; signed = 1; } { A } a;"
		"integer { size = 8; signed = 1; } b; enum : integer { size = 8; signed = 1; } { B } c;"
		"integer { size = 8; signed = 1; byte_order = le; } d; integer { size = 8; signed = 1; }e[3];");
	assert_null(m.why);
	const struct ctf_type *b = a->next->type, *c = a->next->next->type, *d = a->next->next->next->type;
	assert_true(a->type != b && b != c && a->type->label && !b->label && c->label && !c->label->next);
	assert_string_equal(a->type->label->name, "A");
	assert_string_equal(c->label->name, "B");
	assert_true(a->type->is_signed && b->is_signed && b->size == 8 && c->is_signed && d->order == CTF_LITTLE);
	assert_true(b->slot == CTF_NO_SLOT && b->order == CTF_NATIVE);
	assert_true(a->next->next->next->next->type->element->size == 8);
	ctf_metadata_release(&m);
	refused("string { encoding = UTF7; } a;", "an encoding that is not understood");
	refused("integer { size = 65; } a; integer { size = 65; } b;", "a number of no, or of more than 64 bits");
	refused("integer { size = 8; } a; integer { size = 8 } b;", "a syntax that is not understood");
}

/* More kinds than are kept in mind, in turn; a comment belongs to its text. */
static void test_many(void **state)
{
	(void)state;
	struct ctf_metadata m;
	char *fields = mem_dup("");
	for (unsigned i = 0; i < 400; i++) {
		const unsigned size = 1 + i % (i < 200 ? 23 : 7);
		char *more = mem_printf("%sinteger { /* } */ size = %u; align = 1; } f%u;\n", fields, size, i);
		free(fields);
		fields = more;
	}
	const struct ctf_member *f = parse(&m, fields);
	assert_null(m.why);
	for (unsigned i = 0; i < 400; i++, f = f->next)
		assert_int_equal(f->type->size, 1 + i % (i < 200 ? 23 : 7));
	assert_null(f);
	free(fields);
	ctf_metadata_release(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers), cmocka_unit_test(test_names), cmocka_unit_test(test_values),
		cmocka_unit_test(test_again), cmocka_unit_test(test_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
