/* How a record is written (store.h): what who writes it and who reads it share.  Private to store.c and cursor.c.
 *
 * The lengths of its numbers stand before them, four bits each, so that none is looked for in its bytes. */
#ifndef STEALSCOPE_TRACE_RECORD_CODEC_H
#define STEALSCOPE_TRACE_RECORD_CODEC_H

#include <endian.h>
#include <string.h>

#include "trace/store.h"

#define SAME_THREAD 0x80  /* in a record's first byte, its kind: cpu, tid, pid and comm as in the previous record */

_Static_assert(EVENT_KIND_COUNT <= MOST_EVENT_KINDS, "a set of kinds must hold them all");
_Static_assert(MOST_EVENT_KINDS <= SAME_THREAD, "a kind must leave room for a bit");
_Static_assert(4 * (1 + EVENT_ARGS) + 7 <= 64, "the lengths of a record's numbers must fit into one");

#ifndef RECORD_KINDS
#define RECORD_KINDS EVENT_KINDS  /* a test has more of them */
#endif

#define INLINE inline __attribute__((always_inline))

#define LENGTH_BITS 4
#define LENGTH 15U
#define ABSENT 15U  /* as a length: EVENT_ABSENT */

static INLINE uint64_t get64(const unsigned char *p)
{
	uint64_t x;
	memcpy(&x, p, sizeof x);
	return le64toh(x);
}

static INLINE void put64(unsigned char *p, uint64_t x)
{
	x = htole64(x);
	memcpy(p, &x, sizeof x);
}

/* Signed numbers: the sign in bit 0. */
static INLINE uint64_t fold(uint64_t x)
{
	return x << 1 ^ (0 - (x >> 63));
}

static INLINE uint64_t unfold(uint64_t x)
{
	return x >> 1 ^ (0 - (x & 1));
}

/* Bytes of n lengths. */
static INLINE unsigned lengths_size(unsigned n)
{
	return (n * LENGTH_BITS + 7) / 8;
}

/* What the next value of an argument is compared with. */
static INLINE uint64_t base_of(int64_t before)
{
	return before == EVENT_ABSENT ? 0 : (uint64_t)before;
}

/* ---- the fields of struct event that tell whose it is: two words, as five small writes would not be over when the event
 * is copied, and the copy would wait for them */

/* Of two fields side by side, of so many bits each. */
static INLINE uint64_t beside(uint64_t first, uint64_t second, unsigned bits)
{
	return __BYTE_ORDER == __LITTLE_ENDIAN ? first | second << bits : first << bits | second;
}

static INLINE uint64_t kind_word(uint16_t kind, uint16_t cpu, int32_t tid)
{
	return beside(beside(kind, cpu, 16), (uint32_t)tid, 32);
}

static INLINE uint64_t pid_word(int32_t pid, uint32_t comm)
{
	return beside((uint32_t)pid, comm, 32);
}

#define FIELD_AT(field, at) _Static_assert(offsetof(struct event, field) == offsetof(struct event, kind) + (at), "its word")
FIELD_AT(cpu, 2);
FIELD_AT(tid, 4);
FIELD_AT(pid, 8);
FIELD_AT(comm, 12);
#undef FIELD_AT

/* Before the first record of a block. */
void codec_begin(struct codec *c);

#endif
