/* libstealscope-mark: tell the tracer which request your thread works on (Soroban, 2015, Fig. 1).
 *
 *     srbn_t r = srbn_start();    a request arrives
 *     srbn_yield(r);              the thread leaves it for a while (waits, serves another one)
 *     srbn_resume(r);             the thread comes back to it
 *     srbn_end(r);                it is answered
 *
 * A thread may have any number of requests open, and a request may go from thread to thread.  Every mark is one line
 * of text in the kernel's trace, "srbn start|yield|resume|end ID", written by one system call, or none when no tracer
 * is there to listen.  All functions may be called from any thread.  None of them changes errno.
 *
 * Afterwards, `stealscope latency requests` tells for each request how much of its latency the provider of the
 * machine took; srbn_read() asks it that for one request. */
#ifndef STEALSCOPE_MARK_H
#define STEALSCOPE_MARK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SRBN_API __attribute__((visibility("default")))

typedef uint64_t srbn_t;  /* a request, unique among the processes of a machine; 0 is none */

SRBN_API srbn_t srbn_start(void);
SRBN_API void srbn_yield(srbn_t request);
SRBN_API void srbn_resume(srbn_t request);
SRBN_API void srbn_end(srbn_t request);

/* 1 when the last attempt to write a mark found a tracer's file to write to, else 0. */
SRBN_API int srbn_listening(void);

/* Where marks go instead of /proc/lttng-logger or trace_marker: for tests, and for a tracefs mounted elsewhere.
 * NULL goes back to the default.  The text is not copied.  Not for use while other threads mark.  The environment
 * variable STEALSCOPE_MARKER does the same from the start; a privileged (set-user-ID) program ignores it. */
SRBN_API void srbn_set_marker(const char *path);

struct srbn_data {
	int64_t latency_ns;
	int64_t cloud_latency_low_ns;   /* measured: at least this much is due to the provider */
	int64_t cloud_latency_high_ns;  /* measured: at most this much */
	int64_t cloud_latency_ns;       /* predicted, or -1 without a model */
	char culprit[128];              /* who had the CPU longest meanwhile; may be empty */
};

/* After the fact: what a history says about one request.  `history` and `model` (or NULL) are files; runs the program
 * `stealscope` (or the one that the environment variable STEALSCOPE names), found in PATH.  0, or -1 with errno:
 * ENOENT no such request, ECHILD the program failed, or what kept it from being run. */
SRBN_API int srbn_read(const char *history, const char *model, srbn_t request, struct srbn_data *data);

#ifdef __cplusplus
}
#endif

#endif
