/* Fuzz target: any bytes as a guest's kallsyms. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/kallsyms.h"
#include "fuzz_replay.h"

#define LONGEST (1u << 16)  /* bytes of an input */

/* What was read is in order, has names, and is found where it begins, unless it is the last one, of which no end is known. */
static void check(const struct kallsyms *k)
{
	for (size_t i = 0; i < k->symbols; i++) {
		const struct kallsym *s = &k->symbol[i], *next = i + 1 < k->symbols ? s + 1 : NULL;
		if (!s->name[0] || strpbrk(s->name, " \t\r\n") || (next && next->address < s->address))
			abort();
		const struct kallsym *found = kallsyms_at(k, s->address);
		if (!next || next->address == s->address ? found && found->address != s->address : found != s)
			abort();
	}
	if (kallsyms_at(k, UINT64_MAX))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kallsyms k;
	struct error err = ERROR_INIT;
	int fd;
	if (size > LONGEST)
		return 0;
	const char *path = replay_file(data, size, &fd);
	if (kallsyms_read(path, &k, &err) == 0)
		check(&k);
	else if (!err.text[0] || strchr(err.text, '\n') || k.symbols)
		abort();
	kallsyms_release(&k);
	close(fd);
	return 0;
}
