/* The events pane: events around the cursor, from the traces, of the row's machine and the machines that run it.
 *
 * A history contains no events, so the pane reads them from the traces (struct ui_traces). The pane keeps the time for
 * which it was opened; moving its cursor moves the cursor of the rows. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "ui/core/text_filter.h"
#include "ui/panes/pane.h"

#define AROUND_NS 1000000  /* length of the interval before and after the cursor, ns */

struct events_pane {
	struct pane pane;
	int64_t t;               /* time for which the pane was opened, ns */
	struct event_list list;
	size_t *line;            /* events that pass the filter, indices into list.event */
};

static struct events_pane *events_pane_state(struct pane *pane)
{
	return (struct events_pane *)pane;
}

static const struct event_text *event_of(const struct pane *pane, size_t i)
{
	const struct events_pane *p = (const struct events_pane *)pane;
	return &p->list.event[p->line[i]];
}

static bool event_contains(const struct event_text *ev, const char *text)
{
	return filter_matches(ev->event, text) || filter_matches(ev->fields, text) || filter_matches(ev->comm, text) ||
	       filter_matches(ev->machine, text);
}

static void events_pane_make_lines(struct app *app, struct pane *pane)
{
	struct events_pane *p = events_pane_state(pane);
	(void)app;
	free(p->line);
	p->line = mem_new(p->list.len + 1, sizeof *p->line);
	pane->lines = 0;
	for (size_t i = 0; i < p->list.len; i++)
		if (!pane->filter[0] || event_contains(&p->list.event[i], pane->filter))
			p->line[pane->lines++] = i;
}

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

/* Takes the events; moves the cursor to the first event at or after the time of the pane. */
static void events_pane_take_answer(struct app *app, struct pane *pane, struct query *q)
{
	struct events_pane *p = events_pane_state(pane);
	struct events_query *state = query_task_state(q);
	(void)app;
	p->list = state->list;
	state->list = (struct event_list){ 0 };
	for (pane->at = 0; pane->at + 1 < p->list.len && p->list.event[pane->at].t < p->t;)
		pane->at++;
}

static void events_pane_drop_answer(struct pane *pane)
{
	struct events_pane *p = events_pane_state(pane);
	free(p->line);
	p->line = NULL;
	event_list_release(&p->list);
}

static bool events_pane_open(struct app *app, struct pane *pane)
{
	struct events_pane *p = events_pane_state(pane);
	struct target s;
	const struct row_id row = app->view.row;
	if (!row_target(&app->catalog, row, &s))  /* a CPU of the host or a request: use the events of the machine */
		app->view.row = (struct row_id){ ROW_MACHINE, row_machine(&app->rows, row) };
	const bool opened = pane_scope_open(app, pane);
	app->view.row = row;
	if (!opened)
		return false;
	p->t = app->view.cursor;
	pane->scope.from = p->t - app->bounds.begin > AROUND_NS ? p->t - AROUND_NS : app->bounds.begin;
	pane->scope.to = app->bounds.end - p->t > AROUND_NS ? p->t + AROUND_NS : app->bounds.end;
	return true;
}

/* ---- Texts -------------------------------------------------------------------------------------------------------- */

static void events_pane_get_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	const struct events_pane *p = (const struct events_pane *)pane;
	char when[TIME_TEXT];
	snprintf(buf, size, "events around %s", ruler_time(when, &app->axis, p->t, 100000));
}

static void events_pane_get_title(const struct app *app, const struct pane *pane, int w, char *buf, size_t size)
{
	const struct events_pane *p = (const struct events_pane *)pane;
	char when[TIME_TEXT], length[TIME_TEXT];
	(void)w;
	snprintf(buf, size, " %s%zu event%s within %s of %s ", p->list.more ? "the first " : "", pane->lines,
	         pane->lines == 1 ? "" : "s", time_duration(length, AROUND_NS), ruler_time(when, &app->axis, p->t, 100000));
}

/* Widths of the columns time, machine and CPU, thread; the event gets the rest. */
enum { TIME_COLUMNS = 19, CPU_COLUMNS = 13, THREAD_COLUMNS = 22 };

static int event_column(int w)
{
	return 1 + TIME_COLUMNS + (w < PANE_NARROW ? 0 : CPU_COLUMNS + THREAD_COLUMNS);
}

static const char *thread_text(const struct event_text *ev, char *buf, size_t size)
{
	char comm[64];
	if (ev->tid < 0)
		snprintf(buf, size, "%s", "");
	else
		snprintf(buf, size, "%" PRId32 " %s", ev->tid, ev->tid ? text_escape(comm, sizeof comm, ev->comm) : "(idle)");
	return buf;
}

