/* Fuzz target: input as CTF metadata and, after a line of dashes, as the file of one stream. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "trace/ctf/decode.h"
#include "fuzz_replay.h"

static const char separator[] = "\n----\n";

static int check_event(struct event_sink *o, const struct event *ev)
{
	(void)o;
	if (ev->kind >= EVENT_KIND_COUNT || ev->ts == INT64_MIN)
		abort();
	return 0;
}

static int check_coverage(struct event_sink *o, uint16_t cpu, int64_t begin, int64_t end)
{
	(void)o;
	(void)cpu;
	return begin == INT64_MIN || end == INT64_MIN ? abort(), -1 : 0;
}

static int check_damage(struct event_sink *o, const char *reason, bool continues)
{
	(void)o;
	(void)continues;
	return *reason ? 0 : (abort(), -1);
}

static int ignore_progress(struct event_sink *o, uint64_t bytes)
{
	(void)o;
	(void)bytes;
	return 0;
}

static void decode_stream_file(const struct ctf_classes *c, struct event_mapping *mapping, const uint8_t *data, size_t size)
{
	static const struct event_sink_ops ops = {
		.put = check_event,
		.add_coverage = check_coverage,
		.report_damage = check_damage,
		.report_progress = ignore_progress,
	};
	int fd;
	const char *reason;
	struct error err = ERROR_INIT;
	struct event_sink out = { .ops = &ops, .err = &err };
	struct ctf_streams all = { 0 };
	char *path = mem_dup(replay_file(data, size, &fd));
	char *name = strrchr(path, '/');
	*name++ = '\0';
	struct stream_file file = { .dir = path, .name = name, .bytes = size };
	if (size && ctf_streams_add(&all, c, &file, &reason) == 0) {
		ctf_streams_sort(&all);
		struct ctf_worker *w = ctf_worker_new(c, mapping);
		for (size_t i = 0; i < all.len; i++)
			if (ctf_decode(w, &all.stream[i], 0, all.stream[i].packets, i % 2, &out))
				abort();
		ctf_worker_free(w);
	}
	ctf_streams_release(&all);
	free(file.packet);
	close(fd);
	free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct layout *layout[2];
	struct error err = ERROR_INIT;
	if (!layout[0])
		layout[0] = layout_load("lttng", &err), layout[1] = layout_load("perf", &err);
	struct string_table names;
	string_table_init(&names);
	struct event_mapping mapping = { .names = &names, .layout = (const struct layout *const *)layout, .layouts = 2 };
	const uint8_t *dashes = memmem(data, size, separator, sizeof separator - 1);
	const size_t text = dashes ? (size_t)(dashes - data) : size, begin = dashes ? text + sizeof separator - 1 : size;
	char *metadata = mem_new(text + 1, 1);
	memcpy(metadata, data, text);
	struct ctf_classes c;
	if (!ctf_classes_make(&c, metadata, text, &mapping))
		decode_stream_file(&c, &mapping, data + begin, size - begin);
	ctf_classes_release(&c);
	free(metadata);
	string_table_release(&names);
	return 0;
}
