/* Fuzz target: any bytes as the metadata of a CTF trace and, behind a line of dashes, as the file of one of its streams. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "trace/ctf/decode.h"
#include "fuzz_replay.h"

static const char cut[] = "\n----\n";

static int put(struct outlet *o, const struct event *ev)
{
	(void)o;
	if (ev->kind >= EVENT_KIND_COUNT || ev->ts == INT64_MIN)
		abort();
	return 0;
}

static int covers(struct outlet *o, uint16_t cpu, int64_t begin, int64_t end)
{
	(void)o;
	(void)cpu;
	return begin == INT64_MIN || end == INT64_MIN ? abort(), -1 : 0;
}

static int damaged(struct outlet *o, const char *why, bool goes_on)
{
	(void)o;
	(void)goes_on;
	return *why ? 0 : (abort(), -1);
}

static int at(struct outlet *o, uint64_t bytes)
{
	(void)o;
	(void)bytes;
	return 0;
}

static void decode(const struct ctf_classes *c, struct meaning *meaning, const uint8_t *data, size_t size)
{
	static const struct outlet_ops ops = { .put = put, .covers = covers, .damaged = damaged, .at = at };
	int fd;
	const char *why;
	struct error err = ERROR_INIT;
	struct outlet out = { .ops = &ops, .err = &err };
	struct ctf_streams all = { 0 };
	char *path = mem_dup(replay_file(data, size, &fd));
	char *name = strrchr(path, '/');
	*name++ = '\0';
	struct stream_file file = { .dir = path, .name = name, .bytes = size };
	if (size && ctf_streams_add(&all, c, &file, &why) == 0 && !ctf_streams_sort(&all)) {
		struct ctf_worker *w = ctf_worker_new(c, meaning);
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
	struct names names;
	names_init(&names);
	struct meaning meaning = { .names = &names, .layout = (const struct layout *const *)layout, .layouts = 2 };
	const uint8_t *dashes = memmem(data, size, cut, sizeof cut - 1);
	const size_t text = dashes ? (size_t)(dashes - data) : size, begin = dashes ? text + sizeof cut - 1 : size;
	char *metadata = mem_new(text + 1, 1);
	memcpy(metadata, data, text);
	struct ctf_classes c;
	if (!ctf_classes_make(&c, metadata, text, &meaning))
		decode(&c, &meaning, data + begin, size - begin);
	ctf_classes_release(&c);
	free(metadata);
	names_release(&names);
	return 0;
}
