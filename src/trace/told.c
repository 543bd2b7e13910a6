/* The parent's half: what children tell -> streams of records.  Nothing that a child says is believed: what it read may
 * have made it overwrite its memory before it died. */
#include "trace/told.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

#define TICK 20               /* ms */
#define GRACE 1000            /* ms that a child may take to stop */
#define MOST_NAMES (1U << 24)
#define MOST_SESSIONS 4096
#define MOST_TRACES 4096
#define BUFFER (4 * (TELL_LONGEST + sizeof(struct tell_head)))
#define MEMORY (2ULL << 30)   /* bytes of address space of a child, beside what the source needs */
#define EXPANSION 64          /* how much larger than the source its contents may be */

struct ear {
	struct told *told;
	const struct told_work *work;
	pid_t pid;                /* 0: no child */
	int fd;
	unsigned char *buf;
	size_t used;
	struct name_cache names;
	uint32_t *id;             /* ours, of each string of the child */
	size_t ids, ids_cap;
	struct told_stream *stream;  /* the current one, or NULL */
	uint32_t next;            /* number of the stream that comes next */
	uint64_t seen;            /* bytes counted */
	bool alive;               /* it has said that it reads */
	bool ended, refused, stopping;
	int64_t heard;            /* or since when it is stopping, ms */
	struct error err;
	int status;
};

static int64_t now(void)  /* ms */
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void count_bytes(struct ear *e, uint64_t bytes)
{
	if (bytes > e->told->bytes)
		bytes = e->told->bytes;
	if (bytes > e->seen) {
		atomic_fetch_add(e->work->bytes, bytes - e->seen);
		e->seen = bytes;
	}
}

/* ---- streams */

static void close_stream(struct ear *e, struct told_stream *s)
{
	if (!s || !s->open)
		return;
	s->decoded.clamped = s->writer.clamped;
	s->decoded.last = s->writer.ts;
	s->open = false;
	if (writer_close(&s->writer, &e->err))
		e->status = -1;
}

/* What this CPU did from here on is not known. */
static void lose_rest(struct ear *e, struct told_stream *s)
{
	const int64_t ts = s->writer.ts;
	if (ts == INT64_MIN)
		return;
	const struct event ev = { .ts = ts, .kind = EV_LOST, .cpu = (uint16_t)s->cpu, .tid = -1, .pid = -1,
		.lost = { ts, EVENT_ABSENT } };
	if (writer_put(&s->writer, &ev, &e->err))
		e->status = -1;
}

static void break_stream(struct ear *e, const char *why)
{
	struct told_stream *s = e->stream;
	if (!s || s->decoded.broken)
		return;
	s->decoded.broken = mem_dup(why);
	lose_rest(e, s);
}

/* The child could not tell how far it had got in each stream. */
static void break_source(struct ear *e, const char *why)
{
	struct told *t = e->told;
	for (size_t i = 0; i < t->streams; i++)
		if (t->stream[i] && t->stream[i]->open)
			lose_rest(e, t->stream[i]);
	if (!t->cut)
		t->cut = mem_dup(why);
}

static bool enter_stream(struct ear *e, const struct tell_stream *s)
{
	struct told *t = e->told;
	if (s->number >= t->most || s->cpu > UINT16_MAX || (t->kind->resumes && s->number < e->next))
		return false;
	if (t->kind->resumes)
		close_stream(e, e->stream);
	if (s->number >= e->next) {
		t->stream = mem_resize(t->stream, s->number + 1U, sizeof(struct told_stream *));
		while (t->streams <= s->number)
			t->stream[t->streams++] = NULL;
		e->next = s->number + 1;
	}
	e->stream = t->stream[s->number];
	if (e->stream)
		return e->stream->open;
	e->stream = t->stream[s->number] = mem_new(1, sizeof *e->stream);
	*e->stream = (struct told_stream){ .buffer = s->buffer, .cpu = s->cpu, .order = s->order, .open = true };
	stream_init(&e->stream->decoded.records);
	writer_open(&e->stream->writer, e->work->store, &e->stream->decoded.records);
	return true;
}

/* ---- events */

static int64_t our_name(const struct ear *e, int64_t id)
{
	return id > 0 && (uint64_t)id <= e->ids ? (int64_t)e->id[id - 1] : id == 0 ? 0 : EVENT_ABSENT;
}

