/* Client of a trace-cmd agent that already runs in a guest and is used instead of a shell. guest.c talks to this client
 * as to the script guest.sh: same commands, same frames. The client talks to the agent as trace-cmd does. Runs in a
 * child process.
 *
 * The agent traces from the request until WIRE_CLOSE, and sends pages all the time. The client stores them in unnamed
 * files until guest.c sends the command `send`. On WIRE_CLOSE the agent restores the guest's settings; if this process
 * is killed, the watchdog (agent_watchdog.h) sends WIRE_CLOSE. libtracecmd has the same functions, but no public header
 * declares them. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/clock.h"
#include "base/number.h"
#include "record/tracecmd_head.h"
#include "record/agent_watchdog.h"
#include "record/agent_protocol.h"
#include "record/frames.h"
#include "record/transport.h"

#define ANSWER_TIMEOUT 20    /* s for an answer of the agent */
#define REDIAL_NS 200000000  /* ns between two connections to a busy agent */
#define BUFFER_KB 4096       /* KiB of a CPU's buffer in the guest, which the agent reads continuously */
#define MAX_HEAD (64 << 20)  /* bytes of the head of trace.dat */
#define MAX_FILE (1LL << 30) /* maximum bytes of the file with a CPU's pages */
#define CHUNK (1 << 20)
#define MISSED (1U << 31)    /* bit of a page's commit field: events before the page were lost */
#define MISSED_COUNTED (1U << 30)  /* bit of the same field: the number of lost events follows the data */

struct agent_cpu { int s, file; int64_t bytes; };  /* socket; descriptor of the unnamed file, and its size */

struct agent_client {
	const struct agent_connection *connection;
	char line[65536];            /* input from guest.c that was not handled yet */
	char pages[65536];           /* buffer for copying pages */
	size_t line_len;
	char *key, *task, *clock, *events;  /* variables sent by guest.c, described in guest.sh */
	bool overwrite;              /* flight recording, which is refused */
	int s;                       /* connection to the agent; -1: none */
	struct agent_watchdog watch;
	unsigned cpus, page;         /* number of CPUs (0: tracing has not started); a page's size, bytes */
	size_t commit_offset, commit_len;  /* offset and size of the commit field in a page, bytes */
	size_t data_offset;          /* offset of the events in a page, bytes */
	struct agent_cpu *cpu;
	struct agent_head head;
	char *bytes;                 /* the head of trace.dat as received; `head` points into it */
};

static int report_failure(const struct agent_client *t, const char *problem)
{
	dprintf(t->connection->err, "agent of trace-cmd at vsock %u:%u: %s\n", t->connection->cid, t->connection->port,
	        problem);
	return -1;
}

/* ---- frames to guest.c */

static int write_output(const struct agent_client *t, const void *data, size_t len)
{
	for (size_t at = 0; at < len;) {
		const ssize_t n = write(t->connection->out, (const char *)data + at, len - at);
		if (n < 0)
			return -1;
		at += (size_t)n;
	}
	return 0;
}

static int send_frame(const struct agent_client *t, const char *name, const void *data, size_t len)
{
	char head[128];
	snprintf(head, sizeof head, "%s %s %zu\n", t->key, name, len);
	return write_output(t, head, strlen(head)) || write_output(t, data, len) ? -1 : 0;
}

static int frame_text(const struct agent_client *t, const char *name, const char *text)
{
	return send_frame(t, name, text, strlen(text));
}

/* ---- commands from guest.c */

/* Reads available input once. Returns false at its end. */
static bool read_input(struct agent_client *t)
{
	const ssize_t n = t->line_len < sizeof t->line ?
	                      read(t->connection->in, t->line + t->line_len, sizeof t->line - t->line_len)
	                    : 0;
	if (n > 0)
		t->line_len += (size_t)n;
	return n > 0;
}

/* Returns the input's next line, which the caller frees; NULL: it is incomplete. */
static char *next_line(struct agent_client *t)
{
	const char *end = memchr(t->line, '\n', t->line_len);
	if (!end)
		return NULL;
	const size_t len = (size_t)(end - t->line);
	char *line = mem_printf("%.*s", (int)len, t->line);
	t->line_len -= len + 1;
	memmove(t->line, t->line + len + 1, t->line_len);
	return line;
}

