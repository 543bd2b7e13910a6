/* stealscope explain: the same answers in plain sentences. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/timefmt.h"
#include "cli/cli.h"
#include "cli/prose.h"
#include "cli/scene.h"
#include "cli/who.h"

/* Times of day are printed with some digits, cut off: where no gap holds the moment that was read from a screen, the
 * gap meant is the one that begins before the last digit changes. */
static int find_moment(const struct scene *s, const struct subject *who, const char *at, int64_t *t, struct error *err)
{
	struct gap gap;
	if (!time_parse(at, history_begin(s->h), history_end(s->h), t))
		return error_set(err, STATUS_USAGE, "give ns, 12:03:04.5, +3ms or 50%", "--at: not a time: '%s'", at);
	if (who->kind == SUBJECT_MACHINE || time_precision(at) == 1)
		return 0;
	int found = gap_at(&s->topo, who, *t, &gap, err);
	if (found == 0 && (found = gap_find(&s->topo, who, *t, 1, &gap, err)) > 0 && gap.start - *t < time_precision(at))
		*t = gap.start;
	return found < 0 ? -1 : 0;
}

int cmd_explain(int argc, char **argv, struct error *err)
{
	struct window_options when = { 0 };
	const char *at = NULL;
	const struct opt opt[] = {
		WINDOW_OPTIONS(&when),
		{ "at", 0, OPT_TEXT, "TIME", "only the gap or interval that holds this moment", &at, NULL },
	};
	const struct opts opts = { "explain WHAT VM/TID", "What a thread or vCPU did, what delayed it, and how sure that is.",
	                           opt, sizeof opt / sizeof *opt, 2, 2 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	struct scene s;
	struct subject who;
	char *text = NULL;
	int64_t t = 0;
	int rc = scene_open(&s, argv[first], &when, err);
	if (rc == 0)
		rc = who_parse(&s, argv[first + 1], &who, err);
	if (rc == 0 && at)
		rc = find_moment(&s, &who, at, &t, err);
	if (rc == 0)
		rc = at ? explain_at(&s.topo, &who, t, &text, err)
		        : explain_window(&s.topo, &who, s.window.from, s.window.to, &text, err);
	if (rc == 0) {
		scene_about(&s, &who, FORMAT_TEXT);
		origin_write_doubts(&s.origin, stdout);
		prose_print(text);
	}
	free(text);
	return scene_close(&s, rc, err);
}
