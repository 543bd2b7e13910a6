#include "record/metadata.h"

#include <sys/utsname.h>
#include <unistd.h>

#include "base/base.h"
#include "base/int128.h"
#include "record/events.h"
#include "record/guest_only.h"
#include "record/recording_dir.h"
#include "record/topology_facts.h"

void metadata_put_sample(struct yaml_out *o, int parent, const char *key, const struct clock_sample *m)
{
	if (!m->known)
		return;
	const int map = yaml_out_braces(o, parent, key);
	yaml_out_count(o, map, "clock", m->clock);
	if (m->monotonic)
		yaml_out_number(o, map, "monotonic", m->monotonic);
	yaml_out_number(o, map, "realtime", m->realtime);
	if (m->error)
		yaml_out_number(o, map, "error", m->error);
}

/* Writes a machine's trace clock. millihertz: the clock's frequency; 0: the clock counts ns. */
static void put_clock(struct yaml_out *o, const char *clock, uint64_t millihertz, const struct clock_sample *started,
                      const struct clock_sample *stopped)
{
	yaml_out_text(o, YAML_OUT_ROOT, "clock", clock);
	if (millihertz)
		yaml_out_count(o, YAML_OUT_ROOT, "millihertz", millihertz);
	metadata_put_sample(o, YAML_OUT_ROOT, "started", started);
	metadata_put_sample(o, YAML_OUT_ROOT, "stopped", stopped);
}

static void put_names(struct yaml_out *o, const char *key, char *const *name, size_t n)
{
	const int list = yaml_out_list(o, YAML_OUT_ROOT, key);
	for (size_t i = 0; i < n; i++)
		yaml_out_escaped(o, list, NULL, name[i]);
}

/* Returns the frequency of the host's TSC, millihertz; 0: the trace clock counts ns. */
static uint64_t host_frequency(const struct host *h)
{
	size_t segments, excluded;
	return !h->tsc ? 0 : h->alone ? guest_only_frequency(h->alone->sample, h->alone->samples, &segments, &excluded)
	                              : clock_sample_frequency(&h->started, &h->stopped);
}

int metadata_save(struct yaml_out *o, int dir, const char *name, struct error *err)
{
	char *text = yaml_out_end(o);
	const int rc = text ? dir_put(dir, name, text, strlen(text), err)
	                    : error_set(err, STATUS_SYSTEM, NULL, "%s: cannot be written as YAML", name);
	free(text);
	return rc;
}

int metadata_write_host(const struct host *h, struct error *err)
{
	struct yaml_out *o = yaml_out_new();
	struct utsname name;
	uname(&name);
	yaml_out_escaped(o, YAML_OUT_ROOT, "hostname", name.nodename);
	yaml_out_escaped(o, YAML_OUT_ROOT, "release", name.release);
	yaml_out_escaped(o, YAML_OUT_ROOT, "version", name.version);
	yaml_out_text(o, YAML_OUT_ROOT, "machine", name.machine);
	yaml_out_number(o, YAML_OUT_ROOT, "cpus", tracer_cpus(h->tracer));
	put_clock(o, host_clock(h), host_frequency(h), &h->started, &h->stopped);
	yaml_out_count(o, YAML_OUT_ROOT, "buffer_kb", h->forecast.kilobytes);
	yaml_out_count(o, YAML_OUT_ROOT, "bytes", h->bytes);
	yaml_out_count(o, YAML_OUT_ROOT, "lost", h->lost);
	if (h->hold)
		yaml_out_number(o, YAML_OUT_ROOT, "kept", h->hold);
	put_names(o, "events", h->event, h->events);
	put_names(o, "missing", h->missing, h->n_missing);
	request_uprobes_put(&h->requests, o);
	if (h->alone)
		guest_only_put(o, h);
	else
		facts_put_host(o, yaml_out_map(o, YAML_OUT_ROOT, "facts"), h->root);
	return metadata_save(o, h->dir, "about.yaml", err);
}

/* ---- guests */

static bool is_same_tsc(const struct vm_tsc *a, const struct vm_tsc *b)
{
	return a->known && b->known && a->offset == b->offset && a->ratio == b->ratio && a->bits == b->bits;
}

bool metadata_find_tsc(const struct guest *g, const struct host *h, struct vm_tsc *tsc, const char **why)
{
	char *clock = guest_field(g, "clock");
	const bool both = h->tsc && clock && strcmp(clock, "x86-tsc") == 0;
	free(clock);
	*why = NULL;
	if (!both) {
		*why = "the trace clock of guest or host is not the TSC";
		return false;
	}
	for (size_t i = 0; i < g->vm->vcpus && !*why; i++) {
		if (!g->before[i].known || !g->after[i].known)
			*why = "debugfs does not contain the TSC parameters of all vCPUs";
		else if (!is_same_tsc(&g->before[i], &g->after[i]))
			*why = "the TSC parameters changed during the recording";
		else if (!is_same_tsc(&g->before[i], &g->before[0]))
			*why = "the TSC parameters of the vCPUs differ";
	}
	*tsc = g->vm->vcpus ? g->before[0] : (struct vm_tsc){ 0 };
	return !*why && g->vm->vcpus > 0;
}

