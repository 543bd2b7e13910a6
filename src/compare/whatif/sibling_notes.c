/* Notes on changes that pin threads to a CPU of a busy core: in the replay, all CPUs have the same speed at all times. */
#include "base/base.h"
#include "compare/whatif/whatif_report.h"

#define BUSY_MIN 0.05  /* smallest reported use of a CPU, as a share of the window */

struct owner_use {
	double busy;             /* part of the window with a running thread, 0 .. 1 */
	const char *owner;       /* machine with most of this time, raw; NULL: none */
	double owner_share;
};

/* Sums the use of a CPU of the host. Returns false if it is unknown. */
static bool read_use(const struct catalog *catalog, uint32_t cpu, int64_t from, int64_t to, struct owner_use *out)
{
	const uint32_t attr = catalog->cpu[cpu].owner;
	int64_t sums[HISTORY_STATES];
	const double window = (double)(to - from) + 1;
	*out = (struct owner_use){ 0 };
	if (attr == HISTORY_NONE || history_sums(catalog->h, attr, from, to, sums, NULL) < 0)
		return false;
	for (unsigned i = 0; i < history_state_count(catalog->h, attr) && i < HISTORY_STATES - 1; i++) {
		const char *name = history_state_name(catalog->h, attr, i);
		const double share = (double)sums[i] / window;
		if (strcmp(name, pcpu_owner_name[PCPU_IDLE]) == 0)
			continue;
		out->busy += share;
		if (share > out->owner_share) {
			out->owner_share = share;
			out->owner = name;
		}
	}
	return out->owner != NULL;
}

void whatif_note_siblings(const struct host_demand *d, const struct whatif_change *change, size_t changes,
                          struct notes *notes)
{
	const struct catalog *catalog = d->catalog;
	for (size_t i = 0; i < changes; i++) {
		const int cpu = change[i].kind == WHATIF_PIN ? catalog_find_cpu(catalog, 0, change[i].cpu) : -1;
		for (int32_t s = cpu < 0 ? -1 : catalog->cpu[cpu].sibling; s >= 0 && s != cpu; s = catalog->cpu[s].sibling) {
			struct owner_use use;
			char owner[256];
			if (!read_use(catalog, (uint32_t)s, d->from, d->to, &use) || use.busy < BUSY_MIN)
				continue;
			text_escape(owner, sizeof owner, use.owner);
			note_add(notes, REPLAY_CORE_SHARED, NULL, change[i].cpu, catalog->cpu[s].number, 100 * use.busy, owner,
			         100 * use.owner_share);
		}
	}
}
