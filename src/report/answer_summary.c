/* Writes the summary of victims: a line per machine and thread. Text has a lane that shows the lost time over time: one
 * character per part of the window, by the share of the runnable time that was lost. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "report/core_columns.h"
#include "report/report.h"

static const struct column summary_columns[] = {
	{ "target", "target", COL_TEXT },       { "machine", NULL, COL_TEXT },
	{ "tid", NULL, COL_INT },             { "name", NULL, COL_TEXT },
	{ "start", NULL, COL_INT },           { "end", NULL, COL_INT },
	{ "life_ns", "life", COL_DURATION },  { "ran_ns", "ran", COL_DURATION },
	{ "lost_ns", "lost", COL_DURATION },  { "lost_share", "lost%", COL_SHARE },
	{ "longest_ns", "max wait", COL_DURATION }, { "longest_start", NULL, COL_INT },
	{ "p50_ns", NULL, COL_DURATION },     { "p90_ns", NULL, COL_DURATION },
	{ "p99_ns", "p99 ~", COL_DURATION },    { "gaps", "gaps", COL_INT },
	{ "culprit", "top culprit", COL_TEXT },   { "culprit_ns", NULL, COL_DURATION },
	{ "culprit_share", "", COL_SHARE },     { "vmm_ns", NULL, COL_DURATION },
	{ "poll_won_ns", NULL, COL_DURATION }, { "poll_lost_ns", NULL, COL_DURATION },
	{ "threads", NULL, COL_INT },
	{ NULL, "over time", COL_LANE },
};

static const struct column thread_columns[] = {
	{ "machine", "machine", COL_TEXT },   { "tid", "TID", COL_INT },
	{ "name", "name", COL_TEXT },         { "start", "from", COL_CLOCK },
	{ "end", NULL, COL_INT },             { "life_ns", "life", COL_DURATION },
	{ "ran_ns", "ran", COL_DURATION },    { "lost_ns", "lost", COL_DURATION },
	{ "lost_share", "lost%", COL_SHARE }, { "longest_ns", "max wait", COL_DURATION },
	{ "p99_ns", "p99 ~", COL_DURATION },    { "gaps", "gaps", COL_INT },
	{ "culprit", "top culprit", COL_TEXT },   { "culprit_ns", NULL, COL_DURATION },
	{ "culprit_machine", NULL, COL_TEXT }, { "threads", NULL, COL_INT },
};

/* Name of the column by which the rows are sorted, if narrow terminals may drop it; NULL: they cannot drop it. */
static const char *const sort_column_of_summary[SUMMARY_ORDER_COUNT] = { [SUMMARY_BY_P99] = "p99_ns",
                                                                        [SUMMARY_BY_GAPS] = "gaps",
	[SUMMARY_BY_RAN] = "ran_ns", [SUMMARY_BY_LIFE] = "life_ns" };
static const char *const sort_column_of_threads[SUMMARY_ORDER_COUNT] = { [SUMMARY_BY_LONGEST] = "longest_ns",
	[SUMMARY_BY_P99] = "p99_ns", [SUMMARY_BY_GAPS] = "gaps", [SUMMARY_BY_LIFE] = "life_ns" };

#define SUMMARY_COLUMNS (sizeof summary_columns / sizeof *summary_columns)
#define THREAD_COLUMNS (sizeof thread_columns / sizeof *thread_columns)

static double share(int64_t part, int64_t whole)
{
	return whole > 0 ? (double)part / (double)whole : 0;
}

static const char *culprit_text(const struct catalog *catalog, const struct summary *s, const struct summary_row *row,
                                int format, char buf[ACTOR_TEXT])
{
	const struct actor *p = &row->culprit;
	const char *name = p->name < s->names ? s->name[p->name] : NULL;
	if (p->kind == FLOW_RUNNING)
		return "";
	if (format != FORMAT_TEXT)
		return actor_text(catalog, p, name, ACTOR_PLAIN, NULL, buf, ACTOR_TEXT);
	return actor_text(catalog, p, name, ACTOR_SHOWN, &row->target, buf, ACTOR_TEXT);
}

static struct value value_name(const struct catalog *catalog, const struct summary_row *row)
{
	if (row->group)
		return VAL_TEXT(row->group);
	return row->target.kind == TARGET_THREAD ? VAL_TEXT(catalog_longest_name(catalog, row->target.index)) : VAL_NONE;
}

/* Returns the name of a row in the thread table; in text with the number of threads of a group. */
static struct value value_name_in_table(const struct catalog *catalog, const struct summary_row *row, int format,
                                        char buf[ACTOR_TEXT])
{
	char name[ACTOR_TEXT / 2];
	if (format != FORMAT_TEXT || !row->group)
		return value_name(catalog, row);
	snprintf(buf, ACTOR_TEXT, "%s (%u thread%s)", text_escape(name, sizeof name, row->group), (unsigned)row->threads,
	         row->threads == 1 ? "" : "s");
	return VAL_SHOWN(buf);
}

