/* Text for people: aligned columns, as wide as their content or as the terminal. */
#include <ctype.h>
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

/* A lane that has no room is not there. */
static bool is_shown(const struct report *r, size_t i)
{
	return r->shape->column[i].heading && r->width[i] != SPARED &&
	       (r->shape->column[i].type != COL_LANE || r->width[i] > 0);
}

static int total_width(const struct report *r)
{
	int total = -2;
	for (size_t i = 0; i < r->shape->columns; i++)
		total += is_shown(r, i) ? r->width[i] + 2 : 0;
	return total;
}

/* Makes the table fit the screen at the cost of its widest texts, which keep `least`. */
static bool narrow(struct report *r, int screen, int least)
{
	const struct report_shape *shape = r->shape;
	int total = total_width(r);
	while (total > screen) {
		size_t widest = shape->columns;
		for (size_t i = 0; i < shape->columns; i++)
			if (is_shown(r, i) && column_is_text(&shape->column[i]) &&
			    r->width[i] > least &&
			    (widest == shape->columns || r->width[i] > r->width[widest]))
				widest = i;
		if (widest == shape->columns)
			return false;
		r->width[widest]--;
		total--;
	}
	return true;
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

/* Narrower texts first, then fewer columns, whose room the texts get; then texts that are hard to read. */
static void fit_widths(struct report *r, int screen)
{
	const char *spared = r->shape->spared;
	int *whole = mem_new(r->shape->columns, sizeof *whole);
	memcpy(whole, r->width, r->shape->columns * sizeof *whole);
	bool fits = narrow(r, screen, REPORT_READABLE);
	while (!fits && spare(r, &spared)) {
		for (size_t i = 0; i < r->shape->columns; i++)
			r->width[i] = r->width[i] == SPARED ? SPARED : whole[i];
		fits = narrow(r, screen, REPORT_READABLE);
	}
	if (!fits)
		narrow(r, screen, REPORT_NARROWEST);
	free(whole);
}

/* What is left of the screen. */
static void fit_lane(struct report *r, int screen)
{
	const struct report_shape *shape = r->shape;
	size_t lane = shape->columns - 1;
	int room = screen > 0 ? screen - total_width(r) - 2 : LANE_PIPED;
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

/* Does it name a thread, as "Debian/151 fibonacci"? */
static bool names_thread(const char *text)
{
	const char *slash = text + strcspn(text, "/ ");
	return *slash == '/' && isdigit((unsigned char)slash[1]);
}

/* The longest end of a text that takes no more than w columns, and does not begin within a number. */
static const char *end_of(const char *text, int w)
{
	const char *tail = text;
	while (text_width(tail) > w || (tail > text && isdigit((unsigned char)*tail) && isdigit((unsigned char)tail[-1]))) {
		uint32_t c;
		size_t len = text_decode(tail, &c);
		tail += len ? len : 1;
	}
	return tail;
}

/* A text that is wider than its column has a '~' in its middle: both ends of names and paths tell something.  Of a thread
 * the machine is shortened, and then the end is missing: who it is stands in front.  Returns its columns. */
static int put_cut(FILE *out, const char *text, int width)
{
	char *cut = text_squeeze(mem_dup(text), width);
	const bool fits = text_width(cut) <= width, thread = names_thread(cut);
	const size_t head = text_fit(cut, fits ? width : thread ? width - 1 : (width - 1) / 2);
	const char *tail = fits || thread ? "" : end_of(cut + head, width - 1 - (width - 1) / 2);
	const char *mark = fits ? "" : "~";
	cut[head] = '\0';
	fprintf(out, "%s%s%s", cut, mark, tail);
	const int w = text_width(cut) + text_width(mark) + text_width(tail);
	free(cut);
	return w;
}

static void put_text(struct report *r, const char *text, int width, bool pad)
{
	int w = text_width(text);
	if (w > width)
		w = put_cut(r->out, text, width);
	else
		fputs(text, r->out);
	if (pad)
		fprintf(r->out, "%*s", width - w + 2, "");
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
		if (shape->column[i].type == COL_TEXT || shape->column[i].type == COL_LANE) {
			put_text(r, field[i], r->width[i], i + 1 < last);
			continue;
		}
		int pad = r->width[i] - text_width(field[i]);
		fprintf(r->out, "%*s%s%s", pad > 0 ? pad : 0, "", field[i], i + 1 < last ? "  " : "");
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
