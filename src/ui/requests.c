/* The requests pane: what an application marked, slowest first.  Picking one sets the markers to its beginning and
 * end, fits it into the window and selects the thread that served it: Enter then shows the flow within it.
 *
 * Reads /Requests/<machine>/<id>/State (null outside of a request) and Thread.  At most MOST requests are listed. */
#include "ui/app.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"

#define MOST 20000

/* The thread that the request names at its start, and what was stolen from it meanwhile. */
static void find_server(struct app *app, struct request_mark *r)
{
	uint32_t attr = history_child_named(app->h, r->attr, "Thread");
	const char *machine = history_name(app->h, history_parent(app->h, r->attr));
	struct interval iv;
	int m = topo_find_machine(&app->topo, machine);
	r->thread = -1;
	r->lost = 0;
	if (m < 0 || attr == HISTORY_NONE || history_stab(app->h, attr, r->start, &iv, NULL) < 0 || iv.value < 0 ||
	    iv.value > INT32_MAX)
		return;
	r->thread = topo_find_thread(&app->topo, (uint32_t)m, (int32_t)iv.value);
	struct subject s = { SUBJECT_THREAD, (uint32_t)r->thread };
	if (r->thread >= 0 && steal_time(&app->topo, &s, r->start, r->end, &r->lost, NULL) < 0)
		r->lost = 0;
}

/* The stretches in which the request's state is not null.  One that touches the end of the trace is not complete, nor
 * one that is not running when it is first heard of: it began before the trace. */
static int read_one(struct app *app, uint32_t request, struct error *err)
{
	uint32_t attr = history_child_named(app->h, request, "State");
	struct history_cursor c;
	struct interval iv;
	bool inside = false, whole = false;
	int64_t start = 0;
	int found;
	if (attr == HISTORY_NONE || history_range(&c, app->h, attr, app->ground.begin, app->ground.end, err) < 0)
		return attr == HISTORY_NONE ? 0 : -1;
	while ((found = history_range_next(&c, &iv, err)) > 0 && app->requests < MOST) {
		if (iv.value != HISTORY_NULL && !inside) {
			start = iv.start;
			whole = strcmp(history_state_name(app->h, attr, (unsigned)iv.value), "running") == 0;
		}
		if (iv.value == HISTORY_NULL && inside && whole) {
			struct request_mark *r = ARRAY_PUSH(app->request, app->requests, app->requests_cap);
			*r = (struct request_mark){ .attr = request, .start = start, .end = iv.start - 1 };
			find_server(app, r);
		}
		inside = iv.value != HISTORY_NULL;
	}
	return found < 0 ? -1 : 0;
}

static int slowest_first(const void *a, const void *b)
{
	const struct request_mark *x = a, *y = b;
	int64_t p = x->end - x->start, q = y->end - y->start;
	return p != q ? (p > q ? -1 : 1) : (x->start > y->start) - (x->start < y->start);
}

static int read_all(struct app *app, struct error *err)
{
	uint32_t root = history_find(app->h, "/Requests");
	app->requests = 0;
	if (root == HISTORY_NONE)
		return 0;
	for (uint32_t m = history_child(app->h, root, HISTORY_NONE); m != HISTORY_NONE; m = history_child(app->h, root, m))
		for (uint32_t r = history_child(app->h, m, HISTORY_NONE); r != HISTORY_NONE; r = history_child(app->h, m, r))
			if (read_one(app, r, err) < 0)
				return -1;
	if (app->requests)
		qsort(app->request, app->requests, sizeof *app->request, slowest_first);
	return 0;
}

static void add_line(struct app *app, size_t i)
{
	const struct request_mark *r = &app->request[i];
	char id[128], server[256] = "-", when[TIME_TEXT], d[TIME_TEXT], lost[TIME_TEXT];
	struct row_id row = { ROW_THREAD, (uint32_t)r->thread };
	text_escape(id, sizeof id, history_name(app->h, r->attr));
	if (r->thread >= 0)
		row_title(&app->rows, row, server, sizeof server);
	pager_add(&app->pager, (int64_t)i, "%9s  lost %9s  at %s  id %s by %s", time_duration(d, r->end - r->start + 1),
	          time_duration(lost, r->lost), ruler_time(when, &app->axis, r->start, 1000000), id, server);
}

void open_requests(struct app *app)
{
	struct error err = ERROR_INIT;
	char title[96];
	if (read_all(app, &err) < 0) {
		app_fail(app, &err);
		return;
	}
	if (app->requests == 0) {
		app_say(app, "these traces hold no marked requests");
		return;
	}
	snprintf(title, sizeof title, "%zu requests, slowest first%s", app->requests,
	         app->requests == MOST ? " (no more are listed)" : "");
	pager_open(&app->pager, PAGER_REQUESTS, true, title);
	for (size_t i = 0; i < app->requests; i++)
		add_line(app, i);
	app->mode = MODE_PAGER;
}

void request_picked(struct app *app, size_t index)
{
	const struct request_mark *r = &app->request[index];
	struct view before = app->view;
	if (r->thread >= 0)
		app_show_row(app, (struct row_id){ ROW_THREAD, (uint32_t)r->thread });
	app->view.a = r->start;
	app->view.b = r->end;
	view_fit(&app->view, &app->ground, r->start, r->end, 2, 3);
	undo_push(&app->undo, &before);
	app->flow.stale = app->blame.stale = true;
}
