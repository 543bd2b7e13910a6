/* Compact records: the decoded events' storage.
 *
 * Format: a stream contains the records of one data stream (usually one CPU's buffer) in time order, cut into blocks. A
 * record consists of
 * - its length, so that a reader can skip the record without decoding it;
 * - its kind, and the current thread if that changed since the previous record;
 * - the time since the previous record, and each argument as the difference from the same argument of the previous event
 *   of the same kind.
 * The lengths of these numbers come first, four bits each; an unchanged number takes no byte. An event without arguments
 * takes 5 bytes, most others 7 to 16.
 *
 * Invariants: each block can be decoded alone (differences start from zero); times never decrease within a stream. Cost:
 * about 200 instructions to write a record, fewer to read one. All blocks of one load share a memory budget; blocks
 * beyond it are written to one unlinked temporary file and read back one at a time. */
#pragma once

#include <stdatomic.h>

#include "base/base.h"
#include "trace/trace.h"

#define RECORD_MAX 128  /* a record's maximum length, bytes */
#define RECORD_OVERREAD 256     /* bytes that a reader may access from a damaged record's start, at most */
#define BLOCK_PADDING 8        /* readable byte count after a block: numbers are read 8 bytes at a time */

/* Block storage, shared by the traces of one load; reference counted. */
struct store {
	atomic_size_t resident;  /* size of the blocks in memory, bytes */
	size_t limit;            /* size of the blocks in memory above which further blocks are written to the file, bytes */
	size_t block_size;       /* bytes */
	int fd;                  /* the unlinked temporary file */
	_Atomic int64_t spilled; /* the file's size, bytes */
	atomic_uint users;
};

struct block {
	unsigned char *data;  /* followed by BLOCK_PADDING readable bytes; NULL: the block is in the store's file */
	int64_t offset;
	int64_t last;         /* time of the last record, ns */
	uint32_t len;
};

struct cpu_set {
	uint16_t min, max;          /* min > max: the set is empty */
	uint64_t *bit;              /* one bit per CPU; NULL if the set has at most one CPU */
	size_t words;               /* length of bit[], covers max */
};
#define NO_CPUS { .min = UINT16_MAX }

/* CPUs to which threads are sent (woken or migrated): CPUs that occur at least once, and CPUs that occur more than once. */
struct destinations { struct cpu_set once, repeated; };
#define NO_DESTINATIONS { .once = NO_CPUS, .repeated = NO_CPUS }

/* Smallest decrease of the time that counts as a setback of the clock, ns. Smaller ones come from the rounding of
 * corrected times, and sync/ would not recognize them as setbacks. */
#define SETBACK_MIN_NS 20000
#define SETBACKS_MAX 16

struct stream {
	struct block *block;
	size_t len, cap;
	uint64_t events;            /* event count, EV_LOST excluded */
	event_kinds kinds;          /* kinds that occur */
	int64_t begin, end;         /* time of the first and of the last event, ns, EV_LOST excluded; begin > end: no event */
	struct cpu_set cpus;        /* the events' CPUs */
	struct destinations sent;   /* CPUs to which the events of this stream send threads */
	struct trace_interval *setback;   /* times that occur again after a setback of the clock; at most SETBACKS_MAX + 1 */
	size_t setbacks, setback_cap;
};

struct codec {
	int64_t ts;
	uint64_t context[2];                     /* context as two words: kind (0), cpu and tid; pid and comm */
	struct event event[EVENT_KIND_COUNT];  /* each kind's previous event */
};

struct writer {
	struct store *store;
	struct stream *stream;
	unsigned char *buf;
	size_t used;
	struct codec last;
	int64_t ts;         /* time of the last record, also of earlier blocks, ns */
	uint64_t clamped;   /* events with a time lower than the previous one, which was raised to it */
};

struct reader {
	const struct store *store;
	const struct stream *stream;
	size_t block, last_block;      /* index of the next block, and of the block after the part */
	const unsigned char *at, *end;
	unsigned char *buf;            /* buffer for a block from the file */
	struct codec last;
	int64_t ts;
	uint64_t wanted[EVENT_KINDS_MAX / 64];  /* one bit per kind; records of other kinds are skipped */
	bool without_args;                     /* arg[] is not decoded */
};

/* Opens a store that keeps up to `limit` bytes in memory; its temporary file is in dir (NULL: $TMPDIR or /tmp). Returns
 * NULL, with *err set, on failure. */
struct store *store_new(size_t limit, const char *dir, struct error *err);
/* Reduces the block size so that a cursor over `streams` streams needs little memory. Call it before the first
 * writer_open(). */
void store_expect(struct store *s, size_t streams);
void store_ref(struct store *s);
void store_unref(struct store *s);  /* s may be NULL */

void stream_init(struct stream *s);
void cpu_set_add(struct cpu_set *s, const struct cpu_set *of);
bool cpu_set_has(const struct cpu_set *s, int cpu);
void cpu_set_release(struct cpu_set *s);
void destinations_add(struct destinations *s, const struct destinations *of);
void destinations_release(struct destinations *s);
void stream_add_setback(struct stream *s, int64_t from, int64_t to);  /* adds the setback of a clock from time `to` to
                                                                       * the earlier time `from` */
void stream_release(struct stream *s, struct store *store);

void writer_open(struct writer *w, struct store *store, struct stream *stream);
int writer_put(struct writer *w, const struct event *ev, struct error *err);
int writer_close(struct writer *w, struct error *err);  /* flushes and releases the writer, also on failure; returns 0 or
                                                         * -1 */

/* Opens a reader of part i of n. The parts have about the same size; together they are the stream, in order. The reader
 * returns events of all kinds unless reader_want() restricts them. */
void reader_open(struct reader *r, const struct store *store, const struct stream *stream, size_t i, size_t n);
void reader_want(struct reader *r, event_kinds kinds, bool without_args);  /* Restricts the event kinds; bare: does not
                                                                    * decode their arguments. Call it before the first
                                                                    * reader_next(). */
/* Returns 1, 0 = end, or -1. The reader owns the event until the next call. */
int reader_next(struct reader *r, const struct event **ev, struct error *err);
void reader_close(struct reader *r);
