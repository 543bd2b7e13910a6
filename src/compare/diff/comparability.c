/* What two sides have in common, and what of them cannot be compared. */
#include <string.h>

#include "base/text.h"
#include "base/timefmt.h"
#include "compare/diff/ledger.h"

/* The machine whose name a subject's begins with; -1: there is none. */
static int machine_of(const struct topo *topo, const char *subject)
{
	char name[SUBJECT_TEXT];
	for (uint32_t m = 0; m < topo->machines; m++) {
		const struct subject s = { SUBJECT_MACHINE, m };
		const size_t n = strlen(ledger_subject(topo, &s, name));
		if (strncmp(subject, name, n) == 0 && (subject[n] == '\0' || subject[n] == '/'))
			return (int)m;
	}
	return -1;
}

bool ledger_find_machine(const struct topo *topo, const char *subject, struct subject *out)
{
	const int m = machine_of(topo, subject);
	if (m >= 0)
		*out = (struct subject){ SUBJECT_MACHINE, (uint32_t)m };
	return m >= 0;
}

static void note_machine(const struct diff_side side[2], int own, uint32_t machine, struct notes *notes)
{
	static const char *const name[] = { "BEFORE", "AFTER" };
	const struct topo_machine *m = &side[own].topo->machine[machine];
	const int there = topo_find_machine(side[!own].topo, m->name);
	if (topo_is_alone(side[own].topo, &(struct subject){ SUBJECT_MACHINE, machine }))
		notes_add(notes, NOTE_DOUBT, m->name, "no host was seen to run it in %s: what it lost there is not known",
		          name[own]);
	if (there < 0) {
		notes_add(notes, NOTE_DOUBT, m->name, "it is in %s alone: what it lost there has nothing to be compared with",
		          name[own]);
		return;
	}
	const struct topo_machine *o = &side[!own].topo->machine[there];
	if (own == 1 && m->cpus != o->cpus && m->kind != MACHINE_CONTAINER)
		notes_add(notes, NOTE_FACT, m->name, "it has %u %s%s, before %u", m->cpus,
		          m->kind == MACHINE_VM ? "vCPU" : "CPU", m->cpus == 1 ? "" : "s", o->cpus);
}

static void note_overlap(const struct diff_side side[2], struct notes *notes)
{
	char span[TIME_TEXT];
	const int64_t from = side[0].from > side[1].from ? side[0].from : side[1].from;
	const int64_t to = side[0].to < side[1].to ? side[0].to : side[1].to;
	/* Neighbours may have the moment between them in common. */
	if (from < to && strcmp(history_file(side[0].topo->h), history_file(side[1].topo->h)) == 0)
		notes_add(notes, NOTE_DOUBT, NULL, "%s are in both windows: what they have in common is no change",
		          time_duration(span, to - from + 1));
}

void sides_note(const struct diff_side side[2], struct notes *notes)
{
	for (int i = 0; i < 2; i++)
		for (uint32_t m = 0; m < side[i].topo->machines; m++)
			note_machine(side, i, m, notes);
	note_overlap(side, notes);
}
