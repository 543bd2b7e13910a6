/* Writes the differences between two recordings (diff) and the rows that explain them. */
#include "base/base.h"
#include "base/json_field.h"
#include "report/report.h"

#include <math.h>

#include "compare/compare.h"

#define SMALL_SHARE 0.01  /* of a change */

static const struct column raw_columns[] = {
	{ "target", NULL, COL_TEXT },  { "kind", NULL, COL_TEXT },   { "quantity", NULL, COL_TEXT },
	{ "by", NULL, COL_TEXT },       { "unit", NULL, COL_TEXT },   { "before", NULL, COL_REAL },
	{ "after", NULL, COL_REAL },    { "change", NULL, COL_REAL }, { "low", NULL, COL_REAL },
	{ "high", NULL, COL_REAL },     { "explains", NULL, COL_REAL }, { "finding", NULL, COL_INT },
};
static const struct column text_columns[] = {
	{ NULL, "target", COL_TEXT }, { NULL, "metric", COL_TEXT },    { NULL, "before", COL_UNCUT },
	{ NULL, "after", COL_UNCUT }, { NULL, "change", COL_UNCUT }, { NULL, "from", COL_UNCUT },
	{ NULL, "to", COL_UNCUT }, { NULL, "explains", COL_UNCUT },
};

static void raw_row(struct report *out, const struct diff_row *r)
{
	report_row(out, (struct value[]){
		VAL_SHOWN(r->target), VAL_SHOWN(diff_kind_name[r->kind]), VAL_SHOWN(diff_quantity_name[r->quantity]),
		*r->by ? VAL_SHOWN(r->by) : VAL_NONE, VAL_SHOWN(diff_unit_name[diff_unit_of[r->quantity]]),
		VAL_REAL(r->before), VAL_REAL(r->after), VAL_REAL(r->change), VAL_REAL(r->low), VAL_REAL(r->high),
		isnan(r->explains) ? VAL_NONE : VAL_REAL(r->explains), VAL_INT(r->found) });
}

/* Text row; whole: it does not depend on the row above. `by` refines the metric: a loss's culprit, an exit reason, or
 * a part of a latency. */
static void text_row(struct report *out, const struct diff_row *r, const struct diff_row *above, bool whole)
{
	const bool follows = above && above->kind == r->kind && !strcmp(above->target, r->target);
	const bool below = follows && above->quantity == r->quantity && !whole;
	char metric[400], before[40], after[40], change[40], low[40], high[40], explains[16] = "";
	const char *name = diff_quantity_name[r->quantity];
	if (*r->by)
		snprintf(metric, sizeof metric, "%s %s%s", below ? " " : name, r->quantity == DIFF_LOST ? "to " : "", r->by);
	else
		snprintf(metric, sizeof metric, "%s", name);
	diff_value_text(before, sizeof before, r->quantity, r->before, false);
	diff_value_text(after, sizeof after, r->quantity, r->after, false);
	diff_value_text(change, sizeof change, r->quantity, r->change, true);
	diff_value_text(low, sizeof low, r->quantity, r->low, true);
	diff_value_text(high, sizeof high, r->quantity, r->high, true);
	if (!isnan(r->explains))
		snprintf(explains, sizeof explains, "%.0f%%", 100 * r->explains);
	report_row(out, (struct value[]){ VAL_SHOWN(follows && !whole ? "" : r->target), VAL_SHOWN(metric), VAL_SHOWN(before),
		VAL_SHOWN(after), VAL_SHOWN(change), VAL_SHOWN(low), VAL_SHOWN(high), VAL_SHOWN(explains) });
}

static struct json_object *verdict_sentences(const char *verdict)
{
	struct json_object *all = json_new_array();
	for (const char *end; *verdict; verdict = end + 1) {
		end = strchr(verdict, '\n');
		json_object_array_add(all, json_object_new_string_len(verdict, (int)(end - verdict)));
	}
	return all;
}

/* Returns true if text omits the row: it explains less than SMALL_SHARE of a change. */
static bool has_small_effect(const struct diff_row *r)
{
	return !isnan(r->explains) && fabs(r->explains) < SMALL_SHARE;
}

const struct diff_row *diff_shown_row(const struct diff *d, size_t i)
{
	for (size_t k = 0; k < d->found; k++)
		if (!has_small_effect(&d->row[k]) && i-- == 0)
			return &d->row[k];
	return NULL;
}

int report_diff(FILE *out, struct report_how how, const struct diff *d, bool all, const struct origin *o, struct error *err)
{
	static const struct report_shape raw = REPORT_SHAPE("diff", raw_columns),
	                                 text = REPORT_SHAPE_DROPPING("diff", text_columns, "before after explains from to");
	const bool people = how.format == FORMAT_TEXT;
	const size_t n = all ? d->rows : d->found;
	const struct diff_row *last = NULL;
	size_t omitted = 0;
	char *verdict = diff_verdict(d);
	if (people && o && !how.table)  /* warnings precede the verdict */
		origin_write_head(o, out);
	if (people) {
		if (how.table)
			fputs(verdict, out);
		else
			prose_write(out, verdict, NULL);
		fputs(n ? "\n" : "", out);
	}
	if (people && n == 0) {
		free(verdict);
		return 0;
	}
	struct report *r = report_begin(out, how, people ? &text : &raw, people ? NULL : o);
	for (size_t i = 0; i < n; i++) {
		const struct diff_row *row = &d->row[i];
		if (people && !all && has_small_effect(row)) {
			omitted++;
			continue;
		}
		if (people)
			text_row(r, row, last, how.table != NULL);
		else
			raw_row(r, row);
		last = row;
	}
	report_member(r, "level", json_object_new_double(d->level));
	report_member(r, "compared", json_object_new_int64((int64_t)d->totals));
	report_member(r, "verdict", verdict_sentences(verdict));
	free(verdict);
	int rc = report_end(r, err);
	if (omitted)
		fprintf(out, "\nnot shown: rows that explain less than %g%% each: %zu (--all)\n", 100 * SMALL_SHARE, omitted);
	return rc;
}
