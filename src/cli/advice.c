#include "cli/advice.h"

#include "base/base.h"
#include "cli/findings_print.h"
#include "compare/compare.h"
#include "report/report.h"

/* Finds the VM of the first finding on a VM. Returns 1; 0: there is none; -1: error. */
static int find_worst_vm(struct query_context *s, struct target *out, struct error *err)
{
	struct findings l;
	int found = 0;
	if (findings_query(s, NULL, &l, err))
		return -1;
	for (size_t i = 0; i < l.len && !found; i++) {
		*out = (struct target){ TARGET_MACHINE, l.item[i].has_target ? target_machine(&s->catalog, &l.item[i].target) : 0 };
		found = l.item[i].has_target && s->catalog.machine[out->index].kind == MACHINE_VM;
	}
	findings_release(&l);
	return found;
}

int advice_print(struct query_context *s, const struct target *target, struct error *err)
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
