/* The table of attributes: in memory while it is small, then in an unlinked scratch file that is mapped.
 *
 * A trace may have millions of short-lived threads, whose attributes never change again.  In the file their pages can
 * leave memory.  They are told to after every LEAVES_TOUCHED accesses that may have brought in another page; live
 * attributes come back at once, from the page cache.  Room in the file is reserved before it is used, so that a full
 * disk is an error and not a signal. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "history/builder.h"

#define LEAVES_TOUCHED ((size_t)1 << 16)
#define GROWTH ((size_t)8 << 20)  /* bytes of the file at least, once it is larger than that */

size_t builder_leaf_memory(const struct history_builder *b)
{
	return b->leaf_file < 0 ? b->leaves * sizeof *b->leaf : b->memory / 4;
}

void builder_touch_leaves(struct history_builder *b, size_t n)
{
	b->touched += n;
	if (b->touched < LEAVES_TOUCHED)
		return;
	b->touched = 0;
	if (b->leaf_file >= 0)
		madvise(b->leaf, b->leaf_bytes, MADV_DONTNEED);
}

static int reserve(struct history_builder *b, size_t from, size_t to, struct error *err)
{
	return reserve_all(b->leaf_file, from, to) ? out_cannot_write(&b->out, err) : 0;
}

/* From memory to a file. */
static int move_out(struct history_builder *b, size_t bytes, struct error *err)
{
	b->leaf_file = out_scratch(&b->out, err);
	void *p = MAP_FAILED;
	if (b->leaf_file >= 0 && reserve(b, 0, bytes, err) == 0) {
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, b->leaf_file, 0);
		if (p == MAP_FAILED)
			error_system(err, NULL, "cannot create %s", b->out.path);
	}
	if (p == MAP_FAILED) {
		if (b->leaf_file >= 0)
			close(b->leaf_file);
		b->leaf_file = -1;
		return -1;
	}
	if (b->leaves)
		memcpy(p, b->leaf, b->leaves * sizeof *b->leaf);
	free(b->leaf);
	b->leaf = p;
	b->leaf_bytes = bytes;
	return 0;
}

static int grow_file(struct history_builder *b, size_t bytes, struct error *err)
{
	if (reserve(b, b->leaf_bytes, bytes, err))
		return -1;
	void *p = mremap(b->leaf, b->leaf_bytes, bytes, MREMAP_MAYMOVE);
	if (p == MAP_FAILED)
		return error_system(err, NULL, "cannot create %s", b->out.path);
	b->leaf = p;
	b->leaf_bytes = bytes;
	return 0;
}

/* Whole pages. */
static size_t larger(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t more = bytes / 2 > GROWTH ? bytes / 2 : bytes < GROWTH ? bytes : GROWTH;
	return (bytes + more + page) / page * page;
}

struct leaf *builder_new_leaf(struct history_builder *b, struct error *err)
{
	builder_touch_leaves(b, 1);
	size_t used = b->leaves * sizeof *b->leaf;
	if (b->leaf_file < 0 && used + sizeof *b->leaf <= b->memory / 4)
		return ARRAY_PUSH(b->leaf, b->leaves, b->leaves_cap);
	if (b->leaf_file < 0 && move_out(b, larger(used), err))
		return NULL;
	if (used + sizeof *b->leaf > b->leaf_bytes && grow_file(b, larger(used), err))
		return NULL;
	return &b->leaf[b->leaves++];
}

void builder_free_leaves(struct history_builder *b)
{
	if (b->leaf_file < 0) {
		free(b->leaf);
	} else {
		munmap(b->leaf, b->leaf_bytes);
		close(b->leaf_file);
	}
	b->leaf = NULL;
	b->leaf_file = -1;
	b->leaves = 0;
}
