/* The fields of a gap, described once for the answer `gaps` (report/), the gaps pane (ui/) and the exported table `gap`.
 *
 * A field added to the list appears in the answer (if its name is not NULL), in the pane (if its pane heading is not NULL)
 * and in the exported table (if it is EXPORTED); gap_value() returns its value. The pane adds texts that depend on its
 * rows. A part of query/query.h, which includes it. */
#ifndef STEALSCOPE_QUERY_GAP_COLUMNS_H
#define STEALSCOPE_QUERY_GAP_COLUMNS_H

#include "query/query.h"

/* EXPORTED(X, code, name, heading, type, pane heading, pane columns, exported name, exported type, nullable)
 * OTHER(X, code, name, heading, type, pane heading, pane columns): not in the exported table
 *
 * - name: in csv and json; NULL: not in the answer. heading: in text; NULL: not in text.
 * - type: suffix of an enum gap_column_type; exported type: suffix of an enum field_type of export/.
 * - pane columns: width with the space after it; 0: depends on the screen.
 *
 * Fields of the culprit come last, starting at GAP_COLUMN_CULPRIT_FIRST. */
#define GAP_COLUMN_LIST(EXPORTED, OTHER, X) \
	EXPORTED(X, START, "start", "at", CLOCK, "at", 14, "ts", TIME, 0) \
	OTHER(X, END, "end", NULL, INT, NULL, 0) \
	EXPORTED(X, DURATION, "duration_ns", "length", DURATION, "length", 11, "dur", INT, 0) \
	OTHER(X, TARGET, "target", "target", TEXT, "victim", 0) \
	EXPORTED(X, STATE, "state", "state", WHOLE, NULL, 0, "state", TEXT, 0)  /* state of most of the gap */ \
	OTHER(X, CULPRIT_SHARE, NULL, NULL, SHARE, "share", 7) \
	EXPORTED(X, CULPRIT_MACHINE, "culprit_machine", "culprit", TEXT, NULL, 0, "culprit_machine", TEXT, 1) \
	EXPORTED(X, CULPRIT_TID, "culprit_tid", "TID", INT, NULL, 0, "culprit_tid", INT, 1) \
	EXPORTED(X, CULPRIT_NAME, "culprit_name", "name", TEXT, "top culprit", 0, "culprit_name", TEXT, 0) \
	EXPORTED(X, CULPRIT_KIND, NULL, NULL, TEXT, NULL, 0, "culprit_kind", TEXT, 0)  /* kind of the execution flow */ \
	EXPORTED(X, CULPRIT_NS, "culprit_ns", "taken", DURATION, NULL, 0, "culprit_ns", INT, 0)
#define GAP_COLUMN_CULPRIT_FIRST GAP_COLUMN_CULPRIT_SHARE

#define GAP_COLUMN_CODE(X, code, ...) GAP_COLUMN_##code,
enum gap_column_code { GAP_COLUMN_LIST(GAP_COLUMN_CODE, GAP_COLUMN_CODE, ) GAP_COLUMN_COUNT };
#undef GAP_COLUMN_CODE

enum gap_column_type {
	GAP_TYPE_CLOCK,     /* ns since the epoch */
	GAP_TYPE_INT,
	GAP_TYPE_DURATION,  /* ns */
	GAP_TYPE_SHARE,     /* 0..1 */
	GAP_TYPE_TEXT,
	GAP_TYPE_WHOLE,     /* text that is not cut */
	GAP_TYPES,
};

struct gap_column {
	const char *name, *heading;
	enum gap_column_type type;
	const char *pane_heading;
	int pane_columns;
};
extern const struct gap_column gap_column[GAP_COLUMN_COUNT];

/* A gap and one of its culprits. */
struct gap_record {
	const struct catalog *catalog;
	const struct gap *gap;
	const struct actor *culprit;
	const char *culprit_name;  /* raw */
	int64_t culprit_ns;        /* ns of the gap that the culprit had the CPU */
};

struct gap_value {
	bool absent;         /* no value: the culprit has no machine, no TID */
	bool is_escaped;     /* text: escaped; false: raw */
	int64_t number;      /* CLOCK, INT, DURATION */
	double share;        /* SHARE */
	const char *text;    /* TEXT, WHOLE: borrowed from the catalog, the row, or buf */
};

/* Returns the value of a field. buf[ACTOR_TEXT] holds the target's text. */
struct gap_value gap_value(const struct gap_record *row, enum gap_column_code code, char *buf);

#endif
