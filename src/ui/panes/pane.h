/* Panes and lists: everything that the viewer shows besides the rows.
 *
 * - A pane is below the rows and shows an answer about their window.
 * - A list covers the rows and gets all keys until it is closed.
 *
 * Each pane or list is one source file with a table of operations and a private state. Only the table PANES lists them
 * all. Operations that a pane does not need are NULL. */
#pragma once

#include "base/timefmt.h"
#include "ui/core/app.h"
#include "ui/panes/pager.h"
#include "ui/panes/pane_export.h"

/* Table of panes: X(id, operation table, action that opens the pane, and closes it if it is open). */
#define PANES(X) \
	X(PANE_OVERVIEW, overview_pane, ACT_OVERVIEW) \
	X(PANE_FLOW, flow_pane, ACT_FLOW_TOGGLE) \
	X(PANE_BLAME, blame_pane, ACT_BLAME) \
	X(PANE_GAPS, gaps_pane, ACT_GAPS) \
	X(PANE_LOCKS, locks_pane, ACT_LOCKS) \
	X(PANE_EXITS, exits_pane, ACT_EXITS) \
	X(PANE_PATH, path_pane, ACT_PATH) \
	X(PANE_EVENTS, events_pane, ACT_EVENTS) \
	X(PANE_DIFF, diff_pane, ACT_DIFF) \
	X(PANE_DETAILS, details_pane, ACT_DETAILS) \
	X(PANE_REQUESTS, requests_pane, ACT_REQUESTS) \
	X(LIST_BOOKMARKS, bookmarks_list, ACT_BOOKMARKS) \
	X(LIST_THEMES, themes_list, ACT_THEMES) \
	X(LIST_HELP, help_list, ACT_HELP)

#define PANE_ID(id, table, action) id,
enum pane_id { PANES(PANE_ID) PANE_COUNT };
#undef PANE_ID

/* State of all panes; the first member of each pane's own state. */
struct pane {
	const struct pane_ops *ops;
	size_t lines, top;   /* lines: number of text lines below the title; top: first line shown */
	size_t at, page;     /* at: selected line; page: number of lines in the last frame */
	int y;               /* screen line of the first text line */
	int w;               /* screen width for which the lines were made, columns */
	int extra_lines;           /* lines added by the user with + and - */
	size_t reserved;         /* height reserved while there is no answer, lines */
	bool opening;        /* the pane was just opened: an error closes it again */
	bool pending, valid;   /* pending: a question is pending; valid: there is an answer, possibly to an earlier question */
	struct question question;
	struct pane_scope { struct row_id row; int64_t from, to; } scope;  /* of a pane with ops->is_scoped; window: ns */
	bool preliminary;          /* the answer is preliminary: ask again */
	int64_t from, to;    /* window of the last question, ns */
	int64_t cost;        /* time that computing the answer took, ns */
	char filter[64];     /* only lines with this text are shown; "": all */
};

/* State of a list. */
struct list {
	struct pane pane;
	struct pager pager;
	int w;               /* screen width for which the lines were made, columns */
};

#define PANE_ANSWER(type, member) .answer = offsetof(type, member), .answer_bytes = sizeof((type *)0)->member

