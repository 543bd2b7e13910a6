
#include "base/base.h"
#include "trace/ctf/tsdl.h"

#define MAX_NAMES 4096         /* most named types at a time */
#define MAX_LENGTH (1U << 28)  /* most elements of an array */

/* ---- types by name */

static struct ctf_type *fail_type(struct tsdl_parser *p, const char *reason)
{
	tsdl_fail(p, reason);
	struct ctf_type *t = ctf_alloc(&p->m->arena, sizeof *t);
	*t = (struct ctf_type){ .kind = CTF_INTEGER, .align = 1, .size = 1, .slot = CTF_NO_SLOT };
	return t;
}

static struct ctf_type *new_type(struct tsdl_parser *p, enum ctf_kind kind, uint32_t align)
{
	struct ctf_type *t = ctf_type_new(&p->m->arena, kind, align);
	return t ? t : fail_type(p, "too many types");
}

static void name_type(struct tsdl_parser *p, const char *name, struct ctf_type *t)
{
	if (p->names >= MAX_NAMES) {
		tsdl_fail(p, "too many named types");
		return;
	}
	*ARRAY_PUSH(p->named, p->names, p->names_cap) = (struct ctf_named){ name, t };
}

static struct ctf_type *find_named_type(struct tsdl_parser *p, const char *name)
{
	for (size_t i = p->names; i-- > 0;) {
		if (strcmp(p->named[i].name, name) != 0)
			continue;
		struct ctf_type *t = ctf_type_copy(&p->m->arena, p->named[i].type);
		return t ? t : fail_type(p, "too many types");
	}
	return fail_type(p, "undeclared type");
}

static char *join_words(struct tsdl_parser *p, const char *a, const char *b, size_t len)
{
	const size_t n = strlen(a);
	char *both = ctf_alloc(&p->m->arena, n + len + 2);
	memcpy(both, a, n);
	both[n] = ' ';
	memcpy(both + n + (n > 0), b, len);
	return both;
}

/* Parses a type's name, such as "uint32_t" or "unsigned long": only types of C have several words. */
static char *parse_type_name(struct tsdl_parser *p)
{
	static const char *const words[] = { "unsigned", "signed", "long", "short", "int", "char", "const", "float", "double" };
	char *name = ctf_copy_text(&p->m->arena, "", 0);
	for (bool more = true; more && p->token == WORD;) {
		more = false;
		for (size_t i = 0; i < sizeof words / sizeof *words && !more; i++)
			more = *p->text == *words[i] && tsdl_at(p, words[i]);
		if (more || !*name) {
			name = join_words(p, name, p->text, p->len);
			tsdl_next(p);
		}
	}
	if (!*name)
		tsdl_fail(p, "invalid type");
	return name;
}

/* ---- types */

enum ctf_order tsdl_byte_order(struct tsdl_parser *p)
{
	const bool is_big = tsdl_at(p, "be") || tsdl_at(p, "network");
	const enum ctf_order order = tsdl_at(p, "le") ? CTF_LITTLE : is_big ? CTF_BIG : CTF_NATIVE;
	if (order == CTF_NATIVE && !tsdl_at(p, "native"))
		tsdl_fail(p, "unsupported byte order");
	tsdl_next(p);
	return order;
}

static uint32_t parse_alignment(struct tsdl_parser *p)
{
	const uint64_t v = tsdl_number(p);
	if (v && v <= 1U << 20 && (v & (v - 1)) == 0)
		return (uint32_t)v;
	tsdl_fail(p, "alignment is not a power of two");
	return 1;
}

/* Parses clock.NAME.value. */
static const char *parse_clock_name(struct tsdl_parser *p)
{
	char *path = tsdl_path(p), *dot = strrchr(path, '.');
	if (strncmp(path, "clock.", 6) != 0 || !dot || dot < path + 6 || strcmp(dot, ".value") != 0) {
		tsdl_fail(p, "unsupported clock");
		return "";
	}
	*dot = '\0';
	return path + 6;
}

/* Skips a word, number, string or name with dots. Fails at any other value, because it may be damaged. */
void tsdl_skip_value(struct tsdl_parser *p)
{
	if (p->token == WORD) {
		tsdl_path(p);
	} else if (p->token == TEXT) {
		tsdl_next(p);
	} else {
		tsdl_number(p);
	}
}

