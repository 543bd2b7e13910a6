/* The marks: formatting, the choice of a tracer's file, and how to be cheap without one.
 *
 * Order of choice: /proc/lttng-logger (LTTng's kernel module), then tracefs's trace_marker; LTTng-UST, when built in,
 * is used when neither can be written.  The file is opened by the first mark and stays open.  While nobody listens (no
 * file, or the kernel refuses the write because tracing is off) a mark is one load; srbn_start() alone looks at the
 * coarse clock too and searches again once a second.
 *
 * Thread safe, and without a lock once the file is open: `file` goes from -1 to a descriptor under `opening` and stays,
 * `quiet_until` is a hint, ids come from one atomic counter.  Ids are process id << 32 | count, so that processes of
 * one machine do not collide; after fork() the child counts for itself. */
#include "beacon/stealscope-mark.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef HAVE_LTTNG_UST
#include <lttng/tracef.h>
#endif

#define SECOND 1000000000LL

static const char *const marker_files[] = {
	"/proc/lttng-logger",
	"/sys/kernel/tracing/trace_marker",
	"/sys/kernel/debug/tracing/trace_marker",
};

/* A library has no main() to own its state: this is all of it. */
static struct {
	_Atomic int file;             /* -1: not opened yet */
	_Atomic int64_t quiet_until;  /* ns of the coarse clock: no attempt before; 0: listening */
	pthread_mutex_t opening;
	_Atomic uint32_t pid;         /* 0: not known yet, or forked */
	_Atomic uint32_t count;
	_Atomic(const char *) path;   /* set by srbn_set_marker(), or NULL */
	pthread_once_t once;
} mark = { .file = -1, .opening = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT };

static void be_quiet(void)
{
	atomic_store_explicit(&mark.quiet_until, clock_ns(CLOCK_MONOTONIC_COARSE) + SECOND, memory_order_relaxed);
}

/* In the child of a fork.  The lock may have been held by a thread that the child does not have. */
static void forget_parent(void)
{
	atomic_store(&mark.pid, 0);
	atomic_store(&mark.count, 0);
	pthread_mutex_init(&mark.opening, NULL);
}

static void prepare_fork(void)
{
	pthread_atfork(NULL, NULL, forget_parent);
}

/* ---- The file ----------------------------------------------------------------------------------------------- */

static int open_marker(void)
{
	const char *path = atomic_load(&mark.path);
	if (!path)
		path = secure_getenv("STEALSCOPE_MARKER");
	/* Appending matters for the plain files of tests only; tracers' files do not care. */
	const int flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY;
	if (path && *path)
		return open(path, flags);
	for (size_t i = 0; i < sizeof marker_files / sizeof *marker_files; i++) {
		int fd = open(marker_files[i], flags);
		if (fd >= 0)
			return fd;
	}
	return -1;
}

/* The file to write to, or -1 for now. */
static int find_file(void)
{
	int fd = atomic_load_explicit(&mark.file, memory_order_acquire);
	if (fd >= 0)
		return fd;
	pthread_mutex_lock(&mark.opening);
	fd = atomic_load(&mark.file);
	if (fd < 0) {
		fd = open_marker();
		if (fd >= 0)
			atomic_store_explicit(&mark.file, fd, memory_order_release);
	}
	pthread_mutex_unlock(&mark.opening);
	return fd;
}

/* May this mark try to write?  Only a start ends a quiet time: marks of a request that began unheard say nothing. */
static bool may_write(bool start)
{
	int64_t until = atomic_load_explicit(&mark.quiet_until, memory_order_relaxed);
	if (until == 0)
		return true;
	if (!start || clock_ns(CLOCK_MONOTONIC_COARSE) < until)
		return false;
	atomic_store_explicit(&mark.quiet_until, 0, memory_order_relaxed);
	return true;
}

/* ---- The text ----------------------------------------------------------------------------------------------- */

/* Writes "srbn WORD ID\n" into buf; returns its length.  Not printf: a mark lies in the way of a request. */
static size_t compose(char buf[64], const char *word, size_t length, srbn_t id)
{
	char digits[20];
	size_t n = 0, at = 5;
	do {
		digits[n++] = (char)('0' + id % 10);
		id /= 10;
	} while (id);
	memcpy(buf, "srbn ", 5);
	memcpy(buf + at, word, length);
	at += length;
	buf[at++] = ' ';
	while (n)
		buf[at++] = digits[--n];
	buf[at++] = '\n';
	return at;
}

/* Into the kernel's trace; false when nobody listens there. */
static bool put_kernel(const char *word, size_t length, srbn_t id)
{
	if (!may_write(word[2] == 'a'))
		return false;
	char buf[64];
	size_t n = compose(buf, word, length, id);
	int fd = find_file();
	if (fd >= 0 && write(fd, buf, n) == (ssize_t)n)
		return true;
	be_quiet();
	return false;
}

static void put(const char *word, size_t length, srbn_t id)
{
	if (!id)
		return;
	int saved = errno;
	if (!put_kernel(word, length, id)) {
#ifdef HAVE_LTTNG_UST
		/* A load and a branch when no session has it enabled. */
		lttng_ust_tracef("srbn %s %llu", word, (unsigned long long)id);
#endif
	}
	errno = saved;
}

/* ---- Interface ---------------------------------------------------------------------------------------------- */

static srbn_t next_id(void)
{
	uint32_t pid = atomic_load_explicit(&mark.pid, memory_order_relaxed);
	if (!pid) {
		pthread_once(&mark.once, prepare_fork);
		pid = (uint32_t)getpid();
		atomic_store(&mark.pid, pid);
	}
	uint32_t count = atomic_fetch_add_explicit(&mark.count, 1, memory_order_relaxed) + 1;
	return (uint64_t)pid << 32 | count;
}

srbn_t srbn_start(void)
{
	srbn_t id = next_id();
	put("start", 5, id);
	return id;
}

void srbn_yield(srbn_t request)
{
	put("yield", 5, request);
}

void srbn_resume(srbn_t request)
{
	put("resume", 6, request);
}

void srbn_end(srbn_t request)
{
	put("end", 3, request);
}

int srbn_listening(void)
{
	return atomic_load(&mark.file) >= 0 && atomic_load(&mark.quiet_until) == 0;
}

void srbn_set_marker(const char *path)
{
	int fd = atomic_exchange(&mark.file, -1);
	if (fd >= 0)
		close(fd);
	atomic_store(&mark.path, path);
	atomic_store(&mark.quiet_until, 0);
}
