/* In the child: source.ctf.lttng-live -> the outlet.
 *
 * A source has one port, whose iterator connects, attaches to the session, and gives the messages of all its streams
 * sorted by time; it says "again" while the relay has nothing new.  One sink takes all sources of the machine. */
#include "trace/live/live.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/map.h"
#include "base/mem.h"
#include "trace/babeltrace/library.h"
#include "trace/isolation/decoder_process.h"
#include "trace/babeltrace/translate.h"

#define PAUSE 100000000L  /* ns between two questions whether there is something new */

static volatile sig_atomic_t stop_asked;

static void on_stop(int sig)
{
	(void)sig;
	stop_asked = 1;
}

struct live_stream {
	uint32_t number;
	uint64_t order;
	struct translation translation;
	struct passage how;
};

struct live {
	const char *name;
	const struct live_url *url;
	const bt_value *list;            /* of the relay's sessions */
	struct outlet *out;
	struct translator meaning;
	const bt_component_class_source *class;
	bt_graph *graph;
	const bt_component_source **source;
	bt_message_iterator **iterator;  /* of each source, once it is asked; NULL again when it has ended */
	bool *asked;
	bool attached;                   /* all of them could be asked */
	size_t sources, cap;
	struct map by_stream;            /* bt_stream -> index */
	struct live_stream **stream;
	size_t streams, streams_cap;
	const bt_trace **trace;          /* told of */
	size_t traces, traces_cap;
	struct error err;                /* why it cannot go on */
	bool failed;
};

/* ---- what libbabeltrace2 says, in other words */

static const struct known {
	const char *says, *why, *mend;
} known[] = {
	{ "Cannot lookup hostname", "unknown host", "check the relay's name" },
	{ "Connection refused", "connection refused",
	  "start lttng-relayd there; viewers connect to port 5344, or to that of its -L" },
	{ "Incompatible lttng-relayd protocol", "what answers is no relay daemon that speaks LTTng live 2",
	  "check the port: 5344, or that of lttng-relayd -L" },
	{ "closed connection", "the relay daemon closed the connection", "look whether lttng-relayd still runs" },
	{ "Not a live session", "not a live session", "record with lttng create --live" },
	{ "Error updating trace metadata", "its metadata cannot be read", "look at what lttng-relayd says" },
	{ "Message's timestamp is less", "a stream begins earlier than what others had already sent",
	  "read it from its folder" },
	{ "live-iter-status=", "the relay daemon reports an error, or sends what it should not",
	  "look at what lttng-relayd says" },
	{ "already a viewer", "another viewer reads this session", "end that one first: a session has one at a time" },
};
static const struct known other = { "", NULL, "look at what lttng-relayd says" };

static const struct known *explain(const char *text)
{
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strstr(text, known[i].says))
			return &known[i];
	return &other;
}

static int fail(struct live *c)
{
	c->failed = true;
	return library_error(&c->err, "libbabeltrace2");
}

/* Before the sessions are read it is a refusal, later the end of what can be read. */
static int tell_failure(struct live *c)
{
	const struct known *k = explain(c->err.text);
	const char *why = k->why ? k->why : c->err.text;
	if (!c->attached)
		return error_set(c->out->err, STATUS_INPUT, k->mend, "%s: %s", c->name, why);
	tell_cut(c->out, why);
	return 0;
}

/* ---- the list of sessions */

static const char *text_of(const bt_value *map, const char *key)
{
	const bt_value *v = bt_value_map_borrow_entry_value_const(map, key);
	return v && bt_value_is_string(v) ? bt_value_string_get(v) : "";
}

static uint64_t number_of(const bt_value *map, const char *key)
{
	const bt_value *v = bt_value_map_borrow_entry_value_const(map, key);
	return v && bt_value_is_unsigned_integer(v) ? bt_value_integer_unsigned_get(v) : 0;
}

static const bt_value *list_sessions(struct live *c)
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
		fail(c);
	}
	bt_query_executor_put_ref(query);
	bt_value_put_ref(params);
	return list;
}

int live_list(void *entered, const struct stretch *p, struct outlet *out)
{
	struct live *c = entered;
	(void)p;
	for (uint64_t i = 0; i < bt_value_array_get_length(c->list); i++) {
		const bt_value *row = bt_value_array_borrow_element_by_index_const(c->list, i);
		struct tell_session s = { .timer_us = number_of(row, "timer-us"),
			.streams = number_of(row, "stream-count"), .viewers = number_of(row, "client-count") };
		snprintf(s.host, sizeof s.host, "%s", text_of(row, "target-hostname"));
		snprintf(s.name, sizeof s.name, "%s", text_of(row, "session-name"));
		tell_session(out, &s);
	}
	return 0;
}

/* ---- streams */

static const char *environment(const bt_trace *trace, const char *key, char buf[24])
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

