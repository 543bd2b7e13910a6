/* An example of libstealscope-mark: a server that works on many requests at once in one thread.
 *
 * usage: mark_server SOCKET [COUNT]        listens on a local socket; ends after COUNT requests
 *
 * A connection is a request: it sends a number of slices of work.  Between slices the server turns to the next
 * request that is open, as an event loop does: srbn_yield() for the one that it leaves, srbn_resume() for the one that
 * it comes back to. */
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

#define MOST 64

struct job {
	int fd;
	srbn_t request;
	unsigned slices;  /* to do */
};

static volatile uint64_t sink;

static void work_a_slice(void)
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
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, MOST))
		return -1;
	return fd;
}

/* Accepts one request: its mark begins when the server takes it, and pauses until its first slice. */
static bool take(int listener, struct job *j)
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

/* One slice of work; true when the request is answered. */
static bool serve(struct job *j)
{
	srbn_resume(j->request);
	if (j->slices > 0) {
		work_a_slice();
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
	struct job job[MOST];
	size_t open = 0;
	long left = argc > 2 ? strtol(argv[2], NULL, 10) : -1;
	int listener = argc > 1 ? listen_at(argv[1]) : -1;
	if (listener < 0) {
		fprintf(stderr, "mark_server: %s: %s\n", argc > 1 ? argv[1] : "SOCKET is missing", strerror(errno));
		return 1;
	}
	while (left != 0 || open > 0) {
		/* Wait for requests only when there is nothing to do. */
		struct pollfd p = { listener, POLLIN, 0 };
		if (left != 0 && open < MOST && poll(&p, 1, open ? 0 : -1) > 0 && take(listener, &job[open])) {
			open++;
			left -= left > 0;
			continue;
		}
		for (size_t i = 0; i < open;) {
			if (serve(&job[i]))
				job[i] = job[--open];
			else
				i++;
		}
	}
	close(listener);
	unlink(argv[1]);
	return 0;
}
