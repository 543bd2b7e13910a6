#include "cli/clock_report.h"

#include "base/base.h"
#include "base/json_field.h"

/* Columns with heading NULL appear only in csv and json. */
static const struct column columns[] = {
	{ "guest", "guest", COL_TEXT },
	{ "method", "method", COL_UNCUT },
	{ "pairs", "pairs", COL_INT },
	{ "rejected", "bad", COL_INT },
	{ "quality", "quality", COL_UNCUT },
	{ "alpha_ppm", "drift ppm", COL_REAL },
	{ "ref_guest_ns", NULL, COL_INT },
	{ "ref_host_ns", NULL, COL_INT },
	{ "error_start_ns", NULL, COL_DURATION },
	{ "error_mid_ns", "band", COL_DURATION },
	{ "error_end_ns", NULL, COL_DURATION },
	{ "containment", "contained", COL_SHARE },
	{ "worst_violation_ns", "worst", COL_DURATION },
};
#define COLUMNS (sizeof columns / sizeof *columns)

#define SEGMENT_FROM 1
static const struct column segment_columns[] = {
	{ "guest", "guest", COL_TEXT },
	{ "from", "from", COL_UNCUT },
	{ "pairs", "pairs", COL_INT },
	{ "rejected", "bad", COL_INT },
	{ "quality", "quality", COL_UNCUT },
	{ "alpha_ppm", "drift ppm", COL_REAL },
	{ "error_mid_ns", "band", COL_DURATION },
	{ "containment", "contained", COL_SHARE },
};
#define SEGMENT_COLUMNS (sizeof segment_columns / sizeof *segment_columns)

static struct value column_value(struct json_object *row, const struct column *c)
{
	if (!json_object_object_get(row, c->name))
		return VAL_NONE;
	if (column_is_text(c))
		return VAL_SHOWN(json_member_text(row, c->name));
	if (c->type == COL_SHARE || c->type == COL_REAL)
		return VAL_REAL(json_member_real(row, c->name, 0));
	return VAL_INT(json_member_int(row, c->name, 0));
}

/* Returns true if a guest has several rows because its clock has steps. The text report then shows the start of each
 * segment, and omits columns that are equal in all rows. */
static bool is_piecewise(struct json_object *rows)
{
	for (size_t i = 1; rows && i < json_object_array_length(rows); i++)
		if (strcmp(json_member_text(json_object_array_get_idx(rows, i - 1), "guest"),
		           json_member_text(json_object_array_get_idx(rows, i), "guest")) == 0)
			return true;
	return false;
}

static int report_segments(struct json_object *rows, struct report_how how, const struct origin *o, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE_DROPPING("sync", segment_columns, "rejected pairs");
	struct report *r = report_begin(stdout, how, &shape, o);
	for (size_t i = 0; i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		struct value value[SEGMENT_COLUMNS];
		char from[TIME_TEXT];
		for (size_t k = 0; k < SEGMENT_COLUMNS; k++)
			value[k] = column_value(row, &segment_columns[k]);
		value[SEGMENT_FROM] = VAL_TEXT(time_clock(from, json_member_int(row, "ref_host_ns", 0), 3));
		report_row(r, value);
	}
	return report_end(r, err);
}

int clock_report(struct json_object *rows, struct report_how how, const struct origin *o, struct error *err)
{
	static const struct report_shape shape =
		REPORT_SHAPE_DROPPING("sync", columns, "rejected pairs method worst_violation_ns");
	if (how.format == FORMAT_TEXT && is_piecewise(rows)) {
		return report_segments(rows, how, o, err);
	}
	struct report *r = report_begin(stdout, how, &shape, o);
	for (size_t i = 0; rows && i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		struct value value[COLUMNS];
		for (size_t k = 0; k < COLUMNS; k++)
			value[k] = column_value(row, &columns[k]);
		report_row(r, value);
	}
	return report_end(r, err);
}
