/* Types -> programs.
 *
 * While it goes through the fields, the compiler knows its place modulo a power of two.  As long as that is enough to align
 * the next field, a block goes on; at an operation that moves by an amount which only the event knows it ends. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/ctf/program_ops.h"

#define MOST_OPS 100000
#define LONGEST_BLOCK ((uint64_t)1 << 40)  /* bits */

struct compiler {
	struct ctf_program *p;
	bool is_big, is_header;
	struct ctf_place place;
	size_t block;             /* index of the open one + 1; 0: none */
	unsigned within;          /* variants, and arrays that may be empty */
	const char *why;
};

static struct ctf_op *emit(struct compiler *c, enum ctf_code code)
{
	if (c->p->ops >= MOST_OPS)
		c->why = "too many fields";
	struct ctf_op *op = ARRAY_PUSH(c->p->op, c->p->ops, c->p->cap);
	*op = (struct ctf_op){ .code = code, .slot = CTF_NO_SLOT, .teller = CTF_NO_SLOT };
	return op;
}

static void moved(struct compiler *c, uint64_t modulus, uint64_t rest)
{
	c->block = 0;
	c->place.modulus = modulus;
	c->place.rest = rest;
}

/* `bits` at a place that the open block, or a new one, knows; where in it. */
static uint64_t fixed(struct compiler *c, uint64_t bits)
{
	if (!c->block) {
		emit(c, OP_BLOCK);
		c->block = c->p->ops;
	}
	struct ctf_op *block = &c->p->op[c->block - 1];
	const uint64_t offset = block->n;
	if (bits > LONGEST_BLOCK - offset) {
		c->why = "a structure that is too long";
		return 0;
	}
	block->n += bits;
	c->place.rest = (c->place.rest + bits) % c->place.modulus;
	return offset;
}

static void align(struct compiler *c, uint64_t to)
{
	if (to <= c->place.modulus) {
		const uint64_t over = c->place.rest % to;
		if (over)
			fixed(c, to - over);
		return;
	}
	emit(c, OP_ALIGN)->n = to;
	moved(c, to, 0);
}

static bool at_byte(const struct compiler *c)
{
	return c->place.modulus >= 8 && c->place.rest % 8 == 0;
}

static void want_reset(struct compiler *c, uint32_t slot)
{
	if (c->within && !c->is_header && slot != CTF_NO_SLOT)
		*ARRAY_PUSH(c->p->conditional, c->p->conditionals, c->p->conditionals_cap) = slot;
}

static enum ctf_code whole_code(uint32_t size, bool is_signed, bool is_big)
{
	switch (size) {
	case 8: return is_signed ? OP_S8 : OP_U8;
	case 16: return is_big ? (is_signed ? OP_BE_S16 : OP_BE_U16) : is_signed ? OP_LE_S16 : OP_LE_U16;
	case 32: return is_big ? (is_signed ? OP_BE_S32 : OP_BE_U32) : is_signed ? OP_LE_S32 : OP_LE_U32;
	case 64: return is_big ? OP_BE_64 : OP_LE_64;
	default: return OP_BITS;
	}
}

/* What else an integer of a header tells. */
static void told_by(struct compiler *c, const struct ctf_type *t, const char *name)
{
	if (!c->is_header)
		return;
	if (t->clock) {
		struct ctf_op *op = emit(c, OP_TIME);
		op->slot = t->slot;
		op->size = (uint8_t)t->size;
	}
	if (name && strcmp(name, "id") == 0)
		emit(c, OP_CLASS)->slot = t->slot;
}

static void variable(struct compiler *c, struct ctf_type *t, const char *name)
{
	if (t->clock)
		c->why = "a time of as many bits as it needs";
	struct ctf_op *op = emit(c, OP_VARIABLE);
	op->slot = t->slot;
	op->is_signed = t->is_signed;
	t->is_placed = true;
	want_reset(c, t->slot);
	moved(c, 8, 0);
	if (t->slot != CTF_NO_SLOT)
		told_by(c, t, name);
}

static void integer(struct compiler *c, struct ctf_type *t, const char *name)
{
	const bool is_big = t->order == CTF_NATIVE ? c->is_big : t->order == CTF_BIG;
	const bool is_whole = at_byte(c);
	if (t->is_variable) {
		variable(c, t, name);
		return;
	}
	if (is_big != c->is_big && (!is_whole || t->size % 8))
		c->why = "bits of both byte orders in one byte";
	const uint64_t offset = fixed(c, t->size);
	if (t->clock && !c->is_header)
		c->why = "a time within an event's fields";
	if (t->slot == CTF_NO_SLOT)
		return;
	t->is_placed = true;
	struct ctf_op *op = emit(c, is_whole ? whole_code(t->size, t->is_signed, is_big) : OP_BITS);
	op->offset = offset;
	op->slot = t->slot;
	op->size = (uint8_t)t->size;
	op->is_signed = t->is_signed;
	op->is_big = is_big;
	want_reset(c, t->slot);
	told_by(c, t, name);
}

static void compile(struct compiler *c, struct ctf_type *t, const char *name);

