/* Decodes pages of the kernel's ring buffers into records, with checks before libtraceevent reads them. Shared by the
 * readers of raw pages and of trace-cmd's files. */
#pragma once

#include <event-parse.h>
#include <stdbool.h>

#include "trace/pages/pages.h"

/* Readable bytes after a page: an event's header is read before its length is known. */
#define PAGE_PADDING 64

struct kbuffer;

struct page_decoder {
	struct kbuffer *buffer;
	struct page_header header;
	bool big_endian;
	bool skipped;      /* the previous page was damaged */
	bool has_damage;   /* at least one page was damaged */
	/* Takes a record. Returns 0, 1 to end the decoding, or -1. */
	int (*put)(void *arg, struct tep_record *rec);
	void *arg;
};

/* The caller has set header, big_endian, put and arg. Returns -1 if memory is short. */
int page_decoder_open(struct page_decoder *d);
/* Decodes a page. Reports damage to `out` and skips the rest of a damaged page. Returns 0 or -1. */
int page_decoder_run(struct page_decoder *d, unsigned char *page, unsigned cpu, struct event_sink *out);
