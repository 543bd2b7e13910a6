#include "ui/widgets/window_sums.h"

#include "base/base.h"
#include "report/report.h"
#include "ui/panes/pane.h"
#include "ui/widgets/widgets.h"

#define LINES_MIN 4      /* free lines from which on the sums are shown */
#define LINES_MAX 64     /* gaps that are listed */

struct window_sums {
	size_t kind;             /* number of a row of kinds[] */
	bool is_off;             /* :set nobelow */
	int lines;               /* free lines in the last frame */
	/* the question: row and window */
	struct target target;
	int64_t from, to;
	bool has_target, is_asked;   /* is_asked: an answer is awaited */
	struct question question;
	/* the answer, possibly of the window before */
	struct demand demand;
	char summary[160];       /* the answer in a line; "": none */
	char empty[320];         /* why there are no rows */
	uint64_t bin[LENGTH_BINS];
	struct time_axis axis;
	int64_t time_step;       /* precision of times in the table, ns */
	struct report_table table;
};

struct window_sums *window_sums_new(void)
{
	return mem_new(1, sizeof(struct window_sums));
}

static void drop_answer(struct window_sums *w)
{
	report_table_release(&w->table);
	w->summary[0] = w->empty[0] = '\0';
	memset(w->bin, 0, sizeof w->bin);
}

void window_sums_free(struct window_sums *w)
{
	if (w)
		drop_answer(w);
	free(w);
}

void window_sums_drop(struct app *app)
{
	drop_answer(app->window_sums);
	app->window_sums->has_target = app->window_sums->is_asked = false;
}

/* ---- Kinds of sums */

/* Lets a report write into the table of the sums. */
static struct report_how table_only(struct window_sums *w)
{
	struct report_how how = REPORT_WHOLE(FORMAT_TEXT);
	how.table = &w->table;
	return how;
}

static struct query *open_culprits(const struct catalog *catalog, const struct window_sums *w, struct error *err)
{
	(void)err;
	return culprit_sums_open(catalog, &w->target, w->from, w->to);
}

ORDER_BY(compare_culprits, struct culprit_ns, FALLING(ns))

/* Sums the culprits of the rows in by[actors]; sorts them, the longest time first. Returns the sum, and writes the gaps. */
static int64_t add_culprits(const struct culprit_sums *s, struct culprit_ns *by, char *summary, size_t size)
{
	char text[TIME_TEXT];
	uint64_t gaps = 0;
	int64_t all = 0, longest = 0;
	for (const struct culprit_sums_row *row = s->row; row < s->row + s->rows; row++) {
		gaps += row->gaps;
		longest = row->longest > longest ? row->longest : longest;
		for (const struct culprit_ns *c = row->culprit; c < row->culprit + row->culprits; c++) {
			struct culprit_ns *to = &by[c->culprit];
			const int64_t ns = to->ns + c->ns;
			if (c->longest > to->longest)
				*to = *c;
			to->ns = ns;
			all += c->ns;
		}
	}
	if (gaps)
		snprintf(summary, size, "gaps %llu  longest %s", (unsigned long long)gaps, time_duration(text, longest));
	ARRAY_SORT(by, s->actors, compare_culprits);
	return all;
}

/* Time in VM exits is no gap: the hypervisor's own row. */
static void report_culprits(const struct catalog *catalog, struct window_sums *w, struct query *q)
{
	static const struct column columns[] = { { "culprit", "culprit", COL_TEXT }, { "ns", "time", COL_DURATION },
		{ "share", "share", COL_SHARE }, { "longest", "longest", COL_DURATION }, { "at", "at", COL_CLOCK } };
	static const struct report_shape shape = REPORT_SHAPE("culprits", columns);
	struct culprit_sums s;
	char name[ACTOR_TEXT];
	query_take(q, &s);
	struct culprit_ns *by = mem_new(s.actors, sizeof *by);
	int64_t vmm = w->demand.vmm_ns;
	w->time_step = s.precision > 1000 ? s.precision : 1000;
	const double all = (double)(add_culprits(&s, by, w->summary, sizeof w->summary) + vmm);
	struct report *r = report_begin(NULL, table_only(w), &shape, NULL);
	for (size_t i = 0; i <= s.actors; i++) {
		if (vmm && (i == s.actors || by[i].ns <= vmm)) {
			report_row(r, (struct value[]){ VAL_TEXT("hypervisor, in VM exits"), VAL_INT(vmm), VAL_REAL((double)vmm / all),
				VAL_NONE, VAL_NONE });
			vmm = 0;
		}
		if (i == s.actors || !by[i].ns)
			break;
		const struct actor *actor = &s.actor[by[i].culprit];
		actor_text(catalog, actor, actor->name < s.names ? s.name[actor->name] : NULL, ACTOR_SHOWN, &w->target, name,
		           sizeof name);
		report_row(r, (struct value[]){ VAL_SHOWN(name), VAL_INT(by[i].ns), VAL_REAL((double)by[i].ns / all),
			VAL_INT(by[i].longest), VAL_INT(by[i].longest_start) });
	}
	report_end(r, NULL);
	free(by);
	culprit_sums_release(&s);
}

