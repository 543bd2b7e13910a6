/* Bundles to events.
 *
 * A bundle contains events as messages, and switches and sched_waking events in a compact encoding: one array per field,
 * times as differences, names as indexes into a table. Both parts are in time order and are merged here.
 *
 * The compact encoding contains neither the previous thread of a switch nor a waking event's context: both are the
 * current thread of the CPU, which the previous switch and the context of other events show. It is unknown before the
 * first of these, and after a loss. The name of the previous thread stays unknown: it may have changed since the thread
 * got the CPU. */
#include "trace/perfetto/bundle.h"

#include "base/base.h"

#define TIME_MAX (INT64_MAX / 4)  /* latest time on the events' clock, ns: 73 years */

enum { EVENT_TIMESTAMP = 1, EVENT_TID = 2, EVENT_FLAGS = 5 };

/* Fields of the compact encoding. */
enum {
	SWITCH_TIME = 1, SWITCH_PREV_STATE, SWITCH_NEXT_TID, SWITCH_NEXT_PRIO, COMPACT_NAME, SWITCH_NEXT_COMM,
	WAKING_TIME, WAKING_TID, WAKING_CPU, WAKING_PRIO, WAKING_COMM, WAKING_FLAGS
};

/* ---- reading a bundle into arrays */

static void column_push(struct bundle_column *c, uint64_t value)
{
	*ARRAY_PUSH(c->value, c->len, c->cap) = (int64_t)value;
}

static void read_compact(struct bundle_decoder *d, const struct proto_field *compact)
{
	struct proto_message m = proto_nested(compact);
	struct proto_field f;
	while (proto_next(&m, &f)) {
		if (f.number == COMPACT_NAME && f.type == WIRE_BYTES) {
			*ARRAY_PUSH(d->comm, d->comms, d->comms_cap) = (struct bundle_comm){ (const char *)f.data, f.len };
		} else if (f.number < COMPACT_FIELDS && f.type == WIRE_VARINT) {
			column_push(&d->column[f.number], f.value);
		} else if (f.number < COMPACT_FIELDS && f.type == WIRE_BYTES) {
			uint64_t value;
			struct proto_message packed = proto_nested(&f);
			while (packed.at < packed.end && proto_varint(&packed, &value))
				column_push(&d->column[f.number], value);
			m.is_bad |= packed.is_bad;
		}
	}
	if (m.is_bad)
		d->damage = "a compact encoding is damaged";
}

static void read_event(struct bundle_decoder *d, const struct proto_field *event)
{
	struct bundle_event *e = ARRAY_PUSH(d->event, d->events, d->events_cap);
	struct proto_message m = proto_nested(event);
	struct proto_field f;
	bool has_time = false;
	*e = (struct bundle_event){ .tid = EVENT_ABSENT, .flags = EVENT_ABSENT };
	while (proto_next(&m, &f)) {
		if (f.number == EVENT_TIMESTAMP && f.type == WIRE_VARINT) {
			e->ts = f.value;
			has_time = true;
		} else if (f.number == EVENT_TID && f.type == WIRE_VARINT) {
			e->tid = (int32_t)f.value;
		} else if (f.number == EVENT_FLAGS && f.type == WIRE_VARINT) {
			e->flags = (int64_t)f.value;
		} else if (f.type == WIRE_BYTES) {
			e->message = f;
		}
	}
	if (!m.is_bad && has_time)
		return;
	d->events--;
	d->damage = "an event is damaged";
}

/* Reads the fields of the bundle into *d. Returns true if events before it are missing. */
static bool read_bundle(struct bundle_decoder *d, const unsigned char *data, size_t len)
{
	struct proto_message m = proto_open(data, len);
	struct proto_field f;
	bool is_lost = false;
	for (size_t i = 0; i < COMPACT_FIELDS; i++)
		d->column[i].len = 0;
	d->comms = d->events = 0;
	d->previous_end = INT64_MIN;
	d->damage = NULL;
	while (proto_next(&m, &f)) {
		if (f.number == BUNDLE_EVENT && f.type == WIRE_BYTES)
			read_event(d, &f);
		else if (f.number == BUNDLE_COMPACT && f.type == WIRE_BYTES)
			read_compact(d, &f);
		else if (f.number == BUNDLE_DESCRIPTION && f.type == WIRE_BYTES)
			event_classes_describe(d->classes, d->sequence, &f);
		else if (f.number == BUNDLE_ERROR)
			d->damage = "Perfetto could not read a page of the kernel's buffer";
		else if (f.number == BUNDLE_LOST && f.type == WIRE_VARINT)
			is_lost = f.value != 0;
		else if (f.number == BUNDLE_PREVIOUS_END && f.type == WIRE_VARINT && f.value <= TIME_MAX)
			d->previous_end = (int64_t)f.value;
	}
	if (m.is_bad)
		d->damage = "a bundle of events is damaged";
	return is_lost;
}

