/* Tests the tokens of CTF 1.8 metadata, integers with repeated descriptions, and byte orders. */
#include "test.h"

#include "base/mem.h"
#include "trace/ctf/program.h"
#include "trace/ctf/types.h"

/* Returns the members of an event's payload. Stores an error in m->reason. */
static const struct ctf_member *parse_fields(struct ctf_metadata *m, const char *fields)
{
	char *text = mem_printf("trace { major = 1; minor = 8; byte_order = be; };\n"
		"event { name = \"e\"; id = 0; fields := struct { %s }; };\n", fields);
	ctf_metadata_parse(m, text, strlen(text));
	free(text);
	return m->event && m->event->payload ? m->event->payload->member : NULL;
}

static void assert_refused(const char *fields, const char *reason)
{
	struct ctf_metadata m;
	parse_fields(&m, fields);
	assert_non_null(m.reason);
	if (!strstr(m.reason, reason))
		fail_msg("'%s' is not in '%s'", reason, m.reason);
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
		const struct ctf_member *a = parse_fields(&m, fields);
		if (strlen(good[i].text) > 31)
			assert_non_null(strstr(m.reason, "number"));
		else
			assert_true(!m.reason && a->type->label->lower == good[i].value);
		free(fields);
		ctf_metadata_release(&m);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		char *fields = mem_printf("enum : integer { size = 8; } { A = %s } a;", bad[i]);
		assert_refused(fields, "invalid number");
		free(fields);
	}
}

static void test_names(void **state)
{
	(void)state;
	struct ctf_metadata m;
	const struct ctf_member *a = parse_fields(&m, "enum : integer { size = 8; } { A, \"B \\\"}\\\\\", /* C */ D } a, _a0; // b\n"
		"integer { size = 8; } b[ stream . packet\t. context. n ];");
	assert_null(m.reason);
	const struct ctf_label *l = a->type->label;
	assert_string_equal(l->name, "A");
	assert_string_equal(l->next->name, "B \"}\\");
	assert_true(l->next->next->lower == 2 && !l->next->next->next);
	assert_string_equal(l->next->next->name, "D");
	assert_string_equal(a->next->name, "_a0");
	assert_string_equal(a->next->next->type->control_path, "stream.packet.context.n");
	ctf_metadata_release(&m);
	assert_refused("integer { size = 8; } a; integer { size = 8; } a;", "too many fields, or a duplicate field name");
	assert_refused("string { encoding 8 UTF8; } a;", "syntax error");
	assert_refused("string { encoding = UTF8 } a;", "syntax error");
	assert_refused("integer { size = 8; } a b;", "syntax error");
	assert_refused("integer { size = 8; } \xe9;", "unexpected character");
	assert_refused("integer { size = 8; } a.b;", "syntax error");
	assert_refused("integer { size = 8; }, a;", "invalid field");
}

/* Unused values are checked too: metadata in which they are damaged is damaged. */
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
		parse_fields(&m, integer);
		assert_int_equal(!m.reason, is_good);
		ctf_metadata_release(&m);
		free(integer);
	}
}

/* Each field has its own type, even if the text is identical. */
static void test_again(void **state)
{
	(void)state;
	struct ctf_metadata m;
	const struct ctf_member *a = parse_fields(&m, "enum : integer { size = 8; signed = 1; } { A } a;"
		"integer { size = 8; signed = 1; } b; enum : integer { size = 8; signed = 1; } { B } c;"
		"integer { size = 8; signed = 1; byte_order = le; } d; integer { size = 8; signed = 1; }e[3];");
	assert_null(m.reason);
	const struct ctf_type *b = a->next->type, *c = a->next->next->type, *d = a->next->next->next->type;
	assert_true(a->type != b && b != c && a->type->label && !b->label && c->label && !c->label->next);
	assert_string_equal(a->type->label->name, "A");
	assert_string_equal(c->label->name, "B");
	assert_true(a->type->is_signed && b->is_signed && b->size == 8 && c->is_signed && d->order == CTF_LITTLE);
	assert_true(b->slot == CTF_NO_SLOT && b->order == CTF_NATIVE);
	assert_true(a->next->next->next->next->type->element->size == 8);
	ctf_metadata_release(&m);
	assert_refused("string { encoding = UTF7; } a;", "unsupported encoding");
	assert_refused("integer { size = 65; } a; integer { size = 65; } b;", "number of 0 or of more than 64 bits");
	assert_refused("integer { size = 8; } a; integer { size = 8 } b;", "syntax error");
}

/* More descriptions than the cache can hold, in turn; a comment is part of the description. */
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
	const struct ctf_member *f = parse_fields(&m, fields);
	assert_null(m.reason);
	for (unsigned i = 0; i < 400; i++, f = f->next)
		assert_int_equal(f->type->size, 1 + i % (i < 200 ? 23 : 7));
	assert_null(f);
	free(fields);
	ctf_metadata_release(&m);
}

