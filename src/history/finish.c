/* The second half of building: everything behind the chunks.
 *
 * Attributes are numbered breadth first, children sorted by name, so that the children of a node are neighbours and
 * a reader needs no table to find one.  The index gathers the scratch file's chunk records by attribute: as many rows
 * at a time as fit the memory, one pass over the scratch file each. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "history/builder.h"

#define READ_BUFFER ((size_t)256 << 10)
#define GATHER_MIN ((size_t)4096)

struct finish {
	struct history_builder *b;
	int64_t begin, end;
	uint64_t intervals;
	struct { uint64_t offset, size; } section[SECTIONS];
	uint32_t sums2;         /* checksum of the last section */
};

static struct leaf *leaf_of(const struct finish *f, size_t attr)
{
	uint32_t leaf = f->b->tree.node[attr].leaf;
	builder_touch_leaves(f->b, 1);
	return leaf == NONE ? NULL : &f->b->leaf[leaf];
}

static unsigned sums_of(const struct leaf *leaf)
{
	return leaf->type == HISTORY_STATE && leaf->chunks > 1 ? (unsigned)__builtin_popcount(leaf->mask) : 0;
}

static size_t row_bytes(const struct leaf *leaf)
{
	return ROW_SUMS + 8u * sums_of(leaf);
}

static int compare_names(const void *a, const void *b, void *arg)
{
	const struct tree *t = arg;
	const uint32_t *x = a, *y = b;
	return strcmp(t->bytes + t->node[*x].name, t->bytes + t->node[*y].name);
}

/* Moves each node to where its id says. */
static void sort_nodes(struct node *node, uint32_t *order, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct node first = node[i];
		size_t at = i;
		for (size_t from; (from = order[at]) != i; at = from) {
			node[at] = node[from];
			order[at] = (uint32_t)at;
		}
		node[at] = first;
		order[at] = (uint32_t)at;
	}
}

/* Numbers the nodes.  Afterwards they stand in that order, node->parent is the parent's id, node->child the first child's
 * id and node->sibling the number of children. */
static void number_nodes(struct tree *t)
{
	uint32_t *order = mem_new(t->nodes, sizeof *order);  /* attribute id -> node */
	size_t len = 1;
	for (size_t i = 0; i < len; i++) {
		struct node *n = &t->node[order[i]];
		size_t first = len;
		for (uint32_t c = n->child; c != NONE; c = t->node[c].sibling)
			order[len++] = c;
		qsort_r(order + first, len - first, sizeof *order, compare_names, t);
		for (size_t c = first; c < len; c++)
			t->node[order[c]].parent = (uint32_t)i;
		n->child = len > first ? (uint32_t)first : 0;
		n->sibling = (uint32_t)(len - first);
	}
	sort_nodes(t->node, order, t->nodes);
	free(order);
}

static void begin_section(struct finish *f, enum section s)
{
	f->section[s].offset = out_tell(&f->b->out);
}

static int end_section(struct finish *f, enum section s, struct error *err)
{
	f->section[s].size = out_tell(&f->b->out) - f->section[s].offset;
	return out_align(&f->b->out, err);
}

/* ---- The index ------------------------------------------------------------------------------------------ */

/* A part of the index in memory, and the scratch file that fills it. */
struct index_part {
	uint64_t low, high;             /* bytes from the start of the index */
	uint8_t *rows;                  /* high - low bytes */
	uint32_t cut;                   /* leaf whose first rows stand before low, or NONE */
	uint32_t skip;                  /* how many */
	uint8_t carry[8 * HISTORY_STATES];  /* sums of the first row behind high, when high cuts a leaf */
	uint8_t *buf;                   /* of the scratch file */
	size_t at, len;
};

