/* The exits pane: number and duration of VM exits (until re-entry), by reason, and a histogram of the durations of the
 * selected line. The pane keeps the row and the window for which it was opened. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "ui/core/text_filter.h"
#include "ui/panes/pane.h"
#include "ui/panes/pane_export.h"
#include "ui/widgets/widgets.h"

enum exits_column { COUNT, TOTAL, SHARE, MEAN, P99, MAX, COLUMNS };

static const struct { const char *heading; int width; } columns[COLUMNS] = {
	[COUNT] = { "exits", 8 }, [TOTAL] = { "total", 9 }, [SHARE] = { "share", 6 }, [MEAN] = { "mean", 9 },
	[P99] = { "p99", 9 }, [MAX] = { "longest", 9 },
};

struct exits_pane {
	struct pane pane;
	struct exit_list list;
	int64_t total;            /* sum of the durations of all rows, ns */
	enum exits_column by;
	size_t *line;             /* rows that pass the filter, sorted, indices into list.row */
};

static struct exits_pane *exits_pane_state(struct pane *pane)
{
	return (struct exits_pane *)pane;
}

static const struct exit_row *row_of(const struct pane *pane, size_t i)
{
	const struct exits_pane *p = (const struct exits_pane *)pane;
	return &p->list.row[p->line[i]];
}

static const char *reason_of(const struct exits_pane *p, const struct exit_row *row, char *buf, size_t size)
{
	return text_escape(buf, size, row->reason < p->list.names ? p->list.name[row->reason] : "?");
}

/* Returns the value by which the column sorts. */
static int64_t value_of(const struct exit_row *row, enum exits_column c)
{
	switch (c) {
	case COUNT: return (int64_t)row->count;
	case MEAN: return row->timed ? row->total / (int64_t)row->timed : 0;
	case P99: return row->p99;
	case MAX: return row->max;
	default: return row->total;
	}
}

static int largest_first(const void *a, const void *b, void *arg)
{
	const struct exits_pane *p = arg;
	size_t i = *(const size_t *)a, k = *(const size_t *)b;
	int64_t x = value_of(&p->list.row[i], p->by), y = value_of(&p->list.row[k], p->by);
	return x != y ? (x < y) - (x > y) : (i > k) - (i < k);
}

static void exits_pane_make_lines(struct app *app, struct pane *pane)
{
	struct exits_pane *p = exits_pane_state(pane);
	char reason[128];
	(void)app;
	free(p->line);
	p->line = mem_new(p->list.rows, sizeof *p->line);
	pane->lines = 0;
	p->total = 0;
	for (size_t i = 0; i < p->list.rows; i++) {
		p->total += p->list.row[i].total;
		if (!pane->filter[0] || filter_matches(reason_of(p, &p->list.row[i], reason, sizeof reason), pane->filter))
			p->line[pane->lines++] = i;
	}
	if (pane->lines)
		qsort_r(p->line, pane->lines, sizeof *p->line, largest_first, p);
}

static struct query *exits_pane_open_query(struct app *app, struct pane *pane, struct error *err)
{
	struct target s;
	const struct exit_options options = { .only = pane_target(app, pane, &s), .from = pane->from, .to = pane->to,
		.by_thread = s.kind == TARGET_THREAD };
	return exits_open(&app->catalog, &options, err);
}

static void exits_pane_take_answer(struct app *app, struct pane *pane, struct query *q)
{
	(void)app;
	exits_take(q, &exits_pane_state(pane)->list);
}

static void exits_pane_drop_answer(struct pane *pane)
{
	struct exits_pane *p = exits_pane_state(pane);
	free(p->line);
	p->line = NULL;
	exits_release(&p->list);
}

static void exits_pane_sort_next(struct app *app, struct pane *pane, int by)
{
	struct exits_pane *p = exits_pane_state(pane);
	do
		p->by = (enum exits_column)(((int)p->by + by + COLUMNS) % COLUMNS);
	while (p->by == SHARE);
	pane->at = pane->top = 0;
	exits_pane_make_lines(app, pane);
}

static bool exits_pane_open(struct app *app, struct pane *pane)
{
	struct exits_pane *p = exits_pane_state(pane);
	if (!pane_scope_open(app, pane))
		return false;
	if (!p->by)
		p->by = TOTAL;
	return true;
}

/* ---- Texts -------------------------------------------------------------------------------------------------------- */

