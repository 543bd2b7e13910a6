/* Namespaces of the threads in containers: the recorder lists them at the start, in the file `namespaces` with lines
 * "TID PROCESS PIDNS CGROUPNS" (inode numbers). They become events of a state dump, as LTTng records them. */
#include <errno.h>

#include "base/base.h"

#include "trace/pages/namespaces.h"

#define THREADS_MAX 1000000

/* Parses n numbers that are separated by single spaces and fill the line. */
static bool parse_numbers(const char *line, int64_t *value, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char *end;
		errno = 0;
		value[i] = strtoll(line, &end, 10);
		if (*line < '0' || *line > '9' || errno || *end != (i + 1 < n ? ' ' : '\0'))
			return false;
		line = end + 1;
	}
	return true;
}

static struct event dump_event(const struct pages *p, enum event_kind kind, int64_t tid)
{
	struct event ev = { .ts = p->begin, .kind = (uint16_t)kind, .cpu = (uint16_t)p->cpu[0].cpu, .tid = -1, .pid = -1 };
	for (size_t i = 0; i < EVENT_ARGS; i++)
		ev.arg[i] = EVENT_ABSENT;
	ev.arg[0] = tid;
	return ev;
}

/* Puts the thread, and its namespaces, which the model accepts for threads that it knows. */
static int put_thread(const struct pages *p, struct ring *r, const int64_t value[4], struct event_sink *out)
{
	const char *name = tep_data_comm_from_pid(r->tep, (int)value[0]);
	struct event thread = dump_event(p, EV_PROCESS, value[0]);
	struct event pid_ns = dump_event(p, EV_PROCESS_NS, value[0]);
	struct event cgroup_ns = dump_event(p, EV_PROCESS_CGROUP, value[0]);
	thread.process.pid = value[1];
	if (name && *name && *name != '<')
		thread.process.comm = string_cache_put(&r->cache, name, strlen(name));
	pid_ns.process_ns.ns = value[2];
	cgroup_ns.process_ns.ns = value[3];
	return event_sink_put(out, &thread) || event_sink_put(out, &pid_ns) || event_sink_put(out, &cgroup_ns) ? -1 : 0;
}

int pages_put_namespaces(const struct pages *p, struct ring *r, struct event_sink *out)
{
	char *text;
	size_t len, threads = 0;
	int rc = pages_text(p, "namespaces", &text, &len, out->err);
	char *rest = text;
	for (char *line; rc == 0 && rest && threads < THREADS_MAX && (line = strsep(&rest, "\n"));) {
		int64_t value[4];
		if (!parse_numbers(line, value, 4) || value[0] < 1 || value[0] > INT32_MAX || value[1] < 1 || value[1] > INT32_MAX)
			continue;
		threads++;
		rc = put_thread(p, r, value, out);
	}
	free(text);
	return rc;
}
