/* What if: calibrate the model on the recording itself, then replay it with the changes. */
#include "compare/whatif/whatif.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "compare/whatif/apply_changes.h"
#include "compare/whatif/whatif_report.h"

#define UNKNOWN_MOST 0.01    /* of the window */

/* ---- Replays */

static void keep(struct replays *r, int variant, unsigned run)
{
	double span = (double)(r->w->to - r->w->from) + 1;
	for (size_t i = 0; i < r->w->tasks; i++) {
		r->waiting[i].gone = r->w->task[i].gone;
		r->waiting[i].replayed.value[variant][run] = task_waits(&r->w->task[i]) / span;
		if (run < 2)
			memcpy(r->waiting[i].in[run], r->w->task[i].waits, sizeof r->waiting[i].in[run]);
	}
	r->again[variant][run] = mem_new(r->served->len, sizeof(double));
	for (size_t i = 0; i < r->served->len; i++)
		r->again[variant][run][i] = served_again(&r->served->item[i], variant != AS_IT_WAS && run % 2);
	for (size_t i = 0; i < r->served->len && variant == CHANGED && run == OPEN; i++)
		r->ends[i] = served_ends(&r->served->item[i]);
}

/* Nobody is freed: as it was changed. */
static void keep_same(struct replays *r, unsigned run)
{
	for (size_t i = 0; i < r->w->tasks; i++)
		r->waiting[i].replayed.value[FREED][run] = r->waiting[i].replayed.value[CHANGED][run];
	r->again[FREED][run] = mem_new(r->served->len, sizeof(double));
	for (size_t i = 0; i < r->served->len; i++)
		r->again[FREED][run][i] = r->again[CHANGED][run][i];
}

/* ---- The question */

static int check_known(const struct wants *w, struct error *err)
{
	const double span = (double)(w->to - w->from) + 1;
	for (size_t i = 0; i < w->tasks; i++) {
		char name[SUBJECT_TEXT];
		const struct replay_task *t = &w->task[i];
		if ((double)t->unknown > UNKNOWN_MOST * span)
			return error_set(err, STATUS_INPUT, "give a window without losses",
			                 "%s: what %s did is not known for %.1f%% of the time: events were lost",
			                 history_file(w->topo->h),
			                 topo_subject_text(w->topo, &(struct subject){ SUBJECT_THREAD, t->thread }, name, sizeof name),
			                 100 * (double)t->unknown / span);
	}
	return 0;
}

/* ns that its quota held it back. */
static double task_held(const struct replay_task *t)
{
	double ns = 0;
	for (size_t k = 0; k < t->bursts; k++)
		ns += t->burst[k].quota ? (double)t->burst[k].sleep : 0;
	return ns;
}

/* The share of the waits in what was waited and what quotas held back, which the replay does as recorded. */
static double waits_of_held(const struct wants *w)
{
	double waited = 0, quota = 0;
	for (size_t i = 0; i < w->tasks; i++) {
		waited += (double)w->task[i].waited;
		quota += task_held(&w->task[i]);
	}
	return waited + quota > 0 ? waited / (waited + quota) : 0;
}

static void keep_held(struct replays *r)
{
	for (size_t i = 0; i < r->w->tasks; i++) {
		const struct replay_task *t = &r->w->task[i];
		r->waiting[i].held = task_held(t) / ((double)(r->w->to - r->w->from) + 1);
		r->waiting[i].held_then = t->unlimited ? 0 : r->waiting[i].held;
	}
}

static void replay_changed(struct replays *r, int variant, const struct models *models, bool same)
{
	for (unsigned run = 0; run < r->runs; run++) {
		r->w->contests = variant == CHANGED && run == 0 ? &r->met[1] : NULL;
		struct rules rules = models->rules[run / 2];
		rules.open = run % 2;
		rules.by_clock = r->apart;
		if (same) {
			keep_same(r, run);
			continue;
		}
		replay_run(r->w, &rules);
		keep(r, variant, run);
	}
}

static void replay_all(struct replays *r, const struct models *models, const struct whatif_change *change, size_t changes,
                       struct whatif *out)
{
	for (unsigned k = 0; k < 2; k++) {
		r->w->contests = k ? NULL : &r->met[0];
		replay_run(r->w, &models->rules[k * models->other]);
		out->error = k ? out->error : wants_missed(r->w);
		keep(r, AS_IT_WAS, k);
	}
	out->missed = out->error * waits_of_held(r->w);
	apply_changes(r->w, change, changes);
	keep_held(r);
	replay_changed(r, CHANGED, models, false);
	replay_changed(r, FREED, models, !apply_free(r->w, change, changes));
}

