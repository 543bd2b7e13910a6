/* Details of the interval under the cursor: in words, its values, the cell, the clock. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "report/report.h"
#include "ui/core/clock_offset.h"
#include "ui/panes/pane.h"
#include "ui/widgets/status.h"

struct details {
	struct list list;
	char *words;   /* lines; NULL: there are none, or they are still to come */
};

/* One attribute at the cursor: "Status  PREEMPTED  12:03:04.113900 + 5.21 ms". */
static void add_attribute(struct app *app, struct pager *p, const char *name, uint32_t attr)
{
	struct interval iv;
	char value[256], of[200], from[TIME_TEXT], d[TIME_TEXT];
	if (attr == HISTORY_NONE || history_stab(app->h, attr, app->view.cursor, &iv, NULL) < 0)
		return;
	int type = history_type(app->h, attr);
	if (iv.value == HISTORY_NULL)
		snprintf(value, sizeof value, "-");
	else if (type == HISTORY_STATE)
		text_escape(value, sizeof value, history_state_name(app->h, attr, (unsigned)iv.value));
	else if (type == HISTORY_STRING)
		text_escape(value, sizeof value, history_string(app->h, iv.value));
	else if (type == HISTORY_REF)
		snprintf(value, sizeof value, "%s/%" PRIu32, text_escape(of, sizeof of,
		         history_string(app->h, history_ref_text(iv.value))), history_ref_number(iv.value));
	else
		snprintf(value, sizeof value, "%" PRId64, iv.value);
	time_clock(from, iv.start, 9);
	pager_add(p, -1, "  %-14s %-*s since %s, for %s", name, app->w < 100 ? 18 : 28, value, from,
	          time_duration(d, iv.end - iv.start + 1));
}

static void add_paragraph(struct app *app, struct details *d)
{
	struct pager *p = &d->list.pager;
	pager_add(p, -1, "In words")->heading = true;
	if (d->list.pane.asked) {
		pager_add(p, -1, "  reading %u %%", asker_progress(app->asker, ASK_EXPLAIN));
		return;
	}
	for (const char *line = d->words; *line; line += strspn(line, "\n")) {
		const int n = (int)strcspn(line, "\n");
		pager_add(p, -1, "  %.*s", n, line);
		line += n;
	}
}

static void add_values(struct app *app, struct pager *p)
{
	struct row_id row = app->view.row;
	int64_t thread = row_thread(&app->topo, row);
	if (thread >= 0 || row.kind == ROW_REQUEST || row.kind == ROW_CPU)
		pager_add(p, -1, "Values at the cursor")->heading = true;
	if (thread >= 0) {
		const struct topo_thread *t = &app->topo.thread[thread];
		for (int i = 0; i < THREAD_ATTRS; i++)
			add_attribute(app, p, thread_schema[i].name, t->id[i]);
	} else if (row.kind == ROW_REQUEST) {
		uint32_t node = app->rows.request[row.index].node;
		for (int i = 0; i < REQUEST_ATTRS; i++)
			add_attribute(app, p, request_schema[i].name, history_child_named(app->h, node, request_schema[i].name));
	} else if (row.kind == ROW_CPU) {
		const struct topo_cpu *c = &app->topo.cpu[row.index];
		for (int i = 0; i < CPU_ATTRS; i++)
			add_attribute(app, p, cpu_schema[i].name, c->id[i]);
	}
}

static void add_cell(struct app *app, struct pager *p)
{
	const char *shares = status_shares(app);
	if (!shares[0])
		return;
	pager_add(p, -1, "The cell")->heading = true;
	pager_add(p, -1, "  %s", shares);
}

static void add_clock(struct app *app, struct pager *p)
{
	char d[TIME_TEXT];
	pager_add(p, -1, "Clock")->heading = true;
	pager_add(p, -1, "  %-14s %" PRId64 " ns since the epoch, host clock", "cursor", app->view.cursor);
	int64_t band = status_clock_band(app, row_machine(&app->rows, app->view.row));
	if (band >= 0)
		pager_add(p, -1, "  %-14s this machine's times are known to within %s", "error band",
		          time_duration(d, band));
	if (nudge_list(app)[0])
		pager_add(p, -1, "  %-14s %s", "moved by hand", nudge_list(app));
}

/* Why what is shown may be doubted, of all machines. */
static void add_notes(struct app *app, struct pager *p)
{
	struct origin o;
	char note[NOTE_TEXT];
	origin_take(&o, &app->topo, NULL, app->ground.begin, app->ground.end);
	if (o.notes.len)
		pager_add(p, -1, "Notes on the traces")->heading = true;
	for (size_t i = 0; i < o.notes.len; i++)
		pager_add(p, -1, "  %s", note_text(&o.notes.item[i], note));
	origin_release(&o);
}

static void arrange(struct app *app, struct pane *pane)
{
	struct details *d = (struct details *)pane;
	struct pager *p = &d->list.pager;
	char title[256], when[TIME_TEXT], label[300];
	row_title(&app->rows, app->view.row, title, sizeof title);
	snprintf(label, sizeof label, "%s at %s", title, time_clock(when, app->view.cursor, 9));
	pager_open(p, false, label);
	if (pane->asked || d->words)
		add_paragraph(app, d);
	add_values(app, p);
	add_cell(app, p);
	add_clock(app, p);
	add_notes(app, p);
	pager_wrap(p, app->w);
}

/* The paragraph is asked for, and takes the place of the line that says so. */
static void refresh(struct app *app, struct pane *pane)
{
	struct details *d = (struct details *)pane;
	struct answer answer;
	if (!pane->asked)
		return;
	if (app_answer(app, ASK_EXPLAIN, &answer)) {
		pane->asked = false;
		d->words = text_commands(answer.status < 0 ? answer.err.text : answer.paragraph, history_file(app->h));
		if (answer.status >= 0)
			free(answer.paragraph);
	}
	list_arrange(app, pane);
}

static void closed(struct app *app, struct pane *pane)
{
	if (pane->asked)
		asker_drop(app->asker, ASK_EXPLAIN);
	pane->asked = false;
}

static void forget(struct pane *pane)
{
	struct details *d = (struct details *)pane;
	free(d->words);
	d->words = NULL;
}

static bool begin(struct app *app, struct pane *pane)
{
	struct row_id row = app->view.row;
	struct question q = { .t = app->view.cursor };
	forget(pane);
	pane->asked = (row.kind == ROW_CPU || row_thread(&app->topo, row) >= 0) && row_subject(&app->topo, row, &q.subject);
	if (pane->asked)
		asker_ask(app->asker, ASK_EXPLAIN, &q);
	return true;
}

const struct pane_ops details_list = {
	.size = sizeof(struct details), .over = true, .open = begin, .arrange = arrange, .closed = closed, .refresh = refresh,
	.forget = forget, .release = list_release,
};
