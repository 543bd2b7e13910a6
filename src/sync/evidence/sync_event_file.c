#include "sync/evidence/sync_event_file.h"

#include <unistd.h>

#include "base/base.h"
#include "base/scratch_file.h"

enum { BLOCK = 128 };  /* events in a block of 4 KiB */
static const size_t block_bytes = BLOCK * sizeof(struct sync_event);

static int write_block(struct sync_event_file *l, struct event_chain *c, struct error *err)
{
	if (!l->has_file && (l->file = scratch_open(NULL, err)) < 0)
		return -1;
	l->has_file = true;
	if (scratch_write(l->file, c->block, block_bytes, (int64_t)(l->blocks * block_bytes), err))
		return -1;
	*ARRAY_PUSH(c->block_index, c->blocks, c->cap) = l->blocks++;
	c->len = 0;
	return 0;
}

int sync_event_file_add(struct sync_event_file *l, const struct sync_event *m, struct error *err)
{
	const size_t number = (size_t)(m->origin + 1);
	while (l->chains <= number)
		*ARRAY_PUSH(l->chain, l->chains, l->cap) = (struct event_chain){ .block = NULL };
	struct event_chain *c = &l->chain[number];
	if (!c->block)
		c->block = mem_new(BLOCK, sizeof *c->block);
	if (c->len == BLOCK && write_block(l, c, err))
		return -1;
	c->block[c->len++] = *m;
	return 0;
}

void sync_event_file_release(struct sync_event_file *l)
{
	if (l->has_file)
		close(l->file);
	for (size_t i = 0; i < l->chains; i++) {
		free(l->chain[i].block);
		free(l->chain[i].block_index);
	}
	free(l->chain);
	*l = (struct sync_event_file){ 0 };
}

/* ---- reading */

struct chain_reader {
	const struct event_chain *chain;
	size_t next;               /* index of the next block to read */
	struct sync_event *block;  /* buffer for blocks read from the file */
	const struct sync_event *event, *end;
};

struct event_reader {
	const struct sync_event_file *events;
	struct chain_reader *chain_reader;  /* open chains, in order of thread */
	size_t n_readers, cap;
};

static int read_block(const struct sync_event_file *l, struct chain_reader *r, struct error *err)
{
	const struct event_chain *c = r->chain;
	if (r->next > c->blocks)
		return 0;
	if (r->next == c->blocks) {
		r->event = c->block;
		r->end = c->block + c->len;
	} else {
		r->block = r->block ? r->block : mem_new(BLOCK, sizeof *r->block);
		if (scratch_read(l->file, r->block, block_bytes, (int64_t)(c->block_index[r->next] * block_bytes), err))
			return -1;
		r->event = r->block;
		r->end = r->block + BLOCK;
	}
	r->next++;
	return 1;
}

struct event_reader *event_reader_open(const struct sync_event_file *l, const bool *selected)
{
	struct event_reader *w = mem_new(1, sizeof *w);
	w->events = l;
	for (size_t i = 0; i < l->chains; i++)
		if (l->chain[i].block && (i == 0 || !selected || selected[i - 1]))
			*ARRAY_PUSH(w->chain_reader, w->n_readers, w->cap) = (struct chain_reader){ .chain = &l->chain[i] };
	return w;
}

/* Returns the reader with the earliest event; NULL: end, or an error if *status is -1. */
static struct chain_reader *earliest_reader(struct event_reader *w, int *status, struct error *err)
{
	struct chain_reader *best = NULL;
	*status = 0;
	for (size_t i = 0; i < w->n_readers; i++) {
		struct chain_reader *r = &w->chain_reader[i];
		if (r->event == r->end && (*status = read_block(w->events, r, err)) < 0)
			return NULL;
		if (r->event < r->end && (!best || r->event->ts < best->event->ts))
			best = r;
	}
	return best;
}

int event_reader_next(struct event_reader *w, struct sync_event *m, struct error *err)
{
	int status;
	struct chain_reader *r = earliest_reader(w, &status, err);
	if (status < 0 || !r)
		return status < 0 ? -1 : 0;
	*m = *r->event++;
	return 1;
}

void event_reader_close(struct event_reader *w)
{
	for (size_t i = 0; i < w->n_readers; i++)
		free(w->chain_reader[i].block);
	free(w->chain_reader);
	free(w);
}
