/* Example of libstealscope-mark: a server that handles many requests concurrently in one thread.
 *
 * usage: mark_server SOCKET [COUNT]        listens on a local socket; ends after COUNT requests
 *
 * Each connection is one request: it sends the number of its slices of work. Between slices the server switches to the
 * next open request, as an event loop does: it calls srbn_yield() for the request that it leaves and srbn_resume() for
 * the one that it continues. */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "beacon/stealscope-mark.h"

#define MAX_JOBS 64

struct job {
	int fd;
	srbn_t request;
	unsigned slices;  /* remaining ones */
};

static volatile uint64_t sink;

static void do_slice(void)
{
	uint64_t x = sink;
	for (int i = 0; i < 200000; i++)
		x = x * 6364136223846793005u + 1;
	sink = x;
}

static int listen_at(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof at.sun_path)
		return -1;
	memcpy(at.sun_path, path, strlen(path) + 1);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, MAX_JOBS))
		return -1;
	return fd;
}

/* Accepts one request: marks its start, then yields it until its first slice. Returns false if there is none. */
static bool accept_request(int listener, struct job *j)
{
	char text[16] = "";
	j->fd = accept(listener, NULL, NULL);
	if (j->fd < 0)
		return false;
	j->request = srbn_start();
	ssize_t n = read(j->fd, text, sizeof text - 1);
	j->slices = n > 0 ? (unsigned)strtoul(text, NULL, 10) : 0;
	srbn_yield(j->request);
	return true;
}

/* Does one slice of work; returns true when the request is answered. */
static bool serve_slice(struct job *j)
{
	srbn_resume(j->request);
	if (j->slices > 0) {
		do_slice();
		j->slices--;
	}
	if (j->slices > 0) {
		srbn_yield(j->request);
		return false;
	}
	if (write(j->fd, "done\n", 5) != 5)
		perror("mark_server: answer");
	srbn_end(j->request);
	close(j->fd);
	return true;
}

int main(int argc, char **argv)
{
	struct job job[MAX_JOBS];
	size_t open = 0;
	long remaining = argc > 2 ? strtol(argv[2], NULL, 10) : -1;
	int listener = argc > 1 ? listen_at(argv[1]) : -1;
	if (listener < 0) {
		fprintf(stderr, "mark_server: %s: %s\n", argc > 1 ? argv[1] : "SOCKET is missing", strerror(errno));
		return 1;
	}
	while (remaining != 0 || open > 0) {
		/* Wait in poll() only when no request is open. */
		struct pollfd p = { listener, POLLIN, 0 };
		if (remaining != 0 && open < MAX_JOBS && poll(&p, 1, open ? 0 : -1) > 0 && accept_request(listener, &job[open])) {
			open++;
			remaining -= remaining > 0;
			continue;
		}
		for (size_t i = 0; i < open;) {
			if (serve_slice(&job[i]))
				job[i] = job[--open];
			else
				i++;
		}
	}
	close(listener);
	unlink(argv[1]);
	return 0;
}
