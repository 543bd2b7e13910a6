/* The details list: explanation, attribute values, cell, clock and notes of the interval under the cursor. */
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
	char *explanation;  /* lines of the explanation; NULL: none, or not yet computed */
};

/* Adds the value of an attribute at the cursor: "Status PREEMPTED since 12:03:04.113900, for 5.21 ms". */
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
	pager_add(p, -1, "Explanation")->heading = true;
	if (d->list.pane.pending) {
		pager_add(p, -1, "  reading %u %%", async_progress(app->queries, &d->list.pane.question));
		return;
	}
	for (const char *line = d->explanation; *line; line += strspn(line, "\n")) {
		const int n = (int)strcspn(line, "\n");
		pager_add(p, -1, "  %.*s", n, line);
		line += n;
	}
}

static void add_values(struct app *app, struct pager *p)
{
	struct row_id row = app->view.row;
	int64_t thread = row_thread(&app->catalog, row);
	if (thread >= 0 || row.kind == ROW_REQUEST || row.kind == ROW_CPU || row.kind == ROW_PROVIDER)
		pager_add(p, -1, "Values at the cursor")->heading = true;
	if (thread >= 0) {
		const struct catalog_thread *t = &app->catalog.thread[thread];
		for (int i = 0; i < THREAD_ATTRS; i++)
			add_attribute(app, p, thread_schema[i].name, t->id[i]);
	} else if (row.kind == ROW_REQUEST) {
		uint32_t node = app->rows.request[row.index].node;
		for (int i = 0; i < REQUEST_ATTRS; i++)
			add_attribute(app, p, request_schema[i].name, history_child_named(app->h, node, request_schema[i].name));
	} else if (row.kind == ROW_CPU || row.kind == ROW_PROVIDER) {
		const struct catalog_cpu *c = &app->catalog.cpu[row.index];
		for (int i = 0; i < CPU_ATTRS; i++)
			add_attribute(app, p, cpu_schema[i].name, c->id[i]);
	}
}

static void add_cell(struct app *app, struct pager *p)
{
	const char *shares = status_shares(app);
	if (!shares[0])
		return;
	pager_add(p, -1, "Cell at the cursor")->heading = true;
	pager_add(p, -1, "  %s", shares);
}

static void add_clock(struct app *app, struct pager *p)
{
	char d[TIME_TEXT];
	pager_add(p, -1, "Clock")->heading = true;
	const bool is_apart = guest_time_is_apart(&app->catalog);
	pager_add(p, -1, "  %-14s %" PRId64 " ns since the %s, %s clock", "cursor", app->view.cursor,
	          app->view.cursor < WALL_CLOCK_MIN ? "boot" : "epoch", is_apart ? "host" : app->rows.machine_name[0]);
	int64_t guest;
	char clock[TIME_TEXT];
	const uint32_t machine = row_machine(&app->rows, app->view.row);
	if (is_apart && guest_time_of(&app->catalog, machine, app->view.cursor, &guest))
		pager_add(p, -1, "  %-14s %s@%s, on the clock of this machine", "guest time", app->rows.machine_name[machine],
		          time_clock(clock, guest, 6));
	int64_t clock_error = status_clock_error(app, row_machine(&app->rows, app->view.row));
	if (clock_error >= 0)
		pager_add(p, -1, "  %-14s times of this machine are exact to within %s", "error bound",
		          time_duration(d, clock_error));
	if (manual_offset_list(app)[0])
		pager_add(p, -1, "  %-14s %s", "manual offset", manual_offset_list(app));
}

/* Adds the notes of all machines, which limit the trust in the answers. */
static void add_notes(struct app *app, struct pager *p)
{
	struct origin o;
	char note[NOTE_TEXT];
	origin_load(&o, &app->catalog, NULL, app->bounds.begin, app->bounds.end);
	if (o.notes.len)
		pager_add(p, -1, "Notes on the traces")->heading = true;
	for (size_t i = 0; i < o.notes.len; i++)
		pager_add(p, -1, "  %s", note_text(&o.notes.item[i], note));
	origin_release(&o);
}

static void details_make_lines(struct app *app, struct pane *pane)
{
	struct details *d = (struct details *)pane;
	struct pager *p = &d->list.pager;
	char title[256], when[TIME_TEXT], label[300];
	row_title(&app->rows, app->view.row, title, sizeof title);
	snprintf(label, sizeof label, "%s at %s", title, time_clock(when, app->view.cursor, 9));
	pager_open(p, false, label);
	if (pane->pending || d->explanation)
		add_paragraph(app, d);
	add_values(app, p);
	add_cell(app, p);
	add_clock(app, p);
	add_notes(app, p);
	pager_wrap(p, app->w);
}

/* Takes the explanation when it is computed; until then a line shows the progress. */
static void details_refresh(struct app *app, struct pane *pane)
{
	struct details *d = (struct details *)pane;
	struct query *query = NULL;
	struct error err = ERROR_INIT;
	const int got = pane->pending ? app_take_answer(app, &pane->question, &query, NULL, &err) : 0;
	if (!pane->pending)
		return;
	if (got) {
		char *text = got > 0 ? explain_take(query) : NULL;
		pane->pending = false;
		d->explanation = text_insert_file_name(got > 0 ? text : err.text, history_file(app->h));
		free(text);
		query_close(query);
	}
	list_arrange(app, pane);
}

static void details_close(struct app *app, struct pane *pane)
{
	if (pane->pending)
		async_drop(app->queries, &pane->question);
	pane->pending = false;
}

static void details_drop_answer(struct pane *pane)
{
	struct details *d = (struct details *)pane;
	free(d->explanation);
	d->explanation = NULL;
}

static bool details_open(struct app *app, struct pane *pane)
{
	struct row_id row = app->view.row;
	struct target target;
	struct error err = ERROR_INIT;
	details_drop_answer(pane);
	pane->pending = (row.kind == ROW_CPU || row.kind == ROW_PROVIDER || row_thread(&app->catalog, row) >= 0) &&
	                row_target(&app->catalog, row, &target);
	if (pane->pending)
		async_ask(app->queries, &pane->question, ASK_SENTENCE,
		          explain_open(&app->catalog, &target, app->view.cursor, &err), &err);
	return true;
}

const struct pane_ops details_list = {
	.size = sizeof(struct details), .is_list = true, .open = details_open, .arrange = details_make_lines,
	.closed = details_close, .refresh = details_refresh, .drop_answer = details_drop_answer,
	.release = list_release,
};
