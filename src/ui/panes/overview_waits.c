/* The overview's waits: for each visible row the longest one, and the longest one by its top culprit. */
#include "ui/panes/overview.h"
#include "ui/panes/overview_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ui/widgets/verdict_line.h"

void overview_forget_waits(struct overview *p)
{
	free(p->waits);
	free(p->has_waits);
	p->waits = NULL;
	p->has_waits = NULL;
	p->asked_len = 0;
	p->follow = SIZE_MAX;
}

static void add_question(struct overview *p, struct question *q, size_t row)
{
	const struct summary_row *r = &p->s.row[row];
	struct waits_of *w = &q->waits[q->waits_len++];
	*w = (struct waits_of){ .target = r->group && r->gaps ? r->longest.target : r->target, .culprit = r->culprit };
	snprintf(w->name, sizeof w->name, "%s", r->culprit.name < p->s.names ? p->s.name[r->culprit.name] : "");
	p->asked[p->asked_len++] = row;
}

/* Asks for the waits of the visible rows: the longest one, and the longest one by the row's culprit. */
static void ask_waits(struct app *app, struct overview *p)
{
	struct question *q = mem_new(1, sizeof *q);
	const size_t page = p->pane.page ? p->pane.page : (size_t)app->h_cells;
	q->from = p->s.start;
	q->to = p->s.end;
	if (p->follow < p->s.rows && !p->has_waits[p->follow])
		add_question(p, q, p->follow);
	for (size_t i = p->pane.top; i < p->pane.lines && i < p->pane.top + page && q->waits_len < ASK_WAITS_MAX &&
	     p->follow == SIZE_MAX; i++)
		if (!p->has_waits[p->line[i]] && p->s.row[p->line[i]].gaps)
			add_question(p, q, p->line[i]);
	if (q->waits_len)
		async_ask(app->queries, ASK_WAITS, q);
	free(q);
}

/* Moves to the gap in which the row's culprit took most; to the longest gap if it took none. */
static void overview_open_gap(struct app *app, struct overview *p, size_t row)
{
	const struct culprit_waits *w = &p->waits[row];
	const struct gap gap = w->taken_ns > 0 ? w->taken : p->s.row[row].longest;
	p->follow = SIZE_MAX;
	p->return_view = app->view;
	pane_go(app, overview_row(&gap.target), gap.start, gap.end);
}

static bool same_target(const struct target *a, const struct target *b)
{
	return a->kind == b->kind && a->index == b->index;
}

/* Selects the line of the verdict's target if only its critical path shows the culprit, unless a row was chosen. */
static void select_verdict(struct app *app, struct overview *p)
{
	const struct findings *l = p->verdict_seen || app->row_chosen ? NULL : verdict_line_get(app);
	if (!l)
		return;
	p->verdict_seen = true;
	for (size_t i = 0; i < p->pane.lines && l->item[0].kind == FINDING_CHAIN; i++) {
		const struct target *t = &overview_line(&p->pane, i)->target;
		if (!same_target(t, &l->item[0].target))
			continue;
		p->pane.at = i;
		p->at = *t;
		app->view.row = overview_row(t);
	}
}

const struct target *overview_target(const struct pane *pane, size_t i)
{
	return &overview_line(pane, i)->target;
}

void overview_go_to_moment(struct app *app, const struct moment *m)
{
	struct overview *p = overview_state(app->pane[PANE_OVERVIEW]);
	if (app->pane_below == &p->pane)
		p->return_view = app->view;
	app->row_chosen = true;
	pane_go(app, overview_row(&m->target), m->start, m->end);
	app->view.a = m->start;
	app->view.b = m->end;
}

void overview_refresh(struct app *app, struct pane *pane)
{
	struct overview *p = (struct overview *)pane;
	struct answer answer;
	select_verdict(app, p);
	if (!p->has_gaps || app->appearance.coarse)
		return;
	if (!p->waits) {
		p->waits = mem_new(p->s.rows, sizeof *p->waits);
		p->has_waits = mem_new(p->s.rows, sizeof *p->has_waits);
	}
	if (!p->asked_len)
		ask_waits(app, p);
	if (!p->asked_len || !app_take_answer(app, ASK_WAITS, &answer))
		return;
	for (size_t i = 0; i < p->asked_len; i++) {
		p->has_waits[p->asked[i]] = true;
		if (answer.status == 0)
			p->waits[p->asked[i]] = answer.waits[i];
	}
	free(answer.waits);
	p->asked_len = 0;
	if (p->follow != SIZE_MAX && p->has_waits[p->follow])
		overview_open_gap(app, p, p->follow);
}

void overview_follow_line(struct app *app, struct pane *pane, size_t i)
{
	struct overview *p = overview_state(pane);
	const struct summary_row *r = overview_line(pane, i);
	char name[300];
	size_t number;
	const struct finding *f = r->threads <= 1 ? verdict_line_find(app, &r->target, &number) : NULL;
	p->at = r->target;
	if (f && f->moment.end >= f->moment.start) {
		verdict_line_go(app, number);
		return;
	}
	if (p->has_gaps && r->gaps > 0) {
		app->row_chosen = true;
		p->follow = p->line[i];
		if (!p->has_waits || !p->has_waits[p->follow]) {
			async_drop(app->queries, ASK_WAITS);
			p->asked_len = 0;
			overview_refresh(app, pane);
			if (p->follow != SIZE_MAX)
				app_message(app, "searching for the longest wait by %s (any key cancels)",
				            overview_culprit_text(app, p, r, name, sizeof name));
		} else {
			overview_open_gap(app, p, p->follow);
		}
		return;
	}
	p->return_view = app->view;
	app_show_row(app, overview_row(&r->target));
	undo_push(&app->undo, &p->return_view);
	app_message(app, p->has_gaps ? "no gap in this window" : "still computing");
}
