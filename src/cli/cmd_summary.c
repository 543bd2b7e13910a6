/* stealscope summary and threads: who suffers, how much, from whom. */
#include <stdio.h>

#include "base/timefmt.h"
#include "cli/advice.h"
#include "cli/cli.h"
#include "cli/query_context.h"
#include "cli/target_arg.h"

#define SORT_OPTION(dest) \
	{ "sort", 0, OPT_CHOICE, "ORDER", "lost (default), share, longest, p99, gaps, ran, life, id", (dest), \
	  summary_order_name }

/* Asks of all machines, or of one. */
static int ask(struct scene *scene, const char *machine, enum summary_order order, struct summary *out,
               struct subject *who, struct error *err)
{
	struct summary_options options = { .from = scene->window.from, .to = scene->window.to, .gaps = true };
	if (machine && who_parse(scene, machine, who, err))
		return -1;
	if (machine && who->kind != SUBJECT_MACHINE)
		return error_set(err, STATUS_USAGE, "stealscope explain tells of threads and vCPUs", "'%s' is not a machine",
		                 machine);
	options.only = machine ? who : NULL;
	struct inquiry *q = summary_open(&scene->topo, &options);
	int rc = scene_run(q, err);
	if (rc == 0)
		summary_take(q, out);
	if (rc == 0)
		summary_sort(out, &scene->topo, order);
	inquiry_close(q);
	return rc;
}

static size_t losers_of(const struct summary *s)
{
	size_t n = 0;
	for (size_t i = s->machines; i < s->rows; i++)
		n += s->row[i].demand.lost > 0;
	return n;
}

/* How many threads the table left out, and why. */
static void print_rest(const struct summary *s, size_t top)
{
	const size_t threads = s->rows - s->machines, losers = losers_of(s);
	if (top && losers > top)
		printf("\nshown: %zu of the %zu threads that lost something (--top)\n", top, losers);
	if (threads > losers)
		printf("%s%zu thread%s lost nothing\n", top && losers > top ? "" : "\n", threads - losers,
		       threads - losers == 1 ? "" : "s");
}

/* What awaiting the halts of its vCPUs cost the host. */
static int print_polled(struct scene *scene, const struct summary *s, struct error *err)
{
	char name[PARTY_TEXT], won[TIME_TEXT], lost[TIME_TEXT];
	int64_t ns[POLL_OUTCOME_COUNT];
	bool told, any = false;
	for (size_t i = 0; i < s->machines; i++) {
		const struct subject *who = &s->row[i].who;
		if (scene->topo.machine[who->index].kind != MACHINE_VM)
			continue;
		if (polled_time(&scene->topo, who, s->start, s->end, ns, &told, err) < 0)
			return -1;
		if (told)
			printf("%s%s: after its halts, the host polled %s in vain, and %s with success\n", any ? "" : "\n",
			       topo_subject_text(&scene->topo, who, name, sizeof name), time_duration(lost, ns[POLL_LOST]),
			       time_duration(won, ns[POLL_WON]));
		any |= told;
	}
	return 0;
}

static int print_summary(struct scene *scene, const char *machine, size_t top, enum summary_order order,
                         struct report_how how, bool advised, struct error *err)
{
	struct summary s;
	struct subject who;
	if (ask(scene, machine, order, &s, &who, err))
		return -1;
	scene_about(scene, machine ? &who : NULL, how);
	scene_left_out(scene, top ? top : SIZE_MAX, losers_of(&s), "threads that lost something", how);
	int rc = report_summary(stdout, how, &scene->topo, &s, top, &scene->origin, err);
	if (rc == 0 && how.format == FORMAT_TEXT)
		print_rest(&s, top);
	if (rc == 0 && how.format == FORMAT_TEXT)
		rc = print_polled(scene, &s, err);
	if (rc == 0 && advised)
		rc = advice_print(scene, machine ? &who : NULL, err);
	summary_release(&s);
	return rc;
}

int cmd_summary(int argc, char **argv, struct error *err)
{
	struct window_options when = { 0 };
	unsigned top = 20;
	bool advised = false;
	struct report_how how = REPORT_HOW;
	int order = SUMMARY_BY_LOST;
	const struct opt opt[] = {
		WINDOW_OPTIONS(&when),
		{ "top", 0, OPT_COUNT, "N", "threads to show (20); 0 = all that lost anything", &top, NULL },
		SORT_OPTION(&order),
		ADVISE_OPTION(&advised),
		ANSWER_OPTIONS(&how),
	};
	const struct opts opts = { "summary WHAT [MACHINE]", "Machines, then threads, by what was taken from them.", opt,
	                           sizeof opt / sizeof *opt, 1, 2 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	if (advised && how.format != FORMAT_TEXT)
		return error_set(err, STATUS_USAGE, "stealscope whatif has csv and json", "--advise: is for text");
	struct scene s;
	int rc = scene_open(&s, argv[first], &when, err);
	if (rc == 0)
		rc = print_summary(&s, argc - first > 1 ? argv[first + 1] : NULL, (size_t)top,
		                   (enum summary_order)order, how, advised, err);
	return scene_close(&s, rc, err);
}

static int print_threads(struct scene *scene, const char *machine, enum summary_order order, struct report_how how,
                         struct error *err)
{
	struct summary s;
	struct subject who;
	if (ask(scene, machine, order, &s, &who, err))
		return -1;
	scene_about(scene, machine ? &who : NULL, how);
	int rc = report_threads(stdout, how, &scene->topo, &s, &scene->origin, err);
	summary_release(&s);
	return rc;
}

int cmd_threads(int argc, char **argv, struct error *err)
{
	struct window_options when = { 0 };
	struct report_how how = REPORT_HOW;
	int order = SUMMARY_BY_LOST;
	const struct opt opt[] = {
		WINDOW_OPTIONS(&when),
		SORT_OPTION(&order),
		ANSWER_OPTIONS(&how),
	};
	const struct opts opts = { "threads WHAT [MACHINE]", "All threads: name, life, what they ran and lost, and to whom.",
	                           opt, sizeof opt / sizeof *opt, 1, 2 };
	struct scene s;
	const char *whose;
	if (scene_begin(&s, &opts, argc, argv, &when, &whose, err))
		return -1;
	return scene_close(&s, print_threads(&s, whose, (enum summary_order)order, how, err), err);
}
