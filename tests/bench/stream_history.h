/* The stream put into a history, and the digests of its known answers. */
#ifndef STEALSCOPE_TESTS_STREAM_HISTORY_H
#define STEALSCOPE_TESTS_STREAM_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "history/history.h"

/* Builds the history of `changes` changes over `attributes` attributes; *checksum is the stream's (may be NULL).
 * -1 and *err on failure. */
int stream_build(const char *path, uint32_t attributes, uint64_t changes, const struct history_options *options,
                 uint64_t *checksum, struct error *err);

/* Attribute ids by number in the stream (malloc), or NULL. */
uint32_t *stream_attributes(const struct history *h, uint32_t attributes);

/* Sums of interval digests, as the known answers have them.  `div` divides the span: 1, 100, 10000. */
uint64_t stream_digest_full(const struct history *h, const uint32_t *id, uint32_t attributes);
uint64_t stream_digest_grid(const struct history *h, const uint32_t *id, uint64_t div, uint64_t *intervals);
uint64_t stream_digest_range(const struct history *h, const uint32_t *id, uint64_t div, uint64_t *intervals);

struct golden {
	uint32_t attributes;
	uint64_t changes;
	int64_t last;                  /* time of the last change */
	uint64_t checksum, full;
	struct { uint64_t intervals, digest; } grid[3], range[3];  /* div 1, 100, 10000; range[0] is unknown */
};
extern const struct golden stream_golden[4];

/* Compares everything with the known answers; says on stderr what differs. */
bool stream_check(const struct history *h, const struct golden *g);

#endif
