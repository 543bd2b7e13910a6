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
#include "ui/pane.h"

#define MOST 1000
#define BY_COLUMNS 16

struct requests_pane {
	struct list list;
	struct requests all;  /* slowest first */
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

static void add_line(struct app *app, struct requests_pane *p, size_t i)
{
	const struct request *r = &p->all.row[i];
	char id[128], server[256] = "", by[256], when[TIME_TEXT], d[TIME_TEXT], low[TIME_TEXT], high[TIME_TEXT], taken[64];
	int thread = server_of(app, r);
	if (thread >= 0)
		row_title(&app->rows, (struct row_id){ ROW_THREAD, (uint32_t)thread }, server, sizeof server);
	snprintf(by, sizeof by, "%s", r->culprit ? r->culprit : "-");
	const char *thief = who_text(by, BY_COLUMNS);
	const int shown = (int)text_fit(thief, BY_COLUMNS);
	text_escape(id, sizeof id, r->id);
	snprintf(taken, sizeof taken, "%s .. %s", time_duration(low, r->low), time_duration(high, r->high));
	if (r->high == 0)
		snprintf(taken, sizeof taken, "nothing");
	char *head = mem_printf("%8s  %-20s  %.*s%*s  %s  %4s  ", time_duration(d, request_latency(r)), taken, shown, thief,
	                        BY_COLUMNS - text_width(thief) > 0 ? BY_COLUMNS - text_width(thief) : 0, "",
	                        ruler_time(when, &app->axis, r->start, 1000000), id);
	pager_add(&p->list.pager, (int64_t)i, "%s%s", head, who_text(server, app->w - 1 - text_width(head)));
	free(head);
}

static bool begin(struct app *app, struct pane *pane)
{
	struct requests_pane *p = (struct requests_pane *)pane;
	struct error err = ERROR_INIT;
	static const char heading[] = " latency  taken from it         by                at              id  server";
	char title[96];
	if (read_all(app, p, &err) < 0) {
		app_fail(app, &err);
		return false;
	}
	if (p->all.len == 0) {
		app_say(app, "these traces hold no marked requests: see stealscope-latency(1)");
		return false;
	}
	if (p->all.len > MOST)
		snprintf(title, sizeof title, "the slowest %d of %zu requests", MOST, p->all.len);
	else
		snprintf(title, sizeof title, "%zu requests, slowest first", p->all.len);
	pager_open(&p->list.pager, true, title);
	pager_add(&p->list.pager, -1, "%s", heading)->heading = true;
	for (size_t i = 0; i < listed(p); i++)
		add_line(app, p, i);
	p->list.pager.at = 1;
	return true;
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
	.size = sizeof(struct requests_pane), .over = true, .open = begin, .pick = pick, .release = release,
};
