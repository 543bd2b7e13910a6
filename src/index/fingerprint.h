/* Which trace files a history was made of: paths, sizes, and a checksum of each metadata file (it holds the uuid). */
#ifndef STEALSCOPE_INDEX_FINGERPRINT_H
#define STEALSCOPE_INDEX_FINGERPRINT_H

#include <json-c/json.h>

#include "index/index.h"

/* An array of {"path", "size", "sum"}, in order of path; json_object_put() it.  NULL and *err on failure. */
struct json_object *fingerprint_take(const struct input *in, struct error *err);

/* 0 when equal, else 1 and what changed in `why`. */
int fingerprint_differs(struct json_object *then, struct json_object *now, char *why, size_t size);

#endif
