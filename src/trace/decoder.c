#include "trace/decoder.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <babeltrace2/babeltrace.h>

#include "base/mem.h"
#include "trace/bind.h"

#define SLACK 1000000000U  /* clock cycles that an event's time may be behind its packet's end (old tracers' quirk) */

struct job {
	const struct decode *what;
	struct decoded *out;
	struct error *err;
	int status;
	struct writer writer;
	uint16_t cpu;         /* of the current packet */
	int64_t last_ts;      /* of the last event of the packet, INT64_MIN: none yet */
	struct event lost;    /* found at the beginning of a packet whose tail is missing; ts INT64_MIN: none */
};

struct decoder {
	struct ctf *ctf;
	const char *dir;           /* for messages */
	const bt_plugin *plugin;
	bt_graph *graph;
	const bt_component_source *source;
	bt_component_class_sink *sink_class;
	struct name_cache names;
	struct binder *binder;     /* made with the first stream */
	const struct layout *layout;
	struct job *job;
};

/* Loading and unloading plugins changes lists inside libbabeltrace2 that have no lock. */
static pthread_mutex_t plugin_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- errors */

/* Moves libbabeltrace2's error of this thread into *err.  Of its chain of causes the root says why; the details that its
 * messages end in (addresses, names of components) are left out. */
static int take_error(struct error *err, const char *what)
{
	const bt_error *e = bt_current_thread_take_error();
	char text[512] = "unknown error";
	if (e && bt_error_get_cause_count(e)) {
		snprintf(text, sizeof text, "%s", bt_error_cause_get_message(bt_error_borrow_cause_by_index(e, 0)));
		if (strstr(text, "returned EOF"))
			snprintf(text, sizeof text, "the file ends within an event");
		char *detail = strstr(text, "-addr=");
		while (detail && detail > text && detail[-1] != ' ' )
			detail--;
		if (detail && detail > text + 2)
			detail[-2] = '\0';  /* ": " or ", " */
	}
	if (e)
		bt_error_release(e);
	return error_set(err, STATUS_INPUT, NULL, "%s: %s", what, text);
}

/* ---- messages */

static int64_t time_of(const bt_clock_snapshot *cs, int64_t otherwise)
{
	int64_t ns;
	if (!cs || bt_clock_snapshot_get_ns_from_origin(cs, &ns) != BT_CLOCK_SNAPSHOT_GET_NS_FROM_ORIGIN_STATUS_OK)
		return otherwise;
	return ns;
}

static int put(struct job *j, const struct event *ev)
{
	return writer_put(&j->writer, ev, j->err);
}

/* One damaged time would push all later ones to it, as times never go back. */
static bool is_beyond_packet(const struct job *j, const bt_clock_snapshot *cs)
{
	const struct decode *w = j->what;
	const uint64_t i = j->out->packets - 1;
	return i < w->packets && w->packet[i].end && w->packet[i].end <= UINT64_MAX - SLACK &&
	       bt_clock_snapshot_get_value(cs) > w->packet[i].end + SLACK;
}

static int on_event(struct decoder *d, struct job *j, const bt_message *msg)
{
	const bt_event *event = bt_message_event_borrow_event_const(msg);
	struct event ev;
	const bt_stream_class *sc = bt_event_class_borrow_stream_class_const(bt_event_borrow_class_const(event));
	const bt_clock_snapshot *cs = !bt_stream_class_borrow_default_clock_class_const(sc) ? NULL :
		bt_message_event_borrow_default_clock_snapshot_const(msg);
	if (cs && is_beyond_packet(j, cs)) {
		j->out->broken = mem_dup("an event's time lies far behind its packet's end");
		return 0;
	}
	ev.ts = time_of(cs, INT64_MIN);
	if (ev.ts == INT64_MIN) {
		j->out->untimed++;
		return 0;
	}
	j->last_ts = ev.ts;
	binder_event(d->binder, event, j->cpu, &ev);
	return put(j, &ev);
}

static struct event lost_event(const struct job *j, int64_t begin, int64_t end, int64_t count)
{
	return (struct event){ .ts = begin, .kind = EV_LOST, .cpu = j->cpu, .tid = -1, .pid = -1,
		.lost = { end < begin ? begin : end, count } };
}

