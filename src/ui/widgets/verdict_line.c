#include "ui/widgets/verdict_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "ui/panes/pane.h"

#define SCREEN_LINES_MIN 16   /* smallest height of a screen with a verdict, lines */
#define TWO_LINES_MIN 22      /* smallest height of a screen with two lines for a long verdict, lines */
#define REQUESTS_MAX 20000    /* with more requests their durations are not read */

struct verdict_line {
	int64_t from, to;         /* window of the verdict, ns; to < from: none was asked for */
	bool pending, known, failed;
	struct findings findings; /* the verdict is the first one; valid if known */
	char requests[64];        /* "24 requests, p99 179 ms", or "" */
};

void verdict_line_init(struct app *app)
{
	app->verdict = mem_new(1, sizeof *app->verdict);
	verdict_line_forget(app);
}

void verdict_line_release(struct app *app)
{
	findings_release(&app->verdict->findings);
	free(app->verdict);
}

void verdict_line_forget(struct app *app)
{
	findings_release(&app->verdict->findings);
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

int verdict_line_height(const struct app *app)
{
	char text[FINDING_TEXT];
	const bool overview = app->pane_below && app->pane_below->ops->replaces_rows;
	if (!app->is_picture && (!overview || app->h_cells < SCREEN_LINES_MIN))
		return 0;
	if (!app->verdict->known || (app->h_cells < TWO_LINES_MIN && !app->is_picture))
		return 1;
	verdict_text(app, app->w - 2, text);
	return text_width(text) > app->w - 2 ? 2 : 1;
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

static void update_verdict(struct app *app)
{
	struct verdict_line *v = app->verdict;
	struct question q = { .from = app->view.t0, .to = view_last(&app->view, &app->bounds) };
	struct answer answer;
	if (v->from != q.from || v->to != q.to) {
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

void verdict_line_draw(struct app *app, struct screen *s, int y)
{
	const struct palette *p = &app->appearance.palette;
	const struct findings *v = verdict_line_get(app);
	char requests[96] = "", keys[32];
	screen_fill(s, 0, y, s->w, ' ', p->part[PART_NORMAL]);
	if (app->verdict->requests[0])
		snprintf(requests, sizeof requests, "%s: %s", app->verdict->requests,
		         keymap_text(&app->keymap, ACT_REQUESTS, keys, sizeof keys));
	if (!v) {
		screen_text(s, 1, y, s->w - 2, p->part[PART_DIM], app->verdict->failed ? "no verdict" : "verdict: reading");
		return;
	}
	char text[FINDING_TEXT];
	const int space = s->w - 2;
	const int requests_w = requests[0] && text_width(requests) <= space * 2 / 5 ? text_width(requests) + 3 : 0;
	const struct style style = finding_is_healthy(&v->item[0]) ? p->part[PART_STATUS] : p->part[PART_STEAL];
	verdict_text(app, space - requests_w, text);
	if (text_width(text) > space - requests_w)
		verdict_text(app, space, text);
	const size_t first = verdict_line_height(app) > 1 ? text_line_bytes(text, space) : strlen(text);
	const bool shows_requests = requests_w && text_width(text) <= space - requests_w;
	if (first < strlen(text)) {
		screen_fill(s, 0, y + 1, s->w, ' ', p->part[PART_NORMAL]);
		screen_clip(s, 1, y + 1, space, style, text + first + strspn(text + first, " "));
		text[first] = '\0';
	}
	screen_clip(s, 1, y, space, style, text);
	if (shows_requests)
		screen_text(s, s->w - requests_w + 2, y, requests_w, p->part[PART_DIM], requests);
}
