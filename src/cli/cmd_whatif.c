/* stealscope whatif: would it help to move that VM? */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/timefmt.h"
#include "cli/cli.h"
#include "cli/prose.h"
#include "cli/query_context.h"
#include "cli/trace_input.h"
#include "compare/compare.h"

static const struct column raw_columns[] = {
	{ "subject", NULL, COL_TEXT },    { "kind", NULL, COL_TEXT },       { "quantity", NULL, COL_TEXT },
	{ "unit", NULL, COL_TEXT },       { "recorded", NULL, COL_REAL },   { "reproduced", NULL, COL_REAL },
	{ "value", NULL, COL_REAL },      { "low", NULL, COL_REAL },        { "high", NULL, COL_REAL },
};
static const struct column text_columns[] = {
	{ NULL, "who", COL_TEXT },        { NULL, "what", COL_WHOLE },      { NULL, "recorded", COL_WHOLE },
	{ NULL, "reproduced", COL_WHOLE }, { NULL, "then", COL_WHOLE },     { NULL, "at least", COL_WHOLE },
	{ NULL, "at most", COL_WHOLE },
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
		report_row(out, (struct value[]){ VAL_SHOWN(r->subject), VAL_SHOWN(quantity_name(r)), VAL_SHOWN(text[0]),
			VAL_SHOWN(text[1]), VAL_SHOWN(text[2]), VAL_SHOWN(text[3]), VAL_SHOWN(text[4]) });
	else
		report_row(out, (struct value[]){ VAL_SHOWN(r->subject), VAL_SHOWN(diff_kind_name[r->kind]),
			VAL_SHOWN(quantity_name(r)), VAL_SHOWN(diff_unit_name[diff_unit_of[r->quantity]]), VAL_REAL(v[0]),
			VAL_REAL(v[1]), VAL_REAL(v[2]), VAL_REAL(v[3]), VAL_REAL(v[4]) });
}

static struct json_object *calibration(const struct whatif *w)
{
	struct json_object *o = json_object_new_object();
	json_object_object_add(o, "error", json_object_new_double(w->error));
	json_object_object_add(o, "slice_ns", json_object_new_int64(w->slice));
	json_object_object_add(o, "credit_ns", json_object_new_int64(w->credit));
	return o;
}

static double part_reproduced(double missed)
{
	return missed < 1 ? 1 - missed : 0;
}

/* How well the replay does without a change, and what it takes for granted. */
static void print_words(const struct whatif *w)
{
	char *groups = w->grouped ? mem_printf("the control groups of %zu of them share as their weights say", w->grouped)
	                          : mem_dup("nothing is known of SCHED_IDLE, nor of control groups' weights");
	char *held = w->missed < w->error ? mem_printf(", and %.0f%% of these and what quotas held back together",
		100 * part_reproduced(w->missed)) : mem_dup("");
	char slice[TIME_TEXT], *words = mem_printf("Without a change the replay reproduces %.0f%% of the waits for a CPU of "
		"the host%s (slices of %s); what it misses is part of the intervals.  Guests keep the order of their work, "
		"threads weigh what their nice levels say, and %s.\n",
		100 * part_reproduced(w->error), held, time_duration(slice, w->slice), groups);
	free(groups);
	free(held);
	prose_print(words, NULL);
	free(words);
}

static int print_whatif(const struct whatif *w, struct report_how how, const struct origin *origin, struct error *err)
{
	static const struct report_shape raw = REPORT_SHAPE("whatif", raw_columns);
	static const struct report_shape text = REPORT_SHAPE_SPARING("whatif", text_columns, "reproduced");
	const bool people = how.format == FORMAT_TEXT;
	size_t told = 0;
	for (size_t i = 0; i < w->rows; i++)
		told += !w->row[i].vague;
	if (people && told == 0) {  /* the notes say why */
		origin_write_head(origin, stdout);
		print_words(w);
		return 0;
	}
	struct report *out = report_begin(stdout, how, people ? &text : &raw, origin);
	for (size_t i = 0; i < w->rows; i++)
		if (!w->row[i].vague)
			print_row(out, &w->row[i], people);
	report_member(out, "calibration", calibration(w));
	int rc = report_end(out, err);
	if (rc || !people)
		return rc;
	putchar('\n');
	print_words(w);
	return 0;
}

static int ask(struct scene *s, char **text, size_t n, struct report_how how, struct error *err)
{
	struct whatif_change *change = mem_new(n, sizeof *change);
	struct notes notes = { 0 };
	struct whatif w;
	int rc = 0;
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = whatif_parse(&s->topo, text[i], &change[i], err);
	if (rc == 0)
		rc = whatif_of(&(struct diff_side){ &s->topo, s->window.from, s->window.to }, change, n, &w, &notes, err);
	if (rc == 0) {
		if (w.guess > WHATIF_MISSES)
			notes_add(&notes, NOTE_DOUBT, NULL,
			          "the replay reproduces no more than %.0f%% of the waits: what it says is a guess",
			          100 * part_reproduced(w.guess));
		scene_about(s, NULL, how);
		if (how.format == FORMAT_CSV)
			what_say(&notes);
		origin_doubt(&s->origin, &notes);
		rc = print_whatif(&w, how, &s->origin, err);
		whatif_release(&w);
	}
	for (size_t i = 0; i < n; i++)
		whatif_change_release(&change[i]);
	free(change);
	notes_release(&notes);
	return rc;
}

int cmd_whatif(int argc, char **argv, struct error *err)
{
	struct window_options when = { 0 };
	struct report_how how = REPORT_HOW;
	const struct opt opt[] = {
		WINDOW_OPTIONS(&when),
		ANSWER_OPTIONS(&how),
	};
	const struct opts opts = { "whatif WHAT CHANGE...",
	                           "What would be different 'without WHO', 'pin WHO -> CPUn', 'free WHO', 'add CPU',\n"
	                           "'weight WHO N', 'no quota WHO'.",
	                           opt, sizeof opt / sizeof *opt, 2, -1 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	struct scene s;
	int rc = scene_open(&s, argv[first], &when, err);
	if (rc == 0)
		rc = ask(&s, argv + first + 1, (size_t)(argc - first - 1), how, err);
	return scene_close(&s, rc, err);
}
