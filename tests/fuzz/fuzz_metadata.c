/* Fuzz target: input as CTF metadata for the scanner, and as CTF 1.8 text for the parser. */
#include <stdlib.h>
#include <string.h>

#include "trace/discovery/metadata.h"
#include "fuzz_replay.h"

/* Checks that all strings are terminated. */
static void check_terminated(const struct metadata *m)
{
	if (!memchr(m->hostname, 0, sizeof m->hostname) || !memchr(m->tracer, 0, sizeof m->tracer) ||
	    !memchr(m->uuid, 0, sizeof m->uuid) || !memchr(m->clock_uuid, 0, sizeof m->clock_uuid) ||
	    !memchr(m->clock_offset, 0, sizeof m->clock_offset) || !memchr(m->domain, 0, sizeof m->domain))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct metadata m;
	struct error err = ERROR_INIT;
	const char *dir = replay_dir((const struct replay_file[]){ { "metadata", data, size } }, 1);
	if (metadata_read(dir, &m, &err) == 0)
		check_terminated(&m);
	else if (err.status != STATUS_INPUT || !err.text[0])
		abort();
	char *text = malloc(size + 1);
	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	metadata_scan(text, &m);
	check_terminated(&m);
	free(text);
	return 0;
}
