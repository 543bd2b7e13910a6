/* Sources that child processes read: files of trace-cmd, sessions of a relay daemon.
 *
 * What reads them trusts its input: damage makes it crash, loop or ask for all the memory there is.  So each source is
 * read by a child, which sends what it decodes through a pipe; the parent checks it and writes it into the same streams of
 * records that CTF traces in folders become.  A child may take so much memory, and so long for its next word, and no
 * more.  When it dies, what it sent is kept.
 *
 * Costs: 0.1 us per event in the parent, all included. */
#ifndef STEALSCOPE_TRACE_TOLD_H
#define STEALSCOPE_TRACE_TOLD_H

#include "trace/decoder.h"
#include "trace/internal.h"

/* ---- what a child says: a head, then its bytes */

enum tell {
	TELL_LAYOUT,   /* uint32_t: index of the layout that fits best, + 1, or 0 */
	TELL_TRACE,    /* struct metadata: a trace that is part of the source */
	TELL_SESSION,  /* struct tell_session: one of a relay daemon */
	TELL_STREAM,   /* struct tell_stream: what follows is of this stream; again, for one that was left */
	TELL_NAME,     /* text: the next string id, counted from 1 */
	TELL_EVENTS,   /* struct event[]; names are string ids of the child */
	TELL_COUNTS,   /* struct tell_counts: of the stream */
	TELL_AT,       /* uint64_t: bytes read so far; of a source without an end, only a sign of life */
	TELL_BROKEN,   /* text: the stream ends too early, and why */
	TELL_CUT,      /* text: the whole source does */
	TELL_REFUSE,   /* struct tell_refusal: why the source cannot be read */
	TELL_END,      /* nothing follows */
	TELLS
};

struct tell_head { uint32_t tell, len; };
struct tell_stream {
	uint32_t number;       /* counted from 0 */
	uint32_t buffer, cpu;  /* cpu: until an event says another */
	uint64_t order;        /* streams of a trace stand in the order of this */
};
struct tell_session { char host[65], name[256]; uint64_t timer_us, streams, viewers; };
struct tell_counts { uint64_t uncounted, lost_packets, untimed; };
struct tell_refusal { char why[512], mend[256]; };

#define TELL_LONGEST 65536  /* bytes after a head */
#define TELL_BATCH (TELL_LONGEST / sizeof(struct event))

/* The child's mouth. */
struct teller {
	int fd;
	struct names names;
	size_t told;  /* names that the parent knows */
};

void tell(const struct teller *t, enum tell what, const void *data, size_t len);
void tell_text(const struct teller *t, enum tell what, const char *text);
void tell_refuse(const struct teller *t, const char *mend, const char *why);
/* Names first: events mean nothing without them. */
void tell_events(struct teller *t, const struct event *ev, size_t n);

/* ---- the parent */

struct told;

/* A way to read sources. */
struct told_kind {
	/* Runs in the child; tells streams from number `first` on, and all else.  Returns when it has. */
	void (*child)(const struct told *t, uint32_t first, struct teller *teller);
	int64_t patience;   /* s without a word after which the child is given up */
	bool resumes;       /* streams come one after another: when the child dies, another one goes on with the next */
	bool endless;       /* may be asked to stop (SIGTERM): it tells what it has, and ends */
	const char *died, *silent, *mend;  /* for messages */
};

struct told_stream {
	struct decoded decoded;
	unsigned buffer, cpu;
	uint64_t order;
	struct writer writer;
	bool open;
};

struct told {
	const struct told_kind *kind;
	const char *name;            /* of the source: a path or a URL */
	const void *source;          /* for the child */
	uint64_t bytes;              /* of the source, if it has an end */
	size_t most;                 /* streams that it may have */
	struct ctf ctf;              /* names, candidate layouts, the chosen one */
	struct told_stream **stream; /* results: by number; NULL: not told of */
	size_t streams;
	struct metadata *trace;
	size_t traces, traces_cap;
	struct tell_session *session;
	size_t sessions, sessions_cap;
	char *cut;                   /* why it ended too early, or NULL */
	bool stopped;                /* because it was asked to */
};

struct told_work {
	struct store *store;
	_Atomic uint64_t *bytes;  /* counts on by the sources' bytes, or by the events of those without an end */
	size_t most;              /* children at a time */
	/* Every few milliseconds; may be NULL.  True: give up; of sources without an end, once: stop and keep what is there. */
	bool (*tick)(void *arg);
	void *arg;
};

/* Reads all sources.  To be called while no other thread runs: it forks. */
int told_read(struct told *const *source, size_t n, const struct told_work *work, struct error *err);
void told_release(struct told *t, struct store *store);

#endif
