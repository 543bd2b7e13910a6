/* Jaeger and Zipkin to OTLP. Values of other types than expected are left out: the reader of OTLP checks the result. */
#include "latency/span_convert.h"

#include <ctype.h>
#include <errno.h>

#include "base/otlp_json.h"
#include "latency/latency.h"

bool span_integer(struct json_object *v, int64_t *out)
{
	const char *text = NULL;
	char *end;
	if (json_object_is_type(v, json_type_int)) {
		*out = json_object_get_int64(v);
		return *out != INT64_MAX && *out != INT64_MIN;  /* json-c limits larger numbers to these */
	}
	if (json_object_is_type(v, json_type_string))
		text = json_object_get_string(v);
	if (!text || !(isdigit((unsigned char)*text) || *text == '-'))
		return false;
	errno = 0;
	*out = strtoll(text, &end, 10);
	return errno == 0 && *end == '\0';
}

struct json_object *span_member(struct json_object *o, const char *key)
{
	struct json_object *v = NULL;
	if (json_object_is_type(o, json_type_object))
		json_object_object_get_ex(o, key, &v);
	return v;
}

static void copy_text(struct json_object *to, const char *to_key, struct json_object *from, const char *from_key)
{
	const char *text = json_member_text(from, from_key);
	if (*text)
		json_put_text(to, to_key, text);
}

/* Reads a time or duration in us. Returns false if it is absent, negative or too large. */
static bool read_us(struct json_object *o, const char *key, int64_t *ns)
{
	if (!span_integer(span_member(o, key), ns) || *ns < 0 || *ns > INT64_MAX / 4 / NS_PER_US)
		return false;
	*ns *= NS_PER_US;
	return true;
}

static void put_times(struct json_object *to, struct json_object *from, const char *start_key)
{
	int64_t start, duration;
	if (!read_us(from, start_key, &start))
		return;
	otlp_put_integer(to, "startTimeUnixNano", start);
	if (read_us(from, "duration", &duration))
		otlp_put_integer(to, "endTimeUnixNano", start + duration);
}

static void add_value(struct json_object *list, const char *key, struct json_object *v)
{
	if (!*key)
		return;
	switch (json_object_get_type(v)) {
	case json_type_string:
		otlp_add_text(list, key, json_object_get_string(v));
		break;
	case json_type_int:
		otlp_add_integer(list, key, json_object_get_int64(v));
		break;
	case json_type_boolean:
		json_object_object_add(otlp_add(list, key), "boolValue", json_object_get(v));
		break;
	case json_type_double:
		json_object_object_add(otlp_add(list, key), "doubleValue", json_object_get(v));
		break;
	default:
		break;
	}
}

/* Returns the number of a kind of span in OTLP; 0: another text. */
static int kind_number(const char *text)
{
	static const char *const kinds[] = { "internal", "server", "client", "producer", "consumer" };
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strcasecmp(text, kinds[i]) == 0)
			return (int)i + 1;
	return 0;
}

static void put_kind(struct json_object *o, const char *text)
{
	const int kind = kind_number(text);
	if (kind)
		json_object_object_add(o, "kind", json_object_new_int(kind));
}

/* ---- Jaeger ------------------------------------------------------------------------------------------------- */

static void add_tags(struct json_object *to, struct json_object *tags)
{
	struct json_object *list = json_put_array(to, "attributes");
	for (size_t i = 0; tags && i < json_object_array_length(tags); i++) {
		struct json_object *tag = json_object_array_get_idx(tags, i);
		add_value(list, json_member_text(tag, "key"), span_member(tag, "value"));
	}
}

static void add_references(struct json_object *to, struct json_object *span)
{
	struct json_object *list = json_member_array(span, "references");
	copy_text(to, "parentSpanId", span, "parentSpanID");
	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		struct json_object *r = json_object_array_get_idx(list, i);
		if (strcmp(json_member_text(r, "refType"), "CHILD_OF") == 0 && !span_member(to, "parentSpanId")) {
			copy_text(to, "parentSpanId", r, "spanID");
			continue;
		}
		struct json_object *link = json_append_object(json_put_array(to, "links"));
		copy_text(link, "traceId", r, "traceID");
		copy_text(link, "spanId", r, "spanID");
	}
}

static void add_logs(struct json_object *to, struct json_object *logs)
{
	for (size_t i = 0; logs && i < json_object_array_length(logs); i++) {
		struct json_object *log = json_object_array_get_idx(logs, i);
		struct json_object *event = json_append_object(json_put_array(to, "events"));
		int64_t t;
		if (read_us(log, "timestamp", &t))
			otlp_put_integer(event, "timeUnixNano", t);
		add_tags(event, json_member_array(log, "fields"));
	}
}

