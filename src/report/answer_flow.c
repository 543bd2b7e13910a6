#include "report/report.h"

/* A flow has the first FLOW_COLUMNS; a CPU's users have all. */
#define FLOW_COLUMNS 6
static const struct column entry_columns[] = {
	{ "machine", "machine", COL_TEXT },  { "tid", "TID", COL_INT },
	{ "name", "name", COL_TEXT },       { "kind", "kind", COL_UNCUT },
	{ "duration_ns", "time", COL_DURATION }, { "share", "share", COL_SHARE },
	{ "times", "times", COL_INT },      { "longest_ns", "longest", COL_DURATION },
	{ "longest_start", "at", COL_CLOCK },
};

static const struct column interval_columns[] = {
	{ "start", "start ns", COL_INT }, { "end", "end ns", COL_INT }, { "machine", "machine", COL_TEXT },
	{ "tid", "TID", COL_INT },     { "name", "name", COL_TEXT }, { "kind", "kind", COL_UNCUT },
};

static struct value value_name(const struct flow *f, uint32_t name)
{
	return VAL_TEXT(name < f->names ? f->name[name] : NULL);
}

static int report_entries(FILE *out, struct report_how how, const struct catalog *catalog, const struct flow *f,
                          bool is_cpu, const struct origin *o, struct error *err)
{
	static const struct report_shape users = REPORT_SHAPE("cpu-users", entry_columns);
	static const struct report_shape flow = { "flow", entry_columns, FLOW_COLUMNS, "", NULL };
	struct report *r = report_begin(out, how, is_cpu ? &users : &flow, o);
	for (size_t i = 0; i < f->entries; i++) {
		const struct flow_entry *e = &f->entry[i];
		const struct actor *actor = &e->actor;
		report_row(r, (struct value[]){
			value_machine(catalog, actor->machine), value_tid(actor->tid), value_name(f, actor->name),
			VAL_TEXT(flow_kind_name[actor->kind]), VAL_INT(e->duration), VAL_REAL(e->share),
			VAL_INT((int64_t)e->intervals), VAL_INT(e->longest.ns), VAL_INT(e->longest.start) });
	}
	return report_end(r, err);
}

static int report_intervals(FILE *out, struct report_how how, const struct catalog *catalog, const struct flow *f,
                            const struct origin *o, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE("flow-intervals", interval_columns);
	struct report *r = report_begin(out, how, &shape, o);
	for (size_t i = 0; i < f->intervals; i++) {
		const struct flow_interval *v = &f->interval[i];
		const struct actor *actor = &f->entry[v->entry].actor;
		report_row(r, (struct value[]){ VAL_INT(v->start), VAL_INT(v->end), value_machine(catalog, actor->machine),
		                                value_tid(actor->tid), value_name(f, actor->name),
		                                VAL_TEXT(flow_kind_name[actor->kind]) });
	}
	return report_end(r, err);
}

/* Writes the tree into a table in memory for the viewer, which draws the bars. */
static int report_tree(struct report_how how, const struct catalog *catalog, const struct flow *f, double threshold)
{
	static const struct column columns[] = { { NULL, "actor", COL_TEXT }, { NULL, "time", COL_DURATION },
		{ NULL, "share", COL_SHARE } };
	static const struct report_shape shape = REPORT_SHAPE("flow", columns);
	struct flow_tree t;
	flow_tree_make(&t, f, threshold);
	struct report *r = report_begin(NULL, how, &shape, NULL);
	for (size_t i = 0; i < t.rows; i++) {
		char text[ACTOR_TEXT] = "  ";
		const size_t indent = t.row[i].entry ? 2 : 0;
		flow_row_text(catalog, f, &t.row[i], text + indent, sizeof text - indent);
		report_row(r, (struct value[]){ VAL_SHOWN(text), VAL_INT(t.row[i].duration),
		                                VAL_REAL((double)t.row[i].duration / ((double)(f->end - f->start) + 1)) });
	}
	flow_tree_release(&t);
	return report_end(r, NULL);
}

int report_flow(FILE *out, struct report_how how, const struct catalog *catalog, const struct target *s,
                const struct flow *f, const struct flow_text *options, const struct origin *o, struct error *err)
{
	if (how.table)
		return report_tree(how, catalog, f, options->threshold);
	if (how.format == FORMAT_TEXT && options) {
		struct flow_text text = *options;
		text.header = (const char *const *)o->line;
		text.headers = o->lines;
		return flow_write_text(catalog, f, s, &text, out, err);
	}
	if (options && options->intervals)
		return report_intervals(out, how, catalog, f, o, err);
	return report_entries(out, how, catalog, f, options == NULL, o, err);
}
