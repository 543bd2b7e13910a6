/* The readers' interface. There is one reader per trace format or decoding library: a struct trace_reader in a file of
 * its own, and a row in readers.c.
 *
 * Terms:
 * - A location is a directory or file that a reader has claimed, or the URL of live sessions.
 * - A source is read as a whole: a CTF trace (one location, or several if a rotating tracer split it), a trace-cmd file, or
 *   a machine's live sessions.
 * - A source has streams (usually the buffer of one CPU each), each in time order.
 *
 * Operations, in the order of calls:
 *
 * 	claims     decides whether a file below a directory, or the directory that contains it, belongs to this reader
 * 	describe   reads the names of the machine and the trace, from a small part of the location
 * 	split      divides a file that contains several machines into one location for each
 * 	open       lists the streams of a source and the positions where they may be cut. The sources are opened one after
 * 	           the other while no other thread runs, or in parallel if the reader allows it
 * 	enter      makes the decoding state of one thread; no other thread uses that state at the same time
 * 	decode     decodes a part of a stream into an event sink; may be called any number of times, by several threads
 * 	leave, close, forget   release the results of enter, open and describe
 *
 * Isolation: a reader with `isolated` set uses a library that trusts its input. Its enter, decode and leave run in child
 * processes, and its events are sent through a pipe (decoder_process.h); the reader's code is the same as without
 * isolation. If a child crashes, the rest of the stream that it was decoding is lost. All other readers must survive
 * arbitrary bytes, and files that are truncated or changed during reading. So they use pread() and check everything:
 * access to a mapped file that was truncated kills the process.
 *
 * Errors: the reader reports damage to the sink, and only the damaged part is lost. Only a failure of the system (EIO,
 * no memory) is an error. The reader distinguishes them by errno, so an unreadable file is never mistaken for a missing
 * one. Each error message names the location. */
#pragma once

#include <stdatomic.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/notes.h"
#include "trace/layout/layout.h"
#include "trace/discovery/metadata.h"
#include "trace/string_table.h"
#include "trace/trace.h"

struct trace_reader;

/* ---- input */

/* A guest that the tracer recorded together with its host. */
struct recorded_guest {
	char *name;   /* "": the tracer recorded no name */
	uint64_t id;  /* id of the guest's recording */
	struct recorded_vcpu { uint32_t cpu, tid; } *vcpu;  /* the guest's CPU numbers, and the host threads that run them */
	size_t vcpus, vcpus_cap;
};

struct trace_location {
	const struct trace_reader *reader;
	char *path;            /* directory, file, FILE#MACHINE (see trace_path_length()), or URL of live sessions */
	bool is_file;
	dev_t device;          /* device and inode of the claimed file: a trace that is reached by two paths is read once */
	ino_t inode;

	struct metadata meta;  /* set by describe(), which fills the members that the tracer recorded */
	uint64_t bytes;
	uint64_t id;           /* the recording's id; 0: none */
	uint64_t lost;         /* total lost event count, as counted by the tracer */
	struct clock_scale scale;  /* conversion of the tracer's clock */
	bool in_cycles;        /* the times are cycles of the TSC at an unknown rate */
	bool has_correction;   /* the tracer measured a correction of the times to the host's clock; options->as_corrected
	                        * applies it */
	const struct recorded_guest *guest;
	size_t guests;
	char *saved_names;     /* "TID NAME" lines of threads, with or without events; NULL: none */
	size_t saved_bytes;
	void *data;            /* owned by the reader, released by forget() */
};

/* Layouts and string table that translate the events of a source (layout.h, bound_rules.h). */
struct event_mapping {
	struct string_table *names;                 /* destination of strings; each thread has its own string_cache for it */
	const struct layout *const *layout;  /* candidates; the best match is used */
	size_t layouts;
	atomic_size_t chosen;               /* index + 1 of the best layout, set by open() or decode(); 0: no layout matches,
	                                     * or nothing was decoded yet */
	atomic_uint enabled_events;                  /* HANDLERS_ and ENABLED_ bits, see trace_info; set before `chosen` */
};

