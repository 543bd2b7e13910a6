#include "cli/advice.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/prose.h"
#include "compare/compare.h"

/* Finds the VM that lost most time. Returns 1; 0: no VM lost time; -1: error. */
static int find_worst_vm(const struct query_context *s, struct target *out, struct error *err)
{
	int64_t max_lost = 0;
	for (uint32_t i = 0; i < s->catalog.machines; i++) {
		const struct target vm = { TARGET_MACHINE, i };
		struct demand d;
		if (s->catalog.machine[i].kind != MACHINE_VM)
			continue;
		if (demand_of(&s->catalog, &vm, s->window.from, s->window.to, &d, err))
			return -1;
		if (d.lost > max_lost)
			*out = vm;
		max_lost = d.lost > max_lost ? d.lost : max_lost;
	}
	return max_lost > 0;
}

int advice_print(const struct query_context *s, const struct target *target, struct error *err)
{
	struct target vm;
	int found = target ? 1 : find_worst_vm(s, &vm, err);
	if (found <= 0)
		return found;
	char *text = advise(&(struct diff_side){ &s->catalog, s->window.from, s->window.to }, target ? target : &vm);
	putchar('\n');
	prose_print(text, s->named);
	free(text);
	return 0;
}
