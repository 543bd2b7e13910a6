/* Each figure is an interval over what is not known: whether who waited would have started its next work earlier (closed
 * loop) or when it did (open loop); whether what interrupts a request, timers and handlers, comes with its work or with
 * time; by how much the replay without any change misses what was recorded; and that another recording of the same would
 * have been another sample. */
#include "compare/whatif/whatif_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "compare/whatif/apply_changes.h"
#include "compare/diff/bootstrap.h"

#define THREADS_FROM 0.01    /* waits of the host's threads are told from this share of the window on */
#define LEAST_WAIT 0.001     /* of a CPU: what two runs of the same may differ by */
#define PINS_MATTER 0.1
#define TRIED 0.01           /* of the window */
#define UNTRIED_FROM 0.05
#define PAIRS_TOLD 3
#define MISSED_FROM 0.05     /* of a CPU */
#define UNLIKE_MOST 1.3      /* half octaves; with weights that are off by 2 some 1.6, with the right ones 0.4 */
#define UNLIKE_FROM 0.02     /* of a CPU that is waited */
#define SKEW_MOST 0.3
#define LATE_MOST 0.1        /* of the requests */
#define VAGUE 4              /* times the low end: an interval that reaches beyond, and has what was recorded in it */
#define VAGUE_FROM 0.05      /* of a CPU that is waited: one that is narrower says enough */

#define COUNT(array) (sizeof(array) / sizeof *(array))

#define CHANCE 0.05          /* that the truth of another run lies outside */

/* Times a standard error: another run of the same is another sample.  The error may be that of the longest blocks. */
static double another_run(double chance)
{
	return student_beyond(chance, FEWEST_BLOCKS - 1) * sqrt(2);
}

/* What the model does wrongly it does wrongly again, and all to one side: where it counts for as much as chance, the truth
 * lies outside on that side alone, so all of the chance is there.  With none, half of it is on either side.  It is what the
 * best models of both kinds miss of this figure (reproduced), and of what the changes change, as large a part as the replay
 * misses of all time that was waited or held back. */
static struct whatif_row *add_row(struct whatif *out, unsigned kind, const char *subject, unsigned quantity,
                                  double recorded, const double reproduced[2], double low, double high, double value,
                                  double least, double sample)
{
	const double miss = fmax(fabs(reproduced[0] - recorded), fabs(reproduced[1] - recorded));
	const double off = recorded > 0 ? miss / recorded * value : 0;
	const double wrong = hypot(off, out->missed * (value - recorded));
	const double reach = least + fmax(another_run(CHANCE / 2) * sample, wrong + another_run(CHANCE) * sample);
	struct whatif_row *row = ARRAY_PUSH(out->row, out->rows, out->cap);
	*row = (struct whatif_row){ .subject = mem_dup(subject), .kind = (uint8_t)kind,
		.quantity = (uint8_t)quantity, .recorded = recorded, .reproduced = reproduced[0], .value = value,
		.low = fmax(0, low - reach), .high = high + reach };
	return row;
}

/* The error of a tail is in proportion to its length: whoever saw a short one thinks the error small, whoever saw a long
 * one large.  So the truth may be further above what was seen than below it. */
static void skew(struct whatif_row *row, double low, double high, double tail)
{
	const double reach = row->high - high, part = tail > 0 ? fmin(SKEW_MOST, reach / (2 * tail)) : 0;
	row->low = fmax(0, low - (1 - part) * reach);
	row->high = high + (1 + part) * reach;
}

static void list_add(char **list, const char *name)
{
	char *more = mem_printf("%s%s%s", *list, **list ? ", " : "", name);
	free(*list);
	*list = more;
}

/* It may be as it was, or several times as much or as little, which is no answer. */
static void judge_vague(struct replays *r, struct whatif_row *row)
{
	const bool waited = row->quantity == DIFF_LOST;
	if (row->low > row->recorded || row->high < row->recorded || row->high <= VAGUE * row->low ||
	    (waited && row->high - row->low <= VAGUE_FROM))
		return;
	char low[40], high[40];
	diff_value_text(low, sizeof low, row->quantity, row->low, false);
	diff_value_text(high, sizeof high, row->quantity, row->high, false);
	const char *what = waited ? "waited" : diff_quantity_name[row->quantity];
	char *name = mem_printf("%s %s (%s to %s)", row->subject, what, low, high);
	r->vague = r->vague ? r->vague : mem_dup("");
	list_add(&r->vague, name);
	free(name);
	row->vague = true;
}

static int waiting_cmp(const void *pa, const void *pb)
{
	const struct waiting *a = pa, *b = pb;
	return a->kind != b->kind ? (a->kind > b->kind) - (a->kind < b->kind) : strcmp(a->subject, b->subject);
}

