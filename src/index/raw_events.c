/* The events of a short time, out of the traces that a history was made of.
 *
 * The history says where they are and what they were like (fingerprint.h), and has the clocks (provenance.h): the moment is
 * taken back by each machine's clock to what its trace has, that part is decoded (struct trace_window), and each event's
 * time goes forth again as it did when the history was made.
 * Cost: opening the traces, and of CTF and raw pages the packets that may tell of the window. */
#include "index/index.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_field.h"
#include "base/mem.h"
#include "base/text.h"
#include "index/fingerprint.h"
#include "index/input.h"
#include "index/provenance.h"
#include "model/model.h"

#define SLACK 4  /* ns by which a time that is taken back may be off */
#define MOST_DRIFT (INT64_C(1) << 59)  /* half as fast again: no clock drifts as much */

struct snippet_source {                 /* a machine */
	char *name;                 /* as the history calls it */
	struct clock_map clock;     /* no pieces: the host's own */
	struct trace *trace;
	struct trace_cursor *cursor;
	struct event ev;
	int64_t t;                  /* host ns of ev; INT64_MAX: it is over */
};

struct snippet {
	int64_t from, to;
	struct snippet_source *source;
	size_t sources;
	FILE *out;                  /* into `fields`, whose length does not matter */
	char *fields;
	size_t length;
};

/* ---- where the traces are */

static bool is_row_of(struct json_object *row, const struct trace_spec *s)
{
	char name[512];
	if (strcmp(field_text(row, "role"), "host") == 0 || s->role == ROLE_HOST)
		return s->role == ROLE_HOST && strcmp(field_text(row, "role"), "host") == 0;
	return s->name && strcmp(field_text(row, "machine"), text_escape(name, sizeof name, s->name)) == 0;
}

/* The specifications in the order in which the history had them, which is that of the fingerprint. */
static int put_in_order(struct input *in, struct json_object *doc, struct error *err)
{
	struct json_object *rows = field_array(doc, "traces");
	const size_t n = rows ? json_object_array_length(rows) : 0;
	for (size_t i = 0; i < n && i < in->specs; i++) {
		size_t k = i;
		while (k < in->specs && !is_row_of(json_object_array_get_idx(rows, i), &in->spec[k]))
			k++;
		if (k == in->specs)
			break;
		const struct trace_spec found = in->spec[k];
		in->spec[k] = in->spec[i];
		in->spec[i] = found;
		if (i + 1 == n && n == in->specs)
			return 0;
	}
	return error_set(err, STATUS_INPUT, "build it anew with stealscope index",
	                 "the history does not say which traces it is of");
}

static int check_files(struct json_object *doc, const struct input *in, struct error *err)
{
	char why[512];
	struct json_object *then = field_array(doc, "files"), *now = fingerprint_take(in, err);
	if (!now)
		return -1;
	int rc = 0;
	if (!then || fingerprint_differs(then, now, why, sizeof why))
		rc = error_set(err, STATUS_INPUT, "index them again", "the traces are not what they were: %s", then ? why : "");
	json_object_put(now);
	return rc;
}

/* What of the traces is there, and as it was. */
static int find_traces(const struct history *h, struct json_object *doc, struct input *in, struct error *err)
{
	struct json_object *files = field_array(doc, "files");
	*in = (struct input){ 0 };
	if (files && json_object_array_length(files) == 0 && !field_array(doc, "clocks"))
		return error_set(err, STATUS_INPUT, "ask the history that it was cut from",
		                 "a cut does not say where its traces are");
	if (!field_array(doc, "clocks"))
		return error_set(err, STATUS_INPUT, "build it anew with stealscope index",
		                 "the history was built by another version of stealscope");
	if (provenance_input(h, in, err))
		return error_wrap(err, "the traces of this history cannot be read");
	if (input_is_live(in))
		return error_set(err, STATUS_INPUT, "index the folder that lttng-relayd wrote", "a live session is not read twice");
	return put_in_order(in, doc, err) ? -1 : check_files(doc, in, err);
}

/* ---- clocks */

