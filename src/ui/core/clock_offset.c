/* See clock_offset.h.
 *
 * The other history is made in a thread of its own, which may take minutes; meanwhile the old one is looked at as ever.
 * The thread also surveys the rows, so that the change itself is between two frames.  It waits for lists and prompts to
 * be closed, because they name things of the old history. */
#include "ui/core/clock_offset.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "ui/terminal/signals.h"

#define REPORT_NS 250000000  /* between two signs of progress */
#define SURVEY_NS 20000000   /* of the survey between two looks at `cancel` */

struct nudge {
	const struct ui_clocks *clocks;   /* or NULL */
	struct nudge_job *job;            /* another history in the making, or NULL */
	char list[128];                   /* whose clocks are moved */
};

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
	struct nudge_job *j = app->nudge->job;
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
	*j = (struct nudge_job){ .clocks = app->nudge->clocks, .shown = app->h, .asker = app->asker, .ns = ns,
		.phase = "beginning", .rows = { .survey = app->rows.survey, .sort = app->rows.sort } };
	snprintf(j->guest, sizeof j->guest, "%s", guest);
	pthread_mutex_init(&j->lock, NULL);
	if (signals_start_thread(&j->thread, run, j) == 0) {
		app->nudge->job = j;
		return;
	}
	error_system(&err, NULL, "starting a thread");
	app_fail(app, &err);
	pthread_mutex_destroy(&j->lock);
	free(j);
}

bool nudge_cancel(struct app *app)
{
	struct nudge_job *j = app->nudge->job;
	if (!j)
		return false;
	pthread_mutex_lock(&j->lock);
	bool was = j->cancel && !j->next[0];
	j->cancel = true;
	j->next[0] = '\0';
	pthread_mutex_unlock(&j->lock);
	return !was;
}

bool nudge_take(struct app *app, struct history **h, struct topo *topo, struct rows *rows, bool *changed)
{
	struct nudge_job *j = app->nudge->job;
	bool cancel = false;
	if (!j || (!app->patient && !is_done(j, &cancel)) || !app_at_rows(app))
		return false;
	job_join(j);
	app->nudge->job = NULL;
	*changed = true;
	bool made = !cancel && !j->err.text[0];
	if (made) {
		char guest[128];
		*h = j->h;
		*topo = j->topo;
		*rows = j->rows;
		rows->topo = topo;
		j->h = NULL;
		j->topo = (struct topo){ 0 };
		j->rows = (struct rows){ 0 };
		if (j->ns == 0)
			app_say(app, "%s", j->said);
		else
			app_say(app, "%s (:offset save writes it, :offset %s 0 takes it back)", j->said,
			        text_escape(guest, sizeof guest, j->guest));
	} else if (!cancel) {
		app_fail(app, &j->err);
	}
	if (cancel && j->next[0])
		nudge_start(app, j->next, j->next_ns);
	job_release(app, j);
	return made;
}

void nudge_init(struct app *app, const struct ui_clocks *clocks)
{
	app->nudge = mem_new(1, sizeof *app->nudge);
	app->nudge->clocks = clocks;
}

void nudge_end(struct app *app)
{
	struct nudge_job *j = app->nudge->job;
	nudge_cancel(app);
	if (j) {
		job_join(j);
		job_release(app, j);
	}
	*app->nudge = (struct nudge){ 0 };
}

void nudge_release(struct app *app)
{
	nudge_end(app);
	free(app->nudge);
}

bool nudge_able(const struct app *app)
{
	return app->nudge->clocks != NULL;
}

bool nudge_busy(const struct app *app)
{
	return app->nudge->job != NULL;
}

void nudge_met(struct app *app)
{
	struct nudge *n = app->nudge;
	n->list[0] = '\0';
	if (n->clocks)
		n->clocks->list(n->clocks->arg, app->h, n->list, sizeof n->list);
}

const char *nudge_list(const struct app *app)
{
	return app->nudge->list;
}

int nudge_save(struct app *app, const char *file, char *said, size_t size, struct error *err)
{
	const struct ui_clocks *c = app->nudge->clocks;
	return c->save(c->arg, app->h, file, said, size, err);
}

bool nudge_text(struct app *app, char *buf, size_t size)
{
	struct nudge_job *j = app->nudge->job;
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
