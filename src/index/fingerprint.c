/* Fingerprint of trace files. */
#include "index/fingerprint.h"

#include <fts.h>
#include <sys/stat.h>

#include "base/base.h"
#include "base/json_field.h"
#include "base/file_open.h"
#include "base/hash.h"
#include "index/session.h"

/* Computes a checksum (FNV-1a) of a file; only used for metadata files, which are small. Returns 0 or -1. */
static int file_checksum(const char *path, int64_t *sum, struct error *err)
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

static bool is_own_output(const char *name)
{
	return strstr(name, ".steal") != NULL || is_session_file_name(name);
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int add_dir(struct json_object *list, const char *dir, struct error *err)
{
	char *copy = mem_printf("%.*s", (int)trace_path_length(dir), dir);
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
		if (e->fts_info != FTS_F || is_own_output(e->fts_name))
			continue;
		char path[4096];
		struct json_object *file = json_new_object();
		json_object_object_add(file, "path", json_object_new_string(text_escape(path, sizeof path, e->fts_path)));
		json_object_object_add(file, "size", json_object_new_int64(e->fts_statp->st_size));
		if (strcmp(e->fts_name, "metadata") == 0 && (status = file_checksum(e->fts_accpath, &sum, err)) == 0)
			json_object_object_add(file, "sum", json_object_new_int64(sum));
		json_object_array_add(list, file);
	}
	fts_close(fts);
	free(copy);
	return status;
}

struct json_object *fingerprint_make(const struct input *in, struct error *err)
{
	struct json_object *list = json_new_array();
	for (size_t i = 0; i < in->specs; i++) {
		if (!trace_is_live(in->spec[i].dir) && add_dir(list, in->spec[i].dir, err)) {
			json_object_put(list);
			return NULL;
		}
	}
	return list;
}

/* Returns the file name in a path. Only file names are compared, because paths given by the user depend on the working
 * directory. */
static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

int fingerprint_differs(struct json_object *then, struct json_object *now, char *why, size_t size)
{
	size_t n = json_object_array_length(now);
	if (json_object_array_length(then) != n) {
		snprintf(why, size, "%zu trace files instead of %zu", n, json_object_array_length(then));
		return 1;
	}
	for (size_t i = 0; i < n; i++) {
		struct json_object *a = json_object_array_get_idx(then, i), *b = json_object_array_get_idx(now, i);
		const char *path = json_member_text(b, "path");
		const char *change = strcmp(file_name(json_member_text(a, "path")), file_name(path)) != 0 ? "is new"
			: json_member_int(a, "size", -1) != json_member_int(b, "size", -1) ? "changed its size"
			: json_member_int(a, "sum", -1) != json_member_int(b, "sum", -1) ? "changed" : NULL;
		if (change) {
			snprintf(why, size, "%s %s", path, change);
			return 1;
		}
	}
	return 0;
}
