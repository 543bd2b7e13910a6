/* Compiler from CTF types to programs.
 *
 * The compiler tracks the bit position modulo a power of two. A block continues as long as this is enough to align the
 * next field; it ends at an operation that advances by an amount known only at run time. */
#include "base/base.h"
#include "trace/ctf/program_ops.h"

#define MAX_OPS 100000
#define MAX_BLOCK ((uint64_t)1 << 40)  /* bits */

struct compiler {
	struct ctf_program *p;
	bool is_big, is_header;
	struct ctf_position position;
	size_t block;                /* index of the current block's operation + 1; 0: none */
	unsigned conditional_depth;  /* variants and possibly empty arrays around the field */
	enum byte_bits { BITS_LITTLE, BITS_BIG, BITS_UNKNOWN } bits;  /* the bits' order before the position in their byte */
	bool has_other_order;        /* fields in another byte order than the trace's occurred */
	const char *reason;
};

static struct ctf_op *emit_op(struct compiler *c, enum ctf_code code)
{
	if (c->p->ops >= MAX_OPS)
		c->reason = "too many fields";
	struct ctf_op *op = ARRAY_PUSH(c->p->op, c->p->ops, c->p->cap);
	*op = (struct ctf_op){ .code = code, .slot = CTF_NO_SLOT, .control_slot = CTF_NO_SLOT };
	return op;
}

static void set_position(struct compiler *c, uint64_t modulus, uint64_t remainder)
{
	c->block = 0;
	c->position.modulus = modulus;
	c->position.remainder = remainder;
}

/* Extends the current block by `bits` bits, or starts a new block. Returns the offset of these bits in the block. */
static uint64_t append_to_block(struct compiler *c, uint64_t bits)
{
	if (!c->block) {
		emit_op(c, OP_BLOCK);
		c->block = c->p->ops;
	}
	struct ctf_op *block = &c->p->op[c->block - 1];
	const uint64_t offset = block->n;
	if (bits > MAX_BLOCK - offset) {
		c->reason = "structure too long";
		return 0;
	}
	block->n += bits;
	c->position.remainder = (c->position.remainder + bits) % c->position.modulus;
	return offset;
}

static void compile_alignment(struct compiler *c, uint64_t to)
{
	if (to <= c->position.modulus) {
		const uint64_t excess = c->position.remainder % to;
		if (excess)
			append_to_block(c, to - excess);
		return;
	}
	emit_op(c, OP_ALIGN)->n = to;
	set_position(c, to, 0);
}

static bool is_byte_aligned(const struct compiler *c)
{
	return c->position.modulus >= 8 && c->position.remainder % 8 == 0;
}

static void add_conditional_slot(struct compiler *c, uint32_t slot)
{
	if (c->conditional_depth && !c->is_header && slot != CTF_NO_SLOT)
		*ARRAY_PUSH(c->p->conditional, c->p->conditionals, c->p->conditionals_cap) = slot;
}

static enum ctf_code byte_integer_op(uint32_t size, bool is_signed, bool is_big)
{
	switch (size) {
	case 8: return is_signed ? OP_S8 : OP_U8;
	case 16: return is_big ? (is_signed ? OP_BE_S16 : OP_BE_U16) : is_signed ? OP_LE_S16 : OP_LE_U16;
	case 32: return is_big ? (is_signed ? OP_BE_S32 : OP_BE_U32) : is_signed ? OP_LE_S32 : OP_LE_U32;
	case 64: return is_big ? OP_BE_64 : OP_LE_64;
	default: return OP_BITS;
	}
}

/* Emits the operation for a header field with a special meaning: time or event class. */
static void emit_header_value(struct compiler *c, const struct ctf_type *t, const char *name)
{
	if (!c->is_header)
		return;
	if (t->clock) {
		struct ctf_op *op = emit_op(c, OP_UPDATE_CLOCK);
		op->slot = t->slot;
		op->size = (uint8_t)t->size;
	}
	if (name && strcmp(name, "id") == 0)
		emit_op(c, OP_SET_CLASS)->slot = t->slot;
}

static void compile_leb128(struct compiler *c, struct ctf_type *t, const char *name)
{
	if (t->clock)
		c->reason = "variable-length timestamp";
	struct ctf_op *op = emit_op(c, OP_LEB128);
	op->slot = t->slot;
	op->is_signed = t->is_signed;
	t->is_compiled = true;
	add_conditional_slot(c, t->slot);
	set_position(c, 8, 0);
	if (t->slot != CTF_NO_SLOT)
		emit_header_value(c, t, name);
}

