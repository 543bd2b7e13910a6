#include "ui/widgets/status.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "ui/panes/pane.h"

/* Kept until row, cursor or window change. */
struct status_line {
	bool valid, asked;     /* asked: who was it is still to be told */
	struct row_id row;
	int64_t cursor, step, from;
	char sentence[1536], shares[256];
};

void status_init(struct app *app)
{
	app->status = mem_new(1, sizeof *app->status);
}

void status_release(struct app *app)
{
	free(app->status);
}

void status_forget(struct app *app)
{
	app->status->valid = app->status->asked = false;
}

int64_t status_clock_band(const struct app *app, uint32_t machine)
{
	char path[512];
	struct interval iv;
	if (app->topo.machine[machine].kind != MACHINE_VM)
		return -1;
	history_path(path, sizeof path, SCHEMA_VMS, app->topo.machine[machine].name, machine_schema[MACHINE_BAND].name, NULL);
	uint32_t attr = history_find(app->h, path);
	if (attr == HISTORY_NONE || history_type(app->h, attr) != HISTORY_INT ||
	    history_stab(app->h, attr, app->view.cursor, &iv, NULL) < 0 || iv.value < 0)
		return -1;
	return iv.value;
}

/* "run 8 preempt 92 %": what the cell or range holds, the most severe last. */
static void shares_text(struct app *app, int64_t from, int64_t to, char *buf, size_t size)
{
	struct error err = ERROR_INIT;
	struct cell_source src;
	uint32_t *attrs;
	int64_t sums[HISTORY_STATES], total = 0;
	buf[0] = '\0';
	look_source(app, app->view.row, &src, &attrs);
	int status = src.attrs == 0 ? -1 : cells_sums(&src, from, to, sums, &err);
	free(attrs);
	if (status < 0) {
		if (err.text[0])
			app_fail(app, &err);
		return;
	}
	for (int c = 0; c < HISTORY_STATES; c++)
		total += sums[c] < INT64_MAX - total ? sums[c] : 0;
	size_t used = 0;
	for (int c = 0; c < HISTORY_STATES && total > 0; c++) {
		double share = 100.0 * (double)sums[c] / (double)total;
		char label[64];
		if (sums[c] <= 0 || (c == VIS_NONE && !src.minority))
			continue;
		text_escape(label, sizeof label, look_code_label(app, app->view.row, (unsigned)c));
		int digits = share >= 9.95 ? 0 : share >= 0.095 ? 1 : 3;
		int n = snprintf(buf + used, size - used, "%s%s %.*f", used ? " " : "", label, digits, share);
		if (n < 0 || used + (size_t)n >= size)
			break;
		used += (size_t)n;
	}
	if (used)
		snprintf(buf + used, size - used, " %%");
}

/* The statistics of the range selection: length, then ns per state, what was taken first: a line may be too short. */
static void range_text(struct app *app, char *buf, size_t size)
{
	const struct view *v = &app->view;
	int64_t from = v->range < v->cursor ? v->range : v->cursor, to = v->range < v->cursor ? v->cursor : v->range;
	struct cell_source src;
	uint32_t *attrs;
	int64_t sums[HISTORY_STATES];
	char title[256], d[TIME_TEXT];
	look_source(app, v->row, &src, &attrs);
	int n = snprintf(buf, size, "range %s of %.60s:", time_duration(d, to - from + 1),
	                 row_title(&app->rows, v->row, title, sizeof title));
	size_t used = n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
	if (src.attrs > 0 && cells_sums(&src, from, to, sums, NULL) == 0) {
		for (int i = 0; i < 2 * HISTORY_STATES && used + 1 < size; i++) {
			char label[64];
			const int c = i % HISTORY_STATES;
			const bool taken = src.severity[c] >= SUFFERS, first = i < HISTORY_STATES;
			if (sums[c] <= 0 || taken != first || (c == VIS_NONE && !src.minority))
				continue;
			text_escape(label, sizeof label, look_code_label(app, v->row, (unsigned)c));
			n = snprintf(buf + used, size - used, "  %s %s", label, time_duration(d, sums[c]));
			used += n < 0 || (size_t)n >= size - used ? size - used - 1 : (size_t)n;
		}
	}
	free(attrs);
}

