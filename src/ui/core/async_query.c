#include "ui/core/async_query.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/clock.h"
#include "ui/terminal/signals.h"

#define STEP_NS 40000000      /* time slice of a query, ns; after each slice the worker looks for more urgent questions */
#define WORKERS 2               /* the second worker reads traces and computes diffs, which take one long step each */
#define PROGRESS_INTERVAL_NS 250000000  /* shortest time between two progress reports, ns */

enum phase { NO_QUESTION, PENDING, ANSWERED };

struct async_queries {
	const struct catalog *catalog;
	const struct ui_traces *traces;
	pthread_mutex_t lock;
	pthread_cond_t work, answered;
	int pipe[2];
	bool quit;
	struct worker {
		struct async_queries *a;
		enum ask_kind first, last;  /* first and last kind of question that this worker answers */
		pthread_t thread;
		bool working;          /* runs a step that uses the catalog */
	} worker[WORKERS];
	struct slot {
		enum phase phase;
		uint64_t serial;       /* number of the question; a job with another number is outdated */
		struct question q;
		struct answer answer;
		unsigned progress;
	} slot[ASK_KINDS];
	/* State of the work on a question. Only the worker that answers the kind uses it. */
	struct ask_job {
		uint64_t serial;       /* number of the question; 0: no job */
		struct question q;
		struct gap interval;
		struct query *query;
		struct culprit_waits *waits;  /* WAITS: answers for the first waits_done targets */
		size_t waits_done;
		int64_t cost;
	} job[ASK_KINDS];
	int64_t last_report;
};

/* ---- Worker threads -------------------------------------------------------------------------------------------- */

static void job_release(struct ask_job *j)
{
	query_close(j->query);
	free(j->waits);
	*j = (struct ask_job){ 0 };
}

static void job_begin(struct ask_job *j, const struct slot *slot)
{
	job_release(j);
	j->serial = slot->serial;
	j->q = slot->q;
}

/* Answers a STATUS question with one lookup in the history; for machines, and for times outside gaps. */
static void answer_by_lookup(const struct catalog *catalog, const struct question *q, struct answer *out)
{
	if (q->target.kind == TARGET_MACHINE)
		out->status = steal_time(catalog, &q->target, q->from, q->to, &out->ns, &out->err);
	else
		out->status = explain_status(catalog, &q->target, q->t, out->text, sizeof out->text, &out->err);
}

/* Finds the interval that the question is about. Returns 1 if a flow of this interval is needed for the answer, 0 if
 * not, -1 on error. */
static int find_interval(const struct catalog *catalog, enum ask_kind kind, struct ask_job *j, struct answer *out)
{
	const struct question *q = &j->q;
	j->interval = (struct gap){ .target = q->target, .start = q->from, .end = q->to };
	if (kind == ASK_CAUSE)
		return 1;
	if (q->target.kind == TARGET_MACHINE)
		return 0;
	int in_gap = explain_moment(catalog, &q->target, q->t, &j->interval, &out->err);
	return in_gap == 0 && kind == ASK_EXPLAIN ? 1 : in_gap;
}

static void fill_cause(const struct flow *f, struct answer *out)
{
	const struct flow_entry *e = f->entry, *end = e + f->entries;
	out->culprit.machine = -1;
	out->took_most = true;
	for (; e < end && !flow_is_thread(e->actor.kind); e++)
		out->took_most &= e->actor.kind == FLOW_RUNNING;
	if (e == end)
		return;
	out->culprit = e->actor;
	out->share = e->share;
	snprintf(out->text, sizeof out->text, "%s", e->actor.name < f->names ? f->name[e->actor.name] : "");
}

/* Answers STATUS, CAUSE and EXPLAIN from the flow of the interval. */
static void fill_from_flow(const struct catalog *catalog, enum ask_kind kind, const struct ask_job *j, struct answer *out)
{
	struct flow flow;
	flow_take(j->query, &flow);
	if (kind == ASK_STATUS)
		explain_status_text(catalog, &j->interval, &flow, out->text, sizeof out->text);
	else if (kind == ASK_CAUSE)
		fill_cause(&flow, out);
	else
		out->status = explain_moment_text(catalog, &j->interval, &flow, &out->paragraph, &out->err);
	flow_release(&flow);
}

