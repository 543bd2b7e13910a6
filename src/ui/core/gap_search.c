/* Searches for gaps of a row. See gap_search.h.
 *
 * The search skips VM exits, and gaps shorter than min_gap unless the row has only such gaps. A row may have millions of
 * these, at a microsecond each: the search runs in steps between keys, and any key cancels it. */
#include "ui/core/gap_search.h"

#include "base/base.h"

#define FIRST_SLICE_NS 10000000  /* time slice before the next frame, ns */
#define DEFAULT_MIN_GAP_NS 100000  /* default of the shortest gap to stop at, ns */

struct gap_search {
	int64_t min_gap;       /* shorter gaps are skipped, ns */
	bool running, zoom;
	enum { SEARCH_LONG, SEARCH_BACKWARDS, SEARCH_ANY } phase;
	struct target target;
	int direction;
	int64_t from, t;       /* start and current position of the search, ns */
	int64_t requested, found;  /* gaps to move by, and moved so far */
	struct gap gap;        /* last gap found */
	struct view before;
};

void gap_search_init(struct app *app)
{
	app->gap_search = mem_new(1, sizeof *app->gap_search);
	app->gap_search->min_gap = DEFAULT_MIN_GAP_NS;
}

void gap_search_release(struct app *app)
{
	free(app->gap_search);
}

void gap_search_stop(struct app *app)
{
	app->gap_search->running = false;
}

bool gap_search_set_min(struct app *app, const char *duration)
{
	int64_t ns;
	const bool good = time_parse_duration(duration, &ns) && ns >= 0;
	app->gap_search->min_gap = good ? ns : app->gap_search->min_gap;
	return good;
}

/* Returns true if the thread's vCPU was neither preempted nor blocked during the gap. A guest thread is virtually
 * preempted at each VM exit, thousands of times per second; the search does not stop at these. */
static bool is_vm_exit_only(const struct app *app, const struct gap *gap)
{
	const struct catalog *catalog = &app->catalog;
	struct interval cpu;
	int64_t sums[HISTORY_STATES];
	if (gap->target.kind != TARGET_THREAD || gap->state < 0 || gap->state >= HISTORY_STATES ||
	    app->appearance.thread.code[gap->state] != VIS_VIRT_PREEMPTED)
		return false;
	const struct catalog_thread *t = &catalog->thread[gap->target.index];
	if (t->cpu == HISTORY_NONE || history_stab(catalog->h, t->cpu, gap->start, &cpu, NULL) < 0 || cpu.value < 0)
		return false;
	int c = catalog_find_cpu(catalog, t->machine, (unsigned)cpu.value);
	if (c < 0 || catalog->cpu[c].status == HISTORY_NONE ||
	    history_sums(catalog->h, catalog->cpu[c].status, gap->start, gap->end, sums, NULL) < 0)
		return false;
	for (int s = 0; s < HISTORY_STATES - 1; s++)
		if (sums[s] > 0 && (catalog->vcpu_gap >> s & 1))
			return false;
	return true;
}

/* Finds the nearest gap of any vCPU of a machine. Returns 1 if there is one, 0 if not, -1 on error. */
static int find_in_machine(const struct catalog *catalog, uint32_t machine, int64_t t, int direction, struct gap *best,
                      struct error *err)
{
	const struct catalog_machine *m = &catalog->machine[machine];
	int found_any = 0;
	for (uint32_t c = m->cpu; c < m->cpu + m->cpus; c++) {
		struct target s = { TARGET_CPU, c };
		struct gap gap;
		int found = gap_find(catalog, &s, t, direction, &gap, err);
		if (found < 0)
			return -1;
		if (found && (!found_any || (direction > 0 ? gap.start < best->start : gap.start > best->start)))
			*best = gap;
		found_any |= found;
	}
	return found_any;
}

static int find_next(const struct app *app, const struct gap_search *search, int direction, struct gap *gap,
                       struct error *err)
{
	if (search->target.kind == TARGET_MACHINE)
		return find_in_machine(&app->catalog, search->target.index, search->t, direction, gap, err);
	return gap_find(&app->catalog, &search->target, search->t, direction, gap, err);
}

static bool stops_at_gap(const struct app *app, const struct gap_search *search, const struct gap *gap)
{
	if (search->phase != SEARCH_ANY && gap->end - gap->start + 1 < search->min_gap)
		return false;
	return !is_vm_exit_only(app, gap);
}

