/* State shared by all parts of the viewer, and services that all parts use.
 *
 * The viewer draws into a struct screen; nothing here uses curses. The functions that drive the viewer are in viewer.h.
 * The private state of each part is an opaque pointer, defined in the source file of that part. */
#pragma once

#include "query/query.h"
#include "ui/core/async_query.h"
#include "ui/input/keys.h"
#include "ui/widgets/appearance.h"
#include "ui/input/prompt.h"
#include "ui/core/rows.h"
#include "ui/widgets/ruler.h"
#include "ui/terminal/screen.h"
#include "ui/ui.h"
#include "ui/core/view.h"

enum { MAX_PANES = 16, MAX_PINS = 8 };
enum lost_unit { LOST_OF_WANTED, LOST_OF_WINDOW, LOST_OF_LIFE, LOST_TIME, LOST_UNITS };

struct app {
	/* The history shown, and the visible part of it. */
	const struct history *h;
	const struct history *first;   /* history that ui_run() was called with; borrowed. Other histories are owned */
	struct catalog catalog;
	struct rows rows;
	struct view_bounds bounds;
	struct view view;
	struct window_layout {
		int64_t t0, step;
		int cols;
	/* chosen_window: window chosen by the user; fitted_window: the same window fitted into the current columns */
	} chosen_window, fitted_window;
	struct undo undo;
	size_t top;                    /* first row shown, index into rows.row */
	bool row_chosen;               /* the user selected a row: the thread scan's end must not select another row */
	bool view_unreadable;              /* the saved view could not be read and must not be overwritten */
	struct row_id pin[MAX_PINS];
	size_t pins;

	/* Appearance of the screen. */
	struct appearance appearance;
	struct time_axis axis;
	int w, h_cells;                /* the screen's size, cells */
	enum lost_unit unit;           /* unit of the lost time next to each row's name */
	int label_w;                   /* width of the labels to the time area's left, columns */
	int rows_shown;                /* screen lines with rows in the last frame */
	struct row_id *line_row;       /* row on each line of the screen, for the mouse; kind ROW_KINDS: none */

	/* Input focus: the prompt if it is open, otherwise the list over the rows, otherwise the pane below the rows or the
	 * rows. */
	bool prompting;
	struct prompt prompt;
	struct pane *list_over, *pane_below;  /* NULL: none */
	bool focused;                  /* the pane below the rows has the focus, not the rows */
	struct pane *pane[MAX_PANES];  /* all panes and lists, by enum pane_id */
	struct keymap keymap;
	unsigned count;                /* repeat count typed before a key; 0: none */
	enum action last;              /* previous action */
	bool open_failed;                 /* the previous key should have opened a pane but showed a message instead */
	bool mouse;
	bool dragging;                 /* the mouse button was pressed on a row: its release ends a range */
	struct key_hint { int x, w; enum action action; } hint[16];  /* key hints in the last line of the last frame */
	size_t hints;
	uint32_t states_shown;         /* states of the last frame: bit = enum vis */

	/* Parts of the viewer with private state. */
	struct row_search *row_search;
	struct gap_search *gap_search;
	struct follow *follow;
	struct status_line *status;
	struct manual_offset *manual_offset;
	struct minimap *minimap;
	struct lane_names *lane_names;
	struct verdict_line *verdict;
	struct window_sums *window_sums;
	struct file_watch *file_watch;
	struct async_queries *queries;
	const struct ui_traces *traces;  /* callback that reads events; NULL: events cannot be read */
	int64_t answer_deadline;             /* time until which a frame waits for answers of the worker threads,
	                                      * CLOCK_MONOTONIC, ns */
	bool waits_for_answers;        /* each frame waits for all answers (scripts) */
	bool is_picture;               /* no key hints are drawn (pictures) */

	char message[512];             /* message shown instead of the legend until the next key; "": none */
	bool message_is_error;
	char *clipboard;               /* text to be sent to the terminal's clipboard (OSC 52); NULL: none */
	bool quit, redraw;
};

void app_message(struct app *app, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void app_fail(struct app *app, const struct error *err);
/* Shows an error message. A script stops at it. */
void app_refuse(struct app *app, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Waits for the answer until answer_deadline; then as async_take(). */
int app_take_answer(struct app *app, struct question *q, struct query **query, int64_t *cost, struct error *err);
/* Returns true if keys go to the rows or the pane below them, false if a prompt or a list is open. */
bool app_rows_have_keys(const struct app *app);
void app_prompt(struct app *app, enum prompt_kind kind, const char *initial);
void app_layout(struct app *app, int label_w);  /* Sets the labels' width; keeps the window. */
/* Returns true if the window did not change since the last app_layout(). */
bool app_window_is_unchanged(const struct app *app);
/* Fits a restored view, which was made for another column count, into the current columns. */
void app_refit(struct app *app);
void app_copy(struct app *app, const char *text);  /* copies the text to the terminal's clipboard */
void app_select(struct app *app, size_t row);  /* selects the row with this index, or the last row */
void app_show_row(struct app *app, struct row_id id);  /* selects the row; unfolds its ancestors */
/* Stores the interval of the row's state that contains t in *iv. Returns false, after a message, if the row has no
 * intervals. */
bool app_interval(struct app *app, struct row_id row, int64_t t, struct interval *iv);
