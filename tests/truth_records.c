#include "truth_records.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
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

int records_add(struct truth_records *t, const struct trace *trace, struct error *err)
{
	const struct trace_info *info = trace_info(trace);
	struct trace_cursor *c = trace_cursor_open(trace, ALL_KINDS, -1, err);
	struct map *thread = &t->thread[t->machines], *cpu = &t->cpu[t->machines];
	struct event ev;
	int status = c ? 0 : -1;

	snprintf(t->machine[t->machines++], sizeof *t->machine, "%s", strstr(info->dir, "/host") ? "host" : info->machine);
	while (c && (status = trace_cursor_next(c, &ev, err)) == 1) {
		note_event(thread, &ev);
		if (ev.kind != EV_LOST)
			map_put(cpu, ev.cpu, NULL);
	}
	trace_cursor_close(c);
	return status;
}

static bool is_in(const struct truth_records *t, const struct map *of, const char *machine, uint64_t number)
{
	for (unsigned i = 0; i < t->machines; i++)
		if (!strcmp(t->machine[i], machine))
			return map_find(&of[i], number) != NULL;
	return false;
}

bool records_have_pid(const struct truth_records *t, const char *path)
{
	const char *threads = strstr(path, "/Threads/");
	char machine[32] = "host";
	uint64_t tid;

	sscanf(path, "/Virtual Machines/%31[^/]", machine);
	return threads && sscanf(threads, "/Threads/%" SCNu64, &tid) == 1 && is_in(t, t->thread, machine, tid);
}

/* Returns the number of the attribute's CPU, or of its thread's CPU; -1: unknown. */
static int cpu_of(const struct truth_file *truth, const char *path, int64_t when)
{
	const char *cpu = strstr(path, "/CPUs/CPU");
	char own[300];

	if (cpu)
		return atoi(cpu + strlen("/CPUs/CPU"));
	snprintf(own, sizeof own, "%.*s/CPU", (int)(strrchr(path, '/') - path), path);
	const char *on = truth_value(truth, own, when);
	return on ? atoi(on) : -1;
}

bool records_ambiguous(const struct truth_records *t, const struct truth_file *truth, const char *path, int64_t when)
{
	const char *tail = strrchr(path, '/');
	const int cpu = cpu_of(truth, path, when);
	unsigned could = 0;
	char vm[32], threads[64];

	if (sscanf(path, "/Virtual Machines/%31[^/]", vm) != 1 || cpu < 0 || is_in(t, t->cpu, vm, (uint64_t)cpu) ||
	    (strcmp(tail, "/Status") && strcmp(tail, "/Current Thread")))
		return false;
	snprintf(threads, sizeof threads, "/Virtual Machines/%s/Threads/", vm);
	for (size_t i = 0; i < truth->attrs; i++) {
		const char *other = strtab_get(&truth->strings, truth->attr[i].path);

		if (strncmp(other, threads, strlen(threads)) || strcmp(strrchr(other, '/'), "/Status"))
			continue;
		const char *is = truth_value(truth, other, when);
		could += is && strcmp(is, "BLOCKED") && cpu_of(truth, other, when) == cpu;
	}
	return could > 1;
}

void records_release(struct truth_records *t)
{
	for (unsigned i = 0; i < t->machines; i++) {
		map_release(&t->thread[i]);
		map_release(&t->cpu[i]);
	}
}
