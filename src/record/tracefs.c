#include "record/tracer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tracefs.h>
#include <unistd.h>

#include "base/mem.h"
#include "record/proc.h"

#define PREFIX "stealscope-"
#define MOST_CPUS 4096
#define MEND_TRACEFS "mount -t tracefs tracefs /sys/kernel/tracing, as root; the kernel must have it"

struct tracer {
	struct tracefs_instance *instance;
	char *folder;
	unsigned cpus;
	uint64_t kilobytes;
	struct drain {
		struct tracefs_cpu *from;
		int to;
	} *drain;  /* [cpus], or NULL */
};

const char *tracer_place(const char *root, bool mount, struct error *err)
{
	const char *place = NULL;
	if (*root) {
		char *own = mem_printf("%s/sys/kernel/tracing", root);
		const bool is_there = proc_exists("", "%s/trace_clock", own) && tracefs_set_tracing_dir(own) == 0;
		free(own);
		place = is_there ? tracefs_tracing_dir() : NULL;
	} else if (tracefs_tracing_dir_is_mounted(mount, &place) < 1) {
		place = NULL;
	}
	if (!place)
		error_set(err, STATUS_SYSTEM, MEND_TRACEFS, "tracefs: is not mounted");
	else if (access(place, R_OK | W_OK | X_OK) != 0 && (place = NULL) == NULL)
		error_system(err, "as root, or with CAP_DAC_OVERRIDE", "%s", "tracefs");
	return place;
}

/* ---- the instance */

static bool is_alive(const char *root, const char *name)
{
	const char *pid = name + strlen(PREFIX), *dash = strchr(pid, '-');
	uint64_t begun, number;
	char *text = dash ? mem_printf("%.*s", (int)(dash - pid), pid) : NULL;
	const bool alive = text && proc_is_number(text, INT32_MAX, &number) && proc_is_number(dash + 1, UINT64_MAX, &begun) &&
	                   proc_begun(root, (int32_t)number) == begun;
	free(text);
	return alive;
}

/* Is it one of a host's recorder?  (Those of guests are stealscope-guest-PID-BEGUN.) */
static bool is_ours(const char *name)
{
	return strncmp(name, PREFIX, strlen(PREFIX)) == 0 && name[strlen(PREFIX)] >= '0' && name[strlen(PREFIX)] <= '9';
}

static bool destroy(struct tracefs_instance *instance)
{
	tracefs_trace_off(instance);
	return tracefs_instance_destroy(instance) == 0;
}

size_t tracer_clean(const char *root, size_t *left)
{
	size_t n, erased = 0;
	const char *place = tracer_place(root, false, NULL);
	*left = 0;
	if (!place)
		return 0;
	char **name = proc_names("", PREFIX, &n, "%s/instances", place);
	for (size_t i = 0; i < n; i++) {
		struct tracefs_instance *old = is_ours(name[i]) && !is_alive(root, name[i]) ? tracefs_instance_alloc(NULL, name[i])
		                                                                          : NULL;
		if (!old)
			continue;
		*(destroy(old) ? &erased : left) += 1;
		tracefs_instance_free(old);
	}
	proc_names_free(name, n);
	return erased;
}

static unsigned count_cpus(const char *folder)
{
	size_t n;
	uint64_t number, most = 0;
	char **name = proc_names("", "cpu", &n, "%s/per_cpu", folder);
	for (size_t i = 0; i < n; i++)
		if (proc_is_number(name[i] + 3, MOST_CPUS - 1, &number) && number + 1 > most)
			most = number + 1;
	proc_names_free(name, n);
	return (unsigned)most;
}

struct tracer *tracer_new(const char *root, struct error *err)
{
	if (!tracer_place(root, true, err))
		return NULL;
	char *name = mem_printf(PREFIX "%d-%llu", (int)getpid(), (unsigned long long)proc_begun("", (int32_t)getpid()));
	struct tracer *t = mem_new(1, sizeof *t);
	t->instance = tracefs_instance_create(name);
	if (!t->instance || !tracefs_instance_is_new(t->instance)) {
		error_system(err, "a kernel with CONFIG_TRACING; not in lockdown", "%s: no instance of tracefs can be made", name);
		tracefs_instance_free(t->instance);
		free(t);
		t = NULL;
	} else {
		t->folder = tracefs_instance_get_dir(t->instance);
		t->cpus = count_cpus(t->folder);
		tracefs_trace_off(t->instance);
	}
	free(name);
	return t;
}

