#include "ui/core/follow_cause.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define LOOKS 1000  /* intervals of a culprit to look at for one in which it runs */
#define MOST 32     /* steps that can be taken back */

struct follow {
	struct row_id left[MOST];  /* rows that a cause was followed from */
	size_t steps;
	bool asked;                /* the next one is to be told by the helper */
	int64_t until;             /* end of the interval that it is the culprit of */
};

void follow_init(struct app *app)
{
	app->follow = mem_new(1, sizeof *app->follow);
}

void follow_release(struct app *app)
{
	free(app->follow);
}

void follow_carry(struct app *app, const struct rows *was, const struct rows *is)
{
	for (size_t i = 0; i < app->follow->steps; i++)
		app->follow->left[i] = row_again(was, is, app->follow->left[i]);
}

static bool thread_row(const struct app *app, int64_t machine, int64_t tid, struct row_id *out)
{
	if (machine < 0 || machine >= app->topo.machines || tid < 0 || tid > INT32_MAX)
		return false;
	int t = topo_find_thread(&app->topo, (uint32_t)machine, (int32_t)tid);
	*out = (struct row_id){ ROW_THREAD, (uint32_t)t };
	return t >= 0;
}

/* Of a vCPU whose guest does not tell more its row; of an idle one, whichever that was, its machine's. */
static bool party_row(const struct app *app, const struct party *who, const char *name, struct row_id *out)
{
	unsigned vcpu;
	const bool runs = who->kind == FLOW_RUNNING || who->kind == FLOW_PREEMPTING;
	if (thread_row(app, who->system, who->tid, out))
		return true;
	if (!runs || who->tid > 0 || who->system < 0 || (uint32_t)who->system >= app->topo.machines)
		return false;
	const struct topo_machine *m = &app->topo.machine[who->system];
	int cpu = m->cpus == 1 && who->tid == 0 ? (int)m->cpu : -1;
	if (who->tid < 0 && name && sscanf(name, "vCPU%u", &vcpu) == 1)
		cpu = topo_find_cpu(&app->topo, (uint32_t)who->system, vcpu);
	*out = cpu < 0 ? (struct row_id){ ROW_MACHINE, (uint32_t)who->system } : (struct row_id){ ROW_CPU, (uint32_t)cpu };
	return true;
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
	uint32_t attr = app->topo.thread[thread].woken_by, tid;
	int machine = topo_ref(&app->topo, value_at(app, attr, iv->end < app->ground.end ? iv->end + 1 : iv->end), &tid);
	int found = machine < 0 || tid > INT32_MAX ? -1 : topo_find_thread(&app->topo, (uint32_t)machine, (int32_t)tid);
	if (found < 0) {
		app_say(app, "the waker is not known");
		return false;
	}
	*out = (struct row_id){ ROW_THREAD, (uint32_t)found };
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

void follow_leave(struct app *app, struct row_id from)
{
	struct follow *f = app->follow;
	if (f->steps == MOST)
		memmove(f->left, f->left + 1, (--f->steps) * sizeof *f->left);
	f->left[f->steps++] = from;
}

void follow_party(struct app *app, const struct party *who, const char *name)
{
	struct row_id to;
	struct view before = app->view;
	if (!party_row(app, who, name, &to)) {
		app_say(app, "no row stands for this line: it is no thread and no machine");
		return;
	}
	follow_leave(app, app->view.row);
	app_show_row(app, to);
	undo_push(&app->undo, &before);
}

/* Who had the CPU for the longest part of this interval: asked for. */
static void ask_culprit(struct app *app, struct row_id row, const struct interval *iv)
{
	struct question q = { .from = iv->start, .to = iv->end };
	row_subject(&app->topo, row, &q.subject);
	app->follow->asked = true;
	app->follow->until = iv->end;
	asker_ask(app->asker, ASK_CAUSE, &q);
	if (!follow_work(app))
		app_say(app, "looking for who had its CPU; any key ends it");
}

/* A gap begins a moment before its culprit runs: what is shown of it is how it has the CPU, not how it waits. */
static void to_its_run(struct app *app, struct row_id row)
{
	struct interval iv;
	int64_t t = app->view.cursor;
	const struct vocabulary *v = row.kind == ROW_CPU ? &app->look.vcpu : &app->look.thread;
	if (row_attr(&app->rows, row) == HISTORY_NONE)
		return;
	for (int i = 0; i < LOOKS && t <= app->follow->until && app_interval(app, row, t, &iv); i++) {
		if (iv.value >= 0 && iv.value < HISTORY_STATES && v->code[iv.value] == VIS_RUNNING) {
			view_goto(&app->view, &app->ground, t);
			return;
		}
		t = iv.end + 1;
	}
}

bool follow_work(struct app *app)
{
	struct answer answer;
	struct row_id to;
	char keys[64];
	if (!app->follow->asked || !app_answer(app, ASK_CAUSE, &answer))
		return false;
	app->follow->asked = false;
	app->message[0] = '\0';
	if (answer.status < 0)
		app_fail(app, &answer.err);
	else if (!party_row(app, &answer.who, answer.text, &to))
		app_say(app, "no thread or vCPU took this time; %s tells what did", keymap_text(&app->keymap, ACT_DETAILS, keys,
		        sizeof keys));
	else {
		follow_leave(app, app->view.row);
		app_show_row(app, to);
		if (answer.who.tid != 0)
			to_its_run(app, to);
		if (!answer.most)
			app_say(app, "it had %.0f %% of that time; what had more is no thread or vCPU", 100 * answer.share);
	}
	return true;
}

void follow_drop(struct app *app)
{
	if (app->follow->asked)
		asker_drop(app->asker, ASK_CAUSE);
	app->follow->asked = false;
}

void follow_cause(struct app *app)
{
	struct row_id row = app->view.row, to;
	struct interval iv;
	if (!app_interval(app, row, app->view.cursor, &iv))
		return;
	bool found;
	if (row.kind == ROW_REQUEST) {
		app_say(app, "R lists the requests with what was taken from them");
		return;
	}
	if (row_is_pcpu(&app->topo, row)) {
		found = cause_of_cpu(app, row, &to);
	} else {
		const struct vocabulary *v = row.kind == ROW_CPU ? &app->look.vcpu : &app->look.thread;
		enum vis state = iv.value >= 0 && iv.value < HISTORY_STATES ? v->code[iv.value] : VIS_NONE;
		if (state == VIS_PREEMPTED || state == VIS_VCPU_PREEMPTED || state == VIS_VIRT_PREEMPTED) {
			ask_culprit(app, row, &iv);
			return;
		}
		found = row.kind == ROW_CPU ? cause_of_cpu(app, row, &to)
		                            : cause_of_thread(app, (uint32_t)row_thread(&app->topo, row), &iv, state, &to);
	}
	if (found) {
		follow_leave(app, row);
		app_show_row(app, to);
	}
}

void follow_back(struct app *app)
{
	if (app->follow->steps == 0)
		app_say(app, "no cause was followed");
	else
		app_show_row(app, app->follow->left[--app->follow->steps]);
}
