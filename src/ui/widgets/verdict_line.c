#include "ui/widgets/verdict_line.h"

#include "base/base.h"
#include "latency/latency.h"
#include "ui/panes/overview.h"
#include "ui/panes/pane.h"

#define SCREEN_LINES_MIN 16   /* smallest height of a screen with a verdict, lines */
#define TWO_LINES_MIN 22      /* smallest height of a screen with two lines for a long verdict, lines */

struct verdict_line {
	int64_t from, to;         /* the verdict's window, ns; to < from: none was asked for */
	bool pending, known, failed;
	struct question question, requests_question;
	struct findings findings; /* the verdict is the first one; valid if known */
	char requests[64];        /* "24 requests, p99 179 ms", or "" */
	bool in_timeline;         /* the user came from the overview: the timeline shows a finding, too */
	size_t shown;             /* number of the finding that the timeline shows: the one whose moment was shown last */
	bool has_selected;        /* the row that shows the verdict was selected, unless the user had chosen one */
	char *sentence;           /* text for the clipboard; NULL: none yet */
};

void verdict_line_init(struct app *app)
{
	app->verdict = mem_new(1, sizeof *app->verdict);
	verdict_line_forget(app);
}

void verdict_line_release(struct app *app)
{
	findings_release(&app->verdict->findings);
	free(app->verdict->sentence);
	free(app->verdict);
}

void verdict_line_forget(struct app *app)
{
	findings_release(&app->verdict->findings);
	free(app->verdict->sentence);
	*app->verdict = (struct verdict_line){ .from = 1, .to = 0 };
}

static bool shows_overview(const struct app *app)
{
	return app->pane_below && app->pane_below->ops->replaces_rows;
}

/* Returns the finding of the line: the verdict; in the timeline the one whose moment was shown last. */
static const struct finding *shown_finding(const struct app *app)
{
	return &app->verdict->findings.item[shows_overview(app) || app->is_picture ? 0 : app->verdict->shown];
}

/* Returns the finding as text, without its later clauses if it is wider than the screen. */
static void verdict_text(const struct app *app, int space, char text[FINDING_TEXT])
{
	const struct finding *v = shown_finding(app);
	char number[24] = "";
	if (v != app->verdict->findings.item)
		snprintf(number, sizeof number, "%zu: ", app->verdict->shown + 1);
	snprintf(text, FINDING_TEXT, "%s%s", number, v->text);
	if (text_width(text) > space && v->main_bytes < FINDING_TEXT)
		text[strlen(number) + v->main_bytes] = '\0';
}

int verdict_line_height(const struct app *app)
{
	char text[FINDING_TEXT];
	const struct verdict_line *v = app->verdict;
	const bool two_lines = app->is_picture || app->h_cells >= TWO_LINES_MIN;
	if (!app->is_picture && (app->h_cells < SCREEN_LINES_MIN || (!shows_overview(app) && !v->in_timeline)))
		return 0;
	if (!v->known || !two_lines || !(shows_overview(app) || app->is_picture))
		return 1;
	verdict_text(app, app->w - 2, text);
	return v->findings.len > 1 || text_width(text) > app->w - 2 ? 2 : 1;
}

/* ---- Requests */

struct requests_query {
	const struct catalog *catalog;
	int64_t from, to;
	char text[sizeof ((struct verdict_line *)0)->requests];
};

/* Writes the number of requests that start and end in the window, and the p99 of their durations. */
static int requests_step(void *state, int64_t until, struct error *err)
{
	struct requests_query *q = state;
	const struct requests_options options = { .from = q->from, .to = q->to, .plain = true };
	struct requests all = { 0 };
	struct notes notes = { 0 };
	char d[TIME_TEXT];
	size_t n = 0;
	(void)until;
	const int rc = requests_read(q->catalog, &options, &all, &notes, err);
	int64_t *ns = mem_new(all.len, sizeof *ns);
	for (size_t i = 0; rc == 0 && i < all.len; i++)
		if (all.row[i].start >= q->from && all.row[i].end <= q->to)
			ns[n++] = request_latency(&all.row[i]);
	if (n) {
		qsort(ns, n, sizeof *ns, order_int64);
		snprintf(q->text, sizeof q->text, "%zu request%s, p99 %s", n, n == 1 ? "" : "s",
		         time_duration(d, ns[percentile_index(n, 99)]));
	}
	free(ns);
	requests_release(&all);
	notes_release(&notes);
	return rc < 0 ? -1 : 1;
}

