/* Who ends what an agent of trace-cmd was asked for, when the one who asked is killed (private to record/).
 *
 * An agent that nobody talks to any more leaves its guest half set up: it dies of the broken connection while it
 * describes its events, tracing off and events on; or it waits for ever for somebody to take a CPU's pages, and is busy
 * for all others.  Only the conversation's proper end makes it put back what it found.  So a second process holds the
 * connection, too, and brings it to that end, whatever becomes of the first. */
#ifndef STEALSCOPE_RECORD_AGENT_WATCH_H
#define STEALSCOPE_RECORD_AGENT_WATCH_H

#include <sys/types.h>

#include "record/agent_wire.h"
#include "record/frames.h"
#include "record/transport.h"

/* How far the first has come; both see it. */
struct agent_seen {
	unsigned port[FRAME_CPUS];  /* where each CPU's pages are */
	unsigned cpus;              /* 0: it has not been told yet */
	bool connected, closed;     /* to all of them; it has been asked to end */
};

struct agent_watch {
	pid_t pid;
	int alive;                  /* descriptor that closes with the first process */
	struct agent_seen *seen;
};
#define AGENT_WATCH_INIT { 0, -1, NULL }

/* Before anything is asked for on s.  -1 with errno. */
int agent_watch(struct agent_watch *w, const struct agent_way *way, int s);
/* The conversation is over, or was given up: waits until the agent has put back what it found, or is not heard of. */
void agent_watch_end(struct agent_watch *w);

/* Reads where the pages are; *page: bytes.  -1: not understood. */
int agent_take_ports(struct agent_seen *seen, unsigned *page, const struct wire_message *m);
/* Brings what was asked for on s to its end; 0: the agent has hung up, as it does at last. */
int agent_wind_up(const struct agent_way *way, int s, struct agent_seen *seen);

#endif
