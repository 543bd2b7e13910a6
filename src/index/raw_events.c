/* Raw events of a short window, read from a history's traces.
 *
 * The history contains the location and fingerprint of the traces (fingerprint.h) and the clocks (provenance.h). The
 * window is converted to each machine's own clock, and that part of the trace is decoded (struct trace_window). The time
 * of each event is then converted to the host's clock, with the same result as when the history was built. Cost: opening
 * the traces, and decoding the packets (CTF) or pages that may contain events of the window. */
#include "base/base.h"
#include "index/index.h"

#include "base/json_field.h"
#include "index/fingerprint.h"
#include "index/provenance.h"
#include "model/model.h"

#define CONVERSION_ERROR_NS 40  /* maximum error of a time converted to the machine's clock, ns, or TSC cycles: 31 per ns */
/* Limits of the drift, units of 2^-60. ns of another clock drift by less than 1/2; TSC cycles count from 1/7 to 31 per
 * ns. */
#define DRIFT_MAX (INT64_C(7) << 60)
#define DRIFT_MIN (-(INT64_C(31) << 55))

struct raw_events_source {                 /* trace of one machine */
	char *name;                 /* name in the history */
	struct clock_map clock;     /* no segments: the host's clock */
	struct trace *trace;
	struct trace_cursor *cursor;
	struct event ev;
	int64_t t;                  /* time of ev on the host's clock, ns; INT64_MAX: no more events */
};

struct raw_events {
	int64_t from, to;
	struct raw_events_source *source;
	size_t sources;
	FILE *out;                  /* memory stream into `fields`; `length` is not used */
	char *fields;
	size_t length;
};

/* ---- finding the traces */

static bool row_matches_spec(struct json_object *row, const struct trace_spec *s)
{
	char name[512];
	if (strcmp(json_member_text(row, "role"), "host") == 0 || s->role == ROLE_HOST)
		return s->role == ROLE_HOST && strcmp(json_member_text(row, "role"), "host") == 0;
	return s->name && strcmp(json_member_text(row, "machine"), text_escape(name, sizeof name, s->name)) == 0;
}

/* Sorts the specifications in the order of the traces in the history, which is the order of the fingerprint. Fails if
 * they do not match. */
static int sort_specs(struct input *in, struct json_object *doc, struct error *err)
{
	struct json_object *rows = json_member_array(doc, "traces");
	const size_t n = rows ? json_object_array_length(rows) : 0;
	for (size_t i = 0; i < n && i < in->specs; i++) {
		size_t k = i;
		while (k < in->specs && !row_matches_spec(json_object_array_get_idx(rows, i), &in->spec[k]))
			k++;
		if (k == in->specs)
			break;
		const struct trace_spec found = in->spec[k];
		in->spec[k] = in->spec[i];
		in->spec[i] = found;
		if (i + 1 == n && n == in->specs)
			return 0;
	}
	return error_set(err, STATUS_INPUT, "rebuild it with stealscope index",
	                 "the history does not identify its traces");
}

static int check_files(struct json_object *doc, const struct input *in, struct error *err)
{
	char why[512];
	struct json_object *then = json_member_array(doc, "files"), *now = fingerprint_make(in, err);
	if (!now)
		return -1;
	int rc = 0;
	if (!then || fingerprint_differs(then, now, why, sizeof why))
		rc = error_set(err, STATUS_INPUT, "index them again", "the traces have changed: %s", then ? why : "");
	json_object_put(now);
	return rc;
}

/* Copies the rates that converted cycles of the TSC. */
static void read_tsc_rates(struct input *in, struct json_object *doc)
{
	struct json_object *rows = json_member_array(doc, "traces");
	for (size_t i = 0; i < in->specs; i++) {
		const int64_t rate = json_member_int(json_object_array_get_idx(rows, i), "tsc_millihertz", 0);
		in->spec[i].tsc_millihertz = rate >= TSC_HZ_MIN * 1000 && rate <= TSC_HZ_MAX * 1000 ? (uint64_t)rate : 0;
	}
}

