#include "report/report.h"

static const struct column columns[] = {
	{ "machine", "machine", COL_TEXT }, { "vcpu", "vCPU", COL_INT }, { "outcome", "poll", COL_WHOLE },
	{ "count", "count", COL_INT }, { "polled_ns", "polled", COL_DURATION }, { "wake_p50_ns", "wake p50", COL_DURATION },
	{ "wake_p99_ns", "p99", COL_DURATION }, { "wake_max_ns", NULL, COL_DURATION },
	{ "kept_ns", "others", COL_DURATION }, { "victim", "mostly", COL_TEXT }, { "victim_ns", NULL, COL_DURATION },
};

static struct value timed(const struct poll_row *row, int64_t ns)
{
	return row->timed ? VAL_INT(ns) : VAL_NONE;
}

int report_polls(FILE *out, struct report_how how, const struct topo *topo, const struct poll_list *l,
                 const struct origin *o, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE("polls", columns);
	struct report *r = report_begin(out, how, &shape, o);
	for (size_t i = 0; i < l->rows; i++) {
		const struct poll_row *e = &l->row[i];
		const struct topo_cpu *cpu = &topo->cpu[e->vcpu];
		const bool kept = e->victim_ns > 0;
		char who[PARTY_TEXT];
		report_row(r, (struct value[]){
			VAL_TEXT(topo->machine[cpu->machine].name), VAL_INT(cpu->number), VAL_TEXT(poll_outcome_name[e->outcome]),
			VAL_INT((int64_t)e->count), VAL_INT(e->total), timed(e, e->p50), timed(e, e->p99), timed(e, e->max),
			VAL_INT(e->kept), kept ? VAL_SHOWN(topo_subject_text(topo, &e->victim, who, sizeof who)) : VAL_NONE,
			kept ? VAL_INT(e->victim_ns) : VAL_NONE });
	}
	return report_end(r, err);
}
