/* The screen of `stealscope top` (private to ui/). */
#pragma once

#include "live/live.h"
#include "ui/input/prompt.h"
#include "ui/terminal/screen.h"
#include "ui/ui.h"
#include "ui/widgets/theme.h"

#define TOP_SAMPLES 300    /* samples kept to walk back: 10 minutes with one every 2 s */

#define TOP_LISTED 3       /* a flight's newest saved recordings, listed below the table */

enum top_view { TOP_VMS = 1, TOP_VCPUS, TOP_CPUS, TOP_CULPRITS };
enum top_sort { SORT_STEAL, SORT_RUN, SORT_THROTTLED, SORT_LONGEST, SORT_NAME, SORTS };

/* The input line's purpose. */
enum top_ask { TOP_ASK_NOTHING, TOP_ASK_FILTER, TOP_ASK_SEARCH, TOP_ASK_DELAY, TOP_ASK_TRIGGER };
/* Work for the loop that a key asks for. */
enum top_request { TOP_NOTHING, TOP_RECORD, TOP_ARM, TOP_OPEN, TOP_COPY, TOP_PICTURE };


/* A table line. */
struct top_row {
	char name[LIVE_NAME + 8];
	int32_t vcpu, culprit, cpu;    /* indices into the sample; -1: none. Of a group: its worst vCPU or process */
	int32_t group;                 /* index of a group's row; -1: no group */
	unsigned vcpus;                /* in a group: its vCPUs or processes */
	double run, steal, throttled, vmm, pause;  /* shares of the period; of a VM: run is the sum, others the mean; of
	                                            * another group: sums */
	double worst, unknown;         /* of a group: largest share of steal and throttled of one of its rows; same of
	                                * unknown time */
	int64_t longest;
	int32_t top;                   /* culprit; -1: none */
	double top_share;              /* share in the stolen time */
};

#define TOP_LETTERS 52     /* a to z, A to Z */
#define TOP_LANE_NS INT64_C(60000000000)  /* time that a pCPU's lane shows */

struct top {
	struct live_sample sample[TOP_SAMPLES];
	size_t samples, newest;        /* newest: the last sample's index */
	size_t back;                   /* samples between the shown one and the newest */
	bool frozen, show_idle, inverted, detail, help, quit;
	enum top_view view;
	enum top_sort sort;
	enum top_ask ask;
	struct prompt prompt;
	enum top_request request;
	char filter[64], search[64], message[1024];
	char wanted[LIVE_NAME + 8];    /* the row to select in the next frame; "": none */
	char selected[LIVE_NAME + 24]; /* row that the cursor follows (top_row_id()); "": it stays on its line */
	const struct ui_top_actions *actions;
	const char *flight;            /* the flight recording's state; "": none */
	size_t snapshots;              /* its saved recordings */
	struct top_row *row;
	size_t rows, rows_cap, cursor, scroll;
	int first_line, lines;         /* the table's, in the last frame */
	int64_t period;
	bool light;                    /* the theme is for light terminals */
	struct palette palette;
	bool blocks;                   /* the terminal shows block characters */
	char host[64];
	char letter_of[TOP_LETTERS][LIVE_NAME];  /* VM and task names in the lanes; "": the letter is free */
};

/* Returns the shown sample; NULL: none yet. */
const struct live_sample *top_shown(const struct top *t);
/* Writes a row's identity, which is the same in all samples. */
void top_row_id(const struct top *t, const struct top_row *r, char *buf, size_t size);
/* Makes the cursor follow its row from now on. */
void top_follow(struct top *t);
/* Makes the current view's rows. */
void top_make_rows(struct top *t);
/* Writes the sentence about the shown sample: the vCPU that lost most. Returns false if nothing is known to wait. */
bool top_sentence(const struct live_sample *s, char *buf, size_t size);
/* Returns a culprit's name without its PID; for a VM the same name for all its vCPUs. */
const char *top_short_name(const struct live_culprit *c);
/* Draws the last minute of a pCPU as a lane of one letter for each task or VM: the one that had it most, in turns of their
 * shares. '.': idle, '*': further ones. */
void top_lane(struct top *t, unsigned cpu, struct screen *s, int x, int y, int w, struct style style);
/* Writes "w web  d db ..." for the letters in use. */
void top_legend(const struct top *t, char *buf, size_t size);
/* Returns the sample that is `back` samples older than the shown one; NULL: there is none. */
const struct live_sample *top_before(const struct top *t, size_t back);
void top_draw(struct top *t, struct screen *s);
/* Returns line i in the help; false: there are no more. */
bool top_help_line(size_t i, const char **key, const char **text);
/* Counts the saved recordings below the table; the cursor reaches them after the rows. */
size_t top_listed(const struct top *t);
const struct top_row *top_selected(const struct top *t);  /* NULL: the cursor is on no row */
int32_t top_selected_tid(const struct top *t);  /* the selected row's thread; a VM's worst vCPU; -1: none */
void top_key(struct top *t, uint32_t key);
