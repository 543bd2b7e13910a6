/* Resolves the input: converts operands and options to trace specifications and hints. */
#include "index/input.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "base/base.h"
#include "index/session.h"
#include "model/model.h"

static int parse_sync(struct input *in, struct error *err)
{
	static const char offset[] = "offset=";
	const char *text = in->sync ? in->sync : "auto";
	if (strncmp(text, offset, sizeof offset - 1) == 0) {
		in->sync_options.method = SYNC_OFFSET;
		if (!time_parse_offset(text + sizeof offset - 1, &in->sync_options.offset))
			return error_set(err, STATUS_USAGE, "use a duration or a number of ns: offset=-5.4s",
			                 "--sync: not an offset: '%s'", text);
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

static int parse_tsc_hz(struct input *in, const char *text, struct error *err)
{
	char *rest;
	if (!text)
		return 0;
	errno = 0;
	const long long hz = strtoll(text, &rest, 10);
	if (errno || rest == text || *rest || hz < TSC_HZ_MIN || hz > TSC_HZ_MAX)
		return error_set(err, STATUS_USAGE, "use the frequency in Hz, for example 2596000000",
		                 "--tsc-hz: not a frequency of a TSC: '%s'", text);
	in->sync_options.tsc_hz = hz;
	return 0;
}

static int parse_live_time(struct input *in, const char *text, struct error *err)
{
	if (text && (!time_parse_duration(text, &in->live_for) || in->live_for <= 0))
		return error_set(err, STATUS_USAGE, "use a duration: --for 30s", "--for: not a duration: '%s'", text);
	return 0;
}

bool input_is_live(const struct input *in)
{
	for (size_t i = 0; i < in->specs; i++)
		if (trace_is_live(in->spec[i].dir))
			return true;
	return false;
}

/* Returns the file of FILE#MACHINE, malloc'ed, or the whole name. */
static char *file_of(const char *name)
{
	return mem_printf("%.*s", (int)trace_path_length(name), name);
}

static bool is_same_dir(const char *a, const char *b)
{
	struct stat one, other;
	char *file = file_of(a), *other_file = file_of(b);
	const bool is_same = stat(file, &one) == 0 && stat(other_file, &other) == 0 && one.st_dev == other.st_dev &&
	                     one.st_ino == other.st_ino && strcmp(a + strlen(file), b + strlen(other_file)) == 0;
	free(file);
	free(other_file);
	return is_same;
}

/* Removes earlier specifications of the same directory as the last one, which the user named explicitly. */
static void drop_duplicates(struct input *in)
{
	const struct trace_spec named = in->spec[in->specs - 1];
	size_t n = 0;
	for (size_t i = 0; i < in->specs; i++) {
		struct trace_spec *spec = &in->spec[i];
		if (i + 1 < in->specs && spec->role == ROLE_UNKNOWN && is_same_dir(spec->dir, named.dir)) {
			free((char *)(uintptr_t)spec->name);
			free((char *)(uintptr_t)spec->layout);
			trace_spec_release(spec);
		} else {
			in->spec[n++] = *spec;
		}
	}
	in->specs = n;
}

static int add_machine(struct input *in, const char *dir, const char *name, enum trace_role role, const char *layout,
                       bool or_skip, struct error *err)
{
	const size_t before = in->specs;
	if (name && strlen(name) > MACHINE_NAME_MAX)
		return error_set(err, STATUS_USAGE, "choose a shorter name", "the name of a machine has at most %d bytes: %.32s...",
		                 MACHINE_NAME_MAX, name);
	if ((or_skip ? trace_discover_or_skip : trace_discover)(dir, &in->spec, &in->specs, &in->notes, err))
		return -1;
	if (in->specs == before)
		return 0;
	if (in->specs - before > 1)
		return error_set(err, STATUS_USAGE, "use the directory of one machine",
		                 "%s: contains the traces of %zu machines", dir, in->specs - before);
	struct trace_spec *spec = &in->spec[before];
	spec->role = role;
	free((char *)(uintptr_t)spec->name);
	spec->name = mem_dup(name);
	spec->layout = mem_dup(layout);
	drop_duplicates(in);
	return 0;
}

int input_add_machine(struct input *in, const char *dir, const char *name, enum trace_role role, const char *layout,
                      struct error *err)
{
	return add_machine(in, dir, name, role, layout, false, err);
}

int input_add_listed_guest(struct input *in, const char *dir, const char *name, const char *layout, struct error *err)
{
	return add_machine(in, dir, name, ROLE_GUEST, layout, true, err);
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
		return error_set(err, STATUS_USAGE, "use NAME=DIR: --guest Debian=traces/debian", "--guest: not NAME=DIR: '%s'",
		                 text);
	char *name = mem_printf("%.*s", (int)(eq - text), text);
	int rc = input_add_machine(in, eq + 1, name, ROLE_GUEST, NULL, err);
	free(name);
	return rc;
}

void input_name_domain(struct input *in, uint32_t id, const char *name)
{
	for (size_t i = 0; i < in->domains; i++)
		if (in->domain[i].id == id)
			return;
	*ARRAY_PUSH(in->domain, in->domains, in->domain_cap) = (struct trace_domain){ id, mem_dup(name) };
}

static int parse_domain(struct input *in, const char *text, struct error *err)
{
	char *rest;
	const unsigned long id = strtoul(text, &rest, 10);
	const size_t length = *rest == '=' ? strlen(rest + 1) : 0;
	if (rest == text || *text == '-' || id > DOMAIN_ID_MAX || length == 0 || length > MACHINE_NAME_MAX)
		return error_set(err, STATUS_USAGE, "use ID=NAME with the id that `xl list` prints: --domain 1=web",
		                 "--domain: not ID=NAME: '%s'", text);
	input_name_domain(in, (uint32_t)id, rest + 1);
	return 0;
}

static int add_operand(struct input *in, const char *what, struct error *err)
{
	char *session = find_session_file(what);
	if (session) {
		const int rc = session_load(in, session, true, err);
		free(session);
		return rc;
	}
	if (is_session_file_name(what) && !trace_is_live(what))
		return session_load(in, what, false, err);
	if (history_is_history_file(what))
		return error_set(err, STATUS_USAGE, "use the directories of its traces; or only the history, to view it",
		                 "%s: a history, not traces", what);
	struct recordings several;
	if (recordings_find(&several, what, 2, NULL) == 0 && several.len) {
		char *remedy = mem_printf("name one of them, for example %s; stealscope %s lists them", several.item[0].path, what);
		error_set(err, STATUS_INPUT, remedy, "%s: a directory of %zu recordings, not a recording", what, several.len);
		free(remedy);
		recordings_release(&several);
		return -1;
	}
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

/* Returns the operand, malloc'ed, if it is the only one and a directory; NULL otherwise. */
static char *single_dir_operand(const struct input_options *o)
{
	struct stat st;
	bool one = o->whats == 1 && !o->host && o->guests == 0 && stat(o->what[0], &st) == 0 && S_ISDIR(st.st_mode);
	return one ? mem_dup(o->what[0]) : NULL;
}

int input_name_copies(const struct input_options *o, struct error *err)
{
	for (size_t i = 0; err && i < o->copies; i++) {
		const struct error with_path = *err;
		char path[sizeof err->text];
		const char *at = strstr(with_path.text, text_escape(path, sizeof path, o->copy[i].path));
		if (at)
			error_repeat(err, with_path.status, with_path.remedy, "%.*s%s%s", (int)(at - with_path.text), with_path.text,
			             strcmp(o->copy[i].named, "-") == 0 ? "standard input" : o->copy[i].named, at + strlen(path));
	}
	return -1;
}

static int resolve(struct input *in, const struct input_options *o, struct error *err)
{
	*in = (struct input){ .dir = single_dir_operand(o), .layout = mem_dup(o->layout), .sync = mem_dup(o->sync),
		.paper_states = o->paper_states, .jobs = o->jobs };
	if (parse_tsc_hz(in, o->tsc_hz, err))
		return -1;
	if (o->whats == 0 && !o->host && o->guests == 0)
		return error_set(err, STATUS_USAGE, "name a trace directory, or --host DIR --guest NAME=DIR", "no traces given");
	for (size_t i = 0; i < o->domains; i++)
		if (parse_domain(in, o->domain[i], err))
			return -1;
	for (size_t i = 0; i < o->whats; i++)
		if (add_operand(in, o->what[i], err))
			return -1;
	if (o->host && input_add_machine(in, o->host, NULL, ROLE_HOST, NULL, err))
		return -1;
	for (size_t i = 0; i < o->guests; i++)
		if (add_guest(in, o->guest[i], err))
			return -1;
	return parse_live_time(in, o->live, err) || input_finish(in, err) ? -1 : 0;
}

int input_resolve(struct input *in, const struct input_options *o, struct error *err)
{
	return resolve(in, o, err) ? input_name_copies(o, err) : 0;
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
	for (size_t i = 0; i < in->domains; i++)
		free(in->domain[i].name);
	free(in->domain);
	control_groups_release(&in->control_groups);
	topology_release(&in->topology);
	free(in->dir);
	free(in->layout);
	free(in->sync);
	trace_specs_free(in->spec, in->specs);
	notes_release(&in->notes);
	*in = (struct input){ 0 };
}

/* Session files and trace-cmd files are recognized by name; any other file counts as a history, unless it contains a
 * trace. */
bool input_is_history(const struct input_options *o)
{
	struct stat st;
	const char *dot = o->whats == 1 ? strrchr(o->what[0], '.') : NULL;
	return o->whats == 1 && !is_session_file_name(o->what[0]) && !(dot && strcmp(dot, ".dat") == 0) &&
	       stat(o->what[0], &st) == 0 && S_ISREG(st.st_mode) &&
	       (history_is_history_file(o->what[0]) || !trace_is_file(o->what[0]));
}

int input_check_history_options(const struct input_options *o, struct error *err)
{
	const char *option = o->host ? "--host" : o->guests > 0 ? "--guest" : o->live ? "--for" : o->layout ? "--layout"
	                     : o->sync ? "--sync" : o->paper_states ? "--paper-states"
	                     : o->tsc_hz ? "--tsc-hz" : o->domains > 0 ? "--domain" : NULL;
	if (!option)
		return 0;
	return error_set(err, STATUS_USAGE, "use the directories of its traces",
	                 "%s: %s is a history; this option only affects indexing", option, o->what[0]);
}

/* Returns the text with more appended, malloc'ed; frees the old one. */
static char *append_text(char *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static char *append_text(char *text, const char *fmt, ...)
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

char *input_options_text(const struct input *in)
{
	char *options_text = mem_printf("sync=%s layout=%s states=%s", in->sync ? in->sync : "auto",
	                         in->layout ? in->layout : "auto", in->paper_states ? "paper" : "refined");
	if (in->sync_options.tsc_hz)
		options_text = append_text(options_text, " tsc_hz=%lld", (long long)in->sync_options.tsc_hz);
	for (size_t i = 0; i < in->domains; i++)
		options_text = append_text(options_text, " domain %u=%s", in->domain[i].id, in->domain[i].name);
	if (in->specs == 1 && in->spec[0].role == ROLE_HOST)  /* with others, the files show it */
		options_text = append_text(options_text, " physical");
	for (size_t i = 0; i < in->specs; i++) {
		if (in->spec[i].name)
			options_text = append_text(options_text, " name=%s", in->spec[i].name);
		if (in->spec[i].layout && !in->layout)
			options_text = append_text(options_text, " layout=%s", in->spec[i].layout);
	}
	for (size_t i = 0; i < in->hints; i++) {
		const struct sync_hint *h = &in->hint[i];
		options_text = append_text(options_text, " %s", h->guest);
		if (h->parent)
			options_text = append_text(options_text, "@%s", h->parent);
		options_text = append_text(options_text, "=");
		if (h->has_offset)
			options_text = append_text(options_text, "%lld", (long long)h->offset);
		if (h->has_tsc)
			options_text = append_text(options_text, "tsc%lld*%llu/%u", (long long)h->tsc_offset,
			                           (unsigned long long)h->tsc_ratio, h->tsc_bits);
		if (h->manual_offset != 0)
			options_text = append_text(options_text, "%+lld", (long long)h->manual_offset);
		for (size_t k = 0; k < h->vcpus; k++)
			options_text = append_text(options_text, ",%u:%d", h->vcpu[k].number, (int)h->vcpu[k].host_tid);
	}
	for (size_t i = 0; i < in->groups; i++)
		options_text = append_text(options_text, " %d/%s", (int)in->group[i].tid, in->group[i].text);
	const uint64_t groups = control_groups_hash(&in->control_groups);
	if (groups)
		options_text = append_text(options_text, " groups=%016llx", (unsigned long long)groups);
	const uint64_t topology = topology_hash(&in->topology);
	if (topology)
		options_text = append_text(options_text, " topology=%016llx", (unsigned long long)topology);
	return options_text;
}
