/* All sync events of one machine's trace, in a scratch file (private to sync/). After a guest's clock was estimated from
 * a sample (sync_event_set.h), the guest is matched with all events of its VM's threads.
 *
 * Each thread has a chain of blocks in order of time, and so have the events without a known thread; a reader of some
 * threads skips the blocks of others. Memory: one block per thread, and 8 bytes for each further block. */
#pragma once

#include "base/error.h"
#include "sync/evidence/sync_event_set.h"

struct event_chain {
	struct sync_event *block;  /* last block, in memory */
	size_t len;                /* events in the last block */
	uint64_t *block_index;     /* file positions of the chain's earlier blocks, in blocks */
	size_t blocks, cap;
};

struct sync_event_file {
	struct event_chain *chain;  /* index: 1 + thread; 0: events without a known thread */
	size_t chains, cap;
	uint64_t blocks;           /* blocks in the file */
	bool has_file;
	int file;
};

int sync_event_file_add(struct sync_event_file *l, const struct sync_event *m, struct error *err);
void sync_event_file_release(struct sync_event_file *l);

/* Reads, in order of time, the events of the threads i with selected[i] (NULL: all threads) and of no known thread. */
struct event_reader;
struct event_reader *event_reader_open(const struct sync_event_file *l, const bool *selected);
/* Gets the next event. Returns 1, 0 at the end, or -1 with *err set. */
int event_reader_next(struct event_reader *w, struct sync_event *m, struct error *err);
void event_reader_close(struct event_reader *w);
