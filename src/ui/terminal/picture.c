/* Draws a picture without a terminal: the overview, or the requested rows with their ancestors and descendants; for a
 * single thread also its flow. */
#include "base/base.h"
#include "ui/ui.h"

#include "base/atomic_file.h"
#include "ui/terminal/screen_file.h"
#include "ui/panes/pane.h"
#include "ui/widgets/status.h"
#include "ui/core/viewer.h"

#define MAX_LINES 400
#define FRAME_LINES 7   /* lines for header, verdict (2), map, ruler, status line and legend */
#define OVERVIEW_LINES 40
#define OVERVIEW_FRAME 9  /* FRAME_LINES, and the title and headings of the overview */

static struct row_id id_of(const struct target *s)
{
	static const uint8_t kind[] = { [TARGET_MACHINE] = ROW_MACHINE, [TARGET_CPU] = ROW_CPU,
		[TARGET_THREAD] = ROW_THREAD };
	return (struct row_id){ kind[s->kind], s->index };
}

static bool is_named(const struct ui_picture *p, struct row_id id)
{
	for (size_t i = 0; i < p->target_count; i++)
		if (row_same(id_of(&p->who[i]), id))
			return true;
	return false;
}

/* Keeps the requested rows, their ancestors and their descendants; removes all others. */
static void filter_rows(struct rows *r, const struct ui_picture *p)
{
	bool *is_kept = mem_new(r->len, sizeof *is_kept);
	size_t n = 0;
	int named_depth = -1;  /* depth of the requested row above; -1: none */
	for (size_t i = 0; i < r->len; i++) {
		if (r->row[i].depth <= named_depth)
			named_depth = -1;
		is_kept[i] = named_depth >= 0 || is_named(p, r->row[i].id);
		if (is_kept[i] && named_depth < 0)
			named_depth = r->row[i].depth;
	}
	int kept_depth = -1;  /* depth of the last row that was kept, going upwards */
	for (size_t i = r->len; i-- > 0;) {
		is_kept[i] |= r->row[i].depth < kept_depth;
		kept_depth = is_kept[i] ? r->row[i].depth : kept_depth;
	}
	for (size_t i = 0; i < r->len; i++)
		if (is_kept[i])
			r->row[n++] = r->row[i];
	r->len = n;
	free(is_kept);
}

/* Moves the cursor to the longest gap of the first requested row. */
static int move_to_longest_gap(struct app *app, const struct ui_picture *p, struct error *err)
{
	struct gap_options options = { .from = p->from, .to = p->to, .top = 1 };
	struct gap_list list;
	if (query_answer(gap_list_open(&app->catalog, &p->who[0], &options), &list, err) < 0)
		return -1;
	if (list.items)
		view_goto(&app->view, &app->bounds, list.item[0].gap.start);
	gap_list_release(&list);
	return 0;
}

static int choose_content(struct app *app, const struct ui_picture *p, struct error *err)
{
	view_fit(&app->view, &app->bounds, p->from, p->to, 1, 1);
	if (p->target_count == 0) {
		pane_open(app, PANE_OVERVIEW);
		const int all = (int)(app->pane_below->lines < MAX_LINES ? app->pane_below->lines : MAX_LINES) + OVERVIEW_FRAME;
		viewer_resize(app, app->w, all < OVERVIEW_LINES ? all : OVERVIEW_LINES);
		return 0;
	}
	for (size_t i = p->target_count; i-- > 0;)
		app_show_row(app, id_of(&p->who[i]));
	filter_rows(&app->rows, p);
	int height = (int)(app->rows.len < MAX_LINES ? app->rows.len : MAX_LINES) + FRAME_LINES;
	bool flow = p->target_count == 1 && p->who[0].kind == TARGET_THREAD;
	viewer_resize(app, app->w, flow ? 2 * MAX_LINES : height);
	if (flow && pane_open(app, PANE_FLOW))
		height += pane_height(app, MAX_LINES);
	viewer_resize(app, app->w, height);
	if (flow && app->pane_below)  /* the default height of a pane is half the screen */
		app->pane_below->extra_lines = height;
	view_fit(&app->view, &app->bounds, p->from, p->to, 1, 1);
	return move_to_longest_gap(app, p, err);
}

