/* Writers of tables: each starts, continues and ends a table in one format (write_*.c). Private to report/. */
#pragma once

#include <stdbool.h>

#include "report/page.h"
#include "report/report.h"

#define META_PROVENANCE "provenance"

/* Buffer for one formatted field: texts that do not fit into `fixed` are in `longer`. */
struct field_buffer {
	char fixed[128];
	char *longer;
	size_t longer_size;                  /* capacity of `longer`, bytes */
};

struct report {
	FILE *out;
	const struct report_writer *writer;
	const struct report_shape *shape;
	const struct origin *origin;  /* the answer's inputs; NULL: none */
	struct row_page page;             /* json: the rows' selection */
	bool has_begun;
	size_t rows;                  /* rows written until now */
	bool rows_closed;                  /* json: the array of rows is closed */
	struct report_table held;            /* text: rows until the widths are known */
	struct report_table *table;          /* rows of a table in memory; NULL: none */
	int (*draw)(void *arg, int64_t number, unsigned columns, char *lane);
	void *draw_arg;
	bool widths_known;
	bool has_invisible_loss;                  /* report_lost_time_of(): the target has invisible lost time */
};

struct report_writer {
	void (*begin)(struct report *r);
	void (*row)(struct report *r, const struct value *value);
	void (*member)(struct report *r, const char *name, struct json_object *o);  /* takes ownership of o; NULL: the format
	                                                                             * has no members */
	void (*end)(struct report *r);
};
extern const struct report_writer write_text, write_table, write_csv, write_json;

/* Returns one formatted field for csv, or for text (people), escaped and not cut. Valid until the next call with f, or
 * until field_release(). */
const char *field_format(const struct column *c, const struct value *v, bool people, struct field_buffer *f);
const char *field_escape(const char *text, struct field_buffer *f);
void field_release(struct field_buffer *f);
