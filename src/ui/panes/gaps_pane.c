/* The gaps pane: gaps of a machine, vCPU or thread, longest first, with their culprits and a histogram of their lengths.
 * The pane keeps the row and the window for which it was opened, so that the user can step from gap to gap.
 *
 * The pane lists the ASK_LISTED longest gaps; without a filter, sums, histogram and percentiles cover all gaps. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "ui/core/text_filter.h"
#include "ui/panes/pane.h"
#include "ui/panes/pane_export.h"
#include "ui/widgets/widgets.h"

enum gaps_order { BY_LENGTH, BY_TIME, BY_CULPRIT, ORDERS };

static const char *const order_name[ORDERS] = { "longest first", "by time", "by culprit" };

struct gaps_pane {
	struct scoped_pane scoped;
	struct gap_list list;
	struct gap_lengths shown;   /* statistics of the lines shown */
	struct gap_line {
		size_t item;        /* index into list.item */
		char *culprit;        /* name of the top culprit, escaped; "": none */
	} *line;
};

static struct gaps_pane *gaps_pane_state(struct pane *pane)
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

static struct row_id row_of(const struct gap *gap)
{
	return (struct row_id){ gap->target.kind == TARGET_CPU ? ROW_CPU : ROW_THREAD, gap->target.index };
}

/* ---- Lines -------------------------------------------------------------------------------------------------------- */

static char *culprit_of(const struct app *app, const struct gap_list *list, const struct gap_item *item)
{
	char text[256];
	const struct actor *actor = &item->top.actor;
	if (!item->culprits)
		return mem_dup("");
	return mem_dup(actor_text(&app->catalog, actor, actor->name < list->names ? list->name[actor->name] : NULL, ACTOR_SHOWN,
	                          &item->gap.target, text, sizeof text));
}

static void free_lines(struct gaps_pane *p)
{
	for (size_t i = 0; i < p->scoped.pane.lines; i++)
		free(p->line[i].culprit);
	free(p->line);
	p->line = NULL;
	p->scoped.pane.lines = 0;
}

static int64_t percentile(const struct gaps_pane *p, size_t percent)
{
	return length_of(item_of(&p->scoped.pane, p->scoped.pane.lines - 1 - percentile_index(p->scoped.pane.lines, percent)));
}

/* Computes the statistics of the pane. The lines must be sorted by length, the longest first. */
static void compute_statistics(struct gaps_pane *p)
{
	p->shown = p->list.all;
	if (!p->scoped.pane.filter[0])
		return;
	p->shown = (struct gap_lengths){ .count = p->scoped.pane.lines };
	for (size_t i = 0; i < p->scoped.pane.lines; i++) {
		int64_t ns = length_of(item_of(&p->scoped.pane, i));
		p->shown.total += ns;
		p->shown.bin[length_bin(ns)]++;
	}
	if (p->scoped.pane.lines == 0)
		return;
	p->shown.p50 = percentile(p, 50);
	p->shown.p90 = percentile(p, 90);
	p->shown.p99 = percentile(p, 99);
	p->shown.longest = length_of(item_of(&p->scoped.pane, 0));
}

static int by_start(const void *a, const void *b, void *arg)
{
	const struct gap_list *list = arg;
	const struct gap *x = &list->item[((const struct gap_line *)a)->item].gap;
	const struct gap *y = &list->item[((const struct gap_line *)b)->item].gap;
	return (x->start > y->start) - (x->start < y->start);
}

/* Sorts by culprit, then by length, the longest first. */
static int by_culprit(const void *a, const void *b, void *arg)
{
	const struct gap_line *x = a, *y = b;
	int order = strcmp(x->culprit, y->culprit);
	(void)arg;
	return order ? order : (x->item > y->item) - (x->item < y->item);
}