void tsdl_skip_attributes(struct tsdl_parser *p)
{
	tsdl_expect(p, "{");
	while (p->token != END && !tsdl_accept(p, "}")) {
		tsdl_path(p);
		tsdl_expect(p, "=");
		tsdl_skip_value(p);
		tsdl_expect(p, ";");
	}
}

/* Skips an integer's display base. Fails if it is invalid, because then the whole description may be damaged. */
static void parse_display_base(struct tsdl_parser *p)
{
	static const char *const bases[] = { "decimal", "dec", "d", "i", "u", "hexadecimal", "hex", "x", "X", "p", "octal",
		"oct", "o", "binary", "b" };
	const uint64_t number = p->token == NUMBER ? tsdl_number(p) : 0;
	bool is_base = number == 2 || number == 8 || number == 10 || number == 16;
	for (size_t i = 0; i < sizeof bases / sizeof *bases && !is_base; i++)
		is_base = tsdl_accept(p, bases[i]);
	if (!is_base)
		tsdl_fail(p, "invalid display base");
}

/* Parses an encoding. Returns true for text, false for "none". */
static bool parse_encoding(struct tsdl_parser *p)
{
	const bool is_utf8 = tsdl_accept(p, "UTF8") || tsdl_accept(p, "utf8") || tsdl_accept(p, "ASCII") ||
		tsdl_accept(p, "ascii");
	if (!is_utf8 && !tsdl_accept(p, "none"))
		tsdl_fail(p, "unsupported encoding");
	return is_utf8;
}

/* Returns true, with *t set, if the integer's description is in the cache. Metadata contains a description for each
 * field of each event, but in few variants, so most of them are not parsed again. */
static bool find_cached_integer(struct tsdl_parser *p, struct ctf_type *t)
{
	for (struct tsdl_integer *k = p->cached; k < p->cached + p->n_cached; k++) {
		if (k->len > (size_t)(p->end - p->at) || memcmp(k->text, p->at, k->len) != 0)
			continue;
		*t = k->type;
		p->at += k->len;
		tsdl_next(p);
		if (k > p->cached) {  /* moves frequent descriptions to the front */
			const struct tsdl_integer frequent = *k;
			*k = k[-1];
			k[-1] = frequent;
		}
		return true;
	}
	return false;
}

static void cache_integer(struct tsdl_parser *p, const char *from, const char *to, const struct ctf_type *t)
{
	if (p->m->reason)
		return;
	const size_t i = p->n_cached < CACHED_INTEGERS ? p->n_cached++ : CACHED_INTEGERS - 1;
	p->cached[i] = (struct tsdl_integer){ from, (size_t)(to - from), *t };
}

/* Parses the attributes of an integer or floating point number. Returns the address after them. */
static const char *parse_number_attributes(struct tsdl_parser *p, struct ctf_type *t)
{
	uint64_t size = 0;
	t->align = 0;
	tsdl_expect(p, "{");
	while (p->token != END && !tsdl_at(p, "}")) {
		char *key = tsdl_path(p);
		tsdl_expect(p, "=");
		if (strcmp(key, "size") == 0 || strcmp(key, "exp_dig") == 0 || strcmp(key, "mant_dig") == 0)
			size += tsdl_number(p);
		else if (strcmp(key, "align") == 0)
			t->align = parse_alignment(p);
		else if (strcmp(key, "signed") == 0)
			t->is_signed = tsdl_boolean(p);
		else if (strcmp(key, "byte_order") == 0)
			t->order = tsdl_byte_order(p);
		else if (strcmp(key, "map") == 0)
			t->clock = parse_clock_name(p);
		else if (strcmp(key, "base") == 0)
			parse_display_base(p);
		else if (strcmp(key, "encoding") == 0)
			t->is_utf8 = parse_encoding(p);
		else
			tsdl_skip_value(p);
		tsdl_expect(p, ";");
	}
	const char *end = p->at;
	tsdl_accept(p, "}");
	if (!size || size > 64)
		tsdl_fail(p, "number of 0 or of more than 64 bits");
	t->size = (uint32_t)size;
	if (!t->align)
		t->align = size % 8 ? 1 : 8;
	return end;
}