/* Finds the history's traces, and fails if they have changed. */
static int find_traces(const struct history *h, struct json_object *doc, struct input *in, struct error *err)
{
	struct json_object *files = json_member_array(doc, "files");
	*in = (struct input){ 0 };
	if (files && json_object_array_length(files) == 0 && !json_member_array(doc, "clocks"))
		return error_set(err, STATUS_INPUT, "use the history that it was cut from",
		                 "a cut history does not record the location of its traces");
	if (!json_member_array(doc, "clocks"))
		return error_set(err, STATUS_INPUT, "rebuild it with stealscope index",
		                 "the history was built by another version of stealscope");
	if (provenance_input(h, in, err))
		return error_wrap(err, "the traces of this history cannot be read");
	if (input_is_live(in))
		return error_set(err, STATUS_INPUT, "index the directory written by lttng-relayd",
		                 "live traces cannot be read again");
	if (sort_specs(in, doc, err) || check_files(doc, in, err))
		return -1;
	read_tsc_rates(in, doc);
	return 0;
}

/* ---- clocks */

static int read_clock(struct json_object *doc, const char *guest, struct clock_map *clock, struct error *err)
{
	struct json_object *rows = json_member_array(doc, "clocks");
	const size_t n = rows ? json_object_array_length(rows) : 0;
	clock->segment = mem_new(n + 1, sizeof *clock->segment);
	for (size_t i = 0; i < n; i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		if (strcmp(json_member_text(row, "guest"), guest) != 0)
			continue;
		struct clock_segment *p = &clock->segment[clock->segments++];
		p->from = json_member_int(row, "from_ns", INT64_MIN);
		p->line = (struct clock_line){ json_member_int(row, "ref_guest_ns", 0), json_member_int(row, "ref_host_ns", 0),
			json_member_int(row, "drift", 0) };
		if (p->line.drift > DRIFT_MAX || p->line.drift < DRIFT_MIN)
			return error_set(err, STATUS_INPUT, "rebuild it with stealscope index", "%s: impossible clock in the history",
			                 guest);
	}
	return 0;
}

/* Returns the guest's time that the line maps to a host time, ns, with an error of at most CONVERSION_ERROR_NS. */
static int64_t line_inverse(const struct clock_line *l, int64_t host)
{
	const int128 one = (int128)1 << 60, dt = (int128)host - l->ref_host;
	const int128 back = (int128)l->ref_guest + dt - dt * l->drift / (one + l->drift);
	return back > INT64_MAX ? INT64_MAX : back < INT64_MIN ? INT64_MIN : (int64_t)back;
}

static int64_t add_saturated(int64_t a, int64_t b)
{
	int64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? (b < 0 ? INT64_MIN : INT64_MAX) : sum;
}

/* Returns a window on the machine's clock that contains all times which the clock maps to [from, to]. */
static struct trace_window machine_window(const struct clock_map *clock, int64_t from, int64_t to)
{
	if (!clock->segments)
		return (struct trace_window){ from, to };
	struct trace_window all = { INT64_MAX, INT64_MIN };
	for (size_t i = 0; i < clock->segments; i++) {
		const struct clock_segment *p = &clock->segment[i];
		const int64_t begin = i ? p->from : INT64_MIN;
		const int64_t end = i + 1 < clock->segments ? add_saturated(p[1].from, -1) : INT64_MAX;
		int64_t a = add_saturated(line_inverse(&p->line, from), -CONVERSION_ERROR_NS),
				b = add_saturated(line_inverse(&p->line, to), CONVERSION_ERROR_NS);
		a = a > begin ? a : begin;
		b = b < end ? b : end;
		if (a > b)
			continue;
		all.from = a < all.from ? a : all.from;
		all.to = b > all.to ? b : all.to;
	}
	return all;
}

/* ---- opening */

/* Returns the machine that runs a VM, from the provenance; NULL: not a VM. */
static const char *vm_parent(struct json_object *doc, const char *vm)
{
	struct json_object *rows = json_member_array(doc, "vms");
	for (size_t i = 0; rows && i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		if (strcmp(json_member_text(row, "vm"), vm) == 0)
			return json_member_text(row, "parent");
	}
	return NULL;
}

/* Returns true for the selected machine, its host and its outer guests. If the selected machine is neither the host nor
 * a VM, returns true for all machines. */