/* LTTng counts a packet's losses when it closes it, and it loses events when the packet is full and the next one is
 * not free: they are missing between the last event and the end of the packet whose counter grew.  Then the span
 * that libbabeltrace2 gives (the whole packet) is narrowed to that tail.  So is what was lost before or in the first
 * packet, for which libbabeltrace2 gives neither number nor a time at which it could be put. */
static int on_lost(struct job *j, int64_t begin, int64_t end, int64_t count, bool tail)
{
	struct event ev = lost_event(j, begin, end, count);
	if (!tail && j->out->packets)
		return put(j, &ev);
	j->lost = ev;
	return 0;
}

static int on_discarded_events(struct decoder *d, struct job *j, const bt_message *msg)
{
	const bt_stream_class *sc =
		bt_stream_borrow_class_const(bt_message_discarded_events_borrow_stream_const(msg));
	uint64_t n;
	int64_t count = EVENT_ABSENT;
	if (j->what->before && !j->out->packets)
		return 0;  /* the whole stream's count so far: see on_first_packet() */
	bool counted = bt_message_discarded_events_get_count(msg, &n) == BT_PROPERTY_AVAILABILITY_AVAILABLE;
	if (!counted && !j->out->packets) {
		n = j->what->lost_first;
		counted = n > 0;
	}
	j->out->uncounted += !counted;
	if (counted) {
		j->out->lost_events += n;
		count = (int64_t)(n & INT64_MAX);
	}
	int64_t begin = j->writer.ts, end = begin;
	if (bt_stream_class_discarded_events_have_default_clock_snapshots(sc)) {
		begin = time_of(bt_message_discarded_events_borrow_beginning_default_clock_snapshot_const(msg), begin);
		end = time_of(bt_message_discarded_events_borrow_end_default_clock_snapshot_const(msg), begin);
	}
	return on_lost(j, begin, end, count, d->layout->lost_tail);
}

static int on_discarded_packets(struct job *j, const bt_message *msg)
{
	const bt_stream_class *sc =
		bt_stream_borrow_class_const(bt_message_discarded_packets_borrow_stream_const(msg));
	uint64_t n;
	if (bt_message_discarded_packets_get_count(msg, &n) == BT_PROPERTY_AVAILABILITY_AVAILABLE)
		j->out->lost_packets += n;
	int64_t begin = j->writer.ts, end = begin;
	if (bt_stream_class_discarded_packets_have_default_clock_snapshots(sc)) {
		begin = time_of(bt_message_discarded_packets_borrow_beginning_default_clock_snapshot_const(msg), begin);
		end = time_of(bt_message_discarded_packets_borrow_end_default_clock_snapshot_const(msg), begin);
	}
	struct event ev = lost_event(j, begin, end, EVENT_ABSENT);
	return put(j, &ev);
}

static void choose_layout(struct decoder *d, const bt_trace_class *tc)
{
	size_t best = 0, best_score = 0;
	for (size_t i = 0; i < d->ctf->layouts; i++) {
		size_t score = binder_score(d->ctf->layout[i], tc);
		if (score > best_score) {
			best = i;
			best_score = score;
		}
	}
	d->layout = d->ctf->layout[best];
	d->binder = binder_new(d->layout, &d->names);
	if (best_score)
		atomic_store(&d->ctf->chosen, best + 1);
}

/* A part of a stream: what was lost between its first packet and the one before it, which libbabeltrace2 did not see. */
static int on_first_packet(struct job *j, int64_t begin)
{
	const struct decode *w = j->what;
	if (w->lost_from != INT64_MIN) {
		struct event ev = lost_event(j, w->lost_from, begin, EVENT_ABSENT);
		if (put(j, &ev))
			return -1;
	}
	uint64_t n = w->before ? w->packet[0].discarded - w->before->discarded : 0;
	if (n && n <= INT64_MAX) {
		j->out->lost_events += n;
		j->lost = lost_event(j, begin, begin, (int64_t)n);
	}
	return 0;
}

static void check_packet(struct job *j, const bt_clock_snapshot *begin)
{
	const struct decode *w = j->what;
	const uint64_t i = j->out->packets;
	if (i >= w->packets || (begin && w->packet[i].begin && bt_clock_snapshot_get_value(begin) != w->packet[i].begin))
		j->out->unexpected = true;
}

