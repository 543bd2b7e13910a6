#include "cli/input.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/timefmt.h"

static int parse_sync(struct input *in, struct error *err)
{
	static const char offset[] = "offset=";
	const char *text = in->sync ? in->sync : "auto";
	if (strncmp(text, offset, sizeof offset - 1) == 0) {
		in->sync_options.method = SYNC_OFFSET;
		if (!time_parse_duration(text + sizeof offset - 1, &in->sync_options.offset))
			return error_set(err, STATUS_USAGE, "give ns or a duration: offset=-5.4s", "--sync: not an offset: '%s'", text);
		return 0;
	}
	static const struct { const char *name; enum sync_method method; } methods[] = {
		{ "auto", SYNC_AUTO }, { "events", SYNC_EVENTS }, { "containment", SYNC_CONTAINMENT }, { "none", SYNC_NONE },
	};
	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
		if (strcmp(methods[i].name, text) == 0) {
			in->sync_options.method = methods[i].method;
			return 0;
		}
	}
	return error_set(err, STATUS_USAGE, "one of auto, events, containment, offset=DURATION, none",
	                 "--sync: no such method: '%s'", text);
}

/* Adds the one machine whose traces lie below dir. */
static int add_machine(struct input *in, const char *dir, const char *name, enum trace_role role, struct error *err)
{
	size_t before = in->specs;
	if (trace_discover(dir, &in->spec, &in->specs, err))
		return -1;
	if (in->specs - before > 1)
		return error_set(err, STATUS_USAGE, "name the folder of one machine",
		                 "%s: holds the traces of %zu machines", dir, in->specs - before);
	for (size_t i = before; i < in->specs; i++) {
		in->spec[i].role = role;
		free((char *)(uintptr_t)in->spec[i].name);
		in->spec[i].name = mem_dup(name);
	}
	return 0;
}

static int add_guest(struct input *in, const char *text, struct error *err)
{
	const char *eq = strchr(text, '=');
	if (!eq || eq == text || !eq[1])
		return error_set(err, STATUS_USAGE, "give NAME=DIR, as --guest Debian=traces/debian", "--guest: '%s'", text);
	char *name = mem_printf("%.*s", (int)(eq - text), text);
	int rc = add_machine(in, eq + 1, name, ROLE_GUEST, err);
	free(name);
	return rc;
}

int input_resolve(struct input *in, struct error *err)
{
	if (parse_sync(in, err))
		return -1;
	if (in->whats == 0 && !in->host && in->guest.len == 0)
		return error_set(err, STATUS_USAGE, "name a trace folder, or --host DIR --guest NAME=DIR", "no traces named");
	for (int i = 0; i < in->whats; i++)
		if (trace_discover(in->what[i], &in->spec, &in->specs, err))
			return -1;
	if (in->host && add_machine(in, in->host, NULL, ROLE_HOST, err))
		return -1;
	for (size_t i = 0; i < in->guest.len; i++)
		if (add_guest(in, in->guest.item[i], err))
			return -1;
	for (size_t i = 0; in->layout && i < in->specs; i++)
		in->spec[i].layout = in->layout;
	return 0;
}

void input_release(struct input *in)
{
	for (size_t i = 0; i < in->specs; i++)
		in->spec[i].layout = NULL;
	trace_specs_free(in->spec, in->specs);
	free(in->guest.item);
	in->spec = NULL;
	in->specs = 0;
}

char *input_shape(const struct input *in)
{
	return mem_printf("sync=%s layout=%s states=%s", in->sync ? in->sync : "auto", in->layout ? in->layout : "auto",
	                  in->paper_states ? "paper" : "refined");
}
