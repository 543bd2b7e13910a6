/* Readers: the ways to get events out of traces. One struct trace_reader each, in a file of its own, and a row in
 * readers.c.
 *
 * A place is a folder or file that a reader has claimed. A source is what is read as a whole: a CTF trace (one place, or
 * those into which a rotating tracer split it), a file of trace-cmd, the live sessions of a machine. It has streams (the
 * buffer of one CPU, usually), each in the order of time. What happens, in this order:
 *
 * 	claims     for each file below a folder: is it, or does it stand for, something that this reader reads?
 * 	describe   whose trace is this place, by reading little of it?
 * 	open       which streams has the source, and where may they be cut?  Sources are opened one after the other, while
 * 	           no thread is at work, or side by side where a reader says that it can.  A reader may leave a source to
 * 	           another one here (OPEN_OTHER), which opens it alone.
 * 	enter      what one thread needs to decode: nothing in it is used by another thread
 * 	decode     a stretch of a stream into an outlet; as often as wanted, several threads at a time, each with its own
 * 	leave, close, forget
 *
 * A reader that is `apart` uses a library that trusts its input. Its enter, decode and leave run in child processes, and
 * what it puts into the outlet comes through a pipe (decoder_process.h); it cannot tell. A child that dies costs the
 * rest of the stream that it was in. A reader that is not apart must survive any bytes, and files that are cut short or
 * changed while they are read: it reads with pread(), and checks everything; a mapped file that is truncated kills the
 * program.
 *
 * Damage is told to the outlet and costs what it spoils. Only what the system refuses (EIO, no memory) is an error:
 * errno decides, and what could not be read is never taken for what is not there. Errors name the place that they are
 * about. */
#ifndef STEALSCOPE_TRACE_READER_H
#define STEALSCOPE_TRACE_READER_H

#include <stdatomic.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/notes.h"
#include "trace/layout/layout.h"
#include "trace/discovery/metadata.h"
#include "trace/string_table.h"
#include "trace/trace.h"

struct trace_reader;

/* ---- what is read */

/* A guest that a tracer recorded together with its host. */
struct recorded_guest {
	char *name;   /* may be "": the tracer gave it none */
	uint64_t id;  /* of its recording */
	struct recorded_vcpu { uint32_t cpu, tid; } *vcpu;  /* its CPUs, and the host's threads that they are */
	size_t vcpus, vcpus_cap;
};

struct place {
	const struct trace_reader *reader;
	char *path;            /* of the folder or file; of live ones the URL */
	bool is_file;
	dev_t device;          /* of the file that was claimed: a trace reached by two paths is one trace */
	ino_t inode;

	struct metadata meta;  /* describe() fills these in, as far as they are told */
	uint64_t bytes;
	uint64_t id;           /* of the recording, 0: none */
	uint64_t lost;         /* events that the tracer counted as lost, in all */
	struct trace_scale scale;  /* of its clock */
	bool corrected;        /* its tracer corrected the times to the host's clock, ... */
	bool restored;         /* ... and they are read as they were recorded, if they are not asked for as_corrected */
	const struct recorded_guest *guest;
	size_t guests;
	char *saved_names;     /* "TID NAME" lines of threads, with or without events, or NULL */
	size_t saved_bytes;
	void *data;            /* the reader's, until forget() */
};

/* What the events of a source are translated with: layout.h, bound_rules.h. */
struct meaning {
	struct names *names;                /* where strings go; each thread has a name_cache of it */
	const struct layout *const *layout;  /* candidates; the one that fits best is taken */
	size_t layouts;
	atomic_size_t chosen;               /* its index + 1, by open() or decode(); 0 = none fits, or nothing was decoded */
	atomic_uint asked;                  /* HANDLERS_IRQ ...: as trace_info has them; before `chosen` */
};

struct source_stream {
	char *name;      /* for messages */
	uint64_t bytes;  /* about: the work is shared out by it */
	/* Where it may be cut, so that two threads share it: nothing is lost there, and what follows can be decoded alone. */
	struct stream_cut { uint64_t at /* in the reader's units */, bytes /* before it */; } *cut;
	size_t cuts, cuts_cap;
	size_t first_task, tasks;  /* load.c's */
};

struct source {
	const struct trace_reader *reader;
	const struct place **place;
	size_t places, places_cap;
	size_t machine;                 /* index in the load */
	bool beside;                    /* its machine's trace was found beside others */
	uint64_t bytes;
	struct meaning meaning;
	const struct trace_options *options;
	const struct trace_window *only;  /* NULL: all of it */
	unsigned workers;

	struct source_stream *stream;   /* open() finds them; of endless ones it turns out later, see outlet_stream() */
	size_t streams, streams_cap;
	const char *folder;             /* (apart) open() sets it: the only one in which decoding may write; NULL: none */
	struct notes notes;             /* what had to be left out; the machine's name is prepended */
	bool left_out;                  /* by source_leave_out() */
	void *data;                     /* the reader's, until close() */

	void **idle;                    /* what enter() made and no thread uses now; under load.c's lock */
	size_t idles, idles_cap;
	struct metadata *trace;         /* that it turned out to consist of: of live ones */
	size_t traces, traces_cap;
	char *cut;                      /* why it ended too early, or NULL; */
	bool stopped;                   /* because it was asked to: of endless ones */
};

