#include "record/guest_only.h"

#include <sys/utsname.h>

#include "base/base.h"
#include "base/int128.h"
#include "record/events.h"
#include "record/participants.h"
#include "record/proc.h"

#define SAMPLE_PERIOD NS_PER_S    /* initial time between two clock samples */
#define EXCLUDED_PPM 200          /* a segment whose rate differs more from the median has a step of a clock */
#define NAME_LEN 64               /* longest part of the hostname in a directory's name */

bool guest_only_is_wanted(const struct record_options *o, size_t vms, size_t hidden)
{
	if (o->guest_only || o->n_requested || o->host_only || vms || hidden)
		return o->guest_only;
	return hypervisor_detect(o->root).is_guest;
}

/* ---- begin and end */

/* Returns true if the trace clock x86-tsc can be used. KVM's clock, too, requires that the TSCs of all CPUs agree. */
static bool has_tsc(const char *root, const char *tracefs)
{
	char *clocks = proc_line("", "%s/trace_clock", tracefs);
	char *sources = proc_line(root, "/sys/devices/system/clocksource/clocksource0/available_clocksource");
	const bool has = clocks && strstr(clocks, "x86-tsc") && sources &&
		(strstr(sources, "tsc") || strstr(sources, "kvm-clock"));
	free(clocks);
	free(sources);
	return has;
}

static char *directory_name(const char *hostname)
{
	char *name = mem_printf("guest-%.*s", NAME_LEN, *hostname ? hostname : "here");
	for (char *c = name; *c; c++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *c))
			*c = '_';
	return name;
}

static void add_event(struct host *h, const char *name)
{
	h->event[h->events++] = mem_dup(name);
}

/* Lists the events that the kernel has, and those of the source of stolen time. */
static void choose_events(struct host *h, const struct record_options *o, const char *machine)
{
	const struct steal_probes *p = &h->alone->steal;
	host_choose_events(h, SIDE_GUEST, machine, o->event, o->events, p->events);
	for (size_t i = 0; i < p->events; i++)
		add_event(h, p->event[i]);
}

static int check_events(const struct host *h, struct error *err)
{
	for (size_t i = 0; i < h->events; i++)
		if (strcmp(h->event[i], "sched/sched_switch") == 0)
			return 0;
	return error_set(err, STATUS_SYSTEM, "use a kernel with CONFIG_FTRACE", "the kernel has no event sched/sched_switch");
}

int guest_only_init(struct host *h, const struct record_options *o, struct error *err)
{
	struct utsname name;
	enum steal_source from, to;
	*h = (struct host){ .root = o->root, .dir = -1 };
	struct guest_only *g = h->alone = mem_new(1, sizeof *g);
	*g = (struct guest_only){ .steal = { .source = STEAL_NONE }, .period = SAMPLE_PERIOD };
	if (!steal_source_parse(o->steal ? o->steal : "auto", &from, &to))
		return error_set(err, STATUS_USAGE, NULL, "--steal: unknown source '%s'", o->steal);
	const char *tracefs = tracer_find_tracefs(o->root, false, NULL);
	const bool mounts = !tracefs;
	if (!tracefs && !(tracefs = tracer_find_tracefs(o->root, true, err)))
		return -1;
	h->tracefs = mem_dup(tracefs);
	h->tsc = strcmp(o->clock, "mono") != 0 && has_tsc(o->root, h->tracefs);
	if (strcmp(o->clock, "x86-tsc") == 0 && !h->tsc)
		return error_set(err, STATUS_SYSTEM, "use --clock mono", "--clock x86-tsc: the TSC of this guest is not usable");
	uname(&name);
	g->hypervisor = hypervisor_detect(o->root);
	g->name = mem_dup(*name.nodename ? name.nodename : "here");
	g->dir_name = directory_name(name.nodename);
	if (watchdog_start(&g->watchdog, o->root, h->tracefs, mounts, err))
		return -1;
	steal_probes_open(&g->steal, o->root, h->tracefs, &g->hypervisor, from, to);
	choose_events(h, o, name.machine);
	char *text = steal_probes_text(&g->steal);
	if (o->explains)
		report_progress(o, "steal: %s", text);
	else
		report_progress(o, "steal: %.*s (record --guest-only --check explains the choice)", (int)strcspn(text, ":;"), text);
	free(text);
	if (!h->tsc)
		report_progress(o, "clock mono: a pause of this VM cannot be detected");
	return check_events(h, err);
}