/* Returns the value of a variable in a line of assignments, task=trace or clocks='x86-tsc mono'; "": none. The caller
 * frees. */
static char *line_value(const char *line, const char *name)
{
	const size_t n = strlen(name);
	const char *at = line;
	while (at && (strncmp(at, name, n) != 0 || at[n] != '='))
		at = (at = strchr(at, ' ')) ? at + 1 : NULL;
	if (!at)
		return mem_dup("");
	at += n + 1;
	const bool quoted = *at == '\'';
	return mem_printf("%.*s", (int)strcspn(at + quoted, quoted ? "'" : " "), at + quoted);
}

/* Reads the variables in the first line, and skips the script, which is for shells. */
static int read_settings(struct agent_client *t)
{
	bool complete = false;
	while (!complete) {
		char *line = next_line(t);
		if (!line && !read_input(t))
			return -1;
		if (line && !t->key) {
			char *overwrite = line_value(line, "overwrite"), *clocks = line_value(line, "clocks");
			t->key = line_value(line, "key");
			t->task = line_value(line, "task");
			t->events = line_value(line, "events");
			t->clock = mem_printf("%.*s", (int)strcspn(clocks, " "), clocks);
			t->overwrite = strcmp(overwrite, "1") == 0;
			free(overwrite);
			free(clocks);
		}
		complete = line && strcmp(line, "stealscope_guest") == 0;
		free(line);
	}
	return 0;
}

/* ---- requests to the agent */

static int dial_port(struct agent_client *t, unsigned port)
{
	const struct timeval timeout = { ANSWER_TIMEOUT, 0 };
	const int s = t->connection->dial(t->connection, port);
	if (s < 0)
		return report_failure(t, strerror(errno));
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
	setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
	return s;
}

/* Connects to the agent. A busy agent closes the connection immediately; retries for a while, since the agent may be
 * ending the trace of a killed recorder. */
static int call_agent(struct agent_client *t)
{
	const int64_t end = now_ns() + t->connection->busy_ms * (NS_PER_S / 1000);
	do {
		if (t->s >= 0)
			close(t->s);
		if (t->s >= 0)
			nanosleep(&(struct timespec){ 0, REDIAL_NS }, NULL);
		t->s = dial_port(t, t->connection->port);
		if (t->s < 0)
			return -1;
		struct pollfd p = { t->s, POLLIN, 0 };
		if (!t->connection->probe_ms || poll(&p, 1, t->connection->probe_ms) == 0)
			return 0;
	} while (now_ns() < end);
	return report_failure(t, "the agent closed the connection: it may be recording for another client");
}

/* Returns a trace request: options of trace-cmd record, separated by NUL. -i skips events that do not exist. The caller
 * frees. */
static char *make_request(const struct agent_client *t, size_t *len)
{
	const char *clock = *t->clock ? t->clock : "local";
	char *text = mem_printf("-i\n-C\n%s\n-b\n%d\n--file-version\n6\n-O\nrecord-tgid\n", clock, BUFFER_KB);
	char *events = mem_dup(t->events), *rest = NULL;
	uint32_t words = 9;
	for (char *e = strtok_r(events, " ", &rest); e; e = strtok_r(NULL, " ", &rest), words += 2) {
		char *longer = mem_printf("%s-e\n%.*s:%s\n", text, (int)strcspn(e, "/"), e, e + strcspn(e, "/") + 1);
		free(text);
		text = longer;
	}
	const size_t n = strlen(text);
	char *request = mem_new(n + 13, 1);
	wire_put_u32(request, 0);  /* kind of the argument: options */
	wire_put_u32(request + 4, (uint32_t)n + 4);
	wire_put_u32(request + 8, words);
	memcpy(request + 12, text, n);
	for (char *at = request + 12; (at = memchr(at, '\n', (size_t)(request + 12 + n - at))); at++)
		*at = '\0';
	*len = n + 12;
	free(events);
	free(text);
	return request;
}

