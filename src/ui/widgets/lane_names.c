/* See lane_names.h.
 *
 * - A wait is a sequence of columns that the row spent almost completely in waits. The flow of this interval names the
 *   culprit, if one actor took more than half of it. The flow is computed between keys and kept for later frames.
 * - A name leaves at least one cell free on each side, so that the state stays visible without colours. */
#include "ui/widgets/lane_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"

#define WAIT_PART 15      /* smallest share of waits in each column of a named wait, sixteenths */
#define NAME_COLUMNS_MIN 4  /* smallest bar with a name, columns */
#define SHORT_NAME_MIN 6  /* smallest name that may be cut, columns */
#define KNOWN_MAX 1024    /* names kept; a new name replaces the oldest one */

struct lane_name {
	struct target target;
	int64_t from, to;     /* interval of the wait, ns */
	bool known;           /* the flow was computed */
	char full[96], plain[40];  /* "host/306 burnP6" and "burnP6", escaped; "": no actor took more than half */
};

struct lane_names {
	struct lane_name *name;
	size_t len, next;     /* next: entry that a new name replaces */
	size_t pending;       /* number of entries that are not known */
	size_t by_hash[2 * KNOWN_MAX];  /* index + 1 by hash of the key; 0: none. A later entry replaces an earlier one */
};

void lane_names_init(struct app *app)
{
	app->lane_names = mem_new(1, sizeof *app->lane_names);
	app->lane_names->name = mem_new(KNOWN_MAX, sizeof *app->lane_names->name);
}

void lane_names_release(struct app *app)
{
	if (app->lane_names)
		free(app->lane_names->name);
	free(app->lane_names);
}

void lane_names_forget(struct app *app)
{
	struct lane_name *name = app->lane_names->name;
	*app->lane_names = (struct lane_names){ .name = name };
}

/* ---- Culprits of waits ---------------------------------------------------------------------------------------------- */

static size_t hash_of(const struct target *s, int64_t from, int64_t to)
{
	uint64_t h = (uint64_t)from * 0x9e3779b97f4a7c15ULL ^ (uint64_t)to * 0xc2b2ae3d27d4eb4fULL ^ s->index;
	return (size_t)((h ^ h >> 29) * 0x9e3779b97f4a7c15ULL >> 40) % (2 * KNOWN_MAX);
}

/* Returns the entry of the interval; adds it if there is none. */
static struct lane_name *find_name(struct lane_names *l, const struct target *s, int64_t from, int64_t to)
{
	const size_t slot = hash_of(s, from, to);
	struct lane_name *p = l->by_hash[slot] ? &l->name[l->by_hash[slot] - 1] : NULL;
	if (p && p->target.kind == s->kind && p->target.index == s->index && p->from == from && p->to == to)
		return p;
	p = &l->name[l->next];
	l->pending += l->next == l->len || p->known;
	l->by_hash[slot] = l->next + 1;
	l->len += l->next == l->len;
	l->next = (l->next + 1) % KNOWN_MAX;
	*p = (struct lane_name){ .target = *s, .from = from, .to = to };
	return p;
}

/* Writes the name of an actor without machine and TID: "burnP6"; of other actors "". */
static void write_plain_name(const struct app *app, const struct actor *actor, const char *raw, char *buf, size_t size)
{
	const bool machine = actor->tid < 0 && actor->machine >= 0 && (uint32_t)actor->machine < app->catalog.machines;
	buf[0] = '\0';
	if (actor->kind == FLOW_PREEMPTING || actor->kind == FLOW_RUNNING)
		text_escape(buf, size, raw && *raw ? raw : machine ? app->catalog.machine[actor->machine].name : "");
	else if (actor->kind == FLOW_HYPERVISOR)
		snprintf(buf, size, "hypervisor");
	else if (actor->kind == FLOW_LIMITED && raw)
		text_escape(buf, size, raw);
}

