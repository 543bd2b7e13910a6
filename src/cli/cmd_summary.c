/* stealscope summary and stealscope threads: list the time that machines and threads lost, with top culprits. */
#include "base/base.h"
#include "cli/advice.h"
#include "cli/cli.h"
#include "cli/findings_print.h"
#include "cli/query_context.h"
#include "cli/target_arg.h"

#define PROSE_TEXT 76  /* text in a line of prose_print() */

#define LINES_AFTER 3  /* threads: heading; omitted threads */

#define GROUP_OPTION(dest) \
	{ "group", 0, OPT_CHOICE, "BY", "one row for threads of equal name, process or cgroup", (dest), thread_grouping_name }

#define SORT_OPTION(dest) \
	{ "sort", 0, OPT_CHOICE, "ORDER", "lost (default), share, longest, p99, gaps, ran, life, id", (dest), \
	  summary_order_name }

/* Form of the answer. */
struct summary_how {
	int order, grouping;     /* enum summary_order, enum thread_grouping */
	unsigned top;            /* maximum of threads; TOP_FIT: as many as fit */
};

/* Queries all machines, or the machine with this name (NULL: all), which is stored in *target. */
static int query_summary(struct query_context *ctx, const char *machine, const struct summary_how *as,
                         struct summary *out, struct target *target, struct error *err)
{
	struct summary_options options = { .from = ctx->window.from, .to = ctx->window.to, .gaps = true,
		.grouping = (enum thread_grouping)as->grouping };
	if (machine && target_parse(ctx, machine, target, err))
		return -1;
	if (machine && target->kind != TARGET_MACHINE)
		return error_set(err, STATUS_USAGE, "stealscope explain accepts threads and vCPUs", "'%s' is not a machine",
		                 machine);
	options.only = machine ? target : NULL;
	if (query_context_answer(summary_open(&ctx->catalog, &options), out, err))
		return -1;
	summary_sort(out, &ctx->catalog, (enum summary_order)as->order);
	return 0;
}

/* Computes the shared cores of all rows. *known: points to out; NULL if the topology is unknown, or for groups. */
static int query_cores(const struct query_context *ctx, const struct summary *s, struct core_share *out,
                       const struct core_share **known, struct error *err)
{
	struct query *q = core_share_open_summary(&ctx->catalog, s);
	*known = q ? out : NULL;
	*out = (struct core_share){ 0 };
	return q ? query_context_answer(q, out, err) : 0;
}

/* Counts the lines around the thread table: verdict, heading, machines, and what follows. */
static size_t other_lines(const struct query_context *ctx, const struct summary *s, const struct finding *verdict)
{
	size_t lines = 1 + s->machines + 2 + 3, polled = 0;  /* heading; the lane's legend; omitted threads */
	int64_t ns[POLL_OUTCOME_COUNT];
	bool known = false;
	lines += summary_is_doubtful(s);
	if (verdict)
		lines += 2 + (strlen("verdict: ") + strlen(verdict->text) + strlen(verdict->command) + 2 * TIME_TEXT) / PROSE_TEXT;
	for (size_t i = 0; i < s->machines; i++) {
		const struct target *target = &s->row[i].target;
		polled += ctx->catalog.machine[target->index].kind == MACHINE_VM &&
		    polled_time(&ctx->catalog, target, s->start, s->end, ns, &known, NULL) >= 0 && known;
	}
	return lines + polled + (polled > 0);
}

static int print_summary(struct query_context *ctx, const char *machine, const struct summary_how *as,
                         struct report_how how, bool with_advice, struct error *err)
{
	struct summary s;
	struct target target;
	if (query_summary(ctx, machine, as, &s, &target, err))
		return -1;
	query_context_about(ctx, machine ? &target : NULL, how);
	struct core_share share;
	struct findings findings = { 0 };
	struct summary_parts parts = { .s = &s, .findings = machine ? NULL : &findings, .file = ctx->named };
	int rc = query_cores(ctx, &s, &share, &parts.cores, err);
	if (!machine && rc == 0)
		rc = findings_query(ctx, NULL, &findings, err);
	parts.top = rc ? 0 : query_context_fit_rows(ctx, as->top, REPORT_SUMMARY_TOP, other_lines(ctx, &s, findings.item), how);
	if (rc == 0)
		rc = report_summary(stdout, how, &ctx->catalog, &parts, &ctx->origin, err);
	if (rc == 0 && with_advice)
		rc = advice_print(ctx, machine ? &target : NULL, err);
	core_share_release(&share);
	summary_release(&s);
	findings_release(&findings);
	return rc;
}

