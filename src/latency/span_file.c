/* Reads spans of distributed tracing: OTLP, Jaeger and Zipkin, each as JSON.
 *
 * A file is a sequence of JSON documents: one for each line, or one for the whole file. Every document is read by its
 * own form, and is freed before the next one. The size of a file, the depth of a document and the length of ids are
 * limited. A document of another form is an error with the line on which it begins; a span without an end is counted and
 * skipped. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_open.h"
#include "base/json_field.h"
#include "base/mem.h"
#include "latency/latency.h"

#define FILE_MAX (256 << 20)     /* bytes */
#define DEPTH_MAX 32             /* nested values of a document */
#define NS_PER_US 1000

const char *const span_host_key[SPAN_HOST_KEYS] = { "host.name", "service.instance.id", "host.id", "k8s.node.name",
                                                    "net.host.name", "hostname" };

/* Reading of one document. */
struct span_reader {
	struct spans *out;
	const char *why;         /* first error: a text without names; NULL: none */
};

static bool refuse(struct span_reader *rd, const char *why)
{
	if (!rd->why)
		rd->why = why;
	return false;
}

void spans_release(struct spans *s)
{
	for (size_t i = 0; i < s->len; i++)
		free(s->span[i].name);
	for (size_t i = 0; i < s->sources; i++) {
		free(s->source[i].service);
		for (size_t k = 0; k < SPAN_HOST_KEYS; k++)
			free(s->source[i].host[k]);
	}
	free(s->span);
	free(s->source);
	*s = (struct spans){ 0 };
}

/* ---- Values ------------------------------------------------------------------------------------------------- */

/* Reads an integer, which OTLP writes as a text. Returns false for other values and beyond int64. */
static bool integer_of(struct json_object *v, int64_t *out)
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

static struct json_object *member(struct json_object *o, const char *key)
{
	struct json_object *v = NULL;
	if (json_object_is_type(o, json_type_object))
		json_object_object_get_ex(o, key, &v);
	return v;
}

/* Reads a time or duration >= 0. */
static bool time_of(struct json_object *o, const char *key, int64_t unit, int64_t *ns)
{
	return integer_of(member(o, key), ns) && *ns >= 0 && *ns <= INT64_MAX / 2 / unit && (*ns *= unit, true);
}

/* Copies a hexadecimal id in lower case, with zeros in front, of `digits` digits. An absent id is "". */
static bool read_id(struct span_reader *rd, struct json_object *o, const char *key, size_t digits, char *id)
{
	const char *text = json_member_text(o, key);
	const size_t n = strlen(text);
	id[0] = '\0';
	if (n == 0)
		return true;
	if (n > digits || strspn(text, "0123456789abcdefABCDEF") != n)
		return refuse(rd, "an id of a span or trace is not hexadecimal, or too long");
	memset(id, '0', digits - n);
	for (size_t i = 0; i <= n; i++)
		id[digits - n + i] = (char)tolower((unsigned char)text[i]);
	if (strspn(id, "0") == digits)
		id[0] = '\0';  /* ids of zeros mean none */
	return true;
}

/* ---- Attributes --------------------------------------------------------------------------------------------- */

/* Takes over what one attribute says about the process, or about the thread of a span (span may be NULL). */
static void read_attribute(struct span_source *s, struct span *span, const char *key, struct json_object *value)
{
	int64_t n;
	if (span && strcmp(key, "thread.id") == 0 && integer_of(value, &n) && n > 0 && n <= INT32_MAX)
		span->tid = (int32_t)n;
	if (!s)
		return;
	if ((strcmp(key, "process.pid") == 0 || strcmp(key, "pid") == 0) && integer_of(value, &n) && n > 0 && n <= INT32_MAX)
		s->pid = (int32_t)n;
	if (strcmp(key, "container.id") == 0 || strncmp(key, "k8s.pod.", 8) == 0 || strncmp(key, "k8s.container.", 14) == 0)
		s->in_container = true;
	if (!json_object_is_type(value, json_type_string))
		return;
	const char *text = json_object_get_string(value);
	if (strcmp(key, "service.name") == 0 && !s->service)
		s->service = mem_dup(text);
	for (size_t i = 0; i < SPAN_HOST_KEYS; i++)
		if (strcmp(key, span_host_key[i]) == 0 && !s->host[i] && *text)
			s->host[i] = mem_dup(text);
}

/* Reads a list of attributes. OTLP: {"key": k, "value": {"stringValue": v}}; Jaeger: {"key": k, "value": v}. */
static void read_attributes(struct span_source *s, struct span *span, struct json_object *list)
{
	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		struct json_object *a = json_object_array_get_idx(list, i), *value = member(a, "value");
		if (json_object_is_type(value, json_type_object)) {
			struct json_object *text = member(value, "stringValue");
			value = text ? text : member(value, "intValue");
		}
		read_attribute(s, span, json_member_text(a, "key"), value);
	}
}

