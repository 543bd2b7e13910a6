/* An agent of trace-cmd that already runs in a guest, in place of a shell: to guest.c this is the script, which takes the
 * same words and sends the same frames; to the agent it is trace-cmd, which wants the guest recorded.  Runs in a child.
 *
 * The agent traces from when it was asked until it is told to close, and hands out pages all the time; they wait in files
 * without names, until they are asked for.  It puts back what it found when it was told to close: when we are gone,
 * another process sees to that (agent_watchdog.h).  libtracecmd drives agents, too, but no header that it installs declares
 * with what. */
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
#include "record/tracecmd_head.h"
#include "record/agent_watchdog.h"
#include "record/agent_protocol.h"
#include "record/frames.h"
#include "record/transport.h"

#define SECOND 1000000000LL
#define PATIENCE 20          /* s for an answer */
#define AGAIN 200000000      /* ns until an agent that is busy is called again */
#define BUFFER_KB 4096       /* of a CPU, in the guest; it is read all the time */
#define HEAD_MOST (64 << 20)
#define KEPT_MOST (1LL << 30) /* bytes of a CPU */
#define PIECE (1 << 20)
#define MISSED (1U << 31)    /* in a page's commit: events before it are lost, */
#define MISSED_COUNTED (1U << 30)  /* and how many stands behind its end */

struct agent_cpu { int s, kept; int64_t bytes; };

struct talk {
	const struct agent_way *way;
	char line[65536];            /* of our input */
	char pages[65536];           /* on their way from a CPU to its file */
	size_t held;
	char *key, *task, *clock, *events;
	bool turn;
	int s;
	struct agent_watch watch;
	unsigned cpus, page;         /* cpus: 0 before it traces */
	size_t commit;               /* where it stands in a page, */
	size_t commit_len, data;     /* how long it is, where events begin */
	struct agent_cpu *cpu;
	struct agent_head head;
	char *bytes;                 /* what head is made of */
};

static int complain(const struct talk *t, const char *what)
{
	dprintf(t->way->err, "agent of trace-cmd at vsock %u:%u: %s\n", t->way->cid, t->way->port, what);
	return -1;
}

/* ---- to guest.c */

static int put(const struct talk *t, const void *data, size_t len)
{
	for (size_t at = 0; at < len;) {
		const ssize_t n = write(t->way->out, (const char *)data + at, len - at);
		if (n < 0)
			return -1;
		at += (size_t)n;
	}
	return 0;
}

static int frame(const struct talk *t, const char *name, const void *data, size_t len)
{
	char head[128];
	snprintf(head, sizeof head, "%s %s %zu\n", t->key, name, len);
	return put(t, head, strlen(head)) || put(t, data, len) ? -1 : 0;
}

static int frame_text(const struct talk *t, const char *name, const char *text)
{
	return frame(t, name, text, strlen(text));
}

/* ---- from guest.c: lines */

/* Reads what is there, once.  false: nobody talks any more. */
static bool hear(struct talk *t)
{
	const ssize_t n = t->held < sizeof t->line ? read(t->way->in, t->line + t->held, sizeof t->line - t->held) : 0;
	if (n > 0)
		t->held += (size_t)n;
	return n > 0;
}

/* The caller frees; NULL: no line is whole yet. */
static char *next_line(struct talk *t)
{
	const char *end = memchr(t->line, '\n', t->held);
	if (!end)
		return NULL;
	const size_t len = (size_t)(end - t->line);
	char *line = mem_printf("%.*s", (int)len, t->line);
	t->held -= len + 1;
	memmove(t->line, t->line + len + 1, t->held);
	return line;
}

/* The value in a line of assignments, "task=trace" or "clocks='x86-tsc mono'". */
static char *value_of(const char *line, const char *name)
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

/* What stands before the script says it all; the script itself is for shells. */
static int take_order(struct talk *t)
{
	bool over = false;
	while (!over) {
		char *line = next_line(t);
		if (!line && !hear(t))
			return -1;
		if (line && !t->key) {
			char *turn = value_of(line, "turn"), *clocks = value_of(line, "clocks");
			t->key = value_of(line, "key");
			t->task = value_of(line, "task");
			t->events = value_of(line, "events");
			t->clock = mem_printf("%.*s", (int)strcspn(clocks, " "), clocks);
			t->turn = strcmp(turn, "1") == 0;
			free(turn);
			free(clocks);
		}
		over = line && strcmp(line, "stealscope_guest") == 0;
		free(line);
	}
	return 0;
}

