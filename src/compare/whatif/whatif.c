/* What-if: calibrates the model on the recording, then replays the recording with the changes. */
#include "compare/whatif/whatif.h"

#include "base/base.h"
#include "compare/whatif/apply_changes.h"
#include "compare/whatif/whatif_report.h"

#define UNKNOWN_MAX 0.01    /* maximum share of the window in an unknown state */

/* ---- Replays */

static void store_replay(struct replays *r, int variant, unsigned run)
{
	double window = (double)(r->w->to - r->w->from) + 1;
	for (size_t i = 0; i < r->w->tasks; i++) {
		r->waiting[i].removed = r->w->task[i].removed;
		r->waiting[i].replayed.value[variant][run] = task_waits(&r->w->task[i]) / window;
		if (run < 2)
			memcpy(r->waiting[i].slice_waits[run], r->w->task[i].replayed_waits, sizeof r->waiting[i].slice_waits[run]);
	}
	r->latency[variant][run] = mem_new(r->requests->len, sizeof(double));
	for (size_t i = 0; i < r->requests->len; i++)
		r->latency[variant][run][i] = replayed_latency(&r->requests->item[i], variant != UNCHANGED && run % 2);
	for (size_t i = 0; i < r->requests->len && variant == CHANGED && run == OPEN; i++)
		r->ends[i] = replayed_end_time(&r->requests->item[i]);
}

/* Copies the results of the CHANGED replay to the UNPINNED variant if both are the same. */
static void store_unchanged(struct replays *r, unsigned run)
{
	for (size_t i = 0; i < r->w->tasks; i++)
		r->waiting[i].replayed.value[UNPINNED][run] = r->waiting[i].replayed.value[CHANGED][run];
	r->latency[UNPINNED][run] = mem_new(r->requests->len, sizeof(double));
	for (size_t i = 0; i < r->requests->len; i++)
		r->latency[UNPINNED][run][i] = r->latency[CHANGED][run][i];
}

/* ---- Queries */

static int check_unknown_time(const struct host_demand *d, struct error *err)
{
	const double window = (double)(d->to - d->from) + 1;
	for (size_t i = 0; i < d->tasks; i++) {
		char name[TARGET_TEXT];
		const struct replay_task *t = &d->task[i];
		if ((double)t->unknown > UNKNOWN_MAX * window)
			return error_set(err, STATUS_INPUT, "give a window without losses",
			                 "%s: %s is unknown for %.1f%% of the time because events were lost",
			                 history_file(d->catalog->h),
			                 catalog_target_text(d->catalog, &(struct target){ TARGET_THREAD, t->thread }, name,
			                                     sizeof name),
			                 100 * (double)t->unknown / window);
	}
	return 0;
}

/* Returns the time that the task was throttled by its quota, ns. */
static double task_throttled_ns(const struct replay_task *t)
{
	double ns = 0;
	for (size_t k = 0; k < t->bursts; k++)
		ns += t->burst[k].throttled ? (double)t->burst[k].sleep : 0;
	return ns;
}

/* Share of waits in waits plus throttled time. The replay does not change throttled time. */
static double error_with_throttling(const struct host_demand *d)
{
	double waited = 0, quota = 0;
	for (size_t i = 0; i < d->tasks; i++) {
		waited += (double)d->task[i].waited;
		quota += task_throttled_ns(&d->task[i]);
	}
	return waited + quota > 0 ? waited / (waited + quota) : 0;
}

static void store_throttled(struct replays *r)
{
	for (size_t i = 0; i < r->w->tasks; i++) {
		const struct replay_task *t = &r->w->task[i];
		r->waiting[i].throttled = task_throttled_ns(t) / ((double)(r->w->to - r->w->from) + 1);
		r->waiting[i].throttled_changed = t->quota_lifted ? 0 : r->waiting[i].throttled;
	}
}

static void replay_changed(struct replays *r, int variant, const struct models *models, bool same)
{
	for (unsigned run = 0; run < r->runs; run++) {
		r->w->waits_for = variant == CHANGED && run == 0 ? &r->waits_for[1] : NULL;
		struct sched_params params = models->params[run / 2];
		params.open = run % 2;
		params.by_clock = r->lifts_quota;
		if (same) {
			store_unchanged(r, run);
			continue;
		}
		replay_run(r->w, &params);
		store_replay(r, variant, run);
	}
}

static void replay_all(struct replays *r, const struct models *models, const struct whatif_change *change, size_t changes,
                       struct whatif *out)
{
	for (unsigned k = 0; k < 2; k++) {
		r->w->waits_for = k ? NULL : &r->waits_for[0];
		replay_run(r->w, &models->params[k * models->other_kind]);
		out->error = k ? out->error : demand_mismatch(r->w);
		store_replay(r, UNCHANGED, k);
	}
	out->quota_error = out->error * error_with_throttling(r->w);
	apply_changes(r->w, change, changes);
	store_throttled(r);
	replay_changed(r, CHANGED, models, false);
	replay_changed(r, UNPINNED, models, !apply_unpin(r->w, change, changes));
}

