/* stealscope view: opens the timeline in the terminal. */
#include <unistd.h>

#include "base/base.h"
#include "base/json_field.h"
#include "base/atomic_file.h"
#include "cli/cli.h"
#include "cli/display_options.h"
#include "cli/recording_list.h"
#include "cli/trace_input.h"
#include "index/index.h"
#include "report/report.h"
#include "ui/ui.h"

static int parse_size(const char *text, struct ui_options *ui, struct error *err)
{
	if (!text)
		return 0;
	int used = 0;
	if (sscanf(text, "%4dx%4d%n", &ui->width, &ui->height, &used) != 2 || text[used] || ui->width < 1 || ui->height < 1)
		return error_set(err, STATUS_USAGE, "use COLUMNSxROWS, for example 120x40", "--size: not a size: '%s'", text);
	return 0;
}

/* Returns the path of a file with bookmarks or view state; the caller frees. The name is a hash of the traces: it does
 * not depend on the name of the history and on manual clock offsets. NULL: no such file. */
static char *state_file(const struct history *h, const char *suffix)
{
	char name[48];
	uint64_t traces = provenance_traces_hash(h);
	snprintf(name, sizeof name, "%016" PRIx64 ".%s", traces, suffix);
	return traces ? user_file_path("XDG_STATE_HOME", ".local/state", name) : NULL;
}

/* Returns the first warning of the history without its advice, for the status line; NULL: none. The caller frees. */
static char *first_warning(const struct history *h)
{
	struct notes notes = { 0 };
	char note[NOTE_TEXT], *text = NULL;
	provenance_notes(h, &notes);
	for (size_t i = 0; i < notes.len && !text; i++)
		if (note_is_warning(&notes.item[i], history_begin(h), history_end(h)))
			text = mem_dup(note_text(&notes.item[i], note));
	notes_release(&notes);
	char *remedy = text ? strrchr(text, ';') : NULL;
	if (remedy)
		*remedy = '\0';
	return text;
}

/* Returns -1 if traces would be indexed, which may take minutes, although the viewer cannot start. Errors of the traces
 * have precedence. */
static int check_terminal(const struct input_options *named, const struct ui_options *ui, struct error *err)
{
	struct error why = ERROR_INIT;
	struct input in;
	if (input_is_history(named) || ui_check(ui, &why) == 0)
		return 0;
	int rc = input_resolve(&in, named, err);
	input_release(&in);
	if (rc == 0)
		*err = why;
	return -1;
}

static int read_traces(const struct history *shown, const char *machine, int64_t from, int64_t to, size_t max_events,
                       struct progress progress, struct event_list *out, struct error *err)
{
	const struct raw_events_options options = { .from = from, .to = to, .machine = machine, .progress = progress };
	return raw_events_read(shown, &options, max_events, out, err);
}

static int run_view(const struct input_options *named, struct ui_options *ui, bool fresh, struct error *err)
{
	struct history *h = trace_input_open(named, err);
	if (!h)
		return -1;
	trace_input_remember_host(named);
	struct offset_editor offset_editor;
	offset_editor_init(&offset_editor, h, named);
	static const struct ui_traces traces = { read_traces };
	const struct ui_clocks clocks = { &offset_editor, offset_editor_move, offset_editor_list, offset_editor_save };
	bool keeps_state = !ui->script && !ui->bench;
	char *bookmarks = keeps_state ? state_file(h, "bookmarks") : NULL,
		 *view_state = keeps_state ? state_file(h, "view") : NULL;
	char *notes = first_warning(h);
	if (view_state && fresh)
		unlink(view_state);
	ui->clocks = &clocks;
	ui->traces = &traces;
	ui->bookmarks = bookmarks;
	ui->view = view_state;
	ui->greeting = notes;
	int rc = ui_run(h, ui, err);
	free(bookmarks);
	free(view_state);
	free(notes);
	offset_editor_release(&offset_editor);
	return trace_input_close(h, rc, err);
}

/* Lists the recordings if the only operand is a directory of several; opens a recording otherwise. */
static int view_or_list(const struct input_options *named, struct ui_options *ui, bool fresh, struct error *err)
{
	struct recordings found = { 0 };
	const bool is_single = named->whats == 1 && !named->host && !named->guests;
	if (is_single && recordings_find(&found, named->what[0], 2, NULL) == 0 && found.len) {
		const int rc = recording_list_run(named->what[0], &found, ui, err);
		recordings_release(&found);
		return rc;
	}
	return check_terminal(named, ui, err) ? -1 : run_view(named, ui, fresh, err);
}

/* Puts the path of the first link among the arguments in place of it, and its place into *ui. */
static int take_link(int argc, char **argv, struct ui_options *ui, struct place_link *link, struct error *err)
{
	int found = 0;
	for (int i = 1; i < argc && found == 0; i++)
		if ((found = place_link_parse(argv[i], link, err)) > 0)
			argv[i] = link->path;
	ui->row = link->row;
	ui->at = link->at;
	return found < 0 ? -1 : 0;
}

int cmd_view(int argc, char **argv, struct error *err)
{
	struct trace_input w = { 0 };
	struct ui_options ui = { 0 };
	static const char *const colors[] = { "auto", "never", "8", "16", "256", NULL };
	const struct theme_names theme_names = display_options_themes();
	const char *size = NULL;
	bool fresh = false;
	const struct opt opt[] = {
		DISPLAY_OPTIONS(&ui, &theme_names),
		{ "color", 0, OPT_TEXT, "COLORS", "auto, never, 8, 16 or 256", &ui.color, colors },
		{ "fresh", 0, OPT_FLAG, NULL, "ignore the saved view", &fresh, NULL },
		{ "longest", 0, OPT_TEXT, "ROW", "start at the longest gap of this row (name or TID)", &ui.longest, NULL },
		{ "row", 0, OPT_TEXT, "ROW", "start at this row: a thread, CPU or machine", &ui.row, NULL },
		{ "at", 0, OPT_TEXT, "TIME", "start at this time, or the row's gap there", &ui.at, NULL },
		{ "script", 0, OPT_TEXT, "FILE", "run the keys and commands of FILE without a terminal", &ui.script, NULL },
		{ "size", 0, OPT_TEXT, "CxR", "columns and rows of the scripted screen", &size, NULL },
		{ "bench", 0, OPT_COUNT, "N", "benchmark: draw N frames per kind of move", &ui.bench, NULL },
		TRACE_INPUT_OPTIONS(&w),
	};
	const struct opts opts = { "[view] RECORDING...", "Browse the timeline of a history, or of traces (indexed on "
	                                                  "first use).",
	                           opt, sizeof opt / sizeof *opt, 0, -1 };
	struct place_link link = { NULL, NULL, NULL };
	int rc = take_link(argc, argv, &ui, &link, err);
	if (rc == 0)
		rc = trace_input_parse(&w, &opts, argc, argv, err);
	if (rc == 0)
		rc = parse_size(size, &ui, err);
	char *script = rc == 0 && ui.script ? trace_input_path(ui.script, err) : NULL;
	rc = rc == 0 && ui.script && !script ? -1 : rc;
	ui.script = script;
	if (rc == 0)
		rc = view_or_list(&w.named, &ui, fresh, err);
	place_link_release(&link);
	free(script);
	trace_input_release(&w);
	return rc;
}