/* The bits of an element, with what aligns the next one; 0: not always the same. */
static uint64_t stride(const struct ctf_type *t)
{
	uint64_t bits = 0, n;
	switch (t->kind) {
	case CTF_INTEGER:
	case CTF_FLOAT:
		bits = t->size;
		break;
	case CTF_STRUCT:
		for (const struct ctf_member *m = t->member; m; m = m->next) {
			n = stride(m->type);
			if (!n || n > LONGEST_BLOCK || bits > LONGEST_BLOCK)
				return 0;
			bits = (bits + m->type->align - 1) / m->type->align * m->type->align + n;
		}
		break;
	case CTF_ARRAY:
		n = stride(t->element);
		bits = t->where || n > LONGEST_BLOCK || t->length > LONGEST_BLOCK / (n ? n : 1) ? 0 : n * t->length;
		break;
	default:
		return 0;
	}
	return bits % t->align ? 0 : bits;
}

static void told_array(struct compiler *c, const struct ctf_type *t, uint64_t bits)
{
	struct ctf_op *op = emit(c, OP_ARRAY);
	op->teller = t->teller->slot;
	op->n = bits;
	op->slot = t->is_text ? t->slot : CTF_NO_SLOT;
	want_reset(c, op->slot);
	const uint64_t step = bits & -bits;  /* the largest power of two that divides it */
	moved(c, step < t->align ? step : t->align, 0);
}

static void walked_array(struct compiler *c, const struct ctf_type *t)
{
	const size_t at = c->p->ops;
	struct ctf_op *op = emit(c, OP_REPEAT);
	op->n = t->length;
	op->teller = t->where ? t->teller->slot : CTF_NO_SLOT;
	c->within++;
	moved(c, 1, 0);
	compile(c, t->element, NULL);
	c->within--;
	moved(c, 1, 0);
	c->p->op[at].skip = (uint32_t)(c->p->ops - at);
}

static void array(struct compiler *c, const struct ctf_type *t)
{
	const uint64_t bits = stride(t->element);
	if (t->where && bits) {
		told_array(c, t, bits);
	} else if (bits && t->length <= LONGEST_BLOCK / bits) {
		const bool is_whole = at_byte(c);
		const uint64_t offset = fixed(c, bits * t->length);
		if (!t->is_text || t->slot == CTF_NO_SLOT)
			return;
		if (!is_whole)
			c->why = "a text that does not begin at a byte";
		struct ctf_op *op = emit(c, OP_CHARACTERS);
		op->offset = offset;
		op->n = t->length;
		op->slot = t->slot;
		want_reset(c, t->slot);
	} else {
		walked_array(c, t);
	}
}

static void add_options(struct compiler *c, size_t variant, const struct ctf_type *teller, const struct ctf_member *m)
{
	const uint32_t skip = (uint32_t)(c->p->ops - variant);
	struct ctf_op *op = &c->p->op[variant];
	for (const struct ctf_label *l = m->range ? m->range : teller->label; l; l = l->next)
		if (m->range || strcmp(l->name, m->name) == 0)
			*ARRAY_PUSH(op->option, op->options, op->options_cap) =
				(struct ctf_option){ l->lower, l->upper, skip };
}

/* What is known of the place behind a variant: what is true of the ends of all options. */
static void meet(struct compiler *c, bool first, uint64_t *modulus, uint64_t *rest)
{
	*modulus = first || c->place.modulus < *modulus ? c->place.modulus : *modulus;
	*rest = first ? c->place.rest : *rest;
	while (*modulus > 1 && *rest % *modulus != c->place.rest % *modulus)
		*modulus /= 2;
	*rest %= *modulus;
}

static void variant(struct compiler *c, const struct ctf_type *t)
{
	const uint64_t modulus = c->place.modulus, rest = c->place.rest;
	const size_t at = c->p->ops;
	uint64_t end_modulus = 1, end_rest = 0;
	struct ctf_op *op = emit(c, OP_VARIANT);
	op->teller = t->teller->slot;
	op->is_signed = t->teller->is_signed;
	c->within++;
	for (const struct ctf_member *m = t->member; m && !c->why; m = m->next) {
		moved(c, modulus, rest);
		add_options(c, at, t->teller, m);
		compile(c, m->type, m->name);
		meet(c, m == t->member, &end_modulus, &end_rest);
		if (m->next)
			emit(c, OP_JUMP);
	}
	c->within--;
	/* The jumps behind the options are those that have no aim yet. */
	for (size_t i = at; i < c->p->ops; i++)
		if (c->p->op[i].code == OP_JUMP && !c->p->op[i].skip)
			c->p->op[i].skip = (uint32_t)(c->p->ops - i);
	moved(c, end_modulus, end_rest);
}

