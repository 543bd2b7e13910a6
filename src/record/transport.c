#include "record/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/vm_sockets.h>

#include "record/proc.h"

#define CONNECT_TIMEOUT 10  /* s to connect a vsock, as for ssh: the kernel's 2 s are too short on contended CPUs */
#define TERM_TIMEOUT 2000   /* ms for a child to end after SIGTERM */
#define KILL_TIMEOUT 15000  /* ms for a child to end after SIGKILL; CPUs may be contended */

#define TRANSPORT_ROW(code, word, argument) { word, argument },
static const struct { const char *word, *argument; } kinds[] = { TRANSPORTS(TRANSPORT_ROW) };

/* ---- syntax */

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
			return error_set(err, STATUS_USAGE, "use ssh:[USER@]HOST", "%s: invalid host name", text);
		*t = (struct transport){ (enum transport_kind)i, mem_dup(argument) };
		return 0;
	}
	char all[200] = "one of";
	for (size_t i = 0; i < TRANSPORT_KINDS; i++) {
		const size_t used = strlen(all);
		snprintf(all + used, sizeof all - used, "%s %s%s%s", i ? "," : "", kinds[i].word, *kinds[i].argument ? ":" : "",
		         kinds[i].argument);
	}
	return error_set(err, STATUS_USAGE, all, "%s: unknown transport", text);
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

struct transport transport_default(const struct vm *vm)
{
	const bool has_agent = vm->agent || vm->domain;
	return (struct transport){ has_agent ? TRANSPORT_QGA : TRANSPORT_NONE, mem_dup("") };
}

const char *transport_remedy(const struct transport *t)
{
	static const char *const remedy[TRANSPORT_KINDS] = {
		[TRANSPORT_SSH] = "check that ssh -o BatchMode=yes HOST true works as root of this host",
		[TRANSPORT_QGA] = "check that qemu-ga runs in the guest and allows guest-exec",
		[TRANSPORT_VSOCK] = "in the guest: modprobe vmw_vsock_virtio_transport; socat VSOCK-LISTEN:PORT,fork EXEC:/bin/sh",
		[TRANSPORT_CMD] = "run the command by hand: it must start a shell that reads commands from its standard input",
	};
	return remedy[t->kind];
}

/* ---- child processes */

