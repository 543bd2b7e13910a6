#include "trace/ctf/json_types.h"

#include <string.h>

#define MAX_LENGTH (1U << 28)  /* most elements of an array */

/* Structure around the field that is being parsed. */
struct enclosing {
	struct ctf_type *type;
	const struct enclosing *up;  /* structure around this one; NULL: none */
	const char *source_name;     /* this structure's name as a member of `up` */
};

void fragment_fail(struct fragment_parser *p, const char *reason)
{
	p->m->reason = p->m->reason ? p->m->reason : reason;
}

static struct ctf_type *new_type(struct fragment_parser *p, enum ctf_kind kind, uint64_t align)
{
	struct ctf_type *t = NULL;
	if (!align || align > 1U << 20 || (align & (align - 1)))
		fragment_fail(p, "alignment is not a power of two");
	else if (!(t = ctf_type_new(&p->m->arena, kind, (uint32_t)align)))
		fragment_fail(p, "too many types");
	return t;
}

static uint64_t get_number(struct fragment_parser *p, struct json_object *o, const char *key, uint64_t default_value)
{
	uint64_t v;
	if (!ctf_json_number(o, key, default_value, &v))
		fragment_fail(p, "invalid number");
	return v;
}

static uint64_t get_length(struct fragment_parser *p, struct json_object *fc)
{
	const uint64_t n = get_number(p, fc, "length", UINT64_MAX);
	if (n > MAX_LENGTH)
		fragment_fail(p, "array too long");
	return n;
}

/* ---- locations of fields */

static struct ctf_type *find_member_by_source_name(const struct ctf_type *t, const char *name)
{
	for (const struct ctf_member *m = t->kind == CTF_STRUCT ? t->member : NULL; m; m = m->next)
		if (strcmp(m->source_name, name) == 0)
			return m->type;
	return NULL;
}

/* Returns the member `name` of structure t, which is complete or is itself being parsed; NULL: none. */
static struct ctf_type *find_step(const struct ctf_type *t, const char *name, const struct enclosing *in)
{
	struct ctf_type *found = find_member_by_source_name(t, name);
	for (; in && in->up && !found; in = in->up)
		if (in->up->type == t && in->source_name && strcmp(in->source_name, name) == 0)
			found = in->type;
	return found;
}

static struct ctf_type *scope_root(const struct fragment_parser *p, const char *name)
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

/* Finds the integer that contains the length of an array or selects an option of a variant. A path without an origin
 * starts in the structure around the field. */
static struct ctf_type *find_control_field(struct fragment_parser *p, struct json_object *fc, const char *key,
                                           const struct enclosing *in)
{
	struct json_object *location = ctf_json_member(fc, key, json_type_object);
	struct json_object *path = ctf_json_member(location, "path", json_type_array);
	const char *origin = location ? ctf_json_string(location, "origin") : NULL;
	const struct enclosing *around = in;
	struct ctf_type *t = origin ? scope_root(p, origin) : in ? in->type : NULL;
	for (size_t i = 0; path && t && i < json_object_array_length(path); i++) {
		struct json_object *step = json_object_array_get_idx(path, i);
		if (!step && !origin) {
			around = around ? around->up : NULL;
			t = around ? around->type : NULL;
		} else {
			t = json_object_is_type(step, json_type_string) ? find_step(t, json_object_get_string(step), in) : NULL;
		}
	}
	if (path && t && t->kind == CTF_INTEGER)
		return t;
	fragment_fail(p, "array length or variant selector not found");
	return NULL;
}

/* ---- numbers, strings and blobs */

static enum ctf_order parse_byte_order(struct fragment_parser *p, struct json_object *fc, uint64_t size)
{
	const char *name = ctf_json_string(fc, "byte-order"), *bits = ctf_json_string(fc, "bit-order");
	const bool is_big = name && strcmp(name, "big-endian") == 0;
	if (!name || (!is_big && strcmp(name, "little-endian") != 0))
		fragment_fail(p, "unsupported byte order");
	if (bits && strcmp(bits, is_big ? "last-to-first" : "first-to-last") != 0)
		fragment_fail(p, "unsupported bit order");
	if (!p->m->has_order && (size % 8 || !p->has_order))  /* fields that share a byte use the trace's byte order */
		p->m->is_big_endian = is_big;
	p->m->has_order |= size % 8 > 0;
	p->has_order = true;
	return is_big ? CTF_BIG : CTF_LITTLE;
}

