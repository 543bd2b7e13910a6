/* The events pane: what the traces recorded around the cursor, by the machine of the row and those that run it.  A history
 * has no events, so they are read from the traces (struct ui_traces).  It stays with the moment for which it was opened;
 * its cursor takes that of the rows along. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "ui/panes/pane.h"

#define AROUND 1000000  /* ns */

struct events_pane {
	struct pane pane;
	struct pane_scope scope;
	int64_t t;               /* the moment */
	struct event_list list;
	size_t *line;            /* index into list.event */
};

static struct events_pane *of(struct pane *pane)
{
	return (struct events_pane *)pane;
}

static const struct event_text *event_of(const struct pane *pane, size_t i)
{
	const struct events_pane *p = (const struct events_pane *)pane;
	return &p->list.event[p->line[i]];
}

static bool contains(const struct event_text *ev, const char *text)
{
	return strcasestr(ev->event, text) || strcasestr(ev->fields, text) || strcasestr(ev->comm, text) ||
	       strcasestr(ev->machine, text);
}

static void arrange(struct app *app, struct pane *pane)
{
	struct events_pane *p = of(pane);
	(void)app;
	free(p->line);
	p->line = mem_new(p->list.len + 1, sizeof *p->line);
	pane->lines = 0;
	for (size_t i = 0; i < p->list.len; i++)
		if (!pane->filter[0] || contains(&p->list.event[i], pane->filter))
			p->line[pane->lines++] = i;
}

static void question(const struct app *app, const struct pane *pane, struct question *q)
{
	pane_scope_ask(app, &((const struct events_pane *)pane)->scope, q);
}

/* Its cursor begins at the moment. */
static void take(struct app *app, struct pane *pane, struct answer *answer)
{
	struct events_pane *p = of(pane);
	(void)app;
	p->list = answer->events;
	for (pane->at = 0; pane->at + 1 < p->list.len && p->list.event[pane->at].t < p->t;)
		pane->at++;
}

static void forget(struct pane *pane)
{
	struct events_pane *p = of(pane);
	free(p->line);
	p->line = NULL;
	event_list_release(&p->list);
}

static bool begin(struct app *app, struct pane *pane)
{
	struct events_pane *p = of(pane);
	struct subject s;
	const struct row_id row = app->view.row;
	if (!row_subject(&app->topo, row, &s))  /* a CPU of the host, requests: the events are its machine's */
		app->view.row = (struct row_id){ ROW_MACHINE, row_machine(&app->rows, row) };
	const bool opened = pane_scope_open(app, pane, &p->scope);
	app->view.row = row;
	if (!opened)
		return false;
	p->t = app->view.cursor;
	p->scope.from = p->t - app->ground.begin > AROUND ? p->t - AROUND : app->ground.begin;
	p->scope.to = app->ground.end - p->t > AROUND ? p->t + AROUND : app->ground.end;
	return true;
}

/* ---- What it says --------------------------------------------------------------------------------------------------- */

static void name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	const struct events_pane *p = (const struct events_pane *)pane;
	char when[TIME_TEXT];
	snprintf(buf, size, "events around %s", ruler_time(when, &app->axis, p->t, 100000));
}

static void title(const struct app *app, const struct pane *pane, int w, char *buf, size_t size)
{
	const struct events_pane *p = (const struct events_pane *)pane;
	char when[TIME_TEXT], span[TIME_TEXT];
	(void)w;
	snprintf(buf, size, " %s%zu event%s within %s of %s ", p->list.more ? "the first " : "", pane->lines,
	         pane->lines == 1 ? "" : "s", time_duration(span, AROUND), ruler_time(when, &app->axis, p->t, 100000));
}

/* Columns: when, where, who, what. */
enum { WHEN = 19, WHERE = 13, WHO = 22 };

static int event_at(int w)
{
	return 1 + WHEN + (w < PANE_NARROW ? 0 : WHERE + WHO);
}

static const char *who_of(const struct event_text *ev, char *buf, size_t size)
{
	char comm[64];
	if (ev->tid < 0)
		snprintf(buf, size, "%s", "");
	else
		snprintf(buf, size, "%" PRId32 " %s", ev->tid, ev->tid ? text_escape(comm, sizeof comm, ev->comm) : "(idle)");
	return buf;
}

static const char *where_of(const struct event_text *ev, char *buf, size_t size)
{
	char machine[64];
	snprintf(buf, size, "%s/%u", text_escape(machine, sizeof machine, ev->machine), ev->cpu);
	return buf;
}

