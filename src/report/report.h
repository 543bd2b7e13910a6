/* Answers as text, csv or json: each describes its columns once, each format is one writer (write_*.c).
 *
 * csv and json carry the column names as keys and raw numbers (ns, shares 0..1); text carries headings and is meant for
 * people, aligned: as wide as its content, or as the terminal, where texts that do not fit are cut at a '~'; without
 * rows it is "none".  json wraps the rows in what they rest on (struct origin), as share/schema/answers.json has it.
 * Text from traces is escaped here, so callers pass it as it is.  In csv a text that a spreadsheet would compute (it
 * begins with = + - or @) begins with that character's escape, as \x3d.
 * Rows stream: only the first REPORT_LOOKAHEAD rows of a text table are held, to learn the widths. */
#ifndef STEALSCOPE_REPORT_REPORT_H
#define STEALSCOPE_REPORT_REPORT_H

#include <json-c/json.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/event_text.h"
#include "base/notes.h"
#include "base/timefmt.h"
#include "query/query.h"

#define REPORT_LOOKAHEAD 1000
#define REPORT_SCHEMA 2      /* rises when members of the json answers change their names or meanings, or go */

enum report_format { FORMAT_TEXT, FORMAT_CSV, FORMAT_JSON };
extern const char *const report_formats[];  /* their names; NULL-terminated */

/* How an answer is written.  A json answer is a page of its rows, and `next` says how to go on: the pages joined are all
 * of the answer.  A page begins behind those rows that `after` was given for; when these are not the first ones of the
 * answer (any more) there is no page, but an error. */
struct report_how {
	int format;          /* enum report_format */
	unsigned limit;      /* json: rows of a page; 0: all */
	const char *after;   /* json: `next` of the page before; NULL: from the first row on */
};
#define REPORT_PAGE 10000
#define REPORT_HOW { FORMAT_TEXT, REPORT_PAGE, NULL }
#define REPORT_WHOLE(format) (struct report_how){ (int)(format), 0, NULL }

/* ---- What an answer is about and rests on */

struct origin {
	char **history;              /* files */
	size_t histories;
	char *subject;               /* escaped; NULL: all */
	int64_t from, to;            /* ns, closed: the window; from > to: there is none */
	struct json_object *clock;   /* array: the clocks of the machines concerned */
	struct json_object *lost;    /* array: events that their tracers lost */
	struct json_object *told;    /* all that the (first) history says of where it comes from; NULL: nothing */
	struct notes notes;          /* what makes the answer doubtful */
	char **line;                 /* the same for people, escaped: "clock    ACCURATE, ..."; the last ones are the notes */
	size_t lines, lines_cap, doubts;  /* doubts: how many of them are the notes' */
	bool leaves;                 /* goes into a file of its own: text has all lines above it, and the window */
};

/* About a subject, or about all (NULL).  Nothing of the history is borrowed.  Call origin_release(). */
void origin_take(struct origin *o, const struct topo *topo, const struct subject *s, int64_t from, int64_t to);
/* The answer rests on another history too: its files, clocks, losses and notes are added; `other` stays as it is.  *o may
 * be all zero. */
void origin_add(struct origin *o, const struct origin *other);
void origin_release(struct origin *o);
/* What else makes it doubtful: takes the notes. */
void origin_doubt(struct origin *o, struct notes *notes);
/* What stands above an answer in text, and an empty line: the notes; or all lines and the window, if it leaves. */
void origin_write_head(const struct origin *o, FILE *out);
void origin_write_notes(const struct origin *o, FILE *out);  /* alone */

/* ---- Tables */

enum column_type {
	COL_TEXT,      /* names: cut where nothing else can make room */
	COL_WHOLE,     /* a text that is not cut: a figure, a date, a state */
	COL_FIELDS,    /* a text, "a=1 b=2": where it is narrow, as many as fit; the last column */
	COL_INT,
	COL_DURATION,  /* ns; text: "5.21 ms" */
	COL_CLOCK,     /* ns since the epoch; text: "12:03:04.113900" */
	COL_MOMENT,    /* the same; text: to the ns */
	COL_SHARE,     /* 0..1; text: "61.8%" */
	COL_REAL,      /* text: three decimals; csv and json: nine */
	COL_LANE,      /* text alone: what report_lanes() draws, as wide as what is left of the terminal; the last column */
};

struct column {
	const char *name;     /* csv and json; NULL: the column is shown in text alone, and the last one */
	const char *heading;  /* text; NULL: the column is not shown in text */
	enum column_type type;
};

static inline bool column_is_text(const struct column *c)
{
	return c->type == COL_TEXT || c->type == COL_WHOLE || c->type == COL_FIELDS;
}

struct report_shape {
	const char *name;            /* json: "answer" */
	const struct column *column;
	size_t columns;
	const char *spared;          /* names, or headings, of columns that text does without where it is narrow, in turn */
	const char *kept;            /* but for this one, or NULL: what it is sorted by */
};
#define REPORT_SHAPE_SPARING(name, column, spared) { (name), (column), sizeof (column) / sizeof *(column), (spared), NULL }
#define REPORT_SHAPE(name, column) REPORT_SHAPE_SPARING(name, column, "")

