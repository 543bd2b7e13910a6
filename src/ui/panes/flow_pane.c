/* The flow pane: actors that ran while the chosen thread was running or runnable, as a tree machine > thread, with bars
 * over the window.
 *
 * The window is A..B if both markers are set, otherwise the window on the screen. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "ui/core/follow_cause.h"
#include "ui/panes/pane.h"
#include "ui/panes/pane_export.h"

#define THRESHOLD 0.001   /* smallest share of a line, as in the command */
#define CACHED_LANES 64   /* lines for which bars are cached */

struct flow_pane {
	struct table_pane table;
	uint32_t thread;
	struct flow flow;
	struct flow_tree tree; /* the rows of the report */
	int widest;            /* the widest name's columns */
	struct cell *lane;     /* bars: lane_cols cells for each row, the first for row lane_top; NULL: none */
	size_t lane_top;
	int lane_cols;
	int64_t lane_from, lane_step;  /* window for which the bars were made: start, ns, and ns per cell */
};

static void flow_pane_drop_answer(struct pane *pane)
{
	struct flow_pane *p = (struct flow_pane *)pane;
	flow_tree_release(&p->tree);
	flow_release(&p->flow);
	free(p->lane);
	*p = (struct flow_pane){ .table = p->table, .thread = p->thread, .widest = p->widest };
}

static const struct flow_row *row_of(const struct pane *pane, size_t i)
{
	return &((const struct flow_pane *)pane)->tree.row[table_pane_row(pane, i)];
}

#define VALUE_COLUMNS 17  /* columns for the duration and the share */
#define NAME_MIN 26
#define LANE_MIN 10

/* Widths of a line's name and of its bar. Names come before bars; without space for a bar the name gets the rest. */
static int name_columns(const struct flow_pane *p, int w)
{
	if (w < NAME_MIN + VALUE_COLUMNS + 1 + LANE_MIN)
		return w - VALUE_COLUMNS;
	const int usual = w * 3 / 10 < NAME_MIN ? NAME_MIN : w * 3 / 10 > 44 ? 44 : w * 3 / 10;
	const int most = w - VALUE_COLUMNS - 1 - LANE_MIN, needed = p->widest + 2 < most ? p->widest + 2 : most;
	return needed > usual ? needed : usual;
}

static int lane_columns(const struct flow_pane *p, int w)
{
	int cols = w - name_columns(p, w) - VALUE_COLUMNS - 1;
	return cols >= LANE_MIN ? cols : 0;
}

/* Width of the labels: chosen so that the bars share the time axis of the rows above. */
static int flow_pane_label_width(const struct pane *pane, int w)
{
	const struct flow_pane *p = (const struct flow_pane *)pane;
	return lane_columns(p, w) ? name_columns(p, w) + VALUE_COLUMNS : pane_label_w(w);
}

static struct query *flow_pane_open_query(struct app *app, struct pane *pane, struct error *err)
{
	const struct target thread = { TARGET_THREAD, ((const struct flow_pane *)pane)->thread };
	/* a multiple of the columns of screen and export, so that both are exact */
	const unsigned columns = (unsigned)lane_columns((struct flow_pane *)pane, app->w) * flow_text_columns(0);
	const struct flow_options options = { .intervals = ASK_INTERVALS, .columns = columns };
	return flow_open(&app->catalog, &thread, pane->from, pane->to, &options, err);
}

static int flow_pane_report(struct app *app, struct pane *pane, FILE *f, struct report_how how, struct origin *o,
                            struct error *err)
{
	const struct flow_pane *p = (const struct flow_pane *)pane;
	const struct target target = { TARGET_THREAD, p->thread };
	const struct flow_text text = { .threshold = THRESHOLD };
	return report_flow(f, how, &app->catalog, &target, &p->flow, &text, o, err);
}

static void flow_pane_take_answer(struct app *app, struct pane *pane, struct query *q)
{
	struct flow_pane *p = (struct flow_pane *)pane;
	char text[ACTOR_TEXT];
	const int columns = lane_columns(p, app->w);
	query_take(q, &p->flow);
	flow_tree_make(&p->tree, &p->flow, THRESHOLD);
	for (size_t i = 0; i < p->tree.rows; i++) {
		flow_row_text(&app->catalog, &p->flow, &p->tree.row[i], text, sizeof text);
		const int width = text_width(text) + (p->tree.row[i].entry ? 2 : 0);
		p->widest = width > p->widest ? width : p->widest;
	}
	pane->preliminary = lane_columns(p, app->w) != columns;  /* the bars were computed for other columns */
	app_layout(app, panes_label_w(app, pane));
}

