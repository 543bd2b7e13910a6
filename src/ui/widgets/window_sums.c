#include "ui/widgets/window_sums.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "query/query.h"
#include "ui/panes/pane.h"
#include "ui/widgets/widgets.h"

#define LINES_MIN 4      /* free lines from which on the sums are shown */
#define NAME_MIN 16
#define FIGURES 37       /* columns of time, share, longest and its place */

enum sums_kind { SUMS_CULPRITS, SUMS_LENGTHS, SUMS_KINDS };
static const char *const kind_name[SUMS_KINDS] = { "culprits", "lengths" };

struct window_sums {
	enum sums_kind kind;
	bool is_off;             /* :set nobelow */
	int lines;               /* free lines in the last frame */
	/* the question: row and window; asked: an answer is awaited */
	struct target target;
	int64_t from, to;
	bool asked_flow, asked_gaps, has_target;
	struct question flow_question, gaps_question;
	/* the answers, possibly of the window before */
	bool has_flow, has_gaps;
	struct flow flow;
	struct gap_list gaps;
};

struct window_sums *window_sums_new(void)
{
	return mem_new(1, sizeof(struct window_sums));
}

static void drop_answers(struct window_sums *w)
{
	if (w->has_flow)
		flow_release(&w->flow);
	if (w->has_gaps)
		gap_list_release(&w->gaps);
	w->has_flow = w->has_gaps = false;
}

void window_sums_free(struct window_sums *w)
{
	if (w)
		drop_answers(w);
	free(w);
}

void window_sums_drop(struct app *app)
{
	drop_answers(app->window_sums);
	app->window_sums->has_target = app->window_sums->asked_flow = app->window_sums->asked_gaps = false;
}

static bool is_wanted(const struct app *app)
{
	const struct window_sums *w = app->window_sums;
	return !w->is_off && !app->pane_below && !app->list_over && !app->is_picture && w->lines >= LINES_MIN;
}

static void ask(struct app *app)
{
	struct window_sums *w = app->window_sums;
	const struct flow_options flow = { .intervals = ASK_INTERVALS };
	const struct gap_options gaps = { .from = w->from, .to = w->to, .top = ASK_LISTED };
	struct error err = ERROR_INIT;
	w->asked_flow = w->target.kind != TARGET_MACHINE;
	w->asked_gaps = true;
	if (w->asked_flow)
		async_ask(app->queries, &w->flow_question, ASK_BACKGROUND,
		          flow_open(&app->catalog, &w->target, w->from, w->to, &flow, &err), &err);
	else if (w->has_flow) {
		flow_release(&w->flow);
		w->has_flow = false;
	}
	async_ask(app->queries, &w->gaps_question, ASK_BACKGROUND, gap_list_open(&app->catalog, &w->target, &gaps), NULL);
}

static void take(struct app *app)
{
	struct window_sums *w = app->window_sums;
	struct query *query;
	struct error err = ERROR_INIT;
	int got = w->asked_flow ? app_take_answer(app, &w->flow_question, &query, NULL, &err) : 0;
	if (got) {
		w->asked_flow = false;
		if (w->has_flow)
			flow_release(&w->flow);
		w->has_flow = got > 0;
		if (w->has_flow) {
			flow_take(query, &w->flow);
			query_close(query);
		}
	}
	got = w->asked_gaps ? app_take_answer(app, &w->gaps_question, &query, NULL, &err) : 0;
	if (got) {
		w->asked_gaps = false;
		if (w->has_gaps)
			gap_list_release(&w->gaps);
		w->has_gaps = got > 0;
		if (w->has_gaps) {
			gap_list_take(query, &w->gaps);
			query_close(query);
		}
	}
}

void window_sums_refresh(struct app *app)
{
	struct window_sums *w = app->window_sums;
	struct target target;
	int64_t from, to;
	if (!is_wanted(app) || !row_target(&app->catalog, app->view.row, &target)) {
		w->has_target = w->asked_flow = w->asked_gaps = false;
		async_drop(app->queries, &w->flow_question);
		async_drop(app->queries, &w->gaps_question);
		return;
	}
	pane_window(app, &from, &to);
	const bool same_row = w->has_target && target.kind == w->target.kind && target.index == w->target.index;
	if (!same_row)
		drop_answers(w);
	if (!same_row || from != w->from || to != w->to) {
		w->target = target;
		w->from = from;
		w->to = to;
		w->has_target = true;
		ask(app);
	}
	take(app);
}

