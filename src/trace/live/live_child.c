/* Child process of live traces: passes the events of source.ctf.lttng-live to the event sink.
 *
 * A source has one port. Its iterator connects, attaches to the session and returns the messages of all streams sorted
 * by time, or "again" if the relay daemon has no new data. One sink consumes all sources of a machine. */
#include "base/base.h"
#include "trace/live/live.h"

#include <signal.h>
#include <time.h>

#include "trace/live/library.h"
#include "trace/isolation/decoder_process.h"
#include "trace/live/translate.h"

#define POLL_NS 100000000L  /* time between two polls for new data, ns */

static volatile sig_atomic_t stop_requested;

static void on_stop(int sig)
{
	(void)sig;
	stop_requested = 1;
}

struct live_stream {
	uint32_t number;
	uint64_t order;
	struct translation translation;
};

struct live_decoder {
	const char *name;
	const struct live_url *url;
	const bt_value *list;  /* the relay daemon's sessions */
	struct event_sink *out;
	struct translator translator;
	const bt_component_class_source *class;
	bt_graph *graph;
	const bt_component_source **source;
	bt_message_iterator **iterator;  /* of each source: created at the first poll; NULL: not polled yet, or ended */
	bool *started;
	bool attached;  /* all sources were polled successfully */
	size_t sources, cap;
	struct map by_stream;  /* bt_stream -> index */
	struct live_stream **stream;
	size_t streams, streams_cap;
	const bt_trace **trace;  /* traces sent to the parent */
	size_t traces, traces_cap;
	struct error err;  /* the failure's reason */
	bool failed;
};

/* ---- texts for errors of libbabeltrace2 */

static const struct known_error {
	const char *pattern, *reason, *remedy;
} known_error[] = {
	{ "Cannot lookup hostname", "unknown host", "check the relay's name" },
	{ "Connection refused", "connection refused",
	  "start lttng-relayd there; viewers use port 5344 or the port of -L" },
	{ "Incompatible lttng-relayd protocol", "not a relay daemon with protocol LTTng live 2",
	  "check the port: 5344, or that of lttng-relayd -L" },
	{ "closed connection", "the relay daemon closed the connection", "check that lttng-relayd still runs" },
	{ "Not a live session", "not a live session", "record with lttng create --live" },
	{ "Error updating trace metadata", "the metadata of the session cannot be read", "see the output of lttng-relayd" },
	{ "Message's timestamp is less", "a stream begins with data older than the data already received from other streams",
	  "read the session from the directory written by lttng-relayd" },
	{ "live-iter-status=", "the relay daemon reported an error or sent invalid data",
	  "see the output of lttng-relayd" },
	{ "already a viewer", "another viewer reads this session", "end the other viewer: a session allows only one" },
};
static const struct known_error unknown_error = { "", NULL, "see the output of lttng-relayd" };

static const struct known_error *find_known_error(const char *text)
{
	for (size_t i = 0; i < sizeof known_error / sizeof *known_error; i++)
		if (strstr(text, known_error[i].pattern))
			return &known_error[i];
	return &unknown_error;
}

static int set_library_error(struct live_decoder *c)
{
	c->failed = true;
	return library_error(&c->err, "libbabeltrace2");
}

/* Reports a failure: as an error until all sessions are attached, then as a truncated trace. Returns -1 or 0. */
static int report_failure(struct live_decoder *c)
{
	const struct known_error *k = find_known_error(c->err.text);
	const char *reason = k->reason ? k->reason : c->err.text;
	if (!c->attached)
		return error_repeat(c->out->err, STATUS_INPUT, k->remedy, "%s: %s", c->name, reason);
	ipc_send_truncated(c->out, reason);
	return 0;
}

/* ---- the session list */

static const char *map_text(const bt_value *map, const char *key)
{
	const bt_value *v = bt_value_map_borrow_entry_value_const(map, key);
	return v && bt_value_is_string(v) ? bt_value_string_get(v) : "";
}