static void heading(const struct app *app, const struct pane *pane, struct screen *s, int y)
{
	struct style style = app->look.palette.part[PART_RULER];
	(void)pane;
	screen_fill(s, 0, y, s->w, ' ', style);
	screen_text(s, 1, y, WHEN, style, "at");
	if (s->w >= PANE_NARROW) {
		screen_text(s, 1 + WHEN, y, WHERE, style, "machine/CPU");
		screen_text(s, 1 + WHEN + WHERE, y, WHO, style, "thread");
	}
	screen_text(s, event_at(s->w), y, s->w, style, "event");
}

static void draw_line(struct app *app, struct pane *pane, struct screen *s, int y, size_t i, bool selected)
{
	const struct event_text *ev = event_of(pane, i);
	struct style style = pane_style(app, PART_NORMAL, selected);
	char when[TIME_TEXT], text[512];
	int x = event_at(s->w);
	screen_text(s, 1, y, WHEN - 1, style, ruler_time(when, &app->axis, ev->t, 1));
	if (s->w >= PANE_NARROW) {
		where_of(ev, text, sizeof text);
		screen_text(s, 1 + WHEN, y, WHERE - 1, style, text_squeeze(text, WHERE - 1));
		screen_text(s, 1 + WHEN + WHERE, y, WHO - 1, style, who_of(ev, text, sizeof text));
	}
	x += screen_text(s, x, y, s->w - x, style, text_escape(text, sizeof text, ev->event)) + 1;
	screen_clip(s, x, y, s->w - x, style, text_escape(text, sizeof text, ev->fields));
}

static void tell(const struct app *app, const struct pane *pane, size_t i, char *buf, size_t size)
{
	const struct event_text *ev = event_of(pane, i);
	char event[256], fields[512], where[128];
	(void)app;
	snprintf(buf, size, "%s %s %s", where_of(ev, where, sizeof where), text_escape(event, sizeof event, ev->event),
	         text_escape(fields, sizeof fields, ev->fields));
}

static void file_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	(void)app;
	snprintf(buf, size, "events-%" PRId64, ((const struct events_pane *)pane)->t);
}

/* All that are listed, filter or not: the command's answer. */
static int write_to(struct app *app, struct pane *pane, FILE *f, enum report_format format, struct error *err)
{
	const struct events_pane *p = of(pane);
	struct subject s;
	struct origin o;
	row_subject(&app->topo, p->scope.row, &s);
	export_origin(app, pane, &s, &o);
	struct report *r = report_events(f, REPORT_WHOLE(format), &o);
	for (size_t i = 0; i < p->list.len; i++)
		report_event(r, &p->list.event[i]);
	int rc = report_end(r, err);
	origin_release(&o);
	return rc;
}

static void lacks(const struct pane *pane, char *buf, size_t size)
{
	const struct events_pane *p = (const struct events_pane *)pane;
	if (p->list.more)
		snprintf(buf, size, ": the first %zu (events writes all)", p->list.len);
}

/* ---- Where it leads ------------------------------------------------------------------------------------------------- */

static void come(struct app *app, struct pane *pane, size_t i)
{
	view_goto(&app->view, &app->ground, event_of(pane, i)->t);
}

/* To the row of its CPU. */
static void go(struct app *app, struct pane *pane, size_t i)
{
	const struct event_text *ev = event_of(pane, i);
	const int m = topo_find_machine(&app->topo, ev->machine);
	const int c = m < 0 ? -1 : topo_find_cpu(&app->topo, (uint32_t)m, ev->cpu);
	if (c >= 0)
		app_show_row(app, (struct row_id){ ROW_CPU, (uint32_t)c });
	come(app, pane, i);
}

static void carry(struct app *app, struct pane *pane, const struct rows *was, const struct rows *is)
{
	(void)app;
	of(pane)->scope.row = row_again(was, is, of(pane)->scope.row);
}

const struct pane_ops events_pane = {
	.size = sizeof(struct events_pane), .open = begin, .ask = ASK_EVENTS, .question = question, .answer = take,
	.arrange = arrange, .name = name, .title = title, .headings = 1, .heading = heading, .line = draw_line,
	.go = go, .come = come, .tell = tell, .file = file_name, .export = write_to, .lacks = lacks, .carry = carry,
	.forget = forget,
};
