/* stealscope whatif: simulates changes such as pinning, moving or removing load. */
#include "base/base.h"
#include "base/json_field.h"
#include "cli/cli.h"
#include "cli/query_context.h"
#include "compare/compare.h"
#include "report/report.h"

static const struct column raw_columns[] = {
	{ "target", NULL, COL_TEXT },    { "kind", NULL, COL_TEXT },       { "quantity", NULL, COL_TEXT },
	{ "unit", NULL, COL_TEXT },       { "recorded", NULL, COL_REAL },   { "reproduced", NULL, COL_REAL },
	{ "value", NULL, COL_REAL },      { "low", NULL, COL_REAL },        { "high", NULL, COL_REAL },
};
static const struct column text_columns[] = {
	{ NULL, "target", COL_TEXT },     { NULL, "quantity", COL_UNCUT },  { NULL, "recorded", COL_UNCUT },
	{ NULL, "reproduced", COL_UNCUT }, { NULL, "then", COL_UNCUT },     { NULL, "at least", COL_UNCUT },
	{ NULL, "at most", COL_UNCUT },
};

static const char *quantity_name(const struct whatif_row *r)
{
	return r->quantity == DIFF_LOST ? "waited" : diff_quantity_name[r->quantity];
}

static void print_row(struct report *out, const struct whatif_row *r, bool people)
{
	const double v[] = { r->recorded, r->reproduced, r->value, r->low, r->high };
	char text[5][40];
	for (int i = 0; i < 5; i++)
		diff_value_text(text[i], sizeof text[i], r->quantity, v[i], false);
	if (people)
		report_row(out, (struct value[]){ VAL_SHOWN(r->target), VAL_SHOWN(quantity_name(r)), VAL_SHOWN(text[0]),
			VAL_SHOWN(text[1]), VAL_SHOWN(text[2]), VAL_SHOWN(text[3]), VAL_SHOWN(text[4]) });
	else
		report_row(out, (struct value[]){ VAL_SHOWN(r->target), VAL_SHOWN(diff_kind_name[r->kind]),
			VAL_SHOWN(quantity_name(r)), VAL_SHOWN(diff_unit_name[diff_unit_of[r->quantity]]), VAL_REAL(v[0]),
			VAL_REAL(v[1]), VAL_REAL(v[2]), VAL_REAL(v[3]), VAL_REAL(v[4]) });
}

static struct json_object *calibration_json(const struct whatif *w)
{
	struct json_object *o = json_new_object();
	json_object_object_add(o, "error", json_object_new_double(w->error));
	json_object_object_add(o, "slice_ns", json_object_new_int64(w->slice));
	json_object_object_add(o, "credit_ns", json_object_new_int64(w->credit));
	return o;
}

static double reproduced_share(double error)
{
	return error < 1 ? 1 - error : 0;
}

/* Prints the error of the replay without a change, and its assumptions. */
static void print_assumptions(const struct whatif *w)
{
	char *groups = w->grouped ? mem_printf("the control groups of %zu of them share by their weights", w->grouped)
	                          : mem_dup("SCHED_IDLE and the weights of control groups are unknown");
	char *throttled_text = w->quota_error < w->error ? mem_printf(", and %.0f%% of waits and quota throttling together",
		100 * reproduced_share(w->quota_error)) : mem_dup("");
	char slice[TIME_TEXT], *words = mem_printf("Without a change the replay reproduces %.0f%% of the waits for a CPU "
	                                           "of the host%s (slices of %s); its error is part of the intervals.  "
	                                           "Assumptions: guests keep the order of their work, weights follow "
	                                           "nice levels, and %s.\n",
		100 * reproduced_share(w->error), throttled_text, time_duration(slice, w->slice), groups);
	free(groups);
	free(throttled_text);
	prose_print(words, NULL);
	free(words);
}