static struct ctf_type *parse_number(struct tsdl_parser *p, enum ctf_kind kind)
{
	struct ctf_type *t = new_type(p, kind, 1);
	const char *text = p->at;
	if (kind == CTF_INTEGER && find_cached_integer(p, t))
		return t;
	tsdl_next(p);
	const char *end = parse_number_attributes(p, t);
	if (kind == CTF_INTEGER)
		cache_integer(p, text, end, t);
	return t;
}

static void parse_members(struct tsdl_parser *p, struct ctf_type *of)
{
	const size_t names = p->names;
	if (++p->depth > CTF_MAX_DEPTH)
		tsdl_fail(p, "types nested too deeply");
	tsdl_expect(p, "{");
	while (p->token != END && !tsdl_accept(p, "}"))
		tsdl_declaration(p, of);
	p->depth--;
	p->names = names;
}

static char *parse_tag(struct tsdl_parser *p, const char *kind)
{
	char *name = NULL;
	if (p->token == WORD) {
		name = join_words(p, kind, p->text, p->len);
		tsdl_next(p);
	}
	return name;
}

static struct ctf_type *parse_struct(struct tsdl_parser *p)
{
	char *name = parse_tag(p, "struct");
	if (!tsdl_at(p, "{"))
		return find_named_type(p, name ? name : "");
	struct ctf_type *t = new_type(p, CTF_STRUCT, 1);
	parse_members(p, t);
	if (tsdl_accept(p, "align")) {
		tsdl_expect(p, "(");
		const uint32_t align = parse_alignment(p);
		t->align = align > t->align ? align : t->align;
		tsdl_expect(p, ")");
	}
	if (name)
		name_type(p, name, t);
	return t;
}

static struct ctf_type *parse_variant(struct tsdl_parser *p)
{
	char *name = parse_tag(p, "variant"), *control_path = NULL;
	if (tsdl_accept(p, "<")) {
		control_path = tsdl_path(p);
		tsdl_expect(p, ">");
	}
	struct ctf_type *t = tsdl_at(p, "{") ? new_type(p, CTF_VARIANT, 1) : find_named_type(p, name ? name : "");
	if (tsdl_at(p, "{")) {
		parse_members(p, t);
		if (name)
			name_type(p, name, t);
	}
	if (control_path) {
		t = ctf_type_copy(&p->m->arena, t);  /* the named type has no selector */
		if (!t)
			return fail_type(p, "too many types");
		t->control_path = control_path;
	}
	return t;
}

static void parse_labels(struct tsdl_parser *p, struct ctf_type *t)
{
	struct ctf_label **at = &t->label;
	uint64_t value = 0;
	while (p->token != END && !tsdl_accept(p, "}")) {
		if (p->token != WORD && p->token != TEXT)
			tsdl_fail(p, "invalid enumeration");
		struct ctf_label *l = *at = ctf_alloc(&p->m->arena, sizeof *l);
		at = &l->next;
		l->name = tsdl_copy_token(p);
		l->lower = l->upper = tsdl_accept(p, "=") ? tsdl_number(p) : value;
		if (tsdl_accept(p, "..."))
			l->upper = tsdl_number(p);
		value = l->upper + 1;
		if (!tsdl_accept(p, ",") && !tsdl_at(p, "}"))
			tsdl_fail(p, "invalid enumeration");
	}
}

static struct ctf_type *parse_enum(struct tsdl_parser *p)
{
	char *name = parse_tag(p, "enum");
	const bool is_reference = !tsdl_at(p, ":") && !tsdl_at(p, "{");
	if (is_reference)
		return find_named_type(p, name ? name : "");
	struct ctf_type *t = tsdl_accept(p, ":") ? tsdl_type(p) : find_named_type(p, "int");
	if (t->kind != CTF_INTEGER || t->label)
		tsdl_fail(p, "enumeration not based on an integer");
	tsdl_expect(p, "{");
	parse_labels(p, t);
	if (name)
		name_type(p, name, t);
	return t;
}

static struct ctf_type *parse_string(struct tsdl_parser *p)
{
	if (tsdl_accept(p, "{")) {
		while (p->token != END && !tsdl_accept(p, "}")) {
			tsdl_expect(p, "encoding");
			tsdl_expect(p, "=");
			parse_encoding(p);
			tsdl_expect(p, ";");
		}
	}
	return new_type(p, CTF_STRING, 8);
}

