/* The path pane: the report of `path` on a thread or vCPU: sums, or intervals in order of time or length. While the pane is
 * open, arrows in the timeline lead from each thread of the path to the thread that it woke. */
#include "base/base.h"
#include "ui/widgets/arrows.h"
#include "ui/panes/pane.h"

struct path_pane {
	struct table_pane table;
	struct path path;
	struct arrows arrows;
	bool shows_intervals;
};

static struct path_pane *path_pane_state(struct pane *pane)
{
	return (struct path_pane *)pane;
}

static struct query *path_pane_open_query(struct app *app, struct pane *pane, struct error *err)
{
	struct target s;
	return path_open(&app->catalog, pane_target(app, pane, &s), pane->from, pane->to, err);
}

static void path_pane_take_answer(struct app *app, struct pane *pane, struct query *q)
{
	struct path_pane *p = path_pane_state(pane);
	query_take(q, &p->path);
	pane->from = pane->scope.from = p->path.start;  /* the target lives in a part of the window only */
	pane->to = pane->scope.to = p->path.end;
	arrows_make(&p->arrows, app, &p->path);
}

static void path_pane_drop_answer(struct pane *pane)
{
	path_release(&path_pane_state(pane)->path);
	arrows_release(&path_pane_state(pane)->arrows);
}

static bool path_pane_open(struct app *app, struct pane *pane)
{
	struct target s;
	const struct row_id row = app->view.row;
	uint32_t thread;
	if (row.kind == ROW_REQUEST && !request_thread(app, row, &thread))
		return false;
	if (row.kind != ROW_REQUEST && (!row_target(&app->catalog, row, &s) || s.kind == TARGET_MACHINE)) {
		app_message(app, "select a vCPU or a thread");
		return false;
	}
	if (row.kind == ROW_REQUEST)
		app->view.row = (struct row_id){ ROW_THREAD, thread };
	bool opened = pane_scope_open(app, pane);
	app->view.row = row;
	return opened;
}

static int path_pane_report(struct app *app, struct pane *pane, FILE *f, struct report_how how, struct origin *o,
                            struct error *err)
{
	const struct path_pane *p = path_pane_state(pane);
	return report_path(f, how, &app->catalog, &p->path, !p->shows_intervals, 0, o, err);
}

/* Changes from sums to intervals by time, then by length, and back. */
static void path_pane_sort_next(struct app *app, struct pane *pane, int by)
{
	struct path_pane *p = path_pane_state(pane);
	const int view = ((p->shows_intervals ? 1 + p->table.order : 0) + by + 3) % 3;
	p->shows_intervals = view > 0;
	p->table.order = view > 0 ? view - 1 : 0;
	p->table.has_table = false;
	pane->at = pane->top = 0;
	table_pane_arrange(app, pane);
}

/* Returns the interval of a line; of a sum, its longest one. */
static const struct path_interval *interval_of(const struct pane *pane, size_t i)
{
	const struct path_pane *p = (const struct path_pane *)pane;
	const size_t row = table_pane_row(pane, i);
	const struct path_interval *longest = NULL;
	if (p->shows_intervals)
		return &p->path.interval[row];
	for (const struct path_interval *e = p->path.interval; e < p->path.interval + p->path.intervals; e++)
		if (actor_same(&e->actor, &p->path.sum[row].actor) && actor_same(&e->culprit, &p->path.sum[row].culprit) &&
		    (!longest || e->end - e->start > longest->end - longest->start))
			longest = e;
	return longest;
}

static void path_pane_get_title(const struct app *app, const struct pane *pane, int w, char *buf, size_t size)
{
	const struct path_pane *p = (const struct path_pane *)pane;
	char name[600], length[TIME_TEXT], ns[TIME_TEXT], unknown[64] = "";
	table_pane_get_name(app, pane, name, sizeof name);
	if (p->path.unknown)
		snprintf(unknown, sizeof unknown, ", %s unknown", time_duration(ns, p->path.unknown));
	int n = snprintf(buf, size, " %s in %s%s ", name, pane_window_text(app, p->path.start, p->path.end, length), unknown);
	if (n + 20 < w)
		snprintf(buf + n - 1, size - (size_t)n + 1, ", %s ", p->shows_intervals ? "intervals" : "sums");
}

static void path_pane_follow_line(struct app *app, struct pane *pane, size_t i)
{
	const struct path_interval *e = interval_of(pane, i);
	struct row_id row = pane->scope.row;
	if (!e)
		return;
	arrows_row(app, &path_pane_state(pane)->path, &e->actor, &row);
	pane_go(app, row, e->start, e->end);
}

static void path_pane_draw_arrows(struct app *app, const struct pane *pane, struct screen *s)
{
	arrows_draw(&((const struct path_pane *)pane)->arrows, app, s);
}

const struct pane_ops path_pane = {
	TABLE_PANE, .size = sizeof(struct path_pane), .is_scoped = true, .open = path_pane_open,
	.query = path_pane_open_query, .take = path_pane_take_answer, .report = path_pane_report,
	.sort = path_pane_sort_next, .orders = "start duration_ns", .marked = "culprit", .is_ordered = true,
	.title = path_pane_get_title, .follow = path_pane_follow_line, .overlay = path_pane_draw_arrows,
	.drop_answer = path_pane_drop_answer, .name_prefix = "path of ", .file_prefix = "path-",
	.name = table_pane_get_name, .file = table_pane_get_file_name, .status_text = table_pane_get_status_text,
	.export = table_pane_export,
};
