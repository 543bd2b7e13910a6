#include "cli/clock_report.h"

#include <string.h>

#include "base/json_field.h"
#include "base/timefmt.h"
#include "index/index.h"

/* In text, eight of the columns: the others are for programs. */
static const struct column columns[] = {
	{ "guest", "guest", COL_TEXT },
	{ "method", "method", COL_WHOLE },
	{ "pairs", "pairs", COL_INT },
	{ "rejected", "bad", COL_INT },
	{ "quality", "quality", COL_WHOLE },
	{ "alpha_ppm", "drift ppm", COL_REAL },
	{ "ref_guest_ns", NULL, COL_INT },
	{ "ref_host_ns", NULL, COL_INT },
	{ "band_start_ns", NULL, COL_DURATION },
	{ "band_mid_ns", "band", COL_DURATION },
	{ "band_end_ns", NULL, COL_DURATION },
	{ "containment", "contained", COL_SHARE },
	{ "worst_violation_ns", "worst", COL_DURATION },
};
#define COLUMNS (sizeof columns / sizeof *columns)

#define PIECE_FROM 1
static const struct column piece_columns[] = {
	{ "guest", "guest", COL_TEXT },
	{ "from", "from", COL_WHOLE },
	{ "pairs", "pairs", COL_INT },
	{ "rejected", "bad", COL_INT },
	{ "quality", "quality", COL_WHOLE },
	{ "alpha_ppm", "drift ppm", COL_REAL },
	{ "band_mid_ns", "band", COL_DURATION },
	{ "containment", "contained", COL_SHARE },
};
#define PIECE_COLUMNS (sizeof piece_columns / sizeof *piece_columns)

static struct value value_of(struct json_object *row, const struct column *c)
{
	if (!json_object_object_get(row, c->name))
		return VAL_NONE;
	if (column_is_text(c))
		return VAL_SHOWN(field_text(row, c->name));
	if (c->type == COL_SHARE || c->type == COL_REAL)
		return VAL_REAL(field_real(row, c->name, 0));
	return VAL_INT(field_int(row, c->name, 0));
}

/* A guest with several rows: its clock stepped.  Then text tells from when each row holds, and leaves out what is the
 * same for all rows. */
static bool is_piecewise(struct json_object *rows)
{
	for (size_t i = 1; rows && i < json_object_array_length(rows); i++)
		if (strcmp(field_text(json_object_array_get_idx(rows, i - 1), "guest"),
		           field_text(json_object_array_get_idx(rows, i), "guest")) == 0)
			return true;
	return false;
}

static int report_pieces(struct json_object *rows, struct report_how how, const struct origin *o, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE_SPARING("sync", piece_columns, "rejected pairs");
	struct report *r = report_begin(stdout, how, &shape, o);
	for (size_t i = 0; i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		struct value value[PIECE_COLUMNS];
		char from[TIME_TEXT];
		for (size_t k = 0; k < PIECE_COLUMNS; k++)
			value[k] = value_of(row, &piece_columns[k]);
		value[PIECE_FROM] = VAL_TEXT(time_clock(from, field_int(row, "ref_host_ns", 0), 3));
		report_row(r, value);
	}
	return report_end(r, err);
}

int clock_report(struct json_object *rows, struct report_how how, const struct origin *o, struct error *err)
{
	static const struct report_shape shape =
		REPORT_SHAPE_SPARING("sync", columns, "rejected pairs method worst_violation_ns");
	if (how.format == FORMAT_TEXT && is_piecewise(rows)) {
		return report_pieces(rows, how, o, err);
	}
	struct report *r = report_begin(stdout, how, &shape, o);
	for (size_t i = 0; rows && i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		struct value value[COLUMNS];
		for (size_t k = 0; k < COLUMNS; k++)
			value[k] = value_of(row, &columns[k]);
		report_row(r, value);
	}
	return report_end(r, err);
}
