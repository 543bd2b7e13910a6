#include "index/input.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/timefmt.h"
#include "index/session.h"
#include "model/model.h"

static int parse_sync(struct input *in, struct error *err)
{
	static const char offset[] = "offset=";
	const char *text = in->sync ? in->sync : "auto";
	if (strncmp(text, offset, sizeof offset - 1) == 0) {
		in->sync_options.method = SYNC_OFFSET;
		if (!time_parse_offset(text + sizeof offset - 1, &in->sync_options.offset))
			return error_set(err, STATUS_USAGE, "give ns or a duration: offset=-5.4s", "--sync: not an offset: '%s'", text);
		return 0;
	}
	static const struct { const char *name; enum sync_method method; } methods[] = {
		{ "auto", SYNC_AUTO }, { "tsc", SYNC_TSC }, { "events", SYNC_EVENTS }, { "containment", SYNC_CONTAINMENT },
		{ "none", SYNC_NONE },
	};
	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
		if (strcmp(methods[i].name, text) == 0) {
			in->sync_options.method = methods[i].method;
			return 0;
		}
	}
	return error_set(err, STATUS_USAGE, "one of auto, tsc, events, containment, offset=DURATION, none",
	                 "--sync: no such method: '%s'", text);
}

static int parse_for(struct input *in, const char *text, struct error *err)
{
	if (text && (!time_parse_duration(text, &in->live_for) || in->live_for <= 0))
		return error_set(err, STATUS_USAGE, "give a duration: --for 30s", "--for: not a duration: '%s'", text);
	return 0;
}

bool input_is_live(const struct input *in)
{
	for (size_t i = 0; i < in->specs; i++)
		if (trace_is_live(in->spec[i].dir))
			return true;
	return false;
}

