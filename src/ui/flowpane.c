/* The flow pane: who ran while the chosen thread wanted to, as a tree system > thread with bars over the window.
 *
 * The window is A..B when both markers are set, else what the screen shows.  The pane is computed again when that
 * changes; if that took long, only once the keys rest. */
#include "ui/app.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"

#define WHOLE UINT32_MAX  /* flow_line.entry of the line of a system */
#define LANES 64          /* lines whose bars are kept */

/* Drops what was computed. */
static void forget(struct flow_pane *p)
{
	if (p->valid)
		flow_release(&p->flow);
	free(p->line);
	free(p->entry_of);
	free(p->lane);
	p->line = NULL;
	p->entry_of = NULL;
	p->lane = NULL;
	p->lines = p->lines_cap = 0;
	p->lane_cols = 0;
	p->valid = false;
}

void flow_pane_release(struct flow_pane *p)
{
	forget(p);
	*p = (struct flow_pane){ .thread = p->thread, .cost = p->cost };
}

static uint64_t party_key(int32_t system, int32_t tid, uint32_t name, uint8_t kind)
{
	uint64_t k = (uint64_t)(uint32_t)system << 32 | (uint32_t)tid;
	k = (k ^ k >> 29) * UINT64_C(0x9e3779b97f4a7c15);
	return (k ^ k >> 32) + ((uint64_t)name << 8 | kind);
}

/* Which entry each interval belongs to. */
static void index_entries(struct flow_pane *p)
{
	const struct flow *f = &p->flow;
	struct map at = MAP_INIT;
	p->entry_of = mem_new(f->intervals, sizeof *p->entry_of);
	for (size_t i = 0; i < f->entries; i++)
		*map_put(&at, party_key(f->entry[i].system, f->entry[i].tid, f->entry[i].name, f->entry[i].kind), NULL) = i;
	for (size_t i = 0; i < f->intervals; i++) {
		const struct flow_interval *iv = &f->interval[i];
		uint64_t *entry = map_find(&at, party_key(iv->system, iv->tid, iv->name, iv->kind));
		p->entry_of[i] = entry ? (uint32_t)*entry : 0;
	}
	map_release(&at);
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
	p->lines = 0;
	for (size_t i = 0; i < f->entries; i++) {
		size_t k = 0;
		while (k < p->lines && p->line[k].system != f->entry[i].system)
			k++;
		if (k == p->lines)
			*ARRAY_PUSH(p->line, p->lines, p->lines_cap) = (struct flow_line){ f->entry[i].system, WHOLE, 0 };
		p->line[k].duration += f->entry[i].duration;
	}
	size_t systems = p->lines;
	for (size_t i = 1; i < systems; i++)
		for (size_t k = i; k > 0 && p->line[k].duration > p->line[k - 1].duration; k--) {
			struct flow_line swap = p->line[k];
			p->line[k] = p->line[k - 1];
			p->line[k - 1] = swap;
		}
	for (size_t s = 0; s < systems; s++) {
		struct flow_line head = p->line[s];
		*ARRAY_PUSH(p->line, p->lines, p->lines_cap) = head;
		for (size_t i = 0; i < f->entries; i++)
			if (f->entry[i].system == head.system && !is_small(f, f->entry[i].duration))
				*ARRAY_PUSH(p->line, p->lines, p->lines_cap) =
					(struct flow_line){ head.system, (uint32_t)i, f->entry[i].duration };
	}
	p->lines -= systems;
	memmove(p->line, p->line + systems, p->lines * sizeof *p->line);
}

static void pane_window(const struct app *app, int64_t *from, int64_t *to)
{
	const struct view *v = &app->view;
	if (v->a != VIEW_NONE && v->b != VIEW_NONE && v->a != v->b) {
		*from = v->a < v->b ? v->a : v->b;
		*to = v->a < v->b ? v->b : v->a;
	} else {
		*from = v->t0;
		*to = view_last(v, &app->ground);
	}
}

