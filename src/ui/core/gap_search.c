/* See gap_search.h.
 *
 * Passed over are mere VM exits and gaps shorter than least_gap, unless the row has no other; a row may hold millions
 * of them, at a microsecond each.  So the hunt goes on in steps beside the keys, and any key ends it. */
#include "ui/core/gap_search.h"


#include <stdlib.h>

#include "base/mem.h"
#include "base/clock.h"
#include "base/timefmt.h"

#define FIRST_NS 10000000        /* of hunting before the first frame */
#define LEAST_GAP_NS 100000      /* shorter gaps are not worth a stop */

struct hunt {
	int64_t least;         /* ns; shorter gaps are passed over */
	bool on, zoom;
	enum { HUNT_LONG, HUNT_OTHER_WAY, HUNT_ANY } phase;
	struct subject subject;
	int direction;
	int64_t from, t;       /* where it began, where it is */
	int64_t wanted, found; /* gaps */
	struct gap gap;        /* the last one found */
	struct view before;
};

void hunt_init(struct app *app)
{
	app->hunt = mem_new(1, sizeof *app->hunt);
	app->hunt->least = LEAST_GAP_NS;
}

void hunt_release(struct app *app)
{
	free(app->hunt);
}

void hunt_stop(struct app *app)
{
	app->hunt->on = false;
}

bool hunt_set_least(struct app *app, const char *duration)
{
	int64_t ns;
	const bool good = time_parse_duration(duration, &ns) && ns >= 0;
	app->hunt->least = good ? ns : app->hunt->least;
	return good;
}

/* A guest's thread is virtually preempted at each VM exit, thousands of times a second.  That is the hypervisor at
 * work and not a gap that anybody looks for: true when the thread's vCPU was neither preempted nor blocked in it. */
static bool only_vm_exits(const struct app *app, const struct gap *gap)
{
	const struct topo *topo = &app->topo;
	struct interval cpu;
	int64_t sums[HISTORY_STATES];
	if (gap->subject.kind != SUBJECT_THREAD || gap->state < 0 || gap->state >= HISTORY_STATES ||
	    app->look.thread.code[gap->state] != VIS_VIRT_PREEMPTED)
		return false;
	const struct topo_thread *t = &topo->thread[gap->subject.index];
	if (t->cpu == HISTORY_NONE || history_stab(topo->h, t->cpu, gap->start, &cpu, NULL) < 0 || cpu.value < 0)
		return false;
	int c = topo_find_cpu(topo, t->machine, (unsigned)cpu.value);
	if (c < 0 || topo->cpu[c].status == HISTORY_NONE ||
	    history_sums(topo->h, topo->cpu[c].status, gap->start, gap->end, sums, NULL) < 0)
		return false;
	for (int s = 0; s < HISTORY_STATES - 1; s++)
		if (sums[s] > 0 && (topo->vcpu_gap >> s & 1))
			return false;
	return true;
}

/* The nearest gap of any vCPU of a machine. */
static int of_machine(const struct topo *topo, uint32_t machine, int64_t t, int direction, struct gap *best,
                      struct error *err)
{
	const struct topo_machine *m = &topo->machine[machine];
	int any = 0;
	for (uint32_t c = m->cpu; c < m->cpu + m->cpus; c++) {
		struct subject s = { SUBJECT_CPU, c };
		struct gap gap;
		int found = gap_find(topo, &s, t, direction, &gap, err);
		if (found < 0)
			return -1;
		if (found && (!any || (direction > 0 ? gap.start < best->start : gap.start > best->start)))
			*best = gap;
		any |= found;
	}
	return any;
}

static int one_further(const struct app *app, const struct hunt *h, int direction, struct gap *gap,
                       struct error *err)
{
	if (h->subject.kind == SUBJECT_MACHINE)
		return of_machine(&app->topo, h->subject.index, h->t, direction, gap, err);
	return gap_find(&app->topo, &h->subject, h->t, direction, gap, err);
}

static bool worth_seeing(const struct app *app, const struct hunt *h, const struct gap *gap)
{
	if (h->phase != HUNT_ANY && gap->end - gap->start + 1 < h->least)
		return false;
	return !only_vm_exits(app, gap);
}

