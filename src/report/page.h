/* Selects the rows of a json answer that a page contains. Private to report/.
 *
 * A page is identified by the number of rows before it and a hash of these rows. If the answer has changed since, or the
 * page belongs to another query, the hash differs and the page is an error. */
#pragma once

#include "base/base.h"
#include "report/report.h"

#define PAGE_TEXT 40  /* bytes of `next` */

struct row_page {
	uint64_t from, to;   /* the page contains the rows [from, to) */
	uint64_t rows_read;
	uint64_t hash;       /* hash of the answer's name and of the rows read until now, without rows after `to` */
	uint64_t expected;   /* required hash of the rows before `from` */
	const char *remedy;   /* remedy of the error that there is no such page; NULL: no error */
	bool paged;          /* false: all rows are written, no hash is computed */
};

/* Starts a page; name: the answer's name. */
void page_begin(struct row_page *p, struct report_how how, const char *name);
/* Counts a row. Returns true if the page contains it. */
bool page_count_row(struct row_page *p, const struct report_shape *shape, const struct value *value);
/* Ends a page. next: the following page's id; "": none. Returns -1 if there is no such page. */
int page_end(struct row_page *p, char next[PAGE_TEXT], struct error *err);
