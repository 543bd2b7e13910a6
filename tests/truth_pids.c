#include "truth_pids.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void note(struct map *thread, int64_t tid, int64_t pid)
{
	if (tid > 0 && pid > 0)
		map_put(thread, (uint64_t)tid, NULL);
}

static void note_event(struct map *thread, const struct event *ev)
{
	note(thread, ev->tid, ev->pid);
	if (ev->kind == EV_FORK)
		note(thread, ev->fork.child_tid, ev->fork.child_pid);
	if (ev->kind == EV_PROCESS)
		note(thread, ev->process.tid, ev->process.pid);
}

int pids_add(struct truth_pids *t, const struct trace *trace, struct error *err)
{
	const struct trace_info *info = trace_info(trace);
	struct trace_cursor *c = trace_cursor_open(trace, ALL_KINDS, -1, err);
	struct map *thread = &t->thread[t->machines];
	struct event ev;
	int status = c ? 0 : -1;

	snprintf(t->machine[t->machines++], sizeof *t->machine, "%s", strstr(info->dir, "/host") ? "host" : info->machine);
	while (c && (status = trace_cursor_next(c, &ev, err)) == 1)
		note_event(thread, &ev);
	trace_cursor_close(c);
	return status;
}

bool pids_told(const struct truth_pids *t, const char *path)
{
	const char *threads = strstr(path, "/Threads/");
	char machine[32] = "host";
	uint64_t tid;

	sscanf(path, "/Virtual Machines/%31[^/]", machine);
	for (unsigned i = 0; threads && sscanf(threads, "/Threads/%" SCNu64, &tid) == 1 && i < t->machines; i++)
		if (!strcmp(t->machine[i], machine))
			return map_find(&t->thread[i], tid) != NULL;
	return false;
}

void pids_release(struct truth_pids *t)
{
	for (unsigned i = 0; i < t->machines; i++)
		map_release(&t->thread[i]);
}