static void describe(struct live *c, const bt_trace *trace, const bt_clock_class *clock)
{
	struct metadata m = { .hostname = "" };
	char a[24], b[24], d[24], e[24];
	snprintf(m.hostname, sizeof m.hostname, "%s", environment(trace, "hostname", a));
	snprintf(m.domain, sizeof m.domain, "%s", environment(trace, "domain", a));
	metadata_tracer(&m, environment(trace, "tracer_name", a), environment(trace, "tracer_major", b),
	                environment(trace, "tracer_minor", d), environment(trace, "tracer_patchlevel", e));
	format_uuid(m.uuid, bt_trace_get_uuid(trace));
	if (clock) {
		int64_t seconds;
		uint64_t cycles;
		bt_clock_class_get_offset(clock, &seconds, &cycles);
		format_uuid(m.clock_uuid, bt_clock_class_get_uuid(clock));
		snprintf(m.clock_offset, sizeof m.clock_offset, "%lld.%llu", (long long)seconds, (unsigned long long)cycles);
	}
	tell_trace(c->out, &m);
}

/* 0 for the kernel's trace, else a number of its own: where the streams of this trace stand. */
static uint64_t rank_of(struct live *c, const bt_stream *stream)
{
	const bt_trace *trace = bt_stream_borrow_trace_const(stream);
	char buf[24];
	size_t i = 0;
	while (i < c->traces && c->trace[i] != trace)
		i++;
	if (i == c->traces) {
		bt_trace_get_ref(trace);
		*ARRAY_PUSH(c->trace, c->traces, c->traces_cap) = trace;
		describe(c, trace, bt_stream_class_borrow_default_clock_class_const(bt_stream_borrow_class_const(stream)));
	}
	return strcmp(environment(trace, "domain", buf), "kernel") == 0 ? 0 : i + 1;
}

static struct live_stream *add_stream(struct live *c, const bt_stream *stream)
{
	static const struct decode whole = { .lost_from = INT64_MIN };
	const uint64_t class_id = bt_stream_class_get_id(bt_stream_borrow_class_const(stream));
	bt_stream_get_ref(stream);  /* or another one might get its address */
	struct live_stream *s = mem_new(1, sizeof *s);
	s->number = (uint32_t)c->streams;
	s->order = rank_of(c, stream) << 48 ^ class_id << 32 ^ bt_stream_get_id(stream);
	s->translation = (struct translation){ .what = &whole, .how = &s->how };
	course_begin(&s->translation.course, c->out);
	*ARRAY_PUSH(c->stream, c->streams, c->streams_cap) = s;
	return s;
}

static struct live_stream *stream_of(struct live *c, const bt_stream *stream)
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

static bt_component_class_initialize_method_status sink_init(bt_self_component_sink *self,
	bt_self_component_sink_configuration *config, const bt_value *params, void *data)
{
	(void)config;
	(void)params;
	struct live *c = data;
	bt_self_component_set_data(bt_self_component_sink_as_self_component(self), c);
	for (size_t i = 0; i < c->sources; i++) {
		char name[24];
		snprintf(name, sizeof name, "in%zu", i);
		if (bt_self_component_sink_add_input_port(self, name, NULL, NULL) != BT_SELF_COMPONENT_ADD_PORT_STATUS_OK)
			return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_MEMORY_ERROR;
	}
	return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_OK;
}

static bt_component_class_sink_graph_is_configured_method_status sink_configured(bt_self_component_sink *self)
{
	(void)self;
	return BT_COMPONENT_CLASS_SINK_GRAPH_IS_CONFIGURED_METHOD_STATUS_OK;
}

/* Messages of one source: 1: there were some, 0: none now, or for ever, -1: it failed. */
static int pump(struct live *c, size_t i, bt_self_component_sink *self)
{
	bt_message_array_const msgs;
	uint64_t count = 0;
	if (!c->asked[i] && bt_message_iterator_create_from_sink_component(self,
	    bt_self_component_sink_borrow_input_port_by_index(self, i), &c->iterator[i]) !=
	    BT_MESSAGE_ITERATOR_CREATE_FROM_SINK_COMPONENT_STATUS_OK) {
		c->iterator[i] = NULL;
		return fail(c);
	}
	c->asked[i] = true;
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
		return fail(c);
	}
	int status = 0;
	for (uint64_t k = 0; k < count; k++) {
		const bt_stream *stream = stream_of_message(msgs[k]);
		struct live_stream *s = stream && !status ? stream_of(c, stream) : NULL;
		if (s)
			status = outlet_stream(c->out, s->number, s->order);
		if (s && !status)
			status = translate(&c->meaning, &s->translation, msgs[k]);
		bt_message_put_ref(msgs[k]);
	}
	if (status)
		c->err = *c->out->err;
	c->failed = status != 0;
	return status ? -1 : 1;
}

