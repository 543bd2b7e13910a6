/* Access to members of json objects, with defaults for missing members and members of another type. */
#pragma once

#include <json-c/json.h>
#include <stdint.h>

#include "base/mem.h"

/* New values. End the program if memory is short: json-c's functions for arrays abort on NULL. */
static inline struct json_object *json_new_array(void)
{
	return mem_checked(json_object_new_array());
}

static inline struct json_object *json_new_object(void)
{
	return mem_checked(json_object_new_object());
}

/* Parses a json object. Returns NULL if the bytes are not a json object. The caller releases it with json_object_put(). */
struct json_object *json_parse(const void *text, size_t size);

const char *json_member_text(struct json_object *o, const char *key);           /* borrowed; "" if absent */
int64_t json_member_int(struct json_object *o, const char *key, int64_t fallback);
double json_member_real(struct json_object *o, const char *key, double fallback);
struct json_object *json_member_array(struct json_object *o, const char *key);  /* borrowed; NULL if absent */
