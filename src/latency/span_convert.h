/* Converts spans of other forms to OTLP as JSON: lists of ResourceSpans, which the caller releases with
 * json_object_put(). Private to latency/. */
#pragma once

#include "base/base.h"
#include "base/json_field.h"

#define SPAN_VALUES_MAX (2 << 20)  /* of a document */

/* Reads an integer, which OTLP writes as a text. Returns false for other values and beyond int64. */
bool span_integer(struct json_object *v, int64_t *out);
struct json_object *span_member(struct json_object *o, const char *key);  /* borrowed; NULL: absent */

struct json_object *span_of_jaeger(struct json_object *trace);  /* {"spans": [], "processes": {}} */
struct json_object *span_of_zipkin(struct json_object *span);   /* one span of version 2 */

/* Finds a file's protobuf messages: one ExportTraceServiceRequest, or a sequence of them behind their lengths (4 bytes,
 * big-endian, or a varint). Returns the byte count before each message, 5: a varint, or -1: the file is not protobuf. */
int span_protobuf_form(const unsigned char *bytes, size_t size);
#define SPAN_PROTOBUF_VARINT 5
/* Returns the size of the message that begins at bytes + *at, and moves *at to it; 0: the end. */
size_t span_protobuf_next(const unsigned char *bytes, size_t size, int form, size_t *at);
/* Converts one message. Returns NULL if it is malformed, or has more than SPAN_VALUES_MAX fields. */
struct json_object *span_of_protobuf(const unsigned char *bytes, size_t size);
