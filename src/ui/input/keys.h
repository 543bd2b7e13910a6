/* Keys and actions. The table ACTIONS is the keymap's source, the footer, the help and the man page. */
#pragma once

#include "base/base.h"

/* A key: a Unicode character (control keys are 1 .. 31), or one of these values. */
enum key {
	KEY_CODE_NONE = 0,
	KEY_CODE_TAB = 9,
	KEY_CODE_ENTER = 13,
	KEY_CODE_ESC = 27,
	KEY_CODE_SPACE = 32,
	KEY_CODE_UP = 0x200000, KEY_CODE_DOWN, KEY_CODE_LEFT, KEY_CODE_RIGHT, KEY_CODE_PGUP, KEY_CODE_PGDN, KEY_CODE_HOME,
	KEY_CODE_END, KEY_CODE_INSERT, KEY_CODE_DELETE, KEY_CODE_BACKSPACE, KEY_CODE_BACKTAB,
	KEY_CODE_WHEEL_UP, KEY_CODE_WHEEL_DOWN, KEY_CODE_WHEEL_LEFT, KEY_CODE_WHEEL_RIGHT, KEY_CODE_ZOOM_IN, KEY_CODE_ZOOM_OUT,
	KEY_CODE_F1 = 0x200100,  /* F1; F2 is F1 + 1, and so on to F24 */
};

/* Table of actions: X(code, name in config.yaml, default keys, the help's section, help). ACT_IN_PANE_GO and the
 * following actions apply while a pane has the focus; then their keys hide the same keys of other actions. */
