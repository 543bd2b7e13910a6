/* The gaps pane: when a machine, vCPU or thread was kept from running, longest first, and by whom; how long its gaps are as
 * bars above.  It stays with the row and the window for which it was opened, so that one can go from gap to gap.
 *
 * The longest ASK_LISTED gaps are listed; sums, bars and percentiles are of all, unless a filter leaves out some. */
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

enum gaps_order { BY_LENGTH, BY_TIME, BY_THIEF, ORDERS };

static const char *const order_name[ORDERS] = { "longest first", "by time", "by thief" };

struct gaps_pane {
	struct pane pane;
	struct pane_scope scope;
	struct gap_list list;
	struct gap_lengths shown;   /* of the lines */
	enum gaps_order order;
	struct gap_line {
		size_t item;        /* of the list */
		char *thief;        /* escaped */
	} *line;
};

static struct gaps_pane *of(struct pane *pane)
{
	return (struct gaps_pane *)pane;
}

static const struct gap_item *item_of(const struct pane *pane, size_t i)
{
	const struct gaps_pane *p = (const struct gaps_pane *)pane;
	return &p->list.item[p->line[i].item];
}

static int64_t length_of(const struct gap_item *item)
{
	return item->gap.end - item->gap.start + 1;
}

/* Of its thief, in per cent. */
static double part_of(const struct gap_item *item)
{
	return 100 * (double)item->thief.ns / (double)length_of(item);
}

static struct row_id row_of(const struct gap *gap)
{
	return (struct row_id){ gap->subject.kind == SUBJECT_CPU ? ROW_CPU : ROW_THREAD, gap->subject.index };
}

/* ---- Its lines ------------------------------------------------------------------------------------------------------ */

static char *thief_of(const struct app *app, const struct gap_list *list, const struct gap_item *item)
{
	char text[256];
	const struct party *who = &item->thief.who;
	if (!item->culprits)
		return mem_dup("");
	party_shown(&app->topo, who, who->name < list->names ? list->name[who->name] : NULL, text, sizeof text);
	return mem_printf("%s%s", thief_own(&app->topo, &item->gap.subject, who), text);
}

static void free_lines(struct gaps_pane *p)
{
	for (size_t i = 0; i < p->pane.lines; i++)
		free(p->line[i].thief);
	free(p->line);
	p->line = NULL;
	p->pane.lines = 0;
}

static int64_t rank(const struct gaps_pane *p, size_t percent)
{
	return length_of(item_of(&p->pane, p->pane.lines - (p->pane.lines * percent + 99) / 100));
}

/* The lines are by length, the longest first. */
static void measure(struct gaps_pane *p)
{
	p->shown = p->list.all;
	if (!p->pane.filter[0])
		return;
	p->shown = (struct gap_lengths){ .count = p->pane.lines };
	for (size_t i = 0; i < p->pane.lines; i++) {
		int64_t ns = length_of(item_of(&p->pane, i));
		p->shown.total += ns;
		p->shown.bin[length_bin(ns)]++;
	}
	if (p->pane.lines == 0)
		return;
	p->shown.p50 = rank(p, 50);
	p->shown.p90 = rank(p, 90);
	p->shown.p99 = rank(p, 99);
	p->shown.longest = length_of(item_of(&p->pane, 0));
}

static int by_start(const void *a, const void *b, void *arg)
{
	const struct gap_list *list = arg;
	const struct gap *x = &list->item[((const struct gap_line *)a)->item].gap;
	const struct gap *y = &list->item[((const struct gap_line *)b)->item].gap;
	return (x->start > y->start) - (x->start < y->start);
}

/* Of one thief the longest first. */
static int by_thief(const void *a, const void *b, void *arg)
{
	const struct gap_line *x = a, *y = b;
	int order = strcmp(x->thief, y->thief);
	(void)arg;
	return order ? order : (x->item > y->item) - (x->item < y->item);
}

static void arrange(struct app *app, struct pane *pane)
{
	struct gaps_pane *p = of(pane);
	char title[512];
	free_lines(p);
	p->line = mem_new(p->list.items, sizeof *p->line);
	for (size_t i = 0; i < p->list.items; i++) {
		const struct gap_item *item = &p->list.item[i];
		char *thief = thief_of(app, &p->list, item);
		if (pane->filter[0] && !strcasestr(thief, pane->filter) &&
		    !strcasestr(row_title(&app->rows, row_of(&item->gap), title, sizeof title), pane->filter))
			free(thief);
		else
			p->line[pane->lines++] = (struct gap_line){ i, thief };
	}
	measure(p);
	if (p->order != BY_LENGTH && pane->lines)
		qsort_r(p->line, pane->lines, sizeof *p->line, p->order == BY_TIME ? by_start : by_thief, &p->list);
}