static int request_trace(struct agent_client *t)
{
	const unsigned char args[16] = { 0 };  /* no flags and no FIFOs */
	size_t len;
	char *request = make_request(t, &len);
	const int rc = wire_send(t->s, WIRE_REQUEST, args, sizeof args, request, len);
	free(request);
	return rc ? report_failure(t, strerror(errno)) : 0;
}

static int receive_head(struct agent_client *t, struct wire_message *m)
{
	size_t len = 0;
	int rc;
	while ((rc = wire_receive(t->s, m)) == 0 && m->command == WIRE_DATA && len + m->payload_len < MAX_HEAD) {
		t->bytes = mem_resize(t->bytes, len + m->payload_len, 1);
		memcpy(t->bytes + len, m->payload, m->payload_len);
		len += m->payload_len;
	}
	if (rc || m->command != WIRE_END_OF_DATA || agent_head_parse(&t->head, t->bytes, len))
		return report_failure(t, rc ? strerror(errno) : "protocol error: malformed event formats from the agent");
	return 0;
}

/* Finds the commit field and the data in a page from the format header_page. */
static int find_commit(struct agent_client *t)
{
	char *text = mem_printf("%.*s", (int)t->head.header_page.len, t->head.header_page.at);
	const char *commit = strstr(text, " commit;"), *data = strstr(text, " data;");
	const bool found = commit && data &&
	                   sscanf(commit, " commit; offset:%zu; size:%zu", &t->commit_offset, &t->commit_len) == 2 &&
	                   sscanf(data, " data; offset:%zu", &t->data_offset) == 1 && t->data_offset < t->page / 2 &&
	                   (t->commit_len == 4 || t->commit_len == 8) && t->data_offset >= t->commit_len &&
	                   t->commit_offset <= t->data_offset - t->commit_len;
	free(text);
	return found ? 0 : report_failure(t, "protocol error: unexpected page format of the guest's kernel");
}

