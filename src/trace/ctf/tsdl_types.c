#include <string.h>

#include "base/mem.h"
#include "trace/ctf/tsdl.h"

#define MOST_NAMES 4096  /* named types at a time */
#define MOST_LENGTH (1U << 28)  /* elements of an array */

/* ---- types by name */

static struct ctf_type *none(struct parser *p, const char *why)
{
	tsdl_fail(p, why);
	struct ctf_type *t = ctf_alloc(&p->m->arena, sizeof *t);
	*t = (struct ctf_type){ .kind = CTF_INTEGER, .align = 1, .size = 1, .slot = CTF_NO_SLOT };
	return t;
}

static struct ctf_type *new_type(struct parser *p, enum ctf_kind kind, uint32_t align)
{
	struct ctf_type *t = ctf_type_new(&p->m->arena, kind, align);
	return t ? t : none(p, "too many types");
}

static void name_type(struct parser *p, const char *name, struct ctf_type *t)
{
	if (p->names >= MOST_NAMES) {
		tsdl_fail(p, "too many named types");
		return;
	}
	*ARRAY_PUSH(p->named, p->names, p->names_cap) = (struct ctf_named){ name, t };
}

static struct ctf_type *type_named(struct parser *p, const char *name)
{
	for (size_t i = p->names; i-- > 0;) {
		if (strcmp(p->named[i].name, name) != 0)
			continue;
		struct ctf_type *t = ctf_type_copy(&p->m->arena, p->named[i].type);
		return t ? t : none(p, "too many types");
	}
	return none(p, "a type that is not declared");
}

static char *join(struct parser *p, const char *a, const char *b, size_t len)
{
	const size_t n = strlen(a);
	char *both = ctf_alloc(&p->m->arena, n + len + 2);
	memcpy(both, a, n);
	both[n] = ' ';
	memcpy(both + n + (n > 0), b, len);
	return both;
}

/* "uint32_t", "unsigned long": several words only of C's own. */
static char *type_name(struct parser *p)
{
	static const char *const words[] = { "unsigned", "signed", "long", "short", "int", "char", "const", "float", "double" };
	char *name = ctf_text(&p->m->arena, "", 0);
	for (bool more = true; more && p->token == WORD;) {
		more = false;
		for (size_t i = 0; i < sizeof words / sizeof *words && !more; i++)
			more = *p->text == *words[i] && tsdl_is(p, words[i]);
		if (more || !*name) {
			name = join(p, name, p->text, p->len);
			tsdl_next(p);
		}
	}
	if (!*name)
		tsdl_fail(p, "a type that is not understood");
	return name;
}

/* ---- types */

enum ctf_order tsdl_byte_order(struct parser *p)
{
	const bool is_big = tsdl_is(p, "be") || tsdl_is(p, "network");
	const enum ctf_order order = tsdl_is(p, "le") ? CTF_LITTLE : is_big ? CTF_BIG : CTF_NATIVE;
	if (order == CTF_NATIVE && !tsdl_is(p, "native"))
		tsdl_fail(p, "a byte order that is not understood");
	tsdl_next(p);
	return order;
}

static uint32_t alignment(struct parser *p)
{
	const uint64_t v = tsdl_number(p);
	if (v && v <= 1U << 20 && (v & (v - 1)) == 0)
		return (uint32_t)v;
	tsdl_fail(p, "an alignment that is no power of two");
	return 1;
}

/* clock.NAME.value */
static const char *clock_name(struct parser *p)
{
	char *path = tsdl_dotted(p), *dot = strrchr(path, '.');
	if (strncmp(path, "clock.", 6) != 0 || !dot || dot < path + 6 || strcmp(dot, ".value") != 0) {
		tsdl_fail(p, "a clock that is not understood");
		return "";
	}
	*dot = '\0';
	return path + 6;
}