static void exits_pane_get_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	char title[512];
	snprintf(buf, size, "VM exits of %s",
	         row_title(&app->rows, pane->scope.row, title, sizeof title));
}

static void exits_pane_get_title(const struct app *app, const struct pane *pane, int w, char *buf, size_t size)
{
	const struct exits_pane *p = (const struct exits_pane *)pane;
	char name[640], length[TIME_TEXT], total[TIME_TEXT];
	(void)w;
	exits_pane_get_name(app, pane, name, sizeof name);
	if (p->list.rows == 0 && p->list.silent)
		snprintf(buf, size, " %s: none recorded ", name);
	else if (p->list.rows == 0)
		snprintf(buf, size, " no %s in %s ", name, pane_window_text(app, pane->from, pane->to, length));
	else
		snprintf(buf, size, " %s in %s: %s outside the guest ", name, pane_window_text(app, pane->from, pane->to, length),
		         time_duration(total, p->total));
}

static void exits_pane_get_empty_text(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	(void)app;
	if (((const struct exits_pane *)pane)->list.silent)
		snprintf(buf, size, "%s", "Record the events kvm_entry and kvm_exit on the host.");
}

#define NAME_MIN 16
#define NAME_MAX 50

/* Returns the number of columns that fit; *name: columns left for the name. */
static int shown_columns(int w, int *name)
{
	int n = 0;
	*name = w - 2;
	while (n < COLUMNS && *name - columns[n].width - 1 >= NAME_MIN)
		*name -= columns[n++].width + 1;
	*name = *name > NAME_MAX ? NAME_MAX : *name;
	return n;
}

static void exits_pane_draw_headings(const struct app *app, const struct pane *pane, struct screen *s, int y)
{
	const struct exits_pane *p = (const struct exits_pane *)pane;
	struct style style = app->appearance.palette.part[PART_RULER], marked = style;
	char reason[128];
	marked.attr |= ATTR_UNDERLINE | ATTR_BOLD;
	screen_fill(s, 0, y, s->w, ' ', style);
	screen_fill(s, 0, y + 1, s->w, ' ', style);
	if (pane->at < pane->lines) {
		const struct exit_row *row = row_of(pane, pane->at);
		int x = 1 + screen_printf(s, 1, y, s->w, style, "%s: duration ", reason_of(p, row, reason, sizeof reason));
		histogram_draw(app, s, x, y, s->w - x, row->bin);
	}
	int name, shown = shown_columns(s->w, &name), x = 1 + name;
	screen_text(s, 1, y + 1, x - 1, style, "exit reason");
	for (int c = 0; c < shown; x += columns[c++].width + 1)
		screen_text(s, x + columns[c].width - (int)strlen(columns[c].heading), y + 1, columns[c].width,
		            c == (int)p->by ? marked : style, columns[c].heading);
}

static void cell_text(const struct exits_pane *p, const struct exit_row *row, enum exits_column c, char *buf,
                      size_t size)
{
	char d[TIME_TEXT], share[16];
	*buf = '\0';
	if (c == COUNT)
		snprintf(buf, size, "%" PRIu64, row->count);
	else if (row->timed && c == SHARE)
		snprintf(buf, size, "%s", text_share(share, p->total > 0 ? (double)row->total / (double)p->total : 0));
	else if (row->timed)
		snprintf(buf, size, "%s", time_duration(d, value_of(row, c)));
}

/* Returns true if another line shows the same thread under another name (it called exec). */
static bool has_other_names(const struct exits_pane *p, const struct exit_row *row)
{
	for (size_t i = 0; i < p->list.rows; i++) {
		const struct exit_row *r = &p->list.row[i];
		if (row->tid >= 0 && r->vcpu == row->vcpu && r->tid == row->tid && r->name != row->name)
			return true;
	}
	return false;
}

static bool shows_single_vcpu(const struct exits_pane *p)
{
	for (size_t i = 1; i < p->list.rows; i++)
		if (p->list.row[i].vcpu != p->list.row[0].vcpu)
			return false;
	return p->pane.scope.row.kind != ROW_MACHINE;
}

