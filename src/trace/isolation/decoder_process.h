/* Runs readers that trust their input in child processes.
 *
 * Damaged input makes such readers crash, loop or allocate without limit. So a child process decodes, and sends the
 * events through a pipe. The parent checks them and writes the same records as for other readers. Memory and the time
 * between two messages are limited. If a child dies, the events that it sent are kept, and another child continues with
 * the next stream.
 *
 * Cost: 0.1 us per event in the parent. */
#pragma once

#include "trace/reader.h"
#include "trace/decode_output.h"

/* ---- messages of a child: a header, followed by header.len bytes */

enum ipc_message {
	IPC_LAYOUT,        /* struct ipc_layout: the layout that matches best, and the enabled events */
	IPC_TRACE,         /* struct metadata: a trace of the source */
	IPC_SESSION,       /* struct ipc_session: a session of a relay daemon */
	IPC_TASK,          /* uint32_t: the following messages' task; tasks are in ascending order */
	IPC_STREAM,        /* struct ipc_stream: the following messages' stream, new or known */
	IPC_NAME,          /* text of the next string id; ids start at 1 */
	IPC_EVENTS,        /* struct event[]; names are string ids of the child */
	IPC_COVERAGE,      /* struct ipc_coverage: recorded interval of a CPU */
	IPC_FAULTS,        /* struct faults: number of faults of the task until now */
	IPC_DAMAGED,       /* text: reason why the rest of the stream cannot be decoded */
	IPC_SKIPPED,       /* text: reason why the part before the next events cannot be decoded */
	IPC_PROGRESS,      /* uint64_t: number of bytes of the task that were read; endless sources: 0, shows only that the
	                    * child works */
	IPC_TRUNCATED,     /* text: reason why the whole source ends too early */
	IPC_ERROR,         /* struct ipc_error: reason why the source cannot be read at all */
	IPC_END,           /* no message follows */
	IPC_MESSAGES
};

struct ipc_header { uint32_t type, len; };
struct ipc_layout { uint32_t chosen, enabled_events; };  /* as in struct event_mapping */
struct ipc_stream { uint32_t number, unused; uint64_t order; };
struct ipc_coverage { uint64_t cpu; int64_t begin, end; };
struct ipc_session { char host[65], name[256]; uint64_t timer_us, streams, viewers; };
struct ipc_error { uint32_t status; char text[1024], remedy[256]; };

#define IPC_MAX_LEN 65536  /* maximum byte count after a header */
#define IPC_MAX_EVENTS (IPC_MAX_LEN / sizeof(struct event))
#define IPC_MAX_STREAMS 4096  /* most streams of one source */

/* ---- the child */

struct decoder_job;

/* Decodes the tasks starting with job->task[first] and sends the results through fd. Runs in the child. */
void decoder_child_run(const struct decoder_job *job, size_t first, int fd);

/* Send results for which an event sink has no operation. o: the sink that was passed to decode(). */
void ipc_send_trace(struct event_sink *o, const struct metadata *m);
void ipc_send_session(struct event_sink *o, const struct ipc_session *s);
void ipc_send_truncated(struct event_sink *o, const char *reason);

/* Writes all bytes; exits if that fails, because the parent has ended. */
void ipc_send_bytes(int fd, const void *data, size_t len);

/* Returns true if the errno value `number`, set by a library, means that the system could not read (EIO, too many open
 * files). This is no damage. ENOMEM is damage, because a damaged size can request any amount of memory. */
bool errno_is_read_failure(int number);

/* ---- the parent */

/* Tasks of one source, decoded by one child after the other. */
struct decoder_job {
	struct source *source;
	struct task **task;
	size_t tasks, tasks_cap;
	uint64_t bytes;  /* the tasks' total size */
	struct ipc_session *session;
	size_t sessions, sessions_cap;
};

struct decoder_run {
	struct store *store;
	_Atomic uint64_t *bytes;  /* progress counter: number of bytes of the sources, or of events of endless ones */
	size_t max_children;      /* number of children that may run at the same time */
	/* Called every few ms; may be NULL. Returns true to cancel; for endless sources, the first true stops them and keeps
	 * the data read until then. */
	bool (*tick)(void *arg);
	void *arg;
};

/* Decodes all jobs. Forks: no other thread may run. Returns 0 or -1. */
int decoder_jobs_run(struct decoder_job *const *job, size_t n, const struct decoder_run *run, struct error *err);
void decoder_job_release(struct decoder_job *job);  /* frees the lists, not the tasks */