/* Finds the thread that serves the request at the cursor. Returns false, after a message, if there is none. */
bool request_thread(struct app *app, struct row_id row, uint32_t *thread)
{
	uint32_t attr = history_child_named(app->h, app->rows.request[row.index].node, request_schema[REQUEST_THREAD].name);
	struct interval tid = { .value = HISTORY_NULL };
	int found = -1;
	if (attr != HISTORY_NONE && history_stab(app->h, attr, app->view.cursor, &tid, NULL) == 0 && tid.value > 0 &&
	    tid.value <= INT32_MAX)
		found = catalog_find_thread(&app->catalog, row_machine(&app->rows, row), (int32_t)tid.value);
	*thread = (uint32_t)found;
	if (found < 0)
		app_message(app, "no thread serves the request at the cursor: move the cursor into the request");
	return found >= 0;
}

/* Finds the thread for the selected row's flow: the row's thread, or the thread on the CPU at the cursor. Returns
 * false, after a message, if there is none. */
static bool thread_of_row(struct app *app, uint32_t *thread)
{
	struct row_id row = app->view.row;
	char title[256];
	if (row_thread(&app->catalog, row) >= 0) {
		*thread = (uint32_t)row_thread(&app->catalog, row);
		return true;
	}
	if (row.kind == ROW_REQUEST)
		return request_thread(app, row, thread);
	if (row.kind != ROW_CPU && row.kind != ROW_PROVIDER) {
		app_message(app, "select a thread, or a CPU (its current thread is used)");
		return false;
	}
	const struct catalog_cpu *cpu = &app->catalog.cpu[row.index];
	struct interval iv = { .value = HISTORY_NULL };
	struct error err = ERROR_INIT;
	if (cpu->current != HISTORY_NONE && history_stab(app->h, cpu->current, app->view.cursor, &iv, &err) < 0) {
		app_fail(app, &err);
		return false;
	}
	int t = iv.value > 0 && iv.value <= INT32_MAX ? catalog_find_thread(&app->catalog, cpu->machine, (int32_t)iv.value)
		: -1;
	if (t < 0) {
		app_message(app, "no thread is on %s at this time: move the cursor, or select a thread",
		        row_title(&app->rows, row, title, sizeof title));
		return false;
	}
	*thread = (uint32_t)t;
	return true;
}

static bool flow_pane_open(struct app *app, struct pane *pane)
{
	struct flow_pane *p = (struct flow_pane *)pane;
	uint32_t thread;
	if (!thread_of_row(app, &thread))
		return false;
	flow_pane_drop_answer(pane);
	p->thread = thread;
	p->widest = 0;  /* it only grows while the pane is open: the time axis must not move with each window */
	pane->valid = false;
	pane->lines = pane->top = 0;
	return true;
}

static int vis_of_kind(uint8_t kind)
{
	static const uint8_t vis[FLOW_KIND_COUNT] = {
		[FLOW_RUNNING] = VIS_RUNNING, [FLOW_PREEMPTING] = VIS_PREEMPTED, [FLOW_HYPERVISOR] = VIS_VMM,
		[FLOW_IRQ] = VIS_WAKING, [FLOW_WAITING] = VIS_BLOCKED, [FLOW_IDLE_CPU] = VIS_HOST_BLOCKED,
		[FLOW_LIMITED] = VIS_HOST_BLOCKED, [FLOW_UNKNOWN] = VIS_UNKNOWN, [FLOW_CURRENT] = VIS_PREEMPTED,
	};
	return kind < FLOW_KIND_COUNT ? vis[kind] : (int)VIS_UNKNOWN;
}

/* Computes the lanes to which each entry adds its cells. A row has a lane for each kind of entry. entry_lane: lane in
 * the entry's row; group_lane: lane in the row of its group; UINT32_MAX: none. */
static void lanes_of_entries(const struct flow_pane *p, size_t n, uint32_t *entry_lane, uint32_t *group_lane)
{
	const struct flow *f = &p->flow;
	for (size_t i = 0; i < f->entries; i++) {
		entry_lane[i] = group_lane[i] = UINT32_MAX;
		for (size_t l = 0; l < n; l++) {
			const struct flow_row *row = &p->tree.row[p->lane_top + l];
			if (flow_row_contains(row, &f->entry[i]))
				(row->entry ? entry_lane : group_lane)[i] = (uint32_t)l * FLOW_KIND_COUNT + f->entry[i].actor.kind;
		}
	}
}