struct pane_ops {
	size_t size;   /* size of the pane's state, bytes; the state is zero initially */
	bool is_list;     /* the pane is a list, which covers the rows */
	bool replaces_rows;     /* the pane replaces the rows (overview) */
	bool is_tall;         /* the pane may take two thirds of the space, not half */
	bool is_scoped;       /* the pane keeps the row and the window for which it was opened */
	/* Prepares the pane for the selected row. Returns false, after a message, if it cannot be shown. */
	bool (*open)(struct app *app, struct pane *p);
	void (*closed)(struct app *app, struct pane *p);
	/* called before each frame; of a pane with a question: while it has an answer */
	void (*refresh)(struct app *app, struct pane *p);
	/* The pane's question: window of the answer (NULL: that of the scope, else pane_window()), and its query for
	 * [p->from, p->to]; is_long: it takes one long step. */
	void (*window)(const struct app *app, const struct pane *p, int64_t *from, int64_t *to);
	struct query *(*query)(struct app *app, struct pane *p, struct error *err);
	bool is_long;
	size_t answer, answer_bytes;  /* place of the query's answer in the pane's state, and its size: PANE_ANSWER() */
	void (*take)(struct app *app, struct pane *p, struct query *q);  /* takes the answer; NULL: stores it in its place */
	void (*arrange)(struct app *app, struct pane *p);       /* makes the lines, for the filter and the width */
	void (*arrange_all)(struct app *app, struct pane *p);   /* makes also those after the first ones; NULL: all are made */
	void (*sort)(struct app *app, struct pane *p, int by);  /* sorts by the next column (by 1), or the previous one (-1) */
	void (*group)(struct app *app, struct pane *p);         /* groups the lines by the next key; NULL: no groups */
	/* name: "flow of Debian/3525 critical_task"; title: the complete title once there is an answer. */
	void (*name)(const struct app *app, const struct pane *p, char *buf, size_t size);
	void (*title)(const struct app *app, const struct pane *p, int w, char *buf, size_t size);
	/* Writes the reason for an empty pane; "" if the title contains it. */
	void (*empty_text)(const struct app *app, const struct pane *p, char *buf, size_t size);
	/* width of the labels before the time area on a screen of w columns; NULL: default */
	int (*label_width)(const struct pane *p, int w);
	/* Draws the headings in line y; NULL: none. Above them, above() draws its lines from line y on (s NULL: only counts)
	 * and returns their number; NULL: none. */
	void (*heading)(const struct app *app, const struct pane *p, struct screen *s, int y);
	int (*above)(const struct app *app, const struct pane *p, struct screen *s, int y);
	/* Draws text line i; the screen line was cleared before. */
	void (*line)(struct app *app, struct pane *p, struct screen *s, int y, size_t i, bool selected);
	void (*overlay)(struct app *app, const struct pane *p, struct screen *s);  /* draws over the rows (arrows) */
	void (*follow)(struct app *app, struct pane *p, size_t i);   /* moves to the object of line i (Enter) */
	void (*cursor_moved)(struct app *app, struct pane *p, size_t i);  /* called when the cursor moved to line i */
	/* mouse press on column x of the headings; NULL: sorts by the next column */
	void (*press_heading)(struct app *app, struct pane *p, int x);
	void (*tab)(struct app *app, struct pane *p);          /* handles <Tab> in a pane that replaces the rows */
	/* Text of the status line for the selected line; NULL or "": the selected row's text. */
	void (*status_text)(const struct app *app, const struct pane *p, size_t i, char *buf, size_t size);
	/* Lists: the line with this tag was picked (Enter), deleted (d), selected. */
	void (*pick)(struct app *app, struct pane *p, int64_t tag);
	void (*drop)(struct app *app, struct pane *p, int64_t tag);
	void (*move)(struct app *app, struct pane *p, int64_t tag);
	/* Lists: text of a line to edit (e), and the edited text. */
	const char *(*text)(struct pane *p, int64_t tag);
	void (*edit)(struct app *app, struct pane *p, int64_t tag, const char *text);
	/* file: name of an exported file without suffix, "flow-Debian/3525 critical_task"; export: writes the content. */
	void (*file)(const struct app *app, const struct pane *p, char *buf, size_t size);
	int (*export)(struct app *app, struct pane *p, FILE *f, enum report_format format, struct error *err);
	/* Text about lines missing in an exported file, and the command that writes all; "": none. */
	void (*omitted_text)(const struct pane *p, char *buf, size_t size);
	/* Another history of the same machines will be shown: maps the pane's rows to the new history. */
	void (*remap)(struct app *app, struct pane *p, const struct rows *old, const struct rows *new);
	void (*drop_answer)(struct pane *p);   /* frees the answer */
	void (*release)(struct pane *p);  /* frees everything else; the caller frees the state */
	/* Of a pane that shows a report. orders: columns by which the lines can be sorted, "." = as in the report, NULL: the
	 * report sorts its rows; marked:
	 * columns in the colour of lost time; merged: a column that is shown only where it differs from the line above;
	 * is_ordered: the rows of the report are in the first order; prefixes: texts before the row's title in the name
	 * ("gaps of ") and in the name of a file ("gaps-"). */
	bool is_table;
	int (*report)(struct app *app, struct pane *p, FILE *f, struct report_how how, struct origin *o, struct error *err);
	const char *orders, *marked, *merged;
	enum part (*line_part)(const struct pane *p, size_t i);  /* the style of a line; NULL: PART_NORMAL */
	bool is_ordered;
	bool shows_text;  /* the pane shows the text before the table, such as a verdict */
	const char *name_prefix, *file_prefix;
};

#define PANE_TABLE(id, table, action) extern const struct pane_ops table;
PANES(PANE_TABLE)
#undef PANE_TABLE

void panes_init(struct app *app);
void panes_release(struct app *app);
void panes_remap(struct app *app, const struct rows *old, const struct rows *new);
bool panes_cancel(struct app *app);  /* drops the pending question; false: there was none */

/* Panes on screens with fewer columns omit some of their columns; the status line shows these values. */
#define PANE_NARROW 60

int panes_label_w(const struct app *app, const struct pane *p);  /* the labels' width; p NULL: without a pane */
int pane_label_w(int w);  /* default width of the labels on a screen of w columns */

void pane_drop_answer(struct pane *p);  /* frees the answer and the lines */
bool pane_open(struct app *app, enum pane_id id);  /* false: the pane could not be opened, a message was shown */
/* Returns the pane below the rows; opens the flow of the row if there is none. NULL: it could not be opened. */
struct pane *pane_shown(struct app *app);
bool pane_action(struct app *app, enum action action);  /* false: the action does not open a pane */
void pane_close(struct app *app);  /* closes the pane below the rows */
void pane_focus(struct app *app);  /* moves the focus into the pane, or back to the rows */
/* Handles a key of the pane with the focus; false: the pane does not use the key. */
bool pane_key(struct app *app, uint32_t key);
void pane_move(struct app *app, int64_t by);  /* moves the pane's cursor by lines */
void pane_filter(struct app *app, const char *text);

