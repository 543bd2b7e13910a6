/* Goes to gaps of a row. See longest_gap.h. */
#include "ui/core/longest_gap.h"

#include "base/base.h"
#include "ui/core/rows.h"
#include "ui/panes/pane.h"

static const enum row_kind row_kind_of[] = { [TARGET_MACHINE] = ROW_MACHINE, [TARGET_CPU] = ROW_CPU,
	[TARGET_THREAD] = ROW_THREAD };

static bool is_tid(const char *text)
{
	const size_t digits = strspn(text, "0123456789");
	return digits > 0 && digits < 10 && !text[digits];
}

/* Finds the only thread with a TID, preferably of the host. Returns false if the text is no TID of the history. */
static bool find_tid(const struct catalog *catalog, const char *text, struct target *s)
{
	for (uint32_t m = 0; m < catalog->machines && is_tid(text); m++) {
		const int thread = catalog_find_thread(catalog, m, atoi(text));
		if (thread < 0)
			continue;
		*s = (struct target){ TARGET_THREAD, (uint32_t)thread };
		return true;
	}
	return false;
}

static bool selected_target(const struct app *app, struct target *s)
{
	const struct row_id row = app->view.row;
	for (unsigned kind = 0; kind < sizeof row_kind_of / sizeof *row_kind_of; kind++) {
		if ((unsigned)row_kind_of[kind] == row.kind) {
			*s = (struct target){ (enum target_kind)kind, row.index };
			return true;
		}
	}
	return false;
}

/* Replaces the thread of one vCPU by that vCPU. */
static void prefer_vcpu(const struct catalog *catalog, struct target *s)
{
	const int32_t role = s->kind == TARGET_THREAD ? catalog->thread[s->index].role : -1;
	if (role >= 0 && catalog->role[role].next < 0)
		*s = (struct target){ TARGET_CPU, catalog->role[role].vcpu };
}

/* Finds the row that the user named, or the selected one. Returns false with a message if there is none. */
static bool find_row(struct app *app, const char *text, struct target *s)
{
	struct error err = ERROR_INIT;
	if (!*text && !selected_target(app, s)) {
		app_message(app, "the selected row has no gaps");
		return false;
	}
	if (*text && !find_tid(&app->catalog, text, s) && catalog_parse_target(&app->catalog, text, s, &err) < 0) {
		if (is_tid(text))
			app_refuse(app, "thread %s did not run while this was recorded: no event names it", text);
		else
			app_fail(app, &err);
		return false;
	}
	prefer_vcpu(&app->catalog, s);
	if (app->pane_below && app->pane_below->ops->replaces_rows)
		pane_close(app);
	return true;
}

void longest_gap_show(struct app *app, const char *text)
{
	struct error err = ERROR_INIT;
	struct target s;
	struct gap_list list = { 0 };
	char d[TIME_TEXT], name[ACTOR_TEXT];
	const struct gap_options options = { .from = app->bounds.begin, .to = app->bounds.end, .min = 1, .top = 1 };
	if (!find_row(app, text, &s))
		return;
	if (query_answer(gap_list_open(&app->catalog, &s, &options), &list, &err) < 0) {
		app_fail(app, &err);
		return;
	}
	if (list.items) {
		const struct gap *gap = &list.item[0].gap;
		const struct row_id row = { (uint8_t)row_kind_of[gap->target.kind], gap->target.index };
		pane_go(app, row, gap->start, gap->end);
		app_message(app, "longest gap of %s: %s", catalog_target_text(&app->catalog, &gap->target, name, sizeof name),
		            time_duration(d, gap->end - gap->start + 1));
	} else {
		app_show_row(app, (struct row_id){ (uint8_t)row_kind_of[s.kind], s.index });
		app_message(app, "%s never waited in this recording", catalog_target_text(&app->catalog, &s, name, sizeof name));
	}
	gap_list_release(&list);
}

void gap_place_show(struct app *app, const char *text, const char *time)
{
	struct error err = ERROR_INIT;
	struct target s = { TARGET_MACHINE, 0 };
	struct gap gap;
	int64_t t = app->bounds.begin;
	if (text && !find_row(app, text, &s))
		return;
	const int guest = time ? guest_time_parse(&app->catalog, time, &t, &err) : 0;
	if (guest < 0 || (time && guest == 0 && !time_parse(time, app->bounds.begin, app->bounds.end, &t))) {
		if (guest < 0)
			app_fail(app, &err);
		else
			app_refuse(app, "--at %.60s: not a time (+3ms -3ms 50%% 12:03:04)", time);
		return;
	}
	const struct row_id row = { (uint8_t)row_kind_of[s.kind], s.index };
	if (!text && app->pane_below && app->pane_below->ops->replaces_rows)
		pane_close(app);
	/* A printed time is cut: the gap may begin before the next one that has as many digits. */
	const int64_t last = time ? t + time_precision(time) - 1 : t;
	if (text && time && s.kind != TARGET_MACHINE &&
	    (gap_at(&app->catalog, &s, t, &gap, &err) > 0 || gap_at(&app->catalog, &s, last, &gap, &err) > 0)) {
		pane_go(app, row, gap.start, gap.end);
		return;
	}
	if (text)
		app_show_row(app, row);
	if (time)
		view_goto(&app->view, &app->bounds, t);
}
