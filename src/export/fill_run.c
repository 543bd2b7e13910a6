/* The run itself: what its history says of where it comes from. */
#include <string.h>

#include "base/json_field.h"
#include "base/notes.h"
#include "export/fill.h"
#include "index/index.h"

static struct json_object *row_of(struct json_object *rows, size_t i)
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
	return fill_number(field_int(row, key, -1));
}

static struct table_cell text_or_none(struct json_object *row, const char *key)
{
	return *field_text(row, key) ? CELL_TEXT(field_text(row, key)) : CELL_NONE;
}

int fill_clocks(struct filler *f)
{
	struct json_object *rows = field_array(f->doc, "sync"), *row;
	for (size_t i = 0; (row = row_of(rows, i)); i++)
		if (fill_row(f, (struct table_cell[CLOCK_FIELD_COUNT]){
			[COL_CLOCK_MACHINE] = CELL_TEXT(field_text(row, "guest")),
			[COL_CLOCK_FROM] = CELL_INT(field_int(row, "ref_host_ns", 0)),
			[COL_CLOCK_METHOD] = CELL_TEXT(field_text(row, "method")),
			[COL_CLOCK_QUALITY] = CELL_TEXT(field_text(row, "quality")), [COL_CLOCK_DOUBT] = text_or_none(row, "doubt"),
			[COL_CLOCK_PAIRS] = CELL_INT(field_int(row, "pairs", 0)),
			[COL_CLOCK_REJECTED] = CELL_INT(field_int(row, "rejected", 0)),
			[COL_CLOCK_ALPHA] = CELL_REAL(field_real(row, "alpha_ppm", 0)),
			[COL_CLOCK_BAND_START] = number_or_none(row, "band_start_ns"),
			[COL_CLOCK_BAND_MID] = number_or_none(row, "band_mid_ns"),
			[COL_CLOCK_BAND_END] = number_or_none(row, "band_end_ns"),
			[COL_CLOCK_CONTAINMENT] = real_or_none(row, "containment"),
			[COL_CLOCK_WORST] = number_or_none(row, "worst_violation_ns") }))
			return -1;
	return 0;
}

int fill_losses(struct filler *f)
{
	struct json_object *rows = field_array(f->doc, "traces"), *row;
	for (size_t i = 0; (row = row_of(rows, i)); i++) {
		bool host = strcmp(field_text(row, "role"), "host") == 0;
		if (fill_row(f, (struct table_cell[LOSS_FIELD_COUNT]){
			[COL_LOSS_MACHINE] = CELL_TEXT(host ? "host" : field_text(row, "machine")),
			[COL_LOSS_TRACER] = CELL_TEXT(field_text(row, "tracer")), [COL_LOSS_UUID] = CELL_TEXT(field_text(row, "uuid")),
			[COL_LOSS_EVENTS] = CELL_INT(field_int(row, "events", 0)),
			[COL_LOSS_LOST] = CELL_INT(field_int(row, "lost", 0)),
			[COL_LOSS_UNCOUNTED] = CELL_INT(field_int(row, "uncounted", 0)) }))
			return -1;
	}
	return 0;
}

/* Which of two qualities is worse; those of sync, best first. */
static size_t badness(const char *quality)
{
	static const char *const order[] = { "ACCURATE", "APPROXIMATE", "INCOMPLETE", "ABSENT", "FAIL" };
	size_t i = 0;
	while (i < sizeof order / sizeof *order && strcmp(order[i], quality) != 0)
		i++;
	return i;
}

/* The worst quality of all clocks and the widest band. */
static void worst_clock(struct filler *f, struct table_cell *quality, struct table_cell *band)
{
	static const char *const ends[] = { "band_start_ns", "band_mid_ns", "band_end_ns" };
	struct json_object *rows = field_array(f->doc, "sync"), *row;
	const char *worst = NULL;
	int64_t widest = -1;
	bool known = true;
	for (size_t i = 0; (row = row_of(rows, i)); i++) {
		const char *q = field_text(row, "quality");
		worst = !worst || badness(q) > badness(worst) ? q : worst;
		for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
			int64_t ns = field_int(row, ends[k], -1);
			known &= ns >= 0;
			widest = ns > widest ? ns : widest;
		}
	}
	*quality = worst ? CELL_TEXT(worst) : CELL_NONE;
	*band = known ? fill_number(widest) : CELL_NONE;
}

/* The options of many guests may be long: as much as there is room for, in whole characters. */
static void cut_text(char to[FILL_TEXT], const char *text)
{
	size_t n = strnlen(text, FILL_TEXT);
	if (n == FILL_TEXT)
		for (n--; n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80; n--)
			;
	memcpy(to, text, n);
	to[n] = '\0';
}

/* What the user must hear about the traces and is no mere fact. */
static int64_t count_doubts(const struct filler *f)
{
	struct notes notes = { 0 };
	int64_t n = 0;
	provenance_notes(f->h, &notes);
	for (size_t i = 0; i < notes.len; i++)
		n += notes.item[i].kind != NOTE_FACT;
	notes_release(&notes);
	return n;
}

int fill_runs(struct filler *f)
{
	struct json_object *rows = field_array(f->doc, "traces"), *row;
	struct table_cell host = CELL_NONE, quality, band;
	char options[FILL_TEXT];
	int64_t lost = 0;
	for (size_t i = 0; (row = row_of(rows, i)); i++) {
		lost += field_int(row, "lost", 0);
		if (strcmp(field_text(row, "role"), "host") == 0)
			host = text_or_none(row, "machine");
	}
	worst_clock(f, &quality, &band);
	cut_text(options, field_text(f->doc, "shape"));
	return fill_row(f, (struct table_cell[RUN_FIELD_COUNT]){
		[COL_RUN_HOST] = host, [COL_RUN_STARTED] = CELL_INT(history_begin(f->h)),
		[COL_RUN_SPAN] = CELL_INT(history_end(f->h) - history_begin(f->h) + 1),
		[COL_RUN_PROGRAM] = CELL_TEXT(field_text(f->doc, "tool")),
		[COL_RUN_OPTIONS] = CELL_TEXT(options),
		[COL_RUN_QUALITY] = quality, [COL_RUN_BAND] = band, [COL_RUN_LOST] = CELL_INT(lost),
		[COL_RUN_DOUBTS] = CELL_INT(count_doubts(f)) });
}
