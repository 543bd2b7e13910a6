#include "record/agent_watchdog.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/clock.h"

#define SECOND 1000000000LL
#define PATIENCE 20        /* s for a sign of life */
#define LONGEST 120        /* s for all */

/* Reads where the pages are; cpus stays 0 where that is not understood. */
static void take_ports(struct agent_seen *seen, const struct wire_message *m)
{
	const char *at = (const char *)m->rest, *end = at + m->rest_len;
	const unsigned cpus = m->part_len < 12 ? 0 : wire_u32(m->part + 4);
	seen->page = cpus ? wire_u32(m->part + 8) : 0;
	if (cpus < 1 || cpus > FRAME_CPUS || seen->page < 1024 || seen->page > 1 << 20)
		return;
	for (unsigned i = 0; i < cpus; i++) {
		const char *over = memchr(at, '\0', (size_t)(end - at));
		if (!over || sscanf(at, "%u", &seen->port[i]) != 1)
			return;
		at = over + 1;
	}
	seen->cpus = cpus;
}

static void take_answer(int s, struct agent_seen *seen)
{
	struct wire_message m = { 0 };
	if (wire_receive(s, &m) == 0 && m.command == WIRE_RESPONSE) {
		take_ports(seen, &m);
		seen->answered = true;
	}
	free(m.bytes);
}

/* Reads what comes, and forgets it, until the agent hangs up. */
static int await_end(int s, struct pollfd *p, unsigned cpus)
{
	const int64_t end = now_ns() + LONGEST * SECOND;
	char bytes[4096];
	p[cpus] = (struct pollfd){ s, POLLIN, 0 };
	while (now_ns() < end && poll(p, cpus + 1, PATIENCE * 1000) > 0)
		for (unsigned i = 0; i <= cpus; i++) {
			if (!p[i].revents || read(p[i].fd, bytes, sizeof bytes) > 0)
				continue;
			if (i == cpus)
				return 0;
			close(p[i].fd);
			p[i].fd = -1;
		}
	return -1;
}

int agent_wind_up(const struct agent_way *way, int s, struct agent_seen *seen)
{
	if (!seen->answered)
		take_answer(s, seen);
	struct pollfd *p = mem_new(seen->cpus + 1, sizeof *p);
	for (unsigned i = 0; i < seen->cpus; i++)  /* it waits for that, and hears nothing meanwhile */
		p[i] = (struct pollfd){ seen->connected ? -1 : way->dial(way, seen->port[i]), POLLIN, 0 };
	if (!seen->closed)
		wire_send(s, WIRE_CLOSE, NULL, 0, NULL, 0);
	const int rc = await_end(s, p, seen->cpus);
	free(p);
	return rc;
}

/* Nothing of the recorder's may stay open in it, or that would wait for it. */
static void keep_open(int first, int second)
{
	const unsigned low = (unsigned)(first < second ? first : second), high = (unsigned)(first < second ? second : first);
	for (unsigned i = 0; i < high; i++)
		if (i != low)
			close((int)i);
	syscall(SYS_close_range, high + 1, ~0U, 0U);
}

static _Noreturn void watch(const struct agent_way *way, int s, int alive, struct agent_seen *seen)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1 };
	struct pollfd p[] = { { s, POLLIN, 0 }, { alive, POLLIN, 0 } };
	char none = 0;
	for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
		signal(ignored[i], SIG_IGN);
	setsid();
	keep_open(s, alive);
	if (poll(p, 2, PATIENCE * 1000) > 0 && p[0].revents)
		take_answer(s, seen);
	send(alive, &none, 1, MSG_NOSIGNAL);
	while (read(alive, &none, 1) < 0 && errno == EINTR)
		continue;
	_exit(agent_wind_up(way, s, seen) ? 1 : 0);
}

int agent_watch(struct agent_watch *w, const struct agent_way *way, int s)
{
	int pair[2];
	w->seen = mmap(NULL, sizeof *w->seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (w->seen == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -1;
	w->pid = fork();
	if (w->pid == 0) {
		close(pair[1]);
		watch(way, s, pair[0], w->seen);
	}
	close(pair[0]);
	w->alive = pair[1];
	return w->pid < 0 ? -1 : 0;
}

int agent_watch_answer(const struct agent_watch *w)
{
	char none;
	ssize_t n;
	do
		n = read(w->alive, &none, 1);
	while (n < 0 && errno == EINTR);
	return w->seen->answered ? 0 : -1;
}

void agent_watch_end(struct agent_watch *w)
{
	if (w->alive >= 0)
		close(w->alive);
	while (w->pid > 0 && waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	*w = (struct agent_watch)AGENT_WATCH_INIT;
}
