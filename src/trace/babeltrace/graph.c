#include "trace/babeltrace/graph.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "trace/babeltrace/library.h"
#include "trace/isolation/decoder_process.h"
#include "trace/babeltrace/translate.h"

struct graph_run {
	int status;
	struct translation translation;
};

struct decoder {
	struct translator translator;
	const char *dir;  /* first directory of the trace, for messages */
	const bt_plugin *plugin;
	bt_graph *graph;
	const bt_component_source *source;
	bt_component_class_sink *sink_class;
	struct graph_run *run;
};

static bool must_stop(const struct translation *t)
{
	const struct decode_progress *p = t->progress;
	return p->has_unexpected || (t->request->stop_after && !p->in_packet && p->packets == t->request->packets);
}

/* Handles a failure of libbabeltrace2. A file that the system could not read is an error, not damage. Returns 0 or -1. */
static int handle_failure(const struct decoder *d, struct translation *t)
{
	if (errno && errno_is_system(errno))
		return error_system(t->loss_placer.event_sink->err, NULL, "%s", d->dir);
	return translate_broken(t);
}

static int drain_iterator(struct decoder *d, struct translation *t, bt_message_iterator *it)
{
	while (event_sink_report_progress(t->loss_placer.event_sink, t->request->bytes + t->progress->bytes) == 0) {
		bt_message_array_const msgs;
		uint64_t count = 0;
		errno = 0;
		switch (bt_message_iterator_next(it, &msgs, &count)) {
		case BT_MESSAGE_ITERATOR_NEXT_STATUS_OK:
			break;
		case BT_MESSAGE_ITERATOR_NEXT_STATUS_END:
			return 0;
		case BT_MESSAGE_ITERATOR_NEXT_STATUS_AGAIN:
			continue;
		default:
			return handle_failure(d, t);
		}
		int status = 0;
		for (uint64_t i = 0; i < count; i++) {
			if (!status && !must_stop(t) && !t->progress->error_text)
				status = translate(&d->translator, t, msgs[i]);
			bt_message_put_ref(msgs[i]);
		}
		if (status)
			return -1;
		if (t->progress->error_text)
			return translate_broken(t);
		if (must_stop(t))
			return 0;
	}
	return -1;
}

/* ---- the sink */

static bt_component_class_initialize_method_status records_sink_init(bt_self_component_sink *self,
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

static bt_component_class_sink_graph_is_configured_method_status records_sink_configured(bt_self_component_sink *self)
{
	(void)self;
	return BT_COMPONENT_CLASS_SINK_GRAPH_IS_CONFIGURED_METHOD_STATUS_OK;  /* iterators are created later, one at a time */
}

/* Decodes the stream of the current run. Always returns OK to libbabeltrace2, so that the graph can run again. */
static bt_component_class_sink_consume_method_status records_sink_consume(bt_self_component_sink *self)
{
	struct decoder *d = bt_self_component_get_data(bt_self_component_sink_as_self_component(self));
	struct graph_run *j = d->run;
	bt_self_component_port_input *port =
		bt_self_component_sink_borrow_input_port_by_index(self, j->translation.request->port);
	bt_message_iterator *it = NULL;
	errno = 0;
	if (bt_message_iterator_create_from_sink_component(self, port, &it) !=
	    BT_MESSAGE_ITERATOR_CREATE_FROM_SINK_COMPONENT_STATUS_OK) {
		j->status = handle_failure(d, &j->translation);
		return BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_OK;
	}
	j->status = drain_iterator(d, &j->translation, it);
	bt_message_iterator_put_ref(it);
	return BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_OK;
}

/* ---- the graph */

static int add_source(struct decoder *d, const bt_component_class_source *cls, char *const *dir, size_t n,
                      struct error *err)
{
	bt_value *params = bt_value_map_create(), *inputs = NULL;
	int status = -1;
	if (!params || bt_value_map_insert_empty_array_entry(params, "inputs", &inputs) !=
	               BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK)
		goto out;
	errno = 0;
	for (size_t i = 0; i < n; i++)
		if (bt_value_array_append_string_element(inputs, dir[i]) !=
		    BT_VALUE_ARRAY_APPEND_ELEMENT_STATUS_OK)
			goto out;
	if (bt_graph_add_source_component(d->graph, cls, "in", params, BT_LOGGING_LEVEL_NONE, &d->source) ==
	    BT_GRAPH_ADD_COMPONENT_STATUS_OK)
		status = 0;
out:
	if (status && errno_is_read_failure(errno))
		error_system(err, NULL, "%s", dir[0]);
	else if (status)
		library_error(err, dir[0]);
	bt_value_put_ref(params);
	return status;
}

static int connect_ports(struct decoder *d, struct error *err)
{
	d->sink_class = bt_component_class_sink_create("records", records_sink_consume);
	if (!d->sink_class)
		return library_error(err, "libbabeltrace2");
	bt_component_class_sink_set_initialize_method(d->sink_class, records_sink_init);
	bt_component_class_sink_set_graph_is_configured_method(d->sink_class, records_sink_configured);
	const bt_component_sink *sink;
	if (bt_graph_add_sink_component_with_initialize_method_data(d->graph, d->sink_class, "out", NULL, d,
	    BT_LOGGING_LEVEL_NONE, &sink) != BT_GRAPH_ADD_COMPONENT_STATUS_OK)
		return library_error(err, "libbabeltrace2");
	for (size_t i = 0; i < decoder_ports(d); i++) {
		if (bt_graph_connect_ports(d->graph, bt_component_source_borrow_output_port_by_index_const(d->source, i),
		    bt_component_sink_borrow_input_port_by_index_const(sink, i), NULL) !=
		    BT_GRAPH_CONNECT_PORTS_STATUS_OK)
			return library_error(err, "libbabeltrace2");
	}
	return 0;
}

struct decoder *decoder_open(struct event_mapping *mapping, char *const *dir, size_t n, struct error *err)
{
	struct decoder *d = mem_new(1, sizeof *d);
	bt_current_thread_clear_error();
	translator_init(&d->translator, mapping);
	d->dir = dir[0];
	if (library_find_ctf(&d->plugin, err))
		goto fail;
	const bt_component_class_source *cls = bt_plugin_borrow_source_component_class_by_name_const(d->plugin, "fs");
	d->graph = cls ? bt_graph_create(0) : NULL;
	if (!d->graph) {
		library_error(err, "libbabeltrace2");
		goto fail;
	}
	if (add_source(d, cls, dir, n, err))
		goto fail;
	/* If the library recovered from an error, the error is still set and would make the next call abort. */
	bt_current_thread_clear_error();
	if (decoder_ports(d) && connect_ports(d, err))
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
		library_put(d->plugin);
	translator_release(&d->translator);
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

int decoder_run(struct decoder *d, const struct decode_request *request, struct event_sink *out,
                struct decode_progress *progress)
{
	struct graph_run j = { .translation = { .request = request, .progress = progress } };
	loss_placer_init(&j.translation.loss_placer, out);
	*progress = (struct decode_progress){ .last = INT64_MIN };
	d->run = &j;
	bt_current_thread_clear_error();
	if (bt_graph_run_once(d->graph) != BT_GRAPH_RUN_ONCE_STATUS_OK)
		j.status = library_error(out->err, d->dir);
	d->run = NULL;
	progress->last = j.translation.loss_placer.ts;
	progress->has_unexpected |= request->must_match && !progress->error_text && progress->packets != request->packets;
	return j.status;
}
