#include "ui/widgets/arrows.h"

#include "base/base.h"

#define COLUMNS_PER_ARROW 6  /* columns per arrow, so that the rows stay visible between the arrows */

void arrows_row(const struct app *app, const struct path *p, const struct actor *actor, struct row_id *row)
{
	const struct catalog *catalog = &app->catalog;
	unsigned number;
	if (actor->machine < 0)
		return;
	const struct catalog_machine *m = &catalog->machine[actor->machine];
	int thread = actor->tid > 0 ? catalog_find_thread(catalog, (uint32_t)actor->machine, actor->tid) : -1;
	int cpu = actor->tid <= 0 && m->kind == MACHINE_VM && m->cpus == 1 ? (int)m->cpu : -1;
	if (actor->tid < 0 && actor->name < p->names && sscanf(p->name[actor->name], "vCPU%u", &number) == 1)
		cpu = catalog_find_cpu(catalog, (uint32_t)actor->machine, number);
	*row = thread >= 0 ? (struct row_id){ ROW_THREAD, (uint32_t)thread }
	     : cpu >= 0    ? (struct row_id){ ROW_CPU, (uint32_t)cpu }
	                   : (struct row_id){ ROW_MACHINE, (uint32_t)actor->machine };
}

/* Returns true if the thread sleeps at t, or its state is unknown. */
static bool sleeps_or_unknown(const struct app *app, const struct actor *actor, int64_t t)
{
	int thread = catalog_find_thread(&app->catalog, (uint32_t)actor->machine, actor->tid);
	struct interval iv;
	if (thread < 0 || app->catalog.thread[thread].status == HISTORY_NONE ||
	    history_stab(app->h, app->catalog.thread[thread].status, t, &iv, NULL) < 0)
		return true;
	return iv.value < 0 || iv.value >= HISTORY_STATES || app->catalog.thread_state[iv.value] == THREAD_BLOCKED;
}

static bool is_thread(const struct path_interval *e)
{
	return e->actor.machine >= 0 && e->actor.tid > 0 && e->actor.kind != FLOW_UNKNOWN;
}

static int64_t length_of(const struct path_interval *e)
{
	return e->end - e->start + 1;
}

/* Returns true if the step led to the next step by a wakeup: its actor does not fall asleep at the end. */
static bool woke_next(const struct app *app, const struct path_interval *from)
{
	return from->edge != EDGE_START && !sleeps_or_unknown(app, &from->actor, from->end + 1);
}

static void add_arrow(struct arrows *a, const struct app *app, const struct path *p, const struct path_interval *from,
                const struct path_interval *to)
{
	struct arrow *arrow = ARRAY_PUSH(a->arrow, a->arrows, a->cap);
	*arrow = (struct arrow){ .t = from->end + 1, .from = { ROW_MACHINE, 0 }, .to = { ROW_MACHINE, 0 } };
	arrow->weight = length_of(from) < length_of(to) ? length_of(from) : length_of(to);
	arrows_row(app, p, &from->actor, &arrow->from);
	arrows_row(app, p, &to->actor, &arrow->to);
}

void arrows_make(struct arrows *a, const struct app *app, const struct path *p)
{
	const struct path_interval *from = p->interval;
	bool is_waker = false;
	for (size_t i = 0; i < p->intervals; i++) {
		const struct path_interval *to = &p->interval[i];
		if (to->actor.kind == FLOW_UNKNOWN || to->actor.kind == FLOW_WAITING)
			is_waker = false;
		if (!is_thread(to) || (to->edge == EDGE_IPI && is_waker))
			continue;  /* not a thread, or an IPI that only passed on the wakeup by `from` */
		if (is_waker && (from->actor.machine != to->actor.machine || from->actor.tid != to->actor.tid))
			add_arrow(a, app, p, from, to);
		from = to;
		is_waker = woke_next(app, to);
	}
}

void arrows_release(struct arrows *a)
{
	free(a->arrow);
	*a = (struct arrows){ 0 };
}

