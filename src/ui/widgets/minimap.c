/* The map of the whole trace in one line: for each column the share of the time wanted that vCPUs lost, as in the rows, and
 * the window's position. Less than FLOOR of the column counts as that much wanted time: otherwise each microsecond of
 * an idle guest would be a large share.
 *
 * The sums of all vCPUs whose stolen time is known (of all threads, if there are none) are computed in steps between
 * keys, once for each screen width. A bar of full height is 100 %. */
#include "base/base.h"
#include "ui/widgets/widgets.h"

#include "ui/widgets/verdict_line.h"

#define FLOOR 0.1            /* smallest share of a column that counts as wanted */
#define SCREEN_LINES_MIN 12  /* smallest height of a screen that shows the map, lines */

struct minimap {
	int cols;                /* columns of the sums; 0: not computed */
	uint32_t next, rows;     /* rows: number of vCPUs or threads; next: index of the next one to be added */
	int64_t *edge;           /* each column's start, ns, and the end of the last one: cols + 1 entries */
	int64_t *ran, *lost;     /* sums per column, ns */
};

void minimap_init(struct app *app)
{
	app->minimap = mem_new(1, sizeof *app->minimap);
}

void minimap_forget(struct app *app)
{
	struct minimap *m = app->minimap;
	free(m->edge);
	free(m->ran);
	free(m->lost);
	*m = (struct minimap){ 0 };
}

void minimap_release(struct app *app)
{
	minimap_forget(app);
	free(app->minimap);
}

int64_t minimap_time(const struct app *app, int column)
{
	const struct view_bounds *g = &app->bounds;
	double part = ((double)column + 0.5) / (double)g->cols;
	return g->begin + (int64_t)(part * (double)(g->end - g->begin));
}

int minimap_line(const struct app *app)
{
	return app->h_cells < SCREEN_LINES_MIN && !app->is_picture ? -1 : 1 + verdict_line_height(app);
}

/* Returns true if the stolen time of this vCPU is known, from the host's trace or the guest's steal clock. */
static bool shows_stolen_time(const struct app *app, const struct catalog_cpu *c)
{
	return c->status != HISTORY_NONE && !app->catalog.machine[c->machine].hides_stolen_time;
}

static bool by_vcpu(const struct app *app)
{
	for (uint32_t c = 0; c < app->catalog.cpus; c++)
		if (shows_stolen_time(app, &app->catalog.cpu[c]))
			return true;
	return false;
}

static void reset_sums(struct app *app)
{
	struct minimap *m = app->minimap;
	size_t cols = (size_t)app->bounds.cols;
	minimap_forget(app);
	m->cols = app->bounds.cols;
	m->rows = by_vcpu(app) ? app->catalog.cpus : app->catalog.threads;
	m->edge = mem_new(cols + 1, sizeof *m->edge);
	m->ran = mem_new(cols, sizeof *m->ran);
	m->lost = mem_new(cols, sizeof *m->lost);
	double duration = (double)(app->bounds.end - app->bounds.begin) + 1;
	for (size_t i = 0; i < cols; i++)
		m->edge[i] = app->bounds.begin + (int64_t)(duration * (double)i / (double)cols);
	m->edge[cols] = app->bounds.end + 1;
}

static void add_row(struct app *app, uint32_t row)
{
	struct minimap *m = app->minimap;
	const bool vcpu = by_vcpu(app);
	const struct target target = { vcpu ? TARGET_CPU : TARGET_THREAD, row };
	if (vcpu ? shows_stolen_time(app, &app->catalog.cpu[row]) : !app->catalog.thread[row].in_container)
		demand_cells(&app->catalog, &target, m->edge, (unsigned)m->cols, m->ran, m->lost, NULL);
}

bool minimap_work(struct app *app, int64_t budget_ns, bool *changed)
{
	struct minimap *m = app->minimap;
	int64_t until = now_ns() + budget_ns;
	if (m->cols != app->bounds.cols)
		reset_sums(app);
	if (m->next == m->rows)
		return false;
	for (bool first = true; m->next < m->rows && (first || now_ns() < until); first = false)
		add_row(app, m->next++);
	*changed |= m->next == m->rows;
	return m->next < m->rows;
}

static double share_of(const struct minimap *m, int c)
{
	const double wanted = (double)m->ran[c] + (double)m->lost[c], floor = FLOOR * (double)(m->edge[c + 1] - m->edge[c]);
	return wanted > 0 ? (double)m->lost[c] / (wanted > floor ? wanted : floor) : 0;
}

/* Computes the first and last column that the window covers. */
static void window_columns(const struct app *app, int *from, int *to)
{
	const struct view_bounds *g = &app->bounds;
	double duration = (double)(g->end - g->begin) + 1;
	*from = (int)((double)(app->view.t0 - g->begin) / duration * g->cols);
	*to = (int)((double)(view_last(&app->view, g) - g->begin) / duration * g->cols);
	*to = *to >= g->cols ? g->cols - 1 : *to;
}

/* Returns the longest label that fits into w columns. largest: largest share; < 0: not yet computed. */
static const char *share_label(int w, double largest, bool is_unknown, char *buf, size_t size)
{
	static const char *const heads[] = { "whole trace, ", "trace, ", "" };
	char share_text[32] = "reading";
	if (is_unknown)
		snprintf(share_text, sizeof share_text, "lost: unknown");
	else if (largest >= 0)
		snprintf(share_text, sizeof share_text, "lost, peak %.*f%%", largest < 0.0995 ? 1 : 0, 100 * largest);
	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		snprintf(buf, size, "%s%s", heads[i], share_text);
		if (text_width(buf) <= w)
			break;
	}
	return buf;
}

void minimap_draw(struct app *app, struct screen *s, int y)
{
	const struct minimap *m = app->minimap;
	const struct palette *p = &app->appearance.palette;
	struct style label = p->part[PART_DIM], lane = p->part[PART_STEAL], marked = p->part[PART_MARK];
	int x = app->label_w + 1, from, to;
	const bool is_unknown = verdict_line_is_nothing(app);
	bool ready = m->cols == app->bounds.cols && m->next == m->rows && !is_unknown;
	double largest = 0;
	for (int c = 0; ready && c < m->cols; c++)
		largest = share_of(m, c) > largest ? share_of(m, c) : largest;
	window_columns(app, &from, &to);
	screen_fill(s, 0, y, s->w, ' ', label);
	char text[64];
	screen_text(s, 1, y, app->label_w - 1, label,
	            share_label(app->label_w - 1, ready ? largest : -1, is_unknown, text, sizeof text));
	bool shows_all = from == 0 && to == app->bounds.cols - 1;
	uint16_t reverse = p->depth == DEPTH_MONO ? ATTR_REVERSE : 0;
	for (int c = 0; c < app->bounds.cols; c++) {
		bool inside = !shows_all && c >= from && c <= to;
		uint32_t ch = ready ? appearance_bar(app, share_of(m, c)) : ' ';
		bool edge = inside && (c == from || c == to) && (ch == ' ' || app->appearance.tier != TIER_BLOCKS);
		if (edge)
			ch = (uint32_t)(from == to ? 'H' : c == from ? '[' : ']');
		screen_put(s, x + c, y, ch, inside ? (struct style){ lane.fg, marked.bg, lane.attr | reverse } : lane);
	}
}
