/* The lost time next to each row's name, in the chosen unit. */
#include "base/base.h"
#include "ui/widgets/widgets.h"

static const struct { const char *heading, *text; } units[LOST_UNITS] = {
	[LOST_OF_WANTED] = { "lost", "% of runnable time" },
	[LOST_OF_WINDOW] = { "lost/window", "% of the window" },
	[LOST_OF_LIFE] = { "lost/life", "% of the row's lifetime" },
	[LOST_TIME] = { "lost, time", "seconds" },
};

const char *lost_heading(const struct app *app)
{
	return units[app->unit].heading;
}

void lost_next_unit(struct app *app)
{
	app->unit = (enum lost_unit)((app->unit + 1) % LOST_UNITS);
	app_message(app, "lost time in %s", units[app->unit].text);
}

static int64_t reference_time(const struct app *app, const struct demand *d)
{
	int64_t window = view_last(&app->view, &app->bounds) - app->view.t0 + 1;
	switch (app->unit) {
	case LOST_OF_WINDOW: return window * d->rows;
	case LOST_OF_LIFE: return d->alive;
	default: return d->ran + d->lost;
	}
}

/* Returns true if the row shows its lost time. Host and containers do not: they have thousands of threads. */
static bool shows_lost(const struct app *app, struct row_id row, struct target *s)
{
	if (row.kind == ROW_MACHINE)
		return app->catalog.machine[row.index].kind == MACHINE_VM && app->catalog.machine[row.index].cpus > 0 &&
		       row_target(&app->catalog, row, s);
	return row_target(&app->catalog, row, s) && row_attr(&app->rows, row) != HISTORY_NONE;
}

void lost_text(struct app *app, struct row_id row, char *buf, size_t size)
{
	struct target s;
	struct demand d;
	char time[TIME_TEXT];
	buf[0] = '\0';
	if (!shows_lost(app, row, &s) || !catalog_has_host_trace(&app->catalog, &s) ||
	    demand_of(&app->catalog, &s, app->view.t0, view_last(&app->view, &app->bounds), &d, NULL) < 0)
		return;
	const char *per = app->unit == LOST_OF_WANTED ? demand_share_unit(&d) : "%";
	int64_t reference = reference_time(app, &d);
	double share = reference > 0 ? 100.0 * (double)d.lost / (double)reference : 0;
	if (d.ran + d.lost == 0)
		return;
	if (app->unit == LOST_TIME)
		snprintf(buf, size, "%s", time_duration(time, d.lost));
	else if (share >= 9.95 || d.lost == 0)
		snprintf(buf, size, "%.0f%s", share, per);
	else if (share >= 0.05)
		snprintf(buf, size, "%.1f%s", share, per);
	else
		snprintf(buf, size, "<0.1%s", per);
}
