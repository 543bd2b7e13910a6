#include "trace/live/field_binding.h"

#include "base/base.h"
#include "trace/layout/bound_rules.h"

/* Classes in which the field names are resolved. */
struct event_classes {
	const bt_event_class *event;  /* NULL: only fields of packet contexts are resolved */
	const bt_stream_class *stream;
};

struct binder {
	const struct layout *layout;
	struct string_cache *names;
	struct map by_class;  /* bt_event_class -> index in cls[] */
	struct bound_class **cls;
	size_t len, cap;
	const bt_event_class *last;
	const struct bound_class *last_bound;
	const bt_stream_class *packet_class;  /* stream class of packet_cpu */
	struct field_path packet_cpu;
};

/* ---- binding: field names -> paths */

/* Compares names. Ignores an underscore at the start of `name`, which the metadata adds to C keywords and LTTng to
 * variant options. */
static bool name_matches(const char *name, const char *wanted, size_t len)
{
	if (strncmp(name, wanted, len) == 0 && !name[len])
		return true;
	return name[0] == '_' && strncmp(name + 1, wanted, len) == 0 && !name[1 + len];
}

static const bt_field_class *find_member(const bt_field_class *fc, const char *wanted, size_t len,
                                         struct field_step *step)
{
	step->is_option = false;
	for (uint64_t i = 0; i < bt_field_class_structure_get_member_count(fc); i++) {
		const bt_field_class_structure_member *m =
			bt_field_class_structure_borrow_member_by_index_const(fc, i);
		if (name_matches(bt_field_class_structure_member_get_name(m), wanted, len)) {
			step->index = (uint32_t)i;
			return bt_field_class_structure_member_borrow_field_class_const(m);
		}
	}
	return NULL;
}

static const bt_field_class *find_option(const bt_field_class *fc, const char *wanted, size_t len,
                                         struct field_step *step)
{
	step->is_option = true;
	for (uint64_t i = 0; i < bt_field_class_variant_get_option_count(fc); i++) {
		const bt_field_class_variant_option *o =
			bt_field_class_variant_borrow_option_by_index_const(fc, i);
		const char *name = bt_field_class_variant_option_get_name(o);
		if (name && name_matches(name, wanted, len)) {
			step->index = (uint32_t)i;
			return bt_field_class_variant_option_borrow_field_class_const(o);
		}
	}
	return NULL;
}

static enum leaf_type leaf_type_of(const bt_field_class *fc)
{
	const bt_field_class_type type = bt_field_class_get_type(fc);
	if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER))
		return LEAF_UNSIGNED;
	if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_SIGNED_INTEGER))
		return LEAF_SIGNED;
	if (type == BT_FIELD_CLASS_TYPE_BOOL)
		return LEAF_BOOL;
	if (type == BT_FIELD_CLASS_TYPE_BIT_ARRAY)
		return LEAF_BITS;
	return type == BT_FIELD_CLASS_TYPE_STRING ? LEAF_TEXT : LEAF_NONE;
}

static bool resolve_in_scope(const bt_field_class *fc, enum root root, const char *name, struct field_path *p)
{
	*p = (struct field_path){ .root = root };
	while (fc && *name && p->steps < FIELD_DEPTH_MAX) {
		size_t len = strcspn(name, ".");
		struct field_step *step = &p->step[p->steps++];
		const bt_field_class_type type = bt_field_class_get_type(fc);
		if (type == BT_FIELD_CLASS_TYPE_STRUCTURE)
			fc = find_member(fc, name, len, step);
		else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_VARIANT))
			fc = find_option(fc, name, len, step);
		else
			fc = NULL;
		name += len + (name[len] == '.');
	}
	if (fc && !*name)
		p->leaf = leaf_type_of(fc);
	return p->leaf != LEAF_NONE;
}

static bool resolve_field(const struct fields *f, const void *cls, struct field_path *p)
{
	const struct event_classes *c = cls;
	const bt_event_class *ec = c->event;
	const bt_stream_class *sc = c->stream;
	*p = (struct field_path){ .leaf = LEAF_NONE };
	for (size_t i = 0; i < f->len; i++) {
		const char *name = f->f[i].path;
		switch (f->f[i].scope) {
		case SCOPE_PACKET:
			if (resolve_in_scope(bt_stream_class_borrow_packet_context_field_class_const(sc), ROOT_PACKET, name, p))
				return true;
			break;
		case SCOPE_CONTEXT:
			if (ec && resolve_in_scope(bt_event_class_borrow_specific_context_field_class_const(ec),
			                     ROOT_SPECIFIC, name, p))
				return true;
			if (resolve_in_scope(bt_stream_class_borrow_event_common_context_field_class_const(sc), ROOT_COMMON,
			               name, p))
				return true;
			break;
		case SCOPE_PAYLOAD:
			if (ec && resolve_in_scope(bt_event_class_borrow_payload_field_class_const(ec), ROOT_PAYLOAD, name, p))
				return true;
			break;
		}
	}
	return false;
}

/* ---- reading: field paths -> values */

