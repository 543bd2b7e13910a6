/* Writes the summary of victims: a line per machine and thread. Text has a lane that shows the lost time over time: one
 * character per part of the window, by the share of the runnable time that was lost. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "report/core_columns.h"
#include "report/report.h"

static const struct column summary_columns[] = {
	{ "target", "target", COL_TEXT },       { "machine", NULL, COL_TEXT },
	{ "tid", NULL, COL_INT },             { "name", NULL, COL_TEXT },
	{ "start", NULL, COL_INT },           { "end", NULL, COL_INT },
	{ "life_ns", "life", COL_DURATION },  { "ran_ns", "ran", COL_DURATION },
	{ "lost_ns", "lost", COL_DURATION },  { "lost_share", "lost%", COL_SHARE },
	{ "culprit", "top culprit", COL_TEXT },   { "culprit_ns", NULL, COL_DURATION },
	{ "culprit_share", "share", COL_SHARE },
	{ "longest_ns", "max wait", COL_DURATION }, { "longest_start", NULL, COL_INT },
	{ "p50_ns", NULL, COL_DURATION },     { "p90_ns", NULL, COL_DURATION },
	{ "p99_ns", "p99 ~", COL_DURATION },    { "gaps", "gaps", COL_INT },
	{ "vmm_ns", NULL, COL_DURATION },
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

/* Name of the column by which the rows are sorted; NULL: by no column. */
static const char *const sort_column[SUMMARY_ORDER_COUNT] = { [SUMMARY_BY_LOST] = "lost_ns",
	[SUMMARY_BY_SHARE] = "lost_share", [SUMMARY_BY_LONGEST] = "longest_ns", [SUMMARY_BY_P99] = "p99_ns",
	[SUMMARY_BY_GAPS] = "gaps", [SUMMARY_BY_RAN] = "ran_ns", [SUMMARY_BY_LIFE] = "life_ns" };

#define SUMMARY_COLUMNS (sizeof summary_columns / sizeof *summary_columns)
#define THREAD_COLUMNS (sizeof thread_columns / sizeof *thread_columns)

static double share(int64_t part, int64_t whole)
{
	return whole > 0 ? (double)part / (double)whole : 0;
}

#define SPREAD_SHARE 0.1  /* a top culprit with a smaller share is one of many */

const char *report_culprit_text(const struct catalog *catalog, const struct summary *s, const struct summary_row *row,
                                int format, char buf[ACTOR_TEXT])
{
	const struct actor *p = &row->culprit;
	const char *name = p->name < s->names ? s->name[p->name] : NULL;
	if (p->kind == FLOW_RUNNING)
		return "";
	if (format != FORMAT_TEXT)
		return actor_text(catalog, p, name, ACTOR_PLAIN, NULL, buf, ACTOR_TEXT);
	/* the hypervisor serves the row itself */
	const bool serves = p->kind == FLOW_HYPERVISOR && p->machine == (int32_t)target_machine(catalog, &row->target) &&
	                    (row->target.kind == TARGET_MACHINE ? p->tid < 0
	                     : row->target.kind == TARGET_THREAD && p->tid == catalog->thread[row->target.index].tid);
	if (serves)
		return "hypervisor";
	const bool spread = flow_is_thread(p->kind) && share(row->culprit_ns, row->demand.lost) < SPREAD_SHARE;
	const size_t n = (size_t)snprintf(buf, ACTOR_TEXT, "%s", spread ? "many, most " : "");
	actor_text(catalog, p, name, ACTOR_SHOWN, &row->target, buf + n, ACTOR_TEXT - n);
	return buf;
}

static struct actor_ref culprit_ref(const struct catalog *catalog, const struct summary *s, const struct summary_row *row)
{
	return (struct actor_ref){ catalog, &row->culprit, row->culprit.name < s->names ? s->name[row->culprit.name] : NULL };
}

