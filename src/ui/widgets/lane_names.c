/* See lane_names.h.
 *
 * - A wait is a sequence of columns that the row spent almost completely in waits. The flow of this interval names the
 *   culprit, if one actor took more than half of it. The flow is computed between keys and kept for later frames.
 * - A name leaves at least one cell free on each side, so that the state stays visible without colours. */
#include "ui/widgets/lane_names.h"

#include "base/base.h"

#define WAIT_PART 15      /* smallest share of waits in each column of a named wait, sixteenths */
#define NAME_COLUMNS_MIN 4  /* smallest bar with a name, columns */
#define SHORT_NAME_MIN 6  /* smallest name that may be cut, columns */
#define SETS 512          /* the kept names: sets of WAYS entries; an interval belongs to one set */
#define WAYS 8

struct lane_name {
	struct target target;
	int64_t from, to;     /* the wait's interval, ns */
	uint32_t frame;       /* last frame that shows the interval; 0: entry not used */
	bool known;           /* the flow was computed */
	char full[64], plain[32];  /* "host/306 burnP6" and "burnP6", escaped; "": no actor took more than half */
};

struct lane_names {
	uint32_t frame;       /* number of the current frame, from 1 on */
	size_t pending;       /* number of intervals of this frame that are not known */
	struct lane_name name[SETS][WAYS];
};

void lane_names_init(struct app *app)
{
	app->lane_names = mem_new(1, sizeof *app->lane_names);
}

void lane_names_release(struct app *app)
{
	free(app->lane_names);
}

void lane_names_forget(struct app *app)
{
	memset(app->lane_names, 0, sizeof *app->lane_names);
}

void lane_names_begin_frame(struct app *app)
{
	app->lane_names->frame++;
	app->lane_names->pending = 0;
}

/* ---- Culprits of waits ---------------------------------------------------------------------------------------------- */

static size_t set_of(const struct target *s, int64_t from, int64_t to)
{
	uint64_t h = (uint64_t)from * 0x9e3779b97f4a7c15ULL ^ (uint64_t)to * 0xc2b2ae3d27d4eb4fULL ^ s->index;
	return (size_t)((h ^ h >> 29) * 0x9e3779b97f4a7c15ULL >> 40) % SETS;
}

/* Returns the interval's entry; replaces the oldest entry of its set if there is none. NULL: this frame shows all
 * entries of the set; the interval stays without a name. */
static struct lane_name *find_name(struct lane_names *l, const struct target *s, int64_t from, int64_t to)
{
	struct lane_name *set = l->name[set_of(s, from, to)], *oldest = &set[0];
	for (int i = 0; i < WAYS; i++) {
		struct lane_name *p = &set[i];
		if (p->frame && p->target.kind == s->kind && p->target.index == s->index && p->from == from && p->to == to) {
			l->pending += !p->known && p->frame != l->frame;
			p->frame = l->frame;
			return p;
		}
		oldest = p->frame < oldest->frame ? p : oldest;
	}
	if (oldest->frame == l->frame)
		return NULL;
	*oldest = (struct lane_name){ .target = *s, .from = from, .to = to, .frame = l->frame };
	l->pending++;
	return oldest;
}

/* Names the actor that took more than half of the time that the target lost in the interval. */
static void write_culprit(const struct app *app, struct lane_name *p, const struct flow *f)
{
	struct top_culprit top;
	int64_t lost = 0;
	for (size_t i = 0; i < f->entries; i++)
		lost += f->entry[i].lost;
	flow_top_culprit(&app->catalog, &p->target, f->entry, f->entries, &top);
	if (top.actor.kind == FLOW_RUNNING || top.ns * 2 <= lost || culprit_is_own(&app->catalog, &p->target, &top.actor))
		return;
	const char *raw = top.actor.name < f->names ? f->name[top.actor.name] : NULL;
	char text[ACTOR_TEXT];
	actor_text(&app->catalog, &top.actor, raw, ACTOR_SHOWN, NULL, text, sizeof text);
	snprintf(p->full, sizeof p->full, "%.63s", strlen(text) < sizeof p->full ? text : "");
	const bool is_named = top.actor.kind == FLOW_PREEMPTING || top.actor.kind == FLOW_HYPERVISOR ||
	                      top.actor.kind == FLOW_LIMITED;
	text[0] = '\0';
	if (is_named)
		actor_text(&app->catalog, &top.actor, raw, ACTOR_LABEL, NULL, text, sizeof text);
	snprintf(p->plain, sizeof p->plain, "%.31s", strlen(text) < sizeof p->plain ? text : "");
}

