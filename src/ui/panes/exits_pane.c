/* The exits pane: why vCPUs were left, how often, and how long until they were entered again; how long that took as bars
 * above, for the line of the cursor.  It stays with the row and the window for which it was opened. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
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
	struct pane_scope scope;
	struct exit_list list;
	int64_t total;            /* ns of all rows */
	enum exits_column by;
	size_t *line;             /* index into list.row */
};

static struct exits_pane *of(struct pane *pane)
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

/* What lines are sorted by. */
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

static int most_first(const void *a, const void *b, void *arg)
{
	const struct exits_pane *p = arg;
	size_t i = *(const size_t *)a, k = *(const size_t *)b;
	int64_t x = value_of(&p->list.row[i], p->by), y = value_of(&p->list.row[k], p->by);
	return x != y ? (x < y) - (x > y) : (i > k) - (i < k);
}

static void arrange(struct app *app, struct pane *pane)
{
	struct exits_pane *p = of(pane);
	char reason[128];
	(void)app;
	free(p->line);
	p->line = mem_new(p->list.rows, sizeof *p->line);
	pane->lines = 0;
	p->total = 0;
	for (size_t i = 0; i < p->list.rows; i++) {
		p->total += p->list.row[i].total;
		if (!pane->filter[0] || strcasestr(reason_of(p, &p->list.row[i], reason, sizeof reason), pane->filter))
			p->line[pane->lines++] = i;
	}
	if (pane->lines)
		qsort_r(p->line, pane->lines, sizeof *p->line, most_first, p);
}

static void question(const struct app *app, const struct pane *pane, struct question *q)
{
	pane_scope_ask(app, &((const struct exits_pane *)pane)->scope, q);
}

static void take(struct app *app, struct pane *pane, struct answer *answer)
{
	(void)app;
	of(pane)->list = answer->exits;
}

static void forget(struct pane *pane)
{
	struct exits_pane *p = of(pane);
	free(p->line);
	p->line = NULL;
	exits_release(&p->list);
}

static void sort(struct app *app, struct pane *pane, int by)
{
	struct exits_pane *p = of(pane);
	do
		p->by = (enum exits_column)(((int)p->by + by + COLUMNS) % COLUMNS);
	while (p->by == SHARE);
	pane->at = pane->top = 0;
	arrange(app, pane);
}

static bool begin(struct app *app, struct pane *pane)
{
	struct exits_pane *p = of(pane);
	if (!pane_scope_open(app, pane, &p->scope))
		return false;
	if (!p->by)
		p->by = TOTAL;
	return true;
}

/* ---- What it says --------------------------------------------------------------------------------------------------- */

static void name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	char who[512];
	snprintf(buf, size, "VM exits of %s",
	         row_title(&app->rows, ((const struct exits_pane *)pane)->scope.row, who, sizeof who));
}

static void title(const struct app *app, const struct pane *pane, int w, char *buf, size_t size)
{
	const struct exits_pane *p = (const struct exits_pane *)pane;
	char whose[640], span[TIME_TEXT], total[TIME_TEXT];
	(void)w;
	name(app, pane, whose, sizeof whose);
	if (p->list.rows == 0 && p->list.silent)
		snprintf(buf, size, " %s: none recorded ", whose);
	else if (p->list.rows == 0)
		snprintf(buf, size, " no %s in %s ", whose, pane_span_text(app, pane->from, pane->to, span));
	else
		snprintf(buf, size, " %s in %s: %s until re-entry ", whose, pane_span_text(app, pane->from, pane->to, span),
		         time_duration(total, p->total));
}

static void none(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	(void)app;
	if (((const struct exits_pane *)pane)->list.silent)
		snprintf(buf, size, "%s", "The host's events kvm_entry and kvm_exit tell of exits.");
}

#define NAME_LEAST 16
#define NAME_MOST 50

/* How many columns there is room for, the first ones first; the name has what they leave. */
static int shown_columns(int w, int *name)
{
	int n = 0;
	*name = w - 2;
	while (n < COLUMNS && *name - columns[n].width - 1 >= NAME_LEAST)
		*name -= columns[n++].width + 1;
	*name = *name > NAME_MOST ? NAME_MOST : *name;
	return n;
}

