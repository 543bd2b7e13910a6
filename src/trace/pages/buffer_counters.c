#include "trace/pages/buffer_counters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `what` begins a line. */
static uint64_t counted(const char *text, const char *what)
{
	const size_t len = strlen(what);
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, what, len) == 0)
			return strtoull(line + len, NULL, 10);
	}
	return 0;
}

/* "now ts: 123.456789".  (Cycles are told without a point.) */
static int64_t time_told(const char *text)
{
	const char *at = strstr(text, "\nnow ts: ");
	unsigned long long seconds, us;
	char point;
	if (!at || sscanf(at, " now ts: %9llu%c%6llu", &seconds, &point, &us) != 3 || point != '.')
		return INT64_MAX;
	return ((int64_t)seconds * 1000000 + (int64_t)us + 1) * 1000;
}

struct cpu_stat cpu_stat_parse(const char *text)
{
	const uint64_t held = counted(text, "entries: "), taken = counted(text, "read events: ");
	return (struct cpu_stat){
		/* trace-cmd's recorders empty the buffer while it reads this: what they take between the two is in both. */
		.events = held > taken ? held : taken,
		.lost = counted(text, "overrun: ") + counted(text, "commit overrun: ") + counted(text, "dropped events: "),
		.now = time_told(text),
	};
}
