/* Fuzz target: input as a file of spans. Accepted spans must have well-formed ids and times. */
#include <stdlib.h>
#include <string.h>

#include "latency/latency.h"
#include "fuzz_replay.h"

static void check_id(const char *id, size_t digits, int required)
{
	const size_t n = strlen(id);
	if ((n != digits && (n || required)) || strspn(id, "0123456789abcdef") != n)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct spans spans;
	struct error err = ERROR_INIT;
	if (spans_parse(&spans, size % 2, (const char *)data, size, "spans", &err)) {
		if (!err.text[0] || strchr(err.text, '\n') || spans.len || spans.sources)
			abort();
		return 0;
	}
	for (size_t i = 0; i < spans.len; i++) {
		const struct span *s = &spans.span[i];
		check_id(s->trace, SPAN_TRACE_ID, 1);
		check_id(s->id, SPAN_ID, 1);
		check_id(s->parent, SPAN_ID, 0);
		if (s->start < 0 || s->end < s->start || s->source >= spans.sources || !s->name || s->tid == 0 || s->tid < -1)
			abort();
	}
	spans_release(&spans);
	return 0;
}