#define ACTIONS(X) \
	X(ACT_DOWN, "row-down", "j <Down> <WheelDown>", "Rows", "next row") \
	X(ACT_UP, "row-up", "k <Up> <WheelUp>", "Rows", "previous row") \
	X(ACT_PAGE_DOWN, "page-down", "<PgDn> <C-f>", "Rows", "a page down") \
	X(ACT_PAGE_UP, "page-up", "<PgUp> <C-b>", "Rows", "a page up") \
	X(ACT_HALF_DOWN, "half-page-down", "<C-d>", "Rows", "half a page down") \
	X(ACT_HALF_UP, "half-page-up", "<C-u>", "Rows", "half a page up") \
	X(ACT_FIRST, "first-row", "g", "Rows", "first row") \
	X(ACT_LAST, "last-row", "G", "Rows", "last row") \
	X(ACT_FOLD, "fold", "<Space>", "Rows", "fold or unfold a machine or vCPU") \
	X(ACT_FOLD_ALL, "fold-all", "M <F5>", "Rows", "fold or unfold all machines") \
	X(ACT_SORT, "sort", "o <F6>", "Rows", "sort order: time lost, lost in the window, name, id") \
	X(ACT_IDLE, "hide-idle", "H", "Rows", "hide or show idle rows, and those not alive here") \
	X(ACT_PIN, "pin", "p", "Rows", "pin the row to the top, or unpin it") \
	X(ACT_SEARCH, "search", "/ <F3>", "Rows", "search rows and threads as you type") \
	X(ACT_SEARCH_NEXT, "search-next", "n", "Rows", "next match") \
	X(ACT_SEARCH_PREV, "search-previous", "N", "Rows", "previous match") \
	X(ACT_FILTER, "filter", "\\ <F4>", "Rows", "show only names that contain a text, or match ~REGEX") \
	X(ACT_LEFT, "cursor-left", "h <Left>", "Time", "cursor one cell to the left; the view follows") \
	X(ACT_RIGHT, "cursor-right", "l <Right>", "Time", "cursor one cell to the right") \
	X(ACT_PAN_LEFT, "pan-left", "a <WheelLeft>", "Time", "pan a quarter window to the left") \
	X(ACT_PAN_RIGHT, "pan-right", "d <WheelRight>", "Time", "pan a quarter window to the right") \
	X(ACT_WINDOW_LEFT, "window-left", "A", "Time", "pan a whole window to the left") \
	X(ACT_WINDOW_RIGHT, "window-right", "D", "Time", "pan a whole window to the right") \
	X(ACT_ZOOM_IN, "zoom-in", "w + <ZoomIn>", "Time", "zoom in x2 around the cursor") \
	X(ACT_ZOOM_OUT, "zoom-out", "s - <ZoomOut>", "Time", "zoom out x2") \
	X(ACT_ZOOM_IN_8, "zoom-in-8", "W", "Time", "zoom in x8") \
	X(ACT_ZOOM_OUT_8, "zoom-out-8", "S", "Time", "zoom out x8") \
	X(ACT_WHOLE, "whole", "0", "Time", "the whole trace") \
	X(ACT_START, "start", "^ <Home>", "Time", "start of the trace") \
	X(ACT_END, "end", "$ <End>", "Time", "end of the trace") \
	X(ACT_NEXT_GAP, "next-gap", ">", "Gaps and causes", "next gap of the row of 100 us or more (:set mingap=D)") \
	X(ACT_PREV_GAP, "previous-gap", "<", "Gaps and causes", "previous gap") \
	X(ACT_NEXT_GAP_FIT, "next-gap-zoom", "}", "Gaps and causes", "next gap, zoomed to a third of the window") \
	X(ACT_PREV_GAP_FIT, "previous-gap-zoom", "{", "Gaps and causes", "previous gap, zoomed") \
	X(ACT_NEXT_INTERVAL, "next-interval", ".", "Gaps and causes", "next interval of the row") \
	X(ACT_PREV_INTERVAL, "previous-interval", ",", "Gaps and causes", "previous interval") \
	X(ACT_CAUSE, "follow-cause", "[", "Gaps and causes", "follow the cause: culprit, waker, host thread of the vCPU") \
	X(ACT_CAUSE_BACK, "cause-back", "]", "Gaps and causes", "back from the cause") \
	X(ACT_FINDING_1, "finding-1", "1", "Gaps and causes", "moment of the verdict: cursor, row, markers A and B") \
	X(ACT_FINDING_2, "finding-2", "2", "Gaps and causes", "moment of the second finding") \
	X(ACT_FINDING_3, "finding-3", "3", "Gaps and causes", "moment of the third finding") \
	X(ACT_CENTRE, "centre", "f", "Gaps and causes", "centre the interval; pressed again: zoom to it") \
	X(ACT_MARK_A, "marker-a", "(", "Markers", "set marker A at the cursor, or remove it there") \
	X(ACT_MARK_B, "marker-b", ")", "Markers", "set marker B at the cursor, or remove it there") \
	X(ACT_ZOOM_MARKERS, "zoom-markers", "z", "Markers", "zoom to the selected range, or to A..B") \
	X(ACT_RANGE, "range", "v", "Markers", "select a range: statistics in the status line") \
	X(ACT_CLEAR, "clear", "<Esc>", "Markers", "end the range selection, clear the filter; then back like q") \
	X(ACT_BOOKMARK, "bookmark", "m", "Markers", "bookmark this row and time") \
	X(ACT_BOOKMARKS, "bookmarks", "'", "Markers", "list of bookmarks; d deletes, e edits the note") \
	X(ACT_OVERVIEW, "overview", "O", "Panes", "overview: most delayed in this window") \
	X(ACT_GROUP, "group", "T", "Panes", "overview: group threads by name, process or cgroup") \
	X(ACT_BACK, "back", "<BS>", "Panes", "overview as it was; in the overview: the timeline") \
	X(ACT_FLOW, "flow", "<Enter>", "Panes", "thread: its flow; CPU: flow of its thread; machine: fold") \
	X(ACT_FLOW_TOGGLE, "flow-pane", "F", "Panes", "flow pane on or off") \
	X(ACT_REQUESTS, "requests", "R", "Panes", "requests pane") \
	X(ACT_BLAME, "blame", "B", "Panes", "CPU time taken in this window, or A..B, by culprit") \
	X(ACT_GAPS, "gaps", "P", "Panes", "gaps in this window, or A..B, longest first") \
	X(ACT_LOCKS, "locks", "b", "Panes", "lock waits in this window, or A..B, with the holders") \
	X(ACT_EXITS, "exits", "E", "Panes", "VM exits in this window, or A..B: reason, duration") \
	X(ACT_PATH, "path", "C", "Panes", "critical path in this window, or A..B: chain of waits") \
	X(ACT_EVENTS, "events", "e", "Panes", "events around the cursor, read from the traces") \
	X(ACT_DIFF, "diff", "V", "Panes", "changes: A..B, or this window, and the rest of the trace") \
	X(ACT_FOCUS, "focus", "<Tab> <S-Tab>", "Panes", "into the pane, and back; without a pane: other sums below") \
	X(ACT_PANE_DOWN, "pane-down", "J", "Panes", "scroll the pane down") \
	X(ACT_PANE_UP, "pane-up", "K", "Panes", "scroll the pane up") \
	X(ACT_DETAILS, "details", "x", "Panes", "details of the interval under the cursor") \
	X(ACT_EXPORT, "export", "X", "Panes", "export the pane to a file: .txt, .csv or .json") \
	X(ACT_COPY, "copy", "y", "Panes", "copy finding or status line with date (OSC 52)") \
	X(ACT_COMMAND, "command", ":", "Program", "command line: goto, export, theme, set, help ...") \
	X(ACT_UNIT, "lost-unit", "%", "Program", "unit of lost: % of runnable time, window, life; time") \
	X(ACT_TIME_FORMAT, "time-format", "t", "Program", "time format: wall clock, from marker A, from the start") \
	X(ACT_TIER, "glyphs", "~", "Program", "glyph tier: blocks, cells, ascii") \
	X(ACT_THEMES, "themes", "L", "Program", "legend and theme picker") \
	X(ACT_UNDO, "undo", "u", "Program", "undo a view change") \
	X(ACT_REDO, "redo", "<C-r>", "Program", "redo a view change") \
	X(ACT_REDRAW, "redraw", "<C-l>", "Program", "redraw the screen") \
	X(ACT_HELP, "help", "? <F1>", "Program", "help; type / in it to search") \
	X(ACT_QUIT, "quit", "q", "Program", "back: from the pane, then to the overview, which it quits") \
	X(ACT_EXIT, "exit", "Q <F10>", "Program", "quit") \
	X(ACT_IN_PANE_GO, "in-pane-go", "<Enter>", "In a pane", "go to the row or time of the line") \
	X(ACT_IN_PANE_SORT, "in-pane-sort", "o <F6>", "In a pane", "sort by the next column") \
	X(ACT_IN_PANE_SORT_BACK, "in-pane-sort-back", "O", "In a pane", "sort by the previous column") \
	X(ACT_IN_PANE_GROUP, "in-pane-group", "T", "In a pane", "overview: the next grouping") \
	X(ACT_IN_PANE_FILTER, "in-pane-filter", "\\ / <F3> <F4>", "In a pane", "show only lines with a text, or ~REGEX") \
	X(ACT_IN_PANE_EXPORT, "in-pane-export", "e", "In a pane", "export the pane to a file") \
	X(ACT_IN_PANE_COPY, "in-pane-copy", "y", "In a pane", "copy the line to the clipboard (OSC 52)") \
	X(ACT_IN_PANE_PAGE, "in-pane-page-down", "<Space>", "In a pane", "a page down") \
	X(ACT_IN_PANE_GROW, "in-pane-grow", "+", "In a pane", "make the pane higher") \
	X(ACT_IN_PANE_SHRINK, "in-pane-shrink", "-", "In a pane", "make the pane lower") \
	X(ACT_IN_PANE_CLOSE, "in-pane-close", "q <Esc>", "In a pane", "Esc clears the filter; then close the pane")

