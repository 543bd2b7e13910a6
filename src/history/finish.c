/* Finish: writes all parts of the file after the chunks.
 *
 * Leaves are closed in file order. One pass over the scratch file collects the chunk records into the index, by
 * attribute. Tables that do not fit into memory are paged. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "history/builder.h"
#include "history/file.h"

#define READ_BUFFER ((size_t)256 << 10)
#define ROW_MAX (ROW_SUMS + 8 * HISTORY_STATES)

/* Attribute with all chunks written. */
struct closed_attr {
	uint64_t row;           /* offset of its next row in the index, bytes */
	uint32_t remaining_rows, chunks, mask;
	uint16_t set;
	uint8_t type;            /* enum history_type, or ATTR_INNER */
	uint8_t sums;            /* sums per row: one for each state of the mask; 0 if there is only one row */
};

struct finish {
	struct history_builder *b;
	int64_t begin, end;
	uint64_t intervals;
	struct { uint64_t offset, size; } section[SECTIONS];
	uint32_t sums2;          /* checksum of SECTION_SUMS2 */
	struct paged ordered;    /* table of struct ordered_attr, by attribute */
	struct paged closed_attr;  /* table of struct closed_attr, by attribute */
	uint64_t unnumbered;     /* chunk records with an index of a leaf instead of an attribute id */
};

static size_t row_bytes(const struct closed_attr *c)
{
	return ROW_SUMS + 8u * c->sums;
}

/* Returns -1 with *err if a page could not be written or read. */
static int pages_failed(const struct finish *f, struct error *err)
{
	if (f->b->failed && err)
		*err = f->b->failure;
	return f->b->failed ? -1 : 0;
}

static void begin_section(struct finish *f, enum section s)
{
	f->section[s].offset = out_offset(&f->b->out);
}

static int end_section(struct finish *f, enum section s, struct error *err)
{
	f->section[s].size = out_offset(&f->b->out) - f->section[s].offset;
	return out_align(&f->b->out, err);
}

/* ---- The index ------------------------------------------------------------------------------------------ */

/* Reader of the scratch file. */
struct record_reader {
	int fd;
	uint8_t *buf;
	size_t at, len;
};