static int spill_next(struct index_part *g, int fd, struct spill *s, int64_t *sums)
{
	if (g->len - g->at < SPILL_MAX) {
		memmove(g->buf, g->buf + g->at, g->len - g->at);
		g->len -= g->at;
		g->at = 0;
		while (g->len < READ_BUFFER) {
			ssize_t n = read(fd, g->buf + g->len, READ_BUFFER - g->len);
			if (n < 0 && errno == EINTR)
				continue;
			if (n < 0)
				return -1;
			if (!n)
				break;
			g->len += (size_t)n;
		}
	}
	if (g->at == g->len)
		return 0;
	memcpy(s, g->buf + g->at, sizeof *s);
	g->at += sizeof *s;
	size_t bytes = (size_t)__builtin_popcount(s->mask) * sizeof *sums;
	memcpy(sums, g->buf + g->at, bytes);
	g->at += bytes;
	return 1;
}

/* Fills in a row whose sums are there already, and the sums of the row that follows at `next` (NULL = none). */
static void put_row(const struct leaf *leaf, const struct spill *s, const int64_t *sums, uint8_t *row, uint8_t *next)
{
	put64(row + ROW_START, (uint64_t)s->start);
	put64(row + ROW_PLACE, s->place);
	if (!next)
		return;
	unsigned n = sums_of(leaf);
	memcpy(next, row + ROW_SUMS, 8 * (size_t)n);
	for (uint32_t left = n ? s->mask : 0; left; left &= left - 1, sums++) {
		uint32_t below = (left & -left) - 1;
		uint8_t *sum = next + 8 * (size_t)__builtin_popcount(leaf->mask & below);
		put64(sum, get64(sum) + (uint64_t)*sums);
	}
}

/* One pass over the scratch file: the rows of [low, high). */
static int gather_rows(struct finish *f, struct index_part *g, struct error *err)
{
	struct history_builder *b = f->b;
	struct spill s;
	int64_t sums[HISTORY_STATES];
	int more = -1;
	g->at = g->len = 0;
	memset(g->rows, 0, g->high - g->low);
	if (g->skip)
		memcpy(g->rows + ROW_SUMS, g->carry, row_bytes(&b->leaf[g->cut]) - ROW_SUMS);
	if (lseek(b->scratch, 0, SEEK_SET) == 0)
		while ((more = spill_next(g, b->scratch, &s, sums)) > 0) {
			struct leaf *leaf = &b->leaf[s.leaf];
			builder_touch_leaves(b, 1);
			if (s.leaf == g->cut && g->skip) {
				g->skip--;
				continue;
			}
			if (!leaf->rows_left || leaf->row >= g->high)
				continue;
			if (leaf->rows_left == leaf->chunks && s.start > f->begin)
				f->intervals++;  /* the null before the first change */
			uint8_t *row = g->rows + (leaf->row - g->low);
			leaf->row += row_bytes(leaf);
			leaf->rows_left--;
			uint8_t *next = leaf->row < g->high ? g->rows + (leaf->row - g->low) + ROW_SUMS : g->carry;
			put_row(leaf, &s, sums, row, leaf->rows_left ? next : NULL);
		}
	return more < 0 ? error_system(err, NULL, "cannot read back the index of %s", b->out.path) : 0;
}

/* Cuts the index into parts of at most `room` bytes, whole rows each. */
static int write_parts(struct finish *f, struct index_part *g, size_t room, struct error *err)
{
	uint32_t done = 0;  /* rows of the current attribute that stand in earlier parts */
	for (size_t attr = 0; attr < f->b->tree.nodes;) {
		struct leaf *leaf = leaf_of(f, attr);
		g->cut = leaf ? (uint32_t)(leaf - f->b->leaf) : NONE;
		g->skip = done;
		g->low = g->high;
		for (; attr < f->b->tree.nodes; attr++, done = 0) {
			leaf = leaf_of(f, attr);
			if (!leaf)
				continue;
			size_t fit = (room - (g->high - g->low)) / row_bytes(leaf);
			uint32_t left = leaf->chunks - done, take = left < fit ? left : (uint32_t)fit;
			g->high += take * row_bytes(leaf);
			done += take;
			if (take < left)
				break;
		}
		if (g->high > g->low &&
		    (gather_rows(f, g, err) || out_write(&f->b->out, g->rows, g->high - g->low, err)))
			return -1;
	}
	return 0;
}

