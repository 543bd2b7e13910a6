/* Asks all questions about a window, and records which parts outside it were read. */
#include "index/recorded_reads.h"

#include <stdatomic.h>

#include "base/base.h"
#include "base/bisect.h"
#include "base/parallel.h"
#include "query/query.h"

#define MERGE_MIN 4096  /* new parts that are worth a merge */

/* ---- Parts */

ORDER_BY(compare_parts, struct recorded_read, RISING(attr) RISING(start))

/* Sorts the parts and joins those that overlap or are adjacent. */
static void merge_parts(struct recorded_reads *r)
{
	size_t n = 0;
	ARRAY_SORT(r->part, r->len, compare_parts);
	for (size_t i = 0; i < r->len; i++) {
		struct recorded_read *last = n ? &r->part[n - 1] : NULL, *p = &r->part[i];
		if (!last || last->attr != p->attr || (last->end < p->start && last->end + 1 < p->start))
			r->part[n++] = *p;
		else if (last->end < p->end)
			last->end = p->end;
	}
	r->len = r->merged = n;
}

static void add_part(void *arg, uint32_t attr, int64_t start, int64_t end)
{
	struct recorded_reads *r = arg;
	pthread_mutex_lock(&r->lock);
	struct recorded_read *last = r->len > r->merged ? &r->part[r->len - 1] : NULL;
	if (last && last->attr == attr && start <= last->end && end >= last->start) {
		last->start = start < last->start ? start : last->start;
		last->end = end > last->end ? end : last->end;
	} else {
		*ARRAY_PUSH(r->part, r->len, r->cap) = (struct recorded_read){ start, end, attr };
		if (r->len - r->merged > r->merged + MERGE_MIN)
			merge_parts(r);
	}
	pthread_mutex_unlock(&r->lock);
}

size_t recorded_reads_find(const struct recorded_reads *r, uint32_t attr, uint32_t last, size_t *n)
{
	size_t first, end;
	BISECT(first, r->len, r->part[first].attr < attr);
	BISECT(end, r->len, r->part[end].attr <= last);
	*n = end - first;
	return first;
}

void recorded_reads_release(struct recorded_reads *r)
{
	free(r->part);
	r->part = NULL;
	pthread_mutex_destroy(&r->lock);
}

/* ---- Questions. A question that has no answer here fails in the same way for the cut, so failures are ignored:
 * cut_history() checks for damage. */

static void ask_query(struct query *q)
{
	if (q)
		(void)query_run(q, NULL, NULL);
	query_close(q);
}

/* Asks for the summary of a machine and its threads (NULL: all), in numbers and in sentences. */
static void ask_summary(const struct catalog *catalog, struct summary_options options)
{
	struct summary summary;
	char *text = NULL;
	options.gaps = options.grouping == GROUP_NONE;
	if (query_answer(summary_open(catalog, &options), &summary, NULL) < 0)
		return;
	if (options.gaps)
		(void)explain_window(catalog, options.only, options.from, options.to, &text, NULL);
	free(text);
	summary_release(&summary);
}

static int drop_interval(void *arg, const struct gap_interval *p)
{
	(void)arg;
	(void)p;
	return 0;
}

static void ask_about_all(const struct catalog *catalog, int64_t from, int64_t to)
{
	struct findings findings;
	struct poll_list polls;
	struct preempted_code_list code;
	struct periodic_list timers;
	struct target *target = NULL;
	const size_t n = core_share_targets(catalog, NULL, &target);
	(void)query_answer(findings_open(catalog, NULL, from, to), &findings, NULL);
	findings_release(&findings);
	for (int by = 0; by < THREAD_GROUPINGS; by++)
		ask_summary(catalog, (struct summary_options){ .from = from, .to = to, .grouping = (enum thread_grouping)by });
	/* `steal --by thread` reads the same as the summary, and gap_each_interval() needs no memory for its cells. */
	ask_query(steal_open(catalog, &(struct steal_options){ .by = STEAL_BY_MACHINE, .from = from, .to = to }));
	(void)gap_each_interval(catalog, from, to, drop_interval, NULL, &(struct progress){ 0 }, NULL);
	ask_query(exits_open(catalog, &(struct exit_options){ .from = from, .to = to, .by_thread = true }, NULL));
	ask_query(locks_open(catalog, NULL, from, to));
	ask_query(core_share_open(catalog, target, n, from, to));
	free(target);
	ask_query(waits_open(catalog, NULL, from, to));
	if (polls_of(catalog, NULL, from, to, &polls, NULL) == 0)
		polls_release(&polls);
	if (preempted_code_of(catalog, NULL, from, to, &code, NULL) == 0)
		preempted_code_release(&code);
	if (periodic_timers_of(catalog, from, to, &timers, NULL) == 0)
		periodic_release(&timers);
}