static struct ctf_type *parse_fixed_length(struct fragment_parser *p, struct json_object *fc, enum ctf_kind kind,
                                           bool is_signed)
{
	const uint64_t size = get_number(p, fc, "length", 0), max_bits = kind == CTF_FLOAT ? 128 : 64;
	struct ctf_type *t = new_type(p, kind, get_number(p, fc, "alignment", 1));
	if (!size || size > max_bits)
		fragment_fail(p, "number of 0 or of more than 64 bits");
	if (!t)
		return NULL;
	t->size = (uint32_t)size;
	t->is_signed = is_signed;
	t->order = parse_byte_order(p, fc, size);
	return t;
}

static struct ctf_type *parse_variable_length(struct fragment_parser *p, bool is_signed)
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
	const char *encoding = ctf_json_string(fc, "encoding");
	if (encoding && strcmp(encoding, "utf-8") != 0)
		fragment_fail(p, "string encoding other than UTF-8");
}

static struct ctf_type *new_array(struct fragment_parser *p, struct json_object *fc, struct ctf_type *element,
                                  bool has_length_field, const struct enclosing *in)
{
	const uint64_t min_align = get_number(p, fc, "minimum-alignment", 1);
	struct ctf_type *t = element ? new_type(p, CTF_ARRAY, min_align > element->align ? min_align : element->align) : NULL;
	if (!t)
		return NULL;
	t->element = element;
	t->control_path = has_length_field ? "" : NULL;
	t->length = has_length_field ? 0 : get_length(p, fc);
	t->control = has_length_field ? find_control_field(p, fc, "length-field-location", in) : NULL;
	return t;
}

/* Parses a string or blob: an array of bytes. */
static struct ctf_type *parse_byte_array(struct fragment_parser *p, struct json_object *fc, bool is_text,
                                         bool has_length_field, const struct enclosing *in)
{
	struct ctf_type *byte = new_type(p, CTF_INTEGER, 8);
	if (is_text)
		check_encoding(p, fc);
	if (!byte)
		return NULL;
	byte->size = 8;
	struct ctf_type *t = new_array(p, fc, byte, has_length_field, in);
	if (t)
		t->is_text = is_text;
	return t;
}

/* ---- arrays and variants */

static struct ctf_type *parse_field_class(struct fragment_parser *p, struct json_object *fc, const struct enclosing *in);

static struct ctf_type *parse_array(struct fragment_parser *p, struct json_object *fc, bool has_length_field,
                                    const struct enclosing *in)
{
	struct json_object *element = NULL;
	json_object_object_get_ex(fc, "element-field-class", &element);
	return new_array(p, fc, parse_field_class(p, element, in), has_length_field, in);
}

/* Parses the ranges of selector values for which an option is present. */
static struct ctf_label *parse_ranges(struct fragment_parser *p, struct json_object *o)
{
	struct json_object *list = ctf_json_member(o, "selector-field-ranges", json_type_array);
	struct ctf_label *first = NULL, **at = &first;
	for (size_t i = 0; list && i < json_object_array_length(list) && !p->m->reason; i++) {
		struct json_object *pair = json_object_array_get_idx(list, i);
		struct ctf_label *l = *at = ctf_alloc(&p->m->arena, sizeof *l);
		at = &l->next;
		l->name = "";
		if (!json_object_is_type(pair, json_type_array) || json_object_array_length(pair) != 2 ||
		    !ctf_json_integer(json_object_array_get_idx(pair, 0), &l->lower) ||
		    !ctf_json_integer(json_object_array_get_idx(pair, 1), &l->upper))
			fragment_fail(p, "invalid selector ranges");
	}
	if (!first)
		fragment_fail(p, "option without selector ranges");
	return first;
}

static struct ctf_label *new_range(struct fragment_parser *p, uint64_t lower, uint64_t upper)
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
	m->source_name = name;
	m->range = when;
}

