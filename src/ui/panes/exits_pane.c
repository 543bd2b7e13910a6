/* The exits pane: the report of `exits` on a row, and a histogram of the durations of the selected line. */
#include "base/base.h"
#include "ui/panes/pane.h"
#include "ui/widgets/widgets.h"

struct exits_pane {
	struct table_pane table;
	struct exit_list list;
};

static struct query *exits_pane_open_query(struct app *app, struct pane *pane, struct error *err)
{
	struct target s;
	const struct exit_options options = { .only = pane_target(app, pane, &s), .from = pane->from, .to = pane->to,
		.by_thread = s.kind == TARGET_THREAD };
	return exits_open(&app->catalog, &options, err);
}

static void exits_pane_drop_answer(struct pane *pane)
{
	exits_release(&((struct exits_pane *)pane)->list);
}

static int exits_pane_report(struct app *app, struct pane *pane, FILE *f, struct report_how how, struct origin *o,
                             struct error *err)
{
	return report_exits(f, how, &app->catalog, &((struct exits_pane *)pane)->list, false, false, o, err);
}

static const struct exit_row *row_of(const struct pane *pane, size_t i)
{
	return &((const struct exits_pane *)pane)->list.row[table_pane_row(pane, i)];
}

static void exits_pane_get_title(const struct app *app, const struct pane *pane, int w, char *buf, size_t size)
{
	const struct exit_list *l = &((const struct exits_pane *)pane)->list;
	char name[640], length[TIME_TEXT], total[TIME_TEXT];
	int64_t ns = 0;
	(void)w;
	for (size_t i = 0; i < l->rows; i++)
		ns += l->row[i].total;
	table_pane_get_name(app, pane, name, sizeof name);
	pane_window_text(app, pane->from, pane->to, length);
	if (l->rows == 0)
		snprintf(buf, size, l->silent ? " %s: none recorded " : " no %s in %s ", name, length);
	else
		snprintf(buf, size, " %s in %s: %s outside the guest ", name, length, time_duration(total, ns));
}

static void exits_pane_get_empty_text(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	(void)app;
	if (((const struct exits_pane *)pane)->list.silent)
		snprintf(buf, size, "%s", "Record the events kvm_entry and kvm_exit on the host.");
}

static int exits_pane_draw_above(const struct app *app, const struct pane *pane, struct screen *s, int y)
{
	const struct exit_list *l = &((const struct exits_pane *)pane)->list;
	const struct style style = app->appearance.palette.part[PART_RULER];
	char reason[128];
	if (s && pane->at < pane->lines) {
		const struct exit_row *row = row_of(pane, pane->at);
		text_escape(reason, sizeof reason, row->reason < l->names ? l->name[row->reason] : "?");
		const int x = 1 + screen_printf(s, 1, y, s->w, style, "%s: duration ", reason);
		histogram_draw(app, s, x, y, s->w - x, row->bin);
	}
	return 1;
}

static void exits_pane_follow_line(struct app *app, struct pane *pane, size_t i)
{
	const struct exit_row row = *row_of(pane, i);
	if (row.timed)
		pane_go(app, (struct row_id){ ROW_CPU, row.vcpu }, row.max_at, row.max_at + row.max - 1);
	else
		app_message(app, "no re-entry was recorded after this exit");
}

const struct pane_ops exits_pane = {
	TABLE_PANE, .size = sizeof(struct exits_pane), .is_scoped = true, .open = pane_scope_open,
	.query = exits_pane_open_query, PANE_ANSWER(struct exits_pane, list), .report = exits_pane_report,
	.orders = "total_ns count mean_ns p99_ns max_ns", .title = exits_pane_get_title,
	.empty_text = exits_pane_get_empty_text, .above = exits_pane_draw_above, .follow = exits_pane_follow_line,
	.drop_answer = exits_pane_drop_answer, .name_prefix = "VM exits of ", .file_prefix = "exits-",
	.sort = table_pane_sort, .name = table_pane_get_name, .file = table_pane_get_file_name,
	.status_text = table_pane_get_status_text, .export = table_pane_export,
};