static struct query *open_lengths(const struct catalog *catalog, const struct window_sums *w, struct error *err)
{
	(void)err;
	return gap_list_open(catalog, &w->target, &(struct gap_options){ .from = w->from, .to = w->to, .top = LINES_MAX });
}

static void report_lengths(const struct catalog *catalog, struct window_sums *w, struct query *q)
{
	static const struct column columns[] = { { "at", "at", COL_CLOCK }, { "ns", "length", COL_DURATION },
		{ "culprit", "culprit", COL_TEXT } };
	static const struct report_shape shape = REPORT_SHAPE("lengths", columns);
	struct gap_list l;
	char name[ACTOR_TEXT], a[TIME_TEXT], b[TIME_TEXT], c[TIME_TEXT];
	query_take(q, &l);
	if (l.items)
		snprintf(w->summary, sizeof w->summary, "gaps %llu  p50 %s  p90 %s  longest %s", (unsigned long long)l.all.count,
		         time_duration(a, l.all.p50), time_duration(b, l.all.p90), time_duration(c, l.all.longest));
	memcpy(w->bin, l.all.bin, sizeof w->bin);
	struct report *r = report_begin(NULL, table_only(w), &shape, NULL);
	for (const struct gap_item *item = l.item; item < l.item + l.items; item++) {
		const struct actor *culprit = &item->top.actor;
		actor_text(catalog, culprit, l.name[culprit->name], ACTOR_SHOWN, &item->gap.target, name, sizeof name);
		report_row(r, (struct value[]){ VAL_INT(item->gap.start), VAL_INT(item->gap.end - item->gap.start + 1),
			VAL_SHOWN(name) });
	}
	report_end(r, NULL);
	gap_list_release(&l);
}

static struct query *open_cpus(const struct catalog *catalog, const struct window_sums *w, struct error *err)
{
	return flow_open(catalog, &w->target, w->from, w->to, &(struct flow_options){ .cpus = true }, err);
}

ORDER_BY(compare_cpus, struct flow_cpu, RISING(pcpu) FALLING(ns))

/* CPUs by number; of each the culprits, the one that took most first. */
static void report_cpus(const struct catalog *catalog, struct window_sums *w, struct query *q)
{
	static const struct column columns[] = { { "cpu", "on", COL_TEXT }, { "all", "lost", COL_DURATION },
		{ "ns", "time", COL_DURATION }, { "share", "share", COL_SHARE }, { "culprit", "culprit", COL_TEXT } };
	static const struct report_shape shape = REPORT_SHAPE("cpus", columns);
	struct flow f;
	char name[ACTOR_TEXT], cpu[32];
	query_take(q, &f);
	ARRAY_SORT(f.cpu, f.cpus, compare_cpus);
	struct report *r = report_begin(NULL, table_only(w), &shape, NULL);
	for (size_t i = 0, n; i < f.cpus; i = n) {
		int64_t all = 0;
		for (n = i; n < f.cpus && f.cpu[n].pcpu == f.cpu[i].pcpu; n++)
			all += f.cpu[n].ns;
		snprintf(cpu, sizeof cpu, f.cpu[i].pcpu < 0 ? "unknown CPU" : "CPU%d", f.cpu[i].pcpu);
		for (size_t k = i; k < n; k++) {
			const struct actor *actor = &f.entry[f.cpu[k].entry].actor;
			actor_text(catalog, actor, f.name[actor->name], ACTOR_SHOWN, &w->target, name, sizeof name);
			report_row(r, (struct value[]){ VAL_TEXT(cpu), VAL_INT(all), VAL_INT(f.cpu[k].ns),
				VAL_REAL((double)f.cpu[k].ns / (double)all), VAL_SHOWN(name) });
		}
	}
	report_end(r, NULL);
	flow_release(&f);
}

static struct query *open_exits(const struct catalog *catalog, const struct window_sums *w, struct error *err)
{
	return exits_open(catalog, &(struct exit_options){ .only = &w->target, .from = w->from, .to = w->to }, err);
}

static void report_exit_rows(const struct catalog *catalog, struct window_sums *w, struct query *q)
{
	struct exit_list l;
	query_take(q, &l);
	report_exits(NULL, table_only(w), catalog, &l, false, false, NULL, NULL);
	exits_release(&l);
}