static struct ctf_type *parse_variant(struct fragment_parser *p, struct json_object *fc, const struct enclosing *in)
{
	struct json_object *options = ctf_json_member(fc, "options", json_type_array);
	struct ctf_type *t = new_type(p, CTF_VARIANT, 1);
	if (!t || !options || !(t->control = find_control_field(p, fc, "selector-field-location", in)))
		return t;
	for (size_t i = 0; i < json_object_array_length(options) && !p->m->reason; i++) {
		struct json_object *o = json_object_array_get_idx(options, i), *class = NULL;
		const char *name = ctf_json_string(o, "name");
		if (!json_object_is_type(o, json_type_object) || !json_object_object_get_ex(o, "field-class", &class)) {
			fragment_fail(p, "invalid option");
			break;
		}
		name = ctf_copy_text(&p->m->arena, name ? name : "", name ? strlen(name) : 0);
		struct ctf_type *option = parse_field_class(p, class, in);
		add_option(p, t, name, option, parse_ranges(p, o));
	}
	return t;
}

/* Parses an optional field as a variant with two options: the field, and an empty structure. */
static struct ctf_type *parse_optional(struct fragment_parser *p, struct json_object *fc, const struct enclosing *in)
{
	struct json_object *class = NULL;
	struct ctf_type *t = new_type(p, CTF_VARIANT, 1), *nothing = new_type(p, CTF_STRUCT, 1);
	if (!t || !nothing || !(t->control = find_control_field(p, fc, "selector-field-location", in)))
		return t;
	json_object_object_get_ex(fc, "field-class", &class);
	const bool is_boolean = t->control->is_boolean;
	struct ctf_label *when = is_boolean ? new_range(p, 1, UINT64_MAX) : parse_ranges(p, fc);
	add_option(p, t, "", parse_field_class(p, class, in), when);
	when = t->control->is_signed ? new_range(p, (uint64_t)INT64_MIN, INT64_MAX) : new_range(p, 0, UINT64_MAX);
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

static const struct field_role *find_role(enum ctf_scope scope, struct json_object *role)
{
	for (size_t i = 0; i < ROLES && json_object_is_type(role, json_type_string); i++)
		if (roles[i].scope == scope && strcmp(roles[i].role, json_object_get_string(role)) == 0)
			return &roles[i];
	return NULL;
}

/* Returns the name that CTF 1.8 uses for a field with these roles, otherwise source_name. If the class is an alias, the
 * roles are in the class that the alias refers to. */
static const char *name_by_role(struct fragment_parser *p, struct json_object *fc, struct ctf_type *t,
                                const char *source_name)
{
	struct json_object *list;
	const char *name = is_reserved(p->scope, source_name) ? "." : source_name;  /* no real name contains a dot */
	for (unsigned i = 0; i < CTF_MAX_DEPTH && json_object_is_type(fc, json_type_string); i++)
		if (!json_object_object_get_ex(p->alias, json_object_get_string(fc), &fc))
			return name;
	list = ctf_json_member(fc, "roles", json_type_array);
	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		const struct field_role *r = find_role(p->scope, json_object_array_get_idx(list, i));
		if (!r)
			continue;
		name = r->name ? r->name : name;
		t->clock = r->is_time ? p->clock : t->clock;
		if (r->is_time && !p->clock)
			fragment_fail(p, "timestamp without a clock");
	}
	return name;
}

static void parse_member(struct fragment_parser *p, struct ctf_type *of, struct json_object *o, const struct enclosing *in)
{
	struct json_object *class = NULL;
	const char *name = ctf_json_string(o, "name");
	if (!name || !json_object_object_get_ex(o, "field-class", &class)) {
		fragment_fail(p, "invalid field");
		return;
	}
	if (find_member_by_source_name(of, name)) {
		fragment_fail(p, "duplicate field name");
		return;
	}
	name = ctf_copy_text(&p->m->arena, name, strlen(name));
	p->member = name;
	struct ctf_type *t = parse_field_class(p, class, in);
	struct ctf_member *m = t ? ctf_member_add(&p->m->arena, of, name_by_role(p, class, t, name), t) : NULL;
	if (m)
		m->source_name = name;
	else
		fragment_fail(p, "too many fields");
}