/* Rows that no subject stands for: a pCPU and who has it, a group. */
static void plain_sentence(struct app *app, char *buf, size_t size)
{
	struct row_id row = app->view.row;
	struct interval iv;
	char title[256], when[TIME_TEXT], d[TIME_TEXT], name[256] = "";
	row_title(&app->rows, row, title, sizeof title);
	uint32_t attr = row_attr(&app->rows, row);
	if (attr == HISTORY_NONE || history_stab(app->h, attr, app->view.cursor, &iv, NULL) < 0) {
		snprintf(buf, size, "%s", title);
		return;
	}
	if (row.kind == ROW_REQUEST) {
		char state[64] = "not there";
		if (iv.value != HISTORY_NULL)
			text_escape(state, sizeof state, history_state_name(app->h, attr, (unsigned)iv.value));
		snprintf(buf, size, "%s %s %s for %s", title, ruler_time(when, &app->axis, iv.start, app->view.step), state,
		         time_duration(d, iv.end - iv.start + 1));
		return;
	}
	unsigned code = iv.value >= 0 && iv.value < HISTORY_STATES - 1 ? app->look.owner[row.index].code[iv.value]
	                                                               : HISTORY_STATES - 1;
	char owner[128];
	text_escape(owner, sizeof owner, look_code_label(app, row, code));
	struct interval current;
	uint32_t who = app->topo.cpu[row.index].current;
	if (who != HISTORY_NONE && history_stab(app->h, who, app->view.cursor, &current, NULL) == 0 && current.value > 0 &&
	    current.value <= INT32_MAX) {
		int t = topo_find_thread(&app->topo, app->topo.cpu[row.index].machine, (int32_t)current.value);
		struct subject s = { SUBJECT_THREAD, (uint32_t)t };
		if (t >= 0)
			topo_subject_text(&app->topo, &s, name, sizeof name);
	}
	snprintf(buf, size, "%s %s %s%s%s for %s", title,
	         ruler_time(when, &app->axis, app->view.cursor, app->view.step), code == 0 ? "idle" : owner,
	         name[0] ? ", " : "", name, time_duration(d, iv.end - iv.start + 1));
}

static void machine_sentence(struct app *app, const struct answer *answer, char *buf, size_t size)
{
	char title[256], d[TIME_TEXT], w[TIME_TEXT];
	int64_t last = view_last(&app->view, &app->ground);
	struct subject s;
	row_title(&app->rows, app->view.row, title, sizeof title);
	if (!answer)
		snprintf(buf, size, "%s", title);
	else if (row_subject(&app->topo, app->view.row, &s) && !topo_is_watched(&app->topo, &s))
		snprintf(buf, size, "%s: what its host took from it is not known", title);
	else
		snprintf(buf, size, "%s lost %s in this window of %s", title, time_duration(d, answer->ns),
		         time_duration(w, last - app->view.t0 + 1));
}

/* What can be said at once, while the rest is asked for. */
static void short_sentence(struct app *app, char *buf, size_t size)
{
	struct row_id row = app->view.row;
	struct interval iv;
	char title[256], when[TIME_TEXT], d[TIME_TEXT], state[64] = "not alive";
	uint32_t attr = row_attr(&app->rows, row);
	row_title(&app->rows, row, title, sizeof title);
	if (row.kind == ROW_MACHINE || attr == HISTORY_NONE || history_stab(app->h, attr, app->view.cursor, &iv, NULL) < 0) {
		snprintf(buf, size, "%s ...", title);
		return;
	}
	if (iv.value != HISTORY_NULL)
		text_escape(state, sizeof state, history_state_name(app->h, attr, (unsigned)iv.value));
	snprintf(buf, size, "%s %s %s %s ...", title, ruler_time(when, &app->axis, iv.start, app->view.step), state,
	         time_duration(d, iv.end - iv.start + 1));
}

