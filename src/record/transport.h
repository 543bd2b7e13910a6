/* Transports: ways to start a shell in a guest. An open transport (channel) is a child process with pipes for its
 * standard input, output and errors. The child runs in a separate session, so that ^C on the terminal does not reach it,
 * and gets SIGTERM when the recorder exits. */
#pragma once

#include <sys/types.h>

#include "base/base.h"
#include "record/record.h"

/* X(code, name, the argument's syntax) */
#define TRANSPORTS(X) \
	X(TRANSPORT_NONE, "none", "") \
	X(TRANSPORT_SSH, "ssh", "[USER@]HOST") \
	X(TRANSPORT_QGA, "qga", "[SOCKET or DOMAIN]") \
	X(TRANSPORT_VSOCK, "vsock", "[CID]:PORT") \
	X(TRANSPORT_CMD, "cmd", "COMMAND")

#define TRANSPORT_CODE(code, word, argument) code,
enum transport_kind { TRANSPORTS(TRANSPORT_CODE) TRANSPORT_KINDS };
#undef TRANSPORT_CODE

struct transport {
	enum transport_kind kind;
	char *argument;  /* text after the colon; "": none */
};

/* Parses a transport, "ssh:root@web" or "none". The caller calls transport_release(). */
int transport_parse(const char *text, struct transport *t, struct error *err);
void transport_release(struct transport *t);
/* Formats a transport in the same syntax; the caller frees. */
char *transport_text(const struct transport *t);
/* Returns the transport for a VM without a user's choice: its QEMU guest agent, or TRANSPORT_NONE. */
struct transport transport_default(const struct vm *vm);
/* Adds data of the VM to the argument: socket of the guest agent or libvirt domain, CID. The resulting transport does
 * not depend on the VM any more. root: as in vms_find(). */
int transport_resolve(struct transport *t, const struct vm *vm, const char *root, struct error *err);

/* Returns the advice for a shell that does not answer; NULL: none. */
const char *transport_remedy(const struct transport *t);

struct channel {
	pid_t pid;         /* the child; 0: none */
	int in, out, err;  /* our ends of the pipes to its standard files, non-blocking; -1: closed */
};
#define CHANNEL_INIT { 0, -1, -1, -1 }

/* Starts a shell in the guest. t: must be resolved; name: the VM's name, for messages. */
int channel_open(struct channel *c, const struct transport *t, const char *name, struct error *err);
/* Starts a child that executes argv, or run(arg) with the result as exit status. */
int channel_start(struct channel *c, char *const *argv, int (*run)(void *arg), void *arg, struct error *err);
void channel_close_input(struct channel *c);
/* Returns true if the child has ended, with its wait status in *status; sets pid to 0. */
bool channel_ended(struct channel *c, int *status);
/* Closes the pipes and sends SIGTERM to the child. */
void channel_drop(struct channel *c);
/* The same, and waits for the child to end; uses SIGKILL after a timeout. */
void channel_end(struct channel *c);
/* Ends a child by SIGTERM, and by SIGKILL after `timeout` ms. child < 0: the process group -child, which the child
 * leads. Returns the wait status. */
int child_end(pid_t child, int timeout);

/* Relays between the standard files and a shell that QEMU's guest agent starts (qga.c). Runs in a child. */
#define QGA_TIMEOUT 20000  /* ms for an answer of the agent */
struct qga { const char *socket, *domain; int timeout_ms; };
int qga_relay(void *arg /* struct qga */);
