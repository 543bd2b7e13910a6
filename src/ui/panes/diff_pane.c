/* The diff pane: the report of `diff` on two windows, below its verdict.
 *
 * One side is the window (A..B, or the window on the screen); the other side is another history, or the longer part of
 * this history before or after the window. Both stay fixed while the pane is open. "from" and "to" of a finding
 * are the confidence interval of its change. */
#include "base/base.h"
#include "compare/compare.h"
#include "ui/panes/pane.h"

#define MAX_GAPS 100000  /* gaps that are searched for the longest gap */

struct diff_pane {
	struct table_pane table;
	char other[512];     /* file of the history to compare with; "": this history */
	bool is_from_command;  /* `other` was just set by :diff; without it the pane compares with the rest of this history */
	int64_t from, to;    /* the pane's window, ns */
	int64_t other_from, other_to;  /* window of the other side if it is this history, ns */
	struct diff diff;
	struct origin other_origin;
	struct notes notes;
};

static struct diff_pane *diff_pane_state(struct pane *pane)
{
	return (struct diff_pane *)pane;
}

static const struct diff_row *row_of(const struct pane *pane, size_t i)
{
	return diff_shown_row(&((const struct diff_pane *)pane)->diff, table_pane_row(pane, i));
}

/* ---- The question ---------------------------------------------------------------------------------------------------- */

/* Chooses the longer part of the history before or after the window. Returns false if that part is too short to compare. */
static bool choose_other_side(const struct app *app, struct diff_pane *p)
{
	const int64_t before_ns = p->from - app->bounds.begin, after_ns = app->bounds.end - p->to;
	const bool is_before = before_ns >= after_ns;
	p->other_from = is_before ? app->bounds.begin : p->to + 1;
	p->other_to = is_before ? p->from - 1 : app->bounds.end;
	return (is_before ? before_ns : after_ns) >= DIFF_WINDOW_MIN;
}

/* Returns true if the other side is a later part of this history: then the window is "before". */
static bool other_side_is_later(const struct diff_pane *p)
{
	return !*p->other && p->other_from > p->from;
}

static void diff_pane_drop_answer(struct pane *pane)
{
	struct diff_pane *p = diff_pane_state(pane);
	diff_release(&p->diff);
	notes_release(&p->notes);
	origin_release(&p->other_origin);
}

static bool diff_pane_open(struct app *app, struct pane *pane)
{
	struct diff_pane *p = diff_pane_state(pane);
	if (!p->is_from_command)
		p->other[0] = '\0';
	p->is_from_command = false;
	pane_window(app, &p->from, &p->to);
	if (p->to - p->from + 1 < DIFF_WINDOW_MIN) {
		app_refuse(app, "window too short to compare (at least 6.4 ms): zoom out, or set markers A and B");
		return false;
	}
	if (!*p->other && !choose_other_side(app, p)) {
		app_refuse(app, "too little of the trace is outside this window: zoom in, set markers, or use :diff HISTORY");
		return false;
	}
	pane_drop_answer(pane);
	pane->valid = false;
	pane->lines = pane->top = pane->at = 0;
	pane->filter[0] = '\0';
	app->focused = true;
	return true;
}

void pane_diff(struct app *app, const char *file)
{
	struct diff_pane *p = diff_pane_state(app->pane[PANE_DIFF]);
	if (strlen(file) >= sizeof p->other) {
		app_refuse(app, "the file name is too long");
		return;
	}
	if (app->pane_below == &p->table.pane)
		pane_close(app);
	snprintf(p->other, sizeof p->other, "%s", file);
	p->is_from_command = true;
	pane_open(app, PANE_DIFF);
}

struct diff_query {
	const struct catalog *catalog;
	char other[512];
	int64_t from, to, other_from, other_to;
	struct diff diff;
	struct notes notes;
	struct origin origin;
};

/* Compares two windows in one step, which cannot be cancelled. */
static int diff_step(void *state, int64_t until, struct error *err)
{
	struct diff_query *q = state;
	const struct diff_options options = { DIFF_LEVEL, &q->notes };
	struct catalog other = { 0 };
	struct history *h = *q->other ? history_open(q->other, err) : NULL;
	struct diff_side side[2] = { { q->catalog, q->other_from, q->other_to }, { q->catalog, q->from, q->to } };
	const bool open = h && catalog_open(&other, h, err) == 0;
	int rc = *q->other && !open ? -1 : 0;
	(void)until;
	if (open)
		side[0] = (struct diff_side){ &other, history_begin(h), history_end(h) };
	if (rc == 0)
		rc = diff_of(side, &options, &q->diff, err);
	if (rc == 0)
		origin_load(&q->origin, side[0].catalog, NULL, side[0].from, side[0].to);
	if (open)
		catalog_release(&other);
	history_close(h);
	return rc < 0 ? -1 : 1;
}

static void diff_query_release(void *state)
{
	struct diff_query *q = state;
	diff_release(&q->diff);
	notes_release(&q->notes);
	origin_release(&q->origin);
	free(q);
}

static void diff_pane_window(const struct app *app, const struct pane *pane, int64_t *from, int64_t *to)
{
	const struct diff_pane *p = (const struct diff_pane *)pane;
	const bool later = other_side_is_later(p);
	(void)app;
	*from = later ? p->other_from : p->from;
	*to = later ? p->other_to : p->to;
}

