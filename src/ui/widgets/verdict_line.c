#include "ui/widgets/verdict_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "ui/panes/overview.h"
#include "ui/panes/pane.h"

#define SCREEN_LINES_MIN 16   /* smallest height of a screen with a verdict, lines */
#define TWO_LINES_MIN 22      /* smallest height of a screen with two lines for a long verdict, lines */
#define REQUESTS_MAX 20000    /* with more requests their durations are not read */

struct verdict_line {
	int64_t from, to;         /* window of the verdict, ns; to < from: none was asked for */
	bool pending, known, failed;
	struct findings findings; /* the verdict is the first one; valid if known */
	char requests[64];        /* "24 requests, p99 179 ms", or "" */
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

/* Returns the verdict, without its later clauses if it is wider than the screen. */
static void verdict_text(const struct app *app, int space, char text[FINDING_TEXT])
{
	const struct finding *v = &app->verdict->findings.item[0];
	snprintf(text, FINDING_TEXT, "%s", v->text);
	if (text_width(text) > space && v->main_bytes < FINDING_TEXT)
		text[v->main_bytes] = '\0';
}

static bool shows_overview(const struct app *app)
{
	return app->pane_below && app->pane_below->ops->replaces_rows;
}

int verdict_line_height(const struct app *app)
{
	char text[FINDING_TEXT];
	const struct verdict_line *v = app->verdict;
	const bool two_lines = app->is_picture || app->h_cells >= TWO_LINES_MIN;
	if (!app->is_picture && (!shows_overview(app) || app->h_cells < SCREEN_LINES_MIN))
		return 0;
	if (!v->known || !two_lines)
		return 1;
	verdict_text(app, app->w - 2, text);
	return v->findings.len > 1 || text_width(text) > app->w - 2 ? 2 : 1;
}

static int compare_ns(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* Writes the number of requests that start and end in the window, and the p99 of their durations. */
static void write_requests(const struct app *app, int64_t from, int64_t to, char *buf, size_t size)
{
	const size_t all = app->rows.requests;
	char d[TIME_TEXT];
	size_t n = 0;
	buf[0] = '\0';
	if (all == 0 || all > REQUESTS_MAX)
		return;
	int64_t *ns = mem_new(all, sizeof *ns);
	for (size_t i = 0; i < all; i++) {
		struct interval iv;
		const uint32_t attr = app->rows.request[i].state;
		int64_t start = INT64_MIN;
		for (int64_t t = from; t <= to && history_stab(app->h, attr, t, &iv, NULL) == 0; t = iv.end + 1) {
			if (iv.value != HISTORY_NULL && start == INT64_MIN)
				start = iv.start;
			if (iv.value == HISTORY_NULL && start != INT64_MIN) {
				if (start >= from && start > app->bounds.begin)
					ns[n++] = iv.start - start;
				start = INT64_MIN;
			}
			if (iv.end >= to)
				break;
		}
	}
	if (n) {
		qsort(ns, n, sizeof *ns, compare_ns);
		snprintf(buf, size, "%zu request%s, p99 %s", n, n == 1 ? "" : "s", time_duration(d, ns[(n * 99 + 99) / 100 - 1]));
	}
	free(ns);
}

/* Asks for the findings on the window of the overview; in the timeline they stay, so that keys go from one moment to the
 * next. */
static void update_verdict(struct app *app)
{
	struct verdict_line *v = app->verdict;
	struct question q = { .from = app->view.t0, .to = view_last(&app->view, &app->bounds) };
	struct answer answer;
	const bool is_new = v->from > v->to;
	if (is_new && !shows_overview(app)) {
		q.from = app->bounds.begin;
		q.to = app->bounds.end;
	}
	if (is_new || ((shows_overview(app) || app->is_picture) && (v->from != q.from || v->to != q.to))) {
		v->from = q.from;
		v->to = q.to;
		v->pending = true;
		v->known = false;
		async_ask(app->queries, ASK_FINDINGS, &q);
		write_requests(app, q.from, q.to, v->requests, sizeof v->requests);
	}
	if (!v->pending || !app_take_answer(app, ASK_FINDINGS, &answer))
		return;
	v->pending = false;
	v->failed = answer.status < 0;
	v->known = !v->failed;
	findings_release(&v->findings);
	v->findings = answer.findings;
	if (v->failed)
		app_fail(app, &answer.err);
}

const struct findings *verdict_line_get(struct app *app)
{
	update_verdict(app);
	return app->verdict->known ? &app->verdict->findings : NULL;
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
	if (*v->item[0].command && !app->is_picture)
		snprintf(right + strlen(right), sizeof right - strlen(right), "%s: show it",
		         keymap_text(&app->keymap, ACT_FINDING_1, keys, sizeof keys));
	const int right_w = *right && text_width(right) <= space * 2 / 5 ? text_width(right) + 3 : 0;
	const struct style style = p->part[finding_is_healthy(&v->item[0]) ? PART_STATUS : PART_STEAL];
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
