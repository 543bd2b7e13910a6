/* A format: how a table begins, goes on and ends.  One file each. */
#ifndef STEALSCOPE_REPORT_WRITER_H
#define STEALSCOPE_REPORT_WRITER_H

#include <stdbool.h>

#include "report/page.h"
#include "report/report.h"

/* One formatted field after the other: what does not fit into `fixed`, `longer` has. */
struct field_text {
	char fixed[128];
	char *longer;
	size_t room;                  /* bytes of `longer` */
};

struct report {
	FILE *out;
	const struct report_writer *writer;
	const struct report_shape *shape;
	const struct origin *origin;  /* or NULL */
	struct row_page page;             /* json: which rows are written */
	bool begun;
	size_t rows;                  /* written so far */
	bool closed;                  /* json: the array of rows is */
	char **held;                  /* text: fields waiting for the widths, row by row */
	size_t held_len, held_cap;
	int *width;                   /* text: cells of each column */
	int *readable;                /* text: cells in which its names can be read */
	int apart;                    /* text: cells between columns */
	int (*draw)(void *arg, int64_t number, unsigned columns, char *lane);
	void *draw_arg;
	bool widths_known;
	bool unseen;                  /* report_losses(): of whom a host took what nobody saw */
	bool cut;                     /* text: not all of some row's COL_FIELDS had room */
};

struct report_writer {
	void (*begin)(struct report *r);
	void (*row)(struct report *r, const struct value *value);
	void (*member)(struct report *r, const char *name, struct json_object *o);  /* takes o; NULL: it has none */
	void (*end)(struct report *r);
};
extern const struct report_writer write_text, write_csv, write_json;

size_t report_raw_columns(const struct report_shape *shape);  /* those of csv and json */

/* One field as csv and text print it, escaped and whole; good until the next one, or until v goes. */
const char *field_format(const struct column *c, const struct value *v, bool people, struct field_text *f);
const char *field_escape(const char *text, struct field_text *f);
void field_release(struct field_text *f);

#endif
