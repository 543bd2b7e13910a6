/* The requests list: requests that an application marked, slowest first, with the values of `latency requests`: bounds
 * of the time taken from each request, and the culprit. Picking a request sets the markers to its start and end, zooms
 * to it and selects the thread that served it; Enter then opens this interval's flow.
 *
 * All requests are read when the list opens; only the LISTED_MAX slowest are listed and have their culprits computed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "latency/latency.h"
#include "ui/panes/pane.h"

#define LISTED_MAX 1000
#define ID_COLUMNS_MAX 16  /* widest column of ids */
#define LABELS_WIDE 140    /* the terminal's columns; narrower ones show the label of a request instead of its id */

enum { LATENCY, TAKEN, CULPRIT, START, ID, SERVER, COLUMNS };

struct requests_pane {
	struct list list;
	struct requests all;  /* all requests, the slowest first */
	int id_columns;
	bool labels;          /* a listed request has a label */
};

static int slowest_first(const void *a, const void *b)
{
	const struct request *x = a, *y = b;
	int64_t p = request_latency(x), q = request_latency(y);
	return p != q ? (p > q ? -1 : 1) : (x->start > y->start) - (x->start < y->start);
}

static size_t listed_count(const struct requests_pane *p)
{
	return p->all.len < LISTED_MAX ? p->all.len : LISTED_MAX;
}

static int read_all(struct app *app, struct requests_pane *p, struct error *err)
{
	const struct requests_options options = { .from = 1, .to = 0 };
	struct notes notes = { 0 };
	requests_release(&p->all);
	int status = requests_read(&app->catalog, &options, &p->all, &notes, err);
	notes_release(&notes);
	if (status == 0 && p->all.len)
		qsort(p->all.row, p->all.len, sizeof *p->all.row, slowest_first);
	for (size_t i = 0; status == 0 && i < listed_count(p); i++)
		status = request_find_culprit(&app->catalog, &p->all.row[i], err);
	return status;
}

/* Returns the index of the thread that served the request; -1: unknown. */
static int server_of(const struct app *app, const struct request *r)
{
	int m = catalog_find_machine(&app->catalog, r->machine);
	return m < 0 || r->tid < 0 ? -1 : catalog_find_thread(&app->catalog, (uint32_t)m, r->tid);
}

/* Shortens the name of a thread to w columns; omits the machine if it does not fit. */
static const char *thread_text(char *text, int w)
{
	const char *thread = strchr(text_shorten_machine(text, w), '/');
	return text_width(text) > w && thread ? thread + 1 : text;
}

/* Adds a line with the columns that fit; the last column gets the rest. A narrow screen shows only the lower bound of
 * the time taken. */
static void add_line(struct app *app, struct requests_pane *p, int64_t tag, char text[COLUMNS][256])
{
	const int columns[COLUMNS] = { 8, app->w < PANE_NARROW ? 8 : 20, 16, 12, p->id_columns, 8 };
	char *line = mem_dup("");
	for (int c = 0, x = 1; c < COLUMNS; c++) {
		const int gap = c ? 2 : 0, space = c == SERVER ? app->w - x - gap : columns[c];
		const char *shown = c == CULPRIT || c == SERVER ? thread_text(text[c], space) : text[c];
		const int bytes = (int)text_fit(shown, space), width = text_width(shown), pad = width < space ? space - width : 0;
		if (x + gap + columns[c] > app->w || (c == ID && p->labels && app->w < LABELS_WIDE))
			continue;
		const bool right = c == LATENCY || c == ID || (c == TAKEN && space == columns[LATENCY]);
		char *longer = mem_printf("%s%*s%*s%.*s%*s", line, gap, "", right ? pad : 0, "", bytes, shown, right ? 0 : pad, "");
		free(line);
		line = longer;
		x += gap + space;
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
		snprintf(text[TAKEN], sizeof text[TAKEN], "none");
	else if (app->w < PANE_NARROW)
		time_duration(text[TAKEN], r->low);
	else
		snprintf(text[TAKEN], sizeof text[TAKEN], "%s .. %s", time_duration(low, r->low), time_duration(high, r->high));
	snprintf(text[CULPRIT], sizeof text[CULPRIT], "%s", r->culprit ? r->culprit : "-");
	ruler_time(text[START], &app->axis, r->start, 1000000);
	text_escape(text[ID], sizeof text[ID], r->id);
	text[SERVER][0] = '\0';
	if (r->label)
		snprintf(text[SERVER], sizeof text[SERVER], "%s", r->label);
	else if (thread >= 0)
		row_title(&app->rows, (struct row_id){ ROW_THREAD, (uint32_t)thread }, text[SERVER], sizeof text[SERVER]);
	add_line(app, p, (int64_t)i, text);
}

static bool requests_list_open(struct app *app, struct pane *pane)
{
	struct requests_pane *p = (struct requests_pane *)pane;
	struct error err = ERROR_INIT;
	char id[256];
	if (read_all(app, p, &err) < 0) {
		app_fail(app, &err);
		return false;
	}
	if (p->all.len == 0)
		app_message(app, "no requests are marked in these traces (see stealscope-latency(1))");
	p->id_columns = 4;
	p->labels = false;
	for (size_t i = 0; i < listed_count(p); i++) {
		p->labels = p->labels || p->all.row[i].label;
		const int w = text_width(text_escape(id, sizeof id, p->all.row[i].id));
		p->id_columns = w < p->id_columns ? p->id_columns : w < ID_COLUMNS_MAX ? w : ID_COLUMNS_MAX;
	}
	return p->all.len > 0;
}

static void requests_list_make_lines(struct app *app, struct pane *pane)
{
	struct requests_pane *p = (struct requests_pane *)pane;
	char heading[COLUMNS][256] = { "latency", "CPU time taken", "culprit", "at", "id", "server" }, title[96];
	if (p->labels)
		snprintf(heading[SERVER], sizeof heading[SERVER], "label");
	if (app->w < PANE_NARROW)
		snprintf(heading[TAKEN], sizeof heading[TAKEN], "at least");
	if (p->all.len > LISTED_MAX)
		snprintf(title, sizeof title, "the slowest %d of %zu requests", LISTED_MAX, p->all.len);
	else
		snprintf(title, sizeof title, "%zu request%s, slowest first", p->all.len, p->all.len == 1 ? "" : "s");
	pager_open(&p->list.pager, true, title);
	add_line(app, p, -1, heading);
	p->list.pager.line[0].heading = true;
	for (size_t i = 0; i < listed_count(p); i++)
		add_request(app, p, i);
	p->list.pager.at = 1;
}

static void requests_list_pick_line(struct app *app, struct pane *pane, int64_t tag)
{
	const struct request *r = &((struct requests_pane *)pane)->all.row[tag];
	struct view before = app->view;
	int thread = server_of(app, r);
	if (thread >= 0)
		app_show_row(app, (struct row_id){ ROW_THREAD, (uint32_t)thread });
	app->view.a = r->start;
	app->view.b = r->end;
	view_fit(&app->view, &app->bounds, r->start, r->end, 2, 3);
	undo_push(&app->undo, &before);
}

static void requests_list_release(struct pane *pane)
{
	requests_release(&((struct requests_pane *)pane)->all);
	list_release(pane);
}

const struct pane_ops requests_list = {
	.size = sizeof(struct requests_pane), .is_list = true, .open = requests_list_open,
	.arrange = requests_list_make_lines, .pick = requests_list_pick_line, .release = requests_list_release,
};