struct ctf_type *tsdl_type(struct tsdl_parser *p)
{
	if (tsdl_at(p, "integer"))
		return parse_number(p, CTF_INTEGER);
	if (tsdl_at(p, "floating_point"))
		return parse_number(p, CTF_FLOAT);
	return tsdl_accept(p, "struct") ? parse_struct(p) : tsdl_accept(p, "variant") ? parse_variant(p) :
		tsdl_accept(p, "enum") ? parse_enum(p) : tsdl_accept(p, "string") ? parse_string(p) :
		find_named_type(p, parse_type_name(p));
}

/* ---- declarations */

static struct ctf_type *new_array(struct tsdl_parser *p, struct ctf_type *element, const char *control_path,
                                  uint64_t length)
{
	struct ctf_type *t = new_type(p, CTF_ARRAY, element->align);
	t->element = element;
	t->control_path = control_path;
	t->length = length;
	t->is_text = element->kind == CTF_INTEGER && element->size == 8 && element->align == 8 && element->is_utf8;
	return t;
}

/* Parses the brackets after a name; the last ones belong to the innermost array. */
static struct ctf_type *parse_array_suffix(struct tsdl_parser *p, struct ctf_type *t)
{
	if (!tsdl_accept(p, "["))
		return t;
	if (++p->depth > CTF_MAX_DEPTH)
		tsdl_fail(p, "types nested too deeply");
	char *control_path = p->token == WORD ? tsdl_path(p) : NULL;
	const uint64_t length = control_path ? 0 : tsdl_number(p);
	if (length > MAX_LENGTH)
		tsdl_fail(p, "array too long");
	tsdl_expect(p, "]");
	t = new_array(p, parse_array_suffix(p, t), control_path, length);
	p->depth--;
	return t;
}

/* Returns true at a type with a tag: outside of structures its declaration may follow another one without ';'. */
static bool at_tagged_type(struct tsdl_parser *p)
{
	return p->depth == 0 && (tsdl_at(p, "struct") || tsdl_at(p, "variant") || tsdl_at(p, "enum"));
}

static void parse_fields(struct tsdl_parser *p, struct ctf_type *of)
{
	struct ctf_type *t = tsdl_type(p);
	const bool is_list = at_tagged_type(p);
	while (at_tagged_type(p))
		tsdl_type(p);
	if (is_list && !tsdl_at(p, ";"))
		tsdl_fail(p, "several types of a field");
	for (bool more = false; p->token != END; more = true) {
		if (p->token != WORD) {
			if (more || !tsdl_at(p, ";"))  /* a declaration of a structure without a field has no name */
				tsdl_fail(p, "invalid field");
			break;
		}
		char *name = tsdl_copy_token(p);
		struct ctf_type *own = more ? ctf_type_copy(&p->m->arena, t) : t;
		if (!own || ctf_member_find(of, name, strlen(name)) ||
		    !ctf_member_add(&p->m->arena, of, name, parse_array_suffix(p, own)))
			tsdl_fail(p, "too many fields, or a duplicate field name");
		if (!tsdl_accept(p, ","))
			break;
	}
	tsdl_expect(p, ";");
}

void tsdl_alias(struct tsdl_parser *p)
{
	struct ctf_type *t = tsdl_type(p);
	tsdl_expect(p, ":=");
	char *name = NULL;
	if (tsdl_at(p, "struct") || tsdl_at(p, "enum") || tsdl_at(p, "variant")) {
		char *kind = tsdl_copy_token(p);
		name = parse_tag(p, kind);
	} else {
		name = parse_type_name(p);
	}
	name_type(p, name ? name : "", t);
	tsdl_expect(p, ";");
}

void tsdl_definition(struct tsdl_parser *p)
{
	struct ctf_type *t = tsdl_type(p);
	char *name = parse_type_name(p);
	name_type(p, name, parse_array_suffix(p, t));
	tsdl_expect(p, ";");
}

void tsdl_declaration(struct tsdl_parser *p, struct ctf_type *of)
{
	if (tsdl_accept(p, "typealias"))
		tsdl_alias(p);
	else if (tsdl_accept(p, "typedef"))
		tsdl_definition(p);
	else
		parse_fields(p, of);
}
