/* What if: calibrate the model on the recording itself, then replay it with the changes.
 *
 * Each figure is an interval over what is not known: whether who waited would have started its next work earlier (closed
 * loop) or when it did (open loop); whether what interrupts a request, timers and handlers, comes with its work or with
 * time; by how much the replay without any change misses what was recorded; and that another recording of the same would
 * have been another sample. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "compare/estimate.h"
#include "compare/replay.h"
#include "compare/served.h"

#define CALIBRATED 200000    /* bursts to calibrate on, at most */
#define UNKNOWN_MOST 0.01    /* of the window */
#define THREADS_FROM 0.01    /* waits of the host's threads are told from this share of the window on */
#define LEAST_WAIT 0.001     /* of a CPU: what two runs of the same may differ by */
#define NORMAL_95 1.96

static const int64_t slices[] = { 1000000, 2000000, 3000000, 4000000, 6000000, 8000000, 12000000, 24000000 };
static const int64_t credits[] = { 0, 3000000, 6000000, 12000000 };
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- Calibration */

static double miss(const struct wants *w)
{
	double off = 0, all = 0;
	for (size_t i = 0; i < w->tasks; i++) {
		off += fabs(task_waits(&w->task[i]) - (double)w->task[i].waited);
		all += (double)w->task[i].waited;
	}
	return all > 0 ? off / all : 0;
}

static struct rules calibrate(struct wants *w)
{
	struct rules best = { slices[0], credits[0], false };
	double least = INFINITY;
	for (size_t i = 0; i < COUNT(slices); i++)
		for (size_t k = 0; k < COUNT(credits); k++) {
			const struct rules rules = { slices[i], credits[k], false };
			replay_run(w, &rules);
			const double off = miss(w);
			if (off < least)
				best = rules;
			least = off < least ? off : least;
		}
	return best;
}

static int calibrated(const struct wants *w, struct rules *rules, struct error *err)
{
	size_t bursts = 0;
	struct wants part;
	for (size_t i = 0; i < w->tasks; i++)
		bursts += w->task[i].bursts;
	double share = bursts > CALIBRATED ? (double)CALIBRATED / (double)bursts : 1;
	int rc = wants_read(&part, w->topo, w->from, w->from + (int64_t)(share * (double)(w->to - w->from)), err);
	if (rc == 0)
		*rules = calibrate(&part);
	wants_release(&part);
	return rc;
}

/* ---- The changes */

/* Of who was seen on one CPU alone nobody knows whether it is pinned, or had no reason to leave: with a new CPU it may go
 * there in one replay, and not in the other.  False: there is no such thread. */
static bool free_all(struct wants *w, const struct whatif_change *change, size_t changes)
{
	bool any = false, adds = false;
	for (size_t i = 0; i < changes; i++)
		adds |= change[i].kind == WHATIF_ADD_CPU;
	for (size_t k = 0; k < w->tasks && adds; k++) {
		struct replay_task *t = &w->task[k];
		const bool one = t->may && !(t->may & (t->may - 1));
		bool pinned = false;
		for (size_t i = 0; i < changes; i++)
			for (size_t n = 0; n < change[i].threads && change[i].kind == WHATIF_PIN; n++)
				pinned |= change[i].thread[n] == t->thread;
		if (one && !pinned) {
			t->may |= UINT64_C(1) << (w->cpus - 1);
			any = true;
		}
	}
	return any;
}

static void change_all(struct wants *w, const struct whatif_change *change, size_t changes)
{
	for (size_t i = 0; i < changes; i++) {
		const struct whatif_change *c = &change[i];
		for (size_t k = 0; k < c->threads; k++) {
			struct replay_task *t = wants_task(w, c->thread[k]);
			if (!t)
				continue;
			t->gone |= c->kind == WHATIF_WITHOUT;
			t->unlimited |= c->kind == WHATIF_NO_QUOTA;
			t->may = c->kind == WHATIF_PIN ? UINT64_C(1) << c->cpu : t->may;
			t->weight = c->kind == WHATIF_WEIGHT ? c->weight : t->weight;
		}
		if (c->kind != WHATIF_ADD_CPU)
			continue;
		for (size_t k = 0; k < w->tasks; k++)
			if (w->task[k].may & (w->task[k].may - 1))
				w->task[k].may |= UINT64_C(1) << w->cpus;
		w->cpus++;
	}
}

