/* Fuzz target: any bytes as what a guest's agent sends, with a key that is known.  The first byte says how it is cut. */
#include <stdlib.h>
#include <string.h>

#include "record/frames.h"
#include "fuzz_replay.h"

static int take(void *arg, enum frame what, unsigned cpu, const char *data, size_t len, struct error *err)
{
	(void)err;
	uint64_t *sum = arg;
	if (what >= FRAME_KINDS || cpu >= FRAME_CPUS)
		abort();
	for (size_t i = 0; i < len; i++)
		*sum += (unsigned char)data[i];
	if (what != FRAME_PAGES && data[len])
		abort();
	return what == FRAME_REFUSE ? -1 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = ERROR_INIT;
	struct frames f;
	uint64_t sum = 0;
	if (size < 1 || frames_init(&f, take, &sum, &err))
		return 0;
	memset(f.key, 'f', FRAME_KEY);
	const size_t step = 1 + data[0];
	int rc = 0;
	for (size_t at = 1, n; at < size && !rc; at += n) {
		n = size - at < step ? size - at : step;
		rc = frames_take(&f, (const char *)data + at, n, &err);
	}
	frames_are_cut(&f);
	frames_release(&f);
	return 0;
}
