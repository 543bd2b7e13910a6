/* stealscope info: shows content and provenance of a history. */
#include "base/base.h"
#include "base/json_field.h"
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

/* Column count: csv has only the documented columns; the column `parent` appears only with nested VMs. */
enum { CSV_VCPU_COLUMNS = 5, VCPU_COLUMNS, NESTED_VCPU_COLUMNS };

static size_t count_columns(struct json_object *vms, struct report_how how)
{
	if (how.format == FORMAT_CSV)
		return CSV_VCPU_COLUMNS;
	for (size_t i = 0; vms && i < json_object_array_length(vms); i++) {
		const char *parent = json_member_text(json_object_array_get_idx(vms, i), "parent");
		if (*parent && strcmp(parent, "host") != 0)
			return NESTED_VCPU_COLUMNS;
	}
	return VCPU_COLUMNS;
}

/* Returns the name of a vCPU's host process; in text, the reason if it is unknown. tid, pid: -1: unknown. */
static const char *process_name(struct json_object *process, int64_t tid, int64_t pid, struct report_how how)
{
	const char *comm = json_member_text(process, "host_comm");
	if (*comm || tid < 0 || how.format != FORMAT_TEXT)
		return comm;
	return pid < 0 ? "(PID not recorded)" : "(not recorded)";
}

/* Begins the report of vCPUs and adds their rows. The caller ends it. */
static struct report *vcpu_rows(struct json_object *doc, const struct report_shape *shape, struct report_how how,
                                const struct origin *o)
{
	struct json_object *vms = json_member_array(doc, "vms");
	struct report *r = report_begin(stdout, how, shape, o);
	for (size_t i = 0; vms && i < json_object_array_length(vms); i++) {
		struct json_object *vm = json_object_array_get_idx(vms, i), *vcpus = json_member_array(vm, "vcpus");
		for (size_t k = 0; vcpus && k < json_object_array_length(vcpus); k++) {
			struct json_object *v = json_object_array_get_idx(vcpus, k);
			/* a vCPU has its own host_pid if its VM was migrated and had several processes */
			struct json_object *process = json_object_object_get_ex(v, "host_pid", NULL) ? v : vm;
			int64_t tid = json_member_int(v, "host_tid", -1), pid = json_member_int(process, "host_pid", -1);
			/* without host threads, the numbers are those of the model */
			const bool has_thread = tid >= 0 && strcmp(json_member_text(v, "evidence"), "hypervisor") != 0;
			report_row(r, (struct value[]){
				VAL_SHOWN(json_member_text(vm, "vm")), VAL_INT(json_member_int(v, "vcpu", -1)),
				has_thread ? VAL_INT(tid) : VAL_NONE, has_thread && pid >= 0 ? VAL_INT(pid) : VAL_NONE,
				VAL_SHOWN(process_name(process, tid, pid, how)), VAL_SHOWN(json_member_text(v, "evidence")),
				VAL_SHOWN(json_member_text(vm, "parent")) });
		}
	}
	return r;
}

static void trace_rows(struct json_object *doc)
{
	struct json_object *traces = json_member_array(doc, "traces");
	static const struct report_shape shape = REPORT_SHAPE_DROPPING("traces", trace_columns, "bytes layout");
	struct report *r = report_begin(stdout, REPORT_WHOLE(FORMAT_TEXT), &shape, NULL);
	for (size_t i = 0; traces && i < json_object_array_length(traces); i++) {
		struct json_object *t = json_object_array_get_idx(traces, i);
		report_row(r, (struct value[]){
			VAL_SHOWN(json_member_text(t, "machine")), VAL_SHOWN(json_member_text(t, "role")),
			VAL_INT(json_member_int(t, "events", 0)), VAL_INT(json_member_int(t, "lost", 0)),
			json_member_int(t, "bytes", 0) ? VAL_INT(json_member_int(t, "bytes", 0)) : VAL_NONE,
			VAL_SHOWN(json_member_text(t, "layout")),
			VAL_SHOWN(json_member_text(t, "tracer")) });
	}
	report_end(r, NULL);
}

static bool has_rows(struct json_object *doc, const char *key)
{
	struct json_object *list = json_member_array(doc, key);
	return list && json_object_array_length(list) > 0;
}

/* Returns true if a VM has known vCPUs; VMs without a host trace have none. */
static bool has_vcpus(struct json_object *doc)
{
	struct json_object *vms = json_member_array(doc, "vms");
	bool has = false;
	for (size_t i = 0; vms && i < json_object_array_length(vms); i++)
		has |= has_rows(json_object_array_get_idx(vms, i), "vcpus");
	return has;
}

static void options_text(const char *rest)
{
	for (const char *word = "options"; *rest; word = "") {
		const size_t n = text_line_bytes(rest, 70);
		printf("%-10s%.*s\n", word, (int)n, rest);
		rest += n + (rest[n] == ' ');
	}
	putchar('\n');
}

