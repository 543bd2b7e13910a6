/* The lists that open over the rows: help, themes and legend, details, bookmarks, requests. */
#include "ui/app.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"

void open_help(struct app *app)
{
	const char *section = "";
	pager_open(&app->pager, PAGER_HELP, false, "help");
	for (int a = ACT_NONE + 1; a < ACT_COUNT; a++) {
		char keys[128];
		if (strcmp(section, action_info[a].section) != 0) {
			section = action_info[a].section;
			pager_add(&app->pager, -1, "%s", section)->heading = true;
		}
		pager_add(&app->pager, -1, "  %-16s %s", keymap_text(&app->keymap, (enum action)a, keys, sizeof keys),
		          action_info[a].help);
	}
	pager_add(&app->pager, -1, "  %-16s %s", "1 .. 9", "a count before a key, as in vi: 5>");
	pager_add(&app->pager, -1, "Commands, after :")->heading = true;
	command_help(&app->pager);
	pager_add(&app->pager, -1, "States; a letter in bold: more severe things are inside that cell")->heading = true;
	for (int v = VIS_COUNT - 2; v > VIS_NONE; v--) {
		const struct theme_state *s = &app->theme.state[v];
		pager_add(&app->pager, -1, "  %c  %s", s->letter, s->label);
	}
	app->mode = MODE_PAGER;
}

static void add_owners(struct app *app)
{
	char letter, shown[128];
	struct style style;
	uint32_t vms = 0;
	for (uint32_t m = 0; m < app->topo.machines; m++)
		vms += app->topo.machine[m].kind == MACHINE_VM;
	if (app_owner(app, 2, &letter, &style))
		pager_add(&app->pager, -1, "Rows of the host's CPUs: who has them")->heading = true;
	for (unsigned code = 2; code <= OWNER_OTHER; code++) {
		const char *name = app_owner(app, code, &letter, &style);
		if (!name || (code == OWNER_OTHER && vms <= OWNER_OTHER - 2))
			continue;
		struct pager_line *line = pager_add(&app->pager, -1, "%c  %s", letter, text_escape(shown, sizeof shown, name));
		line->sample = style;
		line->has_sample = true;
	}
}

void open_themes(struct app *app)
{
	static const char head[] = "Most severe first; a cell shows its dominant state and a mark of the worst";
	static const char letters[] = "Letters: waits for a CPU always, others from 1/8 of a cell; bold: more in it";
	pager_open(&app->pager, PAGER_THEMES, true, "legend and themes");
	pager_add(&app->pager, -1, "%s", head)->heading = true;
	for (int v = VIS_PREEMPTED; v > VIS_NONE; v--) {
		const struct theme_state *s = &app->theme.state[v];
		struct pager_line *line = pager_add(&app->pager, -1, "%c  %s", s->letter, s->label);
		line->sample = app->palette.state[v];
		line->has_sample = true;
	}
	pager_add(&app->pager, -1, "%s", letters);
	pager_add(&app->pager, -1, "Themes (now: %s)", app->theme.name)->heading = true;
	for (unsigned i = 0; theme_shipped_name(i); i++) {
		struct theme t;
		struct error err = ERROR_INIT;
		if (theme_load(&t, theme_shipped_name(i), &err) == 0)
			pager_add(&app->pager, i, "  %-12s %s", t.name, t.about);
		if (strcmp(theme_shipped_name(i), app->theme.name) == 0)
			app->pager.at = app->pager.len - 1;
	}
	add_owners(app);
	app->mode = MODE_PAGER;
}

void open_bookmarks(struct app *app)
{
	char keys[32];
	if (bookmarks_open(app))
		app->mode = MODE_PAGER;
	else
		app_say(app, "no bookmarks yet: %s sets one", keymap_text(&app->keymap, ACT_BOOKMARK, keys, sizeof keys));
}

/* One attribute at the cursor: "Status  PREEMPTED  12:03:04.113900 + 5.21 ms". */
static void add_attribute(struct app *app, const char *name, uint32_t attr)
{
	struct interval iv;
	char value[256], from[TIME_TEXT], d[TIME_TEXT];
	if (attr == HISTORY_NONE || history_stab(app->h, attr, app->view.cursor, &iv, NULL) < 0)
		return;
	int type = history_type(app->h, attr);
	if (iv.value == HISTORY_NULL)
		snprintf(value, sizeof value, "-");
	else if (type == HISTORY_STATE)
		text_escape(value, sizeof value, history_state_name(app->h, attr, (unsigned)iv.value));
	else if (type == HISTORY_STRING)
		text_escape(value, sizeof value, history_string(app->h, iv.value));
	else
		snprintf(value, sizeof value, "%" PRId64, iv.value);
	time_clock(from, iv.start, 9);
	pager_add(&app->pager, -1, "  %-14s %-*s since %s, for %s", name, app->w < 100 ? 18 : 28, value, from,
	          time_duration(d, iv.end - iv.start + 1));
}

/* A sentence, broken at spaces where the screen ends. */
static void add_wrapped(struct app *app, const char *text)
{
	const char *indent = "  ";
	while (*text) {
		size_t n = text_fit(text, app->w - 6), cut = n;
		while (text[n] && cut > 0 && text[cut] != ' ')
			cut--;
		n = text[n] && cut > 0 ? cut : n;
		pager_add(&app->pager, -1, "%s%.*s", indent, (int)(n ? n : strlen(text)), text);
		text += n ? n : strlen(text);
		text += strspn(text, " ");
		indent = "    ";
	}
}

