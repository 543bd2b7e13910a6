#include "base/json_field.h"

struct json_object *json_parse(const void *text, size_t size)
{
	if (size >= INT32_MAX)
		return NULL;
	struct json_tokener *tok = json_tokener_new();
	struct json_object *doc = json_tokener_parse_ex(tok, text, (int)size);
	json_tokener_free(tok);
	if (json_object_is_type(doc, json_type_object))
		return doc;
	json_object_put(doc);
	return NULL;
}

static struct json_object *json_member(struct json_object *o, const char *key)
{
	struct json_object *v = NULL;
	if (!json_object_is_type(o, json_type_object) || !json_object_object_get_ex(o, key, &v))
		return NULL;
	return v;
}

const char *json_member_text(struct json_object *o, const char *key)
{
	struct json_object *v = json_member(o, key);
	return json_object_is_type(v, json_type_string) ? json_object_get_string(v) : "";
}

int64_t json_member_int(struct json_object *o, const char *key, int64_t fallback)
{
	struct json_object *v = json_member(o, key);
	return json_object_is_type(v, json_type_int) ? json_object_get_int64(v) : fallback;
}

double json_member_real(struct json_object *o, const char *key, double fallback)
{
	struct json_object *v = json_member(o, key);
	return v ? json_object_get_double(v) : fallback;
}

struct json_object *json_member_array(struct json_object *o, const char *key)
{
	struct json_object *v = json_member(o, key);
	return json_object_is_type(v, json_type_array) ? v : NULL;
}
