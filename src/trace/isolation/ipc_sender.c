/* Child side of decoder_process.h: an event sink that sends everything to the parent. */
#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "trace/isolation/decoder_process.h"

#define SMALL_BATCH 128    /* events per message if there are many streams */
#define FLUSH_NS 20000000  /* maximum time between two flushes in sender_at(), ns */

struct batch {
	struct event *ev;
	size_t used;
	uint64_t order;
};

struct ipc_sender {
	struct event_sink event_sink;
	int fd;
	struct string_table names;
	size_t names_sent;  /* string ids that were sent */
	struct event_mapping *mapping;
	size_t layout_sent;
	struct faults faults_sent;
	struct batch batch[IPC_MAX_STREAMS];
	size_t batches, max_events;  /* a batch's capacity, events */
	uint32_t current;
	uint32_t stream_sent;  /* number of the stream to which the parent assigns the next events */
	int64_t flushed_at;    /* time of the last flush in sender_at(), ns */
	volatile sig_atomic_t is_sending;  /* a message is being sent: no other may begin */
	struct error err;
};

static struct ipc_sender *sender_of(struct event_sink *o)
{
	return (struct ipc_sender *)o;  /* event_sink is the first member */
}

void ipc_send_bytes(int fd, const void *data, size_t len)
{
	const char *at = data;
	while (len) {
		ssize_t n = write(fd, at, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(0);  /* the parent has ended */
		at += n;
		len -= (size_t)n;
	}
}

static void send_message(struct ipc_sender *t, enum ipc_message type, const void *data, size_t len)
{
	const struct ipc_header head = { type, (uint32_t)len };
	t->is_sending = 1;
	ipc_send_bytes(t->fd, &head, sizeof head);
	ipc_send_bytes(t->fd, data, len);
	t->is_sending = 0;
}

static void send_text(struct ipc_sender *t, enum ipc_message type, const char *text)
{
	send_message(t, type, text, strnlen(text, IPC_MAX_LEN));
}

/* ---- batches */

static void send_stream(struct ipc_sender *t, uint32_t number)
{
	const struct ipc_stream s = { .number = number, .order = t->batch[number].order };
	if (number == t->stream_sent)
		return;
	send_message(t, IPC_STREAM, &s, sizeof s);
	t->stream_sent = number;
}

/* Sends a stream's events, after the names that they use. */
static void flush_batch(struct ipc_sender *t, uint32_t number)
{
	struct batch *b = &t->batch[number];
	if (!b->used)
		return;
	for (; t->names_sent + 1 < t->names.tab.len; t->names_sent++)
		send_text(t, IPC_NAME, strtab_get(&t->names.tab, (uint32_t)t->names_sent + 1));
	send_stream(t, number);
	send_message(t, IPC_EVENTS, b->ev, b->used * sizeof *b->ev);
	b->used = 0;
}

static void flush_all(struct ipc_sender *t)
{
	const uint32_t chosen = (uint32_t)atomic_load(&t->mapping->chosen);
	const struct ipc_layout layout = { chosen, atomic_load(&t->mapping->enabled_events) };
	for (uint32_t i = 0; i < t->batches; i++)
		flush_batch(t, i);
	if (memcmp(&t->faults_sent, &t->event_sink.faults, sizeof t->faults_sent) != 0)
		send_message(t, IPC_FAULTS, &t->event_sink.faults, sizeof t->event_sink.faults);
	if (chosen && chosen != t->layout_sent)
		send_message(t, IPC_LAYOUT, &layout, sizeof layout);
	t->faults_sent = t->event_sink.faults;
	t->layout_sent = chosen;
}

/* ---- the event sink */

static int sender_put(struct event_sink *o, const struct event *ev)
{
	struct ipc_sender *t = sender_of(o);
	struct batch *b = &t->batch[t->current];
	if (!b->ev)
		b->ev = mem_new(t->max_events, sizeof *b->ev);
	b->ev[b->used++] = *ev;
	if (b->used == t->max_events)
		flush_batch(t, t->current);
	return 0;
}

static int sender_stream(struct event_sink *o, uint32_t number, uint64_t order)
{
	struct ipc_sender *t = sender_of(o);
	if (number >= IPC_MAX_STREAMS)
		return error_set(o->err, STATUS_INPUT, NULL, "more than %d streams", IPC_MAX_STREAMS);
	t->current = number;
	if (number >= t->batches) {
		t->batches = number + 1U;
		t->batch[number].order = order;
		send_stream(t, number);
	}
	return 0;
}

static int sender_covers(struct event_sink *o, uint16_t cpu, int64_t begin, int64_t end)
{
	const struct ipc_coverage c = { cpu, begin, end };
	send_stream(sender_of(o), sender_of(o)->current);
	send_message(sender_of(o), IPC_COVERAGE, &c, sizeof c);
	return 0;
}

static int sender_damaged(struct event_sink *o, const char *reason, bool continues)
{
	struct ipc_sender *t = sender_of(o);
	flush_batch(t, t->current);
	send_stream(t, t->current);
	send_text(t, continues ? IPC_SKIPPED : IPC_DAMAGED, reason);
	return 0;
}

static int sender_at(struct event_sink *o, uint64_t bytes)
{
	struct ipc_sender *t = sender_of(o);
	const int64_t ns = now_ns();
	if (ns - t->flushed_at < FLUSH_NS)
		return 0;
	flush_all(t);
	send_message(t, IPC_PROGRESS, &bytes, sizeof bytes);
	t->flushed_at = ns;
	return 0;
}

static const struct event_sink_ops sender_ops = {
	.put = sender_put,
	.select_stream = sender_stream,
	.add_coverage = sender_covers,
	.report_damage = sender_damaged,
	.report_progress = sender_at,
};

void ipc_send_trace(struct event_sink *o, const struct metadata *m)
{
	send_message(sender_of(o), IPC_TRACE, m, sizeof *m);
}

void ipc_send_session(struct event_sink *o, const struct ipc_session *s)
{
	send_message(sender_of(o), IPC_SESSION, s, sizeof *s);
}

void ipc_send_truncated(struct event_sink *o, const char *reason)
{
	flush_all(sender_of(o));
	send_text(sender_of(o), IPC_TRUNCATED, reason);
}

/* ---- crashes */

bool errno_is_read_failure(int number)
{
	return number == EIO || number == ESTALE || number == EREMOTEIO || number == ETIMEDOUT || number == EMFILE ||
	       number == ENFILE;
}

static struct {
	int fd;
	struct ipc_sender *sender;
	struct ipc_header head;
	struct ipc_error message;
} crash_report;

/* Called when a library crashes. Sends the events before the crash: otherwise the result would depend on the time of the
 * last flush. Sends an error if the system could not read a file. */
static void on_fatal_signal(int sig)
{
	(void)sig;
	const int why = errno;
	if (!crash_report.sender->is_sending)
		flush_all(crash_report.sender);
	errno = why;
	if (errno_is_read_failure(errno) && write(crash_report.fd, &crash_report.head, sizeof crash_report.head) > 0 &&
	    write(crash_report.fd, &crash_report.message, sizeof crash_report.message) > 0)
		_exit(1);
	_exit(2);
}

static void prepare_crash_report(struct ipc_sender *t, int fd, const char *name)
{
	static const int fatal[] = { SIGSEGV, SIGFPE, SIGILL, SIGABRT };
	const struct sigaction sa = { .sa_handler = on_fatal_signal };
	crash_report.fd = fd;
	crash_report.sender = t;
	crash_report.head = (struct ipc_header){ IPC_ERROR, sizeof crash_report.message };
	crash_report.message.status = STATUS_SYSTEM;
	snprintf(crash_report.message.text, sizeof crash_report.message.text, "%s: the system cannot read the file", name);
	for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
		sigaction(fatal[i], &sa, NULL);
}

/* ---- main loop of the child */

static void send_error(struct ipc_sender *t)
{
	struct ipc_error r = { .status = t->err.status };
	snprintf(r.text, sizeof r.text, "%s", t->err.text);
	snprintf(r.remedy, sizeof r.remedy, "%s", t->err.remedy);
	send_message(t, IPC_ERROR, &r, sizeof r);
}

void decoder_child_run(const struct decoder_job *job, size_t first, int fd)
{
	struct source *s = job->source;
	struct ipc_sender *t = mem_new(1, sizeof *t);
	*t = (struct ipc_sender){ .event_sink = { .ops = &sender_ops, .window = s->window, .err = &t->err }, .fd = fd,
		.mapping = &s->mapping,
		.max_events = s->streams ? IPC_MAX_EVENTS : SMALL_BATCH, .batches = s->streams > 0,
		.stream_sent = s->streams ? 0 : IPC_MAX_STREAMS };
	string_table_init_child(&t->names);
	t->names.store_event_names = s->window != NULL;
	prepare_crash_report(t, fd, s->location[0]->path);
	s->mapping.names = &t->names;
	void *state = s->reader->enter(s, &t->err);
	int status = state ? 0 : -1;
	for (size_t i = first; i < job->tasks && !status; i++) {
		const uint32_t task_index = (uint32_t)i;
		send_message(t, IPC_TASK, &task_index, sizeof task_index);
		t->event_sink.faults = t->faults_sent = (struct faults){ 0 };
		status = s->reader->decode(state, &job->task[i]->stream_part, &t->event_sink);
		flush_all(t);
	}
	if (status)
		send_error(t);
	send_message(t, IPC_END, NULL, 0);
}
