/* The requests pane: the report of `latency requests` on the whole recording, slowest first. Enter sets the markers to the
 * start and end of a request, zooms to it and selects the thread that served it; its flow is then that of the request.
 *
 * Only the LISTED_MAX slowest requests are listed: a culprit costs a flow. */
#include "base/base.h"
#include "ui/panes/pane.h"

#define LISTED_MAX 1000

struct requests_pane {
	struct table_pane table;
	struct requests all;  /* all requests, the slowest first */
	struct notes notes;   /* what limits the trust in them */
};

struct requests_task {
	const struct catalog *catalog;
	struct requests all;
	struct notes notes;
	size_t done;          /* requests with a culprit */
	bool is_read;
};

/* Reads the requests, then the culprit of one request at a time. */
static int requests_step(void *state, int64_t until, struct error *err)
{
	static const struct requests_options options = { .from = 1, .to = 0 };
	struct requests_task *t = state;
	(void)until;
	if (!t->is_read) {
		t->is_read = true;
		if (requests_read(t->catalog, &options, &t->all, &t->notes, err) < 0)
			return -1;
		requests_sort(&t->all, REQUESTS_BY_LATENCY);
	}
	if (t->done == t->all.len || t->done == LISTED_MAX)
		return 1;
	struct request *r = &t->all.row[t->done++];
	return request_find_core(t->catalog, r, err) < 0 || request_find_culprit(t->catalog, r, err) < 0 ? -1 : 0;
}

static void requests_task_release(void *state)
{
	struct requests_task *t = state;
	requests_release(&t->all);
	notes_release(&t->notes);
	free(t);
}

static bool requests_pane_open(struct app *app, struct pane *pane)
{
	if (app->rows.requests == 0)
		app_message(app, "no requests are marked in these traces (see stealscope-latency(1))");
	app->focused = app->rows.requests > 0;
	pane->at = pane->top = 0;
	return app->focused;
}

static void requests_pane_window(const struct app *app, const struct pane *pane, int64_t *from, int64_t *to)
{
	(void)pane;
	*from = app->bounds.begin;
	*to = app->bounds.end;
}

static struct query *requests_pane_open_query(struct app *app, struct pane *pane, struct error *err)
{
	static const struct task_kind kind = { requests_step, requests_task_release };
	struct requests_task *t = mem_new(1, sizeof *t);
	(void)pane;
	(void)err;
	t->catalog = &app->catalog;
	return query_task_open(&kind, t);
}

static void requests_pane_take_answer(struct app *app, struct pane *pane, struct query *q)
{
	struct requests_pane *p = (struct requests_pane *)pane;
	struct requests_task *t = query_task_state(q);
	(void)app;
	p->all = t->all;
	p->notes = t->notes;
	t->all = (struct requests){ 0 };
	t->notes = (struct notes){ 0 };
}

static void requests_pane_drop_answer(struct pane *pane)
{
	struct requests_pane *p = (struct requests_pane *)pane;
	requests_release(&p->all);
	notes_release(&p->notes);
}

/* The notes come with the inputs of an exported answer only. */
static int requests_pane_report(struct app *app, struct pane *pane, FILE *f, struct report_how how, struct origin *o,
                                struct error *err)
{
	const struct requests_pane *p = (const struct requests_pane *)pane;
	const struct requests_parts parts = { .requests = &p->all, .top = LISTED_MAX, .order = REQUESTS_BY_LATENCY };
	struct notes notes = { 0 };
	(void)app;
	for (size_t i = 0; i < p->notes.len && !how.table; i++)
		notes_copy(&notes, &p->notes.item[i], NULL);
	origin_add_warnings(o, &notes);
	return report_requests(f, how, &parts, o, err);
}

static void requests_pane_get_title(const struct app *app, const struct pane *pane, int w, char *buf, size_t size)
{
	const struct requests_pane *p = (const struct requests_pane *)pane;
	char all[48] = "";
	(void)app;
	(void)w;
	if (p->all.len > LISTED_MAX)
		snprintf(all, sizeof all, " of %zu, the slowest ones", p->all.len);
	snprintf(buf, size, " %zu request%s%s ", pane->lines, pane->lines == 1 ? "" : "s", all);
}

static void requests_pane_follow(struct app *app, struct pane *pane, size_t i)
{
	const struct request *r = &((const struct requests_pane *)pane)->all.row[table_pane_row(pane, i)];
	struct view before = app->view;
	const int m = catalog_find_machine(&app->catalog, r->machine);
	const int thread = m < 0 || r->tid < 0 ? -1 : catalog_find_thread(&app->catalog, (uint32_t)m, r->tid);
	if (thread >= 0)
		app_show_row(app, (struct row_id){ ROW_THREAD, (uint32_t)thread });
	app->view.a = r->start;
	app->view.b = r->end;
	view_fit(&app->view, &app->bounds, r->start, r->end, 2, 3);
	undo_push(&app->undo, &before);
}

const struct pane_ops requests_pane = {
	TABLE_PANE, .size = sizeof(struct requests_pane), .is_tall = true, .open = requests_pane_open,
	.window = requests_pane_window, .query = requests_pane_open_query, .take = requests_pane_take_answer,
	.report = requests_pane_report, .orders = "latency_ns start provider_high_ns", .marked = "provider_low_ns",
	.is_ordered = true, .title = requests_pane_get_title, .follow = requests_pane_follow,
	.drop_answer = requests_pane_drop_answer, .name_prefix = "requests", .file_prefix = "requests",
	.sort = table_pane_sort, .name = table_pane_get_name, .file = table_pane_get_file_name,
	.status_text = table_pane_get_status_text, .export = table_pane_export,
};
