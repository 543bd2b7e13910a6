/* stealscope info: what is in a history, and how it came to be. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json_field.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "cli/cli.h"
#include "cli/clock_report.h"
#include "cli/query_context.h"
#include "index/index.h"
#include "report/report.h"

static const struct column vcpu_columns[] = {
	{ "vm", "virtual machine", COL_TEXT },
	{ "vcpu", "vCPU", COL_INT },
	{ "host_tid", "host TID", COL_INT },
	{ "host_pid", "host PID", COL_INT },
	{ "host_comm", "host process", COL_TEXT },
	{ "evidence", "known by", COL_TEXT },
	{ "parent", "runs on", COL_TEXT },
};

static const struct column trace_columns[] = {
	{ "machine", "trace", COL_TEXT },
	{ "role", "role", COL_TEXT },
	{ "events", "events", COL_INT },
	{ "lost", "lost", COL_INT },
	{ "bytes", "bytes", COL_INT },
	{ "layout", "layout", COL_TEXT },
	{ "tracer", "tracer", COL_TEXT },
};

/* csv has only the columns that are promised: the others are for people, the last one when VMs run VMs. */
enum { CSV_VCPU_COLUMNS = 5, VCPU_COLUMNS, NESTED_VCPU_COLUMNS };

static size_t count_columns(struct json_object *vms, struct report_how how)
{
	if (how.format == FORMAT_CSV)
		return CSV_VCPU_COLUMNS;
	for (size_t i = 0; vms && i < json_object_array_length(vms); i++) {
		const char *parent = field_text(json_object_array_get_idx(vms, i), "parent");
		if (*parent && strcmp(parent, "host") != 0)
			return NESTED_VCPU_COLUMNS;
	}
	return VCPU_COLUMNS;
}

/* A person wants to know why there is no name.  tid, pid: -1 where they are not known. */
static const char *process_name(struct json_object *process, int64_t tid, int64_t pid, struct report_how how)
{
	const char *comm = field_text(process, "host_comm");
	if (*comm || tid < 0 || how.format != FORMAT_TEXT)
		return comm;
	return pid < 0 ? "(no event tells its PID)" : "(no event tells)";
}

/* The report, to be ended. */
static struct report *vcpu_rows(struct json_object *doc, const struct report_shape *shape, struct report_how how,
                                const struct origin *o)
{
	struct json_object *vms = field_array(doc, "vms");
	struct report *r = report_begin(stdout, how, shape, o);
	for (size_t i = 0; vms && i < json_object_array_length(vms); i++) {
		struct json_object *vm = json_object_array_get_idx(vms, i), *vcpus = field_array(vm, "vcpus");
		for (size_t k = 0; vcpus && k < json_object_array_length(vcpus); k++) {
			struct json_object *v = json_object_array_get_idx(vcpus, k);
			struct json_object *process = json_object_object_get_ex(v, "host_pid", NULL) ? v : vm;  /* it has moved */
			int64_t tid = field_int(v, "host_tid", -1), pid = field_int(process, "host_pid", -1);
			report_row(r, (struct value[]){
				VAL_SHOWN(field_text(vm, "vm")), VAL_INT(field_int(v, "vcpu", -1)),
				tid < 0 ? VAL_NONE : VAL_INT(tid), pid < 0 ? VAL_NONE : VAL_INT(pid),
				VAL_SHOWN(process_name(process, tid, pid, how)), VAL_SHOWN(field_text(v, "evidence")),
				VAL_SHOWN(field_text(vm, "parent")) });
		}
	}
	return r;
}

static void trace_rows(struct json_object *doc)
{
	struct json_object *traces = field_array(doc, "traces");
	static const struct report_shape shape = REPORT_SHAPE_SPARING("traces", trace_columns, "bytes layout");
	struct report *r = report_begin(stdout, REPORT_WHOLE(FORMAT_TEXT), &shape, NULL);
	for (size_t i = 0; traces && i < json_object_array_length(traces); i++) {
		struct json_object *t = json_object_array_get_idx(traces, i);
		report_row(r, (struct value[]){
			VAL_SHOWN(field_text(t, "machine")), VAL_SHOWN(field_text(t, "role")),
			VAL_INT(field_int(t, "events", 0)), VAL_INT(field_int(t, "lost", 0)),
			field_int(t, "bytes", 0) ? VAL_INT(field_int(t, "bytes", 0)) : VAL_NONE, VAL_SHOWN(field_text(t, "layout")),
			VAL_SHOWN(field_text(t, "tracer")) });
	}
	report_end(r, NULL);
}

