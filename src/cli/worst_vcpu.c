#include "cli/worst_vcpu.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/prose.h"
#include "cli/query_context.h"

/* Finds the vCPU that lost most time. Returns 1; 0: no vCPU lost time; -1: error. */
static int find_victim(const struct query_context *s, struct target *victim, struct error *err)
{
	int64_t max_lost = 0;
	for (uint32_t i = 0; i < s->catalog.cpus; i++) {
		const struct target cpu = { TARGET_CPU, i };
		struct demand d;
		if (s->catalog.machine[s->catalog.cpu[i].machine].kind != MACHINE_VM)
			continue;
		if (demand_of(&s->catalog, &cpu, s->window.from, s->window.to, &d, err))
			return -1;
		if (d.lost > max_lost) {
			max_lost = d.lost;
			*victim = cpu;
		}
	}
	return max_lost > 0;
}

int worst_vcpu_print(char *recording, struct error *err)
{
	static const struct window_options whole_history = { 0 };
	struct query_context s;
	struct target victim;
	char *text = NULL;
	int rc = query_context_open(&s, recording, &whole_history, err), found = 0;
	if (rc == 0)
		found = find_victim(&s, &victim, err);
	if (found > 0)
		rc = explain_window(&s.catalog, &victim, s.window.from, s.window.to, &text, err);
	if (rc == 0)
		prose_print(found ? text : "No vCPU lost time.\n", recording);
	free(text);
	return query_context_close(&s, found < 0 ? -1 : rc, err);
}