static void question(const struct app *app, const struct pane *pane, struct question *q)
{
	pane_scope_ask(app, &((const struct gaps_pane *)pane)->scope, q);
}

static void take(struct app *app, struct pane *pane, struct answer *answer)
{
	(void)app;
	of(pane)->list = answer->gaps;
}

static void forget(struct pane *pane)
{
	struct gaps_pane *p = of(pane);
	free_lines(p);
	gap_list_release(&p->list);
}

static void sort(struct app *app, struct pane *pane, int by)
{
	struct gaps_pane *p = of(pane);
	p->order = (enum gaps_order)(((int)p->order + by + ORDERS) % ORDERS);
	pane->at = pane->top = 0;
	arrange(app, pane);
}

static bool begin(struct app *app, struct pane *pane)
{
	return pane_scope_open(app, pane, &of(pane)->scope);
}

/* ---- What it says --------------------------------------------------------------------------------------------------- */

static void name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	char who[512];
	snprintf(buf, size, "gaps of %s", row_title(&app->rows, ((const struct gaps_pane *)pane)->scope.row, who, sizeof who));
}

/* Some of them may be the reason why somebody else waited: "; b: lock waits". */
static void tell_of_locks(const struct app *app, const struct gaps_pane *p, char *buf, size_t size)
{
	struct subject s;
	char keys[64];
	row_subject(&app->topo, p->scope.row, &s);
	if (s.kind != SUBJECT_CPU && locks_are_named(&app->topo, subject_machine(&app->topo, &s)))
		snprintf(buf, size, "; %s: lock waits ", keymap_text(&app->keymap, ACT_LOCKS, keys, sizeof keys));
}

static void title(const struct app *app, const struct pane *pane, int w, char *buf, size_t size)
{
	const struct gaps_pane *p = (const struct gaps_pane *)pane;
	char who[512], total[TIME_TEXT], span[TIME_TEXT], of_all[64] = "";
	bool cut = p->list.all.count > p->list.items;
	struct subject s;
	row_title(&app->rows, p->scope.row, who, sizeof who);
	if (p->list.all.count == 0 && row_subject(&app->topo, p->scope.row, &s) && !topo_is_watched(&app->topo, &s)) {
		snprintf(buf, size, " gaps of %s: what a host took is not known ", who);
		return;
	}
	if (pane->filter[0] && cut)
		snprintf(of_all, sizeof of_all, " among the longest %zu", p->list.items);
	int n = snprintf(buf, size, " %" PRIu64 " gap%s of %s in %s: %s%s ", p->shown.count,
	                 p->shown.count == 1 ? "" : "s", who, pane_span_text(app, pane->from, pane->to, span),
	                 time_duration(total, p->shown.total), of_all);
	if (pane->lines && n + 40 < w)
		n += snprintf(buf + n - 1, size - (size_t)n + 1, ", %s ", order_name[p->order]) - 1;
	if (n + 60 < w)
		tell_of_locks(app, p, buf + n - 1, size - (size_t)n + 1);
}

/* Columns: when, how long, who (of a machine), by whom. */
static int who_columns(const struct gaps_pane *p, int w)
{
	return p->scope.row.kind == ROW_MACHINE && w >= PANE_NARROW ? w > 100 ? 30 : 14 : 0;
}

#define WHEN_COLUMNS 14
#define LENGTH_COLUMNS 9

static void heading(const struct app *app, const struct pane *pane, struct screen *s, int y)
{
	const struct gaps_pane *p = (const struct gaps_pane *)pane;
	const struct gap_lengths *l = &p->shown;
	struct style style = app->look.palette.part[PART_RULER];
	char p50[TIME_TEXT], p90[TIME_TEXT], p99[TIME_TEXT], longest[TIME_TEXT];
	screen_fill(s, 0, y, s->w, ' ', style);
	screen_fill(s, 0, y + 1, s->w, ' ', style);
	int x = 1 + histogram_draw(app, s, 1, y, s->w - 1, l->bin);
	if (l->count) {
		char quantiles[4 * TIME_TEXT + 32];
		snprintf(quantiles, sizeof quantiles, "max %s  p50 %s  p90 %s  p99 %s", time_duration(longest, l->longest),
		         time_duration(p50, l->p50), time_duration(p90, l->p90), time_duration(p99, l->p99));
		screen_phrases(s, x + 2, y, s->w - x - 2, style, quantiles);
	}
	int who = who_columns(p, s->w), at = 1 + WHEN_COLUMNS;
	screen_text(s, 1, y + 1, WHEN_COLUMNS, style, "at");
	screen_printf(s, at, y + 1, LENGTH_COLUMNS, style, "%*s", LENGTH_COLUMNS, "length");
	screen_text(s, at + LENGTH_COLUMNS + 2, y + 1, who, style, "who");
	at += LENGTH_COLUMNS + 2 + who;
	screen_text(s, at, y + 1, s->w, style, s->w < PANE_NARROW ? "mostly to" : " part  mostly to");
}

