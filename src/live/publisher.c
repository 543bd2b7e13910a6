/* Publishes counters to the processes that ask for them (`monitor --publish`; protocol: base/published_page.h).
 *
 * The BPF program writes a thread's counters when it is scheduled, so that they are current whenever the thread
 * reads them. Each process has a page of its own, and gets a descriptor for this page only: other owners' counters are
 * never in its memory. The page is a frozen BPF map; only the BPF program can write it. The kernel vouches for the process
 * (SO_PEERCRED). TIDs are looked up in that process only, while it lives (a process descriptor excludes that its PID
 * is used again) and has the connection's user ID.
 *
 * Limits: LIVE_CLIENTS processes and MAX_PUBLISHED threads, one user has at most half; 255 threads each; LOOKUP_FAILURES
 * TIDs that do not exist, then the process is disconnected. The /proc files that are read for a user, and for all, are
 * limited by time (struct allowance), so that new connections do not help. Messages are charged, too: those of a user who
 * has used up the allowance stay in their sockets. After each visit to the sockets the publisher rests for BEAT_NS, so that
 * no message storm wakes the monitor more often. Nothing here waits for a process. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "live/live.h"
#include "live/source.h"
#include "live/victims.h"

#define MAX_PUBLISHED 512
#define SOURCE_HOST 1         /* SRBN_SOURCE_HOST in beacon/stealscope-mark.h */
#define SOURCE_GUEST 2        /* SRBN_SOURCE_GUEST */
#define TICK_NS (10 * NS_PER_MS)  /* the kernel tick's longest period: the steal clock is read at least that often */
#define LOOKUP_FAILURES 64
#define LOOKUP_THREADS 4096   /* threads per process among which a TID is searched */
#define MESSAGES 32           /* messages per process that are handled at a time */
#define USERS 64              /* users whose work is remembered */
#define USER_READS 32768      /* /proc files that may be read for a user at once, */
#define USER_RATE 2048        /* and for each second, about 2 % of a CPU */
#define ALL_READS 65536       /* the same for all users */
#define ALL_RATE 8192
#define FAILURE_READS 256     /* a TID that does not exist counts as so many */
#define PAGE_READS 256        /* so does a connection: its page costs the kernel grace periods */
#define RUN_NS (10 * NS_PER_MS)  /* publisher_run() begins nothing more after this time: the rest waits. On a busy machine a
                               * grace period takes a second */
#define REST 2                /* sockets are not visited for that many times a visit's duration */
#define BEAT_NS (10 * NS_PER_MS)  /* least time between two visits; a reader gives up after a second without one */
#define CHECK_NS NS_PER_S     /* between two checks of a process's user ID */

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* Files that may be read now. */
struct allowance {
	u32 uid;
	int64_t left, at;         /* at: time of `left`, ns */
};

struct publisher_client {
	int fd;                   /* connection; -1: unused */
	int process;              /* the process's descriptor */
	struct ucred owner;
	u32 space;                /* PID namespace, if it is another one than ours; 0: it is ours */
	unsigned failures, threads;
	bool has_page;
	int slot[PUBLISHED_ENTRIES];  /* each entry's victim; -1: unused */
	u32 tid[PUBLISHED_ENTRIES];   /* as the process sees it */
};

struct publisher {
	struct bpf_source *bpf;
	const struct live *live;
	int listener, events;
	char path[108];
	u32 own_space, flags, source;
	u64 sessions;
	unsigned threads;
	int64_t checked, rests;   /* the last check; end of the rest after a visit, ns */
	int64_t run_end, serve_at;  /* when this visit begins nothing more; when sockets are visited again, ns */
	unsigned visits;
	struct allowance all, user[USERS];
	struct publisher_client client[LIVE_CLIENTS];
};

/* ---- Processes ---------------------------------------------------------------------------------------------- */

