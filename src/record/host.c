#include "record/host.h"

#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "record/control_group.h"
#include "record/recording_dir.h"
#include "record/guest_only.h"
#include "record/probe_definitions.h"
#include "record/proc.h"

#define PROBE_NS 300000000  /* duration of the test that measures the event rate, ns */

/* Returns true if a line contains the word, possibly in brackets. */
static bool has_word(const char *line, const char *word)
{
	const size_t n = strlen(word);
	for (const char *at = line; (at = strstr(at, word)); at += n)
		if ((at == line || strchr(" [", at[-1])) && (!at[n] || strchr(" ]\n", at[n])))
			return true;
	return false;
}

/* Returns true if the trace clock x86-tsc exists and the kernel accepts the TSC as a clocksource. */
static bool has_tsc(const struct host *h)
{
	char *clocks = proc_line("", "%s/trace_clock", h->tracefs);
	char *sources = proc_line(h->root, "/sys/devices/system/clocksource/clocksource0/available_clocksource");
	const bool has = clocks && sources && has_word(clocks, "x86-tsc") && has_word(sources, "tsc");
	free(clocks);
	free(sources);
	return has;
}

void host_choose_events(struct host *h, enum event_side side, const char *machine, const char *const *extra, size_t extras,
                        size_t spare)
{
	size_t n;
	char **wanted = events_wanted(side, machine, extra, extras, &n);
	h->event = mem_new(n + spare, sizeof *h->event);
	h->missing = mem_new(n, sizeof *h->missing);
	for (size_t i = 0; i < n; i++) {
		const bool has = proc_exists("", "%s/events/%s/format", h->tracefs, wanted[i]);
		(has ? h->event : h->missing)[has ? h->events++ : h->n_missing++] = wanted[i];
	}
	free(wanted);
}

int host_init(struct host *h, const char *root, const char *clock, const char *const *extra, size_t extras,
              struct error *err)
{
	struct utsname name;
	*h = (struct host){ .root = root, .dir = -1 };
	const char *tracefs = tracer_find_tracefs(root, false, NULL);
	if (!tracefs && !(tracefs = tracer_find_tracefs(root, true, err)))
		return -1;
	h->tracefs = mem_dup(tracefs);
	h->tsc = strcmp(clock, "mono") != 0 && has_tsc(h);
	if (strcmp(clock, "x86-tsc") == 0 && !h->tsc)
		return error_set(err, STATUS_SYSTEM, "use --clock mono",
		                 "--clock x86-tsc: the kernel does not accept the TSC of this host as a clocksource");
	uname(&name);
	host_choose_events(h, SIDE_HOST, name.machine, extra, extras, 0);
	return 0;
}

void host_release(struct host *h)
{
	quota_samples_end(h->quotas);
	tracer_free(h->tracer);
	request_uprobes_close(&h->requests);
	watchdog_end(&h->watchdog);
	guest_only_release(h->alone);
	xen_host_free(h->xen);
	events_free(h->event, h->events);
	events_free(h->missing, h->n_missing);
	free(h->threads);
	free(h->namespaces);
	free(h->tracefs);
	if (h->dir >= 0)
		close(h->dir);
}

int host_add_requests(struct host *h, const struct record_options *o, struct error *err)
{
	struct request_uprobes *u = &h->requests;
	h->throttled = o->throttled;
	if (o->counters || o->throttled) {
		h->event = mem_resize(h->event, h->events + 1, sizeof *h->event);
		h->event[h->events++] = mem_dup("bpf_trace/bpf_trace_printk");
	}
	if (!o->request_specs)
		return 0;
	if (!h->alone && watchdog_start(&h->watchdog, h->root, h->tracefs, false, err))
		return -1;
	if (request_uprobes_open(u, o, h->tracefs, err))
		return -1;
	h->event = mem_resize(h->event, h->events + u->events, sizeof *h->event);
	for (size_t i = 0; i < u->events; i++)
		h->event[h->events++] = mem_dup(u->event[i]);
	return 0;
}

