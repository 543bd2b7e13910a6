/* State of the overview. Private to overview.c and overview_waits.c. */
#pragma once

#include "ui/panes/pane.h"

#define WAITS_MAX 64  /* rows whose waits are searched at a time */

struct overview {
	struct pane pane;
	struct summary s;
	size_t *line;               /* rows that pass the filter, indices into s.row */
	struct culprit_waits *waits;  /* by row of s; valid if has_waits */
	bool *has_waits;
	struct question waits_question;
	size_t asked[WAITS_MAX], asked_len;  /* the pending question's rows */
	bool asked_all;             /* ... of which all waits are read: to find the one in which the culprit took most */
	size_t follow;              /* row whose wait by its culprit is opened when it is known; SIZE_MAX: none */
	size_t machines;            /* number of lines that show machines */
	enum summary_order by;
	enum thread_grouping grouping;
	int64_t sums_from, sums_to;  /* window for which the sums are known; gaps are requested after the sums */
	bool has_gaps;              /* the gaps are known as well */
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

static inline const struct summary_row *overview_line(const struct pane *pane, size_t i)
{
	const struct overview *p = (const struct overview *)pane;
	return &p->s.row[p->line[i]];
}

/* Leaves the line that the overview chose: keys of the timeline apply to a thread of its machine. */
void overview_closed(struct app *app, struct pane *pane);
/* Writes the name of a line's machine, thread or group. */
void overview_row_text(const struct app *app, const struct summary_row *r, char *buf, size_t size);
/* Writes the top culprit of a row: "host/306 burnP6", "other threads of Debian". Returns buf. */
const char *overview_culprit_text(const struct app *app, const struct overview *p, const struct summary_row *r, char *buf,
                                  size_t size);
void overview_forget_waits(struct overview *p);
/* Asks for the visible lines' waits, and takes the answer. */
void overview_refresh(struct app *app, struct pane *pane);
/* Moves to the wait in which the culprit of line i took most. */
void overview_follow_line(struct app *app, struct pane *pane, size_t i);
