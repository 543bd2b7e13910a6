/* Fuzz target: input as the data of trace-cmd's guest agent, relayed as frames. The input consists of chunks, each after
 * its length (16 bits, big endian): first for the agent's control connection, then for each CPU. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "record/frames.h"
#include "record/transport.h"
#include "fuzz_replay.h"

#define WORDS "task=trace overwrite=0 clocks='x86-tsc mono' events=' sched/sched_switch'\nstealscope_guest\ngo\nstop\nsend\n"

static struct { const uint8_t *data; size_t size; int agent; } input;

/* Returns a socket that delivers the next chunk and then ends. The other end of the control connection stays open,
 * because commands are sent to it. */
static int open_channel(const struct agent_connection *agent, unsigned port)
{
	int s[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s))
		abort();
	const size_t head = input.size < 2 ? input.size : 2, available = input.size - head;
	const size_t announced = head < 2 ? 0 : (size_t)input.data[0] << 8 | input.data[1];
	const size_t n = announced < available ? announced : available;
	if (send(s[1], input.data + head, n, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)n)
		abort();
	shutdown(s[1], SHUT_WR);
	input.data += head + n;
	input.size -= head + n;
	if (input.agent < 0 && port == agent->port)
		input.agent = s[1];
	else
		close(s[1]);
	return s[0];
}

static int count_frame(void *arg, enum frame type, unsigned cpu, const char *data, size_t len, struct error *err)
{
	(void)arg, (void)err, (void)data, (void)len;
	return type >= FRAME_KINDS || cpu >= FRAME_CPUS ? -1 : 0;
}

/* Checks that the output consists of frames for any input; the last frame may be incomplete. */
static void check_frames(int out, struct frames *f)
{
	char buf[65536];
	ssize_t n;
	struct error err = ERROR_INIT;
	lseek(out, 0, SEEK_SET);
	while ((n = read(out, buf, sizeof buf)) > 0)
		if (frames_feed(f, buf, (size_t)n, &err))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = ERROR_INIT;
	struct frames f;
	const int in = memfd_create("words", MFD_CLOEXEC), out = memfd_create("frames", MFD_CLOEXEC);
	const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (in < 0 || out < 0 || null < 0 || frames_init(&f, count_frame, NULL, &err))
		abort();
	char command[512];
	const int n = snprintf(command, sizeof command, "key=%s %s", f.key, WORDS);
	if (write(in, command, (size_t)n) != n)
		abort();
	lseek(in, 0, SEEK_SET);
	struct agent_connection agent = { 3, 823, open_channel, in, out, null, 0, 0 };
	input.data = data;
	input.size = size;
	input.agent = -1;
	agent_relay(&agent);
	check_frames(out, &f);
	if (input.agent >= 0)
		close(input.agent);
	frames_release(&f);
	close(in);
	close(out);
	close(null);
	return 0;
}
