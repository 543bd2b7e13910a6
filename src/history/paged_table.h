/* Tables of fixed-size records of which only so many pages are in memory: the others are in an unlinked scratch file.
 *
 * A trace may have millions of short-lived threads, whose attributes never change again.  All tables of a builder share
 * one pager.  While they fit its limit, nothing is written; then the page that came first goes first, to the file
 * if it was changed.  A record costs two loads while its page is there, else a read and perhaps a write of a page.
 * Pages are zeroed at first.  A pointer into a page holds until the next call for any page: what is needed for longer
 * is copied.
 *
 * When the file cannot be written or read, *failure has why, *failed is set, and the pages are what they may be: records
 * of zeroes. */
#ifndef STEALSCOPE_HISTORY_PAGED_TABLE_H
#define STEALSCOPE_HISTORY_PAGED_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "history/output_file.h"

#define PAGE_BYTES 4096u
#define PAGE_ABSENT ((uintptr_t)1)  /* also the bit of a page that is as in the file */

struct paged {
	struct page_pool *pager;
	struct paged_page {
		uintptr_t data;      /* the page, | 1 when it was not changed; PAGE_ABSENT */
		uint64_t place;      /* in the file, in pages, + 1; 0 = it has none */
	} *page;
	size_t pages, cap;
};

struct page_pool {
	const struct out *out;       /* beside which the file is made, when it is needed */
	int fd;                      /* -1: not yet */
	uint64_t places;             /* pages of the file */
	struct seat { struct paged *of; size_t page; } *seat;  /* those in memory */
	size_t seats, limit, hand;   /* hand: the oldest, once all are taken */
	bool *failed;
	struct error *failure;
};

void pages_init(struct page_pool *p, size_t bytes, const struct out *out, bool *failed, struct error *failure);
void pages_release(struct page_pool *p);            /* when its tables have been */
size_t pages_memory(const struct page_pool *p);     /* bytes of all its pages in memory */

void paged_init(struct paged *t, struct page_pool *p);
void paged_release(struct paged *t);            /* of zeroes: nothing */
void paged_move(struct paged *to, struct paged *from);  /* all pages; `to` is new, `from` is empty then */
void paged_room(struct paged *t, size_t pages); /* has so many pages at least */
void *paged_fetch(struct paged *t, size_t page, bool edit);  /* for those below */

/* To be read. */
static inline const void *paged_read(struct paged *t, size_t page)
{
	const uintptr_t data = t->page[page].data;
	return data > PAGE_ABSENT ? (const void *)(data & ~(uintptr_t)1) : paged_fetch(t, page, false);
}

/* To be changed. */
static inline void *paged_edit(struct paged *t, size_t page)
{
	const uintptr_t data = t->page[page].data;
	return data & 1 ? paged_fetch(t, page, true) : (void *)data;
}

/* The same of a record of a type, by its number. */
#define PAGED_EACH(type) (PAGE_BYTES / sizeof(type))
#define PAGED_READ(t, type, i) ((const type *)paged_read((t), (i) / PAGED_EACH(type)) + (i) % PAGED_EACH(type))
#define PAGED_EDIT(t, type, i) ((type *)paged_edit((t), (i) / PAGED_EACH(type)) + (i) % PAGED_EACH(type))
#define PAGED_ROOM(t, type, n) paged_room((t), ((n) + PAGED_EACH(type) - 1) / PAGED_EACH(type))

/* Bytes that lie across pages, in a table of bytes. */
void paged_get(struct paged *t, uint64_t at, void *to, size_t n);
void paged_put(struct paged *t, uint64_t at, const void *from, size_t n);

#endif