/* Connects to the ports of all CPUs, since the agent handles no message before that, and opens files for their pages. */
static int open_cpus(struct agent_client *t)
{
	const char *tmpdir = getenv("TMPDIR");
	t->cpus = t->watch.progress->cpus;
	t->page = t->watch.progress->page;
	t->cpu = mem_new(t->cpus, sizeof *t->cpu);
	for (unsigned i = 0; i < t->cpus; i++)
		t->cpu[i] = (struct agent_cpu){ -1, -1, 0 };
	for (unsigned i = 0; i < t->cpus; i++) {
		t->cpu[i].s = dial_port(t, t->watch.progress->port[i]);
		if (t->cpu[i].s < 0)
			return -1;
	}
	t->watch.progress->connected = true;
	for (unsigned i = 0; i < t->cpus; i++) {
		t->cpu[i].file = open(tmpdir ? tmpdir : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		if (t->cpu[i].file < 0)
			return report_failure(t, "cannot create a file for the pages in TMPDIR or /var/tmp");
	}
	return 0;
}

static int send_about(const struct agent_client *t)
{
	char host[65] = "", release[65] = "", machine[65] = "";
	const struct agent_head *h = &t->head;
	if (h->system)
		sscanf(h->system, "%*s %64s %64s %64s", host, release, machine);
	char *text = h->system ? mem_printf("osrelease %s\nhostname %s\nmachine %s\nclock %s\nevents%s\n", release, host,
	                                    machine, t->clock, h->events)
	                       : mem_printf("clock %s\n", t->clock);
	const int rc = frame_text(t, "about", text);
	free(text);
	return rc;
}

static int send_start(const struct agent_client *t)
{
	const struct agent_head *h = &t->head;
	return send_about(t) || send_frame(t, "header_page", h->header_page.at, h->header_page.len) ||
	       send_frame(t, "header_event", h->header_event.at, h->header_event.len) ||
	       send_frame(t, "formats", h->formats, h->formats_len) || frame_text(t, "started", "") ? -1 : 0;
}

static int begin_trace(struct agent_client *t)
{
	struct wire_message m = { 0 };
	int rc = -1;
	if (agent_watchdog_start(&t->watch, t->connection, t->s))
		report_failure(t, strerror(errno));
	else if (request_trace(t) || agent_watchdog_await_answer(&t->watch))
		report_failure(t, "the agent rejected the request: trace-cmd is older than 3.1, or the guest's kernel lacks the "
		                  "trace clock");
	else if (!t->watch.progress->cpus)
		report_failure(t, "protocol error: malformed answer to the trace request");
	else if (!open_cpus(t) && !receive_head(t, &m) && !find_commit(t))
		rc = send_start(t);
	free(m.bytes);
	return rc;
}

/* ---- pages */

static int store_pages(struct agent_client *t, struct agent_cpu *c)
{
	const ssize_t n = read(c->s, t->pages, sizeof t->pages);
	if (n <= 0) {
		close(c->s);
		c->s = -1;
		return n < 0 ? report_failure(t, strerror(errno)) : 0;
	}
	c->bytes += n;
	const bool fits = c->bytes <= MAX_FILE && write(c->file, t->pages, (size_t)n) == n;
	return fits ? 0 : report_failure(t, "cannot store the pages: the temporary directory is full, or they exceed 1 GiB per "
	                                    "CPU");
}

/* Waits for input and handles it once: pages, and unless `closing` commands and the end of the agent's connection.
 * Returns false at an end or error. */
static bool handle_input(struct agent_client *t, bool closing)
{
	struct pollfd *p = mem_new(t->cpus + 2, sizeof *p);
	p[0] = (struct pollfd){ closing ? -1 : t->connection->in, POLLIN, 0 };
	p[1] = (struct pollfd){ closing ? -1 : t->s, POLLIN, 0 };
	for (unsigned i = 0; i < t->cpus; i++)
		p[i + 2] = (struct pollfd){ t->cpu[i].s, POLLIN, 0 };
	bool open = poll(p, t->cpus + 2, ANSWER_TIMEOUT * 1000) >= 0;
	for (unsigned i = 0; i < t->cpus && open; i++)
		open = !p[i + 2].revents || store_pages(t, &t->cpu[i]) == 0;
	if (p[1].revents && open)
		open = report_failure(t, "the agent closed the connection during the recording") == 0;
	if (p[0].revents && open)
		open = read_input(t);
	free(p);
	return open;
}

/* Waits for the next command, while it handles pages. The caller frees the command; NULL: end of the input, or an error. */
static char *await_command(struct agent_client *t)
{
	char *line;
	while (!(line = next_line(t)))
		if (!handle_input(t, false))
			return NULL;
	return line;
}

static bool all_cpus_ended(const struct agent_client *t)
{
	for (unsigned i = 0; i < t->cpus; i++)
		if (t->cpu[i].s >= 0)
			return false;
	return true;
}

static int finish_trace(struct agent_client *t)
{
	const int64_t end = now_ns() + ANSWER_TIMEOUT * NS_PER_S;
	if (wire_send(t->s, WIRE_CLOSE, NULL, 0, NULL, 0))
		return report_failure(t, strerror(errno));
	t->watch.progress->closed = true;
	while (!all_cpus_ended(t) && now_ns() < end && handle_input(t, true))
		;
	close(t->s);
	t->s = -1;
	return all_cpus_ended(t) ? frame_text(t, "stopped", "") : report_failure(t, "the agent did not end the trace in time");
}

/* Returns the number of events lost before a page; 1 if the page does not record the number. */
static uint64_t missed_events(const struct agent_client *t, const char *page)
{
	uint32_t commit;
	uint64_t count = 1;
	memcpy(&commit, page + t->commit_offset, sizeof commit);
	const size_t end = t->data_offset + (commit & ~(MISSED | MISSED_COUNTED));
	if (!(commit & MISSED))
		return 0;
	if ((commit & MISSED_COUNTED) && end <= t->page - t->commit_len)
		memcpy(&count, page + end, t->commit_len);
	return t->commit_len == 4 ? (uint32_t)count : count;
}

static int send_cpu(const struct agent_client *t, unsigned cpu)
{
	const struct agent_cpu *c = &t->cpu[cpu];
	const size_t chunk = CHUNK / t->page * t->page;
	char *data = mem_new(chunk, 1), name[32], stats[160];
	uint64_t lost = 0;
	ssize_t n = 0;
	int rc = 0;
	snprintf(name, sizeof name, "pages/cpu%u", cpu);
	for (int64_t at = 0; rc == 0 && (n = pread(c->file, data, chunk, at)) > 0; at += n) {
		const size_t full_pages = ((size_t)n + t->page - 1) / t->page * t->page;
		memset(data + n, 0, full_pages - (size_t)n);
		for (size_t page = 0; page < full_pages; page += t->page)
			lost += missed_events(t, data + page);
		rc = send_frame(t, name, data, full_pages);
	}
	free(data);
	snprintf(name, sizeof name, "stats/cpu%u", cpu);
	snprintf(stats, sizeof stats, "entries: 0\noverrun: %llu\ncommit overrun: 0\nbytes: 0\ndropped events: 0\n",
	         (unsigned long long)lost);
	return rc || n < 0 ? -1 : frame_text(t, name, stats);
}

static int send_trace(const struct agent_client *t)
{
	for (unsigned i = 0; i < t->cpus; i++)
		if (send_cpu(t, i))
			return -1;
	return send_frame(t, "saved_cmdlines", t->head.commands.at, t->head.commands.len) || frame_text(t, "end", "") ? -1 : 0;
}

/* ---- the session */

static int refuse_command(const struct agent_client *t, const char *code)
{
	frame_text(t, "refuse", code);
	return -1;
}

static int run_trace_task(struct agent_client *t)
{
	char *command;
	int rc = t->overwrite ? refuse_command(t, "overwrite")
	                      : send_about(t) || frame_text(t, "ready", "kilobytes 4096 rate 0 page 4096");
	while (rc == 0 && (command = await_command(t))) {
		if (strcmp(command, "go") == 0)
			rc = begin_trace(t);
		else if (strcmp(command, "stop") == 0 && t->cpus)
			rc = finish_trace(t);
		else if (strcmp(command, "send") == 0 && t->cpus)
			rc = send_trace(t);
		else if (strcmp(command, "more") != 0)
			rc = 1;
		free(command);
	}
	return rc < 0 ? -1 : 0;
}

/* Disables the guest's events by an empty recording. If recorder and watchdog were killed, tracing may still be active. The
 * settings before the killed recording are unknown and cannot be restored. */
static int reset_agent(struct agent_client *t)
{
	struct agent_progress *progress = mem_new(1, sizeof *progress);
	free(t->events);
	t->events = mem_dup("sched/sched_switch");
	const int rc = request_trace(t) ? -1 : agent_shut_down(t->connection, t->s, progress);
	free(progress);
	return rc ? report_failure(t, "the agent did not end the trace in time") : 0;
}

static int run_session(struct agent_client *t)
{
	if (read_settings(t) || call_agent(t) || (strcmp(t->task, "reset") == 0 && reset_agent(t)))
		return -1;
	if (strcmp(t->task, "clean") == 0 || strcmp(t->task, "reset") == 0)
		return frame_text(t, "cleaned", "removed 0\nfailed 0\n") || frame_text(t, "end", "") ? -1 : 0;
	if (strcmp(t->task, "check") == 0)
		return send_about(t) || frame_text(t, "end", "") ? -1 : 0;
	return run_trace_task(t);
}

static void close_client(struct agent_client *t)
{
	for (unsigned i = 0; t->cpu && i < t->cpus; i++) {
		if (t->cpu[i].s >= 0)
			close(t->cpu[i].s);
		if (t->cpu[i].file >= 0)
			close(t->cpu[i].file);
	}
	if (t->s >= 0)
		close(t->s);
	agent_watchdog_end(&t->watch);
	char *const text[] = { t->key, t->task, t->clock, t->events, t->bytes };
	for (size_t i = 0; i < sizeof text / sizeof *text; i++)
		free(text[i]);
	agent_head_release(&t->head);
	free(t->cpu);
}

int agent_relay(void *arg)
{
	struct agent_client *t = mem_new(1, sizeof *t);  /* too large for the stack */
	t->connection = arg;
	t->s = -1;
	t->watch = (struct agent_watchdog)AGENT_WATCHDOG_INIT;
	const int rc = run_session(t);
	close_client(t);
	free(t);
	return rc ? 1 : 0;
}