/* One word, number or text, or a name with dots: of a value that is more than that nobody knows whether it is damaged. */
void tsdl_skip_value(struct parser *p)
{
	if (p->token == WORD) {
		tsdl_dotted(p);
	} else if (p->token == TEXT) {
		tsdl_next(p);
	} else {
		tsdl_number(p);
	}
}

void tsdl_skip_attributes(struct parser *p)
{
	tsdl_expect(p, "{");
	while (p->token != END && !tsdl_accept(p, "}")) {
		tsdl_dotted(p);
		tsdl_expect(p, "=");
		tsdl_skip_value(p);
		tsdl_expect(p, ";");
	}
}

/* In which base people are shown an integer: of no use here, but where it is none the whole description may be damaged. */
static void display_base(struct parser *p)
{
	static const char *const bases[] = { "decimal", "dec", "d", "i", "u", "hexadecimal", "hex", "x", "X", "p", "octal",
		"oct", "o", "binary", "b" };
	const uint64_t number = p->token == NUMBER ? tsdl_number(p) : 0;
	bool is_one = number == 2 || number == 8 || number == 10 || number == 16;
	for (size_t i = 0; i < sizeof bases / sizeof *bases && !is_one; i++)
		is_one = tsdl_accept(p, bases[i]);
	if (!is_one)
		tsdl_fail(p, "a base that is not understood");
}

/* Is it one of text? */
static bool encoding(struct parser *p)
{
	const bool is_utf8 = tsdl_accept(p, "UTF8") || tsdl_accept(p, "utf8") || tsdl_accept(p, "ASCII") ||
		tsdl_accept(p, "ascii");
	if (!is_utf8 && !tsdl_accept(p, "none"))
		tsdl_fail(p, "an encoding that is not understood");
	return is_utf8;
}

/* Metadata describes an integer for each field of each event, in the same few ways: one that was read before needs no
 * reading. */
static bool is_known(struct parser *p, struct ctf_type *t)
{
	for (struct tsdl_integer *k = p->known; k < p->known + p->knowns; k++) {
		if (k->len > (size_t)(p->end - p->at) || memcmp(k->text, p->at, k->len) != 0)
			continue;
		*t = k->type;
		p->at += k->len;
		tsdl_next(p);
		if (k > p->known) {  /* the usual ones come to be found first */
			const struct tsdl_integer usual = *k;
			*k = k[-1];
			k[-1] = usual;
		}
		return true;
	}
	return false;
}

static void make_known(struct parser *p, const char *from, const char *to, const struct ctf_type *t)
{
	if (p->m->why)
		return;
	const size_t i = p->knowns < MOST_KNOWN ? p->knowns++ : MOST_KNOWN - 1;
	p->known[i] = (struct tsdl_integer){ from, (size_t)(to - from), *t };
}

/* The attributes of integers and floating point numbers; what is behind them in the text. */
static const char *numeric(struct parser *p, struct ctf_type *t)
{
	uint64_t size = 0;
	t->align = 0;
	tsdl_expect(p, "{");
	while (p->token != END && !tsdl_is(p, "}")) {
		char *key = tsdl_dotted(p);
		tsdl_expect(p, "=");
		if (strcmp(key, "size") == 0 || strcmp(key, "exp_dig") == 0 || strcmp(key, "mant_dig") == 0)
			size += tsdl_number(p);
		else if (strcmp(key, "align") == 0)
			t->align = alignment(p);
		else if (strcmp(key, "signed") == 0)
			t->is_signed = tsdl_truth(p);
		else if (strcmp(key, "byte_order") == 0)
			t->order = tsdl_byte_order(p);
		else if (strcmp(key, "map") == 0)
			t->clock = clock_name(p);
		else if (strcmp(key, "base") == 0)
			display_base(p);
		else if (strcmp(key, "encoding") == 0)
			t->is_utf8 = encoding(p);
		else
			tsdl_skip_value(p);
		tsdl_expect(p, ";");
	}
	const char *end = p->at;
	tsdl_accept(p, "}");
	if (!size || size > 64)
		tsdl_fail(p, "a number of no, or of more than 64 bits");
	t->size = (uint32_t)size;
	if (!t->align)
		t->align = size % 8 ? 1 : 8;
	return end;
}