static void ask_about_machine(const struct catalog *catalog, const struct target *s, int64_t from, int64_t to)
{
	ask_summary(catalog, (struct summary_options){ .only = s, .from = from, .to = to });
	ask_query(gap_list_open(catalog, s, &(struct gap_options){ .from = from, .to = to }));
}

/* Asks about a vCPU or thread, unless it does not exist in the window. */
static void ask_about_row(const struct catalog *catalog, const struct target *s, int64_t from, int64_t to)
{
	struct demand demand;
	char *text = NULL;
	if (s->kind == TARGET_THREAD && (demand_of(catalog, s, from, to, &demand, NULL) < 0 || demand.alive == 0))
		return;
	ask_query(path_open(catalog, s, from, to, NULL));
	ask_query(waits_open(catalog, s, from, to));
	if (explain_window(catalog, s, from, to, &text, NULL) < 0)  /* reads the flow; a CPU of the host has only that */
		ask_query(flow_open(catalog, s, from, to, &(struct flow_options){ 0 }, NULL));
	free(text);
}

struct row_questions {
	const struct catalog *catalog;
	int64_t from, to;
	struct progress progress;
	atomic_uint asked;       /* row count */
	unsigned rows;
	bool cancelled;
};

/* Asks about row i: a CPU, or a thread. */
static int ask_row(void *arg, size_t i)
{
	struct row_questions *s = arg;
	const bool is_cpu = i < s->catalog->cpus;
	const struct target row = { is_cpu ? TARGET_CPU : TARGET_THREAD, (uint32_t)(is_cpu ? i : i - s->catalog->cpus) };
	ask_about_row(s->catalog, &row, s->from, s->to);
	atomic_fetch_add(&s->asked, 1);
	return 0;
}

static bool report_rows(void *arg)
{
	struct row_questions *s = arg;
	s->cancelled = s->progress.tick && s->progress.tick(s->progress.arg, "asking", atomic_load(&s->asked), s->rows);
	return !s->cancelled;
}

/* Asks all questions. Returns -1 if the user cancelled. */
static int ask_all(const struct catalog *catalog, int64_t from, int64_t to, struct progress progress, struct error *err)
{
	struct row_questions s = { .catalog = catalog, .from = from, .to = to, .progress = progress,
	                           .rows = catalog->cpus + catalog->threads };
	ask_about_all(catalog, from, to);
	for (uint32_t i = 0; i < catalog->machines; i++)
		ask_about_machine(catalog, &(struct target){ TARGET_MACHINE, i }, from, to);
	const struct parallel p = { .workers = parallel_workers(0), .task = ask_row, .watch = report_rows, .arg = &s };
	(void)parallel_run(&p, s.rows);
	return s.cancelled ? error_set(err, STATUS_CANCELLED, NULL, "cancelled") : 0;
}

int recorded_reads_collect(struct recorded_reads *r, struct history *h, int64_t from, int64_t to, struct progress progress,
                           struct error *err)
{
	struct catalog catalog;
	*r = (struct recorded_reads){ 0 };
	pthread_mutex_init(&r->lock, NULL);
	if (from <= history_first(h) && to >= history_last(h))
		return 0;  /* nothing lies outside */
	history_watch(h, from, to, add_part, r);
	int rc = catalog_open(&catalog, h, err);
	if (rc == 0) {
		rc = ask_all(&catalog, from, to, progress, err);
		catalog_release(&catalog);
	}
	history_watch(h, from, to, NULL, NULL);
	merge_parts(r);
	return rc;
}
