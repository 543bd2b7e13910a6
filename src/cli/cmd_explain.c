/* stealscope explain: explains in sentences what delayed a target. */
#include "base/base.h"
#include "cli/advice.h"
#include "cli/cli.h"
#include "cli/findings_print.h"
#include "cli/live_assertion.h"
#include "cli/query_context.h"
#include "cli/target_arg.h"
#include "report/report.h"

#define FINDINGS_SHOWN 3
#define TOP_DEFAULT 5  /* default of --top: number of threads with one name that are explained */

/* Parses --at. A printed time of day is truncated to its last digit; so if no gap contains the time, uses the start of a
 * gap that begins within the unit of that digit. */
static int find_time(const struct query_context *s, const struct target *target, const char *at, int64_t *t,
                     struct error *err)
{
	struct gap gap;
	if (window_parse_time("--at", at, s->h, t, err))
		return -1;
	if (target->kind == TARGET_MACHINE || window_time_precision(at) == 1)
		return 0;
	int found = gap_at(&s->catalog, target, *t, &gap, err);
	if (found == 0)
		found = gap_find(&s->catalog, target, *t, 1, &gap, err);
	if (found > 0 && gap.start > *t && gap.start - *t < window_time_precision(at))
		*t = gap.start;
	return found < 0 ? -1 : 0;
}

static int explain_time(struct query_context *s, const char *name, const char *at, struct error *err)
{
	struct target target;
	char *text = NULL;
	int64_t t = 0;
	if (target_parse(s, name, &target, err) || find_time(s, &target, at, &t, err) ||
	    query_answer(explain_open(&s->catalog, &target, t, err), &text, err))
		return -1;
	prose_print(text, s->named);
	free(text);
	return 0;
}

struct gaps_at { struct gap *gap; size_t len, cap; };

static int compare_gaps_at(const void *a, const void *b)
{
	const struct gap *x = a, *y = b;
	const int64_t p = x->end - x->start, q = y->end - y->start;
	if (p != q)
		return p < q ? 1 : -1;
	return x->target.kind != y->target.kind ? (x->target.kind > y->target.kind) - (x->target.kind < y->target.kind)
	    : (x->target.index > y->target.index) - (x->target.index < y->target.index);
}

/* Adds the gap of a target that contains t. */
static int add_gap_at(struct query_context *s, struct target target, int64_t t, struct gaps_at *all, struct error *err)
{
	struct gap gap;
	const int found = gap_at(&s->catalog, &target, t, &gap, err);
	if (found > 0)
		*ARRAY_PUSH(all->gap, all->len, all->cap) = gap;
	return found < 0 ? -1 : 0;
}

/* Explains the gaps of all vCPUs and guest threads at a time, longest first; at most `top` (0: all). */
static int explain_all_at(struct query_context *s, const char *at, size_t top, struct error *err)
{
	const struct catalog *catalog = &s->catalog;
	struct gaps_at all = { 0 };
	int64_t t = 0;
	int rc = window_parse_time("--at", at, s->h, &t, err);
	for (uint32_t i = 0; i < catalog->cpus && rc == 0; i++)
		if (catalog->machine[catalog->cpu[i].machine].kind == MACHINE_VM)
			rc = add_gap_at(s, (struct target){ TARGET_CPU, i }, t, &all, err);
	for (uint32_t i = 0; i < catalog->threads && rc == 0; i++)  /* of guests; of the host if it is the only machine */
		if (catalog->thread[i].tid > 0 && (catalog->machine[catalog->thread[i].machine].kind == MACHINE_VM ||
		                                   catalog->machines == 1))
			rc = add_gap_at(s, (struct target){ TARGET_THREAD, i }, t, &all, err);
	ARRAY_SORT(all.gap, all.len, compare_gaps_at);
	for (size_t i = 0; i < all.len && (!top || i < top) && rc == 0; i++) {
		char *text = NULL;
		rc = query_answer(explain_open(catalog, &all.gap[i].target, t, err), &text, err);
		if (rc == 0 && i)
			putchar('\n');
		if (rc == 0)
			prose_print(text, s->named);
		free(text);
	}
	if (rc == 0 && all.len == 0)
		puts("no vCPU or thread waited for a CPU at this time");
	if (rc == 0 && top && all.len > top)
		printf("\nshown: %zu of %zu vCPUs and threads that waited at this time, longest first (--top)\n", top, all.len);
	free(all.gap);
	return rc;
}

