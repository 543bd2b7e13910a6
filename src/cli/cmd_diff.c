/* stealscope diff: what changed since it was fast, and who explains it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "cli/prose.h"
#include "cli/query_context.h"
#include "cli/trace_input.h"
#include "compare/compare.h"
#include "report/report.h"


struct asked {
	struct opt_list assertion;
	double level;
	bool all;
	struct report_how how;
};

static int print_diff(const struct diff *d, const struct asked *asked, const struct origin *origin, struct error *err)
{
	const bool people = asked->how.format == FORMAT_TEXT;
	if (people) {  /* the doubts stand above the verdict */
		char *verdict = diff_verdict(d);
		origin_write_head(origin, stdout);
		prose_print(verdict, NULL);
		free(verdict);
		if (asked->all ? d->rows : d->found)
			putchar('\n');
	}
	return report_diff(stdout, asked->how, d, asked->all, people ? NULL : origin, err);
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
	if (failed)
		return error_set(err, STATUS_ASSERTION, NULL, "%zu of %zu assertion%s not met", failed, n, n == 1 ? "" : "s");
	return 0;
}

/* ---- The sides: WHAT, or WHAT@A..B */

static int open_side(struct scene *s, char *operand, struct error *err)
{
	struct window_options when = { .named = operand };
	char *what = mem_dup(operand), *at = strrchr(what, '@'), *dots = at ? strstr(at, "..") : NULL;
	if (at && !dots && access(what, F_OK) != 0) {
		free(what);
		return error_set(err, STATUS_USAGE, "as run.steal@0%..50%", "%s: no such file, and behind @ no window FROM..TO",
		                 operand);
	}
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
	struct asked asked = { .level = DIFF_LEVEL, .how = REPORT_HOW };
	const struct opt opt[] = {
		{ "assert", 0, OPT_LIST, "CONDITION", "exit status 3 unless this holds: 'same', 'lost<+5%'",
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
