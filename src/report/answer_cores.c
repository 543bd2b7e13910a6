/* Writes the sharers of cores: one line per target and sharer, and one each for the time alone and for the unknown time.
 * The lines of a target add up to its running time, if cores have at most two CPUs. */
#include "report/core_columns.h"

static const struct column columns[] = {
	{ "target", "target", COL_TEXT }, { "kind", NULL, COL_UNCUT },     { "sharer", "on the same core", COL_TEXT },
	{ "ns", "time", COL_DURATION },   { "ran_share", "of ran", COL_SHARE },
	/* only with hardware counters: of the part of `time` that they cover */
	{ "counted_ns", NULL, COL_DURATION }, { "ipc", "IPC", COL_REAL },
};
#define COUNTER_COLUMNS 2

/* sharer: NULL: none. */
static void put_row(struct report *r, const char *target, const char *kind, const char *sharer, int64_t ns, int64_t ran,
                    const struct core_counts *counts)
{
	if (ns > 0)
		report_row(r, (struct value[]){ VAL_SHOWN(target), VAL_SHOWN(kind), sharer ? VAL_SHOWN(sharer) : VAL_NONE,
		                                VAL_INT(ns), VAL_REAL((double)ns / (double)ran), VAL_INT(counts->ns),
		                                core_ipc_value(counts) });
}

int report_cores(FILE *out, struct report_how how, const struct catalog *catalog, const struct core_share *s, size_t top,
                 const struct origin *o, struct error *err)
{
	struct report_shape shape = REPORT_SHAPE("steal-cores", columns);
	shape.columns -= s->counters ? 0 : COUNTER_COLUMNS;
	struct report *r = report_begin(out, how, &shape, o);
	for (size_t i = 0; i < s->rows; i++) {
		const struct core_row *row = &s->row[i];
		char target[ACTOR_TEXT], name[ACTOR_TEXT];
		catalog_target_text(catalog, &row->target, target, sizeof target);
		for (size_t k = row->sharer; k < row->sharer + row->sharers && (top == 0 || k < row->sharer + top); k++) {
			const struct core_sharer *sharer = &s->sharer[k];
			if (how.format == FORMAT_TEXT)
				actor_text(catalog, &sharer->actor, s->name[sharer->actor.name], ACTOR_SHOWN, NULL, name, sizeof name);
			else
				actor_text(catalog, &sharer->actor, s->name[sharer->actor.name], ACTOR_PLAIN, NULL, name, sizeof name);
			put_row(r, target, "shared", name, sharer->ns, row->time.ran, &sharer->counts);
		}
		const bool people = how.format == FORMAT_TEXT;
		put_row(r, target, "alone", people ? "(none)" : NULL, row->time.alone, row->time.ran, &row->alone);
		put_row(r, target, "unknown", people ? "unknown" : NULL, row->time.unknown, row->time.ran,
		        &(struct core_counts){ 0 });
	}
	return report_end(r, err);
}
