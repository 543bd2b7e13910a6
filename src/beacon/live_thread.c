/* Counters of the threads that mark requests, from the best source: a publisher's page, or schedstat.
 *
 * A thread that ends gives its place to another one. A read of the page is a copy between two equal sequence numbers; the
 * entry of a running thread changes only when the thread is scheduled out and in. */
#include "beacon/live_counters.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"

#if defined __x86_64__ || defined __i386__
#include <cpuid.h>
#endif

#define THREADS 16384
#define KEPT_FILES 256     /* threads of which schedstat stays open: each is a file of the service */
#define COUNTER_MAX (INT64_MAX / 16)  /* greater counters are not the kernel's; the sum of all fits into 64 bits */
#define TRIES 64           /* attempts to read an entry that changes */
#define WAIT_MS 1000       /* maximum time for which srbn_live() waits */

struct mark_thread {
	_Atomic uint32_t tid;      /* 0: free */
	_Atomic uint64_t generation;
	_Atomic uint32_t entry;    /* in the page; 0: none */
	_Atomic int schedstat;     /* descriptor; -1: not open */
	int64_t retry, sent;       /* see live_page_register() */
};

static struct {
	struct mark_thread thread[THREADS];
	_Atomic uint64_t generation;
	_Atomic size_t used;       /* places in use have lower indices */
	pthread_once_t once;
	pthread_key_t key;         /* its destructor runs when a thread ends */
	bool has_key;
	uint32_t host_flag;        /* SRBN_HOST_UNSEEN in a VM */
} live = { .once = PTHREAD_ONCE_INIT };

static __thread struct mark_thread *self __attribute__((tls_model("initial-exec")));

/* ---- Threads ------------------------------------------------------------------------------------------------ */

static bool is_virtual_machine(void)
{
#if defined __x86_64__ || defined __i386__
	unsigned a, b, c, d;
	return __get_cpuid(1, &a, &b, &c, &d) && (c >> 31 & 1);
#else
	return access("/proc/device-tree/hypervisor", F_OK) == 0 || access("/sys/hypervisor/type", F_OK) == 0;
#endif
}

static void release_thread(void *arg)
{
	struct mark_thread *t = arg;
	const int fd = atomic_exchange(&t->schedstat, -1);
	if (fd >= 0)
		close(fd);
	atomic_store(&t->generation, 0);
	atomic_store(&t->entry, 0);
	atomic_store(&t->tid, 0);
	self = NULL;
}

static void prepare(void)
{
	live.has_key = pthread_key_create(&live.key, release_thread) == 0;
	live.host_flag = is_virtual_machine() ? SRBN_HOST_UNSEEN : 0;
}

struct mark_thread *live_thread_self(void)
{
	if (self)
		return self;
	pthread_once(&live.once, prepare);
	const uint32_t tid = (uint32_t)syscall(SYS_gettid);
	for (size_t i = 0; live.has_key && i < THREADS; i++) {
		struct mark_thread *t = &live.thread[i];
		uint32_t none = 0;
		if (atomic_load_explicit(&t->tid, memory_order_relaxed) || !atomic_compare_exchange_strong(&t->tid, &none, tid))
			continue;
		for (size_t n = atomic_load(&live.used); n <= i && !atomic_compare_exchange_weak(&live.used, &n, i + 1);)
			continue;
		t->retry = 0;
		t->sent = -NS_PER_DAY;
		atomic_store(&t->schedstat, -1);
		atomic_store(&t->generation, atomic_fetch_add(&live.generation, 1) + 1);
		pthread_setspecific(live.key, t);
		return self = t;
	}
	return NULL;
}

uint64_t live_thread_generation(const struct mark_thread *t)
{
	return t ? atomic_load_explicit(&t->generation, memory_order_relaxed) : 0;
}

void live_thread_forget_parent(void)
{
	for (size_t i = 0; i < atomic_load(&live.used); i++) {
		struct mark_thread *t = &live.thread[i];
		if (!atomic_load(&t->tid))
			continue;
		release_thread(t);
	}
	if (live.has_key)
		pthread_setspecific(live.key, NULL);
	self = NULL;
}

/* ---- Sources ------------------------------------------------------------------------------------------------ */

/* Copies an entry. Returns false if it belongs to another thread or changes all the time. */
static bool copy_entry(const struct published_thread *e, uint32_t tid, struct published_thread *copy)
{
	for (int i = 0; i < TRIES; i++) {
		const unsigned seq = __atomic_load_n(&e->seq, __ATOMIC_ACQUIRE);
		if (seq & 1)
			continue;
		copy->tid = __atomic_load_n(&e->tid, __ATOMIC_RELAXED);
		copy->state = __atomic_load_n(&e->state, __ATOMIC_RELAXED);
		copy->updated = __atomic_load_n(&e->updated, __ATOMIC_RELAXED);
		for (int k = 0; k < PUBLISHED_COUNTERS; k++)
			copy->counter[k] = __atomic_load_n(&e->counter[k], __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&e->seq, __ATOMIC_RELAXED) == seq)
			return seq != 0 && copy->tid == tid;
	}
	return false;
}

