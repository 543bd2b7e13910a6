/* Which rows of an answer are written.  Private to report/.
 *
 * A page is known by how many rows come before it, and by a hash of them: an answer that has changed meanwhile, or another
 * question's, has no such page. */
#ifndef STEALSCOPE_REPORT_PAGE_H
#define STEALSCOPE_REPORT_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/report.h"

#define PAGE_TEXT 40  /* bytes of `next` */

struct row_page {
	uint64_t from, to;   /* rows [from, to) are written */
	uint64_t seen;
	uint64_t hash;       /* of the answer's name and the rows before `to` that were seen */
	uint64_t expected;   /* of those before `from` */
	const char *wrong;   /* why there is no such page, or NULL */
	bool paged;          /* else all rows are written, and nothing is hashed */
};

/* name: of the answer. */
void page_begin(struct row_page *p, struct report_how how, const char *name);
/* Another row: is it written? */
bool page_takes(struct row_page *p, const struct report_shape *shape, const struct value *value);
/* next: the page behind this one, or "".  -1: there is no such page. */
int page_end(struct row_page *p, char next[PAGE_TEXT], struct error *err);

#endif
