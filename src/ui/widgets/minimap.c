/* One line of the whole trace: how much of the time vCPUs waited to run, and where the window is.  Not of the time in
 * which they wanted to: of a guest that idles every microsecond would be a large share of that.
 *
 * The sums of all vCPUs that a host was seen to run, or of the threads where there are none, are added up in steps beside
 * the keys, once for each width of the screen.  A bar as high as the line is the largest share of the trace. */
#include "ui/widgets/widgets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/clock.h"
#include "base/text.h"

#define MAPPED_H 12  /* lines of the smallest screen that has room for it */

struct minimap {
	int cols;                /* that the sums are of; 0 = none yet */
	uint32_t next, rows;     /* subjects: the next to be added, all */
	int64_t *edge;           /* cols + 1 of them */
	int64_t *known, *lost;   /* ns per column: in whatever state, and waiting */
};

void minimap_init(struct app *app)
{
	app->minimap = mem_new(1, sizeof *app->minimap);
}

void minimap_forget(struct app *app)
{
	struct minimap *m = app->minimap;
	free(m->edge);
	free(m->known);
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
	const struct ground *g = &app->ground;
	double part = ((double)column + 0.5) / (double)g->cols;
	return g->begin + (int64_t)(part * (double)(g->end - g->begin));
}

int minimap_line(const struct app *app)
{
	return app->h_cells < MAPPED_H && !app->still ? -1 : 1;
}

/* Is it a vCPU whose waits are known? */
static bool is_watched(const struct topo_cpu *c)
{
	return c->status != HISTORY_NONE && c->host >= 0;
}

static bool by_vcpu(const struct app *app)
{
	for (uint32_t c = 0; c < app->topo.cpus; c++)
		if (is_watched(&app->topo.cpu[c]))
			return true;
	return false;
}

static void begin(struct app *app)
{
	struct minimap *m = app->minimap;
	size_t cols = (size_t)app->ground.cols;
	minimap_forget(app);
	m->cols = app->ground.cols;
	m->rows = by_vcpu(app) ? app->topo.cpus : app->topo.threads;
	m->edge = mem_new(cols + 1, sizeof *m->edge);
	m->known = mem_new(cols, sizeof *m->known);
	m->lost = mem_new(cols, sizeof *m->lost);
	double span = (double)(app->ground.end - app->ground.begin) + 1;
	for (size_t i = 0; i < cols; i++)
		m->edge[i] = app->ground.begin + (int64_t)(span * (double)i / (double)cols);
	m->edge[cols] = app->ground.end + 1;
}

static void add_to(int64_t *sum, int64_t ns)
{
	if (__builtin_add_overflow(*sum, ns, sum))
		*sum = INT64_MAX;
}

static void add(struct app *app, uint32_t row, int64_t (*sums)[HISTORY_STATES])
{
	struct minimap *m = app->minimap;
	bool vcpu = by_vcpu(app);
	uint32_t attr = vcpu ? app->topo.cpu[row].status : app->topo.thread[row].status;
	const struct vocabulary *v = vcpu ? &app->look.vcpu : &app->look.thread;
	if (vcpu && !is_watched(&app->topo.cpu[row]))
		return;
	if (attr == HISTORY_NONE || history_sums_cells(app->h, attr, m->edge, (unsigned)m->cols, sums, NULL) < 0)
		return;
	for (int c = 0; c < m->cols; c++)
		for (int s = 0; s < HISTORY_STATES - 1; s++) {
			if (sums[c][s] <= 0 || v->code[s] == VIS_UNKNOWN)
				continue;
			add_to(&m->known[c], sums[c][s]);
			if (v->severity[v->code[s]] >= SUFFERS)
				add_to(&m->lost[c], sums[c][s]);
		}
}

bool minimap_work(struct app *app, int64_t budget_ns, bool *changed)
{
	struct minimap *m = app->minimap;
	int64_t until = now_ns() + budget_ns;
	if (m->cols != app->ground.cols)
		begin(app);
	if (m->next == m->rows)
		return false;
	int64_t (*sums)[HISTORY_STATES] = mem_new((size_t)m->cols, sizeof *sums);
	for (bool first = true; m->next < m->rows && (first || now_ns() < until); first = false)
		add(app, m->next++, sums);
	free(sums);
	*changed |= m->next == m->rows;
	return m->next < m->rows;
}

static double share(const struct minimap *m, int c)
{
	return m->known[c] > 0 ? (double)m->lost[c] / (double)m->known[c] : 0;
}

/* The columns of the window. */
static void window(const struct app *app, int *from, int *to)
{
	const struct ground *g = &app->ground;
	double span = (double)(g->end - g->begin) + 1;
	*from = (int)((double)(app->view.t0 - g->begin) / span * g->cols);
	*to = (int)((double)(view_last(&app->view, g) - g->begin) / span * g->cols);
	*to = *to >= g->cols ? g->cols - 1 : *to;
}

/* What the lane is, in the most words that go into w columns whole; most < 0: it is still being read. */
static const char *lane_label(int w, double most, char *buf, size_t size)
{
	static const char *const heads[] = { "the whole trace: ", "trace: ", "" };
	char what[32] = "reading";
	if (most >= 0)
		snprintf(what, sizeof what, "waits to %.*f%%", most < 0.0995 ? 1 : 0, 100 * most);
	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		snprintf(buf, size, "%s%s", heads[i], what);
		if (text_width(buf) <= w)
			break;
	}
	return buf;
}

void minimap_draw(struct app *app, struct screen *s, int y)
{
	const struct minimap *m = app->minimap;
	const struct palette *p = &app->look.palette;
	struct style label = p->part[PART_DIM], lane = p->part[PART_STEAL], marked = p->part[PART_MARK];
	int x = app->label_w + 1, from, to;
	bool ready = m->cols == app->ground.cols && m->next == m->rows;
	double most = 0;
	for (int c = 0; ready && c < m->cols; c++)
		most = share(m, c) > most ? share(m, c) : most;
	window(app, &from, &to);
	screen_fill(s, 0, y, s->w, ' ', label);
	char text[64];
	screen_text(s, 1, y, app->label_w - 1, label, lane_label(app->label_w - 1, ready ? most : -1, text, sizeof text));
	bool whole = from == 0 && to == app->ground.cols - 1;
	uint16_t reverse = p->depth == DEPTH_MONO ? ATTR_REVERSE : 0;
	for (int c = 0; c < app->ground.cols; c++) {
		bool inside = !whole && c >= from && c <= to;
		uint32_t ch = ready ? look_bar(app, most > 0 ? share(m, c) / most : 0) : ' ';
		bool edge = inside && (c == from || c == to) && (ch == ' ' || app->look.tier != TIER_BLOCKS);
		if (edge)
			ch = (uint32_t)(from == to ? 'H' : c == from ? '[' : ']');
		screen_put(s, x + c, y, ch, inside ? (struct style){ lane.fg, marked.bg, lane.attr | reverse } : lane);
	}
}
