/* OTLP as protobuf to OTLP as JSON, by the tables of opentelemetry/proto/trace/v1: one decoder for all messages. Fields
 * that are not in the tables are skipped. Lengths, nesting, wire types and texts are checked; nothing is read beyond the
 * message. */
#include <math.h>
#include <string.h>

#include "base/base64.h"
#include "base/otlp_json.h"
#include "base/proto.h"
#include "latency/span_convert.h"

#define DEPTH_MAX 32

enum pb_type { PB_MESSAGE, PB_TEXT, PB_ID, PB_BYTES, PB_FIXED64, PB_FIXED32, PB_INT64, PB_NUMBER, PB_BOOL, PB_DOUBLE };

/* A field of a message. */
struct pb_field {
	unsigned number;         /* 0: the table's end */
	const char *name;        /* in JSON */
	enum pb_type type;
	bool repeated;
	const struct pb_field *message;  /* PB_MESSAGE: its fields */
};

static const struct pb_field key_value[3], any_value[8];
static const struct pb_field array_value[] = { { 1, "values", PB_MESSAGE, true, any_value }, { 0 } };
static const struct pb_field list_value[] = { { 1, "values", PB_MESSAGE, true, key_value }, { 0 } };
static const struct pb_field any_value[] = {
	{ 1, "stringValue", PB_TEXT, false, NULL }, { 2, "boolValue", PB_BOOL, false, NULL },
	{ 3, "intValue", PB_INT64, false, NULL }, { 4, "doubleValue", PB_DOUBLE, false, NULL },
	{ 5, "arrayValue", PB_MESSAGE, false, array_value }, { 6, "kvlistValue", PB_MESSAGE, false, list_value },
	{ 7, "bytesValue", PB_BYTES, false, NULL }, { 0 }
};
static const struct pb_field key_value[] = {
	{ 1, "key", PB_TEXT, false, NULL }, { 2, "value", PB_MESSAGE, false, any_value }, { 0 }
};
static const struct pb_field event[] = {
	{ 1, "timeUnixNano", PB_FIXED64, false, NULL }, { 2, "name", PB_TEXT, false, NULL },
	{ 3, "attributes", PB_MESSAGE, true, key_value }, { 4, "droppedAttributesCount", PB_NUMBER, false, NULL }, { 0 }
};
static const struct pb_field span_link[] = {
	{ 1, "traceId", PB_ID, false, NULL }, { 2, "spanId", PB_ID, false, NULL }, { 3, "traceState", PB_TEXT, false, NULL },
	{ 4, "attributes", PB_MESSAGE, true, key_value }, { 5, "droppedAttributesCount", PB_NUMBER, false, NULL },
	{ 6, "flags", PB_FIXED32, false, NULL }, { 0 }
};
static const struct pb_field status[] = {
	{ 2, "message", PB_TEXT, false, NULL }, { 3, "code", PB_NUMBER, false, NULL }, { 0 }
};
static const struct pb_field span[] = {
	{ 1, "traceId", PB_ID, false, NULL }, { 2, "spanId", PB_ID, false, NULL }, { 3, "traceState", PB_TEXT, false, NULL },
	{ 4, "parentSpanId", PB_ID, false, NULL }, { 5, "name", PB_TEXT, false, NULL }, { 6, "kind", PB_NUMBER, false, NULL },
	{ 7, "startTimeUnixNano", PB_FIXED64, false, NULL }, { 8, "endTimeUnixNano", PB_FIXED64, false, NULL },
	{ 9, "attributes", PB_MESSAGE, true, key_value }, { 10, "droppedAttributesCount", PB_NUMBER, false, NULL },
	{ 11, "events", PB_MESSAGE, true, event }, { 12, "droppedEventsCount", PB_NUMBER, false, NULL },
	{ 13, "links", PB_MESSAGE, true, span_link }, { 14, "droppedLinksCount", PB_NUMBER, false, NULL },
	{ 15, "status", PB_MESSAGE, false, status }, { 16, "flags", PB_FIXED32, false, NULL }, { 0 }
};
static const struct pb_field scope[] = {
	{ 1, "name", PB_TEXT, false, NULL }, { 2, "version", PB_TEXT, false, NULL },
	{ 3, "attributes", PB_MESSAGE, true, key_value }, { 4, "droppedAttributesCount", PB_NUMBER, false, NULL }, { 0 }
};
static const struct pb_field scope_spans[] = {
	{ 1, "scope", PB_MESSAGE, false, scope }, { 2, "spans", PB_MESSAGE, true, span },
	{ 3, "schemaUrl", PB_TEXT, false, NULL }, { 0 }
};
static const struct pb_field resource[] = {
	{ 1, "attributes", PB_MESSAGE, true, key_value }, { 2, "droppedAttributesCount", PB_NUMBER, false, NULL }, { 0 }
};
static const struct pb_field resource_spans[] = {
	{ 1, "resource", PB_MESSAGE, false, resource }, { 2, "scopeSpans", PB_MESSAGE, true, scope_spans },
	{ 3, "schemaUrl", PB_TEXT, false, NULL }, { 0 }
};
static const struct pb_field request[] = { { 1, "resourceSpans", PB_MESSAGE, true, resource_spans }, { 0 } };

