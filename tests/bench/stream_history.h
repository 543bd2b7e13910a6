/* Builds a history from the synthetic stream of stream.h, and compares it with known digests. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "history/history.h"

/* Builds the history of `changes` changes over `attributes` attributes; *checksum: of the stream (may be NULL). Returns
 * -1 and sets *err on failure. */
int stream_build(const char *path, uint32_t attributes, uint64_t changes, const struct history_options *options,
                 uint64_t *checksum, struct error *err);

/* Returns the attribute ids by number in the stream (the caller frees), or NULL. */
uint32_t *stream_attributes(const struct history *h, uint32_t attributes);

/* Sums of interval digests, comparable with those of struct golden. `div` divides the time span of the history: 1, 100,
 * 10000. */
uint64_t stream_digest_full(const struct history *h, const uint32_t *id, uint32_t attributes);
uint64_t stream_digest_grid(const struct history *h, const uint32_t *id, uint64_t div, uint64_t *intervals);
uint64_t stream_digest_range(const struct history *h, const uint32_t *id, uint64_t div, uint64_t *intervals);

struct golden {
	uint32_t attributes;
	uint64_t changes;
	int64_t last;                  /* time of the last change, ns */
	uint64_t checksum, full;
	struct { uint64_t intervals, digest; } grid[3], range[3];  /* for div 1, 100, 10000; range[0] is unknown */
};
extern const struct golden stream_golden[4];

/* Returns true if all digests are the known ones; prints the first difference to stderr. */
bool stream_check(const struct history *h, const struct golden *g);