static void gaps_pane_make_lines(struct app *app, struct pane *pane)
{
	struct gaps_pane *p = gaps_pane_state(pane);
	char title[512];
	free_lines(p);
	p->line = mem_new(p->list.items, sizeof *p->line);
	for (size_t i = 0; i < p->list.items; i++) {
		const struct gap_item *item = &p->list.item[i];
		char *culprit = culprit_of(app, &p->list, item);
		if (pane->filter[0] && !filter_matches(culprit, pane->filter) &&
		    !filter_matches(row_title(&app->rows, row_of(&item->gap), title, sizeof title), pane->filter))
			free(culprit);
		else
			p->line[pane->lines++] = (struct gap_line){ i, culprit };
	}
	compute_statistics(p);
	if (p->scoped.order != BY_LENGTH && pane->lines)
		qsort_r(p->line, pane->lines, sizeof *p->line, p->scoped.order == BY_TIME ? by_start : by_culprit, &p->list);
}

static struct query *gaps_pane_open_query(struct app *app, struct pane *pane, struct error *err)
{
	struct target s;
	(void)err;
	const struct gap_options options = { .from = pane->from, .to = pane->to, .top = ASK_LISTED };
	return gap_list_open(&app->catalog, pane_target(app, pane, &s), &options);
}

static void gaps_pane_take_answer(struct app *app, struct pane *pane, struct query *q)
{
	(void)app;
	gap_list_take(q, &gaps_pane_state(pane)->list);
}

static void gaps_pane_drop_answer(struct pane *pane)
{
	struct gaps_pane *p = gaps_pane_state(pane);
	free_lines(p);
	gap_list_release(&p->list);
}

/* ---- Texts -------------------------------------------------------------------------------------------------------- */

/* Appends the key of the lock waits, "; b: lock waits", if locks were recorded: a waiter may have lost time to a
 * preempted lock holder. */
static void add_locks_hint(const struct app *app, const struct gaps_pane *p, char *buf, size_t size)
{
	struct target s;
	char keys[64];
	row_target(&app->catalog, p->scoped.pane.scope.row, &s);
	if (s.kind != TARGET_CPU && locks_have_events(&app->catalog, target_machine(&app->catalog, &s)))
		snprintf(buf, size, "; %s: lock waits ", keymap_text(&app->keymap, ACT_LOCKS, keys, sizeof keys));
}

static void gaps_pane_get_title(const struct app *app, const struct pane *pane, int w, char *buf, size_t size)
{
	const struct gaps_pane *p = (const struct gaps_pane *)pane;
	char title[512], total[TIME_TEXT], length[TIME_TEXT], of_all[64] = "";
	bool cut = p->list.all.count > p->list.items;
	struct target s;
	row_title(&app->rows, p->scoped.pane.scope.row, title, sizeof title);
	if (p->list.all.count == 0 && row_target(&app->catalog, p->scoped.pane.scope.row, &s) &&
	    !catalog_has_host_trace(&app->catalog, &s)) {
		snprintf(buf, size, " gaps of %s: unknown without a host trace ", title);
		return;
	}
	if (pane->filter[0] && cut)
		snprintf(of_all, sizeof of_all, " among the longest %zu", p->list.items);
	int n = snprintf(buf, size, " %" PRIu64 " gap%s of %s in %s: %s%s ", p->shown.count,
	                 p->shown.count == 1 ? "" : "s", title, pane_window_text(app, pane->from, pane->to, length),
	                 time_duration(total, p->shown.total), of_all);
	if (pane->lines && n + 40 < w)
		n += snprintf(buf + n - 1, size - (size_t)n + 1, ", %s ", order_name[p->scoped.order]) - 1;
	if (n + 60 < w)
		add_locks_hint(app, p, buf + n - 1, size - (size_t)n + 1);
}

