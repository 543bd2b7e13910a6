/* Fills the tables clock, loss and run from the provenance stored in the history. */
#include <string.h>

#include "base/json_field.h"
#include "base/notes.h"
#include "export/fill.h"
#include "index/index.h"

static struct json_object *json_row(struct json_object *rows, size_t i)
{
	return rows && i < json_object_array_length(rows) ? json_object_array_get_idx(rows, i) : NULL;
}

static struct table_cell real_or_none(struct json_object *row, const char *key)
{
	struct json_object *o;
	return json_object_object_get_ex(row, key, &o) && o ? CELL_REAL(json_object_get_double(o)) : CELL_NONE;
}

static struct table_cell number_or_none(struct json_object *row, const char *key)
{
	return fill_number(json_member_int(row, key, -1));
}

static struct table_cell text_or_none(struct json_object *row, const char *key)
{
	return *json_member_text(row, key) ? CELL_TEXT(json_member_text(row, key)) : CELL_NONE;
}

int fill_clocks(struct filler *f)
{
	struct json_object *rows = json_member_array(f->doc, "sync"), *row;
	for (size_t i = 0; (row = json_row(rows, i)); i++)
		if (fill_row(f, (struct table_cell[CLOCK_FIELD_COUNT]){
			[COL_CLOCK_MACHINE] = CELL_TEXT(json_member_text(row, "guest")),
			[COL_CLOCK_FROM] = CELL_INT(json_member_int(row, "ref_host_ns", 0)),
			[COL_CLOCK_METHOD] = CELL_TEXT(json_member_text(row, "method")),
			[COL_CLOCK_QUALITY] = CELL_TEXT(json_member_text(row, "quality")),
			[COL_CLOCK_REASON] = text_or_none(row, "reason"),
			[COL_CLOCK_PAIRS] = CELL_INT(json_member_int(row, "pairs", 0)),
			[COL_CLOCK_REJECTED] = CELL_INT(json_member_int(row, "rejected", 0)),
			[COL_CLOCK_ALPHA] = CELL_REAL(json_member_real(row, "alpha_ppm", 0)),
			[COL_CLOCK_BAND_START] = number_or_none(row, "error_start_ns"),
			[COL_CLOCK_BAND_MID] = number_or_none(row, "error_mid_ns"),
			[COL_CLOCK_BAND_END] = number_or_none(row, "error_end_ns"),
			[COL_CLOCK_CONTAINMENT] = real_or_none(row, "containment"),
			[COL_CLOCK_WORST] = number_or_none(row, "worst_violation_ns") }))
			return -1;
	return 0;
}

int fill_losses(struct filler *f)
{
	struct json_object *rows = json_member_array(f->doc, "traces"), *row;
	for (size_t i = 0; (row = json_row(rows, i)); i++) {
		bool host = strcmp(json_member_text(row, "role"), "host") == 0;
		if (fill_row(f, (struct table_cell[LOSS_FIELD_COUNT]){
			[COL_LOSS_MACHINE] = CELL_TEXT(host ? "host" : json_member_text(row, "machine")),
			[COL_LOSS_TRACER] = CELL_TEXT(json_member_text(row, "tracer")),
			[COL_LOSS_UUID] = CELL_TEXT(json_member_text(row, "uuid")),
			[COL_LOSS_EVENTS] = CELL_INT(json_member_int(row, "events", 0)),
			[COL_LOSS_LOST] = CELL_INT(json_member_int(row, "lost", 0)),
			[COL_LOSS_UNCOUNTED] = CELL_INT(json_member_int(row, "uncounted", 0)) }))
			return -1;
	}
	return 0;
}

/* Returns a clock quality's rank, 0: best. */
static size_t quality_rank(const char *quality)
{
	static const char *const order[] = { "ACCURATE", "APPROXIMATE", "INCOMPLETE", "ABSENT" };
	size_t i = 0;
	while (i < sizeof order / sizeof *order && strcmp(order[i], quality) != 0)
		i++;
	return i;
}

/* Finds the worst quality and the largest error bound of all clocks; null: no clocks, or an unknown bound. */
static void worst_clock(struct filler *f, struct table_cell *quality, struct table_cell *error_bound)
{
	static const char *const ends[] = { "error_start_ns", "error_mid_ns", "error_end_ns" };
	struct json_object *rows = json_member_array(f->doc, "sync"), *row;
	const char *worst = NULL;
	int64_t widest = -1;
	bool all_known = true;
	for (size_t i = 0; (row = json_row(rows, i)); i++) {
		const char *q = json_member_text(row, "quality");
		worst = !worst || quality_rank(q) > quality_rank(worst) ? q : worst;
		for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
			int64_t ns = json_member_int(row, ends[k], -1);
			all_known &= ns >= 0;
			widest = ns > widest ? ns : widest;
		}
	}
	*quality = worst ? CELL_TEXT(worst) : CELL_NONE;
	*error_bound = all_known ? fill_number(widest) : CELL_NONE;
}

/* Copies a text, truncated at a UTF-8 character boundary if it is too long. */
static void cut_text(char to[FILL_TEXT], const char *text)
{
	size_t n = strnlen(text, FILL_TEXT);
	if (n == FILL_TEXT)
		for (n--; n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80; n--)
			;
	memcpy(to, text, n);
	to[n] = '\0';
}

/* Counts the notes that are warnings. */
static int64_t count_warnings(const struct filler *f)
{
	struct notes notes = { 0 };
	int64_t n = 0;
	provenance_notes(f->h, &notes);
	for (size_t i = 0; i < notes.len; i++)
		n += notes.item[i].kind != NOTE_KIND_INFO;
	notes_release(&notes);
	return n;
}

int fill_runs(struct filler *f)
{
	struct json_object *rows = json_member_array(f->doc, "traces"), *row;
	struct table_cell host = CELL_NONE, quality, error_bound;
	char options[FILL_TEXT];
	int64_t lost = 0;
	for (size_t i = 0; (row = json_row(rows, i)); i++) {
		lost += json_member_int(row, "lost", 0);
		if (strcmp(json_member_text(row, "role"), "host") == 0)
			host = text_or_none(row, "machine");
	}
	worst_clock(f, &quality, &error_bound);
	cut_text(options, json_member_text(f->doc, "shape"));
	return fill_row(f, (struct table_cell[RUN_FIELD_COUNT]){
		[COL_RUN_HOST] = host, [COL_RUN_STARTED] = CELL_INT(history_begin(f->h)),
		[COL_RUN_SPAN] = CELL_INT(history_end(f->h) - history_begin(f->h) + 1),
		[COL_RUN_PROGRAM] = CELL_TEXT(json_member_text(f->doc, "tool")),
		[COL_RUN_OPTIONS] = CELL_TEXT(options),
		[COL_RUN_QUALITY] = quality, [COL_RUN_BAND] = error_bound, [COL_RUN_LOST] = CELL_INT(lost),
		[COL_RUN_WARNINGS] = CELL_INT(count_warnings(f)) });
}