static int on_packet_begin(struct decoder *d, struct job *j, const bt_message *msg)
{
	const bt_packet *packet = bt_message_packet_beginning_borrow_packet_const(msg);
	const bt_stream_class *sc = bt_stream_borrow_class_const(bt_packet_borrow_stream_const(packet));
	const bt_clock_snapshot *begin = !bt_stream_class_packets_have_beginning_default_clock_snapshot(sc) ? NULL :
		bt_message_packet_beginning_borrow_default_clock_snapshot_const(msg);
	int64_t cpu = binder_packet_cpu(d->binder, packet);
	if (cpu >= 0 && cpu <= UINT16_MAX)
		j->cpu = (uint16_t)cpu;
	j->lost.cpu = j->cpu;
	if (j->lost.ts > time_of(begin, INT64_MAX))
		j->lost.ts = time_of(begin, INT64_MAX);
	j->last_ts = INT64_MIN;
	if (j->what->check)
		check_packet(j, begin);
	if (!j->out->packets && on_first_packet(j, time_of(begin, j->writer.ts)))
		return -1;
	j->out->packets++;
	j->out->open = true;
	return 0;
}

/* end is NULL when the stream ends without the packet's end, or when packets have no end time. */
static int on_packet_end(struct job *j, const bt_clock_snapshot *end)
{
	const struct decode *w = j->what;
	const uint64_t i = j->out->packets;
	if (j->out->open && i && i <= w->packets) {
		atomic_fetch_add_explicit(w->bytes, w->packet[i - 1].size, memory_order_relaxed);
		j->out->bytes += w->packet[i - 1].size;
	}
	j->out->open = false;
	if (j->lost.ts == INT64_MIN)
		return 0;
	struct event ev = j->lost;
	j->lost.ts = INT64_MIN;
	if (j->last_ts > ev.ts)
		ev.ts = j->last_ts;
	ev.lost.end = time_of(end, ev.lost.end);
	if (ev.lost.end < ev.ts)
		ev.lost.end = ev.ts;
	return put(j, &ev);
}

static int on_packet_end_message(struct job *j, const bt_message *msg)
{
	const bt_packet *packet = bt_message_packet_end_borrow_packet_const(msg);
	const bt_stream_class *sc = bt_stream_borrow_class_const(bt_packet_borrow_stream_const(packet));
	return on_packet_end(j, !bt_stream_class_packets_have_end_default_clock_snapshot(sc) ? NULL :
		bt_message_packet_end_borrow_default_clock_snapshot_const(msg));
}

/* The stream cannot be read further: what the CPU did from here on is unknown. */
static int on_broken(struct job *j)
{
	if (!j->out->broken) {
		struct error why = ERROR_INIT;
		take_error(&why, "libbabeltrace2");
		j->out->broken = mem_dup(why.text);
	}
	j->lost.ts = INT64_MIN;
	if (j->writer.ts == INT64_MIN)
		return 0;
	struct event ev = lost_event(j, j->writer.ts, j->writer.ts, EVENT_ABSENT);
	return put(j, &ev);
}

static int on_message(struct decoder *d, struct job *j, const bt_message *msg)
{
	switch (bt_message_get_type(msg)) {
	case BT_MESSAGE_TYPE_EVENT:
		return on_event(d, j, msg);
	case BT_MESSAGE_TYPE_STREAM_BEGINNING:
		if (!d->binder)
			choose_layout(d, bt_trace_borrow_class_const(bt_stream_borrow_trace_const(
				bt_message_stream_beginning_borrow_stream_const(msg))));
		return 0;
	case BT_MESSAGE_TYPE_PACKET_BEGINNING:
		return on_packet_begin(d, j, msg);
	case BT_MESSAGE_TYPE_PACKET_END:
		return on_packet_end_message(j, msg);
	case BT_MESSAGE_TYPE_DISCARDED_EVENTS:
		return on_discarded_events(d, j, msg);
	case BT_MESSAGE_TYPE_DISCARDED_PACKETS:
		return on_discarded_packets(j, msg);
	default:
		return 0;
	}
}

static bool enough(const struct job *j)
{
	return j->what->limit && !j->out->open && j->out->packets == j->what->packets;
}

