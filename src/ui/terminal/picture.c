/* A picture without a terminal: the overview, or the rows that were named with what holds them and what they hold; of one
 * thread also who ran while it could not. */
#include "ui/ui.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/atomic_file.h"
#include "ui/terminal/screen_file.h"
#include "ui/panes/pane.h"
#include "ui/core/viewer.h"

#define MOST_LINES 400
#define FRAME_LINES 5   /* header, map, ruler, status line and legend */
#define OVERVIEW_LINES 40
#define OVERVIEW_FRAME 7  /* and its title and headings */

static struct row_id id_of(const struct subject *s)
{
	static const uint8_t kind[] = { [SUBJECT_MACHINE] = ROW_MACHINE, [SUBJECT_CPU] = ROW_CPU,
		[SUBJECT_THREAD] = ROW_THREAD };
	return (struct row_id){ kind[s->kind], s->index };
}

static bool is_named(const struct ui_picture *p, struct row_id id)
{
	for (size_t i = 0; i < p->whos; i++)
		if (row_same(id_of(&p->who[i]), id))
			return true;
	return false;
}

/* Leaves the rows that are named, those above them in the tree and those beneath. */
static void keep_rows(struct rows *r, const struct ui_picture *p)
{
	bool *keep = mem_new(r->len, sizeof *keep);
	size_t n = 0;
	int beneath = -1;  /* depth of the named row whose branch this is */
	for (size_t i = 0; i < r->len; i++) {
		if (r->row[i].depth <= beneath)
			beneath = -1;
		keep[i] = beneath >= 0 || is_named(p, r->row[i].id);
		if (keep[i] && beneath < 0)
			beneath = r->row[i].depth;
	}
	int above = -1;    /* depth of the last row kept, going upwards */
	for (size_t i = r->len; i-- > 0;) {
		keep[i] |= r->row[i].depth < above;
		above = keep[i] ? r->row[i].depth : above;
	}
	for (size_t i = 0; i < r->len; i++)
		if (keep[i])
			r->row[n++] = r->row[i];
	r->len = n;
	free(keep);
}

/* The cursor stands at the longest gap of the row that was named first. */
static int find_longest(struct app *app, const struct ui_picture *p, struct error *err)
{
	struct gap_options options = { .from = p->from, .to = p->to, .top = 1 };
	struct gap_list list;
	if (gap_list_of(&app->topo, &p->who[0], &options, &list, err) < 0)
		return -1;
	if (list.items)
		view_goto(&app->view, &app->ground, list.item[0].gap.start);
	gap_list_release(&list);
	return 0;
}

static int arrange(struct app *app, const struct ui_picture *p, struct error *err)
{
	view_fit(&app->view, &app->ground, p->from, p->to, 1, 1);
	if (p->whos == 0) {
		pane_open(app, PANE_OVERVIEW);
		const int all = (int)(app->below->lines < MOST_LINES ? app->below->lines : MOST_LINES) + OVERVIEW_FRAME;
		viewer_resize(app, app->w, all < OVERVIEW_LINES ? all : OVERVIEW_LINES);
		return 0;
	}
	for (size_t i = p->whos; i-- > 0;)
		app_show_row(app, id_of(&p->who[i]));
	keep_rows(&app->rows, p);
	int height = (int)(app->rows.len < MOST_LINES ? app->rows.len : MOST_LINES) + FRAME_LINES;
	bool flow = p->whos == 1 && p->who[0].kind == SUBJECT_THREAD;
	viewer_resize(app, app->w, flow ? 2 * MOST_LINES : height);
	if (flow && pane_open(app, PANE_FLOW))
		height += pane_height(app, MOST_LINES);
	viewer_resize(app, app->w, height);
	if (flow && app->below)  /* half the screen is less than that */
		app->below->grown = height;
	view_fit(&app->view, &app->ground, p->from, p->to, 1, 1);
	return find_longest(app, p, err);
}

static int paint(struct app *app, const char *file, struct error *err)
{
	struct screen s = { 0 };
	struct save save;
	if (save_begin(&save, file, err) < 0)
		return -1;
	screen_resize(&s, app->w, app->h_cells);
	viewer_draw(app, &s);
	paint_screen(&s, paint_of(file), app->look.theme.light, "stealscope", save.f);
	screen_release(&s);
	return save_end(&save, 0, err);
}

int ui_picture(const struct history *h, const struct ui_options *options, const struct ui_picture *p, struct error *err)
{
	struct app app;
	bool changed;
	if (viewer_init(&app, h, options, err) < 0)
		return -1;
	look_set_depth(&app, DEPTH_256);
	app.patient = app.still = true;
	while (viewer_work(&app, INT64_MAX / 4, &changed))
		;
	int status = arrange(&app, p, err);
	app.message[0] = '\0';
	while (viewer_work(&app, INT64_MAX / 4, &changed))
		;
	if (status == 0)
		status = paint(&app, p->file, err);
	viewer_release(&app);
	return status;
}