/* It cannot be read at all, as err says. Found beside others it is left out, with a note; false: that is an error. */
bool source_leave_out(struct source *s, const struct error *err);

/* A stretch of a stream: from one cut to another. Of a source without streams: all of it. */
struct stretch {
	size_t stream;
	uint64_t from, to;  /* [from, to) in the reader's units; STRETCH_END: to its end */
};
#define STRETCH_END UINT64_MAX

/* ---- where events go */

struct faults {             /* the reader counts these on in outlet->faults */
	uint64_t uncounted;     /* times that the tracer lost events, and did not count how many */
	uint64_t lost_packets;
	uint64_t untimed;       /* events without a usable time: they are not put */
};

struct outlet {
	const struct outlet_ops {
		int (*put)(struct outlet *o, const struct event *ev);
		int (*stream)(struct outlet *o, uint32_t number, uint64_t order);
		int (*covers)(struct outlet *o, uint16_t cpu, int64_t begin, int64_t end);
		int (*damaged)(struct outlet *o, const char *why, bool goes_on);
		int (*at)(struct outlet *o, uint64_t bytes);
	} *ops;
	struct faults faults;
	const struct trace_window *only;  /* what else is put is dropped; NULL: nothing is */
	struct error *err;
};

/* All return 0; or -1, with *outlet->err filled: decode() then returns -1 at once. */

/* The next event, in the order of time (an earlier time is raised to the one before, and counted). Losses of the tracer
 * are EV_LOST events: their counts are added up here. */
static inline int outlet_put(struct outlet *o, const struct event *ev)
{
	const int64_t end = ev->kind == EV_LOST ? ev->lost.end : ev->ts;
	if (o->only && (ev->ts > o->only->to || end < o->only->from))
		return 0;
	return o->ops->put(o, ev);
}

/* The tracer recorded this CPU from begin to end (ns), whether there are events or not: once per packet, or page. */
static inline int outlet_covers(struct outlet *o, uint16_t cpu, int64_t begin, int64_t end)
{
	return o->ops->covers(o, cpu, begin, end);
}

/* What follows the last event cannot be decoded, and why; what the CPU did from there on is unknown. goes_on: only up to
 * the next packet, which is decoded again. */
static inline int outlet_damaged(struct outlet *o, const char *why, bool goes_on)
{
	return o->ops->damaged(o, why, goes_on);
}

/* So many bytes of the stretch are done: every few milliseconds at least, it is also how one gives up. */
static inline int outlet_at(struct outlet *o, uint64_t bytes)
{
	return o->ops->at(o, bytes);
}

/* Of a source whose streams were not known: what follows is of this one, also when that was left before. Streams are
 * numbered from 0 as they come; in the trace they stand by `order`. */
static inline int outlet_stream(struct outlet *o, uint32_t number, uint64_t order)
{
	return o->ops->stream(o, number, order);
}

/* ---- a reader */

enum claim { CLAIM_NONE, CLAIM_FILE, CLAIM_FOLDER /* the one that the file is in */ };
#define CLAIM_HEAD 16  /* bytes that a claim is made by */

#define OPEN_OTHER 1    /* open(): `fallback` shall read it; source->notes may say why */
#define DECODE_WHOLE 1  /* decode(): the stream cannot be read in parts after all: what was put is void */

struct trace_reader {
	const char *name;
	bool apart;               /* trusts its input: see above */
	bool opens_beside;        /* open() of one source may run beside that of another */
	bool alone;               /* each place is a machine's whole trace: two are not put together */
	bool endless;             /* (apart) may be asked to stop (SIGTERM): decode() then puts what it has, and returns */
	bool online;              /* (apart) it reads from the network */
	int64_t patience;         /* (apart) s without a word after which the child is given up */
	const char *died, *silent;  /* (apart) what to say of a child that did, or was */
	const char *mend;         /* what the user may do about a place that cannot be read */
	const char *unit;         /* what damage costs where decoding goes on: "packet", "page" */
	const struct trace_reader *fallback;

	enum claim (*claims)(const char *name, const unsigned char *head, size_t len);
	int (*describe)(struct place *p, struct error *err);
	void (*forget)(struct place *p);                         /* NULL: nothing to do; as in all below */
	int (*open)(struct source *s, struct error *err);        /* 0, -1, OPEN_OTHER; close() is called in any case */
	/* Of a stream: what of it may tell of the window. NULL: that cannot be told without decoding it. */
	void (*narrow)(const struct source *s, const struct trace_window *only, struct stretch *p);
	void *(*enter)(struct source *s, struct error *err);     /* NULL: cannot */
	int (*decode)(void *entered, const struct stretch *p, struct outlet *out);  /* 0, -1, DECODE_WHOLE */
	void (*leave)(void *entered);
	void (*remark)(const struct source *s, const char *machine, struct notes *notes);  /* once it is decoded */
	void (*close)(struct source *s);
};

extern const struct trace_reader *const readers[];  /* NULL behind the last; the first that claims a file gets it */

#endif
