/* A shell somewhere: how the script gets into a guest.  Whatever it is, it becomes a child process with a pipe to its
 * standard input, one from its output and one from its errors, in a session of its own (so that ^C on the host's terminal
 * is not for it), which dies with us. */
#ifndef STEALSCOPE_RECORD_TRANSPORT_H
#define STEALSCOPE_RECORD_TRANSPORT_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "record/record.h"

/* X(code, word, what follows it, what it is) */
#define TRANSPORTS(X) \
	X(TRANSPORT_NONE, "none", "", "from the host alone") \
	X(TRANSPORT_SSH, "ssh", "[USER@]HOST", "ssh, with a key (root, or sudo without a password)") \
	X(TRANSPORT_QGA, "qga", "[SOCKET or DOMAIN]", "QEMU's guest agent, through its socket or libvirt") \
	X(TRANSPORT_VSOCK, "vsock", "[CID]:PORT", "a shell that listens there in the guest") \
	X(TRANSPORT_AGENT, "agent", "[CID[:PORT]]", "an agent of trace-cmd that runs in the guest") \
	X(TRANSPORT_CMD, "cmd", "COMMAND", "a command that gives a shell on its input and output")

#define TRANSPORT_CODE(code, word, argument, what) code,
enum transport_kind { TRANSPORTS(TRANSPORT_CODE) TRANSPORT_KINDS };
#undef TRANSPORT_CODE

struct transport {
	enum transport_kind kind;
	char *argument;  /* behind the colon, or "" */
};

/* Reads "ssh:root@web", "none".  The caller releases. */
int transport_parse(const char *text, struct transport *t, struct error *err);
void transport_release(struct transport *t);
char *transport_text(const struct transport *t);  /* as it was written; the caller frees */
/* What leads into a guest without being told: its agent, if it has one. */
struct transport transport_guess(const struct vm *vm);
/* Fills in what the VM knows of itself: the agent's socket or libvirt's domain, the CID.  After that the VM is not needed,
 * not even by somebody who only finds the transport's text.  root: as in vms_find(). */
int transport_resolve(struct transport *t, const struct vm *vm, const char *root, struct error *err);

/* What to look at when no shell answers there. */
const char *transport_mend(const struct transport *t);

struct channel {
	pid_t pid;         /* 0: none */
	int in, out, err;  /* ours; not blocking; -1: closed */
};
#define CHANNEL_INIT { 0, -1, -1, -1 }

/* Starts a shell in the guest; the transport is resolved, name for messages. */
int channel_open(struct channel *c, const struct transport *t, const char *name, struct error *err);
/* Starts argv, or calls run(arg) in the child; what run() returns is its exit status. */
int channel_start(struct channel *c, char *const *argv, int (*run)(void *arg), void *arg, struct error *err);
void channel_close_input(struct channel *c);
/* Has it ended?  Then *status is its wait status, and pid is 0. */
bool channel_ended(struct channel *c, int *status);
/* Asks it to end, and hears no more of it. */
void channel_drop(struct channel *c);
/* Ends it, by force if need be. */
void channel_end(struct channel *c);
/* The same for any child of ours, or (below 0) for the group that it leads: by force after so many ms.  Its wait status. */
int child_end(pid_t child, int patience);

/* In a child: the guest agent's half of a transport (qga.c). */
#define QGA_PATIENCE 20000  /* ms for an answer */
struct qga { const char *socket, *domain; int patience /* ms */; };
int qga_relay(void *arg /* struct qga */);

/* The same for an agent of trace-cmd (tracecmd_agent.c).  dial: a socket to that port of the guest, or -1 with errno. */
#define AGENT_LOOK 300  /* ms after which an agent that is busy has hung up */
#define AGENT_BUSY 15000  /* ms for which it is called again then */
struct agent_way {
	unsigned cid, port;
	int (*dial)(const struct agent_way *way, unsigned port);
	int in, out, err;   /* words, frames, complaints */
	int look, busy;     /* ms; look 0: it is not looked whether it hangs up */
};
int agent_relay(void *arg /* struct agent_way */);

#endif