/* A quota that never held anybody back tells nothing. */
static int check_quotas(const struct wants *w, const struct whatif_change *change, size_t changes, struct error *err)
{
	for (size_t i = 0; i < changes; i++) {
		bool seen = change[i].kind != WHATIF_NO_QUOTA;
		for (size_t k = 0; k < change[i].threads && !seen; k++) {
			const struct replay_task *t = wants_task(w, change[i].thread[k]);
			for (size_t b = 0; t && b < t->bursts && !seen; b++)
				seen = t->burst[b].quota;
		}
		if (!seen)
			return error_set(err, STATUS_INPUT, "stealscope gaps tells by what a vCPU is limited",
			                 "%s: no quota held it back in this window", history_file(w->topo->h));
	}
	return 0;
}

/* ---- Figures */

/* The replays: as it was, changed, and changed for all who may not be pinned. */
enum { AS_IT_WAS, CHANGED, FREED, VARIANTS };

/* One figure of all replays: [variant][open]. */
struct figure { double value[VARIANTS][2]; };

static void add_row(struct whatif *out, unsigned kind, const char *subject, unsigned quantity, double recorded,
                    double reproduced, double low, double high, double sample)
{
	const double off = recorded > 0 ? fabs(reproduced - recorded) / recorded * (low + high) / 2 : 0;
	const double reach = sqrt(off * off + sample * sample);
	*ARRAY_PUSH(out->row, out->rows, out->cap) = (struct whatif_row){ mem_dup(subject), (uint8_t)kind,
		(uint8_t)quantity, recorded, reproduced, (low + high) / 2, fmax(0, low - reach), high + reach };
}

/* What the vCPUs of a VM, or the threads of one name, waited. */
struct waiting {
	char subject[SUBJECT_TEXT];
	uint8_t kind;
	bool gone;
	double recorded;
	struct figure replayed;
	double in[2][DIFF_SLICES]; /* ns with the changes, [open] */
};

static void waiter_of(const struct topo *topo, uint32_t thread, struct waiting *out)
{
	const struct topo_thread *th = &topo->thread[thread];
	const struct subject who = { SUBJECT_THREAD, thread };
	*out = (struct waiting){ .kind = th->role < 0 ? DIFF_OF_THREAD : DIFF_OF_MACHINE };
	if (th->role < 0)
		ledger_subject(topo, &who, out->subject);
	else
		text_escape(out->subject, sizeof out->subject,
		            topo->machine[topo->cpu[topo->role[th->role].vcpu].machine].name);
}

static int waiting_cmp(const void *pa, const void *pb)
{
	const struct waiting *a = pa, *b = pb;
	return a->kind != b->kind ? (a->kind > b->kind) - (a->kind < b->kind) : strcmp(a->subject, b->subject);
}

struct replays {
	struct wants *w;
	struct waiting *waiting;   /* by task, until they are joined */
	struct served_list *served;
	double *again[VARIANTS][2];  /* [variant][open]: ns of each request; NAN: it does not end */
};

static void keep(struct replays *r, int changed, bool open)
{
	double span = (double)(r->w->to - r->w->from) + 1;
	for (size_t i = 0; i < r->w->tasks; i++) {
		r->waiting[i].gone = r->w->task[i].gone;
		r->waiting[i].replayed.value[changed][open] = task_waits(&r->w->task[i]) / span;
		memcpy(r->waiting[i].in[open], r->w->task[i].waits, sizeof r->waiting[i].in[open]);
	}
	r->again[changed][open] = mem_new(r->served->len, sizeof(double));
	for (size_t i = 0; i < r->served->len; i++)
		r->again[changed][open][i] = served_again(&r->served->item[i]);
}

