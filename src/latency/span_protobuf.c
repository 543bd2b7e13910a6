/* OTLP as protobuf to OTLP as JSON, by the tables of opentelemetry/proto/trace/v1: one decoder for all messages. Fields
 * that are not in the tables are skipped. Lengths, nesting, wire types and texts are checked; nothing is read beyond the
 * message. */
#include <math.h>
#include <string.h>

#include "base/otlp_json.h"
#include "latency/span_convert.h"

#define DEPTH_MAX 32
#define VARINT_MAX 10

enum pb_type { PB_MESSAGE, PB_TEXT, PB_ID, PB_BYTES, PB_FIXED64, PB_FIXED32, PB_INT64, PB_NUMBER, PB_BOOL, PB_DOUBLE };

/* A field of a message. */
struct pb_field {
	unsigned number;         /* 0: end of the table */
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

/* ---- Wire format -------------------------------------------------------------------------------------------- */

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

/* A field as it was read. */
struct wire_field {
	uint64_t number, value;      /* value: of other types than WIRE_BYTES */
	enum wire type;
	const unsigned char *bytes;  /* WIRE_BYTES */
	size_t size;
};

static bool read_varint(const unsigned char **at, const unsigned char *end, uint64_t *out)
{
	*out = 0;
	for (unsigned i = 0; i < VARINT_MAX && *at < end; i++) {
		const unsigned char c = *(*at)++;
		*out |= (uint64_t)(c & 127) << 7 * i;
		if (c < 128)
			return i < VARINT_MAX - 1 || c < 2;
	}
	return false;
}

static bool read_fixed(const unsigned char **at, const unsigned char *end, unsigned bytes, uint64_t *out)
{
	*out = 0;
	if ((size_t)(end - *at) < bytes)
		return false;
	for (unsigned i = 0; i < bytes; i++)
		*out |= (uint64_t)*(*at)++ << 8 * i;
	return true;
}

static bool read_field(const unsigned char **at, const unsigned char *end, struct wire_field *f)
{
	uint64_t tag, size;
	if (!read_varint(at, end, &tag))
		return false;
	f->number = tag >> 3;
	f->type = (enum wire)(tag & 7);
	if (f->number == 0 || f->number >= 1 << 29)
		return false;
	switch (f->type) {
	case WIRE_VARINT:
		return read_varint(at, end, &f->value);
	case WIRE_64:
		return read_fixed(at, end, 8, &f->value);
	case WIRE_32:
		return read_fixed(at, end, 4, &f->value);
	case WIRE_BYTES:
		if (!read_varint(at, end, &size) || size > (size_t)(end - *at))
			return false;
		f->bytes = *at;
		f->size = (size_t)size;
		*at += size;
		return true;
	}
	return false;
}

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

static struct json_object *make_id(const struct wire_field *f)
{
	char text[65];
	if (f->size >= sizeof text / 2)
		return NULL;
	for (size_t i = 0; i < f->size; i++)
		snprintf(text + 2 * i, 3, "%02x", f->bytes[i]);
	return make_text(text, 2 * f->size);
}

static struct json_object *make_base64(const struct wire_field *f)
{
	static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *text = mem_new(f->size / 3 * 4 + 5, 1), *to = text;
	for (size_t i = 0; i < f->size; i += 3) {
		const size_t n = f->size - i < 3 ? f->size - i : 3;
		const uint32_t v = (uint32_t)f->bytes[i] << 16 | (n > 1 ? (uint32_t)f->bytes[i + 1] << 8 : 0) |
		                   (n > 2 ? f->bytes[i + 2] : 0);
		for (size_t k = 0; k < 4; k++)
			*to++ = k <= n ? digit[v >> (18 - 6 * k) & 63] : '=';
	}
	struct json_object *o = make_text(text, (size_t)(to - text));
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

/* Limits of a message: nested messages, and fields of all. */
struct pb_limits { int depth; int64_t *values; };

static struct json_object *make_message(const struct pb_field *table, const unsigned char *bytes, size_t size,
                                        struct pb_limits limits);

/* Converts the value of a field. Returns NULL if its wire type or value is wrong. */
static struct json_object *make_value(const struct pb_field *field, const struct wire_field *f, struct pb_limits limits)
{
	static const enum wire wire[] = {
		[PB_MESSAGE] = WIRE_BYTES, [PB_TEXT] = WIRE_BYTES, [PB_ID] = WIRE_BYTES, [PB_BYTES] = WIRE_BYTES,
		[PB_FIXED64] = WIRE_64, [PB_FIXED32] = WIRE_32, [PB_INT64] = WIRE_VARINT, [PB_NUMBER] = WIRE_VARINT,
		[PB_BOOL] = WIRE_VARINT, [PB_DOUBLE] = WIRE_64,
	};
	if (f->type != wire[field->type])
		return NULL;
	switch (field->type) {
	case PB_MESSAGE:
		return make_message(field->message, f->bytes, f->size, limits);
	case PB_TEXT:
		return is_text(f->bytes, f->size) ? make_text((const char *)f->bytes, f->size) : NULL;
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
	const unsigned char *at = bytes, *end = bytes + size;
	while (o && at < end) {
		struct wire_field f = { 0 };
		const struct pb_field *field = table;
		struct json_object *v = NULL;
		const bool valid = read_field(&at, end, &f) && (*limits.values)-- > 0;
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
	const unsigned char *at = bytes, *end = bytes + size;
	while (at < end) {
		struct wire_field f = { 0 };
		if (!read_field(&at, end, &f) || f.type != WIRE_BYTES || f.number > 1000 ||
		    (levels && (f.number != 1 || !is_message(f.bytes, f.size, levels - 1))))
			return false;
	}
	return size > 0;
}

size_t span_protobuf_next(const unsigned char *bytes, size_t size, int form, size_t *at)
{
	const unsigned char *from = bytes + *at, *end = bytes + size;
	uint64_t n = size - *at;
	if (*at >= size)
		return 0;
	if (form == 4) {
		n = 0;
		for (int i = 0; i < 4 && from < end; i++)
			n = n << 8 | *from++;
	} else if (form == SPAN_PROTOBUF_VARINT && !read_varint(&from, end, &n)) {
		n = 0;
	}
	*at = (size_t)(from - bytes);
	return n > (size_t)(end - from) ? 0 : (size_t)n;
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
