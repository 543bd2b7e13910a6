/* The gaps pane: the report of `gaps` on a row, and a histogram of the lengths. The pane keeps the row and the window for
 * which it was opened, so that the user can step from gap to gap.
 *
 * It lists the ASK_LISTED longest gaps; without a filter, sums, histogram and percentiles cover all gaps. */
#include "base/base.h"
#include "ui/panes/pane.h"
#include "ui/widgets/widgets.h"

struct gaps_pane {
	struct table_pane table;
	struct gap_list list;
};

static const struct gap_item *item_of(const struct pane *pane, size_t i)
{
	return &((const struct gaps_pane *)pane)->list.item[table_pane_row(pane, i)];
}

static int64_t length_of(const struct gap_item *item)
{
	return item->gap.end - item->gap.start + 1;
}

static struct row_id row_of(const struct gap *gap)
{
	return (struct row_id){ gap->target.kind == TARGET_CPU ? ROW_CPU : ROW_THREAD, gap->target.index };
}

static struct query *gaps_pane_open_query(struct app *app, struct pane *pane, struct error *err)
{
	struct target s;
	(void)err;
	const struct gap_options options = { .from = pane->from, .to = pane->to, .top = ASK_LISTED };
	return gap_list_open(&app->catalog, pane_target(app, pane, &s), &options);
}

static void gaps_pane_drop_answer(struct pane *pane)
{
	gap_list_release(&((struct gaps_pane *)pane)->list);
}

static int gaps_pane_report(struct app *app, struct pane *pane, FILE *f, struct report_how how, struct origin *o,
                            struct error *err)
{
	struct target s;
	return report_gaps(f, how, &app->catalog, &((struct gaps_pane *)pane)->list, pane_target(app, pane, &s), false, o, err);
}

/* Computes the statistics of the lines shown; percentiles only of all gaps. */
static struct gap_lengths statistics_of(const struct pane *pane)
{
	struct gap_lengths shown = { .count = pane->lines };
	if (!pane->filter[0])
		return ((const struct gaps_pane *)pane)->list.all;
	for (size_t i = 0; i < pane->lines; i++) {
		const int64_t ns = length_of(item_of(pane, i));
		shown.total += ns;
		shown.longest = ns > shown.longest ? ns : shown.longest;
		shown.bin[length_bin(ns)]++;
	}
	return shown;
}

/* Appends the key of the lock waits, "; b: lock waits", if locks were recorded: a waiter may have lost time to a
 * preempted lock holder. */
static void add_locks_hint(const struct app *app, const struct target *s, char *buf, size_t size)
{
	char keys[64];
	if (s->kind != TARGET_CPU && locks_have_events(&app->catalog, target_machine(&app->catalog, s)))
		snprintf(buf, size, "; %s: lock waits ", keymap_text(&app->keymap, ACT_LOCKS, keys, sizeof keys));
}

static void gaps_pane_get_title(const struct app *app, const struct pane *pane, int w, char *buf, size_t size)
{
	const struct gap_list *l = &((const struct gaps_pane *)pane)->list;
	const struct gap_lengths shown = statistics_of(pane);
	char name[512], total[TIME_TEXT], length[TIME_TEXT], of_all[64] = "";
	struct target s;
	table_pane_get_name(app, pane, name, sizeof name);
	if (shown.count == 1)
		memmove(name + strlen("gap"), name + strlen("gaps"), strlen(name + strlen("gaps")) + 1);
	if (l->all.count == 0 && !catalog_has_host_trace(&app->catalog, pane_target(app, pane, &s))) {
		snprintf(buf, size, " %s: unknown without a host trace ", name);
		return;
	}
	if (pane->filter[0] && l->all.count > l->items)
		snprintf(of_all, sizeof of_all, " among the longest %zu", l->items);
	int n = snprintf(buf, size, " %" PRIu64 " %s in %s: %s%s ", shown.count, name,
	                 pane_window_text(app, pane->from, pane->to, length), time_duration(total, shown.total), of_all);
	if (n + 60 < w)
		add_locks_hint(app, pane_target(app, pane, &s), buf + n - 1, size - (size_t)n + 1);
}

