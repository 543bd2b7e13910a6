/* Loads the BPF program that prints hardware counters (counters.bpf.c). */
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/base.h"
#include "live/bpf_maps.h"
#include "live/counters_object.h"
#include "live/live.h"

#define COUNTERS 2

struct counter_program {
	struct bpf_object *object;
	struct bpf_link *link;
	int *fd[COUNTERS];         /* by CPU; -1: closed, or the CPU is offline */
	unsigned cpus;
};

const struct live_counter live_hardware_counters[COUNTERS] = {
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS }, { PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
};

static int open_counter(const struct live_counter *counter, unsigned cpu)
{
	struct perf_event_attr attr = {
		.type = counter->type, .size = sizeof attr, .config = counter->config, .pinned = 1,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Opens a counter on all CPUs that are online, and stores the descriptors in its map. */
static int open_counters(struct counter_program *c, const struct live_counter *counter, unsigned index, struct error *err)
{
	static const char *const map_name[COUNTERS] = { "instructions", "cycles" };
	const int map = bpf_object__find_map_fd_by_name(c->object, map_name[index]);
	unsigned opened = 0;
	for (unsigned cpu = 0; cpu < c->cpus; cpu++) {
		const int fd = c->fd[index][cpu] = open_counter(counter, cpu);
		if (fd < 0 && errno == ENODEV && cpu > 0)
			continue;  /* offline */
		if (fd < 0 && (errno == ENOENT || errno == EOPNOTSUPP || errno == ENODEV || errno == EINVAL))
			return error_set(err, STATUS_SYSTEM, "in a VM, its host must give it a PMU",
			                 "this machine has no hardware counter for %s", map_name[index]);
		if (fd < 0 || bpf_map_update_elem(map, &cpu, &fd, BPF_ANY))
			return error_system(err, "this needs root", "hardware counter for %s of CPU%u", map_name[index], cpu);
		opened++;
	}
	return opened ? 0 : error_set(err, STATUS_SYSTEM, NULL, "no CPU has a hardware counter for %s", map_name[index]);
}

static int load(struct counter_program *c, struct error *err)
{
	static const char remedy[] = "this needs root and BPF";
	int rc;
	c->object = bpf_object__open_mem(counters_object, sizeof counters_object, NULL);
	if (!c->object)
		return error_system(err, NULL, "BPF program");
	bpf_map__set_max_entries(bpf_object__find_map_by_name(c->object, "instructions"), c->cpus);
	bpf_map__set_max_entries(bpf_object__find_map_by_name(c->object, "cycles"), c->cpus);
	if ((rc = bpf_object__load(c->object)) != 0) {
		errno = -rc;
		return error_system(err, remedy, "loading the BPF program that reads hardware counters");
	}
	return 0;
}

struct counter_program *counter_program_open(const struct live_counter counter[2], struct error *err)
{
	const long cpus = sysconf(_SC_NPROCESSORS_CONF);
	struct counter_program *c = mem_new(1, sizeof *c);
	c->cpus = cpus > 0 ? (unsigned)cpus : 1;
	bpf_quiet();
	for (unsigned i = 0; i < COUNTERS; i++) {
		c->fd[i] = mem_new(c->cpus, sizeof *c->fd[i]);
		for (unsigned cpu = 0; cpu < c->cpus; cpu++)
			c->fd[i][cpu] = -1;
	}
	if (load(c, err) == 0 && open_counters(c, &counter[0], 0, err) == 0 && open_counters(c, &counter[1], 1, err) == 0) {
		c->link = bpf_program__attach(bpf_object__find_program_by_name(c->object, "print_counters"));
		if (c->link)
			return c;
		error_system(err, "this needs root and BPF", "attaching the BPF program that reads hardware counters");
	}
	counter_program_close(c);
	return NULL;
}

void counter_program_close(struct counter_program *c)
{
	if (!c)
		return;
	bpf_link__destroy(c->link);
	bpf_object__close(c->object);
	for (unsigned i = 0; i < COUNTERS; i++) {
		for (unsigned cpu = 0; c->fd[i] && cpu < c->cpus; cpu++)
			if (c->fd[i][cpu] >= 0)
				close(c->fd[i][cpu]);
		free(c->fd[i]);
	}
	free(c);
}