#define SENTENCE_STEP 100000  /* ns: the digits that a sentence has */

/* The sentence says the wall clock; the user may have chosen to count from marker A or from the start. */
static void retime(const struct app *app, const struct subject *s, char *text, size_t size)
{
	struct gap gap;
	struct interval iv;
	char clock[TIME_TEXT], other[TIME_TEXT], *copy = mem_dup(text);
	uint32_t attr = row_attr(&app->rows, app->view.row);
	int64_t start = app->view.cursor, step = app->view.step < SENTENCE_STEP ? app->view.step : SENTENCE_STEP;
	if (gap_at(&app->topo, s, app->view.cursor, &gap, NULL) > 0)
		start = gap.start;
	else if (history_stab(app->h, attr, app->view.cursor, &iv, NULL) == 0)
		start = iv.start;
	char *at = strstr(copy, time_clock(clock, start, 0));
	if (at) {
		char *rest = at + strcspn(at, " ");
		ruler_time(other, &app->axis, start, step);
		snprintf(text, size, "%.*s%s%s", (int)(at - copy), copy, other, rest);
	}
	free(copy);
}

/* The sentence of the row at the cursor: at once, or asked for. */
static void ask_sentence(struct app *app)
{
	struct status_line *c = app->status;
	const struct view *v = &app->view;
	struct question q = { .t = v->cursor, .from = v->t0, .to = view_last(v, &app->ground) };
	bool subject = row_subject(&app->topo, v->row, &q.subject);
	c->asked = subject && (v->row.kind == ROW_MACHINE || row_attr(&app->rows, v->row) != HISTORY_NONE);
	if (c->asked) {
		short_sentence(app, c->sentence, sizeof c->sentence);
		asker_ask(app->asker, ASK_STATUS, &q);
	} else if (v->row.kind == ROW_MACHINE) {
		machine_sentence(app, NULL, c->sentence, sizeof c->sentence);
	} else {
		plain_sentence(app, c->sentence, sizeof c->sentence);
	}
}

static void take_sentence(struct app *app)
{
	struct status_line *c = app->status;
	struct answer answer;
	struct subject s;
	if (!c->asked || !app_answer(app, ASK_STATUS, &answer))
		return;
	c->asked = false;
	if (answer.status < 0) {
		app_fail(app, &answer.err);
	} else if (app->view.row.kind == ROW_MACHINE) {
		machine_sentence(app, &answer, c->sentence, sizeof c->sentence);
	} else {
		snprintf(c->sentence, sizeof c->sentence, "%s", answer.text);
		if (app->axis.format != TIME_WALL && row_subject(&app->topo, app->view.row, &s))
			retime(app, &s, c->sentence, sizeof c->sentence);
	}
}

static void update(struct app *app)
{
	struct status_line *c = app->status;
	struct view *v = &app->view;
	if (app->rows.len == 0)
		return;
	int col = view_column(v, v->cursor);
	int64_t from = v->t0 + col * v->step, to = from + v->step - 1;
	if (v->range != VIEW_NONE) {
		range_text(app, c->sentence, sizeof c->sentence);
		c->shares[0] = '\0';
		c->valid = c->asked = false;
		asker_drop(app->asker, ASK_STATUS);
		return;
	}
	if (!c->valid || !row_same(c->row, v->row) || c->cursor != v->cursor || c->step != v->step || c->from != v->t0) {
		ask_sentence(app);
		shares_text(app, from, to < app->ground.end ? to : app->ground.end, c->shares, sizeof c->shares);
		c->valid = true;
		c->row = v->row;
		c->cursor = v->cursor;
		c->step = v->step;
		c->from = v->t0;
	}
	take_sentence(app);
}

