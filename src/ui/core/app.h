/* The viewer: what all its parts share, and the few services that all of them use.  No curses here: it draws into a
 * struct screen.  Who moves it is viewer.h; what each part keeps to itself is behind a pointer, known to its file. */
#ifndef STEALSCOPE_UI_CORE_APP_H
#define STEALSCOPE_UI_CORE_APP_H

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

enum { MOST_PANES = 16, MOST_PINS = 8 };
enum lost_unit { LOST_OF_WANTED, LOST_OF_WINDOW, LOST_OF_LIFE, LOST_TIME, LOST_UNITS };

struct app {
	/* What is looked at. */
	const struct history *h;
	const struct history *first;   /* what ui_run() was given: not ours to close, as others are */
	struct topo topo;
	struct rows rows;
	struct ground ground;
	struct view view;
	struct laid {
		int64_t t0, step;
		int cols;
	} chosen, fitted;              /* the window that somebody chose, and as it was fitted into other columns since */
	struct undo undo;
	size_t top;                    /* first row shown, index into rows.row */
	bool moved;                    /* the user chose a row: the survey must not move the cursor any more */
	bool left_unread;              /* how it was left: the file could not be read, and is not written over */
	struct row_id pin[MOST_PINS];
	size_t pins;

	/* How it looks. */
	struct look look;
	struct time_axis axis;
	int w, h_cells;                /* size of the screen that is drawn */
	enum lost_unit unit;           /* of the figure beside each row's name */
	int label_w;                   /* columns before the time area */
	int rows_shown;                /* lines of the last frame that showed rows */
	struct row_id *line_row;       /* of each line of the screen; kind ROW_KINDS: none */

	/* What has the keys: a prompt, else the list over the rows, else the pane below them or they. */
	bool prompting;
	struct prompt prompt;
	struct pane *over, *below;     /* the list; the pane below the rows; or NULL */
	bool focused;                  /* the pane has the keys, not the rows */
	struct pane *pane[MOST_PANES]; /* all there are, by enum pane_id */
	struct keymap keymap;
	unsigned count;                /* typed before a key; 0 = none */
	enum action last;              /* the action before this one */
	bool unopened;                 /* the key before was to open something, which could not be */
	bool mouse;

	/* Parts that have a state of their own. */
	struct find *find;
	struct hunt *hunt;
	struct follow *follow;
	struct status_line *status;
	struct nudge *nudge;
	struct minimap *minimap;
	struct watch *watch;
	struct asker *asker;
	int64_t answer_by;             /* until then a frame waits for answers: CLOCK_MONOTONIC, ns */
	bool patient;                  /* a script: every frame waits for all answers */
	bool still;                    /* a picture: who looks at it has no keys */

	char message[512];             /* shown instead of the legend until the next key */
	bool message_is_error;
	char *clipboard;               /* to be sent to the terminal (OSC 52), then freed */
	bool quit, redraw;
};

void app_say(struct app *app, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void app_fail(struct app *app, const struct error *err);
void app_refuse(struct app *app, const char *fmt, ...) __attribute__((format(printf, 2, 3)));  /* a script stops there */
bool app_answer(struct app *app, enum ask kind, struct answer *out);  /* waits as long as a frame may */
bool app_at_rows(const struct app *app);                       /* keys go to the rows */
void app_prompt(struct app *app, enum prompt_kind kind, const char *initial);
void app_layout(struct app *app, int label_w);                 /* columns before the time area; the window stays */
bool app_window_stays(const struct app *app);                  /* since the last layout */
void app_refit(struct app *app);                               /* an earlier view is back, whose columns were others */
void app_copy(struct app *app, const char *text);              /* to the clipboard */
void app_select(struct app *app, size_t row);                  /* row index; scrolls */
void app_show_row(struct app *app, struct row_id id);          /* unfolds and selects */
/* The interval of the row's state that holds t; false: it has said why there is none. */
bool app_interval(struct app *app, struct row_id row, int64_t t, struct interval *iv);

#endif
