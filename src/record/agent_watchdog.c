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
#include "base/number.h"

#define SILENCE_MAX 20     /* s without data from the agent after which the watchdog gives up */
#define SHUTDOWN_MAX 120   /* s for the agent's whole shutdown */

/* Parses the ports and the page size from the agent's answer; cpus remains 0 if the message is malformed. */
static void parse_ports(struct agent_progress *progress, const struct wire_message *m)
{
	const char *at = (const char *)m->payload, *end = at + m->payload_len;
	const unsigned cpus = m->args_len < 12 ? 0 : wire_u32(m->args + 4);
	progress->page = cpus ? wire_u32(m->args + 8) : 0;
	if (cpus < 1 || cpus > FRAME_CPUS || progress->page < 1024 || progress->page > 1 << 20)
		return;
	for (unsigned i = 0; i < cpus; i++) {
		const char *nul = memchr(at, '\0', (size_t)(end - at));
		if (!nul || sscanf(at, "%u", &progress->port[i]) != 1)
			return;
		at = nul + 1;
	}
	progress->cpus = cpus;
}

static void receive_answer(int s, struct agent_progress *progress)
{
	struct wire_message m = { 0 };
	if (wire_receive(s, &m) == 0 && m.command == WIRE_RESPONSE) {
		parse_ports(progress, &m);
		progress->answered = true;
	}
	free(m.bytes);
}

/* Reads and discards data until the agent closes the connection. Returns -1 on a timeout. */
static int await_end(int s, struct pollfd *p, unsigned cpus)
{
	const int64_t end = now_ns() + SHUTDOWN_MAX * NS_PER_S;
	char bytes[4096];
	p[cpus] = (struct pollfd){ s, POLLIN, 0 };
	while (now_ns() < end && poll(p, cpus + 1, SILENCE_MAX * 1000) > 0)
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

int agent_shut_down(const struct agent_connection *connection, int s, struct agent_progress *progress)
{
	if (!progress->answered)
		receive_answer(s, progress);
	struct pollfd *p = mem_new(progress->cpus + 1, sizeof *p);
	for (unsigned i = 0; i < progress->cpus; i++)  /* the agent handles no message before all ports are connected */
		p[i] = (struct pollfd){ progress->connected ? -1 : connection->dial(connection, progress->port[i]), POLLIN, 0 };
	if (!progress->closed)
		wire_send(s, WIRE_CLOSE, NULL, 0, NULL, 0);
	const int rc = await_end(s, p, progress->cpus);
	free(p);
	return rc;
}

/* Closes all inherited descriptors except two: an open pipe would keep its reader in the recorder waiting. */
static void close_other_files(int first, int second)
{
	const unsigned low = (unsigned)(first < second ? first : second), high = (unsigned)(first < second ? second : first);
	for (unsigned i = 0; i < high; i++)
		if (i != low)
			close((int)i);
	syscall(SYS_close_range, high + 1, ~0U, 0U);
}

static _Noreturn void watch_recorder(const struct agent_connection *connection, int s, int lifeline,
                                     struct agent_progress *progress)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1 };
	struct pollfd p[] = { { s, POLLIN, 0 }, { lifeline, POLLIN, 0 } };
	char none = 0;
	for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
		signal(ignored[i], SIG_IGN);
	setsid();
	close_other_files(s, lifeline);
	if (poll(p, 2, SILENCE_MAX * 1000) > 0 && p[0].revents)
		receive_answer(s, progress);
	send(lifeline, &none, 1, MSG_NOSIGNAL);
	while (read(lifeline, &none, 1) < 0 && errno == EINTR)
		continue;
	_exit(agent_shut_down(connection, s, progress) ? 1 : 0);
}

int agent_watchdog_start(struct agent_watchdog *w, const struct agent_connection *connection, int s)
{
	int pair[2];
	w->progress = mmap(NULL, sizeof *w->progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (w->progress == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -1;
	w->pid = fork();
	if (w->pid == 0) {
		close(pair[1]);
		watch_recorder(connection, s, pair[0], w->progress);
	}
	close(pair[0]);
	w->lifeline = pair[1];
	return w->pid < 0 ? -1 : 0;
}

int agent_watchdog_await_answer(const struct agent_watchdog *w)
{
	char none;
	ssize_t n;
	do
		n = read(w->lifeline, &none, 1);
	while (n < 0 && errno == EINTR);
	return w->progress->answered ? 0 : -1;
}

void agent_watchdog_end(struct agent_watchdog *w)
{
	if (w->lifeline >= 0)
		close(w->lifeline);
	while (w->pid > 0 && waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	*w = (struct agent_watchdog)AGENT_WATCHDOG_INIT;
}
