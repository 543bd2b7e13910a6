/* Fuzz target: input as the output of a guest agent with a known key. The first byte sets the size of the chunks. */
#include <stdlib.h>
#include <string.h>

#include "record/frames.h"
#include "fuzz_replay.h"

static int sum_frame(void *arg, enum frame type, unsigned cpu, const char *data, size_t len, struct error *err)
{
	(void)err;
	uint64_t *sum = arg;
	if (type >= FRAME_KINDS || cpu >= FRAME_CPUS)
		abort();
	for (size_t i = 0; i < len; i++)
		*sum += (unsigned char)data[i];
	if (type != FRAME_PAGES && data[len])
		abort();
	return type == FRAME_REFUSE ? -1 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = ERROR_INIT;
	struct frames f;
	uint64_t sum = 0;
	if (size < 1 || frames_init(&f, sum_frame, &sum, &err))
		return 0;
	memset(f.key, 'f', FRAME_KEY);
	const size_t step = 1 + data[0];
	int rc = 0;
	for (size_t at = 1, n; at < size && !rc; at += n) {
		n = size - at < step ? size - at : step;
		rc = frames_feed(&f, (const char *)data + at, n, &err);
	}
	frames_incomplete(&f);
	frames_release(&f);
	return 0;
}
