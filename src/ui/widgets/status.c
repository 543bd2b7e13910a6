#include "ui/widgets/status.h"

#include <ctype.h>

#include "base/base.h"
#include "ui/panes/pane.h"

/* Content of the status line, cached until row, cursor or window change. */
struct status_line {
	struct question question;  /* the selected row's sentence */
	bool valid, pending;     /* valid: the cache is up to date; pending: the complete sentence is pending */
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
	app->status->valid = app->status->pending = false;
}

int64_t status_clock_error(const struct app *app, uint32_t machine)
{
	char path[512];
	struct interval iv;
	if (app->catalog.machine[machine].kind != MACHINE_VM)
		return -1;
	history_path(path, sizeof path, SCHEMA_VMS, app->catalog.machine[machine].name,
	             machine_schema[MACHINE_CLOCK_ERROR].name, NULL);
	uint32_t attr = history_find(app->h, path);
	if (attr == HISTORY_NONE || history_type(app->h, attr) != HISTORY_INT ||
	    history_stab(app->h, attr, app->view.cursor, &iv, NULL) < 0 || iv.value < 0)
		return -1;
	return iv.value;
}

/* Formats the shares of the states in [from, to]: "run 8 %, preempt 92 %", the most severe last. */
static void shares_text(struct app *app, int64_t from, int64_t to, char *buf, size_t size)
{
	struct error err = ERROR_INIT;
	struct cell_source src;
	uint32_t *attrs;
	int64_t sums[HISTORY_STATES], total = 0;
	buf[0] = '\0';
	appearance_cell_source(app, app->view.row, &src, &attrs);
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
		if (sums[c] <= 0 || (c == VIS_NONE && !src.equal_rank))
			continue;
		text_escape(label, sizeof label, appearance_code_label(app, app->view.row, (unsigned)c));
		int digits = share >= 9.95 ? 0 : share >= 0.095 ? 1 : 3;
		int n = snprintf(buf + used, size - used, "%s%s %.*f %%", used ? ", " : "", label, digits, share);
		if (n < 0 || used + (size_t)n >= size)
			break;
		used += (size_t)n;
	}

}

/* Formats the selected range's statistics: its length, then the time in each state, waits first because the line
 * may be cut. */
static void range_text(struct app *app, char *buf, size_t size)
{
	const struct view *v = &app->view;
	int64_t from = v->range < v->cursor ? v->range : v->cursor, to = v->range < v->cursor ? v->cursor : v->range;
	struct cell_source src;
	uint32_t *attrs;
	int64_t sums[HISTORY_STATES];
	char title[256], d[TIME_TEXT];
	appearance_cell_source(app, v->row, &src, &attrs);
	int n = snprintf(buf, size, "range %s of %.60s:", time_duration(d, to - from + 1),
	                 row_title(&app->rows, v->row, title, sizeof title));
	size_t used = n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
	if (src.attrs > 0 && cells_sums(&src, from, to, sums, NULL) == 0) {
		for (int i = 0; i < 2 * HISTORY_STATES && used + 1 < size; i++) {
			char label[64];
			const int c = i % HISTORY_STATES;
			const bool is_wait = src.severity[c] >= WAIT_SEVERITY, first = i < HISTORY_STATES;
			if (sums[c] <= 0 || is_wait != first || (c == VIS_NONE && !src.equal_rank))
				continue;
			text_escape(label, sizeof label, appearance_code_label(app, v->row, (unsigned)c));
			n = snprintf(buf + used, size - used, "  %s %s", label, time_duration(d, sums[c]));
			used += n < 0 || (size_t)n >= size - used ? size - used - 1 : (size_t)n;
		}
	}
	free(attrs);
}