struct whatif_base {
	struct host_demand w;
	struct models models;
	struct replayed_list requests;
	struct { uint64_t allowed_cpus; double weight; } *task;  /* the recording's values */
	double *group;           /* weights in the recording */
	unsigned cpus;
};

struct whatif_base *whatif_open(const struct diff_side *side, struct notes *notes, struct error *err)
{
	if (whatif_check(side->catalog, NULL, 0, err))
		return NULL;
	struct whatif_base *b = mem_new(1, sizeof *b);
	int rc = demand_read(&b->w, side->catalog, side->from, side->to, err);
	rc = rc ? rc : check_unknown_time(&b->w, err);
	rc = rc ? rc : models_find(&b->w, &b->models, err);
	rc = rc ? rc : replayed_read(&b->requests, &b->w, notes, err);
	if (rc) {
		whatif_close(b);
		return NULL;
	}
	b->cpus = b->w.cpus;
	b->task = mem_new(b->w.tasks, sizeof *b->task);
	b->group = mem_new(b->w.groups, sizeof *b->group);
	for (size_t i = 0; i < b->w.tasks; i++) {
		b->task[i].allowed_cpus = b->w.task[i].allowed_cpus;
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
	replayed_release(&b->requests);
	demand_release(&b->w);
	free(b->task);
	free(b->group);
	free(b);
}

/* Undoes an earlier query's changes. */
static void restore_base(struct whatif_base *b)
{
	b->w.cpus = b->cpus;
	for (size_t i = 0; i < b->w.tasks; i++) {
		struct replay_task *t = &b->w.task[i];
		t->removed = t->quota_lifted = false;
		t->allowed_cpus = b->task[i].allowed_cpus;
		t->weight = b->task[i].weight;
	}
	for (size_t i = 0; i < b->w.groups; i++)
		b->w.group[i].weight = b->group[i];
}

int whatif_query(struct whatif_base *b, const struct whatif_change *change, size_t changes, bool requests,
                 struct whatif *out, struct notes *notes, struct error *err)
{
	struct host_demand *w = &b->w;
	*out = (struct whatif){ 0 };
	if (whatif_check(w->catalog, change, changes, err) || apply_check_quotas(w, change, changes, err))
		return -1;
	restore_base(b);
	struct replays r = { .w = w, .waiting = mem_new(w->tasks, sizeof *r.waiting), .requests = &b->requests,
	                     .ends = mem_new(b->requests.len, sizeof *r.ends),
	                     .lifts_quota = apply_lifts_quota(change, changes), .runs = 2 * b->models.n };
	for (size_t i = 0; i < w->tasks; i++) {
		task_name(w, &w->task[i], r.waiting[i].target);
		r.waiting[i].kind = w->task[i].is_vcpu ? DIFF_OF_MACHINE : DIFF_OF_THREAD;
		r.waiting[i].recorded = (double)w->task[i].waited / ((double)(w->to - w->from) + 1);
	}
	out->slice = b->models.params[0].slice;
	out->credit = b->models.params[0].credit;
	out->grouped = w->grouped;
	replay_all(&r, &b->models, change, changes, out);
	out->target_error = r.lifts_quota ? out->quota_error : out->error;
	if (requests)
		whatif_report_requests(&r, out, notes);
	whatif_report_waits(&r, out, notes);
	whatif_note_omitted(&r, change, changes, notes);
	whatif_note_siblings(w, change, changes, notes);
	whatif_note_vague(&r, notes);
	whatif_note_untested(&r, out, notes);
	whatif_note_wait_lengths(w, b->models.length_mismatch, out, notes);
	for (unsigned k = 0; k < RUNS * VARIANTS; k++)
		free(r.latency[k / RUNS][k % RUNS]);
	wait_graph_release(&r.waits_for[0]);
	wait_graph_release(&r.waits_for[1]);
	free(r.waiting);
	free(r.ends);
	return 0;
}

int whatif_of(const struct diff_side *side, const struct whatif_change *change, size_t changes, struct whatif *out,
              struct notes *notes, struct error *err)
{
	*out = (struct whatif){ 0 };
	if (whatif_check(side->catalog, change, changes, err))
		return -1;
	struct whatif_base *b = whatif_open(side, notes, err);
	const int rc = b ? whatif_query(b, change, changes, true, out, notes, err) : -1;
	whatif_close(b);
	return rc;
}

void whatif_release(struct whatif *w)
{
	for (size_t i = 0; i < w->rows; i++)
		free(w->row[i].target);
	free(w->row);
	*w = (struct whatif){ 0 };
}