/* Adds the flow's cells to the screen's columns, lane[lane_of[entry] * cols ...].
 *
 * A cell of the flow is much shorter than a column; if it lies in two columns, its time is divided between them. If a
 * cell is longer than a column (A..B is much longer than the window), the position of the time within the cell is
 * unknown and nothing is drawn. */
static void add_cells(const struct app *app, const struct flow *f, const uint32_t *lane_of, int cols, int64_t *lane)
{
	const struct view *v = &app->view;
	for (size_t i = 0; i < f->cells; i++) {
		const struct flow_cell *c = &f->cell[i];
		int64_t from = flow_column(f->start, f->end, c->column, f->columns);
		int64_t to = flow_column(f->start, f->end, c->column + 1, f->columns) - 1, left = c->ns;
		int last = to - from < v->step ? view_column(v, to) : INT32_MIN;
		for (int x = view_column(v, from); x <= last && lane_of[c->entry] != UINT32_MAX; x++) {
			int64_t end = v->t0 + (x + 1) * v->step - 1, begin = x * v->step + v->t0;
			int64_t overlap = (end < to ? end : to) - (begin > from ? begin : from) + 1;
			int64_t part = x == last ? left : (int64_t)((double)c->ns * (double)overlap / (double)(to - from + 1));
			left -= part;
			if (x >= 0 && x < cols)
				lane[(size_t)lane_of[c->entry] * (size_t)cols + (size_t)x] += part;
		}
	}
}

/* Makes the visible lines' bars: the time of other lines is VIS_NONE, the line's own time is drawn from the bottom. */
static void make_lanes(const struct app *app, struct flow_pane *p, int columns)
{
	static const uint8_t severity[HISTORY_STATES] = { [VIS_UNKNOWN] = WAIT_SEVERITY, [VIS_BLOCKED] = WAIT_SEVERITY,
		[VIS_RUNNING] = WAIT_SEVERITY, [VIS_VMM] = WAIT_SEVERITY, [VIS_WAKING] = WAIT_SEVERITY,
		[VIS_HOST_BLOCKED] = WAIT_SEVERITY, [VIS_PREEMPTED] = WAIT_SEVERITY };
	const struct flow *f = &p->flow;
	size_t lines = p->tree.rows - p->lane_top < CACHED_LANES ? p->tree.rows - p->lane_top : CACHED_LANES,
		   cols = (size_t)columns;
	int64_t *ns = mem_new(lines * FLOW_KIND_COUNT * cols, sizeof *ns);
	uint32_t *entry_lane = mem_new(f->entries, sizeof *entry_lane),
			 *group_lane = mem_new(f->entries, sizeof *group_lane);
	lanes_of_entries(p, lines, entry_lane, group_lane);
	add_cells(app, f, entry_lane, columns, ns);
	add_cells(app, f, group_lane, columns, ns);
	p->lane = mem_new(lines * cols, sizeof *p->lane);
	p->lane_cols = columns;
	p->lane_from = app->view.t0;
	p->lane_step = app->view.step;
	for (size_t i = 0; i < lines * cols; i++) {
		int64_t sum[HISTORY_STATES] = { 0 }, drawn_ns = 0;
		for (uint8_t k = 0; k < FLOW_KIND_COUNT; k++) {
			int64_t part = ns[(i / cols * FLOW_KIND_COUNT + k) * cols + i % cols];
			sum[vis_of_kind(k)] += part;
			drawn_ns += part;
		}
		sum[VIS_NONE] = p->lane_step > drawn_ns ? p->lane_step - drawn_ns : 0;
		p->lane[i] = cell_of_sums(sum, severity, false);
	}
	free(ns);
	free(entry_lane);
	free(group_lane);
}

static void draw_lane(struct app *app, struct flow_pane *p, struct screen *s, int x, int y, int cols, size_t line)
{
	bool moved = p->lane_from != app->view.t0 || p->lane_step != app->view.step;
	if (p->lane_cols != cols || moved || line < p->lane_top || line >= p->lane_top + CACHED_LANES) {
		free(p->lane);
		p->lane_top = line;
		make_lanes(app, p, cols);
	}
	screen_put(s, x - 1, y, '|', app->appearance.palette.part[PART_LABEL]);
	for (int c = 0; c < cols; c++) {
		struct glyph g = appearance_glyph(app, p->lane[(line - p->lane_top) * (size_t)cols + (size_t)c], false);
		screen_put(s, x + c, y, g.ch, g.style);
	}
}

