/* From a row to its intervals and causes: the questions the keys ask of the history.  Gaps are in hunt.c. */
#include "ui/app.h"

#include <string.h>

#define LOOKS 1000  /* intervals of a culprit to look at for one in which it runs */

uint32_t app_row_attr(const struct app *app, struct row_id row)
{
	int64_t thread = row_thread(&app->topo, row);
	if (thread >= 0)
		return app->topo.thread[thread].status;
	if (row.kind == ROW_REQUEST)
		return app->rows.request[row.index].state;
	if (row.kind == ROW_CPU)
		return row_is_pcpu(&app->topo, row) ? app->topo.cpu[row.index].owner : app->topo.cpu[row.index].status;
	return HISTORY_NONE;
}

bool app_interval(struct app *app, struct row_id row, int64_t t, struct interval *iv)
{
	struct error err = ERROR_INIT;
	uint32_t attr = app_row_attr(app, row);
	if (attr == HISTORY_NONE) {
		app_say(app, "this row has no intervals of its own: choose a CPU or a thread");
		return false;
	}
	if (history_stab(app->h, attr, t, iv, &err) < 0) {
		app_fail(app, &err);
		return false;
	}
	return true;
}

/* ---- Causes ------------------------------------------------------------------------------------------------ */

static bool thread_row(const struct app *app, int64_t machine, int64_t tid, struct row_id *out)
{
	if (machine < 0 || machine >= app->topo.machines || tid < 0 || tid > INT32_MAX)
		return false;
	int t = topo_find_thread(&app->topo, (uint32_t)machine, (int32_t)tid);
	*out = (struct row_id){ ROW_THREAD, (uint32_t)t };
	return t >= 0;
}

static int64_t value_at(struct app *app, uint32_t attr, int64_t t)
{
	struct interval iv;
	if (attr == HISTORY_NONE || history_stab(app->h, attr, t, &iv, NULL) < 0)
		return HISTORY_NULL;
	return iv.value;
}

static bool waker(struct app *app, uint32_t thread, const struct interval *iv, struct row_id *out)
{
	uint32_t attr = app->topo.thread[thread].waker;
	int64_t id = value_at(app, attr, iv->end < app->ground.end ? iv->end + 1 : iv->end);
	const char *text = id == HISTORY_NULL ? NULL : history_string(app->h, id);
	struct subject s;
	if (!text || topo_parse_subject(&app->topo, text, &s, NULL) < 0 || s.kind != SUBJECT_THREAD) {
		app_say(app, "the waker is not known");
		return false;
	}
	*out = (struct row_id){ ROW_THREAD, s.index };
	return true;
}

static bool cause_of_thread(struct app *app, uint32_t thread, const struct interval *iv, enum vis state,
                            struct row_id *out)
{
	const struct topo_thread *t = &app->topo.thread[thread];
	if (state == VIS_BLOCKED)
		return waker(app, thread, iv, out);
	int64_t cpu = value_at(app, t->cpu, app->view.cursor);
	int c = cpu >= 0 && cpu <= UINT32_MAX ? topo_find_cpu(&app->topo, t->machine, (unsigned)cpu) : -1;
	if (c < 0) {
		app_say(app, "its CPU is not known here");
		return false;
	}
	*out = (struct row_id){ ROW_CPU, (uint32_t)c };
	return true;
}

static bool cause_of_cpu(struct app *app, struct row_id row, struct row_id *out)
{
	const struct topo_cpu *cpu = &app->topo.cpu[row.index];
	bool physical = row_is_pcpu(&app->topo, row);
	int64_t tid = value_at(app, physical ? cpu->current : cpu->host_thread, app->view.cursor);
	int32_t host = physical ? (int32_t)cpu->machine : app->topo.machine[cpu->machine].parent;
	if (tid == 0 && physical)
		app_say(app, "this CPU is idle here");
	else if (thread_row(app, host, tid, out))
		return true;
	else
		app_say(app, "the %s is not known here", physical ? "thread" : "host thread of this vCPU");
	return false;
}

static void go_to_cause(struct app *app, struct row_id from, struct row_id to)
{
	size_t most = sizeof app->cause / sizeof *app->cause;
	if (app->causes == most)
		memmove(app->cause, app->cause + 1, (--app->causes) * sizeof *app->cause);
	app->cause[app->causes++] = from;
	app_show_row(app, to);
}

/* Who had the CPU for the longest part of this interval: asked for. */
static void ask_culprit(struct app *app, struct row_id row, const struct interval *iv)
{
	struct question q = { .from = iv->start, .to = iv->end };
	row_subject(&app->topo, row, &q.subject);
	app->culprit_asked = true;
	app->culprit_until = iv->end;
	asker_ask(app->asker, ASK_CAUSE, &q);
	if (!cause_work(app))
		app_say(app, "looking for who had its CPU; any key ends it");
}

/* A gap begins a moment before its culprit runs: what is shown of it is how it has the CPU, not how it waits. */
static void to_its_run(struct app *app, struct row_id row)
{
	struct interval iv;
	int64_t t = app->view.cursor;
	for (int i = 0; i < LOOKS && t <= app->culprit_until && app_interval(app, row, t, &iv); i++) {
		if (iv.value >= 0 && iv.value < HISTORY_STATES && app->thread.code[iv.value] == VIS_RUNNING) {
			view_goto(&app->view, &app->ground, t);
			return;
		}
		t = iv.end + 1;
	}
}

bool cause_work(struct app *app)
{
	struct answer answer;
	struct row_id to;
	if (!app->culprit_asked || !app_answer(app, ASK_CAUSE, &answer))
		return false;
	app->culprit_asked = false;
	app->message[0] = '\0';
	if (answer.status < 0)
		app_fail(app, &answer.err);
	else if (!thread_row(app, answer.system, answer.tid, &to))
		app_say(app, "no thread took this time");
	else {
		go_to_cause(app, app->view.row, to);
		to_its_run(app, to);
	}
	return true;
}

void cause_drop(struct app *app)
{
	if (app->culprit_asked)
		asker_drop(app->asker, ASK_CAUSE);
	app->culprit_asked = false;
}

void app_cause(struct app *app)
{
	struct row_id row = app->view.row, to;
	struct interval iv;
	if (!app_interval(app, row, app->view.cursor, &iv))
		return;
	bool found;
	if (row.kind == ROW_REQUEST) {
		app_say(app, "R lists the requests with what was stolen from them");
		return;
	}
	if (row_is_pcpu(&app->topo, row)) {
		found = cause_of_cpu(app, row, &to);
	} else {
		const struct vocabulary *v = row.kind == ROW_CPU ? &app->vcpu : &app->thread;
		enum vis state = iv.value >= 0 && iv.value < HISTORY_STATES ? v->code[iv.value] : VIS_NONE;
		if (state == VIS_PREEMPTED || state == VIS_VCPU_PREEMPTED || state == VIS_VIRT_PREEMPTED) {
			ask_culprit(app, row, &iv);
			return;
		}
		found = row.kind == ROW_CPU ? cause_of_cpu(app, row, &to)
		                            : cause_of_thread(app, (uint32_t)row_thread(&app->topo, row), &iv, state, &to);
	}
	if (found)
		go_to_cause(app, row, to);
}

void app_cause_back(struct app *app)
{
	if (app->causes == 0)
		app_say(app, "no cause was followed");
	else
		app_show_row(app, app->cause[--app->causes]);
}