struct source_stream {
	char *name;      /* name of the stream in messages */
	uint64_t bytes;  /* approximate size, weight for the distribution of work */
	/* Positions where the stream may be cut so that two threads decode it: no event was lost there, and the part after a
	 * cut decodes without the part before it. */
	struct stream_cut { uint64_t at /* in the reader's unit */, bytes /* the stream's size before the cut */; } *cut;
	size_t cuts, cuts_cap;
	size_t first_task, tasks;  /* tasks that decode this stream */
};

struct source {
	const struct trace_reader *reader;
	const struct trace_location **location;
	size_t locations, locations_cap;
	size_t machine;                 /* index into load.machine */
	bool skippable;                    /* see trace_spec */
	uint64_t bytes;
	struct event_mapping mapping;
	const struct trace_options *options;
	const struct trace_window *window;  /* window to read, ns; NULL: the whole trace */
	unsigned workers;

	struct source_stream *stream;   /* set by open(); none if decoding finds them, see event_sink_select_stream() */
	size_t streams, streams_cap;
	struct notes notes;             /* notes about skipped parts; the machine's name is added later */
	bool is_skipped;                  /* set by source_skip() */
	void *data;                     /* owned by the reader, released by close() */

	void **idle;                    /* unused results of enter(), protected by load.lock */
	size_t idles, idles_cap;
	struct metadata *trace;         /* metadata of the traces found while decoding; live sources only */
	size_t traces, traces_cap;
	char *truncation;                      /* reason why the source ended too early; NULL: it did not */
	bool user_stopped;                   /* the source ended because the user stopped it; endless sources only */
};

/* Handles a source that cannot be read, for the reason in err. Returns true if the source was skipped with a note,
 * because its machine was found together with others; false: loading must fail with this error. */
bool source_skip(struct source *s, const struct error *err);

/* A part of a stream between two cuts; for a source without known streams, the whole source. */
struct stream_part {
	size_t stream;
	uint64_t from, to;  /* [from, to) in the reader's unit; STREAM_PART_END: to the end */
};
#define STREAM_PART_END UINT64_MAX

/* ---- event sinks */

struct faults {             /* faults counted by the reader in sink->faults */
	uint64_t uncounted;     /* losses for which the tracer recorded no event count */
	uint64_t lost_packets;
	uint64_t untimed;       /* events dropped because they have no usable time */
};

struct event_sink {
	const struct event_sink_ops {
		int (*put)(struct event_sink *o, const struct event *ev);
		int (*select_stream)(struct event_sink *o, uint32_t number, uint64_t order);
		int (*add_coverage)(struct event_sink *o, uint16_t cpu, int64_t begin, int64_t end);
		int (*report_damage)(struct event_sink *o, const char *why, bool continues);
		int (*report_progress)(struct event_sink *o, uint64_t bytes);
	} *ops;
	struct faults faults;
	const struct trace_window *window;  /* events outside are dropped; NULL: no limit */
	struct error *err;
};

/* The functions return 0, or -1 with *sink->err filled; decode() must then return -1. */

/* Adds the next event in time order. A time lower than the previous one is raised to it, and counted. Losses are EV_LOST
 * events; the sink adds up their counts. */
static inline int event_sink_put(struct event_sink *o, const struct event *ev)
{
	const int64_t end = ev->kind == EV_LOST ? ev->lost.end : ev->ts;
	if (o->window && (ev->ts > o->window->to || end < o->window->from))
		return 0;
	return o->ops->put(o, ev);
}

/* Reports that the tracer recorded this CPU from begin to end (ns), with or without events. Call it for each packet or
 * page. */
static inline int event_sink_add_coverage(struct event_sink *o, uint16_t cpu, int64_t begin, int64_t end)
{
	return o->ops->add_coverage(o, cpu, begin, end);
}