/* Finds the first and last screen line with rows. Returns false if there is none. */
static bool rows_of_screen(const struct app *app, int *first, int *last)
{
	*first = -1;
	for (int y = 0; y < app->h_cells; y++) {
		if (app->line_row[y].kind == ROW_KINDS)
			continue;
		*first = *first < 0 ? y : *first;
		*last = y;
	}
	return *first >= 0;
}

/* Finds the screen line of a row, or of the row that it is folded into. If it is not on the screen, returns false and
 * sets *y to the nearest line. */
static bool line_of(const struct app *app, struct row_id row, int first, int last, int *y)
{
	const size_t index = rows_find_near(&app->rows, row);
	const struct row_id shown = index < app->rows.len ? app->rows.row[index].id : row;
	for (*y = last; *y >= first; --*y)
		if (row_same(app->line_row[*y], row) || row_same(app->line_row[*y], shown))
			return true;
	*y = index < app->top ? first : last;
	return false;
}

struct arrow_face { uint32_t line, down, up, begins_down, begins_up; };

/* Finds the screen lines of both ends of an arrow. Returns false if they are the same line. *begins: the start is
 * visible. */
static bool arrow_ends(const struct arrow *arrow, const struct app *app, int first, int last, int *from, int *to,
                       bool *begins)
{
	*begins = line_of(app, arrow->from, first, last, from);
	line_of(app, arrow->to, first, last, to);
	return *from != *to;
}

static void draw_arrow(const struct arrow *arrow, const struct app *app, struct screen *s, int first, int last)
{
	static const struct arrow_face letters = { '|', 'v', '^', '+', '+' };
	static const struct arrow_face lines = { 0x2502, 0x25bc, 0x25b2, 0x252c, 0x2534 };
	const struct arrow_face *f = app->appearance.tier == TIER_BLOCKS ? &lines : &letters;
	const struct style style = app->appearance.palette.part[PART_MARK];
	const int x = app->label_w + 1 + view_column(&app->view, arrow->t);
	int from, to;
	bool begins;
	arrow_ends(arrow, app, first, last, &from, &to, &begins);
	const int step = to > from ? 1 : -1;
	screen_put(s, x, from, begins ? step > 0 ? f->begins_down : f->begins_up : f->line, style);
	for (int y = from + step; y != to; y += step)
		screen_put(s, x, y, f->line, style);
	screen_put(s, x, to, step > 0 ? f->down : f->up, style);
}

static int heaviest_first(const void *a, const void *b)
{
	const struct arrow *x = *(const struct arrow *const *)a, *y = *(const struct arrow *const *)b;
	return x->weight != y->weight ? (x->weight < y->weight ? 1 : -1) : (x->t > y->t) - (x->t < y->t);
}

/* Selects the heaviest arrow of each column that connects two lines, and sorts the arrows by weight. Returns their
 * number. */
static size_t pick_arrows(const struct arrows *a, const struct app *app, int first, int last, const struct arrow **heaviest)
{
	size_t picked = 0;
	int last_column = -1, from, to;
	bool begins;
	for (size_t i = 0; i < a->arrows; i++) {
		const struct arrow *arrow = &a->arrow[i];
		const int col = view_column(&app->view, arrow->t);
		if (col < 0 || col >= app->bounds.cols || (col == last_column && arrow->weight <= heaviest[picked - 1]->weight) ||
		    !arrow_ends(arrow, app, first, last, &from, &to, &begins))
			continue;
		picked += col != last_column;
		heaviest[picked - 1] = arrow;
		last_column = col;
	}
	ARRAY_SORT(heaviest, picked, heaviest_first);
	return picked;
}

void arrows_draw(const struct arrows *a, const struct app *app, struct screen *s)
{
	int first = 0, last = 0;
	if (!rows_of_screen(app, &first, &last) || app->bounds.cols <= 0)
		return;
	const size_t arrows_max = (size_t)app->bounds.cols / COLUMNS_PER_ARROW + 1;
	const struct arrow **heaviest = mem_new((size_t)app->bounds.cols, sizeof *heaviest);
	const size_t picked = pick_arrows(a, app, first, last, heaviest);
	for (size_t i = 0; i < picked && i < arrows_max; i++)
		draw_arrow(heaviest[i], app, s, first, last);
	free(heaviest);
}
