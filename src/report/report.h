/* Answers as text, csv or json. Each answer describes its columns once; each format has one writer (write_*.c).
 *
 * - csv and json: column names as keys, raw numbers (ns, shares 0..1). In csv, a text that a spreadsheet would compute
 *   (it starts with = + - or @) starts with the escape of that character, such as \x3d.
 * - json: the rows, and the inputs of the answer (struct origin), as in share/schema/answers.json.
 * - text: headings and aligned columns for people, as wide as the content or the terminal; texts that do not fit are cut
 *   at a '~'. Without rows the text is "none".
 *
 * The writers escape text from traces, so callers pass it raw. Rows are streamed: only the first REPORT_LOOKAHEAD rows
 * of a text are held in memory, to compute the widths. A report can be written into a struct report_table instead. */
#pragma once

#include <json-c/json.h>

#include "base/base.h"
#include "base/event_text.h"
#include "base/notes.h"
#include "latency/latency.h"
#include "query/query.h"

#define REPORT_LOOKAHEAD 1000
#define REPORT_SCHEMA 4      /* increased if members of the json answers are renamed or removed, or change their meaning */

enum report_format { FORMAT_TEXT, FORMAT_CSV, FORMAT_JSON };
extern const char *const report_formats[];  /* their names; NULL-terminated */

/* Format of an answer. A json answer is one page of its rows; the member `next` identifies the following page. The pages
 * joined are the whole answer. `after` identifies the rows before the page; it is an error if the answer no longer
 * begins with these rows. */
struct report_how {
	int format;          /* enum report_format */
	unsigned limit;      /* json: a page's rows; 0: all */
	const char *after;   /* json: `next` of the previous page; NULL: the first page */
	struct report_table *table; /* text: receives the rows instead of the file; NULL: none. The caller releases it */
};
#define REPORT_PAGE 10000
#define REPORT_HOW { FORMAT_TEXT, REPORT_PAGE, NULL, NULL }
#define REPORT_WHOLE(format) (struct report_how){ (int)(format), 0, NULL, NULL }

/* ---- Target and inputs of an answer */

struct origin {
	char **history;              /* files */
	size_t histories;
	char *target;               /* escaped; NULL: all */
	int64_t from, to;            /* window, ns, closed; from > to: none */
	struct json_object *clock;   /* array: clocks of the machines concerned */
	struct json_object *lost;    /* array: events lost by the tracers */
	struct json_object *provenance;    /* the provenance of the (first) history; NULL: none */
	struct notes notes;          /* warnings that limit the trust in the answer */
	char **line;                 /* the members above as lines for people, escaped: "clock    ACCURATE, ..."; the notes
	                              * are the last lines */
	size_t lines, lines_cap, note_lines;  /* note_lines: number of lines of the notes */
};

/* Collects the inputs of an answer about a target (NULL: about all targets). Does not borrow its arguments. The caller
 * calls origin_release(). */
void origin_load(struct origin *o, const struct catalog *catalog, const struct target *s, int64_t from, int64_t to);
/* Adds the inputs of another history to those of a comparison: files, clocks, losses and notes. Does not change `other`.
 * *o may be all zero. */
void origin_add(struct origin *o, const struct origin *other);
void origin_release(struct origin *o);
/* Adds warnings; takes ownership of the notes. */
void origin_add_warnings(struct origin *o, struct notes *notes);
void print_notes(const struct notes *n);  /* prints them on stderr */
/* Adds warnings to the origin (NULL: none) of an answer that is written next; a csv on stdout prints them. Takes ownership
 * of the notes. */
void report_warn(FILE *out, struct report_how how, struct origin *o, struct notes *notes);
/* Warns that csv or json has only a part of the rows: "5 of 9 gaps, the longest, shown". */
void report_warn_omitted(FILE *out, struct report_how how, struct origin *o, uint64_t shown, uint64_t all,
                         const char *rows);
