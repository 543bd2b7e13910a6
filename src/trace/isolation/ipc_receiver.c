#include "trace/isolation/ipc_receiver.h"

#include "base/base.h"

#define MAX_NAMES (1U << 24)
#define MAX_SESSIONS 4096
#define MAX_TRACES 4096

static const char *source_path(const struct ipc_receiver *e)
{
	return e->job->source->location[0]->path;
}

static struct task *current_task(const struct ipc_receiver *e)
{
	return e->job->task[e->next - 1];
}

static void count_bytes(struct ipc_receiver *e, uint64_t bytes)
{
	const uint64_t limit = current_task(e)->bytes;
	bytes = bytes < limit ? bytes : limit;
	if (bytes <= e->counted)
		return;
	atomic_fetch_add(e->run->bytes, bytes - e->counted);
	e->counted = bytes;
}

/* ---- tasks and their streams */

void ipc_receiver_finish_task(struct ipc_receiver *e)
{
	for (size_t i = 0; i < e->streams; i++) {
		if (recorder_close(e->stream[i]))
			e->status = -1;
		free(e->stream[i]);
	}
	if (e->next)
		count_bytes(e, UINT64_MAX);
	e->streams = 0;
	e->counted = 0;
	e->current = NULL;
}

void ipc_receiver_discard_task(struct ipc_receiver *e)
{
	if (!e->has_begun)
		return;
	struct task *t = current_task(e);
	ipc_receiver_finish_task(e);
	task_release_results(t, e->run->store);
	e->next--;
}

static void add_stream(struct ipc_receiver *e, uint64_t order)
{
	struct decoded *d = task_add_stream(current_task(e));
	struct recorder *r = mem_new(1, sizeof *r);
	d->order = order;
	recorder_open(r, &e->ops, e->run->store, d, &e->err);
	*ARRAY_PUSH(e->stream, e->streams, e->streams_cap) = r;
	e->current = r;
}

static bool enter_task(struct ipc_receiver *e, uint32_t number)
{
	if (number >= e->job->tasks || number < e->next)
		return false;
	ipc_receiver_finish_task(e);
	e->next = number + 1U;
	e->has_begun = true;
	if (e->job->source->streams)
		add_stream(e, 0);
	return true;
}

static bool enter_stream(struct ipc_receiver *e, const struct ipc_stream *s)
{
	if (!e->next || e->job->source->streams || s->number > e->streams || s->number >= IPC_MAX_STREAMS)
		return false;
	e->has_progress = true;
	if (s->number == e->streams)
		add_stream(e, s->order);
	e->current = e->stream[s->number];
	return true;
}

static bool put_damage(struct ipc_receiver *e, const char *reason, bool continues)
{
	if (!e->current)
		return false;
	if (event_sink_report_damage(&e->current->event_sink, reason, continues))
		e->status = -1;
	return true;
}

/* If the streams are not known, the death of the child affects all of them: it had not reported how much of each was
 * complete. */
void ipc_receiver_mark_damaged(struct ipc_receiver *e, const char *reason)
{
	struct source *s = e->job->source;
	if (s->streams) {
		put_damage(e, reason, false);
		return;
	}
	for (size_t i = 0; i < e->streams; i++)
		if (recorder_put_unknown(&e->stream[i]->event_sink))
			e->status = -1;
	if (!s->truncation)
		s->truncation = mem_dup(reason);
}

void ipc_receiver_give_up(struct ipc_receiver *e, const char *reason)
{
	while (e->next < e->job->tasks && enter_task(e, (uint32_t)e->next))
		ipc_receiver_mark_damaged(e, reason);
}

static bool receive_coverage(struct ipc_receiver *e, const struct ipc_coverage *c)
{
	if (!e->current || c->cpu > UINT16_MAX || c->begin < 0 || c->end < c->begin)
		return false;
	if (event_sink_add_coverage(&e->current->event_sink, (uint16_t)c->cpu, c->begin, c->end))
		e->status = -1;
	return true;
}

/* ---- events */

static int64_t map_name(const struct ipc_receiver *e, int64_t id)
{
	return id > 0 && (uint64_t)id <= e->ids ? (int64_t)e->id[id - 1] : id == 0 ? 0 : EVENT_ABSENT;
}