static int drain(struct decoder *d, struct job *j, bt_message_iterator *it)
{
	while (!atomic_load_explicit(j->what->cancelled, memory_order_relaxed)) {
		bt_message_array_const msgs;
		uint64_t count = 0;
		switch (bt_message_iterator_next(it, &msgs, &count)) {
		case BT_MESSAGE_ITERATOR_NEXT_STATUS_OK:
			break;
		case BT_MESSAGE_ITERATOR_NEXT_STATUS_END:
			return 0;
		case BT_MESSAGE_ITERATOR_NEXT_STATUS_AGAIN:
			continue;
		default:
			return on_broken(j);
		}
		int status = 0;
		for (uint64_t i = 0; i < count; i++) {
			if (!status && !enough(j) && !j->out->broken)
				status = on_message(d, j, msgs[i]);
			bt_message_put_ref(msgs[i]);
		}
		if (status)
			return -1;
		if (j->out->broken)
			return on_broken(j);
		if (enough(j))
			return 0;
	}
	return error_set(j->err, STATUS_CANCELLED, NULL, "reading traces: interrupted");
}

/* ---- the sink */

static bt_component_class_initialize_method_status sink_init(bt_self_component_sink *self,
	bt_self_component_sink_configuration *config, const bt_value *params, void *data)
{
	(void)config;
	(void)params;
	struct decoder *d = data;
	bt_self_component_set_data(bt_self_component_sink_as_self_component(self), d);
	for (size_t i = 0; i < decoder_ports(d); i++) {
		char name[24];
		snprintf(name, sizeof name, "in%zu", i);
		if (bt_self_component_sink_add_input_port(self, name, NULL, NULL) !=
		    BT_SELF_COMPONENT_ADD_PORT_STATUS_OK)
			return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_MEMORY_ERROR;
	}
	return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_OK;
}

static bt_component_class_sink_graph_is_configured_method_status sink_configured(bt_self_component_sink *self)
{
	(void)self;
	return BT_COMPONENT_CLASS_SINK_GRAPH_IS_CONFIGURED_METHOD_STATUS_OK;  /* iterators are made one at a time */
}

/* Decodes the stream of the current job.  Always OK for libbabeltrace2, so that the graph can run again. */
static bt_component_class_sink_consume_method_status sink_consume(bt_self_component_sink *self)
{
	struct decoder *d = bt_self_component_get_data(bt_self_component_sink_as_self_component(self));
	struct job *j = d->job;
	bt_self_component_port_input *port = bt_self_component_sink_borrow_input_port_by_index(self, j->what->port);
	bt_message_iterator *it = NULL;
	if (bt_message_iterator_create_from_sink_component(self, port, &it) !=
	    BT_MESSAGE_ITERATOR_CREATE_FROM_SINK_COMPONENT_STATUS_OK) {
		j->status = on_broken(j);
		return BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_OK;
	}
	j->status = drain(d, j, it);
	bt_message_iterator_put_ref(it);
	return BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_OK;
}

/* ---- the graph */

static int make_source(struct decoder *d, const bt_component_class_source *cls, char *const *dir, size_t n,
                       struct error *err)
{
	bt_value *params = bt_value_map_create(), *inputs = NULL;
	int status = -1;
	if (!params || bt_value_map_insert_empty_array_entry(params, "inputs", &inputs) !=
	               BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK)
		goto out;
	for (size_t i = 0; i < n; i++)
		if (bt_value_array_append_string_element(inputs, dir[i]) !=
		    BT_VALUE_ARRAY_APPEND_ELEMENT_STATUS_OK)
			goto out;
	if (bt_graph_add_source_component(d->graph, cls, "in", params, BT_LOGGING_LEVEL_NONE, &d->source) ==
	    BT_GRAPH_ADD_COMPONENT_STATUS_OK)
		status = 0;
out:
	if (status)
		take_error(err, dir[0]);
	bt_value_put_ref(params);
	return status;
}

