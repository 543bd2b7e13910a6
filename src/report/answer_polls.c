#include "report/report.h"

static const struct column columns[] = {
	{ "machine", "machine", COL_TEXT }, { "vcpu", "vCPU", COL_INT }, { "outcome", "poll", COL_UNCUT },
	{ "count", "count", COL_INT }, { "polled_ns", "polled", COL_DURATION }, { "wake_p50_ns", "wake p50", COL_DURATION },
	{ "wake_p99_ns", "p99", COL_DURATION }, { "wake_max_ns", NULL, COL_DURATION },
	{ "others_ns", "others", COL_DURATION }, { "victim", "top victim", COL_TEXT }, { "victim_ns", NULL, COL_DURATION },
};

static struct value value_if_timed(const struct poll_row *row, int64_t ns)
{
	return row->timed ? VAL_INT(ns) : VAL_NONE;
}

int report_polls(FILE *out, struct report_how how, const struct catalog *catalog, const struct poll_list *l,
                 const struct origin *o, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE("polls", columns);
	struct report *r = report_begin(out, how, &shape, o);
	for (size_t i = 0; i < l->rows; i++) {
		const struct poll_row *e = &l->row[i];
		const struct catalog_cpu *cpu = &catalog->cpu[e->vcpu];
		const bool has_victim = e->victim_ns > 0;
		char victim[ACTOR_TEXT];
		report_row(r, (struct value[]){
			VAL_TEXT(catalog->machine[cpu->machine].name), VAL_INT(cpu->number), VAL_TEXT(poll_outcome_name[e->outcome]),
			VAL_INT((int64_t)e->count), VAL_INT(e->total), value_if_timed(e, e->p50), value_if_timed(e, e->p99),
			value_if_timed(e, e->max),
			VAL_INT(e->others_ns),
			has_victim ? VAL_SHOWN(catalog_target_text(catalog, &e->victim, victim, sizeof victim)) : VAL_NONE,
			has_victim ? VAL_INT(e->victim_ns) : VAL_NONE });
	}
	return report_end(r, err);
}