static bool receive_event(struct ipc_receiver *e, struct event *ev)
{
	if (ev->kind >= EVENT_KIND_COUNT || ev->ts < 0)
		return false;
	const int64_t comm = map_name(e, ev->comm);
	ev->comm = comm > 0 ? (uint32_t)comm : 0;
	for (unsigned i = 0; i < event_args[ev->kind]; i++) {
		const struct role *role = layout_role((enum event_kind)ev->kind, i);
		if (role && role->is_text && ev->arg[i] != EVENT_ABSENT)
			ev->arg[i] = map_name(e, ev->arg[i]);
	}
	if (event_sink_put(&e->current->event_sink, ev))
		e->status = -1;
	return true;
}

static bool receive_events(struct ipc_receiver *e, const unsigned char *data, size_t len)
{
	if (!e->current || len % sizeof(struct event))
		return false;
	for (size_t at = 0; at < len && !e->status; at += sizeof(struct event)) {
		struct event ev;
		memcpy(&ev, data + at, sizeof ev);
		if (!receive_event(e, &ev))
			return false;
	}
	if (e->job->source->reader->endless)
		atomic_fetch_add(e->run->bytes, len / sizeof(struct event));
	return true;
}

/* ---- traces and sessions */

#define TERMINATE(text) ((text)[sizeof(text) - 1] = '\0')

static void receive_trace(struct ipc_receiver *e, struct metadata *m)
{
	struct source *s = e->job->source;
	TERMINATE(m->hostname);
	TERMINATE(m->tracer);
	TERMINATE(m->uuid);
	TERMINATE(m->clock_uuid);
	TERMINATE(m->clock_offset);
	TERMINATE(m->domain);
	for (size_t i = 0; i < s->traces; i++) {
		const struct metadata *other = &s->trace[i];
		if (!metadata_same_machine(other, m))
			e->status = error_set(&e->err, STATUS_INPUT, "name the session of each",
			                      "%s: traces of different machines or boots", source_path(e));
		else if (strcmp(m->domain, "kernel") == 0 && strcmp(other->domain, "kernel") == 0 &&
		         strcmp(m->uuid, other->uuid) != 0)
			e->status = error_set(&e->err, STATUS_INPUT, "name the session to read",
			                      "%s: more than one session records the kernel", source_path(e));
	}
	*ARRAY_PUSH(s->trace, s->traces, s->traces_cap) = *m;
}

static void receive_session(struct decoder_job *t, struct ipc_session *s)
{
	TERMINATE(s->host);
	TERMINATE(s->name);
	*ARRAY_PUSH(t->session, t->sessions, t->sessions_cap) = *s;
}

static bool receive_error(struct ipc_receiver *e, struct ipc_error *r)
{
	TERMINATE(r->text);
	TERMINATE(r->remedy);
	if ((r->status != STATUS_INPUT && r->status != STATUS_SYSTEM) || !r->text[0])
		return false;
	e->has_error = true;
	error_repeat(&e->err, (enum status)r->status, r->remedy, "%s", r->text);
	return true;
}

/* ---- messages */

static bool receive_text(struct ipc_receiver *e, enum ipc_message type, const unsigned char *data, size_t len)
{
	char text[256];
	struct source *s = e->job->source;
	snprintf(text, sizeof text, "%.*s", (int)(len < sizeof text ? len : sizeof text - 1), (const char *)data);
	switch (type) {
	case IPC_NAME:
		if (e->ids > MAX_NAMES)
			return false;
		*ARRAY_PUSH(e->id, e->ids, e->ids_cap) = string_cache_put(&e->names, text, sizeof text);
		return true;
	case IPC_DAMAGED:
		return put_damage(e, text, false);
	case IPC_SKIPPED:
		return put_damage(e, text, true);
	case IPC_TRUNCATED:
		if (!s->truncation)
			s->truncation = mem_dup(text);
		return true;
	default:
		return false;
	}
}

