/* Children: processes in which the readers run that trust their input.
 *
 * Damage makes them crash, loop or ask for all the memory there is.  So a child sends what it decodes through a pipe; the
 * parent checks it and writes it into the same records that come of other readers.  A child may take so much memory, and so
 * long for its next word, and no more.  When it dies, what it sent is kept, and another one goes on with the next stream.
 *
 * Costs: 0.1 us per event in the parent, all included. */
#ifndef STEALSCOPE_TRACE_ISOLATION_DECODER_PROCESS_H
#define STEALSCOPE_TRACE_ISOLATION_DECODER_PROCESS_H

#include "trace/reader.h"
#include "trace/decode_output.h"

/* ---- what a child says: a head, then its bytes */

enum tell {
	TELL_LAYOUT,   /* struct tell_layout: the one that fits best, and what it says of the trace */
	TELL_TRACE,    /* struct metadata: a trace that is part of the source */
	TELL_SESSION,  /* struct tell_session: one of a relay daemon */
	TELL_STRETCH,  /* uint32_t: what follows is of this task: they come in order */
	TELL_STREAM,   /* struct tell_stream: what follows is of this stream; again, for one that was left */
	TELL_NAME,     /* text: the next string id, counted from 1 */
	TELL_EVENTS,   /* struct event[]; names are string ids of the child */
	TELL_COVERS,   /* struct tell_coverage */
	TELL_FAULTS,   /* struct faults: of the task, so far */
	TELL_DAMAGED,  /* text: why the stream cannot be decoded further */
	TELL_SKIPPED,  /* text: why it could not, up to where the next events are of */
	TELL_AT,       /* uint64_t: bytes of the task read so far; of a source without an end, only a sign of life */
	TELL_CUT,      /* text: why the whole source ends too early */
	TELL_REFUSE,   /* struct tell_refusal: why it cannot be read at all */
	TELL_END,      /* nothing follows */
	TELL_WHOLE,    /* the stream of this task cannot be read in parts: DECODE_WHOLE */
	TELLS
};

struct tell_head { uint32_t tell, len; };
struct tell_layout { uint32_t chosen, asked; };  /* as struct meaning has them */
struct tell_stream { uint32_t number, unused; uint64_t order; };
struct tell_coverage { uint64_t cpu; int64_t begin, end; };
struct tell_session { char host[65], name[256]; uint64_t timer_us, streams, viewers; };
struct tell_refusal { uint32_t status; char text[1024], mend[256]; };

#define TELL_LONGEST 65536  /* bytes after a head */
#define TELL_BATCH (TELL_LONGEST / sizeof(struct event))
#define TELL_STREAMS 4096   /* of one source, at most */

/* ---- the child */

struct told;

/* Reads the tasks from number `first` on, and tells through fd what comes of them. */
void tell_all(const struct told *t, size_t first, int fd);

/* Beside what an outlet takes; o is the one that decode() got. */
void tell_trace(struct outlet *o, const struct metadata *m);
void tell_session(struct outlet *o, const struct tell_session *s);
void tell_cut(struct outlet *o, const char *why);

/* All of it, or the process ends: nobody listens any more. */
void tell_bytes(int fd, const void *data, size_t len);

/* A library failed, and errno is why: the system could not read (EIO, no more files), which is no damage.  (No memory is:
 * damaged sizes ask for all there is.) */
bool tell_is_io(int why);

/* ---- the parent */

/* What one child at a time reads: tasks of one source. */
struct told {
	struct source *source;
	struct task **task;
	size_t tasks, tasks_cap;
	uint64_t bytes;               /* of the tasks */
	struct tell_session *session;
	size_t sessions, sessions_cap;
};

struct told_work {
	struct store *store;
	_Atomic uint64_t *bytes;  /* counts on by the sources' bytes, or by the events of those without an end */
	size_t most;              /* children at a time */
	/* Every few milliseconds; may be NULL.  True: give up; of sources without an end, once: stop and keep what is there. */
	bool (*tick)(void *arg);
	void *arg;
};

/* Reads all.  To be called while no other thread runs: it forks. */
int told_read(struct told *const *told, size_t n, const struct told_work *work, struct error *err);
void told_release(struct told *t);  /* not its tasks */

#endif