static bt_component_class_sink_consume_method_status sink_consume(bt_self_component_sink *self)
{
	struct live *c = bt_self_component_get_data(bt_self_component_sink_as_self_component(self));
	bool more = false, running = false;
	for (size_t i = 0; i < c->sources && !c->failed; i++) {
		if (c->asked[i] && !c->iterator[i])
			continue;
		more |= pump(c, i, self) > 0;
		running |= c->iterator[i] != NULL;
	}
	c->attached |= !c->failed;
	if (c->failed || !running)
		return BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_END;
	return more ? BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_OK : BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_AGAIN;
}

static int add_source(struct live *c, const char *url)
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
	return status ? fail(c) : 0;
}

static int connect(struct live *c)
{
	const bt_component_sink *sink;
	bt_component_class_sink *cls = bt_component_class_sink_create("told", sink_consume);
	if (!cls)
		return fail(c);
	bt_component_class_sink_set_initialize_method(cls, sink_init);
	bt_component_class_sink_set_graph_is_configured_method(cls, sink_configured);
	if (bt_graph_add_sink_component_with_initialize_method_data(c->graph, cls, "out", NULL, c, BT_LOGGING_LEVEL_NONE,
	    &sink) != BT_GRAPH_ADD_COMPONENT_STATUS_OK)
		return fail(c);
	for (size_t i = 0; i < c->sources; i++)
		if (bt_graph_connect_ports(c->graph, bt_component_source_borrow_output_port_by_index_const(c->source[i], 0),
		    bt_component_sink_borrow_input_port_by_index_const(sink, i), NULL) != BT_GRAPH_CONNECT_PORTS_STATUS_OK)
			return fail(c);
	return 0;
}

/* A source for each session that is meant; refuses when there is none. */
static int add_sessions(struct live *c)
{
	char there[256] = "";
	for (uint64_t i = 0; i < bt_value_array_get_length(c->list); i++) {
		const bt_value *row = bt_value_array_borrow_element_by_index_const(c->list, i);
		const char *host = text_of(row, "target-hostname"), *name = text_of(row, "session-name");
		size_t used = strlen(there);
		snprintf(there + used, sizeof there - used, "%s%s/%s", used ? ", " : "there are: ", host, name);
		if (strcmp(host, c->url->host) != 0 ||
		    (c->url->session ? strcmp(name, c->url->session) != 0 : !number_of(row, "timer-us")))
			continue;
		char *url = mem_printf("%s/host/%s/%s", c->url->relay, host, name);
		int status = add_source(c, url);
		free(url);
		if (status)
			return tell_failure(c);
	}
	if (c->sources)
		return 0;
	return error_set(c->out->err, STATUS_INPUT, *there ? there : "the relay daemon has none: lttng create --live",
	                 "%s: %s", c->name, c->url->session ? "no such session" : "no session of this host");
}

static void run(struct live *c)
{
	bt_graph_run_once_status status = BT_GRAPH_RUN_ONCE_STATUS_OK;
	while (!stop_asked && (status == BT_GRAPH_RUN_ONCE_STATUS_OK || status == BT_GRAPH_RUN_ONCE_STATUS_AGAIN)) {
		status = bt_graph_run_once(c->graph);
		if (status != BT_GRAPH_RUN_ONCE_STATUS_AGAIN)
			continue;
		outlet_at(c->out, 0);
		nanosleep(&(struct timespec){ .tv_nsec = PAUSE }, NULL);
	}
	if (!stop_asked && !c->failed && status != BT_GRAPH_RUN_ONCE_STATUS_END)
		fail(c);
}

/* ---- what a reader does */

void *live_enter(struct source *s, struct error *err)
{
	const struct sigaction sa = { .sa_handler = on_stop };  /* no SA_RESTART: a pause ends */
	struct live *c = mem_new(1, sizeof *c);
	struct outlet refused = { .err = err };
	const bt_plugin *plugin;
	sigaction(SIGTERM, &sa, NULL);
	c->name = s->place[0]->path;
	c->url = s->place[0]->data;
	c->out = &refused;
	translator_init(&c->meaning, &s->meaning);
	if (library_find_ctf(&plugin, err))
		return NULL;
	c->class = bt_plugin_borrow_source_component_class_by_name_const(plugin, "lttng-live");
	if (!c->class) {
		error_set(err, STATUS_SYSTEM, NULL, "libbabeltrace2 has no source.ctf.lttng-live");
		return NULL;
	}
	c->list = list_sessions(c);
	if (!c->list)
		tell_failure(c);
	return c->list ? c : NULL;
}

int live_decode(void *entered, const struct stretch *p, struct outlet *out)
{
	struct live *c = entered;
	(void)p;
	c->out = out;
	c->graph = bt_graph_create(0);
	if (!c->graph) {
		fail(c);
		return tell_failure(c);
	}
	if (add_sessions(c))
		return -1;
	c->iterator = mem_new(c->sources + 1, sizeof(bt_message_iterator *));
	c->asked = mem_new(c->sources + 1, sizeof *c->asked);
	if (connect(c) == 0)
		run(c);
	return c->failed ? tell_failure(c) : 0;
}
