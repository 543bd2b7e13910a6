/* stealscope diff: what changed since it was fast, and who explains it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "cli/prose.h"
#include "cli/scene.h"
#include "cli/what.h"
#include "compare/compare.h"

#define LEVEL 0.99
#define TRIFLE 0.01  /* of a change */

static const struct column raw_columns[] = {
	{ "subject", NULL, COL_TEXT },  { "kind", NULL, COL_TEXT },   { "quantity", NULL, COL_TEXT },
	{ "by", NULL, COL_TEXT },       { "unit", NULL, COL_TEXT },   { "before", NULL, COL_REAL },
	{ "after", NULL, COL_REAL },    { "change", NULL, COL_REAL }, { "low", NULL, COL_REAL },
	{ "high", NULL, COL_REAL },     { "explains", NULL, COL_REAL }, { "finding", NULL, COL_INT },
};
static const struct column text_columns[] = {
	{ NULL, "who", COL_TEXT },    { NULL, "what", COL_TEXT },    { NULL, "before", COL_TEXT },
	{ NULL, "after", COL_TEXT },  { NULL, "change", COL_TEXT },  { NULL, "at least", COL_TEXT },
	{ NULL, "at most", COL_TEXT }, { NULL, "explains", COL_TEXT },
};

struct asked {
	struct opt_list assertion;
	double level;
	bool all;
	struct report_how how;
};

/* ---- The table */

static void raw_row(struct report *out, const struct diff_row *r)
{
	report_row(out, (struct value[]){
		VAL_SHOWN(r->subject), VAL_SHOWN(diff_kind_name[r->kind]), VAL_SHOWN(diff_quantity_name[r->quantity]),
		*r->by ? VAL_SHOWN(r->by) : VAL_NONE, VAL_SHOWN(diff_unit_name[diff_unit_of[r->quantity]]),
		VAL_REAL(r->before), VAL_REAL(r->after), VAL_REAL(r->change), VAL_REAL(r->low), VAL_REAL(r->high),
		isnan(r->explains) ? VAL_NONE : VAL_REAL(r->explains), VAL_INT(r->found) });
}

/* What `by` is of depends on the quantity: a loss to somebody, exits for a reason, a part of a latency. */
static void text_row(struct report *out, const struct diff_row *r, bool follows)
{
	char what[400], before[40], after[40], change[40], low[40], high[40], explains[16] = "";
	const char *name = diff_quantity_name[r->quantity];
	if (*r->by)
		snprintf(what, sizeof what, "  %s%s", r->quantity == DIFF_LOST ? "to " : "", r->by);
	else
		snprintf(what, sizeof what, "%s", name);
	diff_value_text(before, sizeof before, r->quantity, r->before, false);
	diff_value_text(after, sizeof after, r->quantity, r->after, false);
	diff_value_text(change, sizeof change, r->quantity, r->change, true);
	diff_value_text(low, sizeof low, r->quantity, r->low, true);
	diff_value_text(high, sizeof high, r->quantity, r->high, true);
	if (!isnan(r->explains))
		snprintf(explains, sizeof explains, "%.0f%%", 100 * r->explains);
	report_row(out, (struct value[]){ VAL_SHOWN(follows ? "" : r->subject), VAL_SHOWN(what), VAL_SHOWN(before),
		VAL_SHOWN(after), VAL_SHOWN(change), VAL_SHOWN(low), VAL_SHOWN(high), VAL_SHOWN(explains) });
}

static struct json_object *sentences(const char *verdict)
{
	struct json_object *all = json_object_new_array();
	for (const char *end; *verdict; verdict = end + 1) {
		end = strchr(verdict, '\n');
		json_object_array_add(all, json_object_new_string_len(verdict, (int)(end - verdict)));
	}
	return all;
}

/* People need not see what explains next to nothing. */
static bool is_trifle(const struct diff_row *r)
{
	return !isnan(r->explains) && fabs(r->explains) < TRIFLE;
}

static int print_diff(const struct diff *d, const struct asked *asked, const struct origin *origin, struct error *err)
{
	static const struct report_shape raw = REPORT_SHAPE("diff", raw_columns), text = REPORT_SHAPE("diff", text_columns);
	const bool people = asked->how.format == FORMAT_TEXT;
	const size_t n = asked->all ? d->rows : d->found;
	char *verdict = diff_verdict(d);
	if (people) {
		origin_write_head(origin, stdout);
		prose_print(verdict, NULL);
		if (n)
			putchar('\n');
	}
	/* The doubts stand above the verdict. */
	struct report *out = n || !people ? report_begin(stdout, asked->how, people ? &text : &raw,
	                                                 people ? NULL : origin) : NULL;
	const struct diff_row *last = NULL;
	size_t trifles = 0;
	int rc = 0;
	for (size_t i = 0; i < n; i++) {
		const struct diff_row *r = &d->row[i];
		if (people && !asked->all && is_trifle(r)) {
			trifles++;
			continue;
		}
		if (people)
			text_row(out, r, last && last->kind == r->kind && !strcmp(last->subject, r->subject));
		else
			raw_row(out, r);
		last = r;
	}
	if (out) {
		report_member(out, "level", json_object_new_double(d->level));
		report_member(out, "compared", json_object_new_int64((int64_t)d->wholes));
		report_member(out, "verdict", sentences(verdict));
		rc = report_end(out, err);
	}
	if (trifles)
		printf("\nnot shown: %zu parts that explain less than %g%% each (--all)\n", trifles, 100 * TRIFLE);
	free(verdict);
	return rc;
}