struct whatif_base {
	struct wants w;
	struct models models;
	struct served_list served;
	struct { uint64_t may; double weight; } *task;  /* as recorded */
	double *group;           /* weights, as recorded */
	unsigned cpus;
};

struct whatif_base *whatif_open(const struct diff_side *side, struct notes *notes, struct error *err)
{
	if (whatif_check(side->topo, NULL, 0, err))
		return NULL;
	struct whatif_base *b = mem_new(1, sizeof *b);
	int rc = wants_read(&b->w, side->topo, side->from, side->to, err);
	rc = rc ? rc : check_known(&b->w, err);
	rc = rc ? rc : models_find(&b->w, &b->models, err);
	rc = rc ? rc : served_read(&b->served, &b->w, notes, err);
	if (rc) {
		whatif_close(b);
		return NULL;
	}
	b->cpus = b->w.cpus;
	b->task = mem_new(b->w.tasks, sizeof *b->task);
	b->group = mem_new(b->w.groups, sizeof *b->group);
	for (size_t i = 0; i < b->w.tasks; i++) {
		b->task[i].may = b->w.task[i].may;
		b->task[i].weight = b->w.task[i].weight;
	}
	for (size_t i = 0; i < b->w.groups; i++)
		b->group[i] = b->w.group[i].weight;
	return b;
}

void whatif_close(struct whatif_base *b)
{
	if (!b)
		return;
	served_release(&b->served);
	wants_release(&b->w);
	free(b->task);
	free(b->group);
	free(b);
}

/* What an earlier question changed. */
static void restore(struct whatif_base *b)
{
	b->w.cpus = b->cpus;
	for (size_t i = 0; i < b->w.tasks; i++) {
		struct replay_task *t = &b->w.task[i];
		t->gone = t->unlimited = false;
		t->may = b->task[i].may;
		t->weight = b->task[i].weight;
	}
	for (size_t i = 0; i < b->w.groups; i++)
		b->w.group[i].weight = b->group[i];
}

int whatif_ask(struct whatif_base *b, const struct whatif_change *change, size_t changes, bool requests, struct whatif *out,
               struct notes *notes, struct error *err)
{
	struct wants *w = &b->w;
	*out = (struct whatif){ 0 };
	if (whatif_check(w->topo, change, changes, err) || apply_check_quotas(w, change, changes, err))
		return -1;
	restore(b);
	struct replays r = { .w = w, .waiting = mem_new(w->tasks, sizeof *r.waiting), .served = &b->served,
	                     .ends = mem_new(b->served.len, sizeof *r.ends),
	                     .apart = apply_lifts_quota(change, changes), .runs = 2 * b->models.n };
	for (size_t i = 0; i < w->tasks; i++) {
		task_name(w, &w->task[i], r.waiting[i].subject);
		r.waiting[i].kind = w->task[i].follow ? DIFF_OF_MACHINE : DIFF_OF_THREAD;
		r.waiting[i].recorded = (double)w->task[i].waited / ((double)(w->to - w->from) + 1);
	}
	out->slice = b->models.rules[0].slice;
	out->credit = b->models.rules[0].credit;
	out->grouped = w->grouped;
	replay_all(&r, &b->models, change, changes, out);
	out->guess = r.apart ? out->missed : out->error;
	if (requests)
		outlook_requests(&r, out, notes);
	outlook_waits(&r, out, notes);
	outlook_untold(&r, change, changes, notes);
	outlook_vague(&r, notes);
	outlook_untried(&r, out, notes);
	outlook_unlike(w, b->models.unlike, out, notes);
	for (unsigned k = 0; k < RUNS * VARIANTS; k++)
		free(r.again[k / RUNS][k % RUNS]);
	contests_release(&r.met[0]);
	contests_release(&r.met[1]);
	free(r.waiting);
	free(r.ends);
	return 0;
}

int whatif_of(const struct diff_side *side, const struct whatif_change *change, size_t changes, struct whatif *out,
              struct notes *notes, struct error *err)
{
	*out = (struct whatif){ 0 };
	if (whatif_check(side->topo, change, changes, err))
		return -1;
	struct whatif_base *b = whatif_open(side, notes, err);
	const int rc = b ? whatif_ask(b, change, changes, true, out, notes, err) : -1;
	whatif_close(b);
	return rc;
}

void whatif_release(struct whatif *w)
{
	for (size_t i = 0; i < w->rows; i++)
		free(w->row[i].subject);
	free(w->row);
	*w = (struct whatif){ 0 };
}
