/* stealscope waits: lists wakeup reasons of idle vCPUs. */
#include "base/base.h"
#include "cli/cli.h"
#include "cli/query_context.h"
#include "cli/target_arg.h"

#define LINES_AFTER 3  /* heading; omitted rows */

/* Warns if more than half of the sleeps have no known wakeup; the note names the events that are needed. */
static void warn_wakeups_unknown(struct query_context *s, const struct wait_list *l, struct report_how how)
{
	struct notes notes = { 0 };
	uint64_t unknown = 0, all = 0;
	char which[64];
	for (size_t i = 0; i < l->rows; i++) {
		unknown += l->row[i].kind == WAIT_UNKNOWN ? l->row[i].count : 0;
		all += l->row[i].count;
	}
	if (all && unknown <= all / 2)
		return;
	text_count_of_all(which, unknown, all, "sleep");
	if (s->catalog.has_run_states)
		note_add(&notes, HYPERVISOR_SILENT, NULL, "wakeup reasons of", which);
	else if (!all)
		note_add(&notes, NO_IDLE_VCPUS, NULL);
	else
		note_add(&notes, WAKEUPS_UNKNOWN, NULL, which);
	if (how.format == FORMAT_CSV)
		print_notes(&notes);
	origin_add_warnings(&s->origin, &notes);
}

/* Warns about vCPUs with unknown halt polling; the notes name the events that are needed. */
static void warn_polling_unknown(struct query_context *s, const struct poll_list *l, struct report_how how)
{
	struct notes notes = { 0 };
	char d[TIME_TEXT], which[64];
	text_count_of_all(which, l->silent, l->vcpus, "vCPU");
	if (s->catalog.has_run_states)
		note_add(&notes, HYPERVISOR_SILENT, NULL, "halt polls of", which);
	else if (l->silent || !l->vcpus)
		note_add(&notes, NO_HALT_POLLING_EVENTS, NULL, which);
	if (l->unknown_vcpus && !s->catalog.has_run_states)
		note_add(&notes, HALT_POLLING_UNKNOWN, NULL, text_count_of_all(which, l->unknown_vcpus, l->vcpus, "vCPU"),
		         time_duration(d, l->unknown_ns));
	if (!notes.len)
		return;
	if (how.format == FORMAT_CSV)
		print_notes(&notes);
	origin_add_warnings(&s->origin, &notes);
}

static int print_polls(struct query_context *s, const struct target *target, struct report_how how, struct error *err)
{
	struct poll_list list;
	if (polls_of(&s->catalog, target, s->window.from, s->window.to, &list, err))
		return -1;
	query_context_about(s, target, how);
	warn_polling_unknown(s, &list, how);
	int rc = report_polls(stdout, how, &s->catalog, &list, &s->origin, err);
	polls_release(&list);
	return rc;
}

/* Prints the wakeup latencies of a target: of its vCPUs or threads, each. */
static int print_latencies(struct query_context *s, const char *only, struct report_how how, struct error *err)
{
	struct target target;
	struct gap_list list;
	const struct gap_options options = { .from = s->window.from, .to = s->window.to, .min = 1, .top = 1,
	                                     .after_sleep = true };
	if (only && target_parse_victim(s, only, &target, err))
		return -1;
	if (query_context_answer(gap_list_open(&s->catalog, only ? &target : NULL, &options), &list, err))
		return -1;
	int rc = 0;
	query_context_about(s, only ? &target : NULL, how);
	const bool people = how.format == FORMAT_TEXT;
	if (people) {
		rc = report_gap_lengths(stdout, how, &s->catalog, &list, only ? &target : NULL, &s->origin, err);
		putchar('\n');
	}
	if (rc == 0)
		rc = report_gap_histogram(stdout, how, &s->catalog, &list, only ? &target : NULL, people ? NULL : &s->origin, err);
	gap_list_release(&list);
	return rc;
}

static int print_waits(struct query_context *s, const char *only, bool polling, unsigned most, struct report_how how,
                       struct error *err)
{
	struct target target;
	struct wait_list list;
	if (only && target_parse_vcpus(s, only, &target, err))
		return -1;
	if (polling)
		return print_polls(s, only ? &target : NULL, how, err);
	if (query_answer(waits_open(&s->catalog, only ? &target : NULL, s->window.from, s->window.to), &list, err))
		return -1;
	query_context_about(s, only ? &target : NULL, how);
	warn_wakeups_unknown(s, &list, how);
	const size_t top = query_context_fit_rows(s, most, 0, LINES_AFTER, how);
	const size_t rows = top && top < list.rows ? top : list.rows;
	query_context_note_omitted(s, rows, list.rows, "rows", how);
	int rc = report_waits(stdout, how, &s->catalog, &list, rows, &s->origin, err);
	if (rc == 0 && how.format == FORMAT_TEXT && rows < list.rows)
		printf("\nshown: %zu of %zu rows (--top)\n", rows, list.rows);
	waits_release(&list);
	return rc;
}

int cmd_waits(int argc, char **argv, struct error *err)
{
	struct window_options when = { 0 };
	struct report_how how = REPORT_HOW;
	bool polling = false, histogram = false;
	unsigned top = TOP_FIT;
	const struct opt opt[] = {
		WINDOW_OPTIONS(&when),
		{ "polling", 0, OPT_FLAG, NULL, "print halt polling and its cost", &polling, NULL },
		{ "histogram", 0, OPT_FLAG, NULL, "print how long a target waited after wakeups", &histogram, NULL },
		{ "top", 0, OPT_COUNT, "N", "maximum rows (all, or as many as fit); 0 = all", &top, NULL },
		ANSWER_OPTIONS(&how),
	};
	const struct opts opts = { "waits RECORDING [TARGET]", "List wakeups of idle vCPUs: reasons and wakers.", opt,
	                           sizeof opt / sizeof *opt, 1, 2 };
	struct query_context s;
	const char *target_text;
	if (query_context_begin(&s, &opts, argc, argv, &when, &target_text, err))
		return -1;
	if (histogram)
		return query_context_close(&s, print_latencies(&s, target_text, how, err), err);
	return query_context_close(&s, print_waits(&s, target_text, polling, top, how, err), err);
}