/* ---- to the agent */

static int dial(struct talk *t, unsigned port)
{
	const struct timeval patience = { PATIENCE, 0 };
	const int s = t->way->dial(t->way, port);
	if (s < 0)
		return complain(t, strerror(errno));
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	return s;
}

/* It hangs up at once on whom it has no time for; perhaps it is still at the end of what a dead recording asked for. */
static int call(struct talk *t)
{
	const int64_t end = now_ns() + t->way->busy * (SECOND / 1000);
	do {
		if (t->s >= 0)
			close(t->s);
		if (t->s >= 0)
			nanosleep(&(struct timespec){ 0, AGAIN }, NULL);
		t->s = dial(t, t->way->port);
		if (t->s < 0)
			return -1;
		struct pollfd p = { t->s, POLLIN, 0 };
		if (!t->way->look || poll(&p, 1, t->way->look) == 0)
			return 0;
	} while (now_ns() < end);
	return complain(t, "it hangs up: does it record for somebody else?");
}

/* trace-cmd record's options.  -i: events that it does not have are left out.  The caller frees. */
static char *request_of(const struct talk *t, size_t *len)
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
	wire_put_u32(request, 0);  /* what follows are options */
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

static int ask(struct talk *t)
{
	const unsigned char part[16] = { 0 };  /* flags, words, number of this trace: no FIFOs, nobody needs it */
	size_t len;
	char *request = request_of(t, &len);
	const int rc = wire_send(t->s, WIRE_REQUEST, part, sizeof part, request, len);
	free(request);
	return rc ? complain(t, strerror(errno)) : 0;
}

static int take_head(struct talk *t, struct wire_message *m)
{
	size_t len = 0;
	int rc;
	while ((rc = wire_receive(t->s, m)) == 0 && m->command == WIRE_DATA && len + m->rest_len < HEAD_MOST) {
		t->bytes = mem_resize(t->bytes, len + m->rest_len, 1);
		memcpy(t->bytes + len, m->rest, m->rest_len);
		len += m->rest_len;
	}
	if (rc || m->command != WIRE_END_OF_DATA || agent_head_parse(&t->head, t->bytes, len))
		return complain(t, rc ? strerror(errno) : "what it says of its events is not understood");
	return 0;
}

/* Where a page says how many bytes of events it has. */
static int find_commit(struct talk *t)
{
	char *text = mem_printf("%.*s", (int)t->head.header_page.len, t->head.header_page.at);
	const char *commit = strstr(text, " commit;"), *data = strstr(text, " data;");
	const bool found = commit && data &&
	                   sscanf(commit, " commit; offset:%zu; size:%zu", &t->commit, &t->commit_len) == 2 &&
	                   sscanf(data, " data; offset:%zu", &t->data) == 1 && t->data < t->page / 2 &&
	                   (t->commit_len == 4 || t->commit_len == 8) && t->data >= t->commit_len &&
	                   t->commit <= t->data - t->commit_len;
	free(text);
	return found ? 0 : complain(t, "its pages are not understood");
}