static bool is_selected(struct json_object *doc, const char *wanted, const char *machine)
{
	char of[512], name[512];
	if (!wanted)
		return true;
	const char *outer = text_escape(of, sizeof of, wanted);
	text_escape(name, sizeof name, machine);
	if (strcmp(outer, "host") != 0 && !vm_parent(doc, outer))
		return true;
	for (int depth = 0; outer && depth < 64; depth++, outer = vm_parent(doc, outer))
		if (strcmp(outer, name) == 0)
			return true;
	return false;
}

/* Collects the selected machines with their clocks and windows. Returns 0 or -1. */
static int select_machines(struct raw_events *m, const struct input *in, struct json_object *doc,
                           const struct raw_events_options *o, struct trace_spec *spec, struct trace_window *window,
                           struct error *err)
{
	for (size_t i = 0; i < in->specs; i++) {
		char guest[512];
		const bool is_host = in->spec[i].role == ROLE_HOST;
		const char *name = is_host ? "host" : in->spec[i].name;
		if (!is_selected(doc, o->machine, name))
			continue;
		struct raw_events_source *t = &m->source[m->sources];
		t->name = mem_dup(name);
		spec[m->sources] = in->spec[i];
		m->sources++;
		if (!is_host && read_clock(doc, text_escape(guest, sizeof guest, name), &t->clock, err))
			return -1;
		window[m->sources - 1] = machine_window(&t->clock, o->from, o->to);
	}
	return 0;
}

static int load_window(struct raw_events *m, const struct input *in, struct json_object *doc,
                       const struct raw_events_options *o, struct error *err)
{
	struct trace_spec *spec = mem_new(in->specs + 1, sizeof *spec);
	struct trace_window *window = mem_new(in->specs + 1, sizeof *window);
	struct trace **trace = mem_new(in->specs + 1, sizeof *trace);
	m->source = mem_new(in->specs + 1, sizeof *m->source);
	int rc = select_machines(m, in, doc, o, spec, window, err);
	struct notes notes = { 0 };
	const struct trace_options options = { .workers = o->jobs, .window = window,
		.progress = o->progress, .tsc_hz = in->sync_options.tsc_hz, .domain = in->domain, .domains = in->domains };
	if (!rc && m->sources)
		rc = trace_load(spec, m->sources, &options, trace, &notes, err);
	for (size_t i = 0; i < m->sources && !rc; i++)
		m->source[i].trace = trace[i];
	notes_release(&notes);  /* the history contains the notes of the whole traces */
	free(spec);
	free(window);
	free(trace);
	return rc;
}

/* Reads the machine's next event in the window. Times on the host's clock never decrease, as in the history. Returns 0
 * or -1. */
static int advance_source(const struct raw_events *m, struct raw_events_source *t, struct error *err)
{
	int got;
	while ((got = trace_cursor_next(t->cursor, &t->ev, err)) > 0) {
		const int64_t host = clock_map_at(&t->clock, t->ev.ts);
		t->t = host > t->t ? host : t->t;
		if (t->t >= m->from || (t->ev.kind == EV_LOST && clock_map_at(&t->clock, t->ev.lost.end) >= m->from))
			break;
	}
	if (got < 0)
		return -1;
	if (!got || t->t > m->to)
		t->t = INT64_MAX;
	return 0;
}

static int open_cursors(struct raw_events *m, struct error *err)
{
	for (size_t i = 0; i < m->sources; i++) {
		struct raw_events_source *t = &m->source[i];
		t->t = INT64_MIN;
		t->cursor = trace_cursor_open(t->trace, ALL_KINDS, -1, err);
		if (!t->cursor || advance_source(m, t, err))
			return -1;
	}
	return 0;
}

struct raw_events *raw_events_open(const struct history *h, const struct raw_events_options *o, struct error *err)
{
	struct raw_events *m = mem_new(1, sizeof *m);
	struct input in = { 0 };
	m->out = open_memstream(&m->fields, &m->length);
	struct json_object *doc = provenance_load(h, err);
	m->from = o->from;
	m->to = o->to;
	const int rc = !doc || find_traces(h, doc, &in, err) || load_window(m, &in, doc, o, err) || open_cursors(m, err);
	json_object_put(doc);
	input_release(&in);
	if (!rc)
		return m;
	raw_events_close(m);
	return NULL;
}