static void add_jaeger_span(struct json_object *list, struct json_object *span)
{
	struct json_object *to = json_append_object(list), *tags = json_member_array(span, "tags");
	copy_text(to, "traceId", span, "traceID");
	copy_text(to, "spanId", span, "spanID");
	add_references(to, span);
	copy_text(to, "name", span, "operationName");
	put_times(to, span, "startTime");
	add_tags(to, tags);
	add_logs(to, json_member_array(span, "logs"));
	for (size_t i = 0; tags && i < json_object_array_length(tags); i++) {
		struct json_object *tag = json_object_array_get_idx(tags, i);
		if (strcmp(json_member_text(tag, "key"), "span.kind") == 0)
			put_kind(to, json_member_text(tag, "value"));
		if (strcmp(json_member_text(tag, "key"), "error") == 0 && json_object_get_boolean(span_member(tag, "value")))
			json_object_object_add(json_put_object(to, "status"), "code", json_object_new_int(2));
	}
}

/* Adds a resource; returns the list for its spans. */
static struct json_object *add_resource(struct json_object *out, const char *service, struct json_object **resource)
{
	struct json_object *o = json_append_object(out);
	*resource = json_put_object(o, "resource");
	struct json_object *attributes = json_put_array(*resource, "attributes");
	if (*service)
		otlp_add_text(attributes, "service.name", service);
	return json_put_array(json_append_object(json_put_array(o, "scopeSpans")), "spans");
}

struct json_object *span_of_jaeger(struct json_object *trace)
{
	struct json_object *out = json_new_array(), *lists = json_new_object(), *resource;
	struct json_object *spans = json_member_array(trace, "spans"), *processes = span_member(trace, "processes");
	if (json_object_is_type(processes, json_type_object)) {
		struct json_object_iter it;
		json_object_object_foreachC(processes, it) {
			struct json_object *list = add_resource(out, json_member_text(it.val, "serviceName"), &resource);
			add_tags(resource, json_member_array(it.val, "tags"));
			json_object_object_add(lists, it.key, json_object_get(list));
		}
	}
	for (size_t i = 0; spans && i < json_object_array_length(spans); i++) {
		struct json_object *span = json_object_array_get_idx(spans, i);
		struct json_object *list = span_member(lists, json_member_text(span, "processID"));
		if (!list) {
			list = add_resource(out, "", &resource);
			json_object_object_add(lists, json_member_text(span, "processID"), json_object_get(list));
		}
		add_jaeger_span(list, span);
	}
	json_object_put(lists);
	return out;
}

/* ---- Zipkin ------------------------------------------------------------------------------------------------- */

/* Returns true for a tag of the process; the other tags belong to the span. */
static bool is_of_process(const char *key)
{
	static const char *const begins[] = { "process.", "service.", "container.", "k8s.", "host.", "telemetry.", "pid" };
	for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
		if (strncmp(key, begins[i], strlen(begins[i])) == 0)
			return true;
	for (size_t i = 0; i < SPAN_HOST_KEYS; i++)
		if (strcmp(key, span_host_key[i]) == 0)
			return true;
	return false;
}

struct json_object *span_of_zipkin(struct json_object *span)
{
	struct json_object *out = json_new_array(), *resource, *tags = span_member(span, "tags");
	struct json_object *list = add_resource(out, json_member_text(span_member(span, "localEndpoint"), "serviceName"),
	                                        &resource);
	struct json_object *to = json_append_object(list), *attributes = json_put_array(to, "attributes");
	struct json_object *annotations = json_member_array(span, "annotations");
	const char *peer = json_member_text(span_member(span, "remoteEndpoint"), "serviceName");
	copy_text(to, "traceId", span, "traceId");
	copy_text(to, "spanId", span, "id");
	copy_text(to, "parentSpanId", span, "parentId");
	copy_text(to, "name", span, "name");
	put_times(to, span, "timestamp");
	put_kind(to, json_member_text(span, "kind"));
	if (json_object_is_type(tags, json_type_object)) {
		struct json_object_iter it;
		json_object_object_foreachC(tags, it)
			add_value(is_of_process(it.key) ? json_put_array(resource, "attributes") : attributes, it.key, it.val);
	}
	if (*peer)
		otlp_add_text(attributes, "peer.service", peer);
	for (size_t i = 0; annotations && i < json_object_array_length(annotations); i++) {
		struct json_object *a = json_object_array_get_idx(annotations, i), *event;
		int64_t t;
		event = json_append_object(json_put_array(to, "events"));
		if (read_us(a, "timestamp", &t))
			otlp_put_integer(event, "timeUnixNano", t);
		copy_text(event, "name", a, "value");
	}
	return out;
}
