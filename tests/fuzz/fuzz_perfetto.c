/* Fuzz target: input as a Perfetto trace, scanned and decoded. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/perfetto/bundle.h"
#include "trace/perfetto/perfetto.h"
#include "fuzz_replay.h"
#include "fuzz_sink.h"

struct sink { struct event_sink sink; uint64_t events; };

static int put(struct event_sink *o, const struct event *ev)
{
	if (ev->ts < 0 || ev->kind >= EVENT_KIND_COUNT || (ev->kind == EV_LOST && ev->lost.end < ev->ts))
		abort();
	((struct sink *)o)->events++;
	return 0;
}

/* Decodes a stream. Returns the number of bytes of its bundles. */
static uint64_t decode_stream(const struct perfetto_file *f, const struct perfetto_machine *m,
                              const struct perfetto_stream *s, int fd, struct bundle_decoder d)
{
	uint64_t bytes = 0;
	d.machine = m;
	d.sequence = s->sequence;
	d.cpu = s->cpu;
	d.offset = m->clock.epoch % (INT64_C(1) << 60);
	bundle_decoder_open(&d);
	for (size_t i = 0; i < s->bundles; i++) {
		const struct perfetto_bundle *b = &s->bundle[i];
		unsigned char *data = malloc(b->len + 1);  /* of the exact size, so that the sanitizer notices a read beyond it */
		if (pread(b->is_scratch ? f->scratch : fd, data, b->len, (off_t)b->at) != (ssize_t)b->len)
			abort();
		if (bundle_decode(&d, data, b->len, b->follows_loss))
			abort();
		bytes += b->len;
		free(data);
	}
	if (bundle_decoder_close(&d))
		abort();
	return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct event_sink_ops ops = { put, NULL, add_coverage, report_damage, report_progress };
	static struct layout *layout;
	int fd;
	struct error err = ERROR_INIT;
	struct sink sink = { .sink = { .ops = &ops, .err = &err } };
	struct string_table names;
	struct string_cache cache;
	if (!layout)
		layout = layout_load("ftrace", &err);
	const struct layout *layouts[] = { layout };
	struct event_mapping mapping = { .names = &names, .layout = layouts, .layouts = 1 };
	const char *path = replay_file(data, size, &fd);
	struct perfetto_file *f = perfetto_file_scan(fd, path, &err);
	if (!layout || !f)
		abort();
	string_table_init(&names);
	names.store_event_names = true;
	string_cache_init(&cache, &names);
	uint64_t bytes = 0;
	struct perfetto_classes *classes = event_classes_new(&mapping, &cache);
	for (size_t i = 0; i < f->machines; i++)
		for (size_t k = 0; k < f->machine[i].streams; k++)
			bytes += decode_stream(f, &f->machine[i], &f->machine[i].stream[k], fd,
			                       (struct bundle_decoder){ .classes = classes, .names = &cache, .out = &sink.sink });
	if (bytes > size + (uint64_t)f->scratch_bytes || sink.events > 2 * bytes)
		abort();
	event_classes_free(classes);
	string_cache_release(&cache);
	string_table_release(&names);
	perfetto_file_release(f);
	close(fd);
	perfetto_reader.claims("trace", data, size < CLAIM_HEAD ? size : CLAIM_HEAD);
	return 0;
}