static void ask(struct app *app)
{
	struct flow_pane *p = &app->flow;
	struct question q = { .subject = { SUBJECT_THREAD, p->thread } };
	pane_window(app, &q.from, &q.to);
	p->stale = false;
	if (p->valid && !p->asked && p->from == q.from && p->to == q.to)
		return;
	p->from = q.from;
	p->to = q.to;
	p->asked = true;
	asker_ask(app->asker, ASK_FLOW, &q);
}

static void take(struct app *app)
{
	struct flow_pane *p = &app->flow;
	struct answer answer;
	if (!p->asked || !app_answer(app, ASK_FLOW, &answer))
		return;
	p->asked = false;
	p->cost = answer.cost;
	forget(p);
	if (answer.status < 0) {
		app_fail(app, &answer.err);
		if (p->opening)
			app->pane = PANE_NONE;
	} else {
		p->flow = answer.flow;
		p->cut = answer.cut;
		p->valid = true;
		index_entries(p);
		make_lines(p);
	}
	p->opening = false;
}

void flow_pane_refresh(struct app *app)
{
	if (app->flow.stale && !(app->coarse && app->flow.cost > 5000000))
		ask(app);
	take(app);
}

/* The thread that serves a request at the cursor. */
static bool thread_of_request(struct app *app, struct row_id row, uint32_t *thread)
{
	uint32_t attr = history_child_named(app->h, app->rows.request[row.index].node, "Thread");
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
		return thread_of_request(app, row, thread);
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

bool flow_pane_open(struct app *app)
{
	uint32_t thread;
	if (!thread_of_row(app, &thread))
		return false;
	app_cancel(app);
	flow_pane_release(&app->flow);
	app->flow.thread = thread;
	app->flow.opening = true;
	app->pane = PANE_FLOW;
	ask(app);
	take(app);
	return app->pane == PANE_FLOW;
}

int flow_pane_height(const struct app *app, int room)
{
	size_t lines = app->flow.valid ? app->flow.lines : app->flow.room;
	int most = room / 2, want = (int)(lines < 64 ? lines : 64) + 1;
	return want < most ? want : most;
}

static int vis_of_kind(uint8_t kind)
{
	static const uint8_t vis[FLOW_KIND_COUNT] = {
		[FLOW_RUNNING] = VIS_RUNNING, [FLOW_PREEMPTING] = VIS_PREEMPTED, [FLOW_HYPERVISOR] = VIS_VMM,
		[FLOW_IRQ] = VIS_WAKING, [FLOW_WAITING] = VIS_BLOCKED, [FLOW_IDLE_CPU] = VIS_HOST_BLOCKED,
		[FLOW_UNKNOWN] = VIS_UNKNOWN,
	};
	return kind < FLOW_KIND_COUNT ? vis[kind] : (int)VIS_UNKNOWN;
}

/* Adds `iv` to the sums of a line: one for each of `cols` equal parts of the flow's window. */
static void add_to_lane(const struct flow *f, const struct flow_interval *iv, int code, int cols,
                        int64_t (*sum)[HISTORY_STATES])
{
	int64_t span = f->end - f->start + 1, part = span / cols + (span % cols != 0);
	for (int64_t at = iv->start; at <= iv->end;) {
		int64_t c = (at - f->start) / part, end = f->start + (c + 1) * part - 1;
		end = end < iv->end ? end : iv->end;
		sum[c < cols ? c : cols - 1][code] += end - at + 1;
		at = end + 1;
	}
}

/* Which of the lines that have lanes the intervals of each entry belong to: its own (WHOLE when it has none), its
 * system's. */
static void lines_of_entries(const struct flow_pane *p, size_t n, uint32_t *own, uint32_t *whole)
{
	const struct flow *f = &p->flow;
	for (size_t i = 0; i < f->entries; i++)
		own[i] = whole[i] = WHOLE;
	for (size_t l = 0; l < n; l++) {
		const struct flow_line *line = &p->line[p->lane_top + l];
		if (line->entry != WHOLE)
			own[line->entry] = (uint32_t)l;
		for (size_t i = 0; line->entry == WHOLE && i < f->entries; i++)
			if (f->entry[i].system == line->system)
				whole[i] = (uint32_t)l;
	}
}

/* The bars of the lines on the screen, in one walk over the flow; what a line does not hold is VIS_NONE. */
static void make_lanes(struct flow_pane *p, int cols, const uint8_t *severity)
{
	const struct flow *f = &p->flow;
	size_t lanes = p->lines - p->lane_top < LANES ? p->lines - p->lane_top : LANES, n = lanes * (size_t)cols;
	int64_t part = (f->end - f->start) / cols + 1;
	int64_t (*sum)[HISTORY_STATES] = mem_new(n, sizeof *sum);
	uint32_t *own = mem_new(f->entries, sizeof *own), *whole = mem_new(f->entries, sizeof *whole);
	lines_of_entries(p, lanes, own, whole);
	for (size_t i = 0; i < f->intervals; i++) {
		const struct flow_interval *iv = &f->interval[i];
		uint32_t e = p->entry_of[i];
		if (own[e] != WHOLE)
			add_to_lane(f, iv, vis_of_kind(iv->kind), cols, sum + own[e] * (size_t)cols);
		if (whole[e] != WHOLE)
			add_to_lane(f, iv, vis_of_kind(iv->kind), cols, sum + whole[e] * (size_t)cols);
	}
	p->lane = mem_new(n, sizeof *p->lane);
	p->lane_cols = cols;
	for (size_t i = 0; i < n; i++) {
		int64_t held = 0, here = f->end - (f->start + (int64_t)(i % (size_t)cols) * part) + 1;
		for (int s = 0; s < HISTORY_STATES; s++)
			held += sum[i][s];
		here = here < part ? here : part;
		sum[i][VIS_NONE] = here > held ? here - held : 0;
		p->lane[i] = cell_of_sums(sum[i], severity, false);
	}
	free(sum);
	free(own);
	free(whole);
}

static void draw_lane(struct app *app, struct screen *s, int x, int y, int cols, size_t line)
{
	struct flow_pane *p = &app->flow;
	if (p->lane_cols != cols || line < p->lane_top || line >= p->lane_top + LANES) {
		free(p->lane);
		p->lane_top = line;
		make_lanes(p, cols, app->vcpu.severity);
	}
	screen_put(s, x - 1, y, '|', app->palette.part[PART_LABEL]);
	for (int c = 0; c < cols; c++) {
		struct glyph g = app_glyph(app, p->lane[(line - p->lane_top) * (size_t)cols + (size_t)c], false);
		screen_put(s, x + c, y, g.ch, g.style);
	}
	screen_put(s, x + cols, y, '|', app->palette.part[PART_LABEL]);
}

static void line_text(struct app *app, const struct flow_line *line, char *buf, size_t size)
{
	const struct flow *f = &app->flow.flow;
	char party[256];
	if (line->entry == WHOLE) {
		if (line->system < 0)
			snprintf(buf, size, "nobody");
		else
			text_escape(buf, size, app->topo.machine[line->system].name);
		return;
	}
	const struct flow_entry *e = &f->entry[line->entry];
	const char *name = e->name < f->names ? f->name[e->name] : NULL;
	flow_party_text(&app->topo, e->system, e->tid, name, (enum flow_kind)e->kind, party, sizeof party);
	/* The system's name stands on the line above. */
	char system[256];
	size_t n = strlen(text_escape(system, sizeof system, e->system < 0 ? "" : app->topo.machine[e->system].name));
	bool again = n > 0 && strncmp(party, system, n) == 0 && (party[n] == '/' || party[n] == ' ');
	char *inner = n > 0 ? strstr(party, " for ") : NULL;  /* "hypervisor for Debian/151 fibonacci" */
	if (!again && inner && strncmp(inner + 5, system, n) == 0 && inner[5 + n] == '/')
		memmove(inner + 5, inner + 6 + n, strlen(inner + 6 + n) + 1);
	snprintf(buf, size, "  %s", again ? party + n + 1 : party);
}

static void draw_line(struct app *app, struct screen *s, int y, size_t index)
{
	const struct flow_line *line = &app->flow.line[index];
	const struct flow *f = &app->flow.flow;
	struct style style = app->palette.part[line->entry == WHOLE ? PART_TITLE : PART_NORMAL];
	char text[320], d[TIME_TEXT];
	int name_w = s->w * 3 / 10 < 26 ? 26 : s->w * 3 / 10 > 44 ? 44 : s->w * 3 / 10;
	double share = 100.0 * (double)line->duration / (double)(f->end - f->start + 1);
	screen_fill(s, 0, y, s->w, ' ', app->palette.part[PART_NORMAL]);
	line_text(app, line, text, sizeof text);
	screen_text(s, 1, y, name_w - 1, style, text);
	screen_printf(s, name_w + 1, y, s->w - name_w, style, "%8s %5.1f%%", time_duration(d, line->duration), share);
	int x = name_w + 18, cols = s->w - x - 1;
	if (cols >= 10)
		draw_lane(app, s, x, y, cols, index);
}

static void draw_title(struct app *app, struct screen *s, int y, const char *title)
{
	const struct flow_pane *p = &app->flow;
	bool markers = app->view.a != VIEW_NONE && app->view.b != VIEW_NONE;
	char head[512], d[TIME_TEXT], from[TIME_TEXT], rest[64] = "";
	size_t small = 0;
	for (size_t i = 0; i < p->flow.entries; i++)
		small += is_small(&p->flow, p->flow.entry[i].duration);
	if (p->cut)
		snprintf(rest, sizeof rest, ", then too long: zoom in or set A and B");
	else if (small)
		snprintf(rest, sizeof rest, ", %zu below 0.05 %%", small);
	snprintf(head, sizeof head, " flow of %s %s %s + %s, %zu entr%s", title, markers ? "A..B" : "from",
	         ruler_time(from, &app->axis, p->flow.start, app->view.step),
	         time_duration(d, p->flow.end - p->flow.start + 1), p->flow.entries, p->flow.entries == 1 ? "y" : "ies");
	bool fits = p->cut || text_width(head) + (int)strlen(rest) + 4 <= s->w;
	screen_printf(s, 1, y, s->w - 2, app->palette.part[PART_TITLE], "%s%s ", head, fits ? rest : "");
}

void flow_pane_draw(struct app *app, struct screen *s, int y, int height)
{
	struct flow_pane *p = &app->flow;
	struct subject subject = { SUBJECT_THREAD, p->thread };
	struct style style = app->palette.part[PART_TITLE];
	char title[256];
	screen_fill(s, 0, y, s->w, '-', style);
	topo_subject_text(&app->topo, &subject, title, sizeof title);
	if (p->asked)
		screen_printf(s, 1, y, s->w - 2, style, " flow of %s: reading %u %%, Esc cancels ", title,
		              asker_progress(app->asker, ASK_FLOW));
	else if (!p->valid)
		screen_printf(s, 1, y, s->w - 2, style, " flow of %s: none here ", title);
	else
		draw_title(app, s, y, title);
	size_t page = height > 1 ? (size_t)height - 1 : 0;
	if (p->top + page > p->lines)
		p->top = p->lines > page ? p->lines - page : 0;
	for (size_t i = 0; i < page && p->top + i < p->lines; i++)
		draw_line(app, s, y + 1 + (int)i, p->top + i);
}
