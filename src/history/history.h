/* The state history file: attributes whose values change over time, written once, read through mmap.
 *
 * Knows nothing of traces or virtual machines.  An attribute is a path ("/Host/Threads/42/Status"); its value is
 * one of: a state (a small number with a name, from a declared state set), an integer, a string, a reference (a string
 * and a number, as "host/42"), or null.
 * Values are kept as intervals [start, end], closed, in ns; next.start == end + 1; every attribute has a value
 * (null until the first change) at every moment of the history's span.
 *
 * Times are int64_t ns.  Functions that can fail return 0 or -1 and fill *err, unless they say otherwise.
 * A damaged file gives an error that names the file and the offset, never a wrong answer. */
#ifndef STEALSCOPE_HISTORY_HISTORY_H
#define STEALSCOPE_HISTORY_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define HISTORY_NULL INT64_MIN      /* the value null */
#define HISTORY_STATES 32           /* states of one set: values 0 .. HISTORY_STATES - 2 */
#define HISTORY_NONE UINT32_MAX     /* no such attribute */

enum history_type {
	HISTORY_STATE,   /* value: index into the attribute's state set */
	HISTORY_INT,     /* value: any integer but HISTORY_NULL */
	HISTORY_STRING,  /* value: string id, see history_string() */
	HISTORY_REF,     /* value: string id and number, see history_ref() */
};

struct interval {
	int64_t start, end;  /* ns, both included */
	int64_t value;       /* or HISTORY_NULL */
};

/* ---- Building ------------------------------------------------------------------------------------------- */

struct history_builder;

#define HISTORY_WINDOW "window"  /* key of the pair that tells the window: two i64, its first and last ns */

struct history_options {
	size_t memory;   /* bytes the builder may use; 0 = 128 MiB.  Holds whatever the number of intervals */
	unsigned chunk;  /* intervals per chunk, 0 = default; tests use tiny ones so that every boundary is hit */
	unsigned block;  /* bytes per checksum, a power of two from 64 to 1 MiB; 0 = 16 KiB */
	bool named;      /* the temporary file gets a name at once, as where the file system has no nameless files */
};

/* Starts a history that becomes `path` when it is finished; until then a temporary file in the same folder.
 * options may be NULL.  NULL on failure. */
struct history_builder *history_create(const char *path, const struct history_options *options, struct error *err);

/* Declares a set of state names (n < HISTORY_STATES; copied); returns its id for history_attribute(). */
unsigned history_state_set(struct history_builder *b, const char *name, const char *const *state, unsigned n);

/* The attribute at `path`, declared now if it is new.  A component that contains '/' writes it as "%2f", and '%'
 * as "%25" (see history_path()).  `set` matters for HISTORY_STATE only.  Attributes may be declared at any moment;
 * inner nodes come into being by themselves.  HISTORY_NONE and *err when the path is already of another type. */
uint32_t history_attribute(struct history_builder *b, const char *path, enum history_type type, unsigned set,
                           struct error *err);

/* From t on, the attribute has this value.  The calls for one attribute come in order of t (equal t: the last value wins
 * and the others leave no interval); an equal value changes nothing.  So what happened may be told later, as long as
 * the attribute has not changed since.  -1 when t runs backwards, a state is out of its set, or the
 * disk is full. */
int history_set(struct history_builder *b, int64_t t, uint32_t attr, int64_t value, struct error *err);
int history_set_string(struct history_builder *b, int64_t t, uint32_t attr, const char *value, struct error *err);

/* The id of a string, the same as long as the history is built; -1 and *err when there is no room for it.  It is what
 * history_set() takes for HISTORY_STRING, and history_ref() makes a reference of. */
int64_t history_text(struct history_builder *b, const char *text, struct error *err);
static inline int64_t history_ref(int64_t text, uint32_t number) { return text << 32 | number; }

/* Key = value for the footer: provenance, notes, clocks.  Any bytes; a later value replaces an earlier one. */
int history_meta_set(struct history_builder *b, const char *key, const void *value, size_t size);

/* Closes all intervals at `end`; the span is [begin, end], begin <= the first change.  Writes, syncs and renames.
 * Frees the builder, also on failure (then nothing is left behind). */
int history_finish(struct history_builder *b, int64_t begin, int64_t end, struct error *err);
/* The history is about [begin, end] alone; what else its span has is there to be looked up. */
int history_set_window(struct history_builder *b, int64_t begin, int64_t end);
void history_abort(struct history_builder *b);  /* leaves nothing behind; NULL is allowed */

/* Writes path components joined by '/' with '/' and '%' escaped; the last argument is NULL.  Returns buf. */
char *history_path(char *buf, size_t size, ...) __attribute__((sentinel));

/* ---- Reading -------------------------------------------------------------------------------------------- */

struct history;

/* NULL on failure; costs the same whatever the size.  Several threads may question one history.  The file may be
 * replaced by rename or removed while it is open, but must not be written to or cut. */
struct history *history_open(const char *path, struct error *err);
void history_close(struct history *h);                              /* NULL is allowed */

