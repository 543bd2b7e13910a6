/* trace-cmd files decoded through libtracecmd, in child processes.
 *
 * libtracecmd and libtraceevent trust their input: damage makes them crash, loop or ask for all the memory there is.  So
 * each file is read by a child, which sends what it decodes through a pipe; the parent checks it and writes it into
 * the same streams of records that CTF traces become.  When a child dies, what it sent is kept, and another child
 * goes on with the next CPU.  A child may take so much memory, and so long for its next word, and no more.
 *
 * Costs: 0.16 us per event (one CPU's 1.8 million events; parent and child run at the same time on two cores). */
#ifndef STEALSCOPE_TRACE_TRACECMD_H
#define STEALSCOPE_TRACE_TRACECMD_H

#include "trace/dat.h"
#include "trace/decoder.h"

/* ---- what the child says: a head, then its bytes */

enum tell {
	TELL_LAYOUT,  /* uint32_t: index of the layout that fits best, + 1, or 0 */
	TELL_STREAM,  /* struct tell_stream: the events that follow are of this stream */
	TELL_NAME,    /* text: the next string id, counted from 1 */
	TELL_EVENTS,  /* struct event[]; names are string ids of the child */
	TELL_AT,      /* uint64_t: bytes of pages read */
	TELL_BROKEN,  /* text: the stream ends too early, and why */
	TELL_REFUSE,  /* text: why the file cannot be read */
	TELL_END,     /* nothing follows */
	TELLS
};

struct tell_head { uint32_t tell, len; };
struct tell_stream { uint32_t number, buffer, cpu; };

#define TELL_LONGEST 65536  /* bytes after a head */

/* Runs in the child: decodes streams from number `first` on.  Returns when all was said or fd is closed. */
void tracecmd_child(const struct dat *d, const struct layout *const *layout, size_t layouts, uint32_t first, int fd);

/* ---- the parent */

struct tracecmd_stream {
	struct decoded decoded;
	unsigned buffer, cpu;
};

struct tracecmd_file {
	const struct dat *dat;
	struct ctf ctf;                  /* names, candidate layouts, the chosen one */
	struct tracecmd_stream *stream;  /* results; the caller's to release, with decoded_release() */
	size_t streams, cap;
};

struct tracecmd_work {
	struct store *store;
	_Atomic uint64_t *bytes;        /* counts on by the files' sizes */
	unsigned workers;               /* children at a time */
	bool (*tick)(void *arg);        /* every few milliseconds; true: give up */
	void *arg;
};

bool tracecmd_is_built(void);

/* Decodes all files.  To be called while no other thread runs: it forks. */
int tracecmd_decode(struct tracecmd_file *file, size_t n, const struct tracecmd_work *work, struct error *err);

#endif