/* Opens a query about a window for the kinds that return a list, a matrix or a path. */
static struct query *open_window_query(const struct catalog *catalog, enum ask_kind kind, const struct question *q,
                               struct error *err)
{
	const struct steal_options steal = { .by = STEAL_BY_THREAD, .from = q->from, .to = q->to, .most = ASK_CELLS };
	const struct summary_options summary = { .from = q->from, .to = q->to, .gaps = q->gaps,
		.grouping = q->grouping };
	const struct gap_options gaps = { .from = q->from, .to = q->to, .top = ASK_LISTED };
	const struct exit_options exits = { .only = &q->target, .from = q->from, .to = q->to,
		.by_thread = q->target.kind == TARGET_THREAD };
	switch (kind) {
	case ASK_STEAL: return steal_open(catalog, &steal);
	case ASK_SUMMARY: return summary_open(catalog, &summary);
	case ASK_GAPS: return gap_list_open(catalog, &q->target, &gaps);
	case ASK_LOCKS: return locks_open(catalog, &q->target, q->from, q->to);
	case ASK_FINDINGS: return findings_open(catalog, NULL, q->from, q->to);
	case ASK_PATH: return path_open(catalog, &q->target, q->from, q->to, err);
	default: return exits_open(catalog, &exits, err);
	}
}

static void take_window_answer(enum ask_kind kind, struct query *q, struct answer *out)
{
	switch (kind) {
	case ASK_STEAL: steal_take(q, &out->steal); break;
	case ASK_SUMMARY: summary_take(q, &out->summary); break;
	case ASK_GAPS: gap_list_take(q, &out->gaps); break;
	case ASK_LOCKS: locks_take(q, &out->locks); break;
	case ASK_PATH: path_take(q, &out->path); break;
	case ASK_FINDINGS: findings_take(q, &out->findings); break;
	default: exits_take(q, &out->exits); break;
	}
}

/* Returns 1 if a query was opened, 0 if the question is already answered, -1 on error. */
static int open_job(const struct catalog *catalog, enum ask_kind kind, struct ask_job *j, struct answer *out)
{
	const struct question *q = &j->q;
	struct flow_options options = { .intervals = kind == ASK_FLOW ? ASK_INTERVALS : 0,
		.columns = kind == ASK_FLOW ? q->columns : 0 };
	j->interval = (struct gap){ .start = q->from, .end = q->to };
	if (kind >= ASK_STEAL) {
		j->query = open_window_query(catalog, kind, q, &out->err);
		return j->query ? 1 : -1;
	}
	int found = kind == ASK_FLOW ? 1 : find_interval(catalog, kind, j, out);
	if (found == 0)
		answer_by_lookup(catalog, q, out);
	if (found <= 0)
		return found;
	j->query = flow_open(catalog, &q->target, j->interval.start, j->interval.end, &options, &out->err);
	return j->query ? 1 : -1;
}

static int report_events_read(void *arg, const char *phase, uint64_t done, uint64_t total)
{
	struct async_queries *a = arg;
	struct slot *slot = &a->slot[ASK_EVENTS];
	(void)phase;
	pthread_mutex_lock(&a->lock);
	const bool stale = a->quit || slot->phase != PENDING || slot->serial != a->job[ASK_EVENTS].serial;
	slot->progress = total ? (unsigned)(100 * done / total) : 0;
	pthread_mutex_unlock(&a->lock);
	return stale;
}

