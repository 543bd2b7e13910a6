/* Reads spans of distributed tracing.
 *
 * A file is a sequence of documents: OTLP, Jaeger or Zipkin as JSON, one for each line or one for the whole file; or OTLP
 * as protobuf. The other forms are converted to OTLP as JSON (span_convert.c, span_protobuf.c), so that one reader checks
 * all. A document is freed before the next one. The sizes of files and documents, the depth of a document and the length
 * of ids are limited. A document of another form is an error; a span without an end is counted and skipped. */
#include <ctype.h>

#include "base/base.h"
#include "base/file_open.h"
#include "base/json_field.h"
#include "latency/latency.h"
#include "latency/span_convert.h"

#define FILE_MAX (256 << 20)     /* bytes */
#define DOCUMENT_MAX (64 << 20)  /* bytes */
#define CHUNK 65536              /* bytes that are parsed at once */
#define DEPTH_MAX 32             /* a document's nested values */
#define ATTRIBUTES_MAX 64        /* attributes of a source that are stored */
#define ATTRIBUTE_MAX 256        /* length of their keys and values, bytes */
#define LAST_SOURCES 16          /* sources that a new one is compared with */

const char *const span_host_key[SPAN_HOST_KEYS] = { "host.name", "service.instance.id", "host.id", "k8s.node.name",
                                                    "net.host.name", "hostname" };

/* Reading of one document. */
struct span_reader {
	struct spans *out;
	int64_t precision;       /* unit of the times in the document beyond 1 ns, or 0 */
	const char *why;         /* first error: a text without names; NULL: none */
};

static bool refuse(struct span_reader *rd, const char *why)
{
	if (!rd->why)
		rd->why = why;
	return false;
}

static void release_source(struct span_source *s)
{
	for (size_t k = 0; k < SPAN_HOST_KEYS; k++)
		free(s->host[k]);
	for (size_t k = 0; k < s->attributes; k++)
		free(s->attribute[k]);
	free(s->attribute);
	free(s->service);
	free(s->resource);
	free(s->scope);
}

void spans_release(struct spans *s)
{
	for (size_t i = 0; i < s->len; i++) {
		free(s->span[i].name);
		free(s->span[i].json);
	}
	for (size_t i = 0; i < s->sources; i++)
		release_source(&s->source[i]);
	free(s->span);
	free(s->source);
	*s = (struct spans){ 0 };
}

/* ---- Values ------------------------------------------------------------------------------------------------- */

/* Reads a time >= 0. */
static bool read_time(struct json_object *o, const char *key, int64_t *ns)
{
	return span_integer(span_member(o, key), ns) && *ns >= 0 && *ns <= INT64_MAX / 2;
}

/* Decodes an id in base64, as protobuf's JSON and Tempo write it. Returns false if the text has another length or form. */
static bool read_base64(const char *text, size_t n, size_t digits, char *id)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const size_t bytes = digits / 2, letters = (8 * bytes + 5) / 6;
	size_t padding = 0;
	while (padding < n && text[n - 1 - padding] == '=')
		padding++;
	if (n - padding != letters || (padding && n % 4 != 0))
		return false;
	unsigned bits = 0, value = 0;
	for (size_t i = 0, at = 0; i < letters; i++) {
		const char c = text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i];
		const char *letter = memchr(alphabet, c, sizeof alphabet - 1);
		if (!letter)
			return false;
		value = value << 6 | (unsigned)(letter - alphabet);
		bits += 6;
		while (bits >= 4 && at < digits) {
			bits -= 4;
			id[at++] = "0123456789abcdef"[value >> bits & 15];
			id[at] = '\0';
		}
		value &= (1U << bits) - 1;
	}
	return true;
}

/* Copies an id in base64 or hexadecimal digits: in lower case, with zeros in front, of `digits` digits. An absent id is
 * "". */
