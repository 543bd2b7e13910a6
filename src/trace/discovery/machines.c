/* Whose traces they are: the places of each machine, the sources that they make up, and the machines' names. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/load.h"

static bool has_layouts(const struct load_machine *m, const char *named)
{
	return !named || !m->spec->layout ? named == m->spec->layout : strcmp(named, m->spec->layout) == 0;
}

/* What an earlier machine has loaded is read no second time. */
static int load_layouts(const struct load *l, size_t machine, struct error *err)
{
	struct load_machine *m = &l->machine[machine];
	size_t cap = 0, first = 0;
	while (!has_layouts(&l->machine[first], m->spec->layout))
		first++;
	if (first < machine) {
		m->layout = l->machine[first].layout;
		m->layouts = l->machine[first].layouts;
		m->borrows = true;
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

/* A rotating tracer splits a trace into several folders. */
static struct source *source_of(struct load *l, size_t machine, const struct place *p)
{
	const struct load_machine *m = &l->machine[machine];
	for (size_t i = 0; i < l->sources; i++) {
		struct source *s = l->source[i];
		if (s->machine == machine && s->reader == p->reader && *p->meta.uuid &&
		    strcmp(s->place[0]->meta.uuid, p->meta.uuid) == 0)
			return s;
	}
	struct source *s = *ARRAY_PUSH(l->source, l->sources, l->sources_cap) = mem_new(1, sizeof *s);
	s->reader = p->reader;
	s->machine = machine;
	s->beside = m->spec->beside;
	s->meaning.names = &m->trace->names;
	s->meaning.layout = (const struct layout *const *)m->layout;
	s->meaning.layouts = m->layouts;
	s->options = l->options;
	s->only = l->options->only ? &l->options->only[machine] : NULL;
	m->trace->names.of_events = s->only != NULL;
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

static void add_places(struct load *l, size_t machine)
{
	struct load_machine *m = &l->machine[machine];
	for (size_t i = 0; i < m->places; i++) {
		const struct place *p = &m->place[i];
		struct source *s = source_of(l, machine, p);
		*ARRAY_PUSH(s->place, s->places, s->places_cap) = p;
		s->bytes += p->bytes;
		m->trace->info.bytes += p->bytes;
		add_uuid(m->trace, p->meta.uuid);
	}
}

static void take_names(struct trace *t, const struct place *p)
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
	names_init(&t->names);
	store_ref(l->store);
	t->store = l->store;
	t->dir = mem_dup(spec->dir);
	t->uuid = mem_dup("");
	m->place = spec->place;
	m->places = spec->places;
	if (load_layouts(l, i, err) || (!m->place && places_find(spec->dir, &m->place, &m->places, NULL, err)))
		return -1;
	for (size_t k = 1; k < m->places; k++)
		if (!place_same_machine(&m->place[0], &m->place[k]))
			return error_set(err, STATUS_INPUT, "give each machine its own folder",
			                 "%s: holds traces of different machines or boots: %s and %s", spec->dir,
			                 m->place[0].path, m->place[k].path);
	t->hostname = mem_dup(m->place[0].meta.hostname);
	t->tracer = mem_dup(m->place[0].meta.tracer);
	take_names(t, &m->place[0]);
	t->info.scale = m->place[0].scale;
	t->info.corrected = m->place[0].corrected && (l->options->as_corrected || !m->place[0].restored);
	add_places(l, i);
	return 0;
}

/* ---- names */

/* What a host that was recorded together with its guests calls this one. */
static const char *recorded_name(const struct load *l, const struct place *p)
{
	for (size_t i = 0; i < l->machines; i++) {
		const struct place *host = &l->machine[i].place[0];
		for (size_t k = 0; p->id && k < host->guests; k++)
			if (host->guest[k].id == p->id)
				return host->guest[k].name;
	}
	return NULL;
}

static const char *machine_of(const struct load *l, const struct recorded_guest *g)
{
	for (size_t i = 0; i < l->machines; i++) {
		const struct place *p = &l->machine[i].place[0];
		if (p->id && p->id == g->id)
			return l->machine[i].trace->machine;
	}
	return g->name;
}

/* The threads that the host's tracer wrote down, by the names that their machines have got. */
static void name_vcpus(struct load *l, size_t i)
{
	const struct place *p = &l->machine[i].place[0];
	struct trace *t = l->machine[i].trace;
	for (size_t k = 0; k < p->guests; k++) {
		const struct recorded_guest *g = &p->guest[k];
		const char *guest = machine_of(l, g);
		for (size_t v = 0; *guest && v < g->vcpus; v++)
			*ARRAY_PUSH(t->vcpu, t->vcpus, t->vcpus_cap) =
				(struct trace_vcpu){ mem_dup(guest), g->vcpu[v].cpu, (int32_t)g->vcpu[v].tid };
	}
}

static char *base_name(const struct load *l, const struct load_machine *m)
{
	const struct trace *t = m->trace;
	if (m->spec->name)
		return mem_dup(m->spec->name);
	if (m->place[0].is_file)
		return naming_file(m->place[0].path, recorded_name(l, &m->place[0]), t->hostname);
	return *t->hostname ? mem_dup(t->hostname) : naming_folder(m->spec->dir);
}

static bool has_name(const struct load_machine *m, const char *name)
{
	return m->trace->machine && strcmp(m->trace->machine, name) == 0;
}

static void name_machine(struct load *l, size_t i)
{
	struct load_machine *m = &l->machine[i];
	struct trace *t = m->trace;
	char *base = base_name(l, m);
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

int machines_open(struct load *l, const struct trace_spec *spec, struct error *err)
{
	for (size_t i = 0; i < l->machines; i++)
		if (open_machine(l, i, &spec[i], err))
			return -1;
	/* What the user calls one is its name, whatever others' traces say. */
	for (int given = 1; given >= 0; given--)
		for (size_t i = 0; i < l->machines; i++)
			if ((spec[i].name != NULL) == given)
				name_machine(l, i);
	for (size_t i = 0; i < l->machines; i++)
		name_vcpus(l, i);
	return 0;
}

/* ---- what only decoding told */

static void describe(struct trace *t, const struct metadata *m)
{
	add_uuid(t, m->uuid);
	if (*t->tracer)
		return;
	free(t->tracer);
	t->tracer = mem_dup(m->tracer);
}

/* The kernel's trace first, as its streams come first. */
void machines_describe(struct load *l)
{
	for (size_t i = 0; i < l->sources; i++) {
		const struct source *s = l->source[i];
		for (int other = 0; other < 2; other++)
			for (size_t k = 0; k < s->traces; k++)
				if ((strcmp(s->trace[k].domain, "kernel") != 0) == other)
					describe(l->machine[s->machine].trace, &s->trace[k]);
	}
}

void machines_release(struct load *l)
{
	for (size_t i = 0; i < l->machines; i++) {
		struct load_machine *m = &l->machine[i];
		for (size_t k = 0; k < m->layouts && !m->borrows; k++)
			layout_free(m->layout[k]);
		if (!m->borrows)
			free(m->layout);
		if (m->spec && m->place != m->spec->place)
			places_free(m->place, m->places);
		trace_free(m->trace);
	}
	free(l->machine);
}
