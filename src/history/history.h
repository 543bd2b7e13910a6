/* The state history file: attributes with values that change over time, written once, read through mmap.
 *
 * This module does not depend on traces and virtual machines. An attribute is a path ("/Host/Threads/42/Status"). Its
 * value is a state (a small number with a name, from a declared state set), an integer, a string, a reference (a string
 * and a number, as "host/42"), or null. Values are stored as intervals [start, end], both included, in ns; next.start ==
 * end + 1. Every attribute has a value (null until the first change) at every time of the history's span.
 *
 * Times are int64_t ns. Functions that can fail return 0 or -1 and fill *err unless noted. A damaged file causes an
 * error with the file's name and the offset, never a wrong answer. */
#pragma once

#include "base/base.h"

#define HISTORY_NULL INT64_MIN      /* no value */
#define HISTORY_STATES 32           /* states per set and null: values 0 .. HISTORY_STATES - 2 */
#define HISTORY_NONE UINT32_MAX     /* no such attribute */

enum history_type {
	HISTORY_STATE,   /* value: index into the attribute's state set */
	HISTORY_INT,     /* value: any integer except HISTORY_NULL */
	HISTORY_STRING,  /* value: string id, see history_string() */
	HISTORY_REF,     /* value: string id and number, see history_ref() */
};

struct interval {
	int64_t start, end;  /* ns, both included */
	int64_t value;       /* or HISTORY_NULL */
};

/* ---- Building ------------------------------------------------------------------------------------------- */

struct history_builder;

#define HISTORY_WINDOW "window"  /* key of the pair with the window: two i64, its first and last ns */

struct history_options {
	size_t memory;           /* memory limit of the builder, independent of the interval count, bytes; 0: 128 MiB */
	unsigned chunk;          /* intervals per chunk; 0: default; tests use few to reach every boundary */
	unsigned block;  /* bytes per checksum, a power of two from 64 to 1 MiB; 0: 16 KiB */
	bool owner_only;         /* other users cannot read the file, whatever the umask is */
	bool named;              /* name the temporary file, as on file systems without unnamed files */
};

/* Starts a history. Until it is finished it is a temporary file in the directory of `path`. options may be NULL. Returns
 * NULL with *err on failure. */
struct history_builder *history_create(const char *path, const struct history_options *options, struct error *err);

/* Declares a set of n < HISTORY_STATES state names, which are copied. Returns its id for history_attribute(). */
unsigned history_state_set(struct history_builder *b, const char *name, const char *const *state, unsigned n);

/* Returns the attribute at `path`, and declares it if it is new. '/' in a component is written "%2f", '%' "%25" (see
 * history_path()). `set` is used for HISTORY_STATE only. Attributes may be declared at any time; inner nodes are created
 * as needed. Returns HISTORY_NONE with *err if the attribute has another type. */
uint32_t history_attribute(struct history_builder *b, const char *path, enum history_type type, unsigned set,
                           struct error *err);

/* Sets the value of an attribute from time t. Calls for one attribute must be in order of t; of several calls with one
 * t, the last value counts. An equal value changes nothing. Returns -1 with *err if t is before the attribute's last
 * change, a state is not in its set, or the disk is full. */
int history_set(struct history_builder *b, int64_t t, uint32_t attr, int64_t value, struct error *err);
int history_set_string(struct history_builder *b, int64_t t, uint32_t attr, const char *value, struct error *err);

/* Returns the id of a string for history_set() with HISTORY_STRING and for history_ref(), constant while the history is
 * built; -1 with *err if the table is full. */
int64_t history_text(struct history_builder *b, const char *text, struct error *err);
static inline int64_t history_ref(int64_t text, uint32_t number) { return text << 32 | number; }

/* Stores a pair key = value, any bytes: provenance, notes, clocks. A later value of a key replaces the earlier one. */
int history_meta_set(struct history_builder *b, const char *key, const void *value, size_t size);

/* Data that are computed from the complete history and stored in it, opaque to this module. A reader computes them again
 * if they are damaged. fn reads all intervals of `h`, which is valid during the call, and writes its data with
 * history_write_derived(). history_finish() calls it; NULL: no data. */
struct history;
typedef int history_derive_fn(void *arg, const struct history *h, struct history_builder *b, struct error *err);
void history_derive(struct history_builder *b, history_derive_fn *fn, void *arg);
int history_write_derived(struct history_builder *b, const void *data, size_t size, struct error *err);

/* Closes all intervals at `end`, writes the tables, and renames the file to its path. [begin, end] is the span; it must
 * contain all changes. Frees the builder, also on failure (then no file is left). */
int history_finish(struct history_builder *b, int64_t begin, int64_t end, struct error *err);
/* Declares the window [begin, end]; the other parts of the span are context. */
int history_set_window(struct history_builder *b, int64_t begin, int64_t end);
void history_abort(struct history_builder *b);  /* leaves no file; b may be NULL */

/* Joins path components with '/' and escapes '/' and '%' in them; the last argument is NULL. Returns buf. */
char *history_path(char *buf, size_t size, ...) __attribute__((sentinel));

/* ---- Reading ------------------------------------------------------------------------------------------- */

/* Opens a history, at a cost that does not depend on its size. Returns NULL with *err on failure. Several threads may
 * query one history. While it is open, the file may be replaced by rename, or removed, but not written or truncated. */
struct history *history_open(const char *path, struct error *err);
void history_close(struct history *h);                              /* h may be NULL */

const char *history_file(const struct history *h);
int64_t history_begin(const struct history *h);       /* the history's window, without its context, ns */
int64_t history_end(const struct history *h);
/* Span of the file, ns. It is longer than the window only if the history was cut from another one, with some context
 * (HISTORY_WINDOW). Queries answer for the whole span. */
