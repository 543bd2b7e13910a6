/* Fields of json documents, with defaults for what is missing or of another type. */
#ifndef STEALSCOPE_BASE_JSON_FIELD_H
#define STEALSCOPE_BASE_JSON_FIELD_H

#include <json-c/json.h>
#include <stdint.h>

/* The document that the bytes hold, to be json_object_put(); NULL when they are none. */
struct json_object *field_parse(const void *text, size_t size);

const char *field_text(struct json_object *o, const char *key);           /* borrowed; "" when absent */
int64_t field_int(struct json_object *o, const char *key, int64_t fallback);
double field_real(struct json_object *o, const char *key, double fallback);
struct json_object *field_array(struct json_object *o, const char *key);  /* borrowed; NULL when absent */

#endif
