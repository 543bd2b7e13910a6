/* Fuzz target: input as a program with functions and static probes. */
#include <stdlib.h>
#include <string.h>

#include "record/elf_probes.h"
#include "fuzz_replay.h"

static int by_name(const struct elf_place *a, const struct elf_place *b)
{
	if (!a->provider != !b->provider)
		return a->provider ? -1 : 1;
	const int c = a->provider ? strcmp(a->provider, b->provider) : 0, d = c ? c : strcmp(a->name, b->name);
	return d ? d : (a->offset > b->offset) - (a->offset < b->offset);
}

/* Checks that places are sorted, different and inside the file, and that arguments become single words of tracefs. */
static void check_places(const struct elf_places *p, size_t size)
{
	for (size_t i = 0; i < p->len; i++) {
		const struct elf_place *place = &p->place[i];
		if (!*place->name || !place->offset || place->offset >= size || place->counter >= size ||
		    !place->provider != !place->args || (i && by_name(place - 1, place) >= 0))
			abort();
		for (unsigned n = 0; n < 20; n++) {
			struct error err = ERROR_INIT;
			char *arg = elf_place_arg(p, place, n, &err);
			if (arg ? !*arg || strpbrk(arg, " \n\t=") : !err.text[0])
				abort();
			free(arg);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_places p;
	struct error err = ERROR_INIT;
	if (elf_places_parse(&p, data, size, "input", NULL, &err) == 0)
		check_places(&p, size);
	else if (!err.text[0] || p.len)
		abort();
	elf_places_release(&p);
	return 0;
}