/* Parses a structure. top: the structure is a scope's root, so paths may refer to its members. */
static struct ctf_type *parse_structure(struct fragment_parser *p, struct json_object *fc, const struct enclosing *up,
                                        bool top)
{
	struct ctf_type *t = new_type(p, CTF_STRUCT, get_number(p, fc, "minimum-alignment", 1));
	struct json_object *members = ctf_json_member(fc, "member-classes", json_type_array);
	const struct enclosing in = { t, up, p->member };
	p->member = NULL;
	if (t && top)
		p->root[p->scope] = t;
	for (size_t i = 0; t && members && i < json_object_array_length(members) && !p->m->reason; i++)
		parse_member(p, t, json_object_array_get_idx(members, i), &in);
	return t;
}

static struct ctf_type *parse_class_object(struct fragment_parser *p, struct json_object *fc, const char *type,
                                           const struct enclosing *in)
{
	static const char *const numbers[] = {
		"fixed-length-unsigned-integer", "fixed-length-bit-array", "fixed-length-bit-map", "fixed-length-boolean",
	};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		if (strcmp(type, numbers[i]) != 0)
			continue;
		struct ctf_type *t = parse_fixed_length(p, fc, CTF_INTEGER, false);
		if (t)
			t->is_boolean = i == 3;
		return t;
	}
	if (strcmp(type, "fixed-length-signed-integer") == 0)
		return parse_fixed_length(p, fc, CTF_INTEGER, true);
	if (strcmp(type, "fixed-length-floating-point-number") == 0)
		return parse_fixed_length(p, fc, CTF_FLOAT, true);
	if (strcmp(type, "variable-length-unsigned-integer") == 0 || strcmp(type, "variable-length-signed-integer") == 0)
		return parse_variable_length(p, type[16] == 's');
	if (strcmp(type, "null-terminated-string") == 0) {
		check_encoding(p, fc);
		return new_type(p, CTF_STRING, 8);
	}
	if (strcmp(type, "static-length-string") == 0 || strcmp(type, "dynamic-length-string") == 0)
		return parse_byte_array(p, fc, true, *type == 'd', in);
	if (strcmp(type, "static-length-blob") == 0 || strcmp(type, "dynamic-length-blob") == 0)
		return parse_byte_array(p, fc, false, *type == 'd', in);
	if (strcmp(type, "static-length-array") == 0 || strcmp(type, "dynamic-length-array") == 0)
		return parse_array(p, fc, *type == 'd', in);
	if (strcmp(type, "structure") == 0)
		return parse_structure(p, fc, in, false);
	if (strcmp(type, "variant") == 0)
		return parse_variant(p, fc, in);
	if (strcmp(type, "optional") == 0)
		return parse_optional(p, fc, in);
	fragment_fail(p, "unsupported field class");
	return NULL;
}

static struct ctf_type *parse_field_class(struct fragment_parser *p, struct json_object *fc, const struct enclosing *in)
{
	if (++p->depth > CTF_MAX_DEPTH)
		fragment_fail(p, "types nested too deeply");
	struct ctf_type *t = NULL;
	struct json_object *named = NULL;
	if (p->m->reason)
		;
	else if (!json_object_is_type(fc, json_type_string))
		t = parse_class_object(p, fc, ctf_json_string(fc, "type") ? ctf_json_string(fc, "type") : "", in);
	else if (json_object_object_get_ex(p->alias, json_object_get_string(fc), &named))
		t = parse_field_class(p, named, in);
	else
		fragment_fail(p, "undeclared type");
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
	for (unsigned i = 0; i < CTF_MAX_DEPTH && json_object_is_type(fc, json_type_string); i++)
		if (!json_object_object_get_ex(p->alias, json_object_get_string(fc), &fc))
			break;
	const char *type = ctf_json_string(fc, "type");
	if (type && strcmp(type, "structure") == 0)
		return parse_structure(p, fc, NULL, true);
	fragment_fail(p, "unexpected structure");
	return NULL;
}
