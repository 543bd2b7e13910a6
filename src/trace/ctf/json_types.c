#include "trace/ctf/json_types.h"

#include <string.h>

#define MOST_LENGTH (1U << 28)  /* elements of an array */

/* The structure that a field is in. */
struct enclosing { struct ctf_type *type; const struct enclosing *up; const char *said; /* what it is called there */ };

void fragment_fail(struct fragment_parser *p, const char *why)
{
	p->m->why = p->m->why ? p->m->why : why;
}

static struct ctf_type *new_type(struct fragment_parser *p, enum ctf_kind kind, uint64_t align)
{
	struct ctf_type *t = NULL;
	if (!align || align > 1U << 20 || (align & (align - 1)))
		fragment_fail(p, "an alignment that is no power of two");
	else if (!(t = ctf_type_new(&p->m->arena, kind, (uint32_t)align)))
		fragment_fail(p, "too many types");
	return t;
}

static uint64_t number(struct fragment_parser *p, struct json_object *o, const char *key, uint64_t otherwise)
{
	uint64_t v;
	if (!ctf_json_number(o, key, otherwise, &v))
		fragment_fail(p, "a number that is none");
	return v;
}

static uint64_t length_of(struct fragment_parser *p, struct json_object *fc)
{
	const uint64_t n = number(p, fc, "length", UINT64_MAX);
	if (n > MOST_LENGTH)
		fragment_fail(p, "an array that is too long");
	return n;
}

/* ---- locations of fields */

static struct ctf_type *member_said(const struct ctf_type *t, const char *name)
{
	for (const struct ctf_member *m = t->kind == CTF_STRUCT ? t->member : NULL; m; m = m->next)
		if (strcmp(m->said, name) == 0)
			return m->type;
	return NULL;
}

/* Where a way goes on from a structure: to a member, or to the one that is being read, which is none yet. */
static struct ctf_type *step_into(const struct ctf_type *t, const char *name, const struct enclosing *in)
{
	struct ctf_type *found = member_said(t, name);
	for (; in && in->up && !found; in = in->up)
		if (in->up->type == t && in->said && strcmp(in->said, name) == 0)
			found = in->type;
	return found;
}

static struct ctf_type *origin_of(const struct fragment_parser *p, const char *name)
{
	static const char *const origin[CTF_SCOPES] = {
		"packet-header", "packet-context", "event-record-header", "event-record-common-context",
		"event-record-specific-context", "event-record-payload",
	};
	for (size_t i = 0; i < CTF_SCOPES; i++)
		if (strcmp(origin[i], name) == 0)
			return p->root[i];
	return NULL;
}

/* The integer that tells a length, or an option; without an origin, the way there begins in the structure around. */
static struct ctf_type *locate(struct fragment_parser *p, struct json_object *fc, const char *key,
                               const struct enclosing *in)
{
	struct json_object *where = ctf_json_of(fc, key, json_type_object), *path = ctf_json_of(where, "path", json_type_array);
	const char *origin = where ? ctf_json_text(where, "origin") : NULL;
	const struct enclosing *around = in;
	struct ctf_type *t = origin ? origin_of(p, origin) : in ? in->type : NULL;
	for (size_t i = 0; path && t && i < json_object_array_length(path); i++) {
		struct json_object *step = json_object_array_get_idx(path, i);
		if (!step && !origin) {
			around = around ? around->up : NULL;
			t = around ? around->type : NULL;
		} else {
			t = json_object_is_type(step, json_type_string) ? step_into(t, json_object_get_string(step), in) : NULL;
		}
	}
	if (path && t && t->kind == CTF_INTEGER)
		return t;
	fragment_fail(p, "an array or a variant that no integer before it tells about");
	return NULL;
}

/* ---- numbers and texts */

static enum ctf_order byte_order(struct fragment_parser *p, struct json_object *fc, uint64_t size)
{
	const char *name = ctf_json_text(fc, "byte-order"), *bits = ctf_json_text(fc, "bit-order");
	const bool is_big = name && strcmp(name, "big-endian") == 0;
	if (!name || (!is_big && strcmp(name, "little-endian") != 0))
		fragment_fail(p, "a byte order that is not understood");
	if (bits && strcmp(bits, is_big ? "last-to-first" : "first-to-last") != 0)
		fragment_fail(p, "bits in an order that is not usual");
	if (!p->m->has_order && (size % 8 || !p->has_order))  /* what shares bytes with others has the order of the trace */
		p->m->big = is_big;
	p->m->has_order |= size % 8 > 0;
	p->has_order = true;
	return is_big ? CTF_BIG : CTF_LITTLE;
}