/* ---- drawing */

static struct style part(const struct app *app, enum part p)
{
	return app->appearance.palette.part[p];
}

static int64_t flow_lost(const struct flow *f)
{
	int64_t ns = 0;
	for (size_t i = 0; i < f->entries; i++)
		ns += f->entry[i].lost;
	return ns;
}

static int64_t flow_slept(const struct flow *f)
{
	int64_t ns = 0;
	for (size_t i = 0; i < f->entries; i++)
		ns += f->entry[i].actor.kind == FLOW_WAITING ? f->entry[i].duration : 0;
	return ns;
}

/* Culprits of a machine are in the overview; its sums here are the lengths of its waits. */
static enum sums_kind shown_kind(const struct window_sums *w)
{
	return w->target.kind == TARGET_MACHINE ? SUMS_LENGTHS : w->kind;
}

static void draw_title(struct app *app, struct screen *s, int y)
{
	const struct window_sums *w = app->window_sums;
	char name[ACTOR_TEXT], text[TIME_TEXT], title[1200], hint[64];
	int64_t from, to;
	const bool marked = pane_window(app, &from, &to);
	if (w->target.kind == TARGET_MACHINE)
		snprintf(hint, sizeof hint, " :set nobelow ");
	else
		snprintf(hint, sizeof hint, " Tab: %s  :set nobelow ", kind_name[(w->kind + 1) % SUMS_KINDS]);
	snprintf(title, sizeof title, "- %s of %s in %s%s ", kind_name[shown_kind(w)],
	         catalog_target_text(&app->catalog, &w->target, name, sizeof name), marked ? "A..B, " : "",
	         time_duration(text, w->to - w->from + 1));
	screen_fill(s, 0, y, s->w, app->appearance.tier == TIER_ASCII ? '-' : 0x2500, part(app, PART_TITLE));
	const int x = screen_clip(s, 0, y, s->w, part(app, PART_TITLE), text_shorten_machine(title, s->w));
	if (x + (int)strlen(hint) < s->w)
		screen_text(s, s->w - (int)strlen(hint), y, s->w, part(app, PART_TITLE), hint);
}

/* Writes "ran 16.9 ms 47 %  lost 18.9 ms 52 %  slept 0  gaps 20  p50 18 us  p90 2.4 ms  longest 12.0 ms". */
static void summary_text(const struct window_sums *w, char *buf, size_t size)
{
	char a[TIME_TEXT], b[TIME_TEXT], c[TIME_TEXT];
	size_t used = 0;
	buf[0] = '\0';
	if (w->has_flow) {
		const int64_t window = w->flow.end - w->flow.start + 1, lost = flow_lost(&w->flow), slept = flow_slept(&w->flow);
		const int64_t ran = window - lost - slept;
		used += (size_t)snprintf(buf, size, "ran %s %.0f%%  lost %s %.0f%%  slept %s  ", time_duration(a, ran),
		                         100.0 * (double)ran / (double)window, time_duration(b, lost),
		                         100.0 * (double)lost / (double)window, time_duration(c, slept));
	}
	if (w->has_gaps && w->gaps.all.count)
		snprintf(buf + used, size - used, "gaps %llu  p50 %s  p90 %s  longest %s", (unsigned long long)w->gaps.all.count,
		         time_duration(a, w->gaps.all.p50), time_duration(b, w->gaps.all.p90),
		         time_duration(c, w->gaps.all.longest));
	else if (w->has_gaps)
		snprintf(buf + used, size - used, "no gaps");
}

