/* Access to the text of CTF 2 metadata: a sequence of JSON objects, each after a record separator (CTF 2 specification,
 * section 5; RFC 7464).
 *
 * Limits: 8 MiB per fragment, 96 nested objects. json-c needs about 20 bytes per byte of text. */
#pragma once

#include <json-c/json.h>

#include "base/base.h"

static inline bool ctf_is_json_metadata(const char *text, size_t len)
{
	return len > 0 && *text == '\x1e';
}

/* Returns the next fragment (release it with json_object_put()). Returns NULL at the end, or with *reason set if the
 * fragment is not valid. */
struct json_object *ctf_fragment_next(const char **at, const char *end, const char **reason);

/* Return a member of an object; NULL if it is missing or has another type. */
const char *ctf_json_string(struct json_object *o, const char *key);
struct json_object *ctf_json_member(struct json_object *o, const char *key, enum json_type type);
/* Reads a number >= 0 into *v; default_value if the member is missing. Returns false if the member is anything else. */
bool ctf_json_number(struct json_object *o, const char *key, uint64_t default_value, uint64_t *v);
/* Reads an integer; a negative one is stored as two's complement. Returns false if *o is not an integer. */
bool ctf_json_integer(struct json_object *o, uint64_t *v);
/* Reads an array of 16 bytes. Returns false if the member is anything else. */
bool ctf_json_uuid(struct json_object *o, const char *key, unsigned char uuid[16]);
