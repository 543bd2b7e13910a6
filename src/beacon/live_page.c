/* The connection to a publisher, and its page (base/published_page.h).
 *
 * The page is mapped at one address for the process's life: zeros replace it when the publisher ends, and the page of
 * the next publisher replaces these. So readers need no lock, and never touch memory that is gone. One thread at a time
 * connects and registers (`busy`); others go on with another source. Nothing here blocks. */
#include "beacon/live_counters.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/number.h"

#define ATTEMPT_NS NS_PER_S              /* between two attempts to connect, and two registrations of a thread */
#define ANSWER_NS NS_PER_MS              /* between two looks for an entry after the registration */
#define IMPATIENT_NS (50 * NS_PER_MS)    /* time after which such looks become rare */
#define STALE_NS NS_PER_S                /* a page without a beat for this long: the connection is checked */
#define CHECK_NS (100 * NS_PER_MS)       /* between two such checks */

static struct {
	_Atomic(void *) page;
	_Atomic int fd;
	atomic_flag busy;
	_Atomic int64_t next_attempt;
	_Atomic uint64_t beat;
	_Atomic int64_t beat_seen;           /* time when `beat` was new */
	_Atomic(const char *) path;
} live = { .fd = -1, .busy = ATOMIC_FLAG_INIT };

const struct published_header *live_page(void)
{
	return atomic_load_explicit(&live.page, memory_order_acquire);
}

int live_page_connection(void)
{
	return atomic_load(&live.fd);
}

/* ---- Connection, by the owner of `busy` */

static void map_zeros(void *at)
{
	void *p = mmap(at, PUBLISHED_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
	if (p != MAP_FAILED)
		atomic_store_explicit(&live.page, p, memory_order_release);
}

static void disconnect(void)
{
	const int fd = atomic_exchange(&live.fd, -1);
	if (fd >= 0)
		close(fd);
	map_zeros(atomic_load(&live.page));
}

static void connect_now(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct stat st;
	const char *path = atomic_load(&live.path);
	if (!path)
		path = secure_getenv("STEALSCOPE_LIVE");
	if (!path)
		path = PUBLISHED_SOCKET;
	const size_t n = strlen(path);
	if (n == 0 || n >= sizeof a.sun_path)
		return;
	memcpy(a.sun_path, path, n + 1);
	if (stat(path, &st) == 0 && !S_ISSOCK(st.st_mode)) {
		live_shared_open(path);
		return;
	}
	live_shared_open(NULL);
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	if (connect(fd, (const struct sockaddr *)&a, sizeof a)) {
		close(fd);
		return;
	}
	atomic_store(&live.fd, fd);
}

/* Returns true if the page's size cannot shrink: reading it after that would kill the process. Such are BPF maps, and
 * memory sealed against it. */
static bool is_fixed(int page)
{
	struct stat st;
	char path[64], text[512] = "";
	const int seals = fcntl(page, F_GET_SEALS);
	if (seals >= 0)
		return seals & F_SEAL_SHRINK && fstat(page, &st) == 0 && st.st_size >= (off_t)PUBLISHED_BYTES;
	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", page);
	const int info = open(path, O_RDONLY | O_CLOEXEC);
	if (info >= 0 && read(info, text, sizeof text - 1) < 0)
		text[0] = '\0';
	if (info >= 0)
		close(info);
	return strstr(text, "\nmap_type:") != NULL;
}

/* Receives the page. Returns false if it has not arrived. */
static bool receive_page(int fd)
{
	uint32_t version = 0;
	union { struct cmsghdr head; char bytes[CMSG_SPACE(sizeof(int))]; } control;
	struct iovec part = { &version, sizeof version };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
	const ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	const struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	int page = -1;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof page))
		memcpy(&page, CMSG_DATA(c), sizeof page);
	void *at = atomic_load(&live.page), *p = MAP_FAILED;
	if (page >= 0 && n == sizeof version && version == PUBLISHED_VERSION && is_fixed(page))
		p = mmap(at, PUBLISHED_BYTES, PROT_READ, MAP_SHARED | (at ? MAP_FIXED : 0), page, 0);
	if (page >= 0)
		close(page);
	if (p == MAP_FAILED) {
		disconnect();
		return false;
	}
	atomic_store_explicit(&live.page, p, memory_order_release);
	return true;
}

