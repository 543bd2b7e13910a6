/* libstealscope-mark: marks that record the request on which a thread works (Soroban, 2015, Fig. 1).
 *
 *     srbn_t r = srbn_start();    a request arrives
 *     srbn_yield(r);              the thread leaves it (waits, or works on another request)
 *     srbn_resume(r);             the thread returns to it
 *     srbn_end(r);                it is answered
 *
 * A thread may have any number of requests open, and a request may move between threads. Every mark is one line of text
 * in the kernel's trace, "srbn start|yield|resume|end ID", written by one system call, or none if no tracer is active.
 * All functions are thread-safe. None of them changes errno.
 *
 * After the recording, `stealscope latency requests` reports the provider's part of each request's latency; srbn_read()
 * queries it for one request. */
#ifndef STEALSCOPE_MARK_H
#define STEALSCOPE_MARK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SRBN_API __attribute__((visibility("default")))

typedef uint64_t srbn_t;  /* id of a request, unique among the processes of a machine; 0: none */

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

struct srbn_data {
	int64_t latency_ns;
	int64_t cloud_latency_low_ns;  /* lower bound of the provider's part, measured, ns */
	int64_t cloud_latency_high_ns;  /* upper bound of the provider's part, measured, ns */
	int64_t cloud_latency_ns;  /* predicted part of the provider, ns; -1: no model */
	char culprit[128];              /* actor that had the CPU longest while the request waited; may be empty */
};

/* Queries one request of a finished history by running the program `stealscope` in PATH, or the one in the environment
 * variable STEALSCOPE. `history` and `model` (or NULL) are files. Returns 0, or -1 with errno: ENOENT: no such request;
 * ECHILD: the program failed; otherwise the reason why it could not run. */
SRBN_API int srbn_read(const char *history, const char *model, srbn_t request, struct srbn_data *data);

#ifdef __cplusplus
}
#endif

#endif