/* ---- events */

static void set_context(const struct bundle_decoder *d, struct event *ev)
{
	const uint64_t *process = ev->tid > 0 ? map_find(&d->machine->process_by_tid, (uint64_t)ev->tid) : NULL;
	const uint64_t *name = ev->tid > 0 && !d->has_switch ? map_find(&d->machine->name_by_tid, (uint64_t)ev->tid) : NULL;
	if (process && ev->pid < 0)
		ev->pid = (int32_t)*process;
	if (name && !ev->comm) {  /* after the first switch, the table could be wrong for renamed threads */
		const char *text = strtab_get(&d->machine->names, (uint32_t)*name);
		ev->comm = string_cache_put(d->names, text, strlen(text));
	}
}

/* Puts the loss before an event. It starts 1 ns after the previous event, because the state that this event shows is
 * valid at its own time. */
static int put_lost(struct bundle_decoder *d, int64_t now)
{
	d->is_after_loss = false;
	d->current = -1;
	if (d->last == INT64_MIN)
		return 0;
	d->out->faults.uncounted += d->is_uncounted;
	const int64_t begin = d->last >= now ? now : d->last + 1;
	return timestamp_check_put(&d->check, d->number, &(struct event){ .ts = begin, .kind = EV_LOST, .cpu = d->cpu,
		.tid = -1, .pid = -1, .lost = { now, EVENT_ABSENT } });
}

/* Puts an event with the values *v. ts: on the events' clock, ns. */
static int put_event(struct bundle_decoder *d, uint64_t ts, const struct event_class *cls, const struct event_values *v)
{
	struct event ev;
	const int64_t now = (int64_t)ts + d->offset;
	event_class_fill(d->classes, cls, v, d->cpu, &ev);
	ev.ts = now;
	d->has_switch |= ev.kind == EV_SWITCH;
	set_context(d, &ev);
	d->current = ev.kind == EV_SWITCH ? ev.sw.next_tid : ev.tid >= 0 ? ev.tid : d->current;
	d->first = d->first == INT64_MIN ? now : d->first;
	d->last = now > d->last ? now : d->last;
	return timestamp_check_put(&d->check, d->number, &ev);
}

static int put_message(struct bundle_decoder *d, const struct bundle_event *e)
{
	struct event_values v = { 0 };
	if (e->tid != EVENT_ABSENT)
		values_set(&v, SLOT_TID, e->tid);
	if (e->flags != EVENT_ABSENT)
		values_set(&v, SLOT_FLAGS, e->flags);
	const struct event_class *cls = event_classes_read(d->classes, d->sequence, &e->message, &v);
	return put_event(d, e->ts, cls, &v);
}

/* Puts the event of index i of one compact part. */
static int put_compact(struct bundle_decoder *d, const struct compact_part *part, uint64_t ts, size_t i)
{
	struct event_values v = { 0 };
	if (d->current >= 0) {
		values_set(&v, SLOT_TID, d->current);
		if (part->prev_tid)
			values_set(&v, part->prev_tid, d->current);
	}
	for (size_t k = 0; k < part->fields; k++) {
		const struct bundle_column *c = &d->column[part->field[k].column];
		const unsigned slot = part->field[k].slot;
		if (i >= c->len)
			continue;
		if (!part->field[k].is_name)
			values_set(&v, slot, c->value[i]);
		else if ((uint64_t)c->value[i] < d->comms)
			values_set_text(&v, slot, d->comm[c->value[i]].at, d->comm[c->value[i]].len);
	}
	return put_event(d, ts, part->cls, &v);
}

/* ---- merging */

/* The next event of each part of a bundle. */
struct bundle_merge {
	size_t event, waking, to;       /* indexes; to: of the next switch */
	uint64_t waking_ts, switch_ts;  /* ns */
};

/* Returns the time of event i of a compact part; UINT64_MAX: none. ts: time of the event before it. */
static uint64_t compact_time(const struct bundle_column *c, size_t i, uint64_t ts)
{
	uint64_t next;
	if (i >= c->len)
		return UINT64_MAX;
	return __builtin_add_overflow(ts, (uint64_t)c->value[i], &next) ? UINT64_MAX - 1 : next;
}

/* Puts the earliest event of the three parts. Of events with the same time, a waking event is first, because the thread
 * that is about to leave the CPU caused it; then other events, unless they are in the context of the next thread. */