static void put_tsc(struct yaml_out *o, int parent, const char *key, const struct vm_tsc *tsc)
{
	const int map = yaml_out_braces(o, parent, key);
	yaml_out_number(o, map, "offset", tsc->offset);
	yaml_out_count(o, map, "ratio", tsc->ratio);
	yaml_out_number(o, map, "bits", tsc->bits);
}

static void put_tscs(struct yaml_out *o, const char *key, const struct guest *g, const struct vm_tsc *tsc)
{
	int list = 0;
	for (size_t i = 0; i < g->vm->vcpus; i++) {
		if (!tsc[i].known)
			continue;
		list = list ? list : yaml_out_list(o, YAML_OUT_ROOT, key);
		put_tsc(o, list, NULL, &tsc[i]);
	}
}

/* Returns a guest's TSC frequency, millihertz: the host's frequency times the scaling ratio; 0: unknown. */
static uint64_t tsc_frequency(const struct guest *g, const struct host *h)
{
	const uint64_t host = clock_sample_frequency(&h->started, &h->stopped);
	const struct vm_tsc *tsc = &g->before[0];
	if (!h->tsc || !host || !g->vm->vcpus || !tsc->known)
		return 0;
	const uint128 x = (uint128)host * tsc->ratio >> tsc->bits;
	return x > INT64_MAX ? 0 : (uint64_t)x;
}

/* Lists events that are normally recorded on this architecture, but not available in the guest (`had`: recorded events). */
static void put_missing(struct yaml_out *o, const char *machine, const char *had)
{
	size_t n;
	char **wanted = events_wanted(SIDE_GUEST, machine ? machine : "", NULL, 0, &n);
	const int list = yaml_out_list(o, YAML_OUT_ROOT, "missing");
	char *spaced = mem_printf(" %s ", had ? had : "");
	for (size_t i = 0; i < n; i++) {
		char *name = mem_printf(" %s ", wanted[i]);
		if (!strstr(spaced, name))
			yaml_out_text(o, list, NULL, wanted[i]);
		free(name);
	}
	free(spaced);
	events_free(wanted, n);
}

/* Checks that the recording's reader can convert the guest's clock to ns. */
static int check_clock(const struct guest *g, bool is_tsc, uint64_t millihertz, struct error *err)
{
	const struct clock_sample *a = &g->started, *b = &g->stopped;
	if (a->known && b->known && b->clock < a->clock)
		return error_set(err, STATUS_INPUT, "record again", "the guest's trace clock ran backwards");
	if (is_tsc && !millihertz && !(a->known && b->known && a->clock && b->clock > a->clock && b->realtime > a->realtime))
		return error_set(err, STATUS_INPUT, "use --clock mono, or record for at least 2 s",
		                 "the frequency of the guest's TSC is unknown");
	return 0;
}