static int print_whatif(const struct whatif *w, struct report_how how, const struct origin *origin, struct error *err)
{
	static const struct report_shape raw = REPORT_SHAPE("whatif", raw_columns);
	static const struct report_shape text = REPORT_SHAPE_DROPPING("whatif", text_columns, "reproduced");
	const bool people = how.format == FORMAT_TEXT;
	size_t reported = 0;
	for (size_t i = 0; i < w->rows; i++)
		reported += !w->row[i].vague;
	if (people && reported == 0) {  /* the notes in the head contain the reasons */
		origin_write_head(origin, stdout);
		print_assumptions(w);
		return 0;
	}
	struct report *out = report_begin(stdout, how, people ? &text : &raw, origin);
	for (size_t i = 0; i < w->rows; i++)
		if (!w->row[i].vague)
			print_row(out, &w->row[i], people);
	report_member(out, "calibration", calibration_json(w));
	int rc = report_end(out, err);
	if (rc || !people)
		return rc;
	putchar('\n');
	print_assumptions(w);
	return 0;
}

static int query_whatif(struct query_context *s, char **text, size_t n, struct report_how how, struct error *err)
{
	struct whatif_change *change = mem_new(n, sizeof *change);
	struct notes notes = { 0 };
	struct whatif w;
	int rc = 0;
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = whatif_parse(&s->catalog, text[i], &change[i], err);
	if (rc == 0)
		rc = whatif_of(&(struct diff_side){ &s->catalog, s->window.from, s->window.to }, change, n, &w, &notes, err);
	if (rc == 0) {
		if (w.target_error > WHATIF_ERROR_MAX)
			note_add(&notes, REPLAY_INACCURATE, NULL, 100 * reproduced_share(w.target_error));
		query_context_about(s, NULL, how);
		if (how.format == FORMAT_CSV)
			print_notes(&notes);
		origin_add_warnings(&s->origin, &notes);
		rc = print_whatif(&w, how, &s->origin, err);
		whatif_release(&w);
	}
	for (size_t i = 0; i < n; i++)
		whatif_change_release(&change[i]);
	free(change);
	notes_release(&notes);
	return rc;
}

/* Returns true if a word without spaces starts a change, such as "pin" in: whatif DIR pin web CPU1. */
static bool starts_change(const char *word)
{
	static const char *const first[] = { "without", "pin", "free", "add", "weight", "no" };
	for (size_t i = 0; i < sizeof first / sizeof *first; i++)
		if (!strcmp(word, first[i]))
			return true;
	return false;
}

/* Joins the unquoted words of changes in place: {"pin", "web", "CPU1"} becomes {"pin web CPU1"}. Arguments with spaces
 * are whole changes. The caller frees the n changes and the array. */
static char **join_words(char **word, size_t words, size_t *n)
{
	char **change = mem_new(words, sizeof *change);
	bool is_open = false;
	*n = 0;
	for (size_t i = 0; i < words; i++) {
		const bool starts = starts_change(word[i]);
		if (is_open && !starts && !strchr(word[i], ' ')) {
			char *longer = mem_printf("%s %s", change[*n - 1], word[i]);
			free(change[*n - 1]);
			change[*n - 1] = longer;
			continue;
		}
		change[(*n)++] = mem_dup(word[i]);
		is_open = starts;
	}
	return change;
}

int cmd_whatif(int argc, char **argv, struct error *err)
{
	struct window_options when = { 0 };
	struct report_how how = REPORT_HOW;
	const struct opt opt[] = {
		WINDOW_OPTIONS(&when),
		ANSWER_OPTIONS(&how),
	};
	const struct opts opts = { "whatif RECORDING CHANGE...",
	                           "Simulate a change: 'without TARGET', 'pin TARGET -> CPUn', 'free TARGET',\n'add "
	                           "CPU', 'weight TARGET N', 'no quota TARGET'.",
	                           opt, sizeof opt / sizeof *opt, 2, -1 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	struct query_context s;
	int rc = query_context_open(&s, argv[first], &when, err);
	size_t n;
	char **change = join_words(argv + first + 1, (size_t)(argc - first - 1), &n);
	if (rc == 0)
		rc = query_whatif(&s, change, n, how, err);
	for (size_t i = 0; i < n; i++)
		free(change[i]);
	free(change);
	return query_context_close(&s, rc, err);
}