/* Reads the events in one step, which report_events_read() cancels when the question is outdated. */
static void read_events(struct async_queries *a, struct answer *out)
{
	const struct question *q = &a->job[ASK_EVENTS].q;
	const char *machine = a->catalog->machine[target_machine(a->catalog, &q->target)].name;
	if (a->traces)
		out->status = a->traces->read(a->catalog->h, machine, q->from, q->to, ASK_LISTED,
		                              (struct progress){ report_events_read, a }, &out->events, &out->err);
	else
		out->status = error_set(&out->err, STATUS_INPUT, NULL, "the traces are not available in this view");
}

/* Compares two windows in one step, which cannot be cancelled. */
static void compute_diff(struct async_queries *a, struct answer *out)
{
	const struct question *q = &a->job[ASK_DIFF].q;
	const struct diff_options options = { DIFF_LEVEL, &out->diff_notes };
	struct catalog other = { 0 };
	struct history *h = *q->other ? history_open(q->other, &out->err) : NULL;
	struct diff_side side[2] = { { a->catalog, q->other_from, q->other_to }, { a->catalog, q->from, q->to } };
	const bool open = h && catalog_open(&other, h, &out->err) == 0;
	out->status = *q->other && !open ? -1 : 0;
	if (open)
		side[0] = (struct diff_side){ &other, history_begin(h), history_end(h) };
	if (out->status == 0)
		out->status = diff_of(side, &options, &out->diff, &out->err);
	if (out->status == 0)
		origin_load(&out->diff_origin, side[0].catalog, NULL, side[0].from, side[0].to);
	if (open)
		catalog_release(&other);
	history_close(h);
}

static bool waits_are_stale(void *arg)
{
	struct async_queries *a = arg;
	struct slot *slot = &a->slot[ASK_WAITS];
	pthread_mutex_lock(&a->lock);
	const bool stale = a->quit || slot->phase != PENDING || slot->serial != a->job[ASK_WAITS].serial;
	pthread_mutex_unlock(&a->lock);
	return stale;
}

/* Finds the waits of one target. Returns 1 if all are found, 0 if not, -1 on error. */
static int find_waits(struct async_queries *a, struct ask_job *j, struct answer *out)
{
	const struct question *q = &j->q;
	if (!j->waits)
		j->waits = mem_new(q->waits_len, sizeof *j->waits);
	if (j->waits_done < q->waits_len) {
		const struct waits_of *w = &q->waits[j->waits_done];
		if (culprit_waits_of(a->catalog, &w->target, q->from, q->to, &w->culprit, w->name, waits_are_stale, a,
		                     &j->waits[j->waits_done++], &out->err) < 0)
			return -1;
	}
	if (j->waits_done < q->waits_len)
		return 0;
	out->waits = j->waits;
	j->waits = NULL;
	return 1;
}

/* Runs one step. Returns 1 if the question is answered, 0 if there is more to do. */
static int job_step(struct async_queries *a, enum ask_kind kind, struct answer *out)
{
	struct ask_job *j = &a->job[kind];
	int64_t began = now_ns();
	if (kind == ASK_WAITS) {
		const int found = find_waits(a, j, out);
		out->status = found < 0 ? -1 : 0;
		j->cost += now_ns() - began + 1;
		out->cost = j->cost;
		return found != 0;
	}
	if (kind == ASK_EVENTS)
		read_events(a, out);
	else if (kind == ASK_DIFF)
		compute_diff(a, out);
	int open = kind >= ASK_EVENTS ? 0 : j->query ? 1 : open_job(a->catalog, kind, j, out);
	int done = open > 0 ? query_step(j->query, STEP_NS, &out->err) : 1;
	if (open < 0 || done < 0)
		out->status = -1;
	else if (open && done && kind == ASK_FLOW)
		flow_take(j->query, &out->flow);
	else if (open && done && kind >= ASK_STEAL)
		take_window_answer(kind, j->query, out);
	else if (open && done)
		fill_from_flow(a->catalog, kind, j, out);
	j->cost += now_ns() - began + 1;
	out->cost = j->cost;
	return done != 0;
}

static void report_progress(struct async_queries *a)
{
	a->last_report = now_ns();
	async_wake_viewer(a);
}

