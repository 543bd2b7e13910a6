/* The details pane: explanation, attribute values, cell, clock and notes of the interval under the cursor. It follows the
 * cursor of the rows. */
#include "base/base.h"
#include "report/report.h"
#include "ui/core/clock_offset.h"
#include "ui/panes/pane.h"
#include "ui/widgets/status.h"

struct details {
	struct pane pane;
	struct pager text;  /* the pane's lines */
	char *explanation;  /* NULL: none, or not yet computed */
	bool asked;         /* the explanation is computed */
	bool from_overview;  /* the pane was opened in the overview */
	/* what the lines show */
	struct row_id row;
	int64_t cursor, step;
	unsigned progress;  /* of the explanation, per cent */
	int w;
};

/* Writes the name of the thread that an attribute names, which it had longest. */
static void thread_comm(const struct app *app, int64_t value, char *buf, size_t size)
{
	uint32_t tid;
	const int machine = catalog_ref(&app->catalog, value, &tid);
	const int thread = machine < 0 ? -1 : catalog_find_thread(&app->catalog, (uint32_t)machine, (int32_t)tid);
	text_escape(buf, size, thread < 0 ? "" : catalog_longest_name(&app->catalog, (uint32_t)thread));
}

/* Adds the value of an attribute at the cursor: "Status PREEMPTED since 12:03:04.113900, for 5.21 ms". */
static void add_attribute(struct app *app, struct pager *p, const char *name, uint32_t attr)
{
	struct interval iv;
	char value[320], of[200], comm[64] = "", from[TIME_TEXT], d[TIME_TEXT];
	if (attr == HISTORY_NONE || history_stab(app->h, attr, app->view.cursor, &iv, NULL) < 0)
		return;
	int type = history_type(app->h, attr);
	if (type == HISTORY_REF && strcmp(name, thread_schema[THREAD_WOKEN_BY].name) == 0)
		thread_comm(app, iv.value, comm, sizeof comm);
	if (iv.value == HISTORY_NULL)
		snprintf(value, sizeof value, "-");
	else if (type == HISTORY_STATE)
		text_escape(value, sizeof value, history_state_name(app->h, attr, (unsigned)iv.value));
	else if (type == HISTORY_STRING)
		text_escape(value, sizeof value, history_string(app->h, iv.value));
	else if (type == HISTORY_REF)
		snprintf(value, sizeof value, "%s/%" PRIu32 "%s%s", text_escape(of, sizeof of,
		         history_string(app->h, history_ref_text(iv.value))), history_ref_number(iv.value), *comm ? " " : "", comm);
	else
		snprintf(value, sizeof value, "%" PRId64, iv.value);
	time_clock(from, iv.start, 9);
	pager_add(p, -1, "  %-14s %-*s since %s, for %s", name, app->w < 100 ? 18 : 28, value, from,
	          time_duration(d, iv.end - iv.start + 1));
}