/* Inode number of a process's PID namespace; 0: unknown. */
static u32 read_space(int32_t pid)
{
	char path[64], text[64];
	unsigned inode;
	if (pid)
		snprintf(path, sizeof path, "/proc/%d/ns/pid", pid);
	else
		snprintf(path, sizeof path, "/proc/self/ns/pid");
	const ssize_t n = readlink(path, text, sizeof text - 1);
	text[n > 0 ? n : 0] = '\0';
	return sscanf(text, "pid:[%u]", &inode) == 1 ? inode : 0;
}

/* Reads a thread's status: its TID in the innermost namespace, and its effective user ID. */
static bool read_status(int32_t pid, u32 tid, u32 *inner, u32 *uid)
{
	char text[8192];
	if (!live_read(text, sizeof text, "", "/proc/%d/task/%u/status", pid, tid))
		return false;
	const char *spaces = strstr(text, "\nNSpid:"), *ids = strstr(text, "\nUid:");
	if (!ids || sscanf(ids, "\nUid: %*u %u", uid) != 1)
		return false;
	*inner = tid;
	/* "NSpid: TID TID ...", from the outermost to the innermost namespace */
	for (const char *at = spaces ? spaces + 1 : ""; *at && *at != '\n'; at++)
		if (*at == '\t')
			*inner = (u32)strtoul(at + 1, NULL, 10);
	return true;
}

/* Finds a process's thread that has this TID in its own namespace. Returns the TID here; 0: none. Adds the number of
 * files that were read to *reads. */
static u32 find_thread(const struct publisher_client *c, u32 tid, int64_t *reads)
{
	char path[64];
	u32 inner, uid, found = 0;
	++*reads;
	if (read_status(c->owner.pid, tid, &inner, &uid) && inner == tid && uid == c->owner.uid)
		return tid;
	if (!c->space)
		return 0;
	snprintf(path, sizeof path, "/proc/%d/task", c->owner.pid);
	DIR *d = opendir(path);
	unsigned n = 0;
	for (const struct dirent *e; !found && d && n < LOOKUP_THREADS && (e = readdir(d)); n++)
		if (e->d_name[0] > '0' && e->d_name[0] <= '9') {
			const u32 outer = (u32)strtoul(e->d_name, NULL, 10);
			++*reads;
			if (read_status(c->owner.pid, outer, &inner, &uid) && inner == tid && uid == c->owner.uid)
				found = outer;
		}
	if (d)
		closedir(d);
	return found;
}

static bool process_lives(const struct publisher_client *c)
{
	struct pollfd p = { c->process, POLLIN, 0 };
	return poll(&p, 1, 0) == 0;
}

/* A process that starts another user's program must not read that program's counters. */
static bool owner_is_the_same(const struct publisher_client *c)
{
	u32 inner, uid;
	return read_status(c->owner.pid, (u32)c->owner.pid, &inner, &uid) && uid == c->owner.uid && process_lives(c);
}

/* ---- Work for each user ------------------------------------------------------------------------------------- */

static void allowance_grow(struct allowance *a, int64_t max, int64_t rate, int64_t now)
{
	const int64_t more = min64((now - a->at) / (NS_PER_S / rate), max);
	if (more <= 0)
		return;
	a->left = min64(a->left + more, max);
	a->at = now;
}

/* Returns a user's allowance. A new user takes the place of the one with most left. */
static struct allowance *allowance_of(struct publisher *p, u32 uid, int64_t now)
{
	struct allowance *most = &p->user[0];
	for (int i = 0; i < USERS; i++) {
		struct allowance *a = &p->user[i];
		allowance_grow(a, USER_READS, USER_RATE, now);
		if (a->uid == uid && a->at)
			return a;
		if (a->left > most->left)
			most = a;
	}
	*most = (struct allowance){ uid, USER_READS, now };
	return most;
}

/* Charges files that were read for a user. Returns true if more may be read. */
static bool may_read(struct publisher *p, u32 uid, int64_t reads)
{
	const int64_t now = now_ns();
	struct allowance *own = allowance_of(p, uid, now);
	allowance_grow(&p->all, ALL_READS, ALL_RATE, now);
	own->left -= reads;
	p->all.left -= reads;
	return own->left > 0 && p->all.left > 0;
}

