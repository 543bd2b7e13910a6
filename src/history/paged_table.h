/* Paged tables: tables of fixed-size records with a limited number of pages in memory. The other pages are in an
 * unlinked scratch file.
 *
 * A trace may have millions of short-lived threads; their attributes never change again. All tables of a builder share
 * one page pool. Up to its limit nothing is written; beyond it the oldest page is evicted, and written if it was
 * changed. An access costs two loads if the page is resident, otherwise it reads a page, and may write one. New pages
 * are zeroed. A pointer into a page is valid until the next access to any page: copy records that are needed longer.
 *
 * If the scratch file cannot be written or read, *failure holds the reason, *failed is set, and records read as zeroes. */
#pragma once

#include "base/base.h"
#include "history/output_file.h"

#define PAGE_BYTES 4096u
#define PAGE_ABSENT ((uintptr_t)1)  /* value without a page; as a bit: the page is unchanged */

struct paged {
	struct page_pool *pager;
	struct paged_page {
		uintptr_t data;          /* the page's address, | 1 if it is unchanged; PAGE_ABSENT: not in memory */
		uint64_t file_page;  /* page number in the file + 1; 0: not in the file */
	} *page;
	size_t pages, cap;
};

struct page_pool {
	const struct out *out;   /* output file: the scratch file is created in its directory when needed */
	int fd;                  /* scratch file; -1: not created yet */
	uint64_t file_pages;     /* pages in the scratch file */
	struct resident_page {
		struct paged *table;
		size_t page;
	} * resident;            /* pages in memory */
	size_t n_resident, limit, hand;  /* hand: the oldest page's index, once all slots are used */
	bool *failed;
	struct error *failure;
};

void pages_init(struct page_pool *p, size_t bytes, const struct out *out, bool *failed, struct error *failure);
void pages_release(struct page_pool *p);            /* call it after the tables were released */
size_t pages_memory(const struct page_pool *p);     /* memory of all resident pages, bytes */

void paged_init(struct paged *t, struct page_pool *p);
void paged_release(struct paged *t);            /* does nothing if *t is zeroed */
void paged_move(struct paged *to, struct paged *from);  /* moves all pages; `to` is new, `from` is empty afterwards */
void paged_grow(struct paged *t, size_t pages); /* appends pages up to this number */
void *paged_fetch(struct paged *t, size_t page, bool edit);  /* slow path of the functions below */

/* Returns a page for reading. */
static inline const void *paged_read(struct paged *t, size_t page)
{
	const uintptr_t data = t->page[page].data;
	return data > PAGE_ABSENT ? (const void *)(data & ~(uintptr_t)1) : paged_fetch(t, page, false);
}

/* Returns a page for changes. */
static inline void *paged_edit(struct paged *t, size_t page)
{
	const uintptr_t data = t->page[page].data;
	return data & 1 ? paged_fetch(t, page, true) : (void *)data;
}

/* The same for record i of a type, in a table of such records. */
#define PAGED_EACH(type) (PAGE_BYTES / sizeof(type))
#define PAGED_READ(t, type, i) ((const type *)paged_read((t), (i) / PAGED_EACH(type)) + (i) % PAGED_EACH(type))
#define PAGED_EDIT(t, type, i) ((type *)paged_edit((t), (i) / PAGED_EACH(type)) + (i) % PAGED_EACH(type))
#define PAGED_GROW(t, type, n) paged_grow((t), ((n) + PAGED_EACH(type) - 1) / PAGED_EACH(type))

/* Read and write bytes that may span pages, in a table of bytes. */
void paged_get(struct paged *t, uint64_t at, void *to, size_t n);
void paged_put(struct paged *t, uint64_t at, const void *from, size_t n);