/* Formats the sentence of a pCPU (its owner and thread), a request, or a group. */
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
		char state[64] = "not active";
		if (iv.value != HISTORY_NULL)
			text_escape(state, sizeof state, history_state_name(app->h, attr, (unsigned)iv.value));
		snprintf(buf, size, "%s %s %s for %s", title, ruler_time(when, &app->axis, iv.start, app->view.step), state,
		         time_duration(d, iv.end - iv.start + 1));
		return;
	}
	unsigned code = iv.value >= 0 && iv.value < HISTORY_STATES - 1 ? app->appearance.owner[row.index].code[iv.value]
	                                                               : HISTORY_STATES - 1;
	char owner[128];
	text_escape(owner, sizeof owner, appearance_code_label(app, row, code));
	struct interval current;
	uint32_t current_attr = app->catalog.cpu[row.index].current;
	if (current_attr != HISTORY_NONE && history_stab(app->h, current_attr, app->view.cursor, &current, NULL) == 0 &&
	    current.value > 0 && current.value <= INT32_MAX) {
		int t = catalog_find_thread(&app->catalog, app->catalog.cpu[row.index].machine, (int32_t)current.value);
		struct target s = { TARGET_THREAD, (uint32_t)t };
		if (t >= 0)
			catalog_target_text(&app->catalog, &s, name, sizeof name);
		const int32_t role = t >= 0 ? app->catalog.thread[t].role : -1;
		if (code == OWNER_OTHER && role >= 0)  /* the letters do not suffice for all VMs, but the thread's vCPU is known */
			snprintf(owner, sizeof owner, "%s",
			         app->rows.machine_name[app->catalog.cpu[app->catalog.role[role].vcpu].machine]);
	}
	snprintf(buf, size, "%s %s %s%s%s for %s", title,
	         ruler_time(when, &app->axis, app->view.cursor, app->view.step), code == 0 ? "idle" : owner,
	         name[0] ? ", " : "", name, time_duration(d, iv.end - iv.start + 1));
}

/* lost: NULL: not yet known */
static void machine_sentence(struct app *app, const int64_t *lost, char *buf, size_t size)
{
	char title[256], d[TIME_TEXT], w[TIME_TEXT];
	int64_t last = view_last(&app->view, &app->bounds);
	struct target s;
	row_title(&app->rows, app->view.row, title, sizeof title);
	if (!lost)
		snprintf(buf, size, "%s", title);
	else if (row_target(&app->catalog, app->view.row, &s) && !catalog_has_host_trace(&app->catalog, &s))
		snprintf(buf, size, "%s: time taken by its host is unknown (no host trace)", title);
	else
		snprintf(buf, size, "%s lost %s in this window of %s", title, time_duration(d, *lost),
		         time_duration(w, last - app->view.t0 + 1));
}

/* Formats a short sentence that needs no worker, shown while the complete one is pending. */
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

#define SENTENCE_STEP 100000  /* precision of times in a sentence, ns */