static void compute_name(const struct app *app, struct lane_names *l, struct lane_name *p)
{
	const struct flow_options options = { 0 };
	struct flow f;
	p->known = true;
	l->pending--;
	if (query_answer(flow_open(&app->catalog, &p->target, p->from, p->to, &options, NULL), &f, NULL) < 0)
		return;
	write_culprit(app, p, &f);
	flow_release(&f);
}

bool lane_names_work(struct app *app, int64_t budget_ns, bool *changed)
{
	struct lane_names *l = app->lane_names;
	const int64_t until = now_ns() + budget_ns;
	struct lane_name *p = l->name[0], *end = p + SETS * WAYS;
	for (; p < end && l->pending > 0 && now_ns() < until; p++) {
		if (p->frame != l->frame || p->known)
			continue;
		compute_name(app, l, p);
		*changed |= p->full[0] != '\0';
	}
	return l->pending > 0;
}

/* ---- Drawing -------------------------------------------------------------------------------------------------------- */

/* Draws a text into the bar of `width` columns from column `col`, in the bar's style: the longest of the two forms
 * that fits; a long plain form is cut. */
static void put_name(const struct app *app, struct screen *s, int y, int col, int width, struct style style,
                     const char *full, const char *plain)
{
	const int space = width - 2, x = app->label_w + 1 + col + 1;
	const char *text = *full && text_width(full) <= space ? full : plain;
	if (!*text || space < 2 || (text_width(text) > space && space < SHORT_NAME_MIN))
		return;
	const int w = text_width(text);
	const bool padded = w + 2 <= space;  /* a blank on each side separates the name from the bar's letters */
	if (padded)
		screen_fill(s, x, y, w + 2, ' ', style);
	screen_clip(s, x + padded, y, space, style, text);
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
			if (p && !p->known && app->waits_for_answers)
				compute_name(app, app->lane_names, p);
			if (p)
				put_name(app, s, y, i, end - i, appearance_bar_style(app, cell[i + 1].other, false), p->full, p->plain);
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
		if (cpu->host_thread == HISTORY_NONE ||
		    (history_stab(app->h, cpu->host_thread, t, &iv, NULL) == 0 && iv.value == tid))
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

/* Draws into a bar of a pCPU that executes a vCPU the guest's threads, or the VM's name if no bar is wide enough. */
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
		put_name(app, s, y, run->col, run->end - run->col,
		         appearance_bar_style(app, cell[run->col + 1].main, true), vm, vm);
}

/* Draws the current threads of a pCPU. */
static void draw_threads(struct app *app, struct screen *s, int y, uint32_t c, const struct cell *cell, int n)
{
	const struct catalog_cpu *cpu = &app->catalog.cpu[c];
	char name[64];
	struct run run;
	for (int col = 0; next_run(app, cpu->current, col, n, &run); col = run.end) {
		const int vcpu = vcpu_of(app, cpu->machine, run.tid, run.t);
		if (vcpu >= 0) {
			draw_guest(app, s, y, &run, vcpu, cell);
			continue;
		}
		write_thread_name(app, cpu->machine, run.tid, run.t, name, sizeof name);
		if (name[0])
			put_name(app, s, y, run.col, run.end - run.col, appearance_bar_style(app, cell[run.col + 1].main, true), name,
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
