/* Streams of CTF traces that are gone: their index, which LTTng keeps beside them, remains, or an empty file. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "trace/internal.h"
#include "trace/ctf/packets.h"

#define INDEX_HEAD 16  /* bytes before the first packet */

static bool is_index(const char *name, size_t *len)
{
	static const char ending[] = ".idx";
	*len = strlen(name);
	*len -= *len > sizeof ending - 1 ? sizeof ending - 1 : 0;
	return strcmp(name + *len, ending) == 0;
}

/* With an index, that says whether there was anything in it. */
static bool is_empty_stream(const char *folder, const char *name)
{
	char path[4096];
	struct stat st;
	if (!stream_file_name(name))
		return false;
	snprintf(path, sizeof path, "%s/%s", folder, name);
	if (stat(path, &st) || !S_ISREG(st.st_mode) || st.st_size)
		return false;
	snprintf(path, sizeof path, "%s/index/%s.idx", folder, name);
	return stat(path, &st) != 0;
}

static int empty_streams(const char *folder, struct notes *notes, struct error *err)
{
	char first[NAME_MAX + 1] = "";
	size_t more = 0;
	DIR *d = opendir(folder);
	if (!d)
		return error_read(err, "make it readable for you", "%s", folder);
	errno = 0;
	for (struct dirent *e; (e = readdir(d)); errno = 0) {
		if (!is_empty_stream(folder, e->d_name))
			continue;
		more += *first != '\0';
		if (!*first || strcmp(e->d_name, first) < 0)
			snprintf(first, sizeof first, "%s", e->d_name);
	}
	const int why = errno;
	closedir(d);
	errno = why;
	if (why)
		return error_read(err, NULL, "%s", folder);
	if (*first && more)
		notes_add(notes, NOTE_DAMAGE, NULL, "%s/%s: the stream is empty, and so are %zu more", folder, first, more);
	else if (*first)
		notes_add(notes, NOTE_DAMAGE, NULL, "%s/%s: the stream is empty", folder, first);
	return 0;
}

static int without_streams(const char *folder, struct notes *notes, struct error *err)
{
	char path[4096], index[4096];
	struct stat st;
	struct dirent *e;
	int n = snprintf(path, sizeof path, "%s/index", folder);
	DIR *d = n < (int)sizeof path ? opendir(path) : NULL;
	if (!d)
		return errno == ENOENT || errno == ENOTDIR ? 0 : error_read(err, "make it readable for you", "%s", path);
	for (errno = 0; (e = readdir(d)); errno = 0) {
		size_t len;
		if (!is_index(e->d_name, &len))
			continue;
		n = snprintf(index, sizeof index, "%s/index/%s", folder, e->d_name);
		if (n >= (int)sizeof index || stat(index, &st) || st.st_size <= INDEX_HEAD)
			continue;
		snprintf(path, sizeof path, "%s/%.*s", folder, (int)len, e->d_name);
		const bool gone = stat(path, &st) != 0;
		const char *state = gone ? "missing" : S_ISREG(st.st_mode) ? "empty" : "no regular file";
		if (gone || st.st_size == 0 || !S_ISREG(st.st_mode))
			notes_add(notes, NOTE_DAMAGE, NULL, "%s: the stream is %s, though its index remains: what it held is not there",
			          path, state);
	}
	const int why = errno;
	closedir(d);
	errno = why;
	return why ? error_read(err, NULL, "%s", folder) : 0;
}

int missing_streams(const char *folder, struct notes *notes, struct error *err)
{
	return without_streams(folder, notes, err) ? -1 : empty_streams(folder, notes, err);
}
