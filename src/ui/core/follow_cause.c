#include "ui/core/follow_cause.h"

#include "base/base.h"

#define INTERVALS_MAX 1000  /* intervals of the culprit that are scanned for a running one */
#define STEPS_MAX 32  /* steps that can be undone */

struct follow {
	struct row_id visited[STEPS_MAX];  /* rows from which a cause was followed, oldest first */
	size_t steps;
	bool pending;              /* the gap's flow is being computed */
	struct question question;
	int64_t cause_end;         /* end of the interval whose culprit is searched, ns */
};

void follow_init(struct app *app)
{
	app->follow = mem_new(1, sizeof *app->follow);
}

void follow_release(struct app *app)
{
	free(app->follow);
}

void follow_remap(struct app *app, const struct rows *old, const struct rows *new)
{
	for (size_t i = 0; i < app->follow->steps; i++)
		app->follow->visited[i] = row_remap(old, new, app->follow->visited[i]);
}

static bool thread_row(const struct app *app, int64_t machine, int64_t tid, struct row_id *out)
{
	if (machine < 0 || machine >= app->catalog.machines || tid < 0 || tid > INT32_MAX)
		return false;
	int t = catalog_find_thread(&app->catalog, (uint32_t)machine, (int32_t)tid);
	*out = (struct row_id){ ROW_THREAD, (uint32_t)t };
	return t >= 0;
}

/* Finds an actor's row: its thread; its vCPU if the guest has no trace; the machine if the actor is an idle CPU and
 * the machine has several CPUs. Returns false if the actor has no row. */
static bool actor_row(const struct app *app, const struct actor *actor, const char *name, struct row_id *out)
{
	unsigned vcpu;
	const bool runs = actor->kind == FLOW_RUNNING || flow_is_thread(actor->kind);
	if (thread_row(app, actor->machine, actor->tid, out))
		return true;
	if (!runs || actor->tid > 0 || actor->machine < 0 || (uint32_t)actor->machine >= app->catalog.machines)
		return false;
	const struct catalog_machine *m = &app->catalog.machine[actor->machine];
	int cpu = m->cpus == 1 && actor->tid == 0 ? (int)m->cpu : -1;
	if (actor->tid < 0 && name && sscanf(name, "vCPU%u", &vcpu) == 1)
		cpu = catalog_find_cpu(&app->catalog, (uint32_t)actor->machine, vcpu);
	*out = cpu < 0 ? (struct row_id){ ROW_MACHINE, (uint32_t)actor->machine } : (struct row_id){ ROW_CPU, (uint32_t)cpu };
	return true;
}

static int64_t value_at(struct app *app, uint32_t attr, int64_t t)
{
	struct interval iv;
	if (attr == HISTORY_NONE || history_stab(app->h, attr, t, &iv, NULL) < 0)
		return HISTORY_NULL;
	return iv.value;
}

static bool find_waker(struct app *app, uint32_t thread, const struct interval *iv, struct row_id *out)
{
	uint32_t attr = app->catalog.thread[thread].woken_by, tid;
	int machine = catalog_ref(&app->catalog, value_at(app, attr, iv->end < app->bounds.end ? iv->end + 1 : iv->end), &tid);
	int found = machine < 0 || tid > INT32_MAX ? -1 : catalog_find_thread(&app->catalog, (uint32_t)machine, (int32_t)tid);
	if (found < 0) {
		app_message(app, "the waker is unknown");
		return false;
	}
	*out = (struct row_id){ ROW_THREAD, (uint32_t)found };
	return true;
}

static bool cause_of_thread(struct app *app, uint32_t thread, const struct interval *iv, enum vis state,
                            struct row_id *out)
{
	const struct catalog_thread *t = &app->catalog.thread[thread];
	if (state == VIS_BLOCKED)
		return find_waker(app, thread, iv, out);
	int64_t cpu = value_at(app, t->cpu, app->view.cursor);
	int c = cpu >= 0 && cpu <= UINT32_MAX ? catalog_find_cpu(&app->catalog, t->machine, (unsigned)cpu) : -1;
	if (c < 0) {
		app_message(app, "the CPU of the thread is unknown at this time");
		return false;
	}
	*out = (struct row_id){ ROW_CPU, (uint32_t)c };
	return true;
}

static bool cause_of_cpu(struct app *app, struct row_id row, struct row_id *out)
{
	const struct catalog_cpu *cpu = &app->catalog.cpu[row.index];
	bool physical = row_is_pcpu(&app->catalog, row);
	int64_t tid = value_at(app, physical ? cpu->current : cpu->host_thread, app->view.cursor);
	int32_t host = physical ? (int32_t)cpu->machine : app->catalog.machine[cpu->machine].parent;
	if (tid == 0 && physical)
		app_message(app, "this CPU is idle at this time");
	else if (thread_row(app, host, tid, out))
		return true;
	else
		app_message(app, "the %s is unknown at this time", physical ? "thread" : "host thread of this vCPU");
	return false;
}

void follow_push(struct app *app, struct row_id from)
{
	struct follow *f = app->follow;
	if (f->steps == STEPS_MAX)
		memmove(f->visited, f->visited + 1, (--f->steps) * sizeof *f->visited);
	f->visited[f->steps++] = from;
}