/* The way to the end of the row is done.  Goes on with what remains to be tried; false when nothing does. */
static bool next_phase(struct app *app, bool found)
{
	struct hunt *h = app->hunt;
	const char *where = h->direction > 0 ? "later" : "earlier";
	char d[TIME_TEXT], keys[32];
	if (h->phase == HUNT_LONG && h->found == 0 && !found && h->least > 1) {
		h->phase = HUNT_OTHER_WAY;
	} else if (h->phase == HUNT_OTHER_WAY && !found) {
		app_say(app, "no gap of %s or more in this row: shorter ones count", time_duration(d, h->least));
		h->phase = HUNT_ANY;
	} else {
		if (h->phase != HUNT_ANY && h->least > 1)
			app_say(app, "no %s gap of %s or more in this row (:set mingap=0 stops at all)", where,
			        time_duration(d, h->least));
		else
			app_say(app, "no %s gap in this row: %s stops at every interval", where,
			        keymap_text(&app->keymap, h->direction > 0 ? ACT_NEXT_INTERVAL : ACT_PREV_INTERVAL, keys,
			                    sizeof keys));
		return false;
	}
	h->t = h->from;
	return true;
}

static void arrive(struct app *app, const struct gap *gap)
{
	struct hunt *h = app->hunt;
	h->found++;
	h->gap = *gap;
	view_goto(&app->view, &app->ground, gap->start);
	if (h->zoom && h->found == h->wanted)
		view_fit(&app->view, &app->ground, gap->start, gap->end, 1, 3);
}

/* Goes on for about budget_ns; true while there is more to do. */
static bool step(struct app *app, int64_t budget_ns)
{
	struct hunt *h = app->hunt;
	struct error err = ERROR_INIT;
	struct gap gap;
	int64_t until = now_ns() + budget_ns;
	for (unsigned i = 1; h->found < h->wanted; i++) {
		int direction = h->phase == HUNT_OTHER_WAY ? -h->direction : h->direction;
		int found = one_further(app, h, direction, &gap, &err);
		if (found < 0) {
			app_fail(app, &err);
			return false;
		}
		bool worth = found > 0 && worth_seeing(app, h, &gap);
		if (found == 0 || (worth && h->phase == HUNT_OTHER_WAY)) {
			if (!next_phase(app, worth))
				break;
			continue;
		}
		h->t = gap.start;
		if (worth)
			arrive(app, &gap);
		if (i % 16 == 0 && now_ns() > until)
			return true;
	}
	if (h->zoom && h->found > 0 && h->found < h->wanted)
		view_fit(&app->view, &app->ground, h->gap.start, h->gap.end, 1, 3);
	return false;
}

void hunt_start(struct app *app, int direction, int64_t n, bool zoom)
{
	struct row_id row = app->view.row;
	struct hunt *h = app->hunt;
	struct subject s;
	if (!row_subject(&app->topo, row, &s) ||
	    (row.kind == ROW_MACHINE && app->topo.machine[row.index].kind != MACHINE_VM)) {
		app_say(app, "choose a vCPU or a thread: a gap is when that wanted to run and could not");
		return;
	}
	*h = (struct hunt){ .least = h->least, .subject = s, .direction = direction, .wanted = n, .zoom = zoom,
		.before = app->view, .from = app->view.cursor, .t = app->view.cursor };
	h->on = step(app, FIRST_NS);
	if (h->on)
		app_say(app, "looking for a gap; any key ends it");
}

bool hunt_work(struct app *app, int64_t budget_ns, bool *changed)
{
	struct hunt *h = app->hunt;
	int64_t found = h->found;
	if (!h->on)
		return false;
	app->message[0] = '\0';
	h->on = step(app, budget_ns);
	*changed |= !h->on || h->found != found;
	if (h->on) {
		double span = (double)(app->ground.end - app->ground.begin) + 1;
		app_say(app, "looking for a gap at %.0f %% of the trace; any key ends it",
		        100 * (double)(h->t - app->ground.begin) / span);
		*changed = true;
	} else if (h->found > 0) {
		undo_push(&app->undo, &h->before);
	}
	return h->on;
}