/* Returns the page, connected if that is possible now; NULL: there is none. */
static const struct published_header *get_page(int64_t now)
{
	const struct published_header *h = live_page();
	if (h && h->magic == PUBLISHED_MAGIC && h->version == PUBLISHED_VERSION && !h->closed)
		return h;
	if (h && h->magic == PUBLISHED_MAGIC)
		disconnect();
	if (atomic_load(&live.fd) < 0 && now >= atomic_load(&live.next_attempt)) {
		atomic_store(&live.next_attempt, now + ATTEMPT_NS);
		connect_now();
	}
	const int fd = atomic_load(&live.fd);
	return fd >= 0 && receive_page(fd) ? live_page() : NULL;
}

/* Returns true if the other end of the connection is open. */
static bool peer_is_alive(void)
{
	char byte;
	const int fd = atomic_load(&live.fd);
	const ssize_t n = fd < 0 ? 0 : recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* ---- Interface */

bool live_page_is_valid(int64_t now)
{
	const struct published_header *h = live_page();
	if (!h || h->magic != PUBLISHED_MAGIC || *(const volatile unsigned *)&h->closed)
		return false;
	const uint64_t beat = *(const volatile unsigned long long *)&h->beat;
	if (beat != atomic_load_explicit(&live.beat, memory_order_relaxed)) {
		atomic_store_explicit(&live.beat_seen, now, memory_order_relaxed);
		atomic_store_explicit(&live.beat, beat, memory_order_relaxed);
		return true;
	}
	if (now - atomic_load_explicit(&live.beat_seen, memory_order_relaxed) < STALE_NS)
		return true;
	/* A publisher on a busy host may be late; if it has ended, the connection is closed. */
	if (atomic_flag_test_and_set(&live.busy))
		return true;
	const bool alive = peer_is_alive();
	if (alive)
		atomic_store(&live.beat_seen, now - STALE_NS + CHECK_NS);
	else
		disconnect();
	atomic_flag_clear(&live.busy);
	return alive;
}

static uint32_t find_entry(const struct published_header *h, uint32_t tid)
{
	const struct published_thread *e = (const struct published_thread *)(const void *)h;
	for (uint32_t i = 1; i < PUBLISHED_ENTRIES; i++)
		if (__atomic_load_n(&e[i].tid, __ATOMIC_ACQUIRE) == tid && __atomic_load_n(&e[i].seq, __ATOMIC_ACQUIRE))
			return i;
	return 0;
}

uint32_t live_page_register(uint32_t tid, int64_t now, int64_t *retry, int64_t *sent)
{
	uint32_t entry = 0;
	if (atomic_flag_test_and_set(&live.busy))
		return 0;
	const struct published_header *h = get_page(now);
	if (h)
		entry = find_entry(h, tid);
	if (h && !entry && now - *sent >= ATTEMPT_NS) {
		if (send(atomic_load(&live.fd), &tid, sizeof tid, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof tid)
			*sent = now;
		else if (errno == EPIPE || errno == ECONNRESET)
			disconnect();
	}
	const bool connecting = atomic_load(&live.fd) >= 0;
	*retry = connecting && (!h || now - *sent < IMPATIENT_NS) ? now + ANSWER_NS : now + ATTEMPT_NS / 4;
	atomic_flag_clear(&live.busy);
	return entry;
}

void live_page_set_path(const char *path)
{
	while (atomic_flag_test_and_set(&live.busy))
		continue;
	if (atomic_load(&live.fd) >= 0 && (path != atomic_load(&live.path) || !peer_is_alive()))
		disconnect();
	atomic_store(&live.path, path);
	atomic_store(&live.next_attempt, 0);
	atomic_flag_clear(&live.busy);
}

void live_page_forget_parent(void)
{
	disconnect();
	atomic_store(&live.next_attempt, 0);
	atomic_flag_clear(&live.busy);
}
