/* All ends of synchronization pairs that one machine's trace shows (private to sync/): for a guest that has found its clock
 * by a sample of them (sync_event_set.h) and now wants all that its VM's threads may have sent.
 *
 * Those of a thread are one chain, in order of time, and so are those of no known thread: who wants some threads' reads no
 * others.  Memory: a block and 8 bytes for each further one, of each thread that has some; the blocks are in a file. */
#ifndef STEALSCOPE_SYNC_EVIDENCE_SYNC_EVENT_FILE_H
#define STEALSCOPE_SYNC_EVIDENCE_SYNC_EVENT_FILE_H

#include "base/error.h"
#include "sync/evidence/sync_event_set.h"

struct mark_chain {
	struct sync_mark *block;  /* the last one */
	size_t len;               /* marks in it */
	uint64_t *at;             /* of those before it, their numbers in the file */
	size_t blocks, cap;
};

struct mark_log {
	struct mark_chain *chain;  /* by thread + 1 */
	size_t chains, cap;
	uint64_t blocks;           /* in the file */
	bool has_file;
	int file;
};

int mark_log_add(struct mark_log *l, const struct sync_mark *m, struct error *err);
void mark_log_release(struct mark_log *l);

/* Goes through the marks of the threads of which mine[] says so (NULL: of all), and of no known one, in order of time. */
struct mark_walk;
struct mark_walk *mark_walk_open(const struct mark_log *l, const bool *mine);
int mark_walk_next(struct mark_walk *w, struct sync_mark *m, struct error *err);  /* 1, 0 = end, -1 */
void mark_walk_close(struct mark_walk *w);

#endif
