#include "cli/worst_vcpu.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/prose.h"
#include "cli/query_context.h"

/* The vCPU that lost most: 1, 0 = none lost anything, -1 = error. */
static int find_victim(const struct scene *s, struct subject *victim, struct error *err)
{
	int64_t most = 0;
	for (uint32_t i = 0; i < s->topo.cpus; i++) {
		const struct subject cpu = { SUBJECT_CPU, i };
		struct demand d;
		if (s->topo.machine[s->topo.cpu[i].machine].kind != MACHINE_VM)
			continue;
		if (demand_of(&s->topo, &cpu, s->window.from, s->window.to, &d, err))
			return -1;
		if (d.lost > most) {
			most = d.lost;
			*victim = cpu;
		}
	}
	return most > 0;
}

int verdict_print(char *what, struct error *err)
{
	static const struct window_options always = { 0 };
	struct scene s;
	struct subject victim;
	char *text = NULL;
	int rc = scene_open(&s, what, &always, err), found = 0;
	if (rc == 0)
		found = find_victim(&s, &victim, err);
	if (found > 0)
		rc = explain_window(&s.topo, &victim, s.window.from, s.window.to, &text, err);
	if (rc == 0)
		prose_print(found ? text : "No virtual CPU lost anything.\n", what);
	free(text);
	return scene_close(&s, found < 0 ? -1 : rc, err);
}
