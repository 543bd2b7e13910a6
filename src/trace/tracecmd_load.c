/* The parent's half: what children tell -> streams of records.  Nothing that a child says is believed: libtracecmd may
 * have overwritten its memory before it died. */
#include "trace/tracecmd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

#define PATIENCE 60       /* s without a word after which a child is given up */
#define TICK 20           /* ms */
#define MOST_CHILDREN 16
#define MOST_NAMES (1U << 24)
#define BUFFER (4 * (TELL_LONGEST + sizeof(struct tell_head)))
#define DIED "libtracecmd does not survive reading it"
#define AGAIN "copy the file again, when trace-cmd has ended"

struct reader_of_child {
	struct tracecmd_file *file;
	const struct tracecmd_work *work;
	pid_t pid;                /* 0: no child */
	int fd;
	unsigned char *buf;
	size_t used;
	struct name_cache names;
	uint32_t *id;             /* ours, of each string of the child */
	size_t ids, ids_cap;
	struct tracecmd_stream *stream;  /* the current one, or NULL */
	struct writer writer;
	uint32_t next;            /* number of the stream that comes next */
	uint64_t seen;            /* bytes counted */
	double ratio;             /* of the file's bytes to those of pages, which may be compressed in it */
	bool ended, refused;
	time_t heard;
	struct error err;
	int status;
};

bool tracecmd_is_built(void)
{
	return true;
}

static time_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static void count_bytes(struct reader_of_child *r, uint64_t bytes)
{
	if (bytes > r->file->dat->bytes)
		bytes = r->file->dat->bytes;
	if (bytes > r->seen) {
		atomic_fetch_add(r->work->bytes, bytes - r->seen);
		r->seen = bytes;
	}
}

/* ---- streams */

static void close_stream(struct reader_of_child *r)
{
	if (!r->stream)
		return;
	struct decoded *d = &r->stream->decoded;
	d->clamped = r->writer.clamped;
	d->last = r->writer.ts;
	if (writer_close(&r->writer, &r->err))
		r->status = -1;
	r->stream = NULL;
}

/* What this CPU did from here on is not known. */
static void break_stream(struct reader_of_child *r, const char *why)
{
	if (!r->stream || r->stream->decoded.broken)
		return;
	r->stream->decoded.broken = mem_dup(why);
	const int64_t ts = r->writer.ts;
	if (ts == INT64_MIN)
		return;
	const struct event ev = { .ts = ts, .kind = EV_LOST, .cpu = (uint16_t)r->stream->cpu, .tid = -1, .pid = -1,
		.lost = { ts, EVENT_ABSENT } };
	if (writer_put(&r->writer, &ev, &r->err))
		r->status = -1;
}

static void open_stream(struct reader_of_child *r, const struct tell_stream *s)
{
	struct tracecmd_file *f = r->file;
	close_stream(r);
	r->next = s->number + 1;
	r->stream = ARRAY_PUSH(f->stream, f->streams, f->cap);
	*r->stream = (struct tracecmd_stream){ .buffer = s->buffer, .cpu = s->cpu };
	stream_init(&r->stream->decoded.records);
	writer_open(&r->writer, r->work->store, &r->stream->decoded.records);
}

/* ---- events */

static int64_t our_name(const struct reader_of_child *r, int64_t id)
{
	return id > 0 && (uint64_t)id <= r->ids ? (int64_t)r->id[id - 1] : id == 0 ? 0 : EVENT_ABSENT;
}

static bool take_event(struct reader_of_child *r, struct event *ev)
{
	if (ev->kind >= EVENT_KIND_COUNT || ev->ts < 0)
		return false;
	const int64_t comm = our_name(r, ev->comm);
	ev->comm = comm > 0 ? (uint32_t)comm : 0;
	for (unsigned i = 0; i < event_args[ev->kind]; i++) {
		const struct role *role = layout_role((enum event_kind)ev->kind, i);
		if (role && role->is_text && ev->arg[i] != EVENT_ABSENT)
			ev->arg[i] = our_name(r, ev->arg[i]);
	}
	if (ev->kind == EV_LOST && ev->lost.count != EVENT_ABSENT && ev->lost.count > 0)
		r->stream->decoded.lost_events += (uint64_t)ev->lost.count;
	if (writer_put(&r->writer, ev, &r->err))
		r->status = -1;
	return true;
}

