#include "truth_reasons.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define ENOUGH_NS INT64_C(500000000)  /* for a share to mean something */

/* So much must be named, in per cent. */
static struct { const char *name; int least; int64_t told_ns, ns; } reason[] = { { "quota", 25, 0, 0 }, { "fault", 90, 0, 0 } };

bool is_reason(const char *path)
{
	return strstr(path, "/CPUs/") && strstr(path, "/Out By");
}

void reasons_count(const char *found, const char *is, int64_t ns)
{
	for (size_t i = 0; i < COUNT(reason); i++) {
		reason[i].ns += strcmp(is, reason[i].name) ? 0 : ns;
		reason[i].told_ns += strcmp(is, reason[i].name) || strcmp(is, found) ? 0 : ns;
	}
}

bool reasons_told(void)
{
	bool all = true;

	for (size_t i = 0; i < COUNT(reason); i++) {
		int64_t told = reason[i].ns < ENOUGH_NS ? 100 : 100 * reason[i].told_ns / reason[i].ns;

		if (told < reason[i].least || getenv("TRUTH_VERBOSE"))
			printf("%s: named for %" PRId64 " %% of %" PRId64 " ns\n", reason[i].name, told, reason[i].ns);
		all = all && told >= reason[i].least;
	}
	return all;
}