static void answer_release(struct answer *answer)
{
	flow_release(&answer->flow);
	steal_release(&answer->steal);
	summary_release(&answer->summary);
	gap_list_release(&answer->gaps);
	locks_release(&answer->locks);
	exits_release(&answer->exits);
	path_release(&answer->path);
	findings_release(&answer->findings);
	event_list_release(&answer->events);
	diff_release(&answer->diff);
	notes_release(&answer->diff_notes);
	origin_release(&answer->diff_origin);
	free(answer->paragraph);
	free(answer->waits);
	*answer = (struct answer){ 0 };
}

/* Runs one step of the question of that kind. Called with the lock held; releases the lock during the step. */
static void answer_question(struct worker *worker, enum ask_kind kind)
{
	struct async_queries *a = worker->a;
	struct slot *slot = &a->slot[kind];
	struct ask_job *j = &a->job[kind];
	struct answer *answer = mem_new(1, sizeof *answer);
	if (j->serial != slot->serial)
		job_begin(j, slot);
	worker->working = true;
	pthread_mutex_unlock(&a->lock);
	int done = job_step(a, kind, answer);
	pthread_mutex_lock(&a->lock);
	worker->working = false;
	bool stale = slot->phase != PENDING || slot->serial != j->serial;
	if (!stale && done) {
		answer_release(&slot->answer);
		slot->answer = *answer;
		*answer = (struct answer){ 0 };
		slot->phase = ANSWERED;
		pthread_cond_broadcast(&a->answered);
		report_progress(a);
	} else if (!stale) {
		slot->progress = j->query ? (unsigned)(100 * query_done(j->query)) : 0;
		if (now_ns() - a->last_report > PROGRESS_INTERVAL_NS)
			report_progress(a);
	}
	if (stale || done)
		job_release(j);
	if (stale)
		pthread_cond_broadcast(&a->answered);
	answer_release(answer);
	free(answer);
}

static void *worker_main(void *arg)
{
	struct worker *worker = arg;
	struct async_queries *a = worker->a;
	pthread_mutex_lock(&a->lock);
	while (!a->quit) {
		unsigned kind = worker->first;
		while (kind <= worker->last && a->slot[kind].phase != PENDING)
			kind++;
		if (kind <= worker->last)
			answer_question(worker, (enum ask_kind)kind);
		else
			pthread_cond_wait(&a->work, &a->lock);
	}
	pthread_mutex_unlock(&a->lock);
	for (unsigned kind = worker->first; kind <= worker->last; kind++)
		job_release(&a->job[kind]);
	return NULL;
}

/* ---- The viewer's side -------------------------------------------------------------------------------------------- */

/* Starts the workers. Returns the number of workers that were started; < WORKERS: error. */
static unsigned start_workers(struct async_queries *a)
{
	static const enum ask_kind first[WORKERS + 1] = { ASK_STATUS, ASK_EVENTS, ASK_KINDS };
	unsigned n = 0;
	for (; n < WORKERS; n++) {
		a->worker[n] = (struct worker){ .a = a, .first = first[n], .last = first[n + 1] - 1 };
		if (signals_start_thread(&a->worker[n].thread, worker_main, &a->worker[n]) < 0)
			break;
	}
	return n;
}

static void stop_workers(struct async_queries *a, unsigned n)
{
	pthread_mutex_lock(&a->lock);
	a->quit = true;
	pthread_cond_broadcast(&a->work);
	pthread_mutex_unlock(&a->lock);
	for (unsigned i = 0; i < n; i++)
		pthread_join(a->worker[i].thread, NULL);
}