/* Reads the clock before the entry: if the entry is newer, the thread was scheduled in between, and both are read again. */
static bool read_page(const struct mark_thread *t, struct live_counters *c)
{
	const struct published_header *h = live_page();
	const uint32_t entry = atomic_load_explicit(&t->entry, memory_order_relaxed);
	const uint32_t tid = atomic_load_explicit(&t->tid, memory_order_relaxed);
	struct published_thread e;
	if (!h || !entry || !live_page_is_valid(c->now))
		return false;
	for (int i = 0; i < 4; i++) {
		if (!copy_entry((const struct published_thread *)(const void *)h + entry, tid, &e))
			return false;
		if (e.updated <= (uint64_t)c->now)
			break;
		c->now = now_ns();
	}
	for (int k = 0; k < PUBLISHED_COUNTERS; k++)
		c->value[k] = (int64_t)(e.counter[k] < COUNTER_MAX ? e.counter[k] : COUNTER_MAX);
	const int64_t since = e.updated < (uint64_t)c->now ? c->now - (int64_t)e.updated : 0;
	/* The calling thread runs: if its entry has another state, the kernel did not report its last switch. */
	if (e.state == PUBLISHED_IS_BLOCKED && t != self)
		c->value[PUBLISHED_BLOCKED] += since;
	else if (e.state != PUBLISHED_IS_RUNNING)
		c->value[PUBLISHED_UNKNOWN] += since;
	c->lag = h->resolution ? since : 0;
	c->session = h->session;
	c->source = h->source;
	c->flags = h->flags & PUBLISHED_HOST_UNSEEN ? SRBN_HOST_UNSEEN : 0;
	return true;
}

/* Reads schedstat of a thread into text. Returns the byte count; -1: it cannot be read. */
static ssize_t read_file(struct mark_thread *t, char *text, size_t size)
{
	char path[64];
	int fd = atomic_load_explicit(&t->schedstat, memory_order_relaxed), none = -1;
	if (fd >= 0)
		return pread(fd, text, size, 0);
	snprintf(path, sizeof path, "/proc/self/task/%u/schedstat", atomic_load(&t->tid));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	const ssize_t n = pread(fd, text, size, 0);
	if (t - live.thread >= KEPT_FILES || !atomic_compare_exchange_strong(&t->schedstat, &none, fd))
		close(fd);
	return n;
}

/* "ran delay timeslices": the delay is the time that the thread was runnable and did not run, ns. */
static bool read_schedstat(struct mark_thread *t, struct live_counters *c)
{
	char text[80];
	const ssize_t n = read_file(t, text, sizeof text - 1);
	int64_t delay = 0;
	if (n <= 0)
		return false;
	text[n] = '\0';
	const char *at = strchr(text, ' ');
	if (!at || at[1] < '0' || at[1] > '9')
		return false;
	for (at++; *at >= '0' && *at <= '9' && delay < INT64_MAX / 10 - 1; at++)
		delay = delay * 10 + (*at - '0');
	c->value[PUBLISHED_MIXED] = delay;
	c->source = SRBN_SOURCE_SCHEDSTAT;
	c->flags = SRBN_WAITS_MIXED | live.host_flag;
	return true;
}

/* The vCPU on which the calling thread runs; another thread of this process has no CPU that can be read. */
static bool read_shared(struct mark_thread *t, struct live_counters *c)
{
	const int cpu = t == self ? sched_getcpu() : -1;
	const bool has_delay = cpu >= 0 && read_schedstat(t, c);
	const int64_t delay = c->value[PUBLISHED_MIXED];
	c->source = SRBN_SOURCE_NONE;
	if (cpu < 0 || !live_shared_read((unsigned)cpu, c))
		return false;
	c->value[PUBLISHED_WAIT] = delay;
	c->flags |= has_delay ? 0 : SRBN_WAITS_MIXED;
	return true;
}

uint32_t live_thread_source(struct mark_thread *t, int64_t now)
{
	const struct published_header *h = live_page();
	if (!t)
		return SRBN_SOURCE_NONE;
	uint32_t entry = atomic_load_explicit(&t->entry, memory_order_relaxed);
	const struct published_thread *e = (const struct published_thread *)(const void *)h + entry;
	if (entry && (!h || __atomic_load_n(&e->tid, __ATOMIC_RELAXED) != atomic_load_explicit(&t->tid, memory_order_relaxed)))
		entry = 0;
	if (!entry && now >= t->retry && t == self)
		entry = live_page_register(atomic_load(&t->tid), now, &t->retry, &t->sent);
	atomic_store_explicit(&t->entry, entry, memory_order_relaxed);
	if (entry && live_page_is_valid(now))
		return live_page()->source;
	return t == self && live_shared_has((unsigned)sched_getcpu(), now) ? SRBN_SOURCE_SHARED : SRBN_SOURCE_SCHEDSTAT;
}

void live_thread_read(struct mark_thread *t, uint32_t source, struct live_counters *c)
{
	*c = (struct live_counters){ .now = now_ns(), .source = SRBN_SOURCE_NONE };
	if (!t)
		return;
	if (source == SRBN_SOURCE_SCHEDSTAT)
		read_schedstat(t, c);
	else if (source == SRBN_SOURCE_SHARED)
		read_shared(t, c);
	else if (source != SRBN_SOURCE_NONE)
		read_page(t, c);
}

uint32_t live_thread_wait(void)
{
	struct mark_thread *t = live_thread_self();
	const int64_t until = now_ns() + WAIT_MS * NS_PER_MS;
	uint32_t source = SRBN_SOURCE_NONE;
	if (!t)
		return source;
	for (int64_t now = now_ns(); now < until; now = now_ns()) {
		t->retry = 0;
		source = live_thread_source(t, now);
		if (source != SRBN_SOURCE_SCHEDSTAT || live_page_connection() < 0)
			break;
		const struct timespec pause = timespec_of(NS_PER_MS);
		nanosleep(&pause, NULL);  /* the publisher needs a switch of this thread to learn its state */
	}
	struct live_counters c;
	live_thread_read(t, source, &c);
	return c.source;
}
