/* Record encoding (format: store.h), shared by the writer (store.c) and the reader (cursor.c); private to them.
 *
 * The lengths of all numbers of a record precede the numbers, four bits each, so that the reader need not search for the
 * end of a number. */
#pragma once

#include <endian.h>
#include <string.h>

#include "trace/store.h"

#define SAME_THREAD 0x80  /* flag in a record's first byte: cpu, tid, pid and comm are the same as in the previous
                           * record */

_Static_assert(EVENT_KIND_COUNT <= EVENT_KINDS_MAX, "a set of kinds must hold them all");
_Static_assert(EVENT_KINDS_MAX <= SAME_THREAD, "a kind must leave room for a bit");
_Static_assert(4 * (1 + EVENT_ARGS) + 7 <= 64, "the lengths of a record's numbers must fit into one");

#ifndef RECORD_KINDS
#define RECORD_KINDS EVENT_KINDS  /* a test defines more kinds */
#endif

#define ALWAYS_INLINE inline __attribute__((always_inline))

#define LENGTH_BITS 4
#define LENGTH_MASK 15U
#define LENGTH_ABSENT 15U  /* length code for the value EVENT_ABSENT */

static ALWAYS_INLINE uint64_t get_le64(const unsigned char *p)
{
	uint64_t x;
	memcpy(&x, p, sizeof x);
	return le64toh(x);
}

static ALWAYS_INLINE void put_le64(unsigned char *p, uint64_t x)
{
	x = htole64(x);
	memcpy(p, &x, sizeof x);
}

/* Maps a signed to an unsigned number so that small magnitudes stay small: the sign moves to bit 0 (zigzag encoding). */
static ALWAYS_INLINE uint64_t zigzag_encode(uint64_t x)
{
	return x << 1 ^ (0 - (x >> 63));
}

static ALWAYS_INLINE uint64_t zigzag_decode(uint64_t x)
{
	return x >> 1 ^ (0 - (x & 1));
}

/* Returns the size of n length codes, bytes. */
static ALWAYS_INLINE unsigned lengths_size(unsigned n)
{
	return (n * LENGTH_BITS + 7) / 8;
}

/* Returns the number from which the difference to an argument's next value is computed. */
static ALWAYS_INLINE uint64_t difference_base(int64_t before)
{
	return before == EVENT_ABSENT ? 0 : (uint64_t)before;
}

/* ---- The members kind, cpu, tid, pid and comm of struct event are written as two words. Five small writes would still be
 * pending when the event is copied, and would delay the copy. */

/* Joins two adjacent fields of `bits` bits each into one word with the same bytes in memory. */
static ALWAYS_INLINE uint64_t join_fields(uint64_t first, uint64_t second, unsigned bits)
{
	return __BYTE_ORDER == __LITTLE_ENDIAN ? first | second << bits : first << bits | second;
}

static ALWAYS_INLINE uint64_t kind_word(uint16_t kind, uint16_t cpu, int32_t tid)
{
	return join_fields(join_fields(kind, cpu, 16), (uint32_t)tid, 32);
}

static ALWAYS_INLINE uint64_t pid_word(int32_t pid, uint32_t comm)
{
	return join_fields((uint32_t)pid, comm, 32);
}

#define FIELD_AT(field, at) _Static_assert(offsetof(struct event, field) == offsetof(struct event, kind) + (at), "its word")
FIELD_AT(cpu, 2);
FIELD_AT(tid, 4);
FIELD_AT(pid, 8);
FIELD_AT(comm, 12);
#undef FIELD_AT

/* Resets the codec, before a block's first record. */
void codec_reset(struct codec *c);
