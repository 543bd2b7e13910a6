#include "ui/widgets/arrows.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

#define APART 6  /* columns for each arrow: between them one sees the rows that they cross */

void arrows_row(const struct app *app, const struct path *p, const struct party *who, struct row_id *row)
{
	const struct topo *topo = &app->topo;
	unsigned number;
	if (who->system < 0)
		return;
	const struct topo_machine *m = &topo->machine[who->system];
	int thread = who->tid > 0 ? topo_find_thread(topo, (uint32_t)who->system, who->tid) : -1;
	int cpu = who->tid <= 0 && m->kind == MACHINE_VM && m->cpus == 1 ? (int)m->cpu : -1;
	if (who->tid < 0 && who->name < p->names && sscanf(p->name[who->name], "vCPU%u", &number) == 1)
		cpu = topo_find_cpu(topo, (uint32_t)who->system, number);
	*row = thread >= 0 ? (struct row_id){ ROW_THREAD, (uint32_t)thread }
	     : cpu >= 0    ? (struct row_id){ ROW_CPU, (uint32_t)cpu }
	                   : (struct row_id){ ROW_MACHINE, (uint32_t)who->system };
}

/* Does that thread sleep at t?  Then the path left it there, and it woke nobody. */
static bool sleeps(const struct app *app, const struct party *who, int64_t t)
{
	int thread = topo_find_thread(&app->topo, (uint32_t)who->system, who->tid);
	struct interval iv;
	if (thread < 0 || app->topo.thread[thread].status == HISTORY_NONE ||
	    history_stab(app->h, app->topo.thread[thread].status, t, &iv, NULL) < 0)
		return true;
	return iv.value < 0 || iv.value >= HISTORY_STATES || app->topo.thread_state[iv.value] == THREAD_BLOCKED;
}

static bool is_thread(const struct path_piece *e)
{
	return e->who.system >= 0 && e->who.tid > 0 && e->who.kind != FLOW_UNKNOWN;
}

static int64_t length_of(const struct path_piece *e)
{
	return e->end - e->start + 1;
}

/* It led to another one, and not by falling asleep. */
static bool woke(const struct app *app, const struct path_piece *from)
{
	return from->edge != EDGE_START && !sleeps(app, &from->who, from->end + 1);
}

static void add(struct arrows *a, const struct app *app, const struct path *p, const struct path_piece *from,
                const struct path_piece *to)
{
	struct arrow *arrow = ARRAY_PUSH(a->arrow, a->arrows, a->cap);
	*arrow = (struct arrow){ .t = from->end + 1, .from = { ROW_MACHINE, 0 }, .to = { ROW_MACHINE, 0 } };
	arrow->weight = length_of(from) < length_of(to) ? length_of(from) : length_of(to);
	arrows_row(app, p, &from->who, &arrow->from);
	arrows_row(app, p, &to->who, &arrow->to);
}

void arrows_make(struct arrows *a, const struct app *app, const struct path *p)
{
	const struct path_piece *from = p->piece;
	bool is_waker = false;
	for (size_t i = 0; i < p->pieces; i++) {
		const struct path_piece *to = &p->piece[i];
		if (to->who.kind == FLOW_UNKNOWN || to->who.kind == FLOW_WAITING)
			is_waker = false;
		if (!is_thread(to) || (to->edge == EDGE_IPI && is_waker))
			continue;  /* nobody, or on the way of what `from` did */
		if (is_waker && (from->who.system != to->who.system || from->who.tid != to->who.tid))
			add(a, app, p, from, to);
		from = to;
		is_waker = woke(app, to);
	}
}

void arrows_release(struct arrows *a)
{
	free(a->arrow);
	*a = (struct arrows){ 0 };
}

/* The lines of the screen that have rows. */
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

/* Where a row is, or what it is folded in; false: it is beyond the edge that *y is then. */
static bool line_of(const struct app *app, struct row_id row, int first, int last, int *y)
{
	const size_t near = rows_find_near(&app->rows, row);
	const struct row_id shown = near < app->rows.len ? app->rows.row[near].id : row;
	for (*y = last; *y >= first; --*y)
		if (row_same(app->line_row[*y], row) || row_same(app->line_row[*y], shown))
			return true;
	*y = near < app->top ? first : last;
	return false;
}

struct arrow_face { uint32_t line, down, up, begins_down, begins_up; };

/* The lines of both its ends; false: it is one line.  *begins: the row it begins in is shown. */
static bool ends(const struct arrow *arrow, const struct app *app, int first, int last, int *from, int *to, bool *begins)
{
	*begins = line_of(app, arrow->from, first, last, from);
	line_of(app, arrow->to, first, last, to);
	return *from != *to;
}

static void draw(const struct arrow *arrow, const struct app *app, struct screen *s, int first, int last)
{
	static const struct arrow_face letters = { '|', 'v', '^', '+', '+' };
	static const struct arrow_face lines = { 0x2502, 0x25bc, 0x25b2, 0x252c, 0x2534 };
	const struct arrow_face *f = app->look.tier == TIER_BLOCKS ? &lines : &letters;
	const struct style style = app->look.palette.part[PART_MARK];
	const int x = app->label_w + 1 + view_column(&app->view, arrow->t);
	int from, to;
	bool begins;
	ends(arrow, app, first, last, &from, &to, &begins);
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

/* The heaviest of each column that leads from a line to another one, by weight: how many there are. */
static size_t pick(const struct arrows *a, const struct app *app, int first, int last, const struct arrow **best)
{
	size_t n = 0;
	int at = -1, from, to;
	bool begins;
	for (size_t i = 0; i < a->arrows; i++) {
		const struct arrow *arrow = &a->arrow[i];
		const int col = view_column(&app->view, arrow->t);
		if (col < 0 || col >= app->ground.cols || (col == at && arrow->weight <= best[n - 1]->weight) ||
		    !ends(arrow, app, first, last, &from, &to, &begins))
			continue;
		n += col != at;
		best[n - 1] = arrow;
		at = col;
	}
	if (n)
		qsort(best, n, sizeof *best, heaviest_first);
	return n;
}

void arrows_draw(const struct arrows *a, const struct app *app, struct screen *s)
{
	int first = 0, last = 0;
	if (!rows_of_screen(app, &first, &last) || app->ground.cols <= 0)
		return;
	const size_t most = (size_t)app->ground.cols / APART + 1;
	const struct arrow **best = mem_new((size_t)app->ground.cols, sizeof *best);
	const size_t n = pick(a, app, first, last, best);
	for (size_t i = 0; i < n && i < most; i++)
		draw(best[i], app, s, first, last);
	free(best);
}
