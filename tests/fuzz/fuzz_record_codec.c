/* Fuzz target: input as blocks of records, because another process may have changed the temporary file. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/store.h"
#include "fuzz_replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = ERROR_INIT;
	struct store *store = store_new(SIZE_MAX, NULL, &err);
	struct stream s;
	struct reader r;
	const struct event *ev;
	int64_t last = INT64_MIN;
	stream_init(&s);
	for (size_t at = 0, n; at < size; at += n) {
		n = size - at < 1000 ? size - at : 1000;
		struct block b = { .data = mem_new(n + RECORD_OVERREAD, 1), .len = (uint32_t)n, .last = last };
		memcpy(b.data, data + at, n);
		store->resident += n;
		*ARRAY_PUSH(s.block, s.len, s.cap) = b;
	}
	for (size_t part = 0; part < 3; part++) {
		reader_open(&r, store, &s, part, 3);
		for (last = INT64_MIN; reader_next(&r, &ev, &err) > 0; last = ev->ts)
			if (ev->kind >= EVENT_KIND_COUNT || ev->ts < last)
				abort();
		reader_close(&r);
	}
	stream_release(&s, store);
	store_unref(store);
	return 0;
}
