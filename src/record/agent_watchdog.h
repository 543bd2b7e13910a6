/* Who ends what an agent of trace-cmd was asked for, when the one who asked is killed (private to record/).
 *
 * An agent that nobody talks to any more leaves its guest half set up: it dies of the broken connection while it
 * describes its events, tracing off and events on; or it waits for ever for somebody to take a CPU's pages, and is busy
 * for all others.  Only the conversation's proper end makes it put back what it found.  So a second process holds the
 * connection, too, and brings it to that end, whatever becomes of the first.  The agent's answer is for the second one: who
 * is killed may have read it, and told nobody. */
#ifndef STEALSCOPE_RECORD_AGENT_WATCHDOG_H
#define STEALSCOPE_RECORD_AGENT_WATCHDOG_H

#include <sys/types.h>

#include "record/agent_protocol.h"
#include "record/frames.h"
#include "record/transport.h"

/* How far the first has come; both see it. */
struct agent_seen {
	unsigned port[FRAME_CPUS];  /* where each CPU's pages are */
	unsigned cpus, page;        /* 0: it has not been told yet; bytes */
	bool answered;              /* whatever that was */
	bool connected, closed;     /* to all of them; it has been asked to end */
};

struct agent_watch {
	pid_t pid;
	int alive;                  /* socket between the two, which closes with the first */
	struct agent_seen *seen;
};
#define AGENT_WATCH_INIT { 0, -1, NULL }

/* Before anything is asked for on s.  -1 with errno. */
int agent_watch(struct agent_watch *w, const struct agent_way *way, int s);
/* What was asked for has its answer now, which may have no CPUs in it; -1: there is none. */
int agent_watch_answer(const struct agent_watch *w);
/* The conversation is over, or was given up: waits until the agent has put back what it found, or is not heard of. */
void agent_watch_end(struct agent_watch *w);

/* Brings what was asked for on s to its end; 0: the agent has hung up, as it does at last. */
int agent_wind_up(const struct agent_way *way, int s, struct agent_seen *seen);

#endif
