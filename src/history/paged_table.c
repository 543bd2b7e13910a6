#include "history/paged_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

#define LEAST_SEATS 8

void pages_init(struct page_pool *p, size_t bytes, const struct out *out, bool *failed, struct error *failure)
{
	const size_t n = bytes / PAGE_BYTES;
	*p = (struct page_pool){ .out = out, .fd = -1, .limit = n < LEAST_SEATS ? LEAST_SEATS : n, .failed = failed,
	                     .failure = failure };
	p->seat = mem_new(p->limit, sizeof *p->seat);
}

void pages_release(struct page_pool *p)
{
	if (p->seat && p->fd >= 0)
		close(p->fd);
	free(p->seat);
	*p = (struct page_pool){ .fd = -1 };
}

size_t pages_memory(const struct page_pool *p)
{
	return p->seats * PAGE_BYTES;
}

void paged_init(struct paged *t, struct page_pool *p)
{
	*t = (struct paged){ .pager = p };
}

static uint8_t *data_of(const struct paged_page *page)
{
	return (uint8_t *)(page->data & ~(uintptr_t)1);
}

void paged_release(struct paged *t)
{
	struct page_pool *p = t->pager;
	for (size_t i = 0; i < t->pages; i++)
		free(data_of(&t->page[i]));
	if (t->pages) {
		struct seat *seat = mem_new(p->limit, sizeof *seat);
		size_t kept = 0;
		for (size_t i = 0; i < p->seats; i++) {
			const struct seat *s = &p->seat[(p->hand + i) % p->seats];
			if (s->of != t)
				seat[kept++] = *s;
		}
		free(p->seat);
		p->seat = seat;
		p->seats = kept;
		p->hand = 0;
	}
	free(t->page);
	*t = (struct paged){ .pager = p };
}

void paged_move(struct paged *to, struct paged *from)
{
	*to = *from;
	for (size_t i = 0; i < to->pager->seats; i++)
		if (to->pager->seat[i].of == from)
			to->pager->seat[i].of = to;
	paged_init(from, to->pager);
}

void paged_room(struct paged *t, size_t pages)
{
	while (t->pages < pages)
		*ARRAY_PUSH(t->page, t->pages, t->cap) = (struct paged_page){ .data = PAGE_ABSENT };
}

static void fail(struct page_pool *p, int (*say)(const struct out *o, struct error *err))
{
	if (!*p->failed)
		say(p->out, p->failure);
	*p->failed = true;
}

static int cannot_read(const struct out *o, struct error *err)
{
	return error_system(err, NULL, "cannot read back a temporary file of %s", o->path);
}

/* Writes it where it was, or behind all others. */
static void save(struct page_pool *p, struct paged_page *page)
{
	struct error err = ERROR_INIT;
	if (p->fd < 0 && (p->fd = out_scratch(p->out, &err)) < 0) {
		if (!*p->failed)
			*p->failure = err;
		*p->failed = true;
	}
	if (p->fd < 0)
		return;
	const uint64_t place = page->place ? page->place : ++p->places;
	page->place = place;
	if (write_all(p->fd, data_of(page), PAGE_BYTES, (int64_t)((place - 1) * PAGE_BYTES)))
		fail(p, out_cannot_write);
}

static void load(struct page_pool *p, const struct paged_page *page, uint8_t *to)
{
	size_t done = 0;
	while (done < PAGE_BYTES) {
		const ssize_t n = pread(p->fd, to + done, PAGE_BYTES - done, (off_t)((page->place - 1) * PAGE_BYTES + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	if (done == PAGE_BYTES)
		return;
	memset(to, 0, PAGE_BYTES);
	fail(p, cannot_read);
}

/* A seat for a page that comes: a free one, or that of the one that came first. */
static struct seat *take_seat(struct page_pool *p)
{
	if (p->seats < p->limit)
		return &p->seat[p->seats++];
	struct seat *s = &p->seat[p->hand];
	struct paged_page *out = &s->of->page[s->page];
	p->hand = (p->hand + 1) % p->limit;
	if (!(out->data & 1))
		save(p, out);
	free(data_of(out));
	out->data = PAGE_ABSENT;
	return s;
}

void *paged_fetch(struct paged *t, size_t page, bool edit)
{
	struct paged_page *const at = &t->page[page];
	if (at->data == PAGE_ABSENT) {
		uint8_t *data = mem_lines(PAGE_BYTES);
		*take_seat(t->pager) = (struct seat){ t, page };
		if (at->place)
			load(t->pager, at, data);
		at->data = (uintptr_t)data | (at->place > 0);
	}
	if (edit)
		at->data &= ~(uintptr_t)1;
	return data_of(at);
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