static void ask_requests(struct app *app, int64_t from, int64_t to)
{
	static const struct task_kind kind = { requests_step, free };
	struct verdict_line *v = app->verdict;
	v->requests[0] = '\0';
	if (app->rows.requests == 0)
		return;
	struct requests_query *q = mem_new(1, sizeof *q);
	*q = (struct requests_query){ .catalog = &app->catalog, .from = from, .to = to };
	async_ask(app->queries, &v->requests_question, ASK_BACKGROUND, query_task_open(&kind, q), NULL);
}

static void take_requests(struct app *app)
{
	struct query *query;
	struct error err = ERROR_INIT;
	struct verdict_line *v = app->verdict;
	if (app->rows.requests == 0 || !async_is_pending(app->queries, &v->requests_question) ||
	    app_take_answer(app, &v->requests_question, &query, NULL, &err) <= 0)
		return;
	snprintf(v->requests, sizeof v->requests, "%s", ((struct requests_query *)query_task_state(query))->text);
	query_close(query);
}

/* ---- Findings */

/* Selects the verdict's row. If it does not exist at the trace's start, moves the cursor to its first interval,
 * unless the user has moved the cursor. */
static void select_row(struct app *app)
{
	const struct finding *f = &app->verdict->findings.item[0];
	struct interval iv;
	app->verdict->has_selected = true;
	if (!f->has_target || app->row_chosen)
		return;
	app->view.row = rows_of_victim(&app->rows, &f->target);
	rows_reveal(&app->rows, app->view.row);
	const uint32_t attr = row_attr(&app->rows, app->view.row);
	if (app->view.cursor == app->bounds.begin && attr != HISTORY_NONE &&
	    history_stab(app->h, attr, app->view.cursor, &iv, NULL) == 0 && iv.value == HISTORY_NULL &&
	    iv.end < app->bounds.end)
		view_goto(&app->view, &app->bounds, iv.end + 1);
}

/* Asks for the findings on the overview's window; in the timeline they stay, so that keys go from one moment to the
 * next. */
static void update_verdict(struct app *app)
{
	struct verdict_line *v = app->verdict;
	int64_t from = app->view.t0, to = view_last(&app->view, &app->bounds);
	struct query *query;
	struct error err = ERROR_INIT;
	const bool is_new = v->from > v->to;
	v->in_timeline |= shows_overview(app);
	if (is_new && !shows_overview(app)) {
		from = app->bounds.begin;
		to = app->bounds.end;
	}
	if (is_new || ((shows_overview(app) || app->is_picture) && (v->from != from || v->to != to))) {
		v->from = from;
		v->to = to;
		v->pending = true;
		v->known = false;
		async_ask(app->queries, &v->question, ASK_BACKGROUND, findings_open(&app->catalog, NULL, from, to), NULL);
		ask_requests(app, from, to);
	}
	take_requests(app);
	const int got = v->pending ? app_take_answer(app, &v->question, &query, NULL, &err) : 0;
	if (got == 0)
		return;
	v->pending = false;
	v->failed = got < 0;
	v->known = !v->failed;
	findings_release(&v->findings);
	if (v->failed) {
		app_fail(app, &err);
		return;
	}
	query_take(query, &v->findings);
	query_close(query);
	v->shown = 0;
}

const struct findings *verdict_line_get(struct app *app)
{
	update_verdict(app);
	if (app->verdict->known && !app->verdict->has_selected && rows_scan_done(&app->rows))
		select_row(app);
	return app->verdict->known ? &app->verdict->findings : NULL;
}

bool verdict_line_is_nothing(const struct app *app)
{
	return app->verdict->known && app->verdict->findings.item[0].kind == FINDING_NOTHING;
}

