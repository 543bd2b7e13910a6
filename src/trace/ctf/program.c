#include "trace/ctf/program.h"

#include <byteswap.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/ctf/program_ops.h"
#include "trace/trace.h"

void ctf_program_release(struct ctf_program *p)
{
	for (size_t i = 0; i < p->ops; i++)
		free(p->op[i].option);
	free(p->op);
	free(p->conditional);
	*p = (struct ctf_program){ 0 };
}

void ctf_tick(struct ctf_machine *m, uint64_t value, unsigned bits)
{
	if (bits >= 64) {
		m->clock = value;
		return;
	}
	const uint64_t period = (uint64_t)1 << bits, low = m->clock & (period - 1);
	m->clock += (value < low ? period : 0) - low + value;  /* it went round at most once */
}

/* ---- integers at any bit */

static uint64_t bits_little(const unsigned char *p, unsigned skip, unsigned size)
{
	uint64_t v = 0;
	unsigned have = 0;
	for (unsigned byte = 0; have < size; byte++) {
		const unsigned from = byte ? 0 : skip;
		v |= (uint64_t)(p[byte] >> from) << have;
		have += 8 - from;
	}
	return size < 64 ? v & (((uint64_t)1 << size) - 1) : v;
}

static uint64_t bits_big(const unsigned char *p, unsigned skip, unsigned size)
{
	uint64_t v = 0;
	for (unsigned done = 0; done < size;) {
		const unsigned at = skip + done, in = at % 8, left = 8 - in, n = left < size - done ? left : size - done;
		v = v << n | ((p[at / 8] >> (left - n)) & ((1U << n) - 1));
		done += n;
	}
	return v;
}

static int64_t extend(uint64_t v, unsigned size, bool is_signed)
{
	if (is_signed && size < 64 && v >> (size - 1) & 1)
		v |= ~(uint64_t)0 << size;
	return (int64_t)v;
}

/* ---- running */

static const struct ctf_op *pick(const struct ctf_op *op, uint64_t tag)
{
	for (size_t i = 0; i < op->options; i++) {
		const struct ctf_option *o = &op->option[i];
		if (op->is_signed ? (int64_t)o->lower <= (int64_t)tag && (int64_t)tag <= (int64_t)o->upper :
		                    o->lower <= tag && tag <= o->upper)
			return op + o->skip;
	}
	return NULL;
}

static bool align(struct ctf_machine *m, uint64_t to)
{
	m->at = (m->at + to - 1) & ~(to - 1);
	return m->at <= m->end;
}

static enum ctf_run string(const struct ctf_op *op, struct ctf_machine *m)
{
	const unsigned char *s = m->packet + m->at / 8;
	const unsigned char *zero = m->at < m->end ? memchr(s, 0, (size_t)((m->end - m->at) / 8)) : NULL;
	if (!zero)
		return CTF_RUN_SHORT;
	if (op->slot != CTF_NO_SLOT)
		m->value[op->slot] = (struct ctf_value){ zero - s + 1, (const char *)s };
	m->at += 8 * (uint64_t)(zero - s + 1);
	return CTF_RUN_DONE;
}

/* Elements of a fixed size. */
static enum ctf_run array(const struct ctf_op *op, struct ctf_machine *m)
{
	const uint64_t n = (uint64_t)m->value[op->teller].number;
	if (op->n && n > (m->end - m->at) / op->n)
		return CTF_RUN_SHORT;
	if (op->slot != CTF_NO_SLOT)
		m->value[op->slot] = (struct ctf_value){ (int64_t)n, (const char *)m->packet + m->at / 8 };
	m->at += n * op->n;
	return CTF_RUN_DONE;
}

/* Seven bits a byte, the least significant first; the last byte's bit 7 is 0, its bit 6 the sign. */
static enum ctf_run variable(const struct ctf_op *op, struct ctf_machine *m)
{
	uint64_t v = 0;
	for (unsigned shift = 0; shift < 64; shift += 7) {
		if (m->end - m->at < 8)
			return CTF_RUN_SHORT;
		const unsigned char byte = m->packet[m->at / 8];
		m->at += 8;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (op->slot != CTF_NO_SLOT)
			m->value[op->slot] = (struct ctf_value){ extend(v, shift + 7, op->is_signed), NULL };
		return CTF_RUN_DONE;
	}
	return CTF_RUN_WRONG;
}

static enum ctf_run walk(const struct ctf_op *op, const struct ctf_op *end, struct ctf_machine *m);