int metadata_write_guest(const struct guest *g, const struct host *h, struct error *err)
{
	struct yaml_out *o = yaml_out_new();
	static const char *const keys[][2] = {
		{ "hostname", "hostname" }, { "osrelease", "release" }, { "version", "version" }, { "machine", "machine" },
	};
	char *clock = guest_field(g, "clock"), *events = guest_field(g, "events"), *machine = guest_field(g, "machine");
	char *rest = NULL, *copy = mem_dup(events ? events : "");
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		char *value = guest_field(g, keys[i][0]);
		yaml_out_escaped(o, YAML_OUT_ROOT, keys[i][1], value);
		free(value);
	}
	const bool is_tsc = clock && strcmp(clock, "x86-tsc") == 0;
	const uint64_t millihertz = is_tsc ? tsc_frequency(g, h) : 0;
	const int rc = check_clock(g, is_tsc, millihertz, err);
	yaml_out_number(o, YAML_OUT_ROOT, "cpus", g->cpus);
	put_clock(o, is_tsc ? "x86-tsc" : "mono", millihertz, &g->started, &g->stopped);
	put_tscs(o, "tsc_before", g, g->before);
	put_tscs(o, "tsc_after", g, g->after);
	yaml_out_count(o, YAML_OUT_ROOT, "buffer_kb", g->kilobytes);
	yaml_out_count(o, YAML_OUT_ROOT, "bytes", g->bytes);
	yaml_out_count(o, YAML_OUT_ROOT, "lost", g->lost);
	char *steal = guest_field(g, "steal");
	if (steal)
		yaml_out_text(o, YAML_OUT_ROOT, "steal", strcmp(steal, "event_probes") == 0 ? "event_probes" : "none");
	free(steal);
	if (h->hold)
		yaml_out_number(o, YAML_OUT_ROOT, "kept", h->hold);
	const int list = yaml_out_list(o, YAML_OUT_ROOT, "events");
	for (char *name = strtok_r(copy, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
		yaml_out_escaped(o, list, NULL, name);
	put_missing(o, machine, events);
	guest_requests_put(g->requests, o);
	char *const all[] = { clock, events, machine, copy };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		free(all[i]);
	return metadata_save(o, rc ? -1 : g->dir, "about.yaml", err) || rc ? -1 : 0;
}

/* ---- the session */

/* Returns true if a guest has a trace or vCPUs with known threads; session.yaml omits other guests. */
static bool is_listed(const struct guest *g)
{
	return g->state == GUEST_SENT || g->vm->unmapped < g->vm->vcpus;
}

static void put_guest(struct yaml_out *o, int list, const struct session_metadata *s, size_t i,
                      const struct topology *topology)
{
	const struct guest *g = s->guest[i];
	const int map = yaml_out_map(o, list, NULL);
	struct vm_tsc tsc;
	const char *why;
	yaml_out_text(o, map, "name", g->vm->name);
	if (g->state == GUEST_SENT) {
		char *dir = mem_printf("guest-%s", g->vm->dir);
		yaml_out_text(o, map, "dir", dir);
		free(dir);
	}
	const int vcpus = g->vm->unmapped < g->vm->vcpus ? yaml_out_braces(o, map, "vcpus") : 0;
	for (size_t k = 0; k < g->vm->vcpus; k++) {
		char number[16];
		snprintf(number, sizeof number, "%u", g->vm->vcpu[k].number);
		if (g->vm->vcpu[k].tid)
			yaml_out_number(o, vcpus, number, g->vm->vcpu[k].tid);
	}
	if (g->state == GUEST_SENT && metadata_find_tsc(g, s->host, &tsc, &why))
		put_tsc(o, map, "tsc", &tsc);
	cgroups_put_threads(o, map, s->before[i], s->after[i]);
	topology_put_memory(o, map, topology, g->vm->name);
	const int facts = yaml_out_map(o, map, "facts");
	char *transport = transport_text(&g->transport);
	yaml_out_escaped(o, facts, "through", transport);
	if (g->state == GUEST_SENT && !s->host->xen && !metadata_find_tsc(g, s->host, &tsc, &why))
		yaml_out_text(o, facts, "no_tsc", why);
	if (g->state == GUEST_FAILED)
		yaml_out_text(o, facts, "not_recorded", g->failure.text);
	facts_put_vm(o, facts, s->host->root, g->vm, s->before[i], s->after[i]);
	free(transport);
}

/* Reads the topology of the host and its VMs' memory after the recording, because numa_maps may take long. */
static void read_topology(const struct session_metadata *s, struct topology *topology)
{
	topology_facts_read(topology, s->host->root);
	for (size_t i = 0; i < s->guests; i++) {
		const struct vm *vm = s->guest[i]->vm;
		if (is_listed(s->guest[i]))
			topology_facts_read_memory(topology, s->host->root, vm->pid, vm->name);
		for (size_t k = 0; k < vm->vcpus && !*s->host->root; k++)
			topology->core_scheduling = topology->core_scheduling || topology_facts_has_cookie(vm->vcpu[k].tid);
	}
}

int metadata_write_session(const struct session_metadata *s, int dir, struct error *err)
{
	struct yaml_out *o = yaml_out_new();
	char name[256] = "";
	struct topology topology = { 0 };
	if (!s->host->xen)
		read_topology(s, &topology);
	yaml_out_text(o, YAML_OUT_ROOT, "sync", s->sync);
	const int host = yaml_out_map(o, YAML_OUT_ROOT, "host");
	gethostname(name, sizeof name - 1);
	yaml_out_escaped(o, host, "name", s->host->xen || !*name ? "host" : name);
	yaml_out_text(o, host, "dir", "host");
	cgroups_put_weights(o, host, s->before, s->after, s->guests + 1);
	cgroups_put_threads(o, host, s->before[s->guests], s->after[s->guests]);
	cgroups_put_list(o, host, s->before[s->guests], s->after[s->guests], s->host->throttled);
	topology_put(o, host, &topology);
	const int guests = s->guests || s->host->xen ? yaml_out_list(o, YAML_OUT_ROOT, "guests") : 0;
	if (s->host->xen) {
		const int dom0 = yaml_out_map(o, guests, NULL);
		yaml_out_text(o, dom0, "name", XEN_DOM0_NAME);
		yaml_out_text(o, dom0, "dir", XEN_DOM0_DIR);
	}
	for (size_t i = 0; i < s->guests; i++)
		if (is_listed(s->guest[i]))
			put_guest(o, guests, s, i, &topology);
	topology_release(&topology);
	return metadata_save(o, dir, "session.yaml", err);
}