/* Returns the columns that a field takes on a screen of w; 0: not shown. */
static int field_width(const struct gaps_pane *p, enum gap_column_code code, int w)
{
	const struct gap_column *c = &gap_column[code];
	if (!c->pane_heading)
		return 0;
	if (code == GAP_COLUMN_TARGET)
		return p->scoped.pane.scope.row.kind == ROW_MACHINE && w >= PANE_NARROW ? w > 100 ? 30 : 14 : 0;
	if (code == GAP_COLUMN_CULPRIT_SHARE && w < PANE_NARROW)
		return 0;
	return c->pane_columns ? c->pane_columns : w;
}

#define SPACE 2  /* columns after a number */

static bool is_number(enum gap_column_code code)
{
	return gap_column[code].type == GAP_TYPE_DURATION || gap_column[code].type == GAP_TYPE_INT;
}

static void gaps_pane_draw_headings(const struct app *app, const struct pane *pane, struct screen *s, int y)
{
	const struct gaps_pane *p = (const struct gaps_pane *)pane;
	const struct gap_lengths *l = &p->shown;
	struct style style = app->appearance.palette.part[PART_RULER];
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
	x = 1;
	for (enum gap_column_code code = 0; code < GAP_COLUMN_COUNT; code++) {
		const int w = field_width(p, code, s->w);
		if (is_number(code) && w)
			screen_printf(s, x, y + 1, w - SPACE, style, "%*s", w - SPACE, gap_column[code].pane_heading);
		else if (w)
			screen_text(s, x, y + 1, w, style, gap_column[code].pane_heading);
		x += w;
	}
}

static void draw_victim(const struct app *app, const struct gap *gap, struct screen *s, int x, int y, int w,
                        struct style style)
{
	char label[256];
	screen_text(s, x, y, w - 1, style, row_label(&app->rows, row_of(gap), label, sizeof label));
}

static void draw_culprit(const char *culprit, struct screen *s, int x, int y, struct style style)
{
	char text[300];
	snprintf(text, sizeof text, "%s", culprit);
	screen_clip(s, x, y, s->w - x, style, text_shorten_machine(text, s->w - x));
}

/* Draws a field of a line into w columns of the screen. */
static void draw_field(struct app *app, struct gaps_pane *p, size_t i, enum gap_column_code code, struct screen *s, int x,
                       int y, int w, bool selected)
{
	const struct gap_item *item = item_of(&p->scoped.pane, i);
	const struct gap_record row = { &app->catalog, &item->gap, &item->top.actor, "", item->top.ns };
	const struct style style = pane_style(app, PART_NORMAL, selected);
	char target[ACTOR_TEXT], text[300];
	const struct gap_value v = gap_value(&row, code, target);
	if (v.absent || (code >= GAP_COLUMN_CULPRIT_FIRST && !item->culprits))
		return;
	if (code == GAP_COLUMN_TARGET) {
		draw_victim(app, &item->gap, s, x, y, w, style);
		return;
	}
	if (code == GAP_COLUMN_CULPRIT_NAME) {
		draw_culprit(p->line[i].culprit, s, x, y, style);
		return;
	}
	switch (gap_column[code].type) {
	case GAP_TYPE_CLOCK:
		screen_text(s, x, y, w, style, ruler_time(text, &app->axis, v.number, 100000));
		break;
	case GAP_TYPE_DURATION:
		screen_printf(s, x, y, w - SPACE, pane_style(app, PART_STEAL, selected), "%*s", w - SPACE,
		              time_duration(text, v.number));
		break;
	case GAP_TYPE_INT:
		screen_printf(s, x, y, w - SPACE, style, "%*" PRId64, w - SPACE, v.number);
		break;
	case GAP_TYPE_SHARE:
		screen_printf(s, x, y, w, style, "%*.0f%%  ", w - 3, 100 * v.share);
		break;
	case GAP_TYPE_TEXT:
	case GAP_TYPE_WHOLE:
		text_escape(text, sizeof text, v.text);
		screen_clip(s, x, y, w - 1, style, text);
		break;
	case GAP_TYPES:
		break;
	}
}

