#include "trace/pages/page_decoder.h"

#include <endian.h>
#include <errno.h>

#include <kbuffer.h>

#include "base/base.h"

#define LENGTH_BITS 0x7ffffff  /* mask of the length in a page's length word; the other bits are flags */

int page_decoder_open(struct page_decoder *d)
{
	d->buffer = kbuffer_alloc(d->header.length_size == 8 ? KBUFFER_LSIZE_8 : KBUFFER_LSIZE_4,
	                          d->big_endian ? KBUFFER_ENDIAN_BIG : KBUFFER_ENDIAN_LITTLE);
	errno = d->buffer ? errno : ENOMEM;
	return d->buffer ? 0 : -1;
}

/* Returns true if the length in the page's header is not larger than the page's data area. */
static bool is_valid_page(const struct page_decoder *d, const unsigned char *page)
{
	uint32_t word[2];
	memcpy(word, page + d->header.length_offset, sizeof word);
	/* The low half of an 8-byte length is the second one of a big-endian page. */
	const bool is_long = d->header.length_size == 8;
	const uint32_t low = d->big_endian ? be32toh(word[is_long]) : le32toh(word[0]);
	return (low & LENGTH_BITS) <= d->header.page - d->header.data_offset;
}

static int put_record(struct page_decoder *d, const unsigned char *page, void *data, uint64_t ts, unsigned cpu, int missed)
{
	const int size = kbuffer_event_size(d->buffer);
	const unsigned char *at = data;
	struct tep_record rec = { .ts = ts, .size = size, .data = data, .cpu = (int)cpu, .missed_events = missed };
	if (size < 0 || at < page || (size_t)size > d->header.page || (size_t)(at - page) > d->header.page - (size_t)size) {
		d->skipped = true;
		return 0;
	}
	return d->put(d->arg, &rec);
}

int page_decoder_run(struct page_decoder *d, unsigned char *page, unsigned cpu, struct event_sink *out)
{
	unsigned long long ts;
	int status = 0, before = -1, missed = d->skipped ? -1 : 0;
	d->skipped = !is_valid_page(d, page) || kbuffer_load_subbuffer(d->buffer, page) != 0;
	if (!d->skipped && kbuffer_missed_events(d->buffer))
		missed = missed ? missed : kbuffer_missed_events(d->buffer);
	for (void *data; !status && !d->skipped && (data = kbuffer_read_event(d->buffer, &ts));) {
		d->skipped = kbuffer_curr_index(d->buffer) <= before;
		before = kbuffer_curr_index(d->buffer);
		if (!d->skipped)
			status = put_record(d, page, data, ts, cpu, missed);
		missed = 0;
		kbuffer_next_event(d->buffer, NULL);
	}
	d->has_damage |= d->skipped;
	if (status >= 0 && d->skipped)
		status = event_sink_report_damage(out, "invalid page", true);
	return status < 0 ? -1 : 0;
}