static int take_clock(struct json_object *doc, const char *guest, struct clock_map *clock, struct error *err)
{
	struct json_object *rows = field_array(doc, "clocks");
	const size_t n = rows ? json_object_array_length(rows) : 0;
	clock->piece = mem_new(n + 1, sizeof *clock->piece);
	for (size_t i = 0; i < n; i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		if (strcmp(field_text(row, "guest"), guest) != 0)
			continue;
		struct clock_piece *p = &clock->piece[clock->pieces++];
		p->from = field_int(row, "from_ns", INT64_MIN);
		p->line = (struct clock_line){ field_int(row, "ref_guest_ns", 0), field_int(row, "ref_host_ns", 0),
			field_int(row, "drift", 0) };
		if (p->line.drift > MOST_DRIFT || p->line.drift < -MOST_DRIFT)
			return error_set(err, STATUS_INPUT, "build it anew with stealscope index", "%s: its clock makes no sense",
			                 guest);
	}
	return 0;
}

/* The guest's time that a line takes to the host's, give or take SLACK. */
static int64_t line_back(const struct clock_line *l, int64_t host)
{
	const int128 one = (int128)1 << 60, dt = (int128)host - l->ref_host;
	const int128 back = (int128)l->ref_guest + dt - dt * l->drift / (one + l->drift);
	return back > INT64_MAX ? INT64_MAX : back < INT64_MIN ? INT64_MIN : (int64_t)back;
}

static int64_t add(int64_t a, int64_t b)
{
	int64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? (b < 0 ? INT64_MIN : INT64_MAX) : sum;
}

/* All of the machine's time that its clock takes into [from, to], and perhaps some more. */
static struct trace_window window_of(const struct clock_map *clock, int64_t from, int64_t to)
{
	if (!clock->pieces)
		return (struct trace_window){ from, to };
	struct trace_window all = { INT64_MAX, INT64_MIN };
	for (size_t i = 0; i < clock->pieces; i++) {
		const struct clock_piece *p = &clock->piece[i];
		const int64_t begin = i ? p->from : INT64_MIN, end = i + 1 < clock->pieces ? add(p[1].from, -1) : INT64_MAX;
		int64_t a = add(line_back(&p->line, from), -SLACK), b = add(line_back(&p->line, to), SLACK);
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

/* Who runs a VM, as provenance.c has it; NULL: it is none. */
static const char *parent_of(struct json_object *doc, const char *vm)
{
	struct json_object *rows = field_array(doc, "vms");
	for (size_t i = 0; rows && i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		if (strcmp(field_text(row, "vm"), vm) == 0)
			return field_text(row, "parent");
	}
	return NULL;
}

/* Is it the wanted machine, or one that runs that?  Of what is neither host nor VM, all are wanted. */
static bool is_wanted(struct json_object *doc, const char *wanted, const char *machine)
{
	char of[512], name[512];
	if (!wanted)
		return true;
	const char *up = text_escape(of, sizeof of, wanted);
	text_escape(name, sizeof name, machine);
	if (strcmp(up, "host") != 0 && !parent_of(doc, up))
		return true;
	for (int deep = 0; up && deep < 64; deep++, up = parent_of(doc, up))
		if (strcmp(up, name) == 0)
			return true;
	return false;
}

/* The machines that are asked for: their clocks, and what is to be read of them. */
static int choose(struct snippet *m, const struct input *in, struct json_object *doc, const struct snippet_options *o,
                  struct trace_spec *spec, struct trace_window *only, struct error *err)
{
	for (size_t i = 0; i < in->specs; i++) {
		char guest[512];
		const bool is_host = in->spec[i].role == ROLE_HOST;
		const char *name = is_host ? "host" : in->spec[i].name;
		if (!is_wanted(doc, o->machine, name))
			continue;
		struct snippet_source *t = &m->source[m->sources];
		t->name = mem_dup(name);
		spec[m->sources] = in->spec[i];
		m->sources++;
		if (!is_host && take_clock(doc, text_escape(guest, sizeof guest, name), &t->clock, err))
			return -1;
		only[m->sources - 1] = window_of(&t->clock, o->from, o->to);
	}
	return 0;
}

static int load(struct snippet *m, const struct input *in, struct json_object *doc, const struct snippet_options *o,
                struct error *err)
{
	struct trace_spec *spec = mem_new(in->specs + 1, sizeof *spec);
	struct trace_window *only = mem_new(in->specs + 1, sizeof *only);
	struct trace **trace = mem_new(in->specs + 1, sizeof *trace);
	m->source = mem_new(in->specs + 1, sizeof *m->source);
	int rc = choose(m, in, doc, o, spec, only, err);
	struct notes notes = { 0 };
	const struct trace_options options = { .reader = in->reader, .workers = o->jobs, .only = only,
		.progress = o->progress };
	if (!rc && m->sources)
		rc = trace_load(spec, m->sources, &options, trace, &notes, err);
	for (size_t i = 0; i < m->sources && !rc; i++)
		m->source[i].trace = trace[i];
	notes_release(&notes);  /* of the whole, the history has them; of a part they would be others */
	free(spec);
	free(only);
	free(trace);
	return rc;
}

/* The next event of a machine that lies in the window.  Its time never runs backwards, as in the history. */
static int advance(const struct snippet *m, struct snippet_source *t, struct error *err)
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

static int begin(struct snippet *m, struct error *err)
{
	for (size_t i = 0; i < m->sources; i++) {
		struct snippet_source *t = &m->source[i];
		t->t = INT64_MIN;
		t->cursor = trace_cursor_open(t->trace, ALL_KINDS, -1, err);
		if (!t->cursor || advance(m, t, err))
			return -1;
	}
	return 0;
}

struct snippet *snippet_open(const struct history *h, const struct snippet_options *o, struct error *err)
{
	struct snippet *m = mem_new(1, sizeof *m);
	struct input in = { 0 };
	m->out = open_memstream(&m->fields, &m->length);
	struct json_object *doc = provenance_load(h, err);
	m->from = o->from;
	m->to = o->to;
	const int rc = !doc || find_traces(h, doc, &in, err) || load(m, &in, doc, o, err) || begin(m, err);
	json_object_put(doc);
	input_release(&in);
	if (!rc)
		return m;
	snippet_close(m);
	return NULL;
}

void snippet_close(struct snippet *m)
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

/* ---- events in words */

static bool is_address(const char *name)
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
	else if (is_address(name))
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
		if (ev->kind == EV_KVM_EXIT && &ev->arg[i] == &ev->kvm.reason)
			text = exit_name(ev, number);
		if (name && ev->arg[i] != EVENT_ABSENT)
			put_field(out, name, text, ev->arg[i]);
	}
}

