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
#define MAX_CPUS 4096
#define REMEDY_TRACEFS "as root: mount -t tracefs tracefs /sys/kernel/tracing; this requires a kernel with CONFIG_FTRACE"

struct tracer {
	struct tracefs_instance *instance;
	char *dir;
	unsigned cpus;
	uint64_t kilobytes;  /* size of each CPU's buffer, KiB */
	struct drain {
		struct tracefs_cpu *from;
		int to;  /* the file's descriptor; -1: none */
	} *drain;  /* [cpus]; NULL: no output files are open */
};

const char *tracer_find_tracefs(const char *root, bool mount, struct error *err)
{
	const char *tracefs = NULL;
	if (*root) {
		char *path = mem_printf("%s/sys/kernel/tracing", root);
		const bool is_there = proc_exists("", "%s/trace_clock", path) && tracefs_set_tracing_dir(path) == 0;
		free(path);
		tracefs = is_there ? tracefs_tracing_dir() : NULL;
	} else if (tracefs_tracing_dir_is_mounted(mount, &tracefs) < 1) {
		tracefs = NULL;
	}
	if (!tracefs)
		error_set(err, STATUS_SYSTEM, REMEDY_TRACEFS, "tracefs is not mounted");
	else if (access(tracefs, R_OK | W_OK | X_OK) != 0 && (tracefs = NULL) == NULL)
		error_system(err, "run as root, or with CAP_DAC_OVERRIDE", "cannot access tracefs");
	return tracefs;
}

/* ---- the instance */

/* Returns true if the recorder that created an instance lives. */
static bool owner_is_alive(const char *root, const char *name)
{
	const char *pid = name + strlen(PREFIX), *dash = strchr(pid, '-');
	uint64_t begun, number;
	char *text = dash ? mem_printf("%.*s", (int)(dash - pid), pid) : NULL;
	const bool alive = text && proc_parse_number(text, INT32_MAX, &number) &&
	                   proc_parse_number(dash + 1, UINT64_MAX, &begun) && proc_start_time(root, (int32_t)number) == begun;
	free(text);
	return alive;
}

/* Returns true for instances of recorders on the host; scripts in guests use the names stealscope-guest-PID-START. */
static bool is_ours(const char *name)
{
	return strncmp(name, PREFIX, strlen(PREFIX)) == 0 && name[strlen(PREFIX)] >= '0' && name[strlen(PREFIX)] <= '9';
}

static bool destroy_instance(struct tracefs_instance *instance)
{
	tracefs_trace_off(instance);
	return tracefs_instance_destroy(instance) == 0;
}

size_t tracer_clean(const char *root, size_t *failed)
{
	size_t n, removed = 0;
	const char *tracefs = tracer_find_tracefs(root, false, NULL);
	*failed = 0;
	if (!tracefs)
		return 0;
	char **name = proc_names("", PREFIX, &n, "%s/instances", tracefs);
	for (size_t i = 0; i < n; i++) {
		struct tracefs_instance *old = is_ours(name[i]) && !owner_is_alive(root, name[i]) ? tracefs_instance_alloc(NULL,
		                                                                                                           name[i])
		                                                                          : NULL;
		if (!old)
			continue;
		*(destroy_instance(old) ? &removed : failed) += 1;
		tracefs_instance_free(old);
	}
	proc_names_free(name, n);
	return removed;
}

static unsigned count_cpus(const char *dir)
{
	size_t n;
	uint64_t number, max_cpus = 0;
	char **name = proc_names("", "cpu", &n, "%s/per_cpu", dir);
	for (size_t i = 0; i < n; i++)
		if (proc_parse_number(name[i] + 3, MAX_CPUS - 1, &number) && number + 1 > max_cpus)
			max_cpus = number + 1;
	proc_names_free(name, n);
	return (unsigned)max_cpus;
}

