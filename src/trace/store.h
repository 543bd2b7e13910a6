/* Compact records: what is kept of the decoded events.
 *
 * A stream is the records of one data stream (one CPU's buffer, usually) in time order, cut into blocks.  A record
 * is its length, by which the next one is found before this one is understood, its kind, the thread that was current
 * when it is another one than before, the time since the previous record, and each argument as the difference to the same
 * argument of the previous event of its kind.  The lengths of these numbers stand together before them, four bits each,
 * and what is as it was takes no byte: 5 bytes for an event that only proves activity, 7 to 16 for most others.
 *
 * Invariants: every block can be decoded alone (the differences start anew); times never go backwards within a stream.
 * Costs: some 200 instructions to write a record, fewer to read one.  All blocks of one load share a budget of memory; what
 * would exceed it goes to one unlinked temporary file and is read back one block at a time. */
#ifndef STEALSCOPE_TRACE_STORE_H
#define STEALSCOPE_TRACE_STORE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "trace/trace.h"

#define RECORD_LONGEST 128  /* bytes; no record is longer */
#define RECORD_ROOM 256     /* bytes that may be read from the beginning of a damaged one on */
#define BLOCK_ROOM 8        /* bytes behind a block that may be read */

/* Where blocks live.  Shared by the traces of one load, and counted by them. */
struct store {
	atomic_size_t resident;  /* bytes of blocks in memory */
	size_t limit;            /* beyond which blocks are spilled */
	size_t block_size;       /* bytes */
	int fd;                  /* of the unlinked temporary file */
	_Atomic int64_t spilled; /* bytes in it */
	atomic_uint users;
};

struct block {
	unsigned char *data;  /* and BLOCK_ROOM; NULL: in the store's file */
	int64_t offset;
	int64_t last;         /* ns of its last record */
	uint32_t len;
};

struct cpu_set {
	uint16_t min, max;          /* min > max: none */
	uint64_t *bit;              /* of each of them; NULL while there is only one */
	size_t words;               /* of bits, those of max among them */
};
#define NO_CPUS { .min = UINT16_MAX }

/* The CPUs to which threads are sent at all, and those to which they are more than once. */
struct sends { struct cpu_set once, again; };
#define NO_SENDS { .once = NO_CPUS, .again = NO_CPUS }

/* Times go back where a clock was set back; a smaller step is that of corrected times, which were rounded, and sync/ would
 * not take it for one. */
#define BACK_LEAST_NS 20000
#define TWICE_MOST 16

struct stream {
	struct block *block;
	size_t len, cap;
	uint64_t events;            /* EV_LOST excluded */
	event_kinds kinds;          /* a bit for each kind that occurs */
	int64_t begin, end;         /* of the first and the last event, EV_LOST excluded; begin > end: none */
	struct cpu_set cpus;        /* whose events they are */
	struct sends sent;          /* threads, by them */
	struct trace_span *back;    /* times that it had before when it came to them, TWICE_MOST + 1 stretches at most */
	size_t backs, back_cap;
};

struct codec {
	int64_t ts;
	uint64_t who[2];                       /* cpu and tid beside a kind of 0, pid and comm, as in struct event */
	struct event event[EVENT_KIND_COUNT];  /* the last one of each kind */
};

struct writer {
	struct store *store;
	struct stream *stream;
	unsigned char *buf;
	size_t used;
	struct codec last;
	int64_t ts;         /* of the last record, across blocks */
	uint64_t clamped;   /* events whose clock went backwards */
};

struct reader {
	const struct store *store;
	const struct stream *stream;
	size_t block, last_block;      /* the next one, and the one behind the last */
	const unsigned char *at, *end;
	unsigned char *buf;            /* for spilled blocks */
	struct codec last;
	int64_t ts;
	uint64_t wanted[MOST_EVENT_KINDS / 64];  /* a bit for each kind; others are passed over */
	bool bare;                     /* arg[] is of no use */
};

/* limit is in bytes of memory, dir is where the temporary file goes. */
struct store *store_new(size_t limit, const char *dir, struct error *err);
/* Before the first writer: makes the blocks so small that a cursor over all streams needs little memory. */
void store_expect(struct store *s, size_t streams);
void store_ref(struct store *s);
void store_unref(struct store *s);  /* NULL is allowed */

void stream_init(struct stream *s);
void cpu_set_add(struct cpu_set *s, const struct cpu_set *of);
bool cpu_set_has(const struct cpu_set *s, int cpu);
void cpu_set_release(struct cpu_set *s);
void sends_add(struct sends *s, const struct sends *of);
void sends_release(struct sends *s);
void stream_steps_back(struct stream *s, int64_t from, int64_t to);  /* to `from`, after it was at `to` */
void stream_release(struct stream *s, struct store *store);

void writer_open(struct writer *w, struct store *store, struct stream *stream);
int writer_put(struct writer *w, const struct event *ev, struct error *err);
int writer_close(struct writer *w, struct error *err);  /* flushes; the writer is released on failure too */

/* Of n parts of about the same size which, in their order, are the whole stream: number i.  All of its events, unless the
 * caller wants fewer. */
void reader_open(struct reader *r, const struct store *store, const struct stream *stream, size_t i, size_t n);
void reader_want(struct reader *r, event_kinds kinds, bool bare);  /* before the first one; bare: without arguments */
/* 1, 0 = end, -1.  The event is the reader's, until the next call. */
int reader_next(struct reader *r, const struct event **ev, struct error *err);
void reader_close(struct reader *r);

#endif