/* Opens the diff pane. file: history to compare with; "": the rest of this history. */
void pane_diff(struct app *app, const char *file);

/* Stores the selected row and the window in p->scope and moves the focus into the pane. Returns false, after a message, if
 * the row is not a machine, vCPU or thread. */
bool pane_scope_open(struct app *app, struct pane *p);
/* Fills *s with the scope's target. Returns s. */
const struct target *pane_target(const struct app *app, const struct pane *p, struct target *s);

/* ---- Panes that show a report, see table_pane.c. `report` writes it, into the pane as into a file; the pane adds the
 * order and the lines' filter. Such a pane is one file: its query, its report, a title, and what Enter does. */
struct table_pane {
	struct pane pane;
	struct report_table table;     /* the report's rows, if has_table: those of the first screens, until more are needed */
	bool has_table, needs_all;
	struct time_axis axis;  /* of the times in the table */
	size_t *line;           /* rows that pass the filter, sorted */
	char *around;           /* text of the report before and after the table */
	char **text;            /* lines of it, which scroll above the table if ops->shows_text */
	size_t texts, texts_cap;
	int order;              /* number of the name in ops->orders by which the lines are sorted */
	size_t sort_column;     /* its column; table.shape.columns: none */
};
size_t table_pane_row(const struct pane *pane, size_t i);  /* returns the row of the report that line i shows */
/* Returns the first line with the text of the filter in the first column; 0: none. */
size_t table_pane_find_name(const struct pane *pane);
void table_pane_drop(struct pane *pane);  /* frees the table */
void table_pane_arrange(struct app *app, struct pane *pane);
void table_pane_arrange_all(struct app *app, struct pane *pane);
void table_pane_sort(struct app *app, struct pane *pane, int by);
void table_pane_draw_headings(const struct app *app, const struct pane *pane, struct screen *s, int y);
void table_pane_draw_line(struct app *app, struct pane *pane, struct screen *s, int y, size_t i, bool selected);
void table_pane_get_order(const struct pane *pane, char *buf, size_t size);
void table_pane_press_heading(struct app *app, struct pane *pane, int x);
void table_pane_get_name(const struct app *app, const struct pane *pane, char *buf, size_t size);
void table_pane_get_title(const struct app *app, const struct pane *pane, int w, char *buf, size_t size);
void table_pane_get_file_name(const struct app *app, const struct pane *pane, char *buf, size_t size);
void table_pane_get_status_text(const struct app *app, const struct pane *pane, size_t i, char *buf, size_t size);
int table_pane_export(struct app *app, struct pane *pane, FILE *f, enum report_format format, struct error *err);
/* Operations of such a pane that no pane replaces. */
#define TABLE_PANE .is_table = true, .arrange = table_pane_arrange, .arrange_all = table_pane_arrange_all, \
	.heading = table_pane_draw_headings, .press_heading = table_pane_press_heading, .line = table_pane_draw_line

/* Stores the window that panes use. Returns true if it is A..B, false if it is the window on the screen. */
bool pane_window(const struct app *app, int64_t *from, int64_t *to);
/* Formats a window's length: "1.47 s", or "A..B, 1.47 s" if the markers are at from and to. */
char *pane_window_text(const struct app *app, int64_t from, int64_t to, char buf[TIME_TEXT]);
/* Finds the thread that serves a request at the cursor. Returns false, after a message, if there is none. */
bool request_thread(struct app *app, struct row_id row, uint32_t *thread);
bool pane_is_below(const struct app *app);  /* true: a pane is open, and rows are visible above it */
bool pane_can_follow(const struct pane *p);  /* true: Enter works on a line of the pane */
/* Moves to a row, and zooms to an interval of it. */
void pane_go(struct app *app, struct row_id row, int64_t from, int64_t to);

/* Asks a question if the window changed, and takes an answer. A pane that fails to open closes itself. */
void pane_refresh(struct app *app, struct pane *p);
int pane_height(const struct app *app, int space);  /* height of the pane below the rows, lines; 0: none */
struct style pane_style(const struct app *app, enum part part, bool selected);  /* style of the text of a line */
void pane_draw(struct app *app, struct screen *s, int y, int height);

void list_open(struct app *app, struct pane *p);
void list_arrange(struct app *app, struct pane *p);  /* makes the lines again; keeps filter and position */
void list_key(struct app *app, uint32_t key);  /* handles a key of the open list */
void list_search(struct app *app, const char *text);  /* shows only lines that contain the text */
void list_edit(struct app *app, const char *text);  /* sets the selected line's note */
void list_close(struct app *app);
void list_release(struct pane *p);  /* frees the lines; for the operations of lists */
void list_draw(struct app *app, struct screen *s, int y, int height);
