/* Draws the rows of the window: names, lost time, and cells. */
#include "base/base.h"
#include "ui/widgets/widgets.h"

#include "ui/widgets/lane_names.h"
#include "ui/widgets/provider_lane.h"

#define HOST_CPU_LINES_MIN 4  /* smallest number of lines for rows with the lane of the host's CPU */
#define CPUS_BELOW_MIN 12     /* the same with CPU rows below the others */

static const struct style *part_style(const struct app *app, enum part p)
{
	return &app->appearance.palette.part[p];
}

static void draw_label(struct app *app, struct screen *s, int y, const struct row *row, bool pinned)
{
	bool selected = row_same(row->id, app->view.row);
	struct style style = *part_style(app, selected ? PART_SELECTED : PART_LABEL);
	char label[512], lost[TIME_TEXT];
	int x = row->depth * (app->label_w >= 30 ? 2 : 1), end = app->label_w;
	screen_fill(s, 0, y, app->label_w, ' ', style);
	lost_text(app, row->id, lost, sizeof lost);
	if (lost[0]) {
		end -= (int)strlen(lost);
		screen_text(s, end, y, app->label_w - end, selected ? style : *part_style(app, PART_STEAL), lost);
		end--;
	}
	screen_put(s, x, y, row->folds ? row->open ? 'v' : '>' : pinned ? '=' : ' ', style);
	if (pinned)
		row_title(&app->rows, row->id, label, sizeof label);
	else
		row_label(&app->rows, row->id, label, sizeof label);
	screen_text(s, x + 2, y, end - x - 2, style, label);
	screen_put(s, app->label_w, y, selected ? '*' : '|', *part_style(app, selected ? PART_STEAL : PART_LABEL));
}

/* Draws a line at the cursor or a marker: through cells without a bar, so that no state is hidden. */
static void draw_rules(const struct app *app, struct screen *s, int y, int n)
{
	const int64_t t[] = { app->view.a, app->view.b, app->is_picture ? VIEW_NONE : app->view.cursor };
	const struct style *mark = part_style(app, PART_DIM);
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		const int col = t[i] == VIEW_NONE ? -1 : view_column(&app->view, t[i]);
		struct glyph *g = col >= 0 && col < n ? screen_at(s, app->label_w + 1 + col, y) : NULL;
		if (!g || (g->style.bg >= 0 && g->ch != ' '))
			continue;
		const bool quiet = g->ch == ' ' || g->ch == '.' || g->ch == '-' || g->ch > 0x2500;
		if (g->style.bg >= 0 || quiet)
			*g = (struct glyph){ .ch = '|', .style = { mark->fg, g->style.bg, mark->attr } };
	}
}

#define GROUP_LANE_MAX 256  /* largest number of threads in the lane of a group */

/* Draws the lane of a row from a source: of the row itself, or of its group. */
static void draw_lane(struct app *app, struct screen *s, int y, struct row_id row, enum lane_kind kind,
                      const struct cell_source *source)
{
	struct error err = ERROR_INIT;
	const struct cell_source src = *source;
	const bool shows_cursor = kind == LANE_SELECTED && !app->is_picture;
	int n = app->bounds.cols, cursor = shows_cursor ? view_column(&app->view, app->view.cursor) : -1;
	struct cell *cell = mem_new((size_t)n, sizeof *cell);
	if (cells_row(&src, app->view.t0, app->view.step, n, cell, &err) < 0) {
		screen_text(s, app->label_w + 1, y, n, *part_style(app, PART_ERROR), err.text);
		n = 0;
	}
	if (row.kind == ROW_PROVIDER)
		provider_lane_mark_bounds(app, row.index, cell, n);
	for (int i = 0; i < n; i++) {
		struct glyph g = appearance_glyph(app, cell[i], src.equal_rank);
		screen_put(s, app->label_w + 1 + i, y, g.ch, g.style);
		if (!src.equal_rank && cell[i].form != CELL_EMPTY)
			app->states_shown |= 1U << cell[i].main | 1U << cell[i].other;
	}
	if (kind != LANE_LISTED && !app->appearance.coarse)
		lane_names_draw(app, s, y, row, cell, n);
	if (kind != LANE_LISTED)
		draw_rules(app, s, y, n);
	struct glyph *g = cursor >= 0 && cursor < n ? screen_at(s, app->label_w + 1 + cursor, y) : NULL;
	if (g)
		g->style.attr ^= ATTR_REVERSE;
	free(cell);
}

void rows_draw_lane(struct app *app, struct screen *s, int y, struct row_id row, enum lane_kind kind)
{
	struct cell_source src;
	uint32_t *attrs;
	appearance_cell_source(app, row, &src, &attrs);
	draw_lane(app, s, y, row, kind, &src);
	free(attrs);
}