static struct ctf_type *fixed_length(struct fragment_parser *p, struct json_object *fc, enum ctf_kind kind, bool is_signed)
{
	const uint64_t size = number(p, fc, "length", 0), most = kind == CTF_FLOAT ? 128 : 64;
	struct ctf_type *t = new_type(p, kind, number(p, fc, "alignment", 1));
	if (!size || size > most)
		fragment_fail(p, "a number of no, or of more than 64 bits");
	if (!t)
		return NULL;
	t->size = (uint32_t)size;
	t->is_signed = is_signed;
	t->order = byte_order(p, fc, size);
	return t;
}

static struct ctf_type *variable_length(struct fragment_parser *p, bool is_signed)
{
	struct ctf_type *t = new_type(p, CTF_INTEGER, 8);
	if (t) {
		t->is_variable = true;
		t->is_signed = is_signed;
	}
	return t;
}

static void check_encoding(struct fragment_parser *p, struct json_object *fc)
{
	const char *encoding = ctf_json_text(fc, "encoding");
	if (encoding && strcmp(encoding, "utf-8") != 0)
		fragment_fail(p, "texts that are not of UTF-8");
}

static struct ctf_type *array_of(struct fragment_parser *p, struct json_object *fc, struct ctf_type *element, bool is_told,
                                 const struct enclosing *in)
{
	const uint64_t least = number(p, fc, "minimum-alignment", 1);
	struct ctf_type *t = element ? new_type(p, CTF_ARRAY, least > element->align ? least : element->align) : NULL;
	if (!t)
		return NULL;
	t->element = element;
	t->where = is_told ? "" : NULL;
	t->length = is_told ? 0 : length_of(p, fc);
	t->teller = is_told ? locate(p, fc, "length-field-location", in) : NULL;
	return t;
}

/* Texts, and bytes that are none. */
static struct ctf_type *bytes(struct fragment_parser *p, struct json_object *fc, bool is_text, bool is_told,
                              const struct enclosing *in)
{
	struct ctf_type *byte = new_type(p, CTF_INTEGER, 8);
	if (is_text)
		check_encoding(p, fc);
	if (!byte)
		return NULL;
	byte->size = 8;
	struct ctf_type *t = array_of(p, fc, byte, is_told, in);
	if (t)
		t->is_text = is_text;
	return t;
}

/* ---- types of types */

static struct ctf_type *field_class(struct fragment_parser *p, struct json_object *fc, const struct enclosing *in);

static struct ctf_type *array(struct fragment_parser *p, struct json_object *fc, bool is_told, const struct enclosing *in)
{
	struct json_object *element = NULL;
	json_object_object_get_ex(fc, "element-field-class", &element);
	return array_of(p, fc, field_class(p, element, in), is_told, in);
}

/* The tagged fields' values for which an option is there. */
static struct ctf_label *ranges_of(struct fragment_parser *p, struct json_object *o)
{
	struct json_object *list = ctf_json_of(o, "selector-field-ranges", json_type_array);
	struct ctf_label *first = NULL, **at = &first;
	for (size_t i = 0; list && i < json_object_array_length(list) && !p->m->why; i++) {
		struct json_object *pair = json_object_array_get_idx(list, i);
		struct ctf_label *l = *at = ctf_alloc(&p->m->arena, sizeof *l);
		at = &l->next;
		l->name = "";
		if (!json_object_is_type(pair, json_type_array) || json_object_array_length(pair) != 2 ||
		    !ctf_json_bits(json_object_array_get_idx(pair, 0), &l->lower) ||
		    !ctf_json_bits(json_object_array_get_idx(pair, 1), &l->upper))
			fragment_fail(p, "ranges that are not understood");
	}
	if (!first)
		fragment_fail(p, "an option that nothing selects");
	return first;
}

static struct ctf_label *range(struct fragment_parser *p, uint64_t lower, uint64_t upper)
{
	struct ctf_label *l = ctf_alloc(&p->m->arena, sizeof *l);
	*l = (struct ctf_label){ "", lower, upper, NULL };
	return l;
}

static void add_option(struct fragment_parser *p, struct ctf_type *variant, const char *name, struct ctf_type *option,
                       struct ctf_label *when)
{
	struct ctf_member *m = option ? ctf_member_add(&p->m->arena, variant, name, option) : NULL;
	if (!m) {
		fragment_fail(p, "too many fields");
		return;
	}
	m->said = name;
	m->range = when;
}

