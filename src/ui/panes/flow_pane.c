/* The flow pane: who ran while the chosen thread wanted to, as a tree system > thread with bars over the window.
 *
 * The window is A..B when both markers are set, else what the screen shows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "ui/core/follow_cause.h"
#include "ui/panes/pane.h"
#include "ui/panes/pane_export.h"

#define WHOLE UINT32_MAX  /* flow_line.entry of the line of a system */
#define LANES 64          /* lines whose bars are kept */

struct flow_pane {
	struct pane pane;
	uint32_t thread;
	struct flow flow;
	struct flow_line {
		int32_t system;
		uint32_t entry;    /* index into flow.entry; WHOLE: the line of the system */
		int64_t duration;  /* ns */
	} *line;
	size_t lines_cap;
	struct cell *lane;     /* bars: lane_cols cells for each line from lane_top on, or NULL */
	size_t lane_top;
	int lane_cols;
	int64_t lane_from, lane_step;  /* of the window that they were made for */
};

static void forget(struct pane *pane)
{
	struct flow_pane *p = (struct flow_pane *)pane;
	flow_release(&p->flow);
	free(p->line);
	free(p->lane);
	*p = (struct flow_pane){ .pane = p->pane, .thread = p->thread };
}

/* Shares that would read 0.0 % are counted, not shown. */
static bool is_small(const struct flow *f, int64_t duration)
{
	return (double)duration < 0.0005 * (double)(f->end - f->start + 1);
}

/* Lines: systems by their sums, beneath each its entries, longest first (as the flow has them). */
static void make_lines(struct flow_pane *p)
{
	const struct flow *f = &p->flow;
	p->pane.lines = 0;
	for (size_t i = 0; i < f->entries; i++) {
		size_t k = 0;
		while (k < p->pane.lines && p->line[k].system != f->entry[i].who.system)
			k++;
		if (k == p->pane.lines)
			*ARRAY_PUSH(p->line, p->pane.lines, p->lines_cap) = (struct flow_line){ f->entry[i].who.system, WHOLE, 0 };
		p->line[k].duration += f->entry[i].duration;
	}
	size_t systems = p->pane.lines;
	for (size_t i = 1; i < systems; i++)
		for (size_t k = i; k > 0 && p->line[k].duration > p->line[k - 1].duration; k--) {
			struct flow_line swap = p->line[k];
			p->line[k] = p->line[k - 1];
			p->line[k - 1] = swap;
		}
	for (size_t s = 0; s < systems; s++) {
		struct flow_line head = p->line[s];
		*ARRAY_PUSH(p->line, p->pane.lines, p->lines_cap) = head;
		for (size_t i = 0; i < f->entries; i++)
			if (f->entry[i].who.system == head.system && !is_small(f, f->entry[i].duration))
				*ARRAY_PUSH(p->line, p->pane.lines, p->lines_cap) =
					(struct flow_line){ head.system, (uint32_t)i, f->entry[i].duration };
	}
	p->pane.lines -= systems;
	memmove(p->line, p->line + systems, p->pane.lines * sizeof *p->line);
}

#define FIGURES 17  /* columns of the duration and the share */
#define NAME_LEAST 26
#define LANE_LEAST 10

/* Of a line: the width of its name, and of its bar; where there is no room for a bar the name has the rest. */
static int name_columns(int w)
{
	if (w < NAME_LEAST + FIGURES + 1 + LANE_LEAST)
		return w - FIGURES;
	return w * 3 / 10 < NAME_LEAST ? NAME_LEAST : w * 3 / 10 > 44 ? 44 : w * 3 / 10;
}

static int lane_columns(int w)
{
	int cols = w - name_columns(w) - FIGURES - 1;
	return cols >= LANE_LEAST ? cols : 0;
}

/* Its bars stand beneath those of the rows: one axis for both. */
static int wide(int w)
{
	return lane_columns(w) ? name_columns(w) + FIGURES : pane_label_w(w);
}

static void question(const struct app *app, const struct pane *pane, struct question *q)
{
	q->subject = (struct subject){ SUBJECT_THREAD, ((const struct flow_pane *)pane)->thread };
	q->columns = (unsigned)lane_columns(app->w) * flow_text_columns(0);  /* exact for both */
	pane_window(app, &q->from, &q->to);
}

static void take(struct app *app, struct pane *pane, struct answer *answer)
{
	struct flow_pane *p = (struct flow_pane *)pane;
	(void)app;
	p->flow = answer->flow;
	make_lines(p);
}

