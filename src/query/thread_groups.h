/* Threads of a machine with the same name, process or control group. Private to query/. */
#pragma once

#include "base/strtab.h"
#include "query/culprit.h"

struct thread_groups {
	const struct catalog *catalog;
	struct actors group;     /* kind FLOW_PREEMPTING; tid: the process, otherwise -1; name: id in names */
	struct strtab names;
	uint32_t *of;            /* by index of catalog->thread: index of its group */
};

/* Groups all threads. O(threads). Returns NULL with *err on a damaged history. */
struct thread_groups *thread_groups_new(const struct catalog *catalog, enum thread_grouping by, struct error *err);
void thread_groups_free(struct thread_groups *g);

/* Replaces a thread by its group, also a thread for which the hypervisor works; other actors stay as they are. Puts the
 * name into names. g: NULL: no groups. */
void actor_set_group(const struct thread_groups *g, struct actor *actor, struct strtab *names);
