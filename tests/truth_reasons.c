#include "truth_reasons.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
/* Longest time of a reason that one world contributes: without a limit, a single throttled world would decide. */
#define WORLD_NS INT64_C(500000000)

/* Minimum share that must be named, in percent. */
static struct {
	const char *name;
	int least;
	int64_t named_ns, ns;              /* in all worlds */
	int64_t world_named_ns, world_ns;  /* in the current one */
} reason[] = { { "quota", 25, 0, 0, 0, 0 }, { "fault", 90, 0, 0, 0, 0 } };

bool is_reason(const char *path)
{
	return strstr(path, "/CPUs/") && strstr(path, "/Out By");
}

void reasons_count(const char *found, const char *is, int64_t ns)
{
	for (size_t i = 0; i < COUNT(reason); i++) {
		reason[i].world_ns += strcmp(is, reason[i].name) ? 0 : ns;
		reason[i].world_named_ns += strcmp(is, reason[i].name) || strcmp(is, found) ? 0 : ns;
	}
}

void reasons_end_world(void)
{
	for (size_t i = 0; i < COUNT(reason); i++) {
		const int64_t ns = reason[i].world_ns, counted = ns < WORLD_NS ? ns : WORLD_NS;
		if (ns)
			reason[i].named_ns += (int64_t)((double)counted * (double)reason[i].world_named_ns / (double)ns);
		reason[i].ns += counted;
		reason[i].world_named_ns = reason[i].world_ns = 0;
	}
}

bool reasons_are_named(int64_t enough_ns)
{
	bool all = true;

	for (size_t i = 0; i < COUNT(reason); i++) {
		int64_t percent = reason[i].ns < enough_ns ? 100 : 100 * reason[i].named_ns / reason[i].ns;

		if (percent < reason[i].least || getenv("TRUTH_VERBOSE"))
			printf("%s: named for %" PRId64 " %% of %" PRId64 " ns\n", reason[i].name, percent, reason[i].ns);
		all = all && percent >= reason[i].least;
	}
	return all;
}
