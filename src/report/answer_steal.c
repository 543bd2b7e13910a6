#include "report/report.h"

static const struct column columns[] = {
	{ "victim", "victim", COL_TEXT },
	{ "thief", "thief", COL_TEXT },
	{ "ns", "time", COL_DURATION },
	{ "share", "share", COL_SHARE },
};

static char *party(const struct topo *topo, const struct steal *s, const struct party *p, int format,
                   char buf[PARTY_TEXT])
{
	const char *name = p->name < s->names ? s->name[p->name] : NULL;
	return format == FORMAT_TEXT ? party_shown(topo, p, name, buf, PARTY_TEXT) : party_text(topo, p, name, buf, PARTY_TEXT);
}

int report_steal(FILE *out, struct report_how how, const struct topo *topo, const struct steal *s,
                 const struct subject *who, const struct origin *o, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE("steal", columns);
	struct report *r = report_begin(out, how, &shape, o);
	report_losses(r, topo, who);
	for (size_t i = 0; i < s->cells; i++) {
		char victim[PARTY_TEXT], thief[PARTY_TEXT];
		if (s->is_one)
			topo_subject_text(topo, &s->victim, victim, sizeof victim);
		else
			party(topo, s, &s->cell[i].victim, how.format, victim);
		report_row(r, (struct value[]){ VAL_SHOWN(victim),
		                                VAL_SHOWN(party(topo, s, &s->cell[i].thief, how.format, thief)),
		                                VAL_INT(s->cell[i].ns), VAL_REAL(s->cell[i].share) });
	}
	return report_end(r, err);
}