/* Elements that have to be walked, by the operations behind this one. */
static enum ctf_run repeat(const struct ctf_op *op, struct ctf_machine *m)
{
	const uint64_t n = op->teller == CTF_NO_SLOT ? op->n : (uint64_t)m->value[op->teller].number;
	for (uint64_t i = 0; i < n; i++) {
		const uint64_t before = m->at;
		const enum ctf_run status = walk(op + 1, op + op->skip, m);
		if (status != CTF_RUN_DONE)
			return status;
		if (m->at == before)
			break;  /* so will all the others be: of no size */
	}
	return CTF_RUN_DONE;
}

/* Each operation goes to the next one itself, not by a place that all share: a tenth of decoding, and what that takes did
 * not depend on much else than on where the linker put that place. */
#define NEXT do { if (++op >= end) return CTF_RUN_DONE; __extension__ ({ goto *operation[op->code]; }); } while (0)
#define OPERATION(code) [code] = __extension__ &&code,

/* A value of whole bytes. */
#define WHOLE(code, type, conversion) \
	code: { \
		type v; \
		memcpy(&v, m->packet + (base + op->offset) / 8, sizeof v); \
		m->value[op->slot] = (struct ctf_value){ (int64_t)conversion(v), NULL }; \
		NEXT; \
	}

static enum ctf_run walk(const struct ctf_op *op, const struct ctf_op *end, struct ctf_machine *m)
{
	static const void *const operation[] = { CTF_OPS(OPERATION) };
	uint64_t base = 0;
	enum ctf_run status;
	op--;
	NEXT;

	OP_BLOCK:
		base = m->at;
		if (op->n > m->end - m->at)
			return CTF_RUN_SHORT;
		m->at += op->n;
		NEXT;
	WHOLE(OP_U8, uint8_t, )
	WHOLE(OP_S8, int8_t, )
	WHOLE(OP_LE_U16, uint16_t, le16toh)
	WHOLE(OP_LE_U32, uint32_t, le32toh)
	WHOLE(OP_LE_64, uint64_t, le64toh)
	WHOLE(OP_LE_S16, uint16_t, (int16_t)le16toh)
	WHOLE(OP_LE_S32, uint32_t, (int32_t)le32toh)
	WHOLE(OP_BE_U16, uint16_t, be16toh)
	WHOLE(OP_BE_U32, uint32_t, be32toh)
	WHOLE(OP_BE_64, uint64_t, be64toh)
	WHOLE(OP_BE_S16, uint16_t, (int16_t)be16toh)
	WHOLE(OP_BE_S32, uint32_t, (int32_t)be32toh)
	OP_BITS: {
		const uint64_t at = base + op->offset;
		const unsigned char *p = m->packet + at / 8;
		const uint64_t v = (op->is_big ? bits_big : bits_little)(p, (unsigned)(at % 8), op->size);
		m->value[op->slot] = (struct ctf_value){ extend(v, op->size, op->is_signed), NULL };
		NEXT;
	}
	OP_CHARACTERS:
		m->value[op->slot] = (struct ctf_value){ (int64_t)op->n, (const char *)m->packet + (base + op->offset) / 8 };
		NEXT;
	OP_TIME:
		ctf_tick(m, (uint64_t)m->value[op->slot].number, op->size);
		NEXT;
	OP_CLASS:
		m->id = (uint64_t)m->value[op->slot].number;
		m->has_id = true;
		NEXT;
	OP_ALIGN:
		if (!align(m, op->n))
			return CTF_RUN_SHORT;
		NEXT;
	OP_STRING:
	OP_ARRAY:
	OP_VARIABLE:
		status = op->code == OP_STRING ? string(op, m) : op->code == OP_ARRAY ? array(op, m) : variable(op, m);
		if (status != CTF_RUN_DONE)
			return status;
		NEXT;
	OP_REPEAT:
		status = repeat(op, m);
		if (status != CTF_RUN_DONE)
			return status;
		op += op->skip - 1;
		NEXT;
	OP_VARIANT:
		op = pick(op, (uint64_t)m->value[op->teller].number);
		if (!op)
			return CTF_RUN_WRONG;
		op--;
		NEXT;
	OP_JUMP:
		op += op->skip - 1;
		NEXT;
}

enum ctf_run ctf_run(const struct ctf_program *p, struct ctf_machine *m)
{
	for (size_t i = 0; i < p->conditionals; i++)
		m->value[p->conditional[i]] = (struct ctf_value){ EVENT_ABSENT, NULL };
	return p->ops ? walk(p->op, p->op + p->ops, m) : CTF_RUN_DONE;
}
