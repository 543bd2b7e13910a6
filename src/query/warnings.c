/* What a history says against its own answers: the notes on the input that they rest on. */
#include "query/query.h"

#include <string.h>

#define META_NOTES "notes"

static uint32_t machine_of(const struct topo *topo, const struct subject *s)
{
	return s->kind == SUBJECT_MACHINE ? s->index
	       : s->kind == SUBJECT_CPU ? topo->cpu[s->index].machine : topo->thread[s->index].machine;
}

/* Is it about the machine, or about one that runs it?  Containers have no trace but the host's. */
static bool concerns(const struct topo *topo, const struct note *note, uint32_t machine)
{
	if (!note->machine)
		return true;
	for (int32_t m = (int32_t)machine; m >= 0; m = topo->machine[m].parent)
		if (strcmp(topo->machine[m].name, note->machine) == 0)
			return true;
	return topo->machine[machine].kind == MACHINE_CONTAINER && topo->machines > 0 &&
	       strcmp(topo->machine[0].name, note->machine) == 0;
}

bool doubts_of(const struct topo *topo, const struct subject *s, int64_t from, int64_t to, struct notes *out)
{
	size_t size;
	struct notes all = { 0 };
	const void *bytes = history_meta(topo->h, META_NOTES, &size);
	bool sound = !bytes || notes_unpack(&all, bytes, size);
	for (size_t i = 0; i < all.len; i++) {
		const struct note *note = &all.item[i];
		if (note_is_doubt(note, from, to) && (!s || concerns(topo, note, machine_of(topo, s))))
			notes_copy(out, note, NULL);
	}
	notes_release(&all);
	return sound;
}
