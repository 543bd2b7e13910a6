/* The requests pane: what an application marked, slowest first, with what `latency requests` says of them: the bounds of
 * what was taken from a request, and by whom.  Picking one sets the markers to its beginning and end, fits it into the
 * window and selects the thread that served it: Enter then shows the flow within it.
 *
 * All requests are read when the list is opened; the slowest MOST are listed, and their culprits looked for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "latency/latency.h"
#include "ui/panes/pane.h"

#define MOST 1000
#define MOST_ID 16  /* columns of an id */

enum { LATENCY, TAKEN, BY, AT, ID, SERVER, COLUMNS };

struct requests_pane {
	struct list list;
	struct requests all;  /* slowest first */
	int id_columns;
};

static int slowest_first(const void *a, const void *b)
{
	const struct request *x = a, *y = b;
	int64_t p = request_latency(x), q = request_latency(y);
	return p != q ? (p > q ? -1 : 1) : (x->start > y->start) - (x->start < y->start);
}

static size_t listed(const struct requests_pane *p)
{
	return p->all.len < MOST ? p->all.len : MOST;
}

static int read_all(struct app *app, struct requests_pane *p, struct error *err)
{
	const struct requests_options options = { .from = 1, .to = 0 };
	struct notes notes = { 0 };
	requests_release(&p->all);
	int status = requests_read(&app->topo, &options, &p->all, &notes, err);
	notes_release(&notes);
	if (status == 0 && p->all.len)
		qsort(p->all.row, p->all.len, sizeof *p->all.row, slowest_first);
	for (size_t i = 0; status == 0 && i < listed(p); i++)
		status = request_find_culprit(&app->topo, &p->all.row[i], err);
	return status;
}

/* The index of its server thread, or -1. */
static int server_of(const struct app *app, const struct request *r)
{
	int m = topo_find_machine(&app->topo, r->machine);
	return m < 0 || r->tid < 0 ? -1 : topo_find_thread(&app->topo, (uint32_t)m, r->tid);
}

/* Who it is, in w columns: of a thread for whose machine there is no room its TID and name. */
static const char *who_text(char *text, int w)
{
	const char *thread = strchr(text_squeeze(text, w), '/');
	return text_width(text) > w && thread ? thread + 1 : text;
}

/* Those columns for which there is room; the last one has the rest.  Of what was taken, a narrow screen has room for the
 * least of it. */
static void add_line(struct app *app, struct requests_pane *p, int64_t tag, char text[COLUMNS][256])
{
	const int columns[COLUMNS] = { 8, app->w < PANE_NARROW ? 8 : 20, 16, 12, p->id_columns, 8 };
	char *line = mem_dup("");
	for (int c = 0, x = 1; c < COLUMNS; c++) {
		const int gap = c ? 2 : 0, room = c == SERVER ? app->w - x - gap : columns[c];
		const char *shown = c == BY || c == SERVER ? who_text(text[c], room) : text[c];
		const int fits = (int)text_fit(shown, room), width = text_width(shown), pad = width < room ? room - width : 0;
		if (x + gap + columns[c] > app->w)
			continue;
		const bool right = c == LATENCY || c == ID || (c == TAKEN && room == columns[LATENCY]);
		char *longer = mem_printf("%s%*s%*s%.*s%*s", line, gap, "", right ? pad : 0, "", fits, shown, right ? 0 : pad, "");
		free(line);
		line = longer;
		x += gap + room;
	}
	pager_add(&p->list.pager, tag, "%s", line);
	free(line);
}

static void add_request(struct app *app, struct requests_pane *p, size_t i)
{
	const struct request *r = &p->all.row[i];
	char text[COLUMNS][256], low[TIME_TEXT], high[TIME_TEXT];
	const int thread = server_of(app, r);
	time_duration(text[LATENCY], request_latency(r));
	if (r->high == 0)
		snprintf(text[TAKEN], sizeof text[TAKEN], "nothing");
	else if (app->w < PANE_NARROW)
		time_duration(text[TAKEN], r->low);
	else
		snprintf(text[TAKEN], sizeof text[TAKEN], "%s .. %s", time_duration(low, r->low), time_duration(high, r->high));
	snprintf(text[BY], sizeof text[BY], "%s", r->culprit ? r->culprit : "-");
	ruler_time(text[AT], &app->axis, r->start, 1000000);
	text_escape(text[ID], sizeof text[ID], r->id);
	text[SERVER][0] = '\0';
	if (thread >= 0)
		row_title(&app->rows, (struct row_id){ ROW_THREAD, (uint32_t)thread }, text[SERVER], sizeof text[SERVER]);
	add_line(app, p, (int64_t)i, text);
}

static bool begin(struct app *app, struct pane *pane)
{
	struct requests_pane *p = (struct requests_pane *)pane;
	struct error err = ERROR_INIT;
	char id[256];
	if (read_all(app, p, &err) < 0) {
		app_fail(app, &err);
		return false;
	}
	if (p->all.len == 0)
		app_say(app, "these traces hold no marked requests: see stealscope-latency(1)");
	p->id_columns = 4;
	for (size_t i = 0; i < listed(p); i++) {
		const int w = text_width(text_escape(id, sizeof id, p->all.row[i].id));
		p->id_columns = w < p->id_columns ? p->id_columns : w < MOST_ID ? w : MOST_ID;
	}
	return p->all.len > 0;
}

static void arrange(struct app *app, struct pane *pane)
{
	struct requests_pane *p = (struct requests_pane *)pane;
	char heading[COLUMNS][256] = { "latency", "taken from it", "by", "at", "id", "server" }, title[96];
	if (app->w < PANE_NARROW)
		snprintf(heading[TAKEN], sizeof heading[TAKEN], "at least");
	if (p->all.len > MOST)
		snprintf(title, sizeof title, "the slowest %d of %zu requests", MOST, p->all.len);
	else
		snprintf(title, sizeof title, "%zu request%s, slowest first", p->all.len, p->all.len == 1 ? "" : "s");
	pager_open(&p->list.pager, true, title);
	add_line(app, p, -1, heading);
	p->list.pager.line[0].heading = true;
	for (size_t i = 0; i < listed(p); i++)
		add_request(app, p, i);
	p->list.pager.at = 1;
}

static void pick(struct app *app, struct pane *pane, int64_t tag)
{
	const struct request *r = &((struct requests_pane *)pane)->all.row[tag];
	struct view before = app->view;
	int thread = server_of(app, r);
	if (thread >= 0)
		app_show_row(app, (struct row_id){ ROW_THREAD, (uint32_t)thread });
	app->view.a = r->start;
	app->view.b = r->end;
	view_fit(&app->view, &app->ground, r->start, r->end, 2, 3);
	undo_push(&app->undo, &before);
}

static void release(struct pane *pane)
{
	requests_release(&((struct requests_pane *)pane)->all);
	list_release(pane);
}

const struct pane_ops requests_list = {
	.size = sizeof(struct requests_pane), .over = true, .open = begin, .arrange = arrange, .pick = pick, .release = release,
};