/* ---- Assertions */

static int check_all(const struct diff *d, char *const *text, const struct diff_assertion *a, size_t n, FILE *out,
                     struct error *err)
{
	size_t failed = 0;
	for (size_t i = 0; i < n; i++) {
		const struct diff_row *r;
		char change[40];
		bool holds = diff_assertion_holds(&a[i], d, &r);
		failed += !holds;
		if (holds)
			fprintf(out, "holds  %s\n", text[i]);
		else
			fprintf(out, "FAILS  %s: %s %s%s%s %s\n", text[i], r->subject, diff_quantity_name[r->quantity],
			        *r->by ? " " : "", r->by, diff_value_text(change, sizeof change, r->quantity, r->change, true));
	}
	return failed ? error_set(err, STATUS_ASSERTION, NULL, "%zu of %zu assertions not met", failed, n) : 0;
}

/* ---- The sides: WHAT, or WHAT@A..B */

static int open_side(struct scene *s, char *operand, struct error *err)
{
	struct window_options when = { 0 };
	char *what = mem_dup(operand), *at = strrchr(what, '@'), *dots = at ? strstr(at, "..") : NULL;
	if (dots && access(what, F_OK) != 0) {
		*at = *dots = '\0';
		when.from = at[1] ? at + 1 : NULL;
		when.to = dots[2] ? dots + 2 : NULL;
	}
	int rc = scene_open(s, what, &when, err);
	free(what);
	return rc;
}

static int compare(struct scene side[2], const struct asked *asked, const struct diff_assertion *a, struct error *err)
{
	struct diff_side of[2];
	struct notes notes = { 0 };
	struct diff d;
	for (int i = 0; i < 2; i++)
		of[i] = (struct diff_side){ &side[i].topo, side[i].window.from, side[i].window.to };
	int rc = diff_of(of, &(struct diff_options){ asked->level, &notes }, &d, err);
	if (rc == 0) {
		struct origin origin = { 0 };
		for (int i = 0; i < 2; i++) {
			scene_about(&side[i], NULL, asked->how);
			origin_add(&origin, &side[i].origin);
		}
		if (asked->how.format == FORMAT_CSV)
			what_say(&notes);
		origin_doubt(&origin, &notes);
		rc = print_diff(&d, asked, &origin, err);
		if (asked->assertion.len && asked->how.format == FORMAT_TEXT)
			putchar('\n');
		if (rc == 0)
			rc = check_all(&d, (char *const *)asked->assertion.item, a, asked->assertion.len,
		               asked->how.format == FORMAT_TEXT ? stdout : stderr, err);
		origin_release(&origin);
		diff_release(&d);
	}
	notes_release(&notes);
	return rc;
}

int cmd_diff(int argc, char **argv, struct error *err)
{
	struct asked asked = { .level = LEVEL, .how = REPORT_HOW };
	const struct opt opt[] = {
		{ "assert", 0, OPT_LIST, "CONDITION", "exit status 3 unless 'same', 'lost<+5%', 'latency_p50<+2ms' holds",
		  &asked.assertion, NULL },
		{ "level", 0, OPT_PERCENT, "P", "at which all intervals together hold (99%)", &asked.level, NULL },
		{ "all", 0, OPT_FLAG, NULL, "all that was compared, not findings alone", &asked.all, NULL },
		ANSWER_OPTIONS(&asked.how),
	};
	const struct opts opts = { "diff BEFORE[@FROM..TO] AFTER[@FROM..TO]",
	                           "What changed from one recording, or window, to another, and who explains it.", opt,
	                           sizeof opt / sizeof *opt, 2, 2 };
	int first, rc = opts_parse(&opts, argc, argv, &first, err);
	struct diff_assertion *a = mem_new(asked.assertion.len, sizeof *a);
	struct scene side[2] = { 0 };
	if (rc == 0 && !(asked.level > 0 && asked.level < 1))
		rc = error_set(err, STATUS_USAGE, "give a share between 0% and 100%", "--level: no level");
	for (size_t i = 0; i < asked.assertion.len && rc == 0; i++)
		rc = diff_assertion_parse(asked.assertion.item[i], &a[i], err);
	for (int i = 0; i < 2 && rc == 0; i++)
		rc = open_side(&side[i], argv[first + i], err);
	if (rc == 0)
		rc = compare(side, &asked, a, err);
	for (int i = 0; i < 2; i++)
		rc = scene_close(&side[i], rc, err);
	free(a);
	free(asked.assertion.item);
	return rc;
}
