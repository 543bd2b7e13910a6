/* Watchdog process for a trace-cmd agent: ends the agent's tracing if the recorder is killed (private to record/).
 *
 * If its client disappears, an agent does not restore the guest's trace settings. It may exit on the broken connection
 * while it sends its event formats, with tracing off and events enabled; or it waits forever for a reader of a CPU's pages
 * and refuses all other clients. Only a complete protocol exchange restores the guest. So a second process, the watchdog,
 * inherits the connection and completes the exchange after the recorder has exited. The watchdog also receives the agent's
 * answer to the trace request, since a recorder that is killed may have read the answer without acting on it. */
#ifndef STEALSCOPE_RECORD_AGENT_WATCHDOG_H
#define STEALSCOPE_RECORD_AGENT_WATCHDOG_H

#include <sys/types.h>

#include "record/agent_protocol.h"
#include "record/frames.h"
#include "record/transport.h"

/* Progress of the recorder in the protocol, in memory shared with the watchdog. */
struct agent_progress {
	unsigned port[FRAME_CPUS];  /* vsock port on which the agent sends each CPU's pages */
	unsigned cpus, page;        /* number of CPUs (0: not reported yet); size of a trace page, bytes */
	bool answered;              /* the agent has answered the trace request, even if the answer is malformed */
	bool connected, closed;     /* the recorder connected to all ports; the recorder sent WIRE_CLOSE */
};

struct agent_watchdog {
	pid_t pid;                  /* the watchdog process; 0: none */
	int lifeline;               /* socket between recorder and watchdog; closes when the recorder exits; -1: none */
	struct agent_progress *progress;
};
#define AGENT_WATCHDOG_INIT { 0, -1, NULL }

/* Starts the watchdog; call it before the trace request is sent on socket s. Returns -1 with errno if that fails. */
int agent_watchdog_start(struct agent_watchdog *w, const struct agent_connection *connection, int s);
/* Waits until the watchdog has received the agent's answer. Returns -1 if there was none; progress->cpus is 0 if the answer
 * was malformed. */
int agent_watchdog_await_answer(const struct agent_watchdog *w);
/* Releases the watchdog, which completes the protocol, and waits for it to exit: the agent has restored the guest, or no
 * longer responds. */
void agent_watchdog_end(struct agent_watchdog *w);

/* Completes the protocol on socket s. Returns 0 after the agent has closed the connection, -1 if it does not. */
int agent_shut_down(const struct agent_connection *connection, int s, struct agent_progress *progress);

#endif