static int write_index(struct finish *f, struct error *err)
{
	struct history_builder *b = f->b;
	uint64_t size = 0;
	for (size_t attr = 0; attr < b->tree.nodes; attr++) {
		struct leaf *leaf = leaf_of(f, attr);
		if (!leaf)
			continue;
		leaf->row = size;
		leaf->rows_left = leaf->chunks;
		f->intervals += !leaf->chunks;
		size += leaf->chunks * row_bytes(leaf);
	}
	size_t used = builder_leaf_memory(b) + tree_memory(&b->tree) + 2 * READ_BUFFER;
	size_t room = used < b->memory - b->memory / 4 ? (b->memory - used) / 2 : b->memory / 8;
	room = room < GATHER_MIN ? GATHER_MIN : room;
	room = size < room ? (size_t)size : room;
	struct index_part g = { .rows = malloc(room + 1), .buf = malloc(READ_BUFFER) };
	int result = -1;
	begin_section(f, SECTION_INDEX);
	if (g.rows && g.buf)
		result = write_parts(f, &g, room, err);
	else
		error_system(err, NULL, "cannot write %s", b->out.path);
	free(g.rows);
	free(g.buf);
	return result ? -1 : end_section(f, SECTION_INDEX, err);
}

/* ---- Tables --------------------------------------------------------------------------------------------- */

static int write_attributes(struct finish *f, struct error *err)
{
	struct history_builder *b = f->b;
	uint64_t row = f->section[SECTION_INDEX].offset;
	begin_section(f, SECTION_ATTRIBUTES);
	for (size_t attr = 0; attr < b->tree.nodes; attr++) {
		const struct node *n = &b->tree.node[attr];
		const struct leaf *leaf = leaf_of(f, attr);
		uint8_t r[ATTR_BYTES] = { 0 };
		put32(r + ATTR_PARENT, attr ? n->parent : NONE);
		put32(r + ATTR_NAME, n->name);
		put32(r + ATTR_CHILD, n->child);
		put32(r + ATTR_CHILDREN, n->sibling);
		r[ATTR_TYPE] = leaf ? leaf->type : ATTR_INNER;
		put64(r + ATTR_INDEX, row);
		if (leaf) {
			put32(r + ATTR_CHUNKS, leaf->chunks);
			put32(r + ATTR_MASK, leaf->mask);
			put16(r + ATTR_SET, leaf->set);
			row += leaf->chunks * row_bytes(leaf);
		}
		if (out_write(&b->out, r, sizeof r, err))
			return -1;
	}
	return end_section(f, SECTION_ATTRIBUTES, err);
}

static int write_sets_and_strings(struct finish *f, struct error *err)
{
	struct history_builder *b = f->b;
	begin_section(f, SECTION_SETS);
	for (size_t i = 0; i < b->sets; i++) {
		uint8_t r[SET_BYTES] = { 0 };
		put32(r + SET_NAME, b->set[i].name);
		put32(r + SET_STATES, b->set[i].n);
		for (unsigned s = 0; s < b->set[i].n; s++)
			put32(r + SET_STATE + 4 * s, b->set[i].state[s]);
		if (out_write(&b->out, r, sizeof r, err))
			return -1;
	}
	if (end_section(f, SECTION_SETS, err))
		return -1;
	begin_section(f, SECTION_STRINGS);
	if (out_write(&b->out, b->tree.bytes, b->tree.bytes_len, err))
		return -1;
	return end_section(f, SECTION_STRINGS, err);
}

static int write_meta(struct finish *f, struct error *err)
{
	struct history_builder *b = f->b;
	begin_section(f, SECTION_META);
	for (size_t i = 0; i < b->metas; i++) {
		const struct meta *m = &b->meta[i];
		uint8_t r[META_BYTES];
		put32(r + META_KEY, (uint32_t)strlen(m->key));
		put32(r + META_VALUE, (uint32_t)m->size);
		if (out_write(&b->out, r, sizeof r, err) || out_write(&b->out, m->key, strlen(m->key), err) ||
		    out_write(&b->out, m->value, m->size, err))
			return -1;
	}
	return end_section(f, SECTION_META, err);
}

