#include "trace/bind.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"

#define DEEPEST 8  /* nested structures and variants on the way to a field */

enum root { ROOT_PACKET, ROOT_COMMON, ROOT_SPECIFIC, ROOT_PAYLOAD };
enum leaf { LEAF_NONE, LEAF_UNSIGNED, LEAF_SIGNED, LEAF_BOOL, LEAF_BITS, LEAF_TEXT };

struct step {
	bool is_option;  /* of a variant; else a member of a structure */
	uint32_t index;
};

struct path {
	enum leaf leaf;  /* LEAF_NONE: the event class has no such field */
	enum root root;
	unsigned steps;
	struct step step[DEEPEST];
};

struct bound_rule {
	const struct rule *rule;
	struct path arg[RECORD_ARGS], text;
	struct path *key;   /* the fields of a key that is made of several */
	size_t keys;
	struct path *when;  /* rule->whens of them */
};

struct bound_class {
	struct bound_rule *rule;
	size_t rules, cap;
	struct path cpu, tid, pid, comm;
};

struct binder {
	const struct layout *layout;
	struct name_cache *names;
	struct map by_class;  /* bt_event_class -> index into cls */
	struct bound_class **cls;
	size_t len, cap;
	const bt_event_class *last;
	const struct bound_class *last_bound;
	const bt_stream_class *packet_class;  /* that packet_cpu is for */
	struct path packet_cpu;
};

/* ---- binding: names -> paths of indexes */

/* Names of C keywords and of LTTng's variant options carry an underscore that is not theirs. */
static bool same_name(const char *name, const char *want, size_t len)
{
	if (strncmp(name, want, len) == 0 && !name[len])
		return true;
	return name[0] == '_' && strncmp(name + 1, want, len) == 0 && !name[1 + len];
}

static const bt_field_class *find_member(const bt_field_class *fc, const char *want, size_t len, struct step *step)
{
	step->is_option = false;
	for (uint64_t i = 0; i < bt_field_class_structure_get_member_count(fc); i++) {
		const bt_field_class_structure_member *m =
			bt_field_class_structure_borrow_member_by_index_const(fc, i);
		if (same_name(bt_field_class_structure_member_get_name(m), want, len)) {
			step->index = (uint32_t)i;
			return bt_field_class_structure_member_borrow_field_class_const(m);
		}
	}
	return NULL;
}

static const bt_field_class *find_option(const bt_field_class *fc, const char *want, size_t len, struct step *step)
{
	step->is_option = true;
	for (uint64_t i = 0; i < bt_field_class_variant_get_option_count(fc); i++) {
		const bt_field_class_variant_option *o =
			bt_field_class_variant_borrow_option_by_index_const(fc, i);
		const char *name = bt_field_class_variant_option_get_name(o);
		if (name && same_name(name, want, len)) {
			step->index = (uint32_t)i;
			return bt_field_class_variant_option_borrow_field_class_const(o);
		}
	}
	return NULL;
}

static enum leaf leaf_of(const bt_field_class *fc)
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

