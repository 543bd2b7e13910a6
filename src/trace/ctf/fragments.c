#include "trace/ctf/fragments.h"

#define MAX_FRAGMENT ((size_t)8 << 20)  /* bytes */
#define MAX_DEPTH 96

static bool is_blank(const char *s, size_t len)
{
	while (len && strchr(" \t\r\n", *s) && *s)
		s++, len--;
	return len == 0;
}

struct json_object *ctf_fragment_next(const char **at, const char *end, const char **reason)
{
	while (*at < end && **at == '\x1e')
		++*at;
	const char *rs = memchr(*at, '\x1e', (size_t)(end - *at));
	const size_t len = (size_t)((rs ? rs : end) - *at);
	if (!len || is_blank(*at, len))
		return NULL;
	struct json_object *o = NULL;
	struct json_tokener *t = len <= MAX_FRAGMENT ? json_tokener_new_ex(MAX_DEPTH) : NULL;
	if (t) {
		o = json_tokener_parse_ex(t, *at, (int)len);
		const size_t used = json_tokener_get_parse_end(t);
		if (json_tokener_get_error(t) != json_tokener_success || !is_blank(*at + used, len - used)) {
			json_object_put(o);
			o = NULL;
		}
		json_tokener_free(t);
	}
	if (!o || !json_object_is_type(o, json_type_object)) {
		json_object_put(o);
		*reason = "metadata is not valid JSON";
		return NULL;
	}
	*at += len;
	return o;
}

struct json_object *ctf_json_member(struct json_object *o, const char *key, enum json_type type)
{
	struct json_object *found = NULL;
	if (!json_object_is_type(o, json_type_object) || !json_object_object_get_ex(o, key, &found))
		return NULL;
	return json_object_is_type(found, type) ? found : NULL;
}

const char *ctf_json_string(struct json_object *o, const char *key)
{
	struct json_object *found = ctf_json_member(o, key, json_type_string);
	return found ? json_object_get_string(found) : NULL;
}

bool ctf_json_integer(struct json_object *o, uint64_t *v)
{
	if (!json_object_is_type(o, json_type_int))
		return false;
	const int64_t i = json_object_get_int64(o);
	*v = i < 0 ? (uint64_t)i : json_object_get_uint64(o);
	return true;
}

bool ctf_json_number(struct json_object *o, const char *key, uint64_t default_value, uint64_t *v)
{
	struct json_object *found = NULL;
	*v = default_value;
	if (!json_object_object_get_ex(o, key, &found))
		return true;
	return ctf_json_integer(found, v) && json_object_get_int64(found) >= 0;
}

bool ctf_json_uuid(struct json_object *o, const char *key, unsigned char uuid[16])
{
	struct json_object *a = ctf_json_member(o, key, json_type_array);
	if (!a || json_object_array_length(a) != 16)
		return false;
	for (size_t i = 0; i < 16; i++) {
		uint64_t v;
		if (!ctf_json_integer(json_object_array_get_idx(a, i), &v) || v > 255)
			return false;
		uuid[i] = (unsigned char)v;
	}
	return true;
}