/* Prints the first findings on a machine, or on all machines (NULL). */
static int print_findings(struct query_context *s, const struct target *machine, struct error *err)
{
	struct findings l;
	if (findings_query(s, machine, &l, err))
		return -1;
	findings_print(s, &l, FINDINGS_SHOWN);
	putchar('\n');
	findings_release(&l);
	return 0;
}

/* Prints the findings as csv or json. */
static int report_target(struct query_context *s, const char *name, struct report_how how, struct error *err)
{
	struct target target;
	struct findings l = { 0 };
	int rc = name ? target_parse(s, name, &target, err) : 0;
	if (rc == 0)
		rc = findings_query(s, name ? &target : NULL, &l, err);
	if (rc == 0) {
		query_context_about(s, name ? &target : NULL, how);
		rc = report_findings(stdout, how, &s->catalog, &l, &s->origin, err);
	}
	findings_release(&l);
	return rc;
}

/* Explains n targets one after the other (NULL: all machines together); prints warnings first. */
static int explain_each(struct query_context *s, const struct target *target, size_t n, bool with_advice, struct error *err)
{
	if ((!target || target->kind == TARGET_MACHINE) && print_findings(s, target, err))
		return -1;
	if (!target || target->kind == TARGET_MACHINE) {
		query_context_about(s, target, REPORT_WHOLE(FORMAT_TEXT));
		origin_write_head(&s->origin, stdout);
	}
	for (size_t i = 0; i < n; i++) {
		const struct target *current = target ? &target[i] : NULL;
		char *text = NULL;
		if (explain_window(&s->catalog, current, s->window.from, s->window.to, &text, err))
			return -1;
		if (i)
			putchar('\n');
		prose_print(text, s->named);
		free(text);
		if (with_advice && advice_print(s, current, err))
			return -1;
	}
	return 0;
}

/* Explains the targets with this name, sorted by time lost; at most `top` (0: all). */
static int explain_named(struct query_context *s, const char *name, size_t top, bool with_advice, struct error *err)
{
	struct target *target = NULL;
	size_t n = 0;
	int rc = target_find_all(s, name, &target, &n, err);
	if (rc == 0)
		rc = explain_each(s, target, top && n > top ? top : n, with_advice, err);
	if (rc == 0 && top && n > top)
		printf("\nshown: %zu of %zu targets with this name, those that lost most time (--top)\n", top, n);
	free(target);
	return rc;
}

/* Returns the share of the time that the target wanted to run; COLUMN of the assertion as in live_assertion.h. *why: the
 * reason if the recording does not show this time; otherwise NULL. */
static int measure(struct query_context *s, const struct target *target, const struct live_assertion *a, double *share,
                   const char **why, struct error *err)
{
	struct demand d;
	struct culprit_sums sums;
	struct findings l;
	int64_t throttled = 0;
	if (findings_query(s, target, &l, err))
		return -1;
	const enum note_code reason = l.item[0].why;
	const bool is_hidden = !catalog_has_host_trace(&s->catalog, target) && a->column != ASSERT_RUN;
	*why = NULL;
	if (l.item[0].kind == FINDING_NOTHING || is_hidden)
		*why = reason < NOTE_CODE_COUNT ? note_row[reason].name : "no event";
	findings_release(&l);
	if (demand_of(&s->catalog, target, s->window.from, s->window.to, &d, err) ||
	    query_answer(culprit_sums_open(&s->catalog, target, s->window.from, s->window.to), &sums, err))
		return -1;
	for (size_t i = 0; i < sums.rows; i++)
		for (size_t k = 0; k < sums.row[i].culprits; k++)
			if (sums.actor[sums.row[i].culprit[k].culprit].kind == FLOW_LIMITED)
				throttled += sums.row[i].culprit[k].ns;
	culprit_sums_release(&sums);
	const struct live_times ns = { .ran = d.ran, .stolen = d.lost - throttled, .throttled = throttled };
	*share = d.ran + d.lost > 0 ? (double)live_assertion_time(a, &ns) / (double)(d.ran + d.lost) : 0;
	return 0;
}