/* Returns the entry that lost the target most time below `limit` ns, the first of equal ones after entry `after`. */
static const struct flow_entry *next_culprit(const struct flow *f, int64_t limit, const struct flow_entry *after)
{
	const struct flow_entry *next = NULL;
	for (const struct flow_entry *e = f->entry; e < f->entry + f->entries; e++)
		if (e->lost && (e->lost < limit || (e->lost == limit && e > after)) && (!next || e->lost > next->lost))
			next = e;
	return next;
}

static void draw_culprits(struct app *app, struct screen *s, int y, int end, struct style style)
{
	const struct window_sums *w = app->window_sums;
	char name[ACTOR_TEXT], ns[TIME_TEXT], longest[TIME_TEXT], share[16], at[TIME_TEXT];
	int width = NAME_MIN, lines = end - y - 1;
	const struct flow_entry *e = NULL;
	if (!w->has_flow)
		return;
	while (lines-- > 0 && (e = next_culprit(&w->flow, e ? e->lost : INT64_MAX, e))) {
		actor_text(&app->catalog, &e->actor, w->flow.name[e->actor.name], ACTOR_SHOWN, &w->target, name, sizeof name);
		width = text_width(name) > width ? text_width(name) : width;
	}
	width = width < s->w - FIGURES - 2 ? width : s->w - FIGURES - 2;
	screen_printf(s, 2, y, s->w - 2, part(app, PART_RULER), "%-*s %9s %6s %9s  at", width, "culprit", "time", "share",
	              "longest");
	e = NULL;
	while (++y < end && (e = next_culprit(&w->flow, e ? e->lost : INT64_MAX, e))) {
		actor_text(&app->catalog, &e->actor, w->flow.name[e->actor.name], ACTOR_SHOWN, &w->target, name, sizeof name);
		screen_text(s, 2, y, width, style, text_shorten(name, width));
		ruler_time(at, &app->axis, e->longest.start, 1000);
		screen_printf(s, 2 + width, y, s->w - 2 - width, style, " %9s %6s %9s  %s", time_duration(ns, e->lost),
		              text_share(share, (double)e->lost / (double)flow_lost(&w->flow)),
		              time_duration(longest, e->longest.ns), at);
	}
}

static void draw_lengths(struct app *app, struct screen *s, int y, int end, struct style style)
{
	const struct window_sums *w = app->window_sums;
	char text[TIME_TEXT], at[TIME_TEXT], name[ACTOR_TEXT];
	if (!w->has_gaps)
		return;
	histogram_draw(app, s, 2, y++, s->w - 2, w->gaps.all.bin);
	for (size_t i = 0; i < w->gaps.items && y < end; i++, y++) {
		const struct gap_item *item = &w->gaps.item[i];
		const struct actor *culprit = &item->top.actor;
		ruler_time(at, &app->axis, item->gap.start, 1000);
		const int x = 2 + screen_printf(s, 2, y, s->w - 2, style, "%-18s %9s  ", at,
		                                time_duration(text, item->gap.end - item->gap.start + 1));
		actor_text(&app->catalog, culprit, w->gaps.name[culprit->name], ACTOR_SHOWN, &item->gap.target, name, sizeof name);
		screen_clip(s, x, y, s->w - x, style, name);
	}
}

void window_sums_draw(struct app *app, struct screen *s, int y, int end)
{
	struct window_sums *w = app->window_sums;
	char text[256];
	w->lines = end - y;
	if (!is_wanted(app) || !w->has_target)
		return;
	const struct style style = part(app, w->asked_flow || w->asked_gaps ? PART_DIM : PART_NORMAL);
	draw_title(app, s, y++);
	summary_text(w, text, sizeof text);
	screen_phrases(s, 2, y++, s->w - 2, style, text);
	if (shown_kind(w) == SUMS_CULPRITS)
		draw_culprits(app, s, y, end, style);
	else
		draw_lengths(app, s, y, end, style);
}

bool window_sums_next(struct app *app)
{
	struct window_sums *w = app->window_sums;
	if (!is_wanted(app))
		return false;
	w->kind = (w->kind + 1) % SUMS_KINDS;
	return true;
}

void window_sums_show(struct app *app, bool on)
{
	app->window_sums->is_off = !on;
}
