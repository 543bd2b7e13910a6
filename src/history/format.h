/* The bytes of a history file: constants and little-endian access.  stealscope-history(5) documents the same.
 *
 *   header | chunks | index | attributes | sets | strings | meta | sums | sums2
 *
 * Every byte is guarded by a CRC32C: the header by its own; what lies between the header and `sums` block by block
 * (blocks are aligned in the file) by `sums`; `sums`, block by block, by `sums2`; `sums2` by the header. */
#ifndef STEALSCOPE_HISTORY_FORMAT_H
#define STEALSCOPE_HISTORY_FORMAT_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define FORMAT_MAGIC "\x89STLH\r\n\x1a"
#define FORMAT_VERSION 4u

enum section {
	SECTION_CHUNKS,      /* intervals */
	SECTION_INDEX,       /* per attribute: one row per chunk */
	SECTION_ATTRIBUTES,  /* the tree, breadth first */
	SECTION_SETS,        /* state sets */
	SECTION_STRINGS,     /* NUL-terminated strings; a string's id is its offset here */
	SECTION_META,        /* key = value */
	SECTION_SUMS,        /* CRC32C of every block before this section */
	SECTION_SUMS2,       /* CRC32C of every block-sized piece of SECTION_SUMS */
	SECTIONS,
};

/* Offsets in the header (bytes). */
enum {
	HEADER_MAGIC = 0,
	HEADER_VERSION = 8,
	HEADER_BLOCK = 12,
	HEADER_SIZE = 16,
	HEADER_BEGIN = 24,
	HEADER_END = 32,
	HEADER_INTERVALS = 40,
	HEADER_CHUNKS = 48,
	HEADER_ATTRIBUTES = 56,
	HEADER_SETS = 60,
	HEADER_METAS = 64,
	HEADER_SUMS2 = 68,
	HEADER_SECTION = 72,  /* SECTIONS times offset, size */
	HEADER_CRC = 252,
	HEADER_BYTES = 256,
};

/* Offsets in an attribute's record (bytes). */
enum {
	ATTR_PARENT = 0,
	ATTR_NAME = 4,
	ATTR_CHILD = 8,      /* the children are ids [child, child + children), sorted by name */
	ATTR_CHILDREN = 12,
	ATTR_CHUNKS = 16,
	ATTR_MASK = 20,      /* of states: those that occur; bit 31: null */
	ATTR_LEADER = 20,    /* of others: the attribute whose intervals their chunks count, or 0 */
	ATTR_INDEX = 24,     /* its type, the first row, its state set */
	ATTR_BYTES = 32,
};
#define ATTR_INNER 7u
#define INDEX_TYPE(index) ((unsigned)((index) & 7))        /* enum history_type, or ATTR_INNER */
#define INDEX_OFFSET(index) ((index) & 0xfffffffffff8u)    /* in the file, a multiple of 8 */
#define INDEX_SET(index) ((unsigned)((index) >> 48))

/* An index row: start time, place, then for a state attribute of several chunks the cumulative ns per state. */
enum { ROW_START = 0, ROW_PLACE = 8, ROW_SUMS = 16 };
#define PLACE_OFFSET(place) ((place) & 0xffffffffffffu)  /* in the file */
#define PLACE_SIZE(place) ((unsigned)((place) >> 48))    /* bytes */

enum { SET_NAME = 0, SET_STATES = 4, SET_STATE = 8, SET_BYTES = 136 };
enum { META_KEY = 0, META_VALUE = 4, META_BYTES = 8 };  /* two lengths, then the bytes of both */

#define BLOCK_DEFAULT 16384u
#define BLOCK_MIN 64u
#define BLOCK_MAX (1u << 20)
#define CHUNK_DEFAULT 48u
#define CHUNK_MAX 256u
#define TIME_LIMIT (INT64_C(1) << 62)  /* times lie within +- this, so that no sum of two overflows */
#define NULL_STATE 31u                 /* the bit and the sum of null */

static inline uint16_t get16(const void *p)
{
	uint16_t x;
	memcpy(&x, p, sizeof x);
	return le16toh(x);
}

static inline uint32_t get32(const void *p)
{
	uint32_t x;
	memcpy(&x, p, sizeof x);
	return le32toh(x);
}

static inline uint64_t get64(const void *p)
{
	uint64_t x;
	memcpy(&x, p, sizeof x);
	return le64toh(x);
}

static inline void put16(void *p, uint16_t x)
{
	x = htole16(x);
	memcpy(p, &x, sizeof x);
}

static inline void put32(void *p, uint32_t x)
{
	x = htole32(x);
	memcpy(p, &x, sizeof x);
}

static inline void put64(void *p, uint64_t x)
{
	x = htole64(x);
	memcpy(p, &x, sizeof x);
}

#endif
