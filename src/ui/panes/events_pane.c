/* The events pane: the report of `events` around the cursor, of the row's machine and the machines that run it.
 *
 * A history contains no events, so the pane reads them from the traces (struct ui_traces). The pane keeps the time for
 * which it was opened; moving its cursor moves the rows' cursor. */
#include "base/base.h"
#include "ui/panes/pane.h"

#define AROUND_NS 1000000  /* length of the interval before and after the cursor, ns */

struct events_pane {
	struct table_pane table;
	int64_t t;               /* time for which the pane was opened, ns */
	struct event_list list;
};

static const struct event_text *event_of(const struct pane *pane, size_t i)
{
	return &((const struct events_pane *)pane)->list.event[table_pane_row(pane, i)];
}

/* ---- The question */

struct events_query {
	const struct app *app;
	const char *machine;
	int64_t from, to;
	struct event_list list;
};

static int report_events_read(void *arg, const char *phase, uint64_t done, uint64_t total)
{
	(void)phase;
	return async_report(arg, total ? (unsigned)(100 * done / total) : 0);
}

/* Reads the events in one step, which report_events_read() cancels when the question is dropped. */
static int events_step(void *state, int64_t until, struct error *err)
{
	struct events_query *q = state;
	const struct progress progress = { report_events_read, q->app->queries };
	(void)until;
	if (!q->app->traces)
		return error_set(err, STATUS_INPUT, NULL, "the traces are not available in this view");
	return q->app->traces->read(q->app->h, q->machine, q->from, q->to, ASK_LISTED, progress, &q->list, err) < 0 ? -1 : 1;
}

static void events_release(void *state)
{
	event_list_release(&((struct events_query *)state)->list);
	free(state);
}

static struct query *events_pane_open_query(struct app *app, struct pane *pane, struct error *err)
{
	static const struct task_kind kind = { events_step, events_release };
	struct target s;
	struct events_query *q = mem_new(1, sizeof *q);
	(void)err;
	*q = (struct events_query){ .app = app, .from = pane->from, .to = pane->to };
	q->machine = app->catalog.machine[target_machine(&app->catalog, pane_target(app, pane, &s))].name;
	return query_task_open(&kind, q);
}

/* Takes the events; moves the cursor to the first event at or after the pane's time. */
static void events_pane_take_answer(struct app *app, struct pane *pane, struct query *q)
{
	struct events_pane *p = (struct events_pane *)pane;
	struct events_query *state = query_task_state(q);
	(void)app;
	p->list = state->list;
	state->list = (struct event_list){ 0 };
	for (pane->at = 0; pane->at + 1 < p->list.len && p->list.event[pane->at].t < p->t;)
		pane->at++;
}

static void events_pane_drop_answer(struct pane *pane)
{
	event_list_release(&((struct events_pane *)pane)->list);
}

static bool events_pane_open(struct app *app, struct pane *pane)
{
	struct events_pane *p = (struct events_pane *)pane;
	struct target s;
	const struct row_id row = app->view.row;
	if (!row_target(&app->catalog, row, &s))  /* a CPU of the host or a request: use the machine's events */
		app->view.row = (struct row_id){ ROW_MACHINE, row_machine(&app->rows, row) };
	const bool opened = pane_scope_open(app, pane);
	app->view.row = row;
	p->t = app->view.cursor;
	pane->scope.from = p->t - app->bounds.begin > AROUND_NS ? p->t - AROUND_NS : app->bounds.begin;
	pane->scope.to = app->bounds.end - p->t > AROUND_NS ? p->t + AROUND_NS : app->bounds.end;
	return opened;
}

/* ---- Texts */

static int events_pane_report(struct app *app, struct pane *pane, FILE *f, struct report_how how, struct origin *o,
                              struct error *err)
{
	const struct event_list *l = &((struct events_pane *)pane)->list;
	(void)app;
	struct report *r = report_events(f, how, o);
	for (size_t i = 0; i < l->len; i++)
		report_event(r, &l->event[i]);
	return report_end(r, err);
}

static void events_pane_get_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	char when[TIME_TEXT];
	snprintf(buf, size, "events around %s", ruler_time(when, &app->axis, ((const struct events_pane *)pane)->t, 100000));
}

static void events_pane_get_title(const struct app *app, const struct pane *pane, int w, char *buf, size_t size)
{
	const struct events_pane *p = (const struct events_pane *)pane;
	char when[TIME_TEXT], length[TIME_TEXT];
	(void)w;
	snprintf(buf, size, " %s%zu event%s within %s of %s ", p->list.more ? "the first " : "", pane->lines,
	         pane->lines == 1 ? "" : "s", time_duration(length, AROUND_NS), ruler_time(when, &app->axis, p->t, 100000));
}

static void events_pane_get_file_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	(void)app;
	snprintf(buf, size, "events-%" PRId64, ((const struct events_pane *)pane)->t);
}

static void events_pane_get_omitted_text(const struct pane *pane, char *buf, size_t size)
{
	const struct event_list *l = &((const struct events_pane *)pane)->list;
	if (l->more)
		snprintf(buf, size, ": the first %zu (the command events writes all)", l->len);
}

/* ---- Jumps */

static void events_pane_move_rows(struct app *app, struct pane *pane, size_t i)
{
	view_goto(&app->view, &app->bounds, event_of(pane, i)->t);
}

/* Selects the row of the event's CPU, and moves the cursor to the event. */
static void events_pane_follow_line(struct app *app, struct pane *pane, size_t i)
{
	const struct event_text *ev = event_of(pane, i);
	const int m = catalog_find_machine(&app->catalog, ev->machine);
	const int c = m < 0 ? -1 : catalog_find_cpu(&app->catalog, (uint32_t)m, ev->cpu);
	if (c >= 0)
		app_show_row(app, (struct row_id){ ROW_CPU, (uint32_t)c });
	events_pane_move_rows(app, pane, i);
}

const struct pane_ops events_pane = {
	TABLE_PANE, .size = sizeof(struct events_pane), .is_scoped = true, .open = events_pane_open,
	.query = events_pane_open_query, .is_long = true, .take = events_pane_take_answer, .report = events_pane_report,
	.orders = "at", .name = events_pane_get_name, .title = events_pane_get_title, .follow = events_pane_follow_line,
	.cursor_moved = events_pane_move_rows, .file = events_pane_get_file_name,
	.omitted_text = events_pane_get_omitted_text, .drop_answer = events_pane_drop_answer, .sort = table_pane_sort,
	.status_text = table_pane_get_status_text, .export = table_pane_export,
};