const char *history_file(const struct history *h);
int64_t history_begin(const struct history *h);       /* the time that it is about */
int64_t history_end(const struct history *h);
/* What there is of it: the same, but for a history that is a window of another one and keeps some of what was around it
 * (HISTORY_WINDOW).  Queries answer for all of this span. */
int64_t history_first(const struct history *h);
int64_t history_last(const struct history *h);
uint64_t history_intervals(const struct history *h);  /* in the whole file */
uint64_t history_bytes(const struct history *h);      /* of the file */

/* Functions without *err answer as if a damaged thing were absent.  history_damage(): -1 and *err when anything
 * damaged was met so far.  history_verify() reads the whole file and checks every checksum. */
int history_damage(const struct history *h, struct error *err);
int history_verify(const struct history *h, struct error *err);

/* Does the file begin as a history does, whatever its version and however damaged? */
bool history_is_one(const char *path);

/* Attributes.  Ids are dense: 0 .. count - 1; inner nodes of the tree are attributes too, of type -1. */
uint32_t history_attribute_count(const struct history *h);
uint32_t history_find(const struct history *h, const char *path);  /* HISTORY_NONE when absent; "/" is the root */
int history_type(const struct history *h, uint32_t attr);          /* enum history_type, or -1: an inner node */
const char *history_name(const struct history *h, uint32_t attr);  /* last component, unescaped; valid until close */
uint32_t history_parent(const struct history *h, uint32_t attr);   /* HISTORY_NONE for the root */
/* The next child of `parent` after `previous` (HISTORY_NONE = the first); HISTORY_NONE at the end. */
uint32_t history_child(const struct history *h, uint32_t parent, uint32_t previous);
/* Child of `parent` with that (unescaped) name. */
uint32_t history_child_named(const struct history *h, uint32_t parent, const char *name);
/* Calls fn for every attribute whose path matches; a component "*" of the pattern matches any one component.
 * Stops when fn returns other than 0, and returns that. */
int history_match(const struct history *h, const char *pattern, int (*fn)(void *arg, uint32_t attr), void *arg);

unsigned history_state_count(const struct history *h, uint32_t attr);               /* of the attribute's set */
const char *history_state_name(const struct history *h, uint32_t attr, unsigned state);
const char *history_string(const struct history *h, int64_t value);                 /* of a HISTORY_STRING value */
static inline int64_t history_ref_text(int64_t value) { return value >> 32; }       /* of a HISTORY_REF: a string id */
static inline uint32_t history_ref_number(int64_t value) { return (uint32_t)value; }
const void *history_meta(const struct history *h, const char *key, size_t *size);   /* NULL when absent */

/* The interval of `attr` that holds t (t is clamped to the span).  O(log n). */
int history_stab(const struct history *h, uint32_t attr, int64_t t, struct interval *iv, struct error *err);

/* The values of all attributes at t: value[0 .. count - 1], HISTORY_NULL for inner nodes. */
int history_full(const struct history *h, int64_t t, int64_t *value, struct error *err);

/* Walks the intervals of `attr` that meet [t0, t1], whole (not cut at the window), in order of time. */
struct history_cursor {
	const struct history *h;
	int64_t t1;
	uint32_t attr;
	uint64_t state[8];  /* private */
};
int history_range(struct history_cursor *c, const struct history *h, uint32_t attr, int64_t t0, int64_t t1,
                  struct error *err);
int history_range_next(struct history_cursor *c, struct interval *iv, struct error *err);  /* 1, 0 = end, -1 */
/* The same, up to max intervals at once, which costs far less for each: how many, 0 = end, -1.  May be fewer than
 * max before the end; both may be called by turns. */
int history_range_read(struct history_cursor *c, struct interval *iv, unsigned max, struct error *err);

/* Exact ns that a HISTORY_STATE attribute spends in each state within [t0, t1]: sums[state], null in
 * sums[HISTORY_STATES - 1]; they add up to t1 - t0 + 1 when the window is inside the span (it is cut to it).
 * O(log n) whatever the window. */
int history_sums(const struct history *h, uint32_t attr, int64_t t0, int64_t t1, int64_t sums[HISTORY_STATES],
                 struct error *err);

/* The same for n cells in a row, faster: cell i is [edge[i], edge[i + 1] - 1]; the n + 1 edges ascend (equal edges
 * make an empty cell). */
int history_sums_cells(const struct history *h, uint32_t attr, const int64_t *edge, unsigned n,
                       int64_t (*sums)[HISTORY_STATES], struct error *err);

/* The first interval that starts after t / the last that ends before t, with a state of `mask` (bit per state).
 * 1 = found, 0 = none, -1 = error.  O(log n) however far the match. */
int history_next(const struct history *h, uint32_t attr, int64_t t, uint64_t mask, struct interval *iv,
                 struct error *err);
int history_prev(const struct history *h, uint32_t attr, int64_t t, uint64_t mask, struct interval *iv,
                 struct error *err);

#endif