const char *report_longest_by(const struct catalog *catalog, const struct summary_row *row,
                              const struct culprit_waits *w, char buf[ACTOR_TEXT])
{
	const struct actor *by = &w->longest_by, *top = &row->culprit;
	buf[0] = '\0';
	if (!w->found || by->kind == FLOW_RUNNING ||
	    (by->machine == top->machine && by->tid == top->tid && by->kind == top->kind))
		return buf;
	if (culprit_is_own(catalog, &row->target, by))
		snprintf(buf, ACTOR_TEXT, "other threads");
	else
		actor_text(catalog, by, w->longest_name, ACTOR_SHOWN, NULL, buf, ACTOR_TEXT);
	return buf;
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

static void summary_line(struct report *r, const struct catalog *catalog, const struct summary_parts *parts,
                         size_t number, int format)
{
	char target[ACTOR_TEXT], culprit[ACTOR_TEXT], sharer[ACTOR_TEXT];
	const struct summary *s = parts->s;
	const struct summary_row *row = &s->row[number];
	const struct demand *d = &row->demand;
	const struct actor_ref ref = culprit_ref(catalog, s, row);
	const bool has_gaps = row->gaps > 0, has_culprit = has_gaps || row->culprit_ns > 0;  /* VMM time is no gap */
	const bool has_host_trace = catalog_has_host_trace(catalog, &row->target);
	const bool has_waits = has_host_trace && (has_gaps || format != FORMAT_TEXT);  /* people read 0 ns as a measured wait */
	const struct polled_values p = format == FORMAT_TEXT ? (struct polled_values){ VAL_NONE, VAL_NONE }
	                                                     : polled_values(catalog, row);
	struct value value[SUMMARY_COLUMNS + CORE_COLUMNS] = {
		VAL_SHOWN(summary_row_text(catalog, row, format != FORMAT_TEXT, target, sizeof target)),
		value_machine(catalog, (int32_t)target_machine(catalog, &row->target)), value_thread(catalog, row),
		value_name(catalog, row), VAL_INT(row->start), VAL_INT(row->end), VAL_INT(row->end - row->start + 1),
		VAL_INT(d->ran), value_if(has_host_trace, d->lost),
		has_host_trace ? VAL_SHARE_IN(share(d->lost, d->ran + d->lost), demand_share_unit(d)) : VAL_NONE,
		has_culprit ? VAL_WHO(report_culprit_text(catalog, s, row, format, culprit), &ref)
		: row->has_gaps ? VAL_NONE : VAL_SHOWN(".."),
		has_culprit ? VAL_INT(row->culprit_ns) : VAL_NONE,
		has_culprit ? VAL_REAL(share(row->culprit_ns, d->lost)) : VAL_NONE,
		value_if(has_waits, has_gaps ? row->longest.end - row->longest.start + 1 : 0),
		has_gaps ? VAL_INT(row->longest.start) : VAL_NONE, value_if(has_waits, row->p50),
		value_if(has_waits, row->p90), value_if(has_waits, row->p99),
		value_if(has_host_trace && row->has_gaps, (int64_t)row->gaps), value_if(has_host_trace, d->vmm_ns),
		p.won, p.lost, row->threads ? VAL_INT(row->threads) : VAL_NONE };
	struct column unused[CORE_COLUMNS];
	if (parts->cores)
		core_values(catalog, parts->cores, number, format, sharer, value + SUMMARY_COLUMNS - 1);
	value[SUMMARY_COLUMNS - 1 + core_columns(parts->cores, unused)] = VAL_INT((int64_t)number);
	report_row(r, value);
}

/* Writes the time that the host spent with halt polling for each VM. */
static int write_halt_polling(FILE *out, const struct catalog *catalog, const struct summary *s, struct error *err)
{
	char name[ACTOR_TEXT], won[TIME_TEXT], lost[TIME_TEXT];
	int64_t ns[POLL_OUTCOME_COUNT];
	bool known, any = false;
	for (size_t i = 0; i < s->machines; i++) {
		const struct target *target = &s->row[i].target;
		if (catalog->machine[target->index].kind != MACHINE_VM)
			continue;
		if (polled_time(catalog, target, s->start, s->end, ns, &known, err) < 0)
			return -1;
		if (known)
			fprintf(out, "%s%s: halt polling of the host: %s in vain, %s successful\n", any ? "" : "\n",
			        catalog_target_text(catalog, target, name, sizeof name), time_duration(lost, ns[POLL_FAILED]),
			        time_duration(won, ns[POLL_SUCCEEDED]));
		any |= known;
	}
	return 0;
}

/* Writes the text below the table: its legend, the number of omitted threads, and why. */
static void write_legend(FILE *out, const struct summary *s, size_t top, bool has_lanes)
{
	const size_t threads = s->rows - s->machines, delayed = summary_delayed_threads(s);
	if (has_lanes)
		fputs("\nover time: share of runnable time lost: ! >= 50%  i >= 12.5%  , less  . none\n", out);
	if (summary_is_doubtful(s))
		fputs("? the target's state is unknown for longer than it is known\n", out);
	if (top && delayed > top)
		fprintf(out, "\nshown: %zu of %zu threads that lost time (--top)\n", top, delayed);
	if (threads > delayed)
		fprintf(out, "%s%zu thread%s never delayed\n", top && delayed > top ? "" : "\n", threads - delayed,
		        threads - delayed == 1 ? "" : "s");
}

size_t summary_delayed_threads(const struct summary *s)
{
	size_t n = 0;
	for (size_t i = s->machines; i < s->rows; i++)
		n += s->row[i].demand.lost > 0;
	return n;
}

bool summary_is_doubtful(const struct summary *s)
{
	for (size_t i = 0; i < s->rows; i++)
		if (s->row[i].demand.lost > 0 && *demand_share_unit(&s->row[i].demand) == '?')
			return true;
	return false;
}

/* Returns true for a row that people do not read: a thread without lost time, or a hypervisor without host threads. */
static bool is_omitted(const struct catalog *catalog, const struct summary *s, size_t i, int format)
{
	const bool is_hypervisor = format == FORMAT_TEXT && i < s->machines && catalog->has_run_states &&
	                           catalog->machine[s->row[i].target.index].kind == MACHINE_HOST;
	return (i >= s->machines || is_hypervisor) && s->row[i].demand.lost == 0;
}

int report_summary(FILE *out, struct report_how how, const struct catalog *catalog, const struct summary_parts *parts,
                   struct origin *o, struct error *err)
{
	struct column columns[SUMMARY_COLUMNS + CORE_COLUMNS];
	const struct summary *s = parts->s;
	memcpy(columns, summary_columns, sizeof summary_columns);
	const size_t added = core_columns(parts->cores, columns + SUMMARY_COLUMNS - 1);
	struct column *lane = &columns[SUMMARY_COLUMNS - 1 + added];
	*lane = summary_columns[SUMMARY_COLUMNS - 1];
	lane->heading = how.table ? NULL : lane->heading;  /* the viewer draws its own lanes, of the row with this number */
	struct report_shape shape = { "summary", columns, SUMMARY_COLUMNS + added,
	                              "life_ns ran_ns gaps p99_ns top_sharer remote_share slow_share culprit_share "
	                              "longest_ns | lost_share culprit", NULL };
	shape.sort_column = sort_column[s->by];
	if (parts->findings && how.format == FORMAT_TEXT) {
		report_findings_text(out, parts->findings, 1, parts->file);
		putc('\n', out);
	}
	report_warn_omitted(out, how, o, parts->top ? parts->top : SIZE_MAX, summary_delayed_threads(s),
	                    "threads that lost time");
	struct report *r = report_begin(out, how, &shape, o);
	struct lanes lanes = { catalog, s, err, 0, false };
	size_t threads = 0;
	report_lanes(r, draw_lane, &lanes);
	for (size_t i = 0; i < s->rows && lanes.status == 0 && !report_is_full(r); i++) {
		if (is_omitted(catalog, s, i, how.format) || (i >= s->machines && parts->top && threads == parts->top))
			continue;
		threads += i >= s->machines;
		summary_line(r, catalog, parts, i, how.format);
	}
	if (parts->findings && how.format == FORMAT_JSON)
		report_member(r, "verdict", finding_json(catalog, parts->findings->item, s->start, s->end));
	if (report_end(r, err))
		return -1;
	if (how.table || how.format != FORMAT_TEXT)
		return lanes.status;
	write_legend(out, s, parts->top, lanes.drawn);
	return lanes.status ? lanes.status : write_halt_polling(out, catalog, s, err);
}

int report_threads(FILE *out, struct report_how how, const struct catalog *catalog, const struct summary *s,
                   const struct core_share *cores, size_t top, const struct origin *o, struct error *err)
{
	struct column columns[THREAD_COLUMNS + CORE_COLUMNS];
	memcpy(columns, thread_columns, sizeof thread_columns);
	struct report_shape shape = { "threads", columns, THREAD_COLUMNS + core_columns(cores, columns + THREAD_COLUMNS),
	                              "p99_ns gaps longest_ns start life_ns top_sharer remote_share slow_share", NULL };
	shape.sort_column = sort_column[s->by];
	struct report *r = report_begin(out, how, &shape, o);
	for (size_t i = s->machines; i < s->rows && (!top || i < s->machines + top); i++) {
		const struct summary_row *row = &s->row[i];
		const struct demand *d = &row->demand;
		char culprit[ACTOR_TEXT], name[ACTOR_TEXT], sharer[ACTOR_TEXT];
		bool has_gaps = row->gaps > 0;
		const struct actor_ref ref = culprit_ref(catalog, s, row);
		struct value value[THREAD_COLUMNS + CORE_COLUMNS] = {
			value_machine(catalog, (int32_t)target_machine(catalog, &row->target)), value_thread(catalog, row),
			value_name_in_table(catalog, row, how.format, name), VAL_INT(row->start), VAL_INT(row->end),
			VAL_INT(row->end - row->start + 1), VAL_INT(d->ran), VAL_INT(d->lost),
			VAL_REAL(share(d->lost, d->ran + d->lost)),
			VAL_INT(has_gaps ? row->longest.end - row->longest.start + 1 : 0), VAL_INT(row->p99),
			VAL_INT((int64_t)row->gaps),
			has_gaps ? VAL_WHO(report_culprit_text(catalog, s, row, how.format, culprit), &ref) : VAL_NONE,
			has_gaps ? VAL_INT(row->culprit_ns) : VAL_NONE,
			has_gaps ? value_machine(catalog, row->culprit.machine) : VAL_NONE, VAL_INT(row->threads) };
		if (cores)
			core_values(catalog, cores, i, how.format, sharer, value + THREAD_COLUMNS);
		report_row(r, value);
	}
	return report_end(r, err);
}
