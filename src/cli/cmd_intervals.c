/* stealscope intervals: prints the raw intervals of an attribute. */
#include "base/base.h"
#include "cli/cli.h"
#include "cli/query_context.h"
#include "report/report.h"

static const struct column columns[] = {
	{ "start", "start ns", COL_INT },
	{ "end", "end ns", COL_INT },
	{ "value", "value", COL_TEXT },
};

#define REF_TEXT 600  /* bytes of a reference: name of a machine and a number */
#define BATCH 64      /* intervals read at once */

/* Writes a value as text. */
static struct value interval_value(const struct history *h, uint32_t attr, int64_t v, char buf[REF_TEXT])
{
	if (v == HISTORY_NULL)
		return VAL_NONE;
	if (history_type(h, attr) == HISTORY_STATE)
		return VAL_TEXT(history_state_name(h, attr, (unsigned)v));
	if (history_type(h, attr) == HISTORY_STRING)
		return VAL_TEXT(history_string(h, v));
	if (history_type(h, attr) == HISTORY_REF) {
		snprintf(buf, REF_TEXT, "%s/%" PRIu32, history_string(h, history_ref_text(v)), history_ref_number(v));
		return VAL_TEXT(buf);
	}
	return VAL_NUMBER(v);
}

/* Finds the deepest existing node of a path. */
static uint32_t deepest_node(const struct history *h, const char *path)
{
	uint32_t node = history_find(h, path);
	char *part = mem_dup(path), *slash;
	while (node == HISTORY_NONE && (slash = strrchr(part, '/'))) {
		*slash = '\0';
		node = history_find(h, part[0] ? part : "/");
	}
	free(part);
	return node == HISTORY_NONE ? history_find(h, "/") : node;
}

/* Reports that a path is no attribute; the remedy lists the children of its deepest existing node. */
static int refuse_path(const struct history *h, const char *path, struct error *err)
{
	char remedy[sizeof err->remedy];
	uint32_t at = deepest_node(h, path);
	const char *name = history_name(h, at);
	size_t used = (size_t)snprintf(remedy, sizeof remedy, "%.64s has:", *name ? name : "/");
	for (uint32_t c = history_child(h, at, HISTORY_NONE); c != HISTORY_NONE; c = history_child(h, at, c)) {
		const char *child = history_name(h, c);
		if (used + strlen(child) + 8 > sizeof remedy) {
			snprintf(remedy + used, sizeof remedy - used, " ...");
			break;
		}
		used += (size_t)snprintf(remedy + used, sizeof remedy - used, " %s,", child);
	}
	if (remedy[used - 1] == ',' && !remedy[used])
		remedy[used - 1] = '\0';
	return error_set(err, STATUS_USAGE, remedy, "%s: %s: '%s'", history_file(h),
	                 history_find(h, path) == HISTORY_NONE ? "no such attribute" : "not an attribute but a node with "
	                 	"children",
	                 path);
}

/* Finds an attribute's machine. Returns false if the attribute belongs to none. */
static bool path_machine(const struct catalog *catalog, const char *path, struct target *out)
{
	static const char *const dirs[] = { "/Virtual Machines/", "/Containers/" };
	bool host = strncmp(path, "/Host/", strlen("/Host/")) == 0;
	int machine = host ? catalog_find_machine(catalog, "host") : -1;
	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
		size_t n = strlen(dirs[i]);
		if (strncmp(path, dirs[i], n) != 0)
			continue;
		char *name = mem_printf("%.*s", (int)strcspn(path + n, "/"), path + n);
		machine = catalog_find_machine(catalog, name);
		free(name);
	}
	*out = (struct target){ TARGET_MACHINE, (uint32_t)(machine < 0 ? 0 : machine) };
	return machine >= 0;
}

static int print_intervals(struct query_context *s, const char *path, struct report_how how, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE("intervals", columns);
	const struct history *h = s->h;
	struct target target;
	uint32_t attr = history_find(h, path);
	if (attr == HISTORY_NONE || history_type(h, attr) < 0)
		return refuse_path(h, path, err);
	struct history_cursor c;
	if (history_range(&c, h, attr, s->window.from, s->window.to, err))
		return -1;
	query_context_about(s, path_machine(&s->catalog, path, &target) ? &target : NULL, how);
	struct report *r = report_begin(stdout, how, &shape, &s->origin);
	struct interval iv[BATCH];
	int rc;
	while ((rc = history_range_read(&c, iv, BATCH, err)) > 0)
		for (int i = 0; i < rc; i++) {
			char buf[REF_TEXT];
			report_row(r, (struct value[]){ VAL_INT(iv[i].start), VAL_INT(iv[i].end),
			                                interval_value(h, attr, iv[i].value, buf) });
		}
	return report_end(r, rc < 0 ? NULL : err) ? -1 : rc;
}

int cmd_intervals(int argc, char **argv, struct error *err)
{
	struct window_options when = { 0 };
	struct report_how how = REPORT_HOW;
	const struct opt opt[] = {
		WINDOW_OPTIONS(&when),
		ANSWER_OPTIONS(&how),
	};
	const struct opts opts = { "intervals RECORDING PATH", "Print the uncut intervals of an attribute.", opt,
	                           sizeof opt / sizeof *opt, 2, 2 };
	struct query_context s;
	const char *target_text;
	if (query_context_begin(&s, &opts, argc, argv, &when, &target_text, err))
		return -1;
	return query_context_close(&s, print_intervals(&s, target_text, how, err), err);
}