static void compile_integer(struct compiler *c, struct ctf_type *t, const char *name)
{
	const bool is_big = t->order == CTF_NATIVE ? c->is_big : t->order == CTF_BIG;
	const bool byte_aligned = is_byte_aligned(c);
	if (t->is_variable) {
		compile_leb128(c, t, name);
		return;
	}
	c->has_other_order |= is_big != c->is_big;
	/* The order does not matter for the size: a field that is not needed is skipped. */
	const bool is_mixed = c->bits == BITS_UNKNOWN ? c->has_other_order : c->bits != (is_big ? BITS_BIG : BITS_LITTLE);
	if (t->slot != CTF_NO_SLOT && !byte_aligned && is_mixed)
		c->reason = "mixed byte orders within a byte";
	c->bits = is_big ? BITS_BIG : BITS_LITTLE;
	const uint64_t offset = append_to_block(c, t->size);
	if (t->clock && !c->is_header)
		c->reason = "timestamp among the event fields";
	if (t->slot == CTF_NO_SLOT)
		return;
	t->is_compiled = true;
	struct ctf_op *op = emit_op(c, byte_aligned ? byte_integer_op(t->size, t->is_signed, is_big) : OP_BITS);
	op->offset = offset;
	op->slot = t->slot;
	op->size = (uint8_t)t->size;
	op->is_signed = t->is_signed;
	op->is_big = is_big;
	add_conditional_slot(c, t->slot);
	emit_header_value(c, t, name);
}

static void compile_type(struct compiler *c, struct ctf_type *t, const char *name);

static bool contains_order(const struct ctf_type *t, enum ctf_order order)
{
	bool contains = t->kind == CTF_INTEGER && t->order == order;
	for (const struct ctf_member *m = t->member; m && !contains; m = m->next)
		contains = contains_order(m->type, order);
	return contains || (t->element && contains_order(t->element, order));
}

/* Returns the size of an array element in bits, including the padding before the next element. 0: not constant. */
static uint64_t element_bits(const struct ctf_type *t)
{
	uint64_t bits = 0, n;
	switch (t->kind) {
	case CTF_INTEGER:
	case CTF_FLOAT:
		bits = t->size;
		break;
	case CTF_STRUCT:
		for (const struct ctf_member *m = t->member; m; m = m->next) {
			n = element_bits(m->type);
			if (!n || n > MAX_BLOCK || bits > MAX_BLOCK)
				return 0;
			bits = (bits + m->type->align - 1) / m->type->align * m->type->align + n;
		}
		break;
	case CTF_ARRAY:
		n = element_bits(t->element);
		bits = t->control_path || n > MAX_BLOCK || t->length > MAX_BLOCK / (n ? n : 1) ? 0 : n * t->length;
		break;
	default:
		return 0;
	}
	return bits % t->align ? 0 : bits;
}

static void compile_counted_array(struct compiler *c, const struct ctf_type *t, uint64_t bits)
{
	struct ctf_op *op = emit_op(c, OP_ARRAY);
	op->control_slot = t->control->slot;
	op->n = bits;
	op->slot = t->is_text ? t->slot : CTF_NO_SLOT;
	add_conditional_slot(c, op->slot);
	c->has_other_order |= contains_order(t->element, c->is_big ? CTF_LITTLE : CTF_BIG);
	c->bits = BITS_UNKNOWN;
	const uint64_t step = bits & -bits;  /* largest power of two that divides `bits` */
	set_position(c, step < t->align ? step : t->align, 0);
}

static void compile_repeated_array(struct compiler *c, const struct ctf_type *t)
{
	const size_t at = c->p->ops;
	struct ctf_op *op = emit_op(c, OP_REPEAT);
	op->n = t->length;
	op->control_slot = t->control_path ? t->control->slot : CTF_NO_SLOT;
	c->conditional_depth++;
	c->has_other_order |= contains_order(t->element, c->is_big ? CTF_LITTLE : CTF_BIG);
	c->bits = BITS_UNKNOWN;
	set_position(c, 1, 0);
	compile_type(c, t->element, NULL);
	c->conditional_depth--;
	set_position(c, 1, 0);
	c->p->op[at].skip = (uint32_t)(c->p->ops - at);
}

