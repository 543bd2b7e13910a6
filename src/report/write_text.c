/* Text for people: aligned columns, as wide as their content or as the terminal. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "report/writer.h"

static void begin(struct report *r)
{
	if (r->origin)
		origin_write_head(r->origin, r->out);
}

#define LANE_LEAST 10
#define LANE_PIPED 24

#define SPARED -1  /* the width of a column that is left out */
#define APART 2    /* cells between columns, or 1 where it is narrow */

/* Cells that names keep: all; on wide terminals; on those of 80 columns; on those that are narrower than any table. */
#define WHOLE INT_MAX
#define READABLE 20
#define READABLE_THREAD 30  /* "ins~2f/1234567 kworker/u16:3-e" */
#define NARROWEST 10
#define HARDLY_READABLE 4

/* A lane that has no room is not there. */
static bool is_shown(const struct report *r, size_t i)
{
	return r->shape->column[i].heading && r->width[i] != SPARED &&
	       (r->shape->column[i].type != COL_LANE || r->width[i] > 0);
}

static int total_width(const struct report *r)
{
	int total = -r->apart;
	for (size_t i = 0; i < r->shape->columns; i++)
		total += is_shown(r, i) ? r->width[i] + r->apart : 0;
	return total;
}

/* ---- Where the screen is narrow */

static bool is_cut(enum column_type type)
{
	return type == COL_TEXT || type == COL_FIELDS;
}

/* How much of it a column can give, if names keep so many cells; fields are worth something in parts. */
static int spare_width(const struct report *r, size_t i, int names)
{
	const enum column_type type = r->shape->column[i].type;
	const int least = type == COL_FIELDS && names > NARROWEST ? NARROWEST : names == READABLE ? r->readable[i] : names;
	return is_shown(r, i) && is_cut(type) && r->width[i] > least ? r->width[i] - least : 0;
}

/* Makes the table fit the screen at the cost of its widest texts.  False: it cannot, and nothing is changed. */
static bool narrow(struct report *r, int screen, int names)
{
	const size_t columns = r->shape->columns;
	int over = total_width(r) - screen, most = 0;
	for (size_t i = 0; i < columns; i++)
		most += spare_width(r, i, names);
	for (; over > 0 && over <= most; over--, most--) {
		size_t widest = columns;
		for (size_t i = 0; i < columns; i++)
			if (spare_width(r, i, names) && (widest == columns || r->width[i] > r->width[widest]))
				widest = i;
		r->width[widest]--;
	}
	return over <= 0;
}

/* The name at *spared goes; false: there is none. */
static bool spare(struct report *r, const char **spared)
{
	const char *kept = r->shape->kept;
	*spared += strspn(*spared, " ");
	size_t n = strcspn(*spared, " ");
	for (size_t i = 0; n && i < r->shape->columns; i++) {
		const char *name = r->shape->column[i].name ? r->shape->column[i].name : r->shape->column[i].heading;
		if (name && strlen(name) == n && strncmp(name, *spared, n) == 0 && !(kept && strcmp(name, kept) == 0))
			r->width[i] = SPARED;
	}
	*spared += n;
	return n > 0;
}

/* Columns are spared in turn until names keep so many cells. */
static bool fit_sparing(struct report *r, int screen, int names)
{
	const char *spared = r->shape->spared;
	bool fits = narrow(r, screen, names);
	while (!fits && spare(r, &spared))
		fits = narrow(r, screen, names);
	return fits;
}

static int greater(int a, int b)
{
	return a > b ? a : b;
}

/* With machines shortened where that makes names shorter; and what of them can be read. */
static void squeeze_widths(struct report *r)
{
	const size_t columns = r->shape->columns;
	for (size_t i = 0; i < columns; i++) {
		if (r->shape->column[i].type != COL_TEXT || !r->shape->column[i].heading)
			continue;
		r->width[i] = r->readable[i] = text_width(r->shape->column[i].heading);
		for (size_t at = i; at < r->held_len; at += columns) {
			char *name = text_squeeze(mem_dup(r->held[at]), READABLE);
			const int w = text_width(name), enough = strchr(name, '/') ? READABLE_THREAD : READABLE;
			r->width[i] = greater(r->width[i], w);
			r->readable[i] = greater(r->readable[i], w < enough ? w : enough);
			free(name);
		}
	}
}

/* Less between columns first, then fewer columns.  Names are cut where all that does not make them fit whole, and then
 * other columns go only for names that could not be read. */
static void fit_widths(struct report *r, int screen)
{
	const size_t size = r->shape->columns * sizeof *r->width;
	int *whole = memcpy(mem_new(size, 1), r->width, size);
	bool fits = narrow(r, screen, WHOLE);
	if (!fits) {
		r->apart = 1;
		fits = fit_sparing(r, screen, WHOLE);
	}
	if (!fits) {
		memcpy(r->width, whole, size);
		squeeze_widths(r);
		fits = fit_sparing(r, screen, READABLE) || narrow(r, screen, NARROWEST) || narrow(r, screen, HARDLY_READABLE);
	}
	r->apart = APART;
	if (total_width(r) > screen)
		r->apart = 1;
	free(whole);
}

