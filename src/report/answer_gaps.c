#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/timefmt.h"
#include "report/report.h"

static const enum column_type column_type[GAP_TYPES] = {
	[GAP_TYPE_CLOCK] = COL_CLOCK, [GAP_TYPE_INT] = COL_INT, [GAP_TYPE_DURATION] = COL_DURATION,
	[GAP_TYPE_SHARE] = COL_SHARE, [GAP_TYPE_TEXT] = COL_TEXT, [GAP_TYPE_WHOLE] = COL_UNCUT,
};

static const struct column length_columns[] = {
	{ "target", "target", COL_TEXT },          { "gaps", "gaps", COL_INT },
	{ "total_ns", "total", COL_DURATION },  { "p50_ns", "p50", COL_DURATION },
	{ "p90_ns", "p90", COL_DURATION },       { "p99_ns", "p99", COL_DURATION },
	{ "longest_ns", "longest", COL_DURATION },
};

static const struct column bin_columns[] = {
	{ "target", "target", COL_TEXT },        { "from_ns", "from", COL_DURATION },
	{ "to_ns", NULL, COL_DURATION },       { "count", "gaps", COL_INT },
	{ NULL, "", COL_LANE },
};

/* ---- One by one */

/* Returns the name of a culprit in text, of a limit its label. Words in parentheses stand for a machine as a whole and for
 * the hypervisor. */
static const char *culprit_words(const struct gap_record *row)
{
	static const char *const words[FLOW_KIND_COUNT] = {
		[FLOW_PREEMPTING] = "(its threads)", [FLOW_HYPERVISOR] = "(hypervisor)", [FLOW_IDLE_CPU] = "(idle CPU)",
		[FLOW_UNKNOWN] = "(unknown)", [FLOW_WAITING] = "(asleep on the host)",
	};
	const struct actor *culprit = row->culprit;
	const bool is_whole = culprit->tid < 0 && !*row->culprit_name;
	if (culprit->kind == FLOW_LIMITED)
		return out_reason_row[culprit->reason].label;
	if (!words[culprit->kind] || (culprit->kind != FLOW_HYPERVISOR && !is_whole))
		return row->culprit_name;
	const bool is_own = culprit_is_own(row->catalog, &row->gap->target, culprit);
	return is_own ? "(other threads)" : words[culprit->kind];
}

/* Removes "Debian/" from "Debian/vCPU0" if the common target is Debian, because text names Debian below the table. */
static void strip_common(const struct catalog *catalog, const struct target *common, char *target)
{
	char machine[ACTOR_TEXT];
	const size_t n = strlen(catalog_target_text(catalog, common, machine, sizeof machine));
	if (n && strncmp(target, machine, n) == 0 && target[n] == '/')
		memmove(target, target + n + 1, strlen(target + n));
}

/* Returns the value of a column in csv and json. */
static struct value field_value(const struct gap_record *row, enum gap_column_code code, char buf[ACTOR_TEXT])
{
	const struct gap_value v = gap_value(row, code, buf);
	const bool has_culprit = row->culprit->kind != FLOW_RUNNING;
	if (v.absent || (code >= GAP_COLUMN_CULPRIT_FIRST && !has_culprit))
		return VAL_NONE;
	if (gap_column[code].type == GAP_TYPE_SHARE)
		return VAL_REAL(v.share);
	if (v.text)
		return v.is_escaped ? VAL_SHOWN(v.text) : VAL_TEXT(v.text);
	return VAL_INT(v.number);
}

/* Writes a row. common: target of all rows, which text names below the table; NULL: none. */
static void write_gap(struct report *r, const struct gap_record *row, const struct target *common, struct report_how how)
{
	struct value value[GAP_COLUMN_COUNT];
	char target[ACTOR_TEXT], culprit[ACTOR_TEXT];
	size_t n = 0;
	for (enum gap_column_code code = 0; code < GAP_COLUMN_COUNT; code++) {
		if (!gap_column[code].name)
			continue;
		struct value *v = &value[n++];
		*v = field_value(row, code, code == GAP_COLUMN_TARGET ? target : culprit);
		if (how.format != FORMAT_TEXT)
			continue;
		if (code == GAP_COLUMN_TARGET && common)
			strip_common(row->catalog, common, target);
		if (code == GAP_COLUMN_CULPRIT_NAME && v->form != VALUE_ABSENT && row->culprit->kind != FLOW_CURRENT)
			*v = VAL_TEXT(culprit_words(row));
	}
	report_row(r, value);
}

static void write_totals(FILE *out, const struct catalog *catalog, const struct gap_list *list, const struct target *target)
{
	const struct gap_lengths *all = &list->all;
	char total[TIME_TEXT], p50[TIME_TEXT], p90[TIME_TEXT], p99[TIME_TEXT], longest[TIME_TEXT], name[ACTOR_TEXT] = "";
	if (!all->count)
		return;
	if (target)
		catalog_target_text(catalog, target, name, sizeof name);
	fprintf(out, "\n%" PRIu64 " gap%s%s%s, %s in total\nlength: p50 %s, p90 %s, p99 %s, longest %s\n", all->count,
	        all->count == 1 ? "" : "s", target ? " of " : "", name,
	        time_duration(total, all->total), time_duration(p50, all->p50), time_duration(p90, all->p90),
	        time_duration(p99, all->p99), time_duration(longest, all->longest));
	if (all->count > list->items)
		fprintf(out, "%zu longest of %" PRIu64 " shown (--top 0: all)\n", list->items, all->count);
}

