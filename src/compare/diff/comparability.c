/* Comparability of two sides: notes about machines that only one side has, changed numbers of CPUs, missing host traces,
 * and overlapping windows. */
#include "base/base.h"
#include "compare/diff/ledger.h"

/* Index of the machine at the start of a target's name; -1: none. */
static int machine_of_target(const struct catalog *catalog, const char *target)
{
	char name[TARGET_TEXT];
	for (uint32_t m = 0; m < catalog->machines; m++) {
		const struct target s = { TARGET_MACHINE, m };
		const size_t n = strlen(ledger_target(catalog, &s, name));
		if (strncmp(target, name, n) == 0 && (target[n] == '\0' || target[n] == '/'))
			return (int)m;
	}
	return -1;
}

bool ledger_find_machine(const struct catalog *catalog, const char *target, struct target *out)
{
	const int m = machine_of_target(catalog, target);
	if (m >= 0)
		*out = (struct target){ TARGET_MACHINE, (uint32_t)m };
	return m >= 0;
}

static void note_machine(const struct diff_side side[2], int this_side, uint32_t machine, struct notes *notes)
{
	static const char *const name[] = { "BEFORE", "AFTER" };
	const struct catalog_machine *m = &side[this_side].catalog->machine[machine];
	const int there = catalog_find_machine(side[!this_side].catalog, m->name);
	if (catalog_lacks_host_trace(side[this_side].catalog, &(struct target){ TARGET_MACHINE, machine }))
		note_add(notes, DIFF_NO_HOST, m->name, name[this_side]);
	if (there < 0) {
		note_add(notes, DIFF_ONE_SIDE, m->name, name[this_side]);
		return;
	}
	const struct catalog_machine *o = &side[!this_side].catalog->machine[there];
	if (this_side == 1 && m->cpus != o->cpus && m->kind != MACHINE_CONTAINER)
		note_add(notes, DIFF_CPUS_CHANGED, m->name, m->kind == MACHINE_VM ? "vCPU" : "CPU", m->cpus, o->cpus);
}

static void note_overlap(const struct diff_side side[2], struct notes *notes)
{
	char overlap[TIME_TEXT];
	const int64_t from = side[0].from > side[1].from ? side[0].from : side[1].from;
	const int64_t to = side[0].to < side[1].to ? side[0].to : side[1].to;
	/* Adjacent windows may share one timestamp. */
	if (from < to && strcmp(history_file(side[0].catalog->h), history_file(side[1].catalog->h)) == 0)
		note_add(notes, DIFF_OVERLAP, NULL, time_duration(overlap, to - from + 1));
}

void comparability_note(const struct diff_side side[2], struct notes *notes)
{
	for (int i = 0; i < 2; i++)
		for (uint32_t m = 0; m < side[i].catalog->machines; m++)
			note_machine(side, i, m, notes);
	note_overlap(side, notes);
}
