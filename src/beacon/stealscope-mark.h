/* libstealscope-mark: marks that record the request on which a thread works (Soroban, 2015, Fig. 1).
 *
 *     srbn_t r = srbn_start();    a request arrives
 *     srbn_yield(r);              the thread leaves it (waits, or works on another request)
 *     srbn_resume(r);             the thread returns to it
 *     srbn_end(r);                it is answered
 *     srbn_read(r, &data);        how much of its latency the provider caused
 *
 * A thread may have any number of requests open, and a request may move between threads. Every mark is one line of text
 * in the kernel's trace, "srbn start|yield|resume|end ID", written by one system call, or none if no tracer is active.
 * All functions are thread-safe; calls for the same request must not overlap. Marks never change errno.
 *
 * srbn_read() answers in the running service, from the scheduler's counters. After a recording, `stealscope latency
 * requests` reports the same for each request, and the culprits; srbn_read_history() queries it for one request. */
#ifndef STEALSCOPE_MARK_H
#define STEALSCOPE_MARK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SRBN_API __attribute__((visibility("default")))

typedef uint64_t srbn_t;  /* a request's id, unique among a machine's processes; 0: none */

SRBN_API srbn_t srbn_start(void);
SRBN_API void srbn_yield(srbn_t request);
SRBN_API void srbn_resume(srbn_t request);
SRBN_API void srbn_end(srbn_t request);

/* Returns 1 if the last attempt to write a mark found a file of a tracer, otherwise 0. */
SRBN_API int srbn_listening(void);

/* Sets the file for marks instead of /proc/lttng-logger or trace_marker: for tests, and for a tracefs at another mount
 * point. NULL restores the default. The text is not copied. Do not call while other threads write marks. The environment
 * variable STEALSCOPE_MARKER does the same from the start; a privileged (set-user-ID) program ignores it. */
SRBN_API void srbn_set_marker(const char *path);

/* ---- In the running service ---------------------------------------------------------------------------------- */

/* The counters' sources, the best one first. */
enum srbn_source {
	SRBN_SOURCE_NONE,
	SRBN_SOURCE_HOST,       /* published by `stealscope monitor` on the machine: a host, or a container's host */
	SRBN_SOURCE_GUEST,      /* published by `stealscope monitor` in a VM, with its steal clock */
	SRBN_SOURCE_SHARED,     /* published by the host of this VM through a shared memory device */
	SRBN_SOURCE_SCHEDSTAT   /* /proc/thread-self/schedstat: one system call for each mark */
};

/* An answer's limits. */
#define SRBN_OPEN 1u               /* the request has not ended: all times up to now */
#define SRBN_HOST_UNSEEN 2u        /* this machine is a VM, and the source does not show the time that its host took */
#define SRBN_WAITS_MIXED 4u        /* waits for own threads are not distinguished: they are in stolen_high_ns */
#define SRBN_PARTIAL 8u            /* the source lacks a part of the request: unknown_ns, in stolen_high_ns */
#define SRBN_MODEL_LACKS_INPUT 16u /* no prediction: the source does not show an input of the model */
#define SRBN_MODEL_OUTSIDE 32u     /* the prediction is unreliable: an input is outside the trained range */

struct srbn_data {
	int64_t latency_ns;        /* end - start */
	int64_t executing_ns;      /* between start or resume, and yield or end */
	int64_t stolen_low_ns;     /* provider's part, measured: at least */
	int64_t stolen_high_ns;    /* provider's part, measured: at most */
	int64_t throttled_ns;      /* part of stolen_high_ns because of a CPU quota; -1: unknown */
	int64_t wait_ns;           /* runqueue wait: runnable while own threads had the CPU; -1: unknown */
	int64_t blocked_ns;        /* the server thread slept; -1: unknown */
	int64_t unknown_ns;        /* no counters; part of stolen_high_ns */
	int64_t predicted_ns;      /* provider's part by the model; -1: no prediction */
	int64_t predicted_low_ns, predicted_high_ns;  /* interval of 95 %; -1: no prediction */
	int64_t resolution_ns;     /* counters may lag behind by this; stolen_high_ns allows for it */
	uint32_t source;           /* enum srbn_source */
	uint32_t flags;            /* SRBN_OPEN ... */
	char culprit[128];         /* main culprit of recent steals, if the source publishes it (SRBN_SOURCE_SHARED); or "" */
};

/* Turns the counters on. path: socket or shared memory of a publisher; NULL: STEALSCOPE_LIVE in the environment, or the
 * default places. Waits for the publisher to accept the calling thread, at most 1 s. Optional: threads are registered at
 * their first mark after that, and srbn_read() turns the counters on, too. Returns the source for the calling thread (enum
 * srbn_source). The text is not copied. */
SRBN_API int srbn_live(const char *path);

/* Reads a request's counters, which may be open or have ended. Returns 0, or -1 with errno: EAGAIN: the counters were
 * off when the request started, and are on now; ENOENT: no such request in this process, or 8192 others were started
 * later. *data is valid only if it returns 0. */
SRBN_API int srbn_read(srbn_t request, struct srbn_data *data);

/* Loads a model of `stealscope latency train`; NULL unloads it. Do not call while other threads call srbn_read(). Returns
 * 0, or -1 with errno: EINVAL: not a model; ENOTSUP: a model of an earlier version, train it again; EDOM: it has inputs
 * that are not measured for requests; otherwise the reason why the file cannot be read. The previous model then stays. */
SRBN_API int srbn_model(const char *path);

/* ---- After a recording ---------------------------------------------------------------------------------------- */

struct srbn_history_data {
	int64_t latency_ns;
	int64_t cloud_latency_low_ns;   /* lower bound of the provider's part, measured, ns */
	int64_t cloud_latency_high_ns;  /* upper bound of the provider's part, measured, ns */
	int64_t cloud_latency_ns;       /* predicted part of the provider, ns; -1: no model */
	char culprit[128];              /* actor that had the CPU longest while the request waited; may be empty */
};

/* Queries one request of a finished history by running the program `stealscope` in PATH, or the one in the environment
 * variable STEALSCOPE. `history` and `model` (or NULL) are files. Returns 0, or -1 with errno: ENOENT: no such request;
 * ECHILD: the program failed; otherwise the reason why it could not run. */
SRBN_API int srbn_read_history(const char *history, const char *model, srbn_t request, struct srbn_history_data *data);

#ifdef __cplusplus
}
#endif

#endif
