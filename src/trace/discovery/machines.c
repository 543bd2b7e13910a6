/* Machines of a load: finds their locations, groups these into sources, and sets the machines' names. */
#include "base/base.h"
#include "trace/load.h"

static bool uses_layout(const struct load_machine *m, const char *named)
{
	return !named || !m->spec->layout ? named == m->spec->layout : strcmp(named, m->spec->layout) == 0;
}

/* Loads a machine's layouts, or borrows the layouts of an earlier machine with the same spec->layout. */
static int load_layouts(const struct load *l, size_t machine, struct error *err)
{
	struct load_machine *m = &l->machine[machine];
	size_t cap = 0, first = 0;
	while (!uses_layout(&l->machine[first], m->spec->layout))
		first++;
	if (first < machine) {
		m->layout = l->machine[first].layout;
		m->layouts = l->machine[first].layouts;
		m->borrows_layouts = true;
		return 0;
	}
	for (size_t i = 0; m->spec->layout ? i == 0 : layout_shipped(i) != NULL; i++) {
		struct layout *layout = layout_load(m->spec->layout ? m->spec->layout : layout_shipped(i), err);
		if (!layout)
			return -1;
		*ARRAY_PUSH(m->layout, m->layouts, cap) = layout;
	}
	return 0;
}

/* ---- sources */

/* Returns a location's source: the existing source of the same trace, if a rotating tracer wrote several
 * directories, otherwise a new source. */
static struct source *find_source(struct load *l, size_t machine, const struct trace_location *p)
{
	const struct load_machine *m = &l->machine[machine];
	for (size_t i = 0; i < l->sources; i++) {
		struct source *s = l->source[i];
		if (s->machine == machine && s->reader == p->reader && *p->meta.uuid &&
		    strcmp(s->location[0]->meta.uuid, p->meta.uuid) == 0)
			return s;
	}
	struct source *s = *ARRAY_PUSH(l->source, l->sources, l->sources_cap) = mem_new(1, sizeof *s);
	s->reader = p->reader;
	s->machine = machine;
	s->skippable = m->spec->skippable;
	s->mapping.names = &m->trace->names;
	s->mapping.layout = (const struct layout *const *)m->layout;
	s->mapping.layouts = m->layouts;
	s->options = l->options;
	s->window = l->options->window ? &l->options->window[machine] : NULL;
	m->trace->names.store_event_names = s->window != NULL;
	s->workers = l->workers;
	return s;
}

static void add_uuid(struct trace *t, const char *uuid)
{
	if (!*uuid || strstr(t->uuid, uuid))
		return;
	char *both = mem_printf("%s%s%s", t->uuid, *t->uuid ? "," : "", uuid);
	free(t->uuid);
	t->uuid = both;
}

static void add_locations(struct load *l, size_t machine)
{
	struct load_machine *m = &l->machine[machine];
	for (size_t i = 0; i < m->locations; i++) {
		const struct trace_location *p = &m->location[i];
		struct source *s = find_source(l, machine, p);
		*ARRAY_PUSH(s->location, s->locations, s->locations_cap) = p;
		s->bytes += p->bytes;
		m->trace->info.bytes += p->bytes;
		add_uuid(m->trace, p->meta.uuid);
	}
}

static void copy_saved_names(struct trace *t, const struct trace_location *p)
{
	t->saved_names = p->saved_names ? memcpy(mem_new(p->saved_bytes + 1, 1), p->saved_names, p->saved_bytes) : NULL;
	t->saved_bytes = p->saved_bytes;
	for (size_t i = 0; i < t->saved_bytes; i++)
		if (t->saved_names[i] == '\n')
			t->saved_names[i] = '\0';
}

static int open_machine(struct load *l, size_t i, const struct trace_spec *spec, struct error *err)
{
	struct load_machine *m = &l->machine[i];
	m->spec = spec;
	m->trace = mem_new(1, sizeof *m->trace);
	struct trace *t = m->trace;
	string_table_init(&t->names);
	store_ref(l->store);
	t->store = l->store;
	t->dir = mem_dup(spec->dir);
	t->uuid = mem_dup("");
	m->location = spec->location;
	m->locations = spec->locations;
	if (load_layouts(l, i, err) ||
	    (!m->location && find_locations(spec->dir, &m->location, &m->locations, false, NULL, err)))
		return -1;
	for (size_t k = 1; k < m->locations; k++)
		if (!location_same_machine(&m->location[0], &m->location[k]))
			return error_set(err, STATUS_INPUT, "put the traces of each machine into a directory of its own",
			                 "%s: contains traces of different machines or boots: %s and %s", spec->dir,
			                 m->location[0].path, m->location[k].path);
	t->hostname = mem_dup(m->location[0].meta.hostname);
	t->vm_id = mem_dup(m->location[0].meta.vm_id);
	t->info.guest_only = m->location[0].meta.guest_only;
	t->info.is_monotonic = m->location[0].meta.is_monotonic;
	t->info.realtime_error = m->location[0].meta.realtime_error;
	t->tracer = mem_dup(m->location[0].meta.tracer);
	copy_saved_names(t, &m->location[0]);
	t->info.name_is_given = spec->name != NULL;
	t->info.scale = m->location[0].scale;
	t->info.in_cycles = m->location[0].in_cycles;
	t->info.corrected = m->location[0].has_correction && l->options->as_corrected;
	add_locations(l, i);
	return 0;
}

/* ---- names */

/* Returns the name that the host's recording contains for this location's guest; NULL: the host's recording does
 * not list it. */