/* Replaces the wall clock time in the sentence by a time in the chosen format. */
static void replace_time(const struct app *app, const struct target *s, char *text, size_t size)
{
	struct gap gap;
	struct interval iv;
	char clock[TIME_TEXT], other[TIME_TEXT], *copy = mem_dup(text);
	uint32_t attr = row_attr(&app->rows, app->view.row);
	int64_t start = app->view.cursor, step = app->view.step < SENTENCE_STEP ? app->view.step : SENTENCE_STEP;
	if (gap_at(&app->catalog, s, app->view.cursor, &gap, NULL) > 0)
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

/* Lost time of a machine in the window, as a query. */
struct machine_loss {
	const struct catalog *catalog;
	struct target target;
	int64_t from, to, ns;
};

static int machine_loss_step(void *state, int64_t until, struct error *err)
{
	struct machine_loss *l = state;
	(void)until;
	return steal_time(l->catalog, &l->target, l->from, l->to, &l->ns, err) < 0 ? -1 : 1;
}

static struct query *open_machine_loss(const struct app *app, const struct target *target)
{
	static const struct task_kind kind = { machine_loss_step, free };
	struct machine_loss *l = mem_new(1, sizeof *l);
	*l = (struct machine_loss){ &app->catalog, *target, app->view.t0, view_last(&app->view, &app->bounds), 0 };
	return query_task_open(&kind, l);
}

/* Starts the selected row's sentence: computes it, or asks a worker for it. */
static void start_sentence(struct app *app)
{
	struct status_line *c = app->status;
	const struct view *v = &app->view;
	struct target s;
	const bool has_target = row_target(&app->catalog, v->row, &s);
	c->pending = has_target && (v->row.kind == ROW_MACHINE || row_attr(&app->rows, v->row) != HISTORY_NONE);
	if (c->pending) {
		short_sentence(app, c->sentence, sizeof c->sentence);
		async_ask(app->queries, &c->question, ASK_SENTENCE, v->row.kind == ROW_MACHINE ? open_machine_loss(app, &s)
		          : status_open(&app->catalog, &s, v->cursor), NULL);
	} else if (v->row.kind == ROW_MACHINE) {
		machine_sentence(app, NULL, c->sentence, sizeof c->sentence);
	} else {
		plain_sentence(app, c->sentence, sizeof c->sentence);
	}
}

static void take_full_sentence(struct app *app)
{
	struct status_line *c = app->status;
	struct query *query;
	struct error err = ERROR_INIT;
	struct target s;
	const int got = c->pending ? app_take_answer(app, &c->question, &query, NULL, &err) : 0;
	if (got == 0)
		return;
	c->pending = false;
	if (got < 0) {
		app_fail(app, &err);
		return;
	}
	if (app->view.row.kind == ROW_MACHINE) {
		machine_sentence(app, &((struct machine_loss *)query_task_state(query))->ns, c->sentence, sizeof c->sentence);
	} else {
		char *text;
		query_take(query, &text);
		snprintf(c->sentence, sizeof c->sentence, "%s", text);
		free(text);
		if (app->axis.format != TIME_WALL && row_target(&app->catalog, app->view.row, &s))
			replace_time(app, &s, c->sentence, sizeof c->sentence);
	}
	query_close(query);
}

static void update_status(struct app *app)
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
		c->valid = c->pending = false;
		async_drop(app->queries, &c->question);
		return;
	}
	if (!c->valid || !row_same(c->row, v->row) || c->cursor != v->cursor || c->step != v->step || c->from != v->t0) {
		start_sentence(app);
		shares_text(app, from, to < app->bounds.end ? to : app->bounds.end, c->shares, sizeof c->shares);
		c->valid = true;
		c->row = v->row;
		c->cursor = v->cursor;
		c->step = v->step;
		c->from = v->t0;
	}
	take_full_sentence(app);
}

const char *status_sentence(struct app *app)
{
	update_status(app);
	return app->status->sentence;
}

const char *status_shares(struct app *app)
{
	update_status(app);
	return app->status->shares;
}

/* Returns true if the whole window is within one second, which the header shows. */
static bool is_within_second(const struct app *app)
{
	char from[TIME_TEXT], to[TIME_TEXT];
	time_clock(from, app->view.t0, 0);
	return strcmp(from, time_clock(to, view_last(&app->view, &app->bounds), 0)) == 0;
}

#define NEARLY_ALL 90  /* shares above this are omitted when space is short, per cent */
#define DIGITS_AND_POINT "0123456789."

/* Removes `prefix` and the number after it from the text. */
static void remove_numbered(char *text, const char *prefix)
{
	char *at = strstr(text, prefix), *end = at ? at + strlen(prefix) : NULL;
	while (end && *end >= '0' && *end <= '9')
		end++;
	if (end && end > at + strlen(prefix))
		memmove(at, end, strlen(end) + 1);
}

/* If the text does not fit, removes the row's name, which is selected on the screen. */
static void remove_name(char *text, int space, const char *title)
{
	size_t n = strlen(title);
	if (text_width(text) > space && n && strncmp(text, title, n) == 0 && text[n] == ' ')
		memmove(text, text + n + 1, strlen(text + n + 1) + 1);
}

