#include "record/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/vm_sockets.h>

#include "base/mem.h"
#include "record/proc.h"

#define CONNECTING 10  /* s until a vsock answers, as for ssh: the 2 s of the kernel are few where CPUs are contended */
#define AGENT_PORT 823  /* where trace-cmd's agents listen */
#define PATIENCE 2000  /* ms that a child may take to end, */
#define DYING 15000    /* and when it was killed: it may hardly get a CPU for that */

#define TRANSPORT_ROW(code, word, argument, what) { word, argument },
static const struct { const char *word, *argument; } kinds[] = { TRANSPORTS(TRANSPORT_ROW) };

/* ---- what the user writes */

int transport_parse(const char *text, struct transport *t, struct error *err)
{
	const size_t n = strcspn(text, ":");
	for (size_t i = 0; i < TRANSPORT_KINDS; i++) {
		if (strlen(kinds[i].word) != n || strncmp(text, kinds[i].word, n) != 0)
			continue;
		const char *argument = text[n] ? text + n + 1 : "";
		const size_t form = strlen(kinds[i].argument);
		if (form && kinds[i].argument[form - 1] != ']' && !*argument)
			return error_set(err, STATUS_USAGE, kinds[i].word, "%s: %s is missing", text, kinds[i].argument);
		if (i == TRANSPORT_SSH && *argument == '-')
			return error_set(err, STATUS_USAGE, "ssh:[USER@]HOST", "%s: not a host", text);
		*t = (struct transport){ (enum transport_kind)i, mem_dup(argument) };
		return 0;
	}
	char all[200] = "one of";
	for (size_t i = 0; i < TRANSPORT_KINDS; i++) {
		const size_t used = strlen(all);
		snprintf(all + used, sizeof all - used, "%s %s%s%s", i ? "," : "", kinds[i].word, *kinds[i].argument ? ":" : "",
		         kinds[i].argument);
	}
	return error_set(err, STATUS_USAGE, all, "%s: no such way into a guest", text);
}

void transport_release(struct transport *t)
{
	free(t->argument);
	t->argument = NULL;
}

char *transport_text(const struct transport *t)
{
	return mem_printf("%s%s%s", kinds[t->kind].word, t->argument && *t->argument ? ":" : "",
	                  t->argument ? t->argument : "");
}

struct transport transport_guess(const struct vm *vm)
{
	const bool has_agent = vm->agent || vm->domain;
	return (struct transport){ has_agent ? TRANSPORT_QGA : TRANSPORT_NONE, mem_dup("") };
}

const char *transport_mend(const struct transport *t)
{
	static const char *const mend[TRANSPORT_KINDS] = {
		[TRANSPORT_SSH] = "does ssh -o BatchMode=yes HOST true work, as root of this host?",
		[TRANSPORT_QGA] = "does qemu-ga run in the guest, and may it guest-exec?",
		[TRANSPORT_VSOCK] = "in the guest: modprobe vmw_vsock_virtio_transport; socat VSOCK-LISTEN:PORT,fork EXEC:/bin/sh",
		[TRANSPORT_AGENT] = "in the guest: modprobe vmw_vsock_virtio_transport; trace-cmd agent -D",
		[TRANSPORT_CMD] = "try it by hand: it must give a shell that reads its standard input",
	};
	return mend[t->kind];
}

/* ---- child processes */

