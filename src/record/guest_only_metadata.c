/* Writes about.yaml and session.yaml of a recording of a guest alone; guest_only.h describes them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/mem.h"
#include "record/guest_only.h"
#include "record/kernel_facts.h"
#include "record/session_facts.h"
#include "record/proc.h"
#include "record/recording_dir.h"

static int save(struct yaml_out *o, int dir, const char *name, struct error *err)
{
	char *text = yaml_out_end(o);
	const int rc = text ? dir_put(dir, name, text, strlen(text), err)
	                    : error_set(err, STATUS_SYSTEM, NULL, "%s: cannot be written as YAML", name);
	free(text);
	return rc;
}

static void put_sample(struct yaml_out *o, int parent, const char *key, const struct clock_sample *s)
{
	if (!s->known)
		return;
	const int map = yaml_out_braces(o, parent, key);
	yaml_out_count(o, map, "clock", s->clock);
	yaml_out_number(o, map, "monotonic", s->monotonic);
	yaml_out_number(o, map, "realtime", s->realtime);
	if (s->error)
		yaml_out_number(o, map, "error", s->error);
}

static void put_steal_ticks(struct yaml_out *o, int parent, const char *key, const struct proc_steal *s)
{
	const int map = yaml_out_braces(o, parent, key);
	for (size_t i = 0; i < s->cpus; i++) {
		char cpu[16];
		snprintf(cpu, sizeof cpu, "%u", s->cpu[i].cpu);
		yaml_out_count(o, map, cpu, s->cpu[i].ticks);
	}
}

static void put_names(struct yaml_out *o, const char *key, char *const *name, size_t n)
{
	const int list = yaml_out_list(o, YAML_OUT_ROOT, key);
	for (size_t i = 0; i < n; i++)
		yaml_out_escaped(o, list, NULL, name[i]);
}

/* Returns the frequency, millihertz, and writes it. */
static void put_frequency(struct yaml_out *o, int map, const struct guest_only *g)
{
	size_t segments, excluded;
	const uint64_t millihertz = guest_only_frequency(g->sample, g->samples, &segments, &excluded);
	const int frequency = yaml_out_map(o, map, "frequency");
	yaml_out_count(o, frequency, "millihertz", millihertz);
	yaml_out_text(o, frequency, "source", "measured");
	yaml_out_count(o, frequency, "segments", segments);
	yaml_out_count(o, frequency, "excluded", excluded);
	if (g->hypervisor.tsc_khz)
		yaml_out_count(o, frequency, "hypervisor_khz", g->hypervisor.tsc_khz);
}

static void put_guest_only(struct yaml_out *o, const struct host *h)
{
	const struct guest_only *g = h->alone;
	const int map = yaml_out_map(o, YAML_OUT_ROOT, "guest_only");
	char *source = proc_line(h->root, "/sys/devices/system/clocksource/clocksource0/current_clocksource");
	char *hz = kernel_config(h->root, "HZ");
	yaml_out_text(o, map, "hypervisor", hypervisor_name(g->hypervisor.kind));
	yaml_out_escaped(o, map, "clocksource", source);
	if (hz && strspn(hz, "0123456789") == strlen(hz))
		yaml_out_count(o, map, "hz", strtoul(hz, NULL, 10));
	if (h->tsc)
		put_frequency(o, map, g);
	const int list = yaml_out_list(o, map, "samples");
	for (size_t i = 0; i < g->samples; i++)
		put_sample(o, list, NULL, &g->sample[i]);
	steal_probes_put(&g->steal, o, yaml_out_map(o, map, "steal"));
	const int stat = yaml_out_map(o, map, "proc_stat");
	yaml_out_number(o, stat, "unit_hz", sysconf(_SC_CLK_TCK));
	put_steal_ticks(o, stat, "started", &g->started);
	put_steal_ticks(o, stat, "stopped", &g->stopped);
	hypervisor_put_vm(o, yaml_out_map(o, map, "vm"), h->root);
	free(source);
	free(hz);
}

static int write_about(const struct host *h, struct error *err)
{
	struct yaml_out *o = yaml_out_new();
	struct utsname name;
	size_t segments, excluded;
	uname(&name);
	yaml_out_escaped(o, YAML_OUT_ROOT, "hostname", name.nodename);
	yaml_out_escaped(o, YAML_OUT_ROOT, "release", name.release);
	yaml_out_escaped(o, YAML_OUT_ROOT, "version", name.version);
	yaml_out_text(o, YAML_OUT_ROOT, "machine", name.machine);
	yaml_out_number(o, YAML_OUT_ROOT, "cpus", tracer_cpus(h->tracer));
	yaml_out_text(o, YAML_OUT_ROOT, "clock", host_clock(h));
	if (h->tsc)
		yaml_out_count(o, YAML_OUT_ROOT, "millihertz",
		               guest_only_frequency(h->alone->sample, h->alone->samples, &segments, &excluded));
	put_sample(o, YAML_OUT_ROOT, "started", &h->started);
	put_sample(o, YAML_OUT_ROOT, "stopped", &h->stopped);
	yaml_out_count(o, YAML_OUT_ROOT, "buffer_kb", h->forecast.kilobytes);
	yaml_out_count(o, YAML_OUT_ROOT, "bytes", h->bytes);
	yaml_out_count(o, YAML_OUT_ROOT, "lost", h->lost);
	if (h->hold)
		yaml_out_number(o, YAML_OUT_ROOT, "kept", h->hold);
	put_names(o, "events", h->event, h->events);
	put_names(o, "missing", h->missing, h->n_missing);
	request_uprobes_put(&h->requests, o);
	put_guest_only(o, h);
	return save(o, h->dir, "about.yaml", err);
}

int guest_only_describe(const struct host *h, const struct cgroups *before, const struct cgroups *after, int dir,
                        struct error *err)
{
	if (write_about(h, err))
		return -1;
	struct yaml_out *o = yaml_out_new();
	const int guest = yaml_out_map(o, yaml_out_list(o, YAML_OUT_ROOT, "guests"), NULL);
	yaml_out_escaped(o, guest, "name", h->alone->name);
	yaml_out_text(o, guest, "dir", h->alone->dir_name);
	cgroups_put_list(o, guest, before, after);
	yaml_out_text(o, guest, "throttled", h->throttled ? "events" : NULL);
	const int facts = yaml_out_map(o, guest, "facts");
	yaml_out_text(o, facts, "through", "guest-only");
	facts_put_host(o, facts, h->root);
	return save(o, dir, "session.yaml", err);
}
