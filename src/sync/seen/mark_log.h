/* All ends of synchronization pairs that one machine's trace shows, in its order (private to sync/): for a guest that has
 * found its clock by a sample of them (mark_list.h) and now wants the others.
 *
 * Memory: one block; those before it are in a file, which is made when there are any. */
#ifndef STEALSCOPE_SYNC_MARK_LOG_H
#define STEALSCOPE_SYNC_MARK_LOG_H

#include "base/error.h"
#include "sync/seen/mark_list.h"

struct mark_log {
	struct sync_mark *block;  /* the last one */
	size_t len;               /* marks in it */
	size_t blocks;            /* in the file */
	bool has_file;
	int file;
};

int mark_log_add(struct mark_log *l, const struct sync_mark *m, struct error *err);
/* Number i of them, in *block: up to MARK_LOG_BLOCK marks; 0: there are no more, -1. */
int mark_log_block(const struct mark_log *l, size_t i, struct sync_mark *block, struct error *err);
void mark_log_release(struct mark_log *l);

enum { MARK_LOG_BLOCK = 1024 };

#endif