static void become(int in, int out, int errors)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	setsid();
	if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(errors, 2) < 0)
		_exit(127);
	syscall(SYS_close_range, 3U, ~0U, 0U);  /* the ends of other guests' pipes */
	signal(SIGPIPE, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void close_pair(int pair[2])
{
	for (int i = 0; i < 2; i++)
		if (pair[i] >= 0)
			close(pair[i]);
}

int channel_start(struct channel *c, char *const *argv, int (*run)(void *arg), void *arg, struct error *err)
{
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, errors[2] = { -1, -1 };
	*c = (struct channel)CHANNEL_INIT;
	const pid_t parent = getpid();
	if (pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 && pipe2(errors, O_CLOEXEC) == 0)
		c->pid = fork();
	else
		c->pid = -1;
	if (c->pid == 0) {
		become(in[0], out[1], errors[1]);
		if (getppid() != parent)
			_exit(127);
		if (run) {
			signal(SIGUSR1, SIG_IGN);  /* a trigger: for us, even where all of our name are sent it */
			_exit(run(arg));
		}
		execvp(argv[0], argv);
		dprintf(2, "%s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	if (c->pid < 0) {
		c->pid = 0;
		error_system(err, NULL, "%s: cannot be started", argv ? argv[0] : "transport");
		close_pair(in);
		close_pair(out);
		close_pair(errors);
		return -1;
	}
	close(in[0]);
	close(out[1]);
	close(errors[1]);
	*c = (struct channel){ c->pid, in[1], out[0], errors[0] };
	const int fd[] = { c->in, c->out, c->err };
	for (int i = 0; i < 3; i++)
		fcntl(fd[i], F_SETFL, O_NONBLOCK);
	return 0;
}

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void channel_close_input(struct channel *c)
{
	close_end(&c->in);
}

bool channel_ended(struct channel *c, int *status)
{
	if (!c->pid || waitpid(c->pid, status, WNOHANG) != c->pid)
		return false;
	c->pid = 0;
	return true;
}

void channel_drop(struct channel *c)
{
	close_end(&c->in);
	close_end(&c->out);
	close_end(&c->err);
	if (c->pid)
		kill(c->pid, SIGTERM);
}

/* Has it ended, within so many ms? */
static bool wait_for(pid_t child, int *status, int patience)
{
	const struct timespec tick = { 0, 10000000 };
	for (int ms = 0; ms <= patience; ms += 10) {
		if (waitpid(child, status, WNOHANG) != 0)
			return true;
		nanosleep(&tick, NULL);
	}
	return false;
}

int child_end(pid_t child, int patience)
{
	const pid_t pid = child < 0 ? -child : child;
	int status = 0;
	kill(child, SIGTERM);
	if (!wait_for(pid, &status, patience)) {
		kill(child, SIGKILL);
		wait_for(pid, &status, DYING);  /* one that sits in the kernel for good is left to itself */
	}
	return status;
}

void channel_end(struct channel *c)
{
	channel_drop(c);
	if (c->pid)
		child_end(c->pid, PATIENCE);
	c->pid = 0;
}

/* ---- kinds */

static int open_ssh(struct channel *c, const struct transport *t, struct error *err)
{
	static char shell[] = "exec sh -c 'if [ \"$(id -u)\" = 0 ]; then exec sh; else exec sudo -n sh; fi'";
	char *argv[] = { "ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5", "-o",
		"ServerAliveCountMax=3", "-o", "ForwardX11=no", "-o", "ForwardAgent=no", "-o", "ControlMaster=no", "--",
		t->argument, shell, NULL };
	return channel_start(c, argv, NULL, NULL, err);
}

static int open_command(struct channel *c, const struct transport *t, struct error *err)
{
	char *argv[] = { "/bin/sh", "-c", t->argument, NULL };
	return channel_start(c, argv, NULL, NULL, err);
}

/* Copies both ways until the other end closes.  The process ends then. */
static int relay(int s)
{
	const size_t room = 65536;
	char *buf = mem_resize(NULL, room, 1);
	fd_set set;
	bool open = true;
	for (;;) {
		FD_ZERO(&set);
		FD_SET(s, &set);
		if (open)
			FD_SET(0, &set);
		if (select(s + 1, &set, NULL, NULL, NULL) < 0)
			return 1;
		ssize_t n = FD_ISSET(s, &set) ? read(s, buf, room) : -2;
		if (n == 0 || n == -1)
			return 0;
		for (ssize_t at = 0, put; at < n; at += put)
			if ((put = write(1, buf + at, (size_t)(n - at))) < 0)
				return 1;
		n = open && FD_ISSET(0, &set) ? read(0, buf, room) : -2;
		if (n == 0 || n == -1) {
			open = false;
			shutdown(s, SHUT_WR);
		}
		for (ssize_t at = 0, put; at < n; at += put)
			if ((put = write(s, buf + at, (size_t)(n - at))) < 0)
				return 1;
	}
}

static int dial_vsock(const struct agent_way *way, unsigned port)
{
	const struct sockaddr_vm address = { .svm_family = AF_VSOCK, .svm_cid = way->cid, .svm_port = port };
	const struct timeval patience = { CONNECTING, 0 };
	const int s = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (s >= 0)
		setsockopt(s, AF_VSOCK, SO_VM_SOCKETS_CONNECT_TIMEOUT, &patience, sizeof patience);
	if (s >= 0 && connect(s, (const struct sockaddr *)&address, sizeof address) == 0)
		return s;
	const int why = errno;
	if (s >= 0)
		close(s);
	errno = why;
	return -1;
}

static int vsock_relay(void *arg)
{
	const struct agent_way *way = arg;
	const int s = dial_vsock(way, way->port);
	if (s >= 0)
		return relay(s);
	dprintf(2, "vsock %u:%u: %s\n", way->cid, way->port, strerror(errno));
	return 1;
}

/* "CID:PORT" */
static int open_vsock(struct channel *c, const struct transport *t, struct error *err)
{
	struct agent_way way = { .dial = dial_vsock, .in = 0, .out = 1, .err = 2, .look = AGENT_LOOK,
		.busy = AGENT_BUSY };
	if (sscanf(t->argument, "%u:%u", &way.cid, &way.port) != 2)
		return error_set(err, STATUS_USAGE, "vsock:CID:PORT", "vsock:%s: not an address", t->argument);
	return channel_start(c, NULL, t->kind == TRANSPORT_AGENT ? agent_relay : vsock_relay, &way, err);
}

/* A path is a socket, any other word a domain of libvirt. */
static int open_qga(struct channel *c, const struct transport *t, struct error *err)
{
	struct qga q = { NULL, NULL, QGA_PATIENCE };
	*(strchr(t->argument, '/') ? &q.socket : &q.domain) = t->argument;
	return channel_start(c, NULL, qga_relay, &q, err);
}

int channel_open(struct channel *c, const struct transport *t, const char *name, struct error *err)
{
	*c = (struct channel)CHANNEL_INIT;
	switch (t->kind) {
	case TRANSPORT_SSH:
		return open_ssh(c, t, err);
	case TRANSPORT_QGA:
		return open_qga(c, t, err);
	case TRANSPORT_VSOCK:
	case TRANSPORT_AGENT:
		return open_vsock(c, t, err);
	case TRANSPORT_CMD:
		return open_command(c, t, err);
	default:
		return error_set(err, STATUS_INPUT, "NAME=ssh:HOST, NAME=qga:, NAME=cmd:COMMAND ...", "no way into %s is known",
		                 name);
	}
}

/* ---- what the VM knows of itself */

static void set_argument(struct transport *t, char *argument)
{
	free(t->argument);
	t->argument = argument;
}

/* "[CID]:PORT" or "PORT", and of an agent neither need be said. */
static int resolve_vsock(struct transport *t, const struct vm *vm, uint64_t port, struct error *err)
{
	const char *colon = strrchr(t->argument, ':');
	char *first = mem_printf("%.*s", colon ? (int)(colon - t->argument) : 0, t->argument);
	const char *last = colon ? colon + 1 : t->argument;
	uint64_t cid = vm->cid;
	const bool valid = (!*first || proc_is_number(first, UINT32_MAX, &cid)) &&
	                   (!*last || proc_is_number(last, UINT32_MAX, &port));
	free(first);
	if (!valid || !port)
		return error_set(err, STATUS_USAGE, "vsock:[CID]:PORT", "%s: not an address of a vsock", t->argument);
	if (!cid)
		return error_set(err, STATUS_INPUT, "give it a device vhost-vsock, or name its CID: vsock:CID:PORT",
		                 "%s has no vsock", vm->name);
	set_argument(t, mem_printf("%llu:%llu", (unsigned long long)cid, (unsigned long long)port));
	return 0;
}

int transport_resolve(struct transport *t, const struct vm *vm, const char *root, struct error *err)
{
	if (t->kind == TRANSPORT_VSOCK || t->kind == TRANSPORT_AGENT)
		return resolve_vsock(t, vm, t->kind == TRANSPORT_AGENT ? AGENT_PORT : 0, err);
	if (t->kind != TRANSPORT_QGA || *t->argument)
		return 0;
	if (vm->domain)
		set_argument(t, mem_dup(vm->domain));
	else if (vm->agent)
		set_argument(t, mem_printf("%s%s", root, vm->agent));
	else
		return error_set(err, STATUS_INPUT, "give it a channel org.qemu.guest_agent.0, or another way: NAME=ssh:HOST",
		                 "%s has no guest agent", vm->name);
	return 0;
}