static struct ctf_type *variant(struct fragment_parser *p, struct json_object *fc, const struct enclosing *in)
{
	struct json_object *options = ctf_json_of(fc, "options", json_type_array);
	struct ctf_type *t = new_type(p, CTF_VARIANT, 1);
	if (!t || !options || !(t->teller = locate(p, fc, "selector-field-location", in)))
		return t;
	for (size_t i = 0; i < json_object_array_length(options) && !p->m->why; i++) {
		struct json_object *o = json_object_array_get_idx(options, i), *class = NULL;
		const char *name = ctf_json_text(o, "name");
		if (!json_object_is_type(o, json_type_object) || !json_object_object_get_ex(o, "field-class", &class)) {
			fragment_fail(p, "an option that is not understood");
			break;
		}
		name = ctf_text(&p->m->arena, name ? name : "", name ? strlen(name) : 0);
		struct ctf_type *option = field_class(p, class, in);
		add_option(p, t, name, option, ranges_of(p, o));
	}
	return t;
}

/* A variant of the field and of nothing. */
static struct ctf_type *optional(struct fragment_parser *p, struct json_object *fc, const struct enclosing *in)
{
	struct json_object *class = NULL;
	struct ctf_type *t = new_type(p, CTF_VARIANT, 1), *nothing = new_type(p, CTF_STRUCT, 1);
	if (!t || !nothing || !(t->teller = locate(p, fc, "selector-field-location", in)))
		return t;
	json_object_object_get_ex(fc, "field-class", &class);
	const bool is_boolean = t->teller->is_boolean;
	struct ctf_label *when = is_boolean ? range(p, 1, UINT64_MAX) : ranges_of(p, fc);
	add_option(p, t, "", field_class(p, class, in), when);
	when = t->teller->is_signed ? range(p, (uint64_t)INT64_MIN, INT64_MAX) : range(p, 0, UINT64_MAX);
	add_option(p, t, "", nothing, when);
	return t;
}

/* ---- structures and roles */

static const struct field_role { enum ctf_scope scope; const char *role, *name; bool is_time; } roles[] = {
	{ CTF_PACKET_HEADER, "packet-magic-number", "magic", false },
	{ CTF_PACKET_HEADER, "metadata-stream-uuid", "uuid", false },
	{ CTF_PACKET_HEADER, "data-stream-class-id", "stream_id", false },
	{ CTF_PACKET_HEADER, "data-stream-id", "stream_instance_id", false },
	{ CTF_PACKET_CONTEXT, "packet-total-length", "packet_size", false },
	{ CTF_PACKET_CONTEXT, "packet-content-length", "content_size", false },
	{ CTF_PACKET_CONTEXT, "default-clock-timestamp", "timestamp_begin", true },
	{ CTF_PACKET_CONTEXT, "packet-end-default-clock-timestamp", "timestamp_end", true },
	{ CTF_PACKET_CONTEXT, "discarded-event-record-counter-snapshot", "events_discarded", false },
	{ CTF_PACKET_CONTEXT, "packet-sequence-number", "packet_seq_num", false },
	{ CTF_EVENT_HEADER, "event-record-class-id", "id", false },
	{ CTF_EVENT_HEADER, "default-clock-timestamp", NULL, true },
};
enum { ROLES = sizeof roles / sizeof *roles };

static bool is_reserved(enum ctf_scope scope, const char *name)
{
	for (size_t i = 0; i < ROLES; i++)
		if (roles[i].scope == scope && roles[i].name && strcmp(roles[i].name, name) == 0)
			return true;
	return false;
}

static const struct field_role *role_of(enum ctf_scope scope, struct json_object *role)
{
	for (size_t i = 0; i < ROLES && json_object_is_type(role, json_type_string); i++)
		if (roles[i].scope == scope && strcmp(roles[i].role, json_object_get_string(role)) == 0)
			return &roles[i];
	return NULL;
}

/* What the field is called from here on; its class may be an alias, which has the roles then. */
static const char *name_by_role(struct fragment_parser *p, struct json_object *fc, struct ctf_type *t, const char *said)
{
	struct json_object *list;
	const char *name = is_reserved(p->scope, said) ? "." : said;  /* no name has a dot */
	for (unsigned i = 0; i < CTF_DEEPEST && json_object_is_type(fc, json_type_string); i++)
		if (!json_object_object_get_ex(p->alias, json_object_get_string(fc), &fc))
			return name;
	list = ctf_json_of(fc, "roles", json_type_array);
	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		const struct field_role *r = role_of(p->scope, json_object_array_get_idx(list, i));
		if (!r)
			continue;
		name = r->name ? r->name : name;
		t->clock = r->is_time ? p->clock : t->clock;
		if (r->is_time && !p->clock)
			fragment_fail(p, "a time of no clock");
	}
	return name;
}