/* ---- Values ------------------------------------------------------------------------------------------------- */

/* Returns true if the bytes are UTF-8 without NUL. */
static bool is_text(const unsigned char *s, size_t n)
{
	static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
	for (size_t i = 0; i < n;) {
		const unsigned char c = s[i++];
		const unsigned more = c < 0x80 ? 0 : c < 0xc0 ? 4 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : c < 0xf8 ? 3 : 4;
		if (more == 4 || more > n - i || c == 0)
			return false;
		uint32_t code = more ? c & (0x3fU >> more) : c;
		for (unsigned k = 0; k < more; k++, i++) {
			if ((s[i] & 0xc0) != 0x80)
				return false;
			code = code << 6 | (s[i] & 0x3f);
		}
		if (code < least[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
			return false;
	}
	return true;
}

static struct json_object *make_text(const char *text, size_t n)
{
	return mem_checked(json_object_new_string_len(text, (int)n));
}

static struct json_object *make_id(const struct proto_field *f)
{
	char text[65];
	if (f->len >= sizeof text / 2)
		return NULL;
	for (size_t i = 0; i < f->len; i++)
		snprintf(text + 2 * i, 3, "%02x", f->data[i]);
	return make_text(text, 2 * f->len);
}

static struct json_object *make_base64(const struct proto_field *f)
{
	char *text = base64_encode(f->data, f->len);
	struct json_object *o = make_text(text, strlen(text));
	free(text);
	return o;
}

static struct json_object *make_integer(bool is_signed, uint64_t value)
{
	char text[24];
	if (is_signed)
		snprintf(text, sizeof text, "%" PRId64, (int64_t)value);
	else
		snprintf(text, sizeof text, "%" PRIu64, value);
	return make_text(text, strlen(text));
}

static struct json_object *make_double(uint64_t bits)
{
	double d;
	memcpy(&d, &bits, sizeof d);
	if (!isfinite(d))
		return mem_checked(json_object_new_string(isnan(d) ? "NaN" : d > 0 ? "Infinity" : "-Infinity"));
	return mem_checked(json_object_new_double(d));
}

/* A message's limits: nested messages, and fields of all. */
struct pb_limits { int depth; int64_t *values; };

static struct json_object *make_message(const struct pb_field *table, const unsigned char *bytes, size_t size,
                                        struct pb_limits limits);

/* Converts a field's value. Returns NULL if its wire type or value is wrong. */
static struct json_object *make_value(const struct pb_field *field, const struct proto_field *f, struct pb_limits limits)
{
	static const enum proto_type wire[] = {
		[PB_MESSAGE] = WIRE_BYTES, [PB_TEXT] = WIRE_BYTES, [PB_ID] = WIRE_BYTES, [PB_BYTES] = WIRE_BYTES,
		[PB_FIXED64] = WIRE_FIXED64, [PB_FIXED32] = WIRE_FIXED32, [PB_INT64] = WIRE_VARINT, [PB_NUMBER] = WIRE_VARINT,
		[PB_BOOL] = WIRE_VARINT, [PB_DOUBLE] = WIRE_FIXED64,
	};
	if (f->type != wire[field->type])
		return NULL;
	switch (field->type) {
	case PB_MESSAGE:
		return make_message(field->message, f->data, f->len, limits);
	case PB_TEXT:
		return is_text(f->data, f->len) ? make_text((const char *)f->data, f->len) : NULL;
	case PB_ID:
		return make_id(f);
	case PB_BYTES:
		return make_base64(f);
	case PB_FIXED64: case PB_INT64:
		return make_integer(field->type == PB_INT64, f->value);
	case PB_FIXED32: case PB_NUMBER:
		return mem_checked(json_object_new_int64((uint32_t)f->value));
	case PB_BOOL:
		return mem_checked(json_object_new_boolean(f->value != 0));
	case PB_DOUBLE:
		return make_double(f->value);
	}
	return NULL;
}

static struct json_object *make_message(const struct pb_field *table, const unsigned char *bytes, size_t size,
                                        struct pb_limits limits)
{
	struct json_object *o = limits.depth-- > 0 ? json_new_object() : NULL;
	struct proto_message m = proto_open(bytes, size);
	while (o && m.at < m.end) {
		struct proto_field f;
		const struct pb_field *field = table;
		struct json_object *v = NULL;
		const bool valid = proto_next(&m, &f) && (*limits.values)-- > 0;
		while (valid && field->number && field->number != f.number)
			field++;
		if (valid && !field->number)
			continue;
		if (!valid || !(v = make_value(field, &f, limits))) {
			json_object_put(o);
			return NULL;
		}
		if (field->repeated)
			json_object_array_add(json_put_array(o, field->name), v);
		else
			json_object_object_add(o, field->name, v);
	}
	return o;
}

struct json_object *span_of_protobuf(const unsigned char *bytes, size_t size)
{
	int64_t values = SPAN_VALUES_MAX;
	struct json_object *o = make_message(request, bytes, size, (struct pb_limits){ DEPTH_MAX, &values });
	struct json_object *list = o ? json_put_array(o, "resourceSpans") : NULL;
	if (list)
		json_object_get(list);
	json_object_put(o);
	return list;
}

/* ---- Files -------------------------------------------------------------------------------------------------- */

/* Returns true if the bytes are a sequence of at least one field 1 of this message; levels: of which each is one, too. */
static bool is_message(const unsigned char *bytes, size_t size, unsigned levels)
{
	struct proto_message m = proto_open(bytes, size);
	while (m.at < m.end) {
		struct proto_field f;
		if (!proto_next(&m, &f) || f.type != WIRE_BYTES || f.number > 1000 ||
		    (levels && (f.number != 1 || !is_message(f.data, f.len, levels - 1))))
			return false;
	}
	return size > 0;
}

size_t span_protobuf_next(const unsigned char *bytes, size_t size, int form, size_t *at)
{
	struct proto_message m = proto_open(bytes + *at, size - *at);
	uint64_t n = size - *at;
	if (*at >= size)
		return 0;
	if (form == 4) {
		n = 0;
		for (int i = 0; i < 4 && m.at < m.end; i++)
			n = n << 8 | *m.at++;
	} else if (form == SPAN_PROTOBUF_VARINT && !proto_varint(&m, &n)) {
		n = 0;
	}
	*at = (size_t)(m.at - bytes);
	return n > (size_t)(m.end - m.at) ? 0 : (size_t)n;
}

int span_protobuf_form(const unsigned char *bytes, size_t size)
{
	static const int forms[] = { 0, 4, SPAN_PROTOBUF_VARINT };
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		size_t at = 0, n;
		bool valid = size > 0;
		while (valid && at < size) {
			n = span_protobuf_next(bytes, size, forms[i], &at);
			valid = n && is_message(bytes + at, n, 1);
			at += n;
		}
		if (valid)
			return forms[i];
	}
	return -1;
}