static struct span_source *add_source(struct spans *out)
{
	struct span_source *s = ARRAY_PUSH(out->source, out->sources, out->sources_cap);
	*s = (struct span_source){ .pid = -1 };
	return s;
}

/* Adds the span, whose ids and times are set, if it is complete. */
static void add_span(struct span_reader *rd, const struct span *span, bool has_times, const char *name)
{
	if (!has_times || span->end < span->start || !span->id[0] || !span->trace[0]) {
		rd->out->incomplete++;
		return;
	}
	struct span *s = ARRAY_PUSH(rd->out->span, rd->out->len, rd->out->cap);
	*s = *span;
	s->name = mem_dup(name);
}

/* ---- Forms -------------------------------------------------------------------------------------------------- */

static bool read_otlp_span(struct span_reader *rd, struct json_object *o, uint32_t source)
{
	struct span s = { .source = source, .tid = -1 };
	if (!read_id(rd, o, "traceId", SPAN_TRACE_ID, s.trace) || !read_id(rd, o, "spanId", SPAN_ID, s.id) ||
	    !read_id(rd, o, "parentSpanId", SPAN_ID, s.parent))
		return false;
	const bool times = time_of(o, "startTimeUnixNano", 1, &s.start) && time_of(o, "endTimeUnixNano", 1, &s.end);
	read_attributes(NULL, &s, json_member_array(o, "attributes"));
	add_span(rd, &s, times, json_member_text(o, "name"));
	return true;
}

static bool read_otlp(struct span_reader *rd, struct json_object *resources)
{
	for (size_t i = 0; i < json_object_array_length(resources); i++) {
		struct json_object *r = json_object_array_get_idx(resources, i), *scopes = json_member_array(r, "scopeSpans");
		if (!scopes)
			scopes = json_member_array(r, "instrumentationLibrarySpans");  /* before OTLP 0.19 */
		read_attributes(add_source(rd->out), NULL, json_member_array(member(r, "resource"), "attributes"));
		for (size_t k = 0; scopes && k < json_object_array_length(scopes); k++) {
			struct json_object *scope = json_object_array_get_idx(scopes, k), *list = json_member_array(scope, "spans");
			if (strcmp(json_member_text(member(scope, "scope"), "name"), SPAN_OWN_SCOPE) == 0)
				continue;
			for (size_t n = 0; list && n < json_object_array_length(list); n++)
				if (!read_otlp_span(rd, json_object_array_get_idx(list, n), (uint32_t)rd->out->sources - 1))
					return false;
		}
	}
	return true;
}

static bool read_jaeger_parent(struct span_reader *rd, struct json_object *o, char *parent)
{
	struct json_object *list = json_member_array(o, "references");
	if (!read_id(rd, o, "parentSpanID", SPAN_ID, parent))
		return false;
	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		struct json_object *r = json_object_array_get_idx(list, i);
		if (strcmp(json_member_text(r, "refType"), "CHILD_OF") == 0)
			return read_id(rd, r, "spanID", SPAN_ID, parent);
	}
	return true;
}

static bool read_jaeger_trace(struct span_reader *rd, struct json_object *o)
{
	struct json_object *list = json_member_array(o, "spans"), *processes = member(o, "processes");
	const size_t first = rd->out->sources;
	if (json_object_is_type(processes, json_type_object)) {
		json_object_object_foreach(processes, key, p) {
			(void)key;
			struct span_source *s = add_source(rd->out);
			const char *service = json_member_text(p, "serviceName");
			s->service = *service ? mem_dup(service) : NULL;
			read_attributes(s, NULL, json_member_array(p, "tags"));
		}
	}
	const size_t none = rd->out->sources;
	add_source(rd->out);
	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		struct json_object *v = json_object_array_get_idx(list, i);
		struct span s = { .source = (uint32_t)none, .tid = -1, .precision = NS_PER_US };
		int64_t duration = 0;
		size_t at = first;
		if (!read_id(rd, v, "traceID", SPAN_TRACE_ID, s.trace) || !read_id(rd, v, "spanID", SPAN_ID, s.id) ||
		    !read_jaeger_parent(rd, v, s.parent))
			return false;
		const bool times = time_of(v, "startTime", NS_PER_US, &s.start) && time_of(v, "duration", NS_PER_US, &duration);
		s.end = s.start + duration;
		if (json_object_is_type(processes, json_type_object)) {
			json_object_object_foreach(processes, key, p) {
				(void)p;
				if (strcmp(key, json_member_text(v, "processID")) == 0)
					s.source = (uint32_t)at;
				at++;
			}
		}
		read_attributes(NULL, &s, json_member_array(v, "tags"));
		add_span(rd, &s, times, json_member_text(v, "operationName"));
	}
	return true;
}

