/* stealscope explain: the same answers in plain sentences. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/timefmt.h"
#include "cli/advice.h"
#include "cli/cli.h"
#include "cli/prose.h"
#include "cli/query_context.h"
#include "cli/target_arg.h"

#define TOLD 5  /* threads of a name */

/* Times of day are printed with some digits, cut off: where no gap holds the moment that was read from a screen, the
 * gap meant is the one that begins before the last digit changes. */
static int find_moment(const struct scene *s, const struct subject *who, const char *at, int64_t *t, struct error *err)
{
	struct gap gap;
	if (window_moment("--at", at, s->h, t, err))
		return -1;
	if (who->kind == SUBJECT_MACHINE || time_precision(at) == 1)
		return 0;
	int found = gap_at(&s->topo, who, *t, &gap, err);
	if (found == 0 && (found = gap_find(&s->topo, who, *t, 1, &gap, err)) > 0 && gap.start - *t < time_precision(at))
		*t = gap.start;
	return found < 0 ? -1 : 0;
}

static int explain_moment_of(struct scene *s, const char *name, const char *at, struct error *err)
{
	struct subject who;
	char *text = NULL;
	int64_t t = 0;
	if (who_parse(s, name, &who, err) || find_moment(s, &who, at, &t, err) ||
	    explain_at(&s->topo, &who, t, &text, err))
		return -1;
	prose_print(text, s->named);
	free(text);
	return 0;
}

/* Of a machine, or of all of them (NULL). */
static int machine_text(struct scene *s, const struct subject *machine, char **text, struct error *err)
{
	const struct summary_options options = { .only = machine, .from = s->window.from, .to = s->window.to, .gaps = true };
	struct summary summary = { 0 };
	struct inquiry *q = summary_open(&s->topo, &options);
	int rc = scene_run(q, err);
	if (rc == 0) {
		summary_take(q, &summary);
		summary_sort(&summary, &s->topo, SUMMARY_BY_LOST);
		rc = explain_summary(&s->topo, &summary, text, err);
	}
	inquiry_close(q);
	summary_release(&summary);
	return rc;
}

/* One after the other; what makes a machine's answer doubtful stands above it, others say it themselves.  NULL: all
 * machines. */
static int explain_each(struct scene *s, const struct subject *who, size_t n, bool advised, struct error *err)
{
	if (!who || who->kind == SUBJECT_MACHINE) {
		scene_about(s, who, REPORT_WHOLE(FORMAT_TEXT));
		origin_write_head(&s->origin, stdout);
	}
	for (size_t i = 0; i < n; i++) {
		const struct subject *one = who ? &who[i] : NULL;
		char *text = NULL;
		if (!one || one->kind == SUBJECT_MACHINE ? machine_text(s, one, &text, err)
		    : explain_window(&s->topo, one, s->window.from, s->window.to, &text, err))
			return -1;
		if (i)
			putchar('\n');
		prose_print(text, s->named);
		free(text);
		if (advised && advice_print(s, one, err))
			return -1;
	}
	return 0;
}

/* All that have that name, who lost most first. */
static int explain_named(struct scene *s, const char *name, size_t top, bool advised, struct error *err)
{
	struct subject *who = NULL;
	size_t n = 0;
	int rc = who_all(s, name, &who, &n, err);
	if (rc == 0)
		rc = explain_each(s, who, top && n > top ? top : n, advised, err);
	if (rc == 0 && top && n > top)
		printf("\nshown: %zu of the %zu of that name, those that lost most (--top)\n", top, n);
	free(who);
	return rc;
}

int cmd_explain(int argc, char **argv, struct error *err)
{
	struct window_options when = { 0 };
	const char *at = NULL;
	unsigned top = TOLD;
	bool advised = false;
	const struct opt opt[] = {
		WINDOW_OPTIONS(&when),
		{ "at", 0, OPT_TEXT, "TIME", "only the gap or interval that holds this moment", &at, NULL },
		{ "top", 0, OPT_COUNT, "N", "of those of that name the N that lost most (5; 0 = all)", &top, NULL },
		ADVISE_OPTION(&advised),
	};
	const struct opts opts = { "explain WHAT [WHO]", "What they did, what delayed them, and how sure that is.",
	                           opt, sizeof opt / sizeof *opt, 1, 2 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	const char *name = argc - first > 1 ? argv[first + 1] : NULL;
	if (at && !name)
		return error_set(err, STATUS_USAGE, "stealscope explain WHAT VM/TID --at TIME", "--at: of whom?");
	if (at && (when.from || when.to))
		return error_set(err, STATUS_USAGE, "leave out --from and --to", "--at: is one moment, not a window");
	struct scene s;
	int rc = scene_open(&s, argv[first], &when, err);
	if (rc == 0)
		rc = at     ? explain_moment_of(&s, name, at, err)
		     : name ? explain_named(&s, name, top, advised, err)
		            : explain_each(&s, NULL, 1, advised, err);
	return scene_close(&s, rc, err);
}
