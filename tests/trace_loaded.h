/* Finds and loads the traces of a directory in tests/data; fails the test on errors. */
#pragma once

#include "test.h"

#include "trace/trace.h"

static const char *data(const char *name)
{
	static char path[1024];
	const char *srcdir = getenv("srcdir");
	snprintf(path, sizeof path, "%s/tests/data/%s", srcdir ? srcdir : ".", name);
	return path;
}

struct loaded_traces {
	struct trace_spec *spec;
	size_t n;
	struct trace *trace[8];
	struct notes notes;
};

static void load(const char *root, const struct trace_options *options, struct loaded_traces *l)
{
	struct error err = ERROR_INIT;
	*l = (struct loaded_traces){ 0 };
	if (trace_discover(root, &l->spec, &l->n, NULL, &err))
		fail_msg("%s", err.text);
	assert_true(l->n <= COUNT(l->trace));
	if (trace_load(l->spec, l->n, options, l->trace, &l->notes, &err))
		fail_msg("%s", err.text);
}

static void unload(struct loaded_traces *l)
{
	for (size_t i = 0; i < l->n; i++)
		trace_free(l->trace[i]);
	trace_specs_free(l->spec, l->n);
	notes_release(&l->notes);
}

static const struct trace *find(const struct loaded_traces *l, const char *machine)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(trace_info(l->trace[i])->machine, machine) == 0)
			return l->trace[i];
	fail_msg("no machine %s", machine);
	return NULL;
}
