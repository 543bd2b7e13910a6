/* The steal pane: the report of `steal --by thread`: time that each culprit took from each victim.
 *
 * The window is A..B if both markers are set, otherwise the window on the screen. */
#include "base/base.h"
#include "ui/core/follow_cause.h"
#include "ui/panes/pane.h"

struct blame_pane {
	struct table_pane table;
	struct steal steal;
};

static struct query *blame_pane_open_query(struct app *app, struct pane *pane, struct error *err)
{
	(void)err;
	const struct steal_options options = { .by = STEAL_BY_THREAD, .from = pane->from, .to = pane->to, .most = ASK_CELLS };
	return steal_open(&app->catalog, &options);
}

static void blame_pane_drop_answer(struct pane *pane)
{
	steal_release(&((struct blame_pane *)pane)->steal);
}

static int blame_pane_report(struct app *app, struct pane *pane, FILE *f, struct report_how how, struct origin *o,
                             struct error *err)
{
	return report_steal(f, how, &app->catalog, &((struct blame_pane *)pane)->steal, NULL, o, err);
}

static void blame_pane_get_title(const struct app *app, const struct pane *pane, int w, char *buf, size_t size)
{
	const struct steal *s = &((const struct blame_pane *)pane)->steal;
	char length[TIME_TEXT];
	const char *none = catalog_lacks_host_trace(&app->catalog, NULL) ? ": unknown without a host trace" : ": none";
	(void)w;
	snprintf(buf, size, " CPU time taken in %s%s ", pane_window_text(app, s->start, s->end, length), !s->cells ? none
	         : s->by == STEAL_BY_MACHINE ? ", by machine (zoom in for threads)" : "");
}

/* Selects the culprit's row. */
static void blame_pane_follow_line(struct app *app, struct pane *pane, size_t i)
{
	const struct steal *s = &((const struct blame_pane *)pane)->steal;
	const struct actor *actor = &s->cell[table_pane_row(pane, i)].culprit;
	follow_to_actor(app, actor, actor->name < s->names ? s->name[actor->name] : NULL);
}

const struct pane_ops blame_pane = {
	TABLE_PANE, .size = sizeof(struct blame_pane), .query = blame_pane_open_query, PANE_ANSWER(struct blame_pane, steal),
	.report = blame_pane_report, .orders = ". ns share culprit", .marked = "ns", .merged = "victim",
	.title = blame_pane_get_title, .follow = blame_pane_follow_line, .drop_answer = blame_pane_drop_answer,
	.name_prefix = "CPU time taken", .file_prefix = "steal-window", .sort = table_pane_sort,
	.name = table_pane_get_name, .file = table_pane_get_file_name, .status_text = table_pane_get_status_text,
	.export = table_pane_export,
};
