/* Slices of long sweeps that check one property many times: `make check` always runs the same part, `make check-daily`
 * another one each day (STEALSCOPE_SLICE=NUMBER), `make check-long` all of it.
 *
 * Some sweeps are cut only where another build repeats them, or cut to fewer cases there: under sanitizers, which see the
 * same code in a part of the sweep, and with another compiler (STEALSCOPE_BRIEF). Cases with one expected answer are never
 * cut. e2e.py contains the same for Python. */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef __has_feature  /* how to ask clang */
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define SANITIZED true
#else
#define SANITIZED false
#endif

/* Returns true if this build only repeats the checks of another one. */
static inline bool slice_brief(void)
{
	return SANITIZED || getenv("STEALSCOPE_BRIEF") != NULL;
}

#define SLICE_OF_GATE 3 /* e2e.py has the same */

/* Returns the number of the slice, and prints it once: it repeats a failure. */
static inline unsigned slice_number(void)
{
	static unsigned number;
	if (!number) {
		const char *requested = getenv("STEALSCOPE_SLICE");
		number = requested ? (unsigned)atoi(requested) : SLICE_OF_GATE;
		printf("STEALSCOPE_SLICE=%u\n", number);
	}
	return number;
}

/* Returns true if case i belongs to the slice; there are `of` slices. */
static inline bool slice_has(size_t i, unsigned of)
{
	return getenv("STEALSCOPE_LONG_TESTS") != NULL || i % of == slice_number() % of;
}

#define MAX_RECORDINGS 500

/* Finds recordings next to the source tree: every `of`th one, four times fewer in a brief build. Returns their number; the
 * caller frees the paths. */
static inline size_t slice_recordings(char *path[MAX_RECORDINGS], unsigned of)
{
	struct dirent **entry = NULL;
	const char *src = getenv("srcdir") ? getenv("srcdir") : ".";
	char root[4096], dir[4608];
	size_t dirs = 0, found = 0;
	snprintf(root, sizeof root, "%s/../shared/traces", src);
	int entries = scandir(root, &entry, NULL, alphasort);
	for (int i = 0; i < entries; i++) {
		snprintf(dir, sizeof dir, "%s/%s/", root, entry[i]->d_name);
		DIR *d = entry[i]->d_name[0] == '.' ? NULL : opendir(dir);
		if (d && slice_has(dirs, slice_brief() ? 4 * of : of) && found < MAX_RECORDINGS)
			path[found++] = strndup(dir, strlen(dir) - 1);
		dirs += d != NULL;
		if (d)
			closedir(d);
		free(entry[i]);
	}
	free(entry);
	return found;
}