static struct ctf_type *number(struct parser *p, enum ctf_kind kind)
{
	struct ctf_type *t = new_type(p, kind, 1);
	const char *text = p->at;
	if (kind == CTF_INTEGER && is_known(p, t))
		return t;
	tsdl_next(p);
	const char *end = numeric(p, t);
	if (kind == CTF_INTEGER)
		make_known(p, text, end, t);
	return t;
}

static void scoped(struct parser *p, struct ctf_type *of)
{
	const size_t names = p->names;
	if (++p->depth > CTF_DEEPEST)
		tsdl_fail(p, "types within types without end");
	tsdl_expect(p, "{");
	while (p->token != END && !tsdl_accept(p, "}"))
		tsdl_declaration(p, of);
	p->depth--;
	p->names = names;
}

static char *tag_name(struct parser *p, const char *kind)
{
	char *name = NULL;
	if (p->token == WORD) {
		name = join(p, kind, p->text, p->len);
		tsdl_next(p);
	}
	return name;
}

static struct ctf_type *structure(struct parser *p)
{
	char *name = tag_name(p, "struct");
	if (!tsdl_is(p, "{"))
		return type_named(p, name ? name : "");
	struct ctf_type *t = new_type(p, CTF_STRUCT, 1);
	scoped(p, t);
	if (tsdl_accept(p, "align")) {
		tsdl_expect(p, "(");
		const uint32_t align = alignment(p);
		t->align = align > t->align ? align : t->align;
		tsdl_expect(p, ")");
	}
	if (name)
		name_type(p, name, t);
	return t;
}

static struct ctf_type *variant(struct parser *p)
{
	char *name = tag_name(p, "variant"), *where = NULL;
	if (tsdl_accept(p, "<")) {
		where = tsdl_dotted(p);
		tsdl_expect(p, ">");
	}
	struct ctf_type *t = tsdl_is(p, "{") ? new_type(p, CTF_VARIANT, 1) : type_named(p, name ? name : "");
	if (tsdl_is(p, "{")) {
		scoped(p, t);
		if (name)
			name_type(p, name, t);
	}
	if (where) {
		t = ctf_type_copy(&p->m->arena, t);  /* the named one has no tag */
		if (!t)
			return none(p, "too many types");
		t->where = where;
	}
	return t;
}

static void labels(struct parser *p, struct ctf_type *t)
{
	struct ctf_label **at = &t->label;
	uint64_t value = 0;
	while (p->token != END && !tsdl_accept(p, "}")) {
		if (p->token != WORD && p->token != TEXT)
			tsdl_fail(p, "an enumeration that is not understood");
		struct ctf_label *l = *at = ctf_alloc(&p->m->arena, sizeof *l);
		at = &l->next;
		l->name = tsdl_keep(p);
		l->lower = l->upper = tsdl_accept(p, "=") ? tsdl_number(p) : value;
		if (tsdl_accept(p, "..."))
			l->upper = tsdl_number(p);
		value = l->upper + 1;
		if (!tsdl_accept(p, ",") && !tsdl_is(p, "}"))
			tsdl_fail(p, "an enumeration that is not understood");
	}
}

static struct ctf_type *enumeration(struct parser *p)
{
	char *name = tag_name(p, "enum");
	const bool is_reference = !tsdl_is(p, ":") && !tsdl_is(p, "{");
	if (is_reference)
		return type_named(p, name ? name : "");
	struct ctf_type *t = tsdl_accept(p, ":") ? tsdl_type(p) : type_named(p, "int");
	if (t->kind != CTF_INTEGER || t->label)
		tsdl_fail(p, "an enumeration of no integers");
	tsdl_expect(p, "{");
	labels(p, t);
	if (name)
		name_type(p, name, t);
	return t;
}

