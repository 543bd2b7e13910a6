/* stealscope view: the timeline in the terminal. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json_field.h"
#include "base/mem.h"
#include "base/atomic_file.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/display_options.h"
#include "cli/trace_input.h"
#include "index/index.h"
#include "ui/ui.h"

static int parse_size(const char *text, struct ui_options *ui, struct error *err)
{
	if (!text)
		return 0;
	int used = 0;
	if (sscanf(text, "%4dx%4d%n", &ui->width, &ui->height, &used) != 2 || text[used] || ui->width < 1 || ui->height < 1)
		return error_set(err, STATUS_USAGE, "give COLUMNSxROWS, as 120x40", "--size: not a size: '%s'", text);
	return 0;
}

/* Bookmarks, and how the viewer was left, belong to traces: whatever their histories are called, and however their clocks
 * are moved. */
static char *kept_file(const struct history *h, const char *what)
{
	char name[48];
	uint64_t traces = provenance_traces(h);
	snprintf(name, sizeof name, "%016" PRIx64 ".%s", traces, what);
	return traces ? save_user_file("XDG_STATE_HOME", ".local/state", name) : NULL;
}

/* The first reason to doubt what is shown, which index said where nobody saw it, without what would mend it; NULL: there is
 * none. */
static char *greeting(const struct history *h)
{
	struct notes notes = { 0 };
	char note[NOTE_TEXT], *text = NULL;
	provenance_notes(h, &notes);
	for (size_t i = 0; i < notes.len && !text; i++)
		if (note_is_doubt(&notes.item[i], history_begin(h), history_end(h)))
			text = mem_dup(note_text(&notes.item[i], note));
	notes_release(&notes);
	char *mend = text ? strrchr(text, ';') : NULL;
	if (mend)
		*mend = '\0';
	return text;
}

/* Traces are not indexed, perhaps for minutes, for a viewer that has no terminal.  What is wrong with them comes first. */
static int check_terminal(const struct input_options *named, const struct ui_options *ui, struct error *err)
{
	struct error why = ERROR_INIT;
	struct input in;
	if (input_names_history(named) || ui_check(ui, &why) == 0)
		return 0;
	int rc = input_resolve(&in, named, err);
	input_release(&in);
	if (rc == 0)
		*err = why;
	return -1;
}

static int read_traces(const struct history *shown, const char *machine, int64_t from, int64_t to, size_t most,
                       struct progress progress, struct event_list *out, struct error *err)
{
	const struct snippet_options options = { .from = from, .to = to, .machine = machine, .progress = progress };
	return snippet_read(shown, &options, most, out, err);
}

static int view(const struct input_options *named, struct ui_options *ui, bool fresh, struct error *err)
{
	struct history *h = what_open(named, err);
	if (!h)
		return -1;
	struct nudger nudger;
	nudger_init(&nudger, h, named);
	static const struct ui_traces traces = { read_traces };
	const struct ui_clocks clocks = { &nudger, nudger_nudge, nudger_list, nudger_save };
	bool kept = !ui->script && !ui->bench;
	char *bookmarks = kept ? kept_file(h, "bookmarks") : NULL, *left = kept ? kept_file(h, "view") : NULL;
	char *notes = greeting(h);
	if (left && fresh)
		unlink(left);
	ui->clocks = &clocks;
	ui->traces = &traces;
	ui->bookmarks = bookmarks;
	ui->view = left;
	ui->greeting = notes;
	int rc = ui_run(h, ui, err);
	free(bookmarks);
	free(left);
	free(notes);
	nudger_release(&nudger);
	return what_close(h, rc, err);
}

int cmd_view(int argc, char **argv, struct error *err)
{
	struct what w = { 0 };
	struct ui_options ui = { 0 };
	static const char *const colors[] = { "auto", "never", "8", "16", "256", NULL };
	const struct looks looks = looks_shipped();
	const char *size = NULL;
	bool fresh = false;
	const struct opt opt[] = {
		LOOKS_OPTIONS(&ui, &looks),
		{ "color", 0, OPT_TEXT, "COLORS", "auto, never, 8, 16 or 256", &ui.color, colors },
		{ "fresh", 0, OPT_FLAG, NULL, "begin with the overview, not as it was left", &fresh, NULL },
		{ "script", 0, OPT_TEXT, "FILE", "run the keys and commands of FILE without a terminal", &ui.script, NULL },
		{ "size", 0, OPT_TEXT, "CxR", "columns and rows of the scripted screen", &size, NULL },
		{ "bench", 0, OPT_COUNT, "N", "draw N frames of each way of moving, print ms and bytes", &ui.bench, NULL },
		WHAT_OPTIONS(&w),
	};
	const struct opts opts = { "[view] WHAT...", "Walks the timeline of a history, or of traces (indexed on first use).",
	                           opt, sizeof opt / sizeof *opt, 0, -1 };
	int rc = what_parse(&w, &opts, argc, argv, err);
	if (rc == 0)
		rc = parse_size(size, &ui, err);
	if (rc == 0)
		rc = check_terminal(&w.named, &ui, err);
	if (rc == 0)
		rc = view(&w.named, &ui, fresh, err);
	what_release(&w);
	return rc;
}
