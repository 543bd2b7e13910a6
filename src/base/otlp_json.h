/* Builds objects of OTLP as JSON: integers of 64 bits are texts, attributes are {"key": k, "value": {TYPE: v}}. The
 * functions return borrowed objects, which belong to the object or list that they were added to. */
#pragma once

#include <inttypes.h>
#include <stdio.h>

#include "base/json_field.h"

static inline void json_put_text(struct json_object *o, const char *key, const char *text)
{
	json_object_object_add(o, key, mem_checked(json_object_new_string(text)));
}

static inline void otlp_put_integer(struct json_object *o, const char *key, int64_t n)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRId64, n);
	json_put_text(o, key, text);
}

static inline struct json_object *json_put_object(struct json_object *o, const char *key)
{
	struct json_object *v = json_new_object();
	json_object_object_add(o, key, v);
	return v;
}

/* Returns the list of this name; adds it if it is missing. */
static inline struct json_object *json_put_array(struct json_object *o, const char *key)
{
	struct json_object *v = json_member_array(o, key);
	if (!v)
		json_object_object_add(o, key, v = json_new_array());
	return v;
}

static inline struct json_object *json_append_object(struct json_object *list)
{
	struct json_object *v = json_new_object();
	json_object_array_add(list, v);
	return v;
}

/* Adds an attribute; returns the object for its value. */
static inline struct json_object *otlp_add(struct json_object *list, const char *key)
{
	struct json_object *a = json_append_object(list);
	json_put_text(a, "key", key);
	return json_put_object(a, "value");
}

static inline void otlp_add_text(struct json_object *list, const char *key, const char *text)
{
	json_put_text(otlp_add(list, key), "stringValue", text);
}

static inline void otlp_add_integer(struct json_object *list, const char *key, int64_t n)
{
	otlp_put_integer(otlp_add(list, key), "intValue", n);
}