static bool read_id(struct span_reader *rd, struct json_object *o, const char *key, size_t digits, char *id)
{
	const char *text = json_member_text(o, key);
	const size_t n = strlen(text);
	id[0] = '\0';
	if (n == 0)
		return true;
	const bool is_hex = n <= digits && strspn(text, "0123456789abcdefABCDEF") == n;
	if (!is_hex && !read_base64(text, n, digits, id))
		return refuse(rd, "an id of a span or trace is neither hexadecimal nor base64, or has a wrong length");
	if (is_hex) {
		memset(id, '0', digits - n);
		for (size_t i = 0; i <= n; i++)
			id[digits - n + i] = (char)tolower((unsigned char)text[i]);
	}
	if (strspn(id, "0") == digits)
		id[0] = '\0';  /* ids of zeros mean none */
	return true;
}

/* ---- Attributes --------------------------------------------------------------------------------------------- */

/* Stores one attribute of the process, or of the thread of a span (span may be NULL). */
static void read_attribute(struct span_source *s, struct span *span, const char *key, struct json_object *value)
{
	int64_t n;
	if (span && strcmp(key, "thread.id") == 0 && span_integer(value, &n) && n > 0 && n <= INT32_MAX)
		span->tid = (int32_t)n;
	if (!s)
		return;
	if ((strcmp(key, "process.pid") == 0 || strcmp(key, "pid") == 0) && span_integer(value, &n) && n > 0 && n <= INT32_MAX)
		s->pid = (int32_t)n;
	if (strcmp(key, "container.id") == 0 || strncmp(key, "k8s.pod.", 8) == 0 || strncmp(key, "k8s.container.", 14) == 0)
		s->in_container = true;
	if (!json_object_is_type(value, json_type_string))
		return;
	const char *text = json_object_get_string(value);
	if (s->attributes < ATTRIBUTES_MAX && strlen(text) <= ATTRIBUTE_MAX && strlen(key) <= ATTRIBUTE_MAX)
		*ARRAY_PUSH(s->attribute, s->attributes, s->attributes_cap) = mem_printf("%s=%s", key, text);
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
		struct json_object *a = json_object_array_get_idx(list, i), *value = span_member(a, "value");
		if (json_object_is_type(value, json_type_object)) {
			struct json_object *text = span_member(value, "stringValue");
			value = text ? text : span_member(value, "intValue");
		}
		read_attribute(s, span, json_member_text(a, "key"), value);
	}
}

static char *copy_json(const struct span_reader *rd, struct json_object *o)
{
	return rd->out->whole && o ? mem_dup(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN)) : NULL;
}

static bool is_same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_same_source(const struct span_source *a, const struct span_source *b)
{
	bool same = a->pid == b->pid && a->in_container == b->in_container && is_same_text(a->service, b->service) &&
	            is_same_text(a->resource, b->resource) && is_same_text(a->scope, b->scope);
	for (size_t k = 0; same && k < SPAN_HOST_KEYS; k++)
		same = is_same_text(a->host[k], b->host[k]);
	same = same && a->attributes == b->attributes;
	for (size_t k = 0; same && k < a->attributes; k++)
		same = strcmp(a->attribute[k], b->attribute[k]) == 0;
	return same;
}

/* Adds a source, unless one of the last sources is equal. Returns its index. */
static uint32_t add_source(const struct span_reader *rd, struct json_object *resource, struct json_object *scope)
{
	struct spans *out = rd->out;
	struct span_source s = { .pid = -1, .resource = copy_json(rd, resource), .scope = copy_json(rd, scope) };
	read_attributes(&s, NULL, json_member_array(resource, "attributes"));
	for (size_t i = out->sources; i > 0 && i + LAST_SOURCES > out->sources; i--) {
		if (!is_same_source(&s, &out->source[i - 1]))
			continue;
		release_source(&s);
		return (uint32_t)i - 1;
	}
	*ARRAY_PUSH(out->source, out->sources, out->sources_cap) = s;
	return (uint32_t)out->sources - 1;
}

/* ---- Documents ---------------------------------------------------------------------------------------------- */

