/* State of the overview. Private to overview.c and overview_waits.c. */
#pragma once

#include "ui/panes/pane.h"

struct overview {
	struct table_pane table;
	struct summary s;
	struct culprit_waits waits; /* for row waits_of in s; SIZE_MAX: for none */
	size_t waits_of, asked;     /* asked: row of the pending question; SIZE_MAX: there is none */
	bool asked_all;             /* ... of which all waits are read: to find the one in which the culprit took most */
	struct question waits_question;
	size_t follow;              /* row whose wait by its culprit is opened when it is known; SIZE_MAX: none */
	size_t machines;            /* number of lines that show machines */
	enum summary_order by;
	enum thread_grouping grouping;
	int64_t sums_from, sums_to;  /* window for which the sums are known; gaps are requested after the sums */
	bool has_gaps;              /* the gaps of the lines on the screen are known as well */
	bool is_quick;              /* the answer with gaps took little time */
	bool wants_all;             /* the next question is for all lines' gaps ... */
	bool selects_first;         /* ... and its answer selects the first line */
	struct target at;          /* the selected line's target */
	/* has_target: `at` is set; cursor_set: the rows' cursor was moved to the longest gap, or by the user */
	bool has_target, cursor_set;
	bool verdict_seen;          /* the line of the verdict's target was selected */
	struct view return_view;           /* view when a line's gap was opened from the overview; step 0: none */
};

static inline struct overview *overview_state(struct pane *pane)
{
	return (struct overview *)pane;
}

size_t overview_row_number(const struct pane *pane, size_t i);  /* returns the row of the summary that line i shows */
static inline const struct summary_row *overview_line(const struct pane *pane, size_t i)
{
	return &((const struct overview *)pane)->s.row[overview_row_number(pane, i)];
}

static inline bool target_same(const struct target *a, const struct target *b)
{
	return a->kind == b->kind && a->index == b->index;
}

void overview_arrange(struct app *app, struct pane *pane);
void overview_remake(struct app *app, struct pane *pane);  /* makes the lines again, of other rows or from more values */
/* Leaves the line that the overview chose: keys of the timeline apply to a thread of its machine. */
void overview_closed(struct app *app, struct pane *pane);
void overview_forget_waits(struct overview *p);
/* Asks for the waits of the selected row, and takes the answer. */
void overview_refresh_waits(struct app *app, struct pane *pane);
/* Moves to the wait in which the culprit of line i took most. */
void overview_follow_line(struct app *app, struct pane *pane, size_t i);
