#include "index/fingerprint.h"

#include <fts.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json_field.h"
#include "base/file_open.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/text.h"
#include "index/session.h"

/* FNV-1a over the file, in *sum; metadata files are small. */
static int checksum(const char *path, int64_t *sum, struct error *err)
{
	FILE *f = file_open(path);
	if (!f)
		return error_read(err, "make it readable for you", "%s", path);
	uint64_t h = HASH_BEGIN;
	unsigned char buf[4096];
	size_t n;
	while ((n = fread(buf, 1, sizeof buf, f)) > 0)
		h = hash_bytes(h, buf, n);
	const int status = ferror(f) ? error_system(err, NULL, "%s", path) : 0;
	fclose(f);
	*sum = (int64_t)(h >> 1);
	return status;
}

static bool is_ours(const char *name)
{
	return strstr(name, ".steal") != NULL || session_is_one(name);
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int take_folder(struct json_object *list, const char *dir, struct error *err)
{
	char *copy = mem_dup(dir);
	char *roots[] = { copy, NULL };
	FTS *fts = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name);
	if (!fts) {
		free(copy);
		return error_system(err, NULL, "%s", dir);
	}
	FTSENT *e;
	int status = 0;
	while (!status && (e = fts_read(fts))) {
		int64_t sum = 0;
		if (e->fts_info != FTS_F || is_ours(e->fts_name))
			continue;
		char path[4096];
		struct json_object *file = json_object_new_object();
		json_object_object_add(file, "path", json_object_new_string(text_escape(path, sizeof path, e->fts_path)));
		json_object_object_add(file, "size", json_object_new_int64(e->fts_statp->st_size));
		if (strcmp(e->fts_name, "metadata") == 0 && (status = checksum(e->fts_accpath, &sum, err)) == 0)
			json_object_object_add(file, "sum", json_object_new_int64(sum));
		json_object_array_add(list, file);
	}
	fts_close(fts);
	free(copy);
	return status;
}

struct json_object *fingerprint_take(const struct input *in, struct error *err)
{
	struct json_object *list = json_object_new_array();
	for (size_t i = 0; i < in->specs; i++) {
		if (!trace_is_live(in->spec[i].dir) && take_folder(list, in->spec[i].dir, err)) {
			json_object_put(list);
			return NULL;
		}
	}
	return list;
}

/* Paths as the user names them change with the working directory: only what lies in the folder counts. */
static const char *tail(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

int fingerprint_differs(struct json_object *then, struct json_object *now, char *why, size_t size)
{
	size_t n = json_object_array_length(now);
	if (json_object_array_length(then) != n) {
		snprintf(why, size, "%zu trace files where there were %zu", n, json_object_array_length(then));
		return 1;
	}
	for (size_t i = 0; i < n; i++) {
		struct json_object *a = json_object_array_get_idx(then, i), *b = json_object_array_get_idx(now, i);
		const char *path = field_text(b, "path");
		const char *what = strcmp(tail(field_text(a, "path")), tail(path)) != 0 ? "is new"
			: field_int(a, "size", -1) != field_int(b, "size", -1) ? "changed its size"
			: field_int(a, "sum", -1) != field_int(b, "sum", -1) ? "changed" : NULL;
		if (what) {
			snprintf(why, size, "%s %s", path, what);
			return 1;
		}
	}
	return 0;
}
