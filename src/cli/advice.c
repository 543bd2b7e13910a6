#include "cli/advice.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/prose.h"
#include "compare/compare.h"

/* The VM that lost most: 1, 0 = none lost anything, -1 = error. */
static int worst(const struct scene *s, struct subject *out, struct error *err)
{
	int64_t most = 0;
	for (uint32_t i = 0; i < s->topo.machines; i++) {
		const struct subject vm = { SUBJECT_MACHINE, i };
		struct demand d;
		if (s->topo.machine[i].kind != MACHINE_VM)
			continue;
		if (demand_of(&s->topo, &vm, s->window.from, s->window.to, &d, err))
			return -1;
		if (d.lost > most)
			*out = vm;
		most = d.lost > most ? d.lost : most;
	}
	return most > 0;
}

int advice_print(const struct scene *s, const struct subject *who, struct error *err)
{
	struct subject vm;
	int found = who ? 1 : worst(s, &vm, err);
	if (found <= 0)
		return found;
	char *text = advise(&(struct diff_side){ &s->topo, s->window.from, s->window.to }, who ? who : &vm);
	putchar('\n');
	prose_print(text, s->named);
	free(text);
	return 0;
}
