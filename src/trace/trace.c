/* Access to a loaded trace: description, strings, CPUs. */
#include "trace/trace.h"

#include "trace/internal.h"

#define KIND_NAME(code, name, args) [code] = name,
const char *const event_kind_name[EVENT_KIND_COUNT] = { EVENT_KINDS(KIND_NAME) };
#undef KIND_NAME

#define KIND_ARGS(code, name, args) [code] = args,
const unsigned char event_args[EVENT_KINDS_MAX] = { EVENT_KINDS(KIND_ARGS) };
#undef KIND_ARGS

#define ASSERT_ARG_COUNT(code, name, args) _Static_assert(args <= EVENT_ARGS, name " has more arguments than an event");
EVENT_KINDS(ASSERT_ARG_COUNT)
#undef ASSERT_ARG_COUNT

void trace_free(struct trace *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->streams; i++)
		stream_release(&t->stream[i], t->store);
	free(t->stream);
	free(t->cpu);
	free(t->setback);
	for (size_t i = 0; i < t->vcpus; i++)
		free(t->vcpu[i].guest);
	free(t->vcpu);
	store_unref(t->store);
	string_table_release(&t->names);
	free(t->saved_names);
	free(t->dir);
	free(t->machine);
	free(t->hostname);
	free(t->vm_id);
	free(t->tracer);
	free(t->layout);
	free(t->uuid);
	free(t);
}

const struct trace_info *trace_info(const struct trace *t)
{
	return &t->info;
}

const char *trace_string(const struct trace *t, int64_t id)
{
	return id < 0 || id > UINT32_MAX ? "" : strtab_get(&t->names.tab, (uint32_t)id);
}

const char *trace_find_saved_name(const struct trace *t, int32_t tid)
{
	for (size_t at = 0; at < t->saved_bytes; at += strlen(t->saved_names + at) + 1) {
		char *name;
		if (strtol(t->saved_names + at, &name, 10) == tid && *name == ' ')
			return name + 1;
	}
	return "";
}

/* ---- traces made from a list of events */

static void exit_on_error(int status, const struct error *err)
{
	if (status) {
		fprintf(stderr, "stealscope: %s\n", err->text);
		exit(STATUS_SYSTEM);
	}
}

static void summarize_streams(struct trace *t, enum trace_role role)
{
	struct trace_info *info = &t->info;
	event_kinds kinds = 0;
	info->begin = INT64_MAX;
	info->end = INT64_MIN;
	for (size_t i = 0; i < t->streams; i++) {
		const struct stream *s = &t->stream[i];
		info->events += s->events;
		kinds |= s->kinds;
		if (s->begin < info->begin)
			info->begin = s->begin;
		if (s->end > info->end)
			info->end = s->end;
		if (s->kinds && s->cpus.max + 1U > info->cpus)
			info->cpus = s->cpus.max + 1U;
	}
	info->kinds = kinds;
	info->has_vcpu_states = (kinds & KIND(EV_VCPU_STATE)) != 0;
	info->has_guest_mode = info->has_vcpu_states || (kinds & (KIND(EV_VCPU_ENTRY) | KIND(EV_VCPU_EXIT)));
	info->role = role != ROLE_UNKNOWN ? role : info->has_guest_mode ? ROLE_HOST : ROLE_GUEST;
}

void trace_add_coverage(struct trace *t, unsigned cpu, int64_t begin, int64_t end, bool is_recorded)
{
	if (cpu >= t->cpus) {
		t->cpu = mem_resize(t->cpu, cpu + 1U, sizeof *t->cpu);
		while (t->cpus <= cpu)
			t->cpu[t->cpus++] = (struct trace_cpu){ .begin = INT64_MAX, .end = INT64_MIN };
	}
	struct trace_cpu *c = &t->cpu[cpu];
	c->begin = begin < c->begin ? begin : c->begin;
	c->end = end > c->end ? end : c->end;
	c->is_recorded |= is_recorded;
}

