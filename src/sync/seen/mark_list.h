/* The ends of synchronization pairs that one machine's trace shows (private to sync/).
 *
 * They are added in order of time, within a bound on memory: past that, those of some keys alone are kept, the same on all
 * machines.  When there are no more to come they are put in order of kind, key and time. */
#ifndef STEALSCOPE_SYNC_MARK_LIST_H
#define STEALSCOPE_SYNC_MARK_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One end of a pair. */
struct sync_mark {
	uint64_t key;
	int64_t ts;
	int64_t uid;      /* or EVENT_ABSENT */
	int32_t where;    /* host: index of the thread instance, -1 = none; guest: CPU */
	uint16_t end;     /* enum sync_end */
};

struct mark_list {
	struct sync_mark *mark;
	size_t len, cap;
	unsigned sparse;  /* only keys whose hash has this many low zero bits are kept */
	struct mark_tally *tally;  /* by where + 1: how many of each kind; made by mark_list_sort() */
	size_t tallies;
};

void mark_list_add(struct mark_list *l, const struct sync_mark *m);
bool mark_list_kept(const struct mark_list *l, uint64_t key);
void mark_list_sort(struct mark_list *l);
void mark_list_release(struct mark_list *l);

/* How many are of that kind, of the threads i with mine[i] and of none; mine NULL: all of them.  O(threads). */
size_t mark_list_count(const struct mark_list *l, unsigned end, const bool *mine);

#endif
