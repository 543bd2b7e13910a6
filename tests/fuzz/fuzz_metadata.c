/* Fuzz target: any bytes as the metadata of a CTF trace, of which the head is read; and as a CTF 1.8 text. */
#include <stdlib.h>
#include <string.h>

#include "trace/discovery/metadata.h"
#include "fuzz_replay.h"

/* Whatever it says, what is kept of it ends. */
static void check(const struct metadata *m)
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
	const char *dir = replay_folder((const struct replay_file[]){ { "metadata", data, size } }, 1);
	if (metadata_read(dir, &m, &err) == 0)
		check(&m);
	else if (err.status != STATUS_INPUT || !err.text[0])
		abort();
	char *text = malloc(size + 1);
	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	metadata_scan(text, &m);
	check(&m);
	free(text);
	return 0;
}
