/* Computes the sums of a history by blocks, and writes them into it.
 *
 * The history is divided into segments of time, which are swept in parallel. A block ends where its sums need few bytes
 * compared with the intervals from which they were computed: so the file grows by a limited share whatever the number of
 * rows and culprits is. The last block of a segment goes on in the next one. The blocks depend on the history alone, not on
 * the thread count. */
#include "base/base.h"
#include "base/parallel.h"
#include "query/sums_section.h"
#include "query/window_gaps.h"

#define SEGMENT_INTERVALS (1u << 20)
#define READ_PER_SUM 10     /* fewest intervals that a block reads for each of its sums */

struct sums_segment {
	struct sweep sweep;
	struct read_block { struct gap_block sums; size_t read; } *block;
	size_t blocks, cap;
	int64_t from, to;
	struct error err;
};

struct sums_builder {
	struct catalog catalog;
	struct gap_rows rows;
	struct sums_segment *segment;  /* of the current round */
	struct read_block next;        /* not written yet */
};

/* Returns true if a block may end. */
static bool is_block_full(size_t read, size_t sums)
{
	return read > READ_PER_SUM * sums && read > SWEEP_INTERVALS / 2;
}

static int sweep_segment(void *arg, size_t i)
{
	struct sums_builder *b = arg;
	struct sums_segment *g = &b->segment[i];
	int last = 0;
	if (sweep_open(&g->sweep, &b->catalog, &b->rows, g->from, g->to, &g->err) < 0)
		return -1;
	while (last == 0) {
		last = sweep_step(&g->sweep);
		if (last > 0 || (last == 0 && is_block_full(g->sweep.read, g->sweep.sums))) {
			struct read_block *block = ARRAY_PUSH(g->block, g->blocks, g->cap);
			block->read = g->sweep.read;
			sweep_take_block(&g->sweep, &block->sums);
		}
	}
	return last < 0 ? -1 : 0;
}

static void segment_release(struct sums_segment *g)
{
	sweep_release(&g->sweep);
	for (size_t i = 0; i < g->blocks; i++)
		gap_block_release(&g->block[i].sums);
	free(g->block);
	*g = (struct sums_segment){ .err = ERROR_INIT };
}

/* Appends a block to the next one to write, and writes that if it is full, or if `last`. */
static int append_block(struct sums_builder *b, struct read_block *block, bool last, struct sums_writer *w,
                        struct error *err)
{
	struct read_block *next = &b->next;
	size_t sums = 0;
	if (next->read)
		gap_block_append(&next->sums, &block->sums);
	else
		next->sums = block->sums;
	block->sums = (struct gap_block){ 0 };
	next->read += block->read + 1;
	for (size_t i = 0; i < next->sums.rows; i++)
		sums += next->sums.row[i].sum.culprits;
	if (!last && !is_block_full(next->read, sums))
		return 0;
	next->read = 0;
	return sums_write_block(w, &next->sums, err);
}

/* Sweeps segments [from, to) of n, and writes their blocks. */
static int write_segments(struct sums_builder *b, size_t from, size_t to, size_t n, unsigned workers, struct sums_writer *w,
                          struct actors *culprits, struct strtab *names, struct error *err)
{
	const struct history *h = b->catalog.h;
	for (size_t i = from; i < to; i++) {
		struct sums_segment *g = &b->segment[i - from];
		*g = (struct sums_segment){ .err = ERROR_INIT };
		part_bounds(history_begin(h), history_end(h), i, n, &g->from, &g->to);
	}
	int status = parallel_run(&(struct parallel){ .workers = workers, .task = sweep_segment, .arg = b }, to - from);
	for (size_t i = 0; i < to - from; i++) {
		struct sums_segment *g = &b->segment[i];
		if (g->err.text[0] && err)
			*err = g->err;
		for (size_t k = 0; k < g->blocks && status == 0; k++) {
			culprits_renumber(&g->sweep, &g->block[k].sums, culprits, names);
			status = append_block(b, &g->block[k], from + i + 1 == n && k + 1 == g->blocks, w, err);
		}
		segment_release(g);
	}
	history_unmap_read(h);
	return status ? -1 : 0;
}

int culprit_sums_derive(void *arg, const struct history *h, struct history_builder *out, struct error *err)
{
	const unsigned workers = parallel_workers(arg ? *(const unsigned *)arg : 0);
	struct sums_builder b = { 0 };
	struct sums_writer w = { .b = out };
	struct actors culprits = { 0 };
	struct strtab names;
	strtab_init(&names);
	if (catalog_open(&b.catalog, h, err) < 0)
		return -1;
	sums_rows_list(&b.rows, &b.catalog);
	b.segment = mem_new(workers, sizeof *b.segment);
	const uint64_t wanted = history_intervals(h) / SEGMENT_INTERVALS + 1;
	const uint64_t span = (uint64_t)(history_end(h) - history_begin(h));
	const size_t n = (size_t)(wanted < span / 2 + 1 ? wanted : span / 2 + 1);
	int status = 0;
	for (size_t i = 0; i < n && status == 0; i += workers)
		status = write_segments(&b, i, i + workers < n ? i + workers : n, n, workers, &w, &culprits, &names, err);
	if (status == 0)
		status = sums_write_end(&w, h, &culprits, &names, err);
	gap_block_release(&b.next.sums);
	sums_writer_release(&w);
	actors_release(&culprits);
	strtab_release(&names);
	free(b.segment);
	gap_rows_release(&b.rows);
	catalog_release(&b.catalog);
	return status;
}
