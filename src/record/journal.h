/* Journal of a running recording: lists its guests and its directory, so that a later recorder can remove the remains in
 * the guests if this one is killed. The file is /run/stealscope/PID-START, accessible to root only. START is the start
 * time of the process in ticks since boot; it distinguishes the process from a later one with the same PID. */
#pragma once

#include "base/base.h"

struct journal_guest { char *name, *transport; };  /* transport: as text, "ssh:root@web" */

struct journal {
	char *path;  /* the journal file's path; NULL: not written */
	char *dir;   /* the recording's directory */
	struct journal_guest *guest;
	size_t guests, cap;
};

/* Writes the journal of this process and sets s->path; journal_remove() deletes the file. */
int journal_write(const char *root, struct journal *s, struct error *err);
void journal_remove(struct journal *s);
void journal_release(struct journal *s);
void journal_add_guest(struct journal *s, const char *name, const char *transport);

/* Returns the journals of processes that no longer exist. The caller releases each journal and frees the array. */
struct journal *journal_stale(const char *root, size_t *n);