static bool take_event(struct ear *e, struct event *ev)
{
	if (ev->kind >= EVENT_KIND_COUNT || ev->ts < 0)
		return false;
	const int64_t comm = our_name(e, ev->comm);
	ev->comm = comm > 0 ? (uint32_t)comm : 0;
	for (unsigned i = 0; i < event_args[ev->kind]; i++) {
		const struct role *role = layout_role((enum event_kind)ev->kind, i);
		if (role && role->is_text && ev->arg[i] != EVENT_ABSENT)
			ev->arg[i] = our_name(e, ev->arg[i]);
	}
	if (ev->kind == EV_LOST && ev->lost.count != EVENT_ABSENT && ev->lost.count > 0)
		e->stream->decoded.lost_events += (uint64_t)ev->lost.count;
	e->stream->cpu = ev->cpu;
	if (writer_put(&e->stream->writer, ev, &e->err))
		e->status = -1;
	return true;
}

static bool take_events(struct ear *e, const unsigned char *data, size_t len)
{
	if (!e->stream || len % sizeof(struct event))
		return false;
	for (size_t at = 0; at < len && !e->status; at += sizeof(struct event)) {
		struct event ev;
		memcpy(&ev, data + at, sizeof ev);
		if (!take_event(e, &ev))
			return false;
	}
	if (e->told->kind->endless)
		atomic_fetch_add(e->work->bytes, len / sizeof(struct event));
	return true;
}

/* ---- traces and sessions */

#define TERMINATE(text) ((text)[sizeof(text) - 1] = '\0')

static void take_trace(struct ear *e, struct metadata *m)
{
	struct told *t = e->told;
	TERMINATE(m->hostname);
	TERMINATE(m->tracer);
	TERMINATE(m->uuid);
	TERMINATE(m->clock_uuid);
	TERMINATE(m->clock_offset);
	TERMINATE(m->domain);
	for (size_t i = 0; i < t->traces; i++) {
		const struct metadata *other = &t->trace[i];
		if (!metadata_same_machine(other, m))
			e->status = error_set(&e->err, STATUS_INPUT, "name the session of each",
			                      "%s: traces of different machines or boots", t->name);
		else if (strcmp(m->domain, "kernel") == 0 && strcmp(other->domain, "kernel") == 0 &&
		         strcmp(m->uuid, other->uuid) != 0)
			e->status = error_set(&e->err, STATUS_INPUT, "name the session to read",
			                      "%s: more than one session records the kernel", t->name);
	}
	*ARRAY_PUSH(t->trace, t->traces, t->traces_cap) = *m;
}

static void take_session(struct told *t, struct tell_session *s)
{
	TERMINATE(s->host);
	TERMINATE(s->name);
	*ARRAY_PUSH(t->session, t->sessions, t->sessions_cap) = *s;
}

static void take_refusal(struct ear *e, struct tell_refusal *r)
{
	TERMINATE(r->why);
	TERMINATE(r->mend);
	e->refused = true;
	error_set(&e->err, STATUS_INPUT, r->mend, "%s: %s", e->told->name, r->why);
}

/* ---- what was said */

static const size_t size_of[TELLS] = {  /* 0: any */
	[TELL_LAYOUT] = sizeof(uint32_t), [TELL_TRACE] = sizeof(struct metadata),
	[TELL_SESSION] = sizeof(struct tell_session), [TELL_STREAM] = sizeof(struct tell_stream),
	[TELL_COUNTS] = sizeof(struct tell_counts), [TELL_AT] = sizeof(uint64_t),
	[TELL_REFUSE] = sizeof(struct tell_refusal),
};

/* False: a child that is to be trusted would not say this. */
static bool take_text(struct ear *e, enum tell what, const unsigned char *data, size_t len)
{
	char text[256];
	snprintf(text, sizeof text, "%.*s", (int)(len < sizeof text ? len : sizeof text - 1), (const char *)data);
	switch (what) {
	case TELL_NAME:
		if (e->ids > MOST_NAMES)
			return false;
		*ARRAY_PUSH(e->id, e->ids, e->ids_cap) = name_cache_put(&e->names, text);
		return true;
	case TELL_BROKEN:
		break_stream(e, text);
		return true;
	case TELL_CUT:
		if (!e->told->cut)
			e->told->cut = mem_dup(text);
		return true;
	default:
		return false;
	}
}