const char *status_sentence(struct app *app)
{
	update(app);
	return app->status->sentence;
}

const char *status_shares(struct app *app)
{
	update(app);
	return app->status->shares;
}

/* Does the header tell the second of all that is shown? */
static bool within_a_second(const struct app *app)
{
	char from[TIME_TEXT], to[TIME_TEXT];
	time_clock(from, app->view.t0, 0);
	return strcmp(from, time_clock(to, view_last(&app->view, &app->ground), 0)) == 0;
}

#define NEARLY_ALL 90  /* per cent */
#define NUMBER "0123456789."

/* Takes `what` and the number behind it out of the text. */
static void leave_out(char *text, const char *what)
{
	char *at = strstr(text, what), *end = at ? at + strlen(what) : NULL;
	while (end && *end >= '0' && *end <= '9')
		end++;
	if (end && end > at + strlen(what))
		memmove(at, end, strlen(end) + 1);
}

/* Where the line is short: the name of the row on which the cursor stands. */
static void leave_out_name(char *text, int room, const char *title)
{
	size_t n = strlen(title);
	if (text_width(text) > room && n && strncmp(text, title, n) == 0 && text[n] == ' ')
		memmove(text, text + n + 1, strlen(text + n + 1) + 1);
}

/* What does not fit is seen to be cut; of a number nothing is left. */
static void mark_cut(char *text, int room)
{
	if (text_width(text) <= room || room <= 2)
		return;
	size_t n = text_fit(text, room - 2);
	if (strchr(NUMBER, text[n]))
		while (n > 0 && strchr(NUMBER, text[n - 1]))
			n--;
	memcpy(text + n, "..", sizeof "..");
}

static void leave_out_last(char *text, int room, char before)
{
	char *tail = strrchr(text, before);
	if (tail && text_width(text) > room)
		*tail = '\0';
}

/* From where `from` stands up to where `to` does. */
static void leave_out_span(char *text, int room, const char *from, const char *to)
{
	char *at = strstr(text, from), *end = at ? strstr(at, to) : NULL;
	if (end && text_width(text) > room)
		memmove(at, end, strlen(end) + 1);
}

/* Who took it, behind `by`: the middle of a machine's long name goes first. */
static void squeeze_behind(char *text, int room, const char *by)
{
	char *at = strstr(text, by), *name = at ? at + strlen(by) : NULL;
	if (name)
		text_squeeze(name, room - (text_width(text) - text_width(name)));
}

/* Of what a pane says of a line, parts are left out whole: "97 % o.." tells nobody of whom. */
static void shorten_note(char *text, int room, const char *title)
{
	leave_out_last(text, room, ';');
	leave_out_name(text, room, title);
	leave_out_last(text, room, ';');
	char *of = strstr(text, "% of it ");
	if (of && text_width(text) > room)
		memmove(of + 2, of + 8, strlen(of + 8) + 1);
	leave_out_span(text, room, " of ", ",");
	const char *lost = strstr(text, " lost ");
	if (lost && text_width(text) > room)
		memmove(text, lost + 1, strlen(lost + 1) + 1);
	char *whom = strstr(text, "hypervisor for ");
	if (whom && text_width(text) > room)
		whom[strlen("hypervisor")] = '\0';
	const char *share = strstr(text, ", ");
	if (share && atoi(share + 2) >= NEARLY_ALL)
		leave_out_span(text, room, ", ", " for ");
	squeeze_behind(text, room, "% to ");
	leave_out_last(text, room, ',');
}

static char *last_bracket(char *text)
{
	char *last = NULL;
	for (char *at = text; (at = strstr(at, " (")); at++)
		last = at;
	return last;
}

