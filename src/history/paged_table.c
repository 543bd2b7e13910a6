#include "history/paged_table.h"

#include <errno.h>
#include <unistd.h>

#define RESIDENT_MIN 8

void pages_init(struct page_pool *p, size_t bytes, const struct out *out, bool *failed, struct error *failure)
{
	const size_t n = bytes / PAGE_BYTES;
	*p = (struct page_pool){ .out = out, .fd = -1, .limit = n < RESIDENT_MIN ? RESIDENT_MIN : n, .failed = failed,
	                     .failure = failure };
	p->resident = mem_new(p->limit, sizeof *p->resident);
}

void pages_release(struct page_pool *p)
{
	if (p->resident && p->fd >= 0)
		close(p->fd);
	free(p->resident);
	*p = (struct page_pool){ .fd = -1 };
}

size_t pages_memory(const struct page_pool *p)
{
	return p->n_resident * PAGE_BYTES;
}

void paged_init(struct paged *t, struct page_pool *p)
{
	*t = (struct paged){ .pager = p };
}

static uint8_t *page_data(const struct paged_page *page)
{
	return (uint8_t *)(page->data & ~(uintptr_t)1);
}

void paged_release(struct paged *t)
{
	struct page_pool *p = t->pager;
	for (size_t i = 0; i < t->pages; i++)
		free(page_data(&t->page[i]));
	if (t->pages) {
		struct resident_page *resident = mem_new(p->limit, sizeof *resident);
		size_t n = 0;
		for (size_t i = 0; i < p->n_resident; i++) {
			const struct resident_page *s = &p->resident[(p->hand + i) % p->n_resident];
			if (s->table != t)
				resident[n++] = *s;
		}
		free(p->resident);
		p->resident = resident;
		p->n_resident = n;
		p->hand = 0;
	}
	free(t->page);
	*t = (struct paged){ .pager = p };
}

void paged_move(struct paged *to, struct paged *from)
{
	*to = *from;
	for (size_t i = 0; i < to->pager->n_resident; i++)
		if (to->pager->resident[i].table == from)
			to->pager->resident[i].table = to;
	paged_init(from, to->pager);
}

void paged_grow(struct paged *t, size_t pages)
{
	while (t->pages < pages)
		*ARRAY_PUSH(t->page, t->pages, t->cap) = (struct paged_page){ .data = PAGE_ABSENT };
}

static void fail_pages(struct page_pool *p, int (*report_error)(const struct out *o, struct error *err))
{
	if (!*p->failed)
		report_error(p->out, p->failure);
	*p->failed = true;
}

static int cannot_read(const struct out *o, struct error *err)
{
	return error_system(err, NULL, "cannot read back a temporary file of %s", o->path);
}

/* Writes a page to its position in the scratch file, or appends it. */
static void save_page(struct page_pool *p, struct paged_page *page)
{
	struct error err = ERROR_INIT;
	if (p->fd < 0 && (p->fd = out_scratch(p->out, &err)) < 0) {
		if (!*p->failed)
			*p->failure = err;
		*p->failed = true;
	}
	if (p->fd < 0)
		return;
	const uint64_t file_page = page->file_page ? page->file_page : ++p->file_pages;
	page->file_page = file_page;
	if (write_all(p->fd, page_data(page), PAGE_BYTES, (int64_t)((file_page - 1) * PAGE_BYTES)))
		fail_pages(p, out_cannot_write);
}

static void load_page(struct page_pool *p, const struct paged_page *page, uint8_t *to)
{
	size_t done = 0;
	while (done < PAGE_BYTES) {
		const ssize_t n = pread(p->fd, to + done, PAGE_BYTES - done, (off_t)((page->file_page - 1) * PAGE_BYTES + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	if (done == PAGE_BYTES)
		return;
	memset(to, 0, PAGE_BYTES);
	fail_pages(p, cannot_read);
}

/* Returns a slot for a resident page: a free one, or that of the oldest resident page, which is evicted. */
static struct resident_page *evict_slot(struct page_pool *p)
{
	if (p->n_resident < p->limit)
		return &p->resident[p->n_resident++];
	struct resident_page *s = &p->resident[p->hand];
	struct paged_page *out = &s->table->page[s->page];
	p->hand = (p->hand + 1) % p->limit;
	if (!(out->data & 1))
		save_page(p, out);
	free(page_data(out));
	out->data = PAGE_ABSENT;
	return s;
}

void *paged_fetch(struct paged *t, size_t page, bool edit)
{
	struct paged_page *const at = &t->page[page];
	if (at->data == PAGE_ABSENT) {
		uint8_t *data = mem_cache_lines(PAGE_BYTES);
		*evict_slot(t->pager) = (struct resident_page){ t, page };
		if (at->file_page)
			load_page(t->pager, at, data);
		at->data = (uintptr_t)data | (at->file_page > 0);
	}
	if (edit)
		at->data &= ~(uintptr_t)1;
	return page_data(at);
}

void paged_get(struct paged *t, uint64_t at, void *to, size_t n)
{
	for (uint8_t *p = to; n > 0;) {
		const size_t from = at % PAGE_BYTES, m = PAGE_BYTES - from < n ? PAGE_BYTES - from : n;
		memcpy(p, (const uint8_t *)paged_read(t, at / PAGE_BYTES) + from, m);
		p += m;
		at += m;
		n -= m;
	}
}

void paged_put(struct paged *t, uint64_t at, const void *from, size_t n)
{
	for (const uint8_t *p = from; n > 0;) {
		const size_t to = at % PAGE_BYTES, m = PAGE_BYTES - to < n ? PAGE_BYTES - to : n;
		memcpy((uint8_t *)paged_edit(t, at / PAGE_BYTES) + to, p, m);
		p += m;
		at += m;
		n -= m;
	}
}