static void compile_array(struct compiler *c, const struct ctf_type *t)
{
	const uint64_t bits = element_bits(t->element);
	if (t->control_path && bits) {
		compile_counted_array(c, t, bits);
	} else if (bits && t->length <= MAX_BLOCK / bits) {
		const bool byte_aligned = is_byte_aligned(c);
		const uint64_t offset = append_to_block(c, bits * t->length);
		c->has_other_order |= contains_order(t->element, c->is_big ? CTF_LITTLE : CTF_BIG);
		c->bits = BITS_UNKNOWN;
		if (!t->is_text || t->slot == CTF_NO_SLOT)
			return;
		if (!byte_aligned)
			c->reason = "string not at a byte boundary";
		struct ctf_op *op = emit_op(c, OP_CHARACTERS);
		op->offset = offset;
		op->n = t->length;
		op->slot = t->slot;
		add_conditional_slot(c, t->slot);
	} else {
		compile_repeated_array(c, t);
	}
}

static void add_options(struct compiler *c, size_t variant_op, const struct ctf_type *control, const struct ctf_member *m)
{
	const uint32_t skip = (uint32_t)(c->p->ops - variant_op);
	struct ctf_op *op = &c->p->op[variant_op];
	for (const struct ctf_label *l = m->range ? m->range : control->label; l; l = l->next)
		if (m->range || strcmp(l->name, m->name) == 0)
			*ARRAY_PUSH(op->option, op->options, op->options_cap) =
				(struct ctf_option){ l->lower, l->upper, skip };
}

/* Merges the known positions at the ends of a variant's options into one that is true for all options. */
static void merge_positions(struct compiler *c, bool first, uint64_t *modulus, uint64_t *remainder)
{
	*modulus = first || c->position.modulus < *modulus ? c->position.modulus : *modulus;
	*remainder = first ? c->position.remainder : *remainder;
	while (*modulus > 1 && *remainder % *modulus != c->position.remainder % *modulus)
		*modulus /= 2;
	*remainder %= *modulus;
}

static void compile_variant(struct compiler *c, const struct ctf_type *t)
{
	const uint64_t modulus = c->position.modulus, remainder = c->position.remainder;
	const size_t at = c->p->ops;
	const enum byte_bits bits = c->bits;
	enum byte_bits end_bits = bits;
	uint64_t end_modulus = 1, end_remainder = 0;
	struct ctf_op *op = emit_op(c, OP_VARIANT);
	op->control_slot = t->control->slot;
	op->is_signed = t->control->is_signed;
	c->conditional_depth++;
	for (const struct ctf_member *m = t->member; m && !c->reason; m = m->next) {
		set_position(c, modulus, remainder);
		c->bits = bits;
		add_options(c, at, t->control, m);
		compile_type(c, m->type, m->name);
		end_bits = m == t->member || c->bits == end_bits ? c->bits : BITS_UNKNOWN;
		merge_positions(c, m == t->member, &end_modulus, &end_remainder);
		if (m->next)
			emit_op(c, OP_JUMP);
	}
	c->conditional_depth--;
	/* Sets the destination of the jumps at the options' ends. */
	for (size_t i = at; i < c->p->ops; i++)
		if (c->p->op[i].code == OP_JUMP && !c->p->op[i].skip)
			c->p->op[i].skip = (uint32_t)(c->p->ops - i);
	set_position(c, end_modulus, end_remainder);
	c->bits = end_bits;
}

static void compile_type(struct compiler *c, struct ctf_type *t, const char *name)
{
	compile_alignment(c, t->align);
	if (t->control && !t->control->is_compiled)
		c->reason = "array length or variant selector comes after its use";
	switch (t->kind) {
	case CTF_INTEGER:
		compile_integer(c, t, name);
		break;
	case CTF_FLOAT:
		append_to_block(c, t->size);
		c->bits = BITS_UNKNOWN;
		break;
	case CTF_STRING:
		emit_op(c, OP_STRING)->slot = t->slot;
		add_conditional_slot(c, t->slot);
		set_position(c, 8, 0);
		break;
	case CTF_STRUCT:
		for (const struct ctf_member *m = t->member; m && !c->reason; m = m->next)
			compile_type(c, m->type, m->name);
		break;
	case CTF_VARIANT:
		compile_variant(c, t);
		break;
	case CTF_ARRAY:
		compile_array(c, t);
		break;
	}
}

