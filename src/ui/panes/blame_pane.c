/* The steal matrix: time that each culprit took from each victim; first the machines, then the threads that lost most.
 *
 * The window is A..B if both markers are set, otherwise the window on the screen. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "ui/core/follow_cause.h"
#include "ui/panes/pane.h"
#include "ui/panes/pane_export.h"

struct blame_pane {
	struct pane pane;
	struct steal steal;
	bool by_machine;       /* the matrix is summed by machine, because there are too many threads */
	struct blame_line {
		char *text;
		struct actor actor;
		int64_t ns, victim_total; /* ns: time lost; victim_total: sum of the victim; 0: no share is shown */
		bool heading;
	} *line;
	size_t lines_cap;
};

static void blame_pane_drop_answer(struct pane *pane)
{
	struct blame_pane *p = (struct blame_pane *)pane;
	steal_release(&p->steal);
	for (size_t i = 0; i < p->pane.lines; i++)
		free(p->line[i].text);
	free(p->line);
	*p = (struct blame_pane){ .pane = p->pane };
}

static void add_line(struct blame_pane *p, char *text, const struct actor *actor, int64_t ns, int64_t victim_total,
                     bool heading)
{
	*ARRAY_PUSH(p->line, p->pane.lines, p->lines_cap) = (struct blame_line){ text, *actor, ns, victim_total, heading };
}

static char *actor_name(const struct app *app, const struct steal *s, const struct actor *actor)
{
	char buf[ACTOR_TEXT];
	if (actor->tid < 0 && actor->kind == FLOW_RUNNING && actor->machine >= 0)
		return mem_dup(text_escape(buf, sizeof buf, app->catalog.machine[actor->machine].name));
	actor_text(&app->catalog, actor, actor->name < s->names ? s->name[actor->name] : NULL,
	           ACTOR_SHOWN, NULL, buf, sizeof buf);
	return mem_dup(buf);
}

static void blame_pane_take_answer(struct app *app, struct pane *pane, struct query *q)
{
	struct blame_pane *p = (struct blame_pane *)pane;
	const struct steal *s = &p->steal;
	steal_take(q, &p->steal);
	p->by_machine = s->by == STEAL_BY_MACHINE;
	int64_t total = 0;
	for (size_t i = 0; i < s->cells; i++) {
		if (i == 0 || !actor_same(&s->cell[i].victim, &s->cell[i - 1].victim)) {
			total = 0;
			for (size_t k = i; k < s->cells && actor_same(&s->cell[k].victim, &s->cell[i].victim); k++)
				total += s->cell[k].ns;
			add_line(p, actor_name(app, s, &s->cell[i].victim), &s->cell[i].victim, total, 0, true);
		}
		add_line(p, actor_name(app, s, &s->cell[i].culprit), &s->cell[i].culprit, s->cell[i].ns, total, false);
	}
}

static struct query *blame_pane_open_query(struct app *app, struct pane *pane, struct error *err)
{
	(void)err;
	const struct steal_options options = { .by = STEAL_BY_THREAD, .from = pane->from, .to = pane->to, .most = ASK_CELLS };
	return steal_open(&app->catalog, &options);
}

static void blame_pane_get_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	(void)app;
	(void)pane;
	snprintf(buf, size, "CPU time taken");
}

static void blame_pane_get_title(const struct app *app, const struct pane *pane, int w, char *buf, size_t size)
{
	const struct blame_pane *p = (const struct blame_pane *)pane;
	char length[TIME_TEXT];
	const char *none = catalog_lacks_host_trace(&app->catalog, NULL) ? ": unknown without a host trace" : ": none";
	(void)w;
	snprintf(buf, size, " CPU time taken in %s%s ", pane_window_text(app, p->steal.start, p->steal.end, length),
	         !pane->lines ? none : p->by_machine ? ", by machine (zoom in for threads)" : "");
}

static void blame_pane_draw_line(struct app *app, struct pane *pane, struct screen *s, int y, size_t i, bool selected)
{
	const struct blame_line *line = &((struct blame_pane *)pane)->line[i];
	struct style style = pane_style(app, line->heading ? PART_TITLE : PART_NORMAL, selected);
	int name_w = s->w / 2 < 30 ? 30 : s->w / 2 > 60 ? 60 : s->w / 2;
	double share = line->victim_total > 0 ? (double)line->ns / (double)line->victim_total : 0;
	char d[TIME_TEXT], name[ACTOR_TEXT], part[16] = "";
	snprintf(name, sizeof name, "%s", line->text);
	text_shorten_machine(name, name_w - 3 - (int)strlen(line->heading ? " lost" : "to "));
	screen_printf(s, line->heading ? 1 : 3, y, name_w - 3, style, "%s%s%s", line->heading ? "" : "to ", name,
	              line->heading ? " lost" : "");
	if (!line->heading)  /* no share for the victim itself: the timeline shows its lost time next to its row */
		text_share(part, share);
	screen_printf(s, name_w, y, s->w - name_w, style, "%10s %6s", time_duration(d, line->ns), part);
	int cols = s->w - name_w - 20;
	if (cols > 4 && !line->heading)
		screen_fill(s, name_w + 18, y, (int)((double)cols * share), '#', app->appearance.palette.part[PART_STEAL]);
}

static void blame_pane_get_file_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	(void)app;
	(void)pane;
	snprintf(buf, size, "steal-window");
}

static int blame_pane_export(struct app *app, struct pane *pane, FILE *f, enum report_format format, struct error *err)
{
	struct origin o;
	export_origin(app, pane, NULL, &o);
	int rc = report_steal(f, REPORT_WHOLE(format), &app->catalog, &((struct blame_pane *)pane)->steal, NULL, &o, err);
	origin_release(&o);
	return rc;
}

/* Selects the row of the line's victim or culprit. */
static void blame_pane_follow_line(struct app *app, struct pane *pane, size_t i)
{
	const struct blame_pane *p = (const struct blame_pane *)pane;
	const struct actor *actor = &p->line[i].actor;
	follow_to_actor(app, actor, actor->name < p->steal.names ? p->steal.name[actor->name] : NULL);
}

const struct pane_ops blame_pane = {
	.size = sizeof(struct blame_pane), .query = blame_pane_open_query, .take = blame_pane_take_answer,
	.name = blame_pane_get_name, .title = blame_pane_get_title,
	.line = blame_pane_draw_line, .follow = blame_pane_follow_line, .file = blame_pane_get_file_name,
	.export = blame_pane_export, .drop_answer = blame_pane_drop_answer,
};
