/* Manual clock offsets. See clock_offset.h.
 *
 * A thread builds the new history, which may take minutes; the viewer shows the old history until then. The builder also
 * runs the thread scan of the new rows, so that the viewer can switch between two frames. The switch waits until lists
 * and prompts are closed, because these refer to objects of the old history. */
#include "ui/core/clock_offset.h"

#include <pthread.h>

#include "base/base.h"
#include "ui/terminal/signals.h"

#define PROGRESS_INTERVAL_NS 250000000  /* shortest time between two progress reports, ns */
#define SCAN_NS 20000000   /* time slice of the thread scan between two checks of `cancel`, ns */

struct manual_offset {
	const struct ui_clocks *clocks;   /* callbacks; NULL: clocks cannot be shifted */
	struct manual_offset_job *job;            /* job that builds a history; NULL: none */
	char list[128];                   /* offsets of the history shown, as text; "": none */
};

struct manual_offset_job {
	pthread_t thread;
	const struct ui_clocks *clocks;
	const struct history *shown;
	struct async_queries *queries;          /* used to wake the viewer */
	char guest[256];
	int64_t ns;
	/* guest of a request made while this job is being cancelled; "": none. Used only by the viewer's thread */
	char next[256];
	int64_t next_ns;
	/* Results. They belong to the builder thread until `done` is set. */
	struct history *h;
	struct catalog catalog;
	struct rows rows;
	char result[256];
	struct error err;
	/* Members that the lock protects. */
	pthread_mutex_t lock;
	const char *phase;
	uint64_t at, total;
	int64_t last_report;
	bool cancel, done;
};

/* ---- The thread ----------------------------------------------------------------------------------------------- */

static int report_progress(void *arg, const char *phase, uint64_t done, uint64_t total)
{
	struct manual_offset_job *j = arg;
	int64_t now = now_ns();
	pthread_mutex_lock(&j->lock);
	bool report = now - j->last_report > PROGRESS_INTERVAL_NS, cancel = j->cancel;
	j->phase = phase;
	j->at = done;
	j->total = total;
	j->last_report = report ? now : j->last_report;
	pthread_mutex_unlock(&j->lock);
	if (report)
		async_wake_viewer(j->queries);
	return cancel;
}

static int scan_threads(struct manual_offset_job *j)
{
	int done = 0;
	while (done == 0 && !rows_scan_done(&j->rows)) {
		if (report_progress(j, "reading threads", j->rows.scan.next, j->catalog.threads))
			return error_set(&j->err, STATUS_CANCELLED, NULL, "cancelled");
		done = rows_scan_step(&j->rows, SCAN_NS, &j->err);
	}
	return done < 0 ? -1 : 0;
}

static void *build_history(void *arg)
{
	struct manual_offset_job *j = arg;
	struct thread_scan old_scan = j->rows.scan;
	enum row_sort sort = j->rows.sort;
	j->h = j->clocks->manual_offset(j->clocks->arg, j->shown, j->guest, j->ns, (struct progress){ report_progress, j },
	                                j->result,
	                        sizeof j->result, &j->err);
	if (j->h && catalog_open(&j->catalog, j->h, &j->err) == 0) {
		rows_init(&j->rows, &j->catalog);
		j->rows.sort = sort;
		rows_scan_start(&j->rows, old_scan.from, old_scan.to);
		scan_threads(j);
	}
	pthread_mutex_lock(&j->lock);
	j->done = true;
	pthread_mutex_unlock(&j->lock);
	async_wake_viewer(j->queries);
	return NULL;
}

/* ---- The viewer's side -------------------------------------------------------------------------------------------- */

/* Waits for the thread. Its results then belong to the caller until job_release(). */
static void job_join(struct manual_offset_job *j)
{
	pthread_join(j->thread, NULL);
	pthread_mutex_destroy(&j->lock);
}

static void job_release(struct app *app, struct manual_offset_job *j)
{
	rows_release(&j->rows);
	catalog_release(&j->catalog);
	if (j->h != app->first)
		history_close(j->h);
	free(j);
}

static bool is_done(struct manual_offset_job *j, bool *cancel)
{
	pthread_mutex_lock(&j->lock);
	bool done = j->done;
	*cancel = j->cancel;
	pthread_mutex_unlock(&j->lock);
	return done;
}