/* Counts the threads that a user publishes. */
static unsigned threads_of_user(const struct publisher *p, u32 uid)
{
	unsigned n = 0;
	for (int i = 0; i < LIVE_CLIENTS; i++)
		n += p->client[i].fd >= 0 && p->client[i].owner.uid == uid ? p->client[i].threads : 0;
	return n;
}

/* ---- Clients ------------------------------------------------------------------------------------------------ */

static void write_page(const struct publisher *p, const struct publisher_client *c, enum page_action action, u32 entry,
                       u64 value)
{
	bpf_source_write_page(p->bpf, (u64[8]){ action, (u64)(c - p->client), entry, value });
}

static void remove_thread(struct publisher *p, struct publisher_client *c, u32 entry)
{
	const int slot = c->slot[entry];
	c->slot[entry] = -1;
	if (slot < 0)
		return;
	write_page(p, c, PAGE_THREAD, entry, 0);
	bpf_source_publish(p->bpf, slot, -1, 0, 0, 0);
	bpf_source_remove(p->bpf, slot);
	p->threads--;
	c->threads--;
}

static void remove_client(struct publisher *p, struct publisher_client *c)
{
	if (c->fd < 0)
		return;
	if (c->has_page) {
		write_page(p, c, PAGE_CLOSE, 0, 0);
		for (u32 i = 1; i < PUBLISHED_ENTRIES; i++)
			remove_thread(p, c, i);
		bpf_source_page_close(p->bpf, (u32)(c - p->client));
	}
	if (c->process >= 0)
		close(c->process);
	close(c->fd);
	*c = (struct publisher_client){ .fd = -1 };
}

static bool send_page(struct publisher_client *c, int page)
{
	uint32_t version = PUBLISHED_VERSION;
	union { struct cmsghdr head; char bytes[CMSG_SPACE(sizeof page)]; } control = { .head = {
		.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof page) } };
	struct iovec part = { &version, sizeof version };
	const struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
	                          .msg_controllen = sizeof control };
	memcpy(CMSG_DATA(&control.head), &page, sizeof page);
	return sendmsg(c->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof version;
}

/* Fills a client from its connection. Returns false if the kernel does not vouch for it. */
static bool identify_client(struct publisher *p, struct publisher_client *c)
{
	socklen_t n = sizeof c->owner, size = sizeof c->process;
	unsigned same = 0;
	if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &c->owner, &n) || c->owner.pid <= 0)
		return false;
	if (getsockopt(c->fd, SOL_SOCKET, SO_PEERPIDFD, &c->process, &size))
		c->process = (int)syscall(SYS_pidfd_open, c->owner.pid, 0);
	for (int i = 0; i < LIVE_CLIENTS; i++)
		same += p->client[i].fd >= 0 && p->client[i].owner.uid == c->owner.uid;
	if (p->source == SOURCE_GUEST && !live_steal_clock_is_right(p->live))
		return false;
	if (c->process < 0 || same > LIVE_CLIENTS / 2 || !may_read(p, c->owner.uid, 0) || !owner_is_the_same(c))
		return false;
	may_read(p, c->owner.uid, PAGE_READS);
	c->space = read_space(c->owner.pid);
	if (c->space == p->own_space)
		c->space = 0;
	return true;
}

