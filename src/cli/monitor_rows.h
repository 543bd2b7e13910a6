/* Rows of `stealscope monitor` that wait to be written to a database. */
#pragma once

#include "export/export.h"
#include "live/live.h"

#define ROWS_KEPT_NS 600000000000  /* rows that are older are dropped */

struct monitor_rows {
	struct export_live live;   /* rows of the samples since the last write; the texts are owned */
	size_t state_cap, steal_cap;
	uint64_t dropped;          /* rows that were too old */
};

void monitor_rows_add(struct monitor_rows *r, const struct live_sample *s);
/* Writes the waiting rows in one transaction and forgets them. Returns 0, or -1 with *err: they still wait. */
int monitor_rows_write(struct monitor_rows *r, const char *target, const char *host, struct error *err);
size_t monitor_rows_waiting(const struct monitor_rows *r);
void monitor_rows_release(struct monitor_rows *r);
