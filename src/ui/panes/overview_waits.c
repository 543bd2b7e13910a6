/* The overview's waits: who took the longest wait of the selected row, and, for the row that is followed, the wait in which
 * its top culprit took most. The first reads one wait, the second all of the row. */
#include "ui/panes/overview.h"
#include "ui/panes/overview_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ui/widgets/verdict_line.h"

void overview_forget_waits(struct overview *p)
{
	p->waits_of = p->asked = p->follow = SIZE_MAX;
}

struct waits_query {
	const struct catalog *catalog;
	struct async_queries *queries;
	struct target victim, read;
	int64_t from, to;
	struct actor culprit;
	char *name;
	struct culprit_waits waits;
};

static bool waits_are_dropped(void *arg)
{
	const struct waits_query *q = arg;
	return async_report(q->queries, 0);
}

static int waits_step(void *state, int64_t until, struct error *err)
{
	struct waits_query *q = state;
	(void)until;
	return culprit_waits_of(q->catalog, &q->victim, &q->read, q->from, q->to, &q->culprit, q->name, waits_are_dropped, q,
	                        &q->waits, err) < 0 ? -1 : 1;
}

static void waits_query_release(void *state)
{
	free(((struct waits_query *)state)->name);
	free(state);
}

static void ask_waits(struct app *app, struct overview *p, size_t row, bool all)
{
	static const struct task_kind kind = { waits_step, waits_query_release };
	const struct summary_row *r = &p->s.row[row];
	struct waits_query *q = mem_new(1, sizeof *q);
	*q = (struct waits_query){ .catalog = &app->catalog, .queries = app->queries, .read = r->longest.target,
		.victim = r->group ? r->longest.target : r->target, .from = r->longest.start, .to = r->longest.end,
		.culprit = r->culprit, .name = mem_dup(r->culprit.name < p->s.names ? p->s.name[r->culprit.name] : "") };
	if (all) {
		q->read = q->victim;
		q->from = p->s.start;
		q->to = p->s.end;
	}
	p->asked = row;
	p->asked_all = all;
	async_ask(app->queries, &p->waits_question, ASK_BACKGROUND, query_task_open(&kind, q), NULL);
}

/* Moves to the gap in which the row's culprit took most; to the longest gap if it took none. */
static void overview_open_gap(struct app *app, struct overview *p)
{
	const struct gap gap = p->waits.taken_ns > 0 ? p->waits.taken : p->s.row[p->follow].longest;
	p->follow = SIZE_MAX;
	p->return_view = app->view;
	pane_go(app, overview_row(&gap.target), gap.start, gap.end);
}

/* Selects the line of the verdict's target, or of its VM, unless the user chose a row or a window. */
static void select_verdict(struct app *app, struct overview *p)
{
	const struct findings *l = p->verdict_seen || !p->table.pane.valid ? NULL : verdict_line_get(app);
	if (!l)
		return;
	struct target target = l->item[0].target;
	p->verdict_seen = true;
	if (app->row_chosen || app->undo.len)
		return;
	if (target.kind == TARGET_CPU)
		target = (struct target){ TARGET_MACHINE, app->catalog.cpu[target.index].machine };
	for (size_t i = 0; i < p->table.pane.lines && l->item[0].has_target; i++)
		if (target_same(&overview_line(&p->table.pane, i)->target, &target)) {
			p->table.pane.at = i;
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
	if (app->pane_below == &p->table.pane) {
		overview_closed(app, &p->table.pane);
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
	const int got = p->asked < p->s.rows ? app_take_answer(app, &p->waits_question, &query, NULL, &err) : 0;
	if (got == 0)
		return;
	p->waits = got > 0 ? ((struct waits_query *)query_task_state(query))->waits : (struct culprit_waits){ .found = false };
	p->waits_of = p->asked;
	p->asked = SIZE_MAX;
	query_close(query);
	if (p->asked_all && p->follow == p->waits_of) {
		app->message[0] = '\0';  /* removes the message on the search */
		overview_open_gap(app, p);
	}
}

void overview_refresh_waits(struct app *app, struct pane *pane)
{
	struct overview *p = (struct overview *)pane;
	select_verdict(app, p);
	if (p->has_gaps && !p->cursor_set && p->verdict_seen)
		place_cursor(app, p);
	if (!p->has_gaps || app->appearance.coarse || pane->at >= pane->lines)
		return;
	const bool follows = p->follow < p->s.rows;
	const size_t row = follows ? p->follow : overview_row_number(pane, pane->at);
	if (row == p->asked ? follows && !p->asked_all : (follows || row != p->waits_of) && p->s.row[row].gaps)
		ask_waits(app, p, row, follows);
	take_waits(app, p);
}

void overview_follow_line(struct app *app, struct pane *pane, size_t i)
{
	struct overview *p = overview_state(pane);
	const struct summary_row *r = overview_line(pane, i);
	char name[ACTOR_TEXT];
	size_t number;
	const struct finding *f = r->threads <= 1 ? verdict_line_find(app, &r->target, &number) : NULL;
	p->at = r->target;
	if (f && f->moment.end >= f->moment.start) {
		verdict_line_go(app, number);
		return;
	}
	if (p->has_gaps && r->gaps > 0) {
		app->row_chosen = true;
		p->follow = overview_row_number(pane, i);
		overview_refresh_waits(app, pane);
		if (p->follow != SIZE_MAX)
			app_message(app, "searching for the longest wait by %s (any key cancels)",
			            report_culprit_text(&app->catalog, &p->s, r, FORMAT_TEXT, name));
		return;
	}
	p->return_view = app->view;
	app_show_row(app, overview_row(&r->target));
	undo_push(&app->undo, &p->return_view);
	app_message(app, p->has_gaps ? "no gap in this window" : "still computing");
}