void manual_offset_start(struct app *app, const char *guest, int64_t ns)
{
	struct error err = ERROR_INIT;
	struct manual_offset_job *j = app->manual_offset->job;
	if (j) {
		bool cancel;
		is_done(j, &cancel);
		if (cancel) {
			snprintf(j->next, sizeof j->next, "%s", guest);
			j->next_ns = ns;
		} else {
			app_message(app, "another clock is being shifted (<Esc> cancels it)");
		}
		return;
	}
	j = mem_new(1, sizeof *j);
	*j = (struct manual_offset_job){ .clocks = app->manual_offset->clocks, .shown = app->h, .queries = app->queries,
		.ns = ns, .phase = "starting", .rows = { .scan = app->rows.scan, .sort = app->rows.sort } };
	snprintf(j->guest, sizeof j->guest, "%s", guest);
	pthread_mutex_init(&j->lock, NULL);
	if (signals_start_thread(&j->thread, build_history, j) == 0) {
		app->manual_offset->job = j;
		return;
	}
	error_system(&err, NULL, "cannot start a thread");
	app_fail(app, &err);
	pthread_mutex_destroy(&j->lock);
	free(j);
}

bool manual_offset_cancel(struct app *app)
{
	struct manual_offset_job *j = app->manual_offset->job;
	if (!j)
		return false;
	pthread_mutex_lock(&j->lock);
	bool was_cancelled = j->cancel && !j->next[0];
	j->cancel = true;
	j->next[0] = '\0';
	pthread_mutex_unlock(&j->lock);
	return !was_cancelled;
}

bool manual_offset_take(struct app *app, struct history **h, struct catalog *catalog, struct rows *rows, bool *changed)
{
	struct manual_offset_job *j = app->manual_offset->job;
	bool cancel = false;
	if (!j || (!app->waits_for_answers && !is_done(j, &cancel)) || !app_rows_have_keys(app))
		return false;
	job_join(j);
	app->manual_offset->job = NULL;
	*changed = true;
	bool is_complete = !cancel && !j->err.text[0];
	if (is_complete) {
		char guest[128];
		*h = j->h;
		*catalog = j->catalog;
		*rows = j->rows;
		rows->catalog = catalog;
		j->h = NULL;
		j->catalog = (struct catalog){ 0 };
		j->rows = (struct rows){ 0 };
		if (j->ns == 0)
			app_message(app, "%s", j->result);
		else
			app_message(app, "%s (:offset save keeps it, :offset %s 0 reverts it)", j->result,
			        text_escape(guest, sizeof guest, j->guest));
	} else if (!cancel) {
		app_fail(app, &j->err);
	}
	if (cancel && j->next[0])
		manual_offset_start(app, j->next, j->next_ns);
	job_release(app, j);
	return is_complete;
}

void manual_offset_init(struct app *app, const struct ui_clocks *clocks)
{
	app->manual_offset = mem_new(1, sizeof *app->manual_offset);
	app->manual_offset->clocks = clocks;
}

void manual_offset_end(struct app *app)
{
	struct manual_offset_job *j = app->manual_offset->job;
	manual_offset_cancel(app);
	if (j) {
		job_join(j);
		job_release(app, j);
	}
	*app->manual_offset = (struct manual_offset){ 0 };
}

void manual_offset_release(struct app *app)
{
	manual_offset_end(app);
	free(app->manual_offset);
}

bool manual_offset_supported(const struct app *app)
{
	return app->manual_offset->clocks != NULL;
}

bool manual_offset_busy(const struct app *app)
{
	return app->manual_offset->job != NULL;
}

void manual_offset_update_list(struct app *app)
{
	struct manual_offset *n = app->manual_offset;
	n->list[0] = '\0';
	if (n->clocks)
		n->clocks->list(n->clocks->arg, app->h, n->list, sizeof n->list);
}

const char *manual_offset_list(const struct app *app)
{
	return app->manual_offset->list;
}

int manual_offset_save(struct app *app, const char *file, char *result, size_t size, struct error *err)
{
	const struct ui_clocks *c = app->manual_offset->clocks;
	return c->save(c->arg, app->h, file, result, size, err);
}

bool manual_offset_text(struct app *app, char *buf, size_t size)
{
	struct manual_offset_job *j = app->manual_offset->job;
	char name[128], by[TIME_TEXT], part[16] = "";
	if (!j)
		return false;
	pthread_mutex_lock(&j->lock);
	bool cancel = j->cancel, next = j->next[0];
	if (j->total > 0 && !next)
		snprintf(part, sizeof part, " %.0f %%", 100 * (double)j->at / (double)j->total);
	snprintf(buf, size, "shifting the clock of %s by %s: %s%s (Esc cancels)",
	         text_escape(name, sizeof name, next ? j->next : j->guest), time_exact(by, next ? j->next_ns : j->ns),
	         next ? "cancelling the previous one" : j->phase, part);
	pthread_mutex_unlock(&j->lock);
	return next || !cancel;
}