/* The thread that serves a request at the cursor. */
bool request_thread(struct app *app, struct row_id row, uint32_t *thread)
{
	uint32_t attr = history_child_named(app->h, app->rows.request[row.index].node, request_schema[REQUEST_THREAD].name);
	struct interval tid = { .value = HISTORY_NULL };
	int found = -1;
	if (attr != HISTORY_NONE && history_stab(app->h, attr, app->view.cursor, &tid, NULL) == 0 && tid.value > 0 &&
	    tid.value <= INT32_MAX)
		found = topo_find_thread(&app->topo, row_machine(&app->rows, row), (int32_t)tid.value);
	*thread = (uint32_t)found;
	if (found < 0)
		app_say(app, "the request is not served at the cursor: choose a moment within it");
	return found >= 0;
}

/* The thread whose flow a row stands for: a thread itself, or what runs on a CPU at the cursor. */
static bool thread_of_row(struct app *app, uint32_t *thread)
{
	struct row_id row = app->view.row;
	char title[256];
	if (row_thread(&app->topo, row) >= 0) {
		*thread = (uint32_t)row_thread(&app->topo, row);
		return true;
	}
	if (row.kind == ROW_REQUEST)
		return request_thread(app, row, thread);
	if (row.kind != ROW_CPU) {
		app_say(app, "choose a thread, or a CPU: its current thread is taken");
		return false;
	}
	const struct topo_cpu *cpu = &app->topo.cpu[row.index];
	struct interval iv = { .value = HISTORY_NULL };
	struct error err = ERROR_INIT;
	if (cpu->current != HISTORY_NONE && history_stab(app->h, cpu->current, app->view.cursor, &iv, &err) < 0) {
		app_fail(app, &err);
		return false;
	}
	int t = iv.value > 0 && iv.value <= INT32_MAX ? topo_find_thread(&app->topo, cpu->machine, (int32_t)iv.value) : -1;
	if (t < 0) {
		app_say(app, "no thread is on %s here: choose another moment or a thread",
		        row_title(&app->rows, row, title, sizeof title));
		return false;
	}
	*thread = (uint32_t)t;
	return true;
}

static bool begin(struct app *app, struct pane *pane)
{
	struct flow_pane *p = (struct flow_pane *)pane;
	uint32_t thread;
	if (!thread_of_row(app, &thread))
		return false;
	forget(pane);
	p->thread = thread;
	pane->valid = false;
	pane->lines = pane->top = 0;
	return true;
}

static int vis_of_kind(uint8_t kind)
{
	static const uint8_t vis[FLOW_KIND_COUNT] = {
		[FLOW_RUNNING] = VIS_RUNNING, [FLOW_PREEMPTING] = VIS_PREEMPTED, [FLOW_HYPERVISOR] = VIS_VMM,
		[FLOW_IRQ] = VIS_WAKING, [FLOW_WAITING] = VIS_BLOCKED, [FLOW_IDLE_CPU] = VIS_HOST_BLOCKED,
		[FLOW_LIMITED] = VIS_HOST_BLOCKED, [FLOW_UNKNOWN] = VIS_UNKNOWN,
	};
	return kind < FLOW_KIND_COUNT ? vis[kind] : (int)VIS_UNKNOWN;
}

/* The lanes of an entry among those that are drawn: a lane for each kind of each line, the line of its own and that of
 * its system. */
static void lanes_of_entries(const struct flow_pane *p, size_t n, uint32_t *own, uint32_t *whole)
{
	const struct flow *f = &p->flow;
	for (size_t i = 0; i < f->entries; i++)
		own[i] = whole[i] = UINT32_MAX;
	for (size_t l = 0; l < n; l++) {
		const struct flow_line *line = &p->line[p->lane_top + l];
		const uint32_t lane = (uint32_t)l * FLOW_KIND_COUNT;
		if (line->entry != WHOLE)
			own[line->entry] = lane + f->entry[line->entry].who.kind;
		for (size_t i = 0; line->entry == WHOLE && i < f->entries; i++)
			if (f->entry[i].who.system == line->system)
				whole[i] = lane + f->entry[i].who.kind;
	}
}

/* Adds what the flow's cells hold to the columns of the screen, lane[lane_of[entry] * cols ...].  A cell of the flow is
 * much shorter than a column; one that lies in two of them is shared out by time.  Where it is not (A..B is much longer
 * than the window) nobody knows where in it who ran: nothing is drawn. */