/* Reports damage after the last event, with the reason; the CPU's state is unknown after it. continues: decoding continues
 * with the next packet or page; false: the rest of the stream cannot be decoded. */
static inline int event_sink_report_damage(struct event_sink *o, const char *why, bool continues)
{
	return o->ops->report_damage(o, why, continues);
}

/* Reports progress: number of bytes of the part decoded until now. Call it every few milliseconds at least, because
 * decoding can only be cancelled here. */
static inline int event_sink_report_progress(struct event_sink *o, uint64_t bytes)
{
	return o->ops->report_progress(o, bytes);
}

/* Selects the following events' stream, for a source without known streams. The stream may have been selected
 * before. Streams are numbered from 0 in order of appearance; `order` sorts them in the trace. */
static inline int event_sink_select_stream(struct event_sink *o, uint32_t number, uint64_t order)
{
	return o->ops->select_stream(o, number, order);
}

/* ---- readers */

enum claim { CLAIM_NONE, CLAIM_FILE, CLAIM_DIR /* the directory that contains the file */ };
#define CLAIM_HEAD 16  /* bytes at the start of a file that claims() gets */

struct trace_reader {
	const char *name;
	bool isolated;               /* runs in child processes, see Isolation above */
	bool opens_in_parallel;        /* open() may run for several sources in parallel */
	bool is_whole_machine;               /* each location is the whole trace of one machine: locations are never joined */
	bool has_own_events;      /* makes events without a layout */
	bool finds_streams;       /* (isolated) finds its streams while decoding, see event_sink_select_stream() */
	bool endless;             /* (isolated, finds streams) the streams have no end; on SIGTERM, decode() passes on the
	                           * events that it has and returns */
	bool uses_network;              /* (isolated) reads from the network */
	int64_t silence_limit;         /* (isolated) time without messages after which the child is killed, s */
	const char *crash_message, *silence_message;  /* (isolated) error messages for a crashed and for a silent child */
	const char *remedy;       /* advice for an unreadable location */
	const char *unit;         /* unit that is skipped at damage before decoding continues: "packet", "page" */

	enum claim (*claims)(const char *name, const unsigned char *head, size_t len);
	int (*describe)(struct trace_location *p, struct error *err);
	/* For files with several machines, may be NULL: names machine `number` (0, 1, ...) of a described location, and
	 * describes it in *machine (NULL: only the name). Returns false if the file has no such machine. */
	bool (*split)(const struct trace_location *p, size_t number, struct trace_location *machine, char *name, size_t size);
	void (*forget)(struct trace_location *p);                         /* may be NULL, like all operations below */
	/* Sets the TSC's frequency of a location with cycles of an unrecorded rate: given by the user, or found
	 * in the hypervisor's trace. */
	void (*set_tsc_rate)(struct trace_location *p, uint64_t millihertz);
	int (*open)(struct source *s, struct error *err);        /* returns 0 or -1; close() is called in any case */
	/* Reduces *p to the part of the stream that may contain events of the window. NULL: the whole stream must be
	 * decoded. */
	void (*narrow)(const struct source *s, const struct trace_window *window, struct stream_part *p);
	void *(*enter)(struct source *s, struct error *err);     /* returns NULL, with *err set, on failure */
	int (*decode)(void *state, const struct stream_part *p, struct event_sink *out);  /* returns 0 or -1 */
	void (*leave)(void *state);
	void (*add_notes)(const struct source *s, const char *machine, struct notes *notes);  /* adds notes after decoding */
	void (*close)(struct source *s);
};

/* Members of a reader that runs in child processes; message: error for a child that crashed or was silent for a minute. */
#define IN_CHILD(message) .isolated = true, .silence_limit = 60, .crash_message = (message), .silence_message = (message)

extern const struct trace_reader *const readers[];  /* ends with NULL; of several readers that claim a file, the first
                                                     * one is used */
