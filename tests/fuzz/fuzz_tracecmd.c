/* Fuzz target: input as a trace-cmd file. Reads all of it except the events: machine and clock, the descriptions of events
 * (with compressed sections), and the pages of each CPU. libtraceevent, which decodes the events, is not ours. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/tracecmd/dat_contents.h"
#include "trace/tracecmd/tracecmd_file.h"
#include "fuzz_replay.h"

enum { PAGE_SIZE_MAX = 65536, PAGES_MAX = 64 };

static uint64_t all;  /* sum of everything read, so that nothing is optimized away */

static void on_header_page(void *arg, const char *text, size_t n)
{
	(void)arg;
	all += strnlen(text, n);
}

static void on_format(void *arg, const char *system, const char *text, size_t n)
{
	(void)arg;
	all += strlen(system) + strnlen(text, n);
}

static void on_names(void *arg, char *text)
{
	(void)arg;
	all += strlen(text);
}

static void read_pages(const struct dat_contents *contents, const struct tracecmd_file_cpu *cpu, size_t size)
{
	struct dat_pages pages = { .contents = contents, .cpu = cpu, .at = cpu->at, .left = cpu->bytes };
	unsigned char *page = malloc(size);
	const char *why = NULL;
	for (unsigned i = 0; i < PAGES_MAX && dat_pages_read(&pages, page, size, &why) > 0; i++)
		all += page[0] + page[size - 1];
	dat_pages_close(&pages);
	free(page);
}

static void read_contents(const struct tracecmd_file *d, const char *path)
{
	struct error err = ERROR_INIT;
	struct dat_contents contents = { .descriptions = { on_header_page, on_format, on_names, NULL } };
	const int status = dat_contents_open(&contents, path, &err);
	if (status && err.status != STATUS_INPUT)
		abort();
	for (size_t i = 0; i < d->cpus && !status && d->page && d->page <= PAGE_SIZE_MAX; i++)
		read_pages(&contents, &d->cpu[i], d->page);
	if (contents.fd >= 0)
		close(contents.fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd;
	struct error err = ERROR_INIT;
	const char *path = replay_file(data, size, &fd);
	struct tracecmd_file *d = tracecmd_file_read(path, &err);
	if (!d && err.status != STATUS_INPUT)
		abort();
	for (size_t i = 0; d && i < d->cpus; i++)
		all += d->cpu[i].bytes;
	if (d && d->data > size)
		abort();
	for (size_t i = 0; d && i < d->shifts; i++)
		for (size_t k = 0; k < 4; k++)
			all += (uint64_t)time_shift_apply(&d->time_shift[i], (int64_t)(k << 40));
	if (d)
		read_contents(d, path);
	tracecmd_file_free(d);
	close(fd);
	return all == 1;
}