static void paint(const struct app *app, const struct flow *f, const uint32_t *lane_of, int cols, int64_t *lane)
{
	const struct view *v = &app->view;
	for (size_t i = 0; i < f->cells; i++) {
		const struct flow_cell *c = &f->cell[i];
		int64_t from = flow_column(f->start, f->end, c->column, f->columns);
		int64_t to = flow_column(f->start, f->end, c->column + 1, f->columns) - 1, left = c->ns;
		int last = to - from < v->step ? view_column(v, to) : INT32_MIN;
		for (int x = view_column(v, from); x <= last && lane_of[c->entry] != UINT32_MAX; x++) {
			int64_t end = v->t0 + (x + 1) * v->step - 1, begin = x * v->step + v->t0;
			int64_t here = (end < to ? end : to) - (begin > from ? begin : from) + 1;
			int64_t part = x == last ? left : (int64_t)((double)c->ns * (double)here / (double)(to - from + 1));
			left -= part;
			if (x >= 0 && x < cols)
				lane[(size_t)lane_of[c->entry] * (size_t)cols + (size_t)x] += part;
		}
	}
}

/* The bars of the lines on the screen; what a line does not hold is VIS_NONE, and what it holds stands from the bottom,
 * whatever it is. */
static void make_lanes(const struct app *app, struct flow_pane *p, int columns)
{
	static const uint8_t stands[HISTORY_STATES] = { [VIS_UNKNOWN] = SUFFERS, [VIS_BLOCKED] = SUFFERS,
		[VIS_RUNNING] = SUFFERS, [VIS_VMM] = SUFFERS, [VIS_WAKING] = SUFFERS, [VIS_HOST_BLOCKED] = SUFFERS,
		[VIS_PREEMPTED] = SUFFERS };
	const struct flow *f = &p->flow;
	size_t lines = p->pane.lines - p->lane_top < LANES ? p->pane.lines - p->lane_top : LANES, cols = (size_t)columns;
	int64_t *ns = mem_new(lines * FLOW_KIND_COUNT * cols, sizeof *ns);
	uint32_t *own = mem_new(f->entries, sizeof *own), *whole = mem_new(f->entries, sizeof *whole);
	lanes_of_entries(p, lines, own, whole);
	paint(app, f, own, columns, ns);
	paint(app, f, whole, columns, ns);
	p->lane = mem_new(lines * cols, sizeof *p->lane);
	p->lane_cols = columns;
	p->lane_from = app->view.t0;
	p->lane_step = app->view.step;
	for (size_t i = 0; i < lines * cols; i++) {
		int64_t sum[HISTORY_STATES] = { 0 }, held = 0;
		for (uint8_t k = 0; k < FLOW_KIND_COUNT; k++) {
			int64_t part = ns[(i / cols * FLOW_KIND_COUNT + k) * cols + i % cols];
			sum[vis_of_kind(k)] += part;
			held += part;
		}
		sum[VIS_NONE] = p->lane_step > held ? p->lane_step - held : 0;
		p->lane[i] = cell_of_sums(sum, stands, false);
	}
	free(ns);
	free(own);
	free(whole);
}

static void draw_lane(struct app *app, struct flow_pane *p, struct screen *s, int x, int y, int cols, size_t line)
{
	bool moved = p->lane_from != app->view.t0 || p->lane_step != app->view.step;
	if (p->lane_cols != cols || moved || line < p->lane_top || line >= p->lane_top + LANES) {
		free(p->lane);
		p->lane_top = line;
		make_lanes(app, p, cols);
	}
	screen_put(s, x - 1, y, '|', app->look.palette.part[PART_LABEL]);
	for (int c = 0; c < cols; c++) {
		struct glyph g = look_glyph(app, p->lane[(line - p->lane_top) * (size_t)cols + (size_t)c], false);
		screen_put(s, x + c, y, g.ch, g.style);
	}
}

static void line_text(const struct app *app, const struct flow *f, const struct flow_line *line, char *buf, size_t size)
{
	char party[256];
	if (line->entry == WHOLE) {
		if (line->system < 0)
			snprintf(buf, size, "nobody");
		else
			text_escape(buf, size, app->topo.machine[line->system].name);
		return;
	}
	const struct flow_entry *e = &f->entry[line->entry];
	party_text(&app->topo, &e->who, e->who.name < f->names ? f->name[e->who.name] : NULL, party, sizeof party);
	/* The system's name stands on the line above. */
	char system[256];
	size_t n = strlen(text_escape(system, sizeof system, e->who.system < 0 ? "" : app->topo.machine[e->who.system].name));
	bool again = n > 0 && strncmp(party, system, n) == 0 && (party[n] == '/' || party[n] == ' ');
	char *inner = n > 0 ? strstr(party, " for ") : NULL;  /* "hypervisor for Debian/151 fibonacci" */
	if (!again && inner && strncmp(inner + 5, system, n) == 0 && inner[5 + n] == '/')
		memmove(inner + 5, inner + 6 + n, strlen(inner + 6 + n) + 1);
	snprintf(buf, size, "  %s", again ? party + n + 1 : party);
}

