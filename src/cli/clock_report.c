#include "cli/clock_report.h"

#include "cli/field.h"
#include "cli/provenance.h"

/* In text, eight of the columns: the others are for programs. */
static const struct column columns[] = {
	{ "guest", "guest", COL_TEXT },
	{ "method", "method", COL_TEXT },
	{ "pairs", "pairs", COL_INT },
	{ "rejected", "rejected", COL_INT },
	{ "quality", "quality", COL_TEXT },
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

static struct value value_of(struct json_object *row, const struct column *c)
{
	if (!json_object_object_get(row, c->name))
		return VAL_NONE;
	if (c->type == COL_TEXT)
		return VAL_TEXT(field_text(row, c->name));
	if (c->type == COL_SHARE || c->type == COL_REAL)
		return VAL_REAL(field_real(row, c->name, 0));
	return VAL_INT(field_int(row, c->name, 0));
}

void clock_report(struct json_object *rows, enum report_format format)
{
	struct report *r = report_begin(stdout, format, columns, COLUMNS);
	for (size_t i = 0; rows && i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		struct value value[COLUMNS];
		for (size_t k = 0; k < COLUMNS; k++)
			value[k] = value_of(row, &columns[k]);
		report_row(r, value);
	}
	report_end(r);
}