static bool take(struct ear *e, const struct tell_head *h, const unsigned char *data)
{
	struct told *t = e->told;
	union {
		uint32_t chosen;
		uint64_t at;
		struct metadata trace;
		struct tell_session session;
		struct tell_stream stream;
		struct tell_counts counts;
		struct tell_refusal refusal;
	} u;
	if (h->tell >= TELLS || (size_of[h->tell] && size_of[h->tell] != h->len))
		return false;
	memcpy(&u, data, size_of[h->tell]);
	switch ((enum tell)h->tell) {
	case TELL_LAYOUT:
		if (u.chosen > t->ctf.layouts)
			return false;
		atomic_store(&t->ctf.chosen, u.chosen);
		return true;
	case TELL_TRACE:
		if (t->traces < MOST_TRACES)
			take_trace(e, &u.trace);
		return true;
	case TELL_SESSION:
		if (t->sessions < MOST_SESSIONS)
			take_session(t, &u.session);
		return true;
	case TELL_STREAM:
		return enter_stream(e, &u.stream);
	case TELL_EVENTS:
		return take_events(e, data, h->len);
	case TELL_COUNTS:
		if (!e->stream)
			return false;
		e->stream->decoded.uncounted = u.counts.uncounted;
		e->stream->decoded.lost_packets = u.counts.lost_packets;
		e->stream->decoded.untimed = u.counts.untimed;
		return true;
	case TELL_AT:
		e->alive = true;
		count_bytes(e, u.at);
		return true;
	case TELL_REFUSE:
		take_refusal(e, &u.refusal);
		return true;
	case TELL_END:
		e->ended = true;
		return true;
	default:
		return take_text(e, (enum tell)h->tell, data, h->len);
	}
}

/* Takes the whole messages in the buffer. */
static bool take_all(struct ear *e)
{
	size_t at = 0;
	while (e->used - at >= sizeof(struct tell_head) && !e->status) {
		struct tell_head h;
		memcpy(&h, e->buf + at, sizeof h);
		if (h.len > TELL_LONGEST)
			return false;
		if (e->used - at < sizeof h + h.len)
			break;
		if (!take(e, &h, e->buf + at + sizeof h))
			return false;
		at += sizeof h + h.len;
	}
	memmove(e->buf, e->buf + at, e->used - at);
	e->used -= at;
	return true;
}

/* ---- children */

static const struct rlimit *lowered(struct rlimit *r, rlim_t most)
{
	if (r->rlim_cur == RLIM_INFINITY || r->rlim_cur > most)
		r->rlim_cur = most;
	return r;
}

static void confine(uint64_t bytes)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	struct rlimit r;
	const rlim_t most = MEMORY + EXPANSION * bytes;
	if (getrlimit(RLIMIT_CORE, &r) == 0)
		setrlimit(RLIMIT_CORE, lowered(&r, 0));
#ifndef __SANITIZE_ADDRESS__  /* whose shadow needs terabytes of addresses */
	if (getrlimit(RLIMIT_AS, &r) == 0)
		setrlimit(RLIMIT_AS, lowered(&r, most));
#endif
	if (getrlimit(RLIMIT_FSIZE, &r) == 0)
		setrlimit(RLIMIT_FSIZE, lowered(&r, most));
	child_begin();
	signal(SIGINT, SIG_IGN);  /* the parent decides what it means */
	int null = open("/dev/null", O_RDWR);
	if (null < 0)
		return;
	dup2(null, 0);
	dup2(null, 1);
	dup2(null, 2);
}

static void be_child(const struct told *t, uint32_t first, int fd)
{
	struct teller *teller = mem_new(1, sizeof *teller);
	teller->fd = fd;
	confine(t->bytes);
	names_init(&teller->names);
	t->kind->child(t, first, teller);
}

static int start(struct ear *e)
{
	int fd[2];
	if (pipe2(fd, O_CLOEXEC))
		return error_system(&e->err, NULL, "%s: cannot make a pipe", e->told->name);
	e->pid = fork();
	if (e->pid == 0) {
		close(fd[0]);
		be_child(e->told, e->next, fd[1]);
		_exit(0);
	}
	close(fd[1]);
	if (e->pid < 0) {
		close(fd[0]);
		e->pid = 0;
		return error_system(&e->err, NULL, "%s: cannot start a process", e->told->name);
	}
	e->fd = fd[0];
	e->used = e->ids = 0;
	e->ended = false;
	e->heard = now();
	return 0;
}

static void kill_child(struct ear *e)
{
	if (!e->pid)
		return;
	close(e->fd);
	kill(e->pid, SIGKILL);
	while (waitpid(e->pid, NULL, 0) < 0 && errno == EINTR)
		;
	e->pid = 0;
}

