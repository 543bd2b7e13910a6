/* stealscope diff: reports significant changes between two recordings or windows, and explains them. */
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/query_context.h"
#include "compare/compare.h"
#include "report/report.h"

struct diff_request {
	struct opt_list assertion;
	double level;
	bool all;
	struct report_how how;
};

/* ---- Assertions */

/* Sets *why to the reason if the threads that ran are unknown on a side; NULL: both are known. */
static int find_unknown(const struct diff_side side[2], const char **why, struct error *err)
{
	struct findings l;
	*why = NULL;
	for (int i = 0; i < 2; i++) {
		if (query_answer(findings_open(side[i].catalog, NULL, side[i].from, side[i].to), &l, err))
			return -1;
		const enum note_code code = l.item[0].why;
		if (l.item[0].kind == FINDING_NOTHING)
			*why = code < NOTE_CODE_COUNT ? note_row[code].name : "no event";
		findings_release(&l);
	}
	return 0;
}

/* why: as find_unknown() sets it. */
static int check_all(const struct diff *d, char *const *text, const struct diff_assertion *a, size_t n, const char *why,
                     FILE *out, struct error *err)
{
	size_t failed = 0;
	for (size_t i = 0; i < n; i++) {
		const struct diff_row *r;
		char change[40];
		if (why) {
			fprintf(out, "FAILS  %s: unknown (%s)\n", text[i], why);
			failed++;
			continue;
		}
		if (!diff_assertion_applies(&a[i], d))
			return error_set(err, STATUS_INPUT, "--all lists the targets that are compared", "%s: no such target in both "
			                 "recordings", text[i]);
		bool holds = diff_assertion_holds(&a[i], d, &r);
		failed += !holds;
		if (holds)
			fprintf(out, "holds  %s\n", text[i]);
		else
			fprintf(out, "FAILS  %s: %s %s%s%s %s\n", text[i], r->target, diff_quantity_name[r->quantity],
			        *r->by ? " " : "", r->by, diff_value_text(change, sizeof change, r->quantity, r->change, true));
	}
	if (failed)
		return error_set(err, STATUS_ASSERTION, NULL, "%zu of %zu assertion%s not met", failed, n, n == 1 ? "" : "s");
	return 0;
}

/* ---- Operands: RECORDING, or RECORDING@FROM..TO */

/* Returns the '@' between a file and a window in an operand that is no file itself: the first '@' after the name of a
 * file, since times on a guest's clock contain another one, otherwise the last '@'; NULL: none. */
static char *find_window(char *operand)
{
	if (access(operand, F_OK) == 0)
		return NULL;
	for (char *at = strchr(operand, '@'); at; at = strchr(at + 1, '@')) {
		*at = '\0';
		const bool is_file = access(operand, F_OK) == 0;
		*at = '@';
		if (is_file)
			return at;
	}
	return strrchr(operand, '@');
}

static int open_side(struct query_context *s, char *operand, struct error *err)
{
	struct window_options when = { .named = operand };
	char *path = mem_dup(operand), *at = find_window(path), *dots = at ? strstr(at, "..") : NULL;
	if (at && !dots) {
		free(path);
		return error_set(err, STATUS_USAGE, "for example run.steal@0%..50%",
		                 "%s: no such file; the text after @ is no window FROM..TO",
		                 operand);
	}
	if (dots) {
		*at = *dots = '\0';
		when.from = at[1] ? at + 1 : NULL;
		when.to = dots[2] ? dots + 2 : NULL;
	}
	int rc = query_context_open(s, path, &when, err);
	free(path);
	return rc;
}

/* Adds the process or the outer control group that an assertion names to the machines of a side. */
static int add_target(struct query_context *side, const struct diff_assertion *a, struct error *err)
{
	struct target target;
	char *text = mem_printf("%.*s", (int)a->target_length, a->target ? a->target : "");
	int found = 0;
	if (*text && catalog_find_machine(&side->catalog, text) < 0) {
		if (side->catalog.set)
			found = error_set(err, STATUS_USAGE, "assert one of them per command", "%s: a second process or group", text);
		else
			found = catalog_select(&side->catalog, text, true, &target, err);
	}
	free(text);
	return found < 0 ? -1 : 0;
}

static int compare_sides(struct query_context side[2], const struct diff_request *request, const struct diff_assertion *a,
                         struct error *err)
{
	struct diff_side sides[2];
	struct notes notes = { 0 };
	struct diff d;
	for (int i = 0; i < 2; i++)
		sides[i] = (struct diff_side){ &side[i].catalog, side[i].window.from, side[i].window.to };
	int rc = diff_of(sides, &(struct diff_options){ request->level, &notes }, &d, err);
	if (rc == 0) {
		struct origin origin = { 0 };
		for (int i = 0; i < 2; i++) {
			query_context_about(&side[i], NULL, request->how);
			origin_add(&origin, &side[i].origin);
		}
		if (request->how.format == FORMAT_CSV)
			print_notes(&notes);
		origin_add_warnings(&origin, &notes);
		rc = report_diff(stdout, request->how, &d, request->all, &origin, err);
		if (request->assertion.len && request->how.format == FORMAT_TEXT)
			putchar('\n');
		const char *why = NULL;
		if (rc == 0 && request->assertion.len)
			rc = find_unknown(sides, &why, err);
		if (rc == 0)
			rc = check_all(&d, (char *const *)request->assertion.item, a, request->assertion.len, why,
		               request->how.format == FORMAT_TEXT ? stdout : stderr, err);
		origin_release(&origin);
		diff_release(&d);
	}
	notes_release(&notes);
	return rc;
}

int cmd_diff(int argc, char **argv, struct error *err)
{
	struct diff_request request = { .level = DIFF_LEVEL, .how = REPORT_HOW };
	const struct opt opt[] = {
		{ "assert", 0, OPT_LIST, "CONDITION", "exit status 3 unless true: 'same', 'lost<+5%'",
		  &request.assertion, NULL },
		{ "level", 0, OPT_PERCENT, "P", "confidence level of all intervals together (99%)", &request.level, NULL },
		{ "all", 0, OPT_FLAG, NULL, "all comparisons, not only significant ones", &request.all, NULL },
		ANSWER_OPTIONS(&request.how),
	};
	const struct opts opts = { "diff BEFORE[@FROM..TO] AFTER[@FROM..TO]",
	                           "Compare two recordings or windows: significant changes and their causes.", opt,
	                           sizeof opt / sizeof *opt, 2, 2 };
	int first, rc = opts_parse(&opts, argc, argv, &first, err);
	struct diff_assertion *a = mem_new(request.assertion.len, sizeof *a);
	struct query_context side[2] = { 0 };
	if (rc == 0 && !(request.level > 0 && request.level < 1))
		rc = error_set(err, STATUS_USAGE, "use a share between 0% and 100%, exclusive",
		               "--level: invalid confidence level");
	for (size_t i = 0; i < request.assertion.len && rc == 0; i++)
		rc = diff_assertion_parse(request.assertion.item[i], &a[i], err);
	for (int i = 0; i < 2 && rc == 0; i++)
		rc = open_side(&side[i], argv[first + i], err);
	for (size_t i = 0; i < 2 * request.assertion.len && rc == 0; i++)
		rc = add_target(&side[i % 2], &a[i / 2], err);
	if (rc == 0)
		rc = compare_sides(side, &request, a, err);
	for (int i = 0; i < 2; i++)
		rc = query_context_close(&side[i], rc, err);
	free(a);
	free(request.assertion.item);
	return rc;
}