static bool resolve_in(const bt_field_class *fc, enum root root, const char *name, struct path *p)
{
	*p = (struct path){ .root = root };
	while (fc && *name && p->steps < DEEPEST) {
		size_t len = strcspn(name, ".");
		struct step *step = &p->step[p->steps++];
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
		p->leaf = leaf_of(fc);
	return p->leaf != LEAF_NONE;
}

static bool resolve(const struct fields *f, const bt_event_class *ec, const bt_stream_class *sc, struct path *p)
{
	*p = (struct path){ .leaf = LEAF_NONE };
	for (size_t i = 0; i < f->len; i++) {
		const char *name = f->f[i].path;
		switch (f->f[i].scope) {
		case SCOPE_PACKET:
			if (resolve_in(bt_stream_class_borrow_packet_context_field_class_const(sc), ROOT_PACKET, name, p))
				return true;
			break;
		case SCOPE_CONTEXT:
			if (ec && resolve_in(bt_event_class_borrow_specific_context_field_class_const(ec),
			                     ROOT_SPECIFIC, name, p))
				return true;
			if (resolve_in(bt_stream_class_borrow_event_common_context_field_class_const(sc), ROOT_COMMON,
			               name, p))
				return true;
			break;
		case SCOPE_PAYLOAD:
			if (ec && resolve_in(bt_event_class_borrow_payload_field_class_const(ec), ROOT_PAYLOAD, name, p))
				return true;
			break;
		}
	}
	return false;
}

static bool has_name(const struct rule *r, const char *name)
{
	for (size_t i = 0; i < r->names; i++)
		if (strcmp(r->name[i], name) == 0)
			return true;
	return false;
}

static void bound_rule_release(struct bound_rule *b)
{
	free(b->key);
	free(b->when);
}

/* False when the event class lacks a field without which the rule is useless. */
static bool bind_rule(const struct rule *r, const bt_event_class *ec, const bt_stream_class *sc, struct bound_rule *b)
{
	*b = (struct bound_rule){ .rule = r };
	for (unsigned i = 0; i < RECORD_ARGS; i++) {
		const struct role *role = layout_role(r->kind, i);
		if (!role || (i == 1 && r->key_all))
			continue;
		bool found = resolve(&r->arg[i], ec, sc, &b->arg[i]);
		if (role->is_text != (b->arg[i].leaf == LEAF_TEXT)) {
			b->arg[i].leaf = LEAF_NONE;
			found = false;
		}
		if (role->required && !found)
			return false;
		if (i == 1 && r->arg[1].len && !found && (r->kind == EV_SYNC || r->kind == EV_MARK))
			return false;
	}
	if (r->pattern && !(resolve(&r->text, ec, sc, &b->text) && b->text.leaf == LEAF_TEXT))
		return false;
	if (r->key_all) {
		b->key = mem_new(r->arg[1].len, sizeof *b->key);
		for (; b->keys < r->arg[1].len; b->keys++) {
			const struct fields one = { &r->arg[1].f[b->keys], 1, 1 };
			if (!resolve(&one, ec, sc, &b->key[b->keys]) || b->key[b->keys].leaf == LEAF_TEXT)
				return false;
		}
	}
	b->when = r->whens ? mem_new(r->whens, sizeof *b->when) : NULL;
	for (size_t i = 0; i < r->whens; i++)
		if (!resolve(&r->when[i].field, ec, sc, &b->when[i]) || b->when[i].leaf == LEAF_TEXT)
			return false;
	return true;
}

static struct bound_class *bind_class(struct binder *b, const bt_event_class *ec)
{
	const bt_stream_class *sc = bt_event_class_borrow_stream_class_const(ec);
	const char *name = bt_event_class_get_name(ec);
	struct bound_class *c = mem_new(1, sizeof *c);
	const struct layout *l = b->layout;
	for (size_t i = 0; name && i < l->rules; i++) {
		struct bound_rule bound;
		if (!has_name(&l->rule[i], name))
			continue;
		if (bind_rule(&l->rule[i], ec, sc, &bound))
			*ARRAY_PUSH(c->rule, c->rules, c->cap) = bound;
		else
			bound_rule_release(&bound);
	}
	resolve(&l->cpu, ec, sc, &c->cpu);
	resolve(&l->tid, ec, sc, &c->tid);
	resolve(&l->pid, ec, sc, &c->pid);
	resolve(&l->comm, ec, sc, &c->comm);
	if (c->cpu.root == ROOT_PACKET)
		c->cpu.leaf = LEAF_NONE;  /* read once per packet */
	return c;
}

/* ---- reading: paths -> values */

static const bt_field *walk(const struct path *p, const bt_event *event)
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

static int64_t number_of(enum leaf leaf, const bt_field *f)
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

static int64_t number(const struct path *p, const bt_event *event)
{
	return p->leaf == LEAF_NONE ? EVENT_ABSENT : number_of(p->leaf, walk(p, event));
}

static const char *text(const struct path *p, const bt_event *event)
{
	const bt_field *f = p->leaf == LEAF_TEXT ? walk(p, event) : NULL;
	return f ? bt_field_string_get_value(f) : NULL;
}

/* A key of several fields: mixed into one number (splitmix64's finalizer), never negative. */
static int64_t mixed_key(const struct bound_rule *b, const bt_event *event)
{
	uint64_t h = 0;
	for (size_t i = 0; i < b->keys; i++) {
		int64_t v = number(&b->key[i], event);
		if (v == EVENT_ABSENT)
			return EVENT_ABSENT;
		h = (h ^ (uint64_t)v) + 0x9E3779B97F4A7C15ULL;
		h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9ULL;
		h = (h ^ h >> 27) * 0x94D049BB133111EBULL;
		h ^= h >> 31;
	}
	return (int64_t)(h & INT64_MAX);
}

/* Does the rule apply to this event?  word: what its text gave, see layout_match(). */
static bool applies(const struct bound_rule *b, const bt_event *event, int64_t word[2])
{
	for (size_t i = 0; i < b->rule->whens; i++)
		if (number(&b->when[i], event) != b->rule->when[i].value)
			return false;
	word[0] = word[1] = EVENT_ABSENT;
	if (!b->rule->pattern)
		return true;
	const char *s = text(&b->text, event);
	return s && layout_match(b->rule->pattern, s, word);
}

static bool fill(struct binder *binder, const struct bound_rule *b, const bt_event *event, const int64_t word[2],
                 struct event *ev)
{
	ev->kind = (uint16_t)b->rule->kind;
	for (unsigned i = 0; i < event_args[ev->kind]; i++) {
		const char *s;
		if (b->arg[i].leaf != LEAF_TEXT)
			ev->arg[i] = number(&b->arg[i], event);
		else if ((s = text(&b->arg[i], event)))
			ev->arg[i] = name_cache_put(binder->names, s);
	}
	switch (ev->kind) {
	case EV_SWITCH:
		if (ev->sw.prev_state != EVENT_ABSENT)
			ev->sw.prev_state = layout_run_state(&b->rule->states, ev->sw.prev_state);
		break;
	case EV_EXEC:
	case EV_EXIT:
		if (ev->arg[0] == EVENT_ABSENT)
			ev->arg[0] = ev->tid;
		break;
	case EV_SYNC:
	case EV_MARK:
		ev->arg[0] = b->rule->fixed;
		if (b->keys)
			ev->arg[1] = mixed_key(b, event);
		if (word[0] != EVENT_ABSENT)
			ev->arg[1] = word[0];
		if (word[1] != EVENT_ABSENT)
			ev->arg[2] = word[1];
		return ev->arg[1] != EVENT_ABSENT;
	default:
		break;
	}
	return true;
}

static const struct bound_class *bound(struct binder *b, const bt_event_class *ec)
{
	bool is_new;
	uint64_t *at = map_put(&b->by_class, (uint64_t)(uintptr_t)ec, &is_new);
	if (is_new) {
		*at = b->len;
		*ARRAY_PUSH(b->cls, b->len, b->cap) = bind_class(b, ec);
	}
	b->last = ec;
	b->last_bound = b->cls[*at];
	return b->last_bound;
}

void binder_event(struct binder *b, const bt_event *event, uint16_t cpu, struct event *ev)
{
	const bt_event_class *ec = bt_event_borrow_class_const(event);
	const struct bound_class *c = ec == b->last ? b->last_bound : bound(b, ec);
	int64_t v;
	const char *s;
	ev->cpu = c->cpu.leaf && (v = number(&c->cpu, event)) != EVENT_ABSENT ? (uint16_t)v : cpu;
	ev->tid = c->tid.leaf && (v = number(&c->tid, event)) != EVENT_ABSENT ? (int32_t)v : -1;
	ev->pid = c->pid.leaf && (v = number(&c->pid, event)) != EVENT_ABSENT ? (int32_t)v : -1;
	ev->comm = (s = text(&c->comm, event)) ? name_cache_put(b->names, s) : 0;
	for (size_t i = 0; i < c->rules; i++) {
		int64_t word[2];
		if (!applies(&c->rule[i], event, word))
			continue;
		for (unsigned k = 0; k < RECORD_ARGS; k++)
			ev->arg[k] = EVENT_ABSENT;
		if (fill(b, &c->rule[i], event, word, ev))
			return;
	}
	ev->kind = EV_OTHER;
}

int64_t binder_packet_cpu(struct binder *b, const bt_packet *packet)
{
	const bt_stream_class *sc = bt_stream_borrow_class_const(bt_packet_borrow_stream_const(packet));
	if (sc != b->packet_class) {
		b->packet_class = sc;
		resolve(&b->layout->cpu, NULL, sc, &b->packet_cpu);
		if (b->packet_cpu.root != ROOT_PACKET)
			b->packet_cpu.leaf = LEAF_NONE;
	}
	const struct path *p = &b->packet_cpu;
	if (p->leaf == LEAF_NONE)
		return -1;
	const bt_field *f = bt_packet_borrow_context_field_const(packet);
	for (unsigned i = 0; f && i < p->steps; i++)
		f = p->step[i].is_option ? NULL :
			bt_field_structure_borrow_member_field_by_index_const(f, p->step[i].index);
	int64_t cpu = number_of(p->leaf, f);
	return cpu == EVENT_ABSENT ? -1 : cpu;
}

struct binder *binder_new(const struct layout *layout, struct name_cache *names)
{
	struct binder *b = mem_new(1, sizeof *b);
	b->layout = layout;
	b->names = names;
	return b;
}

static void bound_class_free(struct bound_class *c)
{
	for (size_t i = 0; i < c->rules; i++)
		bound_rule_release(&c->rule[i]);
	free(c->rule);
	free(c);
}

void binder_free(struct binder *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->len; i++)
		bound_class_free(b->cls[i]);
	free(b->cls);
	map_release(&b->by_class);
	free(b);
}

size_t binder_score(const struct layout *layout, const bt_trace_class *tc)
{
	size_t score = 0;
	struct binder b = { .layout = layout };
	for (uint64_t s = 0; s < bt_trace_class_get_stream_class_count(tc); s++) {
		const bt_stream_class *sc = bt_trace_class_borrow_stream_class_by_index_const(tc, s);
		for (uint64_t e = 0; e < bt_stream_class_get_event_class_count(sc); e++) {
			struct bound_class *c =
				bind_class(&b, bt_stream_class_borrow_event_class_by_index_const(sc, e));
			for (size_t i = 0; i < c->rules; i++)  /* nothing works without switches */
				score += c->rule[i].rule->kind == EV_SWITCH ? 100 : 1;
			bound_class_free(c);
		}
	}
	return score;
}