/* Returns false if nobody waits for a connection. */
static bool accept_client(struct publisher *p)
{
	int at = 0, page = -1;
	const int fd = accept4(p->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0)
		return false;
	while (at < LIVE_CLIENTS && p->client[at].fd >= 0)
		at++;
	if (at == LIVE_CLIENTS) {
		close(fd);
		return true;
	}
	struct publisher_client *c = &p->client[at];
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = (u32)at };
	*c = (struct publisher_client){ .fd = fd, .process = -1 };
	for (u32 i = 0; i < PUBLISHED_ENTRIES; i++)
		c->slot[i] = -1;
	if (identify_client(p, c))
		page = bpf_source_page(p->bpf, (u32)at);
	c->has_page = page >= 0;
	if (c->has_page)
		bpf_source_write_page(p->bpf, (u64[8]){ PAGE_OPEN, (u64)at, 0, p->flags, p->source,
		                                        (u64)clock_ns(CLOCK_REALTIME) + ++p->sessions, (u64)now_ns(),
		                                        p->source == SOURCE_GUEST ? TICK_NS : 0 });
	if (!c->has_page || !send_page(c, page) || epoll_ctl(p->events, EPOLL_CTL_ADD, fd, &event))
		remove_client(p, c);
	if (page >= 0)
		close(page);
	return true;
}

static void add_thread(struct publisher *p, struct publisher_client *c, u32 inner)
{
	struct live_stat stat;
	u32 entry = 1;
	for (u32 i = 1; i < PUBLISHED_ENTRIES; i++)
		if (c->slot[i] >= 0 && c->tid[i] == inner)
			return;
	while (entry < PUBLISHED_ENTRIES && c->slot[entry] >= 0)
		entry++;
	if (entry == PUBLISHED_ENTRIES || p->threads == MAX_PUBLISHED ||
	    threads_of_user(p, c->owner.uid) >= MAX_PUBLISHED / 2)
		return;
	int64_t reads = 1;
	const u32 tid = find_thread(c, inner, &reads);
	if (!tid || !live_read_stat("", c->owner.pid, (int32_t)tid, &stat) || !process_lives(c)) {
		c->failures++;
		may_read(p, c->owner.uid, reads + FAILURE_READS);
		return;
	}
	may_read(p, c->owner.uid, reads);
	const int slot = bpf_source_add(p->bpf, tid, stat.state == 'S' || stat.state == 'D');
	if (slot < 0)
		return;
	/* Another connection of this process may have this thread: a process needs one. */
	if (bpf_source_victim(p->bpf, (unsigned)slot)->client) {
		bpf_source_remove(p->bpf, slot);
		return;
	}
	c->slot[entry] = slot;
	c->tid[entry] = inner;
	p->threads++;
	c->threads++;
	write_page(p, c, PAGE_THREAD, entry, inner);
	bpf_source_publish(p->bpf, slot, (int)(c - p->client), entry, (u32)c->owner.pid, c->space);
}

static void serve_client(struct publisher *p, struct publisher_client *c)
{
	for (int i = 0; i < MESSAGES && now_ns() < p->run_end && may_read(p, c->owner.uid, 1); i++) {
		uint32_t tid;
		const ssize_t n = recv(c->fd, &tid, sizeof tid, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n != sizeof tid || tid == 0 || c->failures >= LOOKUP_FAILURES) {
			remove_client(p, c);
			return;
		}
		add_thread(p, c, tid);
	}
}

/* ---- Interface ---------------------------------------------------------------------------------------------- */

/* Removes a socket that nobody listens at. */
static void remove_stale_socket(const struct sockaddr_un *a)
{
	struct stat st;
	if (lstat(a->sun_path, &st) || !S_ISSOCK(st.st_mode))
		return;
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)a, sizeof *a) && errno == ECONNREFUSED)
		unlink(a->sun_path);
	if (fd >= 0)
		close(fd);
}

static int listen_at(struct publisher *p, const char *path, struct error *err)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof a.sun_path || !*path)
		return error_set(err, STATUS_USAGE, NULL, "--publish: a socket's path has 1 to %zu bytes", sizeof a.sun_path - 1);
	memcpy(a.sun_path, path, strlen(path) + 1);
	if (strcmp(path, PUBLISHED_SOCKET) == 0) {
		char folder[sizeof PUBLISHED_SOCKET];
		memcpy(folder, path, sizeof folder);
		*strrchr(folder, '/') = '\0';
		mkdir(folder, 0755);
	}
	remove_stale_socket(&a);
	p->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = LIVE_CLIENTS };
	if (p->listener < 0 || bind(p->listener, (const struct sockaddr *)&a, sizeof a))
		return error_system(err, "another monitor may publish there", "--publish %s", path);
	memcpy(p->path, path, strlen(path) + 1);
	/* Every user may connect: each gets the own process's counters. */
	if (chmod(path, 0666) || listen(p->listener, LIVE_CLIENTS) ||
	    epoll_ctl(p->events, EPOLL_CTL_ADD, p->listener, &event))
		return error_system(err, NULL, "--publish %s", path);
	return 0;
}

