/* Fuzz target: input as the description files of a recorded machine's pages: about.yaml and, after lines of dashes,
 * header_page and the statistics of a CPU. */
#include <stdlib.h>
#include <string.h>

#include "trace/pages/pages.h"
#include "fuzz_replay.h"

#define PARTS 3

static const char separator[] = "\n----\n";

static struct replay_file next_part(const char *name, const uint8_t **at, const uint8_t *end)
{
	const size_t left = (size_t)(end - *at);
	const uint8_t *dashes = memmem(*at, left, separator, sizeof separator - 1);
	const struct replay_file part = { name, *at, dashes ? (size_t)(dashes - *at) : left };
	*at = dashes ? dashes + sizeof separator - 1 : end;
	return part;
}

/* Checks that times fit into an int64_t and increase with the counter. */
static void check_pages(const struct pages *p)
{
	int64_t last = INT64_MIN;
	if (p->begin > p->end || p->overwrite_ns < 0 || p->cpus != 1 || p->header.data_offset >= p->header.page)
		abort();
	for (uint64_t ahead = 0; ahead < UINT64_C(1) << 62; ahead = 2 * ahead + 1) {
		const int64_t now = clock_scale_ns(&p->scale, p->scale.count + ahead);
		if (now < last)
			abort();
		last = now;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const name[PARTS] = { "about.yaml", "header_page", "stats/cpu0" };
	struct replay_file file[PARTS + 1] = { [PARTS] = { "pages/cpu0", (const uint8_t *)"page", 4 } };
	struct error err = ERROR_INIT;
	const uint8_t *at = data, *const end = data + size;
	for (size_t i = 0; i < PARTS; i++)
		file[i] = next_part(name[i], &at, end);
	struct pages *p = pages_read(replay_dir(file, PARTS + 1), &err);
	if (p)
		check_pages(p);
	else if (err.status != STATUS_INPUT || strchr(err.text, '\n'))
		abort();
	pages_free(p);
	return 0;
}
