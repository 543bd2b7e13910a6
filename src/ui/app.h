/* The viewer: what it knows and what it does with a key.  No curses here: it draws into a struct screen.
 *
 * A key goes through app_key(), which changes the state and nothing else; app_draw() draws all of it.  The caller
 * decides when: a terminal drains all pending keys and draws once, a script draws when it wants to look. */
#ifndef STEALSCOPE_UI_APP_H
#define STEALSCOPE_UI_APP_H

#include "flow/flow.h"
#include "ui/ask.h"
#include "ui/cells.h"
#include "ui/keys.h"
#include "ui/pager.h"
#include "ui/prompt.h"
#include "ui/rows.h"
#include "ui/ruler.h"
#include "ui/screen.h"
#include "ui/theme.h"
#include "ui/ui.h"
#include "ui/view.h"

enum tier { TIER_ASCII, TIER_CELLS, TIER_BLOCKS, TIERS };
enum mode { MODE_ROWS, MODE_PROMPT, MODE_PAGER };
enum pane { PANE_NONE, PANE_FLOW, PANE_BLAME };

extern const char *const tier_name[TIERS];

#define OWNER_UNKNOWN (HISTORY_STATES - 2)  /* code of an owner that nobody knows */
#define OWNER_OTHER (HISTORY_STATES - 3)    /* of all VMs that are too many to have one */

/* Meaning of a row's states: one per state vocabulary of the history. */
struct vocabulary {
	uint8_t code[HISTORY_STATES];
	uint8_t severity[HISTORY_STATES];
	bool owners;  /* codes are owners of a pCPU, not enum vis */
};

/* The execution flow of one thread, ready to be drawn.  See flowpane.c. */
struct flow_pane {
	bool valid, stale;     /* stale: the window changed since it was asked for */
	bool asked;            /* an answer is to come; what is shown is of before */
	bool opening, cut;     /* just opened: an error closes it again; it was too long and ends early */
	uint32_t thread;
	int64_t from, to;      /* the window that was asked for, ns */
	struct flow flow;
	struct flow_line {
		int32_t system;
		uint32_t entry;    /* index into flow.entry; UINT32_MAX: the line of the system */
		int64_t duration;  /* ns */
	} *line;
	size_t lines, lines_cap;
	size_t room;           /* lines to keep free until there is an answer */
	uint32_t *entry_of;    /* of each interval */
	struct cell *lane;     /* bars: lane_cols cells for each line from lane_top on, or NULL */
	size_t lane_top;
	int lane_cols;
	int64_t cost;          /* ns it took to compute */
	size_t top;
};

/* Who took from whom in the window.  See blame.c. */
struct blame_pane {
	bool valid, stale, asked, by_machine;
	int64_t from, to;
	int64_t cost;          /* ns it took to compute */
	struct steal steal;
	struct blame_line { char *text; int64_t ns; bool heading; } *line;
	size_t lines, lines_cap;
	size_t room;           /* as above */
	size_t top;
};

/* One request as the application marked it. */
struct request_mark {
	uint32_t attr;        /* its inner node in the history: name and machine */
	int64_t start, end;   /* ns, closed */
	int64_t thread;       /* index into topo->thread of its server, -1 = unknown */
	int64_t lost;         /* ns that the server thread was kept from running meanwhile */
};

/* The search for the next gap that is worth seeing.  See hunt.c. */
struct gap_hunt {
	bool on, zoom;
	enum { HUNT_LONG, HUNT_OTHER_WAY, HUNT_ANY } phase;
	struct subject subject;
	int direction;
	int64_t from, t;       /* where it began, where it is */
	int64_t wanted, found; /* gaps */
	struct gap gap;        /* the last one found */
	struct view before;
};

struct bookmark {
	struct view view;
};

/* The sentence of the status line, kept until row, cursor or window change. */
struct status_cache {
	bool valid, asked;     /* asked: who was it is still to be told */
	struct row_id row;
	int64_t cursor, step, from;
	char sentence[512], shares[256];
};

