/* stealscope sessions: lists the live sessions of an LTTng relay daemon. */
#include "base/base.h"
#include "cli/cli.h"
#include "cli/opts.h"
#include "report/report.h"
#include "trace/trace.h"

static const struct column columns[] = {
	{ "host", "host", COL_TEXT },
	{ "session", "session", COL_TEXT },
	{ "streams", "streams", COL_INT },
	{ "viewers", "viewers", COL_INT },
	{ "timer_ns", "sent every", COL_DURATION },
	{ "url", NULL, COL_TEXT },
};

static const struct report_shape shape = REPORT_SHAPE("sessions", columns);

int cmd_sessions(int argc, char **argv, struct error *err)
{
	struct report_how how = REPORT_HOW;
	const struct opt opt[] = { ANSWER_OPTIONS(&how) };
	const struct opts opts = { "sessions net://RELAY[:PORT]", "List the live sessions of an LTTng relay daemon.", opt,
	                           sizeof opt / sizeof *opt, 1, 1 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	const char *relay = argv[first];
	if (!trace_is_live(relay))
		return error_set(err, STATUS_USAGE, "for example net://analysis:5344", "%s: not the URL of a relay daemon", relay);
	struct live_session *list;
	size_t n;
	if (trace_live_sessions(relay, &list, &n, err))
		return -1;
	struct report *r = report_begin(stdout, how, &shape, NULL);
	for (size_t i = 0; i < n; i++)
		report_row(r, (struct value[]){ VAL_TEXT(list[i].host), VAL_TEXT(list[i].name),
		                                VAL_INT((int64_t)list[i].streams), VAL_INT((int64_t)list[i].viewers),
		                                list[i].timer ? VAL_INT(list[i].timer) : VAL_NONE,
		                                VAL_TEXT(list[i].url) });
	int rc = report_end(r, err);
	if (rc == 0 && how.format == FORMAT_TEXT && n)
		printf("\nto read one: stealscope index %.*s/host/HOST/SESSION\n",
		       (int)(strcspn(relay + strlen("net://"), "/") + strlen("net://")), relay);
	trace_live_sessions_free(list, n);
	return rc;
}