static void compile(struct compiler *c, struct ctf_type *t, const char *name)
{
	align(c, t->align);
	if (t->teller && !t->teller->is_placed)
		c->why = "an array or a variant before the integer that tells about it";
	switch (t->kind) {
	case CTF_INTEGER:
		integer(c, t, name);
		break;
	case CTF_FLOAT:
		fixed(c, t->size);
		break;
	case CTF_STRING:
		emit(c, OP_STRING)->slot = t->slot;
		want_reset(c, t->slot);
		moved(c, 8, 0);
		break;
	case CTF_STRUCT:
		for (const struct ctf_member *m = t->member; m && !c->why; m = m->next)
			compile(c, m->type, m->name);
		break;
	case CTF_VARIANT:
		variant(c, t);
		break;
	case CTF_ARRAY:
		array(c, t);
		break;
	}
}

const char *ctf_compile(struct ctf_program *p, struct ctf_type *const *root, size_t roots, struct ctf_place *place,
                        bool is_big, bool is_header)
{
	struct compiler c = { .p = p, .is_big = is_big, .is_header = is_header, .place = *place };
	for (size_t i = 0; i < roots && !c.why; i++)
		if (root[i])
			compile(&c, root[i], NULL);
	*place = c.place;
	return c.why;
}

/* ---- fields that others depend on */

struct field_search {
	const struct ctf_scopes *scopes;
	struct ctf_slots *slots;
	const struct ctf_type *around[CTF_DEEPEST + 2];  /* the structures around the field */
	size_t depth;
	const char *why;
};

bool ctf_want(struct ctf_type *t, struct ctf_slots *slots)
{
	if (t->slot != CTF_NO_SLOT)
		return true;
	if (slots->next >= slots->end)
		return false;
	t->slot = slots->next++;
	return true;
}

static struct ctf_type *descend(const struct ctf_type *t, const char *path)
{
	for (;;) {
		const size_t len = strcspn(path, ".");
		struct ctf_type *found = t && t->kind == CTF_STRUCT ? ctf_member_find(t, path, len) : NULL;
		if (!found || !path[len])
			return found;
		t = found;
		path += len + 1;
	}
}

static struct ctf_type *find_teller(const struct field_search *s, const char *path)
{
	const struct { const char *prefix; const struct ctf_type *root; } absolute[] = {
		{ "trace.packet.header.", s->scopes->packet_header },
		{ "stream.packet.context.", s->scopes->packet_context },
		{ "stream.event.header.", s->scopes->event_header },
		{ "stream.event.context.", s->scopes->event_context },
		{ "event.context.", s->scopes->own_context },
		{ "event.fields.", s->scopes->payload },
	};
	for (size_t i = s->depth; i-- > 0;) {
		struct ctf_type *found = descend(s->around[i], path);
		if (found)
			return found;
	}
	for (size_t i = 0; i < sizeof absolute / sizeof *absolute; i++) {
		const size_t len = strlen(absolute[i].prefix);
		if (strncmp(path, absolute[i].prefix, len) == 0)
			return descend(absolute[i].root, path + len);
	}
	return NULL;
}

static void resolve(struct field_search *s, struct ctf_type *t)
{
	if (s->why)
		return;
	if (s->depth > CTF_DEEPEST) {
		s->why = "types within types without end";
		return;
	}
	if ((t->kind == CTF_ARRAY && t->where) || t->kind == CTF_VARIANT) {
		const bool is_known = t->teller != NULL;  /* (CTF 2) */
		if (!is_known)
			t->teller = t->where ? find_teller(s, t->where) : NULL;
		const bool is_labelled = is_known || (t->teller && t->teller->label);
		if (!t->teller || t->teller->kind != CTF_INTEGER || (t->kind == CTF_VARIANT && !is_labelled) ||
		    (t->kind == CTF_ARRAY && t->teller->is_signed) || !ctf_want(t->teller, s->slots)) {
			s->why = "an array or a variant that no integer before it tells about";
			return;
		}
	}
	s->around[s->depth++] = t;
	for (struct ctf_member *m = t->member; m; m = m->next)
		resolve(s, m->type);
	if (t->element)
		resolve(s, t->element);
	s->depth--;
}

const char *ctf_resolve(struct ctf_type *root, const struct ctf_scopes *scopes, struct ctf_slots *slots)
{
	struct field_search s = { .scopes = scopes, .slots = slots };
	if (root)
		resolve(&s, root);
	return s.why;
}

static const char *want_header(struct ctf_type *t, const char *name, struct ctf_slots *slots)
{
	const bool is_class = t->kind == CTF_INTEGER && name && strcmp(name, "id") == 0;
	if (is_class && t->is_signed)
		return "an event class with a sign";
	if (t->kind == CTF_INTEGER && t->clock && t->is_signed)
		return "a time with a sign";
	if ((is_class || (t->kind == CTF_INTEGER && t->clock)) && !ctf_want(t, slots))
		return "too many fields in the event's header";
	if (t->kind == CTF_ARRAY)
		return NULL;
	for (struct ctf_member *m = t->member; m; m = m->next) {
		const char *why = want_header(m->type, m->name, slots);
		if (why)
			return why;
	}
	return NULL;
}

const char *ctf_want_header(struct ctf_type *header, struct ctf_slots *slots)
{
	return want_header(header, NULL, slots);
}