static bool take_events(struct reader_of_child *r, const unsigned char *data, size_t len)
{
	if (!r->stream || len % sizeof(struct event))
		return false;
	for (size_t at = 0; at < len && !r->status; at += sizeof(struct event)) {
		struct event ev;
		memcpy(&ev, data + at, sizeof ev);
		if (!take_event(r, &ev))
			return false;
	}
	return true;
}

/* False: a child that is to be trusted would not say this. */
static bool take(struct reader_of_child *r, const struct tell_head *h, const unsigned char *data)
{
	char text[256];
	struct tell_stream s;
	uint32_t chosen;
	uint64_t at;
	memcpy(text, data, h->len < sizeof text ? h->len : sizeof text - 1);
	text[h->len < sizeof text ? h->len : sizeof text - 1] = '\0';
	switch (h->tell) {
	case TELL_LAYOUT:
		if (h->len != sizeof chosen)
			return false;
		memcpy(&chosen, data, sizeof chosen);
		atomic_store(&r->file->ctf.chosen, chosen);
		return chosen <= r->file->ctf.layouts;
	case TELL_STREAM:
		if (h->len != sizeof s)
			return false;
		memcpy(&s, data, sizeof s);
		if (s.number < r->next || s.number >= r->file->dat->cpus || s.cpu > UINT16_MAX)
			return false;
		open_stream(r, &s);
		return true;
	case TELL_NAME:
		if (r->ids > MOST_NAMES)
			return false;
		*ARRAY_PUSH(r->id, r->ids, r->ids_cap) = name_cache_put(&r->names, text);
		return true;
	case TELL_EVENTS:
		return take_events(r, data, h->len);
	case TELL_AT:
		if (h->len != sizeof at)
			return false;
		memcpy(&at, data, sizeof at);
		if (at <= UINT64_MAX >> 16)
			count_bytes(r, (uint64_t)((double)at * r->ratio));
		return true;
	case TELL_BROKEN:
		break_stream(r, text);
		return true;
	case TELL_REFUSE:
		r->refused = true;
		error_set(&r->err, STATUS_INPUT, AGAIN, "%s: %s", r->file->dat->path, text);
		return true;
	case TELL_END:
		r->ended = true;
		return true;
	default:
		return false;
	}
}

/* Takes the whole messages in the buffer. */
static bool take_all(struct reader_of_child *r)
{
	size_t at = 0;
	while (r->used - at >= sizeof(struct tell_head) && !r->status) {
		struct tell_head h;
		memcpy(&h, r->buf + at, sizeof h);
		if (h.len > TELL_LONGEST)
			return false;
		if (r->used - at < sizeof h + h.len)
			break;
		if (!take(r, &h, r->buf + at + sizeof h))
			return false;
		at += sizeof h + h.len;
	}
	memmove(r->buf, r->buf + at, r->used - at);
	r->used -= at;
	return true;
}

/* ---- children */

static int start(struct reader_of_child *r)
{
	int fd[2];
	if (pipe2(fd, O_CLOEXEC))
		return error_system(&r->err, NULL, "%s: cannot make a pipe", r->file->dat->path);
	r->pid = fork();
	if (r->pid == 0) {
		close(fd[0]);
		tracecmd_child(r->file->dat, r->file->ctf.layout, r->file->ctf.layouts, r->next, fd[1]);
		_exit(0);
	}
	close(fd[1]);
	if (r->pid < 0) {
		close(fd[0]);
		r->pid = 0;
		return error_system(&r->err, NULL, "%s: cannot start a process", r->file->dat->path);
	}
	r->fd = fd[0];
	r->used = r->ids = 0;
	r->ended = false;
	r->heard = now();
	return 0;
}

