/* Who suffers: a line for each machine and thread.  A lane is text for people: what was lost over time, a character for
 * each part of the window, by its share of the time in which the row wanted to run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/report.h"

static const struct column summary_columns[] = {
	{ "subject", "who", COL_TEXT },       { "machine", NULL, COL_TEXT },
	{ "tid", NULL, COL_INT },             { "name", NULL, COL_TEXT },
	{ "start", NULL, COL_INT },           { "end", NULL, COL_INT },
	{ "life_ns", "life", COL_DURATION },  { "ran_ns", "ran", COL_DURATION },
	{ "lost_ns", "lost", COL_DURATION },  { "lost_share", "lost%", COL_SHARE },
	{ "longest_ns", "longest", COL_DURATION }, { "longest_start", NULL, COL_INT },
	{ "p50_ns", NULL, COL_DURATION },     { "p90_ns", NULL, COL_DURATION },
	{ "p99_ns", "p99", COL_DURATION },    { "gaps", "gaps", COL_INT },
	{ "thief", "mostly to", COL_TEXT },   { "thief_ns", NULL, COL_DURATION },
	{ "thief_share", "", COL_SHARE },     { "served_ns", NULL, COL_DURATION },
	{ "poll_won_ns", NULL, COL_DURATION }, { "poll_lost_ns", NULL, COL_DURATION },
	{ NULL, "over time", COL_LANE },
};

static const struct column thread_columns[] = {
	{ "machine", "machine", COL_TEXT },   { "tid", "TID", COL_INT },
	{ "name", "name", COL_TEXT },         { "start", "from", COL_CLOCK },
	{ "end", NULL, COL_INT },             { "life_ns", "life", COL_DURATION },
	{ "ran_ns", "ran", COL_DURATION },    { "lost_ns", "lost", COL_DURATION },
	{ "lost_share", "lost%", COL_SHARE }, { "longest_ns", "longest", COL_DURATION },
	{ "p99_ns", "p99", COL_DURATION },    { "gaps", "gaps", COL_INT },
	{ "thief", "mostly to", COL_TEXT },   { "thief_ns", NULL, COL_DURATION },
};

/* The column that the rows are sorted by, of those that may be spared. */
static const char *const kept_of_summary[SUMMARY_ORDER_COUNT] = { [SUMMARY_BY_P99] = "p99_ns", [SUMMARY_BY_GAPS] = "gaps",
	[SUMMARY_BY_RAN] = "ran_ns", [SUMMARY_BY_LIFE] = "life_ns" };
static const char *const kept_of_threads[SUMMARY_ORDER_COUNT] = { [SUMMARY_BY_LONGEST] = "longest_ns",
	[SUMMARY_BY_P99] = "p99_ns", [SUMMARY_BY_GAPS] = "gaps", [SUMMARY_BY_LIFE] = "life_ns" };

static double share(int64_t part, int64_t whole)
{
	return whole > 0 ? (double)part / (double)whole : 0;
}

static const char *thief_text(const struct topo *topo, const struct summary *s, const struct summary_row *row,
                              int format, char buf[PARTY_TEXT])
{
	const struct party *p = &row->thief;
	const char *name = p->name < s->names ? s->name[p->name] : NULL;
	if (p->kind == FLOW_RUNNING)
		return "";
	if (format != FORMAT_TEXT)
		return party_text(topo, p, name, buf, PARTY_TEXT);
	const char *own = thief_own(topo, &row->who, p);
	const size_t n = strlen(own);
	memcpy(buf, own, n + 1);
	party_shown(topo, p, name, buf + n, PARTY_TEXT - n);
	return buf;
}

static struct value value_name(const struct topo *topo, const struct subject *who)
{
	return who->kind == SUBJECT_THREAD ? VAL_TEXT(topo_longest_name(topo, who->index)) : VAL_NONE;
}

static struct value value_thread(const struct topo *topo, const struct subject *who)
{
	return who->kind == SUBJECT_THREAD ? VAL_INT(topo->thread[who->index].tid) : VAL_NONE;
}

struct lanes {
	const struct topo *topo;
	const struct summary *s;
	struct error *err;
	int status;
	bool drawn;
};

/* ' ' it wanted nothing, or what it lost is not known; '.' it lost nothing, then by eighths. */
static int draw_lane(void *arg, int64_t row, unsigned columns, char *lane)
{
	struct lanes *l = arg;
	const struct summary *s = l->s;
	int64_t *edge = mem_new((size_t)columns + 1, sizeof *edge), *ran = mem_new(2 * (size_t)columns, sizeof *ran);
	int64_t *lost = ran + columns;
	for (unsigned c = 0; c <= columns; c++)
		edge[c] = flow_column(s->start, s->end, c, columns);
	int status = demand_cells(l->topo, &s->row[row].who, edge, columns, ran, lost, l->err);
	for (unsigned c = 0; c < columns && status == 0; c++) {
		const double part = share(lost[c], ran[c] + lost[c]);
		const bool blank = ran[c] + lost[c] == 0 || !topo_is_watched(l->topo, &l->s->row[row].who);
		lane[c] = blank ? ' ' : lost[c] == 0 ? '.' : part < 0.125 ? ',' : part < 0.5 ? 'i' : '!';
	}
	free(edge);
	free(ran);
	l->status |= status;
	l->drawn = true;
	return status;
}

