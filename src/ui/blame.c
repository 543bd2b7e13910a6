/* The steal matrix of the window: who lost time, to whom.  By machine first, then the threads that lost most. */
#include "ui/app.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/timefmt.h"

static void drop_lines(struct blame_pane *p)
{
	for (size_t i = 0; i < p->lines; i++)
		free(p->line[i].text);
	p->lines = 0;
}

void blame_release(struct blame_pane *p)
{
	if (p->valid)
		steal_release(&p->steal);
	drop_lines(p);
	free(p->line);
	*p = (struct blame_pane){ .cost = p->cost, .stale = p->stale, .asked = p->asked };
}

static bool same_party(const struct steal_party *a, const struct steal_party *b)
{
	return a->system == b->system && a->tid == b->tid && a->name == b->name && a->kind == b->kind;
}

static void add_line(struct blame_pane *p, char *text, int64_t ns, bool heading)
{
	*ARRAY_PUSH(p->line, p->lines, p->lines_cap) = (struct blame_line){ text, ns, heading };
}

static char *party(const struct app *app, const struct steal *s, const struct steal_party *who)
{
	char buf[256];
	if (who->tid < 0 && who->kind == FLOW_RUNNING && who->system >= 0)
		return mem_dup(app->topo.machine[who->system].name);
	flow_party_text(&app->topo, who->system, who->tid, who->name < s->names ? s->name[who->name] : NULL,
	                (enum flow_kind)who->kind, buf, sizeof buf);
	return mem_dup(buf);
}

static void make_lines(struct app *app)
{
	struct blame_pane *p = &app->blame;
	const struct steal *s = &p->steal;
	for (size_t i = 0; i < s->cells; i++) {
		if (i == 0 || !same_party(&s->cell[i].victim, &s->cell[i - 1].victim)) {
			int64_t total = 0;
			for (size_t k = i; k < s->cells && same_party(&s->cell[k].victim, &s->cell[i].victim); k++)
				total += s->cell[k].ns;
			add_line(p, party(app, s, &s->cell[i].victim), total, true);
		}
		add_line(p, party(app, s, &s->cell[i].thief), s->cell[i].ns, false);
	}
}

static void take(struct app *app)
{
	struct blame_pane *p = &app->blame;
	struct answer answer;
	if (!p->asked || !app_answer(app, ASK_STEAL, &answer))
		return;
	p->cost = answer.cost;
	p->asked = false;
	if (answer.status < 0) {
		app_fail(app, &answer.err);
		return;
	}
	blame_release(p);
	p->steal = answer.steal;
	p->from = p->steal.start;
	p->to = p->steal.end;
	p->by_machine = answer.by_machine;
	p->valid = true;
	make_lines(app);
}

void blame_refresh(struct app *app)
{
	struct blame_pane *p = &app->blame;
	struct question q = { .from = app->view.t0, .to = view_last(&app->view, &app->ground) };
	if (p->stale && !(app->coarse && p->cost > 5000000)) {
		p->stale = false;
		if (p->asked || !p->valid || p->from != q.from || p->to != q.to) {
			p->asked = true;
			asker_ask(app->asker, ASK_STEAL, &q);
		}
	}
	take(app);
}

void blame_draw(struct app *app, struct screen *s, int y, int height)
{
	struct blame_pane *p = &app->blame;
	struct style title = app->palette.part[PART_TITLE], normal = app->palette.part[PART_NORMAL];
	char d[TIME_TEXT];
	int name_w = s->w / 2 < 30 ? 30 : s->w / 2 > 60 ? 60 : s->w / 2;
	int64_t window = p->to - p->from + 1, whole = 0;
	screen_fill(s, 0, y, s->w, '-', title);
	if (p->asked)
		screen_printf(s, 1, y, s->w - 2, title, " who took from whom: reading %u %%, Esc cancels ",
		              asker_progress(app->asker, ASK_STEAL));
	else
		screen_printf(s, 1, y, s->w - 2, title, " who took from whom in these %s%s ", time_duration(d, window),
		              !p->lines ? ": nobody lost anything" : p->by_machine ? ", by machine: zoom in for threads" : "");
	size_t page = height > 1 ? (size_t)height - 1 : 0;
	if (p->top + page > p->lines)
		p->top = p->lines > page ? p->lines - page : 0;
	for (size_t k = p->top; k > 0 && whole == 0; k--)  /* what the first lines are shares of */
		whole = p->line[k - 1].heading ? p->line[k - 1].ns : 0;
	for (int i = 1; i <= (int)page && p->top + (size_t)i <= p->lines; i++) {
		const struct blame_line *line = &p->line[p->top + (size_t)i - 1];
		struct style style = line->heading ? title : normal;
		whole = line->heading ? line->ns : whole;
		screen_fill(s, 0, y + i, s->w, ' ', normal);
		screen_printf(s, line->heading ? 1 : 3, y + i, name_w - 3, style, "%s%s%s", line->heading ? "" : "to ",
		              line->text, line->heading ? " lost" : "");
		screen_printf(s, name_w, y + i, s->w - name_w, style, "%10s %5.1f%%", time_duration(d, line->ns),
		              100.0 * (double)line->ns / (double)(line->heading ? window : whole ? whole : 1));
		int cols = s->w - name_w - 20;
		if (cols > 4 && whole > 0 && !line->heading)
			screen_fill(s, name_w + 18, y + i, (int)((double)cols * (double)line->ns / (double)whole), '#',
			            app->palette.part[PART_STEAL]);
	}
}
