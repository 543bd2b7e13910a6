/* Finds data streams without data: LTTng's index has entries but there is no stream file, or the stream file is empty. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

#include "base/base.h"
#include "trace/internal.h"
#include "trace/ctf/stream_file.h"

#define INDEX_HEADER 16  /* size before the first entry, bytes */

static bool parse_index_name(const char *name, size_t *len)
{
	static const char ending[] = ".idx";
	*len = strlen(name);
	*len -= *len > sizeof ending - 1 ? sizeof ending - 1 : 0;
	return strcmp(name + *len, ending) == 0;
}

/* Returns true for an empty stream file without an index. note_streams_without_data() handles files with an index. */
static bool is_empty_stream(const char *dir, const char *name)
{
	char path[4096];
	struct stat st;
	if (!stream_file_has_stream_name(name))
		return false;
	snprintf(path, sizeof path, "%s/%s", dir, name);
	if (stat(path, &st) || !S_ISREG(st.st_mode) || st.st_size)
		return false;
	snprintf(path, sizeof path, "%s/index/%s.idx", dir, name);
	return stat(path, &st) != 0;
}

static int note_empty_streams(const char *dir, struct notes *notes, struct error *err)
{
	char first[NAME_MAX + 1] = "";
	size_t others = 0;
	DIR *d = opendir(dir);
	if (!d)
		return error_read(err, "make it readable for you", "%s", dir);
	errno = 0;
	for (struct dirent *e; (e = readdir(d)); errno = 0) {
		if (!is_empty_stream(dir, e->d_name))
			continue;
		others += *first != '\0';
		if (!*first || strcmp(e->d_name, first) < 0)
			snprintf(first, sizeof first, "%s", e->d_name);
	}
	const int saved_errno = errno;
	closedir(d);
	errno = saved_errno;
	if (saved_errno)
		return error_read(err, NULL, "%s", dir);
	if (*first)
		note_add(notes, STREAMS_EMPTY, NULL, dir, others + 1, first);
	return 0;
}

static int note_streams_without_data(const char *dir, struct notes *notes, struct error *err)
{
	char path[4096], index[4096];
	struct stat st;
	struct dirent *e;
	int n = snprintf(path, sizeof path, "%s/index", dir);
	DIR *d = n < (int)sizeof path ? opendir(path) : NULL;
	if (!d)
		return errno == ENOENT || errno == ENOTDIR ? 0 : error_read(err, "make it readable for you", "%s", path);
	for (errno = 0; (e = readdir(d)); errno = 0) {
		size_t len;
		if (!parse_index_name(e->d_name, &len))
			continue;
		n = snprintf(index, sizeof index, "%s/index/%s", dir, e->d_name);
		if (n >= (int)sizeof index || stat(index, &st) || st.st_size <= INDEX_HEADER)
			continue;
		snprintf(path, sizeof path, "%s/%.*s", dir, (int)len, e->d_name);
		const bool is_missing = stat(path, &st) != 0;
		const char *state = is_missing ? "missing" : S_ISREG(st.st_mode) ? "empty" : "not a regular file";
		if (is_missing || st.st_size == 0 || !S_ISREG(st.st_mode))
			note_add(notes, STREAM_DATA_MISSING, NULL, path, state);
	}
	const int saved_errno = errno;
	closedir(d);
	errno = saved_errno;
	return saved_errno ? error_read(err, NULL, "%s", dir) : 0;
}

int missing_streams(const char *dir, struct notes *notes, struct error *err)
{
	return note_streams_without_data(dir, notes, err) ? -1 : note_empty_streams(dir, notes, err);
}