/* Returns a thread's TID, or of a group's process. */
static struct value value_thread(const struct catalog *catalog, const struct summary_row *row)
{
	if (row->group)
		return row->group_tid >= 0 ? VAL_INT(row->group_tid) : VAL_NONE;
	return row->target.kind == TARGET_THREAD ? VAL_INT(catalog->thread[row->target.index].tid) : VAL_NONE;
}

struct lanes {
	const struct catalog *catalog;
	const struct summary *s;
	struct error *err;
	int status;
	bool drawn;
};

/* Draws a lane, one character per part of the window: ' ' not runnable, or lost time unknown; otherwise by the share of
 * lost time: '.' none, ',' below 1/8, 'i' below 1/2, '!' more. */
static int draw_lane(void *arg, int64_t row, unsigned columns, char *lane)
{
	struct lanes *l = arg;
	const struct summary *s = l->s;
	const struct summary_row *of = &s->row[row];
	int64_t *edge = mem_new((size_t)columns + 1, sizeof *edge), *ran = mem_new(2 * (size_t)columns, sizeof *ran);
	int64_t *lost = ran + columns;
	for (unsigned c = 0; c <= columns; c++)
		edge[c] = flow_column(s->start, s->end, c, columns);
	int status = 0;
	for (uint32_t i = 0; i < (of->group ? of->threads : 1) && status == 0; i++) {
		const struct target thread = { TARGET_THREAD, of->group ? s->member[of->first + i] : 0 };
		status = demand_cells(l->catalog, of->group ? &thread : &of->target, edge, columns, ran, lost, l->err);
	}
	for (unsigned c = 0; c < columns && status == 0; c++) {
		const double part = share(lost[c], ran[c] + lost[c]);
		const bool blank = ran[c] + lost[c] == 0 || !catalog_has_host_trace(l->catalog, &of->target);
		lane[c] = blank ? ' ' : lost[c] == 0 ? '.' : part < 0.125 ? ',' : part < 0.5 ? 'i' : '!';
	}
	free(edge);
	free(ran);
	l->status |= status;
	l->drawn = true;
	return status;
}

static struct value value_if(bool is_known, int64_t v)
{
	return is_known ? VAL_INT(v) : VAL_NONE;
}

struct polled_values { struct value won, lost; };

/* Returns the polling time of a VM; no value for threads, or if no poll was recorded. */
static struct polled_values polled_values(const struct catalog *catalog, const struct summary_row *row)
{
	int64_t ns[POLL_OUTCOME_COUNT];
	bool is_recorded = false;
	if (row->target.kind != TARGET_MACHINE || catalog->machine[row->target.index].kind != MACHINE_VM ||
	    polled_time(catalog, &row->target, row->start, row->end, ns, &is_recorded, NULL) < 0 || !is_recorded)
		return (struct polled_values){ VAL_NONE, VAL_NONE };
	return (struct polled_values){ VAL_INT(ns[POLL_SUCCEEDED]), VAL_INT(ns[POLL_FAILED]) };
}

static void summary_line(struct report *r, const struct catalog *catalog, const struct summary *s,
                         const struct core_share *cores, size_t number, int format)
{
	char target[ACTOR_TEXT], culprit[ACTOR_TEXT], sharer[ACTOR_TEXT];
	const struct summary_row *row = &s->row[number];
	const struct demand *d = &row->demand;
	const bool has_gaps = row->gaps > 0;
	const bool has_host_trace = catalog_has_host_trace(catalog, &row->target);
	const bool has_waits = has_host_trace && (has_gaps || format != FORMAT_TEXT);  /* people read 0 ns as a measured wait */
	const struct polled_values p = polled_values(catalog, row);
	struct value value[SUMMARY_COLUMNS + CORE_COLUMNS] = {
		VAL_SHOWN(summary_row_text(catalog, row, format != FORMAT_TEXT, target, sizeof target)),
		value_machine(catalog, (int32_t)target_machine(catalog, &row->target)), value_thread(catalog, row),
		value_name(catalog, row), VAL_INT(row->start), VAL_INT(row->end), VAL_INT(row->end - row->start + 1),
		VAL_INT(d->ran), value_if(has_host_trace, d->lost),
		has_host_trace ? VAL_REAL(share(d->lost, d->ran + d->lost)) : VAL_NONE,
		value_if(has_waits, has_gaps ? row->longest.end - row->longest.start + 1 : 0),
		has_gaps ? VAL_INT(row->longest.start) : VAL_NONE, value_if(has_waits, row->p50),
		value_if(has_waits, row->p90), value_if(has_waits, row->p99),
		value_if(has_host_trace, (int64_t)row->gaps),
		has_gaps ? VAL_SHOWN(culprit_text(catalog, s, row, format, culprit)) : VAL_NONE,
		has_gaps ? VAL_INT(row->culprit_ns) : VAL_NONE,
		has_gaps ? VAL_REAL(share(row->culprit_ns, d->lost)) : VAL_NONE, value_if(has_host_trace, d->vmm_ns),
		p.won, p.lost, row->threads ? VAL_INT(row->threads) : VAL_NONE };
	struct column unused[CORE_COLUMNS];
	if (cores)
		core_values(catalog, cores, number, format, sharer, value + SUMMARY_COLUMNS - 1);
	value[SUMMARY_COLUMNS - 1 + core_columns(cores, unused)] = VAL_INT((int64_t)number);
	report_row(r, value);
}