static const bt_field *borrow_field(const struct field_path *p, const bt_event *event)
{
	const bt_field *f = NULL;
	switch (p->root) {
	case ROOT_PACKET:
		f = bt_packet_borrow_context_field_const(bt_event_borrow_packet_const(event));
		break;
	case ROOT_COMMON:
		f = bt_event_borrow_common_context_field_const(event);
		break;
	case ROOT_SPECIFIC:
		f = bt_event_borrow_specific_context_field_const(event);
		break;
	case ROOT_PAYLOAD:
		f = bt_event_borrow_payload_field_const(event);
		break;
	}
	for (unsigned i = 0; f && i < p->steps; i++) {
		if (!p->step[i].is_option)
			f = bt_field_structure_borrow_member_field_by_index_const(f, p->step[i].index);
		else if (bt_field_variant_get_selected_option_index(f) == p->step[i].index)
			f = bt_field_variant_borrow_selected_option_field_const(f);
		else
			f = NULL;
	}
	return f;
}

static int64_t read_number(enum leaf_type leaf, const bt_field *f)
{
	if (!f)
		return EVENT_ABSENT;
	switch (leaf) {
	case LEAF_UNSIGNED: return (int64_t)bt_field_integer_unsigned_get_value(f);
	case LEAF_SIGNED: return bt_field_integer_signed_get_value(f);
	case LEAF_BOOL: return bt_field_bool_get_value(f);
	case LEAF_BITS: return (int64_t)bt_field_bit_array_get_value_as_integer(f);
	default: return EVENT_ABSENT;
	}
}

static int64_t field_number(const struct field_path *p, const void *event)
{
	return p->leaf == LEAF_NONE ? EVENT_ABSENT : read_number(p->leaf, borrow_field(p, event));
}

static const char *field_text(const struct field_path *p, const void *event, size_t *max_len)
{
	const bt_field *f = p->leaf == LEAF_TEXT ? borrow_field(p, event) : NULL;
	if (f)
		*max_len = bt_field_string_get_length(f);
	return f ? bt_field_string_get_value(f) : NULL;
}

static const struct field_source ctf_fields = { resolve_field, field_number, field_text };

static struct bound_class *bind_class(const struct layout *l, const bt_event_class *ec)
{
	const struct event_classes cls = { ec, bt_event_class_borrow_stream_class_const(ec) };
	struct bound_class *c = rules_bind(l, bt_event_class_get_name(ec), &ctf_fields, &cls);
	if (c->cpu.root == ROOT_PACKET)
		c->cpu.leaf = LEAF_NONE;  /* the CPU in the packet context is read once per packet */
	return c;
}

static const struct bound_class *get_bound_class(struct binder *b, const bt_event_class *ec)
{
	bool is_new;
	uint64_t *at = map_put(&b->by_class, (uint64_t)(uintptr_t)ec, &is_new);
	if (is_new) {
		*at = b->len;
		*ARRAY_PUSH(b->cls, b->len, b->cap) = bind_class(b->layout, ec);
	}
	b->last = ec;
	b->last_bound = b->cls[*at];
	return b->last_bound;
}

bool binder_event(struct binder *b, const bt_event *event, uint16_t cpu, struct event *ev, struct event *counters)
{
	const bt_event_class *ec = bt_event_borrow_class_const(event);
	const struct bound_class *c = ec == b->last ? b->last_bound : get_bound_class(b, ec);
	rules_event(c, &ctf_fields, b->names, event, cpu, ev);
	return rules_counters(c, &ctf_fields, event, ev, counters);
}

int64_t binder_packet_cpu(struct binder *b, const bt_packet *packet)
{
	const bt_stream_class *sc = bt_stream_borrow_class_const(bt_packet_borrow_stream_const(packet));
	if (sc != b->packet_class) {
		b->packet_class = sc;
		resolve_field(&b->layout->cpu, &(struct event_classes){ NULL, sc }, &b->packet_cpu);
		if (b->packet_cpu.root != ROOT_PACKET)
			b->packet_cpu.leaf = LEAF_NONE;
	}
	const struct field_path *p = &b->packet_cpu;
	if (p->leaf == LEAF_NONE)
		return -1;
	const bt_field *f = bt_packet_borrow_context_field_const(packet);
	for (unsigned i = 0; f && i < p->steps; i++)
		f = p->step[i].is_option ? NULL :
			bt_field_structure_borrow_member_field_by_index_const(f, p->step[i].index);
	int64_t cpu = read_number(p->leaf, f);
	return cpu == EVENT_ABSENT ? -1 : cpu;
}

struct binder *binder_new(const struct layout *layout, struct string_cache *names)
{
	struct binder *b = mem_new(1, sizeof *b);
	b->layout = layout;
	b->names = names;
	return b;
}

size_t binder_score(const struct layout *layout, const bt_trace_class *tc, unsigned *enabled_events)
{
	size_t score = 0;
	*enabled_events = 0;
	for (uint64_t s = 0; s < bt_trace_class_get_stream_class_count(tc); s++) {
		const bt_stream_class *sc = bt_trace_class_borrow_stream_class_by_index_const(tc, s);
		for (uint64_t e = 0; e < bt_stream_class_get_event_class_count(sc); e++) {
			const bt_event_class *ec = bt_stream_class_borrow_event_class_by_index_const(sc, e);
			const struct event_classes cls = { ec, sc };
			score += rules_score(layout, bt_event_class_get_name(ec), &ctf_fields, &cls, enabled_events);
		}
	}
	return score;
}
