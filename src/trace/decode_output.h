/* What comes of decoding, and the outlet that keeps it. */
#ifndef STEALSCOPE_TRACE_DECODE_OUTPUT_H
#define STEALSCOPE_TRACE_DECODE_OUTPUT_H

#include <stdatomic.h>

#include "trace/reader.h"
#include "trace/store.h"

/* A stream, or a stretch of one. */
struct decoded {
	struct stream records;
	uint64_t order;       /* where it stands, of a source whose streams were not known */
	uint64_t lost_events; /* that the tracer counted */
	uint64_t clamped;     /* events whose clock went backwards */
	struct damage {
		char *why;
		uint64_t events;  /* before it, of this stretch */
		bool goes_on;     /* behind the packet */
	} *damage;
	size_t damages, damages_cap;
	struct coverage { uint16_t cpu; int64_t begin, end; } *covered;  /* what was recorded of each CPU */
	size_t covers, covers_cap;
};

/* A stretch to decode, and what came of it. */
struct task {
	struct source *source;
	struct stretch stretch;
	uint64_t bytes;         /* about */
	struct decoded **out;   /* one; of a source whose streams were not known, each of them by its number */
	size_t outs, outs_cap;
	struct faults faults;
	struct error err;
	int status;             /* of decode() */
};

struct decoded *task_add(struct task *t);  /* one more in out[] */
void task_forget(struct task *t, struct store *store);  /* what came of it */

struct recorder {
	struct outlet outlet;         /* its ops->at is the user's to set, see recorder_open() */
	struct decoded *out;
	struct writer writer;
	uint16_t cpu;             /* of the last event */
};

/* *err must live as long.  The outlet has no stream(). */
void recorder_open(struct recorder *r, const struct outlet_ops *ops, struct store *store, struct decoded *out,
                   struct error *err);
int recorder_close(struct recorder *r);  /* releases all but *out, also on failure */

/* The ops of such a outlet, but for at(). */
int recorder_put(struct outlet *o, const struct event *ev);
int recorder_covers(struct outlet *o, uint16_t cpu, int64_t begin, int64_t end);
int recorder_damaged(struct outlet *o, const char *why, bool goes_on);

/* What the CPU did from the last event on is not known. */
int recorder_lose_rest(struct outlet *o);

#endif