int report_summary(FILE *out, struct report_how how, const struct catalog *catalog, const struct summary *s,
                   const struct core_share *cores, size_t top, const struct finding *verdict, const struct origin *o,
                   struct error *err)
{
	struct column columns[SUMMARY_COLUMNS + CORE_COLUMNS];
	memcpy(columns, summary_columns, sizeof summary_columns);
	const size_t added = core_columns(cores, columns + SUMMARY_COLUMNS - 1);
	columns[SUMMARY_COLUMNS - 1 + added] = summary_columns[SUMMARY_COLUMNS - 1];  /* the lane remains the last one */
	struct report_shape shape = { "summary", columns, SUMMARY_COLUMNS + added,
	                              "life_ns p99_ns gaps ran_ns top_sharer culprit_share remote_share slow_share", NULL };
	shape.sort_column = sort_column_of_summary[s->by];
	struct report *r = report_begin(out, how, &shape, o);
	struct lanes lanes = { catalog, s, err, 0, false };
	size_t threads = 0;
	report_lanes(r, draw_lane, &lanes);
	for (size_t i = 0; i < s->rows && lanes.status == 0; i++) {
		bool is_thread = i >= s->machines;
		if (is_thread && (s->row[i].demand.lost == 0 || (top && threads == top)))
			continue;
		threads += is_thread;
		summary_line(r, catalog, s, cores, i, how.format);
	}
	if (verdict && how.format == FORMAT_JSON)
		report_member(r, "verdict", finding_json(catalog, verdict, s->start, s->end));
	if (report_end(r, err))
		return -1;
	if (lanes.drawn)
		fputs("\nover time: share of runnable time lost: ! >= 50%  i >= 12.5%  , less  . none\n", out);
	return lanes.status;
}

int report_threads(FILE *out, struct report_how how, const struct catalog *catalog, const struct summary *s,
                   const struct core_share *cores, size_t top, const struct origin *o, struct error *err)
{
	struct column columns[THREAD_COLUMNS + CORE_COLUMNS];
	memcpy(columns, thread_columns, sizeof thread_columns);
	struct report_shape shape = { "threads", columns, THREAD_COLUMNS + core_columns(cores, columns + THREAD_COLUMNS),
	                              "p99_ns gaps longest_ns start life_ns top_sharer remote_share slow_share", NULL };
	shape.sort_column = sort_column_of_threads[s->by];
	struct report *r = report_begin(out, how, &shape, o);
	for (size_t i = s->machines; i < s->rows && (!top || i < s->machines + top); i++) {
		const struct summary_row *row = &s->row[i];
		const struct demand *d = &row->demand;
		char culprit[ACTOR_TEXT], name[ACTOR_TEXT], sharer[ACTOR_TEXT];
		bool has_gaps = row->gaps > 0;
		struct value value[THREAD_COLUMNS + CORE_COLUMNS] = {
			value_machine(catalog, (int32_t)target_machine(catalog, &row->target)), value_thread(catalog, row),
			value_name_in_table(catalog, row, how.format, name), VAL_INT(row->start), VAL_INT(row->end),
			VAL_INT(row->end - row->start + 1), VAL_INT(d->ran), VAL_INT(d->lost),
			VAL_REAL(share(d->lost, d->ran + d->lost)),
			VAL_INT(has_gaps ? row->longest.end - row->longest.start + 1 : 0), VAL_INT(row->p99),
			VAL_INT((int64_t)row->gaps),
			has_gaps ? VAL_SHOWN(culprit_text(catalog, s, row, how.format, culprit)) : VAL_NONE,
			has_gaps ? VAL_INT(row->culprit_ns) : VAL_NONE,
			has_gaps ? value_machine(catalog, row->culprit.machine) : VAL_NONE, VAL_INT(row->threads) };
		if (cores)
			core_values(catalog, cores, i, how.format, sharer, value + THREAD_COLUMNS);
		report_row(r, value);
	}
	return report_end(r, err);
}