static void stop(struct reader_of_child *r)
{
	if (!r->pid)
		return;
	close(r->fd);
	kill(r->pid, SIGKILL);
	while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
		;
	r->pid = 0;
}

/* The child has said all, died, or is not to be believed.  Another one goes on behind the stream it died of. */
static void end(struct reader_of_child *r)
{
	const bool begun = r->stream != NULL;
	stop(r);
	if (r->refused || r->status)
		r->status = -1;
	else if (!r->ended && !begun && !r->next)
		r->status = error_set(&r->err, STATUS_INPUT, AGAIN, "%s: %s", r->file->dat->path, DIED);
	if (!r->status && !r->ended)
		break_stream(r, DIED);
	const bool more = !r->ended && begun && r->next < r->file->dat->cpus;
	close_stream(r);
	if (!r->status && more)
		r->status = start(r);
	if (!r->pid)
		count_bytes(r, r->file->dat->bytes);
}

static void hear(struct reader_of_child *r)
{
	ssize_t n = read(r->fd, r->buf + r->used, BUFFER - r->used);
	if (n < 0 && errno == EINTR)
		return;
	r->heard = now();
	if (n > 0) {
		r->used += (size_t)n;
		if (take_all(r) && !r->refused && !r->status)
			return;
	}
	end(r);
}

/* Waits for words of the running children. */
static void listen_to(struct reader_of_child *r, size_t n)
{
	struct pollfd p[MOST_CHILDREN];
	struct reader_of_child *who[MOST_CHILDREN];
	nfds_t len = 0;
	for (size_t i = 0; i < n; i++) {
		if (!r[i].pid)
			continue;
		p[len] = (struct pollfd){ .fd = r[i].fd, .events = POLLIN };
		who[len++] = &r[i];
	}
	if (poll(p, len, TICK) < 0)
		return;
	for (nfds_t i = 0; i < len; i++) {
		if (p[i].revents)
			hear(who[i]);
		else if (now() - who[i]->heard > PATIENCE)
			end(who[i]);
	}
}

static void begin(struct reader_of_child *r, struct tracecmd_file *file, const struct tracecmd_work *work)
{
	*r = (struct reader_of_child){ .file = file, .work = work };
	r->buf = mem_new(1, BUFFER);
	name_cache_init(&r->names, file->ctf.names);
	double pages = 1;
	for (size_t i = 0; i < file->dat->cpus; i++)
		pages += (double)file->dat->cpu[i].bytes;
	r->ratio = (double)file->dat->bytes / pages;
	r->status = start(r);
}

static void release(struct reader_of_child *r)
{
	stop(r);
	close_stream(r);
	name_cache_release(&r->names);
	free(r->id);
	free(r->buf);
}

int tracecmd_decode(struct tracecmd_file *file, size_t n, const struct tracecmd_work *work, struct error *err)
{
	struct reader_of_child *r = mem_new(n + 1, sizeof *r);
	const size_t most = work->workers < MOST_CHILDREN ? work->workers : MOST_CHILDREN;
	size_t begun = 0, running = 0;
	int status = 0;
	while (!status && (begun < n || running)) {
		for (; running < most && begun < n; begun++, running++)
			begin(&r[begun], &file[begun], work);
		listen_to(r, begun);
		running = 0;
		for (size_t i = 0; i < begun && !status; i++) {
			running += r[i].pid != 0;
			status = r[i].status;
			if (status && err)
				*err = r[i].err;
		}
		if (!status && work->tick(work->arg))
			status = error_set(err, STATUS_CANCELLED, NULL, "reading traces: interrupted");
	}
	for (size_t i = 0; i < begun; i++)
		release(&r[i]);
	free(r);
	return status;
}