static int connect(struct decoder *d, struct error *err)
{
	d->sink_class = bt_component_class_sink_create("records", sink_consume);
	if (!d->sink_class)
		return take_error(err, "libbabeltrace2");
	bt_component_class_sink_set_initialize_method(d->sink_class, sink_init);
	bt_component_class_sink_set_graph_is_configured_method(d->sink_class, sink_configured);
	const bt_component_sink *sink;
	if (bt_graph_add_sink_component_with_initialize_method_data(d->graph, d->sink_class, "out", NULL, d,
	    BT_LOGGING_LEVEL_NONE, &sink) != BT_GRAPH_ADD_COMPONENT_STATUS_OK)
		return take_error(err, "libbabeltrace2");
	for (size_t i = 0; i < decoder_ports(d); i++) {
		if (bt_graph_connect_ports(d->graph, bt_component_source_borrow_output_port_by_index_const(d->source, i),
		    bt_component_sink_borrow_input_port_by_index_const(sink, i), NULL) !=
		    BT_GRAPH_CONNECT_PORTS_STATUS_OK)
			return take_error(err, "libbabeltrace2");
	}
	return 0;
}

static int find_ctf_plugin(const bt_plugin **plugin, struct error *err)
{
	pthread_mutex_lock(&plugin_lock);
	bt_logging_set_global_level(BT_LOGGING_LEVEL_NONE);
	bt_plugin_find_status found = bt_plugin_find("ctf", BT_TRUE, BT_TRUE, BT_TRUE, BT_TRUE, BT_TRUE, plugin);
	pthread_mutex_unlock(&plugin_lock);
	if (found == BT_PLUGIN_FIND_STATUS_OK)
		return 0;
	bt_current_thread_clear_error();
	return error_set(err, STATUS_SYSTEM, "install libbabeltrace2 with its plugins, or set BABELTRACE_PLUGIN_PATH",
	                 "libbabeltrace2: its plugin 'ctf' cannot be found");
}

static void put_plugin(const bt_plugin *plugin)
{
	pthread_mutex_lock(&plugin_lock);
	bt_plugin_put_ref(plugin);
	pthread_mutex_unlock(&plugin_lock);
}

struct decoder *decoder_open(struct ctf *ctf, char *const *dir, size_t n, struct error *err)
{
	struct decoder *d = mem_new(1, sizeof *d);
	bt_current_thread_clear_error();
	d->ctf = ctf;
	d->dir = dir[0];
	name_cache_init(&d->names, ctf->names);
	if (find_ctf_plugin(&d->plugin, err))
		goto fail;
	const bt_component_class_source *cls = bt_plugin_borrow_source_component_class_by_name_const(d->plugin, "fs");
	d->graph = cls ? bt_graph_create(0) : NULL;
	if (!d->graph) {
		take_error(err, "libbabeltrace2");
		goto fail;
	}
	if (make_source(d, cls, dir, n, err))
		goto fail;
	/* What it failed at and got over would make the next call abort the process. */
	bt_current_thread_clear_error();
	if (decoder_ports(d) && connect(d, err))
		goto fail;
	return d;
fail:
	decoder_close(d);
	return NULL;
}

void decoder_close(struct decoder *d)
{
	if (!d)
		return;
	bt_graph_put_ref(d->graph);
	bt_component_class_sink_put_ref(d->sink_class);
	if (d->plugin)
		put_plugin(d->plugin);
	binder_free(d->binder);
	name_cache_release(&d->names);
	free(d);
}

size_t decoder_ports(const struct decoder *d)
{
	return (size_t)bt_component_source_get_output_port_count(d->source);
}

const char *decoder_port_name(const struct decoder *d, size_t port)
{
	const bt_port_output *p = bt_component_source_borrow_output_port_by_index_const(d->source, port);
	return bt_port_get_name(bt_port_output_as_port_const(p));
}

int decoder_run(struct decoder *d, const struct decode *what, struct decoded *out, struct error *err)
{
	struct job j = { .what = what, .out = out, .err = err, .lost = { .ts = INT64_MIN }, .last_ts = INT64_MIN };
	*out = (struct decoded){ 0 };
	stream_init(&out->records);
	writer_open(&j.writer, what->store, &out->records);
	d->job = &j;
	bt_current_thread_clear_error();
	if (bt_graph_run_once(d->graph) != BT_GRAPH_RUN_ONCE_STATUS_OK)
		j.status = take_error(err, d->dir);
	d->job = NULL;
	out->clamped = j.writer.clamped;
	out->last = j.writer.ts;
	out->unexpected |= what->check && !out->broken && out->packets != what->packets;
	if (writer_close(&j.writer, err))
		return -1;
	return j.status;
}

void decoded_release(struct decoded *d, struct store *store)
{
	free(d->broken);
	stream_release(&d->records, store);
	*d = (struct decoded){ 0 };
}