static const char *cpu_text(const struct event_text *ev, char *buf, size_t size)
{
	char machine[64];
	snprintf(buf, size, "%s/%u", text_escape(machine, sizeof machine, ev->machine), ev->cpu);
	return buf;
}

static void events_pane_draw_headings(const struct app *app, const struct pane *pane, struct screen *s, int y)
{
	struct style style = app->appearance.palette.part[PART_RULER];
	(void)pane;
	screen_fill(s, 0, y, s->w, ' ', style);
	screen_text(s, 1, y, TIME_COLUMNS, style, "at");
	if (s->w >= PANE_NARROW) {
		screen_text(s, 1 + TIME_COLUMNS, y, CPU_COLUMNS, style, "machine/CPU");
		screen_text(s, 1 + TIME_COLUMNS + CPU_COLUMNS, y, THREAD_COLUMNS, style, "thread");
	}
	screen_text(s, event_column(s->w), y, s->w, style, "event");
}

static void events_pane_draw_line(struct app *app, struct pane *pane, struct screen *s, int y, size_t i, bool selected)
{
	const struct event_text *ev = event_of(pane, i);
	struct style style = pane_style(app, PART_NORMAL, selected);
	char when[TIME_TEXT], text[512];
	int x = event_column(s->w);
	screen_text(s, 1, y, TIME_COLUMNS - 1, style, ruler_time(when, &app->axis, ev->t, 1));
	if (s->w >= PANE_NARROW) {
		cpu_text(ev, text, sizeof text);
		screen_text(s, 1 + TIME_COLUMNS, y, CPU_COLUMNS - 1, style, text_shorten_machine(text, CPU_COLUMNS - 1));
		screen_text(s, 1 + TIME_COLUMNS + CPU_COLUMNS, y, THREAD_COLUMNS - 1, style, thread_text(ev, text, sizeof text));
	}
	x += screen_text(s, x, y, s->w - x, style, text_escape(text, sizeof text, ev->event)) + 1;
	screen_clip(s, x, y, s->w - x, style, text_escape(text, sizeof text, ev->fields));
}

static void events_pane_get_status_text(const struct app *app, const struct pane *pane, size_t i, char *buf, size_t size)
{
	const struct event_text *ev = event_of(pane, i);
	char event[256], fields[512], cpu[128];
	(void)app;
	snprintf(buf, size, "%s %s %s", cpu_text(ev, cpu, sizeof cpu), text_escape(event, sizeof event, ev->event),
	         text_escape(fields, sizeof fields, ev->fields));
}

static void events_pane_get_file_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	(void)app;
	snprintf(buf, size, "events-%" PRId64, ((const struct events_pane *)pane)->t);
}

/* Writes all events that were read, regardless of the filter, as the command `events` does. */
static int events_pane_export(struct app *app, struct pane *pane, FILE *f, enum report_format format, struct error *err)
{
	const struct events_pane *p = events_pane_state(pane);
	struct target s;
	struct origin o;
	export_origin(app, pane, pane_target(app, pane, &s), &o);
	struct report *r = report_events(f, REPORT_WHOLE(format), &o);
	for (size_t i = 0; i < p->list.len; i++)
		report_event(r, &p->list.event[i]);
	int rc = report_end(r, err);
	origin_release(&o);
	return rc;
}

static void events_pane_get_omitted_text(const struct pane *pane, char *buf, size_t size)
{
	const struct events_pane *p = (const struct events_pane *)pane;
	if (p->list.more)
		snprintf(buf, size, ": the first %zu (the command events writes all)", p->list.len);
}

/* ---- Jumps --------------------------------------------------------------------------------------------------------- */

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
	.size = sizeof(struct events_pane), .is_scoped = true, .open = events_pane_open,
	.query = events_pane_open_query, .is_long = true, .take = events_pane_take_answer, .arrange = events_pane_make_lines,
	.name = events_pane_get_name, .title = events_pane_get_title, .headings = 1,
	.heading = events_pane_draw_headings, .line = events_pane_draw_line, .follow = events_pane_follow_line,
	.cursor_moved = events_pane_move_rows, .status_text = events_pane_get_status_text,
	.file = events_pane_get_file_name, .export = events_pane_export, .omitted_text = events_pane_get_omitted_text,
	.drop_answer = events_pane_drop_answer,
};