const char *host_clock(const struct host *h)
{
	return h->tsc ? "x86-tsc" : "mono";
}

int host_check_events(const struct host *h, struct error *err)
{
	static const struct { const char *event, *remedy; } needed[] = {
		{ "sched/sched_switch", "use a kernel with CONFIG_FTRACE" },
		{ "kvm/kvm_entry", "load the module kvm_intel or kvm_amd; events of VMs are recorded on the host that runs them" },
		{ "kvm/kvm_exit", "load the module kvm_intel or kvm_amd; events of VMs are recorded on the host that runs them" },
	};
	for (size_t i = 0; i < sizeof needed / sizeof *needed && !h->alone && !(i > 0 && (h->xen || h->requests.programs)); i++)
		for (size_t k = 0; k < h->n_missing; k++)
			if (strcmp(h->missing[k], needed[i].event) == 0)
				return error_set(err, STATUS_SYSTEM, needed[i].remedy, "the host's kernel has no event %s",
				                 needed[i].event);
	return 0;
}

/* ---- event rate and buffer size */

static uint64_t memory_available(const char *root)
{
	char *text = proc_text(root, NULL, "/proc/meminfo"), *value = text ? proc_field(text, "MemAvailable") : NULL;
	const uint64_t kilobytes = value ? strtoull(value, NULL, 10) : 0;
	free(text);
	free(value);
	return kilobytes * 1024;
}

static int measure_event_rate(struct host *h, int64_t duration, struct error *err)
{
	const struct timespec t = { 0, PROBE_NS };
	const unsigned cpus = tracer_cpus(h->tracer);
	const int64_t begun = now_ns();
	if (tracer_switch(h->tracer, true, err))
		return -1;
	nanosleep(&t, NULL);
	if (tracer_switch(h->tracer, false, err))
		return -1;
	const int64_t elapsed = now_ns() - begun;
	uint64_t *bytes = mem_new(cpus, sizeof *bytes);
	for (unsigned i = 0; i < cpus; i++) {
		const struct cpu_stats s = tracer_stats(h->tracer, i);
		bytes[i] = s.bytes + (s.entries ? s.bytes / s.entries * s.overrun : 0);
	}
	h->forecast = forecast_make(bytes, cpus, elapsed, h->hold ? h->hold : duration, h->hold > 0,
	                            memory_available(h->root));
	free(bytes);
	return 0;
}

int host_prepare(struct host *h, int64_t duration, struct error *err)
{
	h->tracer = tracer_new(h->root, err);
	if (h->tracer && h->alone)
		steal_probes_filter(&h->alone->steal, tracer_dir(h->tracer));
	struct cgroup_tree tree = { .dir = "" };
	if (!h->tracer || tracer_set_up(h->tracer, host_clock(h), h->event, h->events, err) ||
	    measure_event_rate(h, duration, err))
		return -1;
	cgroup_tree_find(&tree, h->root);  /* moves in other hierarchies are of no interest */
	char *filter = mem_printf("dst_root == %u", tree.hierarchy);
	(void)tracefs_append_line(tracer_dir(h->tracer), "events/cgroup/cgroup_attach_task/filter", filter);
	free(filter);
	/* The allocation can fail if memory is fragmented: try half of the size. */
	while (tracer_resize(h->tracer, h->forecast.kilobytes, err)) {
		if (h->forecast.kilobytes <= FORECAST_KB_MIN)
			return -1;
		h->forecast.kilobytes /= 2;
		h->forecast.complete = false;
	}
	return 0;
}

/* ---- the recording */

int host_store_in(struct host *h, int dir, struct error *err)
{
	if (h->dir >= 0)
		close(h->dir);
	h->dir = dir;
	h->bytes = h->lost = 0;
	free(h->threads);
	free(h->namespaces);
	h->threads = dir_threads(h->root);
	h->namespaces = dir_namespaces(h->root);
	return tracer_drain_into(h->tracer, dir, err);
}