/* Compiles the fields, of which those in `wanted` are needed, and reads these from `bytes` into value[]. Returns the reason
 * if the fields cannot be compiled. */
static const char *read_fields(const char *fields, const char *wanted, const unsigned char *bytes, size_t n,
                               struct ctf_value *value)
{
	struct ctf_metadata m;
	struct ctf_program program = { 0 };
	struct ctf_slots slots = { 0, 16 };
	struct ctf_position position = { 1U << 20, 0 };
	parse_fields(&m, fields);
	assert_null(m.reason);
	struct ctf_type *payload = m.event->payload;
	for (const struct ctf_member *f = payload->member; f; f = f->next)
		if (strstr(wanted, f->name))
			assert_true(ctf_assign_slot(f->type, &slots));
	const char *reason = ctf_compile(&program, &payload, 1, &position, true, false);
	if (!reason) {
		struct ctf_interpreter run = { .packet = bytes, .end = 8 * n, .value = value };
		assert_int_equal(ctf_run(&program, &run), CTF_RUN_DONE);
		assert_int_equal(run.at, 8 * n);
	}
	ctf_program_release(&program);
	ctf_metadata_release(&m);
	return reason;
}

#define LE(bits, name) "integer { size = " #bits "; align = 1; byte_order = le; } " #name ";"
#define BE(bits, name) "integer { size = " #bits "; align = 1; } " #name ";"

/* Fields of both byte orders (the trace is big endian). Where they share a byte, the bits of a needed field are not
 * defined; fields that are not needed have a size, and that is enough. */
static void test_byte_orders(void **state)
{
	(void)state;
	static const unsigned char bytes[] = { 0xA5, 0x34, 0x12, 0x81, 0x42 };
	struct ctf_value v[16];
	assert_null(read_fields(LE(4, a) LE(4, b) LE(16, c) BE(3, d) BE(5, e) LE(8, f), "abcdef", bytes, 5, v));
	const int64_t expected[] = { 5, 0xA, 0x1234, 4, 1, 0x42 };
	for (size_t i = 0; i < COUNT(expected); i++)
		assert_int_equal(v[i].number, expected[i]);
	assert_null(read_fields(BE(4, a) BE(4, b) LE(7, c) LE(9, d) BE(16, e), "abcde", bytes, 5, v));
	const int64_t swapped[] = { 0xA, 5, 0x34, 0x24, 0x8142 };
	for (size_t i = 0; i < COUNT(swapped); i++)
		assert_int_equal(v[i].number, swapped[i]);
	assert_non_null(read_fields(LE(3, a) BE(5, b) LE(32, c), "b", bytes, 5, v));
	assert_null(read_fields(LE(3, a) BE(5, b) LE(32, c), "c", bytes, 5, v));
	assert_int_equal(v[0].number, 0x42811234);
	assert_non_null(read_fields("struct { " LE(3, a) " } s[3];" BE(7, b) BE(24, c), "b", bytes, 5, v));
	assert_null(read_fields("struct { " BE(3, a) " } s[3];" BE(7, b) BE(24, c), "bc", bytes, 5, v));
	assert_true(v[0].number == 0x34 && v[1].number == 0x128142);
}

/* A declaration of a type may follow another one without ';', as in the grammar of libbabeltrace2, but it has no name then,
 * and inside structures a field has one type. */
static void test_nested_structures(void **state)
{
	(void)state;
	static const char before[] = "struct inner { integer { size = 8; } a; } struct outer { struct inner in; "
		"struct { struct inner again; } more; }";
	for (int is_named = 0; is_named < 2; is_named++) {
		struct ctf_metadata m;
		char *text = mem_printf("trace { major = 1; minor = 8; byte_order = le; };\n%s%s;\n"
			"event { name = \"e\"; fields := struct { struct outer o; }; };\n", before, is_named ? " name" : "");
		ctf_metadata_parse(&m, text, strlen(text));
		assert_int_equal(m.reason != NULL, is_named);
		const struct ctf_member *o = is_named ? NULL : m.event->payload->member;
		assert_true(is_named || (strcmp(o->type->member->name, "in") == 0 &&
		                         strcmp(o->type->member->type->member->name, "a") == 0 &&
		                         strcmp(o->type->member->next->type->member->type->member->name, "a") == 0));
		free(text);
		ctf_metadata_release(&m);
	}
	assert_refused("struct inner { integer { size = 8; } a; } struct other { integer { size = 8; } b; } f;", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers), cmocka_unit_test(test_names), cmocka_unit_test(test_values),
		cmocka_unit_test(test_again), cmocka_unit_test(test_many), cmocka_unit_test(test_byte_orders), cmocka_unit_test(test_nested_structures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
