/* Long sweeps that prove one thing again and again: a part of them each day, all in `make check-long`.  What is whole in the
 * usual build may be cut where the same is asked once more: under sanitizers, which see the same code in a part of it, and of
 * another compiler (STEALSCOPE_BRIEF).  What has one expected answer never is.  e2e.py has the same for Python.
 * STEALSCOPE_SLICE=NUMBER repeats a day. */
#ifndef STEALSCOPE_TESTS_SLICE_H
#define STEALSCOPE_TESTS_SLICE_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef __has_feature  /* clang's way to ask */
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define SANITIZED true
#else
#define SANITIZED false
#endif

/* Is this a repetition of what another build has been asked? */
static inline bool slice_brief(void)
{
	return SANITIZED || getenv("STEALSCOPE_BRIEF") != NULL;
}

/* The day's number, said once: it repeats a failure. */
static inline unsigned slice_today(void)
{
	static unsigned today;
	if (!today) {
		const char *asked = getenv("STEALSCOPE_SLICE");
		today = asked ? (unsigned)atoi(asked) : (unsigned)(time(NULL) / 86400);
		printf("STEALSCOPE_SLICE=%u\n", today);
	}
	return today;
}

/* Is case i among today's, one of `of`? */
static inline bool slice_has(size_t i, unsigned of)
{
	return getenv("STEALSCOPE_LONG_TESTS") != NULL || i % of == slice_today() % of;
}

#define RECORDINGS_MOST 500

/* The folders of the recordings that may lie beside the sources, whose names the caller frees: all in the usual build, in a
 * brief one every `of`th. */
static inline size_t slice_recordings(char *path[RECORDINGS_MOST], unsigned of)
{
	struct dirent **entry = NULL;
	const char *src = getenv("srcdir") ? getenv("srcdir") : ".";
	char root[4096], dir[4608];
	size_t folders = 0, taken = 0;
	snprintf(root, sizeof root, "%s/../shared/traces", src);
	int entries = scandir(root, &entry, NULL, alphasort);
	for (int i = 0; i < entries; i++) {
		snprintf(dir, sizeof dir, "%s/%s/", root, entry[i]->d_name);
		DIR *d = entry[i]->d_name[0] == '.' ? NULL : opendir(dir);
		if (d && (!slice_brief() || slice_has(folders, of)) && taken < RECORDINGS_MOST)
			path[taken++] = strndup(dir, strlen(dir) - 1);
		folders += d != NULL;
		if (d)
			closedir(d);
		free(entry[i]);
	}
	free(entry);
	return taken;
}

#endif
