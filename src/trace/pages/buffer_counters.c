#include "trace/pages/buffer_counters.h"

#include "base/base.h"

/* Returns the number after `key` at a line's start; 0: no such line. */
static uint64_t find_counter(const char *text, const char *key)
{
	const size_t len = strlen(key);
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, len) == 0)
			return strtoull(line + len, NULL, 10);
	}
	return 0;
}

/* Parses "now ts: 123.456789". Returns ns; INT64_MAX for a cycle count, which has no decimal point. */
static int64_t parse_now(const char *text)
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
	const uint64_t unread = find_counter(text, "entries: "), read = find_counter(text, "read events: ");
	return (struct cpu_stat){
		/* The recorder reads the buffer while the kernel writes this text, so an event may be in both counters. The
		 * larger counter is a lower bound of the recorded events. */
		.events = unread > read ? unread : read,
		.lost = find_counter(text, "overrun: ") + find_counter(text, "commit overrun: ") +
			find_counter(text, "dropped events: "),
		.now = parse_now(text),
	};
}