/* Writes the head of an answer in text: the notes and an empty line. */
void origin_write_head(const struct origin *o, FILE *out);
void origin_write_notes(const struct origin *o, FILE *out);  /* writes only the notes */

/* ---- Tables */

enum column_type {
	COL_TEXT,      /* a name: cut if the table does not fit without all columns that can be dropped */
	COL_ACTOR,     /* a name, in text and json; csv has its parts: machine, TID, name */
	COL_UNCUT,     /* a text that is never cut: a number, a date, a state */
	COL_FIELDS,    /* text "a=1 b=2": fields that do not fit are omitted; must be the last column */
	COL_INT,
	COL_DURATION,  /* ns; text: "5.21 ms" */
	COL_CLOCK,     /* ns since the epoch; text: "12:03:04.113900" */
	COL_CLOCK_NS,    /* ns since the epoch; text: with ns */
	COL_SHARE,     /* 0..1; text: "61.8%" */
	COL_REAL,      /* text: three decimals; csv and json: nine */
	COL_LANE,      /* a lane drawn by report_lanes(), in text only; as wide as the rest of the terminal; must be the last
	                * column */
};

struct column {
	const char *name;     /* name in csv and json; NULL: the column is only in text */
	const char *heading;  /* heading in text; NULL: the column is not in text */
	enum column_type type;
};

static inline bool column_is_text(const struct column *c)
{
	return c->type == COL_TEXT || c->type == COL_ACTOR || c->type == COL_UNCUT || c->type == COL_FIELDS;
}

struct report_shape {
	const char *name;            /* json: "answer" */
	const struct column *column;
	size_t columns;
	const char *droppable;       /* columns (names or headings) that text omits on narrow terminals, in this order; after
	                              * '|': only if otherwise names would become unreadable */
	const char *sort_column;     /* name of the column by which the rows are sorted: it is never dropped; NULL: none */
};
#define REPORT_SHAPE_DROPPING(name, column, droppable) \
	{ (name), (column), sizeof (column) / sizeof *(column), (droppable), NULL }
#define REPORT_SHAPE(name, column) REPORT_SHAPE_DROPPING(name, column, "")

/* Actor of a column: json has an object with its parts. name: raw; NULL: that of the thread. */
struct actor_ref {
	const struct catalog *catalog;
	const struct actor *actor;
	const char *name;
};
/* Returns the object {text, kind, machine, tid, name, reason}; text: escaped. */
struct json_object *actor_json(const struct actor_ref *ref, const char *text);

/* Value of one column of a row. */
struct value {
	enum { VALUE_RAW, VALUE_SHOWN, VALUE_NUMBER, VALUE_ABSENT } form;
	const char *text;  /* SHOWN: escaped already */
	int64_t integer;
	double real;       /* of a share with `text`: that is its unit */
	const char *link;  /* text: where it leads (place_link.h); NULL: nowhere */
	const struct actor_ref *who;  /* SHOWN: the actor that the text names; NULL: none */
};
#define VAL_TEXT(s) ((struct value){ .text = (s) })                                  /* raw, from traces */
#define VAL_SHOWN(s) ((struct value){ .form = VALUE_SHOWN, .text = (s) })            /* escaped, from query/ */
#define VAL_WHO(s, ref) ((struct value){ .form = VALUE_SHOWN, .text = (s), .who = (ref) })
#define VAL_NUMBER(i) ((struct value){ .form = VALUE_NUMBER, .integer = (i) })       /* a number in a text column */
#define VAL_INT(i) ((struct value){ .integer = (i) })
#define VAL_REAL(r) ((struct value){ .real = (r) })
#define VAL_SHARE_IN(r, unit) ((struct value){ .real = (r), .text = (unit) })       /* people read "50.0?", for example */
#define VAL_NONE ((struct value){ .form = VALUE_ABSENT })  /* no value: an empty field, null in json */

struct report;

/* Starts a table. origin: the answer's inputs; NULL: it has no history. Text starts with the notes. Shape and origin
 * are borrowed until report_end(). */