/* Writes "vCPU0 hlt"; if the pane shows a single vCPU, "hlt"; for a thread that called exec, "hlt, as sed". */
static void reason_text(const struct app *app, const struct exits_pane *p, const struct exit_row *row, char *buf,
                        size_t size)
{
	char reason[128], label[256], program[128];
	bool single = shows_single_vcpu(p);
	bool machine = p->pane.scope.row.kind == ROW_MACHINE &&
	               app->catalog.machine[p->pane.scope.row.index].kind != MACHINE_VM;
	struct row_id cpu = { ROW_CPU, row->vcpu };
	reason_of(p, row, reason, sizeof reason);
	if (single)
		snprintf(buf, size, "%s", reason);
	else
		snprintf(buf, size, "%s %s", machine ? row_title(&app->rows, cpu, label, sizeof label)
		                                     : row_label(&app->rows, cpu, label, sizeof label), reason);
	const size_t used = strlen(buf);
	if (has_other_names(p, row))
		snprintf(buf + used, size - used, ", as %s",
		         text_escape(program, sizeof program, row->name < p->list.names ? p->list.name[row->name] : "?"));
}

static void exits_pane_draw_line(struct app *app, struct pane *pane, struct screen *s, int y, size_t i, bool selected)
{
	const struct exits_pane *p = exits_pane_state(pane);
	const struct exit_row *row = row_of(pane, i);
	struct style style = pane_style(app, PART_NORMAL, selected);
	char text[512];
	int name, shown = shown_columns(s->w, &name), x = 1 + name;
	reason_text(app, p, row, text, sizeof text);
	screen_text(s, 1, y, x - 2, style, text);
	for (int c = 0; c < shown; x += columns[c++].width + 1) {
		cell_text(p, row, (enum exits_column)c, text, sizeof text);
		screen_text(s, x + columns[c].width - text_width(text), y, columns[c].width, style, text);
	}
}

static void exits_pane_get_status_text(const struct app *app, const struct pane *pane, size_t i, char *buf, size_t size)
{
	const struct exits_pane *p = (const struct exits_pane *)pane;
	const struct exit_row *row = row_of(pane, i);
	char title[512], reason[128], d[TIME_TEXT], when[TIME_TEXT];
	row_title(&app->rows, (struct row_id){ ROW_CPU, row->vcpu }, title, sizeof title);
	int n = snprintf(buf, size, "%s: %" PRIu64 " VM exit%s (%s)", title, row->count, row->count == 1 ? "" : "s",
	                 reason_of(p, row, reason, sizeof reason));
	if (row->timed && n > 0 && (size_t)n < size)
		snprintf(buf + n, size - (size_t)n, "; longest %s at %s", time_duration(d, row->max),
		         ruler_time(when, &app->axis, row->max_at, 100000));
}

static void exits_pane_get_file_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	char title[512];
	snprintf(buf, size, "exits-%s", row_title(&app->rows, pane->scope.row, title,
	                                          sizeof title));
}

static int exits_pane_export(struct app *app, struct pane *pane, FILE *f, enum report_format format, struct error *err)
{
	const struct exits_pane *p = exits_pane_state(pane);
	struct target s;
	struct origin o;
	export_origin(app, pane, pane_target(app, pane, &s), &o);
	int rc = report_exits(f, REPORT_WHOLE(format), &app->catalog, &p->list, s.kind == TARGET_THREAD, false, &o, err);
	origin_release(&o);
	return rc;
}

/* ---- Jumps --------------------------------------------------------------------------------------------------------- */

static void exits_pane_follow_line(struct app *app, struct pane *pane, size_t i)
{
	const struct exit_row row = *row_of(pane, i);
	if (row.timed)
		pane_go(app, (struct row_id){ ROW_CPU, row.vcpu }, row.max_at, row.max_at + row.max - 1);
	else
		app_message(app, "no re-entry was recorded after this exit");
}

const struct pane_ops exits_pane = {
	.size = sizeof(struct exits_pane), .is_scoped = true, .open = exits_pane_open, .query = exits_pane_open_query,
	.take = exits_pane_take_answer, .arrange = exits_pane_make_lines,
	.sort = exits_pane_sort_next, .name = exits_pane_get_name, .title = exits_pane_get_title,
	.empty_text = exits_pane_get_empty_text, .headings = 2, .heading = exits_pane_draw_headings,
	.line = exits_pane_draw_line, .follow = exits_pane_follow_line, .status_text = exits_pane_get_status_text,
	.file = exits_pane_get_file_name, .export = exits_pane_export,
	.drop_answer = exits_pane_drop_answer,
};