/* Cuts a text that does not fit and appends ".."; removes a cut number completely. */
static void mark_cut(char *text, int space)
{
	if (text_width(text) <= space || space <= 2)
		return;
	size_t n = text_fit(text, space - 2);
	if (strchr(DIGITS_AND_POINT, text[n]))
		while (n > 0 && strchr(DIGITS_AND_POINT, text[n - 1]))
			n--;
	memcpy(text + n, "..", sizeof "..");
}

static void remove_last(char *text, int space, char before)
{
	char *tail = strrchr(text, before);
	if (tail && text_width(text) > space)
		*tail = '\0';
}

/* If the text does not fit, removes the part from `from` up to, not including, `to`. */
static void remove_between(char *text, int space, const char *from, const char *to)
{
	char *at = strstr(text, from), *end = at ? strstr(at, to) : NULL;
	if (end && text_width(text) > space)
		memmove(at, end, strlen(end) + 1);
}

/* Shortens the culprit's name after `by`, first a long machine name's middle. */
static void squeeze_after(char *text, int space, const char *by)
{
	char *at = strstr(text, by), *name = at ? at + strlen(by) : NULL;
	if (name)
		text_shorten_machine(name, space - (text_width(text) - text_width(name)));
}

/* Shortens the text of a pane's line by whole phrases until it fits. */
static void shorten_pane_text(char *text, int space, const char *title)
{
	remove_last(text, space, ';');
	remove_name(text, space, title);
	remove_last(text, space, ';');
	static const char *const removable[] = { "% of it ", "% taken " };
	for (size_t i = 0; i < sizeof removable / sizeof *removable; i++) {
		char *at = strstr(text, removable[i]);
		if (at && text_width(text) > space)
			memmove(at + 2, at + 8, strlen(at + 8) + 1);
	}
	remove_between(text, space, " of ", ",");
	const char *lost = strstr(text, " lost ");
	if (lost && text_width(text) > space)
		memmove(text, lost + 1, strlen(lost + 1) + 1);
	char *served = strstr(text, "hypervisor for ");
	if (served && text_width(text) > space)
		served[strlen("hypervisor")] = '\0';
	const char *share = strstr(text, ", ");
	if (share && atoi(share + 2) >= NEARLY_ALL)
		remove_between(text, space, ", ", " for ");
	squeeze_after(text, space, "% by ");
	remove_last(text, space, ',');
}

static char *last_bracket(char *text)
{
	char *last = NULL;
	for (char *at = text; (at = strstr(at, " (")); at++)
		last = at;
	return last;
}

/* If the text does not fit, removes ", NUMBER WORDS", such as ", 97 %" or ", 4 others", if the number is at least
 * min_number. */
static void remove_number(char *text, int space, const char *words, int min_number)
{
	for (char *at = text; text_width(text) > space && (at = strstr(at, ", ")); at++) {
		const size_t digits = strspn(at + 2, "0123456789");
		char *end = at + 2 + digits;
		if (!digits || strncmp(end, words, strlen(words)) != 0 || atoi(at + 2) < min_number)
			continue;
		end += strlen(words);
		end += *end == 's';
		memmove(at, end, strlen(end) + 1);
	}
}

/* Shortens a sentence of the query library (status_text.c) until it fits, by removing in this order:
 *
 * - the part of times that the header shows: "12:03:04.1139" becomes ".1139"
 * - the host CPU, the number of other culprits, a share of nearly 100 %, remarks in brackets
 * - the row's name, which is selected on the screen
 * - the share of a culprit, and the state, which the cell shows
 *
 * The culprit's name stays. */