void raw_events_close(struct raw_events *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->sources; i++) {
		trace_cursor_close(m->source[i].cursor);
		trace_free(m->source[i].trace);
		clock_map_release(&m->source[i].clock);
		free(m->source[i].name);
	}
	free(m->source);
	fclose(m->out);
	free(m->fields);
	free(m);
}

/* ---- events as text */

static bool is_hex_field(const char *name)
{
	static const char *const names[] = { "ip", "address", "data", "icr", "timer", "function" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static void put_field(FILE *out, const char *name, const char *text, int64_t v)
{
	fprintf(out, "%s%s=", ftello(out) ? " " : "", name);
	if (text)
		fputs(text, out);
	else if (is_hex_field(name))
		fprintf(out, "0x%" PRIx64, (uint64_t)v);
	else
		fprintf(out, "%" PRId64, v);
}

static void put_fields(FILE *out, const struct trace *trace, const struct event *ev)
{
	if (ev->kind == EV_LOST) {
		int64_t ns;
		put_field(out, "for_ns", NULL, __builtin_sub_overflow(ev->lost.end, ev->ts, &ns) ? INT64_MAX : ns);
		if (ev->lost.count != EVENT_ABSENT)
			put_field(out, "count", NULL, ev->lost.count);
		return;
	}
	for (unsigned i = 0; i < event_args[ev->kind] && ev->kind != EV_NAMED; i++) {
		char number[EXIT_NAME];
		bool is_text;
		const char *name = event_arg_name((enum event_kind)ev->kind, i, &is_text);
		const char *text = is_text ? trace_string(trace, ev->arg[i]) : event_arg_word(ev, i);
		if (ev->kind == EV_VCPU_EXIT && &ev->arg[i] == &ev->vcpu_exit.reason)
			text = exit_name(ev, number);
		if (name && ev->arg[i] != EVENT_ABSENT)
			put_field(out, name, text, ev->arg[i]);
	}
}

static const char *fields_text(struct raw_events *m, const struct trace *trace, const struct event *ev)
{
	rewind(m->out);
	put_fields(m->out, trace, ev);
	putc('\0', m->out);
	fflush(m->out);
	return m->fields;
}

/* Returns the name of an event of a hypervisor with run states (Xen): kinds that it shares with KVM have KVM's names. */
static const char *name_without_kvm(const struct event *ev, const char *name)
{
	switch (ev->kind) {
	case EV_VCPU_ENTRY:
		return "vm_entry";
	case EV_VCPU_EXIT:
		return ev->vcpu_exit.isa == EXIT_ISA_XEN_PV ? "xen_pv_entry" : "vm_exit";
	case EV_HYPERCALL:
		return "hypercall";
	default:
		return name;
	}
}

int raw_events_next(struct raw_events *m, struct event_text *out, struct error *err)
{
	struct raw_events_source *first = NULL;
	for (size_t i = 0; i < m->sources; i++)
		if (m->source[i].t != INT64_MAX && (!first || m->source[i].t < first->t))
			first = &m->source[i];
	if (!first)
		return 0;
	const struct event *ev = &first->ev;
	*out = (struct event_text){ .t = first->t, .own = ev->ts, .machine = first->name, .cpu = ev->cpu, .tid = ev->tid,
		.comm = trace_string(first->trace, ev->comm), .event = event_kind_name[ev->kind],
		.fields = fields_text(m, first->trace, ev) };
	if (ev->kind == EV_NAMED)
		out->event = trace_string(first->trace, ev->named.name);
	if (trace_info(first->trace)->has_vcpu_states)
		out->event = name_without_kvm(ev, out->event);
	return advance_source(m, first, err) ? -1 : 1;
}

int raw_events_read(const struct history *h, const struct raw_events_options *o, size_t max_events, struct event_list *out,
                 struct error *err)
{
	struct event_text ev;
	struct raw_events *s = raw_events_open(h, o, err);
	int got = s ? 1 : -1;
	while (got > 0 && !out->more && (got = raw_events_next(s, &ev, err)) > 0) {
		out->more = out->len == max_events;
		if (!out->more)
			event_list_add(out, &ev);
	}
	raw_events_close(s);
	if (got < 0)
		event_list_release(out);
	return got < 0 ? -1 : 0;
}