void rows_draw_group_lane(struct app *app, struct screen *s, int y, const uint32_t *thread, size_t threads)
{
	const struct row_id first = { ROW_THREAD, thread[0] };
	struct cell_source src;
	uint32_t *attrs, *attr = mem_new(threads, sizeof *attr);
	appearance_cell_source(app, first, &src, &attrs);
	src.attr = attr;
	src.attrs = (unsigned)(threads < GROUP_LANE_MAX ? threads : GROUP_LANE_MAX);
	for (size_t i = 0; i < src.attrs; i++)
		attr[i] = app->catalog.thread[thread[i]].status;
	draw_lane(app, s, y, first, LANE_LISTED, &src);
	free(attrs);
	free(attr);
}

int rows_host_cpu(const struct app *app, struct row_id row)
{
	const struct catalog *c = &app->catalog;
	const int64_t thread = row_thread(c, row);
	struct interval iv;
	int cpu = row.kind == ROW_CPU ? (int)row.index : -1;
	if (row_is_pcpu(c, row) || (thread < 0 && cpu < 0))
		return -1;
	uint32_t machine = thread >= 0 ? c->thread[thread].machine : c->cpu[cpu].machine;
	if (thread >= 0) {
		const uint32_t attr = c->thread[thread].cpu;
		if (attr == HISTORY_NONE || history_stab(app->h, attr, app->view.cursor, &iv, NULL) < 0 || iv.value < 0)
			return -1;
		machine = c->machine[machine].kind == MACHINE_CONTAINER ? 0 : machine;
		cpu = catalog_find_cpu(c, machine, (unsigned)iv.value);
	}
	/* vCPUs, from the inner to the outer machine */
	for (uint32_t depth = 0; cpu >= 0 && depth < c->machines && c->machine[machine].kind == MACHINE_VM; depth++) {
		const int32_t parent = c->machine[machine].parent;
		if (parent < 0 || c->cpu[cpu].pcpu == HISTORY_NONE ||
		    history_stab(app->h, c->cpu[cpu].pcpu, app->view.cursor, &iv, NULL) < 0 || iv.value < 0)
			return -1;
		machine = (uint32_t)parent;
		cpu = catalog_find_cpu(c, machine, (unsigned)iv.value);
	}
	return cpu >= 0 && c->machine[machine].kind == MACHINE_HOST ? cpu : -1;
}

/* Draws the lane of the CPU of the host that the selected row had, or waited for, at the cursor ("on CPU0"), or the lane of
 * another CPU of its core ("sibling CPU1"). */
static void draw_host_cpu(struct app *app, struct screen *s, int y, const struct row *row, const char *where, int cpu)
{
	const struct row_id id = { ROW_CPU, (uint32_t)cpu };
	const struct style *style = part_style(app, PART_DIM);
	if (y >= 0 && y < app->h_cells)
		app->line_row[y] = id;
	screen_fill(s, 0, y, app->label_w, ' ', *style);
	screen_printf(s, row->depth * (app->label_w >= 30 ? 2 : 1) + 4, y, app->label_w, *style, "%s CPU%u",
	              where, app->catalog.cpu[cpu].number);
	screen_put(s, app->label_w, y, '|', *part_style(app, PART_LABEL));
	rows_draw_lane(app, s, y, id, LANE_ROW);
}

static void draw_row(struct app *app, struct screen *s, int y, const struct row *row, bool pinned)
{
	if (y >= 0 && y < app->h_cells)
		app->line_row[y] = row->id;
	draw_label(app, s, y, row, pinned);
	rows_draw_lane(app, s, y, row->id, row_same(row->id, app->view.row) ? LANE_SELECTED : LANE_ROW);
}

bool rows_at(const struct app *app, int y, struct row_id *id)
{
	if (y < 0 || y >= app->h_cells || app->line_row[y].kind == ROW_KINDS)
		return false;
	*id = app->line_row[y];
	return true;
}

static int draw_pins(struct app *app, struct screen *s, int y, int height)
{
	int pins = (int)app->pins < height / 2 ? (int)app->pins : height / 2;
	for (int i = 0; i < pins; i++) {
		struct row row = { .id = app->pin[i] };
		draw_row(app, s, y + i, &row, true);
	}
	return pins;
}

/* Finds the ancestors of row `at` (machine; vCPU or group), the outermost first. Returns their number. */
static int find_ancestors(const struct rows *r, size_t at, size_t parent[2])
{
	int depth = at < r->len ? r->row[at].depth : 0;
	for (size_t i = at; i-- > 0 && depth > 0;)
		if (r->row[i].depth < depth && r->row[i].depth < 2)
			parent[depth = r->row[i].depth] = i;
	return at < r->len ? r->row[at].depth < 2 ? r->row[at].depth : 2 : 0;
}