static struct query *open_wakers(const struct catalog *catalog, const struct window_sums *w, struct error *err)
{
	(void)err;
	return waits_open(catalog, &w->target, w->from, w->to);
}

static void report_wakers(const struct catalog *catalog, struct window_sums *w, struct query *q)
{
	struct wait_list l;
	query_take(q, &l);
	report_waits(NULL, table_only(w), catalog, &l, 0, NULL, NULL);
	waits_release(&l);
}

static const struct sums_kind {
	const char *name, *title;
	/* NULL: *err says why there are none */
	struct query *(*open)(const struct catalog *catalog, const struct window_sums *w, struct error *err);
	void (*report)(const struct catalog *catalog, struct window_sums *w, struct query *q);
	bool of_machine;         /* also of a machine */
	size_t keys;             /* first columns that name the vCPU: they are omitted if all rows have the same one */
	const char *empty;
} kinds[] = {
	{ "culprits", "culprits of", open_culprits, report_culprits, true, 0, "no lost time" },
	{ "lengths", "lengths of", open_lengths, report_lengths, true, 0, "no gaps" },
	{ "CPUs", "lost time by CPU of", open_cpus, report_cpus, false, 0, "no lost time" },
	{ "exits", "VM exits of", open_exits, report_exit_rows, true, 2, "no VM exits" },
	{ "wakers", "wakers of", open_wakers, report_wakers, true, 2, "no sleep ended" },
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Returns the kind after `kind` that the target has. */
static size_t next_kind(const struct window_sums *w, size_t kind)
{
	do
		kind = (kind + 1) % KINDS;
	while (w->target.kind == TARGET_MACHINE && !kinds[kind].of_machine);
	return kind;
}

/* ---- Questions */

static bool is_wanted(const struct app *app)
{
	const struct window_sums *w = app->window_sums;
	return !w->is_off && !app->pane_below && !app->list_over && !app->is_picture && w->lines >= LINES_MIN;
}

static void fail(struct window_sums *w, const struct error *err)
{
	drop_answer(w);
	snprintf(w->empty, sizeof w->empty, "%.300s", err->text);
}

static void ask(struct app *app)
{
	struct window_sums *w = app->window_sums;
	struct error err = ERROR_INIT;
	w->demand = (struct demand){ 0 };
	demand_of(&app->catalog, &w->target, w->from, w->to, &w->demand, NULL);
	struct query *q = kinds[w->kind].open(&app->catalog, w, &err);
	w->is_asked = q != NULL;
	if (q)
		async_ask(app->queries, &w->question, ASK_BACKGROUND, q, NULL);
	else {
		async_drop(app->queries, &w->question);
		fail(w, &err);
	}
}

static char *clock_text(const void *sums, char buf[TIME_TEXT], int64_t t, int64_t step)
{
	const struct window_sums *w = sums;
	(void)step;
	return ruler_time(buf, &w->axis, t, w->time_step);
}

static void take(struct app *app)
{
	struct window_sums *w = app->window_sums;
	struct query *query;
	struct error err = ERROR_INIT;
	const int got = w->is_asked ? app_take_answer(app, &w->question, &query, NULL, &err) : 0;
	if (!got)
		return;
	w->is_asked = false;
	if (got < 0) {
		fail(w, &err);
		return;
	}
	drop_answer(w);
	w->axis = app->axis;
	w->table.clock = clock_text;
	w->table.clock_arg = w;
	w->time_step = 1000;
	kinds[w->kind].report(&app->catalog, w, query);
	query_close(query);
	if (!w->table.rows)
		snprintf(w->empty, sizeof w->empty, "%s", kinds[w->kind].empty);
}

void window_sums_refresh(struct app *app)
{
	struct window_sums *w = app->window_sums;
	struct target target;
	int64_t from, to;
	if (!is_wanted(app) || !row_target(&app->catalog, app->view.row, &target)) {
		w->has_target = w->is_asked = false;
		async_drop(app->queries, &w->question);
		return;
	}
	pane_window(app, &from, &to);
	const bool same_row = w->has_target && target.kind == w->target.kind && target.index == w->target.index;
	if (!same_row)
		drop_answer(w);
	if (!same_row || from != w->from || to != w->to || w->axis.format != app->axis.format) {
		w->target = target;
		w->from = from;
		w->to = to;
		w->axis.format = app->axis.format;
		w->has_target = true;
		w->kind = next_kind(w, (w->kind + KINDS - 1) % KINDS);
		ask(app);
	}
	take(app);
}

/* ---- Drawing */

static struct style part(const struct app *app, enum part p)
{
	return app->appearance.palette.part[p];
}

static void draw_title(struct app *app, struct screen *s, int y)
{
	const struct window_sums *w = app->window_sums;
	char name[ACTOR_TEXT], text[TIME_TEXT], title[1200], hint[64];
	int64_t from, to;
	const bool marked = pane_window(app, &from, &to);
	snprintf(hint, sizeof hint, " Tab: %s  :set nobelow ", kinds[next_kind(w, w->kind)].name);
	snprintf(title, sizeof title, "- %s %s in %s%s ", kinds[w->kind].title,
	         catalog_target_text(&app->catalog, &w->target, name, sizeof name), marked ? "A..B, " : "",
	         time_duration(text, w->to - w->from + 1));
	screen_fill(s, 0, y, s->w, app->appearance.tier == TIER_ASCII ? '-' : 0x2500, part(app, PART_TITLE));
	const int x = screen_clip(s, 0, y, s->w, part(app, PART_TITLE), text_shorten_machine(title, s->w));
	if (x + (int)strlen(hint) < s->w)
		screen_text(s, s->w - (int)strlen(hint), y, s->w, part(app, PART_TITLE), hint);
}

/* Writes "ran 16.9 ms 47 %  lost 18.9 ms 52 %  slept 0  gaps 20  p50 18 us  p90 2.4 ms  longest 12.0 ms". */
static void summary_text(const struct window_sums *w, char *buf, size_t size)
{
	const struct demand *d = &w->demand;
	char a[TIME_TEXT], b[TIME_TEXT], c[TIME_TEXT];
	const double alive = d->alive > 0 ? (double)d->alive : 1;
	if (w->target.kind == TARGET_MACHINE)  /* the lives of its rows add up to no time of which a share says much */
		snprintf(buf, size, "ran %s  lost %s  %s", time_duration(a, d->ran), time_duration(b, d->lost), w->summary);
	else
		snprintf(buf, size, "ran %s %.0f%%  lost %s %.0f%%  slept %s  %s", time_duration(a, d->ran),
		         100.0 * (double)d->ran / alive, time_duration(b, d->lost), 100.0 * (double)d->lost / alive,
		         time_duration(c, d->slept), w->summary);
}

/* Returns the first column that is shown. */
static size_t first_column(const struct window_sums *w)
{
	const struct report_table *t = &w->table;
	size_t c = 0, row = 0;
	while (c < kinds[w->kind].keys && row == 0) {
		while (row < t->rows && strcmp(report_table_text(t, row, c), report_table_text(t, 0, c)) == 0)
			row++;
		row = row < t->rows;
		c += !row;
	}
	return c;
}

/* Draws a row of the table; a machine, vCPU or CPU is not repeated. */
static void draw_row(struct window_sums *w, struct screen *s, int y, size_t first, size_t row, struct style style)
{
	struct report_table *t = &w->table;
	bool repeats = row != TABLE_HEADING && row > 0;
	int x = 2;
	for (size_t c = first; c < t->shape.columns; c++) {
		if (!report_table_shows(t, c))
			continue;
		repeats = repeats && c < 2 && strcmp(report_table_text(t, row, c), report_table_text(t, row - 1, c)) == 0;
		char *cell = report_table_cell(t, row, c);
		if (!repeats)
			screen_text(s, x, y, s->w - x, style, cell);
		free(cell);
		x += t->width[c] + t->gap;
	}
}

void window_sums_draw(struct app *app, struct screen *s, int y, int end)
{
	struct window_sums *w = app->window_sums;
	char text[400];
	w->lines = end - y;
	if (!is_wanted(app) || !w->has_target)
		return;
	const struct style style = part(app, w->is_asked ? PART_DIM : PART_NORMAL);
	draw_title(app, s, y++);
	summary_text(w, text, sizeof text);
	screen_phrases(s, 2, y++, s->w - 2, style, text);
	if (y < end && histogram_draw(app, s, 2, y, s->w - 2, w->bin))
		y++;
	if (w->empty[0])
		screen_clip(s, 2, y, s->w - 2, style, w->empty);
	if (!w->table.rows)
		return;
	report_table_fit(&w->table, s->w - 4);
	const size_t first = first_column(w);
	draw_row(w, s, y++, first, TABLE_HEADING, part(app, PART_RULER));
	for (size_t row = 0; row < w->table.rows && y < end; row++, y++)
		draw_row(w, s, y, first, row, style);
}

bool window_sums_next(struct app *app)
{
	struct window_sums *w = app->window_sums;
	if (!is_wanted(app))
		return false;
	drop_answer(w);
	w->kind = next_kind(w, w->kind);
	w->has_target = false;
	return true;
}

void window_sums_show(struct app *app, bool on)
{
	app->window_sums->is_off = !on;
}