/* Size of each type of message with a fixed size; 0: variable size. */
union payload {
	uint32_t number;
	struct ipc_layout layout;
	uint64_t at;
	struct metadata trace;
	struct ipc_session session;
	struct ipc_stream stream;
	struct ipc_coverage coverage;
	struct faults faults;
	struct ipc_error error;
};
static const size_t payload_size[IPC_MESSAGES] = {
	[IPC_LAYOUT] = sizeof(struct ipc_layout), [IPC_TRACE] = sizeof(struct metadata),
	[IPC_SESSION] = sizeof(struct ipc_session), [IPC_TASK] = sizeof(uint32_t),
	[IPC_STREAM] = sizeof(struct ipc_stream), [IPC_COVERAGE] = sizeof(struct ipc_coverage),
	[IPC_FAULTS] = sizeof(struct faults), [IPC_PROGRESS] = sizeof(uint64_t), [IPC_ERROR] = sizeof(struct ipc_error),
};

static bool receive_fixed_size(struct ipc_receiver *e, enum ipc_message type, union payload *u)
{
	struct source *s = e->job->source;
	switch (type) {
	case IPC_LAYOUT:
		if (u->layout.chosen > s->mapping.layouts)
			return false;
		atomic_store(&s->mapping.enabled_events, u->layout.enabled_events & ENABLED_ALL);
		atomic_store(&s->mapping.chosen, u->layout.chosen);
		return true;
	case IPC_TRACE:
		if (s->traces < MAX_TRACES)
			receive_trace(e, &u->trace);
		return true;
	case IPC_SESSION:
		if (e->job->sessions < MAX_SESSIONS)
			receive_session(e->job, &u->session);
		return true;
	case IPC_TASK:
		return enter_task(e, u->number);
	case IPC_STREAM:
		return enter_stream(e, &u->stream);
	case IPC_COVERAGE:
		return receive_coverage(e, &u->coverage);
	case IPC_FAULTS:
		if (e->next)
			current_task(e)->faults = u->faults;
		return e->next > 0;
	case IPC_PROGRESS:
		e->has_progress = true;
		if (e->next)
			count_bytes(e, u->at);
		return true;
	default:
		return receive_error(e, &u->error);
	}
}

static bool receive_message(struct ipc_receiver *e, const struct ipc_header *h, const unsigned char *data)
{
	union payload u;
	if (h->type >= IPC_MESSAGES)
		return false;
	if (h->type == IPC_EVENTS)
		return receive_events(e, data, h->len);
	e->has_ended |= h->type == IPC_END;
	if (h->type == IPC_END)
		return true;
	if (!payload_size[h->type])
		return receive_text(e, (enum ipc_message)h->type, data, h->len);
	if (payload_size[h->type] != h->len)
		return false;
	memcpy(&u, data, h->len);
	return receive_fixed_size(e, (enum ipc_message)h->type, &u);
}

bool ipc_receiver_parse(struct ipc_receiver *e)
{
	size_t at = 0;
	while (e->used - at >= sizeof(struct ipc_header) && !e->status) {
		struct ipc_header h;
		memcpy(&h, e->buf + at, sizeof h);
		if (h.len > IPC_MAX_LEN)
			return false;
		if (e->used - at < sizeof h + h.len)
			break;
		if (!receive_message(e, &h, e->buf + at + sizeof h))
			return false;
		at += sizeof h + h.len;
	}
	memmove(e->buf, e->buf + at, e->used - at);
	e->used -= at;
	return true;
}

static int ignore_progress(struct event_sink *o, uint64_t bytes)
{
	(void)o;
	(void)bytes;
	return 0;
}

void ipc_receiver_open(struct ipc_receiver *e, struct decoder_job *t, const struct decoder_run *run)
{
	*e = (struct ipc_receiver){ .job = t,
		                        .run = run,
		                        .ops = { .put = recorder_put,
		                                 .add_coverage = recorder_add_coverage,
		                                 .report_damage = recorder_report_damage,
		                                 .report_progress = ignore_progress } };
	e->buf = mem_new(1, IPC_BUFFER_SIZE);
	string_cache_init(&e->names, t->source->mapping.names);
}

void ipc_receiver_next_child(struct ipc_receiver *e)
{
	e->used = e->ids = 0;
	e->has_ended = e->has_begun = false;
}

void ipc_receiver_release(struct ipc_receiver *e)
{
	ipc_receiver_finish_task(e);
	string_cache_release(&e->names);
	free(e->stream);
	free(e->id);
	free(e->buf);
}
