#include "base/base.h"
#include "record/tracer.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/proc.h"

#define PREFIX "stealscope-"
#define MAX_CPUS 4096
#define REMEDY_TRACEFS "as root: mount -t tracefs tracefs /sys/kernel/tracing; this requires a kernel with CONFIG_FTRACE"

struct tracer {
	char *dir;           /* of the instance */
	unsigned cpus;
	uint64_t kilobytes;  /* size of each CPU's buffer, KiB */
	struct drain {
		int from, to;  /* descriptors of trace_pipe_raw and of the file; -1: none */
		int pipe[2];   /* between both */
	} *drain;  /* [cpus]; NULL: no output files are open */
};

static bool is_tracefs(const char *dir)
{
	return proc_exists("", "%s/trace_clock", dir);
}

const char *tracer_find_tracefs(const char *root, bool mounts, struct error *err)
{
	static char path[4096];
	snprintf(path, sizeof path, "%s/sys/kernel/tracing", root);
	if (!is_tracefs(path) && !*root && mounts)
		mount("tracefs", path, "tracefs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	if (!is_tracefs(path))
		snprintf(path, sizeof path, "%s/sys/kernel/debug/tracing", root);
	const char *tracefs = is_tracefs(path) ? path : NULL;
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

/* Writes a file of tracefs; text "": only truncates it. Returns false with errno. */
static bool write_text(const char *dir, const char *file, const char *text)
{
	char *path = mem_printf("%s/%s", dir, file);
	const int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	const ssize_t n = (ssize_t)strlen(text);
	const bool is_written = fd >= 0 && (n == 0 || write(fd, text, (size_t)n) == n);
	const int saved = errno;
	free(path);
	if (fd >= 0)
		close(fd);
	errno = saved;
	return is_written;
}

/* Starts or stops an instance. Marks of requests are written to the main buffer; since Linux 6.10 instances may have a
 * copy, but one that is off and asks for it takes the marks from those that were created before. */
static bool switch_instance(const char *dir, bool on)
{
	if (!on)
		write_text(dir, "options/copy_trace_marker", "0");
	const bool is_switched = write_text(dir, "tracing_on", on ? "1" : "0");
	const int why = errno;
	if (on)
		write_text(dir, "options/copy_trace_marker", "1");
	errno = why;
	return is_switched;
}

static bool destroy_instance(const char *dir)
{
	switch_instance(dir, false);
	return rmdir(dir) == 0;
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
		if (!is_ours(name[i]) || owner_is_alive(root, name[i]))
			continue;
		char *dir = mem_printf("%s/instances/%s", tracefs, name[i]);
		*(destroy_instance(dir) ? &removed : failed) += 1;
		free(dir);
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
	const char *tracefs = tracer_find_tracefs(root, true, err);
	if (!tracefs)
		return NULL;
	struct tracer *t = mem_new(1, sizeof *t);
	t->dir = mem_printf("%s/instances/" PREFIX "%d-%llu", tracefs, (int)getpid(),
	                    (unsigned long long)proc_start_time("", (int32_t)getpid()));
	if (mkdir(t->dir, 0700) != 0) {
		error_system(err, "use a kernel with CONFIG_TRACING, without lockdown", "cannot create the tracefs instance %s",
		             strrchr(t->dir, '/') + 1);
		free(t->dir);
		free(t);
		return NULL;
	}
	t->cpus = count_cpus(t->dir);
	write_text(t->dir, "tracing_on", "0");
	return t;
}

void tracer_free(struct tracer *t)
{
	if (!t)
		return;
	tracer_drain_end(t);
	destroy_instance(t->dir);
	free(t->dir);
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
	if (write_text(t->dir, file, text))
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
	return switch_instance(t->dir, on) ? 0 : error_system(err, NULL, "tracefs: cannot write tracing_on to %s", t->dir);
}

int tracer_clear(struct tracer *t, struct error *err)
{
	return write_text(t->dir, "trace", "") ? 0 : error_system(err, NULL, "tracefs: cannot clear the buffers");
}

/* ---- buffers */

struct cpu_stats tracer_stats(const struct tracer *t, unsigned cpu)
{
	char *text = proc_text("", NULL, "%s/per_cpu/cpu%u/stats", t->dir, cpu);
	const struct cpu_stats stats = text ? cpu_stats_parse(text) : (struct cpu_stats){ 0 };
	free(text);
	return stats;
}

int tracer_drain_into(struct tracer *t, int dir, struct error *err)
{
	t->drain = mem_new(t->cpus, sizeof *t->drain);
	for (unsigned i = 0; i < t->cpus; i++)
		t->drain[i] = (struct drain){ -1, -1, { -1, -1 } };
	for (unsigned i = 0; i < t->cpus; i++) {
		char name[32];
		snprintf(name, sizeof name, "pages/cpu%u", i);
		if (!proc_exists("", "%s/per_cpu/cpu%u", t->dir, i))
			continue;
		char *path = mem_printf("%s/per_cpu/cpu%u/trace_pipe_raw", t->dir, i);
		t->drain[i].from = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		free(path);
		if (t->drain[i].from < 0 || pipe2(t->drain[i].pipe, O_CLOEXEC) != 0)
			return error_system(err, NULL, "tracefs: cannot open per_cpu/cpu%u/trace_pipe_raw", i);
		t->drain[i].to = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (t->drain[i].to < 0)
			return error_system(err, NULL, "cannot create %s", name);
	}
	return 0;
}

/* Calls copy() until it has no more data; adds to *bytes. */
static int copy_all(struct drain *d, ssize_t (*copy)(struct drain *d), uint64_t *bytes, unsigned cpu, struct error *err)
{
	ssize_t n;
	do {
		errno = 0;
		n = copy(d);
		if (n > 0)
			*bytes += (uint64_t)n;
	} while (n > 0);
	if (n < 0 && errno && errno != EAGAIN && errno != EINTR)
		return error_system(err, NULL, "cannot copy trace pages to pages/cpu%u", cpu);
	return 0;
}

/* Moves the bytes in the pipe to the file. Returns false with errno. */
static bool empty_pipe(struct drain *d, ssize_t bytes)
{
	char buf[4096];
	while (bytes > 0) {
		ssize_t n = splice(d->pipe[0], NULL, d->to, NULL, (size_t)bytes, SPLICE_F_MOVE);
		if (n < 0 && errno == EINVAL) {  /* the file system cannot splice */
			n = read(d->pipe[0], buf, bytes < (ssize_t)sizeof buf ? (size_t)bytes : sizeof buf);
			n = n > 0 && write(d->to, buf, (size_t)n) != n ? -1 : n;
		}
		if (n <= 0)
			return false;
		bytes -= n;
	}
	return true;
}

/* The kernel splices pages only when they are full. */
static ssize_t copy_full_pages(struct drain *d)
{
	const ssize_t n = splice(d->from, NULL, d->pipe[1], NULL, 16 * (size_t)sysconf(_SC_PAGESIZE),
	                         SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	return n > 0 && !empty_pipe(d, n) ? -1 : n;
}

static ssize_t copy_partial_page(struct drain *d)
{
	const size_t size = (size_t)sysconf(_SC_PAGESIZE);
	char *page = mem_new(size, 1);
	ssize_t n = read(d->from, page, size);
	if (n > 0 && write(d->to, page, size) != (ssize_t)size)
		n = -1;
	free(page);
	return n;
}

int tracer_drain(struct tracer *t, bool all, uint64_t *bytes, struct error *err)
{
	for (unsigned i = 0; t->drain && i < t->cpus; i++) {
		struct drain *d = &t->drain[i];
		if (d->from < 0 || (!all && tracer_stats(t, i).bytes / 512 <= t->kilobytes))
			continue;
		if (copy_all(d, copy_full_pages, bytes, i, err) || (all && copy_all(d, copy_partial_page, bytes, i, err)))
			return -1;
	}
	return 0;
}

void tracer_drain_end(struct tracer *t)
{
	for (unsigned i = 0; t->drain && i < t->cpus; i++) {
		const int open_file[] = { t->drain[i].from, t->drain[i].to, t->drain[i].pipe[0], t->drain[i].pipe[1] };
		for (size_t k = 0; k < sizeof open_file / sizeof *open_file; k++)
			if (open_file[k] >= 0)
				close(open_file[k]);
	}
	free(t->drain);
	t->drain = NULL;
}