/* What comes out is another thing for those who may be pinned, and for those who are not. */
static bool hangs_on_pins(const double low[2], const double high[2], double least)
{
	const double apart = fmax(low[0], low[1]) - fmin(high[0], high[1]);
	return apart > fmax(least, PINS_MATTER * fmin(high[0], high[1]));
}

static double sample_error(const struct replays *r, const struct waiting *x)
{
	double den[DIFF_SLICES];
	for (unsigned i = 0; i < DIFF_SLICES; i++)
		den[i] = ((double)(r->w->to - r->w->from) + 1) / DIFF_SLICES;
	return fmax(estimate_ratio(x->in[0], den).error, estimate_ratio(x->in[1], den).error);
}

/* The replay without a change makes it wait quite another time. */
static bool is_missed(const struct waiting *x)
{
	const double again = x->replayed.value[AS_IT_WAS][0], most = fmax(x->recorded, again);
	return !x->gone && most > MISSED_FROM && fabs(again - x->recorded) > WHATIF_MISSES * most;
}

static void tell_missed(const char *who, struct whatif *out, struct notes *notes)
{
	if (!*who)
		return;
	out->doubted = true;
	notes_add(notes, NOTE_DOUBT, NULL, "%s waited quite another time than in the replay without a change: what it weighs, "
	          "or where it may run, is otherwise than is known (SCHED_IDLE, control groups), and what is told of it is a "
	          "guess", who);
}

