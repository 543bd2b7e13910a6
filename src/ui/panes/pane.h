/* Panes and lists: what the viewer shows besides the rows.
 *
 * A pane stands below the rows and tells something of their window; a list stands over them and has all keys until it
 * is closed.  Each is one file: a table of operations and a state that no other file knows.  PANES is all there is of
 * them elsewhere.  Operations that a pane lacks are NULL. */
#ifndef STEALSCOPE_UI_PANES_PANE_H
#define STEALSCOPE_UI_PANES_PANE_H

#include "base/timefmt.h"
#include "ui/core/app.h"
#include "ui/panes/pager.h"
#include "ui/panes/pane_export.h"

/* X(id, table of operations, the action that shows it, and closes what stands beside the rows) */
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
	X(LIST_REQUESTS, requests_list, ACT_REQUESTS) \
	X(LIST_DETAILS, details_list, ACT_DETAILS) \
	X(LIST_BOOKMARKS, bookmarks_list, ACT_BOOKMARKS) \
	X(LIST_THEMES, themes_list, ACT_THEMES) \
	X(LIST_HELP, help_list, ACT_HELP)

#define PANE_ID(id, table, action) id,
enum pane_id { PANES(PANE_ID) PANE_COUNT };
#undef PANE_ID

/* The state of a pane begins with this. */
struct pane {
	const struct pane_ops *ops;
	size_t lines, top;   /* of text below its title; the first one shown */
	size_t at, page;     /* the line of its cursor; lines of the last frame */
	size_t first;        /* the line that the cursor begins on where it is in sight without scrolling; 0: the top */
	size_t least;        /* lines for which it takes more than half of the room */
	bool leadless;       /* they lead nowhere */
	int y;               /* where these began on the screen */
	int w;               /* columns of the screen that they were made for */
	int grown;           /* lines by which the user made it higher than it is by itself */
	size_t room;         /* lines to keep free until there is an answer */
	bool opening;        /* just opened: an error closes it again */
	bool asked, valid;   /* an answer is to come; there is one, if perhaps of before */
	bool stale;          /* the answer is to be followed by a better one: ask again */
	int64_t from, to;    /* the window that was asked for last, ns */
	int64_t cost;        /* ns it took to answer */
	char filter[64];     /* only lines that contain it; "": all */
};

/* The state of a list. */
struct list {
	struct pane pane;
	struct pager pager;
	int w;               /* columns of the screen that its lines were made for */
};

struct pane_ops {
	size_t size;   /* bytes of the state, zeroed at first */
	bool over;     /* a list: over the rows */
	bool full;     /* a pane in the place of the rows */
	/* Gets ready to be shown, for the selected row; false: it has said why not, and stays as it was. */
	bool (*open)(struct app *app, struct pane *p);
	void (*closed)(struct app *app, struct pane *p);
	void (*refresh)(struct app *app, struct pane *p);  /* before each frame, of what asks no questions */
	enum ask ask;  /* the kind of its question */
	void (*question)(const struct app *app, const struct pane *p, struct question *q);
	void (*answer)(struct app *app, struct pane *p, struct answer *answer);  /* takes it over: what it holds is good */
	void (*arrange)(struct app *app, struct pane *p);       /* makes its lines anew: for another filter or width */
	void (*sort)(struct app *app, struct pane *p, int by);  /* by the next column, or the one before */
	/* "flow of Debian/3525 critical_task"; and all of the title's text when the pane is up to date. */
	void (*name)(const struct app *app, const struct pane *p, char *buf, size_t size);
	void (*title)(const struct app *app, const struct pane *p, int w, char *buf, size_t size);
	/* Why it has no lines, where its title does not say it all; "": it does. */
	void (*none)(const struct app *app, const struct pane *p, char *buf, size_t size);
	int (*wide)(int w);    /* columns before the time area while it is open, on a screen of w; NULL: as without it */
	int headings;          /* lines beneath its title, which heading() draws from y on */
	void (*heading)(const struct app *app, const struct pane *p, struct screen *s, int y);
	void (*line)(struct app *app, struct pane *p, struct screen *s, int y, size_t i, bool selected);  /* blank as yet */
	void (*overlay)(struct app *app, const struct pane *p, struct screen *s);  /* draws over the rows */
	void (*go)(struct app *app, struct pane *p, size_t i);   /* to what the line is about */
	void (*come)(struct app *app, struct pane *p, size_t i); /* the cursor came upon the line */
	void (*round)(struct app *app, struct pane *p);          /* in the place of the rows: what Tab does */
	/* What the status line says of a line while the pane has the keys; NULL or "": what it says of the row. */
	void (*tell)(const struct app *app, const struct pane *p, size_t i, char *buf, size_t size);
	/* Lists: a line by its tag is chosen (Enter), dropped (d), come upon. */
	void (*pick)(struct app *app, struct pane *p, int64_t tag);
	void (*drop)(struct app *app, struct pane *p, int64_t tag);
	void (*move)(struct app *app, struct pane *p, int64_t tag);
	/* Lists: a line's text that can be written anew (e), and what was written. */
	const char *(*text)(struct pane *p, int64_t tag);
	void (*edit)(struct app *app, struct pane *p, int64_t tag, const char *text);
	/* "flow-Debian/3525 critical_task": what an exported file is called, but for its ending; what is in it. */
	void (*file)(const struct app *app, const struct pane *p, char *buf, size_t size);
	int (*export)(struct app *app, struct pane *p, FILE *f, enum report_format format, struct error *err);
	void (*lacks)(const struct pane *p, char *buf, size_t size);  /* what is not in it, and what has all; or "" */
	/* Another history, of the same machines, is about to be shown instead: what names rows is translated. */
	void (*carry)(struct app *app, struct pane *p, const struct rows *was, const struct rows *is);
	void (*forget)(struct pane *p);   /* frees what it was answered */
	void (*release)(struct pane *p);  /* and all else; the state itself is freed by the caller */
};