static bool read_span(struct span_reader *rd, struct json_object *o, uint32_t source)
{
	struct span s = { .source = source, .tid = -1, .precision = rd->precision };
	if (!read_id(rd, o, "traceId", SPAN_TRACE_ID, s.trace) || !read_id(rd, o, "spanId", SPAN_ID, s.id) ||
	    !read_id(rd, o, "parentSpanId", SPAN_ID, s.parent))
		return false;
	const bool times = read_time(o, "startTimeUnixNano", &s.start) && read_time(o, "endTimeUnixNano", &s.end);
	if (!times || s.end < s.start || !s.id[0] || !s.trace[0]) {
		rd->out->incomplete++;
		return true;
	}
	read_attributes(NULL, &s, json_member_array(o, "attributes"));
	s.kind = (int)json_member_int(o, "kind", 0);
	s.name = mem_dup(json_member_text(o, "name"));
	s.json = copy_json(rd, o);
	*ARRAY_PUSH(rd->out->span, rd->out->len, rd->out->cap) = s;
	return true;
}

/* Reads ResourceSpans of OTLP. */
static bool read_resources(struct span_reader *rd, struct json_object *resources)
{
	for (size_t i = 0; i < json_object_array_length(resources); i++) {
		struct json_object *r = json_object_array_get_idx(resources, i), *scopes = json_member_array(r, "scopeSpans");
		if (!scopes)
			scopes = json_member_array(r, "instrumentationLibrarySpans");  /* before OTLP 0.19 */
		for (size_t k = 0; scopes && k < json_object_array_length(scopes); k++) {
			struct json_object *entry = json_object_array_get_idx(scopes, k), *list = json_member_array(entry, "spans");
			struct json_object *scope = span_member(entry, "scope");
			if (!list || strcmp(json_member_text(scope, "name"), SPAN_OWN_SCOPE) == 0)
				continue;
			const uint32_t source = add_source(rd, span_member(r, "resource"), scope);
			for (size_t n = 0; n < json_object_array_length(list); n++)
				if (!read_span(rd, json_object_array_get_idx(list, n), source))
					return false;
		}
	}
	return true;
}

/* Reads spans of another form, converted; releases them. */
static bool read_converted(struct span_reader *rd, struct json_object *resources)
{
	rd->precision = NS_PER_US;
	const bool valid = read_resources(rd, resources);
	json_object_put(resources);
	return valid;
}

static bool read_zipkin(struct span_reader *rd, struct json_object *span)
{
	return *json_member_text(span, "traceId") ? read_converted(rd, span_of_zipkin(span))
	                                          : refuse(rd, "neither OTLP, Jaeger nor Zipkin");
}

static bool read_list(struct span_reader *rd, struct json_object *list,
                      bool (*read_one)(struct span_reader *rd, struct json_object *o))
{
	for (size_t i = 0; i < json_object_array_length(list); i++)
		if (!read_one(rd, json_object_array_get_idx(list, i)))
			return false;
	return true;
}

static bool read_jaeger(struct span_reader *rd, struct json_object *trace)
{
	return read_converted(rd, span_of_jaeger(trace));
}

static bool read_document(struct span_reader *rd, struct json_object *doc)
{
	struct json_object *list;
	rd->precision = 0;
	if (json_object_is_type(doc, json_type_array))
		return read_list(rd, doc, read_zipkin);
	if ((list = json_member_array(doc, "resourceSpans")))
		return read_resources(rd, list);
	if ((list = json_member_array(doc, "data")))
		return read_list(rd, list, read_jaeger);
	return json_member_array(doc, "spans") ? read_jaeger(rd, doc) : read_zipkin(rd, doc);
}

/* ---- The file ----------------------------------------------------------------------------------------------- */

static size_t line_of(const char *text, size_t at)
{
	size_t line = 1;
	for (size_t i = 0; i < at; i++)
		line += text[i] == '\n';
	return line;
}

/* Counts the characters before values. Returns false beyond the limit, which bounds the memory of hostile documents. */
static bool count_values(size_t *count, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		*count += text[i] == ',' || text[i] == '[' || text[i] == '{';
	return *count <= SPAN_VALUES_MAX;
}

