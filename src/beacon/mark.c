/* Request marks: formatting, choice of the tracer's file, and low cost without a tracer.
 *
 * Files in order of preference: /proc/lttng-logger (LTTng's kernel module), then trace_marker in tracefs; LTTng-UST, if
 * built in, is used when neither can be written. The first mark opens the file, and it stays open. Without a tracer (no
 * file, or the kernel refuses the write because tracing is off) a mark is one load; only srbn_start() also reads the
 * coarse clock, and retries once a second. srbn_live() and srbn_read() add a read of the counters to each mark
 * (live_request.c).
 *
 * Thread-safe, and lock-free once the file is open: `file` changes once from -1 to a descriptor under `open_lock`,
 * `no_attempt_before` is a hint, ids come from one atomic counter. Ids are process id << 32 | count, so processes of one
 * machine do not collide; after fork() the child starts its own count. */
#include "beacon/stealscope-mark.h"
#include "base/clock.h"
#include "beacon/live_counters.h"
#include "base/number.h"

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


static const char *const marker_files[] = {
	"/proc/lttng-logger",
	"/sys/kernel/tracing/trace_marker",
	"/sys/kernel/debug/tracing/trace_marker",
};

/* All state of the library. */
static struct {
	_Atomic int file;        /* descriptor; -1: not opened yet */
	_Atomic int64_t no_attempt_before;  /* time on the coarse clock before which no write is tried, ns; 0: a tracer is
	                                     * active */
	pthread_mutex_t open_lock;
	_Atomic uint32_t pid;    /* process id; 0: unknown, or after fork() */
	_Atomic uint32_t count;
	_Atomic(const char *) path;   /* path set by srbn_set_marker(); NULL: default */
	pthread_once_t once;
} mark = { .file = -1, .open_lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT };

static void pause_attempts(void)
{
	atomic_store_explicit(&mark.no_attempt_before, clock_ns(CLOCK_MONOTONIC_COARSE) + NS_PER_S, memory_order_relaxed);
}

/* Resets the state in the child after fork(). A thread of the parent may have held the lock. */
static void forget_parent(void)
{
	atomic_store(&mark.pid, 0);
	atomic_store(&mark.count, 0);
	pthread_mutex_init(&mark.open_lock, NULL);
	live_forget_parent();
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
	/* O_APPEND matters only for plain files in tests; tracers' files ignore it. */
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

/* Returns the file's descriptor, open_lock it if needed; -1: no file can be opened now. */
static int get_marker_file(void)
{
	int fd = atomic_load_explicit(&mark.file, memory_order_acquire);
	if (fd >= 0)
		return fd;
	pthread_mutex_lock(&mark.open_lock);
	fd = atomic_load(&mark.file);
	if (fd < 0) {
		fd = open_marker();
		if (fd >= 0)
			atomic_store_explicit(&mark.file, fd, memory_order_release);
	}
	pthread_mutex_unlock(&mark.open_lock);
	return fd;
}

/* Returns true if this mark should try to write. After a failure only a start tries again: later marks of an unrecorded
 * request are useless. */
static bool may_write(bool start)
{
	int64_t until = atomic_load_explicit(&mark.no_attempt_before, memory_order_relaxed);
	if (until == 0)
		return true;
	if (!start || clock_ns(CLOCK_MONOTONIC_COARSE) < until)
		return false;
	atomic_store_explicit(&mark.no_attempt_before, 0, memory_order_relaxed);
	return true;
}

/* ---- The text ----------------------------------------------------------------------------------------------- */

/* Writes "srbn WORD ID" and a line feed into buf; returns its length. No printf: a mark adds to the request's latency. */
static size_t format_mark(char buf[64], const char *word, size_t length, srbn_t id)
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

/* Writes a mark into the kernel's trace. Returns false if no tracer is active. */
static bool write_kernel_mark(const char *word, size_t length, srbn_t id)
{
	if (!may_write(word[2] == 'a'))
		return false;
	char buf[64];
	size_t n = format_mark(buf, word, length, id);
	int fd = get_marker_file();
	if (fd >= 0 && write(fd, buf, n) == (ssize_t)n)
		return true;
	pause_attempts();
	return false;
}

static void write_mark(const char *word, size_t length, srbn_t id)
{
	if (!id)
		return;
	int saved = errno;
	if (!write_kernel_mark(word, length, id)) {
#ifdef HAVE_LTTNG_UST
		/* Costs a load and a branch if no session has enabled it. */
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

/* The counters come first: a thread is often scheduled out at the end of the system call that writes the text. */
static void mark_request(srbn_t request, enum live_mark live, const char *word, size_t length)
{
	if (request && live_is_on())
		live_request_mark(request, live);
	write_mark(word, length, request);
}

srbn_t srbn_start(void)
{
	srbn_t id = next_id();
	mark_request(id, LIVE_START, "start", 5);
	return id;
}

void srbn_yield(srbn_t request)
{
	mark_request(request, LIVE_YIELD, "yield", 5);
}

void srbn_resume(srbn_t request)
{
	mark_request(request, LIVE_RESUME, "resume", 6);
}

void srbn_end(srbn_t request)
{
	mark_request(request, LIVE_END, "end", 3);
}

int srbn_listening(void)
{
	return atomic_load(&mark.file) >= 0 && atomic_load(&mark.no_attempt_before) == 0;
}

void srbn_set_marker(const char *path)
{
	int fd = atomic_exchange(&mark.file, -1);
	if (fd >= 0)
		close(fd);
	atomic_store(&mark.path, path);
	atomic_store(&mark.no_attempt_before, 0);
}