/* Nobody is freed: as it was changed. */
static void keep_same(struct replays *r, bool open)
{
	for (size_t i = 0; i < r->w->tasks; i++)
		r->waiting[i].replayed.value[FREED][open] = r->waiting[i].replayed.value[CHANGED][open];
	r->again[FREED][open] = mem_new(r->served->len, sizeof(double));
	for (size_t i = 0; i < r->served->len; i++)
		r->again[FREED][open][i] = r->again[CHANGED][open][i];
}

static double sample_error(const struct replays *r, const struct waiting *x)
{
	double den[DIFF_SLICES];
	for (unsigned i = 0; i < DIFF_SLICES; i++)
		den[i] = ((double)(r->w->to - r->w->from) + 1) / DIFF_SLICES;
	return fmax(estimate_ratio(x->in[0], den).error, estimate_ratio(x->in[1], den).error);
}

static void tell_waits(const struct replays *r, struct whatif *out)
{
	size_t n = 0;
	struct waiting *a = r->waiting;
	if (r->w->tasks)
		qsort(a, r->w->tasks, sizeof *a, waiting_cmp);
	for (size_t i = 0; i < r->w->tasks; i++) {
		if (n == 0 || waiting_cmp(&a[n - 1], &a[i])) {
			a[n++] = a[i];
			continue;
		}
		a[n - 1].recorded += a[i].recorded;
		a[n - 1].gone &= a[i].gone;
		for (int k = 0; k < 2 * VARIANTS; k++)
			a[n - 1].replayed.value[k / 2][k % 2] += a[i].replayed.value[k / 2][k % 2];
		for (int k = 0; k < 2 * DIFF_SLICES; k++)
			a[n - 1].in[k / DIFF_SLICES][k % DIFF_SLICES] += a[i].in[k / DIFF_SLICES][k % DIFF_SLICES];
	}
	for (size_t i = 0; i < n; i++) {
		const double *some = a[i].replayed.value[CHANGED], *all = a[i].replayed.value[FREED];
		const double x[2] = { fmin(fmin(some[0], some[1]), fmin(all[0], all[1])),
		                      fmax(fmax(some[0], some[1]), fmax(all[0], all[1])) };
		if (a[i].gone)
			continue;
		if (a[i].kind == DIFF_OF_MACHINE || fmax(a[i].recorded, fmax(x[0], x[1])) >= THREADS_FROM)
			add_row(out, a[i].kind, a[i].subject, DIFF_LOST, a[i].recorded, a[i].replayed.value[0][0], x[0], x[1],
			        LEAST_WAIT + NORMAL_95 * sqrt(2) * sample_error(r, &a[i]));
	}
}

static int by_ns(const void *pa, const void *pb)
{
	const struct latency *a = pa, *b = pb;
	return (a->ns > b->ns) - (a->ns < b->ns);
}

/* The latencies of one kind of request, sorted: as recorded (NULL), as replayed, or as replayed with what interrupts them
 * in proportion to time. */
static size_t latencies_of(const struct replays *r, const char *kind, const double *again, bool in_time,
                           struct latency *out)
{
	size_t n = 0;
	const double width = ((double)(r->w->to - r->w->from) + 1) / DIFF_SLICES;
	for (size_t i = 0; i < r->served->len; i++) {
		const struct served *s = &r->served->item[i];
		double ns = again ? again[i] : (double)s->latency;
		if (strcmp(s->kind, kind) || isnan(ns))
			continue;
		const double between = (double)s->background;
		if (in_time && 2 * between < (double)s->latency)
			ns = fmax(0, ns - between) / (1 - between / (double)s->latency);
		const unsigned slice = (unsigned)((double)(s->start - r->w->from) / width);
		out[n++] = (struct latency){ ns, slice < DIFF_SLICES ? slice : DIFF_SLICES - 1 };
	}
	if (n)
		qsort(out, n, sizeof *out, by_ns);
	return n;
}

static const struct { uint8_t quantity; double p; size_t requests; } quantile[] = {
	{ DIFF_P50, 0.5, 20 }, { DIFF_P90, 0.9, 50 }, { DIFF_P99, 0.99, 100 },
};