static bool is_same_folder(const char *a, const char *b)
{
	struct stat one, other;
	return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/* What is named and was found, too, in a folder that was given, is one trace: the last one counts. */
static void drop_found(struct input *in)
{
	const struct trace_spec named = in->spec[in->specs - 1];
	size_t n = 0;
	for (size_t i = 0; i < in->specs; i++) {
		struct trace_spec *spec = &in->spec[i];
		if (i + 1 < in->specs && spec->role == ROLE_UNKNOWN && is_same_folder(spec->dir, named.dir)) {
			free((char *)(uintptr_t)spec->name);
			free((char *)(uintptr_t)spec->layout);
			trace_spec_release(spec);
		} else {
			in->spec[n++] = *spec;
		}
	}
	in->specs = n;
}

int input_add_machine(struct input *in, const char *dir, const char *name, enum trace_role role, const char *layout,
                      struct error *err)
{
	size_t before = in->specs;
	if (name && strlen(name) > MACHINE_NAME)
		return error_set(err, STATUS_USAGE, "choose a shorter one", "the name of a machine has at most %d bytes: %.32s...",
		                 MACHINE_NAME, name);
	if (trace_discover(dir, &in->spec, &in->specs, &in->notes, err))
		return -1;
	if (in->specs - before > 1)
		return error_set(err, STATUS_USAGE, "name one of them",
		                 "%s: holds the traces of %zu machines", dir, in->specs - before);
	struct trace_spec *spec = &in->spec[before];
	spec->role = role;
	free((char *)(uintptr_t)spec->name);
	spec->name = mem_dup(name);
	spec->layout = mem_dup(layout);
	drop_found(in);
	return 0;
}

struct sync_hint *input_add_hint(struct input *in, const char *guest)
{
	struct sync_hint *hint = ARRAY_PUSH(in->hint, in->hints, in->hint_cap);
	*hint = (struct sync_hint){ .guest = mem_dup(guest) };
	return hint;
}

static int add_guest(struct input *in, const char *text, struct error *err)
{
	const char *eq = strchr(text, '=');
	if (!eq || eq == text || !eq[1])
		return error_set(err, STATUS_USAGE, "give NAME=DIR, as --guest Debian=traces/debian", "--guest: '%s'", text);
	char *name = mem_printf("%.*s", (int)(eq - text), text);
	int rc = input_add_machine(in, eq + 1, name, ROLE_GUEST, NULL, err);
	free(name);
	return rc;
}

static int add_operand(struct input *in, const char *what, struct error *err)
{
	char *session = session_in(what);
	if (session) {
		const int rc = session_load(in, session, err);
		free(session);
		return rc;
	}
	if (session_is_one(what) && !trace_is_live(what))
		return session_load(in, what, err);
	if (history_is_one(what))
		return error_set(err, STATUS_USAGE, "give its traces; or the history alone, to look at it",
		                 "%s: is a history, made of traces, not traces", what);
	return trace_discover(what, &in->spec, &in->specs, &in->notes, err);
}

int input_finish(struct input *in, struct error *err)
{
	for (size_t i = 0; in->layout && i < in->specs; i++) {
		free((char *)(uintptr_t)in->spec[i].layout);
		in->spec[i].layout = mem_dup(in->layout);
	}
	in->sync_options.hint = in->hint;
	in->sync_options.hints = in->hints;
	return parse_sync(in, err);
}

/* The one folder that is all the user named; the caller frees. */
static char *only_folder(const struct input_options *o)
{
	struct stat st;
	bool one = o->whats == 1 && !o->host && o->guests == 0 && stat(o->what[0], &st) == 0 && S_ISDIR(st.st_mode);
	return one ? mem_dup(o->what[0]) : NULL;
}

int input_resolve(struct input *in, const struct input_options *o, struct error *err)
{
	*in = (struct input){ .folder = only_folder(o), .layout = mem_dup(o->layout), .sync = mem_dup(o->sync),
		.paper_states = o->paper_states, .reader = (enum trace_reading)o->reader, .jobs = o->jobs };
	if (o->whats == 0 && !o->host && o->guests == 0)
		return error_set(err, STATUS_USAGE, "name a trace folder, or --host DIR --guest NAME=DIR", "no traces named");
	for (size_t i = 0; i < o->whats; i++)
		if (add_operand(in, o->what[i], err))
			return -1;
	if (o->host && input_add_machine(in, o->host, NULL, ROLE_HOST, NULL, err))
		return -1;
	for (size_t i = 0; i < o->guests; i++)
		if (add_guest(in, o->guest[i], err))
			return -1;
	return parse_for(in, o->live, err) || input_finish(in, err) ? -1 : 0;
}

void input_release(struct input *in)
{
	for (size_t i = 0; i < in->specs; i++) {
		free((char *)(uintptr_t)in->spec[i].layout);
		free((char *)(uintptr_t)in->spec[i].name);
	}
	for (size_t i = 0; i < in->hints; i++) {
		free(in->hint[i].guest);
		free(in->hint[i].parent);
		free(in->hint[i].vcpu);
	}
	free(in->hint);
	for (size_t i = 0; i < in->groups; i++)
		free(in->group[i].text);
	free(in->group);
	free(in->folder);
	free(in->layout);
	free(in->sync);
	trace_specs_free(in->spec, in->specs);
	notes_release(&in->notes);
	*in = (struct input){ 0 };
}

/* Session files and recordings of trace-cmd are known by their names; any other file should be a history, unless what is
 * in it is of a trace. */
bool input_names_history(const struct input_options *o)
{
	struct stat st;
	const char *dot = o->whats == 1 ? strrchr(o->what[0], '.') : NULL;
	return o->whats == 1 && !session_is_one(o->what[0]) && !(dot && strcmp(dot, ".dat") == 0) &&
	       stat(o->what[0], &st) == 0 && S_ISREG(st.st_mode) &&
	       (history_is_one(o->what[0]) || !trace_is_file(o->what[0]));
}

int input_refuse_shape(const struct input_options *o, struct error *err)
{
	const char *option = o->host ? "--host" : o->guests > 0 ? "--guest" : o->live ? "--for" : o->layout ? "--layout"
	                     : o->sync ? "--sync" : o->paper_states ? "--paper-states" : NULL;
	if (!option)
		return 0;
	return error_set(err, STATUS_USAGE, "give its traces", "%s: %s is a history: how its traces were read is settled",
	                 option, o->what[0]);
}

/* Frees the text. */
static char *add(char *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static char *add(char *text, const char *fmt, ...)
{
	char more[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(more, sizeof more, fmt, ap);
	va_end(ap);
	char *longer = mem_printf("%s%s", text, more);
	free(text);
	return longer;
}

char *input_shape(const struct input *in)
{
	char *shape = mem_printf("sync=%s layout=%s states=%s", in->sync ? in->sync : "auto",
	                         in->layout ? in->layout : "auto", in->paper_states ? "paper" : "refined");
	for (size_t i = 0; i < in->specs; i++) {
		if (in->spec[i].name)
			shape = add(shape, " name=%s", in->spec[i].name);
		if (in->spec[i].layout && !in->layout)
			shape = add(shape, " layout=%s", in->spec[i].layout);
	}
	for (size_t i = 0; i < in->hints; i++) {
		const struct sync_hint *h = &in->hint[i];
		shape = add(shape, " %s", h->guest);
		if (h->parent)
			shape = add(shape, "@%s", h->parent);
		shape = add(shape, "=");
		if (h->has_offset)
			shape = add(shape, "%lld", (long long)h->offset);
		if (h->has_tsc)
			shape = add(shape, "tsc%lld*%llu/%u", (long long)h->tsc_offset, (unsigned long long)h->tsc_ratio, h->tsc_bits);
		if (h->nudge != 0)
			shape = add(shape, "%+lld", (long long)h->nudge);
		for (size_t k = 0; k < h->vcpus; k++)
			shape = add(shape, ",%u:%d", h->vcpu[k].number, (int)h->vcpu[k].host_tid);
	}
	for (size_t i = 0; i < in->groups; i++)
		shape = add(shape, " %d/%s", (int)in->group[i].tid, in->group[i].text);
	return shape;
}