void verdict_line_go(struct app *app, size_t n)
{
	const struct findings *l = verdict_line_get(app);
	if (!l) {
		app_message(app, "the findings are still being computed");
		return;
	}
	if (n >= l->len || l->item[n].moment.end < l->item[n].moment.start) {
		app_message(app, n < l->len ? "finding %zu has no moment" : "there is no finding %zu", n + 1);
		return;
	}
	app->verdict->shown = n;
	app->verdict->in_timeline = true;
	overview_go_to_moment(app, &l->item[n].moment);
}

const struct finding *verdict_line_find(struct app *app, const struct target *target, size_t *number)
{
	const struct findings *l = verdict_line_get(app);
	for (size_t i = 0; l && i < l->len && i < VERDICT_LINE_KEYS; i++) {
		const struct finding *f = &l->item[i];
		*number = i;
		if (f->has_target && f->target.kind == target->kind && f->target.index == target->index)
			return f;
	}
	return NULL;
}

const char *verdict_line_sentence(struct app *app, const struct target *target, const char *status)
{
	char at[TIME_TEXT], name[4096];
	size_t number;
	struct verdict_line *v = app->verdict;
	const struct finding *f = target ? verdict_line_find(app, target, &number) : NULL;
	char *word = shell_word(text_escape(name, sizeof name, history_file(app->first)));
	const bool has_moment = f && f->moment.end >= f->moment.start;
	char *command = mem_printf(" (stealscope %s)", has_moment ? f->command : "view FILE");
	char *filled = text_insert_file_name(command, history_file(app->first));
	free(v->sentence);
	v->sentence = mem_printf("%s %s: %s%s", time_date(at, has_moment ? f->moment.start : app->view.cursor, 6), word,
	                         f ? f->text : status, filled);
	free(word);
	free(command);
	free(filled);
	return v->sentence;
}

void verdict_line_draw(struct app *app, struct screen *s, int y)
{
	const struct palette *p = &app->appearance.palette;
	/* the frame asked before: an answer that comes while it is drawn would move the lines below */
	const struct findings *v = app->verdict->known ? &app->verdict->findings : NULL;
	const int height = verdict_line_height(app), space = s->w - 2;
	char right[128] = "", keys[32], text[FINDING_TEXT];
	for (int i = 0; i < height; i++)
		screen_fill(s, 0, y + i, s->w, ' ', p->part[PART_NORMAL]);
	if (!v) {
		screen_text(s, 1, y, space, p->part[PART_DIM], app->verdict->failed ? "no verdict" : "verdict: reading");
		return;
	}
	if (app->verdict->requests[0] && shows_overview(app))
		snprintf(right, sizeof right, "%s: %s  ", app->verdict->requests,
		         keymap_text(&app->keymap, ACT_REQUESTS, keys, sizeof keys));
	const size_t next = shows_overview(app) ? 0 : app->verdict->shown + 1;  /* the finding that a key shows */
	if (next < v->len && next < VERDICT_LINE_KEYS && *v->item[next].command && !app->is_picture)
		snprintf(right + strlen(right), sizeof right - strlen(right), "%s: %s",
		         keymap_text(&app->keymap, (enum action)(ACT_FINDING_1 + next), keys, sizeof keys),
		         next ? "next finding" : "show it");
	const int right_w = *right && text_width(right) <= space * 2 / 5 ? text_width(right) + 3 : 0;
	const struct style style = p->part[finding_is_healthy(shown_finding(app)) ? PART_STATUS : PART_STEAL];
	verdict_text(app, space - right_w, text);
	if (text_width(text) > space - right_w)
		verdict_text(app, space, text);
	const size_t first = height > 1 ? text_line_bytes(text, space) : strlen(text);
	if (first < strlen(text)) {
		screen_clip(s, 1, y + 1, space, style, text + first + strspn(text + first, " "));
		text[first] = '\0';
	} else if (height > 1 && v->len > 1) {
		char second[FINDING_TEXT + 64];
		keymap_text(&app->keymap, ACT_FINDING_2, keys, sizeof keys);
		snprintf(second, sizeof second, "%s: %s", keys, v->item[1].text);
		screen_clip(s, 1, y + 1, space, p->part[PART_DIM], second);
	}
	screen_clip(s, 1, y, space, style, text);
	if (right_w && text_width(text) <= space - right_w)
		screen_text(s, s->w - right_w + 2, y, right_w, p->part[PART_DIM], right);
}
