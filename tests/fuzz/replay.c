#include "replay.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#define LONGEST (1u << 20)

int replay(const char *path)
{
	static uint8_t data[LONGEST];
	FILE *f = fopen(path, "rb");
	if (!f) {
		perror(path);
		return 1;
	}
	size_t n = fread(data, 1, sizeof data, f);
	fclose(f);
	LLVMFuzzerTestOneInput(data, n);
	return 0;
}

int replay_all(const char *pattern, int (*fn)(const char *path))
{
	const char *srcdir = getenv("srcdir");
	char path[4096];
	int failed = 0;
	glob_t g;
	snprintf(path, sizeof path, "%s/%s", srcdir ? srcdir : ".", pattern);
	if (glob(path, 0, NULL, &g))
		return 1;
	for (size_t i = 0; i < g.gl_pathc; i++)
		failed |= fn(g.gl_pathv[i]);
	globfree(&g);
	return failed;
}
