/* Another history in the place of the one that is shown: a guest's clock is moved by hand (:offset).
 *
 * It is made in a thread of its own, which may take minutes; meanwhile the old one is looked at as ever.  The thread
 * also surveys the rows, so that the change itself is between two frames.  It waits for lists and prompts to be closed,
 * because they name things of the old history. */
#include "ui/app.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "ui/signals.h"

#define REPORT_NS 250000000  /* between two signs of progress */
#define SURVEY_NS 20000000   /* of the survey between two looks at `cancel` */

struct nudge_job {
	pthread_t thread;
	const struct ui_clocks *clocks;
	const struct history *shown;
	struct asker *asker;          /* wakes the viewer */
	char guest[256];
	int64_t ns;
	char next[256];               /* cancelled, and this guest's clock wanted next; "": none.  The viewer's own */
	int64_t next_ns;
	/* What came of it; the thread's until it is done. */
	struct history *h;
	struct topo topo;
	struct rows rows;
	char said[256];
	struct error err;
	/* Under the lock: */
	pthread_mutex_t lock;
	const char *phase;
	uint64_t at, total;
	int64_t reported;
	bool cancel, done;
};

static int64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* ---- The thread ----------------------------------------------------------------------------------------------- */

static int tick(void *arg, const char *phase, uint64_t done, uint64_t total)
{
	struct nudge_job *j = arg;
	int64_t now = now_ns();
	pthread_mutex_lock(&j->lock);
	bool report = now - j->reported > REPORT_NS, cancel = j->cancel;
	j->phase = phase;
	j->at = done;
	j->total = total;
	j->reported = report ? now : j->reported;
	pthread_mutex_unlock(&j->lock);
	if (report)
		asker_poke(j->asker);
	return cancel;
}

static int survey(struct nudge_job *j)
{
	int done = 0;
	while (done == 0 && !rows_survey_done(&j->rows)) {
		if (tick(j, "reading threads", j->rows.survey.next, j->topo.threads))
			return error_set(&j->err, STATUS_CANCELLED, NULL, "cancelled");
		done = rows_survey_step(&j->rows, SURVEY_NS, &j->err);
	}
	return done < 0 ? -1 : 0;
}

static void *run(void *arg)
{
	struct nudge_job *j = arg;
	struct survey as = j->rows.survey;
	enum row_sort sort = j->rows.sort;
	j->h = j->clocks->nudge(j->clocks->arg, j->shown, j->guest, j->ns, (struct progress){ tick, j }, j->said,
	                        sizeof j->said, &j->err);
	if (j->h && topo_open(&j->topo, j->h, &j->err) == 0) {
		rows_init(&j->rows, &j->topo);
		j->rows.sort = sort;
		rows_survey_start(&j->rows, as.from, as.to);
		survey(j);
	}
	pthread_mutex_lock(&j->lock);
	j->done = true;
	pthread_mutex_unlock(&j->lock);
	asker_poke(j->asker);
	return NULL;
}

/* ---- The viewer's side ---------------------------------------------------------------------------------------- */

/* Waits for the thread.  What it made is the caller's until job_release(). */
static void job_join(struct nudge_job *j)
{
	pthread_join(j->thread, NULL);
	pthread_mutex_destroy(&j->lock);
}

static void job_release(struct app *app, struct nudge_job *j)
{
	rows_release(&j->rows);
	topo_release(&j->topo);
	if (j->h != app->first)
		history_close(j->h);
	free(j);
}

static bool is_done(struct nudge_job *j, bool *cancel)
{
	pthread_mutex_lock(&j->lock);
	bool done = j->done;
	*cancel = j->cancel;
	pthread_mutex_unlock(&j->lock);
	return done;
}

void nudge_start(struct app *app, const char *guest, int64_t ns)
{
	struct error err = ERROR_INIT;
	struct nudge_job *j = app->nudge;
	if (j) {
		bool cancel;
		is_done(j, &cancel);
		if (cancel) {
			snprintf(j->next, sizeof j->next, "%s", guest);
			j->next_ns = ns;
		} else {
			app_say(app, "a clock is being moved already: <Esc> cancels that");
		}
		return;
	}
	j = mem_new(1, sizeof *j);
	*j = (struct nudge_job){ .clocks = app->clocks, .shown = app->h, .asker = app->asker, .ns = ns,
		.phase = "beginning", .rows = { .survey = app->rows.survey, .sort = app->rows.sort } };
	snprintf(j->guest, sizeof j->guest, "%s", guest);
	pthread_mutex_init(&j->lock, NULL);
	if (signals_start_thread(&j->thread, run, j) == 0) {
		app->nudge = j;
		return;
	}
	error_system(&err, NULL, "starting a thread");
	app_fail(app, &err);
	pthread_mutex_destroy(&j->lock);
	free(j);
}

bool nudge_cancel(struct app *app)
{
	struct nudge_job *j = app->nudge;
	if (!j)
		return false;
	pthread_mutex_lock(&j->lock);
	bool was = j->cancel && !j->next[0];
	j->cancel = true;
	j->next[0] = '\0';
	pthread_mutex_unlock(&j->lock);
	return !was;
}