static void add_member(struct fragment_parser *p, struct ctf_type *of, struct json_object *o, const struct enclosing *in)
{
	struct json_object *class = NULL;
	const char *name = ctf_json_text(o, "name");
	if (!name || !json_object_object_get_ex(o, "field-class", &class)) {
		fragment_fail(p, "a field that is not understood");
		return;
	}
	if (member_said(of, name)) {
		fragment_fail(p, "two fields of the same name");
		return;
	}
	name = ctf_text(&p->m->arena, name, strlen(name));
	p->member = name;
	struct ctf_type *t = field_class(p, class, in);
	struct ctf_member *m = t ? ctf_member_add(&p->m->arena, of, name_by_role(p, class, t, name), t) : NULL;
	if (m)
		m->said = name;
	else
		fragment_fail(p, "too many fields");
}

/* `top`: it is a scope's, to which locations may point while it grows. */
static struct ctf_type *structure(struct fragment_parser *p, struct json_object *fc, const struct enclosing *up, bool top)
{
	struct ctf_type *t = new_type(p, CTF_STRUCT, number(p, fc, "minimum-alignment", 1));
	struct json_object *members = ctf_json_of(fc, "member-classes", json_type_array);
	const struct enclosing in = { t, up, p->member };
	p->member = NULL;
	if (t && top)
		p->root[p->scope] = t;
	for (size_t i = 0; t && members && i < json_object_array_length(members) && !p->m->why; i++)
		add_member(p, t, json_object_array_get_idx(members, i), &in);
	return t;
}

static struct ctf_type *class_of(struct fragment_parser *p, struct json_object *fc, const char *type,
                                 const struct enclosing *in)
{
	static const char *const numbers[] = {
		"fixed-length-unsigned-integer", "fixed-length-bit-array", "fixed-length-bit-map", "fixed-length-boolean",
	};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		if (strcmp(type, numbers[i]) != 0)
			continue;
		struct ctf_type *t = fixed_length(p, fc, CTF_INTEGER, false);
		if (t)
			t->is_boolean = i == 3;
		return t;
	}
	if (strcmp(type, "fixed-length-signed-integer") == 0)
		return fixed_length(p, fc, CTF_INTEGER, true);
	if (strcmp(type, "fixed-length-floating-point-number") == 0)
		return fixed_length(p, fc, CTF_FLOAT, true);
	if (strcmp(type, "variable-length-unsigned-integer") == 0 || strcmp(type, "variable-length-signed-integer") == 0)
		return variable_length(p, type[16] == 's');
	if (strcmp(type, "null-terminated-string") == 0) {
		check_encoding(p, fc);
		return new_type(p, CTF_STRING, 8);
	}
	if (strcmp(type, "static-length-string") == 0 || strcmp(type, "dynamic-length-string") == 0)
		return bytes(p, fc, true, *type == 'd', in);
	if (strcmp(type, "static-length-blob") == 0 || strcmp(type, "dynamic-length-blob") == 0)
		return bytes(p, fc, false, *type == 'd', in);
	if (strcmp(type, "static-length-array") == 0 || strcmp(type, "dynamic-length-array") == 0)
		return array(p, fc, *type == 'd', in);
	if (strcmp(type, "structure") == 0)
		return structure(p, fc, in, false);
	if (strcmp(type, "variant") == 0)
		return variant(p, fc, in);
	if (strcmp(type, "optional") == 0)
		return optional(p, fc, in);
	fragment_fail(p, "a field class that is not understood");
	return NULL;
}

static struct ctf_type *field_class(struct fragment_parser *p, struct json_object *fc, const struct enclosing *in)
{
	if (++p->depth > CTF_DEEPEST)
		fragment_fail(p, "types within types without end");
	struct ctf_type *t = NULL;
	struct json_object *named = NULL;
	if (p->m->why)
		;
	else if (!json_object_is_type(fc, json_type_string))
		t = class_of(p, fc, ctf_json_text(fc, "type") ? ctf_json_text(fc, "type") : "", in);
	else if (json_object_object_get_ex(p->alias, json_object_get_string(fc), &named))
		t = field_class(p, named, in);
	else
		fragment_fail(p, "a type that is not declared");
	p->depth--;
	return t;
}

struct ctf_type *fragment_structure(struct fragment_parser *p, struct json_object *fragment, const char *key,
                                    enum ctf_scope scope)
{
	struct json_object *fc = NULL;
	p->scope = scope;
	p->root[scope] = NULL;
	if (!json_object_object_get_ex(fragment, key, &fc))
		return NULL;
	for (unsigned i = 0; i < CTF_DEEPEST && json_object_is_type(fc, json_type_string); i++)
		if (!json_object_object_get_ex(p->alias, json_object_get_string(fc), &fc))
			break;
	const char *type = ctf_json_text(fc, "type");
	if (type && strcmp(type, "structure") == 0)
		return structure(p, fc, NULL, true);
	fragment_fail(p, "a structure in a place that is not understood");
	return NULL;
}
