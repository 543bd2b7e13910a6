/* Fuzz target: input as a trace-cmd file, of which all but the ring buffers is read. */
#include <stdlib.h>
#include <unistd.h>

#include "trace/tracecmd/tracecmd_file.h"
#include "fuzz_replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd;
	struct error err = ERROR_INIT;
	struct tracecmd_file *d = tracecmd_file_read(replay_file(data, size, &fd), &err);
	if (!d && err.status != STATUS_INPUT)
		abort();
	uint64_t all = 0;
	for (size_t i = 0; d && i < d->cpus; i++)
		all += d->cpu[i].bytes;
	if (d && d->data > size)
		abort();
	for (size_t i = 0; d && i < d->shifts; i++)
		for (size_t k = 0; k < 4; k++)
			all += (uint64_t)time_shift_apply(&d->time_shift[i], (int64_t)(k << 40));
	tracecmd_file_free(d);
	close(fd);
	return all == 1;
}
