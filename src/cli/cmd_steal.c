/* stealscope steal: lists lost time by victim and culprit. */
#include "base/base.h"
#include "cli/cli.h"
#include "cli/query_context.h"
#include "cli/target_arg.h"

#define LINES_AFTER 6  /* heading; omitted cells, VMM time of a terminal of 80 columns */

static const char *const by_names[] = { "machine", "thread", "core", NULL };
#define BY_CORE (STEAL_BY_THREAD + 1)

/* Prints a physical CPU's users: on an isolated one, the intruders. */
static int print_users(struct query_context *s, const struct target *cpu, unsigned top, struct report_how how,
                       struct error *err)
{
	struct flow f;
	struct query *q = flow_open(&s->catalog, cpu, s->window.from, s->window.to, &(struct flow_options){ 0 }, err);
	if (query_context_answer(q, &f, err))
		return -1;
	query_context_about(s, cpu, how);
	const size_t entries = f.entries, most = query_context_fit_rows(s, top, 0, LINES_AFTER, how);
	f.entries = most && most < entries ? most : entries;
	query_context_note_omitted(s, f.entries, entries, "users of the CPU", how);
	int rc = report_flow(stdout, how, &s->catalog, cpu, &f, NULL, &s->origin, err);
	if (rc == 0 && how.format == FORMAT_TEXT && f.entries < entries)
		printf("\nshown: %zu of %zu users of the CPU (--top)\n", f.entries, entries);
	flow_release(&f);
	return rc;
}

static int print_matrix(struct query_context *query_context, const char *only, enum steal_by by,
                        enum thread_grouping grouping, unsigned most,
                        struct report_how how, struct error *err)
{
	struct target target;
	struct steal s;
	if (only && target_parse(query_context, only, &target, err))
		return -1;
	if (only && target_is_pcpu(query_context, &target))
		return print_users(query_context, &target, most, how, err);
	struct query *q = steal_open(&query_context->catalog, &(struct steal_options){ .by = by, .only = only ? &target : NULL,
		.grouping = grouping, .from = query_context->window.from, .to = query_context->window.to });
	if (query_context_answer(q, &s, err))
		return -1;
	query_context_about(query_context, only ? &target : NULL, how);
	const size_t cells = s.cells, top = query_context_fit_rows(query_context, most, 0, LINES_AFTER, how);
	s.cells = top && top < cells ? top : cells;
	query_context_note_omitted(query_context, s.cells, cells, "cells of the matrix", how);
	int rc = report_steal(stdout, how, &query_context->catalog, &s, only ? &target : NULL, &query_context->origin, err);
	if (rc == 0 && how.format == FORMAT_TEXT && s.cells < cells)
		printf("\nshown: %zu of %zu cells (--top)\n", s.cells, cells);
	if (rc == 0 && by == STEAL_BY_MACHINE)
		rc = report_vmm_time(stdout, how, &query_context->catalog, only ? &target : NULL, query_context->window.from,
		                     query_context->window.to, true, err);
	steal_release(&s);
	return rc;
}

static int print_cores(struct query_context *query_context, const char *only, unsigned top, struct report_how how,
                       struct error *err)
{
	struct target target, *targets;
	struct core_share s;
	const struct catalog *catalog = &query_context->catalog;
	if (only && target_parse_victim(query_context, only, &target, err))
		return -1;
	if (!catalog->has_cores)
		return error_set(err, STATUS_INPUT, "add `topology` to its session.yaml, see stealscope-session(5)",
		                 "%s: the cores of the host are unknown", query_context->named);
	const size_t n = core_share_targets(catalog, only ? &target : NULL, &targets);
	struct query *q = core_share_open(catalog, targets, n, query_context->window.from, query_context->window.to);
	int rc = query_context_answer(q, &s, err);
	free(targets);
	if (rc)
		return -1;
	core_share_sort(&s);
	query_context_about(query_context, only ? &target : NULL, how);
	rc = report_cores(stdout, how, catalog, &s, top == TOP_FIT ? 0 : top, &query_context->origin, err);
	core_share_release(&s);
	return rc;
}

int cmd_steal(int argc, char **argv, struct error *err)
{
	struct window_options when = { 0 };
	struct report_how how = REPORT_HOW;
	int by = STEAL_BY_MACHINE, grouping = GROUP_NONE;
	unsigned top = TOP_FIT;
	const struct opt opt[] = {
		WINDOW_OPTIONS(&when),
		{ "by", 0, OPT_CHOICE, "WHOM", "machine (default), thread or core", &by, by_names },
		{ "group", 0, OPT_CHOICE, "BY", "by thread, those of one name, process or cgroup together", &grouping,
		  thread_grouping_name },
		{ "top", 0, OPT_COUNT, "N", "maximum rows (all, or as many as fit); 0 = all", &top, NULL },
		ANSWER_OPTIONS(&how),
	};
	const struct opts opts = { "steal RECORDING [TARGET]", "List CPU time lost, by victim and culprit.", opt,
	                           sizeof opt / sizeof *opt, 1, 2 };
	struct query_context s;
	const char *target_text;
	if (query_context_begin(&s, &opts, argc, argv, &when, &target_text, err))
		return -1;
	if (by == BY_CORE)
		return query_context_close(&s, print_cores(&s, target_text, top, how, err), err);
	if (grouping != GROUP_NONE)
		by = STEAL_BY_THREAD;
	const int rc = print_matrix(&s, target_text, (enum steal_by)by, (enum thread_grouping)grouping, top, how, err);
	return query_context_close(&s, rc, err);
}