static int spill_next(struct record_reader *g, struct spilled_row *s, int64_t *sums)
{
	if (g->len - g->at < SPILL_MAX) {
		memmove(g->buf, g->buf + g->at, g->len - g->at);
		g->len -= g->at;
		g->at = 0;
		while (g->len < READ_BUFFER) {
			ssize_t n = read(g->fd, g->buf + g->len, READ_BUFFER - g->len);
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
	for (uint32_t mask_rest = s->mask; mask_rest; mask_rest &= mask_rest - 1, g->at += sizeof *sums)
		memcpy(sums++, g->buf + g->at, sizeof *sums);
	return 1;
}

/* Completes a row that contains its sums, and fills the sums of the next row if there is one. */
static void fill_row(uint8_t *row, const struct closed_attr *c, const struct spilled_row *s, const int64_t *sums)
{
	const uint8_t *sum = row + ROW_SUMS;
	uint8_t *next = row + row_bytes(c) + ROW_SUMS;
	put64(row + ROW_START, (uint64_t)s->start);
	put64(row + ROW_LOCATION, s->location);
	for (uint32_t mask_rest = c->remaining_rows > 1 && c->sums ? c->mask : 0; mask_rest;
	     mask_rest &= mask_rest - 1, sum += 8, next += 8)
		put64(next, get64(sum) + (s->mask & mask_rest & -mask_rest ? (uint64_t)*sums++ : 0));
}

static void put_row(struct paged *rows, const struct closed_attr *c, const struct spilled_row *s, const int64_t *sums)
{
	uint8_t split_row[2 * ROW_MAX];
	const size_t from = c->row % PAGE_BYTES, n = row_bytes(c) * (c->remaining_rows > 1 ? 2 : 1);
	if (from + n <= PAGE_BYTES) {
		fill_row((uint8_t *)paged_edit(rows, c->row / PAGE_BYTES) + from, c, s, sums);
		return;
	}
	paged_get(rows, c->row, split_row, n);
	fill_row(split_row, c, s, sums);
	paged_put(rows, c->row, split_row, n);
}

static int gather_rows(struct finish *f, struct paged *rows, struct error *err)
{
	struct history_builder *b = f->b;
	struct record_reader g = { .fd = b->scratch, .buf = mem_new(1, READ_BUFFER) };
	struct spilled_row s;
	int64_t sums[HISTORY_STATES];
	int more = lseek(b->scratch, 0, SEEK_SET) == 0 ? 1 : -1;
	for (uint64_t i = 0; more > 0 && (more = spill_next(&g, &s, sums)) > 0; i++) {
		const uint32_t attr = i < f->unnumbered ? PAGED_READ(&b->leaf, struct leaf, s.attr)->attr : s.attr;
		struct closed_attr *c = PAGED_EDIT(&f->closed_attr, struct closed_attr, attr), previous = *c;
		if (!previous.remaining_rows)
			continue;
		c->row += row_bytes(c);
		c->remaining_rows--;
		if (previous.remaining_rows == previous.chunks && s.start > f->begin)
			f->intervals++;          /* the interval of null before the first change */
		put_row(rows, &previous, &s, sums);
	}
	free(g.buf);
	return more < 0 ? error_system(err, NULL, "cannot read back the index of %s", b->out.path) : 0;
}

static int write_pages(struct finish *f, struct paged *bytes, uint64_t size, struct error *err)
{
	for (uint64_t at = 0; at < size; at += PAGE_BYTES)
		if (out_write(&f->b->out, paged_read(bytes, at / PAGE_BYTES), size - at < PAGE_BYTES ? size - at : PAGE_BYTES, err))
			return -1;
	return 0;
}

static int write_index(struct finish *f, struct error *err)
{
	struct history_builder *b = f->b;
	struct paged rows;
	uint64_t size = 0;
	for (size_t attr = 0; attr < b->tree.nodes; attr++) {
		struct closed_attr *c = PAGED_EDIT(&f->closed_attr, struct closed_attr, attr);
		c->row = size;
		f->intervals += c->type != ATTR_INNER && !c->chunks;
		size += c->chunks * row_bytes(c);
	}
	paged_init(&rows, &b->pager);
	paged_grow(&rows, size / PAGE_BYTES + 1);
	begin_section(f, SECTION_INDEX);
	int result = gather_rows(f, &rows, err) || write_pages(f, &rows, size, err) || builder_check_offset(b, err) ||
		pages_failed(f, err) ? -1 : 0;
	paged_release(&rows);
	return result ? -1 : end_section(f, SECTION_INDEX, err);
}

/* ---- Tables --------------------------------------------------------------------------------------------- */

/* Returns the id of the leader of a leaf; 0: none. */
static uint32_t leader_attribute(struct history_builder *b, uint32_t leaf)
{
	const struct leaf *leaf_data = leaf == NONE ? NULL : PAGED_READ(&b->leaf, struct leaf, leaf);
	const struct hot_row *row = leaf_data && leaf_data->is_hot ? leaf_data->row : NULL;
	return row && row->has_linked_chunk ? PAGED_READ(&b->leaf, struct leaf, row->leader->leaf)->attr : 0;
}

static int write_attributes(struct finish *f, struct error *err)
{
	struct history_builder *b = f->b;
	uint64_t row = f->section[SECTION_INDEX].offset;
	begin_section(f, SECTION_ATTRIBUTES);
	for (size_t attr = 0; attr < b->tree.nodes; attr++) {
		const struct ordered_attr p = *PAGED_READ(&f->ordered, struct ordered_attr, attr);
		const struct closed_attr c = *PAGED_READ(&f->closed_attr, struct closed_attr, attr);
		uint8_t r[ATTR_BYTES] = { 0 };
		put32(r + ATTR_PARENT, p.parent);
		put32(r + ATTR_NAME, p.name);
		put32(r + ATTR_CHILD, p.child);
		put32(r + ATTR_CHILDREN, p.children);
		put32(r + ATTR_CHUNKS, c.chunks);
		put32(r + ATTR_MASK, c.mask);
		if (c.type != HISTORY_STATE)
			put32(r + ATTR_LEADER, leader_attribute(b, p.leaf));
		put64(r + ATTR_INDEX, c.type | row | (uint64_t)c.set << 48);
		row += c.chunks * row_bytes(&c);
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
	if (write_pages(f, &b->tree.bytes, b->tree.bytes_len, err))
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

/* Opens the sections that are complete. Their bytes were just written: no checksum is verified. */
static struct history *open_complete(struct finish *f, struct error *err)
{
	struct history_builder *b = f->b;
	const uint64_t size = out_offset(&b->out);
	if (out_flush(&b->out, err))
		return NULL;
	void *map = mmap(NULL, size, PROT_READ, MAP_SHARED, b->out.fd, 0);
	if (map == MAP_FAILED) {
		error_system(err, NULL, "cannot read back %s", b->out.path);
		return NULL;
	}
	struct history *h = mem_new(1, sizeof *h);
	*h = (struct history){
		.path = mem_dup(b->out.path), .map = map, .size = size, .begin = f->begin, .end = f->end,
		.intervals = b->intervals + f->intervals, .chunks = b->chunks, .attributes = (uint32_t)b->tree.nodes,
		.sets = (uint32_t)b->sets, .metas = (uint32_t)b->metas, .block = b->out.block,
		.block_shift = (unsigned)__builtin_ctz(b->out.block), .blocks = size / b->out.block + 1,
	};
	for (unsigned i = 0; i < SECTION_DERIVED; i++) {
		h->section[i].offset = f->section[i].offset;
		h->section[i].size = f->section[i].size;
	}
	const size_t words = (size_t)h->blocks / 64 + 1;
	h->verified = mem_new(words, sizeof *h->verified);
	for (size_t i = 0; i < words; i++)
		atomic_init(&h->verified[i], UINT64_MAX);
	if (file_read_window(h, err)) {
		history_close(h);
		return NULL;
	}
	return h;
}

static int write_derived(struct finish *f, struct error *err)
{
	struct history_builder *b = f->b;
	begin_section(f, SECTION_DERIVED);
	if (b->derive) {
		struct history *h = open_complete(f, err);
		const int result = h ? b->derive(b->derive_arg, h, b, err) : -1;
		history_close(h);
		if (result)
			return -1;
	}
	return end_section(f, SECTION_DERIVED, err);
}

/* Writes the checksums of all blocks, and the checksums of these checksums. */
static int write_sums(struct finish *f, struct error *err)
{
	struct out *o = &f->b->out;
	if (out_seal(o, err))
		return -1;
	uint64_t at = out_offset(o);
	size_t n = o->sums, bytes = 4 * n, parts = (bytes + o->block - 1) / o->block;
	uint8_t *sums = mem_new(n, 4), *sums2 = mem_new(parts, 4);
	for (size_t i = 0; i < n; i++)
		put32(sums + 4 * i, o->sum[i]);
	for (size_t i = 0; i < parts; i++) {
		size_t from = i * o->block, size = bytes - from < o->block ? bytes - from : o->block;
		put32(sums2 + 4 * i, crc32c(&o->crc, sums + from, size));
	}
	f->section[SECTION_SUMS].offset = at;
	f->section[SECTION_SUMS].size = bytes;
	f->section[SECTION_SUMS2].offset = at + bytes;
	f->section[SECTION_SUMS2].size = 4 * parts;
	f->sums2 = crc32c(&o->crc, sums2, 4 * parts);
	int result = out_write_at(o, sums, bytes, at, err);
	if (!result)
		result = out_write_at(o, sums2, 4 * parts, at + bytes, err);
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

/* Writes the remaining intervals of a leaf (a copy), the last one up to `end`. attr: its id in the file. */
static int close_leaf(struct history_builder *b, struct leaf *leaf, uint32_t attr, int64_t end, struct error *err)
{
	struct change gathered[CHUNK_MAX + 3], *row = gathered;
	unsigned n = leaf->pending;
	if (leaf->is_hot) {
		row = leaf->row->first;
		n = (unsigned)(leaf->open - row);
	} else if (leaf->start != UNSET) {
		pool_take(&b->pool, &leaf->chain, row, n, leaf->has_prev ? leaf->prev_start : leaf->start);
		if (leaf->has_prev)
			row[n++] = (struct change){ leaf->prev_start, leaf->prev_value };
		row[n] = (struct change){ leaf->start, leaf->value };
	} else {
		return 0;
	}
	row[++n].start = end + 1;
	leaf->pending = 0;
	/* Up to two intervals more than fit into a chunk: the rest becomes a second chunk. */
	const unsigned chunk = leaf->is_hot ? builder_chunk(b, leaf) : b->chunk;
	for (unsigned m; n > 0; row += m, n -= m) {
		m = n < chunk ? n : chunk;
		if (builder_write_chunk(b, leaf, attr, row, m, NULL, err))
			return -1;
	}
	return 0;
}

static int close_leaves(struct finish *f, struct error *err)
{
	struct history_builder *b = f->b;
	f->unnumbered = b->chunks;
	PAGED_GROW(&f->closed_attr, struct closed_attr, b->tree.nodes);
	for (uint32_t attr = 0; attr < b->tree.nodes; attr++) {
		const uint32_t id = PAGED_READ(&f->ordered, struct ordered_attr, attr)->leaf;
		struct closed_attr c = { .type = ATTR_INNER };
		if (id != NONE) {
			struct leaf leaf = *PAGED_READ(&b->leaf, struct leaf, id);
			if (leaf.chunks)
				PAGED_EDIT(&b->leaf, struct leaf, id)->attr = attr;
			if (close_leaf(b, &leaf, attr, f->end, err))
				return -1;
			c = (struct closed_attr){ .remaining_rows = leaf.chunks, .chunks = leaf.chunks, .mask = leaf.mask,
			                     .set = leaf.set, .type = leaf.type };
			if (leaf.type == HISTORY_STATE && leaf.chunks > 1)
				c.sums = (uint8_t)__builtin_popcount(leaf.mask);
		}
		*PAGED_EDIT(&f->closed_attr, struct closed_attr, attr) = c;
	}
	pool_release(&b->pool);
	builder_free_hot(b);
	f->section[SECTION_CHUNKS].offset = HEADER_BYTES;
	f->section[SECTION_CHUNKS].size = out_offset(&b->out) - HEADER_BYTES;
	return builder_flush_spill(b, err) || out_align(&b->out, err) ? -1 : 0;
}

int builder_write_tables(struct history_builder *b, int64_t begin, int64_t end, struct error *err)
{
	struct finish f = { .b = b, .begin = begin, .end = end };
	paged_init(&f.ordered, &b->pager);
	paged_init(&f.closed_attr, &b->pager);
	tree_forget_hashes(&b->tree);
	builder_number(b, &f.ordered);
	int result = pages_failed(&f, err) || close_leaves(&f, err) || write_index(&f, err) || write_attributes(&f, err) ||
		write_sets_and_strings(&f, err) || write_meta(&f, err) || write_derived(&f, err) || write_sums(&f, err) ||
		pages_failed(&f, err) ||
		write_header(&f, err);
	paged_release(&f.ordered);
	paged_release(&f.closed_attr);
	return result ? -1 : 0;
}
