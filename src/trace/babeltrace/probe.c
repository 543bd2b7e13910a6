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
#include "trace/isolation/sandbox.h"
#include "trace/babeltrace/graph.h"
#include "trace/isolation/decoder_process.h"

#define PATIENCE 60000         /* ms without a word */
#define MOST_ANSWER (4U << 20) /* bytes: names of ports */
#define DIES "libbabeltrace2 does not survive reading it"

/* The child says one byte, and then: the names of the ports, each with its 0; or a struct error. */
enum attempt_answer { ANSWER_PORTS = 'p', ANSWER_ERROR = 'e' };

static void answer(int fd, struct meaning *meaning, char *const *dir, size_t n)
{
	struct error err = ERROR_INIT;
	const struct decoder *d = decoder_open(meaning, dir, n, &err);
	const char head = d ? ANSWER_PORTS : ANSWER_ERROR;
	tell_bytes(fd, &head, 1);
	if (!d)
		tell_bytes(fd, &err, sizeof err);
	for (size_t i = 0; d && i < decoder_ports(d); i++) {
		const char *name = decoder_port_name(d, i);
		tell_bytes(fd, name, strlen(name) + 1);
	}
}

/* All that it says until it ends; false: it went silent. */
static bool hear(int fd, char **text, size_t *len)
{
	size_t cap = 0;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	for (*len = 0; *len < MOST_ANSWER;) {
		if (*len == cap)
			*text = mem_resize(*text, cap = cap ? 2 * cap : 4096, 1);
		const int ready = poll(&p, 1, PATIENCE);
		const ssize_t got = ready > 0 ? read(fd, *text + *len, cap - *len) : ready;
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return ready > 0 && got == 0;
		*len += (size_t)got;
	}
	return false;
}

/* Nothing in it is believed before it is checked. */
static void understand(struct attempt *t, const char *text, size_t len)
{
	if (len == 1 + sizeof t->err && text[0] == ANSWER_ERROR) {
		struct error e;
		memcpy(&e, text + 1, sizeof e);
		e.text[sizeof e.text - 1] = e.mend[sizeof e.mend - 1] = '\0';
		error_set(&t->err, e.status == STATUS_SYSTEM ? STATUS_SYSTEM : STATUS_INPUT, e.mend, "%s", e.text);
	} else if (len && text[0] == ANSWER_PORTS && (len == 1 || !text[len - 1])) {
		t->opens = true;
		for (size_t at = 1; at < len; at += strlen(text + at) + 1)
			*ARRAY_PUSH(t->port, t->ports, t->ports_cap) = mem_dup(text + at);
	}
}

static pid_t start(int *fd, struct meaning *meaning, char *const *dir, size_t n, uint64_t bytes, struct error *err)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC)) {
		error_system(err, NULL, "%s: cannot make a pipe", dir[0]);
		return -1;
	}
	const pid_t pid = fork();
	if (pid == 0) {
		close(ends[0]);
		confine(&(struct confinement){ .bytes = bytes });
		answer(ends[1], meaning, dir, n);
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

void attempt_run(struct attempt *t, struct meaning *meaning, char *const *dir, size_t n, uint64_t bytes)
{
	char *text = NULL;
	size_t len = 0;
	int fd, status = 0;
	*t = (struct attempt){ .err = ERROR_INIT };
	const pid_t pid = start(&fd, meaning, dir, n, bytes, &t->err);
	if (pid < 0)
		return;
	error_set(&t->err, STATUS_INPUT, "copy the trace again", "%s: %s", dir[0], DIES);
	const bool over = hear(fd, &text, &len);
	close(fd);
	if (!over)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (over && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		understand(t, text, len);
	free(text);
}

void attempt_release(struct attempt *t)
{
	for (size_t i = 0; i < t->ports; i++)
		free(t->port[i]);
	free(t->port);
	*t = (struct attempt){ 0 };
}