int64_t history_first(const struct history *h);
int64_t history_last(const struct history *h);
uint64_t history_intervals(const struct history *h);  /* intervals in the file */
uint64_t history_bytes(const struct history *h);      /* the file's size */

/* Functions without *err treat damaged parts as absent. history_damage() returns -1 with *err if any access to the
 * history found damage. history_verify() reads the whole file and checks every checksum. */
int history_damage(const struct history *h, struct error *err);
int history_verify(const struct history *h, struct error *err);

/* Returns true if the file begins like a history of any version, even if it is damaged. */
bool history_is_history_file(const char *path);

/* Reports reads outside a window: from now on, calls fn for each part [start, end] of an attribute that a function
 * below has read and that does not lie within [from, to]. A part is an interval that was returned, complete, or the time
 * that a sum covers. An answer that all these functions helped to compute is the same for another history that contains
 * the window and all reported parts. Several threads may call fn at a time. fn NULL: ends the reports. No other thread may
 * read the history meanwhile. */
void history_watch(struct history *h, int64_t from, int64_t to,
                   void (*fn)(void *arg, uint32_t attr, int64_t start, int64_t end), void *arg);

/* Attributes. Their ids are 0 .. count - 1; inner nodes of the tree are attributes too, of type -1. */
uint32_t history_attribute_count(const struct history *h);
uint32_t history_find(const struct history *h, const char *path);  /* HISTORY_NONE if absent; "/" is the root */
int history_type(const struct history *h, uint32_t attr);          /* enum history_type; -1: inner node */
const char *history_name(const struct history *h, uint32_t attr);  /* last component, unescaped; valid until close */
uint32_t history_parent(const struct history *h, uint32_t attr);   /* HISTORY_NONE for the root */
/* Returns the child of `parent` after `previous` (HISTORY_NONE: the first child); HISTORY_NONE at the end. */
uint32_t history_child(const struct history *h, uint32_t parent, uint32_t previous);
/* Returns the child of `parent` with this unescaped name; HISTORY_NONE: none. */
uint32_t history_child_named(const struct history *h, uint32_t parent, const char *name);
/* Calls fn for every attribute with a path that matches; a component "*" of the pattern matches any component. Stops
 * when fn returns a value other than 0, and returns this value. */
int history_match(const struct history *h, const char *pattern, int (*fn)(void *arg, uint32_t attr), void *arg);

unsigned history_state_count(const struct history *h, uint32_t attr);               /* states in the
                                                                                     * attribute's state set */
const char *history_state_name(const struct history *h, uint32_t attr, unsigned state);
const char *history_string(const struct history *h, int64_t value);                 /* a HISTORY_STRING value's text; ""
                                                                                     * if invalid */
static inline int64_t history_ref_text(int64_t value) { return value >> 32; }       /* string id of a HISTORY_REF value */
static inline uint32_t history_ref_number(int64_t value) { return (uint32_t)value; }
const void *history_meta(const struct history *h, const char *key, size_t *size);   /* the pair's value; NULL: absent */

/* Gives the memory back that reads have mapped; later reads map it again. */
void history_unmap_read(const struct history *h);
/* Returns bytes of the derived data; NULL: they lie outside the data, or are damaged, which history_damage() does not
 * report, or reads are watched (history_watch()): then the data must be computed from what the watch reports. */
const uint8_t *history_derived(const struct history *h, uint64_t offset, uint64_t size);
uint64_t history_derived_size(const struct history *h);

/* Finds the interval of `attr` that contains t (clamped to the span). O(log n). */
int history_stab(const struct history *h, uint32_t attr, int64_t t, struct interval *iv, struct error *err);

/* Reads the values of all attributes at t: value[0 .. count - 1]; HISTORY_NULL for inner nodes. */
int history_full(const struct history *h, int64_t t, int64_t *value, struct error *err);

/* Iteration over the intervals of `attr` that intersect [t0, t1], not cut at the window, in order of time. */
struct history_cursor {
	const struct history *h;
	int64_t t1;
	uint32_t attr;
	uint64_t state[8];  /* private */
};
int history_range(struct history_cursor *c, const struct history *h, uint32_t attr, int64_t t0, int64_t t1,
                  struct error *err);
int history_range_next(struct history_cursor *c, struct interval *iv, struct error *err);  /* 1; 0: end; -1: failure */
/* The same for up to max intervals per call, much cheaper per interval. Returns their number, possibly less than max; 0
 * at the end, -1 on failure. Both functions may be mixed. */
int history_range_read(struct history_cursor *c, struct interval *iv, unsigned max, struct error *err);

/* Computes the ns of a HISTORY_STATE attribute in each state within [t0, t1]: sums[state], null in sums[HISTORY_STATES -
 * 1]. The window is cut to the span, and the sums add up to its length. O(log n) for any window. */
int history_sums(const struct history *h, uint32_t attr, int64_t t0, int64_t t1, int64_t sums[HISTORY_STATES],
                 struct error *err);

/* The same for n adjacent cells, faster: cell i is [edge[i], edge[i + 1] - 1]. The n + 1 edges must ascend; equal edges
 * are an empty cell. */
int history_sums_cells(const struct history *h, uint32_t attr, const int64_t *edge, unsigned n,
                       int64_t (*sums)[HISTORY_STATES], struct error *err);

/* Find the first interval that starts after t, or the last one that ends before t, with a state of `mask` (one bit per
 * state). Return 1 if found, 0 if there is none, -1 on failure. O(log n) at any distance. */
int history_next(const struct history *h, uint32_t attr, int64_t t, uint64_t mask, struct interval *iv,
                 struct error *err);
int history_prev(const struct history *h, uint32_t attr, int64_t t, uint64_t mask, struct interval *iv,
                 struct error *err);