/* Extends the recorded intervals of the CPUs to include the streams' events. For a stream with several CPUs, the
 * first event of each CPU is unknown, so the stream's interval counts for all its CPUs. */
static void add_event_coverage(struct trace *t)
{
	for (size_t i = 0; i < t->streams; i++) {
		const struct stream *s = &t->stream[i];
		for (int cpu = s->cpus.min; cpu <= s->cpus.max && s->begin <= s->end; cpu++)
			if (cpu_set_has(&s->cpus, cpu))
				trace_add_coverage(t, (unsigned)cpu, s->begin, s->end, false);
	}
	if (t->info.cpus)
		trace_add_coverage(t, t->info.cpus - 1, INT64_MAX, INT64_MIN, false);
	for (size_t i = 0; i < t->cpus; i++) {
		struct trace_cpu *c = &t->cpu[i];
		c->begin = c->begin < t->info.begin ? t->info.begin : c->begin;
		c->end = c->end > t->info.end ? t->info.end : c->end;
	}
}

static void find_missing_cpus(struct trace *t)
{
	struct destinations sent = NO_DESTINATIONS;
	for (size_t i = 0; i < t->streams; i++)
		destinations_add(&sent, &t->stream[i].sent);
	for (int cpu = sent.once.min; cpu <= sent.once.max; cpu++) {
		if (!cpu_set_has(&sent.once, cpu))
			continue;
		trace_add_coverage(t, (unsigned)cpu, INT64_MAX, INT64_MIN, false);
		struct trace_cpu *c = &t->cpu[cpu];
		c->nowhere = !c->is_recorded && c->begin > c->end;
		c->missing = c->nowhere && cpu_set_has(&sent.repeated, cpu);
	}
	destinations_release(&sent);
}

void trace_publish(struct trace *t, enum trace_role role)
{
	struct trace_info *info = &t->info;
	info->dir = t->dir;
	info->machine = t->machine;
	info->hostname = t->hostname;
	info->vm_id = t->vm_id ? t->vm_id : "";
	info->tracer = t->tracer;
	info->layout = t->layout;
	info->uuid = t->uuid;
	info->vcpu = t->vcpu;
	info->vcpus = t->vcpus;
	summarize_streams(t, role);
	add_event_coverage(t);
	find_missing_cpus(t);
	info->cpu = t->cpu;
	info->cpus_listed = (unsigned)t->cpus;
}

struct trace *trace_from_events(const char *machine, enum trace_role role, const struct event *ev, size_t n,
                                const char *const *strings, size_t nstrings)
{
	struct error err = ERROR_INIT;
	struct trace *t = mem_new(1, sizeof *t);
	string_table_init(&t->names);
	for (size_t i = 0; i < nstrings; i++)
		strtab_put(&t->names.tab, strings[i]);
	size_t cpus = 0;
	for (size_t i = 0; i < n; i++)
		cpus = ev[i].cpu >= cpus ? ev[i].cpu + 1U : cpus;
	t->store = store_new(SIZE_MAX, NULL, &err);
	exit_on_error(!t->store, &err);
	t->streams = cpus;
	t->stream = mem_new(cpus + 1, sizeof *t->stream);
	for (size_t cpu = 0; cpu < cpus; cpu++) {
		struct writer w;
		stream_init(&t->stream[cpu]);
		writer_open(&w, t->store, &t->stream[cpu]);
		for (size_t i = 0; i < n; i++) {
			if (ev[i].cpu == cpu)
				exit_on_error(writer_put(&w, &ev[i], &err), &err);
			if (ev[i].cpu == cpu && ev[i].kind == EV_LOST && ev[i].lost.count != EVENT_ABSENT)
				t->info.lost += (uint64_t)ev[i].lost.count;
		}
		exit_on_error(writer_close(&w, &err), &err);
	}
	t->dir = mem_dup("");
	t->machine = mem_dup(machine);
	t->hostname = mem_dup(machine);
	t->tracer = mem_dup("");
	t->layout = mem_dup("");
	t->uuid = mem_dup("");
	trace_publish(t, role);
	return t;
}
