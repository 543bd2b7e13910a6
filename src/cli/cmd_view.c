/* stealscope view: the timeline in the terminal. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"
#include "cli/build.h"
#include "cli/cli.h"
#include "cli/field.h"
#include "cli/header.h"
#include "cli/nudge.h"
#include "cli/provenance.h"
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

/* Bookmarks belong to traces: whatever their histories are called, and however their clocks are moved. */
static char *bookmark_file(const struct history *h)
{
	char name[48];
	uint64_t traces = provenance_traces(h);
	snprintf(name, sizeof name, "%016" PRIx64 ".bookmarks", traces);
	return traces ? user_file("XDG_STATE_HOME", ".local/state", name) : NULL;
}

static char **evidence(const struct topo *topo, const struct subject *s, size_t *lines)
{
	struct header header;
	header_make(&header, topo, s);
	*lines = header.len;
	return header.line;
}

/* The notes of the history, which index printed where nobody saw them: the first, and how many more there are. */
static char *greeting(const struct history *h)
{
	struct json_object *doc = provenance_load(h, NULL), *notes = doc ? field_array(doc, "notes") : NULL;
	size_t n = notes ? json_object_array_length(notes) : 0;
	char note[400], more[64] = "", *text = NULL;
	if (n > 1)
		snprintf(more, sizeof more, " (%zu more: stealscope info)", n - 1);
	if (n > 0)
		text = mem_printf("%s%s", text_escape(note, sizeof note,
		                  json_object_get_string(json_object_array_get_idx(notes, 0))), more);
	json_object_put(doc);
	return text;
}

int cmd_view(int argc, char **argv, struct error *err)
{
	struct input in = { 0 };
	struct ui_options ui = { 0 };
	const char *size = NULL;
	const struct opt opt[] = {
		{ "theme", 0, OPT_TEXT, "THEME", "theme: a name or a file", &ui.theme, NULL },
		{ "glyphs", 0, OPT_TEXT, "TIER", "ascii, cells or blocks", &ui.glyphs, NULL },
		{ "color", 0, OPT_TEXT, "COLORS", "auto, never, 8, 16 or 256", &ui.color, NULL },
		{ "script", 0, OPT_TEXT, "FILE", "run the keys and commands of FILE without a terminal", &ui.script, NULL },
		{ "size", 0, OPT_TEXT, "CxR", "columns and rows of the scripted screen", &size, NULL },
		{ "bench", 0, OPT_COUNT, "N", "draw N frames of each way of moving, print ms and bytes", &ui.bench, NULL },
		INPUT_OPTIONS(&in),
	};
	const struct opts opts = { "[view] WHAT...", "Walks the timeline of a history, or of traces (indexed on first use).",
	                           opt, sizeof opt / sizeof *opt, 0, -1 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	in.what = argv + first;
	in.whats = argc - first;
	if (parse_size(size, &ui, err))
		return -1;
	struct history *h = open_what(&in, err);
	struct nudger nudger;
	nudger_init(&nudger, h, &in);
	ui.clocks = &nudger.clocks;
	ui.evidence = evidence;
	char *bookmarks = h && !ui.script && !ui.bench ? bookmark_file(h) : NULL;
	ui.bookmarks = bookmarks;
	char *notes = h ? greeting(h) : NULL;
	ui.greeting = notes;
	int rc = h ? ui_run(h, &ui, err) : -1;
	free(bookmarks);
	free(notes);
	nudger_release(&nudger);
	rc = close_what(h, rc, err);
	input_release(&in);
	return rc;
}
