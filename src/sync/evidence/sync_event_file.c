#include "sync/evidence/sync_event_file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/scratch_file.h"

enum { BLOCK = 128 };  /* marks, 4 KiB */
static const size_t block_bytes = BLOCK * sizeof(struct sync_mark);

static int write_block(struct mark_log *l, struct mark_chain *c, struct error *err)
{
	if (!l->has_file && (l->file = scratch_open(NULL, err)) < 0)
		return -1;
	l->has_file = true;
	if (scratch_write(l->file, c->block, block_bytes, (int64_t)(l->blocks * block_bytes), err))
		return -1;
	*ARRAY_PUSH(c->at, c->blocks, c->cap) = l->blocks++;
	c->len = 0;
	return 0;
}

int mark_log_add(struct mark_log *l, const struct sync_mark *m, struct error *err)
{
	const size_t of = (size_t)(m->where + 1);
	while (l->chains <= of)
		*ARRAY_PUSH(l->chain, l->chains, l->cap) = (struct mark_chain){ .block = NULL };
	struct mark_chain *c = &l->chain[of];
	if (!c->block)
		c->block = mem_new(BLOCK, sizeof *c->block);
	if (c->len == BLOCK && write_block(l, c, err))
		return -1;
	c->block[c->len++] = *m;
	return 0;
}

void mark_log_release(struct mark_log *l)
{
	if (l->has_file)
		close(l->file);
	for (size_t i = 0; i < l->chains; i++) {
		free(l->chain[i].block);
		free(l->chain[i].at);
	}
	free(l->chain);
	*l = (struct mark_log){ 0 };
}

/* ---- walks */

struct chain_reader {
	const struct mark_chain *chain;
	size_t next;              /* block */
	struct sync_mark *block;  /* of those in the file */
	const struct sync_mark *mark, *end;
};

struct mark_walk {
	const struct mark_log *log;
	struct chain_reader *reader;  /* of those that have more, by thread */
	size_t readers, cap;
};

static int read_block(const struct mark_log *l, struct chain_reader *r, struct error *err)
{
	const struct mark_chain *c = r->chain;
	if (r->next > c->blocks)
		return 0;
	if (r->next == c->blocks) {
		r->mark = c->block;
		r->end = c->block + c->len;
	} else {
		r->block = r->block ? r->block : mem_new(BLOCK, sizeof *r->block);
		if (scratch_read(l->file, r->block, block_bytes, (int64_t)(c->at[r->next] * block_bytes), err))
			return -1;
		r->mark = r->block;
		r->end = r->block + BLOCK;
	}
	r->next++;
	return 1;
}

struct mark_walk *mark_walk_open(const struct mark_log *l, const bool *mine)
{
	struct mark_walk *w = mem_new(1, sizeof *w);
	w->log = l;
	for (size_t i = 0; i < l->chains; i++)
		if (l->chain[i].block && (i == 0 || !mine || mine[i - 1]))
			*ARRAY_PUSH(w->reader, w->readers, w->cap) = (struct chain_reader){ .chain = &l->chain[i] };
	return w;
}

/* The reader whose mark is the earliest; NULL: there are no more, or *status is -1. */
static struct chain_reader *earliest(struct mark_walk *w, int *status, struct error *err)
{
	struct chain_reader *best = NULL;
	*status = 0;
	for (size_t i = 0; i < w->readers; i++) {
		struct chain_reader *r = &w->reader[i];
		if (r->mark == r->end && (*status = read_block(w->log, r, err)) < 0)
			return NULL;
		if (r->mark < r->end && (!best || r->mark->ts < best->mark->ts))
			best = r;
	}
	return best;
}

int mark_walk_next(struct mark_walk *w, struct sync_mark *m, struct error *err)
{
	int status;
	struct chain_reader *r = earliest(w, &status, err);
	if (status < 0 || !r)
		return status < 0 ? -1 : 0;
	*m = *r->mark++;
	return 1;
}

void mark_walk_close(struct mark_walk *w)
{
	for (size_t i = 0; i < w->readers; i++)
		free(w->reader[i].block);
	free(w->reader);
	free(w);
}