static void ask_to_stop(struct ear *e)
{
	if (!e->pid)
		return;
	kill(e->pid, SIGTERM);
	e->stopping = true;
	e->heard = now();
}

/* The child has said all, died, or is not to be believed.  Another one goes on behind the stream it died of. */
static void end(struct ear *e, const char *why)
{
	struct told *t = e->told;
	kill_child(e);
	if (e->refused || e->status)
		e->status = -1;
	else if (!e->ended && !e->stopping && !e->alive && !e->next)
		e->status = error_set(&e->err, STATUS_INPUT, t->kind->mend, "%s: %s", t->name, why);
	else if (!e->ended && t->kind->resumes)
		break_stream(e, why);
	else if (!e->ended)
		break_source(e, why);
	t->stopped = e->stopping && !t->cut;
	const bool more = t->kind->resumes && !e->ended && e->stream && e->next < t->most;
	for (size_t i = 0; i < t->streams; i++)
		close_stream(e, t->stream[i]);
	e->stream = NULL;
	if (!e->status && more)
		e->status = start(e);
	if (!e->pid)
		count_bytes(e, t->bytes);
}

static void hear(struct ear *e)
{
	ssize_t n = read(e->fd, e->buf + e->used, BUFFER - e->used);
	if (n < 0 && errno == EINTR)
		return;
	if (!e->stopping)
		e->heard = now();
	if (n > 0) {
		e->used += (size_t)n;
		if (take_all(e) && !e->refused && !e->status)
			return;
	}
	end(e, e->stopping ? e->told->kind->silent : e->told->kind->died);
}

/* Waits for words of the running children. */
static void listen_to(struct ear *e, size_t n, struct pollfd *p)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (struct pollfd){ .fd = e[i].pid ? e[i].fd : -1, .events = POLLIN };
	if (poll(p, (nfds_t)n, TICK) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		if (!e[i].pid)
			continue;
		if (p[i].revents)
			hear(&e[i]);
		else if (now() - e[i].heard > (e[i].stopping ? GRACE : e[i].told->kind->patience * 1000))
			end(&e[i], e[i].told->kind->silent);
	}
}

static void begin(struct ear *e, struct told *t, const struct told_work *work)
{
	*e = (struct ear){ .told = t, .work = work };
	e->buf = mem_new(1, BUFFER);
	name_cache_init(&e->names, t->ctf.names);
	e->status = start(e);
}

static void release(struct ear *e)
{
	kill_child(e);
	for (size_t i = 0; i < e->told->streams; i++)
		close_stream(e, e->told->stream[i]);
	name_cache_release(&e->names);
	free(e->id);
	free(e->buf);
}

/* One turn of the tick.  The first answer "enough" stops sources that have no end of their own. */
static int ask(struct ear *e, size_t begun, const struct told_work *work, bool *stopping, struct error *err)
{
	if (!work->tick || !work->tick(work->arg))
		return 0;
	if (!e[0].told->kind->endless || *stopping)
		return error_set(err, STATUS_CANCELLED, NULL, "reading traces: interrupted");
	*stopping = true;
	for (size_t i = 0; i < begun; i++)
		ask_to_stop(&e[i]);
	return 0;
}

int told_read(struct told *const *source, size_t n, const struct told_work *work, struct error *err)
{
	struct ear *e = mem_new(n + 1, sizeof *e);
	struct pollfd *p = mem_new(n + 1, sizeof *p);
	size_t begun = 0, running = 0;
	bool stopping = false;
	int status = 0;
	while (!status && (begun < n || running)) {
		for (; running < work->most && begun < n; begun++, running++)
			begin(&e[begun], source[begun], work);
		listen_to(e, begun, p);
		running = 0;
		for (size_t i = 0; i < begun && !status; i++) {
			running += e[i].pid != 0;
			status = e[i].status;
			if (status && err)
				*err = e[i].err;
		}
		if (!status)
			status = ask(e, begun, work, &stopping, err);
	}
	for (size_t i = 0; i < begun; i++)
		release(&e[i]);
	free(e);
	free(p);
	return status;
}

void told_release(struct told *t, struct store *store)
{
	for (size_t i = 0; i < t->streams; i++) {
		if (t->stream[i])
			decoded_release(&t->stream[i]->decoded, store);
		free(t->stream[i]);
	}
	free(t->stream);
	free(t->trace);
	free(t->session);
	free(t->cut);
}
