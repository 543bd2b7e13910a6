#include "record/probe_definitions.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "record/proc.h"

#define PREFIX "stealscope_"

char *probe_group(const char *suffix)
{
	return mem_printf(PREFIX "%d_%llu%s", (int)getpid(), (unsigned long long)proc_start_time("", (int32_t)getpid()),
	                  suffix);
}

int tracefs_append_line(const char *tracefs, const char *file, const char *line)
{
	char *path = mem_printf("%s/%s", tracefs, file), *text = mem_printf("%s\n", line);
	const int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));
	const int why = errno;
	if (fd >= 0)
		close(fd);
	free(path);
	free(text);
	errno = why;
	return n < 0 ? -1 : 0;
}

static const char *const files[] = { "dynamic_events", "kprobe_events", "uprobe_events" };
#define FILES (sizeof files / sizeof *files)

/* Returns the last message of tracefs's error_log; NULL: none. */
static char *last_error(const char *tracefs)
{
	char *log = proc_text("", NULL, "%s/error_log", tracefs), *last = NULL;
	for (char *at = log; at && (at = strstr(at, " error: ")); at++) {
		free(last);
		last = mem_printf("%.*s", (int)strcspn(at + 8, "\n"), at + 8);
	}
	free(log);
	return last;
}

char *probe_define(const char *tracefs, const char *kind, const char *name, const char *place)
{
	char *line = mem_printf("%s:%s %s", kind, name, place), *why = NULL;
	const bool is_user = strncmp(place, "/", 1) == 0;  /* a file, not a function of the kernel */
	int rc = -1;
	for (size_t i = 0; i < FILES && rc; i++)
		if (strcmp(files[i], is_user ? "kprobe_events" : "uprobe_events") != 0)
			rc = tracefs_append_line(tracefs, files[i], line);
	if (rc) {
		const int number = errno;
		char *log = number == EINVAL ? last_error(tracefs) : NULL;
		const char *text = number == EPERM ? "not permitted (kernel lockdown)"
			: number != ENOENT ? strerror(number)
			: is_user ? "the kernel has no probes of user space (CONFIG_UPROBE_EVENTS)"
			: "the kernel has no probes (CONFIG_KPROBE_EVENTS)";
		why = mem_dup(log ? log : text);
		free(log);
	} else if (!proc_exists("", "%s/events/%s/format", tracefs, name)) {
		why = mem_dup("the kernel accepted the probe but created no event");
		probe_undefine(tracefs, name);
	}
	free(line);
	return why;
}

bool probe_undefine(const char *tracefs, const char *name)
{
	char *line = mem_printf("-:%s", name);
	bool removed = false;
	for (size_t i = 0; i < FILES && !removed; i++)
		removed = tracefs_append_line(tracefs, files[i], line) == 0;
	free(line);
	return removed;
}

/* Returns true if the process in a group's name has ended. */
static bool is_stale(const char *root, const char *group)
{
	unsigned pid;
	unsigned long long begun;
	return sscanf(group, PREFIX "%9u_%llu", &pid, &begun) == 2 && proc_start_time(root, (int32_t)pid) != begun;
}

size_t probes_clean(const char *root, const char *tracefs, size_t *failed)
{
	size_t groups, events, removed = 0;
	char **group = proc_names("", PREFIX, &groups, "%s/events", tracefs);
	*failed = 0;
	for (size_t i = 0; i < groups; i++) {
		if (!is_stale(root, group[i]))
			continue;
		char **event = proc_names("", "s", &events, "%s/events/%s", tracefs, group[i]);  /* steal_..., srbn_... */
		for (size_t k = 0; k < events; k++) {
			char *name = mem_printf("%s/%s", group[i], event[k]);
			*(probe_undefine(tracefs, name) ? &removed : failed) += 1;
			free(name);
		}
		proc_names_free(event, events);
	}
	proc_names_free(group, groups);
	return removed;
}