static struct ctf_type *string(struct parser *p)
{
	if (tsdl_accept(p, "{")) {
		while (p->token != END && !tsdl_accept(p, "}")) {
			tsdl_expect(p, "encoding");
			tsdl_expect(p, "=");
			encoding(p);
			tsdl_expect(p, ";");
		}
	}
	return new_type(p, CTF_STRING, 8);
}

struct ctf_type *tsdl_type(struct parser *p)
{
	if (tsdl_is(p, "integer"))
		return number(p, CTF_INTEGER);
	if (tsdl_is(p, "floating_point"))
		return number(p, CTF_FLOAT);
	return tsdl_accept(p, "struct") ? structure(p) : tsdl_accept(p, "variant") ? variant(p) :
		tsdl_accept(p, "enum") ? enumeration(p) : tsdl_accept(p, "string") ? string(p) : type_named(p, type_name(p));
}

/* ---- declarations */

static struct ctf_type *array_of(struct parser *p, struct ctf_type *element, const char *where, uint64_t length)
{
	struct ctf_type *t = new_type(p, CTF_ARRAY, element->align);
	t->element = element;
	t->where = where;
	t->length = length;
	t->is_text = element->kind == CTF_INTEGER && element->size == 8 && element->align == 8 && element->is_utf8;
	return t;
}

/* The brackets behind a name; the last are of the innermost array. */
static struct ctf_type *brackets(struct parser *p, struct ctf_type *t)
{
	if (!tsdl_accept(p, "["))
		return t;
	if (++p->depth > CTF_DEEPEST)
		tsdl_fail(p, "types within types without end");
	char *where = p->token == WORD ? tsdl_dotted(p) : NULL;
	const uint64_t length = where ? 0 : tsdl_number(p);
	if (length > MOST_LENGTH)
		tsdl_fail(p, "an array that is too long");
	tsdl_expect(p, "]");
	t = array_of(p, brackets(p, t), where, length);
	p->depth--;
	return t;
}

static void fields(struct parser *p, struct ctf_type *of)
{
	struct ctf_type *t = tsdl_type(p);
	for (bool more = false; p->token != END; more = true) {
		if (p->token != WORD) {
			if (more || !tsdl_is(p, ";"))  /* a structure that is only declared has no name behind it */
				tsdl_fail(p, "a field that is not understood");
			break;
		}
		char *name = tsdl_keep(p);
		struct ctf_type *own = more ? ctf_type_copy(&p->m->arena, t) : t;
		if (!own || ctf_member_find(of, name, strlen(name)) ||
		    !ctf_member_add(&p->m->arena, of, name, brackets(p, own)))
			tsdl_fail(p, "too many fields, or two of the same name");
		if (!tsdl_accept(p, ","))
			break;
	}
	tsdl_expect(p, ";");
}

void tsdl_alias(struct parser *p)
{
	struct ctf_type *t = tsdl_type(p);
	tsdl_expect(p, ":=");
	char *name = NULL;
	if (tsdl_is(p, "struct") || tsdl_is(p, "enum") || tsdl_is(p, "variant")) {
		char *kind = tsdl_keep(p);
		name = tag_name(p, kind);
	} else {
		name = type_name(p);
	}
	name_type(p, name ? name : "", t);
	tsdl_expect(p, ";");
}

void tsdl_definition(struct parser *p)
{
	struct ctf_type *t = tsdl_type(p);
	char *name = type_name(p);
	name_type(p, name, brackets(p, t));
	tsdl_expect(p, ";");
}

void tsdl_declaration(struct parser *p, struct ctf_type *of)
{
	if (tsdl_accept(p, "typealias"))
		tsdl_alias(p);
	else if (tsdl_accept(p, "typedef"))
		tsdl_definition(p);
	else
		fields(p, of);
}