/* Returns the value of an attribute of the host at the history's end; HISTORY_NULL: none. */
static int64_t host_attribute(const struct history *h, enum machine_attr attr)
{
	char path[80];
	struct interval iv = { 0, 0, HISTORY_NULL };
	history_path(path, sizeof path, SCHEMA_HOST, machine_schema[attr].name, (char *)NULL);
	const uint32_t id = history_find(h, path);
	if (id != HISTORY_NONE && history_type(h, id) == (int)machine_schema[attr].type)
		(void)history_stab(h, id, history_last(h), &iv, NULL);
	return iv.value;
}

/* Prints the host's topology: "cores     2 cores of 2 CPUs, 1 NUMA node, SMT on". */
static void print_cores(const struct catalog *catalog)
{
	unsigned cores = 0, cpus = 0, nodes = 0;
	for (uint32_t i = 0; i < catalog->cpus; i++) {
		const struct catalog_cpu *cpu = &catalog->cpu[i];
		bool first_of_core = cpu->sibling >= 0, first_of_node = cpu->node_number >= 0;
		for (uint32_t s = (uint32_t)cpu->sibling; first_of_core && s != i; s = (uint32_t)catalog->cpu[s].sibling)
			first_of_core = s > i;
		for (uint32_t k = 0; k < i && first_of_node; k++)
			first_of_node = catalog->cpu[k].node_number != cpu->node_number;
		cpus += cpu->sibling >= 0;
		cores += first_of_core;
		nodes += first_of_node;
	}
	if (!cores)
		return;
	const int64_t smt = host_attribute(catalog->h, MACHINE_SMT);
	char text[80];
	printf("cores     %u CPU%s on %u core%s", cpus, cpus == 1 ? "" : "s", cores, cores == 1 ? "" : "s");
	if (nodes)
		printf(", %u NUMA node%s", nodes, nodes == 1 ? "" : "s");
	if (smt != HISTORY_NULL)
		printf(", SMT %s", text_escape(text, sizeof text, history_string(catalog->h, smt)));
	if (host_attribute(catalog->h, MACHINE_CORE_SCHEDULING) == 1)
		printf(", core scheduling");
	putchar('\n');
}

static void print_text(const struct catalog *catalog, struct json_object *doc, const struct report_shape *shape)
{
	const struct history *h = catalog->h;
	char begin[TIME_TEXT], end[TIME_TEXT], duration[TIME_TEXT];
	printf("history   %s\n", history_file(h));
	printf("          %" PRIu64 " intervals of %" PRIu32 " attributes in %" PRIu64 " bytes\n", history_intervals(h),
	       history_attribute_count(h), history_bytes(h));
	printf("built by  %s\n", json_member_text(doc, "tool"));
	printf("span      %s .. %s (%s)\n", time_date(begin, history_begin(h), 6), time_clock(end, history_end(h), 6),
	       time_duration(duration, history_end(h) - history_begin(h) + 1));
	print_cores(catalog);
	options_text(json_member_text(doc, "shape"));
	trace_rows(doc);
	if (has_vcpus(doc)) {
		putchar('\n');
		report_end(vcpu_rows(doc, shape, REPORT_WHOLE(FORMAT_TEXT), NULL), NULL);
	}
	if (has_rows(doc, "sync")) {
		putchar('\n');
		clock_report(json_member_array(doc, "sync"), REPORT_WHOLE(FORMAT_TEXT), NULL, NULL);
	}
	struct notes notes = { 0 };
	struct origin o = { 0 };
	provenance_notes(h, &notes);
	if (notes.len)
		putchar('\n');
	origin_add_warnings(&o, &notes);
	origin_write_notes(&o, stdout);
	origin_release(&o);
}

/* Prints the rows with the whole provenance and all notes, not only warnings. */
static int print_json(const struct query_context *s, struct json_object *doc, const struct report_shape *shape,
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

static int print_info(struct query_context *s, struct report_how how, struct error *err)
{
	query_context_about(s, NULL, how);
	struct json_object *doc = query_context_provenance(s, err);
	if (!doc)
		return -1;
	const size_t columns = count_columns(json_member_array(doc, "vms"), how);
	const struct report_shape shape = { "info", vcpu_columns, columns, "host_pid evidence", NULL };
	if (how.format == FORMAT_CSV)
		return report_end(vcpu_rows(doc, &shape, how, &s->origin), err);
	if (how.format == FORMAT_JSON)
		return print_json(s, doc, &shape, how, err);
	print_text(&s->catalog, doc, &shape);
	return 0;
}

int cmd_info(int argc, char **argv, struct error *err)
{
	struct report_how how = REPORT_HOW;
	const struct opt opt[] = { ANSWER_OPTIONS(&how) };
	static const struct window_options whole_history = { 0 };
	const struct opts opts = { "info RECORDING", "Show the content of a history and how it was made.", opt,
	                           sizeof opt / sizeof *opt, 1, 1 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	struct query_context s;
	int rc = query_context_open(&s, argv[first], &whole_history, err);
	if (rc == 0)
		rc = print_info(&s, how, err);
	return query_context_close(&s, rc, err);
}