static int put_next(struct bundle_decoder *d, struct bundle_merge *m)
{
	const struct bundle_event *e = m->event < d->events ? &d->event[m->event] : NULL;
	const uint64_t event_ts = e ? e->ts : UINT64_MAX;
	const uint64_t compact_ts = m->waking_ts <= m->switch_ts ? m->waking_ts : m->switch_ts;
	const bool is_waking = m->waking_ts == compact_ts && m->waking_ts <= event_ts;
	const bool is_of_next = event_ts == m->switch_ts && e && e->tid != EVENT_ABSENT && e->tid != d->current;
	const bool is_event = !is_waking && e && event_ts <= compact_ts && !is_of_next;
	const uint64_t ts = is_event ? event_ts : compact_ts;
	int status;
	if (ts > TIME_MAX || (int64_t)ts + d->offset < 0) {
		d->damage = "an event has an impossible time";
		return 0;
	}
	if (d->is_after_loss && put_lost(d, (int64_t)ts + d->offset))
		return -1;
	if (is_event) {
		m->event++;
		return put_message(d, e);
	}
	if (is_waking) {
		status = put_compact(d, &d->waking, ts, m->waking++);
		m->waking_ts = compact_time(&d->column[WAKING_TIME], m->waking, ts);
	} else {
		status = put_compact(d, &d->to, ts, m->to++);
		m->switch_ts = compact_time(&d->column[SWITCH_TIME], m->to, ts);
	}
	return status;
}

int bundle_decode(struct bundle_decoder *d, const unsigned char *data, size_t len, bool follows_loss)
{
	const bool is_lost = read_bundle(d, data, len);
	struct bundle_merge m = { .waking_ts = compact_time(&d->column[WAKING_TIME], 0, 0),
		.switch_ts = compact_time(&d->column[SWITCH_TIME], 0, 0) };
	const char *damage = d->damage;
	d->damage = NULL;
	if (!d->number++ && d->previous_end != INT64_MIN)
		d->begin = d->previous_end && d->previous_end <= TIME_MAX ? d->previous_end + d->offset : 0;
	const bool is_missing = follows_loss || (d->last != INT64_MIN && d->previous_end > d->last - d->offset);
	const struct perfetto_counters *counters = &d->machine->counters;
	d->is_uncounted = (d->is_after_loss && d->is_uncounted) || is_missing ||
	                  (is_lost && !(counters->has_start && counters->has_end));
	d->is_after_loss |= is_missing || is_lost;
	while (!d->damage &&
	       (m.event < d->events || m.waking < d->column[WAKING_TIME].len || m.to < d->column[SWITCH_TIME].len))
		if (put_next(d, &m))
			return -1;
	damage = d->damage ? d->damage : damage;
	if (!damage)
		return 0;
	d->is_after_loss = d->is_uncounted = true;
	return event_sink_report_damage(d->out, damage, true);
}

static void open_part(struct bundle_decoder *d, struct compact_part *part, unsigned number, const struct compact_field *f,
                      size_t n)
{
	part->cls = event_classes_known(d->classes, number);
	for (size_t i = 0; part->cls && i < n; i++) {
		part->field[part->fields] = f[i];
		part->field[part->fields].slot = event_class_slot(part->cls, f[i].name);
		part->fields += part->field[part->fields].slot < EVENT_SLOTS;
	}
}

void bundle_decoder_open(struct bundle_decoder *d)
{
	static const struct compact_field of_switch[] = {
		{ "prev_state", SWITCH_PREV_STATE, false, 0 }, { "next_pid", SWITCH_NEXT_TID, false, 0 },
		{ "next_prio", SWITCH_NEXT_PRIO, false, 0 }, { "next_comm", SWITCH_NEXT_COMM, true, 0 },
	}, of_waking[] = {
		{ "pid", WAKING_TID, false, 0 }, { "target_cpu", WAKING_CPU, false, 0 }, { "prio", WAKING_PRIO, false, 0 },
		{ "comm", WAKING_COMM, true, 0 },
	};
	d->first = d->last = d->begin = INT64_MIN;
	d->current = -1;
	open_part(d, &d->to, KNOWN_SWITCH, of_switch, sizeof of_switch / sizeof *of_switch);
	open_part(d, &d->waking, KNOWN_WAKING, of_waking, sizeof of_waking / sizeof *of_waking);
	if (d->to.cls)
		d->to.prev_tid = event_class_slot(d->to.cls, "prev_pid");
	d->waking.field[d->waking.fields++] = (struct compact_field){ "", WAKING_FLAGS, false, SLOT_FLAGS };
	timestamp_check_open(&d->check, d->out, INT64_MAX);
}

int bundle_decoder_close(struct bundle_decoder *d)
{
	const int status = timestamp_check_close(&d->check);
	for (size_t i = 0; i < COMPACT_FIELDS; i++)
		free(d->column[i].value);
	free(d->comm);
	free(d->event);
	return status;
}