/* One value. */
struct value {
	enum { VALUE_RAW, VALUE_SHOWN, VALUE_NUMBER, VALUE_ABSENT } form;
	const char *text;  /* SHOWN: escaped already */
	int64_t integer;
	double real;
};
#define VAL_TEXT(s) ((struct value){ .text = (s) })                                  /* as traces have it */
#define VAL_SHOWN(s) ((struct value){ .form = VALUE_SHOWN, .text = (s) })            /* as query/ puts it into words */
#define VAL_NUMBER(i) ((struct value){ .form = VALUE_NUMBER, .integer = (i) })       /* in a column of texts */
#define VAL_INT(i) ((struct value){ .integer = (i) })
#define VAL_REAL(r) ((struct value){ .real = (r) })
#define VAL_NONE ((struct value){ .form = VALUE_ABSENT })  /* an empty field, null in json */

struct report;

/* origin: NULL: it rests on no history.  Text begins with the notes of it.  Both are borrowed until report_end(). */
struct report *report_begin(FILE *out, struct report_how how, const struct report_shape *shape,
                            const struct origin *origin);
void report_row(struct report *r, const struct value *value);  /* value[columns] */
/* Lanes are drawn when their width is known: of the row that has this number in its COL_LANE, into lane[columns + 1].  A
 * row that could not be drawn (-1) has none. */
void report_lanes(struct report *r, int (*draw)(void *arg, int64_t number, unsigned columns, char *lane), void *arg);
/* The rows are what was lost by who (NULL: by any VM): text without rows says whether there may have been more. */
void report_losses(struct report *r, const struct topo *topo, const struct subject *who);
/* json: another member beside the rows, behind the last of them; takes the object.  Else nothing. */
void report_member(struct report *r, const char *name, struct json_object *o);
/* Frees in any case.  -1 when `after` does not belong to this answer, and then nothing was written; without `after`, err
 * may be NULL. */
int report_end(struct report *r, struct error *err);

/* ---- Answers that more than one program part gives */

/* Fields: the system's name and a TID; nobody is an empty field. */
struct value value_system(const struct topo *topo, int32_t system);
struct value value_tid(int32_t tid);

/* An execution flow; text as flow_write_text() has it, below what it rests on.  options: its header is not looked at. */
int report_flow(FILE *out, struct report_how how, const struct topo *topo, const struct subject *s,
                const struct flow *f, const struct flow_text *options, const struct origin *o, struct error *err);
/* who: who was asked about, NULL: everybody; VMs. */
int report_steal(FILE *out, struct report_how how, const struct topo *topo, const struct steal *s,
                 const struct subject *who, const struct origin *o, struct error *err);
/* Gaps, each with its greatest culprit, or (every) all of them; how long they are, of each vCPU or thread; and how many
 * of each length, by powers of two.  s: who was asked about, NULL: all VMs. */
int report_gaps(FILE *out, struct report_how how, const struct topo *topo, const struct gap_list *list,
                 const struct subject *s, bool every, const struct origin *o, struct error *err);
int report_gap_lengths(FILE *out, struct report_how how, const struct topo *topo, const struct gap_list *list,
                       const struct subject *who, const struct origin *o, struct error *err);
int report_gap_histogram(FILE *out, struct report_how how, const struct topo *topo, const struct gap_list *list,
                         const struct subject *who, const struct origin *o, struct error *err);
/* Text: the table alone, without what explains next to nothing unless it is to have all; nothing where there is none. */
struct diff;
int report_diff(FILE *out, struct report_how how, const struct diff *d, bool all, const struct origin *o,
                struct error *err);
/* histogram: a row for each length that occurs, instead. */
int report_exits(FILE *out, struct report_how how, const struct topo *topo, const struct exit_list *l,
                  bool by_thread, bool histogram, const struct origin *o, struct error *err);
/* Machines, then the first `top` threads that lost anything (0 = all of them); in text with lanes. */
int report_summary(FILE *out, struct report_how how, const struct topo *topo, const struct summary *s, size_t top,
                   const struct origin *o, struct error *err);
int report_threads(FILE *out, struct report_how how, const struct topo *topo, const struct summary *s,
                    const struct origin *o, struct error *err);
/* Columns of the terminal that `out` is, or 0. */
int report_width(FILE *out);

/* Events of a moment, a row each, in the order of time; then report_end(). */
struct report *report_events(FILE *out, struct report_how how, const struct origin *o);
void report_event(struct report *r, const struct event_text *ev);

int report_polls(FILE *out, struct report_how how, const struct topo *topo, const struct poll_list *l,
                 const struct origin *o, struct error *err);
int report_waits(FILE *out, struct report_how how, const struct topo *topo, const struct wait_list *l,
                  const struct origin *o, struct error *err);
/* A wait for a lock as people read it, escaped. */
struct lock_cells {
	char who[600];         /* the waiter */
	char lock[100];
	char holder[600];      /* a suspected one with its score; "": nobody knows */
	char taken[TIME_TEXT + 1];  /* from the holder; if that lost nothing from the waiter, with a * */
	char thief[600];       /* "": nobody */
};
bool lock_takes_own(const struct lock_wait *w);  /* is what `taken` tells from the waiter? */
/* machine: that of the waiter is named, too. */
void lock_cells(const struct topo *topo, const struct lock_list *l, const struct lock_wait *w, bool machine,
                struct lock_cells *out);
/* The `top` longest, 0 being all; as text with sums of all below them. */
int report_locks(FILE *out, struct report_how how, const struct topo *topo, const struct lock_list *l, size_t top,
                 const struct origin *o, struct error *err);
/* A critical path: its pieces, or (sums; always in text, unless pieces are asked for) what they add up to. */
int report_path(FILE *out, struct report_how how, const struct topo *topo, const struct path *p, bool sums,
                 const struct origin *o, struct error *err);

#endif
