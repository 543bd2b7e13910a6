/* Writes the facts and session.yaml of a recording of a guest alone; guest_only.h describes them. */
#include <unistd.h>

#include "base/base.h"
#include "record/guest_only.h"
#include "record/kernel_facts.h"
#include "record/metadata.h"
#include "record/proc.h"

static void put_steal_ticks(struct yaml_out *o, int parent, const char *key, const struct proc_steal *s)
{
	const int map = yaml_out_braces(o, parent, key);
	for (size_t i = 0; i < s->cpus; i++) {
		char cpu[16];
		snprintf(cpu, sizeof cpu, "%u", s->cpu[i].cpu);
		yaml_out_count(o, map, cpu, s->cpu[i].ticks);
	}
}

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

void guest_only_put(struct yaml_out *o, const struct host *h)
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
		metadata_put_sample(o, list, NULL, &g->sample[i]);
	steal_probes_put(&g->steal, o, yaml_out_map(o, map, "steal"));
	const int stat = yaml_out_map(o, map, "proc_stat");
	yaml_out_number(o, stat, "unit_hz", sysconf(_SC_CLK_TCK));
	put_steal_ticks(o, stat, "started", &g->started);
	put_steal_ticks(o, stat, "stopped", &g->stopped);
	hypervisor_put_vm(o, yaml_out_map(o, map, "vm"), h->root);
	free(source);
	free(hz);
}

int guest_only_describe(const struct host *h, const struct cgroups *before, const struct cgroups *after, int dir,
                        struct error *err)
{
	if (metadata_write_host(h, err))
		return -1;
	struct yaml_out *o = yaml_out_new();
	const int guest = yaml_out_map(o, yaml_out_list(o, YAML_OUT_ROOT, "guests"), NULL);
	yaml_out_escaped(o, guest, "name", h->alone->name);
	yaml_out_text(o, guest, "dir", h->alone->dir_name);
	cgroups_put_list(o, guest, before, after, h->throttled);
	const int facts = yaml_out_map(o, guest, "facts");
	yaml_out_text(o, facts, "through", "guest-only");
	facts_put_host(o, facts, h->root);
	return metadata_save(o, dir, "session.yaml", err);
}