void outlook_waits(struct replays *r, struct whatif *out, struct notes *notes)
{
	char *missed = mem_dup("");
	size_t n = 0;
	struct waiting *a = r->waiting;
	if (r->w->tasks)
		qsort(a, r->w->tasks, sizeof *a, waiting_cmp);
	for (size_t i = 0; i < r->w->tasks; i++) {
		if (n == 0 || waiting_cmp(&a[n - 1], &a[i])) {
			a[n++] = a[i];
			a[n - 1].threads = 1;
			continue;
		}
		a[n - 1].threads++;
		a[n - 1].recorded += a[i].recorded;
		a[n - 1].held += a[i].held;
		a[n - 1].held_then += a[i].held_then;
		a[n - 1].gone &= a[i].gone;
		for (unsigned k = 0; k < RUNS * VARIANTS; k++)
			a[n - 1].replayed.value[k / RUNS][k % RUNS] += a[i].replayed.value[k / RUNS][k % RUNS];
		for (int k = 0; k < 2 * DIFF_SLICES; k++)
			a[n - 1].in[k / DIFF_SLICES][k % DIFF_SLICES] += a[i].in[k / DIFF_SLICES][k % DIFF_SLICES];
	}
	for (size_t i = 0; i < n; i++) {
		double low[2] = { INFINITY, INFINITY }, high[2] = { 0 };
		for (unsigned k = 0; k < 2 * r->runs; k++) {
			const double x = a[i].replayed.value[CHANGED + k % 2][k / 2];
			low[k % 2] = fmin(low[k % 2], x);
			high[k % 2] = fmax(high[k % 2], x);
		}
		if (is_missed(&a[i]))
			list_add(&missed, a[i].subject);
		if (a[i].gone)
			continue;
		const double x[2] = { fmin(low[0], low[1]), fmax(high[0], high[1]) };
		if (a[i].kind != DIFF_OF_MACHINE && fmax(a[i].recorded, x[1]) < THREADS_FROM)
			continue;
		if (hangs_on_pins(low, high, LEAST_WAIT)) {
			r->untold++;
			continue;
		}
		struct whatif_row *row = add_row(out, a[i].kind, a[i].subject, DIFF_LOST, a[i].recorded,
		                                 a[i].replayed.value[AS_IT_WAS], x[0], x[1], (x[0] + x[1]) / 2, LEAST_WAIT,
		                                 sample_error(r, &a[i]));
		row->held = a[i].held;
		row->held_then = a[i].held_then;
		row->high = fmin(row->high, a[i].threads);
		judge_vague(r, row);
	}
	tell_missed(missed, out, notes);
	free(missed);
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

/* more, fewer: shares of requests in other company, up to which it is told. */
static const struct { uint8_t quantity; double p; size_t requests; double more, fewer; } quantile[] = {
	{ DIFF_P50, 0.5, 20, 0.2, 0.5 }, { DIFF_P90, 0.9, 50, 0.05, 0.2 }, { DIFF_P99, 0.99, 100, 0.015, 0.02 },
};

/* A guest that gets less than it wants in the long run answers ever later: how late hangs on how long one looks. */
static bool piles_up(const struct replays *r, const char *kind, struct notes *notes)
{
	size_t all = 0, late = 0;
	for (size_t i = 0; i < r->served->len; i++) {
		const bool of = strcmp(r->served->item[i].kind, kind) == 0 && !r->served->item[i].first->gone;
		all += of;
		late += of && (r->ends[i] == INT64_MIN || r->ends[i] > r->w->to);
	}
	if ((double)late <= LATE_MOST * (double)all)
		return false;
	notes_add(notes, NOTE_DOUBT, NULL, "%s: what requests would take is not told: if they come by the clock, %zu of %zu "
	          "are not answered by the end of the window, and the longer it were the later they would be", kind, late, all);
	return true;
}

struct answered { int64_t start, end, then; };

static int by_start(const void *pa, const void *pb)
{
	const struct answered *a = pa, *b = pb;
	return a->start != b->start ? (a->start > b->start) - (a->start < b->start) : (a->end > b->end) - (a->end < b->end);
}

/* The share of a kind's requests that, coming by the clock, find another one unanswered and did not, less that of those who
 * did and would not: by chance there are some of both. */
static double meet_more(const struct replays *r, const char *kind)
{
	struct answered *f = mem_new(r->served->len, sizeof *f), last = { .end = INT64_MIN, .then = INT64_MIN };
	size_t n = 0;
	double more = 0;
	for (size_t i = 0; i < r->served->len; i++) {
		const struct served *s = &r->served->item[i];
		if (strcmp(s->kind, kind) == 0)
			f[n++] = (struct answered){ s->start, s->start + s->latency, r->ends[i] == INT64_MIN ? INT64_MAX : r->ends[i] };
	}
	if (n)
		qsort(f, n, sizeof *f, by_start);
	for (size_t i = 0; i < n; i++) {
		more += (last.then > f[i].start) - (last.end > f[i].start);
		last.end = f[i].end > last.end ? f[i].end : last.end;
		last.then = f[i].then > last.then ? f[i].then : last.then;
	}
	free(f);
	return n ? more / (double)n : 0;
}

/* Guests keep the order of their work.  Requests that meet anew would share their vCPU, and those who began first be
 * answered later; those that only a quota had made meet would not come so early. */
static bool is_regrouped(const struct replays *r, double more, size_t q)
{
	return more > quantile[q].more || (r->apart && -more > quantile[q].fewer);
}

static void note_regrouped(double more, const char *kind, const char *which, struct notes *notes)
{
	if (*which)
		notes_add(notes, NOTE_DOUBT, NULL, "%s: not told (%s): %.0f%% %s of the requests would come while another one is "
		          "unanswered than did, and in which order a guest would do its work then is not known", kind, which,
		          100 * fabs(more), more > 0 ? "more" : "fewer");
}

static void tell_kind(struct replays *r, const char *kind, struct whatif *out, struct notes *notes)
{
	struct latency *l = mem_new(r->served->len, sizeof *l);
	const double more = meet_more(r, kind);
	char *regrouped = mem_dup("");
	for (size_t q = 0; q < COUNT(quantile); q++) {
		const double p = quantile[q].p;
		double low[2] = { INFINITY, INFINITY }, high[2] = { 0 }, closed[2] = { INFINITY, 0 }, sample = 0, length = 0;
		size_t n = latencies_of(r, kind, NULL, false, l);
		if (n < quantile[q].requests)
			continue;
		const double recorded = quantile_value(l, n, p);
		double reproduced[2];
		for (unsigned k = 0; k < 2; k++) {
			n = latencies_of(r, kind, r->again[AS_IT_WAS][k], false, l);
			reproduced[k] = n ? quantile_value(l, n, p) : 0;
		}
		for (unsigned k = 0; k < 4 * r->runs; k++) {
			n = latencies_of(r, kind, r->again[CHANGED + k / 2 % 2][k / 4], k % 2, l);
			if (n < quantile[q].requests)
				continue;
			const double value = quantile_value(l, n, p);
			low[k / 2 % 2] = fmin(low[k / 2 % 2], value);
			high[k / 2 % 2] = fmax(high[k / 2 % 2], value);
			if (k / 4 % 2 != OPEN) {
				closed[0] = fmin(closed[0], value);
				closed[1] = fmax(closed[1], value);
			}
			if (k / 2 == 0 || k / 2 == 2) {
				const struct tail tail = p < 0.9 ? (struct tail){ 0, 0 } : quantile_tail(l, n, p);
				sample = fmax(sample, fmax(estimate_quantile(l, n, p).error, tail.error));
				length = fmax(length, tail.length);
			}
		}
		const double least = fmin(low[0], low[1]), most = fmax(high[0], high[1]);
		if (isfinite(least) && is_regrouped(r, more, q))
			list_add(&regrouped, diff_quantity_name[quantile[q].quantity]);
		else if (isfinite(low[0]) && isfinite(low[1]) && hangs_on_pins(low, high, 0))
			r->untold++;
		else if (isfinite(least)) {
			/* By the clock, what waited for a quota in the midst of a request waits as long: a bound, and no more. */
			const double middle = r->apart && isfinite(closed[0]) ? (closed[0] + closed[1]) / 2 : (least + most) / 2;
			struct whatif_row *row = add_row(out, DIFF_OF_REQUESTS, kind, quantile[q].quantity, recorded, reproduced, least,
			                                 most, middle, 0, sample);
			skew(row, least, most, length);
			judge_vague(r, row);
		}
	}
	note_regrouped(more, kind, regrouped, notes);
	free(regrouped);
	free(l);
}

void outlook_requests(struct replays *r, struct whatif *out, struct notes *notes)
{
	for (size_t i = 0; i < r->served->len; i++) {
		bool first = true;
		for (size_t k = 0; k < i && first; k++)
			first = strcmp(r->served->item[k].kind, r->served->item[i].kind) != 0;
		if (first && !piles_up(r, r->served->item[i].kind, notes))
			tell_kind(r, r->served->item[i].kind, out, notes);
	}
}

/* ---- Doubts */

/* Says what is not told, and who it hangs on. */
void outlook_untold(const struct replays *r, const struct whatif_change *change, size_t changes, struct notes *notes)
{
	char name[SUBJECT_TEXT], *who = mem_dup("");
	uint32_t last = UINT32_MAX;
	for (size_t i = 0; i < r->w->tasks && r->untold; i++) {
		const struct replay_task *t = &r->w->task[i];
		if (!task_may_be_pinned(t) || apply_places(t, change, changes) || t->kin == last ||
		    (double)t->waited < THREADS_FROM * (double)(r->w->to - r->w->from))
			continue;
		task_name(r->w, t, name);
		list_add(&who, name);
		last = t->kin;
	}
	if (r->untold)
		notes_add(notes, NOTE_DOUBT, NULL, "not told (%zu): what hangs on whether %s may leave the one CPU that each "
		          "was seen on; 'free WHO' or 'pin WHO -> CPUn', as a change more, says it", r->untold,
		          *who ? who : "some who hardly wait");
	free(who);
}

void outlook_vague(struct replays *r, struct notes *notes)
{
	if (r->vague)
		notes_add(notes, NOTE_DOUBT, NULL, "not told, since it may be as it was, or several times as much or as little: "
		          "%s", r->vague);
	free(r->vague);
	r->vague = NULL;
}

/* Waits of other lengths: the CPUs were shared by other rules, or weights. */
void outlook_unlike(const struct wants *w, double unlike, struct whatif *out, struct notes *notes)
{
	double waited = 0;
	for (size_t i = 0; i < w->tasks; i++)
		waited += (double)w->task[i].waited;
	if (unlike <= UNLIKE_MOST || waited < UNLIKE_FROM * (double)(w->to - w->from) || out->error > WHATIF_MISSES)
		return;
	out->doubted = true;
	notes_add(notes, NOTE_DOUBT, NULL, "the replay without a change makes waits of other lengths than those recorded: what "
	          "threads weigh may be otherwise than their nice levels say (SCHED_IDLE, control groups)");
}

/* A name of that number. */
static const struct replay_task *one_of(const struct wants *w, uint32_t kin)
{
	size_t i = 0;
	while (w->task[i].kin != kin)
		i++;
	return &w->task[i];
}

/* What the untried ones weigh is not known: no event tells who is SCHED_IDLE, few recordings what groups weigh. */
void outlook_untried(const struct replays *r, struct whatif *out, struct notes *notes)
{
	const double span = (double)(r->w->to - r->w->from) + 1;
	struct contest *c;
	char *who = mem_dup("");
	const size_t n = contests_untried(&r->met[0], &r->met[1], (int64_t)(TRIED * span), (int64_t)(UNTRIED_FROM * span),
	                                  r->w->kins, &c);
	size_t untried = 0;
	for (size_t i = 0; i < n; i++) {
		const struct replay_task *a = one_of(r->w, c[i].a), *b = one_of(r->w, c[i].b);
		char of[2][SUBJECT_TEXT];
		if (a->group >= 0 && b->group >= 0)
			continue;
		if (untried++ >= PAIRS_TOLD)
			continue;
		task_name(r->w, a, of[0]);
		task_name(r->w, b, of[1]);
		char *pair = mem_printf("%s and %s", of[0], of[1]);
		list_add(&who, pair);
		free(pair);
	}
	out->doubted |= untried > 0;
	if (untried)
		notes_add(notes, NOTE_DOUBT, NULL, "this recording did not try what %s%s weigh against each other: that is taken "
		          "from their nice levels, and may be otherwise (SCHED_IDLE, control groups)", who,
		          untried > PAIRS_TOLD ? ", and others," : "");
	free(who);
	free(c);
}