/* Returns the target of all gaps: the requested one, or the only VM. */
static const struct target *common_target(const struct catalog *catalog, const struct target *target,
                                          struct target *only)
{
	uint32_t vms = 0;
	for (uint32_t i = 0; !target && i < catalog->machines; i++)
		if (catalog->machine[i].kind == MACHINE_VM && vms++ == 0)
			*only = (struct target){ TARGET_MACHINE, i };
	return vms == 1 ? only : target;
}

/* Fills column[] with the columns of the answer. Returns their number. */
static size_t make_columns(struct column column[GAP_COLUMN_COUNT], bool shows_target)
{
	size_t n = 0;
	for (enum gap_column_code code = 0; code < GAP_COLUMN_COUNT; code++) {
		const struct gap_column *f = &gap_column[code];
		const bool is_shown = code != GAP_COLUMN_TARGET || shows_target;
		if (f->name)
			column[n++] = (struct column){ f->name, is_shown ? f->heading : NULL, column_type[f->type] };
	}
	return n;
}

int report_gaps(FILE *out, struct report_how how, const struct catalog *catalog, const struct gap_list *list,
                const struct target *target, bool all_culprits, const struct origin *o, struct error *err)
{
	struct column column[GAP_COLUMN_COUNT];
	struct report_shape shape = { "gaps", column, 0, "culprit_tid culprit_ns state", NULL };
	struct target only;
	const struct target *common = common_target(catalog, target, &only);
	shape.columns = make_columns(column, !target || target->kind == TARGET_MACHINE);
	struct report *r = report_begin(out, how, &shape, o);
	report_lost_time_of(r, catalog, target);
	for (size_t i = 0; i < list->items; i++) {
		const struct gap_item *item = &list->item[i];
		const struct flow_entry *entry = list->culprit + item->culprit;
		const bool one = !all_culprits || !item->culprits;
		for (size_t k = 0; k < (one ? 1 : item->culprits); k++) {
			const struct actor *culprit = one ? &item->top.actor : &entry[k].actor;
			const struct gap_record row = { catalog, &item->gap, culprit, list->name[culprit->name],
			                             one ? item->top.ns : entry[k].duration };
			write_gap(r, &row, common, how);
		}
	}
	int rc = report_end(r, err);
	if (rc == 0 && how.format == FORMAT_TEXT)
		write_totals(out, catalog, list, common);
	return rc;
}

/* ---- By length */

int report_gap_lengths(FILE *out, struct report_how how, const struct catalog *catalog, const struct gap_list *list,
                       const struct target *target, const struct origin *o, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE_DROPPING("gaps-lengths", length_columns, "p90_ns p50_ns");
	struct report *r = report_begin(out, how, &shape, o);
	report_lost_time_of(r, catalog, target);
	for (size_t i = 0; i < list->rows; i++) {
		const struct gap_lengths *l = &list->row[i];
		char name[ACTOR_TEXT];
		report_row(r, (struct value[]){
			VAL_SHOWN(catalog_target_text(catalog, &l->target, name, sizeof name)), VAL_INT((int64_t)l->count),
			VAL_INT(l->total), VAL_INT(l->p50), VAL_INT(l->p90), VAL_INT(l->p99), VAL_INT(l->longest) });
	}
	return report_end(r, err);
}

#define BAR_MAX INT64_C(1000000)  /* value of the longest bar; the values of other bars are proportional */

static int draw_bar(void *arg, int64_t number, unsigned columns, char *lane)
{
	(void)arg;
	const size_t cells = (size_t)((number * columns + BAR_MAX / 2) / BAR_MAX);
	memset(lane, '#', cells || !number ? cells : 1);
	return 0;
}

static void bin_row(struct report *r, const struct catalog *catalog, const struct gap_lengths *l, unsigned bin,
                    uint64_t max_count)
{
	const int64_t from = INT64_C(1) << bin;
	const double share = (double)l->bin[bin] / (double)max_count;
	char name[ACTOR_TEXT];
	report_row(r, (struct value[]){
		VAL_SHOWN(catalog_target_text(catalog, &l->target, name, sizeof name)), VAL_INT(bin ? from : 0),
		VAL_INT(from - 1 + from), VAL_INT((int64_t)l->bin[bin]),
		VAL_INT(l->bin[bin] ? 1 + (int64_t)(share * (double)(BAR_MAX - 1)) : 0) });
}

int report_gap_histogram(FILE *out, struct report_how how, const struct catalog *catalog, const struct gap_list *list,
                         const struct target *target, const struct origin *o, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE("gaps-histogram", bin_columns);
	struct report *r = report_begin(out, how, &shape, o);
	report_lost_time_of(r, catalog, target);
	report_lanes(r, draw_bar, NULL);
	for (size_t i = 0; i < list->rows; i++) {
		const struct gap_lengths *l = &list->row[i];
		unsigned first = LENGTH_BINS, last = 0;
		uint64_t max_count = 0;
		for (unsigned b = 0; b < LENGTH_BINS; b++) {
			if (l->bin[b]) {
				first = first < b ? first : b;
				last = b;
			}
			max_count = l->bin[b] > max_count ? l->bin[b] : max_count;
		}
		for (unsigned b = first; b <= last; b++)
			bin_row(r, catalog, l, b, max_count);
	}
	return report_end(r, err);
}