void follow_to_actor(struct app *app, const struct actor *actor, const char *name)
{
	struct row_id to;
	struct view before = app->view;
	if (!actor_row(app, actor, name, &to)) {
		app_message(app, "no row for this line: it is neither a thread nor a machine");
		return;
	}
	follow_push(app, app->view.row);
	app_show_row(app, to);
	undo_push(&app->undo, &before);
}

/* Asks a worker for the culprit that had the CPU for the longest part of this interval. */
static void ask_culprit(struct app *app, struct row_id row, const struct interval *iv)
{
	const struct flow_options sums = { 0 };
	struct error err = ERROR_INIT;
	struct target target;
	row_target(&app->catalog, row, &target);
	app->follow->pending = true;
	app->follow->cause_end = iv->end;
	async_ask(app->queries, &app->follow->question, ASK_SENTENCE,
	          flow_open(&app->catalog, &target, iv->start, iv->end, &sums, &err), &err);
	if (!follow_work(app))
		app_message(app, "searching for the culprit (any key cancels)");
}

/* Moves the cursor to the first interval in which the culprit runs: the gap begins slightly earlier. */
static void move_to_run(struct app *app, struct row_id row)
{
	struct interval iv;
	int64_t t = app->view.cursor;
	const struct vocabulary *v = row.kind == ROW_CPU ? &app->appearance.vcpu : &app->appearance.thread;
	if (row_attr(&app->rows, row) == HISTORY_NONE)
		return;
	for (int i = 0; i < INTERVALS_MAX && t <= app->follow->cause_end && app_interval(app, row, t, &iv); i++) {
		if (iv.value >= 0 && iv.value < HISTORY_STATES && v->code[iv.value] == VIS_RUNNING) {
			view_goto(&app->view, &app->bounds, t);
			return;
		}
		t = iv.end + 1;
	}
}

/* Selects the row of the first thread or vCPU in the flow, which had the CPU longest. */
static void go_to_culprit(struct app *app, const struct flow *f)
{
	const struct flow_entry *e = f->entry, *end = e + f->entries;
	struct row_id to;
	char keys[64];
	bool took_most = true;
	for (; e < end && !flow_is_thread(e->actor.kind); e++)
		took_most &= e->actor.kind == FLOW_RUNNING;
	if (e == end || !actor_row(app, &e->actor, e->actor.name < f->names ? f->name[e->actor.name] : NULL, &to)) {
		app_message(app, "no thread or vCPU took this time (%s: details)",
		            keymap_text(&app->keymap, ACT_DETAILS, keys, sizeof keys));
		return;
	}
	follow_push(app, app->view.row);
	app_show_row(app, to);
	if (e->actor.tid != 0)
		move_to_run(app, to);
	if (!took_most)
		app_message(app, "the culprit took %.0f %% of that time; most of the rest was not taken by a thread or vCPU",
		            100 * e->share);
}

bool follow_work(struct app *app)
{
	struct query *query;
	struct flow flow;
	struct error err = ERROR_INIT;
	const int got = app->follow->pending ? app_take_answer(app, &app->follow->question, &query, NULL, &err) : 0;
	if (got == 0)
		return false;
	app->follow->pending = false;
	app->message[0] = '\0';
	if (got < 0) {
		app_fail(app, &err);
		return true;
	}
	query_take(query, &flow);
	query_close(query);
	go_to_culprit(app, &flow);
	flow_release(&flow);
	return true;
}

void follow_drop(struct app *app)
{
	if (app->follow->pending)
		async_drop(app->queries, &app->follow->question);
	app->follow->pending = false;
}

void follow_cause(struct app *app)
{
	struct row_id row = app->view.row, to;
	struct interval iv;
	if (!app_interval(app, row, app->view.cursor, &iv))
		return;
	bool found;
	if (row.kind == ROW_REQUEST) {
		app_message(app, "R lists the requests and the time taken from them");
		return;
	}
	if (row.kind == ROW_PROVIDER) {
		app_message(app, "the provider's host was not recorded: x explains the gap");
		return;
	}
	if (row_is_pcpu(&app->catalog, row)) {
		found = cause_of_cpu(app, row, &to);
	} else {
		const struct vocabulary *v = row.kind == ROW_CPU ? &app->appearance.vcpu : &app->appearance.thread;
		enum vis state = iv.value >= 0 && iv.value < HISTORY_STATES ? v->code[iv.value] : VIS_NONE;
		if (state == VIS_PREEMPTED || state == VIS_VCPU_PREEMPTED || state == VIS_VIRT_PREEMPTED) {
			ask_culprit(app, row, &iv);
			return;
		}
		found = row.kind == ROW_CPU ? cause_of_cpu(app, row, &to)
		                            : cause_of_thread(app, (uint32_t)row_thread(&app->catalog, row), &iv, state, &to);
	}
	if (found) {
		follow_push(app, row);
		app_show_row(app, to);
	}
}

void follow_back(struct app *app)
{
	if (app->follow->steps == 0)
		app_message(app, "nothing to return to");
	else
		app_show_row(app, app->follow->visited[--app->follow->steps]);
}