static int gaps_pane_draw_above(const struct app *app, const struct pane *pane, struct screen *s, int y)
{
	const struct gap_lengths l = statistics_of(pane);
	char p50[TIME_TEXT], p90[TIME_TEXT], p99[TIME_TEXT], longest[TIME_TEXT], quantiles[4 * TIME_TEXT + 32];
	if (!s || !l.count)
		return 1;
	const int x = 3 + histogram_draw(app, s, 1, y, s->w - 1, l.bin);
	const int n = snprintf(quantiles, sizeof quantiles, "max %s", time_duration(longest, l.longest));
	if (l.p50)
		snprintf(quantiles + n, sizeof quantiles - (size_t)n, "  p50 %s  p90 %s  p99 %s", time_duration(p50, l.p50),
		         time_duration(p90, l.p90), time_duration(p99, l.p99));
	screen_phrases(s, x, y, s->w - x, app->appearance.palette.part[PART_RULER], quantiles);
	return 1;
}

/* Writes the gap and its main culprits: the table shows only the first. */
static void gaps_pane_get_status_text(const struct app *app, const struct pane *pane, size_t i, char *buf, size_t size)
{
	const struct gap_list *l = &((const struct gaps_pane *)pane)->list;
	const struct gap_item *item = item_of(pane, i);
	char name[ACTOR_TEXT], d[TIME_TEXT];
	catalog_target_text(&app->catalog, &item->gap.target, name, sizeof name);
	size_t used = (size_t)snprintf(buf, size, "%s waited %s", name, time_duration(d, length_of(item)));
	const bool is_whole = item->top.actors > 1;
	if (is_whole && used < size)
		used += (size_t)snprintf(buf + used, size - used, ", %.0f %% of it for %s in total",
		                         100 * (double)item->top.ns / (double)length_of(item),
		                         actor_text(&app->catalog, &item->top.actor, l->name[item->top.actor.name], ACTOR_SHOWN,
		                                    &item->gap.target, name, sizeof name));
	for (size_t k = 0; k < item->culprits && k < (is_whole ? 2 : 3) && used < size; k++) {
		const struct flow_entry *e = &l->culprit[item->culprit + k];
		actor_text(&app->catalog, &e->actor, l->name[e->actor.name], ACTOR_SHOWN, NULL, name, sizeof name);
		used += (size_t)snprintf(buf + used, size - used, "%s %.0f %% %sfor %s", k || is_whole ? ";" : ",", 100 * e->share,
		                         k || is_whole ? "" : "of it ", name);
	}
}

static void gaps_pane_get_omitted_text(const struct pane *pane, char *buf, size_t size)
{
	const struct gap_list *l = &((const struct gaps_pane *)pane)->list;
	if (l->all.count > l->items)
		snprintf(buf, size, ": the longest %zu of %" PRIu64 " (gaps --top 0 writes all)", l->items, l->all.count);
}

static void gaps_pane_follow_line(struct app *app, struct pane *pane, size_t i)
{
	const struct gap gap = item_of(pane, i)->gap;
	pane_go(app, row_of(&gap), gap.start, gap.end);
}

const struct pane_ops gaps_pane = {
	TABLE_PANE, .size = sizeof(struct gaps_pane), .is_scoped = true, .open = pane_scope_open,
	.query = gaps_pane_open_query, PANE_ANSWER(struct gaps_pane, list), .report = gaps_pane_report,
	.orders = "duration_ns start culprit", .marked = "duration_ns", .is_ordered = true, .title = gaps_pane_get_title,
	.above = gaps_pane_draw_above, .follow = gaps_pane_follow_line, .status_text = gaps_pane_get_status_text,
	.omitted_text = gaps_pane_get_omitted_text, .drop_answer = gaps_pane_drop_answer, .name_prefix = "gaps of ",
	.file_prefix = "gaps-", .sort = table_pane_sort, .name = table_pane_get_name, .file = table_pane_get_file_name,
	.export = table_pane_export,
};