/* Starts the next phase when the search reached the row's end: first checks for long gaps in the other direction,
 * then, if there are none, includes short gaps. Returns false if the search has ended. */
static bool start_next_phase(struct app *app, bool found)
{
	struct gap_search *search = app->gap_search;
	const char *where = search->direction > 0 ? "later" : "earlier";
	char d[TIME_TEXT], keys[32];
	if (search->phase == SEARCH_LONG && search->found == 0 && !found && search->min_gap > 1) {
		search->phase = SEARCH_BACKWARDS;
	} else if (search->phase == SEARCH_BACKWARDS && !found) {
		app_message(app, "no gap of %s or more in this row: including shorter ones", time_duration(d, search->min_gap));
		search->phase = SEARCH_ANY;
	} else {
		if (search->phase != SEARCH_ANY && search->min_gap > 1)
			app_message(app, "no %s gap of %s or more in this row (:set mingap=0 includes all)", where,
			        time_duration(d, search->min_gap));
		else
			app_message(app, "no %s gap in this row (%s stops at every interval)", where,
			        keymap_text(&app->keymap, search->direction > 0 ? ACT_NEXT_INTERVAL : ACT_PREV_INTERVAL, keys,
			                    sizeof keys));
		return false;
	}
	search->t = search->from;
	return true;
}

static void move_to_gap(struct app *app, const struct gap *gap)
{
	struct gap_search *search = app->gap_search;
	search->found++;
	search->gap = *gap;
	view_goto(&app->view, &app->bounds, gap->start);
	if (search->zoom && search->found == search->requested)
		view_fit(&app->view, &app->bounds, gap->start, gap->end, 1, 3);
}

/* Searches for about budget_ns. Returns true if the search has not ended. */
static bool search_step(struct app *app, int64_t budget_ns)
{
	struct gap_search *search = app->gap_search;
	struct error err = ERROR_INIT;
	struct gap gap;
	int64_t until = now_ns() + budget_ns;
	for (unsigned i = 1; search->found < search->requested; i++) {
		int direction = search->phase == SEARCH_BACKWARDS ? -search->direction : search->direction;
		int found = find_next(app, search, direction, &gap, &err);
		if (found < 0) {
			app_fail(app, &err);
			return false;
		}
		bool stops = found > 0 && stops_at_gap(app, search, &gap);
		if (found == 0 || (stops && search->phase == SEARCH_BACKWARDS)) {
			if (!start_next_phase(app, stops))
				break;
			continue;
		}
		search->t = gap.start;
		if (stops)
			move_to_gap(app, &gap);
		if (i % 16 == 0 && now_ns() > until)
			return true;
	}
	if (search->zoom && search->found > 0 && search->found < search->requested)
		view_fit(&app->view, &app->bounds, search->gap.start, search->gap.end, 1, 3);
	return false;
}

void gap_search_start(struct app *app, int direction, int64_t n, bool zoom)
{
	struct row_id row = app->view.row;
	struct gap_search *search = app->gap_search;
	struct target s;
	if (!row_target(&app->catalog, row, &s) ||
	    (row.kind == ROW_MACHINE && app->catalog.machine[row.index].kind != MACHINE_VM)) {
		app_message(app, "select a vCPU or a thread (gap: runnable, but not running)");
		return;
	}
	*search = (struct gap_search){ .min_gap = search->min_gap, .target = s, .direction = direction, .requested = n,
		.zoom = zoom, .before = app->view, .from = app->view.cursor, .t = app->view.cursor };
	search->running = search_step(app, FIRST_SLICE_NS);
	if (search->running)
		app_message(app, "searching for a gap (any key cancels)");
}

bool gap_search_work(struct app *app, int64_t budget_ns, bool *changed)
{
	struct gap_search *search = app->gap_search;
	int64_t found = search->found;
	if (!search->running)
		return false;
	app->message[0] = '\0';
	search->running = search_step(app, budget_ns);
	*changed |= !search->running || search->found != found;
	if (search->running) {
		double duration = (double)(app->bounds.end - app->bounds.begin) + 1;
		app_message(app, "searching for a gap at %.0f %% of the trace (any key cancels)",
		        100 * (double)(search->t - app->bounds.begin) / duration);
		*changed = true;
	} else if (search->found > 0) {
		undo_push(&app->undo, &search->before);
	}
	return search->running;
}
