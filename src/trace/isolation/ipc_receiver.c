#include "trace/isolation/ipc_receiver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define MOST_NAMES (1U << 24)
#define MOST_SESSIONS 4096
#define MOST_TRACES 4096

static const char *name_of(const struct ear *e)
{
	return e->told->source->place[0]->path;
}

static struct task *task_of(const struct ear *e)
{
	return e->told->task[e->next - 1];
}

static void count_bytes(struct ear *e, uint64_t bytes)
{
	const uint64_t most = task_of(e)->bytes;
	bytes = bytes < most ? bytes : most;
	if (bytes <= e->counted)
		return;
	atomic_fetch_add(e->work->bytes, bytes - e->counted);
	e->counted = bytes;
}

/* ---- tasks and their streams */

void ear_leave(struct ear *e)
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

void ear_forget(struct ear *e)
{
	if (!e->begun)
		return;
	struct task *t = task_of(e);
	ear_leave(e);
	task_forget(t, e->work->store);
	e->next--;
}

static void add_stream(struct ear *e, uint64_t order)
{
	struct decoded *d = task_add(task_of(e));
	struct recorder *r = mem_new(1, sizeof *r);
	d->order = order;
	recorder_open(r, &e->ops, e->work->store, d, &e->err);
	*ARRAY_PUSH(e->stream, e->streams, e->streams_cap) = r;
	e->current = r;
}

static bool enter_task(struct ear *e, uint32_t number)
{
	if (number >= e->told->tasks || number < e->next)
		return false;
	ear_leave(e);
	e->next = number + 1U;
	e->begun = true;
	if (e->told->source->streams)
		add_stream(e, 0);
	return true;
}

/* What came of a part is void: the stream will be read again. */
static bool begin_whole(struct ear *e)
{
	if (!e->next || !e->told->source->streams)
		return false;
	task_of(e)->status = DECODE_WHOLE;
	return true;
}

static bool enter_stream(struct ear *e, const struct tell_stream *s)
{
	if (!e->next || e->told->source->streams || s->number > e->streams || s->number >= TELL_STREAMS)
		return false;
	e->alive = true;
	if (s->number == e->streams)
		add_stream(e, s->order);
	e->current = e->stream[s->number];
	return true;
}

static bool damage(struct ear *e, const char *why, bool goes_on)
{
	if (!e->current)
		return false;
	if (outlet_damaged(&e->current->outlet, why, goes_on))
		e->status = -1;
	return true;
}

/* The child could not tell how far it had got in each stream. */
void ear_broken(struct ear *e, const char *why)
{
	struct source *s = e->told->source;
	if (s->streams) {
		damage(e, why, false);
		return;
	}
	for (size_t i = 0; i < e->streams; i++)
		if (recorder_lose_rest(&e->stream[i]->outlet))
			e->status = -1;
	if (!s->cut)
		s->cut = mem_dup(why);
}

void ear_give_up(struct ear *e, const char *why)
{
	while (e->next < e->told->tasks && enter_task(e, (uint32_t)e->next))
		ear_broken(e, why);
}

static bool take_coverage(struct ear *e, const struct tell_coverage *c)
{
	if (!e->current || c->cpu > UINT16_MAX || c->begin < 0 || c->end < c->begin)
		return false;
	if (outlet_covers(&e->current->outlet, (uint16_t)c->cpu, c->begin, c->end))
		e->status = -1;
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
	if (outlet_put(&e->current->outlet, ev))
		e->status = -1;
	return true;
}

static bool take_events(struct ear *e, const unsigned char *data, size_t len)
{
	if (!e->current || len % sizeof(struct event))
		return false;
	for (size_t at = 0; at < len && !e->status; at += sizeof(struct event)) {
		struct event ev;
		memcpy(&ev, data + at, sizeof ev);
		if (!take_event(e, &ev))
			return false;
	}
	if (e->told->source->reader->endless)
		atomic_fetch_add(e->work->bytes, len / sizeof(struct event));
	return true;
}

/* ---- traces and sessions */

#define TERMINATE(text) ((text)[sizeof(text) - 1] = '\0')

static void take_trace(struct ear *e, struct metadata *m)
{
	struct source *s = e->told->source;
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
			                      "%s: traces of different machines or boots", name_of(e));
		else if (strcmp(m->domain, "kernel") == 0 && strcmp(other->domain, "kernel") == 0 &&
		         strcmp(m->uuid, other->uuid) != 0)
			e->status = error_set(&e->err, STATUS_INPUT, "name the session to read",
			                      "%s: more than one session records the kernel", name_of(e));
	}
	*ARRAY_PUSH(s->trace, s->traces, s->traces_cap) = *m;
}

static void take_session(struct told *t, struct tell_session *s)
{
	TERMINATE(s->host);
	TERMINATE(s->name);
	*ARRAY_PUSH(t->session, t->sessions, t->sessions_cap) = *s;
}

