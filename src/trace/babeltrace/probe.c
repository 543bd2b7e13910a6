#include "trace/babeltrace/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sandbox.h"
#include "trace/babeltrace/graph.h"
#include "trace/isolation/decoder_process.h"

#define TIMEOUT_MS 60000       /* maximum time without output of the child */
#define CPU_S 2                /* CPU time within which the library opens a small trace, s */
#define BYTES_PER_CPU_S (32U << 20)  /* size of a trace that it opens in another second: it reads the packet headers */
#define MAX_ANSWER (4U << 20)  /* maximum size of the names of the ports, bytes */
#define CRASHED "libbabeltrace2 crashed or hung while reading it"

/* First byte of the child's output. ANSWER_PORTS: the NUL-terminated names of the ports follow; ANSWER_ERROR: a struct
 * error. */
enum probe_answer { ANSWER_PORTS = 'p', ANSWER_ERROR = 'e' };

static void send_answer(int fd, struct event_mapping *mapping, char *const *dir, size_t n)
{
	struct error err = ERROR_INIT;
	const struct decoder *d = decoder_open(mapping, dir, n, &err);
	const char head = d ? ANSWER_PORTS : ANSWER_ERROR;
	ipc_send_bytes(fd, &head, 1);
	if (!d)
		ipc_send_bytes(fd, &err, sizeof err);
	for (size_t i = 0; d && i < decoder_ports(d); i++) {
		const char *name = decoder_port_name(d, i);
		ipc_send_bytes(fd, name, strlen(name) + 1);
	}
}

/* Reads the whole output of the child. Returns false after a timeout, or if the output is too long. */
static bool read_answer(int fd, char **text, size_t *len)
{
	size_t cap = 0;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	for (*len = 0; *len < MAX_ANSWER;) {
		if (*len == cap)
			*text = mem_resize(*text, cap = cap ? 2 * cap : 4096, 1);
		const int ready = poll(&p, 1, TIMEOUT_MS);
		const ssize_t got = ready > 0 ? read(fd, *text + *len, cap - *len) : ready;
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return ready > 0 && got == 0;
		*len += (size_t)got;
	}
	return false;
}

/* Parses the output. Trusts nothing in it, because the child may have overwritten its own memory. */
static void parse_answer(struct babeltrace_probe *t, const char *text, size_t len)
{
	if (len == 1 + sizeof t->err && text[0] == ANSWER_ERROR) {
		struct error e;
		memcpy(&e, text + 1, sizeof e);
		e.text[sizeof e.text - 1] = e.remedy[sizeof e.remedy - 1] = '\0';
		error_repeat(&t->err, e.status == STATUS_SYSTEM ? STATUS_SYSTEM : STATUS_INPUT, e.remedy, "%s", e.text);
	} else if (len && text[0] == ANSWER_PORTS && (len == 1 || !text[len - 1])) {
		t->opens = true;
		for (size_t at = 1; at < len; at += strlen(text + at) + 1)
			*ARRAY_PUSH(t->port, t->ports, t->ports_cap) = mem_dup(text + at);
	}
}

static pid_t start_child(int *fd, struct event_mapping *mapping, char *const *dir, size_t n, uint64_t bytes,
                         struct error *err)
{
	int ends[2];
	if (sandbox_check_memory(dir[0], err))
		return -1;
	if (pipe2(ends, O_CLOEXEC)) {
		error_system(err, NULL, "%s: cannot create a pipe", dir[0]);
		return -1;
	}
	const pid_t pid = fork();
	if (pid == 0) {
		close(ends[0]);
		sandbox_enter(&(struct sandbox){ .bytes = bytes, .cpu_s = (unsigned)(CPU_S + bytes / BYTES_PER_CPU_S) });
		send_answer(ends[1], mapping, dir, n);
		_exit(0);
	}
	close(ends[1]);
	*fd = ends[0];
	if (pid < 0) {
		error_system(err, NULL, "%s: cannot start a process", dir[0]);
		close(ends[0]);
	}
	return pid;
}

void babeltrace_probe_run(struct babeltrace_probe *t, struct event_mapping *mapping, char *const *dir, size_t n,
                          uint64_t bytes)
{
	char *text = NULL;
	size_t len = 0;
	int fd, status = 0;
	*t = (struct babeltrace_probe){ .err = ERROR_INIT };
	const pid_t pid = start_child(&fd, mapping, dir, n, bytes, &t->err);
	if (pid < 0)
		return;
	error_set(&t->err, STATUS_INPUT, "copy the trace again", "%s: %s", dir[0], CRASHED);
	const bool is_complete = read_answer(fd, &text, &len);
	close(fd);
	if (!is_complete)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (is_complete && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		parse_answer(t, text, len);
	free(text);
}

void babeltrace_probe_release(struct babeltrace_probe *t)
{
	for (size_t i = 0; i < t->ports; i++)
		free(t->port[i]);
	free(t->port);
	*t = (struct babeltrace_probe){ 0 };
}