static uint64_t map_number(const bt_value *map, const char *key)
{
	const bt_value *v = bt_value_map_borrow_entry_value_const(map, key);
	return v && bt_value_is_unsigned_integer(v) ? bt_value_integer_unsigned_get(v) : 0;
}

static const bt_value *query_sessions(struct live_decoder *c)
{
	bt_value *params = bt_value_map_create();
	const bt_value *list = NULL;
	bt_query_executor *query = NULL;
	if (params && bt_value_map_insert_string_entry(params, "url", c->url->relay) ==
	              BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK)
		query = bt_query_executor_create(bt_component_class_source_as_component_class_const(c->class), "sessions",
		                                 params);
	if (!query || bt_query_executor_query(query, &list) != BT_QUERY_EXECUTOR_QUERY_STATUS_OK) {
		list = NULL;
		set_library_error(c);
	}
	bt_query_executor_put_ref(query);
	bt_value_put_ref(params);
	return list;
}

int live_list(void *state, const struct stream_part *p, struct event_sink *out)
{
	struct live_decoder *c = state;
	(void)p;
	for (uint64_t i = 0; i < bt_value_array_get_length(c->list); i++) {
		const bt_value *row = bt_value_array_borrow_element_by_index_const(c->list, i);
		struct ipc_session s = { .timer_us = map_number(row, "timer-us"),
			.streams = map_number(row, "stream-count"), .viewers = map_number(row, "client-count") };
		snprintf(s.host, sizeof s.host, "%s", map_text(row, "target-hostname"));
		snprintf(s.name, sizeof s.name, "%s", map_text(row, "session-name"));
		ipc_send_session(out, &s);
	}
	return 0;
}

/* ---- streams */

static const char *environment_text(const bt_trace *trace, const char *key, char buf[24])
{
	const bt_value *v = bt_trace_borrow_environment_entry_value_by_name_const(trace, key);
	if (v && bt_value_is_string(v))
		return bt_value_string_get(v);
	buf[0] = '\0';
	if (v && bt_value_is_signed_integer(v))
		snprintf(buf, 24, "%lld", (long long)bt_value_integer_signed_get(v));
	return buf;
}