struct tracer *tracer_new(const char *root, struct error *err)
{
	if (!tracer_find_tracefs(root, true, err))
		return NULL;
	char *name = mem_printf(PREFIX "%d-%llu", (int)getpid(), (unsigned long long)proc_start_time("", (int32_t)getpid()));
	struct tracer *t = mem_new(1, sizeof *t);
	t->instance = tracefs_instance_create(name);
	if (!t->instance || !tracefs_instance_is_new(t->instance)) {
		error_system(err, "use a kernel with CONFIG_TRACING, without lockdown", "cannot create the tracefs instance %s",
		             name);
		tracefs_instance_free(t->instance);
		free(t);
		t = NULL;
	} else {
		t->dir = tracefs_instance_get_dir(t->instance);
		t->cpus = count_cpus(t->dir);
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
	destroy_instance(t->instance);
	tracefs_instance_free(t->instance);
	tracefs_put_tracing_file(t->dir);
	free(t);
}

const char *tracer_dir(const struct tracer *t)
{
	return t->dir;
}

unsigned tracer_cpus(const struct tracer *t)
{
	return t->cpus;
}

static int write_tracefs_file(struct tracer *t, const char *file, const char *text, struct error *err)
{
	if (tracefs_instance_file_write(t->instance, file, text) >= 0)
		return 0;
	return error_system(err, NULL, "tracefs: cannot write '%s' to %s", text, file);
}

int tracer_set_up(struct tracer *t, const char *clock, char *const *event, size_t events, struct error *err)
{
	if (write_tracefs_file(t, "trace_clock", clock, err))
		return -1;
	/* Pages mark lost events only in overwrite mode. */
	write_tracefs_file(t, "options/overwrite", "1", NULL);
	write_tracefs_file(t, "options/record-tgid", "1", NULL);
	/* Marks of requests are written to the main buffer; since Linux 6.10 instances may have a copy. */
	write_tracefs_file(t, "options/copy_trace_marker", "1", NULL);
	for (size_t i = 0; i < events; i++) {
		char *file = mem_printf("events/%s/enable", event[i]);
		const int rc = write_tracefs_file(t, file, "1", err);
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
	return write_tracefs_file(t, "buffer_size_kb", text, err);
}

int tracer_switch(struct tracer *t, bool on, struct error *err)
{
	return write_tracefs_file(t, "tracing_on", on ? "1" : "0", err);
}

int tracer_clear(struct tracer *t, struct error *err)
{
	return tracefs_instance_file_clear(t->instance, "trace") >= 0 ? 0 : error_system(err, NULL,
	                                                                                 "tracefs: cannot clear the buffers");
}

/* ---- buffers */

struct cpu_stats tracer_stats(const struct tracer *t, unsigned cpu)
{
	char *text = proc_text("", NULL, "%s/per_cpu/cpu%u/stats", t->dir, cpu);
	const struct cpu_stats stats = text ? cpu_stats_parse(text) : (struct cpu_stats){ 0 };
	free(text);
	return stats;
}

/* Closes descriptors of the instance's files on exec: libtracefs opens them without O_CLOEXEC. Otherwise the user's command
 * could read the trace of all machines, and its children would keep the instance. */
static void close_on_exec(const char *dir)
{
	size_t n;
	char **name = proc_names("", "", &n, "/proc/self/fd");
	for (size_t i = 0; i < n; i++) {
		char *target = proc_link("", "/proc/self/fd/%s", name[i]);
		if (target && strncmp(target, dir, strlen(dir)) == 0)
			fcntl(atoi(name[i]), F_SETFD, FD_CLOEXEC);
		free(target);
	}
	proc_names_free(name, n);
}

int tracer_drain_into(struct tracer *t, int dir, struct error *err)
{
	t->drain = mem_new(t->cpus, sizeof *t->drain);
	for (unsigned i = 0; i < t->cpus; i++)
		t->drain[i].to = -1;
	for (unsigned i = 0; i < t->cpus; i++) {
		char name[32];
		snprintf(name, sizeof name, "pages/cpu%u", i);
		if (!proc_exists("", "%s/per_cpu/cpu%u", t->dir, i))
			continue;
		t->drain[i].from = tracefs_cpu_open(t->instance, (int)i, true);
		if (!t->drain[i].from)
			return error_system(err, NULL, "tracefs: cannot open per_cpu/cpu%u/trace_pipe_raw", i);
		t->drain[i].to = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (t->drain[i].to < 0)
			return error_system(err, NULL, "cannot create %s", name);
	}
	close_on_exec(t->dir);
	return 0;
}

/* Calls copy() until it has no more data; adds to *bytes. */
static int copy_all(struct drain *d, int (*copy)(struct drain *d), uint64_t *bytes, unsigned cpu, struct error *err)
{
	int n;
	do {
		errno = 0;
		n = copy(d);
		if (n > 0)
			*bytes += (unsigned)n;
	} while (n > 0);
	if (n < 0 && errno && errno != EAGAIN && errno != EINTR)
		return error_system(err, NULL, "cannot copy trace pages to pages/cpu%u", cpu);
	return 0;
}

static int copy_full_pages(struct drain *d)
{
	return tracefs_cpu_write(d->from, d->to, true);
}

static int copy_partial_page(struct drain *d)
{
	return tracefs_cpu_flush_write(d->from, d->to);
}

int tracer_drain(struct tracer *t, bool all, uint64_t *bytes, struct error *err)
{
	for (unsigned i = 0; t->drain && i < t->cpus; i++) {
		struct drain *d = &t->drain[i];
		if (!d->from || (!all && tracer_stats(t, i).bytes / 512 <= t->kilobytes))
			continue;
		if (copy_all(d, copy_full_pages, bytes, i, err) || (all && copy_all(d, copy_partial_page, bytes, i, err)))
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