void guest_only_release(struct guest_only *g)
{
	if (!g)
		return;
	steal_probes_close(&g->steal);
	watchdog_end(&g->watchdog);
	free(g->name);
	free(g->dir_name);
	free(g->started.cpu);
	free(g->stopped.cpu);
	free(g);
}

/* ---- clocks and /proc/stat */

static void read_proc_stat(struct proc_steal *s, const char *root)
{
	char *text = proc_text(root, NULL, "/proc/stat");
	s->cpus = 0;
	for (char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		unsigned cpu;
		unsigned long long ticks;
		if (strncmp(line, "cpu", 3) == 0 && line[3] >= '0' && line[3] <= '9' &&
		    sscanf(line, "cpu%5u %*u %*u %*u %*u %*u %*u %*u %llu", &cpu, &ticks) == 2)
			*ARRAY_PUSH(s->cpu, s->cpus, s->cap) = (struct cpu_steal){ cpu, ticks };
	}
	free(text);
}

/* Appends a sample. Removes every second one when the array is full, and samples half as often from then on. */
static void add_sample(struct guest_only *g, const struct clock_sample *s)
{
	if (g->samples == CLOCK_SAMPLES_MAX) {
		for (size_t i = 0; 2 * i < g->samples; i++)
			g->sample[i] = g->sample[2 * i];
		g->samples = (g->samples + 1) / 2;
		g->period *= 2;
	}
	g->sample[g->samples++] = *s;
	g->next = now_ns() + g->period;
}

void guest_only_begin(struct host *h)
{
	struct guest_only *g = h->alone;
	g->samples = 0;
	g->period = SAMPLE_PERIOD;
	add_sample(g, &h->started);
	read_proc_stat(&g->started, h->root);
}

void guest_only_tick(struct host *h)
{
	struct guest_only *g = h->alone;
	if (now_ns() < g->next)
		return;
	const struct clock_sample s = clock_sample_now(h->tsc);
	add_sample(g, &s);
}

void guest_only_end(struct host *h)
{
	read_proc_stat(&h->alone->stopped, h->root);
	add_sample(h->alone, &h->stopped);
}

static int by_rate(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static bool is_near(uint64_t x, uint64_t y)
{
	return (x > y ? x - y : y - x) <= y / 1000000 * EXCLUDED_PPM;
}

uint64_t guest_only_frequency(const struct clock_sample *sample, size_t n, size_t *segments, size_t *excluded)
{
	uint64_t *rate = mem_new(n + 1, sizeof *rate), *sorted = mem_new(n + 1, sizeof *sorted), cycles = 0;
	int64_t ns = 0;
	*segments = *excluded = 0;
	for (size_t i = 1; i < n; i++)
		if ((rate[i] = clock_sample_frequency(&sample[i - 1], &sample[i])) != 0)
			sorted[(*segments)++] = rate[i];
	qsort(sorted, *segments, sizeof *sorted, by_rate);
	const uint64_t median = *segments ? sorted[*segments / 2] : 0;
	for (size_t i = 1; i < n; i++) {
		if (!rate[i] || !is_near(rate[i], median)) {
			*excluded += rate[i] != 0;
			continue;
		}
		cycles += sample[i].clock - sample[i - 1].clock;
		ns += sample[i].monotonic - sample[i - 1].monotonic;
	}
	free(rate);
	free(sorted);
	return ns > 0 ? (uint64_t)((uint128)cycles * 1000 * NS_PER_S / (uint64_t)ns) : 0;
}