#define PANE_TABLE(id, table, action) extern const struct pane_ops table;
PANES(PANE_TABLE)
#undef PANE_TABLE

void panes_init(struct app *app);
void panes_release(struct app *app);
void panes_carry(struct app *app, const struct rows *was, const struct rows *is);
bool panes_cancel(struct app *app);                     /* what is being asked; false when nothing is */

#define PANE_NARROW 60  /* on screens of fewer columns panes leave some of theirs out, which the status line tells */

int panes_label_w(const struct app *app, const struct pane *p);  /* columns before the time area; p NULL: without a pane */
int pane_label_w(int w);                                /* the same on a screen of w where no pane wants others */

bool pane_open(struct app *app, enum pane_id id);       /* false: it has said why not */
struct pane *pane_shown(struct app *app);               /* the one below the rows, else the flow of the row; NULL: none */
bool pane_action(struct app *app, enum action action);  /* false: it shows no pane */
void pane_close(struct app *app);                       /* the one below the rows */
void pane_focus(struct app *app);                       /* gives it the keys, or takes them back */
bool pane_key(struct app *app, uint32_t key);           /* of the one that has the keys; false: it is not for it */
void pane_move(struct app *app, int64_t by);            /* its cursor */
void pane_filter(struct app *app, const char *text);

/* The diff pane: against another history; file "": against the rest of this one. */
void pane_diff(struct app *app, const char *file);

/* Of panes that stay with the row and the window for which they were opened. */
struct pane_scope {
	struct row_id row;
	int64_t from, to;      /* ns */
};
/* About the row at the cursor and what is on the screen, with the keys; false: it has said why not. */
bool pane_scope_open(struct app *app, struct pane *p, struct pane_scope *scope);
void pane_scope_ask(const struct app *app, const struct pane_scope *scope, struct question *q);
bool pane_window(const struct app *app, int64_t *from, int64_t *to);  /* A..B, else what the screen shows: false */
/* "1.47 s", or "A..B, 1.47 s" while the markers stand there. */
char *pane_span_text(const struct app *app, int64_t from, int64_t to, char buf[TIME_TEXT]);
/* The thread that serves a request at the cursor; false: it has said why there is none. */
bool request_thread(struct app *app, struct row_id row, uint32_t *thread);
bool pane_is_beside(const struct app *app);              /* is one open that leaves room for the rows? */
bool pane_leads(const struct pane *p);                  /* is there a line to go from? */
void pane_go(struct app *app, struct row_id row, int64_t from, int64_t to);  /* to a row, and a time of it */

/* Asks if another window is shown, takes what was answered.  A pane that cannot open closes itself. */
void pane_refresh(struct app *app, struct pane *p);
int pane_height(const struct app *app, int room);       /* lines of the one below the rows; 0: there is none */
struct style pane_style(const struct app *app, enum part part, bool selected);  /* of the text of a line */
void pane_draw(struct app *app, struct screen *s, int y, int height);

void list_open(struct app *app, struct pane *p);
void list_arrange(struct app *app, struct pane *p);     /* its lines anew, with the filter and at the place that it had */
void list_key(struct app *app, uint32_t key);           /* for the list that is open */
void list_search(struct app *app, const char *text);    /* only lines that contain it */
void list_edit(struct app *app, const char *text);      /* that of the line that is chosen */
void list_close(struct app *app);
void list_release(struct pane *p);                      /* frees its lines: for the table of a list */
void list_draw(struct app *app, struct screen *s, int y, int height);

#endif