bool live_has_steal_clock(void)
{
	return bpf_source_has_steal_clock();
}

struct publisher *publisher_open(struct live *l, const char *path, struct error *err)
{
	struct publisher *p;
	if (!live_bpf(l)) {
		error_set(err, STATUS_SYSTEM, "without it, srbn_read() uses schedstat by itself", "--publish needs BPF: %s",
		          live_limits(l)->text);
		return NULL;
	}
	p = mem_new(1, sizeof *p);
	p->bpf = live_bpf(l);
	p->live = l;
	p->own_space = read_space(0);
	p->source = live_reads_steal_clock(l) ? SOURCE_GUEST : SOURCE_HOST;
	p->flags = live_machine_is_guest() && p->source == SOURCE_HOST ? PUBLISHED_HOST_UNSEEN : 0;
	p->listener = -1;
	p->events = epoll_create1(EPOLL_CLOEXEC);
	for (int i = 0; i < LIVE_CLIENTS; i++)
		p->client[i].fd = -1;
	if (p->events < 0 ? error_system(err, NULL, "--publish") : listen_at(p, path, err)) {
		publisher_close(p);
		return NULL;
	}
	return p;
}

void publisher_close(struct publisher *p)
{
	if (!p)
		return;
	for (int i = 0; i < LIVE_CLIENTS; i++)
		remove_client(p, &p->client[i]);
	if (p->listener >= 0)
		close(p->listener);
	if (p->events >= 0)
		close(p->events);
	if (*p->path)
		unlink(p->path);
	free(p);
}

int publisher_events(const struct publisher *p)
{
	return p ? p->events : -1;
}

int64_t publisher_rests(const struct publisher *p)
{
	return p ? p->rests : 0;
}

void publisher_run(struct publisher *p)
{
	struct epoll_event event[LIVE_CLIENTS + 1];
	const int64_t now = now_ns();
	if (!p || now < p->rests)
		return;
	p->run_end = now + RUN_NS;
	p->visits++;
	const bool serves = now >= p->serve_at;
	const int n = serves ? epoll_wait(p->events, event, LIVE_CLIENTS + 1, 0) : 0;
	for (int i = 0; i < n && now_ns() < p->run_end; i++) {  /* each visit begins with another one */
		const u32 who = event[(p->visits + (unsigned)i) % (unsigned)n].data.u32;
		if (who < LIVE_CLIENTS && p->client[who].fd >= 0)
			serve_client(p, &p->client[who]);
		while (who == LIVE_CLIENTS && now_ns() < p->run_end && accept_client(p))
			continue;
	}
	if (n > 0)
		p->serve_at = now_ns() + REST * (now_ns() - now);
	const bool check = now - p->checked >= CHECK_NS;
	for (int i = 0; i < LIVE_CLIENTS; i++) {
		struct publisher_client *c = &p->client[i];
		if (c->fd < 0)
			continue;
		write_page(p, c, PAGE_BEAT, 0, (u64)now);
		for (u32 k = 1; k < PUBLISHED_ENTRIES; k++)
			if (c->slot[k] >= 0 && !bpf_source_victim(p->bpf, (unsigned)c->slot[k])->tid)
				remove_thread(p, c, k);  /* it has ended */
		if (check && !owner_is_the_same(c))
			remove_client(p, c);
	}
	if (check)
		p->checked = now;
	p->rests = n || !serves ? now_ns() + BEAT_NS : 0;
}
