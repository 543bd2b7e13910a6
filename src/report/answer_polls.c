#include "report/report.h"

static const struct column columns[] = {
	{ "machine", "machine", COL_TEXT }, { "vcpu", "vCPU", COL_INT }, { "outcome", "poll", COL_TEXT },
	{ "count", "count", COL_INT }, { "polled_ns", "polled", COL_DURATION }, { "wake_p50_ns", "wake p50", COL_DURATION },
	{ "wake_p99_ns", "p99", COL_DURATION }, { "wake_max_ns", NULL, COL_DURATION },
	{ "kept_ns", "others", COL_DURATION }, { "victim", "mostly", COL_TEXT }, { "victim_ns", NULL, COL_DURATION },
};

static struct value when(bool is, int64_t ns)
{
	return is ? VAL_INT(ns) : VAL_NONE;
}

int report_polls(FILE *out, struct report_how how, const struct topo *topo, const struct poll_list *l,
                 const struct origin *o, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE("polls", columns);
	struct report *r = report_begin(out, how, &shape, o);
	for (size_t i = 0; i < l->rows; i++) {
		const struct poll_row *e = &l->row[i];
		const struct topo_cpu *cpu = &topo->cpu[e->vcpu];
		const bool told = e->outcome != POLL_UNTOLD, kept = told && e->victim_ns > 0;
		char who[300];
		report_row(r, (struct value[]){
			VAL_TEXT(topo->machine[cpu->machine].name), VAL_INT(cpu->number), VAL_TEXT(poll_outcome_name[e->outcome]),
			VAL_INT((int64_t)e->count), when(told, e->total), when(e->timed > 0, e->p50), when(e->timed > 0, e->p99),
			when(e->timed > 0, e->max), when(told, e->kept),
			kept ? VAL_SHOWN(topo_subject_text(topo, &e->victim, who, sizeof who)) : VAL_NONE, when(kept, e->victim_ns) });
	}
	return report_end(r, err);
}