static void tell_kind(const struct replays *r, const char *kind, struct whatif *out)
{
	struct latency *l = mem_new(r->served->len, sizeof *l);
	for (size_t q = 0; q < COUNT(quantile); q++) {
		const double p = quantile[q].p;
		double low = INFINITY, high = 0, sample = 0;
		size_t n = latencies_of(r, kind, NULL, false, l);
		if (n < quantile[q].requests)
			continue;
		const double recorded = estimate_quantile(l, n, p).value;
		n = latencies_of(r, kind, r->again[0][0], false, l);
		const double reproduced = n ? estimate_quantile(l, n, p).value : 0;
		for (int k = 0; k < 8; k++) {
			n = latencies_of(r, kind, r->again[CHANGED + k / 4][k / 2 % 2], k % 2, l);
			if (n < quantile[q].requests)
				continue;
			const struct estimate e = estimate_quantile(l, n, p);
			low = fmin(low, e.value);
			high = fmax(high, e.value);
			sample = fmax(sample, e.error);
		}
		if (isfinite(low))
			add_row(out, DIFF_OF_REQUESTS, kind, quantile[q].quantity, recorded, reproduced, low, high,
			        NORMAL_95 * sqrt(2) * sample);
	}
	free(l);
}

static void tell_requests(const struct replays *r, struct whatif *out)
{
	for (size_t i = 0; i < r->served->len; i++) {
		bool first = true;
		for (size_t k = 0; k < i && first; k++)
			first = strcmp(r->served->item[k].kind, r->served->item[i].kind) != 0;
		if (first)
			tell_kind(r, r->served->item[i].kind, out);
	}
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

static void replay_all(struct replays *r, struct rules rules, const struct whatif_change *change, size_t changes,
                       struct whatif *out)
{
	for (int variant = AS_IT_WAS; variant < VARIANTS; variant++) {
		if (variant == CHANGED)
			change_all(r->w, change, changes);
		const bool same = variant == FREED && !free_all(r->w, change, changes);
		for (int open = 0; open < 2; open++) {
			rules.open = open;
			if (same) {
				keep_same(r, open);
				continue;
			}
			replay_run(r->w, &rules);
			if (variant == AS_IT_WAS && !open)
				out->error = miss(r->w);
			keep(r, variant, open);
		}
	}
}

int whatif_of(const struct diff_side *side, const struct whatif_change *change, size_t changes, struct whatif *out,
              struct notes *notes, struct error *err)
{
	struct wants w;
	struct rules rules = { 0 };
	struct served_list served = { 0 };
	*out = (struct whatif){ 0 };
	int rc = wants_read(&w, side->topo, side->from, side->to, err);
	rc = rc ? rc : check_known(&w, err);
	rc = rc ? rc : check_quotas(&w, change, changes, err);
	rc = rc ? rc : calibrated(&w, &rules, err);
	rc = rc ? rc : served_read(&served, &w, notes, err);
	if (rc == 0) {
		struct replays r = { .w = &w, .waiting = mem_new(w.tasks, sizeof *r.waiting), .served = &served };
		for (size_t i = 0; i < w.tasks; i++) {
			waiter_of(w.topo, w.task[i].thread, &r.waiting[i]);
			r.waiting[i].recorded = (double)w.task[i].waited / ((double)(w.to - w.from) + 1);
		}
		out->slice = rules.slice;
		out->credit = rules.credit;
		replay_all(&r, rules, change, changes, out);
		tell_requests(&r, out);
		tell_waits(&r, out);
		for (int k = 0; k < 2 * VARIANTS; k++)
			free(r.again[k / 2][k % 2]);
		free(r.waiting);
	}
	served_release(&served);
	wants_release(&w);
	return rc;
}

void whatif_release(struct whatif *w)
{
	for (size_t i = 0; i < w->rows; i++)
		free(w->row[i].subject);
	free(w->row);
	*w = (struct whatif){ 0 };
}