static const char *recorded_name(const struct load *l, const struct trace_location *p)
{
	for (size_t i = 0; i < l->machines; i++) {
		const struct trace_location *host = &l->machine[i].location[0];
		for (size_t k = 0; p->id && k < host->guests; k++)
			if (host->guest[k].id == p->id)
				return host->guest[k].name;
	}
	return NULL;
}

static const char *guest_machine_name(const struct load *l, const struct recorded_guest *g)
{
	for (size_t i = 0; i < l->machines; i++) {
		const struct trace_location *p = &l->machine[i].location[0];
		if (p->id && p->id == g->id)
			return l->machine[i].trace->machine;
	}
	return g->name;
}

/* Copies the vCPU threads that the host's tracer recorded, with the guests' final names. */
static void name_vcpus(struct load *l, size_t i)
{
	const struct trace_location *p = &l->machine[i].location[0];
	struct trace *t = l->machine[i].trace;
	for (size_t k = 0; k < p->guests; k++) {
		const struct recorded_guest *g = &p->guest[k];
		const char *guest = guest_machine_name(l, g);
		for (size_t v = 0; *guest && v < g->vcpus; v++)
			*ARRAY_PUSH(t->vcpu, t->vcpus, t->vcpus_cap) =
				(struct trace_vcpu){ mem_dup(guest), g->vcpu[v].cpu, (int32_t)g->vcpu[v].tid };
	}
}

static char *default_name(const struct load *l, const struct load_machine *m)
{
	const struct trace *t = m->trace;
	if (m->spec->name)
		return mem_dup(m->spec->name);
	if (m->location[0].is_file)
		return machine_name_of_file(m->location[0].path, recorded_name(l, &m->location[0]), t->hostname);
	return *t->hostname ? mem_dup(t->hostname) : machine_name_of_dir(m->spec->dir);
}

static bool has_name(const struct load_machine *m, const char *name)
{
	return m->trace->machine && strcmp(m->trace->machine, name) == 0;
}

static void name_machine(struct load *l, size_t i)
{
	struct load_machine *m = &l->machine[i];
	struct trace *t = m->trace;
	char *base = default_name(l, m);
	t->machine = mem_dup(base);
	for (unsigned number = 2;; number++) {
		size_t j = 0;
		while (j < l->machines && (j == i || !has_name(&l->machine[j], t->machine)))
			j++;
		if (j == l->machines)
			break;
		free(t->machine);
		t->machine = mem_printf("%s-%u", base, number);
	}
	free(base);
}

static void set_tsc_rate(struct load_machine *m, uint64_t millihertz)
{
	struct trace_location *p = &m->location[0];
	if (p->reader->set_tsc_rate)
		p->reader->set_tsc_rate(p, millihertz);
	m->trace->info.scale = p->scale;
	m->trace->info.in_cycles = p->in_cycles && !p->scale.millihertz;
}

/* Gives the TSC's rate that a hypervisor's trace contains, or the user's, to this trace and to those of its VMs that were
 * recorded without it. */
static void share_tsc_rate(struct load *l)
{
	uint64_t millihertz = 0;
	for (size_t i = 0; i < l->machines && !millihertz; i++) {
		struct trace_location *p = &l->machine[i].location[0];
		if (!p->reader->has_own_events || !p->scale.is_tsc)
			continue;
		millihertz = p->scale.millihertz ? p->scale.millihertz : (uint64_t)l->options->tsc_hz * 1000;
	}
	for (size_t i = 0; i < l->machines; i++)
		if (millihertz || l->machine[i].spec->tsc_millihertz)
			set_tsc_rate(&l->machine[i], millihertz ? millihertz : l->machine[i].spec->tsc_millihertz);
}

int machines_open(struct load *l, const struct trace_spec *spec, struct error *err)
{
	for (size_t i = 0; i < l->machines; i++)
		if (open_machine(l, i, &spec[i], err))
			return -1;
	share_tsc_rate(l);
	/* Machines with a name given by the user are named first, so that others get the numbered names. */
	for (int given = 1; given >= 0; given--)
		for (size_t i = 0; i < l->machines; i++)
			if ((spec[i].name != NULL) == given)
				name_machine(l, i);
	for (size_t i = 0; i < l->machines; i++)
		name_vcpus(l, i);
	return 0;
}

/* ---- after decoding */

static void describe_trace(struct trace *t, const struct metadata *m)
{
	add_uuid(t, m->uuid);
	if (*t->tracer)
		return;
	free(t->tracer);
	t->tracer = mem_dup(m->tracer);
}

/* Adds UUIDs and tracers in the streams' order: kernel traces first. */
void machines_describe(struct load *l)
{
	for (size_t i = 0; i < l->sources; i++) {
		const struct source *s = l->source[i];
		for (int other = 0; other < 2; other++)
			for (size_t k = 0; k < s->traces; k++)
				if ((strcmp(s->trace[k].domain, "kernel") != 0) == other)
					describe_trace(l->machine[s->machine].trace, &s->trace[k]);
	}
}

void machines_release(struct load *l)
{
	for (size_t i = 0; i < l->machines; i++) {
		struct load_machine *m = &l->machine[i];
		for (size_t k = 0; k < m->layouts && !m->borrows_layouts; k++)
			layout_free(m->layout[k]);
		if (!m->borrows_layouts)
			free(m->layout);
		if (m->spec && m->location != m->spec->location)
			locations_free(m->location, m->locations);
		trace_free(m->trace);
	}
	free(l->machine);
}