static void redirect_standard_files(int in, int out, int errors)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	setsid();
	if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(errors, 2) < 0)
		_exit(127);
	syscall(SYS_close_range, 3U, ~0U, 0U);  /* pipe ends of other guests */
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
		redirect_standard_files(in[0], out[1], errors[1]);
		if (getppid() != parent)
			_exit(127);
		if (run) {
			signal(SIGUSR1, SIG_IGN);  /* pkill -USR1 stealscope also signals this process, but is meant for the recorder */
			_exit(run(arg));
		}
		execvp(argv[0], argv);
		dprintf(2, "%s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	if (c->pid < 0) {
		c->pid = 0;
		error_system(err, NULL, "cannot start %s", argv ? argv[0] : "the transport");
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

/* Waits at most `timeout` ms for the child to end. Returns false if it still runs. */
static bool wait_for(pid_t child, int *status, int timeout)
{
	const struct timespec tick = { 0, 10000000 };
	for (int ms = 0; ms <= timeout; ms += 10) {
		if (waitpid(child, status, WNOHANG) != 0)
			return true;
		nanosleep(&tick, NULL);
	}
	return false;
}

int child_end(pid_t child, int timeout)
{
	const pid_t pid = child < 0 ? -child : child;
	int status = 0;
	kill(child, SIGTERM);
	if (!wait_for(pid, &status, timeout)) {
		kill(child, SIGKILL);
		wait_for(pid, &status, KILL_TIMEOUT);  /* a child that is stuck in the kernel is left */
	}
	return status;
}

void channel_end(struct channel *c)
{
	channel_drop(c);
	if (c->pid)
		child_end(c->pid, TERM_TIMEOUT);
	c->pid = 0;
}

/* ---- kinds of transports */

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

/* Copies between the socket and the standard files until the peer closes the socket. Returns an exit status. */
static int relay_socket(int s)
{
	const size_t size = 65536;
	char *buf = mem_resize(NULL, size, 1);
	fd_set set;
	bool open = true;
	for (;;) {
		FD_ZERO(&set);
		FD_SET(s, &set);
		if (open)
			FD_SET(0, &set);
		if (select(s + 1, &set, NULL, NULL, NULL) < 0)
			return 1;
		ssize_t n = FD_ISSET(s, &set) ? read(s, buf, size) : -2;
		if (n == 0 || n == -1)
			return 0;
		for (ssize_t at = 0, put; at < n; at += put)
			if ((put = write(1, buf + at, (size_t)(n - at))) < 0)
				return 1;
		n = open && FD_ISSET(0, &set) ? read(0, buf, size) : -2;
		if (n == 0 || n == -1) {
			open = false;
			shutdown(s, SHUT_WR);
		}
		for (ssize_t at = 0, put; at < n; at += put)
			if ((put = write(s, buf + at, (size_t)(n - at))) < 0)
				return 1;
	}
}

static int dial_vsock(const struct sockaddr_vm *address)
{
	const struct timeval timeout = { CONNECT_TIMEOUT, 0 };
	const int s = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (s >= 0)
		setsockopt(s, AF_VSOCK, SO_VM_SOCKETS_CONNECT_TIMEOUT, &timeout, sizeof timeout);
	if (s >= 0 && connect(s, (const struct sockaddr *)address, sizeof *address) == 0)
		return s;
	const int why = errno;
	if (s >= 0)
		close(s);
	errno = why;
	return -1;
}

static int vsock_relay(void *arg)
{
	const struct sockaddr_vm *address = arg;
	const int s = dial_vsock(address);
	if (s >= 0)
		return relay_socket(s);
	dprintf(2, "vsock %u:%u: %s\n", address->svm_cid, address->svm_port, strerror(errno));
	return 1;
}

/* Opens a vsock transport; argument: "CID:PORT". */
static int open_vsock(struct channel *c, const struct transport *t, struct error *err)
{
	struct sockaddr_vm address = { .svm_family = AF_VSOCK };
	if (sscanf(t->argument, "%u:%u", &address.svm_cid, &address.svm_port) != 2)
		return error_set(err, STATUS_USAGE, "use vsock:CID:PORT", "vsock:%s: invalid address", t->argument);
	return channel_start(c, NULL, vsock_relay, &address, err);
}

/* Opens a qga transport; argument: a path (the agent's socket) or a libvirt domain's name. */
static int open_qga(struct channel *c, const struct transport *t, struct error *err)
{
	struct qga q = { NULL, NULL, QGA_TIMEOUT };
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
		return open_vsock(c, t, err);
	case TRANSPORT_CMD:
		return open_command(c, t, err);
	default:
		return error_set(err, STATUS_INPUT, "use NAME=ssh:HOST, NAME=qga:, NAME=cmd:COMMAND ...",
		                 "no way to reach the guest %s is configured", name);
	}
}

/* ---- data of the VM */

static void set_argument(struct transport *t, char *argument)
{
	free(t->argument);
	t->argument = argument;
}

/* Completes "[CID]:PORT" or "PORT". */
static int resolve_vsock(struct transport *t, const struct vm *vm, struct error *err)
{
	const char *colon = strrchr(t->argument, ':');
	char *first = mem_printf("%.*s", colon ? (int)(colon - t->argument) : 0, t->argument);
	const char *last = colon ? colon + 1 : t->argument;
	uint64_t cid = vm->cid, port = 0;
	const bool valid = (!*first || proc_parse_number(first, UINT32_MAX, &cid)) &&
	                   (!*last || proc_parse_number(last, UINT32_MAX, &port));
	free(first);
	if (!valid || !port)
		return error_set(err, STATUS_USAGE, "use vsock:[CID]:PORT", "%s: invalid vsock address", t->argument);
	if (!cid)
		return error_set(err, STATUS_INPUT, "add a vhost-vsock device to the VM, or specify its CID: vsock:CID:PORT",
		                 "%s has no vsock device", vm->name);
	set_argument(t, mem_printf("%llu:%llu", (unsigned long long)cid, (unsigned long long)port));
	return 0;
}

int transport_resolve(struct transport *t, const struct vm *vm, const char *root, struct error *err)
{
	if (t->kind == TRANSPORT_VSOCK)
		return resolve_vsock(t, vm, err);
	if (t->kind != TRANSPORT_QGA || *t->argument)
		return 0;
	if (vm->domain)
		set_argument(t, mem_dup(vm->domain));
	else if (vm->agent)
		set_argument(t, mem_printf("%s%s", root, vm->agent));
	else
		return error_set(err, STATUS_INPUT,
		                 "add a channel org.qemu.guest_agent.0 to the VM, or use another transport: NAME=ssh:HOST",
		                 "%s has no QEMU guest agent", vm->name);
	return 0;
}
