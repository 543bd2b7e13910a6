#include "report/report.h"

static const struct column columns[] = {
	{ "machine", "machine", COL_TEXT }, { "vcpu", "vCPU", COL_INT }, { "waits_for", "waits for", COL_UNCUT },
	{ "by_machine", "woken by", COL_TEXT }, { "by_tid", "TID", COL_INT }, { "by_name", "name", COL_TEXT },
	{ "count", "count", COL_INT }, { "total_ns", "asleep", COL_DURATION }, { "share", "share", COL_SHARE },
};

int report_waits(FILE *out, struct report_how how, const struct catalog *catalog, const struct wait_list *l,
                 size_t top, const struct origin *o, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE_DROPPING("waits", columns, "by_tid share");
	struct report *r = report_begin(out, how, &shape, o);
	for (size_t i = 0; i < l->rows && (!top || i < top); i++) {
		const struct wait_row *e = &l->row[i];
		const struct catalog_cpu *cpu = e->vcpu < catalog->cpus ? &catalog->cpu[e->vcpu] : NULL;
		report_row(r, (struct value[]){
			cpu ? VAL_TEXT(catalog->machine[cpu->machine].name) : VAL_NONE, cpu ? VAL_INT(cpu->number) : VAL_NONE,
			VAL_TEXT(wait_kind_name[e->kind]),
			value_machine(catalog, e->by.machine), value_tid(e->by.tid),
			e->by.name && e->by.name < l->names ? VAL_TEXT(l->name[e->by.name]) : VAL_NONE, VAL_INT((int64_t)e->count),
			VAL_INT(e->total), VAL_REAL(e->share) });
	}
	return report_end(r, err);
}
