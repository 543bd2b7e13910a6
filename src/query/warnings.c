/* Warnings of a history: notes on its traces that limit the trust in an answer. */
#include "query/query.h"

#include <string.h>

#define META_NOTES "notes"

static uint32_t machine_of(const struct catalog *catalog, const struct target *target)
{
	return target->kind == TARGET_MACHINE ? target->index
	       : target->kind == TARGET_CPU ? catalog->cpu[target->index].machine : catalog->thread[target->index].machine;
}

/* Returns true if the note concerns the machine, or an outer machine. A container has only the host's trace. */
static bool note_concerns_machine(const struct catalog *catalog, const struct note *note, uint32_t machine)
{
	if (!note->machine)
		return true;
	for (int32_t m = (int32_t)machine; m >= 0; m = catalog->machine[m].parent)
		if (strcmp(catalog->machine[m].name, note->machine) == 0)
			return true;
	return catalog->machine[machine].kind == MACHINE_CONTAINER && catalog->machines > 0 &&
	       strcmp(catalog->machine[0].name, note->machine) == 0;
}

bool warnings_of(const struct catalog *catalog, const struct target *target, int64_t from, int64_t to, struct notes *out)
{
	size_t size;
	struct notes all = { 0 };
	const void *bytes = history_meta(catalog->h, META_NOTES, &size);
	bool sound = !bytes || notes_unpack(&all, bytes, size);
	/* The most important one first: there is no source of stolen time at all. */
	for (size_t i = 0; i < 2 * all.len; i++) {
		const struct note *note = &all.item[i % all.len];
		if (note_code_hides_steal(note->code) == (i < all.len) && note_is_warning(note, from, to) &&
		    (!target || note_concerns_machine(catalog, note, machine_of(catalog, target))))
			notes_copy(out, note, NULL);
	}
	notes_release(&all);
	return sound;
}