static void draw_line(struct app *app, struct pane *pane, struct screen *s, int y, size_t index, bool selected)
{
	struct flow_pane *p = (struct flow_pane *)pane;
	const struct flow_line *line = &p->line[index];
	const struct flow *f = &p->flow;
	struct style style = pane_style(app, line->entry == WHOLE ? PART_TITLE : PART_NORMAL, selected);
	char text[320], d[TIME_TEXT], part[16];
	int name_w = name_columns(s->w), cols = lane_columns(s->w);
	double share = (double)line->duration / (double)(f->end - f->start + 1);
	line_text(app, f, line, text, sizeof text);
	screen_text(s, 1, y, name_w - 1, style, text);
	screen_printf(s, name_w + 1, y, s->w - name_w, style, "%8s %6s", time_duration(d, line->duration),
	              text_share(part, share));
	if (cols > 0)
		draw_lane(app, p, s, app->label_w + 1, y, cols, index);
}

static void name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	struct subject subject = { SUBJECT_THREAD, ((const struct flow_pane *)pane)->thread };
	char text[256];
	snprintf(buf, size, "flow of %s", topo_subject_text(&app->topo, &subject, text, sizeof text));
}

static void title(const struct app *app, const struct pane *pane, int w, char *buf, size_t size)
{
	const struct flow_pane *p = (const struct flow_pane *)pane;
	int64_t a, b;
	bool markers = pane_window(app, &a, &b);
	char thread[320], head[512], d[TIME_TEXT], from[TIME_TEXT], rest[64] = "";
	size_t small = 0;
	for (size_t i = 0; i < p->flow.entries; i++)
		small += is_small(&p->flow, p->flow.entry[i].duration);
	if (small)
		snprintf(rest, sizeof rest, ", %zu below 0.05 %%", small);
	name(app, pane, thread, sizeof thread);
	snprintf(head, sizeof head, " %s %s %s + %s, %zu entr%s", thread, markers ? "A..B" : "from",
	         ruler_time(from, &app->axis, p->flow.start, app->view.step),
	         time_duration(d, p->flow.end - p->flow.start + 1), p->flow.entries, p->flow.entries == 1 ? "y" : "ies");
	bool fits = text_width(head) + (int)strlen(rest) + 4 <= w;
	snprintf(buf, size, "%s%s ", head, fits ? rest : "");
}

static void file_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	struct subject subject = { SUBJECT_THREAD, ((const struct flow_pane *)pane)->thread };
	char text[256];
	snprintf(buf, size, "flow-%s", topo_subject_text(&app->topo, &subject, text, sizeof text));
}

static int write_to(struct app *app, struct pane *pane, FILE *f, enum report_format format, struct error *err)
{
	const struct flow_pane *p = (const struct flow_pane *)pane;
	struct subject subject = { SUBJECT_THREAD, p->thread };
	const struct flow_text text = { .intervals = format == FORMAT_TEXT };
	struct origin o;
	export_origin(app, pane, &subject, &o);
	int rc = report_flow(f, REPORT_WHOLE(format), &app->topo, &subject, &p->flow, &text, &o, err);
	origin_release(&o);
	return rc;
}

/* To whose row the line is about. */
static void go(struct app *app, struct pane *pane, size_t i)
{
	const struct flow_pane *p = (const struct flow_pane *)pane;
	const struct flow_line *line = &p->line[i];
	const struct party machine = { .system = line->system, .tid = -1, .kind = FLOW_RUNNING };
	const struct party *who = line->entry == WHOLE ? &machine : &p->flow.entry[line->entry].who;
	follow_party(app, who, line->entry != WHOLE && who->name < p->flow.names ? p->flow.name[who->name] : NULL);
}

static void carry(struct app *app, struct pane *pane, const struct rows *was, const struct rows *is)
{
	struct flow_pane *p = (struct flow_pane *)pane;
	(void)app;
	if (p->thread < was->topo->threads)
		p->thread = row_again(was, is, (struct row_id){ ROW_THREAD, p->thread }).index;
}

const struct pane_ops flow_pane = {
	.size = sizeof(struct flow_pane), .open = begin, .ask = ASK_FLOW, .question = question,
	.answer = take, .name = name, .title = title, .wide = wide, .line = draw_line, .file = file_name, .export = write_to,
	.go = go, .carry = carry, .forget = forget,
};
