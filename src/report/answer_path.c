#include <inttypes.h>
#include <stdio.h>

#include "report/report.h"

static const struct column piece_columns[] = {
	{ "start", "start", COL_CLOCK }, { "end", NULL, COL_CLOCK }, { "system", "machine", COL_TEXT },
	{ "tid", "TID", COL_INT }, { "name", "name", COL_TEXT }, { "kind", "kind", COL_WHOLE },
	{ "thief_system", "thief", COL_TEXT }, { "thief_tid", "TID", COL_INT }, { "thief_name", "name", COL_TEXT },
	{ "edge", "edge", COL_WHOLE }, { "evidence", "evidence", COL_WHOLE }, { "duration_ns", "time", COL_DURATION },
};

static const struct column sum_columns[] = {
	{ "duration_ns", "time", COL_DURATION }, { "share", "share", COL_SHARE }, { "system", "machine", COL_TEXT },
	{ "tid", "TID", COL_INT }, { "name", "name", COL_TEXT }, { "kind", "kind", COL_WHOLE },
	{ "thief_system", "thief", COL_TEXT }, { "thief_tid", "TID", COL_INT }, { "thief_name", "name", COL_TEXT },
	{ "pieces", "pieces", COL_INT },
};

static struct value name_of(const struct path *p, const struct party *who)
{
	return who->name && who->name < p->names ? VAL_TEXT(p->name[who->name]) : VAL_NONE;
}

static struct value kind_of(const struct party *who)
{
	return VAL_TEXT(who->kind == FLOW_WAITING ? PATH_WAIT : flow_kind_name[who->kind]);
}

static struct value evidence_of(const struct path_piece *piece, char buf[32])
{
	if (piece->evidence == PATH_PROVEN || piece->evidence == PATH_NO_EVIDENCE)
		return VAL_TEXT(piece->evidence == PATH_PROVEN ? "proven" : "none");
	snprintf(buf, 32, "nearest:%" PRId64, piece->evidence);
	return VAL_TEXT(buf);
}

static int report_pieces(FILE *out, struct report_how how, const struct topo *topo, const struct path *p,
                          const struct origin *o, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE_SPARING("path", piece_columns, "edge thief_tid evidence tid");
	struct report *r = report_begin(out, how, &shape, o);
	for (size_t i = 0; i < p->pieces; i++) {
		const struct path_piece *e = &p->piece[i];
		char evidence[32];
		report_row(r, (struct value[]){
			VAL_INT(e->start), VAL_INT(e->end), value_system(topo, e->who.system), value_tid(e->who.tid),
			name_of(p, &e->who), kind_of(&e->who), value_system(topo, e->thief.system), value_tid(e->thief.tid),
			name_of(p, &e->thief),
			VAL_TEXT(path_edge_name[e->edge]), evidence_of(e, evidence), VAL_INT(e->end - e->start + 1) });
	}
	return report_end(r, err);
}

int report_path(FILE *out, struct report_how how, const struct topo *topo, const struct path *p, bool sums,
                 const struct origin *o, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE_SPARING("path-sums", sum_columns, "pieces thief_tid tid");
	if (!sums)
		return report_pieces(out, how, topo, p, o, err);
	struct report *r = report_begin(out, how, &shape, o);
	for (size_t i = 0; i < p->sums; i++) {
		const struct path_sum *e = &p->sum[i];
		report_row(r, (struct value[]){
			VAL_INT(e->duration), VAL_REAL(e->share), value_system(topo, e->who.system), value_tid(e->who.tid),
			name_of(p, &e->who), kind_of(&e->who), value_system(topo, e->thief.system), value_tid(e->thief.tid),
			name_of(p, &e->thief), VAL_INT((int64_t)e->pieces) });
	}
	return report_end(r, err);
}