/* Checks TARGET.lost<5% and the like, each on all targets with that name. */
static int check_assertions(struct query_context *s, const struct opt_list *list, struct error *err)
{
	size_t failed = 0;
	for (size_t i = 0; i < list->len; i++) {
		struct live_assertion a;
		struct target *target = NULL;
		size_t n = 0, fails = 0;
		double share = 0, worst = 0;
		const char *why = NULL, *unknown = NULL;
		int rc = live_assertion_parse(list->item[i], &a, err);
		if (rc == 0)
			rc = target_find_all(s, a.name, &target, &n, err);
		for (size_t k = 0; k < n && rc == 0; k++) {
			rc = measure(s, &target[k], &a, &share, &why, err);
			unknown = unknown ? unknown : why;
			fails += share >= a.limit || why;
			worst = share > worst ? share : worst;
		}
		free(target);
		if (rc)
			return -1;
		failed += fails > 0;
		if (worst < a.limit && unknown)
			printf("FAILS  %s: unknown (%s)\n", list->item[i], unknown);
		else
			printf("%s  %s: %.1f %%\n", fails ? "FAILS" : "holds", list->item[i], 100 * worst);
	}
	return failed ? error_set(err, STATUS_ASSERTION, NULL, "%zu of %zu assertion%s not met", failed, list->len,
	                          list->len == 1 ? "" : "s") : 0;
}

struct explain_request {
	const char *name, *at;
	unsigned top;
	bool with_advice;
	struct report_how how;
	struct opt_list assertion;
};

static int explain_recording(const struct explain_request *r, char *recording, const struct window_options *when,
                             struct error *err)
{
	if (r->at && (when->from || when->to))
		return error_set(err, STATUS_USAGE, "omit --from and --to", "--at selects a single time and excludes a window");
	if (r->how.format != FORMAT_TEXT && (r->at || r->with_advice))
		return error_set(err, STATUS_USAGE, "csv and json list the findings of a window", "%s supports only text",
		                 r->at ? "--at" : "--advise");
	struct query_context s;
	int rc = query_context_open(&s, recording, when, err);
	if (rc == 0 && r->assertion.len)
		rc = check_assertions(&s, &r->assertion, err);
	else if (rc == 0)
		rc = r->how.format != FORMAT_TEXT ? report_target(&s, r->name, r->how, err)
		     : r->at   ? r->name ? explain_time(&s, r->name, r->at, err) : explain_all_at(&s, r->at, r->top, err)
		     : r->name ? explain_named(&s, r->name, r->top, r->with_advice, err)
		               : explain_each(&s, NULL, 1, r->with_advice, err);
	return query_context_close(&s, rc, err);
}

int cmd_explain(int argc, char **argv, struct error *err)
{
	struct window_options when = { 0 };
	struct explain_request r = { .top = TOP_DEFAULT, .how = REPORT_HOW };
	const struct opt opt[] = {
		WINDOW_OPTIONS(&when),
		{ "at", 0, OPT_TEXT, "TIME", "only the gap or interval at this time", &r.at, NULL },
		{ "top", 0, OPT_COUNT, "N", "maximum threads of one name (5; 0 = all)", &r.top, NULL },
		{ "assert", 0, OPT_LIST, "CONDITION", "exit status 3 unless true: 'web.service.lost<5%'", &r.assertion, NULL },
		ADVISE_OPTION(&r.with_advice),
		ANSWER_OPTIONS(&r.how),
	};
	const struct opts opts = { "explain RECORDING [TARGET]",
	                          "Explain in sentences what delayed a target, with the confidence.",
	                           opt, sizeof opt / sizeof *opt, 1, 2 };
	int first, rc = opts_parse(&opts, argc, argv, &first, err);
	if (rc == 0) {
		r.name = argc - first > 1 ? argv[first + 1] : NULL;
		rc = explain_recording(&r, argv[first], &when, err);
	}
	free(r.assertion.item);
	return rc;
}