static void add_paragraph(struct details *d)
{
	pager_add(&d->text, -1, "Explanation")->heading = true;
	if (d->asked) {
		pager_add(&d->text, -1, "  reading %u %%", d->progress);
		return;
	}
	for (const char *line = d->explanation; *line; line += strspn(line, "\n")) {
		const int n = (int)strcspn(line, "\n");
		pager_add(&d->text, -1, "  %.*s", n, line);
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

static void make_lines(struct app *app, struct details *d)
{
	pager_release(&d->text);
	if (d->asked || d->explanation)
		add_paragraph(d);
	add_values(app, &d->text);
	add_cell(app, &d->text);
	add_clock(app, &d->text);
	add_notes(app, &d->text);
	pager_wrap(&d->text, app->w);
	d->pane.lines = d->text.len;
	d->pane.valid = true;
}

static void details_drop_answer(struct pane *pane)
{
	struct details *d = (struct details *)pane;
	pager_release(&d->text);
	free(d->explanation);
	d->explanation = NULL;
	d->asked = false;
	d->row.kind = ROW_KINDS;
}

static void ask_explanation(struct app *app, struct details *d)
{
	const struct row_id row = app->view.row;
	struct error err = ERROR_INIT;
	struct target target;
	async_drop(app->queries, &d->pane.question);
	d->row = row;
	d->cursor = app->view.cursor;
	free(d->explanation);
	d->explanation = NULL;
	d->asked = (row.kind == ROW_CPU || row.kind == ROW_PROVIDER || row_thread(&app->catalog, row) >= 0) &&
	           row_target(&app->catalog, row, &target);
	if (d->asked)
		async_ask(app->queries, &d->pane.question, ASK_SENTENCE,
		          explain_open(&app->catalog, &target, d->cursor, &err), &err);
}

/* Returns true if the explanation was taken. */
static bool take_explanation(struct app *app, struct details *d)
{
	struct query *query = NULL;
	struct error err = ERROR_INIT;
	const int got = d->asked ? app_take_answer(app, &d->pane.question, &query, NULL, &err) : 0;
	if (got == 0)
		return false;
	char *text = NULL;
	if (got > 0)
		query_take(query, &text);
	d->asked = false;
	d->explanation = text_insert_file_name(got > 0 ? text : err.text, history_file(app->h));
	free(text);
	query_close(query);
	return true;
}

static void details_refresh(struct app *app, struct pane *pane)
{
	struct details *d = (struct details *)pane;
	const bool moved = !row_same(d->row, app->view.row) || d->cursor != app->view.cursor;
	if (moved)
		ask_explanation(app, d);
	const unsigned progress = d->asked ? async_progress(app->queries, &pane->question) : 0;
	if (take_explanation(app, d) || moved || d->step != app->view.step || d->w != app->w || progress != d->progress) {
		d->step = app->view.step;
		d->w = app->w;
		d->progress = progress;
		make_lines(app, d);
	}
}

static bool details_open(struct app *app, struct pane *pane)
{
	details_drop_answer(pane);
	((struct details *)pane)->from_overview = app->pane_below && app->pane_below->ops->replaces_rows;
	pane->top = pane->at = 0;
	return true;
}

static void details_close(struct app *app, struct pane *pane)
{
	if (((struct details *)pane)->from_overview)
		pane_open(app, PANE_OVERVIEW);
}

static void details_get_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	char title[512], when[TIME_TEXT];
	(void)pane;
	snprintf(buf, size, "%s at %s", row_title(&app->rows, app->view.row, title, sizeof title),
	         time_clock(when, app->view.cursor, 9));
}

static void details_get_title(const struct app *app, const struct pane *pane, int w, char *buf, size_t size)
{
	char name[640];
	(void)w;
	details_get_name(app, pane, name, sizeof name);
	snprintf(buf, size, " %s ", name);
}

static void details_draw_line(struct app *app, struct pane *pane, struct screen *s, int y, size_t i, bool selected)
{
	const struct pager_line *line = &((struct details *)pane)->text.line[i];
	screen_text(s, 1, y, s->w - 1, pane_style(app, line->heading ? PART_TITLE : PART_NORMAL, selected), line->text);
}

static void details_get_file_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	char title[512];
	(void)pane;
	snprintf(buf, size, "explain-%s", row_title(&app->rows, app->view.row, title, sizeof title));
}

/* Writes the explanation as `explain --at` does. */
static int details_export(struct app *app, struct pane *pane, FILE *f, enum report_format format, struct error *err)
{
	const struct details *d = (struct details *)pane;
	if (format != FORMAT_TEXT)
		return error_set(err, STATUS_USAGE, "use .txt", "an explanation is text");
	if (!d->explanation)
		return error_set(err, STATUS_USAGE, NULL, "there is no explanation of this row");
	prose_write(f, d->explanation, history_file(app->first));
	return 0;
}

const struct pane_ops details_pane = {
	.size = sizeof(struct details), .is_tall = true, .open = details_open, .closed = details_close,
	.refresh = details_refresh, .name = details_get_name, .title = details_get_title, .line = details_draw_line,
	.file = details_get_file_name, .export = details_export, .drop_answer = details_drop_answer,
};