void tracer_free(struct tracer *t)
{
	if (!t)
		return;
	tracer_drain_end(t);
	destroy(t->instance);
	tracefs_instance_free(t->instance);
	tracefs_put_tracing_file(t->folder);
	free(t);
}

const char *tracer_folder(const struct tracer *t)
{
	return t->folder;
}

unsigned tracer_cpus(const struct tracer *t)
{
	return t->cpus;
}

static int put(struct tracer *t, const char *file, const char *text, struct error *err)
{
	if (tracefs_instance_file_write(t->instance, file, text) >= 0)
		return 0;
	return error_system(err, NULL, "tracefs: %s: %s", file, text);
}

int tracer_set_up(struct tracer *t, const char *clock, char *const *event, size_t events, struct error *err)
{
	if (put(t, "trace_clock", clock, err))
		return -1;
	/* Only where new events take the place of old ones does a page say that some are lost before it. */
	put(t, "options/overwrite", "1", NULL);
	put(t, "options/record-tgid", "1", NULL);
	for (size_t i = 0; i < events; i++) {
		char *file = mem_printf("events/%s/enable", event[i]);
		const int rc = put(t, file, "1", err);
		free(file);
		if (rc)
			return -1;
	}
	return 0;
}

int tracer_resize(struct tracer *t, uint64_t kilobytes, struct error *err)
{
	char text[24];
	snprintf(text, sizeof text, "%llu", (unsigned long long)kilobytes);
	t->kilobytes = kilobytes;
	return put(t, "buffer_size_kb", text, err);
}

int tracer_switch(struct tracer *t, bool on, struct error *err)
{
	return put(t, "tracing_on", on ? "1" : "0", err);
}

int tracer_clear(struct tracer *t, struct error *err)
{
	return tracefs_instance_file_clear(t->instance, "trace") >= 0 ? 0 : error_system(err, NULL, "tracefs: trace");
}

/* ---- buffers */

struct cpu_stats tracer_stats(const struct tracer *t, unsigned cpu)
{
	char *text = proc_text("", NULL, "%s/per_cpu/cpu%u/stats", t->folder, cpu);
	const struct cpu_stats stats = text ? cpu_stats_parse(text) : (struct cpu_stats){ 0 };
	free(text);
	return stats;
}

int tracer_drain_into(struct tracer *t, int folder, struct error *err)
{
	t->drain = mem_new(t->cpus, sizeof *t->drain);
	for (unsigned i = 0; i < t->cpus; i++)
		t->drain[i].to = -1;
	for (unsigned i = 0; i < t->cpus; i++) {
		char name[32];
		snprintf(name, sizeof name, "pages/cpu%u", i);
		if (!proc_exists("", "%s/per_cpu/cpu%u", t->folder, i))
			continue;
		t->drain[i].from = tracefs_cpu_open(t->instance, (int)i, true);
		if (!t->drain[i].from)
			return error_system(err, NULL, "tracefs: per_cpu/cpu%u/trace_pipe_raw", i);
		t->drain[i].to = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (t->drain[i].to < 0)
			return error_system(err, NULL, "%s", name);
	}
	return 0;
}

/* Calls take() until nothing comes. */
static int take_all(struct drain *d, int (*take)(struct drain *d), uint64_t *bytes, unsigned cpu, struct error *err)
{
	int n;
	do {
		errno = 0;
		n = take(d);
		if (n > 0)
			*bytes += (unsigned)n;
	} while (n > 0);
	if (n < 0 && errno && errno != EAGAIN && errno != EINTR)
		return error_system(err, NULL, "pages/cpu%u", cpu);
	return 0;
}

static int take_pages(struct drain *d)
{
	return tracefs_cpu_write(d->from, d->to, true);
}

static int take_rest(struct drain *d)
{
	return tracefs_cpu_flush_write(d->from, d->to);
}

int tracer_drain(struct tracer *t, bool all, uint64_t *bytes, struct error *err)
{
	for (unsigned i = 0; t->drain && i < t->cpus; i++) {
		struct drain *d = &t->drain[i];
		if (!d->from || (!all && tracer_stats(t, i).bytes / 512 <= t->kilobytes))
			continue;
		if (take_all(d, take_pages, bytes, i, err) || (all && take_all(d, take_rest, bytes, i, err)))
			return -1;
	}
	return 0;
}

void tracer_drain_end(struct tracer *t)
{
	for (unsigned i = 0; t->drain && i < t->cpus; i++) {
		if (t->drain[i].from)
			tracefs_cpu_close(t->drain[i].from);
		if (t->drain[i].to >= 0)
			close(t->drain[i].to);
	}
	free(t->drain);
	t->drain = NULL;
}