int host_start(struct host *h, const struct cgroups *groups, struct error *err)
{
	if (tracer_clear(h->tracer, err))
		return -1;
	if (h->xen && xen_host_start(h->xen, err))
		return -1;
	h->started = clock_sample_now(h->tsc);
	if (h->alone)
		guest_only_begin(h);
	if (tracer_switch(h->tracer, true, err))
		return -1;
	h->quotas = quota_samples_begin(groups, h->root, tracer_dir(h->tracer));
	return 0;
}

int host_tick(struct host *h, struct error *err)
{
	const int64_t now = now_ns();
	quota_samples_tick(h->quotas);
	if (h->alone)
		guest_only_tick(h);
	if (h->xen && xen_host_check(h->xen, err))
		return -1;
	if (h->hold || now < h->next_check)
		return 0;
	h->next_check = now + forecast_pause(h->forecast.kilobytes);
	return tracer_drain(h->tracer, false, &h->bytes, err);
}

/* Copies a file of tracefs to the recording; writes an empty file if it does not exist. */
static int copy_tracefs_file(const struct host *h, const char *from, const char *name, struct error *err)
{
	size_t len = 0;
	char *text = proc_text("", &len, "%s/%s", h->tracefs, from);
	const int rc = dir_put(h->dir, name, text ? text : "", len, err);
	free(text);
	return rc;
}

static int put_stats(struct host *h, struct error *err)
{
	for (unsigned i = 0; i < tracer_cpus(h->tracer); i++) {
		char name[32];
		size_t len;
		char *text = proc_text("", &len, "%s/per_cpu/cpu%u/stats", tracer_dir(h->tracer), i);
		if (!text)
			continue;
		const struct cpu_stats s = cpu_stats_parse(text);
		h->lost += h->hold ? s.dropped : cpu_stats_lost(&s);
		snprintf(name, sizeof name, "stats/cpu%u", i);
		const int rc = dir_put(h->dir, name, text, len, err);
		free(text);
		if (rc)
			return -1;
	}
	return 0;
}

static int describe_host(struct host *h, struct error *err)
{
	char *cmdlines = proc_text("", NULL, "%s/saved_cmdlines", h->tracefs);
	char *tgids = proc_text("", NULL, "%s/saved_tgids", h->tracefs);
	int rc = dir_put_threads(h->dir, h->threads, cmdlines, tgids, err);
	free(cmdlines);
	free(tgids);
	if (rc == 0 && *h->namespaces)
		rc = dir_put(h->dir, "namespaces", h->namespaces, strlen(h->namespaces), err);
	if (rc == 0)
		rc = copy_tracefs_file(h, "events/header_page", "header_page", err);
	if (rc == 0)
		rc = copy_tracefs_file(h, "events/header_event", "header_event", err);
	for (size_t i = 0; i <= h->events && rc == 0; i++) {
		const char *event = i < h->events ? h->event[i] : "ftrace/print";  /* request marks */
		size_t len;
		char *text = proc_text("", &len, "%s/events/%s/format", h->tracefs, event);
		rc = text ? dir_put_format(h->dir, event, text, len, err) : 0;
		free(text);
	}
	return rc;
}

int host_stop(struct host *h, struct error *err)
{
	quota_samples_end(h->quotas);
	h->quotas = NULL;
	int rc = tracer_switch(h->tracer, false, err);
	h->stopped = clock_sample_now(h->tsc);
	if (h->alone)
		guest_only_end(h);
	if (rc == 0)
		rc = tracer_drain(h->tracer, true, &h->bytes, err);
	tracer_drain_end(h->tracer);
	if (rc == 0)
		rc = put_stats(h, err);
	if (rc == 0 && h->xen)
		rc = xen_host_stop(h->xen, err);
	return rc ? -1 : describe_host(h, err);
}