static struct value known(bool is, int64_t v)
{
	return is ? VAL_INT(v) : VAL_NONE;
}

struct polled { struct value won, lost; };

/* Of a machine as far as events tell of it; threads do not halt. */
static struct polled polled(const struct topo *topo, const struct summary_row *row)
{
	int64_t ns[POLL_OUTCOME_COUNT];
	bool told = false;
	if (row->who.kind != SUBJECT_MACHINE || topo->machine[row->who.index].kind != MACHINE_VM ||
	    polled_time(topo, &row->who, row->start, row->end, ns, &told, NULL) < 0 || !told)
		return (struct polled){ VAL_NONE, VAL_NONE };
	return (struct polled){ VAL_INT(ns[POLL_WON]), VAL_INT(ns[POLL_LOST]) };
}

static void summary_line(struct report *r, const struct topo *topo, const struct summary *s, const struct summary_row *row,
                         size_t number, int format)
{
	char who[PARTY_TEXT], thief[PARTY_TEXT];
	const struct demand *d = &row->demand;
	const bool gaps = row->gaps > 0;
	const bool watched = topo_is_watched(topo, &row->who);
	const struct polled p = polled(topo, row);
	report_row(r, (struct value[]){
		VAL_SHOWN(topo_subject_text(topo, &row->who, who, sizeof who)),
		value_system(topo, (int32_t)subject_machine(topo, &row->who)), value_thread(topo, &row->who),
		value_name(topo, &row->who), VAL_INT(row->start), VAL_INT(row->end), VAL_INT(row->end - row->start + 1),
		VAL_INT(d->ran), known(watched, d->lost),
		watched ? VAL_REAL(share(d->lost, d->ran + d->lost)) : VAL_NONE,
		known(watched, gaps ? row->longest.end - row->longest.start + 1 : 0),
		gaps ? VAL_INT(row->longest.start) : VAL_NONE, known(watched, row->p50),
		known(watched, row->p90), known(watched, row->p99),
		known(watched, (int64_t)row->gaps),
		gaps ? VAL_SHOWN(thief_text(topo, s, row, format, thief)) : VAL_NONE, gaps ? VAL_INT(row->thief_ns) : VAL_NONE,
		gaps ? VAL_REAL(share(row->thief_ns, d->lost)) : VAL_NONE, known(watched, d->served), p.won, p.lost,
		VAL_INT((int64_t)number) });
}

int report_summary(FILE *out, struct report_how how, const struct topo *topo, const struct summary *s, size_t top,
                   const struct origin *o, struct error *err)
{
	struct report_shape shape = REPORT_SHAPE_SPARING("summary", summary_columns, "life_ns p99_ns gaps ran_ns thief_share");
	shape.kept = kept_of_summary[s->by];
	struct report *r = report_begin(out, how, &shape, o);
	struct lanes lanes = { topo, s, err, 0, false };
	size_t threads = 0;
	report_lanes(r, draw_lane, &lanes);
	for (size_t i = 0; i < s->rows && lanes.status == 0; i++) {
		bool thread = i >= s->machines;
		if (thread && (s->row[i].demand.lost == 0 || (top && threads == top)))
			continue;
		threads += thread;
		summary_line(r, topo, s, &s->row[i], i, how.format);
	}
	if (report_end(r, err))
		return -1;
	if (lanes.drawn)
		fputs("\nover time: of what it wanted it lost half or more !  an eighth or more i  less ,  nothing .\n", out);
	return lanes.status;
}

int report_threads(FILE *out, struct report_how how, const struct topo *topo, const struct summary *s,
                    const struct origin *o, struct error *err)
{
	struct report_shape shape = REPORT_SHAPE_SPARING("threads", thread_columns, "p99_ns gaps longest_ns start life_ns");
	shape.kept = kept_of_threads[s->by];
	struct report *r = report_begin(out, how, &shape, o);
	for (size_t i = s->machines; i < s->rows; i++) {
		const struct summary_row *row = &s->row[i];
		const struct demand *d = &row->demand;
		char thief[PARTY_TEXT];
		bool gaps = row->gaps > 0;
		report_row(r, (struct value[]){
			value_system(topo, (int32_t)subject_machine(topo, &row->who)), value_thread(topo, &row->who),
			value_name(topo, &row->who), VAL_INT(row->start), VAL_INT(row->end), VAL_INT(row->end - row->start + 1),
			VAL_INT(d->ran), VAL_INT(d->lost), VAL_REAL(share(d->lost, d->ran + d->lost)),
			VAL_INT(gaps ? row->longest.end - row->longest.start + 1 : 0), VAL_INT(row->p99), VAL_INT((int64_t)row->gaps),
			gaps ? VAL_SHOWN(thief_text(topo, s, row, how.format, thief)) : VAL_NONE,
			gaps ? VAL_INT(row->thief_ns) : VAL_NONE });
	}
	return report_end(r, err);
}