/* Writes the targets: "Debian/151 fibonacci, Debian/vCPU0"; "all machines". */
static void title_text(const struct app *app, const struct ui_picture *p, char *buf, size_t size)
{
	char name[ACTOR_TEXT];
	size_t used = (size_t)snprintf(buf, size, "%s", p->target_count ? "" : "all machines");
	for (size_t i = 0; i < p->target_count && used < size; i++)
		used += (size_t)snprintf(buf + used, size - used, "%s%s", i ? ", " : "",
		                         catalog_target_text(&app->catalog, &p->who[i], name, sizeof name));
}

/* Writes the source of the picture and what limits the trust in it. */
static void source_text(const struct app *app, const struct ui_picture *p, char *buf, size_t size)
{
	struct notes notes = { 0 };
	int64_t largest = -1;
	char clocks[TIME_TEXT + 40] = "", d[TIME_TEXT], name[256];
	const char *file = strrchr(history_file(app->h), '/');
	for (uint32_t m = 0; m < app->catalog.machines; m++) {
		const int64_t ns = status_clock_error(app, m);
		largest = ns > largest ? ns : largest;
	}
	if (largest >= 0)
		snprintf(clocks, sizeof clocks, ", guest clocks +-%s", time_duration(d, largest));
	const bool readable = warnings_of(&app->catalog, p->target_count == 1 ? p->who : NULL, p->from, p->to, &notes);
	text_escape(name, sizeof name, file ? file + 1 : history_file(app->h));
	if (notes.len)
		snprintf(buf, size, "source: %s, stealscope %s; confidence: bounded, %zu warning%s (stealscope info)%s", name,
		         PACKAGE_VERSION, notes.len, notes.len == 1 ? "" : "s", clocks);
	else
		snprintf(buf, size, "source: %s, stealscope %s; confidence: %s%s", name, PACKAGE_VERSION,
		         readable ? "exact, no warnings" : "unknown", clocks);
	notes_release(&notes);
}

/* Draws the frame with a title above it and the source below it. */
static void draw_picture(struct app *app, const struct ui_picture *p, struct screen *s)
{
	const struct palette *palette = &app->appearance.palette;
	struct screen frame = { 0 };
	char text[1024];
	screen_resize(&frame, app->w, app->h_cells);
	viewer_draw(app, &frame);
	screen_resize(s, app->w, app->h_cells + 2);
	screen_clear(s, palette->part[PART_NORMAL]);
	memcpy(s->cell + s->w, frame.cell, (size_t)frame.w * (size_t)frame.h * sizeof *frame.cell);
	screen_release(&frame);
	title_text(app, p, text, sizeof text);
	screen_clip(s, 1, 0, s->w - 2, palette->part[PART_TITLE], text);
	source_text(app, p, text, sizeof text);
	screen_clip(s, 1, s->h - 1, s->w - 2, palette->part[PART_DIM], text);
}

static int write_picture(struct app *app, const struct ui_picture *p, struct error *err)
{
	struct screen s = { 0 };
	struct save save;
	if (atomic_file_begin(&save, p->file, err) < 0)
		return -1;
	draw_picture(app, p, &s);
	paint_screen(&s, paint_format_of(p->file), app->appearance.theme.light, "stealscope", save.f);
	screen_release(&s);
	return atomic_file_end(&save, 0, err);
}

int ui_picture(const struct history *h, const struct ui_options *options, const struct ui_picture *p, struct error *err)
{
	struct app app;
	bool changed;
	if (viewer_init(&app, h, options, err) < 0)
		return -1;
	appearance_set_depth(&app, DEPTH_256);
	app.waits_for_answers = app.is_picture = true;
	while (viewer_work(&app, INT64_MAX / 4, &changed))
		;
	int status = choose_content(&app, p, err);
	app.message[0] = '\0';
	while (viewer_work(&app, INT64_MAX / 4, &changed))
		;
	if (status == 0)
		status = write_picture(&app, p, err);
	viewer_release(&app);
	return status;
}