#define ACTION_CODE(code, name, keys, section, help) code,
enum action { ACT_NONE, ACTIONS(ACTION_CODE) ACT_COUNT };
#undef ACTION_CODE

struct action_info { const char *name, *keys, *section, *help; };
extern const struct action_info action_info[ACT_COUNT];  /* [ACT_NONE] is empty */

struct keymap {
	struct binding {
		uint32_t key;
		enum action action;
	} *binding;
	size_t len, cap;
};

void keymap_init(struct keymap *m);  /* binds the default keys */
void keymap_release(struct keymap *m);
enum action keymap_find(const struct keymap *m, uint32_t key);
/* ACT_IN_PANE_GO or a later action; ACT_NONE: none. */
enum action keymap_find_in_pane(const struct keymap *m, uint32_t key);
void keymap_bind(struct keymap *m, uint32_t key, enum action action);
/* Returns a key of the action that is no mouse wheel; 0: none. */
uint32_t keymap_key(const struct keymap *m, enum action action);
/* Writes the keys of an action as text: "j, <Down>". */
char *keymap_text(const struct keymap *m, enum action action, char *buf, size_t size);
/* Prints a macro and one word after it as mdoc(7) to stdout; escapes the characters that mdoc interprets. */
void key_print_mdoc(const char *macro, const char *s);
enum action action_of_name(const char *name);  /* ACT_NONE: no such action */

/* Reads one key from the text at *at ("j", "<C-d>", "<Enter>") and advances *at. Returns 0 at the end. A '<' that does
 * not begin a key name is the key '<'. */
uint32_t key_parse(const char **at);
char *key_text(uint32_t key, char *buf, size_t size);

/* Settings of config.yaml except the keys, which config_load() binds in the keymap. Owns its strings. */
struct config {
	char *theme, *glyphs, *color, *time;
	bool mouse;
};
/* Reads the settings. file NULL: $XDG_CONFIG_HOME/stealscope/config.yaml, if it exists. Returns 0, or -1. */
int config_load(struct config *c, struct keymap *m, const char *file, struct error *err);
void config_release(struct config *c);