const char *ctf_compile(struct ctf_program *p, struct ctf_type *const *root, size_t roots, struct ctf_position *position,
                        bool is_big, bool is_header)
{
	struct compiler c = { .p = p, .is_big = is_big, .is_header = is_header, .position = *position,
		.bits = BITS_UNKNOWN };
	for (size_t i = 0; i < roots && !c.reason; i++)
		if (root[i])
			compile_type(&c, root[i], NULL);
	*position = c.position;
	return c.reason;
}

/* ---- fields with lengths and selectors */

struct field_search {
	const struct ctf_scopes *scopes;
	struct ctf_slots *slots;
	const struct ctf_type *enclosing[CTF_MAX_DEPTH + 2];  /* structures around the field, outermost first */
	size_t depth;
	const char *reason;
};

bool ctf_assign_slot(struct ctf_type *t, struct ctf_slots *slots)
{
	if (t->slot != CTF_NO_SLOT)
		return true;
	if (slots->next >= slots->end)
		return false;
	t->slot = slots->next++;
	return true;
}

static struct ctf_type *find_by_path(const struct ctf_type *t, const char *path)
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

static struct ctf_type *find_control(const struct field_search *s, const char *path)
{
	const struct { const char *prefix; const struct ctf_type *root; } scope_prefix[] = {
		{ "trace.packet.header.", s->scopes->packet_header },
		{ "stream.packet.context.", s->scopes->packet_context },
		{ "stream.event.header.", s->scopes->event_header },
		{ "stream.event.context.", s->scopes->event_context },
		{ "event.context.", s->scopes->own_context },
		{ "event.fields.", s->scopes->payload },
	};
	for (size_t i = s->depth; i-- > 0;) {
		struct ctf_type *found = find_by_path(s->enclosing[i], path);
		if (found)
			return found;
	}
	for (size_t i = 0; i < sizeof scope_prefix / sizeof *scope_prefix; i++) {
		const size_t len = strlen(scope_prefix[i].prefix);
		if (strncmp(path, scope_prefix[i].prefix, len) == 0)
			return find_by_path(scope_prefix[i].root, path + len);
	}
	return NULL;
}

static void resolve_controls(struct field_search *s, struct ctf_type *t)
{
	if (s->reason)
		return;
	if (s->depth > CTF_MAX_DEPTH) {
		s->reason = "types nested too deeply";
		return;
	}
	if ((t->kind == CTF_ARRAY && t->control_path) || t->kind == CTF_VARIANT) {
		const bool has_control = t->control != NULL;  /* set by the CTF 2 parser */
		if (!has_control)
			t->control = t->control_path ? find_control(s, t->control_path) : NULL;
		const bool is_labelled = has_control || (t->control && t->control->label);
		if (!t->control || t->control->kind != CTF_INTEGER || (t->kind == CTF_VARIANT && !is_labelled) ||
		    (t->kind == CTF_ARRAY && t->control->is_signed) || !ctf_assign_slot(t->control, s->slots)) {
			s->reason = "array length or variant selector not found";
			return;
		}
	}
	s->enclosing[s->depth++] = t;
	for (struct ctf_member *m = t->member; m; m = m->next)
		resolve_controls(s, m->type);
	if (t->element)
		resolve_controls(s, t->element);
	s->depth--;
}

const char *ctf_resolve_controls(struct ctf_type *root, const struct ctf_scopes *scopes, struct ctf_slots *slots)
{
	struct field_search s = { .scopes = scopes, .slots = slots };
	if (root)
		resolve_controls(&s, root);
	return s.reason;
}

static const char *assign_header_slots(struct ctf_type *t, const char *name, struct ctf_slots *slots)
{
	const bool is_class = t->kind == CTF_INTEGER && name && strcmp(name, "id") == 0;
	if (is_class && t->is_signed)
		return "signed event class id";
	if (t->kind == CTF_INTEGER && t->clock && t->is_signed)
		return "signed timestamp";
	if ((is_class || (t->kind == CTF_INTEGER && t->clock)) && !ctf_assign_slot(t, slots))
		return "too many fields in the event header";
	if (t->kind == CTF_ARRAY)
		return NULL;
	for (struct ctf_member *m = t->member; m; m = m->next) {
		const char *reason = assign_header_slots(m->type, m->name, slots);
		if (reason)
			return reason;
	}
	return NULL;
}

const char *ctf_assign_header_slots(struct ctf_type *header, struct ctf_slots *slots)
{
	return assign_header_slots(header, NULL, slots);
}