/* Where the line is short, the sentence goes without what the header tells: "12:03:04.1139" becomes ".1139"; then
 * without the host's CPU, how many more there were, the share of who has nearly all, what is said in brackets, and the name
 * of the row, on which the cursor stands.  Then without the share of a culprit of a part, and the state, which the cell
 * shows: who it was stays. */
static void shorten(char *text, int room, bool told, const char *title)
{
	for (char *c = text; *c && told && text_width(text) > room; c++) {
		size_t n = strspn(c, "0123456789:");
		if (c > text && c[-1] == ' ' && n == 8 && c[2] == ':' && c[5] == ':' && c[8] == '.')
			memmove(c, c + 8, strlen(c + 8) + 1);
	}
	if (text_width(text) > room)
		leave_out(text, " on CPU");
	char *end = strstr(text, ") and ");
	if (end && text_width(text) > room)
		end[1] = '\0';
	char *share = last_bracket(text);
	if (share && text_width(text) > room && atoi(share + 2) >= NEARLY_ALL)
		*share = '\0';
	const char *more = last_bracket(text);  /* "due to a CPU quota (its threads were throttled)" */
	if (more && !isdigit((unsigned char)more[2]))
		leave_out_last(text, room, '(');
	leave_out_name(text, room, title);
	share = last_bracket(text);
	if (share && text_width(text) > room)
		*share = '\0';
	leave_out_last(text, room, ',');
	char *state = strpbrk(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
	const size_t n = state ? strspn(state, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") : 0;
	if (n && state[n] == ' ' && text_width(text) > room)
		memmove(state, state + n + 1, strlen(state + n + 1) + 1);
	squeeze_behind(text, room, " by ");
}

/* Of the line that the pane's cursor stands on; false: the row has its say. */
static bool draw_of_pane(struct app *app, struct screen *s, int y)
{
	const struct pane *p = app->focused ? app->below : NULL;
	char text[768], title[256];
	if (!p || !p->ops->tell || p->at >= p->lines)
		return false;
	p->ops->tell(app, p, p->at, text, sizeof text);
	if (!*text)
		return false;
	screen_fill(s, 0, y, s->w, ' ', app->look.palette.part[PART_NORMAL]);
	row_title(&app->rows, app->view.row, title, sizeof title);
	shorten_note(text, s->w - 2, title);
	mark_cut(text, s->w - 2);
	screen_text(s, 1, y, s->w - 1, app->look.palette.part[PART_STATUS], text);
	return true;
}

void status_draw(struct app *app, struct screen *s, int y)
{
	if (draw_of_pane(app, s, y))
		return;
	struct style style = app->look.palette.part[PART_STATUS], dim = app->look.palette.part[PART_NORMAL];
	const struct status_line *c = app->status;
	update(app);
	screen_fill(s, 0, y, s->w, ' ', dim);
	char sentence[sizeof c->sentence], title[256] = "";
	if (app->rows.len)
		row_title(&app->rows, app->view.row, title, sizeof title);
	snprintf(sentence, sizeof sentence, "%s", c->sentence);
	shorten(sentence, s->w - 2, within_a_second(app), title);
	mark_cut(sentence, s->w - 2);
	int used = 1 + screen_text(s, 1, y, s->w - 1, style, sentence);
	int need = c->shares[0] ? 6 + text_width(c->shares) : 0, end = s->w - 1;
	if (need && used + 2 + need < s->w) {
		end -= need;
		screen_printf(s, end, y, s->w, dim, "cell: %s", c->shares);
	}
	char band[TIME_TEXT + 16] = "", d[TIME_TEXT];
	int64_t ns = app->rows.len ? status_clock_band(app, row_machine(&app->rows, app->view.row)) : -1;
	if (ns >= 0)
		snprintf(band, sizeof band, "clock +-%s", time_duration(d, ns));
	if (band[0] && used + 3 + (int)strlen(band) < end - 2)
		screen_text(s, used + 3, y, end - used, app->look.palette.part[PART_DIM], band);
}
