#include <inttypes.h>
#include <stdio.h>

#include "report/report.h"

static const struct column interval_columns[] = {
	{ "start", "start", COL_CLOCK }, { "end", NULL, COL_CLOCK }, { "machine", "machine", COL_TEXT },
	{ "tid", "TID", COL_INT }, { "name", "name", COL_TEXT }, { "kind", "kind", COL_UNCUT },
	{ "culprit_machine", "culprit", COL_TEXT }, { "culprit_tid", "TID", COL_INT }, { "culprit_name", "name", COL_TEXT },
	{ "edge", "edge", COL_UNCUT }, { "evidence", "evidence", COL_UNCUT }, { "duration_ns", "time", COL_DURATION },
};

static const struct column sum_columns[] = {
	{ "duration_ns", "time", COL_DURATION }, { "share", "share", COL_SHARE }, { "machine", "machine", COL_TEXT },
	{ "tid", "TID", COL_INT }, { "name", "name", COL_TEXT }, { "kind", "kind", COL_UNCUT },
	{ "culprit_machine", "culprit", COL_TEXT }, { "culprit_tid", "TID", COL_INT }, { "culprit_name", "name", COL_TEXT },
	{ "segments", "intervals", COL_INT },
};

static struct value actor_name(const struct path *p, const struct actor *actor)
{
	return actor->name && actor->name < p->names ? VAL_TEXT(p->name[actor->name]) : VAL_NONE;
}

static struct value kind_name(const struct actor *actor)
{
	return VAL_TEXT(actor->kind == FLOW_WAITING ? PATH_WAIT : flow_kind_name[actor->kind]);
}

static struct value evidence_text(const struct path_interval *interval, char buf[32])
{
	if (interval->evidence == PATH_PROVEN || interval->evidence == PATH_NO_EVIDENCE)
		return VAL_TEXT(interval->evidence == PATH_PROVEN ? "proven" : "none");
	snprintf(buf, 32, "nearest:%" PRId64, interval->evidence);
	return VAL_TEXT(buf);
}

static int report_path_intervals(FILE *out, struct report_how how, const struct catalog *catalog, const struct path *p,
                                 const struct origin *o, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE_DROPPING("path", interval_columns,
	                                                              "edge culprit_tid evidence tid");
	struct report *r = report_begin(out, how, &shape, o);
	for (size_t i = 0; i < p->intervals; i++) {
		const struct path_interval *e = &p->interval[i];
		char evidence[32];
		report_row(r, (struct value[]){
			VAL_INT(e->start), VAL_INT(e->end), value_machine(catalog, e->actor.machine), value_tid(e->actor.tid),
			actor_name(p, &e->actor), kind_name(&e->actor), value_machine(catalog, e->culprit.machine),
			value_tid(e->culprit.tid),
			actor_name(p, &e->culprit),
			VAL_TEXT(path_edge_name[e->edge]), evidence_text(e, evidence), VAL_INT(e->end - e->start + 1) });
	}
	return report_end(r, err);
}

int report_path(FILE *out, struct report_how how, const struct catalog *catalog, const struct path *p, bool sums,
                const struct origin *o, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE_DROPPING("path-sums", sum_columns, "segments culprit_tid tid");
	if (!sums)
		return report_path_intervals(out, how, catalog, p, o, err);
	struct report *r = report_begin(out, how, &shape, o);
	for (size_t i = 0; i < p->sums; i++) {
		const struct path_sum *e = &p->sum[i];
		report_row(r, (struct value[]){
			VAL_INT(e->duration), VAL_REAL(e->share), value_machine(catalog, e->actor.machine), value_tid(e->actor.tid),
			actor_name(p, &e->actor), kind_name(&e->actor), value_machine(catalog, e->culprit.machine),
			value_tid(e->culprit.tid),
			actor_name(p, &e->culprit), VAL_INT((int64_t)e->intervals) });
	}
	return report_end(r, err);
}