struct app {
	const struct history *h;
	const struct history *first;   /* what ui_run() was given: not ours to close, as others are */
	const struct ui_clocks *clocks;  /* or NULL */
	char **(*evidence)(const struct topo *topo, const struct subject *s, size_t *lines);  /* or NULL */
	struct nudge_job *nudge;       /* another history in the making, or NULL.  See nudge.c */
	char nudged[128];              /* whose clocks are moved: "Debian +3 us", or "" */
	struct topo topo;
	struct rows rows;
	struct ground ground;
	struct view view;
	struct undo undo;
	size_t top;                    /* first row shown, index into rows.row */
	bool moved;                    /* the user chose a row: the survey must not move the cursor any more */
	struct row_id pin[8];
	size_t pins;

	struct theme theme;
	struct palette palette;
	enum depth depth;
	char color[16];                /* what was asked for, by --color or the configuration; "" = auto */
	enum tier tier, best_tier;     /* chosen; the richest that the terminal shows */
	bool coarse;                   /* draw cells instead of blocks: a key repeats */
	struct time_axis axis;
	struct keymap keymap;
	struct vocabulary vcpu, thread, request_states, *owner;  /* owner: per CPU of the topology, NULL without pCPUs */
	unsigned count;                /* typed before a key; 0 = none */
	enum action last;              /* the action before this one */
	bool mouse;
	int64_t least_gap;             /* ns; shorter gaps are passed over by > and < */

	enum mode mode;
	struct prompt prompt;
	struct pager pager;
	enum pane pane;
	struct flow_pane flow;
	struct blame_pane blame;
	struct bookmark *bookmark;
	size_t bookmarks, bookmarks_cap;
	char *bookmark_file;           /* keeps them, or NULL */
	struct request_mark *request;
	size_t requests, requests_cap;
	char search[64];
	struct {
		struct row_id row;
		bool hide_idle;
		char filter[64];
	} typed_from;                  /* how it was when a search, or a filter, began to be typed */
	struct row_id cause[32];       /* rows left by follow-cause */
	size_t causes;
	bool culprit_asked;            /* the next one is to be told by the helper */
	int64_t culprit_until;         /* end of the interval that it is the culprit of */
	bool details_asked;            /* the list of details lacks its paragraph */
	struct status_cache status;
	struct gap_hunt hunt;
	struct asker *asker;
	int64_t answer_by;             /* until then a frame waits for answers: CLOCK_MONOTONIC, ns */
	bool patient;                  /* a script: every frame waits for all answers */

	char message[512];             /* shown instead of the legend until the next key */
	bool message_is_error;
	char *clipboard;               /* to be sent to the terminal (OSC 52), then freed */
	bool quit, redraw;
	int w, h_cells;                /* size of the screen that is drawn */
	int rows_shown;                /* lines of the last frame that showed rows */
	int label_w;                   /* columns before the time area */
};

int app_init(struct app *app, const struct history *h, const struct ui_options *options, struct error *err);
void app_release(struct app *app);
void app_resize(struct app *app, int w, int h);
void app_key(struct app *app, uint32_t key);
/* Long work in small steps: true while there is more to do.  The caller draws when *changed. */
bool app_work(struct app *app, int64_t budget_ns, bool *changed);
void app_begin_frame(struct app *app);  /* allows a frame its time to wait for answers */
/* Draws everything.  Errors of reading the history end up in app->message. */
void app_draw(struct app *app, struct screen *s);

/* ---- inner parts, one file each ------------------------------------------------------------------------- */

