/* stealscope export: writes the history as tables for other programs. */
#include "base/base.h"
#include "cli/cli.h"
#include "cli/progress_bar.h"
#include "cli/latency_cmd.h"
#include "cli/query_context.h"
#include "cli/password_file.h"
#include "export/export.h"

static const struct column columns[] = {
	{ "table", "table", COL_TEXT },
	{ "rows", "rows", COL_INT },
	{ "row", "a row is", COL_TEXT },
};

static int list_targets(void)
{
	struct export_target t;
	for (size_t i = 0; (t = export_target(i)).scheme; i++)
		printf("%s%-*s %s\n", t.scheme, 37 - (int)strlen(t.scheme), t.operand,
		       t.built ? t.description : "(not in this build)");
	return 0;
}

static int print_result(struct query_context *s, const struct export_result *done, struct report_how how, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE("export", columns);
	query_context_about(s, NULL, how);
	struct report *r = report_begin(stdout, how, &shape, &s->origin);
	for (size_t i = 0; i < done->tables; i++)
		report_row(r, (struct value[]){ VAL_TEXT(done->table[i].name), VAL_INT((int64_t)done->table[i].rows),
			VAL_TEXT(done->table[i].description) });
	report_member(r, "run_id", json_object_new_int64(done->run));
	int rc = report_end(r, err);
	if (rc == 0 && how.format == FORMAT_TEXT)
		printf("\nrun_id %" PRId64 "\n", done->run);
	return rc;
}

static int run_export(struct query_context *s, struct export_options *options, struct report_how how, struct error *err)
{
	struct export_result done;
	struct progress_bar bar;
	options->progress = progress_bar_begin(&bar, NULL);
	int rc = export_history(&s->catalog, options, &done, err);
	progress_bar_end(&bar);
	if (rc == 0)
		rc = print_result(s, &done, how, err);
	export_result_release(&done);
	return rc;
}

/* Exports the recording's requests, or a file's spans. */
static int run_export_spans(struct query_context *s, struct export_options *options, const struct span_options *o,
                            struct report_how how, struct error *err)
{
	const struct requests_options wanted = { .from = s->window.from, .to = s->window.to, .culprits = true };
	struct requests requests = { 0 };
	struct spans spans = { 0 };
	struct notes notes = { NULL, 0, 0 };
	int64_t error;
	int rc = span_options_check(o, &error, err);
	if (rc == 0)
		rc = o->file ? span_requests_read(&s->catalog, o, &wanted, &spans, &requests, &notes, err)
		             : requests_read(&s->catalog, &wanted, &requests, &notes, err);
	if (rc == 0 && requests.len == 0 && !o->file)
		rc = error_set(err, STATUS_INPUT, "mark requests with libstealscope-mark, or give --spans",
		               "%s: no complete request found", s->named);
	struct span_clocks *clocks = rc == 0 ? span_clocks_open(&s->catalog, o, error, err) : NULL;
	if (rc == 0 && clocks) {
		options->spans = &(struct export_spans){ &requests, o->file ? &spans : NULL, clocks };
		rc = run_export(s, options, how, err);
		if (rc == 0)
			print_notes(&notes);
	} else {
		rc = -1;
	}
	span_clocks_close(clocks);
	requests_release(&requests);
	spans_release(&spans);
	notes_release(&notes);
	return rc;
}

static int open_and_export(char *recording, const char *to, const char *password, struct export_options *options,
                           const struct span_options *spans, struct report_how how, struct error *err)
{
	static const struct window_options whole_history = { 0 };
	struct query_context s;
	char *target = password_hide(to);
	options->target = target;
	int rc = password ? password_read_file(password, err) : 0;
	if (rc == 0) {
		rc = query_context_open(&s, recording, &whole_history, err);
		if (rc == 0)
			rc = export_takes_spans(target) ? run_export_spans(&s, options, spans, how, err)
			                                : run_export(&s, options, how, err);
		rc = query_context_close(&s, rc, err);
	}
	free(target);
	return rc;
}

int cmd_export(int argc, char **argv, struct error *err)
{
	struct export_options options = { 0 };
	bool targets = false;
	const char *to = NULL, *password = NULL;
	struct span_options spans = { .whole = true };
	struct report_how how = REPORT_HOW;
	int first;
	const char *scheme[EXPORT_TARGETS + 1] = { NULL };
	for (size_t i = 0; i < EXPORT_TARGETS && (scheme[i] = export_target(i).scheme); i++)
		;
	const struct opt opt[] = {
		{ "to", 0, OPT_TEXT, "TARGET", "csv:DIR, sqlite:FILE, ...: see --targets", &to, scheme },
		{ "only", 0, OPT_TEXT, "TABLES", "tables, separated by commas", &options.only, NULL },
		{ "password-file", 0, OPT_TEXT, "FILE", "its first line is the database's password", &password, NULL },
		SPAN_OPTIONS(&spans),
		{ "targets", 0, OPT_FLAG, NULL, "print the available targets instead", &targets, NULL },
		ANSWER_OPTIONS(&how),
	};
	const struct opts opts = { "export RECORDING --to TARGET", "Export the history as tables for databases, viewers "
		"and monitoring.",
	                           opt, sizeof opt / sizeof *opt, 0, 1 };
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	if (targets)
		return list_targets();
	if (first == argc || !to)
		return error_set(err, STATUS_USAGE, "for example stealscope export RECORDING --to csv:DIR; --targets lists all",
		                 "export: %s", first == argc ? "missing option --to" : "--to is missing");
	if (options.only && export_takes_spans(to))
		return error_set(err, STATUS_USAGE, NULL, "--only: the target takes spans, no tables");
	if (spans.file && !export_takes_spans(to))
		return error_set(err, STATUS_USAGE, "use --to otlp:FILE", "--spans: the target takes tables, no spans");
	return open_and_export(argv[first], to, password, &options, &spans, how, err);
}
