/* The overview's waits: who took the longest wait of each visible row, and, for the row that is followed, the wait in
 * which its top culprit took most. The first reads one wait of a row, the second all of them. */
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

struct waits_query {
	const struct catalog *catalog;
	struct async_queries *queries;
	struct {
		struct target victim, read;
		int64_t from, to;
		struct actor culprit;
		char *name;
	} row[WAITS_MAX];
	struct culprit_waits waits[WAITS_MAX];
	size_t len, done;
};

static bool waits_are_dropped(void *arg)
{
	const struct waits_query *q = arg;
	return async_report(q->queries, (unsigned)(100 * q->done / q->len));
}

/* Finds the waits of one row. */
static int waits_step(void *state, int64_t until, struct error *err)
{
	struct waits_query *q = state;
	const size_t i = q->done;
	(void)until;
	if (culprit_waits_of(q->catalog, &q->row[i].victim, &q->row[i].read, q->row[i].from, q->row[i].to, &q->row[i].culprit,
	                     q->row[i].name, waits_are_dropped, q, &q->waits[i], err) < 0)
		return -1;
	return ++q->done == q->len;
}

static void waits_query_release(void *state)
{
	struct waits_query *q = state;
	for (size_t i = 0; i < q->len; i++)
		free(q->row[i].name);
	free(q);
}

static void add_row(struct overview *p, struct waits_query *q, size_t row)
{
	const struct summary_row *r = &p->s.row[row];
	q->row[q->len].victim = r->group ? r->longest.target : r->target;
	q->row[q->len].read = p->asked_all ? q->row[q->len].victim : r->longest.target;
	q->row[q->len].from = p->asked_all ? p->s.start : r->longest.start;
	q->row[q->len].to = p->asked_all ? p->s.end : r->longest.end;
	q->row[q->len].culprit = r->culprit;
	q->row[q->len++].name = mem_dup(r->culprit.name < p->s.names ? p->s.name[r->culprit.name] : "");
	p->asked[p->asked_len++] = row;
}

static void ask_waits(struct app *app, struct overview *p)
{
	static const struct task_kind kind = { waits_step, waits_query_release };
	struct waits_query *q = mem_new(1, sizeof *q);
	const size_t page = p->pane.page ? p->pane.page : (size_t)app->h_cells;
	*q = (struct waits_query){ .catalog = &app->catalog, .queries = app->queries };
	p->asked_all = p->follow < p->s.rows;
	if (p->asked_all)
		add_row(p, q, p->follow);
	for (size_t i = p->pane.top; i < p->pane.lines && i < p->pane.top + page && q->len < WAITS_MAX && !p->asked_all; i++)
		if (!p->has_waits[p->line[i]] && p->s.row[p->line[i]].gaps)
			add_row(p, q, p->line[i]);
	if (q->len)
		async_ask(app->queries, &p->waits_question, ASK_BACKGROUND, query_task_open(&kind, q), NULL);
	else
		waits_query_release(q);
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

/* Selects the line of the verdict's target, or of its VM, unless the user chose a row or a window. */
static void select_verdict(struct app *app, struct overview *p)
{
	const struct findings *l = p->verdict_seen || !p->pane.valid ? NULL : verdict_line_get(app);
	if (!l)
		return;
	struct target target = l->item[0].target;
	p->verdict_seen = true;
	if (app->row_chosen || app->undo.len)
		return;
	if (target.kind == TARGET_CPU)
		target = (struct target){ TARGET_MACHINE, app->catalog.cpu[target.index].machine };
	for (size_t i = 0; i < p->pane.lines && l->item[0].has_target; i++)
		if (same_target(&overview_line(&p->pane, i)->target, &target)) {
			p->pane.at = i;
			p->at = target;
			app->view.row = overview_row(&target);
		}
}

/* Moves the cursor of the rows to the longest gap of the selected row, unless the user has moved the cursor. */
static void place_cursor(struct app *app, struct overview *p)
{
	for (size_t i = 0; i < p->s.rows && !app->row_chosen && app->undo.len == 0; i++)
		if (row_same(overview_row(&p->s.row[i].target), app->view.row) && p->s.row[i].gaps)
			view_goto(&app->view, &app->bounds, p->s.row[i].longest.start);
	p->cursor_set = true;
}

const struct target *overview_target(const struct pane *pane, size_t i)
{
	return &overview_line(pane, i)->target;
}

void overview_go_to_moment(struct app *app, const struct moment *m)
{
	struct overview *p = overview_state(app->pane[PANE_OVERVIEW]);
	if (app->pane_below == &p->pane) {
		overview_closed(app, &p->pane);
		p->return_view = app->view;
	}
	app->row_chosen = true;
	pane_go(app, overview_row(&m->target), m->start, m->end);
	app->view.a = m->start;
	app->view.b = m->end;
}

static void take_waits(struct app *app, struct overview *p)
{
	struct query *query = NULL;
	struct error err = ERROR_INIT;
	const int got = p->asked_len ? app_take_answer(app, &p->waits_question, &query, NULL, &err) : 0;
	if (got == 0)
		return;
	for (size_t i = 0; i < p->asked_len; i++) {
		p->has_waits[p->asked[i]] = true;
		if (got > 0)
			p->waits[p->asked[i]] = ((struct waits_query *)query_task_state(query))->waits[i];
	}
	query_close(query);
	if (p->asked_all && p->follow == p->asked[0])
		overview_open_gap(app, p, p->follow);
	p->asked_len = 0;
}

void overview_refresh(struct app *app, struct pane *pane)
{
	struct overview *p = (struct overview *)pane;
	select_verdict(app, p);
	if (p->has_gaps && !p->cursor_set && p->verdict_seen)
		place_cursor(app, p);
	if (!p->asked_len)
		async_drop(app->queries, &p->waits_question);  /* its rows were forgotten */
	if (!p->has_gaps || app->appearance.coarse)
		return;
	if (!p->waits) {
		p->waits = mem_new(p->s.rows, sizeof *p->waits);
		p->has_waits = mem_new(p->s.rows, sizeof *p->has_waits);
	}
	if (!p->asked_len)
		ask_waits(app, p);
	take_waits(app, p);
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
		async_drop(app->queries, &p->waits_question);
		p->asked_len = 0;
		overview_refresh(app, pane);
		if (p->follow != SIZE_MAX)
			app_message(app, "searching for the longest wait by %s (any key cancels)",
			            overview_culprit_text(app, p, r, name, sizeof name));
		return;
	}
	p->return_view = app->view;
	app_show_row(app, overview_row(&r->target));
	undo_push(&app->undo, &p->return_view);
	app_message(app, p->has_gaps ? "no gap in this window" : "still computing");
}