struct report *report_begin(FILE *out, struct report_how how, const struct report_shape *shape,
                            const struct origin *origin);
void report_row(struct report *r, const struct value *value);  /* value[columns] */
/* Called before a row: returns true if the rows go into a table that has as many as it wants, so that no more are made. */
bool report_is_full(struct report *r);
/* Sets the function that draws lanes when their width is known. number: value of the row's COL_LANE; lane: buffer of
 * columns + 1 bytes. If the function returns -1, the row has no lane. */
void report_lanes(struct report *r, int (*draw)(void *arg, int64_t number, unsigned columns, char *lane), void *arg);
/* Declares that the rows are lost time of the target (NULL: of any VM): text without rows then states if lost time may
 * be invisible. */
void report_lost_time_of(struct report *r, const struct catalog *catalog, const struct target *target);
/* json: adds a member after the rows; takes ownership of the object. Other formats ignore it. */
void report_member(struct report *r, const char *name, struct json_object *o);
/* Ends and frees the table. Returns -1 without output if `after` does not belong to this answer. Without `after`, err
 * may be NULL. */
int report_end(struct report *r, struct error *err);

/* ---- Answers of more than one program part */

/* Return the value of a machine's name and of a TID; an empty field if it is negative. */
struct value value_machine(const struct catalog *catalog, int32_t machine);
struct value value_tid(int32_t tid);

/* Writes an execution flow; text as by flow_write_text(), but without a header. */
int report_flow(FILE *out, struct report_how how, const struct catalog *catalog, const struct target *s,
                const struct flow *f, const struct flow_text *options, const struct origin *o, struct error *err);
/* target: the matrix's victims; NULL: all VMs. */
int report_steal(FILE *out, struct report_how how, const struct catalog *catalog, const struct steal *s,
                 const struct target *target, const struct origin *o, struct error *err);
/* Write gaps, each with its main culprit, or with all culprits (all_culprits); the distribution of their lengths, per
 * vCPU or thread; and a histogram by powers of two. target: the gaps' owner; NULL: all VMs. */
int report_gaps(FILE *out, struct report_how how, const struct catalog *catalog, const struct gap_list *list,
                const struct target *target, bool all_culprits, struct origin *o, struct error *err);
int report_gap_lengths(FILE *out, struct report_how how, const struct catalog *catalog, const struct gap_list *list,
                       const struct target *target, const struct origin *o, struct error *err);
int report_gap_histogram(FILE *out, struct report_how how, const struct catalog *catalog, const struct gap_list *list,
                         const struct target *target, const struct origin *o, struct error *err);
/* Writes the time in VM exits of a target (NULL: of all VMs) in a window as a line of text: it is no gap. separate: after
 * an empty line. */
int report_vmm_time(FILE *out, struct report_how how, const struct catalog *catalog, const struct target *target,
                    int64_t from, int64_t to, bool separate, struct error *err);
/* Writes the differences between two recordings. Text: the verdict and the table, without rows with small effect unless
 * `all`. */
struct diff;
int report_diff(FILE *out, struct report_how how, const struct diff *d, bool all, const struct origin *o,
                struct error *err);
const struct diff_row *diff_shown_row(const struct diff *d, size_t i);  /* returns the i-th row of the text */
/* Writes VM exits. histogram: one row per length that occurs. */
int report_exits(FILE *out, struct report_how how, const struct catalog *catalog, const struct exit_list *l,
                 bool by_thread, bool histogram, struct origin *o, struct error *err);
/* Parts of the report of a summary. cores: by row of the summary. */
struct summary_parts {
	const struct summary *s;
	const struct core_share *cores;     /* NULL: the topology is unknown */
	const struct findings *findings;    /* the first one is the verdict; NULL: none is written */
	const char *file;                   /* the recording, as commands name it */
	size_t top;                         /* number of threads; 0: all */
};
size_t summary_delayed_threads(const struct summary *s);  /* returns the number of threads that lost time */
bool summary_is_doubtful(const struct summary *s);  /* returns true if a target's lost share has the unit '?' */
/* Write a row's top culprit ("host/306 burnP6", "other threads of Debian"), and who took its longest wait, if that is
 * another one. Return buf, or a constant. */
