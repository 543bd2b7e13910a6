/* Fields of protobuf messages in memory (wire format: protobuf.dev/programming-guides/encoding). Untrusted input: every
 * length is checked. */
#pragma once

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum proto_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/* The rest of a message. */
struct proto_message {
	const unsigned char *at, *end;
	bool is_bad;  /* the message is damaged; no more fields follow */
};

struct proto_field {
	uint32_t number;
	enum proto_type type;
	uint64_t value;             /* all types except WIRE_BYTES */
	const unsigned char *data;  /* WIRE_BYTES */
	size_t len;
};

static inline struct proto_message proto_open(const void *data, size_t len)
{
	const unsigned char *at = data ? data : (const unsigned char *)"";
	return (struct proto_message){ at, at + len, false };
}

static inline struct proto_message proto_nested(const struct proto_field *f)
{
	return proto_open(f->data, f->type == WIRE_BYTES ? f->len : 0);
}

/* Reads a number. Returns false, with is_bad set, if it is not complete or has more than 64 bits. */
static inline bool proto_varint(struct proto_message *m, uint64_t *value)
{
	uint64_t v = 0;
	for (unsigned shift = 0; m->at < m->end && shift < 70; shift += 7) {
		const unsigned char byte = *m->at++;
		if (shift == 63 && byte > 1)
			break;
		v |= (uint64_t)(byte & 127) << shift;
		if (byte < 128) {
			*value = v;
			return true;
		}
	}
	m->is_bad = true;
	return false;
}

/* Reads a number of `bytes` bytes. The caller has checked that the message is long enough. */
static inline uint64_t proto_fixed(struct proto_message *m, size_t bytes)
{
	uint64_t v = 0;
	memcpy(&v, m->at, bytes);
	m->at += bytes;
	return le64toh(v) >> (BYTE_ORDER == BIG_ENDIAN ? 64 - 8 * bytes : 0);
}

/* Reads the next field. Returns false at the end and at damage. */
static inline bool proto_next(struct proto_message *m, struct proto_field *f)
{
	uint64_t key;
	if (m->at >= m->end || m->is_bad || !proto_varint(m, &key))
		return false;
	const size_t left = (size_t)(m->end - m->at);
	*f = (struct proto_field){ .number = (uint32_t)(key >> 3), .type = (enum proto_type)(key & 7) };
	m->is_bad = key >> 3 == 0 || key >> 32 != 0;
	switch (key & 7) {
	case WIRE_VARINT:
		return !m->is_bad && proto_varint(m, &f->value);
	case WIRE_BYTES:
		if (m->is_bad || !proto_varint(m, &f->value))
			return false;
		m->is_bad = f->value > (uint64_t)(m->end - m->at);
		if (m->is_bad)
			return false;
		f->data = m->at;
		f->len = (size_t)f->value;
		m->at += f->len;
		return true;
	case WIRE_FIXED64:
	case WIRE_FIXED32:
		m->is_bad |= left < ((key & 7) == WIRE_FIXED64 ? 8 : 4);
		if (m->is_bad)
			return false;
		f->value = proto_fixed(m, (key & 7) == WIRE_FIXED64 ? 8 : 4);
		return true;
	default:
		m->is_bad = true;
		return false;
	}
}