/* Without space for bars the names get the rest of the screen. */
static void flow_pane_arrange(struct app *app, struct pane *pane)
{
	struct flow_pane *p = (struct flow_pane *)pane;
	table_pane_arrange(app, pane);
	if (!lane_columns(p, app->w) && p->table.has_table)
		report_table_fit(&p->table.table, app->w - 2);
}

static enum part flow_pane_line_part(const struct pane *pane, size_t i)
{
	return row_of(pane, i)->entry ? PART_NORMAL : PART_TITLE;
}

static void flow_pane_draw_line(struct app *app, struct pane *pane, struct screen *s, int y, size_t i, bool selected)
{
	struct flow_pane *p = (struct flow_pane *)pane;
	const int cols = lane_columns(p, s->w);
	table_pane_draw_line(app, pane, s, y, i, selected);
	if (cols > 0)
		draw_lane(app, p, s, app->label_w + 1, y, cols, table_pane_row(pane, i));
}

static void flow_pane_get_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	struct target target = { TARGET_THREAD, ((const struct flow_pane *)pane)->thread };
	char text[256];
	snprintf(buf, size, "flow of %s", catalog_target_text(&app->catalog, &target, text, sizeof text));
}

static void flow_pane_get_title(const struct app *app, const struct pane *pane, int w, char *buf, size_t size)
{
	const struct flow_pane *p = (const struct flow_pane *)pane;
	int64_t a, b;
	bool markers = pane_window(app, &a, &b);
	char thread[320], head[512], d[TIME_TEXT], from[TIME_TEXT], omitted[64] = "";
	if (p->tree.hidden_entries)
		snprintf(omitted, sizeof omitted, ", %zu below %g %%", p->tree.hidden_entries, 100 * THRESHOLD);
	flow_pane_get_name(app, pane, thread, sizeof thread);
	snprintf(head, sizeof head, " %s %s %s + %s, %zu entr%s", thread, markers ? "A..B" : "from",
	         ruler_time(from, &app->axis, p->flow.start, app->view.step),
	         time_duration(d, p->flow.end - p->flow.start + 1), p->flow.entries, p->flow.entries == 1 ? "y" : "ies");
	snprintf(buf, size, "%s%s ", head, text_width(head) + (int)strlen(omitted) + 4 <= w ? omitted : "");
}

static void flow_pane_get_file_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	struct target target = { TARGET_THREAD, ((const struct flow_pane *)pane)->thread };
	char text[256];
	snprintf(buf, size, "flow-%s", catalog_target_text(&app->catalog, &target, text, sizeof text));
}

static int flow_pane_export(struct app *app, struct pane *pane, FILE *f, enum report_format format, struct error *err)
{
	const struct target target = { TARGET_THREAD, ((const struct flow_pane *)pane)->thread };
	struct origin o;
	export_origin(app, pane, &target, &o);
	int rc = flow_pane_report(app, pane, f, REPORT_WHOLE(format), &o, err);
	origin_release(&o);
	return rc;
}

/* Selects the row of the line's actor. */
static void flow_pane_follow_line(struct app *app, struct pane *pane, size_t i)
{
	const struct flow_pane *p = (const struct flow_pane *)pane;
	const struct flow_row *row = row_of(pane, i);
	const struct actor machine = { .machine = row->group < 0 ? -1 : row->group, .tid = -1, .kind = FLOW_RUNNING };
	const struct actor *actor = row->entry ? &row->entry->actor : &machine;
	follow_to_actor(app, actor, row->entry && actor->name < p->flow.names ? p->flow.name[actor->name] : NULL);
}

static void flow_pane_remap_rows(struct app *app, struct pane *pane, const struct rows *old, const struct rows *new)
{
	struct flow_pane *p = (struct flow_pane *)pane;
	(void)app;
	if (p->thread < old->catalog->threads)
		p->thread = row_remap(old, new, (struct row_id){ ROW_THREAD, p->thread }).index;
}

const struct pane_ops flow_pane = {
	.size = sizeof(struct flow_pane), .is_table = true, .open = flow_pane_open, .query = flow_pane_open_query,
	.take = flow_pane_take_answer, .arrange = flow_pane_arrange, .report = flow_pane_report,
	.line_part = flow_pane_line_part, .name = flow_pane_get_name, .title = flow_pane_get_title,
	.label_width = flow_pane_label_width, .line = flow_pane_draw_line, .file = flow_pane_get_file_name,
	.export = flow_pane_export, .follow = flow_pane_follow_line, .remap = flow_pane_remap_rows,
	.drop_answer = flow_pane_drop_answer,
};
