/* Streams of CTF traces that are gone while their index, which LTTng keeps beside them, remains. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "trace/internal.h"

#define INDEX_HEAD 16  /* bytes before the first packet */

static bool is_index(const char *name, size_t *len)
{
	static const char ending[] = ".idx";
	*len = strlen(name);
	*len -= *len > sizeof ending - 1 ? sizeof ending - 1 : 0;
	return strcmp(name + *len, ending) == 0;
}

int missing_streams(const char *folder, struct notes *notes, struct error *err)
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