static void draw_line(struct app *app, struct pane *pane, struct screen *s, int y, size_t i, bool selected)
{
	const struct gaps_pane *p = of(pane);
	const struct gap_item *item = item_of(pane, i);
	struct style style = pane_style(app, PART_NORMAL, selected);
	struct style steal = pane_style(app, PART_STEAL, selected);
	char when[TIME_TEXT], d[TIME_TEXT], label[256], thief[300];
	int who = who_columns(p, s->w), at = 1 + WHEN_COLUMNS;
	screen_text(s, 1, y, WHEN_COLUMNS, style, ruler_time(when, &app->axis, item->gap.start, 100000));
	screen_printf(s, at, y, LENGTH_COLUMNS, steal, "%*s", LENGTH_COLUMNS, time_duration(d, length_of(item)));
	at += LENGTH_COLUMNS + 2;
	screen_text(s, at, y, who - 1, style, row_label(&app->rows, row_of(&item->gap), label, sizeof label));
	if (!item->culprits)
		return;
	at += who;
	if (s->w >= PANE_NARROW)
		at += screen_printf(s, at, y, s->w, style, "%4.0f%%  ", part_of(item));
	snprintf(thief, sizeof thief, "%s", p->line[i].thief);
	screen_clip(s, at, y, s->w - at, style, text_squeeze(thief, s->w - at));
}

static void tell(const struct app *app, const struct pane *pane, size_t i, char *buf, size_t size)
{
	const struct gaps_pane *p = (const struct gaps_pane *)pane;
	const struct gap_item *item = item_of(pane, i);
	char who[512], d[TIME_TEXT];
	row_title(&app->rows, row_of(&item->gap), who, sizeof who);
	size_t used = (size_t)snprintf(buf, size, "%s waited %s", who, time_duration(d, length_of(item)));
	const bool is_whole = item->thief.parties > 1;
	if (is_whole && used < size)
		used += (size_t)snprintf(buf + used, size - used, ", %.0f %% of it for %s in all", part_of(item), p->line[i].thief);
	for (size_t k = 0; k < item->culprits && k < (is_whole ? 2 : 3) && used < size; k++) {
		const struct flow_entry *e = &p->list.culprit[item->culprit + k];
		party_shown(&app->topo, &e->who, e->who.name < p->list.names ? p->list.name[e->who.name] : NULL, who, sizeof who);
		used += (size_t)snprintf(buf + used, size - used, "%s %.0f %% %sfor %s", k || is_whole ? ";" : ",", 100 * e->share,
		                         k || is_whole ? "" : "of it ", who);
	}
}

static void file_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	char who[512];
	snprintf(buf, size, "gaps-%s", row_title(&app->rows, ((const struct gaps_pane *)pane)->scope.row, who, sizeof who));
}

/* All that are listed, filter or not: the command's answer. */
static int write_to(struct app *app, struct pane *pane, FILE *f, enum report_format format, struct error *err)
{
	const struct gaps_pane *p = of(pane);
	struct subject s;
	struct origin o;
	row_subject(&app->topo, p->scope.row, &s);
	export_origin(app, pane, &s, &o);
	int rc = report_gaps(f, REPORT_WHOLE(format), &app->topo, &p->list, &s, false, &o, err);
	origin_release(&o);
	return rc;
}

static void lacks(const struct pane *pane, char *buf, size_t size)
{
	const struct gaps_pane *p = (const struct gaps_pane *)pane;
	if (p->list.all.count > p->list.items)
		snprintf(buf, size, ": the longest %zu of %" PRIu64 " (gaps --top 0 writes all)", p->list.items, p->list.all.count);
}

/* ---- Where it leads ------------------------------------------------------------------------------------------------- */

static void go(struct app *app, struct pane *pane, size_t i)
{
	const struct gap gap = item_of(pane, i)->gap;
	pane_go(app, row_of(&gap), gap.start, gap.end);
}

static void carry(struct app *app, struct pane *pane, const struct rows *was, const struct rows *is)
{
	(void)app;
	of(pane)->scope.row = row_again(was, is, of(pane)->scope.row);
}

const struct pane_ops gaps_pane = {
	.size = sizeof(struct gaps_pane), .open = begin, .ask = ASK_GAPS, .question = question, .answer = take,
	.arrange = arrange, .sort = sort, .name = name, .title = title, .headings = 2, .heading = heading, .line = draw_line,
	.go = go, .tell = tell, .file = file_name, .export = write_to, .lacks = lacks, .carry = carry, .forget = forget,
};