void app_say(struct app *app, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void app_fail(struct app *app, const struct error *err);
void app_set_theme(struct app *app, const struct theme *theme);
void app_set_depth(struct app *app, enum depth depth);
bool app_answer(struct app *app, enum ask kind, struct answer *out);  /* waits as long as a frame may */
bool app_cancel(struct app *app);                              /* what is being asked; false when nothing is */
void app_meet(struct app *app);                                /* a history that was not shown before */
/* Shows another history of the same machines at the same place; takes h, and moves the contents of topo and rows. */
void app_adopt(struct app *app, struct history *h, struct topo *topo, struct rows *rows);
void app_do(struct app *app, enum action action);              /* actions.c */
void app_select(struct app *app, size_t row);                  /* row index; scrolls */
void app_show_row(struct app *app, struct row_id id);          /* unfolds and selects */
void app_filter(struct app *app, const char *text, struct row_id from);  /* only such threads; the cursor from there */
void hunt_start(struct app *app, int direction, int64_t n, bool zoom);  /* hunt.c: to the n-th gap of the row */
bool hunt_work(struct app *app, int64_t budget_ns, bool *changed);
void app_cause(struct app *app);
bool cause_work(struct app *app);                              /* true when the culprit has come to be known */
void cause_drop(struct app *app);
void app_cause_back(struct app *app);
bool app_interval(struct app *app, struct row_id row, int64_t t, struct interval *iv);
uint32_t app_row_attr(const struct app *app, struct row_id row);  /* its state attribute; HISTORY_NONE */
/* The row's cells; scratch attrs live in *attrs_out, to be freed. */
void app_source(const struct app *app, struct row_id row, struct cell_source *src, uint32_t **attrs_out);
struct glyph app_glyph(const struct app *app, struct cell c, bool owners);
/* The machine that a host's CPU shows by this code (2 ..): its name; NULL: there are no more. */
const char *app_owner(const struct app *app, unsigned code, char *letter, struct style *style);
const char *app_code_label(const struct app *app, struct row_id row, unsigned code);

void command_run(struct app *app, const char *line);           /* command.c */
void command_complete(struct app *app);                        /* the line being written */
void command_help(struct pager *pager);

void nudge_start(struct app *app, const char *guest, int64_t ns);  /* nudge.c: that clock, by ns in all */
bool nudge_cancel(struct app *app);                            /* false when there is nothing to cancel */
void nudge_work(struct app *app, bool *changed);
bool nudge_text(struct app *app, char *buf, size_t size);      /* how far it is; false when nothing is in the making */
void nudge_release(struct app *app);

void status_draw(struct app *app, struct screen *s, int y);    /* status.c */
void status_update(struct app *app);
/* How far the clock of a VM may be off at the cursor, ns; -1 = not known. */
int64_t app_clock_band(const struct app *app, uint32_t machine);

bool flow_pane_open(struct app *app);                          /* flowpane.c: of the selected row */
void flow_pane_refresh(struct app *app);
void flow_pane_release(struct flow_pane *p);
int flow_pane_height(const struct app *app, int room);
void flow_pane_draw(struct app *app, struct screen *s, int y, int height);

void blame_refresh(struct app *app);                           /* blame.c */
void blame_release(struct blame_pane *p);
void blame_draw(struct app *app, struct screen *s, int y, int height);

void open_help(struct app *app);                               /* lists.c */
void open_themes(struct app *app);
void open_details(struct app *app);
void details_refresh(struct app *app);
void details_drop(struct app *app);
void open_bookmarks(struct app *app);
void bookmarks_load(struct app *app, const char *file);        /* bookmarks.c; file NULL: they are not kept */
int bookmarks_save(const struct app *app, struct error *err);
void bookmark_here(struct app *app);
void bookmark_drop(struct app *app, size_t i);
bool bookmarks_open(struct app *app);                          /* lists them; false when there are none */
void open_requests(struct app *app);                           /* requests.c */
void request_picked(struct app *app, size_t index);
void lists_picked(struct app *app, int64_t tag);
void lists_dropped(struct app *app, int64_t tag);
void lists_moved(struct app *app, int64_t tag);

/* Writes the current pane; the format is told by the ending of the name.  Says what it did. */
void export_default_name(const struct app *app, char *buf, size_t size);  /* export.c */
void export_pane(struct app *app, const char *file);

#endif
