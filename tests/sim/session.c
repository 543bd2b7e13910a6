/* The session file: control groups and topology of the host, and the memory of its VMs. */
#include <stdlib.h>

#include "base/mem.h"
#include "groups.h"

bool groups_in_session(const struct sim *s)
{
	return s->groups_recorded && s->opt.quota_facts != QUOTA_NONE;
}

/* Most of the memory of the VMs is alternately on node 0 and on node 1. */
static void write_guest(FILE *f, const struct sim *s, unsigned i)
{
	const struct machine *m = s->machine[i];

	fprintf(f, "- {name: %s, dir: guest-%s", m->name, m->name);
	if (s->opt.siblings)
		fprintf(f, ", memory: {%u: 4096, %u: 1024}", i % 2, 1 - i % 2);
	fputs("}\n", f);
}

int session_write(struct sim *s)
{
	char *path = mem_printf("%s/session.yaml", s->opt.out);
	FILE *f = fopen(path, "w");
	int result = f ? 0 : error_system(&s->err, NULL, "%s", path);
	bool guests = false;

	if (f && s->machine[0]->traced) {
		fputs("host:\n  dir: host\n", f);
		if (s->opt.siblings)
			cores_write(f, s);
		if (groups_in_session(s))
			groups_write(f, s);
	}
	for (unsigned i = 1; f && i < s->machines; i++)
		if (s->machine[i]->traced) {
			fputs(guests ? "" : "guests:\n", f);
			write_guest(f, s, i);
			guests = true;
		}
	if (f && fclose(f) != 0)
		result = error_system(&s->err, NULL, "%s", path);
	free(path);
	return result;
}
