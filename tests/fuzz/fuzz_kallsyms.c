/* Fuzz target: input as the kallsyms of a guest. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/kallsyms.h"
#include "fuzz_replay.h"

#define MAX_INPUT (1u << 16)  /* maximum size of an input, bytes */

/* Checks that symbols are sorted, have names and are found by their start address. The last symbol has no known end and
 * is never found. */
static void check_symbols(const struct kallsyms *k)
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
	if (size > MAX_INPUT)
		return 0;
	const char *path = replay_file(data, size, &fd);
	if (kallsyms_read(path, &k, &err) == 0)
		check_symbols(&k);
	else if (!err.text[0] || strchr(err.text, '\n') || k.symbols)
		abort();
	kallsyms_release(&k);
	close(fd);
	return 0;
}