/* Returns the index of the first row to show so that the selected row is visible; after a jump the selected row is
 * centred. */
static size_t first_row_to_show(const struct app *app, size_t at, size_t page)
{
	page = page > 0 ? page : 1;
	size_t top = app->top, len = app->rows.len;
	bool jumped = at + page < top || at >= top + 2 * page;
	if (jumped)
		top = at > page / 2 ? at - page / 2 : 0;
	if (at < top)
		top = at;
	if (at >= top + page)
		top = at - page + 1;
	if (top + page > len)
		top = len > page ? len - page : 0;
	return top;
}

/* Returns the number of the host's CPU rows from row `from` on, and their indices in cpu[] (NULL: none). */
static size_t cpu_rows_from(const struct rows *r, size_t from, size_t *cpu)
{
	size_t n = 0;
	for (size_t i = from; i < r->len; i++)
		if (row_is_pcpu(r->catalog, r->row[i].id)) {
			if (cpu)
				cpu[n] = i;
			n++;
		}
	return n;
}

/* Returns the number of lines below the others for CPU rows of the host that would not be visible: at most a third, and
 * none of a few. */
static int cpu_lines(const struct app *app, size_t at, int height)
{
	int lines = 0;
	while (height >= CPUS_BELOW_MIN && lines < height / 3) {
		const size_t page = (size_t)(height - lines);
		if (cpu_rows_from(&app->rows, first_row_to_show(app, at, page) + page, NULL) <= (size_t)lines)
			break;
		lines++;
	}
	return lines;
}

/* Draws these CPU rows into their lines. */
static void draw_cpus_below(struct app *app, struct screen *s, int y, int lines)
{
	size_t *cpu = mem_new(app->rows.len, sizeof *cpu);
	const size_t n = cpu_rows_from(&app->rows, app->top + (size_t)app->rows_shown, cpu);
	for (size_t i = 0; i < n && i < (size_t)lines; i++) {
		const struct row row = { .id = app->rows.row[cpu[i]].id };
		draw_row(app, s, y + (int)i, &row, true);
	}
	free(cpu);
}

/* Returns the number of ancestors of the selected row that are scrolled off and must be drawn over the first lines.
 * Scrolls further if these would cover the selected row. */
static int count_sticky_ancestors(struct app *app, size_t at, int height, size_t parent[2])
{
	int parents = find_ancestors(&app->rows, at, parent), sticky;
	if (height < parents + 1)
		return 0;
	for (;;) {
		sticky = 0;
		while (sticky < parents && parent[sticky] < app->top + (size_t)sticky)
			sticky++;
		if (at >= app->top + (size_t)sticky || app->top == 0)
			return sticky;
		app->top--;
	}
}

int rows_draw(struct app *app, struct screen *s, int y, int height)
{
	struct rows *r = &app->rows;
	size_t parent[2], at = rows_find_near(r, app->view.row);
	for (int i = 0; i < app->h_cells; i++)
		app->line_row[i].kind = ROW_KINDS;
	if (height == 0)
		return y;
	int pins = draw_pins(app, s, y, height);
	y += pins;
	height -= pins;
	if (at < r->len && rows_scan_done(r))  /* only when the scan is finished: until then the selected row may still
	                                        * appear */
		app->view.row = r->row[at].id;
	const int cpu = height >= HOST_CPU_LINES_MIN ? rows_host_cpu(app, app->view.row) : -1;
	height -= cpu >= 0;
	const int other = cpu >= 0 && height >= HOST_CPU_LINES_MIN ? app->catalog.cpu[cpu].sibling : -1;
	const int sibling = other != cpu ? other : -1;
	height -= sibling >= 0;
	const int cpus = cpu_lines(app, at, height);
	height -= cpus;
	app->rows_shown = height;
	app->top = first_row_to_show(app, at, (size_t)height);
	int sticky = count_sticky_ancestors(app, at, height, parent);
	for (int i = 0; i < height && app->top + (size_t)i < r->len; i++, y++) {
		const struct row *row = &r->row[i < sticky ? parent[i] : app->top + (size_t)i];
		draw_row(app, s, y, row, false);
		if (cpu >= 0 && row_same(row->id, app->view.row))
			draw_host_cpu(app, s, ++y, row, "on", cpu);
		if (sibling >= 0 && row_same(row->id, app->view.row))
			draw_host_cpu(app, s, ++y, row, "sibling", sibling);
	}
	draw_cpus_below(app, s, y, cpus);
	return y + cpus;
}