/* Names the actor that took more than half of the time that the target lost in the interval. */
static void write_culprit(const struct app *app, struct lane_name *p, const struct flow *f)
{
	struct top_culprit top;
	int64_t lost = 0;
	for (size_t i = 0; i < f->entries; i++)
		lost += f->entry[i].lost;
	flow_top_culprit(&app->catalog, &p->target, f->entry, f->entries, &top);
	if (top.actor.kind == FLOW_RUNNING || top.ns * 2 <= lost || *culprit_own_prefix(&app->catalog, &p->target, &top.actor))
		return;
	const char *raw = top.actor.name < f->names ? f->name[top.actor.name] : NULL;
	char text[ACTOR_TEXT];
	actor_shown(&app->catalog, &top.actor, raw, text, sizeof text);
	snprintf(p->full, sizeof p->full, "%.95s", strlen(text) < sizeof p->full ? text : "");
	write_plain_name(app, &top.actor, raw, text, sizeof text);
	snprintf(p->plain, sizeof p->plain, "%.39s", strlen(text) < sizeof p->plain ? text : "");
}

static void compute_name(const struct app *app, struct lane_names *l, struct lane_name *p)
{
	const struct flow_options options = { 0 };
	struct flow f;
	p->known = true;
	l->pending--;
	if (flow_of(&app->catalog, &p->target, p->from, p->to, &options, &f, NULL) < 0)
		return;
	write_culprit(app, p, &f);
	flow_release(&f);
}

bool lane_names_work(struct app *app, int64_t budget_ns, bool *changed)
{
	struct lane_names *l = app->lane_names;
	const int64_t until = now_ns() + budget_ns;
	for (size_t i = l->len; i-- > 0 && l->pending > 0;) {
		struct lane_name *p = &l->name[i];
		if (p->known)
			continue;
		compute_name(app, l, p);
		*changed |= p->full[0] != '\0';
		if (now_ns() > until)
			break;
	}
	return l->pending > 0;
}

/* ---- Drawing -------------------------------------------------------------------------------------------------------- */

/* Draws a text into the bar of `width` columns from column `col`, in the style of the bar: the longest of the two forms
 * that fits; a long plain form is cut. */
static void put_name(const struct app *app, struct screen *s, int y, int col, int width, struct style style,
                     const char *full, const char *plain)
{
	const int space = width - 2, x = app->label_w + 1 + col + 1;
	const char *text = *full && text_width(full) <= space ? full : plain;
	if (!*text || space < 2 || (text_width(text) > space && space < SHORT_NAME_MIN))
		return;
	screen_clip(s, x, y, space, style, text);
}

/* Draws the culprits of the waits of a vCPU or thread. */
static void draw_culprits(struct app *app, struct screen *s, int y, struct row_id row, const struct cell *cell, int n)
{
	struct target target;
	if (!row_target(&app->catalog, row, &target) || target.kind == TARGET_MACHINE)
		return;
	const uint8_t *severity = row.kind == ROW_CPU ? app->appearance.vcpu.severity : app->appearance.thread.severity;
	for (int i = 0, end; i < n; i = end) {
		for (end = i; end < n && cell[end].form != CELL_EMPTY && severity[cell[end].other] >= WAIT_SEVERITY &&
		     (cell[end].form == CELL_PURE || cell[end].part >= WAIT_PART); end++)
			;
		if (end - i >= NAME_COLUMNS_MIN) {
			const int64_t from = app->view.t0 + i * app->view.step;
			struct lane_name *p = find_name(app->lane_names, &target, from, from + (end - i) * app->view.step - 1);
			if (!p->known && app->waits_for_answers)
				compute_name(app, app->lane_names, p);
			struct style style = appearance_bar_style(app, cell[i + 1].other, false);
			put_name(app, s, y, i, end - i, style, p->full, p->plain);
		}
		end += end == i;
	}
}

/* Writes the name that a thread had at t, escaped; "" for the idle task. */
static void write_thread_name(const struct app *app, uint32_t machine, int64_t tid, int64_t t, char *buf, size_t size)
{
	struct interval iv;
	const int thread = tid > 0 && tid <= INT32_MAX ? catalog_find_thread(&app->catalog, machine, (int32_t)tid) : -1;
	buf[0] = '\0';
	if (thread < 0)
		return;
	const uint32_t attr = app->catalog.thread[thread].name;
	if (attr != HISTORY_NONE && history_stab(app->h, attr, t, &iv, NULL) == 0 && iv.value != HISTORY_NULL)
		text_escape(buf, size, history_string(app->h, iv.value));
}

