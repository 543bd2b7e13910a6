/* Fuzz target: any bytes as what a guest's agent of trace-cmd sends, and what becomes of it as frames.  Pieces, each behind
 * its length (16 bits, big-endian), are what comes from the agent itself and then from each of its CPUs. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "record/frames.h"
#include "record/transport.h"
#include "fuzz_replay.h"

#define WORDS "task=trace turn=0 clocks='x86-tsc mono' events=' sched/sched_switch'\nstealscope_guest\ngo\nstop\nsend\n"

static struct { const uint8_t *data; size_t size; int agent; } rest;

/* A socket that holds the next piece, and then ends.  What is said to the agent itself must go somewhere. */
static int dial(const struct agent_way *way, unsigned port)
{
	int s[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s))
		abort();
	const size_t head = rest.size < 2 ? rest.size : 2, most = rest.size - head;
	const size_t said = head < 2 ? 0 : (size_t)rest.data[0] << 8 | rest.data[1], n = said < most ? said : most;
	if (send(s[1], rest.data + head, n, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)n)
		abort();
	shutdown(s[1], SHUT_WR);
	rest.data += head + n;
	rest.size -= head + n;
	if (rest.agent < 0 && port == way->port)
		rest.agent = s[1];
	else
		close(s[1]);
	return s[0];
}

static int take(void *arg, enum frame what, unsigned cpu, const char *data, size_t len, struct error *err)
{
	(void)arg, (void)err, (void)data, (void)len;
	return what >= FRAME_KINDS || cpu >= FRAME_CPUS ? -1 : 0;
}

/* What is said for the agent are frames, whatever it sends; the last may be cut. */
static void check(int out, struct frames *f)
{
	char buf[65536];
	ssize_t n;
	struct error err = ERROR_INIT;
	lseek(out, 0, SEEK_SET);
	while ((n = read(out, buf, sizeof buf)) > 0)
		if (frames_take(f, buf, (size_t)n, &err))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = ERROR_INIT;
	struct frames f;
	const int in = memfd_create("words", MFD_CLOEXEC), out = memfd_create("frames", MFD_CLOEXEC);
	const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (in < 0 || out < 0 || null < 0 || frames_init(&f, take, NULL, &err))
		abort();
	char words[512];
	const int n = snprintf(words, sizeof words, "key=%s %s", f.key, WORDS);
	if (write(in, words, (size_t)n) != n)
		abort();
	lseek(in, 0, SEEK_SET);
	struct agent_way way = { 3, 823, dial, in, out, null, 0, 0 };
	rest.data = data;
	rest.size = size;
	rest.agent = -1;
	agent_relay(&way);
	check(out, &f);
	if (rest.agent >= 0)
		close(rest.agent);
	frames_release(&f);
	close(in);
	close(out);
	close(null);
	return 0;
}