/* What is left of the screen. */
static void fit_lane(struct report *r, int screen)
{
	const struct report_shape *shape = r->shape;
	size_t lane = shape->columns - 1;
	int room = screen > 0 ? screen - total_width(r) - r->apart : LANE_PIPED;
	if (shape->column[lane].type == COL_LANE)
		r->width[lane] = room < LANE_LEAST ? 0 : room;
}

static void put_lane(struct report *r, const char *number, int width)
{
	char *lane = mem_new((size_t)width + 1, 1);
	if (r->draw && r->draw(r->draw_arg, strtoll(number, NULL, 10), (unsigned)width, lane) == 0)
		fputs(lane, r->out);
	free(lane);
}

static void put_text(struct report *r, const char *text, int width, bool pad)
{
	char *cut = text_cut(mem_dup(text), width);
	fputs(cut, r->out);
	if (pad)
		fprintf(r->out, "%*s", width - text_width(cut) + r->apart, "");
	free(cut);
}

/* Whole ones, and a '~' for those that have no room. */
static void put_fields(struct report *r, const char *text, int width)
{
	size_t n = strlen(text);
	if (text_width(text) > width) {
		for (n = text_fit(text, width - 2); n && text[n] != ' ';)
			n--;
		if (!n)
			n = text_fit(text, width - 1);
	}
	fprintf(r->out, "%.*s%s", (int)n, text, !text[n] ? "" : text[n] == ' ' ? " ~" : "~");
	r->cut |= text[n] != '\0';
}

static void put_line(struct report *r, char *const *field)
{
	const struct report_shape *shape = r->shape;
	size_t last = shape->columns;
	while (last && !is_shown(r, last - 1))
		last--;
	for (size_t i = 0; i < last; i++) {
		if (!is_shown(r, i))
			continue;
		if (shape->column[i].type == COL_LANE && field[i] != shape->column[i].heading) {
			put_lane(r, field[i], r->width[i]);
			continue;
		}
		if (shape->column[i].type == COL_FIELDS) {
			put_fields(r, field[i], r->width[i]);
			continue;
		}
		if (column_is_text(&shape->column[i]) || shape->column[i].type == COL_LANE) {
			put_text(r, field[i], r->width[i], i + 1 < last);
			continue;
		}
		int pad = r->width[i] - text_width(field[i]);
		fprintf(r->out, "%*s%s%*s", pad > 0 ? pad : 0, "", field[i], i + 1 < last ? r->apart : 0, "");
	}
	putc('\n', r->out);
}

static void put_heading(struct report *r)
{
	const struct report_shape *shape = r->shape;
	char **heading = mem_new(shape->columns, sizeof *heading);
	const int screen = report_width(r->out);
	for (size_t i = 0; i < shape->columns; i++) {
		heading[i] = (char *)(uintptr_t)(shape->column[i].heading ? shape->column[i].heading : "");
		int w = text_width(heading[i]);
		r->width[i] = shape->column[i].type == COL_LANE ? 0 : r->width[i] > w ? r->width[i] : w;
	}
	r->apart = APART;
	if (screen > 0)
		fit_widths(r, screen);
	fit_lane(r, screen);
	put_line(r, heading);
	free(heading);
}

/* What comes behind those that were held: no share and no usual duration is wider. */
static void leave_room(struct report *r)
{
	static const int widest = sizeof "100.00%" - 1;
	for (size_t i = 0; i < r->shape->columns; i++) {
		const enum column_type type = r->shape->column[i].type;
		if ((type == COL_SHARE || type == COL_DURATION) && r->width[i] < widest)
			r->width[i] = widest;
	}
}

static void flush(struct report *r)
{
	if (!r->widths_known)
		put_heading(r);
	r->widths_known = true;
	for (size_t i = 0; i < r->held_len; i += r->shape->columns)
		put_line(r, r->held + i);
	for (size_t i = 0; i < r->held_len; i++)
		free(r->held[i]);
	r->held_len = 0;
}

static void row(struct report *r, const struct value *value)
{
	struct field_text text = { .longer = NULL };
	for (size_t i = 0; i < r->shape->columns; i++) {
		char *field = mem_dup(field_format(&r->shape->column[i], &value[i], true, &text));
		int w = text_width(field);
		if (!r->widths_known && w > r->width[i])
			r->width[i] = w;
		*ARRAY_PUSH(r->held, r->held_len, r->held_cap) = field;
	}
	field_release(&text);
	if (!r->widths_known && r->rows >= REPORT_LOOKAHEAD)
		leave_room(r);
	if (r->widths_known || r->rows >= REPORT_LOOKAHEAD)
		flush(r);
}

static void end(struct report *r)
{
	if (r->rows)
		flush(r);
	else
		fprintf(r->out, "none%s\n", r->unseen ? " seen: what a host took is not known" : "");
	if (r->cut)
		fputs("~ more fields than have room here: | less -S, or --format csv, has all of them\n", r->out);
}

const struct report_writer write_text = { begin, row, NULL, end };