/* The checksums of all blocks, and theirs. */
static int write_sums(struct finish *f, struct error *err)
{
	struct out *o = &f->b->out;
	if (out_seal(o, err))
		return -1;
	uint64_t at = out_tell(o);
	size_t n = o->sums, bytes = 4 * n, pieces = (bytes + o->block - 1) / o->block;
	uint8_t *sums = mem_new(n, 4), *sums2 = mem_new(pieces, 4);
	for (size_t i = 0; i < n; i++)
		put32(sums + 4 * i, o->sum[i]);
	for (size_t i = 0; i < pieces; i++) {
		size_t from = i * o->block, size = bytes - from < o->block ? bytes - from : o->block;
		put32(sums2 + 4 * i, crc32c(&o->crc, sums + from, size));
	}
	f->section[SECTION_SUMS].offset = at;
	f->section[SECTION_SUMS].size = bytes;
	f->section[SECTION_SUMS2].offset = at + bytes;
	f->section[SECTION_SUMS2].size = 4 * pieces;
	f->sums2 = crc32c(&o->crc, sums2, 4 * pieces);
	int result = out_write_at(o, sums, bytes, at, err);
	if (!result)
		result = out_write_at(o, sums2, 4 * pieces, at + bytes, err);
	free(sums);
	free(sums2);
	return result;
}

static int write_header(struct finish *f, struct error *err)
{
	struct history_builder *b = f->b;
	uint8_t h[HEADER_BYTES] = { 0 };
	memcpy(h + HEADER_MAGIC, FORMAT_MAGIC, 8);
	put32(h + HEADER_VERSION, FORMAT_VERSION);
	put32(h + HEADER_BLOCK, b->out.block);
	put64(h + HEADER_SIZE, f->section[SECTION_SUMS2].offset + f->section[SECTION_SUMS2].size);
	put64(h + HEADER_BEGIN, (uint64_t)f->begin);
	put64(h + HEADER_END, (uint64_t)f->end);
	put64(h + HEADER_INTERVALS, b->intervals + f->intervals);
	put64(h + HEADER_CHUNKS, b->chunks);
	put32(h + HEADER_ATTRIBUTES, (uint32_t)b->tree.nodes);
	put32(h + HEADER_SETS, (uint32_t)b->sets);
	put32(h + HEADER_METAS, (uint32_t)b->metas);
	put32(h + HEADER_SUMS2, f->sums2);
	for (unsigned i = 0; i < SECTIONS; i++) {
		put64(h + HEADER_SECTION + 16 * i, f->section[i].offset);
		put64(h + HEADER_SECTION + 16 * i + 8, f->section[i].size);
	}
	put32(h + HEADER_CRC, crc32c(&b->out.crc, h, HEADER_CRC));
	return out_write_at(&b->out, h, sizeof h, 0, err);
}

static int close_leaves(struct finish *f, struct error *err)
{
	for (size_t attr = 0; attr < f->b->tree.nodes; attr++) {
		struct leaf *leaf = leaf_of(f, attr);
		if (leaf && builder_close_leaf(f->b, leaf, f->end, err))
			return -1;
	}
	pool_release(&f->b->pool);
	builder_free_hot(f->b);
	f->section[SECTION_CHUNKS].offset = HEADER_BYTES;
	f->section[SECTION_CHUNKS].size = out_tell(&f->b->out) - HEADER_BYTES;
	return builder_flush_spill(f->b, err) || out_align(&f->b->out, err) ? -1 : 0;
}

int builder_write_tables(struct history_builder *b, int64_t begin, int64_t end, struct error *err)
{
	struct finish f = { .b = b, .begin = begin, .end = end };
	tree_forget_hashes(&b->tree);
	number_nodes(&b->tree);
	int result = close_leaves(&f, err) || write_index(&f, err) || write_attributes(&f, err) ||
		write_sets_and_strings(&f, err) || write_meta(&f, err) || write_sums(&f, err) || write_header(&f, err);
	return result ? -1 : 0;
}