static void heading(const struct app *app, const struct pane *pane, struct screen *s, int y)
{
	const struct exits_pane *p = (const struct exits_pane *)pane;
	struct style style = app->look.palette.part[PART_RULER], marked = style;
	char reason[128];
	marked.attr |= ATTR_UNDERLINE | ATTR_BOLD;
	screen_fill(s, 0, y, s->w, ' ', style);
	screen_fill(s, 0, y + 1, s->w, ' ', style);
	if (pane->at < pane->lines) {
		const struct exit_row *row = row_of(pane, pane->at);
		int x = 1 + screen_printf(s, 1, y, s->w, style, "%s took ", reason_of(p, row, reason, sizeof reason));
		histogram_draw(app, s, x, y, s->w - x, row->bin);
	}
	int name, shown = shown_columns(s->w, &name), x = 1 + name;
	screen_text(s, 1, y + 1, x - 1, style, "left for");
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

/* Are there lines of the same thread under another name, since it executed another program? */
static bool has_programs(const struct exits_pane *p, const struct exit_row *row)
{
	for (size_t i = 0; i < p->list.rows; i++) {
		const struct exit_row *r = &p->list.row[i];
		if (row->tid >= 0 && r->vcpu == row->vcpu && r->tid == row->tid && r->name != row->name)
			return true;
	}
	return false;
}

static bool one_vcpu(const struct exits_pane *p)
{
	for (size_t i = 1; i < p->list.rows; i++)
		if (p->list.row[i].vcpu != p->list.row[0].vcpu)
			return false;
	return p->scope.row.kind != ROW_MACHINE;
}

/* "vCPU0 hlt"; of one vCPU "hlt"; of a thread that was another program before "hlt, as sed". */
static void what_text(const struct app *app, const struct exits_pane *p, const struct exit_row *row, char *buf, size_t size)
{
	char reason[128], label[256], program[128];
	bool one = one_vcpu(p);
	bool machine = p->scope.row.kind == ROW_MACHINE && app->topo.machine[p->scope.row.index].kind != MACHINE_VM;
	struct row_id cpu = { ROW_CPU, row->vcpu };
	reason_of(p, row, reason, sizeof reason);
	if (one)
		snprintf(buf, size, "%s", reason);
	else
		snprintf(buf, size, "%s %s", machine ? row_title(&app->rows, cpu, label, sizeof label)
		                                     : row_label(&app->rows, cpu, label, sizeof label), reason);
	const size_t used = strlen(buf);
	if (has_programs(p, row))
		snprintf(buf + used, size - used, ", as %s",
		         text_escape(program, sizeof program, row->name < p->list.names ? p->list.name[row->name] : "?"));
}

static void draw_line(struct app *app, struct pane *pane, struct screen *s, int y, size_t i, bool selected)
{
	const struct exits_pane *p = of(pane);
	const struct exit_row *row = row_of(pane, i);
	struct style style = pane_style(app, PART_NORMAL, selected);
	char text[512];
	int name, shown = shown_columns(s->w, &name), x = 1 + name;
	what_text(app, p, row, text, sizeof text);
	screen_text(s, 1, y, x - 2, style, text);
	for (int c = 0; c < shown; x += columns[c++].width + 1) {
		cell_text(p, row, (enum exits_column)c, text, sizeof text);
		screen_text(s, x + columns[c].width - text_width(text), y, columns[c].width, style, text);
	}
}

static void tell(const struct app *app, const struct pane *pane, size_t i, char *buf, size_t size)
{
	const struct exits_pane *p = (const struct exits_pane *)pane;
	const struct exit_row *row = row_of(pane, i);
	char who[512], reason[128], d[TIME_TEXT], when[TIME_TEXT];
	row_title(&app->rows, (struct row_id){ ROW_CPU, row->vcpu }, who, sizeof who);
	int n = snprintf(buf, size, "%s was left %" PRIu64 " time%s for %s", who, row->count, row->count == 1 ? "" : "s",
	                 reason_of(p, row, reason, sizeof reason));
	if (row->timed && n > 0 && (size_t)n < size)
		snprintf(buf + n, size - (size_t)n, "; the longest was %s at %s", time_duration(d, row->max),
		         ruler_time(when, &app->axis, row->max_at, 100000));
}

static void file_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	char who[512];
	snprintf(buf, size, "exits-%s", row_title(&app->rows, ((const struct exits_pane *)pane)->scope.row, who, sizeof who));
}

static int write_to(struct app *app, struct pane *pane, FILE *f, enum report_format format, struct error *err)
{
	const struct exits_pane *p = of(pane);
	struct subject s;
	struct origin o;
	row_subject(&app->topo, p->scope.row, &s);
	export_origin(app, pane, &s, &o);
	int rc = report_exits(f, REPORT_WHOLE(format), &app->topo, &p->list, s.kind == SUBJECT_THREAD, false, &o, err);
	origin_release(&o);
	return rc;
}

/* ---- Where it leads ------------------------------------------------------------------------------------------------- */

static void go(struct app *app, struct pane *pane, size_t i)
{
	const struct exit_row row = *row_of(pane, i);
	if (row.timed)
		pane_go(app, (struct row_id){ ROW_CPU, row.vcpu }, row.max_at, row.max_at + row.max - 1);
	else
		app_say(app, "no re-entry after it was recorded");
}

static void carry(struct app *app, struct pane *pane, const struct rows *was, const struct rows *is)
{
	(void)app;
	of(pane)->scope.row = row_again(was, is, of(pane)->scope.row);
}

const struct pane_ops exits_pane = {
	.size = sizeof(struct exits_pane), .open = begin, .ask = ASK_EXITS, .question = question, .answer = take,
	.arrange = arrange, .sort = sort, .name = name, .title = title, .none = none, .headings = 2, .heading = heading,
	.line = draw_line, .go = go, .tell = tell, .file = file_name, .export = write_to, .carry = carry, .forget = forget,
};