/* Parses the document that begins at text + *at, and moves *at to its end. Returns NULL with the reason in *why. */
static struct json_object *parse_document(const char *text, size_t size, size_t *at, const char **why)
{
	struct json_tokener *tok = mem_checked(json_tokener_new_ex(DEPTH_MAX));
	struct json_object *doc = NULL;
	size_t from = *at, values = 0;
	enum json_tokener_error e = json_tokener_continue;
	json_tokener_set_flags(tok, JSON_TOKENER_VALIDATE_UTF8);
	while (!*why && e == json_tokener_continue) {
		const size_t n = (size_t)min64((int64_t)(size - from), CHUNK);
		if (n == 0)
			*why = "the document is incomplete";
		else if (from - *at > DOCUMENT_MAX || !count_values(&values, text + from, n))
			*why = "the document is too large (64 MiB or 2 million values)";
		if (*why)
			break;
		doc = json_tokener_parse_ex(tok, text + from, (int)n);
		e = json_tokener_get_error(tok);
		from += e == json_tokener_success ? json_tokener_get_parse_end(tok) : n;
		if (e != json_tokener_success && e != json_tokener_continue)
			*why = json_tokener_error_desc(e);
	}
	json_tokener_free(tok);
	if (!*why)
		*at = from;
	return doc;
}

static size_t parse_json(struct span_reader *rd, const char *text, size_t size)
{
	size_t at = 0;
	while (!rd->why) {
		while (at < size && text[at] && strchr(" \t\r\n", text[at]))
			at++;
		if (at == size)
			break;
		const size_t begin = at;
		struct json_object *doc = parse_document(text, size, &at, &rd->why);
		if (!rd->why)
			read_document(rd, doc);
		json_object_put(doc);
		if (rd->why)
			return begin;
	}
	return at;
}

static size_t parse_protobuf(struct span_reader *rd, const unsigned char *bytes, size_t size, int form)
{
	size_t at = 0, n;
	while (!rd->why && (n = span_protobuf_next(bytes, size, form, &at)) > 0) {
		struct json_object *list = n <= DOCUMENT_MAX ? span_of_protobuf(bytes + at, n) : NULL;
		if (!list)
			refuse(rd, n > DOCUMENT_MAX ? "the message is larger than 64 MiB"
			                            : "malformed protobuf, or more than 2 million values");
		else if (read_resources(rd, list))
			at += n;
		json_object_put(list);
	}
	return at;
}

/* Sets the precision of each source's spans: the largest unit that all their starts are multiples of. SDKs of
 * JavaScript, for example, begin spans at whole ms. */
static void find_precision(struct spans *out)
{
	int64_t *unit = mem_new(out->sources + 1, sizeof *unit);
	for (size_t i = 0; i < out->sources; i++)
		unit[i] = NS_PER_S;
	for (size_t i = 0; i < out->len; i++) {
		const struct span *s = &out->span[i];
		while (s->start % unit[s->source] != 0)
			unit[s->source] /= 1000;
	}
	for (size_t i = 0; i < out->len; i++) {
		struct span *s = &out->span[i];
		s->precision = max64(s->precision, unit[s->source] > 1 ? unit[s->source] : 0);
	}
	free(unit);
}

int spans_parse(struct spans *out, bool whole, const char *text, size_t size, const char *name, struct error *err)
{
	struct span_reader rd = { .out = out };
	const unsigned char *bytes = (const unsigned char *)text;
	const int form = size && *text != '{' && *text != '[' ? span_protobuf_form(bytes, size) : -1;
	*out = (struct spans){ .whole = whole };
	const size_t at = form < 0 ? parse_json(&rd, text, size) : parse_protobuf(&rd, bytes, size, form);
	if (!rd.why && out->len + out->incomplete == 0)
		rd.why = "no spans found";
	if (!rd.why) {
		find_precision(out);
		return 0;
	}
	spans_release(out);
	return error_set(err, STATUS_INPUT, "OTLP, Jaeger or Zipkin is required",
	                 form < 0 ? "%s: line %zu: %s" : "%s: byte %zu: %s", name, form < 0 ? line_of(text, at) : at, rd.why);
}

int spans_read(struct spans *out, bool whole, const char *path, struct error *err)
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
		rc = spans_parse(out, whole, text, size, path, err);
	free(text);
	return rc;
}