static void shorten_sentence(char *text, int space, bool header_has_second, const char *title)
{
	for (char *c = text; *c && header_has_second && text_width(text) > space; c++) {
		size_t n = strspn(c, "0123456789:");
		if (c > text && c[-1] == ' ' && n == 8 && c[2] == ':' && c[5] == ':' && c[8] == '.')
			memmove(c, c + 8, strlen(c + 8) + 1);
	}
	if (text_width(text) > space)
		remove_numbered(text, " on CPU");
	char *end = strstr(text, ") and ");
	if (end && text_width(text) > space)
		end[1] = '\0';
	remove_number(text, space, " other", 0);
	char *share = last_bracket(text);
	if (share && text_width(text) > space && atoi(share + 2) >= NEARLY_ALL)
		*share = '\0';
	remove_number(text, space, " %", NEARLY_ALL);
	const char *more = last_bracket(text);  /* a remark such as "due to a CPU quota (its threads were throttled)" */
	if (more && !isdigit((unsigned char)more[2]))
		remove_last(text, space, '(');
	remove_name(text, space, title);
	share = last_bracket(text);
	if (share && text_width(text) > space)
		*share = '\0';
	remove_number(text, space, " %", 0);
	remove_last(text, space, ',');
	char *state = strpbrk(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
	const size_t n = state ? strspn(state, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") : 0;
	if (n && state[n] == ' ' && text_width(text) > space)
		memmove(state, state + n + 1, strlen(state + n + 1) + 1);
	squeeze_after(text, space, " by ");
}

/* Draws the text of the selected line of a pane. Returns false if there is none: then the row's sentence is shown. */
static bool draw_pane_line(struct app *app, struct screen *s, int y)
{
	const struct pane *p = app->focused ? app->pane_below : NULL;
	char text[768], title[256];
	if (!p || !p->ops->status_text || p->at >= p->lines)
		return false;
	p->ops->status_text(app, p, p->at, text, sizeof text);
	if (!*text)
		return false;
	screen_fill(s, 0, y, s->w, ' ', app->appearance.palette.part[PART_NORMAL]);
	row_title(&app->rows, app->view.row, title, sizeof title);
	shorten_pane_text(text, s->w - 2, title);
	mark_cut(text, s->w - 2);
	screen_text(s, 1, y, s->w - 1, app->appearance.palette.part[PART_STATUS], text);
	return true;
}

void status_draw(struct app *app, struct screen *s, int y)
{
	if (draw_pane_line(app, s, y))
		return;
	struct style style = app->appearance.palette.part[PART_STATUS], dim = app->appearance.palette.part[PART_NORMAL];
	const struct status_line *c = app->status;
	update_status(app);
	screen_fill(s, 0, y, s->w, ' ', dim);
	char sentence[sizeof c->sentence], title[256] = "";
	struct row_id named = app->view.row;
	if (named.kind == ROW_PROVIDER)  /* the sentence is on the vCPU */
		named.kind = ROW_CPU;
	if (app->rows.len)
		row_title(&app->rows, named, title, sizeof title);
	snprintf(sentence, sizeof sentence, "%s", c->sentence);
	shorten_sentence(sentence, s->w - 2, is_within_second(app), title);
	mark_cut(sentence, s->w - 2);
	int used = 1 + screen_text(s, 1, y, s->w - 1, style, sentence);
	int need = c->shares[0] ? 6 + text_width(c->shares) : 0, end = s->w - 1;
	if (need && used + 2 + need < s->w) {
		end -= need;
		screen_printf(s, end, y, s->w, dim, "cell: %s", c->shares);
	}
	char clock_error[TIME_TEXT + 16] = "", d[TIME_TEXT];
	int64_t ns = app->rows.len ? status_clock_error(app, row_machine(&app->rows, app->view.row)) : -1;
	if (ns >= 0)
		snprintf(clock_error, sizeof clock_error, "clock +-%s", time_duration(d, ns));
	if (clock_error[0] && used + 3 + (int)strlen(clock_error) < end - 2)
		screen_text(s, used + 3, y, end - used, app->appearance.palette.part[PART_DIM], clock_error);
}