/* answer NULL: it is still to come. */
static void add_paragraph(struct app *app, const struct answer *answer)
{
	pager_add(&app->pager, -1, "In words")->heading = true;
	if (!answer) {
		pager_add(&app->pager, -1, "  reading %u %%", asker_progress(app->asker, ASK_EXPLAIN));
		return;
	}
	if (answer->status < 0)
		add_wrapped(app, answer->err.text);
	for (char *line = answer->paragraph, *end; line && *line; line = end) {
		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		add_wrapped(app, line);
	}
}

static void add_values(struct app *app)
{
	struct row_id row = app->view.row;
	int64_t thread = row_thread(&app->topo, row);
	if (thread >= 0 || row.kind == ROW_REQUEST || row.kind == ROW_CPU)
		pager_add(&app->pager, -1, "Values at the cursor")->heading = true;
	if (thread >= 0) {
		const struct topo_thread *t = &app->topo.thread[thread];
		add_attribute(app, "Status", t->status);
		add_attribute(app, "Name", t->name);
		add_attribute(app, "CPU", t->cpu);
		add_attribute(app, "PID", t->pid);
		add_attribute(app, "Waker", t->waker);
	} else if (row.kind == ROW_REQUEST) {
		uint32_t node = app->rows.request[row.index].node;
		add_attribute(app, "State", app->rows.request[row.index].state);
		add_attribute(app, "Thread", history_child_named(app->h, node, "Thread"));
	} else if (row.kind == ROW_CPU) {
		const struct topo_cpu *c = &app->topo.cpu[row.index];
		add_attribute(app, "Status", c->status);
		add_attribute(app, "Owner", c->owner);
		add_attribute(app, "Current Thread", c->current);
		add_attribute(app, "Interrupt", c->interrupt);
		add_attribute(app, "Host Thread", c->host_thread);
		add_attribute(app, "pCPU", c->pcpu);
	}
}

static void add_cell(struct app *app)
{
	status_update(app);
	if (!app->status.shares[0])
		return;
	pager_add(&app->pager, -1, "The cell")->heading = true;
	pager_add(&app->pager, -1, "  %s", app->status.shares);
}

static void add_clock(struct app *app)
{
	char d[TIME_TEXT];
	pager_add(&app->pager, -1, "Clock")->heading = true;
	pager_add(&app->pager, -1, "  %-14s %" PRId64 " ns since the epoch, host clock", "cursor", app->view.cursor);
	int64_t band = app_clock_band(app, row_machine(&app->rows, app->view.row));
	if (band >= 0)
		pager_add(&app->pager, -1, "  %-14s this machine's times are known to within %s", "error band",
		          time_duration(d, band));
	if (app->nudged[0])
		pager_add(&app->pager, -1, "  %-14s %s", "moved by hand", app->nudged);
}

/* All lines, with the paragraph if there is to be one. */
static void list_details(struct app *app, bool words, const struct answer *answer)
{
	char title[256], when[TIME_TEXT], label[300];
	row_title(&app->rows, app->view.row, title, sizeof title);
	snprintf(label, sizeof label, "%s at %s", title, time_clock(when, app->view.cursor, 9));
	pager_open(&app->pager, PAGER_DETAILS, false, label);
	if (words)
		add_paragraph(app, answer);
	add_values(app);
	add_cell(app);
	add_clock(app);
}

void details_refresh(struct app *app)
{
	struct pager was = app->pager;
	struct answer answer = { 0 };
	if (!app->details_asked)
		return;
	app->details_asked = !app_answer(app, ASK_EXPLAIN, &answer);
	list_details(app, true, app->details_asked ? NULL : &answer);
	free(answer.paragraph);
	app->pager.at = was.at;
	app->pager.top = was.top;
	memcpy(app->pager.filter, was.filter, sizeof was.filter);
}

void details_drop(struct app *app)
{
	if (app->details_asked)
		asker_drop(app->asker, ASK_EXPLAIN);
	app->details_asked = false;
}

void open_details(struct app *app)
{
	struct row_id row = app->view.row;
	struct question q = { .t = app->view.cursor };
	if ((row.kind == ROW_CPU || row_thread(&app->topo, row) >= 0) && row_subject(&app->topo, row, &q.subject)) {
		asker_ask(app->asker, ASK_EXPLAIN, &q);
		app->details_asked = true;
	}
	list_details(app, app->details_asked, NULL);
	details_refresh(app);
	app->mode = MODE_PAGER;
}

static void take_theme(struct app *app, int64_t tag)
{
	struct error err = ERROR_INIT;
	struct theme theme;
	const char *name = tag >= 0 ? theme_shipped_name((unsigned)tag) : NULL;
	if (!name)
		return;
	if (theme_load(&theme, name, &err) < 0) {
		app_fail(app, &err);
		return;
	}
	app_set_theme(app, &theme);
}

void lists_moved(struct app *app, int64_t tag)
{
	if (app->pager.kind == PAGER_THEMES)
		take_theme(app, tag);
}

void lists_dropped(struct app *app, int64_t tag)
{
	size_t at = app->pager.at;
	bookmark_drop(app, (size_t)tag);
	app->mode = bookmarks_open(app) ? MODE_PAGER : MODE_ROWS;
	app->pager.at = at;
}

void lists_picked(struct app *app, int64_t tag)
{
	struct view before = app->view;
	switch (app->pager.kind) {
	case PAGER_THEMES:
		take_theme(app, tag);
		break;
	case PAGER_BOOKMARKS:
		undo_push(&app->undo, &before);
		app->view = app->bookmark[tag].view;
		view_resize(&app->view, &app->ground);
		app_show_row(app, app->view.row);
		app->flow.stale = app->blame.stale = true;
		break;
	case PAGER_REQUESTS:
		request_picked(app, (size_t)tag);
		break;
	default:
		break;
	}
}