/* At once: until they are taken, the agent hears of nothing else. */
static int open_cpus(struct talk *t)
{
	const char *place = getenv("TMPDIR");
	t->cpus = t->watch.seen->cpus;
	t->page = t->watch.seen->page;
	t->cpu = mem_new(t->cpus, sizeof *t->cpu);
	for (unsigned i = 0; i < t->cpus; i++)
		t->cpu[i] = (struct agent_cpu){ -1, -1, 0 };
	for (unsigned i = 0; i < t->cpus; i++) {
		t->cpu[i].s = dial(t, t->watch.seen->port[i]);
		if (t->cpu[i].s < 0)
			return -1;
	}
	t->watch.seen->connected = true;
	for (unsigned i = 0; i < t->cpus; i++) {
		t->cpu[i].kept = open(place ? place : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		if (t->cpu[i].kept < 0)
			return complain(t, "no file for its pages can be made in TMPDIR or /var/tmp");
	}
	return 0;
}

static int say_about(const struct talk *t)
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

static int say_begun(const struct talk *t)
{
	const struct agent_head *h = &t->head;
	return say_about(t) || frame(t, "header_page", h->header_page.at, h->header_page.len) ||
	       frame(t, "header_event", h->header_event.at, h->header_event.len) ||
	       frame(t, "formats", h->formats, h->formats_len) || frame_text(t, "started", "") ? -1 : 0;
}

static int begin(struct talk *t)
{
	struct wire_message m = { 0 };
	int rc = -1;
	if (agent_watch(&t->watch, t->way, t->s))
		complain(t, strerror(errno));
	else if (ask(t) || agent_watch_answer(&t->watch))
		complain(t, "it does not take the request: is it older than 3.1, or its kernel without the clock?");
	else if (!t->watch.seen->cpus)
		complain(t, "its answer is not understood");
	else if (!open_cpus(t) && !take_head(t, &m) && !find_commit(t))
		rc = say_begun(t);
	free(m.bytes);
	return rc;
}

/* ---- pages */

static int keep(struct talk *t, struct agent_cpu *c)
{
	const ssize_t n = read(c->s, t->pages, sizeof t->pages);
	if (n <= 0) {
		close(c->s);
		c->s = -1;
		return n < 0 ? complain(t, strerror(errno)) : 0;
	}
	c->bytes += n;
	const bool fits = c->bytes <= KEPT_MOST && write(c->kept, t->pages, (size_t)n) == n;
	return fits ? 0 : complain(t, "its pages have no room here");
}

/* Takes what comes, once: pages; and unless it was told to close, lines and the agent's end.  false: it is over. */
static bool attend(struct talk *t, bool closing)
{
	struct pollfd *p = mem_new(t->cpus + 2, sizeof *p);
	p[0] = (struct pollfd){ closing ? -1 : t->way->in, POLLIN, 0 };
	p[1] = (struct pollfd){ closing ? -1 : t->s, POLLIN, 0 };
	for (unsigned i = 0; i < t->cpus; i++)
		p[i + 2] = (struct pollfd){ t->cpu[i].s, POLLIN, 0 };
	bool goes_on = poll(p, t->cpus + 2, PATIENCE * 1000) >= 0;
	for (unsigned i = 0; i < t->cpus && goes_on; i++)
		goes_on = !p[i + 2].revents || keep(t, &t->cpu[i]) == 0;
	if (p[1].revents && goes_on)
		goes_on = complain(t, "it has ended") == 0;
	if (p[0].revents && goes_on)
		goes_on = hear(t);
	free(p);
	return goes_on;
}

/* The caller frees; NULL: nobody talks any more, or it failed. */
static char *await_word(struct talk *t)
{
	char *line;
	while (!(line = next_line(t)))
		if (!attend(t, false))
			return NULL;
	return line;
}

static bool all_came(const struct talk *t)
{
	for (unsigned i = 0; i < t->cpus; i++)
		if (t->cpu[i].s >= 0)
			return false;
	return true;
}

static int finish(struct talk *t)
{
	const int64_t end = now_ns() + PATIENCE * SECOND;
	if (wire_send(t->s, WIRE_CLOSE, NULL, 0, NULL, 0))
		return complain(t, strerror(errno));
	t->watch.seen->closed = true;
	while (!all_came(t) && now_ns() < end && attend(t, true))
		;
	close(t->s);
	t->s = -1;
	return all_came(t) ? frame_text(t, "stopped", "") : complain(t, "it does not end");
}

/* Events that are missing before a page. */
static uint64_t missed(const struct talk *t, const char *page)
{
	uint32_t commit;
	uint64_t count = 1;
	memcpy(&commit, page + t->commit, sizeof commit);
	const size_t end = t->data + (commit & ~(MISSED | MISSED_COUNTED));
	if (!(commit & MISSED))
		return 0;
	if ((commit & MISSED_COUNTED) && end <= t->page - t->commit_len)
		memcpy(&count, page + end, t->commit_len);
	return t->commit_len == 4 ? (uint32_t)count : count;
}

static int deliver_cpu(const struct talk *t, unsigned cpu)
{
	const struct agent_cpu *c = &t->cpu[cpu];
	const size_t piece = PIECE / t->page * t->page;
	char *data = mem_new(piece, 1), name[32], stats[160];
	uint64_t lost = 0;
	ssize_t n = 0;
	int rc = 0;
	snprintf(name, sizeof name, "pages/cpu%u", cpu);
	for (int64_t at = 0; rc == 0 && (n = pread(c->kept, data, piece, at)) > 0; at += n) {
		const size_t whole = ((size_t)n + t->page - 1) / t->page * t->page;
		memset(data + n, 0, whole - (size_t)n);
		for (size_t page = 0; page < whole; page += t->page)
			lost += missed(t, data + page);
		rc = frame(t, name, data, whole);
	}
	free(data);
	snprintf(name, sizeof name, "stats/cpu%u", cpu);
	snprintf(stats, sizeof stats, "entries: 0\noverrun: %llu\ncommit overrun: 0\nbytes: 0\ndropped events: 0\n",
	         (unsigned long long)lost);
	return rc || n < 0 ? -1 : frame_text(t, name, stats);
}

static int deliver(const struct talk *t)
{
	for (unsigned i = 0; i < t->cpus; i++)
		if (deliver_cpu(t, i))
			return -1;
	return frame(t, "saved_cmdlines", t->head.commands.at, t->head.commands.len) || frame_text(t, "end", "") ? -1 : 0;
}

/* ---- the conversation */

static int refuse(const struct talk *t, const char *code)
{
	frame_text(t, "refuse", code);
	return -1;
}

static int obey(struct talk *t)
{
	char *word;
	int rc = t->turn ? refuse(t, "turn") : say_about(t) || frame_text(t, "ready", "kilobytes 4096 rate 0 page 4096");
	while (rc == 0 && (word = await_word(t))) {
		if (strcmp(word, "go") == 0)
			rc = begin(t);
		else if (strcmp(word, "stop") == 0 && t->cpus)
			rc = finish(t);
		else if (strcmp(word, "send") == 0 && t->cpus)
			rc = deliver(t);
		else if (strcmp(word, "more") != 0)
			rc = 1;
		free(word);
	}
	return rc < 0 ? -1 : 0;
}

/* Who was killed was watched by another process, and that may have been killed, too: a recording that ends as it should
 * puts events off.  (Whether the guest traced before, nobody knows any more.) */
static int reset(struct talk *t)
{
	struct agent_seen *seen = mem_new(1, sizeof *seen);
	free(t->events);
	t->events = mem_dup("sched/sched_switch");
	const int rc = ask(t) ? -1 : agent_wind_up(t->way, t->s, seen);
	free(seen);
	return rc ? complain(t, "it does not end") : 0;
}

static int converse(struct talk *t)
{
	if (take_order(t) || call(t) || (strcmp(t->task, "reset") == 0 && reset(t)))
		return -1;
	if (strcmp(t->task, "clean") == 0 || strcmp(t->task, "reset") == 0)
		return frame_text(t, "cleaned", "erased 0\nleft 0\n") || frame_text(t, "end", "") ? -1 : 0;
	if (strcmp(t->task, "check") == 0)
		return say_about(t) || frame_text(t, "end", "") ? -1 : 0;
	return obey(t);
}

static void hang_up(struct talk *t)
{
	for (unsigned i = 0; t->cpu && i < t->cpus; i++) {
		if (t->cpu[i].s >= 0)
			close(t->cpu[i].s);
		if (t->cpu[i].kept >= 0)
			close(t->cpu[i].kept);
	}
	if (t->s >= 0)
		close(t->s);
	agent_watch_end(&t->watch);
	char *const text[] = { t->key, t->task, t->clock, t->events, t->bytes };
	for (size_t i = 0; i < sizeof text / sizeof *text; i++)
		free(text[i]);
	agent_head_release(&t->head);
	free(t->cpu);
}

int agent_relay(void *arg)
{
	struct talk *t = mem_new(1, sizeof *t);  /* larger than some stacks */
	t->way = arg;
	t->s = -1;
	t->watch = (struct agent_watch)AGENT_WATCH_INIT;
	const int rc = converse(t);
	hang_up(t);
	free(t);
	return rc ? 1 : 0;
}