static void gaps_pane_draw_line(struct app *app, struct pane *pane, struct screen *s, int y, size_t i, bool selected)
{
	struct gaps_pane *p = gaps_pane_state(pane);
	int x = 1;
	for (enum gap_column_code code = 0; code < GAP_COLUMN_COUNT; code++) {
		const int w = field_width(p, code, s->w);
		if (w)
			draw_field(app, p, i, code, s, x, y, w, selected);
		x += w;
	}
}

static void gaps_pane_get_status_text(const struct app *app, const struct pane *pane, size_t i, char *buf, size_t size)
{
	const struct gaps_pane *p = (const struct gaps_pane *)pane;
	const struct gap_item *item = item_of(pane, i);
	char title[512], d[TIME_TEXT];
	row_title(&app->rows, row_of(&item->gap), title, sizeof title);
	size_t used = (size_t)snprintf(buf, size, "%s waited %s", title, time_duration(d, length_of(item)));
	const bool is_whole = item->top.actors > 1;
	if (is_whole && used < size)
		used += (size_t)snprintf(buf + used, size - used, ", %.0f %% of it for %s in total",
		                         100 * (double)item->top.ns / (double)length_of(item),
		                         p->line[i].culprit);
	for (size_t k = 0; k < item->culprits && k < (is_whole ? 2 : 3) && used < size; k++) {
		const struct flow_entry *e = &p->list.culprit[item->culprit + k];
		actor_text(&app->catalog, &e->actor, e->actor.name < p->list.names ? p->list.name[e->actor.name] : NULL,
		           ACTOR_SHOWN, NULL, title, sizeof title);
		used += (size_t)snprintf(buf + used, size - used, "%s %.0f %% %sfor %s", k || is_whole ? ";" : ",", 100 * e->share,
		                         k || is_whole ? "" : "of it ", title);
	}
}

/* Writes all gaps of the list, regardless of the filter, as the command does. */
static int gaps_pane_export(struct app *app, struct pane *pane, FILE *f, enum report_format format, struct error *err)
{
	const struct gaps_pane *p = gaps_pane_state(pane);
	struct target s;
	struct origin o;
	export_origin(app, pane, pane_target(app, pane, &s), &o);
	int rc = report_gaps(f, REPORT_WHOLE(format), &app->catalog, &p->list, &s, false, &o, err);
	origin_release(&o);
	return rc;
}

static void gaps_pane_get_omitted_text(const struct pane *pane, char *buf, size_t size)
{
	const struct gaps_pane *p = (const struct gaps_pane *)pane;
	if (p->list.all.count > p->list.items)
		snprintf(buf, size, ": the longest %zu of %" PRIu64 " (gaps --top 0 writes all)", p->list.items, p->list.all.count);
}

/* ---- Jumps --------------------------------------------------------------------------------------------------------- */

static void gaps_pane_follow_line(struct app *app, struct pane *pane, size_t i)
{
	const struct gap gap = item_of(pane, i)->gap;
	pane_go(app, row_of(&gap), gap.start, gap.end);
}

const struct pane_ops gaps_pane = {
	.size = sizeof(struct gaps_pane), .is_scoped = true, .open = pane_scope_open,
	.query = gaps_pane_open_query, .take = gaps_pane_take_answer, .arrange = gaps_pane_make_lines,
	.sort = scoped_pane_sort_next,
	.name = scoped_pane_get_name, .title = gaps_pane_get_title, .headings = 2, .heading = gaps_pane_draw_headings,
	.line = gaps_pane_draw_line, .follow = gaps_pane_follow_line, .status_text = gaps_pane_get_status_text,
	.file = scoped_pane_get_file_name, .export = gaps_pane_export, .omitted_text = gaps_pane_get_omitted_text,
	.drop_answer = gaps_pane_drop_answer, .orders = ORDERS,
	.name_prefix = "gaps of ", .file_prefix = "gaps-",
};
