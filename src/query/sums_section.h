/* Gap sums in a history file: the derived data (history_derive()), in blocks by time. Private to query/.
 *
 * Blocks at level 0 tile the history's window. A block at each higher level adds up SUMS_FAN_OUT blocks below; the last
 * level has one block. Numbers are varints (7 bits a byte, the lowest first) unless noted:
 *
 *   blocks      row count; by row: difference to the previous row's number, its sums' bytes; head, tail, gaps; with
 *               gaps: longest, its start - block's start; with head: the first interval's culprit and ns; with tail:
 *               the last one's; culprit count; by culprit: 2 * difference to the previous number + many, ns; if
 *               many (more than one interval): intervals, longest; with intervals: (the longest one's start - block's
 *               start) >> place_shift(); bucket count; by bucket: 2 * difference to the previous number + (count > 1); if
 *               that is set: count
 *   culprits    by culprit: kind, reason, machine + 1, tid + 1, name length, name
 *   directory   by level: block count (u64); then by level and block: start (i64), offset (u64), bytes (u64)
 *   trailer     SUMS_MAGIC (u32), SUMS_RULES (u32), levels (u32), culprits (u32), the window's begin and end (i64),
 *               the culprits' and the directory's offsets (u64) */
#pragma once

#include "base/strtab.h"
#include "query/culprit.h"
#include "query/gap_sums.h"

/* Version number: raise it when the rules that find culprits change (resolver.c). Sums by other rules are computed anew. */
#define SUMS_RULES 2u
#define SUMS_MAGIC 0x6d757367u
#define SUMS_FAN_OUT 8
#define SUMS_LEVELS 12

/* ---- Writing */

struct block_record { int64_t start; uint64_t offset, size; };

struct sums_writer {
	struct history_builder *b;
	uint64_t offset;
	struct sums_level {
		struct block_record *record;
		size_t records, cap;
		struct gap_block next;   /* blocks added up for this level's next block */
		unsigned blocks;         /* their number */
	} level[SUMS_LEVELS];
	uint8_t *buf;
	size_t len, cap;
};

/* Writes a block that follows the previous one. Empties it. Returns -1 with *err. */
int sums_write_block(struct sums_writer *w, struct gap_block *block, struct error *err);
/* Writes the rest. */
int sums_write_end(struct sums_writer *w, const struct history *h, const struct actors *culprits,
                   const struct strtab *names, struct error *err);
void sums_writer_release(struct sums_writer *w);

/* ---- Reading */

struct sums_section {
	const struct history *h;
	unsigned levels;
	struct { const uint8_t *record; uint64_t records; } level[SUMS_LEVELS];
	uint32_t culprits;
};

/* Opens the sums, and puts their culprits into *culprits and *names, which are empty. Returns false if there are none, or
 * none by the present rules, or if they are damaged. */
bool sums_open(struct sums_section *s, const struct catalog *catalog, struct actors *culprits, struct strtab *names);
/* Return the block count at level 0; when block i starts, for i = count when the last one ends. */
size_t sums_blocks(const struct sums_section *s);
int64_t sums_block_start(const struct sums_section *s, size_t i);
/* Reads the wanted rows' sums in the blocks [from, to) at level 0, one or more; row: the rows' numbers, ascending. *out has
 * the first block's start, and no rows. Returns false if the sums are damaged. */
bool sums_read(const struct sums_section *s, size_t from, size_t to, const uint32_t *row, size_t rows,
               struct gap_block *out);