void nudge_work(struct app *app, bool *changed)
{
	struct nudge_job *j = app->nudge;
	bool cancel = false;
	if (!j || (!app->patient && !is_done(j, &cancel)) || app->mode != MODE_ROWS)
		return;
	job_join(j);
	app->nudge = NULL;
	*changed = true;
	if (!cancel && j->err.text[0]) {
		app_fail(app, &j->err);
	} else if (!cancel) {
		char guest[128];
		app_adopt(app, j->h, &j->topo, &j->rows);
		j->h = NULL;
		if (j->ns == 0)
			app_say(app, "%s", j->said);
		else
			app_say(app, "%s (:offset save writes it, :offset %s 0 takes it back)", j->said,
			        text_escape(guest, sizeof guest, j->guest));
	}
	if (cancel && j->next[0])
		nudge_start(app, j->next, j->next_ns);
	job_release(app, j);
}

void nudge_release(struct app *app)
{
	if (!app->nudge)
		return;
	nudge_cancel(app);
	job_join(app->nudge);
	job_release(app, app->nudge);
}

bool nudge_text(struct app *app, char *buf, size_t size)
{
	struct nudge_job *j = app->nudge;
	char name[128], by[TIME_TEXT], part[16] = "";
	if (!j)
		return false;
	pthread_mutex_lock(&j->lock);
	bool cancel = j->cancel, next = j->next[0];
	if (j->total > 0 && !next)
		snprintf(part, sizeof part, " %.0f %%", 100 * (double)j->at / (double)j->total);
	snprintf(buf, size, "moving the clock of %s to %s: %s%s, Esc cancels",
	         text_escape(name, sizeof name, next ? j->next : j->guest), time_exact(by, next ? j->next_ns : j->ns),
	         next ? "the last one is being cancelled" : j->phase, part);
	pthread_mutex_unlock(&j->lock);
	return next || !cancel;
}

/* ---- The change ----------------------------------------------------------------------------------------------- */

/* The same row in another history. */
static struct row_id again(const struct rows *was, const struct rows *is, struct row_id id)
{
	char key[ROW_KEY];
	struct row_id found = { ROW_MACHINE, 0 };
	row_of_key(is, row_key(was, id, key), &found);
	return found;
}

static void carry_folds(const struct rows *was, struct rows *is)
{
	const uint32_t count[ROW_KINDS] = { [ROW_MACHINE] = was->topo->machines, [ROW_GROUP] = was->topo->machines,
		[ROW_REQUESTS] = was->topo->machines, [ROW_CPU] = was->topo->cpus };
	for (unsigned kind = 0; kind < ROW_KINDS; kind++) {
		for (uint32_t i = 0; i < count[kind]; i++) {
			struct row_id id = again(was, is, (struct row_id){ (uint8_t)kind, i });
			if (id.kind == kind)
				is->open[kind][id.index] = was->open[kind][i];
		}
	}
}

static void carry_rows(struct app *app, struct rows *is)
{
	const struct rows *was = &app->rows;
	carry_folds(was, is);
	is->hide_idle = was->hide_idle;
	is->show_executors = was->show_executors;
	snprintf(is->filter, sizeof is->filter, "%s", was->filter);
	app->view.row = again(was, is, app->view.row);
	app->typed_from.row = again(was, is, app->typed_from.row);
	if (app->flow.thread < was->topo->threads)
		app->flow.thread = again(was, is, (struct row_id){ ROW_THREAD, app->flow.thread }).index;
	for (size_t i = 0; i < app->pins; i++)
		app->pin[i] = again(was, is, app->pin[i]);
	for (size_t i = 0; i < app->causes; i++)
		app->cause[i] = again(was, is, app->cause[i]);
	for (size_t i = 0; i < app->bookmarks; i++)
		app->bookmark[i].view.row = again(was, is, app->bookmark[i].view.row);
	for (size_t i = 0; i < app->undo.len; i++)
		app->undo.past[i].row = again(was, is, app->undo.past[i].row);
}

/* The panes are read anew; they keep their heights meanwhile, so that the rows stay where they are. */
static void ask_again(struct app *app)
{
	struct flow_pane flow = app->flow;
	struct blame_pane blame = app->blame;
	flow_pane_release(&app->flow);
	blame_release(&app->blame);
	app->flow.room = flow.lines;
	app->flow.top = flow.top;
	app->blame.room = blame.lines;
	app->blame.top = blame.top;
	app->flow.asked = app->blame.asked = false;
}

void app_adopt(struct app *app, struct history *h, struct topo *topo, struct rows *rows)
{
	const struct history *old = app->h;
	size_t at = rows_find_near(&app->rows, app->view.row), line = at > app->top ? at - app->top : 0;
	carry_rows(app, rows);
	cause_drop(app);
	asker_rest(app->asker);
	rows_release(&app->rows);
	topo_release(&app->topo);
	app->h = h;
	app->topo = *topo;
	app->rows = *rows;
	app->rows.topo = &app->topo;
	*topo = (struct topo){ 0 };
	*rows = (struct rows){ 0 };
	if (old != app->first && old != h)
		history_close((struct history *)(uintptr_t)old);
	rows_build(&app->rows);
	at = rows_find_near(&app->rows, app->view.row);
	app->top = at > line ? at - line : 0;
	app->hunt.on = false;
	app->moved = true;
	app->requests = 0;
	ask_again(app);
	app->status = (struct status_cache){ .valid = false };
	app_meet(app);
}