int cmd_summary(int argc, char **argv, struct error *err)
{
	struct window_options when = { 0 };
	struct summary_how as = { .order = SUMMARY_BY_LOST, .grouping = GROUP_NONE, .top = TOP_FIT };
	bool with_advice = false;
	struct report_how how = REPORT_HOW;
	const struct opt opt[] = {
		WINDOW_OPTIONS(&when),
		{ "top", 0, OPT_COUNT, "N", "maximum threads (20, or as many as fit); 0 = all", &as.top, NULL },
		SORT_OPTION(&as.order),
		GROUP_OPTION(&as.grouping),
		ADVISE_OPTION(&with_advice),
		ANSWER_OPTIONS(&how),
	};
	const struct opts opts = { "summary RECORDING [MACHINE]", "List the most delayed machines and threads.", opt,
	                           sizeof opt / sizeof *opt, 1, 2 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	if (with_advice && how.format != FORMAT_TEXT)
		return error_set(err, STATUS_USAGE, "stealscope whatif has csv and json", "--advise supports only text");
	struct query_context s;
	int rc = query_context_open(&s, argv[first], &when, err);
	if (rc == 0)
		rc = print_summary(&s, argc - first > 1 ? argv[first + 1] : NULL, &as, how, with_advice, err);
	return query_context_close(&s, rc, err);
}

static int print_threads(struct query_context *ctx, const char *machine, const struct summary_how *as,
                         struct report_how how, struct error *err)
{
	struct summary s;
	struct target target;
	if (query_summary(ctx, machine, as, &s, &target, err))
		return -1;
	query_context_about(ctx, machine ? &target : NULL, how);
	struct core_share share;
	const struct core_share *cores;
	int rc = query_cores(ctx, &s, &share, &cores, err);
	const size_t threads = s.rows - s.machines, top = query_context_fit_rows(ctx, as->top, 0, LINES_AFTER, how);
	const size_t shown = top && top < threads ? top : threads;
	const char *what = as->grouping == GROUP_NONE ? "threads" : "groups of threads";
	query_context_note_omitted(ctx, shown, threads, what, how);
	if (rc == 0)
		rc = report_threads(stdout, how, &ctx->catalog, &s, cores, shown, &ctx->origin, err);
	core_share_release(&share);
	if (rc == 0 && how.format == FORMAT_TEXT && shown < threads)
		printf("\nshown: %zu of %zu %s (--top)\n", shown, threads, what);
	summary_release(&s);
	return rc;
}

int cmd_threads(int argc, char **argv, struct error *err)
{
	struct window_options when = { 0 };
	struct report_how how = REPORT_HOW;
	struct summary_how as = { .order = SUMMARY_BY_LOST, .grouping = GROUP_NONE, .top = TOP_FIT };
	const struct opt opt[] = {
		WINDOW_OPTIONS(&when),
		{ "top", 0, OPT_COUNT, "N", "maximum rows (all, or as many as fit); 0 = all", &as.top, NULL },
		SORT_OPTION(&as.order),
		GROUP_OPTION(&as.grouping),
		ANSWER_OPTIONS(&how),
	};
	const struct opts opts = { "threads RECORDING [MACHINE]",
	                          "List all threads: name, life, time run and lost, top culprit.",
	                           opt, sizeof opt / sizeof *opt, 1, 2 };
	struct query_context s;
	const char *target_text;
	if (query_context_begin(&s, &opts, argc, argv, &when, &target_text, err))
		return -1;
	return query_context_close(&s, print_threads(&s, target_text, &as, how, err), err);
}
