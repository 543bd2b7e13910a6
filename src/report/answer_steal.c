#include "report/report.h"

static const struct column columns[] = {
	{ "victim", "victim", COL_TEXT },
	{ "culprit", "culprit", COL_TEXT },
	{ "ns", "time", COL_DURATION },
	{ "share", "share", COL_SHARE },
};

static char *actor_value(const struct catalog *catalog, const struct steal *s, const struct actor *p, int format,
                         char buf[ACTOR_TEXT])
{
	const char *name = p->name < s->names ? s->name[p->name] : NULL;
	return format == FORMAT_TEXT ? actor_text(catalog, p, name, ACTOR_SHOWN, NULL, buf, ACTOR_TEXT)
	                             : actor_text(catalog, p, name, ACTOR_PLAIN, NULL, buf, ACTOR_TEXT);
}

int report_steal(FILE *out, struct report_how how, const struct catalog *catalog, const struct steal *s,
                 const struct target *target, const struct origin *o, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE("steal", columns);
	struct report *r = report_begin(out, how, &shape, o);
	report_lost_time_of(r, catalog, target);
	for (size_t i = 0; i < s->cells; i++) {
		char victim[ACTOR_TEXT], culprit[ACTOR_TEXT];
		if (s->is_one)
			catalog_target_text(catalog, &s->victim, victim, sizeof victim);
		else
			actor_value(catalog, s, &s->cell[i].victim, how.format, victim);
		const struct actor *by = &s->cell[i].culprit;
		const struct actor_ref ref = { catalog, by, by->name < s->names ? s->name[by->name] : NULL };
		report_row(r, (struct value[]){ VAL_SHOWN(victim),
		                                VAL_WHO(actor_value(catalog, s, by, how.format, culprit), &ref),
		                                VAL_INT(s->cell[i].ns), VAL_REAL(s->cell[i].share) });
	}
	return report_end(r, err);
}