static struct query *diff_pane_open_query(struct app *app, struct pane *pane, struct error *err)
{
	static const struct task_kind kind = { diff_step, diff_query_release };
	const struct diff_pane *p = (const struct diff_pane *)pane;
	const bool later = other_side_is_later(p);
	struct diff_query *q = mem_new(1, sizeof *q);
	(void)err;
	*q = (struct diff_query){ .catalog = &app->catalog, .from = pane->from, .to = pane->to,
		.other_from = later ? p->from : p->other_from, .other_to = later ? p->to : p->other_to };
	snprintf(q->other, sizeof q->other, "%s", p->other);
	return query_task_open(&kind, q);
}

static void diff_pane_take_answer(struct app *app, struct pane *pane, struct query *query)
{
	struct diff_pane *p = diff_pane_state(pane);
	struct diff_query *q = query_task_state(query);
	(void)app;
	p->diff = q->diff;
	p->notes = q->notes;
	p->other_origin = q->origin;
	q->diff = (struct diff){ 0 };
	q->notes = (struct notes){ 0 };
	q->origin = (struct origin){ 0 };
}

/* ---- Texts -------------------------------------------------------------------------------------------------------- */

static void diff_pane_get_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	const struct diff_pane *p = (const struct diff_pane *)pane;
	const char *slash = strrchr(p->other, '/');
	char file[256], d[TIME_TEXT];
	(void)app;
	if (*p->other)
		snprintf(buf, size, "changes since %s", text_escape(file, sizeof file, slash ? slash + 1 : p->other));
	else
		snprintf(buf, size, other_side_is_later(p) ? "changes in the %s after" : "changes since the %s before",
		         time_duration(d, p->other_to - p->other_from + 1));
}

static void diff_pane_get_title(const struct app *app, const struct pane *pane, int w, char *buf, size_t size)
{
	const struct diff_pane *p = (const struct diff_pane *)pane;
	char text[320], length[TIME_TEXT], notes_text[48] = "";
	(void)w;
	diff_pane_get_name(app, pane, text, sizeof text);
	if (p->notes.len)
		snprintf(notes_text, sizeof notes_text, ", %zu note%s", p->notes.len, p->notes.len == 1 ? "" : "s");
	snprintf(buf, size, " %s%s %s: %zu finding%s%s ", text, other_side_is_later(p) ? ", compared with" : ", in",
	         time_duration(length, p->to - p->from + 1), p->diff.found, p->diff.found == 1 ? "" : "s", notes_text);
}

static void diff_pane_get_file_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	(void)app;
	(void)pane;
	snprintf(buf, size, "diff");
}

static int diff_pane_report(struct app *app, struct pane *pane, FILE *f, struct report_how how, struct origin *o,
                            struct error *err)
{
	struct diff_pane *p = diff_pane_state(pane);
	struct origin both = { 0 };
	struct notes notes = { 0 };
	(void)app;
	if (how.table)
		return report_diff(f, how, &p->diff, false, NULL, err);
	origin_add(&both, &p->other_origin);
	origin_add(&both, o);
	for (size_t i = 0; i < p->notes.len; i++)
		notes_copy(&notes, &p->notes.item[i], p->notes.item[i].machine);
	origin_add_warnings(&both, &notes);
	const int rc = report_diff(f, how, &p->diff, false, &both, err);
	origin_release(&both);
	return rc;
}

/* ---- Jumps --------------------------------------------------------------------------------------------------------- */

/* Moves to the line's target: to its longest gap in the window, or to the window if it has no gap. */
static void diff_pane_follow_line(struct app *app, struct pane *pane, size_t i)
{
	const struct diff_pane *p = diff_pane_state(pane);
	struct target s;
	struct gap gap, longest = { .start = p->from, .end = p->from - 1 };
	if (!row_of(pane, i)) {
		app_message(app, "no finding on this line");
		return;
	}
	if (!diff_find(&app->catalog, row_of(pane, i), p->from, p->to, &s)) {
		app_message(app, "%s is not in this history", row_of(pane, i)->target);
		return;
	}
	const struct row_id row = { s.kind == TARGET_MACHINE ? ROW_MACHINE : ROW_THREAD, s.index };
	const int64_t from = p->from, to = p->to;
	int64_t t = from;
	for (int n = 0; s.kind == TARGET_THREAD && n < MAX_GAPS; n++, t = gap.end) {
		if (gap_find(&app->catalog, &s, t, 1, &gap, NULL) <= 0 || gap.start > to)
			break;
		if (gap.end - gap.start > longest.end - longest.start)
			longest = gap;
	}
	if (longest.start <= longest.end)
		pane_go(app, row, longest.start, longest.end);
	else
		pane_go(app, row, from, to);
}

const struct pane_ops diff_pane = {
	TABLE_PANE, .size = sizeof(struct diff_pane), .open = diff_pane_open, .window = diff_pane_window,
	.query = diff_pane_open_query, .is_long = true, .take = diff_pane_take_answer, .report = diff_pane_report,
	.orders = ".", .merged = "target", .shows_text = true, .marked = "change", .name = diff_pane_get_name,
	.title = diff_pane_get_title, .follow = diff_pane_follow_line, .file = diff_pane_get_file_name,
	.export = table_pane_export, .drop_answer = diff_pane_drop_answer, .sort = table_pane_sort,
	.status_text = table_pane_get_status_text,
};
