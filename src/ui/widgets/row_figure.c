/* The figure beside a row's name: how much it lost in the window. */
#include "ui/widgets/widgets.h"

#include <stdio.h>

#include "base/timefmt.h"

static const struct { const char *heading, *says; } units[LOST_UNITS] = {
	[LOST_OF_WANTED] = { "lost", "as a share of the time in which it wanted to run" },
	[LOST_OF_WINDOW] = { "lost/window", "as a share of the window" },
	[LOST_OF_LIFE] = { "lost/life", "as a share of the time in which it was there" },
	[LOST_TIME] = { "lost, time", "as a time" },
};

const char *figure_heading(const struct app *app)
{
	return units[app->unit].heading;
}

void figure_next_unit(struct app *app)
{
	app->unit = (enum lost_unit)((app->unit + 1) % LOST_UNITS);
	app_say(app, "what was lost is shown %s", units[app->unit].says);
}

static int64_t whole_of(const struct app *app, const struct demand *d)
{
	int64_t window = view_last(&app->view, &app->ground) - app->view.t0 + 1;
	switch (app->unit) {
	case LOST_OF_WINDOW: return window * d->rows;
	case LOST_OF_LIFE: return d->alive;
	default: return d->ran + d->lost;
	}
}

const char *figure_per(const struct demand *d)
{
	return d->alive - d->ran - d->lost - d->slept > d->ran + d->lost ? "?" : "%";
}

/* Of the host and containers nothing is told: they have thousands of threads. */
static bool has_figure(const struct app *app, struct row_id row, struct subject *s)
{
	if (row.kind == ROW_MACHINE)
		return app->topo.machine[row.index].kind == MACHINE_VM && app->topo.machine[row.index].cpus > 0 &&
		       row_subject(&app->topo, row, s);
	return row_subject(&app->topo, row, s) && row_attr(&app->rows, row) != HISTORY_NONE;
}

void figure_text(struct app *app, struct row_id row, char *buf, size_t size)
{
	struct subject s;
	struct demand d;
	char time[TIME_TEXT];
	buf[0] = '\0';
	if (!has_figure(app, row, &s) || !topo_is_watched(&app->topo, &s) ||
	    demand_of(&app->topo, &s, app->view.t0, view_last(&app->view, &app->ground), &d, NULL) < 0)
		return;
	const char *per = app->unit == LOST_OF_WANTED ? figure_per(&d) : "%";
	int64_t whole = whole_of(app, &d);
	double share = whole > 0 ? 100.0 * (double)d.lost / (double)whole : 0;
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