static bool read_jaeger(struct span_reader *rd, struct json_object *traces)
{
	for (size_t i = 0; i < json_object_array_length(traces); i++)
		if (!read_jaeger_trace(rd, json_object_array_get_idx(traces, i)))
			return false;
	return true;
}

static bool read_zipkin_span(struct span_reader *rd, struct json_object *o)
{
	struct span s = { .source = (uint32_t)rd->out->sources, .tid = -1, .precision = NS_PER_US };
	struct json_object *tags = member(o, "tags");
	int64_t duration = 0;
	if (!json_object_is_type(o, json_type_object) || !*json_member_text(o, "traceId"))
		return refuse(rd, "neither OTLP, Jaeger nor Zipkin");
	if (!read_id(rd, o, "traceId", SPAN_TRACE_ID, s.trace) || !read_id(rd, o, "id", SPAN_ID, s.id) ||
	    !read_id(rd, o, "parentId", SPAN_ID, s.parent))
		return false;
	struct span_source *source = add_source(rd->out);
	const char *service = json_member_text(member(o, "localEndpoint"), "serviceName");
	source->service = *service ? mem_dup(service) : NULL;
	if (json_object_is_type(tags, json_type_object)) {
		json_object_object_foreach(tags, key, value)
			read_attribute(source, &s, key, value);
	}
	const bool times = time_of(o, "timestamp", NS_PER_US, &s.start) && time_of(o, "duration", NS_PER_US, &duration);
	s.end = s.start + duration;
	add_span(rd, &s, times, json_member_text(o, "name"));
	return true;
}

static bool read_zipkin(struct span_reader *rd, struct json_object *list)
{
	for (size_t i = 0; i < json_object_array_length(list); i++)
		if (!read_zipkin_span(rd, json_object_array_get_idx(list, i)))
			return false;
	return true;
}

static bool read_document(struct span_reader *rd, struct json_object *doc)
{
	struct json_object *list;
	if (json_object_is_type(doc, json_type_array))
		return read_zipkin(rd, doc);
	if ((list = json_member_array(doc, "resourceSpans")))
		return read_otlp(rd, list);
	if ((list = json_member_array(doc, "data")))
		return read_jaeger(rd, list);
	if (json_member_array(doc, "spans"))
		return read_jaeger_trace(rd, doc);
	return read_zipkin_span(rd, doc);
}

/* ---- The file ----------------------------------------------------------------------------------------------- */

static size_t line_of(const char *text, size_t at)
{
	size_t line = 1;
	for (size_t i = 0; i < at; i++)
		line += text[i] == '\n';
	return line;
}

int spans_parse(struct spans *out, const char *text, size_t size, const char *name, struct error *err)
{
	struct span_reader rd = { out, NULL };
	size_t at = 0;
	*out = (struct spans){ 0 };
	while (!rd.why) {
		while (at < size && strchr(" \t\r\n", text[at]) && text[at])
			at++;
		if (at == size)
			break;
		struct json_tokener *tok = mem_checked(json_tokener_new_ex(DEPTH_MAX));
		json_tokener_set_flags(tok, JSON_TOKENER_VALIDATE_UTF8);
		struct json_object *doc = json_tokener_parse_ex(tok, text + at, (int)(size - at));
		const enum json_tokener_error e = json_tokener_get_error(tok);
		const size_t end = at + json_tokener_get_parse_end(tok);
		json_tokener_free(tok);
		if (e != json_tokener_success)
			refuse(&rd, e == json_tokener_continue ? "the document is incomplete" : json_tokener_error_desc(e));
		else
			read_document(&rd, doc);
		json_object_put(doc);
		if (!rd.why)
			at = end;
	}
	if (!rd.why && out->len + out->incomplete == 0)
		rd.why = "no spans found";
	if (!rd.why)
		return 0;
	spans_release(out);
	return error_set(err, STATUS_INPUT, "OTLP, Jaeger or Zipkin as JSON is required", "%s: line %zu: %s", name,
	                 line_of(text, at), rd.why);
}

int spans_read(struct spans *out, const char *path, struct error *err)
{
	*out = (struct spans){ 0 };
	FILE *f = file_open(path);
	if (!f)
		return error_read(err, NULL, "%s", path);
	char *text = NULL;
	size_t size = 0, cap = 0, got;
	do {
		if (cap - size < 65536)
			text = mem_resize(text, cap = 2 * cap + 65536, 1);
		got = fread(text + size, 1, cap - size, f);
		size += got;
	} while (got && size <= FILE_MAX);
	const int failed = ferror(f);
	fclose(f);
	int rc = failed ? error_read(err, NULL, "%s", path) : 0;
	if (rc == 0 && size > FILE_MAX)
		rc = error_set(err, STATUS_INPUT, "split it", "%s: larger than %d MiB", path, FILE_MAX >> 20);
	if (rc == 0)
		rc = spans_parse(out, text, size, path, err);
	free(text);
	return rc;
}