static bool has_rows(struct json_object *doc, const char *key)
{
	struct json_object *list = field_array(doc, key);
	return list && json_object_array_length(list) > 0;
}

/* A VM that no host was seen to run has none. */
static bool has_vcpus(struct json_object *doc)
{
	struct json_object *vms = field_array(doc, "vms");
	bool has = false;
	for (size_t i = 0; vms && i < json_object_array_length(vms); i++)
		has |= has_rows(json_object_array_get_idx(vms, i), "vcpus");
	return has;
}

static void options_text(const char *rest)
{
	for (const char *word = "options"; *rest; word = "") {
		const size_t n = text_line(rest, 70);
		printf("%-10s%.*s\n", word, (int)n, rest);
		rest += n + (rest[n] == ' ');
	}
	putchar('\n');
}

static void print_text(const struct history *h, struct json_object *doc, const struct report_shape *shape)
{
	char begin[TIME_TEXT], end[TIME_TEXT], span[TIME_TEXT];
	printf("history   %s\n", history_file(h));
	printf("          %" PRIu64 " intervals of %" PRIu32 " attributes in %" PRIu64 " bytes\n", history_intervals(h),
	       history_attribute_count(h), history_bytes(h));
	printf("built by  %s\n", field_text(doc, "tool"));
	printf("span      %s .. %s (%s)\n", time_date(begin, history_begin(h), 6), time_clock(end, history_end(h), 6),
	       time_duration(span, history_end(h) - history_begin(h) + 1));
	options_text(field_text(doc, "shape"));
	trace_rows(doc);
	if (has_vcpus(doc)) {
		putchar('\n');
		report_end(vcpu_rows(doc, shape, REPORT_WHOLE(FORMAT_TEXT), NULL), NULL);
	}
	if (has_rows(doc, "sync")) {
		putchar('\n');
		clock_report(field_array(doc, "sync"), REPORT_WHOLE(FORMAT_TEXT), NULL, NULL);
	}
	struct notes notes = { 0 };
	struct origin o = { 0 };
	provenance_notes(h, &notes);
	if (notes.len)
		putchar('\n');
	origin_doubt(&o, &notes);
	origin_write_notes(&o, stdout);
	origin_release(&o);
}

/* Beside the rows, all that the history says of itself; and all notes, not only the doubts. */
static int print_json(const struct scene *s, struct json_object *doc, const struct report_shape *shape,
                      struct report_how how, struct error *err)
{
	struct origin o = s->origin;
	struct report *r;
	o.notes = (struct notes){ 0 };
	provenance_notes(s->h, &o.notes);
	r = vcpu_rows(doc, shape, how, &o);
	report_member(r, "begin", json_object_new_int64(history_begin(s->h)));
	report_member(r, "end", json_object_new_int64(history_end(s->h)));
	report_member(r, "intervals", json_object_new_int64((int64_t)history_intervals(s->h)));
	report_member(r, "attributes", json_object_new_int64(history_attribute_count(s->h)));
	report_member(r, "bytes", json_object_new_int64((int64_t)history_bytes(s->h)));
	struct json_object_iter it;
	json_object_object_foreachC(doc, it)
		report_member(r, it.key, json_object_get(it.val));
	int rc = report_end(r, err);
	notes_release(&o.notes);
	return rc;
}

static int print(struct scene *s, struct report_how how, struct error *err)
{
	scene_about(s, NULL, how);
	struct json_object *doc = scene_told(s, err);
	if (!doc)
		return -1;
	const size_t columns = count_columns(field_array(doc, "vms"), how);
	const struct report_shape shape = { "info", vcpu_columns, columns, "host_pid evidence", NULL };
	if (how.format == FORMAT_CSV)
		return report_end(vcpu_rows(doc, &shape, how, &s->origin), err);
	if (how.format == FORMAT_JSON)
		return print_json(s, doc, &shape, how, err);
	print_text(s->h, doc, &shape);
	return 0;
}

int cmd_info(int argc, char **argv, struct error *err)
{
	struct report_how how = REPORT_HOW;
	const struct opt opt[] = { ANSWER_OPTIONS(&how) };
	static const struct window_options always = { 0 };
	const struct opts opts = { "info WHAT", "What is in a history, and how it came to be.", opt,
	                           sizeof opt / sizeof *opt, 1, 1 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	struct scene s;
	int rc = scene_open(&s, argv[first], &always, err);
	if (rc == 0)
		rc = print(&s, how, err);
	return scene_close(&s, rc, err);
}