static const char *tell_fields(struct snippet *m, const struct trace *trace, const struct event *ev)
{
	rewind(m->out);
	put_fields(m->out, trace, ev);
	putc('\0', m->out);
	fflush(m->out);
	return m->fields;
}

int snippet_next(struct snippet *m, struct event_text *out, struct error *err)
{
	struct snippet_source *first = NULL;
	for (size_t i = 0; i < m->sources; i++)
		if (m->source[i].t != INT64_MAX && (!first || m->source[i].t < first->t))
			first = &m->source[i];
	if (!first)
		return 0;
	const struct event *ev = &first->ev;
	*out = (struct event_text){ .t = first->t, .own = ev->ts, .machine = first->name, .cpu = ev->cpu, .tid = ev->tid,
		.comm = trace_string(first->trace, ev->comm), .event = event_kind_name[ev->kind],
		.fields = tell_fields(m, first->trace, ev) };
	if (ev->kind == EV_NAMED)
		out->event = trace_string(first->trace, ev->named.name);
	return advance(m, first, err) ? -1 : 1;
}

int snippet_read(const struct history *h, const struct snippet_options *o, size_t most, struct event_list *out,
                 struct error *err)
{
	struct event_text ev;
	struct snippet *s = snippet_open(h, o, err);
	int got = s ? 1 : -1;
	while (got > 0 && !out->more && (got = snippet_next(s, &ev, err)) > 0) {
		out->more = out->len == most;
		if (!out->more)
			event_list_add(out, &ev);
	}
	snippet_close(s);
	if (got < 0)
		event_list_release(out);
	return got < 0 ? -1 : 0;
}