/* Finds the vCPU that thread `tid` of a machine executes at t; -1: none. */
static int vcpu_of(const struct app *app, uint32_t machine, int64_t tid, int64_t t)
{
	const struct catalog *c = &app->catalog;
	struct interval iv;
	const int thread = tid > 0 && tid <= INT32_MAX ? catalog_find_thread(c, machine, (int32_t)tid) : -1;
	for (int32_t r = thread < 0 ? -1 : c->thread[thread].role; r >= 0; r = c->role[r].next) {
		const struct catalog_cpu *cpu = &c->cpu[c->role[r].vcpu];
		if (cpu->host_thread == HISTORY_NONE || (history_stab(app->h, cpu->host_thread, t, &iv, NULL) == 0 && iv.value == tid))
			return (int)c->role[r].vcpu;
	}
	return -1;
}

/* A bar of a CPU: the columns [col, end) in which one thread is current, from t on. */
struct run {
	int col, end;
	int64_t t, tid;
};

/* Finds the next bar of at least NAME_COLUMNS_MIN columns from column `col` on, before column `end`. */
static bool next_run(const struct app *app, uint32_t attr, int col, int end, struct run *out)
{
	struct interval iv;
	for (; col + NAME_COLUMNS_MIN <= end; col++) {
		const int64_t t = app->view.t0 + col * app->view.step;
		if (t > app->bounds.end || attr == HISTORY_NONE || history_stab(app->h, attr, t, &iv, NULL) < 0)
			return false;
		const int after = iv.end >= app->bounds.end ? end : view_column(&app->view, iv.end + 1);
		if (after - col >= NAME_COLUMNS_MIN) {
			*out = (struct run){ col, after < end ? after : end, t, iv.value };
			return true;
		}
	}
	return false;
}

/* Draws into a bar of a pCPU that executes a vCPU the guest's threads, or the name of the VM if no bar is wide enough. */
static void draw_guest(struct app *app, struct screen *s, int y, const struct run *run, int vcpu, const struct cell *cell)
{
	const struct catalog_cpu *cpu = &app->catalog.cpu[vcpu];
	const char *vm = app->rows.machine_name[cpu->machine];
	char name[64], full[200];
	bool any = false;
	struct run part;
	for (int col = run->col; next_run(app, cpu->current, col, run->end, &part); col = part.end) {
		write_thread_name(app, cpu->machine, part.tid, part.t, name, sizeof name);
		if (!name[0])
			continue;
		any = true;
		snprintf(full, sizeof full, "%s/%lld %s", vm, (long long)part.tid, name);
		put_name(app, s, y, part.col, part.end - part.col,
		         appearance_bar_style(app, cell[part.col + 1].main, true), full, name);
	}
	if (!any)
		put_name(app, s, y, run->col, run->end - run->col, appearance_bar_style(app, cell[run->col + 1].main, true), vm, vm);
}

/* Draws the current threads of a pCPU. */
static void draw_threads(struct app *app, struct screen *s, int y, uint32_t c, const struct cell *cell, int n)
{
	const struct catalog_cpu *cpu = &app->catalog.cpu[c];
	char name[64], full[200];
	struct run run;
	for (int col = 0; next_run(app, cpu->current, col, n, &run); col = run.end) {
		const int vcpu = vcpu_of(app, cpu->machine, run.tid, run.t);
		if (vcpu >= 0) {
			draw_guest(app, s, y, &run, vcpu, cell);
			continue;
		}
		write_thread_name(app, cpu->machine, run.tid, run.t, name, sizeof name);
		snprintf(full, sizeof full, "%lld %s", (long long)run.tid, name);
		if (name[0])
			put_name(app, s, y, run.col, run.end - run.col, appearance_bar_style(app, cell[run.col + 1].main, true), full,
			         name);
	}
}

void lane_names_draw(struct app *app, struct screen *s, int y, struct row_id row, const struct cell *cell, int n)
{
	if (row_is_pcpu(&app->catalog, row))
		draw_threads(app, s, y, row.index, cell, n);
	else if (row.kind == ROW_CPU || row.kind == ROW_THREAD || row.kind == ROW_EXECUTOR)
		draw_culprits(app, s, y, row, cell, n);
}