static bool take_refusal(struct ear *e, struct tell_refusal *r)
{
	TERMINATE(r->text);
	TERMINATE(r->mend);
	if ((r->status != STATUS_INPUT && r->status != STATUS_SYSTEM) || !r->text[0])
		return false;
	e->refused = true;
	error_set(&e->err, (enum status)r->status, r->mend, "%s", r->text);
	return true;
}

/* ---- what was said */

static bool take_text(struct ear *e, enum tell what, const unsigned char *data, size_t len)
{
	char text[256];
	struct source *s = e->told->source;
	snprintf(text, sizeof text, "%.*s", (int)(len < sizeof text ? len : sizeof text - 1), (const char *)data);
	switch (what) {
	case TELL_NAME:
		if (e->ids > MOST_NAMES)
			return false;
		*ARRAY_PUSH(e->id, e->ids, e->ids_cap) = name_cache_put(&e->names, text, sizeof text);
		return true;
	case TELL_DAMAGED:
		return damage(e, text, false);
	case TELL_SKIPPED:
		return damage(e, text, true);
	case TELL_CUT:
		if (!s->cut)
			s->cut = mem_dup(text);
		return true;
	default:
		return false;
	}
}

/* What has a size of its own; 0: any. */
union said {
	uint32_t number;
	struct tell_layout layout;
	uint64_t at;
	struct metadata trace;
	struct tell_session session;
	struct tell_stream stream;
	struct tell_coverage coverage;
	struct faults faults;
	struct tell_refusal refusal;
};
static const size_t size_of[TELLS] = {
	[TELL_LAYOUT] = sizeof(struct tell_layout), [TELL_TRACE] = sizeof(struct metadata),
	[TELL_SESSION] = sizeof(struct tell_session), [TELL_STRETCH] = sizeof(uint32_t),
	[TELL_STREAM] = sizeof(struct tell_stream), [TELL_COVERS] = sizeof(struct tell_coverage),
	[TELL_FAULTS] = sizeof(struct faults), [TELL_AT] = sizeof(uint64_t), [TELL_REFUSE] = sizeof(struct tell_refusal),
};

static bool take_sized(struct ear *e, enum tell what, union said *u)
{
	struct source *s = e->told->source;
	switch (what) {
	case TELL_LAYOUT:
		if (u->layout.chosen > s->meaning.layouts)
			return false;
		atomic_store(&s->meaning.asked, u->layout.asked & ASKED_ALL);
		atomic_store(&s->meaning.chosen, u->layout.chosen);
		return true;
	case TELL_TRACE:
		if (s->traces < MOST_TRACES)
			take_trace(e, &u->trace);
		return true;
	case TELL_SESSION:
		if (e->told->sessions < MOST_SESSIONS)
			take_session(e->told, &u->session);
		return true;
	case TELL_STRETCH:
		return enter_task(e, u->number);
	case TELL_STREAM:
		return enter_stream(e, &u->stream);
	case TELL_COVERS:
		return take_coverage(e, &u->coverage);
	case TELL_FAULTS:
		if (e->next)
			task_of(e)->faults = u->faults;
		return e->next > 0;
	case TELL_AT:
		e->alive = true;
		if (e->next)
			count_bytes(e, u->at);
		return true;
	default:
		return take_refusal(e, &u->refusal);
	}
}

static bool take(struct ear *e, const struct tell_head *h, const unsigned char *data)
{
	union said u;
	if (h->tell >= TELLS)
		return false;
	if (h->tell == TELL_EVENTS)
		return take_events(e, data, h->len);
	e->ended |= h->tell == TELL_END;
	if (h->tell == TELL_END)
		return true;
	if (h->tell == TELL_WHOLE)
		return begin_whole(e);
	if (!size_of[h->tell])
		return take_text(e, (enum tell)h->tell, data, h->len);
	if (size_of[h->tell] != h->len)
		return false;
	memcpy(&u, data, h->len);
	return take_sized(e, (enum tell)h->tell, &u);
}

bool ear_take(struct ear *e)
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

static int at(struct outlet *o, uint64_t bytes)
{
	(void)o;
	(void)bytes;
	return 0;
}

void ear_open(struct ear *e, struct told *t, const struct told_work *work)
{
	*e = (struct ear){ .told = t, .work = work,
		.ops = { .put = recorder_put, .covers = recorder_covers, .damaged = recorder_damaged, .at = at } };
	e->buf = mem_new(1, EAR_BUFFER);
	name_cache_init(&e->names, t->source->meaning.names);
}

void ear_next_child(struct ear *e)
{
	e->used = e->ids = 0;
	e->ended = e->begun = false;
}

void ear_release(struct ear *e)
{
	ear_leave(e);
	name_cache_release(&e->names);
	free(e->stream);
	free(e->id);
	free(e->buf);
}
