/* Layout of a history file: constants and little-endian access. stealscope-history(5) documents the format.
 *
 *   header | chunks | index | attributes | sets | strings | meta | derived | sums | sums2
 *
 * A CRC32C protects every byte: the header contains its own; `sums` has those of the blocks between the header and
 * `sums` (blocks are aligned in the file); `sums2` has those of the blocks of `sums`; the header has the one of `sums2`. */
#pragma once

#include <endian.h>

#include "base/base.h"

#define FORMAT_MAGIC "\x89STLH\r\n\x1a"
#define FORMAT_VERSION 6u

enum section {
	SECTION_CHUNKS,          /* the intervals */
	SECTION_INDEX,       /* one row per chunk, by attribute */
	SECTION_ATTRIBUTES,  /* tree, breadth first */
	SECTION_SETS,        /* state sets */
	SECTION_STRINGS,         /* NUL-terminated; a string's id is its offset in this section */
	SECTION_META,        /* key = value */
	SECTION_DERIVED,     /* data computed from the sections above, see history_derive() */
	SECTION_SUMS,        /* CRC32C of every block before this section */
	SECTION_SUMS2,           /* CRC32C of every block of SECTION_SUMS */
	SECTIONS,
};

/* Offsets in the header, bytes. */
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
	HEADER_SECTION = 72,  /* offset and size of each section */
	HEADER_CRC = 252,
	HEADER_BYTES = 256,
};

/* Offsets in an attribute's record, bytes. */
enum {
	ATTR_PARENT = 0,
	ATTR_NAME = 4,
	ATTR_CHILD = 8,      /* children have ids [child, child + children), sorted by name */
	ATTR_CHILDREN = 12,
	ATTR_CHUNKS = 16,
	ATTR_MASK = 20,      /* state attributes: states that occur, one bit each; bit 31: null */
	ATTR_LEADER = 20,    /* other attributes: leader of their CHUNK_LINKED chunks, or 0 */
	ATTR_INDEX = 24,     /* type, offset of the first index row, state set */
	ATTR_BYTES = 32,
};
#define ATTR_INNER 7u
#define INDEX_TYPE(index) ((unsigned)((index) & 7))        /* enum history_type, or ATTR_INNER */
#define INDEX_OFFSET(index) ((index) & 0xfffffffffff8u)    /* file offset, a multiple of 8 */
#define INDEX_SET(index) ((unsigned)((index) >> 48))

/* Index row: start time, the chunk's location; for a state attribute with several chunks also the ns per state before
 * the chunk. */
enum { ROW_START = 0, ROW_LOCATION = 8, ROW_SUMS = 16 };
#define LOCATION_OFFSET(location) ((location) & 0xffffffffffffu)  /* offset in the file */
#define LOCATION_SIZE(location) ((unsigned)((location) >> 48))    /* bytes */

enum { SET_NAME = 0, SET_STATES = 4, SET_STATE = 8, SET_BYTES = 136 };
enum { META_KEY = 0, META_VALUE = 4, META_BYTES = 8 };  /* lengths of key and value; their bytes follow */

#define BLOCK_DEFAULT 16384u
#define BLOCK_MIN 64u
#define BLOCK_MAX (1u << 20)
#define CHUNK_DEFAULT 48u
#define CHUNK_MAX 256u
#define TIME_LIMIT (INT64_C(1) << 62)  /* limit of |time|: the sum of two times does not overflow */
#define NULL_STATE 31u                 /* number of the state null, for masks and sums */

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
