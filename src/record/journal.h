/* What a recording that runs has made, for whoever has to remove it if that dies: /run/stealscope/PID-BEGUN, root's alone.
 * BEGUN is the tick since boot at which the process began: another process of that number later is not taken for it. */
#ifndef STEALSCOPE_RECORD_JOURNAL_H
#define STEALSCOPE_RECORD_JOURNAL_H

#include <stddef.h>

#include "base/error.h"

struct state_guest { char *name, *transport; };

struct journal {
	char *path;     /* of the file */
	char *folder;   /* the recording */
	struct state_guest *guest;
	size_t guests, cap;
};

/* Ours: written at once, removed by journal_remove().  path is filled in. */
int journal_write(const char *root, struct journal *s, struct error *err);
void journal_remove(struct journal *s);
void journal_release(struct journal *s);
void journal_add_guest(struct journal *s, const char *name, const char *transport);

/* Those of recordings whose processes are dead.  The caller releases each, and frees the array. */
struct journal *journal_stale(const char *root, size_t *n);

#endif
