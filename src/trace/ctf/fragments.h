/* CTF 2 metadata as text: a sequence of json objects, each behind a record separator (specification of CTF 2, section 5;
 * RFC 7464).
 *
 * Bounds: a fragment of at most 8 MiB, objects within objects 96 deep; json-c takes some 20 bytes for one of text. */
#ifndef STEALSCOPE_TRACE_CTF_FRAGMENTS_H
#define STEALSCOPE_TRACE_CTF_FRAGMENTS_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool ctf_is_fragments(const char *text, size_t len)
{
	return len > 0 && *text == '\x1e';
}

/* The next one, json_object_put() frees it.  NULL: there is none, or *why it cannot be read. */
struct json_object *ctf_fragment_next(const char **at, const char *end, const char **why);

/* Of an object, NULL or absent when it has none such, or of another type. */
const char *ctf_json_text(struct json_object *o, const char *key);
struct json_object *ctf_json_of(struct json_object *o, const char *key, enum json_type type);
/* A whole number from 0 on; what is absent is `otherwise`.  False: it is something else. */
bool ctf_json_number(struct json_object *o, const char *key, uint64_t otherwise, uint64_t *v);
/* Any whole number, the bits of a negative one as they are. */
bool ctf_json_bits(struct json_object *o, uint64_t *v);
/* Sixteen numbers, each a byte. */
bool ctf_json_uuid(struct json_object *o, const char *key, unsigned char uuid[16]);

#endif
