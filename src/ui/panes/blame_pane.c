/* The steal matrix: who lost time, to whom.  By machine first, then the threads that lost most.
 *
 * The window is A..B when both markers are set, else what the screen shows. */
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
	bool by_machine;       /* there are too many threads */
	struct blame_line {
		char *text;
		struct party who;
		int64_t ns, whole; /* what was lost; what that is a share of, 0: nothing */
		bool heading;
	} *line;
	size_t lines_cap;
};

static void forget(struct pane *pane)
{
	struct blame_pane *p = (struct blame_pane *)pane;
	steal_release(&p->steal);
	for (size_t i = 0; i < p->pane.lines; i++)
		free(p->line[i].text);
	free(p->line);
	*p = (struct blame_pane){ .pane = p->pane };
}

static void add_line(struct blame_pane *p, char *text, const struct party *who, int64_t ns, int64_t whole, bool heading)
{
	*ARRAY_PUSH(p->line, p->pane.lines, p->lines_cap) = (struct blame_line){ text, *who, ns, whole, heading };
}

static char *party(const struct app *app, const struct steal *s, const struct party *who)
{
	char buf[PARTY_TEXT];
	if (who->tid < 0 && who->kind == FLOW_RUNNING && who->system >= 0)
		return mem_dup(text_escape(buf, sizeof buf, app->topo.machine[who->system].name));
	party_shown(&app->topo, who, who->name < s->names ? s->name[who->name] : NULL, buf, sizeof buf);
	return mem_dup(buf);
}

static void take(struct app *app, struct pane *pane, struct answer *answer)
{
	struct blame_pane *p = (struct blame_pane *)pane;
	const struct steal *s = &p->steal;
	p->steal = answer->steal;
	p->by_machine = answer->steal.by == STEAL_BY_MACHINE;
	int64_t total = 0;
	for (size_t i = 0; i < s->cells; i++) {
		if (i == 0 || !party_same(&s->cell[i].victim, &s->cell[i - 1].victim)) {
			total = 0;
			for (size_t k = i; k < s->cells && party_same(&s->cell[k].victim, &s->cell[i].victim); k++)
				total += s->cell[k].ns;
			add_line(p, party(app, s, &s->cell[i].victim), &s->cell[i].victim, total, 0, true);
		}
		add_line(p, party(app, s, &s->cell[i].thief), &s->cell[i].thief, s->cell[i].ns, total, false);
	}
}

static void question(const struct app *app, const struct pane *pane, struct question *q)
{
	(void)pane;
	pane_window(app, &q->from, &q->to);
}

static void name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	(void)app;
	(void)pane;
	snprintf(buf, size, "who took from whom");
}

static void title(const struct app *app, const struct pane *pane, int w, char *buf, size_t size)
{
	const struct blame_pane *p = (const struct blame_pane *)pane;
	char span[TIME_TEXT];
	const char *nobody = topo_is_alone(&app->topo, NULL) ? ": what a host took is not known" : ": nobody lost anything";
	(void)w;
	snprintf(buf, size, " who took from whom in %s%s ", pane_span_text(app, p->steal.start, p->steal.end, span),
	         !pane->lines ? nobody : p->by_machine ? ", by machine: a shorter time tells threads" : "");
}

static void draw_line(struct app *app, struct pane *pane, struct screen *s, int y, size_t i, bool selected)
{
	const struct blame_line *line = &((struct blame_pane *)pane)->line[i];
	struct style style = pane_style(app, line->heading ? PART_TITLE : PART_NORMAL, selected);
	int name_w = s->w / 2 < 30 ? 30 : s->w / 2 > 60 ? 60 : s->w / 2;
	double share = line->whole > 0 ? (double)line->ns / (double)line->whole : 0;
	char d[TIME_TEXT], who[PARTY_TEXT], part[16] = "";
	snprintf(who, sizeof who, "%s", line->text);
	text_squeeze(who, name_w - 3 - (int)strlen(line->heading ? " lost" : "to "));
	screen_printf(s, line->heading ? 1 : 3, y, name_w - 3, style, "%s%s%s", line->heading ? "" : "to ", who,
	              line->heading ? " lost" : "");
	if (!line->heading)  /* a victim's share of what it wanted is beside its row */
		text_share(part, share);
	screen_printf(s, name_w, y, s->w - name_w, style, "%10s %6s", time_duration(d, line->ns), part);
	int cols = s->w - name_w - 20;
	if (cols > 4 && !line->heading)
		screen_fill(s, name_w + 18, y, (int)((double)cols * share), '#', app->look.palette.part[PART_STEAL]);
}

static void file_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	(void)app;
	(void)pane;
	snprintf(buf, size, "steal-window");
}

static int write_to(struct app *app, struct pane *pane, FILE *f, enum report_format format, struct error *err)
{
	struct origin o;
	export_origin(app, pane, NULL, &o);
	int rc = report_steal(f, REPORT_WHOLE(format), &app->topo, &((struct blame_pane *)pane)->steal, NULL, &o, err);
	origin_release(&o);
	return rc;
}

/* To the row of a victim or thief. */
static void go(struct app *app, struct pane *pane, size_t i)
{
	const struct blame_pane *p = (const struct blame_pane *)pane;
	const struct party *who = &p->line[i].who;
	follow_party(app, who, who->name < p->steal.names ? p->steal.name[who->name] : NULL);
}

const struct pane_ops blame_pane = {
	.size = sizeof(struct blame_pane), .ask = ASK_STEAL, .question = question, .answer = take,
	.name = name, .title = title, .line = draw_line, .go = go, .file = file_name, .export = write_to,
	.forget = forget,
};