const char *report_culprit_text(const struct catalog *catalog, const struct summary *s, const struct summary_row *row,
                                int format, char buf[ACTOR_TEXT]);
const char *report_longest_by(const struct catalog *catalog, const struct summary_row *row,
                              const struct culprit_waits *w, char buf[ACTOR_TEXT]);
#define REPORT_SUMMARY_TOP 20  /* threads in a file */
/* Writes the verdict, the machines and the threads that lost time; in text with lanes, and the time of halt polling. */
int report_summary(FILE *out, struct report_how how, const struct catalog *catalog, const struct summary_parts *parts,
                   struct origin *o, struct error *err);
/* Writes the first `top` threads. cores: as above. */
int report_threads(FILE *out, struct report_how how, const struct catalog *catalog, const struct summary *s,
                   const struct core_share *cores, size_t top, const struct origin *o, struct error *err);
/* Writes requests: the first `top` ones (0: all), sorted by `order` before. is_predicted: a model predicted the provider's
 * part; features: the model's inputs, in csv and json. */
struct requests_parts {
	const struct requests *requests;
	size_t top;
	bool is_predicted, features;
	enum requests_order order;
};
int report_requests(FILE *out, struct report_how how, const struct requests_parts *parts, const struct origin *o,
                    struct error *err);
/* Writes the time that each target shared its core, by sharer: the `top` longest of each target (0: all). */
int report_cores(FILE *out, struct report_how how, const struct catalog *catalog, const struct core_share *s, size_t top,
                 const struct origin *o, struct error *err);
/* Writes the first `most` findings as text, each with its longest interval and the command that shows it. */
void report_findings_text(FILE *out, const struct findings *l, size_t most, const char *file);
/* Returns a finding on the window [from, to] as json. */
struct json_object *finding_json(const struct catalog *catalog, const struct finding *f, int64_t from, int64_t to);
/* Writes findings as csv or json; json has them also as the member `findings`, with moments. */
int report_findings(FILE *out, struct report_how how, const struct catalog *catalog, const struct findings *l,
                    const struct origin *o, struct error *err);
/* Writes lines wrapped to 80 columns; continuation lines are indented. Commands in parentheses, as "(stealscope gaps
 * FILE web)", are not wrapped, and FILE is replaced by `file`; file NULL: these commands are omitted. */
void prose_write(FILE *out, const char *text, const char *file);
static inline void prose_print(const char *text, const char *file)
{
	prose_write(stdout, text, file);
}
/* Returns the number of columns of the terminal to which `out` writes; 0: no terminal. */
int report_width(FILE *out);
int report_height(FILE *out);  /* the same for lines */

/* Start a table of events, and write one event. Rows in order of time; the caller calls report_end(). */
struct report *report_events(FILE *out, struct report_how how, const struct origin *o);
void report_event(struct report *r, const struct event_text *ev);

int report_polls(FILE *out, struct report_how how, const struct catalog *catalog, const struct poll_list *l,
                 const struct origin *o, struct error *err);
/* top: maximum of rows; 0: all. */
int report_waits(FILE *out, struct report_how how, const struct catalog *catalog, const struct wait_list *l,
                 size_t top, const struct origin *o, struct error *err);
/* Writes the `top` longest lock waits (0: all) of a target (NULL: of all VMs); text ends with the sums of all. */
int report_locks(FILE *out, struct report_how how, const struct catalog *catalog, const struct lock_list *l,
                 const struct target *target, size_t top, struct origin *o, struct error *err);
/* Writes a critical path's intervals, or (sums) their sums, the `top` longest (0: all). */
int report_path(FILE *out, struct report_how how, const struct catalog *catalog, const struct path *p, bool sums,
                size_t top, struct origin *o, struct error *err);

#include "report/guest_time.h"
#include "report/place_link.h"
#include "report/table.h"