struct async_queries *async_open(const struct catalog *catalog, const struct ui_traces *traces)
{
	struct async_queries *a = mem_new(1, sizeof *a);
	pthread_condattr_t monotonic;
	a->catalog = catalog;
	a->traces = traces;
	pthread_mutex_init(&a->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&a->work, NULL);
	pthread_cond_init(&a->answered, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (pipe2(a->pipe, O_CLOEXEC | O_NONBLOCK) < 0) {
		free(a);
		return NULL;
	}
	const unsigned started = start_workers(a);
	if (started < WORKERS) {
		stop_workers(a, started);
		close(a->pipe[0]);
		close(a->pipe[1]);
		free(a);
		return NULL;
	}
	return a;
}

void async_close(struct async_queries *a)
{
	if (!a)
		return;
	stop_workers(a, WORKERS);
	for (int kind = 0; kind < ASK_KINDS; kind++)
		answer_release(&a->slot[kind].answer);
	pthread_cond_destroy(&a->work);
	pthread_cond_destroy(&a->answered);
	pthread_mutex_destroy(&a->lock);
	close(a->pipe[0]);
	close(a->pipe[1]);
	free(a);
}

void async_ask(struct async_queries *a, enum ask_kind kind, const struct question *q)
{
	pthread_mutex_lock(&a->lock);
	struct slot *slot = &a->slot[kind];
	slot->phase = PENDING;
	slot->serial++;
	slot->q = *q;
	slot->progress = 0;
	pthread_cond_broadcast(&a->work);
	pthread_mutex_unlock(&a->lock);
}

void async_drop(struct async_queries *a, enum ask_kind kind)
{
	pthread_mutex_lock(&a->lock);
	a->slot[kind].phase = NO_QUESTION;
	pthread_mutex_unlock(&a->lock);
}

void async_drain(struct async_queries *a)
{
	pthread_mutex_lock(&a->lock);
	for (int kind = 0; kind < ASK_KINDS; kind++) {
		answer_release(&a->slot[kind].answer);
		a->slot[kind].phase = NO_QUESTION;
	}
	for (unsigned i = 0; i < WORKERS; i++)
		while (a->worker[i].working)
			pthread_cond_wait(&a->answered, &a->lock);
	pthread_mutex_unlock(&a->lock);
}

bool async_is_pending(struct async_queries *a, enum ask_kind kind)
{
	pthread_mutex_lock(&a->lock);
	bool asked = a->slot[kind].phase != NO_QUESTION;
	pthread_mutex_unlock(&a->lock);
	return asked;
}

bool async_is_busy(struct async_queries *a)
{
	bool busy = false;
	for (int kind = 0; kind < ASK_KINDS; kind++)
		busy |= async_is_pending(a, (enum ask_kind)kind);
	return busy;
}

bool async_take_answer(struct async_queries *a, enum ask_kind kind, struct answer *out)
{
	pthread_mutex_lock(&a->lock);
	struct slot *slot = &a->slot[kind];
	bool has_answer = slot->phase == ANSWERED;
	if (has_answer) {
		*out = slot->answer;
		slot->answer = (struct answer){ 0 };
		slot->phase = NO_QUESTION;
	}
	pthread_mutex_unlock(&a->lock);
	return has_answer;
}

unsigned async_progress(struct async_queries *a, enum ask_kind kind)
{
	pthread_mutex_lock(&a->lock);
	unsigned progress = a->slot[kind].progress;
	pthread_mutex_unlock(&a->lock);
	return progress;
}

void async_wait(struct async_queries *a, enum ask_kind kind, int64_t ns)
{
	const struct timespec until = timespec_of(now_ns() + (ns > 0 ? ns : 0));
	pthread_mutex_lock(&a->lock);
	while (a->slot[kind].phase == PENDING && pthread_cond_timedwait(&a->answered, &a->lock, &until) == 0)
		;
	pthread_mutex_unlock(&a->lock);
}

void async_wake_viewer(struct async_queries *a)
{
	char c = 0;
	if (write(a->pipe[1], &c, 1) < 0)
		return;  /* the pipe is full and thus already readable */
}

int async_fd(const struct async_queries *a)
{
	return a->pipe[0];
}

void async_clear_wakeup(struct async_queries *a)
{
	char bytes[64];
	while (read(a->pipe[0], bytes, sizeof bytes) == sizeof bytes)
		;
}