static void format_uuid(char text[40], bt_uuid uuid)
{
	char *at = text;
	for (int i = 0; uuid && i < 16; i++)
		at += snprintf(at, 4, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
	*at = '\0';
}

static void send_metadata(struct live_decoder *c, const bt_trace *trace, const bt_clock_class *clock)
{
	struct metadata m = { .hostname = "" };
	char a[24], b[24], d[24], e[24];
	snprintf(m.hostname, sizeof m.hostname, "%s", environment_text(trace, "hostname", a));
	snprintf(m.domain, sizeof m.domain, "%s", environment_text(trace, "domain", a));
	metadata_tracer(&m, environment_text(trace, "tracer_name", a), environment_text(trace, "tracer_major", b),
	                environment_text(trace, "tracer_minor", d), environment_text(trace, "tracer_patchlevel", e));
	format_uuid(m.uuid, bt_trace_get_uuid(trace));
	if (clock) {
		int64_t seconds;
		uint64_t cycles;
		bt_clock_class_get_offset(clock, &seconds, &cycles);
		format_uuid(m.clock_uuid, bt_clock_class_get_uuid(clock));
		snprintf(m.clock_offset, sizeof m.clock_offset, "%lld.%llu", (long long)seconds, (unsigned long long)cycles);
	}
	ipc_send_trace(c->out, &m);
}

/* Returns the rank of a stream's trace, by which streams are sorted: 0 for the kernel trace, otherwise a unique number. */
static uint64_t trace_rank(struct live_decoder *c, const bt_stream *stream)
{
	const bt_trace *trace = bt_stream_borrow_trace_const(stream);
	char buf[24];
	size_t i = 0;
	while (i < c->traces && c->trace[i] != trace)
		i++;
	if (i == c->traces) {
		bt_trace_get_ref(trace);
		*ARRAY_PUSH(c->trace, c->traces, c->traces_cap) = trace;
		send_metadata(c, trace, bt_stream_class_borrow_default_clock_class_const(bt_stream_borrow_class_const(stream)));
	}
	return strcmp(environment_text(trace, "domain", buf), "kernel") == 0 ? 0 : i + 1;
}

static struct live_stream *add_stream(struct live_decoder *c, const bt_stream *stream)
{
	const uint64_t class_id = bt_stream_class_get_id(bt_stream_borrow_class_const(stream));
	bt_stream_get_ref(stream);  /* a reference is held, so that no other stream gets the same address */
	struct live_stream *s = mem_new(1, sizeof *s);
	s->number = (uint32_t)c->streams;
	s->order = trace_rank(c, stream) << 48 ^ class_id << 32 ^ bt_stream_get_id(stream);
	loss_placer_init(&s->translation.loss_placer, c->out);
	*ARRAY_PUSH(c->stream, c->streams, c->streams_cap) = s;
	return s;
}

static struct live_stream *get_stream(struct live_decoder *c, const bt_stream *stream)
{
	bool is_new;
	uint64_t *at = map_put(&c->by_stream, (uint64_t)(uintptr_t)stream, &is_new);
	if (is_new)
		*at = add_stream(c, stream)->number;
	return c->stream[*at];
}

static const bt_stream *stream_of_message(const bt_message *msg)
{
	switch (bt_message_get_type(msg)) {
	case BT_MESSAGE_TYPE_STREAM_BEGINNING:
		return bt_message_stream_beginning_borrow_stream_const(msg);
	case BT_MESSAGE_TYPE_EVENT:
		return bt_event_borrow_stream_const(bt_message_event_borrow_event_const(msg));
	case BT_MESSAGE_TYPE_PACKET_BEGINNING:
		return bt_packet_borrow_stream_const(bt_message_packet_beginning_borrow_packet_const(msg));
	case BT_MESSAGE_TYPE_PACKET_END:
		return bt_packet_borrow_stream_const(bt_message_packet_end_borrow_packet_const(msg));
	case BT_MESSAGE_TYPE_DISCARDED_EVENTS:
		return bt_message_discarded_events_borrow_stream_const(msg);
	case BT_MESSAGE_TYPE_DISCARDED_PACKETS:
		return bt_message_discarded_packets_borrow_stream_const(msg);
	default:
		return NULL;
	}
}

/* ---- the graph */

static bt_component_class_initialize_method_status live_sink_init(bt_self_component_sink *self,
	bt_self_component_sink_configuration *config, const bt_value *params, void *data)
{
	(void)config;
	(void)params;
	struct live_decoder *c = data;
	bt_self_component_set_data(bt_self_component_sink_as_self_component(self), c);
	for (size_t i = 0; i < c->sources; i++) {
		char name[24];
		snprintf(name, sizeof name, "in%zu", i);
		if (bt_self_component_sink_add_input_port(self, name, NULL, NULL) != BT_SELF_COMPONENT_ADD_PORT_STATUS_OK)
			return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_MEMORY_ERROR;
	}
	return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_OK;
}

static bt_component_class_sink_graph_is_configured_method_status live_sink_configured(bt_self_component_sink *self)
{
	(void)self;
	return BT_COMPONENT_CLASS_SINK_GRAPH_IS_CONFIGURED_METHOD_STATUS_OK;
}

/* Reads messages of one source. Returns 1: messages were read; 0: none available, or the end; -1: failure. */
static int read_messages(struct live_decoder *c, size_t i, bt_self_component_sink *self)
{
	bt_message_array_const msgs;
	uint64_t count = 0;
	if (!c->started[i] && bt_message_iterator_create_from_sink_component(self,
	    bt_self_component_sink_borrow_input_port_by_index(self, i), &c->iterator[i]) !=
	    BT_MESSAGE_ITERATOR_CREATE_FROM_SINK_COMPONENT_STATUS_OK) {
		c->iterator[i] = NULL;
		return set_library_error(c);
	}
	c->started[i] = true;
	switch (bt_message_iterator_next(c->iterator[i], &msgs, &count)) {
	case BT_MESSAGE_ITERATOR_NEXT_STATUS_OK:
		break;
	case BT_MESSAGE_ITERATOR_NEXT_STATUS_AGAIN:
		return 0;
	case BT_MESSAGE_ITERATOR_NEXT_STATUS_END:
		bt_message_iterator_put_ref(c->iterator[i]);
		c->iterator[i] = NULL;
		return 0;
	default:
		return set_library_error(c);
	}
	int status = 0;
	for (uint64_t k = 0; k < count; k++) {
		const bt_stream *stream = stream_of_message(msgs[k]);
		struct live_stream *s = stream && !status ? get_stream(c, stream) : NULL;
		if (s)
			status = event_sink_select_stream(c->out, s->number, s->order);
		if (s && !status)
			status = translate(&c->translator, &s->translation, msgs[k]);
		bt_message_put_ref(msgs[k]);
	}
	if (status)
		c->err = *c->out->err;
	c->failed = status != 0;
	return status ? -1 : 1;
}

static bt_component_class_sink_consume_method_status live_sink_consume(bt_self_component_sink *self)
{
	struct live_decoder *c = bt_self_component_get_data(bt_self_component_sink_as_self_component(self));
	bool more = false, running = false;
	for (size_t i = 0; i < c->sources && !c->failed; i++) {
		if (c->started[i] && !c->iterator[i])
			continue;
		more |= read_messages(c, i, self) > 0;
		running |= c->iterator[i] != NULL;
	}
	c->attached |= !c->failed;
	if (c->failed || !running)
		return BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_END;
	return more ? BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_OK : BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_AGAIN;
}

static int add_source(struct live_decoder *c, const char *url)
{
	bt_value *params = bt_value_map_create(), *inputs = NULL;
	char name[24];
	int status = -1;
	*ARRAY_PUSH(c->source, c->sources, c->cap) = NULL;
	snprintf(name, sizeof name, "live%zu", c->sources);
	if (params &&
	    bt_value_map_insert_empty_array_entry(params, "inputs", &inputs) == BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK &&
	    bt_value_array_append_string_element(inputs, url) == BT_VALUE_ARRAY_APPEND_ELEMENT_STATUS_OK &&
	    bt_value_map_insert_string_entry(params, "session-not-found-action", "fail") ==
	    BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK &&
	    bt_graph_add_source_component(c->graph, c->class, name, params, BT_LOGGING_LEVEL_NONE,
	                                  &c->source[c->sources - 1]) == BT_GRAPH_ADD_COMPONENT_STATUS_OK)
		status = 0;
	bt_value_put_ref(params);
	return status ? set_library_error(c) : 0;
}

static int connect_ports(struct live_decoder *c)
{
	const bt_component_sink *sink;
	bt_component_class_sink *cls = bt_component_class_sink_create("events", live_sink_consume);
	if (!cls)
		return set_library_error(c);
	bt_component_class_sink_set_initialize_method(cls, live_sink_init);
	bt_component_class_sink_set_graph_is_configured_method(cls, live_sink_configured);
	if (bt_graph_add_sink_component_with_initialize_method_data(c->graph, cls, "out", NULL, c, BT_LOGGING_LEVEL_NONE,
	    &sink) != BT_GRAPH_ADD_COMPONENT_STATUS_OK)
		return set_library_error(c);
	for (size_t i = 0; i < c->sources; i++)
		if (bt_graph_connect_ports(c->graph, bt_component_source_borrow_output_port_by_index_const(c->source[i], 0),
		    bt_component_sink_borrow_input_port_by_index_const(sink, i), NULL) != BT_GRAPH_CONNECT_PORTS_STATUS_OK)
			return set_library_error(c);
	return 0;
}

/* Adds a source for each selected session. Fails if there is none. */
static int add_sessions(struct live_decoder *c)
{
	char available[256] = "";
	for (uint64_t i = 0; i < bt_value_array_get_length(c->list); i++) {
		const bt_value *row = bt_value_array_borrow_element_by_index_const(c->list, i);
		const char *host = map_text(row, "target-hostname"), *name = map_text(row, "session-name");
		size_t used = strlen(available);
		snprintf(available + used, sizeof available - used, "%s%s/%s", used ? ", " : "sessions: ", host, name);
		if (strcmp(host, c->url->host) != 0 ||
		    (c->url->session ? strcmp(name, c->url->session) != 0 : !map_number(row, "timer-us")))
			continue;
		char *url = mem_printf("%s/host/%s/%s", c->url->relay, host, name);
		int status = add_source(c, url);
		free(url);
		if (status)
			return report_failure(c);
	}
	if (c->sources)
		return 0;
	const char *remedy = *available ? available : "the relay daemon has no sessions: lttng create --live";
	return error_set(c->out->err, STATUS_INPUT, remedy,
	                 "%s: %s", c->name, c->url->session ? "no such session" : "no session of this host");
}

static void run_graph(struct live_decoder *c)
{
	bt_graph_run_once_status status = BT_GRAPH_RUN_ONCE_STATUS_OK;
	while (!stop_requested && (status == BT_GRAPH_RUN_ONCE_STATUS_OK || status == BT_GRAPH_RUN_ONCE_STATUS_AGAIN)) {
		status = bt_graph_run_once(c->graph);
		if (status != BT_GRAPH_RUN_ONCE_STATUS_AGAIN)
			continue;
		event_sink_report_progress(c->out, 0);
		nanosleep(&(struct timespec){ .tv_nsec = POLL_NS }, NULL);
	}
	if (!stop_requested && !c->failed && status != BT_GRAPH_RUN_ONCE_STATUS_END)
		set_library_error(c);
}

/* ---- functions of the readers */

void *live_enter(struct source *s, struct error *err)
{
	const struct sigaction sa = { .sa_handler = on_stop };  /* without SA_RESTART, the signal interrupts nanosleep() */
	struct live_decoder *c = mem_new(1, sizeof *c);
	struct event_sink refused = { .err = err };
	const bt_plugin *plugin;
	sigaction(SIGTERM, &sa, NULL);
	c->name = s->location[0]->path;
	c->url = s->location[0]->data;
	c->out = &refused;
	translator_init(&c->translator, &s->mapping);
	if (library_find_ctf(&plugin, err))
		return NULL;
	c->class = bt_plugin_borrow_source_component_class_by_name_const(plugin, "lttng-live");
	if (!c->class) {
		error_set(err, STATUS_SYSTEM, NULL, "libbabeltrace2 has no source.ctf.lttng-live");
		return NULL;
	}
	c->list = query_sessions(c);
	if (!c->list)
		report_failure(c);
	return c->list ? c : NULL;
}

int live_decode(void *state, const struct stream_part *p, struct event_sink *out)
{
	struct live_decoder *c = state;
	(void)p;
	c->out = out;
	c->graph = bt_graph_create(0);
	if (!c->graph) {
		set_library_error(c);
		return report_failure(c);
	}
	if (add_sessions(c))
		return -1;
	c->iterator = mem_new(c->sources + 1, sizeof(bt_message_iterator *));
	c->started = mem_new(c->sources + 1, sizeof *c->started);
	if (connect_ports(c) == 0)
		run_graph(c);
	return c->failed ? report_failure(c) : 0;
}
