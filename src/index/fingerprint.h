/* Fingerprint of trace files: paths, sizes, and a checksum of each metadata file, which contains the trace's UUID. */
#pragma once

#include <json-c/json.h>

#include "index/index.h"

/* Returns an array of {"path", "size", "sum"}, sorted by path, which the caller releases with json_object_put(). Returns
 * NULL, with *err set, on failure. */
struct json_object *fingerprint_make(const struct input *in, struct error *err);

/* Returns 0 if the fingerprints are equal, otherwise 1 with the first difference as text in `why`. */
int fingerprint_differs(struct json_object *then, struct json_object *now, char *why, size_t size);
