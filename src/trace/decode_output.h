/* Results of decoding a task, and the event sink (struct recorder) that stores them. */
#pragma once

#include <stdatomic.h>

#include "trace/reader.h"
#include "trace/store.h"

/* Results of decoding one stream, or one part of it. */
struct decoded {
	struct stream records;
	uint64_t order;       /* position of the stream among the trace's streams, for sources that find their streams
	                       * while decoding */
	uint64_t lost_events; /* events lost, as counted by the tracer */
	uint64_t clamped;     /* events with a time lower than the previous one, which was raised to it */
	struct damage {
		char *why;
		uint64_t events;  /* number of events of this part before the damage */
		bool continues;     /* decoding continues with the next packet or page */
	} *damage;
	size_t damages, damages_cap;
	struct decode_coverage { uint16_t cpu; int64_t begin, end; } *coverage;  /* recorded interval of each CPU, ns */
	size_t coverages, coverages_cap;
};

/* A part of a stream to decode, and its results. */
struct task {
	struct source *source;
	struct stream_part stream_part;
	uint64_t bytes;         /* approximate size of the part */
	struct decoded **out;   /* one; if the source finds its streams while decoding: one per stream, by number */
	size_t outs, outs_cap;
	struct faults faults;
	struct error err;
	int status;             /* result of decode() */
};

struct decoded *task_add_stream(struct task *t);  /* appends to out[] */
void task_release_results(struct task *t, struct store *store);  /* frees the results */

struct recorder {
	struct event_sink event_sink;         /* the caller of recorder_open() sets ops->report_progress */
	struct decoded *out;
	struct writer writer;
	uint16_t cpu;             /* CPU of the last event that was stored */
};

/* Opens a recorder that stores into *out. *err must outlive it. The sink has no operation select_stream. */
void recorder_open(struct recorder *r, const struct event_sink_ops *ops, struct store *store, struct decoded *out,
                   struct error *err);
int recorder_close(struct recorder *r);  /* Flushes the records. Releases everything except *out, also on failure.
                                          * Returns 0 or -1. */

/* Operations of the event sink, for struct event_sink_ops. */
int recorder_put(struct event_sink *o, const struct event *ev);
int recorder_add_coverage(struct event_sink *o, uint16_t cpu, int64_t begin, int64_t end);
int recorder_report_damage(struct event_sink *o, const char *why, bool continues);

/* Adds a loss without duration after the last event, which makes the CPU's state unknown. Returns 0 or -1. */
int recorder_put_unknown(struct event_sink *o);
